/* Who may use what: the PriorityClasses of a queue, and the default queue of a namespace. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

/* -- allowedPriorityClasses ---------------------------------------------------------------------
 */

static void given_open_queue(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_priority_class(s, "low", 10);
    given_priority_class(s, "urgent", 1000);
}

static void queue_allows(struct scenario *s, const char *classes)
{
    char json[500];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"namespaceSelector\":{},%s"
             "\"resourceGroups\":[{\"flavors\":[{\"name\":\"default\",\"resources\":[{\"name\":"
             "\"cpu\",\"nominalQuota\":\"4\"}]}]}]}}",
             classes);
    given_json(s, KIND_QUEUE, json);
}

static void class_that_is_not_allowed_waits_with_a_sentence(void **state)
{
    struct scenario *s = *state;
    given_open_queue(s);
    queue_allows(s, "\"allowedPriorityClasses\":[\"low\",\"batch\"],");
    given_job(s, "a", "q", "pods=1 cpu=1 priority=urgent");
    given_job(s, "b", "q", "pods=1 cpu=1 priority=low");
    given_job(s, "c", "q", "pods=1 cpu=1");
    scenario_start(s);
    expect_state(s, "a", "Pending Invalid");
    expect_message(s, "a",
                   "PriorityClass urgent (label tallyman.dev/priority-class) may not be "
                   "used in queue q; allowed are low, batch, or none at all");
    expect_state(s, "b", "Admitted");
    expect_state(s, "c", "Admitted");
}

/* The label may not be the cloak of a class that pushes others' pods off their nodes. */
static void class_of_the_pods_counts_beside_the_label(void **state)
{
    struct scenario *s = *state;
    given_open_queue(s);
    queue_allows(s, "\"allowedPriorityClasses\":[\"low\"],");
    given_job_spec(s, "a", "q", "pods=1 priority=low",
                   "{\"priorityClassName\":\"urgent\",\"containers\":[{\"name\":\"main\"}]}");
    given_job_spec(s, "b", "q", "pods=1",
                   "{\"priorityClassName\":\"system-node-critical\",\"containers\":[{\"name\":"
                   "\"main\"}]}");
    scenario_start(s);
    expect_state(s, "a", "Pending Invalid");
    expect_message(s, "a",
                   "PriorityClass urgent (spec.template.spec.priorityClassName) may not be "
                   "used in queue q; allowed is low");
    expect_state(s, "b", "Pending Invalid");
}

/* A longer list lets waiting ones in, a shorter one keeps them out; who runs stays. */
static void change_of_the_list_touches_those_that_wait(void **state)
{
    struct scenario *s = *state;
    given_open_queue(s);
    queue_allows(s, "\"allowedPriorityClasses\":[\"low\"],");
    given_job(s, "a", "q", "pods=4 cpu=1 priority=urgent");
    given_job(s, "b", "q", "pods=1 cpu=1 priority=urgent");
    scenario_start(s);
    expect_state(s, "a", "Pending Invalid");
    queue_allows(s, "\"allowedPriorityClasses\":[\"low\",\"urgent\"],");
    expect_state(s, "a", "Admitted");
    expect_state(s, "b", "Pending QuotaExhausted");
    gang_starts(s, "a", "n1 n1 n1 n1");
    queue_allows(s, "\"allowedPriorityClasses\":[\"low\"],");
    expect_state(s, "a", "Running");
    expect_state(s, "b", "Pending Invalid");
    queue_allows(s, "");
    expect_state(s, "b", "Pending QuotaExhausted");
    object_gone(s, KIND_QUEUE, "q");
    expect_state(s, "b", "Pending QueueNotFound");
}

/* Whoever waits for another class takes one that is allowed. */
static void class_that_is_corrected_lets_the_gang_in(void **state)
{
    struct scenario *s = *state;
    given_open_queue(s);
    queue_allows(s, "\"allowedPriorityClasses\":[\"low\"],");
    given_job(s, "a", "q", "pods=1 cpu=1 priority=urgent");
    scenario_start(s);
    expect_state(s, "a", "Pending Invalid");
    scenario_job(s, "a")->meta.labels.items[0].value = STR("low");
    object_changed(s, KIND_JOB, "a");
    expect_state(s, "a", "Admitted");
}

