/* order.c - whose gang is judged next.
 *
 * Within a queue by priority, time and uid. Between the queues of a tree a gang that stays within
 * its quota goes before one that must borrow, and one that finds it in a lower subtree before one
 * that has to go further up, whether the quota is free right now or only to be reclaimed; where
 * fair sharing is on, then the one whose branch has used less over time (where a half-life is set),
 * then the one whose branch would have the lower weighted dominant share with the gang in it,
 * cohort by cohort from the leaves up; then priority, time, uid. In a queue with a half-life of its
 * own the namespaces go before priority in the same way, unless it is StrictFIFO. Separate trees
 * meet by priority, time, uid alone.
 *
 * What was found is kept within a pass: a queue's candidate while nothing that it draws on has
 * changed, a cohort's best while nothing below or above it has. An admission changes what is kept
 * on its own path to the root, and below those cohorts whose usage it changes. */
#include "history.h"
#include "order.h"
#include "wait.h"
#include "share.h"

#include "tallyman/base/alloc.h"

/* A queue's next gang, and what it would take. */
struct candidate {
    struct shape *shape; /* NULL: none */
    struct gang *gang;
    struct quota_probe probe;
    uint32_t item_capacity;
    uint64_t pass;
    uint64_t version; /* of what is used from the queue up to the root */
};

/* What is kept of a node's last ranking. */
struct order_node {
    struct candidate candidate;   /* of a queue */
    const struct candidate *best; /* of a cohort; NULL: nobody below it */
    uint64_t pass;
    uint64_t changes; /* at and below the node */
    uint64_t above;   /* versions of the nodes above */
    int64_t share;    /* of the branch, with its best in it */
    uint64_t share_pass;
    uint64_t share_changes;
    uint64_t share_above;
};

static struct order_node *order_of(struct quota_node *node)
{
    if (node->order == NULL) {
        node->order = MEM_NEW(struct order_node);
    }
    return node->order;
}

void order_node_free(struct order_node *order)
{
    if (order != NULL) {
        mem_free(order->candidate.probe.items);
        mem_free(order);
    }
}

/* -- what has changed -------------------------------------------------------------------------- */

void order_changed(struct quota_node *node)
{
    for (; node != NULL; node = node->parent) {
        node->changes++;
    }
}

static void activate(struct core *core, struct quota_node *root)
{
    root->next_active = core->active_roots;
    root->previous_active = NULL;
    if (core->active_roots != NULL) {
        core->active_roots->previous_active = root;
    }
    core->active_roots = root;
}

static void deactivate(struct core *core, struct quota_node *root)
{
    if (root->previous_active != NULL) {
        root->previous_active->next_active = root->next_active;
    } else {
        core->active_roots = root->next_active;
    }
    if (root->next_active != NULL) {
        root->next_active->previous_active = root->previous_active;
    }
    root->next_active = root->previous_active = NULL;
}

void order_count_ready(struct core *core, struct quota_node *node, bool is_ready)
{
    for (; node != NULL; node = node->parent) {
        node->ready_below += is_ready ? 1 : UINT32_MAX;
        if (node->parent == NULL && node->ready_below == (is_ready ? 1 : 0)) {
            is_ready ? activate(core, node) : deactivate(core, node);
        }
    }
}

/* -- candidates -------------------------------------------------------------------------------- */

/* The ready shape that is next in the queue. */
struct shape *order_first_ready(const struct core *core, struct queue_state *queue)
{
    struct shape *best = RB_MIN(shape_tree, &queue->ready);
    if (best == NULL || queue->node.half_life_ms == 0 || queue_is_strict(queue)) {
        return best;
    }
    int64_t least = history_of_namespace(core, queue, best->namespace_name);
    for (struct shape *shape = RB_NEXT(shape_tree, &queue->ready, best); shape != NULL;
         shape = RB_NEXT(shape_tree, &queue->ready, shape)) {
        int64_t used = history_of_namespace(core, queue, shape->namespace_name);
        if (used < least) {
            least = used;
            best = shape;
        }
    }
    return best;
}

/* The queue's next shape. Those that a release has woken whose room went to others meanwhile are
 * not asked after: nothing has changed for them. */
static struct shape *next_of(struct core *core, struct queue_state *queue)
{
    struct shape *shape = order_first_ready(core, queue);
    while (shape != NULL && shape_is_still_short(shape)) {
        ready_remove(core, shape);
        waits_link(shape);
        waits_go_on(core, queue);
        shape = order_first_ready(core, queue);
    }
    return shape;
}

/* The same shape asks for the same: only how far up it would have to borrow may be another. */
static void look_up_level(struct candidate *candidate)
{
    struct quota_probe *probe = &candidate->probe;
    const struct quota_node *node = &candidate->shape->queue->node;
    probe->level = 0;
    for (uint32_t i = 0; i < probe->count; i++) {
        const struct probe_item *item = &probe->items[i];
        uint32_t level = quota_borrow_level(node, item->flavor, item->resource, item->asked);
        probe->level = level > probe->level ? level : probe->level;
    }
}

