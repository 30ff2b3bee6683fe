/* Devices that were tainted, or reported Unhealthy: they count again after their flavor's
 * quarantine, and a restart neither shortens nor renews it. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#define CLASS "gpu.example.com"

#define TAINTED ",\"taints\":[{\"key\":\"broken\",\"effect\":\"NoSchedule\"}]"

static void given_cluster(struct scenario *s, const char *health)
{
    char json[256];
    snprintf(json, sizeof(json), "{\"metadata\":{\"name\":\"default\"},\"spec\":{\"health\":{%s}}}",
             health);
    given_json(s, KIND_RESOURCE_FLAVOR, json);
    given_node(s, "n1", "cpu=16");
    given_pair(s, "n1", "");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=8");
}

static const struct resource_flavor_status *flavor_status(struct scenario *s)
{
    return &((const struct resource_flavor *)scenario_object(s, KIND_RESOURCE_FLAVOR, "default"))
                ->status;
}

/* It counts again when its taint has been gone for that long, and then at once. */
static void device_counts_again_after_the_quarantine(void **state)
{
    struct scenario *s = *state;
    given_cluster(s, "\"quarantine\":\"10m\"");
    scenario_start(s);
    given_pair(s, "n1", TAINTED);
    given_job(s, "a", "q", "pods=2 template=one");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 60000);
    check_i64(flavor_status(s)->devices.count, 1);
    check_str(flavor_status(s)->devices.items[0].name, "gpu.example.com/n1/g1");
    assert_false(flavor_status(s)->devices.items[0].well_since.is_set);
    given_pair(s, "n1", "");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    given_job(s, "b", "q", "pods=2 template=one");
    expect_message(s, "b",
                   "device gpu.example.com/n1/g1 (in quarantine until "
                   "2026-11-30T12:11:00Z)");
    at(s, 70000);
    check_i64(flavor_status(s)->devices.items[0].well_since.ms, SCENARIO_START_MS + 60000);
    at(s, 659000);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 660000);
    expect_state(s, "a", "Admitted");
    at(s, 670000);
    check_i64(flavor_status(s)->devices.count, 0);
}

/* `promised` may have to take that device, since `loose` may take another of its four: `beside`,
 * which may not use the node itself, waits for it all the same. */
static void device_of_others_that_counts_again_wakes(void **state)
{
    struct scenario *s = *state;
    given_cluster(s, "\"quarantine\":\"5m\"");
    given_node(s, "n1", "cpu=16 label=zone:east");
    given_node(s, "n2", "cpu=16 label=zone:east");
    given_node(s, "n3", "cpu=16 label=zone:west");
    given_pair(s, "n2", "");
    given_pair(s, "n3", "");
    scenario_start(s);
    given_job(s, "promised", "q", "pods=3 template=one selector=zone:east");
    given_job(s, "loose", "q", "pods=1 template=one");
    expect_state(s, "loose", "Admitted");
    given_pair(s, "n1", TAINTED);
    given_job(s, "beside", "q", "pods=1 template=one selector=zone:west");
    expect_state(s, "beside", "Pending ReservedForOther");
    at(s, 1000);
    given_pair(s, "n1", "");
    expect_state(s, "beside", "Pending ReservedForOther");
    at(s, 301000);
    expect_state(s, "beside", "Admitted");
}

static void without_quarantine_it_counts_at_once(void **state)
{
    struct scenario *s = *state;
    given_cluster(s, "");
    scenario_start(s);
    given_pair(s, "n1", TAINTED);
    given_job(s, "a", "q", "pods=2 template=one");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    given_pair(s, "n1", "");
    expect_state(s, "a", "Admitted");
    at(s, 60000);
    check_i64(flavor_status(s)->devices.count, 0);
}

/* A device that all nodes see, and one of a node that isn't there yet, rest like any: by the rules
 * of the first flavor that has some. */
