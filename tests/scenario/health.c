/* Nodes that a flavor's rules call unhealthy: out while that lasts and for the quarantine after. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

static void given_rules(struct scenario *s, const char *health)
{
    char json[512];
    snprintf(json, sizeof(json), "{\"metadata\":{\"name\":\"gpu\"},\"spec\":{\"health\":{%s}}}",
             health);
    given_json(s, KIND_RESOURCE_FLAVOR, json);
}

#define GPU_HEALTHY "\"conditions\":[{\"type\":\"GpuHealthy\",\"status\":\"False\"}]"

/* The node has said so since then (since the scenario's start). */
static void node_says(struct scenario *s, const char *name, const char *status, int64_t since_ms)
{
    struct condition *conditions = ARENA_ARRAY(&s->arena, struct condition, 2);
    conditions[0] = (struct condition){.type = STR("Ready"), .status = STR("True")};
    conditions[1] =
        (struct condition){.type = STR("GpuHealthy"),
                           .status = str_from_c(status),
                           .last_transition_time = {true, SCENARIO_START_MS + since_ms}};
    struct node *node = scenario_object(s, KIND_NODE, name);
    node->status.conditions = (struct condition_list){conditions, 2};
    object_changed(s, KIND_NODE, name);
}

static void given_two_nodes(struct scenario *s, const char *health)
{
    given_node(s, "n1", "cpu=4 example.com/gpu=2");
    given_node(s, "n2", "cpu=4 example.com/gpu=2");
    given_rules(s, health);
    given_queue(s, "q", "flavor=gpu example.com/gpu=8");
    scenario_start(s);
    at(s, 3600000); /* the nodes have been there for an hour */
}

/* A node is out while it has a condition that its flavor lists; another flavor's nodes aren't. */
static void listed_condition_puts_the_node_out(void **state)
{
    struct scenario *s = *state;
    given_two_nodes(s, GPU_HEALTHY);
    node_says(s, "n2", "False", 3600000);
    given_job(s, "a", "q", "pods=4 example.com/gpu=1");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    expect_message(s, "a",
                   "needs 4 example.com/gpu at once, 2 of 2 are free; with 2 that are out "
                   "for health reasons it could start: node n2 (unhealthy (GpuHealthy is "
                   "False))");
    node_says(s, "n2", "Unknown", 3610000);
    expect_state(s, "a", "Admitted");
}

/* It counts again when the condition has been good for the quarantine, and at that moment exactly
 * those wake that it has room for. */
static void node_counts_again_after_the_quarantine(void **state)
{
    struct scenario *s = *state;
    given_two_nodes(s, GPU_HEALTHY ",\"quarantine\":\"10m\"");
    node_says(s, "n2", "False", 3600000);
    given_job(s, "a", "q", "pods=4 example.com/gpu=1");
    given_job(s, "huge", "q", "pods=6 example.com/gpu=1");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 4000000);
    node_says(s, "n2", "True", 3960000);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 3960000 + 599000);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 3960000 + 600000);
    expect_state(s, "a", "Admitted");
}

/* `promised` may have to go there, since `loose` may take one of its other places: `beside`, which
 * may not use the node itself, waits for it all the same. */
static void node_of_others_that_counts_again_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "e1", "cpu=2 label=zone:east");
    given_node(s, "e2", "cpu=1 label=zone:east");
    given_node(s, "w1", "cpu=2 label=zone:west");
    given_rules(s, GPU_HEALTHY ",\"quarantine\":\"5m\"");
    given_queue(s, "q", "flavor=gpu cpu=64");
    scenario_start(s);
    at(s, 3600000);
    given_job(s, "promised", "q", "pods=2 cpu=1 selector=zone:east");
    given_job(s, "loose", "q", "pods=1 cpu=1");
    expect_state(s, "loose", "Admitted");
    node_says(s, "e2", "False", 3600000);
    node_says(s, "e2", "True", 3600000);
    given_job(s, "beside", "q", "pods=1 cpu=1 selector=zone:west");
    expect_state(s, "beside", "Pending ReservedForOther");
    at(s, 3600000 + 300000);
    expect_state(s, "beside", "Admitted");
}

/* The condition itself says since when it is good, so a restart neither shortens nor renews the
 * quarantine. */
