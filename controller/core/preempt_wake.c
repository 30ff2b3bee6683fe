/* preempt_wake.c - gangs that could start only by stopping others, and when that is tried again.
 *
 * What such a gang lacks is not told by the account that it was short of: a release that is too
 * little by itself can be enough together with what others would give up. So whenever some of an
 * account of their tree comes free that they draw on, or room on a node that they could use, those
 * for whom there may be somebody to stop are judged once more; the others are passed over by a
 * comparison or two. */
#include "preempt.h"
#include "share.h"
#include "victims.h"

void preempt_park(struct core *core, struct shape *shape, bool is_parked)
{
    if (is_parked == shape->is_preemptor) {
        return;
    }
    shape->is_preemptor = is_parked;
    if (is_parked) {
        shape->previous_preemptor = NULL;
        shape->next_preemptor = core->preemptors;
        if (core->preemptors != NULL) {
            core->preemptors->previous_preemptor = shape;
        }
        core->preemptors = shape;
        return;
    }
    if (shape->previous_preemptor != NULL) {
        shape->previous_preemptor->next_preemptor = shape->next_preemptor;
    } else {
        core->preemptors = shape->next_preemptor;
    }
    if (shape->next_preemptor != NULL) {
        shape->next_preemptor->previous_preemptor = shape->previous_preemptor;
    }
}

/* By what the policies ask of a victim, which isn't its place in the queue. */
static bool is_sooner_stopped(const struct gang *gang, const struct gang *other)
{
    return gang->priority < other->priority ||
           (gang->priority == other->priority && gang->created_ms > other->created_ms);
}

static bool may_be_stopped(const struct gang *gang)
{
    return gang->reservation != NULL &&
           (gang->state == GANG_ADMITTED || gang->state == GANG_RUNNING ||
            gang->state == GANG_RESERVED);
}

static void offer_last_holder(struct gang *gang)
{
    struct queue_state *queue = gang->reservation->queue;
    if (queue->last_holder == NULL || is_sooner_stopped(gang, queue->last_holder)) {
        queue->last_holder = gang;
    }
}

void preempt_forget_holder(struct core *core, const struct gang *gang)
{
    struct queue_state *queue = gang->reservation == NULL ? NULL : gang->reservation->queue;
    if (queue != NULL && queue->last_holder == gang) {
        queue->last_holder = NULL;
        queue->is_last_holder_lost = core->has_lost_last_holder = true;
    }
}

void preempt_note_holder(struct core *core, struct gang *gang)
{
    struct queue_state *queue = gang->reservation == NULL ? NULL : gang->reservation->queue;
    if (queue == NULL) {
        return;
    }
    if (!may_be_stopped(gang)) {
        preempt_forget_holder(core, gang);
    } else if (!queue->is_last_holder_lost) {
        offer_last_holder(gang);
    }
}

void preempt_find_last_holders(struct core *core)
{
    struct queue_state *queue;
    if (core->options.is_plain) {
        RB_FOREACH (queue, queue_tree, &core->queue_order) {
            queue->last_holder = NULL;
            queue->is_last_holder_lost = core->has_lost_last_holder = true;
        }
    }
    if (!core->has_lost_last_holder) {
        return;
    }
    struct gang *gang;
    GANG_LINE_FOREACH (gang, &core->holders) {
        if (gang->reservation->queue->is_last_holder_lost && may_be_stopped(gang)) {
            offer_last_holder(gang);
        }
    }
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        queue->is_last_holder_lost = false;
    }
    core->has_lost_last_holder = false;
}

/* -- what has come free --------------------------------------------------------------------------
 */

void preempt_note_freed(struct core *core, const struct queue_state *queue, struct str flavor,
                        struct str resource)
{
    struct quota_cell *cell = quota_cell_find(quota_root(&queue->node), flavor, resource);
    if (cell != NULL) {
        cell->freed_in = core->freed_round + 1; /* 0: never */
    }
    core->has_freed = core->has_freed || cell == NULL; /* it may be for anybody */
    core->has_freed_quota = true;
}

/* An account of its tree that it draws on. */
static bool is_quota_freed(const struct core *core, const struct shape *shape)
{
    const struct quota_node *root = quota_root(&shape->queue->node);
    for (uint32_t i = 0; i < root->cell_count; i++) {
        if (root->cells[i].freed_in == core->freed_round &&
            quota_shape_asks(core, shape, root->cells[i].resource)) {
            return true;
        }
    }
    return false;
}

