/* Jobs that are being deleted and that finalizers keep. */
#include "support/check.h"
#include "support/scenario.h"

static void given_small_cluster(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
}

static void job_is_being_deleted(struct scenario *s, const char *name)
{
    scenario_job(s, name)->meta.deletion_timestamp = (struct opt_time){true, 1};
    object_changed(s, KIND_JOB, name);
}

/* A finalizer keeps the Job, which makes no pod any more and whose status stays as it was. */
static void running_job_that_is_deleted_holds_its_quota_until_its_last_pod_is_gone(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=2 cpu=2");
    given_job(s, "b", "q", "pods=2 cpu=2");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    job_is_being_deleted(s, "a");
    object_gone(s, KIND_POD, "a-0");
    expect_state(s, "b", "Pending QuotaExhausted");
    object_gone(s, KIND_POD, "a-1");
    expect_state(s, "b", "Admitted");
    expect_state(s, "a", "Pending WaitingForTermination");
    expect_message(s, "a", "is being deleted");
    gang_starts(s, "b", "n1 n1");
    restart(s, WITH_ADMISSIONS);
    expect_used(s, "q", "cpu=4");
    expect_state(s, "b", "Running");
    expect_state(s, "a", "Pending WaitingForTermination");
    job_deleted_now(s, "a");
    expect_used(s, "q", "cpu=4");
}

/* One that is being stopped ends as well: the Job controller doesn't say any more that it has. */
static void stopping_job_that_is_deleted_ends_with_its_last_pod(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=2 cpu=2");
    given_job(s, "b", "q", "pods=2 cpu=2");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    job_suspended_by_user(s, "a", true);
    expect_state(s, "a", "Suspending WaitingForTermination");
    job_is_being_deleted(s, "a");
    object_gone(s, KIND_POD, "a-0");
    object_gone(s, KIND_POD, "a-1");
    expect_state(s, "b", "Admitted");
    expect_state(s, "a", "Pending WaitingForTermination");
}

/* Nobody is stopped any more for a Job that is being deleted. */
static void reserved_job_that_is_deleted_lets_go(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_priority_class(s, "high", 9);
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "low", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "low", "n1 n1 n1 n1");
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high");
    expect_state(s, "high", "Reserved WaitingForVictims");
    job_is_being_deleted(s, "high");
    expect_state(s, "high", "Pending WaitingForTermination");
    gang_stops(s, "low");
    expect_state(s, "low", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(running_job_that_is_deleted_holds_its_quota_until_its_last_pod_is_gone),
        scenario_test(stopping_job_that_is_deleted_ends_with_its_last_pod),
        scenario_test(reserved_job_that_is_deleted_lets_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