static void restart_changes_no_quarantine(void **state)
{
    struct scenario *s = *state;
    given_two_nodes(s, GPU_HEALTHY ",\"quarantine\":\"10m\"");
    node_says(s, "n2", "False", 3600000);
    given_job(s, "a", "q", "pods=4 example.com/gpu=1");
    at(s, 3700000);
    node_says(s, "n2", "True", 3700000);
    at(s, 3900000);
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 3700000 + 599000);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    restart(s, WITH_ADMISSIONS);
    at(s, 3700000 + 600000);
    expect_state(s, "a", "Admitted");
}

/* A node that has just come up says all for the first time: that is no recovery. */
static void new_node_needs_no_quarantine(void **state)
{
    struct scenario *s = *state;
    given_two_nodes(s, GPU_HEALTHY ",\"quarantine\":\"10m\"");
    given_job(s, "a", "q", "pods=6 example.com/gpu=1");
    given_node(s, "n3", "cpu=4 example.com/gpu=2 ready=False");
    at(s, 3620000);
    node_says(s, "n3", "True", 3620000);
    expect_state(s, "a", "Admitted");
}

/* One that falls ill in its first minutes is no exception. */
static void young_node_that_was_ill_is_in_quarantine(void **state)
{
    struct scenario *s = *state;
    given_two_nodes(s, GPU_HEALTHY ",\"quarantine\":\"10m\"");
    given_node(s, "n3", "cpu=4 example.com/gpu=2");
    node_says(s, "n3", "False", 3610000);
    given_job(s, "a", "q", "pods=6 example.com/gpu=1");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 3620000);
    node_says(s, "n3", "True", 3620000);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 4220000);
    expect_state(s, "a", "Admitted");
}

/* Under a gang that runs there: it stops whole, once, and starts again elsewhere. */
static void listed_condition_stops_the_gang_there(void **state)
{
    struct scenario *s = *state;
    given_two_nodes(s, GPU_HEALTHY ",\"quarantine\":\"10m\"");
    given_job(s, "a", "q", "pods=2 example.com/gpu=1");
    gang_starts(s, "a", "n1 n1");
    expect_state(s, "a", "Running");
    trace_forget(s);
    node_says(s, "n1", "False", 3600000);
    expect_state(s, "a", "Suspending WaitingForTermination");
    assert_non_null(strstr(trace_text(s), "a ! Warning NodeUnhealthy: node n1 has condition "
                                          "GpuHealthy=False, which ResourceFlavor gpu lists as "
                                          "unhealthy"));
    gang_stops(s, "a");
    expect_state(s, "a", "Admitted");
    gang_starts(s, "a", "n2 n2");
    expect_state(s, "a", "Running");
}

static const struct node_selector *required(struct scenario *s, const char *job)
{
    const struct affinity *affinity = scenario_job(s, job)->spec.pod_template.spec.affinity;
    return affinity == NULL || affinity->node_affinity == NULL ? NULL
                                                               : affinity->node_affinity->required;
}

/* kube-scheduler has nothing against a node that only a flavor calls unhealthy, so the PATCH that
 * admits keeps the pods off it; what it has put in is taken out again. */
static void pods_are_kept_off_unhealthy_nodes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n3", "cpu=4 example.com/gpu=2");
    given_node(s, "n4", "cpu=4 example.com/gpu=2");
    given_two_nodes(s, GPU_HEALTHY ",\"quarantine\":\"10m\"");
    node_says(s, "n2", "False", 3600000);
    node_says(s, "n4", "True", 3600000 - 30000); /* good, and not for long enough */
    given_job(s, "a", "q", "pods=2 example.com/gpu=1");
    expect_state(s, "a", "Admitted");
    const struct node_selector *selector = required(s, "a");
    assert_non_null(selector);
    check_i64(selector->node_selector_terms.count, 1);
    const struct match_expression *expression =
        &selector->node_selector_terms.items[0].match_expressions.items[0];
    check_str(expression->key, "kubernetes.io/hostname");
    check_str(expression->op, "NotIn");
    check_i64(expression->values.count, 2);
    check_str(expression->values.items[0], "n2");
    check_str(expression->values.items[1], "n4");
    restart(s, WITH_ADMISSIONS);
    gang_starts(s, "a", "n1 n1");
    node_says(s, "n1", "False", 3600000);
    expect_state(s, "a", "Suspending WaitingForTermination");
    gang_stops(s, "a");
    expect_state(s, "a", "Admitted"); /* on n3 now */
    selector = required(s, "a");
    check_i64(selector->node_selector_terms.items[0].match_expressions.items[0].values.count, 3);
    node_says(s, "n2", "True", 3600000 - 660000);
    node_says(s, "n1", "True", 3600000 - 660000);
    node_says(s, "n4", "True", 3600000 - 660000);
    writes_are_manual(s, true);
    job_suspended_by_user(s, "a", true);
    write_ok(s, "a", true);
    assert_null(scenario_job(s, "a")->spec.pod_template.spec.affinity);
}

