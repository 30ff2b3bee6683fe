/* The devices of one pod, as kube-scheduler's allocator would find them: constraints, alternatives,
 * all devices of a node, devices that are taken in parts, and searches that are too long. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

enum { JSON_BYTES = 16384 };

/* Fills the buffer as snprintf() does; single quotes become double ones. */
__attribute__((format(printf, 3, 4))) static void write_json(char *json, size_t bytes,
                                                             const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(json, bytes, format, arguments);
    va_end(arguments);
    assert_true(length > 0 && (size_t)length < bytes);
    for (char *at = json; (at = strchr(at, '\'')) != NULL;) {
        *at = '"';
    }
}

/* A slice of the node with these devices, and counter sets beside it where there are any. */
static void given_slice(struct scenario *s, const char *name, const char *node, const char *devices)
{
    char json[JSON_BYTES];
    write_json(json, sizeof(json),
               "{'metadata':{'name':'%s'},'spec':{'driver':'" CLASS "','nodeName':'%s','pool':{"
               "'name':'%s','generation':1,'resourceSliceCount':1},'devices':[%s]}}",
               name, node, name, devices);
    given_json(s, KIND_RESOURCE_SLICE, json);
}

static void given_ask(struct scenario *s, const char *name, const char *devices)
{
    char json[JSON_BYTES];
    write_json(json, sizeof(json), "{'metadata':{'name':'%s'},'spec':{'spec':{'devices':{%s}}}}",
               name, devices);
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE, json);
}

/* Devices PREFIX-00 to PREFIX-(count-1), each with these further fields. */
static const char *many(char *list, const char *prefix, int count, const char *fields)
{
    size_t length = 0;
    for (int i = 0; i < count; i++) {
        length += (size_t)snprintf(list + length, JSON_BYTES - length, "%s{'name':'%s-%02d'%s}",
                                   i == 0 ? "" : ",", prefix, i, fields);
        assert_true(length < JSON_BYTES);
    }
    return list;
}

static void given_world(struct scenario *s)
{
    given_node(s, "n1", "cpu=100 pods=110");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_queue(s, "q", "cpu=1000 gpu.example.com=1000");
}

#define OF_CLASS  "'deviceClassName':'" CLASS "'"
#define WITH(cel) ",'selectors':[{'cel':{'expression':'" cel "'}}]"
#define TWO       "'requests':[{'name':'r','exactly':{" OF_CLASS ",'count':2}}]"
#define ALL       "'requests':[{'name':'r','exactly':{" OF_CLASS ",'allocationMode':'All'}}]"

/* -- constraints ------------------------------------------------------------------------------- */

/* What an attribute is compared by is its value, whatever its type. */
static void attributes_of_every_type_are_compared(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_slice(s, "s", "n1",
                "{'name':'a','attributes':{'ecc':{'bool':true},'fw':{'version':'1.0.0'},'numa':{"
                "'int':0},'side':{'string':'left'},'kind':{'string':'one'}}},"
                "{'name':'b','attributes':{'ecc':{'bool':false},'fw':{'version':'1.0.1'},'numa':{"
                "'int':1},'side':{'string':'right'},'kind':{'int':1},'rack':{'int':1}}}");
    const char *names[] = {"ecc", "fw", "numa", "side", "kind"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char devices[512];
        snprintf(devices, sizeof(devices), TWO ",'constraints':[{'matchAttribute':'" CLASS "/%s'}]",
                 names[i]);
        given_ask(s, "alike", devices);
        given_job(s, "pair", "q", "pods=1 template=alike");
        expect_state(s, "pair", "Pending NeverFits");
        object_gone(s, KIND_JOB, "pair");
        snprintf(devices, sizeof(devices),
                 TWO ",'constraints':[{'distinctAttribute':'" CLASS "/%s'}]", names[i]);
        given_ask(s, "unlike", devices);
        given_job(s, "pair", "q", "pods=1 template=unlike");
        expect_state(s, "pair", "Admitted");
        object_gone(s, KIND_JOB, "pair");
    }
}

