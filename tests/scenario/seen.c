/* Devices that no node owns: which node sees which, and what nobody can tell of them. */
#include <stdio.h>
#include <string.h>

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
#define TEMPLATE(name, devices)                                                                    \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"spec\":{\"devices\":{" devices "}}}}"
#define REQUEST(name, more)                                                                        \
    "{\"name\":\"" name "\",\"exactly\":{\"deviceClassName\":\"" CLASS "\"" more "}}"
#define SIDE(name, side)                                                                           \
    "{\"name\":\"" name "\",\"attributes\":{\"side\":{\"string\":\"" side "\"}}}"
#define OF_SIDE(side)                                                                              \
    ",\"selectors\":[{\"cel\":{\"expression\":\"device.attributes['gpu.example.com'].side == "     \
    "'" side "'\"}}]"

static void given_world(struct scenario *s)
{
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_queue(s, "q", "cpu=1000 gpu.example.com=1000");
    given_template(s, "one", CLASS, 1);
}

/* Each device of a pool may say for itself from where it is seen; who says nothing is seen from
 * nowhere. */
static void devices_say_themselves_who_sees_them(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_node(s, "n1", "cpu=16 label=rack:r1");
    given_node(s, "n2", "cpu=16 label=rack:r2");
    given_json(s, KIND_RESOURCE_SLICE,
               POOL("p", "\"perDeviceNodeSelection\":true",
                    "{\"name\":\"all\",\"allNodes\":true},{\"name\":\"r1\"," SEEN_IN(
                        "r1") "},{\"name\":\"n1\",\"nodeName\":\"n1\"},{\"name\":\"lost\","
                              "\"allNodes\":false}"));
    given_job(s, "two", "q", "pods=2 template=one selector=kubernetes.io/hostname:n2");
    expect_state(s, "two", "Pending NeverFits");
    expect_message(s, "two", "(2 nodes: 1 not selected by the pods)");
    given_job(s, "four", "q", "pods=4 template=one selector=kubernetes.io/hostname:n1");
    expect_state(s, "four", "Pending NeverFits");
    given_job(s, "three", "q", "pods=3 template=one selector=kubernetes.io/hostname:n1");
    expect_state(s, "three", "Admitted");
    given_job(s, "last", "q", "pods=1 template=one selector=kubernetes.io/hostname:n2");
    expect_state(s, "last", "Pending DevicesExhausted"); /* nobody sees the one that is left */
    expect_message(s, "last", "needs 1 gpu.example.com at once, 0 of 4 are free");
}

/* Two nodes of rack r1 and one of r2, each with room for one pod of 1 cpu. */
static void given_single_places(struct scenario *s)
{
    given_node(s, "n1", "cpu=1 label=rack:r1");
    given_node(s, "n2", "cpu=1 label=rack:r1");
    given_node(s, "n3", "cpu=1 label=rack:r2");
}

/* And two devices of each side, which the first rack alone sees. */
static void given_single_places_and_sides(struct scenario *s)
{
    given_world(s);
    given_single_places(s);
    given_json(s, KIND_RESOURCE_SLICE,
               POOL("p", SEEN_IN("r1"),
                    SIDE("a", "left") "," SIDE("b", "left") "," SIDE("c", "right") "," SIDE(
                        "d", "right")));
}

/* Where pods are tied together by a constraint, and not all nodes see the same, for how many the
 * devices are enough depends on the nodes: one pod is admitted, two are told why not. */
static void constraint_beside_views_that_differ_is_said_so(void **state)
{
    struct scenario *s = *state;
    given_single_places_and_sides(s);
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               TEMPLATE("same", "\"requests\":[" REQUEST(
                                    "r", ",\"count\":2") "],\"constraints\":[{\"matchAttribute\":"
                                                         "\"gpu.example.com/side\"}]"));
    given_job(s, "pair", "q", "pods=2 cpu=1 template=same");
    expect_state(s, "pair", "Pending NodeShape");
    expect_message(s, "pair", "ResourceClaimTemplate ml/same depends on the nodes");
    given_job(s, "there", "q", "pods=2 cpu=1 template=same selector=rack:r1");
    expect_state(s, "there", "Admitted");
}

/* With two kinds of devices a pod, or one that can be had in two ways, only the first is sure. */
static void several_requests_beside_views_that_differ_are_sure_for_one(void **state)
{
    struct scenario *s = *state;
    given_single_places_and_sides(s);
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               TEMPLATE("both", "\"requests\":[" REQUEST("l", OF_SIDE("left")) "," REQUEST(
                                    "r", OF_SIDE("right")) "]"));
    given_job(s, "pair", "q", "pods=2 cpu=1 template=both");
    expect_state(s, "pair", "Pending NodeShape");
    given_job(s, "lone", "q", "pods=1 cpu=1 template=both");
    expect_state(s, "lone", "Admitted");
}