/* The user's own alternatives stay, each with that addition, and come back as they were. */
static void required_affinity_of_the_user_is_kept(void **state)
{
    struct scenario *s = *state;
    given_two_nodes(s, GPU_HEALTHY);
    node_says(s, "n2", "False", 3600000);
    given_job_spec(s, "a", "q", "pods=2",
                   "{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"
                   "\"example.com/gpu\":\"1\"}}}],\"affinity\":{\"nodeAffinity\":{"
                   "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":["
                   "{\"matchExpressions\":[{\"key\":\"kubernetes.io/hostname\",\"operator\":"
                   "\"Exists\"}]},{\"matchExpressions\":[{\"key\":\"never\",\"operator\":"
                   "\"Exists\"}]}]}}}}");
    expect_state(s, "a", "Admitted");
    const struct node_selector *selector = required(s, "a");
    check_i64(selector->node_selector_terms.count, 2);
    check_i64(selector->node_selector_terms.items[0].match_expressions.count, 2);
    check_i64(selector->node_selector_terms.items[1].match_expressions.count, 2);
    writes_are_manual(s, true);
    job_suspended_by_user(s, "a", true);
    write_ok(s, "a", true);
    selector = required(s, "a");
    check_i64(selector->node_selector_terms.count, 2);
    check_i64(selector->node_selector_terms.items[0].match_expressions.count, 1);
    check_str(selector->node_selector_terms.items[1].match_expressions.items[0].key, "never");
}

/* A rule that comes later is in force at once. */
static void rule_that_is_added_is_in_force_at_once(void **state)
{
    struct scenario *s = *state;
    given_two_nodes(s, "");
    given_job(s, "a", "q", "pods=2 example.com/gpu=1");
    gang_starts(s, "a", "n1 n1");
    node_says(s, "n1", "False", 3600000);
    expect_state(s, "a", "Running");
    given_rules(s, GPU_HEALTHY);
    expect_state(s, "a", "Suspending WaitingForTermination");
}

/* The kubelet's own conditions stand at False on every healthy node, and are as good as unsaid. */
static void pressure_is_a_condition_like_others(void **state)
{
    struct scenario *s = *state;
    given_two_nodes(s, "\"conditions\":[{\"type\":\"DiskPressure\",\"status\":\"True\"}]");
    struct condition *conditions = ARENA_ARRAY(&s->arena, struct condition, 2);
    conditions[0] = (struct condition){.type = STR("Ready"), .status = STR("True")};
    conditions[1] = (struct condition){.type = STR("DiskPressure"), .status = STR("False")};
    struct node *node = scenario_object(s, KIND_NODE, "n2");
    node->status.conditions = (struct condition_list){conditions, 2};
    object_changed(s, KIND_NODE, "n2");
    given_job(s, "a", "q", "pods=4 example.com/gpu=1");
    expect_state(s, "a", "Admitted");
    conditions[1].status = STR("True");
    object_changed(s, KIND_NODE, "n2");
    given_job(s, "b", "q", "pods=3 example.com/gpu=1");
    job_deleted_now(s, "a");
    expect_state(s, "b", "Pending DevicesUnhealthy");
}

/* A clock that is ahead can't keep a node in quarantine for longer than one, from when it was seen.
 */
static void condition_of_a_time_to_come_counts_from_when_it_is_seen(void **state)
{
    struct scenario *s = *state;
    given_two_nodes(s, GPU_HEALTHY ",\"quarantine\":\"10m\"");
    node_says(s, "n2", "False", 3600000);
    node_says(s, "n2", "True", 3600000 + 86400000);
    given_job(s, "a", "q", "pods=4 example.com/gpu=1");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 3600000 + 300000);
    object_changed(s, KIND_NODE, "n2");
    at(s, 3600000 + 599000);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    at(s, 3600000 + 600000);
    expect_state(s, "a", "Admitted");
}

/* A node of three flavors' that is well again counts for each when that one's quarantine is over,
 * in whatever order the flavors were made. */
