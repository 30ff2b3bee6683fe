/* Devices that no node owns, where not all nodes see the same: a gang may use them wherever they
 * are seen, as long as no choice of kube-scheduler's can leave a pod without. */
#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

#define POOL(name, sees, devices)                                                                  \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"driver\":\"gpu.example.com\",\"pool\":{"    \
    "\"name\":\"" name "\",\"generation\":1,\"resourceSliceCount\":1}," sees                       \
    ",\"devices\":[" devices "]}}"
#define SEEN_IN(rack)                                                                              \
    "\"nodeSelector\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"rack\","           \
    "\"operator\":\"In\",\"values\":[\"" rack "\"]}]}]}"
#define DEVICE(name) "{\"name\":\"" name "\"}"
#define SIDE(name, side)                                                                           \
    "{\"name\":\"" name "\",\"attributes\":{\"side\":{\"string\":\"" side "\"}}}"

static void given_world(struct scenario *s)
{
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_queue(s, "q", "cpu=100 gpu.example.com=100");
    given_template(s, "one", CLASS, 1);
}

/* One pod goes where it finds a device: that another node sees none is no hindrance. */
static void one_pod_goes_where_its_device_is_seen(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_node(s, "n1", "cpu=16 label=rack:r1");
    given_node(s, "n2", "cpu=16");
    given_json(s, KIND_RESOURCE_SLICE, POOL("p", SEEN_IN("r1"), DEVICE("g0")));
    given_job(s, "lone", "q", "pods=1 template=one");
    expect_state(s, "lone", "Admitted");
}

/* Where devices of no node are about, room that comes free is told to whom it is room for, whether
 * it asks for such a device or for none. */
static void room_that_comes_free_beside_them(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_node(s, "n1", "cpu=4 label=rack:r1");
    given_json(s, KIND_RESOURCE_SLICE, POOL("p", SEEN_IN("r1"), DEVICE("g0")));
    given_pod(s, "foreign", "n1", "cpu=2");
    given_pod(s, "another", "n1", "cpu=1");
    given_job(s, "with", "q", "pods=1 cpu=2 template=one created=0");
    given_job(s, "without", "q", "pods=1 cpu=2 created=1000");
    expect_state(s, "with", "Pending NodesFull");
    expect_state(s, "without", "Pending NodesFull");
    pod_gone(s, "foreign");
    expect_state(s, "with", "Admitted");
    gang_starts(s, "with", "n1");
    pod_gone(s, "another");
    expect_state(s, "without", "Pending NodesFull");
    job_finishes(s, "with");
    expect_state(s, "without", "Admitted");
}

/* Each rack sees its own pool: the pods find all devices, however they are spread. */
static void gang_uses_the_pools_of_several_racks(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_node(s, "n1", "cpu=16 label=rack:r1");
    given_node(s, "n2", "cpu=16 label=rack:r1");
    given_node(s, "n3", "cpu=16 label=rack:r2");
    given_json(s, KIND_RESOURCE_SLICE, POOL("p1", SEEN_IN("r1"), DEVICE("g0") "," DEVICE("g1")));
    given_json(s, KIND_RESOURCE_SLICE, POOL("p2", SEEN_IN("r2"), DEVICE("g0") "," DEVICE("g1")));
    given_job(s, "five", "q", "pods=5 template=one");
    expect_state(s, "five", "Pending NeverFits");
    given_job(s, "four", "q", "pods=4 template=one");
    expect_state(s, "four", "Admitted");
}

/* n1 has room for one pod. That may take the pool's device, which is all that n2 could use. */
static void given_a_trap(struct scenario *s)
{
    given_world(s);
    given_node(s, "n1", "cpu=1");
    given_node(s, "n2", "cpu=16");
    given_devices(s, "n1", "own");
    given_json(s, KIND_RESOURCE_SLICE, POOL("p", "\"allNodes\":true", DEVICE("g0")));
}

static void full_node_may_have_taken_what_others_need(void **state)
{
    struct scenario *s = *state;
    given_a_trap(s);
    given_job(s, "pair", "q", "pods=2 cpu=1 template=one");
    expect_state(s, "pair", "Pending NodeShape");
    expect_message(s, "pair", "only 1 of its 2 pods is sure to find devices");
    given_job(s, "lone", "q", "pods=1 cpu=1 template=one");
    expect_state(s, "lone", "Admitted");
}

/* So may the pod of another gang: the second waits until it is seen which device the first has. */
static void gangs_on_their_way_count_together(void **state)
{
    struct scenario *s = *state;
    given_a_trap(s);
    given_job(s, "a", "q", "pods=1 cpu=1 template=one");
    expect_state(s, "a", "Admitted");
    given_job(s, "b", "q", "pods=1 cpu=1 template=one");
    expect_state(s, "b", "Pending ReservedForOther");
    gang_starts(s, "a", "n2");
    pod_claims(s, "a-0", "one", "p/g0");
    expect_state(s, "b", "Admitted");
}

/* A pair that has to be of one side: on one node it can be told that both pods find theirs, on
 * several it can't. So both go to that node. */
static void gang_is_held_to_a_node_where_it_is_sure_of_its_devices(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_node(s, "n1", "cpu=16");
    given_node(s, "n2", "cpu=16");
    given_json(s, KIND_RESOURCE_SLICE, POOL("p", "\"allNodes\":true", SIDE("g0", "left")));
    given_json(s, KIND_RESOURCE_SLICE,
               POOL("n2", "\"nodeName\":\"n2\"",
                    SIDE("d0", "left") "," SIDE("d1", "right") "," SIDE("d2", "left") "," SIDE(
                        "d3", "right")));
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               "{\"metadata\":{\"name\":\"paired\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":["
               "{\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"gpu.example.com\",\"count\":2}}"
               "],\"constraints\":[{\"matchAttribute\":\"gpu.example.com/side\"}]}}}}");
    given_job(s, "two", "q", "pods=2 template=paired");
    expect_state(s, "two", "Admitted");
    check_str(string_map_get(&scenario_job(s, "two")->spec.pod_template.spec.node_selector,
                             "kubernetes.io/hostname"),
              "n2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(one_pod_goes_where_its_device_is_seen),
        scenario_test(room_that_comes_free_beside_them),
        scenario_test(gang_uses_the_pools_of_several_racks),
        scenario_test(full_node_may_have_taken_what_others_need),
        scenario_test(gangs_on_their_way_count_together),
        scenario_test(gang_is_held_to_a_node_where_it_is_sure_of_its_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
