/* A gang that runs and loses a pod has podsReadyTimeout to become whole again: since when it is
 * short is told in its Admission, so that no restart begins that time anew. */
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

/* Runs since 5 s, and is short since 100.7 s. */
static void given_short(struct scenario *s)
{
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=8");
    given_job(s, "a", "q", "pods=4 cpu=1");
    scenario_start(s);
    at(s, 5000);
    gang_starts(s, "a", "n1 n1 n1 n1");
    expect_state(s, "a", "Running");
    at(s, 100700);
    pod_is_ready_now(s, "a-1", false);
    trace_forget(s);
}

static const struct condition *pods_ready(struct scenario *s)
{
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
    return condition_find(&admission->status.conditions, "PodsReady");
}

static void told_otherwise_by(struct scenario *s, int64_t ms)
{
    struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
    for (uint32_t i = 0; i < admission->status.conditions.count; i++) {
        admission->status.conditions.items[i].last_transition_time.ms += ms;
    }
}

static void restarts_leave_the_time_that_is_left(void **state)
{
    struct scenario *s = *state;
    given_short(s);
    for (int64_t second = 130; second < 700; second += 100) {
        at(s, second * 1000);
        restart(s, WITH_ADMISSIONS);
        expect_state(s, "a", "Running");
    }
    at(s, 699999);
    expect_state(s, "a", "Running");
    at(s, 700000);
    expect_state(s, "a", "Suspending WaitingForTermination");
    assert_non_null(strstr(trace_text(s), "PodsReadyTimeout: 3 of 4 pods were ready after 10m"));
}

/* Over while nobody looked: it is stopped as soon as somebody does. */
static void time_that_ended_in_an_outage_is_over(void **state)
{
    struct scenario *s = *state;
    given_short(s);
    at(s, 130000);
    told_otherwise_by(s, -600000);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Suspending WaitingForTermination");
}

/* Told with the number of pods, ten seconds later: a gang about to end tells nothing more. */
static void being_short_is_a_condition_and_costs_no_write_of_its_own(void **state)
{
    struct scenario *s = *state;
    given_short(s);
    check_str(pods_ready(s)->status, "True");
    (void)counts_take(s);
    at(s, 200000);
    check_str(pods_ready(s)->status, "False");
    check_str(pods_ready(s)->reason, "Short");
    check_i64((int64_t)counts_take(s).admission_writes, 1);
    int64_t since_ms = pods_ready(s)->last_transition_time.ms;
    pod_is_ready_now(s, "a-1", true);
    at(s, 300000);
    check_str(pods_ready(s)->status, "True");
    check_str(pods_ready(s)->reason, "Whole");
    check_i64((int64_t)counts_take(s).admission_writes, 1);
    pod_is_ready_now(s, "a-2", false);
    at(s, 320000);
    check_i64(pods_ready(s)->last_transition_time.ms - since_ms, 200000);
}

/* What it was short of once is over: the next time counts from its own beginning. */
static void whole_again_it_has_all_the_time_again(void **state)
{
    struct scenario *s = *state;
    given_short(s);
    at(s, 400000);
    pod_is_ready_now(s, "a-1", true);
    restart(s, WITH_ADMISSIONS);
    at(s, 500000);
    pod_is_ready_now(s, "a-3", false);
    at(s, 520000);
    restart(s, WITH_ADMISSIONS);
    at(s, 1099999);
    expect_state(s, "a", "Running");
    at(s, 1100000);
    expect_state(s, "a", "Suspending WaitingForTermination");
}

/* It is short again before it was told that it had been whole: the time that is told is the last.
 */
static void short_again_soon_is_told_anew(void **state)
{
    struct scenario *s = *state;
    given_short(s);
    at(s, 112000);
    pod_is_ready_now(s, "a-1", true);
    at(s, 115000);
    pod_is_ready_now(s, "a-2", false);
    at(s, 140000);
    restart(s, WITH_ADMISSIONS);
    at(s, 714999);
    expect_state(s, "a", "Running");
    at(s, 715000);
    expect_state(s, "a", "Suspending WaitingForTermination");
}

/* Of a clock that was ahead: not later than now. */
static void time_to_come_is_now(void **state)
{
    struct scenario *s = *state;
    given_short(s);
    at(s, 130000);
    told_otherwise_by(s, 3600000);
    restart(s, WITH_ADMISSIONS);
    at(s, 731000);
    expect_state(s, "a", "Suspending WaitingForTermination");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(restarts_leave_the_time_that_is_left),
        scenario_test(time_that_ended_in_an_outage_is_over),
        scenario_test(being_short_is_a_condition_and_costs_no_write_of_its_own),
        scenario_test(whole_again_it_has_all_the_time_again),
        scenario_test(short_again_soon_is_told_anew),
        scenario_test(time_to_come_is_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