static void each_flavor_has_its_own_quarantine(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    static const char *const names[] = {"b", "a", "c"};
    static const int minutes[] = {20, 10, 30};
    for (int i = 0; i < 3; i++) {
        char json[300];
        snprintf(json, sizeof(json),
                 "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"health\":{" GPU_HEALTHY
                 ",\"quarantine\":\"%dm\"}}}",
                 names[i], minutes[i]);
        given_json(s, KIND_RESOURCE_FLAVOR, json);
        snprintf(json, sizeof(json), "flavor=%s cpu=8", names[i]);
        given_queue(s, names[i], json);
    }
    scenario_start(s);
    at(s, 3600000);
    node_says(s, "n1", "False", 3600000);
    node_says(s, "n1", "True", 3600000);
    for (int i = 0; i < 3; i++) {
        given_job(s, names[i], names[i], "pods=1 cpu=1");
    }
    static const int64_t order[] = {1, 0, 2};
    for (int i = 0; i < 3; i++) {
        const char *name = names[order[i]];
        at(s, 3600000 + minutes[order[i]] * 60000 - 1000);
        expect_state(s, name, "Pending NodesFull");
        at(s, 3600000 + minutes[order[i]] * 60000);
        expect_state(s, name, "Admitted");
        gang_starts(s, name, "n1");
    }
}

/* Two devices of the node, of these boards. */
static void given_boards(struct scenario *s, const char *node, int first, int second)
{
    char json[768];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"driver\":\"gpu.example.com\","
             "\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s\",\"generation\":1,"
             "\"resourceSliceCount\":1},\"devices\":["
             "{\"name\":\"g0\",\"attributes\":{\"board\":{\"int\":%d}}},"
             "{\"name\":\"g1\",\"attributes\":{\"board\":{\"int\":%d}}}]}}",
             node, node, node, first, second);
    given_json(s, KIND_RESOURCE_SLICE, json);
}

/* The devices of a pod have to be of one board. That a node which is out for its health has such a
 * pair is told; one that is out for other reasons, and one whose devices are of two boards, don't
 * count. */
static void sick_node_that_alone_has_a_pair_is_told(void **state)
{
    struct scenario *s = *state;
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               "{\"metadata\":{\"name\":\"paired\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":["
               "{\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"gpu.example.com\",\"count\":2}}"
               "],\"constraints\":[{\"matchAttribute\":\"gpu.example.com/board\"}]}}}}");
    given_queue(s, "q", "gpu.example.com=8");
    given_node(s, "kept", "cpu=4 taint=mine:NoSchedule");
    given_node(s, "odd", "cpu=4");
    given_node(s, "sick", "cpu=4 ready=False");
    given_boards(s, "kept", 1, 1);
    given_boards(s, "odd", 1, 2);
    given_boards(s, "sick", 1, 1);
    given_job(s, "gang", "q", "pods=1 template=paired");
    expect_state(s, "gang", "Pending DevicesUnhealthy");
    expect_message(s, "gang",
                   "the free devices are enough for 0 of 1 pods with ResourceClaimTemplate "
                   "ml/paired; with what is out for health reasons it could start: node sick");
    given_job(s, "two", "q", "pods=2 template=paired");
    expect_state(s, "two", "Pending NeverFits");
}

/* A pod that wants two devices of one node: the one that is out has them. */
static void node_that_is_out_may_be_the_only_one_large_enough(void **state)
{
    struct scenario *s = *state;
    given_two_nodes(s, GPU_HEALTHY);
    node_says(s, "n2", "False", 3600000);
    given_job(s, "small", "q", "pods=1 example.com/gpu=1");
    gang_starts(s, "small", "n1");
    given_job(s, "a", "q", "pods=1 example.com/gpu=2");
    expect_state(s, "a", "Pending DevicesUnhealthy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(listed_condition_puts_the_node_out),
        scenario_test(node_counts_again_after_the_quarantine),
        scenario_test(node_of_others_that_counts_again_wakes),
        scenario_test(restart_changes_no_quarantine),
        scenario_test(new_node_needs_no_quarantine),
        scenario_test(young_node_that_was_ill_is_in_quarantine),
        scenario_test(listed_condition_stops_the_gang_there),
        scenario_test(pods_are_kept_off_unhealthy_nodes),
        scenario_test(required_affinity_of_the_user_is_kept),
        scenario_test(rule_that_is_added_is_in_force_at_once),
        scenario_test(pressure_is_a_condition_like_others),
        scenario_test(condition_of_a_time_to_come_counts_from_when_it_is_seen),
        scenario_test(each_flavor_has_its_own_quarantine),
        scenario_test(sick_node_that_alone_has_a_pair_is_told),
        scenario_test(node_that_is_out_may_be_the_only_one_large_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
