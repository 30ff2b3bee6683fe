/* Pods that name their node (spec.nodeName): judged on that node alone. */
#include "support/check.h"
#include "support/parked.h"

#include <stdio.h>

/* A gang of so many pods of so many cpu, all of them on that node. */
static void given_bound(struct scenario *s, const char *name, const char *queue,
                        const char *options, const char *node, int cpu)
{
    char spec[300];
    (void)snprintf(spec, sizeof(spec),
                   "{\"nodeName\":\"%s\",\"containers\":[{\"name\":\"main\",\"resources\":{"
                   "\"requests\":{\"cpu\":\"%d\"}}}]}",
                   node, cpu);
    given_job_spec(s, name, queue, options, spec);
}

/* Whatever is wrong with the node, it is told, and what mends it is noticed. */
static void each_change_of_that_node_is_told(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n2", "cpu=64");
    given_bystander(s);
    given_flavor(s, "spot", "label=kind:spot");
    given_queue(s, "q", "flavor=spot cpu=99");
    given_bound(s, "a", "q", "pods=2", "n1", 3);
    expect_state(s, "a", "Pending MissingReference");
    expect_message(s, "a", "spec.template.spec.nodeName: there is no node n1");
    given_node(s, "n1", "cpu=4");
    expect_state(s, "a", "Pending NoMatchingFlavor");
    expect_message(s, "a", "node n1 isn't of flavor spot, whose nodes have label kind=spot");
    given_node(s, "n1", "cpu=4 label=kind:spot");
    expect_state(s, "a", "Pending NeverFits");
    expect_message(s, "a", "needs 6 cpu at once, and the one node for all its pods has 4");
    given_node(s, "n1", "cpu=8 label=kind:spot taint=out:NoExecute");
    expect_state(s, "a", "Pending NoMatchingFlavor");
    expect_message(s, "a", "(node n1 by spec.nodeName: tainted");
    given_node(s, "n1", "cpu=8 label=kind:spot ready=False");
    expect_state(s, "a", "Pending NodesFull");
    expect_message(s, "a", "(node n1 by spec.nodeName: not ready)");
    object_gone(s, KIND_NODE, "n1");
    expect_state(s, "a", "Pending MissingReference");
    given_node(s, "n1", "cpu=8 label=kind:spot cordoned=true taint=team:NoSchedule");
    expect_state(s, "a", "Admitted");
}

/* Gangs that ask the same of another node are of another shape, and of another crowd. */
static void gangs_of_two_nodes_arent_alike(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_bystander(s);
    given_queue(s, "q", "cpu=99");
    given_bound(s, "a", "q", "pods=2", "n1", 2);
    given_bound(s, "b", "q", "pods=2", "n1", 2);
    given_bound(s, "c", "q", "pods=2", "n2", 2);
    expect_state(s, "a", "Admitted");
    expect_state(s, "b", "Pending NodesFull");
    expect_state(s, "c", "Admitted");
    given_job(s, "free", "q", "pods=1 cpu=1");
    expect_state(s, "free", "Pending NodesFull");
    gang_starts(s, "a", "n1 n1");
    job_deleted_now(s, "c");
    expect_state(s, "free", "Admitted");
    expect_state(s, "b", "Pending NodesFull");
}

/* Who is stopped for it stands on that node. */
static void victims_are_of_that_node(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_bystander(s);
    given_priority_class(s, "high", 100);
    given_queue(s, "q", "cpu=8 within=LowerPriority");
    given_job(s, "old", "q", "pods=2 cpu=2 created=0");
    gang_starts(s, "old", "n1 n1");
    given_job(s, "new", "q", "pods=2 cpu=2 created=1000");
    gang_starts(s, "new", "n2 n2"); /* the one that would go elsewhere: it has run for less */
    given_bound(s, "a", "q", "pods=2 priority=high", "n1", 2);
    expect_state(s, "a", "Reserved WaitingForVictims");
    expect_state(s, "old", "Suspending WaitingForTermination");
    expect_state(s, "new", "Running");
    gang_stops(s, "old");
    expect_state(s, "a", "Admitted");
}

/* A claim that something else has had allocated serves such pods as well. */
static void claim_that_is_allocated_frees_it(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_devices(s, "n1", "g0 g1");
    given_claim(s, "shared", "gpu.example.com", 1);
    given_bystander(s);
    given_queue(s, "q", "cpu=8 gpu.example.com=2");
    given_job_spec(s, "a", "q", "pods=2",
                   "{\"nodeName\":\"n1\",\"resourceClaims\":[{\"name\":\"g\",\"resourceClaimName\":"
                   "\"shared\"}],\"containers\":[{\"name\":\"main\"}]}");
    expect_state(s, "a", "Pending NeverFits");
    expect_message(s, "a", "its pods would wait for ever for the devices of ResourceClaim");
    claim_allocated(s, "shared", "n1/g0");
    expect_state(s, "a", "Admitted");
}

/* A driver lists devices of a node that isn't there: no node to bind pods to. */
static void node_of_which_only_devices_are_known(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_devices(s, "ghost", "g0");
    given_queue(s, "q", "cpu=99");
    given_bound(s, "a", "q", "pods=2", "ghost", 3);
    expect_state(s, "a", "Pending MissingReference");
    expect_message(s, "a", "there is no node ghost");
    given_node(s, "ghost", "cpu=8");
    expect_state(s, "a", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {

        scenario_test(each_change_of_that_node_is_told),
        scenario_test(gangs_of_two_nodes_arent_alike),
        scenario_test(victims_are_of_that_node),
        scenario_test(claim_that_is_allocated_frees_it),
        scenario_test(node_of_which_only_devices_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
