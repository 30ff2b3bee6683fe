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

/* Its pods take a flavor of each group: a node that one of these rules out is nothing to it, one of
 * both is. */
static void node_of_both_groups(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "f", "label=cpu:fast");
    given_flavor(s, "g", "label=memory:big");
    given_node(s, "n1", "cpu=2 memory=8Gi label=cpu:fast label=memory:big");
    given_pod(s, "foreign", "n1", "cpu=2");
    given_queue(s, "q", "flavor=f cpu=8 group=new flavor=g memory=8Gi");
    given_job(s, "a", "q", "pods=2 cpu=1 memory=1Gi");
    expect_state(s, "a", "Pending NodesFull");
    given_node(s, "n2", "cpu=2 memory=8Gi label=cpu:fast");
    expect_state(s, "a", "Pending NodesFull");
    given_node(s, "n2", "cpu=2 memory=8Gi label=cpu:fast label=memory:big");
    expect_state(s, "a", "Admitted");
}

/* Its pods could use the node all along, on a flavor without quota; from now on also on the other.
 */
static void node_of_one_more_flavor(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "tolerant", "toleration=t");
    given_flavor(s, "plain", "");
    given_node(s, "n1", "cpu=4 taint=t:NoSchedule");
    given_node(s, "n2", "cpu=1");
    given_queue(s, "q", "flavor=tolerant cpu=1 flavor=plain cpu=8");
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    expect_used(s, "q", "");
    given_node(s, "n1", "cpu=4");
    expect_state(s, "a", "Admitted");
}

/* It could never use n1. That nobody else can either leaves those who were promised room there none
 * but what it waits for: and now they are stopped for it. */
static void node_that_others_were_to_use(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=3 label=kind:a");
    given_queue(s, "q", "cpu=9 within=LowerPriority");
    given_job(s, "promised", "q", "pods=2 cpu=1 priority=low created=0");
    scenario_start(s);
    pods_appear(s, "promised", 2);
    given_job(s, "waits", "q", "pods=3 cpu=1 priority=high selector=kind:a created=1000");
    expect_state(s, "waits", "Pending ReservedForOther");
    given_node(s, "n1", "cpu=4 taint=t:NoSchedule");
    expect_state(s, "waits", "Reserved WaitingForVictims");
}

/* It has a claim by its name: a node that keeps it off no longer is news, as it is to any other. */
static void node_for_a_named_claim(void **state)
{
    struct scenario *s = *state;
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q", "cpu=8 " CLASS "=8");
    given_node(s, "n1", "cpu=8 taint=broken:NoSchedule");
    given_devices(s, "n1", "g0");
    given_job(s, "a", "q", "pods=1 cpu=1 claim=c");
    scenario_start(s);
    expect_used(s, "q", "");
    given_node(s, "n1", "cpu=8");
    expect_state(s, "a", "Admitted");
}

/* One of several alternatives comes, in a pool of a node that it may use. */
static void pool_that_has_an_alternative(void **state)
{
    struct scenario *s = *state;
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_class(s, "big.example.com", "device.driver == 'big.example.com'");
    given_json(
        s, KIND_RESOURCE_CLAIM_TEMPLATE,
        "{\"metadata\":{\"name\":\"either\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":[{"
        "\"name\":\"r\",\"firstAvailable\":[{\"name\":\"x\",\"deviceClassName\":\"big.example."
        "com\","
        "\"allocationMode\":\"ExactCount\",\"count\":1},{\"name\":\"y\",\"deviceClassName\":"
        "\"" CLASS "\",\"allocationMode\":\"ExactCount\",\"count\":3}]}]}}}}");
    given_queue(s, "q", "cpu=8 " CLASS "=8 big.example.com=8");
    given_node(s, "n1", "cpu=8");
    given_devices(s, "n1", "g0 g1");
    given_job(s, "a", "q", "pods=1 cpu=1 template=either");
    scenario_start(s);
    expect_used(s, "q", "");
    given_devices(s, "n1", "g0 g1 g2");
    expect_state(s, "a", "Admitted");
}

/* Short of quota, and of the devices that a rule taints: without the rule others are stopped. */
static void rule_that_kept_a_preemptor_from_devices(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_template(s, "two", CLASS, 2);
    given_queue(s, "q", "cpu=64 " CLASS "=2 within=LowerPriority");
    given_node(s, "n1", "cpu=8");
    given_devices(s, "n1", "g0 g1");
    given_job(s, "low", "q", "pods=1 cpu=1 template=one priority=low created=0");
    scenario_start(s);
    gang_starts(s, "low", "n1");
    pod_claims(s, "low-0", "one", "n1/g0");
    given_json(
        s, KIND_DEVICE_TAINT_RULE,
        "{\"metadata\":{\"name\":\"service\"},\"spec\":{\"deviceSelector\":{\"device\":\"g1\"},"
        "\"taint\":{\"key\":\"service\",\"effect\":\"NoSchedule\"}}}");
    given_job(s, "high", "q", "pods=1 cpu=1 template=two priority=high created=1000");
    expect_state(s, "low", "Running");
    object_gone(s, KIND_DEVICE_TAINT_RULE, "service");
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "low", "Suspending WaitingForTermination");
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

/* Its pods only look at devices, which it isn't charged: it waits for one all the same. */
static void pool_for_admin_access_alone(void **state)
{
    struct scenario *s = *state;
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_namespace(s, "ml", "resource.kubernetes.io/admin-access:true");
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               "{\"metadata\":{\"name\":\"look\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":[{"
               "\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"" CLASS
               "\",\"allocationMode\":\"ExactCount\",\"count\":1,\"adminAccess\":true}}]}}}}");
    given_queue(s, "q", "cpu=8");
    given_node(s, "n1", "cpu=8");
    given_job(s, "a", "q", "pods=1 cpu=1 template=look");
    scenario_start(s);
    expect_used(s, "q", "");
    given_devices(s, "n1", "g0");
    expect_state(s, "a", "Admitted");
}

/* Its pods could use the node all along; the label by which it sees the pool takes another's place.
 */
static void label_in_the_place_of_another_shows_devices(void **state)
{
    struct scenario *s = *state;
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "cpu=8 " CLASS "=8");
    given_node(s, "n1", "cpu=8 label=zone:r1");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"driver\":\"gpu.example.com\",\"pool\":{"
               "\"name\":\"p\",\"generation\":1,\"resourceSliceCount\":1},\"nodeSelector\":{"
               "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"rack\",\"operator\":"
               "\"In\",\"values\":[\"r1\"]}]}]},\"devices\":[{\"name\":\"g0\"}]}}");
    given_job(s, "a", "q", "pods=1 cpu=1 template=one");
    scenario_start(s);
    expect_used(s, "q", "");
    given_node(s, "n1", "cpu=8 label=rack:r1");
    expect_state(s, "a", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(labels_move_pods_that_are_on_their_way),
        scenario_test(second_set_alone_could_use_the_node),
        scenario_test(node_of_both_groups),
        scenario_test(node_of_one_more_flavor),
        scenario_test(node_that_others_were_to_use),
        scenario_test(node_for_a_named_claim),
        scenario_test(pool_that_has_an_alternative),
        scenario_test(rule_that_kept_a_preemptor_from_devices),
        scenario_test(head_that_devices_make_possible),
        scenario_test(pool_for_admin_access_alone),
        scenario_test(label_in_the_place_of_another_shows_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
