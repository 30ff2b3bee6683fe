/* quota.c - shared quota, for trees of any depth.
 *
 * The rules are Kueue's (pkg/cache/scheduler/resource_node.go): a node's subtree quota is its
 * nominal quota and what its children lend; of it the part beyond lendingLimit is guaranteed and
 * never lent; usage beyond the guaranteed part is used in the parent too; borrowingLimit bounds
 * what comes from the parent. Sums are 128 bits wide and exact. */
#include "history.h"
#include "order.h"

#include <assert.h>
#include <stdlib.h>

#include "tallyman/base/alloc.h"

void quota_node_init(struct quota_node *node, struct str name, struct queue_state *queue)
{
    *node = (struct quota_node){
        .name = name, .queue = queue, .is_cohort = queue == NULL, .weight_milli = 1000};
}

void quota_node_deinit(struct quota_node *node)
{
    for (uint32_t i = 0; i < node->cell_count; i++) {
        str_drop(&node->cells[i].flavor);
        str_drop(&node->cells[i].resource);
    }
    order_node_free(node->order);
    node->order = NULL;
    mem_free(node->cells);
    node->cells = NULL;
    node->cell_count = node->cell_capacity = 0;
}

struct quota_cell *quota_cell_find(const struct quota_node *node, struct str flavor,
                                   struct str resource)
{
    for (uint32_t i = 0; i < node->cell_count; i++) {
        struct quota_cell *cell = &node->cells[i];
        if (str_eq(cell->flavor, flavor) && str_eq(cell->resource, resource)) {
            return cell;
        }
    }
    return NULL;
}

static struct quota_cell *quota_cell_get(struct quota_node *node, struct str flavor,
                                         struct str resource)
{
    struct quota_cell *cell = quota_cell_find(node, flavor, resource);
    if (cell != NULL) {
        return cell;
    }
    node->cells =
        mem_grow(node->cells, node->cell_count, &node->cell_capacity, sizeof(*node->cells));
    cell = &node->cells[node->cell_count++];
    *cell = (struct quota_cell){.flavor = str_own(flavor),
                                .resource = str_own(resource),
                                .borrowing_limit = QUOTA_UNLIMITED,
                                .lending_limit = QUOTA_UNLIMITED};
    return cell;
}

/* Quotas are limits: what doesn't divide is rounded down. */
static int64_t limit_of(const struct quota_resource *resource, const struct opt_quantity *limit)
{
    return limit->is_set ? resource_amount_from_quantity(resource->name, limit->value, false)
                         : QUOTA_UNLIMITED;
}

static bool is_negative(const struct opt_quantity *amount)
{
    return amount->is_set && amount->value.nano < 0;
}

/* NULL: the amounts of the resource can be counted with. */
static const char *bad_field(const struct quota_resource *resource)
{
    return !resource->nominal_quota.is_set || is_negative(&resource->nominal_quota) ? "nominalQuota"
           : is_negative(&resource->borrowing_limit) ? "borrowingLimit"
           : is_negative(&resource->lending_limit)   ? "lendingLimit"
                                                     : NULL;
}

struct rc quota_check(const char *kind, struct str name, const struct resource_group_list *groups,
                      struct err *err)
{
    for (uint32_t g = 0; g < groups->count; g++) {
        for (uint32_t f = 0; f < groups->items[g].flavors.count; f++) {
            const struct quota_flavor *flavor = &groups->items[g].flavors.items[f];
            for (uint32_t r = 0; r < flavor->resources.count; r++) {
                const struct quota_resource *resource = &flavor->resources.items[r];
                const char *bad = bad_field(resource);
                if (bad != NULL) {
                    return err_set(err, RC_INVALID,
                                   "%s " STR_FMT ": spec.resourceGroups[%u].flavors[%u] (" STR_FMT
                                   "): %s of " STR_FMT " must be a quantity of 0 or more",
                                   kind, STR_ARG(name), g, f, STR_ARG(flavor->name), bad,
                                   STR_ARG(resource->name));
                }
            }
        }
    }
    return RC_SUCCESS;
}

