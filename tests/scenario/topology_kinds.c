/* Racks of which a gang may use only some: by the flavors that have levels, by the devices of
 * several kinds that its pods want together, and by how its queue admits. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

static void given_racks(struct scenario *s, const char *queue)
{
    given_flavor(s, "default", "level=zone level=rack level=kubernetes.io/hostname");
    given_queue(s, "q", queue);
}

/* Another flavor of its queue has no levels: those of this one wake it all the same. */
static void levels_of_one_flavor_among_others(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "plain", "");
    given_flavor(s, "racks", "level=rack");
    given_queue(s, "q", "flavor=plain cpu=64 flavor=racks cpu=64");
    given_node_in(s, "n1", "a", "r1", 2);
    given_node_in(s, "n2", "a", "r2", 2);
    given_job(s, "four", "q", "pods=4 cpu=1 required=rack");
    scenario_start(s);
    expect_used(s, "q", "");
    given_node_in(s, "n2", "a", "r1", 2);
    expect_state(s, "four", "Admitted");
}

/* Pods that want a device of each of two classes, which select the same ones. */
static void two_kinds_of_devices_in_one_rack(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64 gpu.example.com=64 fast.example.com=64");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_class(s, "fast.example.com", "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_node_in(s, "n1", "a", "r1", 8);
    given_node_in(s, "n2", "a", "r2", 8);
    given_devices(s, "n1", "g0 g1 g2 g3");
    given_devices(s, "n2", "g0 g1 g2");
    given_template(s, "two", "fast.example.com", 1);
    given_job(s, "two", "q", "pods=2 cpu=1 template=one template=two required=rack");
    expect_state(s, "two", "Admitted");
    expect_selector(s, "two", "rack", "r1");
    given_job(s, "one", "q", "pods=2 cpu=1 template=one template=two required=rack");
    expect_state(s, "one", "Pending NodeShape");
}

/* Nobody can tell whether it would be one domain, whoever stopped. */
static void who_asks_for_a_domain_of_quota_alone_stops_nobody(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_racks(s, "cpu=4 fit=Quota within=LowerPriority");
    given_node_in(s, "n1", "a", "r1", 4);
    given_job(s, "low", "q", "pods=4 cpu=1 priority=low");
    scenario_start(s);
    gang_starts(s, "low", "n1 n1 n1 n1");
    given_job(s, "hard", "q", "pods=2 cpu=1 required=rack priority=high");
    expect_state(s, "hard", "Pending TopologyUnsatisfied");
    expect_state(s, "low", "Running");
}

/* A record that names two racks, or none, is not of our writing: its pods may go anywhere, so no
 * rack is sure while they are on their way. */
static void domain_that_is_not_ours_is_none(void **state)
{
    (void)state;
    const char *domains[] = {"\"zone\":[\"a\"],\"rack\":[\"r1\",\"r2\"]",
                             "\"zone\":[\"a\"],\"rack\":[]", ""};
    for (size_t i = 0; i < sizeof(domains) / sizeof(domains[0]); i++) {
        struct scenario *s = scenario_new();
        char record[512];
        given_racks(s, "cpu=64");
        given_node_in(s, "n1", "a", "r1", 2);
        given_node_in(s, "n2", "a", "r2", 2);
        given_job(s, "a", "q", "pods=2 cpu=1 running=true");
        snprintf(record, sizeof(record),
                 "{\"queue\":\"q\",\"at\":\"2026-11-30T11:59:30Z\",\"podSets\":[{\"name\":\"main\","
                 "\"count\":2,\"flavors\":{\"cpu\":\"default\"},\"requests\":{\"cpu\":\"1\"}}],"
                 "\"topology\":{\"main\":{%s}}}",
                 domains[i]);
        job_has_record(s, "a", record);
        scenario_start(s);
        given_job(s, "b", "q", "pods=2 cpu=1 required=rack");
        expect_state(s, "a", "Admitted");
        expect_state(s, "b", "Pending ReservedForOther");
        gang_starts(s, "a", "n1 n1");
        expect_state(s, "b", "Admitted");
        scenario_free(s);
    }
}

/* Pods are on their way to a rack that has gone: they take nothing of its zone. */
static void rack_of_promised_pods_is_gone(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    given_node_in(s, "n1", "a", "r1", 2);
    given_node_in(s, "n2", "a", "r2", 4);
    given_job(s, "a", "q", "pods=2 cpu=1 required=rack");
    expect_state(s, "a", "Admitted");
    expect_selector(s, "a", "rack", "r1");
    object_gone(s, KIND_NODE, "n1");
    given_job(s, "b", "q", "pods=4 cpu=1 required=zone");
    expect_state(s, "b", "Admitted");
}

/* What a class serves is had of the plugin where a node has one: a rack is short of that. */
static void rack_short_of_what_a_plugin_offers(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64 " CLASS "=64");
    given_json(s, KIND_DEVICE_CLASS,
               "{\"metadata\":{\"name\":\"" CLASS
               "\"},\"spec\":{\"extendedResourceName\":\"example.com/gpu\",\"selectors\":[{\"cel\":"
               "{\"expression\":\"device.driver == 'gpu.example.com'\"}}]}}");
    given_node(s, "n1", "cpu=8 label=zone:a label=rack:r1 example.com/gpu=3");
    given_node(s, "n2", "cpu=8 label=zone:a label=rack:r2 example.com/gpu=2");
    given_job(s, "a", "q", "pods=4 cpu=1 example.com/gpu=1 required=rack");
    expect_state(s, "a", "Pending NeverFits");
    expect_message(s, "a", "example.com/gpu");
}

/* Neither rack holds the second set, though the first finds room in both. */
static void the_tightest_of_several_sets_is_told(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    given_node_in(s, "n1", "a", "r1", 4);
    given_node_in(s, "n2", "a", "r2", 4);
    given_pod_set(s, "both", "driver", "pods=1 cpu=1");
    given_job(s, "both", "q", "pods=5 cpu=1 required=rack");
    expect_state(s, "both", "Pending NeverFits");
    expect_message(s, "both", "pod set main: needs 5 cpu in one rack; the largest, r1, has 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(levels_of_one_flavor_among_others),
        scenario_test(two_kinds_of_devices_in_one_rack),
        scenario_test(who_asks_for_a_domain_of_quota_alone_stops_nobody),
        cmocka_unit_test(domain_that_is_not_ours_is_none),
        scenario_test(rack_of_promised_pods_is_gone),
        scenario_test(rack_short_of_what_a_plugin_offers),
        scenario_test(the_tightest_of_several_sets_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
