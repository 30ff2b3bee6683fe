/* A gang that may start with fewer pods takes back its queue's own quota with as many as that
 * holds, and leaves what its victims had beyond it. */
#include "support/check.h"
#include "support/scenario.h"

/* "theirs" holds all 4 with one gang; 2 of them are mine. */
static void given_borrower(struct scenario *s, const char *reclaim)
{
    given_node(s, "n1", "cpu=4");
    given_queue(s, "mine", reclaim);
    given_queue(s, "theirs", "cpu=2 cohort=lab");
    given_job(s, "large", "theirs", "pods=4 cpu=1 created=0");
    scenario_start(s);
    gang_starts(s, "large", "n1 n1 n1 n1");
}

static void as_many_pods_as_the_own_quota_holds(void **state)
{
    struct scenario *s = *state;
    given_borrower(s, "cpu=2 cohort=lab reclaim=Any");
    given_job(s, "part", "mine", "pods=4 min=1 partial=true cpu=1 created=1000");
    expect_state(s, "part", "Reserved WaitingForVictims");
    expect_used(s, "mine", "cpu=2");
    gang_stops(s, "large");
    expect_state(s, "part", "Admitted");
    expect_used(s, "mine", "cpu=2");
    expect_state(s, "large", "Pending CohortExhausted");
}

/* What was reserved is worked out anew, and is no more than it was. */
static void over_a_restart_too(void **state)
{
    struct scenario *s = *state;
    given_borrower(s, "cpu=2 cohort=lab reclaim=Any");
    given_job(s, "part", "mine", "pods=4 min=1 partial=true cpu=1 created=1000");
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "part", "Reserved WaitingForVictims");
    expect_used(s, "mine", "cpu=2");
    gang_stops(s, "large");
    expect_state(s, "part", "Admitted");
    expect_used(s, "mine", "cpu=2");
}

/* Not even its fewest pods stay within its own. */
static void too_few_pods_for_its_own_quota_stop_nobody(void **state)
{
    struct scenario *s = *state;
    given_borrower(s, "cpu=2 cohort=lab reclaim=Any");
    given_job(s, "part", "mine", "pods=4 min=3 partial=true cpu=1 created=1000");
    expect_state(s, "part", "Pending CohortExhausted");
    expect_state(s, "large", "Running");
}

/* Its user has lowered it since: what it asked for before isn't put back. */
static void count_that_its_user_has_changed_stays(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=3");
    given_job(s, "part", "q", "pods=6 min=1 partial=true cpu=1");
    expect_state(s, "part", "Admitted");
    check_i64(scenario_job(s, "part")->spec.parallelism.value, 3);
    gang_starts(s, "part", "n1 n1 n1");
    job_resized(s, "part", 2, 6);
    object_gone(s, KIND_POD, "part-2");
    expect_used(s, "q", "cpu=2");
    restart(s, WITH_ADMISSIONS);
    job_suspended_by_user(s, "part", true);
    gang_stops(s, "part");
    check_i64(scenario_job(s, "part")->spec.parallelism.value, 2);
    expect_state(s, "part", "Held Held");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(as_many_pods_as_the_own_quota_holds),
        scenario_test(over_a_restart_too),
        scenario_test(too_few_pods_for_its_own_quota_stop_nobody),
        scenario_test(count_that_its_user_has_changed_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