/* -- searches that would be long --------------------------------------------------------------- */

#define EIGHT_AND_ODD                                                                              \
    "'requests':[{'name':'m','exactly':{" OF_CLASS                                                 \
    ",'count':8}},{'name':'o','exactly':{" OF_CLASS WITH(                                          \
        "device.attributes[\\\"gpu.example.com\\\"].odd") "}}]"
#define IN_NUMA(n) ",'attributes':{'numa':{'int':" #n "},'odd':{'bool':false}}"
#define DRAWS(amount)                                                                              \
    ",'consumesCounters':[{'counterSet':'c','counters':{'x':{'value':'" amount "'}}}]"
#define ODD_IN_NUMA(n) ",{'name':'z','attributes':{'numa':{'int':" #n "},'odd':{'bool':true}}}"
#define NUMA           ",'constraints':[{'matchAttribute':'" CLASS "/numa'}]"

/* Of devices that can't be told apart one is tried: eight of sixteen that don't help don't keep
 * the eight from being found that do. */
static void devices_alike_are_tried_once(void **state)
{
    struct scenario *s = *state;
    static char zero[JSON_BYTES];
    static char one[JSON_BYTES];
    char all[2 * JSON_BYTES];
    given_world(s);
    snprintf(all, sizeof(all), "%s,%s" ODD_IN_NUMA(1), many(zero, "a", 16, IN_NUMA(0)),
             many(one, "b", 8, IN_NUMA(1)));
    given_slice(s, "s", "n1", all);
    given_ask(s, "nine", EIGHT_AND_ODD NUMA);
    given_job(s, "gang", "q", "pods=1 template=nine");
    expect_state(s, "gang", "Admitted");
}

/* Nor does it take long to see that there is no way. */
static void devices_alike_are_refused_once(void **state)
{
    struct scenario *s = *state;
    static char zero[JSON_BYTES];
    char all[2 * JSON_BYTES];
    given_world(s);
    snprintf(all, sizeof(all), "%s" ODD_IN_NUMA(1), many(zero, "a", 16, IN_NUMA(0)));
    given_slice(s, "s", "n1", all);
    given_ask(s, "nine", EIGHT_AND_ODD NUMA);
    given_job(s, "gang", "q", "pods=1 template=nine");
    expect_state(s, "gang", "Pending NeverFits");
    expect_message(s, "gang", "even when it is empty");
}

/* A device that can't be given out, by a counter below nothing, says nothing about the others. */
static void device_with_a_wrong_counter_stands_for_no_other(void **state)
{
    struct scenario *s = *state;
    static char zero[JSON_BYTES];
    static char one[JSON_BYTES];
    char all[3 * JSON_BYTES];
    given_world(s);
    snprintf(all, sizeof(all),
             "%s,{'name':'b','attributes':{'numa':{'int':1},'odd':{'bool':false}},"
             "'consumesCounters':[{'counterSet':'c','counters':{'x':{'value':'-1'}}}]},"
             "%s" ODD_IN_NUMA(1),
             many(zero, "a", 16, IN_NUMA(0)), many(one, "c", 8, IN_NUMA(1)));
    given_slice(s, "s", "n1", all);
    given_ask(s, "nine", EIGHT_AND_ODD NUMA);
    given_job(s, "gang", "q", "pods=1 template=nine");
    expect_state(s, "gang", "Admitted");
}

/* Parts that draw differently on a counter are no lookalikes: that two of the larger don't help
 * says nothing about the smaller. */
