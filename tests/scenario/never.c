/* What could never start, whoever ends, and what makes that known to be otherwise: Nodes, devices
 * and flavors that come, also for a gang that is short of quota besides. */
#include "support/check.h"
#include "support/scenario.h"

/* A strict queue of 5 cpu, 2 of them in use, and a gang that asks for all 5 of the 4 that nodes
 * have. */
static void given_a_head_short_of_quota_too(struct scenario *s)
{
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=5 strategy=StrictFIFO");
    given_job(s, "runs", "q", "pods=2 cpu=1");
    gang_starts(s, "runs", "n1 n1");
    given_job(s, "head", "q", "pods=5 cpu=1");
    given_job(s, "small", "q", "pods=1 cpu=1");
    expect_state(s, "head", "Pending NeverFits");
    expect_state(s, "small", "Admitted");
    gang_starts(s, "small", "n1");
}

static void a_node_that_comes_makes_it_a_matter_of_quota(void **state)
{
    struct scenario *s = *state;
    given_a_head_short_of_quota_too(s);
    given_node(s, "n2", "cpu=4");
    expect_state(s, "head", "Pending QuotaExhausted");
    given_job(s, "late", "q", "pods=1 cpu=1");
    expect_state(s, "late", "Pending BehindInQueue");
    object_gone(s, KIND_NODE, "n2");
    expect_state(s, "head", "Pending NeverFits");
    expect_state(s, "late", "Admitted");
}

/* It isn't ready yet, and will be. */
static void a_node_that_comes_and_is_not_ready_counts(void **state)
{
    struct scenario *s = *state;
    given_a_head_short_of_quota_too(s);
    given_node(s, "n2", "cpu=4 ready=False");
    expect_state(s, "head", "Pending QuotaExhausted");
}

static void a_node_that_is_away_and_grows_counts(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=1 ready=False");
    given_queue(s, "q", "cpu=9 strategy=StrictFIFO");
    given_job(s, "head", "q", "pods=6 cpu=1");
    expect_state(s, "head", "Pending NeverFits");
    given_node(s, "n2", "cpu=2 ready=False");
    expect_state(s, "head", "Pending NodesFull");
    given_job(s, "late", "q", "pods=1 cpu=1");
    expect_state(s, "late", "Pending BehindInQueue");
}

/* Its labels leave no node: whoever was only short of quota could never have started there. */
static void a_flavor_that_is_edited_is_looked_at_anew(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4 label=kind:a");
    given_node(s, "n2", "cpu=2 label=kind:b");
    given_flavor(s, "default", "label=kind:a");
    given_queue(s, "q", "cpu=5 strategy=StrictFIFO");
    given_job(s, "runs", "q", "pods=2 cpu=1");
    gang_starts(s, "runs", "n1 n1");
    given_job(s, "head", "q", "pods=4 cpu=1");
    expect_state(s, "head", "Pending QuotaExhausted");
    given_flavor(s, "default", "label=kind:b");
    expect_state(s, "head", "Pending NeverFits");
}

static void devices_that_go_leave_it_none(void **state)
{
    struct scenario *s = *state;
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_template(s, "one", "gpu.example.com", 1);
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "d0 d1 d2 d3");
    given_queue(s, "q", "gpu.example.com=4 strategy=StrictFIFO");
    given_job(s, "runs", "q", "pods=1 template=one");
    gang_starts(s, "runs", "n1");
    pod_claims(s, "runs-0", "one", "n1/d0");
    given_job(s, "head", "q", "pods=4 template=one");
    expect_state(s, "head", "Pending QuotaExhausted");
    given_job(s, "late", "q", "pods=1 template=one");
    expect_state(s, "late", "Pending BehindInQueue");
    given_devices(s, "n1", "d0 d1 d2");
    expect_state(s, "head", "Pending NeverFits");
    expect_state(s, "late", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(devices_that_go_leave_it_none),
        scenario_test(a_node_that_comes_makes_it_a_matter_of_quota),
        scenario_test(a_node_that_comes_and_is_not_ready_counts),
        scenario_test(a_node_that_is_away_and_grows_counts),
        scenario_test(a_flavor_that_is_edited_is_looked_at_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
