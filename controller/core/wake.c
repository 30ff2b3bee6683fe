/* wake.c - a parked shape is looked at again only when what it waits for has changed. */
#include "internal.h"

void ready_add(struct core *core, struct shape *shape)
{
    if (shape->is_ready || RB_EMPTY(&shape->gangs)) {
        return;
    }
    shape->is_ready = true;
    if (RB_EMPTY(&shape->queue->ready)) {
        RB_INSERT(ready_tree, &core->ready, shape->queue);
    }
    RB_INSERT(shape_tree, &shape->queue->ready, shape);
}

void ready_remove(struct core *core, struct shape *shape)
{
    if (!shape->is_ready) {
        return;
    }
    shape->is_ready = false;
    RB_REMOVE(shape_tree, &shape->queue->ready, shape);
    if (RB_EMPTY(&shape->queue->ready)) {
        RB_REMOVE(ready_tree, &core->ready, shape->queue);
    }
}

void wake_shape(struct core *core, struct shape *shape)
{
    shape->is_woken_by_cell = false;
    if (shape->is_ready || RB_EMPTY(&shape->gangs)) {
        return;
    }
    if (queue_is_strict(shape->queue)) {
        /* Only the first in line is ever looked at; the pass goes on from there. */
        struct gang *head = RB_MIN(gang_tree, &shape->queue->pending);
        shape->queue->blocker = NULL;
        shape = head->shape;
        if (shape->is_ready) {
            return;
        }
    }
    ready_add(core, shape);
}

void wake_queue(struct core *core, struct queue_state *queue, uint32_t bits)
{
    for (struct shape *shape = queue->shapes; shape != NULL; shape = shape->next_in_queue) {
        if (bits == WAIT_ANY || (shape->verdict.waits_for & bits) != 0) {
            wake_shape(core, shape);
        }
    }
}

void wake_all(struct core *core, uint32_t bits)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        wake_queue(core, queue, bits);
    }
}

/* For a pod of one of its sets. */
static bool has_room_for_one(struct core *core, const struct shape *shape, struct node_state *node)
{
    for (uint32_t s = 0; s < shape->set_count; s++) {
        const struct pod_set *set = &shape->sets[s];
        struct pod_demand demand = {.set = set, .node_selector = &set->node_selector};
        if (fit_node_has_room(core, &demand, node)) {
            return true;
        }
    }
    return false;
}

void wake_for_node(struct core *core, struct node_state *node)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        for (struct shape *shape = queue->shapes; shape != NULL; shape = shape->next_in_queue) {
            if ((shape->verdict.waits_for & WAIT_CLUSTER) == 0 || shape->is_ready) {
                continue;
            }
            if (!shape->is_resolved || has_room_for_one(core, shape, node)) {
                wake_shape(core, shape);
            }
        }
    }
}

void wake_reserved(struct core *core)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        for (struct shape *shape = queue->shapes; shape != NULL; shape = shape->next_in_queue) {
            if ((shape->verdict.waits_for & WAIT_PROMISES) != 0) {
                wake_shape(core, shape);
            }
        }
    }
}

static void wake_queue_for_cell(struct core *core, struct queue_state *queue,
                                const struct quota_cell *cell)
{
    i128 free = quota_available(&queue->node, cell->flavor, cell->resource);
    for (struct shape *shape = queue->shapes; shape != NULL; shape = shape->next_in_queue) {
        if ((shape->verdict.waits_for & WAIT_QUOTA) == 0) {
            continue;
        }
        bool is_elsewhere =
            str_is_set(shape->verdict.resource) && !str_eq(shape->verdict.resource, cell->resource);
        if (!is_elsewhere && shape->verdict.asked <= free && !shape->is_ready) {
            wake_shape(core, shape);
            shape->is_woken_by_cell = true;
        }
    }
}

static void wake_node_for_cell(struct core *core, const struct quota_node *node,
                               const struct quota_cell *cell)
{
    if (node->queue != NULL) {
        wake_queue_for_cell(core, node->queue, cell);
    }
    for (const struct quota_node *child = node->children; child != NULL;
         child = child->next_sibling) {
        wake_node_for_cell(core, child, cell); /* no deeper than QUOTA_DEPTH_MAX */
    }
}

void wake_for_cell(struct core *core, struct queue_state *queue, const struct quota_cell *cell)
{
    wake_node_for_cell(core, quota_root(&queue->node), cell);
}