static void devices_of_no_node_rest_as_well(void **state)
{
    (void)state;
    static const char *const places[] = {"\"allNodes\":true", "\"nodeName\":\"n9\""};
    for (size_t i = 0; i < 2; i++) {
        struct scenario *s = scenario_new();
        char json[500];
        given_flavor(s, "aaa", "");
        given_cluster(s, "\"quarantine\":\"10m\"");
        object_gone(s, KIND_RESOURCE_SLICE, "n1-slice");
        scenario_start(s);
        for (int is_well = 0; is_well < 2; is_well++) {
            snprintf(json, sizeof(json),
                     "{\"metadata\":{\"name\":\"far\"},\"spec\":{\"driver\":\"gpu.example.com\",%s,"
                     "\"pool\":{\"name\":\"far\",\"generation\":1,\"resourceSliceCount\":1},"
                     "\"devices\":[{\"name\":\"g0\"%s}]}}",
                     places[i], is_well ? "" : TAINTED);
            given_json(s, KIND_RESOURCE_SLICE, json);
            given_job(s, is_well ? "b" : "a", "q", "pods=1 template=one");
            at(s, 60000);
        }
        check_i64(flavor_status(s)->devices.count, 1);
        check_str(flavor_status(s)->devices.items[0].name, "gpu.example.com/far/g0");
        if (i == 1) {
            given_node(s, "n9", "cpu=16");
        }
        at(s, 599000);
        expect_state(s, "a", "Pending DevicesUnhealthy");
        at(s, 660000);
        expect_state(s, "a", "Admitted");
        expect_state(s, "b", "Pending DevicesExhausted");
        scenario_free(s);
    }
}

#define DAY INT64_C(86400000)

/* A device that is gone with its ailment is remembered for a day, though others have recovered
 * meanwhile, and then forgotten. */
static void device_that_stays_away_is_forgotten_after_a_day(void **state)
{
    struct scenario *s = *state;
    given_cluster(s, "\"quarantine\":\"5m\"");
    given_node(s, "n2", "cpu=16");
    given_pair(s, "n2", "");
    scenario_start(s);
    given_pair(s, "n1", TAINTED);
    given_pair(s, "n2", TAINTED);
    at(s, 60000);
    check_i64(flavor_status(s)->devices.count, 2);
    object_gone(s, KIND_RESOURCE_SLICE, "n1-slice");
    given_pair(s, "n2", "");
    at(s, 400000);
    check_i64(flavor_status(s)->devices.count, 1);
    check_str(flavor_status(s)->devices.items[0].name, "gpu.example.com/n1/g1");
    at(s, DAY);
    check_i64(flavor_status(s)->devices.count, 1);
    at(s, DAY + 60000 + 20000);
    check_i64(flavor_status(s)->devices.count, 0);
}

/* The flavor's status carries it, so a restart in the middle changes nothing, whatever is listed
 * first. */
static void restart_goes_on_where_the_quarantine_was(void **state)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct scenario *s = *state;
        if (seed > 0) {
            s = scenario_new();
        }
        given_cluster(s, "\"quarantine\":\"10m\"");
        scenario_start(s);
        given_pair(s, "n1", TAINTED);
        given_job(s, "a", "q", "pods=2 template=one");
        at(s, 60000);
        given_pair(s, "n1", "");
        at(s, 300000);
        listing_order(s, seed);
        restart(s, seed % 3 == 0 ? WITHOUT_ADMISSIONS : WITH_ADMISSIONS);
        expect_state(s, "a", "Pending DevicesUnhealthy");
        at(s, 659000);
        expect_state(s, "a", "Pending DevicesUnhealthy");
        at(s, 660000);
        expect_state(s, "a", "Admitted");
        if (seed > 0) {
            scenario_free(s);
        }
    }
}