/* A gang that its victims make room for gives it back when its class isn't taken any more. */
static void class_that_is_shut_out_ends_a_preemption(void **state)
{
    struct scenario *s = *state;
    given_open_queue(s);
    queue_allows(s, "\"preemption\":{\"withinQueue\":\"LowerPriority\"},");
    given_job(s, "l", "q", "pods=4 cpu=1 priority=low");
    scenario_start(s);
    gang_starts(s, "l", "n1 n1 n1 n1");
    given_job(s, "u", "q", "pods=1 cpu=1 priority=urgent");
    expect_state(s, "u", "Reserved WaitingForVictims");
    queue_allows(s, "\"preemption\":{\"withinQueue\":\"LowerPriority\"},"
                    "\"allowedPriorityClasses\":[\"low\"],");
    expect_state(s, "u", "Pending Invalid");
    gang_stops(s, "l");
    expect_state(s, "l", "Admitted");
}

/* -- the default queue --------------------------------------------------------------------------
 */

static void given_home(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_queue(s, "home", "cpu=2");
    given_namespace(s, "ml", "tallyman.dev/default-queue:home");
}

static const char *queue_label(struct scenario *s, const char *job)
{
    static char text[100];
    struct str label = string_map_get(&scenario_job(s, job)->meta.labels, "tallyman.dev/queue");
    snprintf(text, sizeof(text), "%.*s", str_is_set(label) ? (int)label.len : 4,
             str_is_set(label) ? label.ptr : "none");
    return text;
}

/* Suspended: queued at once; the label comes with the PATCH that admits. */
static void suspended_job_without_a_queue_goes_into_the_default_one(void **state)
{
    struct scenario *s = *state;
    given_home(s);
    scenario_start(s);
    trace_forget(s);
    given_job(s, "a", "", "pods=2 cpu=1");
    expect_trace(s, "[   0] a: admit 2 pods of queue home, cpu 1000m/pod on default\n"
                    "[   0] a ! DefaultQueue: label tallyman.dev/queue isn't set; it goes into "
                    "queue home, the default of namespace ml (label tallyman.dev/default-queue)\n"
                    "[   0] a > Admitted 0/2 on default\n"
                    "[   0] a ! Admitted: admitted on queue home: 2 pods, cpu=2\n");
    assert_string_equal(queue_label(s, "a"), "home");
    given_job(s, "b", "", "pods=1 cpu=1");
    expect_state(s, "b", "Pending QuotaExhausted");
    assert_string_equal(queue_label(s, "b"), "none");
}

/* Where it goes is told when the label is found missing, and not by each controller anew. */
static void default_queue_is_told_once(void **state)
{
    struct scenario *s = *state;
    given_home(s);
    given_job(s, "full", "home", "pods=2 cpu=1");
    scenario_start(s);
    given_job(s, "a", "", "pods=1 cpu=1");
    expect_state(s, "a", "Pending QuotaExhausted");
    assert_non_null(strstr(trace_text(s), "a ! DefaultQueue"));
    given_job(s, "forged", "", "pods=1 cpu=1");
    job_has_record(s, "forged", "{"); /* so it is listed as one that may be running */
    trace_forget(s);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Pending QuotaExhausted");
    expect_state(s, "forged", "Pending QuotaExhausted");
    assert_null(strstr(trace_text(s), "! DefaultQueue"));
}

/* Its list of classes goes with the queue, and of one that is made again, without a list. */
static void classes_are_as_free_as_the_queue_that_comes_back(void **state)
{
    struct scenario *s = *state;
    given_open_queue(s);
    queue_allows(s, "\"allowedPriorityClasses\":[\"low\"],");
    scenario_start(s);
    given_job(s, "a", "q", "pods=1 cpu=1 priority=urgent");
    expect_state(s, "a", "Pending Invalid");
    object_gone(s, KIND_QUEUE, "q");
    expect_state(s, "a", "Pending QueueNotFound");
    given_queue(s, "q", "cpu=4");
    expect_state(s, "a", "Admitted");
}

/* Created running: suspended and labelled by one PATCH. */
static void running_job_without_a_queue_is_suspended_and_queued(void **state)
{
    struct scenario *s = *state;
    given_home(s);
    given_job(s, "full", "home", "pods=2 cpu=1");
    scenario_start(s);
    trace_forget(s);
    given_job(s, "a", "", "pods=1 cpu=1 running=true");
    assert_string_equal(queue_label(s, "a"), "home");
    assert_true(scenario_job(s, "a")->spec.suspend.value);
    expect_state(s, "a", "Pending QuotaExhausted");
    assert_int_equal(counts_take(s).job_writes > 0, true);
}

