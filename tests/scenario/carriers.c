/* What several flavors say of one device or node: whose status keeps it, whose quarantine counts,
 * and what a pod is given of each. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#define CLASS    "gpu.example.com"
#define MINUTE   ((int64_t)60000)
#define DEVICE   "gpu.example.com/n1/g1"
#define TAINTED  ",\"taints\":[{\"key\":\"broken\",\"effect\":\"NoSchedule\"}]"
#define NO_RULES ""

/* Of nodes with label kind:KIND; `health` are the members of its rules, if it has any. */
static void given_kind(struct scenario *s, const char *name, const char *kind, const char *health,
                       const char *status)
{
    char json[512];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"nodeLabels\":{\"kind\":\"%s\"}%s%s%s}%s}",
             name, kind, *health == '\0' ? "" : ",\"health\":{", health, *health == '\0' ? "" : "}",
             status);
    given_json(s, KIND_RESOURCE_FLAVOR, json);
}

static void given_world(struct scenario *s, const char *second)
{
    given_node(s, "n1", "cpu=16 label=kind:a");
    given_pair(s, "n1", second);
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
}

static uint32_t kept_by(struct scenario *s, const char *flavor)
{
    return ((const struct resource_flavor *)scenario_object(s, KIND_RESOURCE_FLAVOR, flavor))
        ->status.devices.count;
}

/* -- whose status keeps a device ----------------------------------------------------------------
 */

/* An ailing device stands in the status of one flavor: of those with rules the first by name. */
static void first_flavor_with_rules_keeps_the_device(void **state)
{
    struct scenario *s = *state;
    given_kind(s, "c", "a", "\"quarantine\":\"10m\"", "");
    given_kind(s, "a", "a", NO_RULES, "");
    given_kind(s, "0", "b", "\"quarantine\":\"10m\"", "");
    given_kind(s, "b", "a", "\"quarantine\":\"10m\"", "");
    given_kind(s, "d", "a", NO_RULES, "");
    given_world(s, TAINTED);
    at(s, MINUTE);
    check_i64(kept_by(s, "b"), 1);
    check_i64(kept_by(s, "0") + kept_by(s, "a") + kept_by(s, "c") + kept_by(s, "d"), 0);
}

/* Where none has rules it is the first by name; what another's status told at the start moves
 * there. */
static void without_rules_the_first_flavor_keeps_it(void **state)
{
    struct scenario *s = *state;
    given_kind(s, "c", "a", NO_RULES, "");
    given_kind(s, "a", "b", NO_RULES, "");
    given_kind(s, "b", "a", NO_RULES, "");
    given_kind(s, "d", "a", NO_RULES,
               ",\"status\":{\"devices\":[{\"name\":\"" DEVICE "\",\"reported\":true}]}");
    given_world(s, "");
    at(s, MINUTE);
    check_i64(kept_by(s, "b"), 1);
    check_i64(kept_by(s, "a") + kept_by(s, "c") + kept_by(s, "d"), 0);
    at(s, 5 * MINUTE); /* what a kubelet reported rests for so long */
    at(s, 6 * MINUTE);
    check_i64(kept_by(s, "b"), 0);
}

/* -- whose quarantine counts --------------------------------------------------------------------
 */

/* Of the quarantines of several flavors a device observes the longest. */
static void longest_quarantine_counts(void **state)
{
    struct scenario *s = *state;
    given_kind(s, "a", "a", "\"quarantine\":\"10m\"", "");
    given_kind(s, "b", "a", "\"quarantine\":\"20m\"", "");
    given_kind(s, "c", "b", "\"quarantine\":\"40m\"", "");
    given_world(s, TAINTED);
    given_queue(s, "q", "flavor=a gpu.example.com=8");
    given_job(s, "pair", "q", "pods=2 template=one");
    expect_state(s, "pair", "Pending DevicesUnhealthy");
    given_pair(s, "n1", "");
    at(s, 20 * MINUTE - 1);
    expect_state(s, "pair", "Pending DevicesUnhealthy");
    at(s, 20 * MINUTE);
    expect_state(s, "pair", "Admitted");
}

static void node_says(struct scenario *s, const char *status, int64_t since_ms)
{
    struct condition *conditions = ARENA_ARRAY(&s->arena, struct condition, 2);
    conditions[0] = (struct condition){.type = STR("Ready"), .status = STR("True")};
    conditions[1] =
        (struct condition){.type = STR("Broken"),
                           .status = str_from_c(status),
                           .last_transition_time = {true, SCENARIO_START_MS + since_ms}};
    struct node *node = scenario_object(s, KIND_NODE, "n1");
    node->status.conditions = (struct condition_list){conditions, 2};
    object_changed(s, KIND_NODE, "n1");
}

#define BROKEN_FOR(time)                                                                           \
    "\"quarantine\":\"" time "\",\"conditions\":[{\"type\":\"Broken\",\"status\":\"True\"}]"

/* A node may be of several flavors: for each it counts again after that one's quarantine. */
static void node_counts_again_for_each_flavor_in_its_time(void **state)
{
    struct scenario *s = *state;
    given_kind(s, "a", "a", BROKEN_FOR("20m"), "");
    given_kind(s, "b", "a", BROKEN_FOR("10m"), "");
    given_kind(s, "c", "b", BROKEN_FOR("5m"), "");
    given_node(s, "n1", "cpu=16 label=kind:a");
    given_queue(s, "qa", "flavor=a cpu=8");
    given_queue(s, "qb", "flavor=b cpu=8");
    scenario_start(s);
    at(s, 30 * MINUTE); /* a node that came just now may be ill without a quarantine */
    node_says(s, "True", 30 * MINUTE);
    given_job(s, "for-a", "qa", "pods=1 cpu=1");
    given_job(s, "for-b", "qb", "pods=1 cpu=1");
    expect_state(s, "for-a", "Pending NodesFull");
    node_says(s, "False", 30 * MINUTE);
    at(s, 40 * MINUTE - 1);
    expect_state(s, "for-b", "Pending NodesFull");
    at(s, 40 * MINUTE);
    expect_state(s, "for-b", "Admitted");
    expect_state(s, "for-a", "Pending NodesFull");
    at(s, 50 * MINUTE);
    expect_state(s, "for-a", "Admitted");
}

