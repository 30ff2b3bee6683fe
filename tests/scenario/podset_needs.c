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

/* The claim's device is of n1: the set that names it goes there, the other where there is room. */
static void one_sets_claim_binds_no_other_set(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=2");
    given_node(s, "n2", "cpu=4 label=zone:a");
    given_devices(s, "n1", "g0");
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_claim(s, "c", "gpu.example.com", 1);
    given_queue(s, "q", "cpu=20 gpu.example.com=8");
    given_pod_set(s, "js", "workers", "pods=2 cpu=1 claim=c");
    given_job(s, "js", "q", "pods=4 cpu=1 selector=zone:a");
    expect_state(s, "js", "Admitted");
    expect_selector(s, "js", "kubernetes.io/hostname", NULL);
    const struct job *workers = scenario_pod_set(s, "js", "workers");
    check_str(
        string_map_get(&workers->spec.pod_template.spec.node_selector, "kubernetes.io/hostname"),
        "n1");
}

/* Each set has a claim of its own, of devices of another kind: both go to the node that has both.
 */
static void claims_of_two_sets_are_two(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_node(s, "n2", "cpu=8");
    given_devices(s, "n1", "g0");
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_class(s, "nic.example.com", "device.driver == 'nic.example.com'");
    given_claim(s, "c", "gpu.example.com", 1);
    given_claim(s, "d", "nic.example.com", 1);
    given_queue(s, "q", "cpu=20 gpu.example.com=8 nic.example.com=8");
    given_pod_set(s, "js", "workers", "pods=2 cpu=1 claim=d");
    given_job(s, "js", "q", "pods=1 cpu=1 claim=c");
    scenario_start(s);
    expect_used(s, "q", "");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"nics\"},\"spec\":{\"driver\":\"nic.example.com\","
               "\"nodeName\":\"n1\",\"pool\":{\"name\":\"nics\",\"generation\":1,"
               "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"e0\"}]}}");
    expect_state(s, "js", "Admitted");
    expect_used(s, "q", "cpu=3 gpu.example.com=1 nic.example.com=1");
}

/* The workers' template asks for more by the time that they get their claims: that is theirs, and
 * the driver's device is its own. */
static void what_a_worker_has_beyond_its_share(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_devices(s, "n1", "g0 g1 g2 g3");
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_template(s, "own", "gpu.example.com", 2);
    given_template(s, "one", "gpu.example.com", 1);
    given_queue(s, "q", "cpu=20 gpu.example.com=8");
    given_pod_set(s, "js", "workers", "pods=1 cpu=1 template=one");
    given_job(s, "js", "q", "pods=1 cpu=1 template=own");
    expect_used(s, "q", "cpu=2 gpu.example.com=3");
    gang_starts(s, "js", "n1");
    pod_set_starts(s, "js", "workers", "n1");
    pod_claims(s, "js-0", "own", "n1/g0 n1/g1");
    expect_used(s, "q", "cpu=2 gpu.example.com=3");
    given_template(s, "one", "gpu.example.com", 2);
    pod_claims(s, "js-workers-0", "one", "n1/g2 n1/g3");
    expect_used(s, "q", "cpu=2 gpu.example.com=4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(workers_of_all_groups_are_needed_at_once),
        scenario_test(quota_is_needed_for_all_groups_at_once),
        scenario_test(groups_of_no_pods_need_nothing),
        scenario_test(one_sets_claim_binds_no_other_set),
        scenario_test(claims_of_two_sets_are_two),
        scenario_test(what_a_worker_has_beyond_its_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