void quota_node_prune(struct quota_node *node)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < node->cell_count; i++) {
        struct quota_cell *cell = &node->cells[i];
        if (cell->is_listed || cell->used != 0) {
            node->cells[kept++] = *cell;
            continue;
        }
        str_drop(&cell->flavor);
        str_drop(&cell->resource);
    }
    node->cell_count = kept;
}

/* Of flavors that don't list the same, too. */
static void quota_node_find_doubled(struct quota_node *node)
{
    for (uint32_t i = 0; i < node->cell_count; i++) {
        const struct quota_cell *cell = &node->cells[i];
        for (uint32_t j = 0; j < i && cell->is_listed; j++) {
            const struct quota_cell *other = &node->cells[j];
            if (other->is_listed && str_eq(other->resource, cell->resource) &&
                !str_eq(other->listed, cell->listed)) {
                node->doubled = other->listed;
                node->doubled_by = cell->listed;
            }
        }
    }
}

void quota_node_read(struct core *core, struct quota_node *node,
                     const struct resource_group_list *groups)
{
    quota_mark_stale(core);
    node->doubled = node->doubled_by = STR_NONE;
    for (uint32_t i = 0; i < node->cell_count; i++) {
        struct quota_cell *cell = &node->cells[i];
        cell->is_listed = false;
        cell->listed = STR_NONE;
        cell->nominal = 0;
        cell->borrowing_limit = cell->lending_limit = QUOTA_UNLIMITED;
    }
    for (uint32_t g = 0; groups != NULL && g < groups->count; g++) {
        for (uint32_t f = 0; f < groups->items[g].flavors.count; f++) {
            const struct quota_flavor *flavor = &groups->items[g].flavors.items[f];
            for (uint32_t r = 0; r < flavor->resources.count; r++) {
                const struct quota_resource *resource = &flavor->resources.items[r];
                struct quota_cell *cell =
                    quota_cell_get(node, flavor->name, account_of(core, resource->name));
                struct str name = resource_intern(core, resource->name);
                if (cell->is_listed) {
                    node->doubled = cell->listed;
                    node->doubled_by = name;
                    continue; /* the first counts, until the spec is corrected */
                }
                cell->listed = name;
                cell->nominal = limit_of(resource, &resource->nominal_quota);
                cell->borrowing_limit = limit_of(resource, &resource->borrowing_limit);
                cell->lending_limit = limit_of(resource, &resource->lending_limit);
                cell->is_listed = true;
            }
        }
    }
    quota_node_prune(node);
    quota_node_find_doubled(node);
}

struct str quota_trouble(const struct quota_node *node, struct arena *arena)
{
    if (node->is_in_cycle) {
        return arena_format(arena,
                            "the cohorts above queue " STR_FMT
                            " form a cycle, or are more than %d deep; correct spec.parentName "
                            "of one of them",
                            STR_ARG(node->name), QUOTA_DEPTH_MAX);
    }
    return str_is_set(node->doubled)
               ? arena_format(arena, "queue " STR_FMT ": " STR_FMT, STR_ARG(node->name),
                              STR_ARG(doubled_text(arena, node)))
               : STR_NONE;
}

/* -- sums ------------------------------------------------------------------------------------- */

/* Where the quota of a flavor and resource isn't listed. */
static const struct quota_cell nothing = {.borrowing_limit = QUOTA_UNLIMITED,
                                          .lending_limit = QUOTA_UNLIMITED};

/* The part of its quota that a node never lends to its parent. */
static i128 guaranteed(const struct quota_cell *cell)
{
    if (cell->lending_limit == QUOTA_UNLIMITED || cell->subtree <= cell->lending_limit) {
        return 0;
    }
    return cell->subtree - cell->lending_limit;
}

static i128 beyond(const struct quota_cell *cell)
{
    i128 own = guaranteed(cell);
    return cell->used > own ? cell->used - own : 0;
}

i128 quota_beyond(const struct quota_node *node, struct str flavor, struct str resource, i128 extra)
{
    const struct quota_cell *cell = quota_cell_find(node, flavor, resource);
    struct quota_cell more = cell == NULL ? nothing : *cell;
    more.used += extra;
    return beyond(&more);
}

