/* flavor.c - the tables of ResourceFlavors and Cohorts. */
#include "ailment.h"
#include "preempt.h"

#include "tallyman/base/alloc.h"

#define FIND(table, key, found) HASH_FIND(hh, table, (key).ptr, (unsigned)(key).len, found)

struct flavor_state *flavor_find(const struct core *core, struct str name)
{
    struct flavor_state *flavor = NULL;
    if (str_is_set(name)) {
        FIND(core->flavors, name, flavor);
    }
    return flavor;
}

/* A flavor named `default` need not exist: it stands for every node then, so that a Queue is all
 * that a newcomer has to write. */
static const struct resource_flavor implicit_default = {
    .meta = {.name = STR_INIT(FLAVOR_DEFAULT)},
};

const struct resource_flavor *flavor_object(const struct core *core, struct str name)
{
    const struct flavor_state *flavor = flavor_find(core, name);
    if (flavor != NULL) {
        return flavor->object;
    }
    return str_eq_c(name, FLAVOR_DEFAULT) ? &implicit_default : NULL;
}

static void cohort_free(struct core *core, struct cohort_state *cohort)
{
    HASH_DEL(core->cohorts, cohort);
    quota_node_deinit(&cohort->node);
    str_drop(&cohort->name);
    mem_free(cohort->object);
    mem_free(cohort);
}

/* -- which pods may take it ------------------------------------------------------------------- */

static bool contradicts_selector(const struct string_map *selector, const struct string_map *labels)
{
    for (uint32_t i = 0; i < selector->count; i++) {
        struct str offered = string_map_find(labels, selector->items[i].key);
        if (str_is_set(offered) && !str_eq(offered, selector->items[i].value)) {
            return true;
        }
    }
    return false;
}

/* An expression alone, as a selector of its own. */
static bool expression_holds(const struct match_expression *expression,
                             const struct string_map *labels)
{
    struct match_expression one = *expression;
    struct node_selector_term term = {.match_expressions = {.items = &one, .count = 1}};
    struct node_selector selector = {.node_selector_terms = {.items = &term, .count = 1}};
    return node_selector_matches(&selector, labels, STR_NONE);
}

static bool contradicts_term(const struct node_selector_term *term, const struct string_map *labels)
{
    for (uint32_t i = 0; i < term->match_expressions.count; i++) {
        const struct match_expression *expression = &term->match_expressions.items[i];
        if (str_is_set(string_map_find(labels, expression->key)) &&
            !expression_holds(expression, labels)) {
            return true;
        }
    }
    return false;
}

/* The terms are alternatives: all of them have to contradict. */
static bool contradicts_affinity(const struct affinity *affinity, const struct string_map *labels)
{
    if (affinity == NULL || affinity->node_affinity == NULL ||
        affinity->node_affinity->required == NULL) {
        return false;
    }
    const struct node_selector_term_list *terms =
        &affinity->node_affinity->required->node_selector_terms;
    for (uint32_t i = 0; i < terms->count; i++) {
        if (!contradicts_term(&terms->items[i], labels)) {
            return false;
        }
    }
    return terms->count > 0;
}

const char *flavor_contradiction(const struct pod_set *set, const struct resource_flavor *flavor)
{
    const struct string_map *labels = &flavor->spec.node_labels;
    if (contradicts_selector(&set->node_selector, labels)) {
        return "nodeSelector";
    }
    return contradicts_affinity(set->spec->affinity, labels) ? "required node affinity" : NULL;
}

const struct taint *flavor_untolerated(const struct pod_set *set,
                                       const struct resource_flavor *flavor)
{
    for (uint32_t i = 0; i < flavor->spec.node_taints.count; i++) {
        const struct taint *taint = &flavor->spec.node_taints.items[i];
        struct taint_list one = {.items = (struct taint *)(uintptr_t)taint, .count = 1};
        if (taints_find_untolerated(&one, &set->tolerations) != NULL &&
            taints_find_untolerated(&one, &flavor->spec.tolerations) != NULL) {
            return taint;
        }
    }
    return NULL;
}

/* -- the table -------------------------------------------------------------------------------- */

static bool queue_lists_flavor(const struct queue_state *queue, struct str flavor)
{
    for (uint32_t i = 0; i < queue->node.cell_count; i++) {
        if (str_eq(queue->node.cells[i].flavor, flavor)) {
            return true;
        }
    }
    return false;
}

static void wake_flavor(struct core *core, struct str name)
{
    reaches_forget(core);
    wake_reserved(core); /* who is Reserved will be sent where it says by then */
    preempt_early_note_all(core);
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        if (queue_lists_flavor(queue, name)) {
            queue_touch(core, queue);
            wake_queue(core, queue, WAIT_ANY);
        }
    }
}

