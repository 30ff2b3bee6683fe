/* A suspended Job with no pod left to start. The Job controller can't end it: a suspension takes
 * status.startTime away, and the API server refuses the end of a Job that has none. Let go, it ends
 * at once, and starts nothing. */
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

static void given_stopped_gang(struct scenario *s)
{
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=4");
    given_job(s, "a", "q", "pods=2 completions=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    trace_forget(s);
}

static void job_has_condition(struct scenario *s, const char *name, const char *type)
{
    static struct condition conditions[2];
    conditions[0] = (struct condition){.type = STR("Suspended"), .status = STR("True")};
    conditions[1] = (struct condition){.type = str_from_c(type), .status = STR("True")};
    scenario_job(s, name)->status.conditions = (struct condition_list){conditions, 2};
    object_changed(s, KIND_JOB, name);
}

/* It is stopped for another in the moment in which its last pods succeed. */
static void job_whose_pods_have_all_succeeded_is_let_go_to_end(void **state)
{
    struct scenario *s = *state;
    given_stopped_gang(s);
    quota_becomes(s, "q", "cpu=4 stop=HoldAndDrain");
    pod_succeeds(s, "a-0");
    pod_succeeds(s, "a-1");
    gang_stops(s, "a");
    assert_non_null(strstr(trace_text(s), "a: let end"));
    assert_false(scenario_job(s, "a")->spec.suspend.value);
    expect_used(s, "q", "cpu=0");
    expect_state(s, "a", "Pending WaitingForTermination");
    trace_forget(s);
    at(s, 60000);
    assert_null(strstr(trace_text(s), "a: ")); /* nobody suspends it again */
    job_finishes(s, "a");
    expect_state(s, "a", "Finished");
}

/* A Job that has failed while it was stopped needs no second turn for that. */
static void failed_job_is_let_go_to_end(void **state)
{
    struct scenario *s = *state;
    given_stopped_gang(s);
    quota_becomes(s, "q", "cpu=4 stop=HoldAndDrain");
    gang_stops(s, "a");
    assert_null(strstr(trace_text(s), "let end"));
    job_has_condition(s, "a", "FailureTarget");
    assert_non_null(strstr(trace_text(s), "a: let end"));
    expect_message(s, "a", "no pod is left to start");
}

/* What the user holds stays as it is; the rest is in force for a Job of an earlier life, too. */
static void held_job_is_let_go_when_the_hold_is_taken_off(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=0");
    given_job(s, "a", "q", "pods=2 completions=2 cpu=1");
    job_annotated(s, "a", "tallyman.dev/hold", "true");
    scenario_job(s, "a")->status.succeeded = (struct opt_int){true, 2};
    job_has_condition(s, "a", "SuccessCriteriaMet");
    scenario_start(s);
    assert_null(strstr(trace_text(s), "let end"));
    job_annotated(s, "a", "tallyman.dev/hold", "false");
    assert_non_null(strstr(trace_text(s), "a: let end"));
    restart(s, WITH_ADMISSIONS);
    trace_forget(s);
    at(s, 60000);
    assert_null(strstr(trace_text(s), "suspend"));
}

/* The answer "no" is said, and waits its time. */
static void refused_end_is_tried_again(void **state)
{
    struct scenario *s = *state;
    given_stopped_gang(s);
    quota_becomes(s, "q", "cpu=4 stop=HoldAndDrain");
    gang_stops(s, "a");
    writes_are_manual(s, true);
    job_has_condition(s, "a", "FailureTarget");
    write_refused(s, "a", "no");
    at(s, 4000);
    assert_false(write_is_out(s, "a"));
    at(s, 6000);
    assert_true(write_is_out(s, "a"));
    write_conflict(s, "a");
    at(s, 40000);
    write_ok(s, "a", true);
    assert_false(scenario_job(s, "a")->spec.suspend.value);
}

/* A Job that runs is none of these. */
static void started_job_with_pods_to_make_is_suspended(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=0");
    given_job(s, "a", "q", "pods=2 cpu=1 running=true");
    scenario_start(s);
    assert_non_null(strstr(trace_text(s), "a: suspend, NotAdmitted"));
}

/* It names no queue, and what it says of its admission isn't of our writing. */
static void finished_job_of_no_queue_is_left_alone(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=2");
    given_job(s, "a", "", "pods=2 cpu=1");
    job_has_record(s, "a", "{");
    struct condition done = {.type = STR("Complete"), .status = STR("True")};
    scenario_job(s, "a")->status.conditions = (struct condition_list){&done, 1};
    scenario_start(s);
    expect_state(s, "a", "no Admission");
    object_again(s, KIND_JOB, "a");
    expect_state(s, "a", "no Admission");
    assert_int_equal(counts_take(s).job_writes, 0);
    expect_used(s, "q", "cpu=0");
}

/* Nothing is decided about what has ended, or is being deleted: `plan` tells of the others. */
static void plan_tells_nothing_of_what_has_ended(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=8");
    given_job(s, "ended", "q", "pods=1 cpu=1");
    given_job(s, "deleted", "q", "pods=1 cpu=1");
    given_job(s, "runs", "q", "pods=1 cpu=1");
    scenario_start(s);
    gang_starts(s, "ended", "n1");
    gang_starts(s, "deleted", "n1");
    gang_starts(s, "runs", "n1");
    job_finishes(s, "ended");
    object_gone(s, KIND_JOB, "deleted");
    expect_used(s, "q", "cpu=2"); /* its pod is still there */
    const char *told = decisions_text(s);
    assert_non_null(strstr(told, "runs"));
    assert_null(strstr(told, "ended"));
    assert_null(strstr(told, "deleted"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(job_whose_pods_have_all_succeeded_is_let_go_to_end),
        scenario_test(failed_job_is_let_go_to_end),
        scenario_test(held_job_is_let_go_when_the_hold_is_taken_off),
        scenario_test(refused_end_is_tried_again),
        scenario_test(started_job_with_pods_to_make_is_suspended),
        scenario_test(finished_job_of_no_queue_is_left_alone),
        scenario_test(plan_tells_nothing_of_what_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
