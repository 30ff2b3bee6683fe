/* A gang that was set aside, or has only just been admitted, can't be stopped yet. Where its queue
 * borrows by that gang alone, no other gang of the queue is stopped in its place. */
#include "support/check.h"
#include "support/scenario.h"

/* `a` has 6 of the cohort's 10: `old` 4 and `low` 2. `young` wants 4 and may stop `low`: it borrows
 * the 2 that `b`, which owns 4, doesn't use. */
static void given_one_set_aside(struct scenario *s, bool is_young_lower)
{
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=16");
    given_queue(s, "a", "cpu=6 cohort=lab within=LowerPriority");
    given_queue(s, "b", "cpu=4 cohort=lab reclaim=Any");
    given_queue(s, "c", "cpu=0 cohort=lab");
    given_job(s, "old", "a",
              is_young_lower ? "pods=1 cpu=4 priority=high created=0"
                             : "pods=1 cpu=4 priority=mid created=0");
    given_job(s, "low", "a", "pods=1 cpu=2 priority=low created=0");
    given_job(s, "filler", "c", "pods=1 cpu=2 priority=high created=0");
    scenario_start(s);
    gang_starts(s, "old", "n1");
    gang_starts(s, "low", "n1");
    gang_starts(s, "filler", "n1");
    at(s, 1000);
    given_job(s, "young", "a",
              is_young_lower ? "pods=1 cpu=4 priority=mid created=1000"
                             : "pods=1 cpu=4 priority=high created=1000");
    expect_state(s, "young", "Reserved WaitingForVictims");
    expect_state(s, "low", "Suspending WaitingForTermination");
}

/* `filler` has borrowed 2 and is stopped first; the other 2 are held by `young`, not by `old`. */
static void nobody_is_stopped_in_its_place(void **state)
{
    struct scenario *s = *state;
    given_one_set_aside(s, true);
    at(s, 2000);
    given_job(s, "owner", "b", "pods=1 cpu=4 created=2000");
    expect_state(s, "old", "Running");
    expect_state(s, "filler", "Running");
    expect_state(s, "owner", "Pending CohortExhausted");
    gang_stops(s, "low");
    expect_state(s, "young", "Pending CohortExhausted");
    expect_state(s, "owner", "Admitted");
    expect_state(s, "old", "Running");
    expect_state(s, "filler", "Running");
}

static void a_restart_stops_nobody_either(void **state)
{
    struct scenario *s = *state;
    given_one_set_aside(s, true);
    given_job(s, "owner", "b", "pods=1 cpu=4 created=2000");
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "young", "Reserved WaitingForVictims");
    expect_state(s, "old", "Running");
    expect_state(s, "filler", "Running");
    expect_state(s, "owner", "Pending CohortExhausted");
}

/* What others have borrowed is taken back at once. */
static void those_that_borrow_beside_it_are_stopped(void **state)
{
    struct scenario *s = *state;
    given_one_set_aside(s, true);
    at(s, 2000);
    given_job(s, "owner", "b", "pods=1 cpu=2 created=2000");
    expect_state(s, "owner", "Reserved WaitingForVictims");
    expect_state(s, "filler", "Suspending WaitingForTermination");
    expect_state(s, "old", "Running");
}

/* `old` would be stopped before it. */
static void one_of_higher_priority_isn_t_waited_for(void **state)
{
    struct scenario *s = *state;
    given_one_set_aside(s, false);
    at(s, 2000);
    given_job(s, "owner", "b", "pods=1 cpu=4 created=2000");
    expect_state(s, "owner", "Reserved WaitingForVictims");
    expect_state(s, "old", "Suspending WaitingForTermination");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(nobody_is_stopped_in_its_place),
        scenario_test(a_restart_stops_nobody_either),
        scenario_test(those_that_borrow_beside_it_are_stopped),
        scenario_test(one_of_higher_priority_isn_t_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
