/* A gang's life after its admission: whole or stopped, edited, suspended, deleted. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

static void given_small_cluster(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
}

static void gang_that_is_not_whole_in_time_stops_whole_and_backs_off(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 timeout=10m base=60s max=3m");
    given_job(s, "a", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1 n1"); /* the fourth never comes */
    trace_forget(s);
    at(s, 599000);
    expect_trace(s, "[10000] a > Admitted 3/4 on default\n");
    at(s, 600000);
    expect_trace(s, "[600000] a: suspend, PodsReadyTimeout\n"
                    "[600000] a > Suspending 3/4 on default WaitingForTermination: 3 of its pods "
                    "are still stopping\n"
                    "[600000] a ! Warning PodsReadyTimeout: 3 of 4 pods were ready after 10m; the "
                    "gang stops whole and is tried again later\n");
    expect_used(s, "q", "cpu=4");
    gang_stops(s, "a");
    expect_state(s, "a", "Pending Backoff");
    expect_used(s, "q", "cpu=0");
    at(s, 659000);
    expect_state(s, "a", "Pending Backoff");
    at(s, 661000);
    expect_state(s, "a", "Admitted");
    /* The second time it waits twice as long. */
    at(s, 661000 + 600000);
    expect_state(s, "a", "Pending Backoff");
    expect_message(s, "a", "2 failed so far");
    at(s, 661000 + 600000 + 118000);
    expect_state(s, "a", "Pending Backoff");
    at(s, 661000 + 600000 + 122000);
    expect_state(s, "a", "Admitted");
}

static void shorter_timeout_of_a_queue_counts_for_who_is_starting(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 timeout=10m");
    given_job(s, "a", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1");
    at(s, 30000);
    quota_becomes(s, "q", "cpu=4 timeout=1m");
    at(s, 61000);
    expect_state(s, "a", "Suspending WaitingForTermination");
}

/* How many of its pods are ready is told now and then, not for each of them. */
static void pods_that_come_one_by_one_are_told_now_and_then(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=8 timeout=10m");
    given_job(s, "a", "q", "pods=4 min=3 cpu=1");
    scenario_start(s);
    pods_appear(s, "a", 4);
    for (int i = 0; i < 4; i++) {
        char pod[32];
        snprintf(pod, sizeof(pod), "a-%d", i);
        pod_binds(s, pod, "n1");
    }
    trace_forget(s);
    at(s, 1000);
    pod_is_ready_now(s, "a-0", true);
    pod_is_ready_now(s, "a-1", true);
    expect_trace(s, "");
    at(s, 11000);
    expect_trace(s, "[10000] a > Admitted 2/4 on default\n");
    at(s, 12000);
    pod_is_ready_now(s, "a-2", true);
    expect_trace(s, "[12000] a > Running 3/4 on default\n");
    at(s, 13000);
    pod_is_ready_now(s, "a-3", true);
    expect_trace(s, "");
    at(s, 30000);
    expect_trace(s, "[22000] a > Running 4/4 on default\n");
    at(s, 300000);
    expect_trace(s, "");
}

/* After a failed start it stands behind those that came meanwhile. */
static void failed_start_moves_behind(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=1 timeout=1m base=1s");
    given_job(s, "a", "q", "pods=1 cpu=1");
    at(s, 30000);
    given_job(s, "b", "q", "pods=1 cpu=1");
    at(s, 45000);
    given_job(s, "c", "q", "pods=1 cpu=1");
    at(s, 60000);
    expect_state(s, "b", "Admitted");
    gang_starts(s, "b", "n1");
    at(s, 62000);
    expect_state(s, "a", "Pending QuotaExhausted");
    job_finishes(s, "b");
    expect_state(s, "c", "Admitted");
    expect_state(s, "a", "Pending QuotaExhausted");
}

static void gang_that_falls_short_later_is_stopped_if_it_does_not_recover(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 timeout=1m");
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    at(s, 100000);
    pod_is_ready_now(s, "a-1", false);
    at(s, 130000);
    pod_is_ready_now(s, "a-1", true);
    at(s, 300000);
    expect_state(s, "a", "Running");
    pod_is_ready_now(s, "a-1", false);
    at(s, 359000);
    expect_state(s, "a", "Running");
    at(s, 361000);
    expect_state(s, "a", "Suspending WaitingForTermination");
}

/* A finished member is not a missing one. */
static void succeeded_pods_do_not_make_a_gang_fall_short(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 timeout=1m");
    given_job(s, "a", "q", "pods=3 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1 n1");
    pod_succeeds(s, "a-0");
    at(s, 200000);
    expect_state(s, "a", "Running");
    expect_used(s, "q", "cpu=2");
}

static void too_many_failed_starts_hold_the_gang(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 timeout=1m base=1s limit=1");
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    at(s, 60000);
    at(s, 62000);
    expect_state(s, "a", "Admitted");
    at(s, 130000);
    expect_state(s, "a", "Held Held");
    check_str(string_map_get(&scenario_job(s, "a")->meta.annotations, "tallyman.dev/hold"), "true");
}

/* Quota and nodes stay taken until the last pod of a stopped gang is gone. */
static void terminating_pods_hold_what_they_had(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "nvidia.com/gpu=1");
    given_queue(s, "q", "nvidia.com/gpu=2 timeout=1m");
    given_job(s, "low", "q", "pods=1 nvidia.com/gpu=1");
    scenario_start(s);
    gang_starts(s, "low", "n1");
    given_job(s, "high", "q", "pods=1 nvidia.com/gpu=1");
    expect_state(s, "high", "Pending DevicesExhausted");
    job_suspended_by_user(s, "low", true);
    pod_terminates(s, "low-0");
    job_says_suspended(s, "low"); /* active is 0, Suspended is True, and the pod still runs */
    check_i64(scenario_job(s, "low")->status.active.value, 0);
    at(s, 60000);
    expect_state(s, "high", "Pending DevicesExhausted");
    expect_state(s, "low", "Suspending WaitingForTermination");
    expect_used(s, "q", "nvidia.com/gpu=1");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    expect_state(s, "low", "Held Held");
}

