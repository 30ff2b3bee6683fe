/* A gang of several pod sets is let go on the needs of all of them together, and a set of no pods
 * needs nothing. */
#include "support/check.h"
#include "support/scenario.h"

#define GPU "nvidia.com/gpu"

/* A driver and two groups of workers, as a JobSet has them: 1 + 2 x 4 pods. */
static void given_job_set(struct scenario *s, const char *name, const char *workers)
{
    given_pod_set(s, name, "workers-0", workers);
    given_pod_set(s, name, "workers-1", workers);
    given_job(s, name, "q", "pods=1 cpu=1");
}

static void workers_of_all_groups_are_needed_at_once(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 " GPU "=4");
    given_node(s, "n2", "cpu=16 " GPU "=3");
    given_queue(s, "q", "cpu=20 " GPU "=8");
    given_job_set(s, "js", "pods=4 cpu=1 " GPU "=1");
    expect_state(s, "js", "Pending DevicesExhausted");
    expect_message(s, "js", GPU " at once");
    expect_used(s, "q", "");
    given_node(s, "n2", "cpu=16 " GPU "=4");
    expect_state(s, "js", "Admitted");
    expect_used(s, "q", "cpu=9 " GPU "=8");
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "js");
    check_str(admission->status.pods, "0/9");
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", "cpu=9 " GPU "=8");
}

static void quota_is_needed_for_all_groups_at_once(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 " GPU "=8");
    given_queue(s, "q", "cpu=20 " GPU "=7");
    given_job_set(s, "js", "pods=4 cpu=1 " GPU "=1");
    expect_state(s, "js", "Pending NeverFits");
    expect_message(s, "js", "needs 8 " GPU ", and queue q has a quota of 7");
    quota_becomes(s, "q", "cpu=20 " GPU "=8");
    expect_state(s, "js", "Admitted");
}

static void groups_of_no_pods_need_nothing(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=20 " GPU "=8");
    given_job_set(s, "js", "pods=0 cpu=1 " GPU "=1");
    expect_state(s, "js", "Admitted");
    expect_used(s, "q", "cpu=1");
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", "cpu=1");
    gang_starts(s, "js", "n1");
    expect_state(s, "js", "Running");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(workers_of_all_groups_are_needed_at_once),
        scenario_test(quota_is_needed_for_all_groups_at_once),
        scenario_test(groups_of_no_pods_need_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