static void parts_of_two_sizes_are_tried_both(void **state)
{
    struct scenario *s = *state;
    static char large[JSON_BYTES];
    static char small[JSON_BYTES];
    static char json[3 * JSON_BYTES];
    given_world(s);
    write_json(json, sizeof(json),
               "{'metadata':{'name':'parts'},'spec':{'driver':'" CLASS
               "','nodeName':'n1','pool':{'name':'p','generation':1,'resourceSliceCount':2},"
               "'devices':[%s,%s" ODD_IN_NUMA(0) "]}}",
               many(large, "a", 16, IN_NUMA(0) DRAWS("2")),
               many(small, "b", 8, IN_NUMA(0) DRAWS("1")));
    given_json(s, KIND_RESOURCE_SLICE, json);
    write_json(json, sizeof(json),
               "{'metadata':{'name':'counters'},'spec':{'driver':'" CLASS
               "','nodeName':'n1','pool':{'name':'p','generation':1,'resourceSliceCount':2},"
               "'sharedCounters':[{'name':'c','counters':{'x':{'value':'8'}}}]}}");
    given_json(s, KIND_RESOURCE_SLICE, json);
    given_ask(s, "nine", EIGHT_AND_ODD NUMA);
    given_job(s, "gang", "q", "pods=1 template=nine");
    expect_state(s, "gang", "Admitted");
}

/* Devices that differ in what the ask looks at are all tried; where that takes too long, nobody
 * knows, and it is said so. */
static void search_that_is_too_long_is_said_to_be(void **state)
{
    struct scenario *s = *state;
    char all[JSON_BYTES];
    size_t length = 0;
    given_world(s);
    for (int i = 0; i < 20; i++) {
        length += (size_t)snprintf(all + length, sizeof(all) - length,
                                   "{'name':'a-%02d','attributes':{'numa':{'int':0},'serial':{"
                                   "'int':%d},'odd':{'bool':false}}},",
                                   i, i);
    }
    snprintf(
        all + length, sizeof(all) - length,
        "{'name':'z','attributes':{'numa':{'int':1},'serial':{'int':99},'odd':{'bool':true}}}");
    given_slice(s, "s", "n1", all);
    given_ask(s, "nine",
              EIGHT_AND_ODD ",'constraints':[{'matchAttribute':'" CLASS
                            "/numa'},{'distinctAttribute':'" CLASS "/serial'}]");
    given_job(s, "gang", "q", "pods=1 template=nine");
    expect_state(s, "gang", "Pending NodeShape");
    expect_message(s, "gang", "ResourceClaimTemplate ml/nine could be met in too many ways");
}

/* Slices may come in any order: from more than four of them, what a pod is given can't be told. */
static void more_slices_than_four_can_not_be_told(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    char name[] = "s-0";
    for (int i = 0; i < 5; i++) {
        name[2] = (char)('0' + i);
        given_slice(s, name, "n1", "{'name':'a','attributes':{'numa':{'int':0}}}");
    }
    given_ask(s, "two", TWO NUMA);
    given_job(s, "gang", "q", "pods=2 template=two");
    expect_state(s, "gang", "Pending NodeShape");
    expect_message(s, "gang", "could be met in too many ways");
    object_gone(s, KIND_RESOURCE_SLICE, "s-4");
    expect_state(s, "gang", "Admitted");
}

/* -- how many devices a claim may have --------------------------------------------------------- */

/* As many requests of a pod as are counted: a node of a domain has so many places for it. */
static void pods_of_very_many_requests_are_counted(void **state)
{
    struct scenario *s = *state;
    static char list[JSON_BYTES], requests[JSON_BYTES];
    given_flavor(s, "default", "level=zone");
    given_world(s);
    given_node(s, "n1", "cpu=100 pods=110 label=zone:z");
    given_slice(s, "s", "n1", many(list, "d", 128, ""));
    (void)snprintf(requests, sizeof(requests), "'requests':[%s]",
                   many(list, "r", 32, ",'exactly':{" OF_CLASS "}"));
    given_ask(s, "half", requests);
    given_job_spec(s, "gang", "q", "pods=2 required=zone",
                   "{\"resourceClaims\":[{\"name\":\"a\",\"resourceClaimTemplateName\":\"half\"},"
                   "{\"name\":\"b\",\"resourceClaimTemplateName\":\"half\"}],\"containers\":[{"
                   "\"name\":\"main\"}]}");
    expect_state(s, "gang", "Admitted");
}

