/* Devices that no node owns, where not all nodes see the same: a gang may use them wherever they
 * are seen, as long as no choice of kube-scheduler's can leave a pod without. */
#include <stdio.h>

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

#define POOLS      7
#define VIEWS_TOLD 64

/* A node with that label for each pool that it sees: bit by bit. */
static void given_node_that_sees(struct scenario *s, unsigned pools)
{
    char name[16];
    char options[256];
    int length = snprintf(options, sizeof(options), "cpu=16");
    for (unsigned p = 0; p < POOLS; p++) {
        if ((pools >> p & 1) != 0) {
            length += snprintf(options + length, sizeof(options) - (size_t)length,
                               " label=pool%u:yes", p);
        }
    }
    snprintf(name, sizeof(name), "n%u", pools);
    given_node(s, name, options);
}

/* Seven pools of one device each. As long as no more than 64 different choices of them are seen
 * from nodes it can be told that all devices are found; with more it can't. */
static void nodes_of_too_many_views_can_not_be_told(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    for (int p = 0; p < POOLS; p++) {
        char json[512];
        snprintf(json, sizeof(json),
                 "{\"metadata\":{\"name\":\"p%d\"},\"spec\":{\"driver\":\"gpu.example.com\","
                 "\"pool\":{\"name\":\"p%d\",\"generation\":1,\"resourceSliceCount\":1},"
                 "\"nodeSelector\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":"
                 "\"pool%d\",\"operator\":\"Exists\"}]}]},\"devices\":[{\"name\":\"g\"}]}}",
                 p, p, p);
        given_json(s, KIND_RESOURCE_SLICE, json);
    }
    for (unsigned view = 1; view <= VIEWS_TOLD; view++) {
        given_node_that_sees(s, view);
    }
    given_job(s, "seven", "q", "pods=7 template=one");
    expect_state(s, "seven", "Admitted");
    object_gone(s, KIND_JOB, "seven");
    given_node_that_sees(s, VIEWS_TOLD + 1);
    given_job(s, "seven", "q", "pods=7 template=one");
    expect_state(s, "seven", "Pending NodeShape");
    expect_message(s, "seven", "only 1 of its 7 pods is sure to find devices");
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
        scenario_test(nodes_of_too_many_views_can_not_be_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