static void probe_again(struct core *core, struct candidate *candidate)
{
    struct quota_probe probe;
    evaluate_quota(core, candidate->shape, &probe);
    candidate->probe.level = probe.level;
    candidate->probe.is_hopeless = probe.is_hopeless;
    candidate->probe.is_fixed = probe.is_fixed;
    candidate->probe.count = 0;
    for (uint32_t i = 0; i < probe.count; i++) {
        candidate->probe.items =
            mem_grow(candidate->probe.items, i, &candidate->item_capacity, sizeof(*probe.items));
        candidate->probe.items[candidate->probe.count++] = probe.items[i];
    }
}

static bool is_known(const struct core *core, const struct candidate *candidate,
                     const struct shape *shape, uint64_t version)
{
    return shape != NULL && candidate->pass == core->pass && candidate->version == version &&
           candidate->shape == shape && candidate->gang == shape->first;
}

static const struct candidate *candidate_of(struct core *core, struct queue_state *queue,
                                            uint64_t version)
{
    struct candidate *candidate = &order_of(&queue->node)->candidate;
    struct shape *shape = order_first_ready(core, queue);
    if (is_known(core, candidate, shape, version)) {
        return candidate; /* nor has it become short meanwhile: nothing has been used up */
    }
    shape = next_of(core, queue);
    if (shape == NULL) {
        return NULL;
    }
    struct gang *gang = shape->first;
    bool is_fixed =
        candidate->probe.is_fixed && candidate->pass == core->pass && candidate->shape == shape;
    candidate->shape = shape;
    candidate->gang = gang;
    candidate->pass = core->pass;
    candidate->version = version;
    if (is_fixed) {
        look_up_level(candidate);
    } else {
        probe_again(core, candidate);
    }
    return candidate;
}

/* -- between branches -------------------------------------------------------------------------- */

static int64_t branch_share(struct core *core, struct quota_node *branch, uint64_t above,
                            const struct candidate *candidate)
{
    struct order_node *kept = order_of(branch);
    bool is_known = kept->share_pass == core->pass && kept->share_changes == branch->changes &&
                    kept->share_above == above;
    if (!is_known) {
        kept->share = share_of(branch, &candidate->shape->queue->node, &candidate->probe);
        kept->share_pass = core->pass;
        kept->share_changes = branch->changes;
        kept->share_above = above;
    }
    return kept->share;
}

struct branch {
    struct quota_node *node;
    const struct candidate *best;
};

/* Whether `b` goes before `a`; `above`: the versions of the nodes above the two. */
static bool goes_before(struct core *core, const struct branch *a, const struct branch *b,
                        uint64_t above, bool by_share)
{
    if (a->best->probe.is_hopeless != b->best->probe.is_hopeless) {
        return b->best->probe.is_hopeless; /* judged at once, it is out of the others' way */
    }
    if (a->best->probe.level != b->best->probe.level) {
        return b->best->probe.level < a->best->probe.level;
    }
    if (by_share) {
        int64_t used_a = history_of_branch(core, a->node);
        int64_t used_b = history_of_branch(core, b->node);
        if (used_a != used_b) {
            return used_b < used_a;
        }
        int64_t share_a = branch_share(core, a->node, above, a->best);
        int64_t share_b = branch_share(core, b->node, above, b->best);
        if (share_a != share_b) {
            return share_b < share_a;
        }
    }
    return gang_compare_order(b->best->gang, a->best->gang) < 0;
}

static const struct candidate *best_of(struct core *core, struct quota_node *node, uint64_t above,
                                       bool by_share)
{
    if (node->queue != NULL) {
        return candidate_of(core, node->queue, above + node->version);
    }
    struct order_node *kept = order_of(node);
    if (kept->pass == core->pass && kept->changes == node->changes && kept->above == above) {
        return kept->best;
    }
    struct branch best = {.node = NULL};
    for (struct quota_node *child = node->children; child != NULL; child = child->next_sibling) {
        if (child->ready_below == 0) {
            continue;
        }
        core->cost.queues_ranked++;
        struct branch branch = {child, best_of(core, child, above + node->version, by_share)};
        if (branch.best != NULL &&
            (best.node == NULL ||
             goes_before(core, &best, &branch, above + node->version, by_share))) {
            best = branch;
        }
    }
    kept->best = best.best;
    kept->pass = core->pass;
    kept->changes = node->changes; /* looking may have put some aside */
    kept->above = above;
    return best.best;
}

struct shape *order_next(struct core *core)
{
    if (core->options.is_plain) {
        return order_next_plain(core);
    }
    arena_reset(&core->scratch);
    struct shape *best = NULL;
    struct gang *best_gang = NULL;
    struct quota_node *next;
    for (struct quota_node *root = core->active_roots; root != NULL; root = next) {
        next = root->next_active; /* looking may leave nobody ready in this one */
        const struct candidate *candidate =
            root->queue == NULL ? best_of(core, root, 0, root->is_share_on) : NULL;
        struct shape *shape = root->queue != NULL ? next_of(core, root->queue)
                              : candidate == NULL ? NULL
                                                  : candidate->shape;
        if (candidate != NULL && candidate->probe.is_hopeless) {
            return shape; /* nor does it stand for its tree */
        }
        struct gang *gang = shape == NULL ? NULL : shape->first;
        if (gang != NULL && (best == NULL || gang_compare_order(gang, best_gang) < 0)) {
            best = shape;
            best_gang = gang;
        }
    }
    return best;
}