bool preempt_may_reclaim_below(const struct quota_node *node, const struct gang *gang)
{
    if (node->queue != NULL) {
        const struct gang *last = node->queue->last_holder;
        return node->queue != gang->queue && last != NULL && victims_may_reclaim(gang, last);
    }
    for (const struct quota_node *child = node->children; child != NULL;
         child = child->next_sibling) {
        if (preempt_may_reclaim_below(child, gang)) {
            return true;
        }
    }
    return false;
}

static bool is_within_own_on(struct core *core, struct shape *shape, uint32_t combination)
{
    const struct quota_node *node = &shape->queue->node;
    struct quota_probe ask;
    struct quota_probe needs;
    if (!evaluate_ask(core, shape, combination, &ask, &needs)) {
        return false;
    }
    for (uint32_t i = 0; i < ask.count; i++) {
        if (quota_borrow_level(node, ask.items[i].flavor, ask.items[i].resource,
                               ask.items[i].asked) >= quota_root(node)->height) {
            return false;
        }
    }
    return true;
}

bool preempt_is_within_own(struct core *core, struct shape *shape)
{
    const struct queue_preemption *policy = queue_preemption_policy(shape->queue);
    const struct borrow_within_cohort *borrow = policy->borrow_within_cohort;
    bool may_borrow =
        borrow != NULL && str_is_set(borrow->policy) && !str_eq_c(borrow->policy, "Never");
    if (may_borrow || share_is_on(quota_root(&shape->queue->node))) {
        return true;
    }
    uint32_t count = evaluate_combination_count(core, shape);
    for (uint32_t combination = 0; combination < count; combination++) {
        if (is_within_own_on(core, shape, combination)) {
            return true;
        }
    }
    return false;
}

bool preempt_may_stop_somebody(struct core *core, struct shape *shape)
{
    const struct gang *gang = shape->first;
    const struct gang *last = shape->queue->last_holder;
    if (last != NULL && victims_may_within_queue(gang, last)) {
        return true;
    }
    const struct quota_node *root = quota_root(&shape->queue->node);
    return preempt_may_reclaim_below(root, gang) && preempt_is_within_own(core, shape);
}

/* Room that is only promised is no reason to stop anybody. When others have been given what else
 * was free, there may be too little once those pods are bound, too; and nothing comes free to tell.
 */
static void wake_promised(struct core *core)
{
    for (struct shape *shape = core->room_waiters; shape != NULL; shape = shape->next_room_waiter) {
        const struct verdict *verdict = &shape->verdict;
        bool is_promised = verdict->reason == REASON_RESERVED_FOR_OTHER &&
                           (verdict->waits_for & WAIT_PROMISES) != 0;
        if (is_promised && !shape->is_ready && !gang_line_is_empty(&shape->gangs) &&
            preempt_is_allowed(shape->queue)) {
            preempt_find_last_holders(core);
            arena_reset(&core->scratch);
            if (preempt_may_stop_somebody(core, shape)) {
                wake_shape(core, shape);
            }
        }
    }
}

static bool is_told(const struct core *core, const struct shape *shape, bool has_freed_quota)
{
    return shape->is_room_changed || (has_freed_quota && is_quota_freed(core, shape));
}

void preempt_wake(struct core *core)
{
    bool is_for_all = core->has_freed || core->options.is_plain;
    bool has_freed_quota = core->has_freed_quota;
    bool has_changed = core->has_freed || has_freed_quota || core->has_room_changed;
    core->has_freed = core->has_freed_quota = core->has_room_changed = false;
    core->freed_round++;
    if (core->has_let_go) {
        core->has_let_go = false;
        wake_promised(core);
    }
    if (!has_changed || core->preemptors == NULL) {
        return;
    }
    preempt_find_last_holders(core);
    for (struct shape *shape = core->preemptors; shape != NULL; shape = shape->next_preemptor) {
        bool is_due = is_for_all || is_told(core, shape, has_freed_quota);
        shape->is_room_changed = false;
        arena_reset(&core->scratch);
        if (is_due && !gang_line_is_empty(&shape->gangs) &&
            preempt_may_stop_somebody(core, shape)) {
            wake_shape(core, shape); /* if a release woke it, it isn't put aside any more */
        }
    }
}
