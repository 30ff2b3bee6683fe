/* wake.c - a parked shape is looked at again only when what it waits for has changed. */
#include "behind.h"
#include "order.h"
#include "preempt.h"
#include "room_index.h"
#include "selectors.h"
#include "wait.h"

void ready_add(struct core *core, struct shape *shape)
{
    if (shape->is_ready || shape->is_aside || gang_line_is_empty(&shape->gangs)) {
        return;
    }
    waits_unlink(shape);
    core->cost.shapes_woken++;
    shape->is_ready = true;
    if (RB_EMPTY(&shape->queue->ready)) {
        RB_INSERT(ready_tree, &core->ready, shape->queue);
        order_count_ready(core, &shape->queue->node, true);
    }
    RB_INSERT(shape_tree, &shape->queue->ready, shape);
    order_changed(&shape->queue->node);
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
        order_count_ready(core, &shape->queue->node, false);
    }
    order_changed(&shape->queue->node);
}

void wake_shape(struct core *core, struct shape *shape)
{
    shape->is_woken_by_cell = false;
    if (shape->is_ready || shape->is_aside || gang_line_is_empty(&shape->gangs)) {
        return;
    }
    if (queue_is_strict(shape->queue)) {
        /* Only the first in line is ever looked at; the pass goes on from there. */
        struct gang *head = gang_line_first(&shape->queue->pending);
        if (shape != head->shape) {
            behind_ask(core, shape);
        }
        shape = head->shape;
        if (shape->is_aside) {
            return; /* it blocks */
        }
        shape->queue->blocker = NULL;
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

/* -- those that wait for room, or for an object ---------------------------------------------------
 */

/* Those that wait beside others, whose room is promised or kept. */
static void beside_wait(struct core *core, struct shape *shape)
{
    bool is_wanted = (shape->verdict.waits_for & (WAIT_PROMISES | WAIT_BOOKING)) != 0;
    if (is_wanted == shape->is_beside_waiter) {
        return;
    }
    shape->is_beside_waiter = is_wanted;
    if (is_wanted) {
        shape->previous_beside = NULL;
        shape->next_beside = core->beside_waiters;
        if (core->beside_waiters != NULL) {
            core->beside_waiters->previous_beside = shape;
        }
        core->beside_waiters = shape;
        return;
    }
    *(shape->previous_beside == NULL ? &core->beside_waiters
                                     : &shape->previous_beside->next_beside) = shape->next_beside;
    if (shape->next_beside != NULL) {
        shape->next_beside->previous_beside = shape->previous_beside;
    }
}

void room_wait(struct core *core, struct shape *shape)
{
    room_index_put(core, shape);
    beside_wait(core, shape);
    bool is_wanted = (shape->verdict.waits_for & ~(uint32_t)(WAIT_QUOTA | WAIT_ORDER)) != 0;
    if (is_wanted == shape->is_room_waiter) {
        return;
    }
    shape->is_room_waiter = is_wanted;
    if (is_wanted) {
        shape->previous_room_waiter = NULL;
        shape->next_room_waiter = core->room_waiters;
        if (core->room_waiters != NULL) {
            core->room_waiters->previous_room_waiter = shape;
        }
        core->room_waiters = shape;
        return;
    }
    if (shape->previous_room_waiter != NULL) {
        shape->previous_room_waiter->next_room_waiter = shape->next_room_waiter;
    } else {
        core->room_waiters = shape->next_room_waiter;
    }
    if (shape->next_room_waiter != NULL) {
        shape->next_room_waiter->previous_room_waiter = shape->previous_room_waiter;
    }
}

void wake_all(struct core *core, uint32_t bits)
{
    core->has_freed = true; /* for all who call it, WAIT_CLUSTER is one of the bits */
    struct shape *shape = core->room_waiters;
    for (; shape != NULL; shape = shape->next_room_waiter) {
        if ((shape->verdict.waits_for & bits) != 0) {
            wake_shape(core, shape);
        }
    }
}

void wake_beside(struct core *core, uint32_t bits)
{
    struct shape *shape = core->beside_waiters;
    for (; shape != NULL; shape = shape->next_beside) {
        if ((shape->verdict.waits_for & bits) != 0) {
            wake_shape(core, shape);
        }
    }
}

void wake_reserved(struct core *core)
{
    wake_beside(core, WAIT_PROMISES);
    preempt_early_note_beside(core);
    for (struct shape *shape = core->preemptors; shape != NULL; shape = shape->next_preemptor) {
        if (shape->is_preempting_beside_promises) {
            shape->is_room_changed = core->has_room_changed = true;
        }
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

static void wake_if_it_has_room(struct core *core, struct shape *shape, struct node_state *node)
{
    if (!shape->is_ready && !shape->is_aside &&
        (!shape->is_resolved || !selectors_are_tried(core, shape) ||
         has_room_for_one(core, shape, node))) {
        wake_shape(core, shape);
    }
}

/* Whatever is free there. What the flavors tolerate isn't known here, so a taint keeps nobody from
 * looking again. */
bool shape_may_use_node(const struct core *core, const struct shape *shape,
                        const struct node_state *node)
{
    bool may = !shape->is_resolved;
    for (uint32_t s = 0; s < shape->set_count && !may && node->object != NULL; s++) {
        const struct pod_set *set = &shape->sets[s];
        struct pod_demand demand = {.set = set, .node_selector = &set->node_selector};
        enum exclusion exclusion = node_exclusion(core, &demand, node);
        may = exclusion == EXCLUDED_COUNT || exclusion == EXCLUDED_TAINT;
    }
    return may;
}

void wake_for_node(struct core *core, struct node_state *node)
{
    preempt_early_note_node(core, node);
    for (struct shape *shape = core->preemptors; shape != NULL; shape = shape->next_preemptor) {
        if (!shape->is_room_changed && shape_may_use_node(core, shape, node)) {
            shape->is_room_changed = core->has_room_changed = true;
        }
    }
    if (!core->options.is_plain) {
        room_index_visit(core, node, wake_if_it_has_room);
        return;
    }
    for (struct shape *shape = core->room_waiters; shape != NULL; shape = shape->next_room_waiter) {
        if ((shape->verdict.waits_for & WAIT_CLUSTER) != 0) {
            wake_if_it_has_room(core, shape, node);
        }
    }
}

/* What waits_wake() does, found by looking at every shape. */
void wake_for_release_plain(struct core *core, struct str flavor, struct str resource)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        i128 free = quota_available(&queue->node, flavor, resource);
        for (struct shape *shape = queue->shapes; shape != NULL; shape = shape->next_in_queue) {
            for (uint32_t i = 0; i < shape->wait_count && !shape->is_ready; i++) {
                const struct quota_line *line = shape->waits[i].line;
                bool is_there = str_eq(line->flavor, flavor) && str_eq(line->resource, resource);
                if (!str_is_set(line->flavor) || (is_there && shape->waits[i].asked <= free)) {
                    wake_shape(core, shape);
                    shape->is_woken_by_cell = str_is_set(line->flavor);
                }
            }
        }
    }
}
