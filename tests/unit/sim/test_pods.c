/* What the virtual API server makes of a pod before it is stored: what LimitRanges, RuntimeClasses
 * and PriorityClasses give it. The rules are those of the admission plugins limitranger,
 * runtimeclass and priority. */
#include "fixture.h"

static struct cluster *cluster_of(const char *yaml)
{
    struct cluster *cluster = cluster_new((struct sim_options){.has_tallyman = false});
    given(cluster, yaml);
    (void)sim_run_until(cluster->sim, 1000);
    return cluster;
}

static const struct pod_spec *pod_of(const struct cluster *cluster, const char *name)
{
    const struct pod *pod = sim_find(cluster->sim, KIND_POD, STR("ml"), str_from_c(name));
    assert_non_null(pod);
    return &pod->spec;
}

/* "cpu=1 memory=2Gi", in the list's order. */
static void check_amounts(struct cluster *cluster, const struct resource_list *list,
                          const char *expected)
{
    struct text text;
    text_init(&text, &cluster->arena, 4096);
    for (uint32_t i = 0; i < list->count; i++) {
        text_addf(&text, "%s" STR_FMT "=" STR_FMT, i > 0 ? " " : "", STR_ARG(list->items[i].name),
                  STR_ARG(list->items[i].text));
    }
    check_str(text_str(&text), expected);
}

#define POD(name, container)                                                                       \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " name ", namespace: ml}\n"                       \
    "spec: {containers: [{name: c" container "}]}\n---\n"

static void limit_range_fills_what_a_container_leaves_out(void **state)
{
    (void)state;
    struct cluster *cluster =
        cluster_of("apiVersion: v1\nkind: LimitRange\nmetadata: {name: a, namespace: other}\n"
                   "spec: {limits: [{type: Container, default: {example.com/x: '9'}}]}\n---\n"
                   "apiVersion: v1\nkind: LimitRange\nmetadata: {name: b, namespace: ml}\n"
                   "spec:\n  limits:\n  - {type: Pod, max: {example.com/y: '9'}}\n"
                   "  - {type: Container, default: {cpu: '4'}, defaultRequest: {cpu: '1'}, "
                   "max: {memory: 2Gi}, min: {ephemeral-storage: 1Gi}}\n---\n" POD("silent", "")
                       POD("limited", ", resources: {limits: {cpu: '3'}}")
                           POD("told", ", resources: {requests: {cpu: '2', memory: 1Gi}}"));
    const struct resource_requirements *got =
        &pod_of(cluster, "silent")->containers.items[0].resources;
    check_amounts(cluster, &got->limits, "cpu=4 memory=2Gi");
    check_amounts(cluster, &got->requests, "cpu=1 memory=2Gi ephemeral-storage=1Gi");
    got = &pod_of(cluster, "limited")->containers.items[0].resources;
    check_amounts(cluster, &got->limits, "cpu=3 memory=2Gi");
    check_amounts(cluster, &got->requests, "cpu=3 memory=2Gi ephemeral-storage=1Gi");
    got = &pod_of(cluster, "told")->containers.items[0].resources;
    check_amounts(cluster, &got->limits, "cpu=4 memory=2Gi");
    check_amounts(cluster, &got->requests, "cpu=2 memory=1Gi ephemeral-storage=1Gi");
    cluster_free(cluster);
}

#define RUNTIME_POD(name, class)                                                                   \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " name ", namespace: ml}\n"                       \
    "spec: {runtimeClassName: " class ", nodeSelector: {disk: ssd, zone: a}, "                     \
                                      "tolerations: [{key: own, operator: Exists}], containers: "  \
                                      "[{name: c}]}\n---\n"

static void runtime_class_gives_overhead_selector_and_tolerations(void **state)
{
    (void)state;
    struct cluster *cluster =
        cluster_of("apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: kata}\n"
                   "handler: kata\noverhead: {podFixed: {cpu: 250m}}\n"
                   "scheduling: {nodeSelector: {vm: 'yes'}, "
                   "tolerations: [{key: vm, operator: Exists}]}\n---\n"
                   "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: plain}\n"
                   "handler: runc\n---\n" RUNTIME_POD("boxed", "kata") RUNTIME_POD("bare", "plain")
                       RUNTIME_POD("odd", "unknown"));
    const struct pod_spec *boxed = pod_of(cluster, "boxed");
    check_amounts(cluster, &boxed->overhead, "cpu=250m");
    check_i64(boxed->node_selector.count, 3);
    check_str(string_map_get(&boxed->node_selector, "vm"), "yes");
    check_str(string_map_get(&boxed->node_selector, "zone"), "a");
    check_i64(boxed->tolerations.count, 2);
    check_str(boxed->tolerations.items[0].key, "own");
    check_str(boxed->tolerations.items[1].key, "vm");
    const char *const others[] = {"bare", "odd"};
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        const struct pod_spec *spec = pod_of(cluster, others[i]);
        check_i64(spec->overhead.count, 0);
        check_i64(spec->node_selector.count, 2);
        check_i64(spec->tolerations.count, 1);
    }
    cluster_free(cluster);
}

#define PRIORITY(name, value, more)                                                                \
    "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: " name "}\n"          \
    "value: " value "\n" more "---\n"
#define PRIORITY_POD(name, spec)                                                                   \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " name ", namespace: ml}\n"                       \
    "spec: {" spec "containers: [{name: c}]}\n---\n"

/* Of several global defaults the lowest holds: the plugin's own rule. */
static void priority_is_the_named_class_s_or_the_lowest_default(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_of(
        PRIORITY("a", "30", "globalDefault: true\n") PRIORITY("b", "20", "globalDefault: true\n")
            PRIORITY("c", "40", "globalDefault: true\n")
                PRIORITY("d", "5", "globalDefault: false\n") PRIORITY("e", "7", "")
                    PRIORITY_POD("nameless", "") PRIORITY_POD("named", "priorityClassName: e, ")
                        PRIORITY_POD("resolved", "priority: 3, priorityClassName: e, "));
    check_i64(pod_of(cluster, "nameless")->priority.value, 20);
    check_i64(pod_of(cluster, "named")->priority.value, 7);
    check_i64(pod_of(cluster, "resolved")->priority.value, 3);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limit_range_fills_what_a_container_leaves_out),
        cmocka_unit_test(runtime_class_gives_overhead_selector_and_tolerations),
        cmocka_unit_test(priority_is_the_named_class_s_or_the_lowest_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
