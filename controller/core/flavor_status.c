/* flavor_status.c - what a ResourceFlavor's status counts, and when it is written. */
#include "ailment.h"
#include "fit.h"

#include "tallyman/base/limits.h"

/* Taints that the flavor names, or that it has its gangs tolerate, keep nobody off. */
static bool is_expected(const struct resource_flavor *flavor, const struct taint *taint)
{
    for (uint32_t i = 0; i < flavor->spec.node_taints.count; i++) {
        if (str_eq(flavor->spec.node_taints.items[i].key, taint->key)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < flavor->spec.tolerations.count; i++) {
        if (toleration_tolerates(&flavor->spec.tolerations.items[i], taint)) {
            return true;
        }
    }
    return false;
}

static bool is_usable(const struct core *core, const struct resource_flavor *flavor,
                      const struct node_state *node)
{
    for (uint32_t i = 0; i < node->object->spec.taints.count; i++) {
        const struct taint *taint = &node->object->spec.taints.items[i];
        if (device_taint_keeps_off(taint) && !is_expected(flavor, taint)) {
            return false;
        }
    }
    return node->is_usable && node_illness(flavor, node) == NULL &&
           node_rest_end_ms(core, flavor, node) == 0;
}

static bool lists_flavor(const struct quota_node *node, struct str flavor)
{
    for (uint32_t i = 0; i < node->cell_count; i++) {
        if (node->cells[i].is_listed && str_eq(node->cells[i].flavor, flavor)) {
            return true;
        }
    }
    return false;
}

static int64_t count_queues(const struct core *core, struct str flavor)
{
    int64_t count = 0;
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, (struct queue_tree *)(uintptr_t)&core->queue_order) {
        count += lists_flavor(&queue->node, flavor) ? 1 : 0;
    }
    struct cohort_state *cohort;
    struct cohort_state *next;
    HASH_ITER (hh, core->cohorts, cohort, next) {
        count += lists_flavor(&cohort->node, flavor) ? 1 : 0;
    }
    return count;
}

void flavor_fill_figures(const struct core *core, const struct flavor_state *flavor,
                         struct arena *arena, struct resource_flavor_status *status)
{
    const struct resource_flavor *object = flavor->object;
    int64_t nodes = 0;
    int64_t usable = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, (struct node_tree *)(uintptr_t)&core->node_order) {
        if (node->object != NULL &&
            node_labels_contain(&object->spec.node_labels, &node->object->meta.labels)) {
            nodes++;
            usable += is_usable(core, object, node) ? 1 : 0;
        }
    }
    status->nodes = (struct opt_int){true, nodes};
    status->nodes_usable = (struct opt_int){true, usable};
    status->queues = (struct opt_int){true, count_queues(core, flavor->name)};
    status->devices = ailments_of_flavor(core, flavor->name, arena);
}

void flavors_touch(struct core *core)
{
    struct flavor_state *flavor;
    struct flavor_state *next;
    HASH_ITER (hh, core->flavors, flavor, next) {
        flavor->status.is_dirty = true;
    }
}
