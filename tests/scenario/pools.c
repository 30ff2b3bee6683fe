/* Pools of devices: slices that move from one to another, counters that devices of several nodes
 * draw on, and devices of several capacities. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

#define SLICE(name, pool, slices, more)                                                            \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"driver\":\"" CLASS "\",\"pool\":{\"name\":" \
    "\"" pool "\",\"generation\":1,\"resourceSliceCount\":" slices "}," more "}}"
#define DRAWS                                                                                      \
    "\"consumesCounters\":[{\"counterSet\":\"card\",\"counters\":{\"parts\":{\"value\":\"1\"}}}]"

static void given_world(struct scenario *s)
{
    given_node(s, "n1", "cpu=16 label=zone:east");
    given_node(s, "n2", "cpu=16 label=zone:west");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "cpu=100 " CLASS "=100");
}

/* A pool of two slices that says it has one is not to be counted on, until one has moved. */
static void slice_that_moves_leaves_a_whole_pool(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("s1", "p", "1", "\"nodeName\":\"n1\",\"devices\":[{\"name\":\"g0\"}]"));
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("s2", "p", "1", "\"nodeName\":\"n1\",\"devices\":[{\"name\":\"g1\"}]"));
    given_job(s, "a", "q", "pods=2 cpu=1 template=one");
    scenario_start(s);
    expect_used(s, "q", "");
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("s2", "another", "1", "\"nodeName\":\"n1\",\"devices\":[{\"name\":\"g1\"}]"));
    expect_state(s, "a", "Admitted");
}

/* A card of which each of two nodes may have the one part that there is. */
static void given_shared_card(struct scenario *s)
{
    given_world(s);
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("counters", "p", "2",
                     "\"allNodes\":true,\"sharedCounters\":[{\"name\":\"card\",\"counters\":{"
                     "\"parts\":{\"value\":\"1\"}}}]"));
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("devices", "p", "2",
                     "\"perDeviceNodeSelection\":true,\"devices\":[{\"name\":\"a\",\"nodeName\":"
                     "\"n1\"," DRAWS "},{\"name\":\"b\",\"nodeName\":\"n2\"," DRAWS "}]"));
}

/* What the one node's pods give back, the other's may have. */
static void counter_that_comes_free_wakes_on_another_node(void **state)
{
    struct scenario *s = *state;
    given_shared_card(s);
    given_claim(s, "held", CLASS, 1);
    claim_allocated(s, "held", "p/a");
    given_job(s, "west", "q", "pods=1 cpu=1 template=one selector=zone:west");
    scenario_start(s);
    expect_used(s, "q", "");
    claim_freed(s, "held");
    expect_state(s, "west", "Admitted");
}

/* Requests that are searched for node by node don't see what goes on another node's counter. */
static void search_beside_a_counter_of_several_nodes(void **state)
{
    struct scenario *s = *state;
    given_shared_card(s);
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               "{\"metadata\":{\"name\":\"either\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":["
               "{\"name\":\"r\",\"firstAvailable\":[{\"name\":\"x\",\"deviceClassName\":\"" CLASS
               "\",\"allocationMode\":\"ExactCount\",\"count\":2},{\"name\":\"y\","
               "\"deviceClassName\":\"" CLASS
               "\",\"allocationMode\":\"ExactCount\",\"count\":1}]}]}}}}");
    given_job(s, "two", "q", "pods=2 cpu=1 template=either");
    scenario_start(s);
    expect_used(s, "q", "");
    expect_message(s, "two", "or have counters that are drawn on, from several nodes");
}

#define PART(amounts) "\"capacity\":{\"requests\":{" amounts "}}"

/* Of each capacity is taken what was asked of it, and given back. */
static void device_of_two_capacities(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("s1", "p", "1",
                     "\"nodeName\":\"n1\",\"devices\":[{\"name\":\"a\","
                     "\"allowMultipleAllocations\":true,\"capacity\":{\"memory\":{\"value\":"
                     "\"10Gi\"},\"lanes\":{\"value\":\"4\"}}}]"));
    const char *names[] = {"c1", "c2"};
    for (int i = 0; i < 2; i++) {
        char json[1000];
        (void)snprintf(
            json, sizeof(json),
            "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"devices\":{\"requests\":[{\"name\":\"r\","
            "\"exactly\":{\"deviceClassName\":\"" CLASS "\"}}]}},\"status\":{\"allocation\":{"
            "\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"" CLASS
            "\",\"pool\":\"p\",\"device\":\"a\",\"shareID\":\"s%d\",\"consumedCapacity\":{"
            "\"memory\":\"2Gi\",\"lanes\":\"2\"}}]}}}}",
            names[i], i);
        given_json(s, KIND_RESOURCE_CLAIM, json);
    }
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               "{\"metadata\":{\"name\":\"lane\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":[{"
               "\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"" CLASS
               "\"," PART("\"memory\":\"1Gi\",\"lanes\":\"1\"") "}}]}}}}");
    given_job(s, "a", "q", "pods=1 cpu=1 template=lane");
    scenario_start(s);
    expect_used(s, "q", "");
    claim_freed(s, "c1");
    expect_state(s, "a", "Admitted");
}

/* A pool of which a device has binding conditions is gone through after the others, whatever its
 * name is: kube-scheduler doesn't come to the device on which the selector fails. */
static void pool_with_binding_conditions_comes_last(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("a", "a", "1",
                     "\"nodeName\":\"n1\",\"devices\":[{\"name\":\"x\",\"bindingConditions\":["
                     "\"Attached\"]}]"));
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("b", "b", "1",
                     "\"nodeName\":\"n1\",\"devices\":[{\"name\":\"y\",\"attributes\":{\"size\":{"
                     "\"int\":2}}}]"));
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               "{\"metadata\":{\"name\":\"two\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":[{"
               "\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"" CLASS "\",\"selectors\":[{"
               "\"cel\":{\"expression\":\"device.attributes['" CLASS "'].size == 2\"}}]}}],"
               "\"constraints\":[{\"matchAttribute\":\"" CLASS "/size\"}]}}}}");
    given_job(s, "gang", "q", "pods=1 template=two");
    expect_state(s, "gang", "Pending DevicesExhausted");
    expect_message(s, "gang", "nodes are passed over on whose devices a selector");
    given_json(s, KIND_RESOURCE_SLICE,
               SLICE("a", "a", "1", "\"nodeName\":\"n1\",\"devices\":[{\"name\":\"x\"}]"));
    expect_state(s, "gang", "Pending NeverFits");
    expect_message(s, "gang", "kube-scheduler gives up on its pods when it looks at node n1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(slice_that_moves_leaves_a_whole_pool),
        scenario_test(counter_that_comes_free_wakes_on_another_node),
        scenario_test(search_beside_a_counter_of_several_nodes),
        scenario_test(device_of_two_capacities),
        scenario_test(pool_with_binding_conditions_comes_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
