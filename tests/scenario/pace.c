/* How often an Admission is written: news at once, numbers and pods that come and go now and then.
 */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"
#include "tallyman/base/limits.h"

static int paced_setup(void **state)
{
    scenarios_are_paced(ADMISSION_INTERVAL_MS);
    return scenario_setup(state);
}

static int64_t writes(struct scenario *s)
{
    return (int64_t)counts_take(s).admission_writes;
}

/* `first` runs on all of q, `second` waits and has been told so long ago. */
static void given_a_waiting_gang(struct scenario *s)
{
    given_queue(s, "q", "cpu=4");
    given_node(s, "n1", "cpu=16");
    given_job(s, "first", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "first", "n1 n1 n1 n1");
    given_job(s, "second", "q", "pods=4 cpu=1");
    expect_state(s, "second", "Pending QuotaExhausted");
    at(s, 60000);
    (void)writes(s);
}

/* One after the other, a few milliseconds apart. */
static void pods_go(struct scenario *s, const char *job, int count, int64_t step_ms)
{
    for (int i = 0; i < count; i++) {
        char pod[64];
        (void)snprintf(pod, sizeof(pod), "%s-%d", job, i);
        at(s, scenario_now_ms(s) + step_ms);
        pod_gone(s, pod);
    }
}

/* It is nobody's yet. */
static void given_a_running_job(struct scenario *s, const char *name, const char *options)
{
    char text[128];
    (void)snprintf(text, sizeof(text), "%s running=true", options);
    given_job(s, name, "", text);
    gang_starts(s, name, "n1 n1 n1 n1 n1");
}

/* Where no policy suspends Jobs as they are made: the write that suspends it, its Event, and one
 * Admission, when it is queued. */
static void job_that_was_made_running_costs_three_writes(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    given_a_running_job(s, "bad", "pods=5 cpu=1");
    (void)counts_take(s);
    job_relabelled(s, "bad", "q");
    pods_go(s, "bad", 5, 25);
    gang_stops(s, "bad");
    at(s, 62000);
    expect_state(s, "bad", "Pending NeverFits");
    at(s, 120000);
    struct scenario_counts counts = counts_take(s);
    check_i64(counts.job_writes, 1);
    check_i64(counts.events, 1);
    check_i64(counts.admission_writes, 1);
}

/* The Job controller makes pods before it sees that the Job is suspended: each takes the gang out
 * of the queue until it is gone. */
static void pods_that_turn_up_late_are_not_told_of(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    (void)counts_take(s);
    given_job(s, "bad", "q", "pods=5 cpu=1 running=true");
    expect_state(s, "bad", "Pending NeverFits");
    for (int i = 0; i < 3; i++) {
        at(s, 60000 + i * 200);
        pods_appear(s, "bad", 1);
        at(s, 60100 + i * 200);
        gang_stops(s, "bad");
    }
    at(s, 120000);
    expect_state(s, "bad", "Pending NeverFits");
    struct scenario_counts counts = counts_take(s);
    check_i64(counts.job_writes, 1);
    check_i64(counts.events, 1);
    check_i64(counts.admission_writes, 1);
}

/* Its pods take longer than an interval: that is told once, after it. */
static void job_that_was_made_running_and_stops_slowly_is_told_of(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    given_a_running_job(s, "bad", "pods=4 cpu=1");
    job_relabelled(s, "bad", "q");
    (void)writes(s);
    assert_false(scenario_has(s, KIND_ADMISSION, "bad"));
    at(s, 60000 + ADMISSION_INTERVAL_MS);
    expect_state(s, "bad", "Suspending WaitingForTermination");
    at(s, 90000);
    check_i64(writes(s), 1);
    gang_stops(s, "bad");
    expect_state(s, "bad", "Pending QuotaExhausted");
}

static void new_states_are_told_at_once(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    job_finishes(s, "first");
    expect_state(s, "first", "Finished");
    expect_state(s, "second", "Admitted");
    at(s, 60010);
    gang_starts(s, "second", "n1 n1 n1 n1");
    expect_state(s, "second", "Running");
    at(s, 60020);
    job_suspended_by_user(s, "second", true);
    expect_state(s, "second", "Suspending WaitingForTermination");
    at(s, 60030);
    gang_stops(s, "second");
    expect_state(s, "second", "Held Held");
}

/* Quota that changes ten times a second: the last is told, and one in between at most. */
static void what_changes_again_and_again_is_told_now_and_then(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    for (int i = 1; i <= 10; i++) {
        char quota[32];
        (void)snprintf(quota, sizeof(quota), "cpu=%d", i % 2 == 0 ? 4 + i / 4 : 5);
        at(s, 60000 + i * 100);
        quota_becomes(s, "q", quota);
    }
    assert_in_range(writes(s), 1, 2);
    at(s, 61000 + ADMISSION_INTERVAL_MS);
    expect_message(s, "second", "2 of 6 free");
    (void)writes(s);
    at(s, 120000);
    check_i64(writes(s), 0);
}