/* Of a device that is had in parts, and that not all nodes see, only one pod is sure. */
static void shares_beside_views_that_differ_are_sure_for_one(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_single_places(s);
    given_json(s, KIND_RESOURCE_SLICE,
               POOL("p", SEEN_IN("r1"),
                    "{\"name\":\"a\",\"allowMultipleAllocations\":true,\"capacity\":{\"memory\":{"
                    "\"value\":\"2\",\"requestPolicy\":{\"default\":\"1\"}}}}"));
    given_job(s, "pair", "q", "pods=2 cpu=1 template=one");
    expect_state(s, "pair", "Pending DevicesExhausted");
    expect_message(s, "pair", "enough for 1 of 2 pods");
    given_job(s, "lone", "q", "pods=1 cpu=1 template=one");
    expect_state(s, "lone", "Admitted");
}

/* Whom nobody asks for doesn't matter, whoever sees it. */
static void devices_of_another_kind_do_not_matter(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_class(s, "nic.example.com", "device.driver == 'nic.example.com'");
    given_node(s, "n1", "cpu=16 label=rack:r1");
    given_node(s, "n2", "cpu=16 label=rack:r2");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"nics\"},\"spec\":{\"driver\":\"nic.example.com\","
               "\"pool\":{\"name\":\"nics\",\"generation\":1,\"resourceSliceCount\":1}," SEEN_IN(
                   "r1") ",\"devices\":[{\"name\":\"x\"}]}}");
    given_devices(s, "n1", "g0");
    given_devices(s, "n2", "g0");
    given_job(s, "pair", "q", "pods=2 template=one");
    expect_state(s, "pair", "Admitted");
}

/* As many pools as there are racks, each seen from its own. */
static void given_racks(struct scenario *s, int count, const char *node)
{
    for (int i = 0; i < count; i++) {
        char name[16];
        char options[64];
        char json[512];
        snprintf(name, sizeof(name), "n%02d", i);
        snprintf(options, sizeof(options), "%s label=rack:r%02d", node, i);
        given_node(s, name, options);
        snprintf(json, sizeof(json),
                 "{\"metadata\":{\"name\":\"p%02d\"},\"spec\":{\"driver\":\"gpu.example.com\","
                 "\"pool\":{\"name\":\"p%02d\",\"generation\":1,\"resourceSliceCount\":1}," SEEN_IN(
                     "r%02d") ",\"devices\":[{\"name\":\"g0\"},{\"name\":\"g1\"}]}}",
                 i, i, i);
        given_json(s, KIND_RESOURCE_SLICE, json);
    }
}

static void views_up_to_64_are_told_apart(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_racks(s, 64, "cpu=1");
    given_job(s, "gang", "q", "pods=64 cpu=1 template=one");
    expect_state(s, "gang", "Admitted");
}

/* Beyond that it isn't known who sees what: one pod at a time is sure. */
static void more_views_than_64_are_not_told_apart(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_racks(s, 65, "cpu=1");
    given_job(s, "gang", "q", "pods=2 cpu=1 template=one");
    expect_state(s, "gang", "Pending NodeShape");
    given_job(s, "lone", "q", "pods=1 template=one");
    expect_state(s, "lone", "Admitted");
}

/* Nodes that are full before their devices run out, in six kinds at most, may each have taken what
 * others see too; with a seventh only the nodes' own devices are sure. */
static void given_a_pool_and(struct scenario *s, int racks)
{
    given_world(s);
    given_racks(s, racks, "cpu=1");
    given_json(s, KIND_RESOURCE_SLICE,
               POOL("common", "\"allNodes\":true",
                    "{\"name\":\"g0\"},{\"name\":\"g1\"},{\"name\":\"g2\"},{\"name\":\"g3\"}"));
}

static void six_kinds_of_full_nodes_are_reckoned_with(void **state)
{
    struct scenario *s = *state;
    given_a_pool_and(s, 6);
    given_job(s, "gang", "q", "pods=4 cpu=1 template=one");
    expect_state(s, "gang", "Admitted");
}

static void seven_kinds_of_full_nodes_are_too_many(void **state)
{
    struct scenario *s = *state;
    given_a_pool_and(s, 7);
    given_job(s, "gang", "q", "pods=4 cpu=1 template=one");
    expect_state(s, "gang", "Pending NodeShape");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(devices_say_themselves_who_sees_them),
        scenario_test(constraint_beside_views_that_differ_is_said_so),
        scenario_test(several_requests_beside_views_that_differ_are_sure_for_one),
        scenario_test(shares_beside_views_that_differ_are_sure_for_one),
        scenario_test(devices_of_another_kind_do_not_matter),
        scenario_test(views_up_to_64_are_told_apart),
        scenario_test(more_views_than_64_are_not_told_apart),
        scenario_test(six_kinds_of_full_nodes_are_reckoned_with),
        scenario_test(seven_kinds_of_full_nodes_are_too_many),
    };
    return cmocka_run_group_tests_name("seen", tests, NULL, NULL);
}
