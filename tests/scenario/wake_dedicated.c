/* Nodes that only a flavor's toleration or label opens: what changes there is told as elsewhere. */
#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

/* `a` needs two of four cpu of n1, which is tainted for all but the flavor's; a pod has three. */
static void given_dedicated(struct scenario *s)
{
    given_flavor(s, "own", "label=for:us taint=us:NoSchedule toleration=us");
    given_node(s, "n1", "cpu=4 memory=8Gi label=for:us taint=us:NoSchedule");
    given_node(s, "n2", "cpu=1");
    given_pod(s, "foreign", "n1", "cpu=3");
    given_queue(s, "q", "flavor=own cpu=8");
    given_job(s, "a", "q", "pods=1 cpu=2");
    expect_state(s, "a", "Pending NodesFull");
}

static void pod_that_goes(void **state)
{
    struct scenario *s = *state;
    given_dedicated(s);
    pod_gone(s, "foreign");
    expect_state(s, "a", "Admitted");
}

static void pod_that_succeeds(void **state)
{
    struct scenario *s = *state;
    given_dedicated(s);
    pod_succeeds(s, "foreign");
    expect_state(s, "a", "Admitted");
}

static void node_that_grows(void **state)
{
    struct scenario *s = *state;
    given_dedicated(s);
    given_node(s, "n1", "cpu=5 memory=8Gi label=for:us taint=us:NoSchedule");
    expect_state(s, "a", "Admitted");
}

static void another_taint_that_goes(void **state)
{
    struct scenario *s = *state;
    given_dedicated(s);
    given_node(s, "n3", "cpu=4 label=for:us taint=us:NoSchedule taint=broken:NoSchedule");
    expect_state(s, "a", "Pending NodesFull");
    given_node(s, "n3", "cpu=4 label=for:us taint=us:NoSchedule");
    expect_state(s, "a", "Admitted");
}

/* The flavor begins to tolerate, or is of those nodes from now on. */
static void flavor_that_is_edited(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "own", "");
    given_node(s, "n1", "cpu=4 label=for:us taint=us:NoSchedule");
    given_node(s, "n2", "cpu=1");
    given_queue(s, "q", "flavor=own cpu=8");
    given_job(s, "a", "q", "pods=1 cpu=2");
    scenario_start(s);
    expect_used(s, "q", "");
    given_flavor(s, "own", "toleration=us");
    expect_state(s, "a", "Admitted");
}

/* Others' pods that are on their way give up the room that they might have taken there. */
static void gang_that_goes_before_it_is_placed(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "own", "label=for:us taint=us:NoSchedule toleration=us");
    given_node(s, "n1", "cpu=4 label=for:us taint=us:NoSchedule");
    given_queue(s, "q", "flavor=own cpu=8");
    given_job(s, "first", "q", "pods=3 cpu=1 created=0");
    scenario_start(s);
    given_job(s, "a", "q", "pods=1 cpu=2 created=1000");
    expect_used(s, "q", "cpu=3");
    job_deleted_now(s, "first");
    expect_state(s, "a", "Admitted");
}

/* A claim of somebody else's gives the only device back. */
static void claim_that_is_freed(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "own", "label=for:us taint=us:NoSchedule toleration=us");
    given_node(s, "n1", "cpu=4 label=for:us taint=us:NoSchedule");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_devices(s, "n1", "g0");
    given_claim(s, "foreign", CLASS, 1);
    claim_allocated(s, "foreign", "n1/g0");
    given_queue(s, "q", "flavor=own cpu=8 " CLASS "=8");
    given_job(s, "a", "q", "pods=1 cpu=2 template=one");
    scenario_start(s);
    expect_used(s, "q", "");
    claim_freed(s, "foreign");
    expect_state(s, "a", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(pod_that_goes),         scenario_test(pod_that_succeeds),
        scenario_test(node_that_grows),       scenario_test(another_taint_that_goes),
        scenario_test(flavor_that_is_edited), scenario_test(gang_that_goes_before_it_is_placed),
        scenario_test(claim_that_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