static void what_is_as_it_was_after_the_interval_is_not_told(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    quota_becomes(s, "q", "cpu=5");
    expect_message(s, "second", "1 of 5 free");
    check_i64(writes(s), 1);
    at(s, 60100);
    quota_becomes(s, "q", "cpu=6");
    at(s, 60200);
    quota_becomes(s, "q", "cpu=5");
    at(s, 70000);
    check_i64(writes(s), 0);
    expect_message(s, "second", "1 of 5 free");
}

/* News that come meanwhile don't wait, and what waited isn't told once more. */
static void news_do_not_wait_behind_what_is_none(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    quota_becomes(s, "q", "cpu=5");
    at(s, 60100);
    quota_becomes(s, "q", "cpu=6");
    check_i64(writes(s), 1);
    at(s, 60200);
    quota_becomes(s, "q", "cpu=8");
    expect_state(s, "second", "Admitted");
    check_i64(writes(s), 1);
    at(s, 65000);
    check_i64(writes(s), 0);
}

/* Failed starts are told at once: whoever takes over has them from there. */
static void failed_start_does_not_wait(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    quota_becomes(s, "q", "cpu=5");
    at(s, 60100);
    quota_becomes(s, "q", "cpu=6");
    writes_are_manual(s, true);
    at(s, 60200);
    quota_becomes(s, "q", "cpu=8");
    write_refused(s, "second", "no");
    expect_state(s, "second", "Pending Backoff");
}

static void gang_that_goes_meanwhile_is_told_of_no_more(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    given_job(s, "third", "q", "pods=4 cpu=1");
    quota_becomes(s, "q", "cpu=5");
    at(s, 60100);
    quota_becomes(s, "q", "cpu=6");
    at(s, 60200);
    job_deleted_now(s, "second"); /* the first in line, and with another behind it */
    (void)writes(s);
    at(s, 70000);
    check_i64(writes(s), 1);
    assert_true(scenario_has(s, KIND_ADMISSION, "third"));
    expect_message(s, "third", "2 of 6 free");
}

/* The controller that had it in line is gone. */
static void restart_tells_what_was_to_be_told(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    quota_becomes(s, "q", "cpu=5");
    at(s, 60100);
    quota_becomes(s, "q", "cpu=6");
    expect_message(s, "second", "1 of 5 free");
    restart(s, WITH_ADMISSIONS);
    expect_message(s, "second", "2 of 6 free");
}

/* Somebody deletes the Admission twenty times a second. */
static void admission_that_is_deleted_all_the_time_comes_back_now_and_then(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    for (int i = 0; i < 200; i++) {
        at(s, 60000 + i * 50);
        if (scenario_has(s, KIND_ADMISSION, "second")) {
            object_gone(s, KIND_ADMISSION, "second");
        }
    }
    assert_in_range(writes(s), 10000 / ADMISSION_INTERVAL_MS, 10000 / ADMISSION_INTERVAL_MS + 2);
    at(s, 72000);
    assert_true(scenario_has(s, KIND_ADMISSION, "second"));
}

/* A thousand at once are told a part at a time, and none is left out. */
static void many_are_told_in_parts(void **state)
{
    struct scenario *s = *state;
    checks_are_cheap(s);
    given_a_waiting_gang(s);
    for (int i = 0; i < 1000; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "many-%d", i);
        given_job(s, name, "q", "pods=4 cpu=1");
    }
    at(s, 120000);
    quota_becomes(s, "q", "cpu=5");
    at(s, 120500);
    (void)counts_take(s);
    quota_becomes(s, "q", "cpu=6");
    at(s, 130000);
    struct scenario_counts counts = counts_take(s);
    check_i64(counts.admission_writes, 1001);
    assert_true(counts.most_effects <= TELL_GANGS_PER_STEP + 8);
    expect_message(s, "many-999", "2 of 6 free");
}

#define paced_test(fn) cmocka_unit_test_setup_teardown(fn, paced_setup, scenario_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        paced_test(job_that_was_made_running_costs_three_writes),
        paced_test(pods_that_turn_up_late_are_not_told_of),
        paced_test(job_that_was_made_running_and_stops_slowly_is_told_of),
        paced_test(new_states_are_told_at_once),
        paced_test(what_changes_again_and_again_is_told_now_and_then),
        paced_test(what_is_as_it_was_after_the_interval_is_not_told),
        paced_test(news_do_not_wait_behind_what_is_none),
        paced_test(failed_start_does_not_wait),
        paced_test(gang_that_goes_meanwhile_is_told_of_no_more),
        paced_test(restart_tells_what_was_to_be_told),
        paced_test(admission_that_is_deleted_all_the_time_comes_back_now_and_then),
        paced_test(many_are_told_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
