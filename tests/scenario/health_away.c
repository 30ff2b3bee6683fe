/* What is written to keep pods off unhealthy nodes beside every form of affinity that a user may
 * have written, which nodes count as such, and how what keeps a gang off its nodes is named. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#define HOUR_MS 3600000

static void node_is_ill(struct scenario *s, const char *name)
{
    struct condition *conditions = ARENA_ARRAY(&s->arena, struct condition, 2);
    conditions[0] = (struct condition){.type = STR("Ready"), .status = STR("True")};
    conditions[1] = (struct condition){.type = STR("GpuHealthy"),
                                       .status = STR("False"),
                                       .last_transition_time = {true, SCENARIO_START_MS + HOUR_MS}};
    struct node *node = scenario_object(s, KIND_NODE, name);
    node->status.conditions = (struct condition_list){conditions, 2};
    object_changed(s, KIND_NODE, name);
}

/* Four nodes of the flavor `a`, of which the second is ill, as is a node of another flavor, and one
 * that has no hostname. */
static void given_ill_nodes(struct scenario *s)
{
    given_json(s, KIND_RESOURCE_FLAVOR,
               "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"nodeLabels\":{\"kind\":\"a\"},"
               "\"health\":{\"conditions\":[{\"type\":\"GpuHealthy\",\"status\":\"False\"}]}}}");
    given_flavor(s, "b", "label=kind:b");
    given_node(s, "n1", "cpu=4 label=kind:a");
    given_node(s, "n2", "cpu=4 label=kind:a");
    given_node(s, "n3", "cpu=4 label=kind:b");
    given_node(s, "n4", "cpu=4 label=kind:a");
    struct node *nameless = scenario_object(s, KIND_NODE, "n4");
    struct string_pair *kind = ARENA_NEW(&s->arena, struct string_pair);
    *kind = (struct string_pair){STR("kind"), STR("a")};
    nameless->meta.labels = (struct string_map){kind, 1};
    object_changed(s, KIND_NODE, "n4");
    given_queue(s, "q", "flavor=a cpu=64 flavor=b cpu=1");
    scenario_start(s);
    at(s, HOUR_MS);
    node_is_ill(s, "n2");
    node_is_ill(s, "n3");
    node_is_ill(s, "n4");
}

static const struct node_affinity *node_affinity_of(struct scenario *s, const char *job)
{
    const struct affinity *affinity = scenario_job(s, job)->spec.pod_template.spec.affinity;
    return affinity == NULL ? NULL : affinity->node_affinity;
}

/* Admits a gang whose template has this affinity, and says which terms it then has. */
static const struct node_selector_term_list *admitted_with(struct scenario *s, const char *job,
                                                           const char *affinity)
{
    char spec[1024];
    (void)snprintf(
        spec, sizeof(spec),
        "{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}],"
        "\"affinity\":%s}",
        affinity);
    given_job_spec(s, job, "q", "pods=2", spec);
    expect_state(s, job, "Admitted");
    const struct node_affinity *with = node_affinity_of(s, job);
    return with == NULL || with->required == NULL ? NULL : &with->required->node_selector_terms;
}

static void expect_only_n2_avoided(const struct node_selector_term *term)
{
    const struct match_expression *last =
        &term->match_expressions.items[term->match_expressions.count - 1];
    check_str(last->key, "kubernetes.io/hostname");
    check_str(last->op, "NotIn");
    check_i64(last->values.count, 1);
    check_str(last->values.items[0], "n2");
}

static void stopped(struct scenario *s, const char *job)
{
    gang_starts(s, job, "n1 n1");
    job_suspended_by_user(s, job, true);
    gang_stops(s, job);
}

#define PREFERRED                                                                                  \
    "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":1,\"preference\":{"          \
    "\"matchExpressions\":[{\"key\":\"kind\",\"operator\":\"Exists\"}]}}]"
#define REQUIRED(terms)                                                                            \
    "{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"                      \
    "\"nodeSelectorTerms\":[" terms "]}}}"

/* Whatever the user had, what was added goes again, and nothing else. Only nodes that the flavor
 * has, and that a hostname tells apart, are named. */
