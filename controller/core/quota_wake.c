/* quota_wake.c - an edit of a Queue or Cohort wakes those for whom it changes something.
 *
 * Before the first edit what every queue may use is noted, account by account; once the trees are
 * linked anew it is compared. A gang that is short of quota hears of it where its queue has more of
 * that account than before, and enough; one that could never have had it, where that limit has
 * moved. Gangs that may stop others hear of every change of an account of their tree that they ask
 * for, because what somebody else borrows is theirs to take back. Edits of other trees are nothing
 * to anybody. */
#include "extended.h"
#include "preempt.h"
#include "wait.h"

static uint64_t hash_number(uint64_t hash, int64_t number)
{
    return str_hash((struct str){(const char *)&number, sizeof(number)}, hash);
}

/* The cohorts above a node, whether they lead anywhere, and which accounts it lists. */
static uint64_t chain_of(const struct quota_node *node)
{
    uint64_t hash = hash_number(1, node->is_in_cycle);
    hash = hash_number(hash, str_is_set(node->doubled));
    for (uint32_t i = 0; i < node->cell_count; i++) {
        const struct quota_cell *cell = &node->cells[i];
        hash += cell->is_listed ? str_hash(cell->flavor, str_hash(cell->resource, 2)) : 0;
    }
    for (const struct quota_node *up = node->parent; up != NULL; up = up->parent) {
        hash = str_hash(up->name, hash);
    }
    return hash;
}

/* What a node shares out and how, whatever a queue uses of it. Of what is used of a cohort a queue
 * that leaves takes its part along. */
static uint64_t terms_of(const struct quota_node *node, const struct quota_cell *cell)
{
    uint64_t hash = hash_number(chain_of(node), node->weight_milli);
    hash = hash_number(hash, node->has_fair_sharing);
    hash = hash_number(hash, cell->nominal);
    hash = hash_number(hash, cell->borrowing_limit);
    hash = hash_number(hash, cell->lending_limit);
    hash = hash_number(hash, node->is_cohort ? i128_clamp(cell->used) : 0);
    return hash_number(hash, i128_clamp(cell->subtree));
}

static void note_node(struct quota_node *node)
{
    node->chain_before = chain_of(node);
    node->is_edited = false;
    for (uint32_t i = 0; i < node->cell_count; i++) {
        struct quota_cell *cell = &node->cells[i];
        cell->is_edited = false;
        cell->terms_before = terms_of(node, cell);
        cell->free_before = quota_available(node, cell->flavor, cell->resource);
        cell->potential_before = quota_potential(node, cell->flavor, cell->resource);
    }
}

void quota_mark_stale(struct core *core)
{
    if (core->is_tree_stale) {
        return;
    }
    core->is_tree_stale = true;
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        note_node(&queue->node);
    }
    struct cohort_state *cohort;
    struct cohort_state *next;
    HASH_ITER (hh, core->cohorts, cohort, next) {
        note_node(&cohort->node);
    }
}

bool quota_shape_asks(const struct core *core, const struct shape *shape, struct str account)
{
    if (!shape->is_resolved || shape->broken.reason != REASON_NONE ||
        str_eq_c(account, RESOURCE_PODS)) {
        return true;
    }
    for (uint32_t s = 0; s < shape->set_count; s++) {
        const struct pod_set *set = &shape->sets[s];
        if (set->device_count > 0 || set->claim_count > 0) {
            return true;
        }
        for (uint32_t i = 0; i < set->per_pod.count; i++) {
            if (str_eq(account_of(core, set->per_pod.items[i].resource), account)) {
                return true;
            }
        }
    }
    return false;
}