/* An alternative that would make the claim larger than Kubernetes allows isn't one. And that a
 * pod has a device already says nothing about those like it: the search for the second alternative
 * begins with one that it holds. */
static void alternative_that_makes_a_claim_too_large_is_left_out(void **state)
{
    struct scenario *s = *state;
    static char list[JSON_BYTES];
    given_world(s);
    given_slice(s, "s", "n1", many(list, "a", 50, ""));
    given_ask(s, "some",
              "'requests':[{'name':'f','firstAvailable':[{'name':'x'," OF_CLASS
              ",'count':20},{'name':'y'," OF_CLASS ",'count':1}]},{'name':'r','exactly':{" OF_CLASS
              ",'count':20}}]");
    given_job(s, "pair", "q", "pods=2 template=some"); /* 21 devices each, not 40 */
    expect_state(s, "pair", "Admitted");
}

/* All devices of a node that has more than a claim may have: kube-scheduler gives up. */
static void all_of_too_many_never_fit(void **state)
{
    struct scenario *s = *state;
    static char list[JSON_BYTES];
    given_world(s);
    given_slice(s, "s", "n1", many(list, "a", 33, ""));
    given_ask(s, "all", ALL);
    given_job(s, "gang", "q", "pods=1 template=all");
    expect_state(s, "gang", "Pending NeverFits");
    expect_message(s, "gang",
                   "ResourceClaimTemplate ml/all asks for more devices there than the 32");
    given_slice(s, "s", "n1", many(list, "a", 32, ""));
    expect_state(s, "gang", "Admitted");
}

/* -- all devices ------------------------------------------------------------------------------- */

/* All are those that the selector is true of; where it fails on one, kube-scheduler gives up. */
static void all_devices_are_those_that_match(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_slice(s, "s", "n1",
                "{'name':'a','attributes':{'size':{'int':1}}},{'name':'b','attributes':{'size':{"
                "'int':2}}},{'name':'c','attributes':{'size':{'int':2}}}");
    given_ask(s, "big",
              "'requests':[{'name':'r','exactly':{" OF_CLASS ",'allocationMode':'All'" WITH(
                  "device.attributes[\\\"gpu.example.com\\\"].size == 2") "}}]");
    given_job(s, "gang", "q", "pods=1 template=big");
    expect_state(s, "gang", "Admitted");
    expect_used(s, "q", "gpu.example.com=2");
    job_finishes(s, "gang");
    given_slice(s, "s", "n1", "{'name':'a'},{'name':'b','attributes':{'size':{'int':2}}}");
    given_job(s, "second", "q", "pods=1 template=big");
    expect_state(s, "second", "Pending NeverFits");
    expect_message(s, "second", "ml/big has a selector that fails on a device there");
}

/* Where a pod that asks for so many comes to the device on which its selector fails, kube-scheduler
 * gives up; where it may find enough before it, the node is passed over all the same. */
static void selector_that_fails_for_so_many(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_slice(s, "s", "n1", "{'name':'a'},{'name':'b','attributes':{'size':{'int':2}}}");
    given_ask(
        s, "pair",
        "'constraints':[{'matchAttribute':'gpu.example.com/size'}],'requests':[{'name':'r',"
        "'exactly':{" OF_CLASS WITH("device.attributes[\\\"gpu.example.com\\\"].size == 2") "}}]");
    given_job(s, "gang", "q", "pods=1 template=pair");
    expect_state(s, "gang", "Pending NeverFits");
    expect_message(s, "gang", "ml/pair has a selector that fails on a device there");
    given_slice(s, "s", "n1", "{'name':'a','attributes':{'size':{'int':2}}},{'name':'b'}");
    expect_state(s, "gang", "Pending DevicesExhausted");
    expect_message(s, "gang", "nodes are passed over on whose devices a selector");
    given_slice(s, "s", "n1",
                "{'name':'a','attributes':{'size':{'int':2}}},{'name':'b','attributes':{'size':{"
                "'int':1}}}");
    expect_state(s, "gang", "Admitted");
}

