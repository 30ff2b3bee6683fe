/* Queues that are stopped, and namespaces whose use of a queue is. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

static void namespace_says(struct scenario *s, const char *name, const char *policy)
{
    char json[400];
    snprintf(json, sizeof(json), "{\"metadata\":{\"name\":\"%s\",\"annotations\":{%s%s%s}}}", name,
             policy == NULL ? "" : "\"tallyman.dev/stop-policy\":\"", policy == NULL ? "" : policy,
             policy == NULL ? "" : "\"");
    given_json(s, KIND_NAMESPACE, json);
}

static void running_gang(struct scenario *s, const char *queue_options)
{
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", queue_options);
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    expect_state(s, "a", "Running");
    trace_forget(s);
}

/* HoldAndDrain: what runs is suspended whole, keeps its room until its last pod is gone, and waits.
 */
static void drained_queue_stops_its_gangs_whole(void **state)
{
    struct scenario *s = *state;
    running_gang(s, "cpu=4");
    given_job(s, "b", "q", "pods=3 cpu=1");
    trace_forget(s);
    at(s, 1000);
    quota_becomes(s, "q", "cpu=4 stop=HoldAndDrain");
    expect_trace(s, "[1000] a: suspend, QueueStopped\n"
                    "[1000] b > Pending #1 QueueStopped: queue q is stopped (stopPolicy "
                    "HoldAndDrain)\n"
                    "[1000] a > Suspending 2/2 on default WaitingForTermination: 2 of its pods "
                    "are still stopping\n"
                    "[1000] a ! Warning QueueStopped: queue q is stopped (stopPolicy "
                    "HoldAndDrain); the gang stops whole, keeps its place and starts again by "
                    "itself once that is lifted\n");
    check_str(string_map_get(&scenario_job(s, "a")->meta.annotations, "tallyman.dev/suspended"),
              "{\"cause\":\"QueueStopped\",\"at\":\"2026-11-30T12:00:01Z\",\"evictions\":1}");
    expect_used(s, "q", "cpu=2");
    gang_stops(s, "a");
    expect_used(s, "q", "cpu=0");
    expect_state(s, "a", "Pending QueueStopped");
    expect_message(s, "a", "queue q is stopped (stopPolicy HoldAndDrain)");
    at(s, 3600000);
    expect_state(s, "a", "Pending QueueStopped");
    /* Lifted: each goes on by itself, the drained one first, for it keeps its place. */
    quota_becomes(s, "q", "cpu=4");
    expect_state(s, "a", "Admitted");
    expect_state(s, "b", "Pending QuotaExhausted");
    assert_false(str_is_set(
        string_map_get(&scenario_job(s, "a")->meta.annotations, "tallyman.dev/suspended")));
}

static void held_queue_lets_its_gangs_run(void **state)
{
    struct scenario *s = *state;
    running_gang(s, "cpu=4");
    quota_becomes(s, "q", "cpu=4 stop=Hold");
    expect_state(s, "a", "Running");
    given_job(s, "b", "q", "pods=1 cpu=1");
    expect_state(s, "b", "Pending QueueStopped");
    quota_becomes(s, "q", "cpu=4 stop=None");
    expect_state(s, "b", "Admitted");
}

/* What has been drained stays so over a restart, and nobody is told to hold it. */
static void drain_goes_on_over_a_restart(void **state)
{
    struct scenario *s = *state;
    running_gang(s, "cpu=4");
    quota_becomes(s, "q", "cpu=4 stop=HoldAndDrain");
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "a", "Suspending WaitingForTermination");
    expect_used(s, "q", "cpu=2");
    gang_stops(s, "a");
    expect_state(s, "a", "Pending QueueStopped");
    restart(s, WITH_ADMISSIONS);
    quota_becomes(s, "q", "cpu=4");
    expect_state(s, "a", "Admitted");
}

/* The policy is changed while the admission is on its way: it is stopped as soon as that is known.
 */
static void drain_meets_an_admission_on_its_way(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    scenario_start(s);
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=2 cpu=1");
    quota_becomes(s, "q", "cpu=4 stop=HoldAndDrain");
    trace_forget(s);
    write_ok(s, "a", true);
    expect_state(s, "a", "Suspending WaitingForTermination");
    write_ok(s, "a", true);
    write_ok(s, "a", true); /* no pod was made yet: the template is put back */
    expect_state(s, "a", "Pending QueueStopped");
}

/* A gang that waits for its victims in a queue that is stopped gives their room back. */
static void stopped_queue_ends_a_preemption(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=2 within=LowerPriority");
    given_priority_class(s, "high", 100);
    given_job(s, "low", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "low", "n1 n1");
    given_job(s, "top", "q", "pods=2 cpu=1 priority=high");
    expect_state(s, "top", "Reserved WaitingForVictims");
    quota_becomes(s, "q", "cpu=2 within=LowerPriority stop=Hold");
    expect_state(s, "top", "Pending QueueStopped");
    gang_stops(s, "low");
    expect_state(s, "top", "Pending QueueStopped");
    expect_state(s, "low", "Pending QueueStopped");
    expect_used(s, "q", "cpu=0");
}

static void namespace_holds_its_own_gangs_only(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    namespace_says(s, "ml", "Hold");
    given_job(s, "a", "q", "pods=1 cpu=1");
    given_job(s, "b", "q", "pods=1 cpu=1 ns=other");
    scenario_start(s);
    expect_state(s, "a", "Pending QueueStopped");
    expect_message(s, "a",
                   "namespace ml's use of queue q is stopped (tallyman.dev/stop-policy Hold)");
    expect_state(s, "other/b", "Admitted");
    namespace_says(s, "ml", NULL);
    expect_state(s, "a", "Admitted");
}

