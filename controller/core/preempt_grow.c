/* preempt_grow.c - gangs that could start only by stopping others, when another queue takes more.
 *
 * What a queue has beyond its own quota may be taken back, by a gang of its tree whose share would
 * be no higher (victims.c, victims_fair.c). So a gang that was parked because nobody could be
 * stopped for it may find somebody once a queue has grown: and nothing comes free to wake it. */
#include "preempt.h"
#include "share.h"
#include "victims.h"

/* Whether what was added just now, `amount` of one account, has made the node use more than its own
 * of it. Further up less may have arrived, so this can say yes once too often, never too seldom. */
static bool has_begun_to_borrow(const struct quota_node *node, const struct charge *charge,
                                i128 amount)
{
    for (; node->parent != NULL; node = node->parent) {
        const struct quota_cell *cell = quota_cell_find(node, charge->flavor, charge->resource);
        if (cell != NULL && cell->used > cell->subtree && cell->used - amount <= cell->subtree) {
            return true;
        }
    }
    return false;
}

void preempt_note_growth(struct core *core, struct queue_state *queue, const struct charge *charge,
                         int64_t times)
{
    const struct quota_node *node = &queue->node;
    if (core->preemptors == NULL || core->is_tree_stale || node->parent == NULL || times <= 0) {
        return;
    }
    const struct quota_cell *cell = quota_cell_find(node, charge->flavor, charge->resource);
    bool is_over = cell != NULL && cell->used > cell->subtree;
    if ((is_over && share_is_on(quota_root(node))) ||
        has_begun_to_borrow(node, charge, (i128)charge->amount * times)) {
        queue->has_grown = core->has_grown = true;
    }
}

/* By the weaker of fair sharing's two rules: the branch has at least the share that the gang's
 * would have, on one of its flavors. */
static bool is_share_enough(struct core *core, struct shape *shape, const struct quota_node *top,
                            const struct quota_node *branch)
{
    const struct quota_node *leaf = &shape->queue->node;
    const struct quota_node *mine = victims_branch_below(leaf, top);
    int64_t theirs = share_of(branch, NULL, NULL);
    uint32_t count = evaluate_combination_count(core, shape);
    for (uint32_t combination = 0; combination < count; combination++) {
        struct quota_probe ask;
        struct quota_probe needs;
        if (evaluate_ask(core, shape, combination, &ask, &needs) &&
            (!share_borrows(mine, leaf, &ask) || share_of(mine, leaf, &ask) <= theirs)) {
            return true;
        }
    }
    return false;
}

/* It is the branch that has grown, up to where the two queues' branches meet: so whoever is of it
 * may be taken now, also of another queue than the one that took more. */
static bool may_take_from(struct core *core, struct shape *shape, const struct queue_state *grown)
{
    const struct quota_node *leaf = &shape->queue->node;
    const struct quota_node *top = victims_common_node(leaf, &grown->node);
    if (grown == shape->queue || top == NULL) {
        return false;
    }
    const struct quota_node *branch = victims_branch_below(&grown->node, top);
    if (!preempt_may_reclaim_below(branch, shape->first)) {
        return false;
    }
    return share_is_on(quota_root(leaf)) ? is_share_enough(core, shape, top, branch)
                                         : preempt_is_within_own(core, shape);
}

bool preempt_wake_for_growth(struct core *core)
{
    if (!core->has_grown) {
        return false;
    }
    core->has_grown = false;
    bool is_woken = false;
    preempt_find_last_holders(core);
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        struct shape *shape = queue->has_grown ? core->preemptors : NULL;
        queue->has_grown = false;
        for (; shape != NULL; shape = shape->next_preemptor) {
            if (!shape->is_ready && !gang_line_is_empty(&shape->gangs) &&
                may_take_from(core, shape, queue)) {
                arena_reset(&core->scratch);
                wake_shape(core, shape);
                is_woken = true;
            }
        }
    }
    return is_woken;
}