/* What is said of a selector that fails isn't said any more when the device is gone. */
static void selector_that_fails_no_more_is_not_told_of(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_slice(s, "s", "n1", "{'name':'a','attributes':{'size':{'int':2}}},{'name':'b'}");
    given_ask(s, "one",
              "'requests':[{'name':'r','exactly':{" OF_CLASS WITH(
                  "device.attributes[\\\"gpu.example.com\\\"].size == 2") "}}]");
    given_claim(s, "used", CLASS, 1);
    claim_allocated(s, "used", "s/a");
    given_job(s, "gang", "q", "pods=1 template=one");
    expect_message(s, "gang", "a selector of DeviceClass gpu.example.com or of its request fails");
    given_slice(s, "s", "n1", "{'name':'a','attributes':{'size':{'int':2}}}");
    expect_state(s, "gang", "Pending DevicesExhausted");
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "gang");
    check_str(
        admission->status.message,
        "needs 1 gpu.example.com (by selector 'device.attributes[\"gpu.example.com\"].size == 2') "
        "at once, 0 of 1 are free (1 node)");
}

/* -- devices in parts -------------------------------------------------------------------------- */

#define SHARED(name, policy)                                                                       \
    "{'name':'" name "','allowMultipleAllocations':true,'capacity':{'memory':{'value':'10Gi'"      \
    ",'requestPolicy':{" policy "}}}}"
#define PART(amount)                                                                               \
    "'requests':[{'name':'r','exactly':{" OF_CLASS ",'capacity':{'requests':{'memory':'" amount    \
    "'}}}}]"

/* A step of nothing can't be calculated with: kube-scheduler gives up on all that ask. */
static void step_of_nothing_never_fits(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_slice(s, "s", "n1", SHARED("a", "'default':'1Gi','validRange':{'min':'1Gi','step':'0'}"));
    given_ask(s, "part", PART("2Gi"));
    given_job(s, "gang", "q", "pods=1 template=part");
    expect_state(s, "gang", "Pending NeverFits");
    expect_message(s, "gang",
                   "asks for a capacity of a device there that can't be calculated with");
    given_ask(s, "least", PART("1Mi")); /* the least is given without a calculation */
    given_job(s, "small", "q", "pods=1 template=least");
    expect_state(s, "small", "Admitted");
}

/* Admin access to a device that others take parts of leaves it as it was. */
static void admin_access_takes_no_part(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_namespace(s, "ml", "resource.kubernetes.io/admin-access:true");
    given_slice(s, "s", "n1", SHARED("a", "'default':'10Gi'"));
    given_ask(s, "look", "'requests':[{'name':'r','exactly':{" OF_CLASS ",'adminAccess':true}}]");
    given_job(s, "watchers", "q", "pods=3 template=look");
    expect_state(s, "watchers", "Admitted");
    expect_used(s, "q", "gpu.example.com=0");
    given_ask(s, "part", PART("10Gi"));
    given_job(s, "gang", "q", "pods=1 template=part");
    expect_state(s, "gang", "Admitted");
    given_job(s, "second", "q", "pods=1 template=part");
    expect_state(s, "second", "Pending DevicesExhausted");
}