struct quota_node *quota_use(struct quota_node *node, struct str flavor, struct str resource,
                             i128 delta)
{
    struct quota_node *top = NULL;
    order_changed(node);
    while (node != NULL && delta != 0) {
        struct quota_cell *cell = quota_cell_get(node, flavor, resource);
        i128 before = node->parent == NULL ? 0 : beyond(cell);
        cell->used += delta;
        node->version++;
        top = node;
        assert(cell->used >= 0);
        delta = node->parent == NULL ? 0 : beyond(cell) - before;
        node = node->parent;
    }
    return top;
}

const struct quota_node *quota_root(const struct quota_node *node)
{
    while (node->parent != NULL) {
        node = node->parent;
    }
    return node;
}

i128 quota_available(const struct quota_node *node, struct str flavor, struct str resource)
{
    const struct quota_cell *cell = quota_cell_find(node, flavor, resource);
    cell = cell == NULL ? &nothing : cell;
    if (node->parent == NULL) {
        i128 free = cell->subtree - cell->used;
        return free > 0 ? free : 0;
    }
    i128 own = guaranteed(cell);
    i128 local = own > cell->used ? own - cell->used : 0;
    i128 above = quota_available(node->parent, flavor, resource);
    if (cell->borrowing_limit != QUOTA_UNLIMITED) {
        i128 room = (cell->subtree - own) - beyond(cell) + cell->borrowing_limit;
        room = room > 0 ? room : 0;
        above = room < above ? room : above;
    }
    return local + above;
}

i128 quota_potential(const struct quota_node *node, struct str flavor, struct str resource)
{
    const struct quota_cell *cell = quota_cell_find(node, flavor, resource);
    i128 subtree = cell == NULL ? 0 : cell->subtree;
    if (node->parent == NULL) {
        return subtree;
    }
    i128 own = cell == NULL ? 0 : guaranteed(cell);
    i128 above = quota_potential(node->parent, flavor, resource);
    if (cell != NULL && cell->borrowing_limit != QUOTA_UNLIMITED) {
        i128 room = subtree - own + cell->borrowing_limit;
        above = room < above ? room : above;
    }
    return own + above;
}

uint32_t quota_borrow_level(const struct quota_node *node, struct str flavor, struct str resource,
                            i128 asked)
{
    while (node->parent != NULL && asked > 0) {
        const struct quota_cell *cell = quota_cell_find(node, flavor, resource);
        i128 used = cell == NULL ? 0 : cell->used;
        i128 subtree = cell == NULL ? 0 : cell->subtree;
        if (used + asked <= subtree) {
            break;
        }
        i128 own = cell == NULL ? 0 : guaranteed(cell);
        i128 local = own > used ? own - used : 0;
        asked = asked > local ? asked - local : 0;
        node = node->parent;
    }
    return node->height;
}

bool quota_hits_borrowing_limit(const struct quota_node *node, struct str flavor,
                                struct str resource, i128 asked)
{
    const struct quota_cell *cell = quota_cell_find(node, flavor, resource);
    if (cell == NULL || node->parent == NULL || cell->borrowing_limit == QUOTA_UNLIMITED) {
        return false;
    }
    return cell->used + asked > cell->subtree + cell->borrowing_limit;
}

/* -- links ------------------------------------------------------------------------------------- */

struct node_list {
    struct quota_node **items; /* in the scratch arena */
    uint32_t count;
    uint32_t capacity;
};

static void add_node(struct core *core, struct node_list *list, struct quota_node *node)
{
    node->parent = node->children = node->next_sibling = NULL;
    node->is_in_cycle = false;
    node->is_share_on = false;
    node->ready_below = 0;
    node->next_active = node->previous_active = NULL;
    node->depth = 0;
    node->height = 0;
    list->items = arena_grow(&core->scratch, list->items, list->count, &list->capacity,
                             sizeof(struct quota_node *));
    list->items[list->count++] = node;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct quota_node *const *left = a;
    const struct quota_node *const *right = b;
    if ((*left)->depth != (*right)->depth) {
        return (*left)->depth < (*right)->depth ? 1 : -1; /* the deepest first */
    }
    if ((*left)->is_cohort != (*right)->is_cohort) {
        return (*left)->is_cohort ? 1 : -1;
    }
    return str_compare((*left)->name, (*right)->name);
}

