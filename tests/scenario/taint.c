/* Devices that are tainted: out for those who don't tolerate it, and told as what they are. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

static void given_cluster(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_node(s, "n2", "cpu=16");
    given_pair(s, "n1", "");
    given_pair(s, "n2", "");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=8");
}

#define BROKEN ",\"taints\":[{\"key\":\"broken\",\"effect\":\"NoSchedule\"}]"

/* A template whose one request has these tolerations. */
static void given_tolerant_template(struct scenario *s, const char *name, const char *tolerations)
{
    char json[512];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":[{"
             "\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"" CLASS
             "\",\"allocationMode\":\"ExactCount\",\"count\":1,\"tolerations\":[%s]}}]}}}}",
             name, tolerations);
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE, json);
}

static void given_rule(struct scenario *s, const char *name, const char *selector,
                       const char *effect)
{
    char json[256];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{%s\"taint\":{\"key\":\"service\","
             "\"value\":\"psu\",\"effect\":\"%s\"}}}",
             name, selector, effect);
    given_json(s, KIND_DEVICE_TAINT_RULE, json);
}

/* Enough but for a taint: the reason names counts, the device and its taint. */
static void gang_that_only_lacks_a_tainted_device_is_told_so(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_pair(s, "n2", BROKEN);
    given_job(s, "a", "q", "pods=4 template=one");
    given_job(s, "b", "q", "pods=3 template=one");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    expect_message(s, "a",
                   "needs 4 gpu.example.com at once, 3 of 4 are free; with 1 that is out "
                   "for health reasons it could start: device gpu.example.com/n2/g1 "
                   "(taint broken)");
    expect_state(s, "b", "Admitted");
    job_deleted_now(s, "b");
    given_pair(s, "n2", "");
    expect_state(s, "a", "Admitted");
}

/* Where it wouldn't suffice that all were healthy, it is the devices that are used up. */
static void gang_that_lacks_more_is_told_devices_exhausted(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_pair(s, "n2", BROKEN);
    given_claim(s, "held", CLASS, 1);
    claim_allocated(s, "held", "n1/g0");
    given_job(s, "a", "q", "pods=4 template=one");
    expect_state(s, "a", "Pending DevicesExhausted");
    expect_message(s, "a", "needs 4 gpu.example.com at once, 2 of 4 are free");
}

/* One pod wants two devices of one node, and one of them is tainted: that is its health, not the
 * shape of the node. */
static void pod_that_needs_both_devices_of_a_node_is_told_so(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_template(s, "two", CLASS, 2);
    given_pair(s, "n1", BROKEN);
    given_pair(s, "n2", BROKEN);
    given_job(s, "a", "q", "pods=1 template=two");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    given_pair(s, "n1", "");
    expect_state(s, "a", "Admitted");
}

static void devices_of_a_node_that_is_not_ready_are_out_for_health(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_node(s, "n2", "cpu=16 ready=False");
    given_node(s, "n3", "cpu=16 ready=False label=zone:far");
    given_pair(s, "n3", "");
    given_job(s, "a", "q", "pods=3 template=one");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    expect_message(s, "a", "node n2 (not ready), node n3 (not ready)");
    /* A node that its pods don't select wouldn't help them if it were ready. */
    given_job(s, "b", "q", "pods=3 template=one selector=kubernetes.io/hostname:n1");
    expect_state(s, "b", "Pending NeverFits");
    given_node(s, "n2", "cpu=16");
    expect_state(s, "a", "Admitted");
}

/* The same device, for a request that tolerates its taint and for one that doesn't. */
static void request_that_tolerates_the_taint_may_have_the_device(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_pair(s, "n1", BROKEN);
    given_pair(s, "n2", BROKEN);
    given_tolerant_template(s, "brave", "{\"key\":\"broken\",\"operator\":\"Exists\"}");
    given_tolerant_template(s, "other", "{\"key\":\"hot\",\"operator\":\"Exists\"}");
    given_job(s, "a", "q", "pods=4 template=brave");
    given_job(s, "b", "q", "pods=3 template=other");
    expect_state(s, "a", "Admitted");
    job_deleted_now(s, "a");
    expect_state(s, "b", "Pending DevicesUnhealthy");
    given_job(s, "c", "q", "pods=3 template=one");
    expect_state(s, "c", "Pending DevicesUnhealthy");
}