/* Of several claims the one is named on which kube-scheduler gives up. */
static void claim_that_breaks_is_named(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_slice(s, "s", "n1", "{'name':'a'},{'name':'b'},{'name':'c'}");
    given_ask(s, "fine", "'requests':[{'name':'r','exactly':{" OF_CLASS "}}]");
    given_ask(s, "fails",
              "'requests':[{'name':'o','exactly':{" OF_CLASS "}},{'name':'r','exactly':{" OF_CLASS
              ",'allocationMode':'All'" WITH(
                  "device.attributes[\\\"gpu.example.com\\\"].size == 2") "}}]");
    given_job_spec(s, "gang", "q", "pods=1",
                   "{\"resourceClaims\":[{\"name\":\"f\",\"resourceClaimTemplateName\":\"fine\"},"
                   "{\"name\":\"g\",\"resourceClaimTemplateName\":\"fails\"}],\"containers\":[{"
                   "\"name\":\"main\"}]}");
    expect_state(s, "gang", "Pending NeverFits");
    expect_message(s, "gang", "ResourceClaimTemplate ml/fails has a selector that fails");
}

/* Forty pods of one node, each with a device of its own: none is given twice. */
static void node_of_more_pods_than_there_was_room_to_note(void **state)
{
    struct scenario *s = *state;
    static char list[JSON_BYTES];
    given_world(s);
    given_slice(s, "s", "n1", many(list, "a", 40, ",'attributes':{'numa':{'int':0}}"));
    given_ask(s, "one",
              "'requests':[{'name':'r','exactly':{" OF_CLASS "}}],'constraints':[{"
              "'matchAttribute':'" CLASS "/numa'}]");
    given_job(s, "gang", "q", "pods=40 template=one");
    expect_state(s, "gang", "Admitted");
    given_job(s, "more", "q", "pods=1 template=one");
    expect_state(s, "more", "Pending DevicesExhausted");
}

#define IS_LARGE WITH("device.attributes[\\\"" CLASS "\\\"].is_large")

/* Pods that take any device and a large one: where the slice of small ones comes first there is
 * enough for two, where the other does only for one. Nobody knows which does. */
static void order_of_slices_that_is_worst_counts(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_slice(s, "s-0", "n1",
                "{'name':'a','attributes':{'is_large':{'bool':false}}},"
                "{'name':'b','attributes':{'is_large':{'bool':false}}}");
    given_slice(s, "s-1", "n1",
                "{'name':'a','attributes':{'is_large':{'bool':true}}},"
                "{'name':'b','attributes':{'is_large':{'bool':true}}}");
    given_ask(s, "both",
              "'requests':[{'name':'any','exactly':{" OF_CLASS "}},"
              "{'name':'large','exactly':{" OF_CLASS IS_LARGE "}}]");
    given_job(s, "two", "q", "pods=2 template=both");
    expect_state(s, "two", "Pending NodeShape");
    given_job(s, "one", "q", "pods=1 template=both");
    expect_state(s, "one", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(attributes_of_every_type_are_compared),
        scenario_test(devices_alike_are_tried_once),
        scenario_test(devices_alike_are_refused_once),
        scenario_test(device_with_a_wrong_counter_stands_for_no_other),
        scenario_test(parts_of_two_sizes_are_tried_both),
        scenario_test(search_that_is_too_long_is_said_to_be),
        scenario_test(more_slices_than_four_can_not_be_told),
        scenario_test(alternative_that_makes_a_claim_too_large_is_left_out),
        scenario_test(all_of_too_many_never_fit),
        scenario_test(all_devices_are_those_that_match),
        scenario_test(selector_that_fails_for_so_many),
        scenario_test(selector_that_fails_no_more_is_not_told_of),
        scenario_test(step_of_nothing_never_fits),
        scenario_test(admin_access_takes_no_part),
        scenario_test(claim_that_breaks_is_named),
        scenario_test(node_of_more_pods_than_there_was_room_to_note),
        scenario_test(pods_of_very_many_requests_are_counted),
        scenario_test(order_of_slices_that_is_worst_counts),
    };
    return cmocka_run_group_tests_name("allocate", tests, NULL, NULL);
}
