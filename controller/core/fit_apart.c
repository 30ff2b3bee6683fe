/* fit_apart.c - pods that keep others off their node: required podAntiAffinity of pods that are
 * there already works in both directions.
 *
 * What labels a gang's pods will have is known by its template; labels that differ between the
 * gangs of one shape, and those that the Job's controller adds, may be anything here, so that a
 * node is rather left out than counted wrongly. */
#include "internal.h"

#include <assert.h>

#include "tallyman/base/alloc.h"

static bool is_added_by_controller(struct str key)
{
    return str_starts_with(key, STR("batch.kubernetes.io/")) || str_eq_c(key, "job-name") ||
           str_eq_c(key, "controller-uid");
}

static bool are_labels_equal(const struct string_map *a, const struct string_map *b)
{
    for (uint32_t i = 0; i < a->count; i++) {
        struct str key = a->items[i].key;
        if (!is_added_by_controller(key) && !str_eq(string_map_find(b, key), a->items[i].value)) {
            return false;
        }
    }
    return true;
}

void pod_set_meet_labels(struct pod_set *set, const struct string_map *labels)
{
    if (set->labels == NULL) {
        struct pod only = {.meta = {.labels = *labels}};
        set->labels = object_clone(kind_info(KIND_POD)->schema, &only);
        return;
    }
    const struct string_map *known = &set->labels->meta.labels;
    bool is_other = !are_labels_equal(known, labels) || !are_labels_equal(labels, known);
    if (is_other && !set->labels_vary) {
        set->labels_vary = true;
        mem_free(set->ever); /* it may not keep its own pods apart any more */
        set->ever = NULL;
    }
}

void pod_read_apart(struct core *core, struct pod_state *pod, const struct pod *object)
{
    core->apart_pods -= pod->apart != NULL ? 1 : 0;
    mem_free(pod->apart);
    pod->apart = NULL;
    const struct affinity *affinity = object->spec.affinity;
    if (affinity != NULL && affinity->pod_anti_affinity != NULL &&
        affinity->pod_anti_affinity->required.count > 0) {
        struct pod only = {.spec = {.affinity = object->spec.affinity}};
        pod->apart = object_clone(kind_info(KIND_POD)->schema, &only);
        core->apart_pods++;
    }
}

void pod_drop_apart(struct core *core, struct pod_state *pod)
{
    core->apart_pods -= pod->apart != NULL ? 1 : 0;
    mem_free(pod->apart);
    pod->apart = NULL;
}

/* Whether the selector may match a pod of the shape. */
static bool may_match(const struct label_selector *selector, const struct pod_set *set)
{
    if (selector == NULL) {
        return false;
    }
    assert(set->labels != NULL && "a gang's template has met its shape");
    if (set->labels_vary) {
        return true;
    }
    const struct string_map *labels = &set->labels->meta.labels;
    for (uint32_t i = 0; i < selector->match_labels.count; i++) {
        const struct string_pair *wanted = &selector->match_labels.items[i];
        if (!is_added_by_controller(wanted->key) &&
            !str_eq(string_map_find(labels, wanted->key), wanted->value)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < selector->match_expressions.count; i++) {
        struct match_expression *expression = &selector->match_expressions.items[i];
        struct label_selector one = {.match_expressions = {expression, 1}};
        if (!is_added_by_controller(expression->key) && !label_selector_matches(&one, labels)) {
            return false;
        }
    }
    return true;
}

static bool is_of_namespace(const struct pod_state *pod, struct str name)
{
    return pod->key.len > name.len && str_starts_with(pod->key, name) &&
           pod->key.ptr[name.len] == '/';
}

/* Whether the two nodes are one place for that topology key. */
static bool are_together(const struct node_state *a, const struct node_state *b, struct str key)
{
    struct str here = string_map_find(&a->object->meta.labels, key);
    return a == b ||
           (str_is_set(here) && str_eq(here, string_map_find(&b->object->meta.labels, key)));
}

static bool keeps_off(const struct pod_state *pod, const struct pod_set *set,
                      const struct node_state *there, const struct node_state *node)
{
    const struct pod_affinity *apart = pod->apart->spec.affinity->pod_anti_affinity;
    for (uint32_t i = 0; i < apart->required.count; i++) {
        const struct pod_affinity_term *term = &apart->required.items[i];
        bool names_namespaces = term->namespaces.count > 0 || term->namespace_selector != NULL;
        if ((names_namespaces || is_of_namespace(pod, set->shape->namespace_name)) &&
            may_match(term->label_selector, set) && are_together(there, node, term->topology_key)) {
            return true;
        }
    }
    return false;
}

bool node_is_kept_off(const struct core *core, const struct pod_set *set,
                      const struct node_state *node)
{
    if (core->apart_pods == 0) {
        return false;
    }
    struct node_tree *nodes = (struct node_tree *)(uintptr_t)&core->node_order;
    struct node_state *there;
    RB_FOREACH (there, node_tree, nodes) {
        if (there->object == NULL) {
            continue;
        }
        for (const struct pod_state *pod = there->pods; pod != NULL; pod = pod->next_on_node) {
            if (pod->apart != NULL && keeps_off(pod, set, there, node)) {
                return true;
            }
        }
    }
    return false;
}

/* -- what the gang's own pods need --------------------------------------------------------------
 */

static bool has_port(const struct pod_spec *spec, int64_t port)
{
    struct host_port_cursor cursor = {0};
    int64_t own = 0;
    while ((own = pod_next_host_port(spec, &cursor)) > 0) {
        if (port == 0 || own == port) {
            return true;
        }
    }
    return false;
}

bool pod_set_keeps_apart(const struct pod_set *set)
{
    const struct affinity *affinity = set->spec->affinity;
    return affinity != NULL && affinity->pod_anti_affinity != NULL &&
           affinity->pod_anti_affinity->required.count > 0;
}

bool pod_set_is_one_a_node(const struct pod_set *set)
{
    return pod_set_keeps_apart(set) || has_port(set->spec, 0);
}

int64_t node_slots_beside_others(const struct core *core, const struct pod_set *set,
                                 const struct node_state *node)
{
    if (node_is_kept_off(core, set, node)) {
        return 0;
    }
    bool is_apart = pod_set_keeps_apart(set);
    if (!pod_set_is_one_a_node(set)) {
        return INT64_MAX;
    }
    if (node->plan_epoch == core->plan_epoch && node->planned.count > 0) {
        return 0;
    }
    for (const struct pod_state *pod = node->pods; pod != NULL; pod = pod->next_on_node) {
        if (is_apart && is_of_namespace(pod, set->shape->namespace_name)) {
            return 0;
        }
        for (uint32_t i = 0; i < pod->host_port_count; i++) {
            if (has_port(set->spec, pod->host_ports[i])) {
                return 0;
            }
        }
    }
    return 1;
}
