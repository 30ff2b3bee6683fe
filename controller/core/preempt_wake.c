/* preempt_wake.c - gangs that could start only by stopping others, and when that is tried again.
 *
 * What such a gang lacks is not told by the account that it was short of: a release that is too
 * little by itself can be enough together with what others would give up. So whenever quota or room
 * has come free, those for whom there may be somebody to stop are judged once more; the others are
 * passed over by a comparison or two. */
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

void preempt_note_last_holders(struct core *core)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        queue->last_holder = NULL;
    }
    struct gang *gang;
    RB_FOREACH (gang, gang_holder_tree, &core->holders) {
        bool is_candidate = gang->state == GANG_ADMITTED || gang->state == GANG_RUNNING ||
                            gang->room->check != NULL;
        struct gang *last = gang->reservation->queue->last_holder;
        if (is_candidate && (last == NULL || is_sooner_stopped(gang, last))) {
            gang->reservation->queue->last_holder = gang;
        }
    }
}

/* Whether the queue may take back what others below `node` have borrowed from it. */
static bool may_reclaim_below(const struct quota_node *node, const struct gang *gang)
{
    if (node->queue != NULL) {
        const struct gang *last = node->queue->last_holder;
        return node->queue != gang->queue && last != NULL && victims_may_reclaim(gang, last);
    }
    for (const struct quota_node *child = node->children; child != NULL;
         child = child->next_sibling) {
        if (may_reclaim_below(child, gang)) {
            return true;
        }
    }
    return false;
}

bool preempt_is_within_own(const struct shape *shape)
{
    const struct verdict *verdict = &shape->verdict;
    const struct queue_preemption *policy = queue_preemption_policy(shape->queue);
    const struct borrow_within_cohort *borrow = policy->borrow_within_cohort;
    const struct quota_node *node = &shape->queue->node;
    bool may_borrow =
        borrow != NULL && str_is_set(borrow->policy) && !str_eq_c(borrow->policy, "Never");
    if (may_borrow || !str_is_set(verdict->flavor) || share_is_on(quota_root(node))) {
        return true;
    }
    return quota_borrow_level(node, verdict->flavor, verdict->resource, verdict->asked) <
           quota_root(node)->height;
}

static bool may_stop_somebody(const struct shape *shape)
{
    const struct gang *gang = shape->first;
    const struct gang *last = shape->queue->last_holder;
    if (last != NULL && victims_may_within_queue(gang, last)) {
        return true;
    }
    const struct quota_node *root = quota_root(&shape->queue->node);
    return preempt_is_within_own(shape) && may_reclaim_below(root, gang);
}

void preempt_wake(struct core *core)
{
    bool has_freed = core->has_freed;
    bool has_changed = has_freed || core->has_room_changed;
    core->has_freed = core->has_room_changed = false;
    if (!has_changed || core->preemptors == NULL) {
        return;
    }
    preempt_note_last_holders(core);
    for (struct shape *shape = core->preemptors; shape != NULL; shape = shape->next_preemptor) {
        bool is_told = has_freed || shape->is_room_changed;
        shape->is_room_changed = false;
        if (is_told && !RB_EMPTY(&shape->gangs) && may_stop_somebody(shape)) {
            wake_shape(core, shape); /* if a release woke it, it isn't put aside any more */
        }
    }
}