/* -- what a status tells at the start -----------------------------------------------------------
 */

/* At the start a flavor's status tells what ailed; of two that name a device the first read counts,
 * a name that is none is passed over, and a time that is to come is now. */
static void status_tells_what_ailed(void **state)
{
    struct scenario *s = *state;
    given_kind(s, "a", "a", "\"quarantine\":\"10m\"",
               ",\"status\":{\"devices\":[{\"name\":\"\"},{\"name\":\"" DEVICE
               "\",\"since\":\"2999-01-01T00:00:00Z\",\"wellSince\":\"2999-01-01T00:00:00Z\"},"
               "{\"name\":\"" DEVICE "\"}]}");
    given_world(s, "");
    given_queue(s, "q", "flavor=a gpu.example.com=8");
    given_job(s, "pair", "q", "pods=2 template=one");
    expect_state(s, "pair", "Pending DevicesUnhealthy");
    at(s, 10 * MINUTE - 1);
    expect_state(s, "pair", "Pending DevicesUnhealthy");
    at(s, 10 * MINUTE);
    expect_state(s, "pair", "Admitted");
}

/* -- what a pod is given ------------------------------------------------------------------------
 */

/* Two flavors of one gang tolerate the same taint: its pods are given the toleration once. */
static void toleration_of_two_flavors_is_added_once(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "cpus", "toleration=shared");
    given_flavor(s, "cards", "toleration=shared toleration=cards");
    given_node(s, "n1", "cpu=16 example.com/card=4 taint=shared:NoSchedule");
    given_queue(s, "q", "flavor=cpus cpu=8 group=new flavor=cards example.com/card=4");
    given_job(s, "gang", "q", "pods=1 cpu=1 example.com/card=1");
    expect_state(s, "gang", "Admitted");
    const struct toleration_list *list =
        &scenario_job(s, "gang")->spec.pod_template.spec.tolerations;
    assert_int_equal(list->count, 2);
    check_str(list->items[0].key, "shared");
    check_str(list->items[1].key, "cards");
}

/* They are one only if they say the same in every field. */
static void tolerations_that_differ_are_all_added(void **state)
{
    struct scenario *s = *state;
    given_json(
        s, KIND_RESOURCE_FLAVOR,
        "{\"metadata\":{\"name\":\"cards\"},\"spec\":{\"tolerations\":["
        "{\"key\":\"k\",\"operator\":\"Equal\",\"effect\":\"PreferNoSchedule\"},"
        "{\"key\":\"k\",\"operator\":\"Equal\",\"value\":\"a\",\"effect\":\"NoExecute\"},"
        "{\"key\":\"k\",\"operator\":\"Equal\",\"value\":\"b\",\"effect\":\"NoSchedule\"},"
        "{\"key\":\"k\",\"operator\":\"Equal\",\"value\":\"a\",\"effect\":\"NoSchedule\"}]}}");
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "flavor=cards cpu=8");
    given_job_spec(s, "gang", "q", "pods=1",
                   "{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"main\",\"resources\":"
                   "{\"requests\":{\"cpu\":\"1\"}}}],\"tolerations\":["
                   "{\"key\":\"k\",\"operator\":\"Exists\",\"effect\":\"PreferNoSchedule\"},"
                   "{\"key\":\"k\",\"operator\":\"Equal\",\"value\":\"a\","
                   "\"effect\":\"NoSchedule\"}]}");
    expect_state(s, "gang", "Admitted");
    const struct toleration_list *list =
        &scenario_job(s, "gang")->spec.pod_template.spec.tolerations;
    assert_int_equal(list->count, 5);
    check_str(list->items[0].op, "Exists");
    check_str(list->items[1].effect, "NoSchedule");
    check_str(list->items[2].op, "Equal");
    check_str(list->items[3].effect, "NoExecute");
    check_str(list->items[4].value, "b");
}

/* A condition of the kubelet's own that a node doesn't write is False; one of others is unknown. */
static void condition_that_is_not_written_is_false(void **state)
{
    (void)state;
    const char *types[] = {"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable",
                           "GpuHealthy"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct scenario *s = scenario_new();
        char health[200];
        snprintf(health, sizeof(health), "\"conditions\":[{\"type\":\"%s\",\"status\":\"False\"}]",
                 types[i]);
        given_kind(s, "a", "a", health, "");
        given_node(s, "n1", "cpu=16 label=kind:a");
        given_queue(s, "q", "flavor=a cpu=8");
        given_job(s, "gang", "q", "pods=1 cpu=1");
        expect_state(s, "gang", i < 4 ? "Pending NodesFull" : "Admitted");
        scenario_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(first_flavor_with_rules_keeps_the_device),
        scenario_test(without_rules_the_first_flavor_keeps_it),
        scenario_test(longest_quarantine_counts),
        scenario_test(node_counts_again_for_each_flavor_in_its_time),
        scenario_test(status_tells_what_ailed),
        cmocka_unit_test(condition_that_is_not_written_is_false),
        scenario_test(toleration_of_two_flavors_is_added_once),
        scenario_test(tolerations_that_differ_are_all_added),
    };
    return cmocka_run_group_tests_name("carriers", tests, NULL, NULL);
}
