/* What could never start, whoever ends, and what makes that known to be otherwise: Nodes, devices
 * and flavors that come, also for a gang that is short of quota besides. */
#include <stdio.h>
#include <string.h>

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

enum { KINDS = 64, KINDS_OF_A_CLAIM = 32, JSON_BYTES = 16384 };

/* A device of each kind. */
static void given_device_of_each_kind(struct scenario *s)
{
    char json[JSON_BYTES] =
        "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"gpu.example.com\",\"nodeName\":"
        "\"n1\",\"pool\":{\"name\":\"n1\",\"generation\":1,\"resourceSliceCount\":1},"
        "\"devices\":[";
    for (int i = 0; i < KINDS; i++) {
        size_t length = strlen(json);
        snprintf(json + length, sizeof(json) - length,
                 "%s{\"name\":\"g%d\",\"attributes\":{\"kind\":{\"int\":%d}}}", i == 0 ? "" : ",",
                 i, i);
    }
    strcat(json, "]}}");
    given_json(s, KIND_RESOURCE_SLICE, json);
}

/* A device of each of 32 kinds from that one. */
static void given_template_of_kinds(struct scenario *s, const char *name, int first)
{
    char json[JSON_BYTES];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":[",
             name);
    for (int i = first; i < first + KINDS_OF_A_CLAIM; i++) {
        size_t length = strlen(json);
        snprintf(json + length, sizeof(json) - length,
                 "%s{\"name\":\"r%d\",\"exactly\":{\"deviceClassName\":\"gpu.example.com\","
                 "\"selectors\":[{\"cel\":{\"expression\":"
                 "\"device.attributes['gpu.example.com'].kind == %d\"}}]}}",
                 i == first ? "" : ",", i, i);
    }
    strcat(json, "]}}}}");
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE, json);
}

/* A pod that asks for devices of 64 kinds, and by a claim that it shares for one of a further kind:
 * as long as each is there it isn't said that it could never start. */
static void devices_of_more_kinds_than_are_counted_may_be_enough(void **state)
{
    struct scenario *s = *state;
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_class(s, "nic.example.com", "device.driver == 'nic.example.com'");
    given_node(s, "n1", "cpu=16");
    given_device_of_each_kind(s);
    given_queue(s, "q", "gpu.example.com=100 nic.example.com=100");
    given_template_of_kinds(s, "lower", 0);
    given_template_of_kinds(s, "upper", KINDS_OF_A_CLAIM);
    given_claim(s, "shared", "nic.example.com", 1);
    given_claim(s, "used", "gpu.example.com", 1);
    claim_allocated(s, "used", "n1/g0");
    given_job_spec(s, "gang", "q", "pods=1",
                   "{\"resourceClaims\":[{\"name\":\"a\",\"resourceClaimTemplateName\":\"lower\"},"
                   "{\"name\":\"b\",\"resourceClaimTemplateName\":\"upper\"},"
                   "{\"name\":\"c\",\"resourceClaimName\":\"shared\"}],"
                   "\"containers\":[{\"name\":\"main\"}]}");
    expect_state(s, "gang", "Pending NeverFits");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"nic\"},\"spec\":{\"driver\":\"nic.example.com\","
               "\"nodeName\":\"n1\",\"pool\":{\"name\":\"n1\",\"generation\":1,"
               "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"nic0\"}]}}");
    expect_state(s, "gang", "Pending DevicesExhausted");
    claim_freed(s, "used");
    expect_state(s, "gang", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(devices_that_go_leave_it_none),
        scenario_test(a_node_that_comes_makes_it_a_matter_of_quota),
        scenario_test(a_node_that_comes_and_is_not_ready_counts),
        scenario_test(a_node_that_is_away_and_grows_counts),
        scenario_test(a_flavor_that_is_edited_is_looked_at_anew),
        scenario_test(devices_of_more_kinds_than_are_counted_may_be_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