/* What ran before the namespace had the label is left alone, restart or not. */
static void job_that_ran_before_the_label_is_left_alone(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "home", "cpu=2");
    given_namespace(s, "ml", "");
    scenario_start(s);
    given_job(s, "old", "", "pods=1 cpu=1 running=true");
    given_job(s, "kept", "", "pods=1 cpu=1");
    given_namespace(s, "ml", "tallyman.dev/default-queue:home");
    object_again(s, KIND_JOB, "old");
    expect_state(s, "old", "no Admission");
    assert_false(scenario_job(s, "old")->spec.suspend.value);
    expect_state(s, "kept", "Admitted"); /* suspended ones are taken in */
    restart(s, WITH_ADMISSIONS);
    assert_false(scenario_job(s, "old")->spec.suspend.value);
    expect_state(s, "old", "no Admission");
    /* Once it is suspended, it is like any other. */
    job_suspended_by_user(s, "old", true);
    expect_state(s, "old", "Admitted");
    assert_string_equal(queue_label(s, "old"), "home");
}

/* The restart finds what waits in its namespace's queue, labelled or not. */
static void default_queue_survives_a_restart(void **state)
{
    struct scenario *s = *state;
    given_home(s);
    given_job(s, "full", "home", "pods=2 cpu=1");
    scenario_start(s);
    given_job(s, "a", "", "pods=1 cpu=1");
    expect_state(s, "a", "Pending QuotaExhausted");
    for (uint64_t seed = 0; seed < 6; seed++) {
        listing_order(s, seed);
        restart(s, seed % 2 == 0 ? WITH_ADMISSIONS : WITHOUT_ADMISSIONS);
        expect_state(s, "a", "Pending QuotaExhausted");
    }
    job_finishes(s, "full");
    expect_state(s, "a", "Admitted");
}

/* Taking the label off is no way out of the queue, nor is starting the Job after it. */
static void label_that_is_taken_off_is_put_back(void **state)
{
    struct scenario *s = *state;
    given_home(s);
    given_job(s, "full", "home", "pods=2 cpu=1");
    given_job(s, "a", "home", "pods=1 cpu=1");
    scenario_start(s);
    trace_forget(s);
    job_relabelled(s, "a", "");
    expect_state(s, "a", "Pending QuotaExhausted");
    assert_non_null(strstr(trace_text(s), "a ! Warning DefaultQueue: label tallyman.dev/queue was "
                                          "taken off; it goes on in queue home"));
    job_suspended_by_user(s, "a", false);
    assert_true(scenario_job(s, "a")->spec.suspend.value);
    assert_string_equal(queue_label(s, "a"), "home");
    expect_state(s, "a", "Pending QuotaExhausted");
}

static void label_taken_off_and_started_at_once_is_caught(void **state)
{
    struct scenario *s = *state;
    given_home(s);
    given_job(s, "full", "home", "pods=2 cpu=1");
    given_job(s, "a", "home", "pods=1 cpu=1");
    scenario_start(s);
    struct job *job = scenario_job(s, "a");
    job->meta.labels = (struct string_map){.items = NULL};
    job->spec.suspend.value = false;
    object_changed(s, KIND_JOB, "a");
    assert_true(scenario_job(s, "a")->spec.suspend.value);
    assert_string_equal(queue_label(s, "a"), "home");
}

/* An empty label is no label. */
static void empty_label_is_none(void **state)
{
    struct scenario *s = *state;
    given_home(s);
    given_namespace(s, "free", "");
    scenario_start(s);
    given_json(
        s, KIND_JOB,
        "{\"metadata\":{\"name\":\"a\",\"labels\":{\"tallyman.dev/queue\":\"\"},"
        "\"generation\":1},\"spec\":{\"suspend\":true,\"template\":{\"spec\":{\"containers\":"
        "[{\"name\":\"main\"}]}}}}");
    given_json(s, KIND_JOB,
               "{\"metadata\":{\"name\":\"b\",\"namespace\":\"free\",\"labels\":{\"tallyman.dev/"
               "queue\":\"\"},\"generation\":1},\"spec\":{\"template\":{\"spec\":{\"containers\":"
               "[{\"name\":\"main\"}]}}}}");
    expect_state(s, "a", "Admitted");
    assert_string_equal(queue_label(s, "a"), "home");
    expect_state(s, "free/b", "no Admission");
}