/* Whoever tolerates a NoExecute taint for a time would be stopped again. */
static void toleration_for_a_time_is_none_at_the_start(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_pair(s, "n1", ",\"taints\":[{\"key\":\"broken\",\"effect\":\"NoExecute\"}]");
    given_tolerant_template(s, "short",
                            "{\"key\":\"broken\",\"operator\":\"Exists\",\"effect\":"
                            "\"NoExecute\",\"tolerationSeconds\":60}");
    given_tolerant_template(s, "long",
                            "{\"key\":\"broken\",\"operator\":\"Exists\",\"effect\":"
                            "\"NoExecute\"}");
    given_job(s, "a", "q", "pods=4 template=short");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    given_job(s, "b", "q", "pods=4 template=long");
    expect_state(s, "b", "Admitted");
}

static void effect_none_says_nothing(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_pair(s, "n1",
               ",\"taints\":[{\"key\":\"note\",\"effect\":\"None\"},"
               "{\"key\":\"new\",\"effect\":\"OfALaterVersion\"}]");
    given_rule(s, "dry-run", "\"deviceSelector\":{},", "None");
    given_job(s, "a", "q", "pods=4 template=one");
    expect_state(s, "a", "Admitted");
}

/* A rule taints other people's devices: all of its criteria have to hold, no criterion means all
 * devices, and no selector means none. */
static void rule_taints_the_devices_that_it_selects(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_rule(s, "nobody", "", "NoSchedule");
    given_rule(s, "elsewhere",
               "\"deviceSelector\":{\"driver\":\"gpu.example.com\",\"pool\":"
               "\"n9\"},",
               "NoSchedule");
    given_rule(s, "one", "\"deviceSelector\":{\"pool\":\"n2\",\"device\":\"g1\"},", "NoSchedule");
    given_job(s, "a", "q", "pods=4 template=one");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    expect_message(s, "a",
                   "3 of 4 are free; with 1 that is out for health reasons it could start: "
                   "device gpu.example.com/n2/g1 (taint service)");
    /* Devices that come later are tainted as well. */
    given_pair(s, "n2", ",\"attributes\":{\"a\":{\"int\":1}}");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    given_rule(s, "one", "\"deviceSelector\":{},", "NoSchedule");
    given_job(s, "b", "q", "pods=1 template=one");
    expect_message(s, "b", "0 of 4 are free; with 4 that are out");
    job_deleted_now(s, "b");
    object_gone(s, KIND_DEVICE_TAINT_RULE, "one");
    expect_state(s, "a", "Admitted");
}

/* Of several rules that taint a device the first by name is told, in whatever order they came; one
 * with effect None doesn't count. */
static void first_rule_by_name_is_told(void **state)
{
    struct scenario *s = *state;
    const char *names[] = {"m", "b", "a", "z"};
    given_cluster(s);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char json[300];
        snprintf(json, sizeof(json),
                 "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"deviceSelector\":{\"pool\":\"n2\","
                 "\"device\":\"g1\"},\"taint\":{\"key\":\"key-%s\",\"effect\":\"%s\"}}}",
                 names[i], names[i], *names[i] == 'a' ? "None" : "NoSchedule");
        given_json(s, KIND_DEVICE_TAINT_RULE, json);
    }
    given_job(s, "gang", "q", "pods=4 template=one");
    expect_message(s, "gang", "device gpu.example.com/n2/g1 (taint key-b)");
}

/* A rule's status tells how far an eviction has come; that wakes nobody. */
static void status_of_a_rule_wakes_nobody(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_rule(s, "one", "\"deviceSelector\":{\"pool\":\"n2\"},", "NoSchedule");
    given_job(s, "a", "q", "pods=4 template=one");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    (void)counts_take(s);
    object_again(s, KIND_DEVICE_TAINT_RULE, "one");
    assert_int_equal(counts_take(s).shapes_woken, 0);
}

/* After a restart the taints are found in whatever order they are listed. */
static void taints_are_found_again_after_a_restart(void **state)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct scenario *s = *state;
        if (seed > 0) {
            s = scenario_new();
        }
        given_cluster(s);
        given_rule(s, "one", "\"deviceSelector\":{\"pool\":\"n2\",\"device\":\"g1\"},",
                   "NoSchedule");
        given_job(s, "a", "q", "pods=4 template=one");
        expect_state(s, "a", "Pending DevicesUnhealthy");
        listing_order(s, seed);
        restart(s, WITH_ADMISSIONS);
        expect_state(s, "a", "Pending DevicesUnhealthy");
        object_gone(s, KIND_DEVICE_TAINT_RULE, "one");
        expect_state(s, "a", "Admitted");
        if (seed > 0) {
            scenario_free(s);
        }
    }
}

