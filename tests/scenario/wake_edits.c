/* Nodes and devices that change: who waits for room is told where it matters to it, by what its
 * pods ask for and by where they may go. */
#include "support/check.h"
#include "support/parked.h"

#define CLASS "gpu.example.com"

/* Pods that are on their way may go to a zone: as soon as that is another one, the room in the
 * first is whose it always was for. */
static void labels_move_pods_that_are_on_their_way(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=2 label=zone:east");
    given_node(s, "n2", "cpu=2 label=zone:east");
    given_node(s, "n3", "cpu=1 label=zone:west");
    given_queue(s, "q", "cpu=9");
    given_job(s, "a", "q", "pods=1 cpu=1 selector=zone:east created=0");
    scenario_start(s);
    given_job(s, "b", "q", "pods=2 cpu=2 created=1000");
    expect_used(s, "q", "cpu=1");
    given_node(s, "n3", "cpu=1 label=zone:east");
    given_node(s, "n1", "cpu=2 label=zone:west");
    expect_used(s, "q", "cpu=1");
    given_node(s, "n2", "cpu=2 label=zone:west");
    expect_state(s, "b", "Admitted");
}

/* All sets of a gang count, whichever waits for what the node brings. */
static void second_set_alone_could_use_the_node(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8 label=zone:east");
    given_bystander(s);
    given_queue(s, "q", "cpu=64");
    given_pod_set(s, "a", "workers", "pods=2 cpu=1 selector=zone:west");
    given_job(s, "a", "q", "pods=2 cpu=1 selector=zone:east");
    given_node(s, "n2", "cpu=8 label=zone:north");
    expect_state(s, "a", "Pending NoMatchingFlavor");
    given_node(s, "n2", "cpu=8 label=zone:west");
    expect_state(s, "a", "Admitted");
}

/* The head of a StrictFIFO queue is short of quota, and could be held by all nodes together until a
 * device goes: then it blocks nobody any more; when the device is back, it does again. */
static void head_that_devices_make_possible(void **state)
{
    struct scenario *s = *state;
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_node(s, "n1", "cpu=8");
    given_node(s, "n2", "cpu=8");
    given_devices(s, "n1", "g0");
    given_devices(s, "n2", "g1");
    given_queue(s, "q", "cpu=4 " CLASS "=2 strategy=StrictFIFO");
    given_job(s, "runs", "q", "pods=3 cpu=1 created=0");
    scenario_start(s);
    gang_starts(s, "runs", "n1 n1 n1");
    given_job(s, "head", "q", "pods=2 cpu=1 template=one created=1000");
    given_job(s, "small", "q", "pods=1 cpu=1 created=2000");
    expect_state(s, "head", "Pending QuotaExhausted");
    expect_state(s, "small", "Pending BehindInQueue");
    given_devices(s, "n2", "g1 g2");
    expect_state(s, "small", "Pending BehindInQueue");
    given_devices(s, "n2", "");
    expect_state(s, "head", "Pending NeverFits");
    expect_state(s, "small", "Admitted");
    given_devices(s, "n2", "g1");
    given_job(s, "next", "q", "pods=1 cpu=1 created=3000");
    expect_state(s, "head", "Pending QuotaExhausted");
    expect_state(s, "next", "Pending BehindInQueue");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(labels_move_pods_that_are_on_their_way),
        scenario_test(second_set_alone_could_use_the_node),
        scenario_test(head_that_devices_make_possible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