/* The Job's own count of terminating pods holds it too, seen before the pods are. */
static void job_status_terminating_holds_it_too(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=4 cpu=1");
    given_job(s, "b", "q", "pods=4 cpu=1");
    scenario_start(s);
    struct job *a = scenario_job(s, "a");
    a->spec.suspend.value = true;
    a->status.terminating = (struct opt_int){true, 2};
    object_changed(s, KIND_JOB, "a");
    expect_state(s, "b", "Pending QuotaExhausted");
    a->status.terminating = (struct opt_int){true, 0};
    object_changed(s, KIND_JOB, "a");
    expect_state(s, "b", "Admitted");
}

/* -- user actions -------------------------------------------------------------------------------
 */

static void waiting_job_that_its_user_starts_is_suspended_again(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "holds", "q", "pods=4 cpu=1");
    given_job(s, "a", "q", "pods=1 cpu=1");
    expect_state(s, "a", "Pending QuotaExhausted");
    trace_forget(s);
    job_suspended_by_user(s, "a", false);
    expect_trace(s, "[   0] a: suspend, NotAdmitted\n"
                    "[   0] a > Pending #1 QuotaExhausted…\n"
                    "[   0] a ! Warning NotAdmitted: only Tallyman may start a Job that names a "
                    "queue; it waits its turn, suspended\n");
    assert_true(scenario_job(s, "a")->spec.suspend.value);
}

static void running_job_that_its_user_suspends_is_held(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=4 cpu=1");
    given_job(s, "b", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1 n1 n1");
    job_suspended_by_user(s, "a", true);
    expect_used(s, "q", "cpu=4");
    expect_state(s, "b", "Pending QuotaExhausted");
    gang_stops(s, "a");
    expect_state(s, "a", "Held Held");
    expect_state(s, "b", "Admitted");
    gang_starts(s, "b", "n1 n1 n1 n1");
    job_finishes(s, "b");
    expect_state(s, "a", "Held Held"); /* no fight, no restart by itself */
    job_annotated(s, "a", "tallyman.dev/hold", NULL);
    expect_state(s, "a", "Admitted");
}

/* What Tallyman stopped isn't started by its user either. */
static void stopping_gang_that_its_user_starts_is_suspended_again(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 timeout=1m");
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1");
    at(s, 60000);
    expect_state(s, "a", "Suspending WaitingForTermination");
    trace_forget(s);
    job_suspended_by_user(s, "a", false);
    assert_true(scenario_job(s, "a")->spec.suspend.value);
    expect_used(s, "q", "cpu=2");
    gang_stops(s, "a");
    expect_state(s, "a", "Pending Backoff");
    expect_used(s, "q", "cpu=0");
}

static void running_job_without_a_record_is_evicted(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "", "pods=2 cpu=1 running=true");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    writes_are_manual(s, true);
    job_relabelled(s, "a", "q");
    assert_true(write_is_out(s, "a"));
    assert_string_equal(decisions_text(s), "ml/a: Evict WaitingForTermination #0 2\n");
    write_ok(s, "a", true);
    assert_true(scenario_job(s, "a")->spec.suspend.value);
    writes_are_manual(s, false);
    gang_stops(s, "a");
    expect_state(s, "a", "Admitted");
}

static void label_removed_while_running_stays_charged(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_queue(s, "other", "cpu=4");
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    job_relabelled(s, "a", "");
    expect_used(s, "q", "cpu=2");
    job_relabelled(s, "a", "other");
    expect_used(s, "q", "cpu=2");
    expect_used(s, "other", "cpu=0");
    restart(s, WITH_ADMISSIONS);
    expect_used(s, "q", "cpu=2");
    job_suspended_by_user(s, "a", true);
    gang_stops(s, "a");
    expect_used(s, "q", "cpu=0");
    job_annotated(s, "a", "tallyman.dev/hold", NULL);
    expect_used(s, "other", "cpu=2");
}