static void what_is_added_goes_again_whatever_was_there(void **state)
{
    struct scenario *s = *state;
    given_ill_nodes(s);
    const struct node_selector_term_list *terms = admitted_with(s, "pods", "{\"podAffinity\":{}}");
    assert_non_null(terms);
    expect_only_n2_avoided(&terms->items[0]);
    stopped(s, "pods");
    assert_non_null(scenario_job(s, "pods")->spec.pod_template.spec.affinity);
    assert_null(node_affinity_of(s, "pods"));

    terms = admitted_with(s, "prefers", "{\"nodeAffinity\":{" PREFERRED "}}");
    assert_non_null(terms);
    expect_only_n2_avoided(&terms->items[0]);
    stopped(s, "prefers");
    assert_non_null(node_affinity_of(s, "prefers"));
    assert_null(node_affinity_of(s, "prefers")->required);
}

/* An alternative without a condition matches no node: with one more it would match nearly all, so
 * it stays out. One that asks for fields is kept. */
static void alternative_that_matches_nothing_is_not_made_to_match(void **state)
{
    struct scenario *s = *state;
    given_ill_nodes(s);
    const struct node_selector_term_list *terms = admitted_with(
        s, "a",
        REQUIRED("{},{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":["
                 "\"n1\"]}]},{\"matchExpressions\":[{\"key\":\"kind\",\"operator\":\"Exists\"}]}"));
    assert_non_null(terms);
    check_i64(terms->count, 2);
    check_i64(terms->items[0].match_fields.count, 1);
    expect_only_n2_avoided(&terms->items[0]);
    expect_only_n2_avoided(&terms->items[1]);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Admitted");
    stopped(s, "a");
    check_i64(node_affinity_of(s, "a")->required->node_selector_terms.count, 3);
}

/* Three are named, and that there are more; the same taint on two nodes once. */
static void what_keeps_a_gang_off_is_named_once_and_three_at_most(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "default", "");
    given_node(s, "n1", "cpu=4 taint=red:NoSchedule");
    given_node(s, "n2", "cpu=4 taint=red:NoSchedule");
    given_node(s, "n3", "cpu=4 taint=blue:NoSchedule");
    given_queue(s, "q", "cpu=64");
    given_job(s, "a", "q", "pods=2 cpu=1");
    expect_message(s, "a", "(red, blue)");
    given_node(s, "n4", "cpu=4 taint=green:NoSchedule");
    given_node(s, "n5", "cpu=4 taint=white:NoSchedule");
    given_node(s, "n6", "cpu=4 taint=black:NoSchedule");
    given_job(s, "b", "q", "pods=3 cpu=1");
    expect_message(s, "b", "(6 nodes: 6 tainted (red, blue, green, …))");
}

/* Which hosts the PATCH that is out keeps the pods of that set of gang `a` off. */
static void expect_avoided(struct scenario *s, const char *set, uint32_t hosts)
{
    struct decided_list list = core_decisions(scenario_core(s), &s->arena);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].decision, DECISION_ADMIT);
    for (uint32_t i = 0; i < list.items[0].pod_set_count; i++) {
        const struct decided_pod_set *found = &list.items[0].pod_sets[i];
        if (str_eq_c(found->name, set)) {
            assert_int_equal(found->avoided.count, hosts);
            return;
        }
    }
    fail_msg("there is no set %s", set);
}

/* While the PATCH is on its way, the Job's second set has become another one: of the old one's pods
 * nothing is known any more. */
static void a_set_that_is_another_by_now_is_kept_off_nothing(void **state)
{
    struct scenario *s = *state;
    given_ill_nodes(s);
    writes_are_manual(s, true);
    given_pod_set(s, "a", "worker", "pods=2 cpu=1");
    given_job(s, "a", "q", "pods=1 cpu=1");
    assert_true(write_is_out(s, "a"));
    expect_avoided(s, "main", 1);
    expect_avoided(s, "worker", 1);
    extra_set_find(s, STR("a"), STR("worker"))->name = STR("helper");
    object_changed(s, KIND_JOB, "a");
    assert_true(write_is_out(s, "a"));
    expect_avoided(s, "main", 1);
    expect_avoided(s, "worker", 0);
    write_conflict(s, "a");
    write_ok(s, "a", true);
    expect_state(s, "a", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(what_is_added_goes_again_whatever_was_there),
        scenario_test(alternative_that_matches_nothing_is_not_made_to_match),
        scenario_test(what_keeps_a_gang_off_is_named_once_and_three_at_most),
        scenario_test(a_set_that_is_another_by_now_is_kept_off_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