/* A chain of parents that doesn't end is a cycle; all that lead into it are in it. */
static void measure_depth(struct quota_node *node)
{
    uint32_t depth = 0;
    for (const struct quota_node *up = node->parent; up != NULL; up = up->parent) {
        if (++depth > QUOTA_DEPTH_MAX) {
            node->is_in_cycle = true;
            return;
        }
    }
    node->depth = depth;
}

static void fair_of(struct quota_node *node, const struct fair_sharing *fair)
{
    node->has_fair_sharing = fair != NULL;
    node->weight_milli = 1000;
    node->half_life_ms = fair != NULL && fair->half_life.is_set ? fair->half_life.ms : 0;
    if (fair != NULL && fair->weight.is_set) {
        node->weight_milli = quantity_milli_down(fair->weight.value);
    }
}

static void link_parents(struct core *core, struct node_list *list)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        if (queue->object != NULL && !str_is_empty(queue->object->spec.cohort)) {
            queue->node.parent = &cohort_get(core, queue->object->spec.cohort)->node;
        }
        fair_of(&queue->node, queue->object == NULL ? NULL : queue->object->spec.fair_sharing);
    }
    struct cohort_state *cohort;
    struct cohort_state *next;
    HASH_ITER (hh, core->cohorts, cohort, next) {
        if (cohort->object != NULL && !str_is_empty(cohort->object->spec.parent_name)) {
            cohort->node.parent = &cohort_get(core, cohort->object->spec.parent_name)->node;
        }
        fair_of(&cohort->node, cohort->object == NULL ? NULL : cohort->object->spec.fair_sharing);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        measure_depth(list->items[i]);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i]->is_in_cycle) {
            list->items[i]->parent = NULL; /* each for itself, and none admits */
        }
    }
}

/* From the leaves up: what is lent to the parent, and what is used there. */
static void sum_up(struct quota_node *node)
{
    struct quota_node *parent = node->parent;
    for (uint32_t i = 0; i < node->cell_count; i++) {
        struct quota_cell *cell = &node->cells[i];
        cell->subtree += cell->nominal;
        if (parent != NULL) {
            struct quota_cell *above = quota_cell_get(parent, cell->flavor, cell->resource);
            above->subtree += cell->subtree - guaranteed(cell);
            above->used += beyond(cell);
        }
    }
    if (parent != NULL) {
        node->next_sibling = parent->children;
        parent->children = node;
        parent->height = parent->height > node->height ? parent->height : node->height + 1;
    }
}

static void reset_sums(struct quota_node *node)
{
    for (uint32_t i = 0; i < node->cell_count; i++) {
        node->cells[i].subtree = 0;
        if (node->is_cohort) {
            node->cells[i].used = 0; /* a queue's own usage is the ledger's */
        }
    }
}

void quota_relink(struct core *core)
{
    if (!core->is_tree_stale) {
        return;
    }
    core->is_tree_stale = false;
    core->active_roots = NULL;
    cohorts_make_implicit(core);
    struct node_list list = {.count = 0};
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        add_node(core, &list, &queue->node);
    }
    struct cohort_state *cohort;
    struct cohort_state *next;
    HASH_ITER (hh, core->cohorts, cohort, next) {
        add_node(core, &list, &cohort->node);
    }
    link_parents(core, &list);
    if (list.count > 1) {
        qsort(list.items, list.count, sizeof(struct quota_node *), compare_nodes);
    }
    for (uint32_t i = 0; i < list.count; i++) {
        reset_sums(list.items[i]);
    }
    for (uint32_t i = 0; i < list.count; i++) {
        sum_up(list.items[i]);
    }
    history_relink(core);
    for (uint32_t i = 0; i < list.count; i++) {
        struct quota_node *root = (struct quota_node *)(uintptr_t)quota_root(list.items[i]);
        root->is_share_on = root->is_share_on || list.items[i]->has_fair_sharing;
    }
    RB_FOREACH (queue, ready_tree, &core->ready) {
        order_count_ready(core, &queue->node, true);
    }
    quota_wake_edited(core);
}
