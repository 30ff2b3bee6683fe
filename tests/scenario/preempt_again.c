/* While gangs stop for another, that one or the quota changes: what stops for it makes room for
 * what it wants now, others are stopped if that takes more, and a restart decides the same. */
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

/* `low` has 4 and `lower` 2 of 6; `high` wants 4, and `low`, which has run for less, stops. */
static void given_three(struct scenario *s)
{
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=6 within=LowerPriority");
    given_job(s, "two", "q", "pods=2 cpu=1 priority=low created=0");
    given_job(s, "four", "q", "pods=4 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "two", "n1 n1");
    gang_starts(s, "four", "n1 n1 n1 n1");
    at(s, 1000);
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high created=1000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "four", "Suspending WaitingForTermination");
    expect_state(s, "two", "Running");
}

static void expect_after_a_restart_too(struct scenario *s, const char *high, const char *two)
{
    static const enum restart_with kinds[] = {WITH_ADMISSIONS, WITHOUT_ADMISSIONS};
    expect_state(s, "high", high);
    expect_state(s, "two", two);
    for (size_t i = 0; i < 2; i++) {
        restart(s, kinds[i]);
        expect_state(s, "high", high);
        expect_state(s, "two", two);
        expect_state(s, "four", "Suspending WaitingForTermination");
    }
}

static void one_that_shrinks_keeps_the_room(void **state)
{
    struct scenario *s = *state;
    given_three(s);
    job_resized(s, "high", 3, 3);
    expect_after_a_restart_too(s, "Reserved WaitingForVictims", "Running");
    gang_stops(s, "four");
    expect_state(s, "high", "Admitted");
    expect_used(s, "q", "cpu=5");
}

static void one_that_grows_stops_more(void **state)
{
    struct scenario *s = *state;
    given_three(s);
    job_resized(s, "high", 5, 5);
    expect_after_a_restart_too(s, "Reserved WaitingForVictims", "Suspending WaitingForTermination");
    gang_stops(s, "four");
    expect_state(s, "high", "Reserved WaitingForVictims");
    gang_stops(s, "two");
    expect_state(s, "high", "Admitted");
}

static void one_that_grows_too_large_lets_others_have_the_room(void **state)
{
    struct scenario *s = *state;
    given_three(s);
    job_resized(s, "high", 7, 7);
    expect_after_a_restart_too(s, "Pending NeverFits", "Running");
    gang_stops(s, "four");
    expect_state(s, "four", "Admitted");
}

static void quota_that_is_cut_stops_more(void **state)
{
    struct scenario *s = *state;
    given_three(s);
    quota_becomes(s, "q", "cpu=5 within=LowerPriority");
    expect_after_a_restart_too(s, "Reserved WaitingForVictims", "Suspending WaitingForTermination");
    gang_stops(s, "four");
    gang_stops(s, "two");
    expect_state(s, "high", "Admitted");
    expect_state(s, "four", "Pending QuotaExhausted");
}

static void quota_that_is_cut_below_it_ends_it(void **state)
{
    struct scenario *s = *state;
    given_three(s);
    quota_becomes(s, "q", "cpu=3 within=LowerPriority");
    expect_after_a_restart_too(s, "Pending NeverFits", "Running");
}

/* The policy is taken back: what has been stopped makes room all the same. */
static void policy_that_is_taken_back_stops_no_more(void **state)
{
    struct scenario *s = *state;
    given_three(s);
    quota_becomes(s, "q", "cpu=6");
    expect_after_a_restart_too(s, "Reserved WaitingForVictims", "Running");
    quota_becomes(s, "q", "cpu=5");
    expect_after_a_restart_too(s, "Pending QuotaExhausted", "Running");
}

static void one_that_is_held_for_a_moment_stops_nobody_else(void **state)
{
    struct scenario *s = *state;
    given_three(s);
    job_annotated(s, "high", "tallyman.dev/hold", "true");
    expect_state(s, "high", "Held Held");
    job_annotated(s, "high", "tallyman.dev/hold", NULL);
    expect_after_a_restart_too(s, "Reserved WaitingForVictims", "Running");
    job_annotated(s, "high", "tallyman.dev/hold", "true");
    restart(s, WITH_ADMISSIONS);
    job_annotated(s, "high", "tallyman.dev/hold", NULL);
    expect_after_a_restart_too(s, "Reserved WaitingForVictims", "Running");
}

/* No node is left that could ever hold it: nobody's room is kept for it, and who was to make that
 * starts again where it can. */
static void nodes_that_go_end_it(void **state)
{
    struct scenario *s = *state;
    given_three(s);
    given_node(s, "n1", "cpu=3");
    gang_stops(s, "four");
    expect_state(s, "high", "Pending NeverFits");
    expect_state(s, "four", "Pending NeverFits");
    given_node(s, "n1", "cpu=16");
    expect_state(s, "high", "Admitted");
    expect_state(s, "four", "Pending QuotaExhausted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(one_that_shrinks_keeps_the_room),
        scenario_test(one_that_grows_stops_more),
        scenario_test(one_that_grows_too_large_lets_others_have_the_room),
        scenario_test(quota_that_is_cut_stops_more),
        scenario_test(quota_that_is_cut_below_it_ends_it),
        scenario_test(policy_that_is_taken_back_stops_no_more),
        scenario_test(one_that_is_held_for_a_moment_stops_nobody_else),
        scenario_test(nodes_that_go_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