/* Its taint went while nobody looked: that is the latest time at which it can have gone. */
static void device_that_recovered_unseen_is_well_since_the_start(void **state)
{
    struct scenario *s = *state;
    given_cluster(s, "\"quarantine\":\"10m\"");
    scenario_start(s);
    given_pair(s, "n1", TAINTED);
    given_job(s, "a", "q", "pods=2 template=one");
    at(s, 60000);
    struct resource_slice *slice = scenario_object(s, KIND_RESOURCE_SLICE, "n1-slice");
    slice->spec.devices.items[1].taints = (struct taint_list){.items = NULL};
    at(s, 100000);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 699000);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 700000);
    expect_state(s, "a", "Admitted");
}

static void relapse_begins_it_anew(void **state)
{
    struct scenario *s = *state;
    given_cluster(s, "\"quarantine\":\"10m\"");
    scenario_start(s);
    given_pair(s, "n1", TAINTED);
    given_job(s, "a", "q", "pods=2 template=one");
    given_pair(s, "n1", "");
    at(s, 500000);
    given_pair(s, "n1", TAINTED);
    at(s, 550000);
    given_pair(s, "n1", "");
    at(s, 1149000);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 1150000);
    expect_state(s, "a", "Admitted");
}

/* A driver that takes the device off its slice and puts it back has not made it well. */
static void device_that_was_away_is_still_in_quarantine(void **state)
{
    struct scenario *s = *state;
    given_cluster(s, "\"quarantine\":\"10m\"");
    scenario_start(s);
    given_pair(s, "n1", TAINTED);
    given_job(s, "a", "q", "pods=2 template=one");
    object_gone(s, KIND_RESOURCE_SLICE, "n1-slice");
    at(s, 100000);
    given_pair(s, "n1", "");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 699000);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 700000);
    expect_state(s, "a", "Admitted");
}

static void rule_that_is_dropped_ends_it(void **state)
{
    struct scenario *s = *state;
    given_cluster(s, "\"quarantine\":\"10m\"");
    scenario_start(s);
    given_pair(s, "n1", TAINTED);
    given_job(s, "a", "q", "pods=2 template=one");
    given_pair(s, "n1", "");
    at(s, 100000);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    given_json(s, KIND_RESOURCE_FLAVOR, "{\"metadata\":{\"name\":\"default\"},\"spec\":{}}");
    expect_state(s, "a", "Admitted");
}

/* The kubelet's report goes with the pod that carries it: the device rests for five minutes at
 * least, so that the gang isn't put on it again at once. */
static void reported_device_rests_after_its_pod_has_gone(void **state)
{
    struct scenario *s = *state;
    given_cluster(s, "");
    given_job(s, "a", "q", "pods=2 template=one");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    pod_claims(s, "a-0", "one", "n1/g0");
    pod_claims(s, "a-1", "one", "n1/g1");
    expect_state(s, "a", "Running");
    static struct resource_health device = {.resource_id = STR_INIT("vendor.com/gpu=one"),
                                            .health = STR_INIT("Unhealthy")};
    static struct resource_status resource = {.name = STR_INIT("claim:c-one/gpu")};
    static struct container_status container = {.name = STR_INIT("c")};
    resource.resources = (struct resource_health_list){&device, 1};
    container.allocated_resources_status = (struct resource_status_list){&resource, 1};
    struct pod *pod = scenario_object(s, KIND_POD, "a-1");
    pod->status.container_statuses = (struct container_status_list){&container, 1};
    object_changed(s, KIND_POD, "a-1");
    expect_state(s, "a", "Suspending WaitingForTermination");
    at(s, 10000);
    assert_true(flavor_status(s)->devices.items[0].reported.value);
    gang_stops(s, "a");
    claim_freed(s, "a-0-one");
    claim_freed(s, "a-1-one");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 100000);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 309000);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 310000);
    expect_state(s, "a", "Admitted");
}

#define KIND(name, kind, more)                                                                     \
    "{\"name\":\"" name "\",\"attributes\":{\"kind\":{\"string\":\"" kind "\"}}" more "}"

/* kube-scheduler may give out a device in quarantine. A pod that asks for any and for a big one
 * could so get two big ones, and leave none for the next: what the healthy ones are enough for by
 * themselves says nothing then. */