static void mistyped_queue_is_corrected_while_it_waits(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "qq", "pods=2 cpu=1");
    expect_state(s, "a", "Pending QueueNotFound");
    job_relabelled(s, "a", "q");
    expect_state(s, "a", "Admitted");
    given_job(s, "b", "q", "pods=4 cpu=1");
    expect_state(s, "b", "Pending QuotaExhausted");
    job_relabelled(s, "b", ""); /* not ours any more: its Admission goes */
    expect_state(s, "b", "no Admission");
    job_suspended_by_user(s, "b", false);
    assert_false(scenario_job(s, "b")->spec.suspend.value);
}

/* Label off and started in one write, while it waited: not ours, and left alone. */
static void unlabelled_and_started_at_once_is_left_alone(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=5 cpu=1");
    scenario_start(s);
    struct job *a = scenario_job(s, "a");
    a->spec.suspend.value = false;
    job_relabelled(s, "a", "");
    assert_false(scenario_job(s, "a")->spec.suspend.value);
    expect_state(s, "a", "no Admission");
}

/* -- edits --------------------------------------------------------------------------------------
 */

static void pending_edit_keeps_the_place(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    given_job(s, "holds", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "holds", "n1 n1 n1 n1");
    given_job(s, "a", "q", "pods=2 cpu=1");
    at(s, 1000);
    given_job(s, "b", "q", "pods=2 cpu=1");
    at(s, 2000);
    given_job(s, "a", "q", "pods=2 cpu=2"); /* its requests are changed */
    job_finishes(s, "holds");
    expect_state(s, "a", "Admitted");
    expect_state(s, "b", "Pending QuotaExhausted");
    expect_used(s, "q", "cpu=4");
}

static void admitted_gang_that_grows_is_stopped_and_requeued(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    job_resized(s, "a", 6, 6);
    assert_true(scenario_job(s, "a")->spec.suspend.value);
    expect_used(s, "q", "cpu=2");
    gang_stops(s, "a");
    expect_state(s, "a", "Pending NeverFits");
    expect_used(s, "q", "cpu=0");
}

static void admitted_gang_that_shrinks_frees_when_its_pods_are_gone(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=4 cpu=1");
    given_job(s, "b", "q", "pods=3 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1 n1 n1");
    job_resized(s, "a", 1, 1);
    expect_used(s, "q", "cpu=4");
    pod_gone(s, "a-1");
    pod_gone(s, "a-2");
    expect_used(s, "q", "cpu=2");
    expect_state(s, "b", "Pending QuotaExhausted");
    pod_gone(s, "a-3");
    expect_state(s, "b", "Admitted");
    expect_used(s, "q", "cpu=4");
    /* Growing again is charged for, or not done. */
    job_resized(s, "a", 2, 2);
    assert_true(scenario_job(s, "a")->spec.suspend.value);
}

static void shrunk_below_what_succeeded_is_not_stuck(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1 n1 n1");
    pod_succeeds(s, "a-0");
    pod_succeeds(s, "a-1");
    pod_succeeds(s, "a-2");
    job_resized(s, "a", 2, 2);
    expect_used(s, "q", "cpu=1"); /* a-3 still runs */
    pod_gone(s, "a-3");
    job_finishes(s, "a");
    expect_state(s, "a", "Finished");
    expect_used(s, "q", "cpu=0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(gang_that_is_not_whole_in_time_stops_whole_and_backs_off),
        scenario_test(shorter_timeout_of_a_queue_counts_for_who_is_starting),
        scenario_test(pods_that_come_one_by_one_are_told_now_and_then),
        scenario_test(failed_start_moves_behind),
        scenario_test(gang_that_falls_short_later_is_stopped_if_it_does_not_recover),
        scenario_test(succeeded_pods_do_not_make_a_gang_fall_short),
        scenario_test(too_many_failed_starts_hold_the_gang),
        scenario_test(terminating_pods_hold_what_they_had),
        scenario_test(job_status_terminating_holds_it_too),
        scenario_test(waiting_job_that_its_user_starts_is_suspended_again),
        scenario_test(running_job_that_its_user_suspends_is_held),
        scenario_test(stopping_gang_that_its_user_starts_is_suspended_again),
        scenario_test(running_job_without_a_record_is_evicted),
        scenario_test(label_removed_while_running_stays_charged),
        scenario_test(mistyped_queue_is_corrected_while_it_waits),
        scenario_test(unlabelled_and_started_at_once_is_left_alone),
        scenario_test(pending_edit_keeps_the_place),
        scenario_test(admitted_gang_that_grows_is_stopped_and_requeued),
        scenario_test(admitted_gang_that_shrinks_frees_when_its_pods_are_gone),
        scenario_test(shrunk_below_what_succeeded_is_not_stuck),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