void flavor_apply(struct core *core, const struct resource_flavor *object)
{
    const struct schema *schema = kind_info(KIND_RESOURCE_FLAVOR)->schema;
    struct flavor_state *flavor = flavor_find(core, object->meta.name);
    struct resource_flavor slim = *object;
    slim.meta.annotations = (struct string_map){.items = NULL};
    slim.meta.labels = (struct string_map){.items = NULL};
    bool is_same = false;
    if (flavor == NULL) {
        flavor = MEM_NEW(struct flavor_state);
        flavor->name = str_own(object->meta.name);
        HASH_ADD_KEYPTR(hh, core->flavors, flavor->name.ptr, (unsigned)flavor->name.len, flavor);
    } else {
        struct resource_flavor a = slim;
        a.meta.resource_version = flavor->object->meta.resource_version;
        a.status = flavor->object->status;
        is_same = object_equal(schema, &a, flavor->object);
    }
    struct resource_flavor *old = flavor->object;
    flavor->object = object_clone(schema, &slim);
    mem_free(old);
    struct resource_flavor shown = {.meta.name = flavor->name, .status = object->status};
    status_write_shown(KIND_RESOURCE_FLAVOR, &shown, &flavor->status);
    if (!is_same) {
        flavor->status.is_dirty = true;
        nodes_plan_rest(core);
        ailments_rules_changed(core);
        wake_flavor(core, flavor->name);
    }
}

void flavor_deleted(struct core *core, const struct resource_flavor *object)
{
    struct flavor_state *flavor = flavor_find(core, object->meta.name);
    if (flavor == NULL) {
        return;
    }
    HASH_DEL(core->flavors, flavor);
    nodes_plan_rest(core);
    ailments_rules_changed(core);
    wake_flavor(core, flavor->name);
    str_drop(&flavor->name);
    mem_free(flavor->object);
    mem_free(flavor);
}

struct cohort_state *cohort_find(const struct core *core, struct str name)
{
    struct cohort_state *cohort = NULL;
    FIND(core->cohorts, name, cohort);
    return cohort;
}

struct cohort_state *cohort_get(struct core *core, struct str name)
{
    struct cohort_state *cohort = cohort_find(core, name);
    if (cohort == NULL) {
        cohort = MEM_NEW(struct cohort_state);
        cohort->name = str_own(name);
        quota_node_init(&cohort->node, cohort->name, NULL);
        HASH_ADD_KEYPTR(hh, core->cohorts, cohort->name.ptr, (unsigned)cohort->name.len, cohort);
    }
    return cohort;
}

void cohorts_make_implicit(struct core *core)
{
    struct cohort_state *cohort;
    struct cohort_state *next;
    HASH_ITER (hh, core->cohorts, cohort, next) {
        cohort->is_named = cohort->object != NULL;
    }
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        if (queue->object != NULL && !str_is_empty(queue->object->spec.cohort)) {
            cohort_get(core, queue->object->spec.cohort)->is_named = true;
        }
    }
    HASH_ITER (hh, core->cohorts, cohort, next) {
        if (cohort->object != NULL && !str_is_empty(cohort->object->spec.parent_name)) {
            cohort_get(core, cohort->object->spec.parent_name)->is_named = true;
        }
    }
    HASH_ITER (hh, core->cohorts, cohort, next) {
        if (!cohort->is_named) {
            cohort_free(core, cohort);
        }
    }
}

struct rc cohort_apply(struct core *core, const struct cohort *object, struct err *err)
{
    TRY(quota_check("Cohort", object->meta.name, &object->spec.resource_groups, err));
    const struct schema *schema = kind_info(KIND_COHORT)->schema;
    struct cohort_state *cohort = cohort_get(core, object->meta.name);
    struct cohort slim = *object;
    slim.meta.annotations = (struct string_map){.items = NULL};
    slim.meta.labels = (struct string_map){.items = NULL};
    bool is_same = false;
    if (cohort->object != NULL) {
        struct cohort a = slim;
        a.meta.resource_version = cohort->object->meta.resource_version;
        a.status = cohort->object->status;
        is_same = object_equal(schema, &a, cohort->object);
    }
    mem_free(cohort->object);
    cohort->object = object_clone(schema, &slim);
    struct cohort shown = {.meta.name = cohort->name, .status = object->status};
    status_write_shown(KIND_COHORT, &shown, &cohort->status);
    if (!is_same) {
        quota_node_read(core, &cohort->node, &cohort->object->spec.resource_groups);
        cohort->status.is_dirty = true;
        flavors_touch(core);
    }
    return RC_SUCCESS;
}

void cohort_deleted(struct core *core, const struct cohort *object)
{
    struct cohort_state *cohort = cohort_find(core, object->meta.name);
    if (cohort == NULL) {
        return;
    }
    /* Queues may still name it; the next relinking tells. */
    mem_free(cohort->object);
    cohort->object = NULL;
    quota_node_read(core, &cohort->node, NULL);
}

void flavors_free(struct core *core)
{
    struct flavor_state *flavor;
    struct flavor_state *next_flavor;
    HASH_ITER (hh, core->flavors, flavor, next_flavor) {
        flavor_deleted(core, flavor->object);
    }
    struct cohort_state *cohort;
    struct cohort_state *next_cohort;
    HASH_ITER (hh, core->cohorts, cohort, next_cohort) {
        cohort_free(core, cohort);
    }
}