/* The namespace's label is moved or goes: who is there by it alone goes along. */
static void gang_follows_its_namespaces_default(void **state)
{
    struct scenario *s = *state;
    given_home(s);
    given_queue(s, "away", "cpu=1");
    given_job(s, "full", "home", "pods=2 cpu=1");
    given_job(s, "named", "home", "pods=1 cpu=1");
    scenario_start(s);
    given_job(s, "a", "", "pods=2 cpu=1");
    expect_state(s, "a", "Pending QuotaExhausted");
    given_namespace(s, "ml", "tallyman.dev/default-queue:away");
    expect_state(s, "a", "Pending NeverFits");
    expect_state(s, "named", "Pending QuotaExhausted");
    given_namespace(s, "ml", "");
    expect_state(s, "a", "no Admission");
    expect_state(s, "named", "Pending QuotaExhausted");
    given_namespace(s, "ml", "tallyman.dev/default-queue:home");
    expect_state(s, "a", "Pending QuotaExhausted");
}

/* The watch may show a new Job before its new namespace. */
static void job_that_is_seen_before_its_namespace_is_taken(void **state)
{
    struct scenario *s = *state;
    given_home(s);
    scenario_start(s);
    given_job(s, "a", "", "ns=fresh pods=1 cpu=1 running=true");
    given_job(s, "b", "", "ns=other pods=1 cpu=1 running=true");
    given_namespace(s, "fresh", "tallyman.dev/default-queue:home");
    given_namespace(s, "other", "");
    expect_state(s, "fresh/a", "Admitted");
    assert_string_equal(queue_label(s, "fresh/a"), "home");
    given_namespace(s, "other", "tallyman.dev/default-queue:home");
    assert_false(scenario_job(s, "other/b")->spec.suspend.value);
}

static void job_of_another_controller_is_never_taken(void **state)
{
    struct scenario *s = *state;
    given_home(s);
    scenario_start(s);
    given_json(s, KIND_JOB,
               "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"managedBy\":\"example.com/other\","
               "\"suspend\":true,\"template\":{\"spec\":{\"containers\":[{\"name\":\"main\"}]}}}}");
    expect_state(s, "a", "no Admission");
    assert_int_equal(counts_take(s).job_writes, 0);
}

/* A class in the place of another, in a list of the same length. */
static void another_class_in_a_list_of_the_same_length(void **state)
{
    struct scenario *s = *state;
    given_open_queue(s);
    queue_allows(s, "\"allowedPriorityClasses\":[\"low\"],");
    given_job(s, "a", "q", "pods=1 cpu=1 priority=urgent");
    scenario_start(s);
    expect_state(s, "a", "Pending Invalid");
    queue_allows(s, "\"allowedPriorityClasses\":[\"urgent\"],");
    expect_state(s, "a", "Admitted");
}

/* It is on its way out, held by a finalizer: no queue for it any more. */
static void job_that_is_being_deleted_is_not_taken(void **state)
{
    struct scenario *s = *state;
    given_home(s);
    scenario_start(s);
    given_json(s, KIND_JOB,
               "{\"metadata\":{\"name\":\"a\",\"deletionTimestamp\":\"2026-11-30T11:59:00Z\"},"
               "\"spec\":{\"suspend\":true,\"template\":{\"spec\":{\"containers\":[{\"name\":"
               "\"main\"}]}}}}");
    expect_state(s, "a", "no Admission");
    assert_int_equal(counts_take(s).job_writes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(class_that_is_not_allowed_waits_with_a_sentence),
        scenario_test(class_of_the_pods_counts_beside_the_label),
        scenario_test(change_of_the_list_touches_those_that_wait),
        scenario_test(class_that_is_corrected_lets_the_gang_in),
        scenario_test(class_that_is_shut_out_ends_a_preemption),
        scenario_test(suspended_job_without_a_queue_goes_into_the_default_one),
        scenario_test(classes_are_as_free_as_the_queue_that_comes_back),
        scenario_test(default_queue_is_told_once),
        scenario_test(running_job_without_a_queue_is_suspended_and_queued),
        scenario_test(job_that_ran_before_the_label_is_left_alone),
        scenario_test(default_queue_survives_a_restart),
        scenario_test(label_that_is_taken_off_is_put_back),
        scenario_test(label_taken_off_and_started_at_once_is_caught),
        scenario_test(empty_label_is_none),
        scenario_test(gang_follows_its_namespaces_default),
        scenario_test(job_that_is_seen_before_its_namespace_is_taken),
        scenario_test(job_of_another_controller_is_never_taken),
        scenario_test(another_class_in_a_list_of_the_same_length),
        scenario_test(job_that_is_being_deleted_is_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