/* The limit of what it could ever use has moved: some never fit any more, or would fit now. */
static void potential_changed(struct core *core, struct queue_state *queue,
                              const struct quota_cell *cell, i128 potential)
{
    for (struct shape *shape = queue->shapes; shape != NULL; shape = shape->next_in_queue) {
        const struct verdict *verdict = &shape->verdict;
        bool is_told =
            str_eq(verdict->flavor, cell->flavor) && str_eq(verdict->resource, cell->resource);
        bool is_far = is_told && verdict->asked > potential;
        if ((verdict->waits_for & WAIT_CONFIG) != 0 && !is_far &&
            quota_shape_asks(core, shape, cell->resource)) {
            wake_shape(core, shape);
        }
        for (uint32_t i = 0; i < shape->wait_count; i++) {
            const struct quota_line *line = shape->waits[i].line;
            bool is_here =
                str_eq(line->flavor, cell->flavor) && str_eq(line->resource, cell->resource);
            if (is_here && shape->waits[i].asked > potential) {
                wake_shape(core, shape);
                break;
            }
        }
    }
}

static void wake_in_queue(struct core *core, struct queue_state *queue)
{
    struct quota_node *node = &queue->node;
    bool is_moved = chain_of(node) != node->chain_before;
    if (is_moved || core->options.is_plain) {
        wake_queue(core, queue, WAIT_QUOTA | WAIT_CONFIG);
    }
    bool is_touched = is_moved;
    for (uint32_t i = 0; i < node->cell_count; i++) {
        const struct quota_cell *cell = &node->cells[i];
        i128 potential = quota_potential(node, cell->flavor, cell->resource);
        is_touched = is_touched || terms_of(node, cell) != cell->terms_before;
        if (quota_available(node, cell->flavor, cell->resource) > cell->free_before) {
            waits_wake(core, node, cell->flavor, cell->resource);
        }
        if (potential != cell->potential_before) {
            potential_changed(core, queue, cell, potential);
        }
    }
    if (is_touched || core->options.is_plain) {
        queue_touch(core, queue);
    }
}

/* The accounts at the top of the tree that an edit of the node is about. */
static void mark_edited(struct quota_node *node)
{
    struct quota_node *root = (struct quota_node *)(uintptr_t)quota_root(node);
    for (uint32_t i = 0; i < node->cell_count; i++) {
        struct quota_cell *cell = &node->cells[i];
        if (!node->is_edited && terms_of(node, cell) == cell->terms_before) {
            continue;
        }
        struct quota_cell *above = quota_cell_find(root, cell->flavor, cell->resource);
        if (above != NULL) {
            above->is_edited = true;
        }
    }
}

static bool is_account_edited(const struct core *core, const struct shape *shape)
{
    const struct quota_node *root = quota_root(&shape->queue->node);
    for (uint32_t i = 0; i < root->cell_count; i++) {
        if (root->cells[i].is_edited && quota_shape_asks(core, shape, root->cells[i].resource)) {
            return true;
        }
    }
    return false;
}

void quota_wake_edited(struct core *core)
{
    core->has_freed = core->has_freed || core->has_freed_quota; /* by the trees as they were */
    core->has_let_go = true; /* who holds the room that others wait for may be stopped now */
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        wake_in_queue(core, queue);
        mark_edited(&queue->node);
    }
    struct cohort_state *cohort;
    struct cohort_state *next;
    HASH_ITER (hh, core->cohorts, cohort, next) {
        mark_edited(&cohort->node);
        cohort->status.is_dirty = true; /* as of another that it is linked to */
    }
    struct gang *gang;
    GANG_LINE_FOREACH (gang, &core->holders) {
        bool is_reserved = gang->state == GANG_RESERVED && gang->room->check == NULL;
        if (is_reserved && is_account_edited(core, gang->shape)) {
            preempt_unsettle(core, gang);
        }
    }
    for (struct shape *shape = core->preemptors; shape != NULL; shape = shape->next_preemptor) {
        if ((shape->verdict.waits_for & WAIT_QUOTA) != 0 && is_account_edited(core, shape)) {
            wake_shape(core, shape);
        }
    }
}