static void namespace_drains_its_own_gangs_only(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    given_job(s, "a", "q", "pods=1 cpu=1");
    given_job(s, "b", "q", "pods=1 cpu=1 ns=other");
    scenario_start(s);
    gang_starts(s, "a", "n1");
    gang_starts(s, "other/b", "n1");
    namespace_says(s, "ml", "HoldAndDrain");
    expect_state(s, "a", "Suspending WaitingForTermination");
    expect_state(s, "other/b", "Running");
    gang_stops(s, "a");
    expect_state(s, "a", "Pending QueueStopped");
    namespace_says(s, "ml", "None");
    expect_state(s, "a", "Admitted");
}

/* QUEUE=POLICY goes before the policy for all. */
static void namespace_stops_the_use_of_one_queue(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    given_queue(s, "r", "cpu=4");
    given_queue(s, "t", "cpu=4");
    namespace_says(s, "ml", "q=Hold, r=None,Hold");
    given_job(s, "a", "q", "pods=1 cpu=1");
    given_job(s, "b", "r", "pods=1 cpu=1");
    given_job(s, "c", "t", "pods=1 cpu=1");
    scenario_start(s);
    expect_state(s, "a", "Pending QueueStopped");
    expect_state(s, "b", "Admitted");
    expect_state(s, "c", "Pending QueueStopped");
}

/* What can't be read starts nothing, stops nothing, and is told. */
static void policy_that_cannot_be_read_is_told(void **state)
{
    struct scenario *s = *state;
    running_gang(s, "cpu=4");
    namespace_says(s, "ml", "HoldAndDran");
    expect_state(s, "a", "Running");
    given_job(s, "b", "q", "pods=1 cpu=1");
    expect_state(s, "b", "Pending QueueStopped");
    expect_message(s, "b",
                   "namespace ml has tallyman.dev/stop-policy \"HoldAndDran\", which can't "
                   "be read");
    namespace_says(s, "ml", "q=Hold,");
    expect_message(s, "b", "which can't be read");
    namespace_says(s, "ml", "");
    expect_message(s, "b", "which can't be read");
    namespace_says(s, "ml", "other=Hold");
    expect_state(s, "b", "Admitted");
}

/* A label says the same; the annotation counts where both are. */
static void label_of_the_namespace_counts_too(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    given_namespace(s, "ml", "tallyman.dev/stop-policy:Hold");
    given_job(s, "a", "q", "pods=1 cpu=1");
    scenario_start(s);
    expect_state(s, "a", "Pending QueueStopped");
    given_json(s, KIND_NAMESPACE,
               "{\"metadata\":{\"name\":\"ml\",\"labels\":{\"tallyman.dev/stop-policy\":\"Hold\"},"
               "\"annotations\":{\"tallyman.dev/stop-policy\":\"None\"}}}");
    expect_state(s, "a", "Admitted");
}

/* A namespace that is stopped doesn't stand in the others' way in a StrictFIFO queue. */
static void stopped_namespace_blocks_no_strict_queue(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 strategy=StrictFIFO");
    namespace_says(s, "ml", "Hold");
    given_job(s, "a", "q", "pods=1 cpu=1");
    at(s, 1000);
    given_job(s, "b", "q", "pods=1 cpu=1 ns=other");
    expect_state(s, "a", "Pending QueueStopped");
    expect_state(s, "other/b", "Admitted");
}

/* A refused suspension is tried again, and counted once. */
static void refused_drain_is_tried_again(void **state)
{
    struct scenario *s = *state;
    running_gang(s, "cpu=4");
    writes_are_manual(s, true);
    quota_becomes(s, "q", "cpu=4 stop=HoldAndDrain");
    write_refused(s, "a", "no");
    at(s, 60000);
    assert_true(write_is_out(s, "a"));
    write_ok(s, "a", true);
    expect_state(s, "a", "Suspending WaitingForTermination");
}

/* Spaces around the word, as an editor leaves them, don't change what it says. */
static void policy_with_spaces_around_it(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=4");
    namespace_says(s, "ml", "  Hold ");
    given_job(s, "a", "q", "pods=1 cpu=1");
    expect_state(s, "a", "Pending QueueStopped");
    namespace_says(s, "ml", " None ");
    expect_state(s, "a", "Admitted");
}

/* A word of a later version is meant to stop; which way this one can't tell, so nobody is stopped.
 */
static void word_that_is_not_known_holds_the_queue(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=8");
    given_job(s, "a", "q", "pods=1 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1");
    ((struct queue *)scenario_object(s, KIND_QUEUE, "q"))->spec.stop_policy = STR("Freeze");
    object_changed(s, KIND_QUEUE, "q");
    given_job(s, "b", "q", "pods=1 cpu=1");
    expect_state(s, "b", "Pending QueueStopped");
    expect_state(s, "a", "Running");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(drained_queue_stops_its_gangs_whole),
        scenario_test(held_queue_lets_its_gangs_run),
        scenario_test(drain_goes_on_over_a_restart),
        scenario_test(drain_meets_an_admission_on_its_way),
        scenario_test(stopped_queue_ends_a_preemption),
        scenario_test(namespace_holds_its_own_gangs_only),
        scenario_test(namespace_drains_its_own_gangs_only),
        scenario_test(namespace_stops_the_use_of_one_queue),
        scenario_test(policy_that_cannot_be_read_is_told),
        scenario_test(label_of_the_namespace_counts_too),
        scenario_test(stopped_namespace_blocks_no_strict_queue),
        scenario_test(refused_drain_is_tried_again),
        scenario_test(policy_with_spaces_around_it),
        scenario_test(word_that_is_not_known_holds_the_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
