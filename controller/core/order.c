/* order.c - whose gang is judged next.
 *
 * Within a queue by priority, time and uid. Between the queues of a tree a gang that stays within
 * its quota goes before one that must borrow, and one that finds it in a lower subtree before one
 * that has to go further up, whether the quota is free right now or only to be reclaimed; where
 * fair sharing is on, then the one whose branch would have the lower weighted dominant share with
 * the gang in it, cohort by cohort from the leaves up; then priority, time, uid. Separate trees
 * meet by priority, time, uid alone. */
#include "internal.h"

/* Parts of a billion, weighted; SHARE_INFINITE: a branch of weight 0 that borrows. */
#define SHARE_SCALE    1000000000
#define SHARE_INFINITE INT64_MAX

struct candidate {
    struct shape *shape; /* NULL: none */
    struct gang *gang;
    struct quota_probe probe; /* what it would take, on the flavors that have the quota */
};

static bool is_fair(const struct quota_node *node)
{
    if (node->has_fair_sharing) {
        return true;
    }
    for (const struct quota_node *child = node->children; child != NULL;
         child = child->next_sibling) {
        if (is_fair(child)) {
            return true;
        }
    }
    return false;
}

/* What of `asked` at the leaf arrives at the node `at` above it. */
static i128 carried(const struct quota_node *leaf, const struct quota_node *at,
                    const struct probe_item *item)
{
    i128 asked = item->asked;
    for (const struct quota_node *node = leaf; node != at; node = node->parent) {
        i128 before = quota_beyond(node, item->flavor, item->resource, 0);
        asked = quota_beyond(node, item->flavor, item->resource, asked) - before;
    }
    return asked;
}

static i128 borrowed_of(const struct quota_node *node, const struct candidate *candidate,
                        struct str resource)
{
    i128 borrowed = 0;
    for (uint32_t i = 0; i < node->cell_count; i++) {
        const struct quota_cell *cell = &node->cells[i];
        if (!str_eq(cell->resource, resource)) {
            continue;
        }
        i128 used = cell->used;
        for (uint32_t p = 0; p < candidate->probe.count; p++) {
            const struct probe_item *item = &candidate->probe.items[p];
            if (str_eq(item->resource, resource) && str_eq(item->flavor, cell->flavor)) {
                used += carried(&candidate->shape->queue->node, node, item);
            }
        }
        borrowed += used > cell->subtree ? used - cell->subtree : 0;
    }
    return borrowed;
}

static i128 lendable_of(const struct quota_node *parent, struct str resource)
{
    i128 sum = 0;
    for (uint32_t i = 0; i < parent->cell_count; i++) {
        if (str_eq(parent->cells[i].resource, resource)) {
            sum += quota_potential(parent, parent->cells[i].flavor, resource);
        }
    }
    return sum;
}

/* The dominant share of what the branch borrows, with the candidate in it. */
static int64_t share_of(const struct quota_node *branch, const struct candidate *candidate)
{
    i128 dominant = 0;
    bool is_borrowing = false;
    for (uint32_t i = 0; i < branch->cell_count; i++) {
        struct str resource = branch->cells[i].resource;
        i128 borrowed = borrowed_of(branch, candidate, resource);
        if (borrowed == 0) {
            continue;
        }
        is_borrowing = true;
        i128 lendable = lendable_of(branch->parent, resource);
        i128 share =
            lendable <= 0 ? SHARE_INFINITE : (i128)i128_clamp(borrowed) * SHARE_SCALE / lendable;
        dominant = share > dominant ? share : dominant;
    }
    if (!is_borrowing) {
        return 0;
    }
    if (branch->weight_milli == 0) {
        return SHARE_INFINITE;
    }
    return i128_clamp(dominant * 1000 / branch->weight_milli);
}

static struct candidate candidate_of(struct core *core, struct queue_state *queue)
{
    struct candidate candidate = {.shape = RB_MIN(shape_tree, &queue->ready)};
    if (candidate.shape != NULL) {
        candidate.gang = RB_MIN(shape_gang_tree, &candidate.shape->gangs);
        evaluate_quota(core, candidate.shape, &candidate.probe);
    }
    return candidate;
}

/* Whether `b`, of the branch `branch_b`, goes before `a`. */
static bool goes_before(const struct candidate *a, const struct quota_node *branch_a,
                        const struct candidate *b, const struct quota_node *branch_b, bool by_share)
{
    if (a->probe.level != b->probe.level) {
        return b->probe.level < a->probe.level;
    }
    if (by_share) {
        int64_t share_a = share_of(branch_a, a);
        int64_t share_b = share_of(branch_b, b);
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
            (best.shape == NULL || goes_before(&best, best_branch, &candidate, child, by_share))) {
            best = candidate;
            best_branch = child;
        }
    }
    return best;
}

struct shape *order_next(struct core *core)
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
            root->queue != NULL ? (struct candidate){.shape = RB_MIN(shape_tree, &queue->ready)}
                                : best_of(core, root, is_fair(root));
        struct gang *gang =
            candidate.shape == NULL ? NULL : RB_MIN(shape_gang_tree, &candidate.shape->gangs);
        if (gang != NULL && (best == NULL || gang_compare_order(gang, best_gang) < 0)) {
            best = candidate.shape;
            best_gang = gang;
        }
    }
    return best;
}