static void quarantined_device_may_upset_the_count(void **state)
{
    static const char *const slices[] = {
        KIND("d0", "big", TAINTED) "," KIND("d1", "small", "") "," KIND("d2", "big", "") "," KIND(
            "d3", "small", "") "," KIND("d4", "big", ""),
        KIND("d0", "big", "") "," KIND("d1", "small", "") "," KIND("d2", "big", "") "," KIND(
            "d3", "small", "") "," KIND("d4", "big", ""),
    };
    struct scenario *s = *state;
    given_cluster(s, "\"quarantine\":\"10m\"");
    scenario_start(s);
    for (int i = 0; i < 2; i++) {
        char json[1500];
        snprintf(json, sizeof(json),
                 "{\"metadata\":{\"name\":\"n1-slice\"},\"spec\":{\"driver\":\"gpu.example.com\","
                 "\"nodeName\":\"n1\",\"pool\":{\"name\":\"n1\",\"generation\":1,"
                 "\"resourceSliceCount\":1},\"devices\":[%s]}}",
                 slices[i]);
        given_json(s, KIND_RESOURCE_SLICE, json);
    }
    given_json(
        s, KIND_RESOURCE_CLAIM_TEMPLATE,
        "{\"metadata\":{\"name\":\"mixed\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":["
        "{\"name\":\"any\",\"exactly\":{\"deviceClassName\":\"gpu.example.com\"}},"
        "{\"name\":\"big\",\"exactly\":{\"deviceClassName\":\"gpu.example.com\","
        "\"selectors\":[{\"cel\":{\"expression\":\"device.attributes['gpu.example.com'].kind =="
        " 'big'\"}}]}}]}}}}");
    given_job(s, "pair", "q", "pods=2 template=mixed");
    expect_state(s, "pair", "Pending DevicesUnhealthy");
    expect_message(s, "pair", "device gpu.example.com/n1/d0 is in quarantine until");
    given_job(s, "lone", "q", "pods=1 template=mixed");
    expect_state(s, "lone", "Admitted");
    job_finishes(s, "lone");
    at(s, 601000);
    expect_state(s, "pair", "Admitted");
}

/* A device that rests is nothing to pods that want others of its node. */
static void resting_device_of_another_class(void **state)
{
    struct scenario *s = *state;
    given_cluster(s, "\"quarantine\":\"10m\"");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"more\"},\"spec\":{\"driver\":\"nic.example.com\","
               "\"nodeName\":\"n1\",\"pool\":{\"name\":\"nics\",\"generation\":1,"
               "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"e0\"},{\"name\":\"e1\"},{"
               "\"name\":\"e2\"},{\"name\":\"e3\"}]}}");
    given_class(s, "nic.example.com", "device.driver == 'nic.example.com'");
    given_class(s, "fast.example.com", "device.driver == 'nic.example.com'");
    given_template(s, "nic", "nic.example.com", 1);
    given_template(s, "fast", "fast.example.com", 1);
    given_queue(s, "q", "nic.example.com=8 fast.example.com=8");
    scenario_start(s);
    given_pair(s, "n1", TAINTED);
    given_pair(s, "n1", "");
    given_job(s, "a", "q", "pods=2 template=nic template=fast");
    expect_state(s, "a", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(device_counts_again_after_the_quarantine),
        scenario_test(device_of_others_that_counts_again_wakes),
        scenario_test(without_quarantine_it_counts_at_once),
        cmocka_unit_test(devices_of_no_node_rest_as_well),
        scenario_test(device_that_stays_away_is_forgotten_after_a_day),
        scenario_test(restart_goes_on_where_the_quarantine_was),
        scenario_test(device_that_recovered_unseen_is_well_since_the_start),
        scenario_test(relapse_begins_it_anew),
        scenario_test(device_that_was_away_is_still_in_quarantine),
        scenario_test(quarantined_device_may_upset_the_count),
        scenario_test(rule_that_is_dropped_ends_it),
        scenario_test(reported_device_rests_after_its_pod_has_gone),
        scenario_test(resting_device_of_another_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
