/* order_plain.c - what order.c finds, found by looking at every queue again each time: the rule as
 * it is written, for tests that compare the two. */
#include "history.h"
#include "order.h"
#include "share.h"

struct candidate {
    struct shape *shape; /* NULL: none */
    struct gang *gang;
    struct quota_probe probe; /* what it would take, on the flavors that have the quota */
};

static struct candidate candidate_of(struct core *core, struct queue_state *queue)
{
    struct candidate candidate = {.shape = order_first_ready(core, queue)};
    if (candidate.shape != NULL) {
        candidate.gang = candidate.shape->first;
        evaluate_quota(core, candidate.shape, &candidate.probe);
    }
    return candidate;
}

/* Whether `b`, of the branch `branch_b`, goes before `a`. */
static bool goes_before(const struct core *core, const struct candidate *a,
                        const struct quota_node *branch_a, const struct candidate *b,
                        const struct quota_node *branch_b, bool by_share)
{
    if (a->probe.is_hopeless != b->probe.is_hopeless) {
        return b->probe.is_hopeless; /* judged at once, it is out of the others' way */
    }
    if (a->probe.level != b->probe.level) {
        return b->probe.level < a->probe.level;
    }
    if (by_share) {
        int64_t used_a = history_of_branch(core, branch_a);
        int64_t used_b = history_of_branch(core, branch_b);
        if (used_a != used_b) {
            return used_b < used_a;
        }
        int64_t share_a = share_of(branch_a, &a->shape->queue->node, &a->probe);
        int64_t share_b = share_of(branch_b, &b->shape->queue->node, &b->probe);
        if (share_a != share_b) {
            return share_b < share_a;
        }
    }
    return gang_compare_order(b->gang, a->gang) < 0;
}

static struct candidate best_of(struct core *core, struct quota_node *node, bool by_share)
{
    if (node->queue != NULL) {
        return candidate_of(core, node->queue);
    }
    struct candidate best = {.shape = NULL};
    const struct quota_node *best_branch = NULL;
    for (struct quota_node *child = node->children; child != NULL; child = child->next_sibling) {
        struct candidate candidate = best_of(core, child, by_share);
        if (candidate.shape != NULL &&
            (best.shape == NULL ||
             goes_before(core, &best, best_branch, &candidate, child, by_share))) {
            best = candidate;
            best_branch = child;
        }
    }
    return best;
}

static struct candidate candidate_with(struct core *core, struct gang *gang)
{
    struct candidate candidate = {.shape = gang->shape, .gang = gang};
    evaluate_quota(core, gang->shape, &candidate.probe);
    return candidate;
}

bool order_is_ahead(struct core *core, struct gang *gang, struct gang *other)
{
    const struct quota_node *a = &gang->queue->node;
    const struct quota_node *b = &other->queue->node;
    bool is_one_tree = quota_root(a) == quota_root(b);
    if (a == b && a->half_life_ms != 0 && !queue_is_strict(gang->queue)) {
        int64_t used = history_of_namespace(core, gang->queue, gang->namespace_name);
        int64_t other_used = history_of_namespace(core, gang->queue, other->namespace_name);
        if (used != other_used) {
            return used < other_used;
        }
    }
    if (a == b || !is_one_tree) {
        return gang_compare_order(gang, other) < 0;
    }
    const struct quota_node *branch_a = a;
    const struct quota_node *branch_b = b;
    while (a != b) { /* up to where they meet; the branches are what lies just below */
        bool is_a_lower = a->depth >= b->depth;
        bool is_b_lower = b->depth >= a->depth;
        branch_a = is_a_lower ? a : branch_a;
        branch_b = is_b_lower ? b : branch_b;
        a = is_a_lower ? a->parent : a;
        b = is_b_lower ? b->parent : b;
    }
    struct candidate first = candidate_with(core, gang);
    struct candidate second = candidate_with(core, other);
    return goes_before(core, &second, branch_b, &first, branch_a, share_is_on(quota_root(a)));
}

struct shape *order_next_plain(struct core *core)
{
    arena_reset(&core->scratch);
    core->order_round++;
    struct shape *best = NULL;
    struct gang *best_gang = NULL;
    struct queue_state *queue;
    RB_FOREACH (queue, ready_tree, &core->ready) {
        struct quota_node *root = (struct quota_node *)(uintptr_t)quota_root(&queue->node);
        if (root->seen_in == core->order_round) {
            continue;
        }
        root->seen_in = core->order_round;
        struct candidate candidate =
            root->queue != NULL ? (struct candidate){.shape = order_first_ready(core, queue)}
                                : best_of(core, root, share_is_on(root));
        struct gang *gang = candidate.shape == NULL ? NULL : candidate.shape->first;
        if (candidate.probe.is_hopeless) {
            return candidate.shape; /* nor does it stand for its tree */
        }
        if (gang != NULL && (best == NULL || gang_compare_order(gang, best_gang) < 0)) {
            best = candidate.shape;
            best_gang = gang;
        }
    }
    return best;
}