/* It isn't capacity for it, so one that may stop others has to. */
static void urgent_gang_stops_others_where_devices_are_tainted(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_pair(s, "n2", BROKEN);
    given_priority_class(s, "high", 1000);
    given_queue(s, "q", "gpu.example.com=8 within=LowerPriority");
    given_job(s, "low", "q", "pods=2 template=one");
    scenario_start(s);
    gang_starts(s, "low", "n1 n1");
    pod_claims(s, "low-0", "one", "n1/g0");
    pod_claims(s, "low-1", "one", "n1/g1");
    given_job(s, "high", "q", "pods=2 template=one priority=high");
    expect_state(s, "low", "Suspending WaitingForTermination");
}

/* A taint without an effect stands in front of one that keeps off: who tolerates the second may
 * have the device, who doesn't is told that one. Of two that keep off both have to be tolerated. */
static void one_taint_among_several_is_tolerated(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_tolerant_template(s, "brave", "{\"key\":\"broken\",\"operator\":\"Exists\"}");
    given_pair(s, "n1",
               ",\"taints\":[{\"key\":\"note\",\"effect\":\"None\"},{\"key\":\"broken\","
               "\"effect\":\"NoSchedule\"}]");
    given_pair(s, "n2",
               ",\"taints\":[{\"key\":\"broken\",\"effect\":\"NoSchedule\"},{\"key\":\"hot\","
               "\"effect\":\"NoSchedule\"}]");
    given_job(s, "brave-ones", "q", "pods=4 template=brave");
    expect_state(s, "brave-ones", "Pending DevicesUnhealthy");
    expect_message(s, "brave-ones", "device gpu.example.com/n2/g1 (taint hot)");
    given_job(s, "others", "q", "pods=3 template=one");
    expect_state(s, "others", "Pending DevicesUnhealthy");
    expect_message(s, "others", "device gpu.example.com/n1/g1 (taint broken)");
    given_job(s, "three", "q", "pods=3 template=brave");
    expect_state(s, "three", "Admitted");
}

/* Of devices that have gone nothing is left that a rule could taint: it taints those that stay. */
static void rule_comes_after_devices_have_gone(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    scenario_start(s);
    given_devices(s, "n1", "");
    given_rule(s, "service", "\"deviceSelector\":{\"driver\":\"gpu.example.com\"},", "NoSchedule");
    given_job(s, "a", "q", "pods=2 template=one");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    object_gone(s, KIND_DEVICE_TAINT_RULE, "service");
    expect_state(s, "a", "Admitted");
}

/* A device that no node owns, and which all see, is out for its health as well. */
static void tainted_device_of_no_node_is_told(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_node(s, "n2", "cpu=16");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=8");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"driver\":\"gpu.example.com\",\"pool\":{"
               "\"name\":\"p\",\"generation\":1,\"resourceSliceCount\":1},\"allNodes\":true,"
               "\"devices\":[{\"name\":\"g0\"},{\"name\":\"g1\"" BROKEN "}]}}");
    given_job(s, "a", "q", "pods=2 template=one");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    expect_message(s, "a",
                   "1 that is out for health reasons it could start: device "
                   "gpu.example.com/p/g1 (taint broken)");
    given_job(s, "three", "q", "pods=3 template=one");
    expect_state(s, "three", "Pending NeverFits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(gang_that_only_lacks_a_tainted_device_is_told_so),
        scenario_test(gang_that_lacks_more_is_told_devices_exhausted),
        scenario_test(pod_that_needs_both_devices_of_a_node_is_told_so),
        scenario_test(devices_of_a_node_that_is_not_ready_are_out_for_health),
        scenario_test(request_that_tolerates_the_taint_may_have_the_device),
        scenario_test(toleration_for_a_time_is_none_at_the_start),
        scenario_test(effect_none_says_nothing),
        scenario_test(rule_taints_the_devices_that_it_selects),
        scenario_test(first_rule_by_name_is_told),
        scenario_test(status_of_a_rule_wakes_nobody),
        scenario_test(taints_are_found_again_after_a_restart),
        scenario_test(urgent_gang_stops_others_where_devices_are_tainted),
        scenario_test(one_taint_among_several_is_tolerated),
        scenario_test(rule_comes_after_devices_have_gone),
        scenario_test(tainted_device_of_no_node_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
