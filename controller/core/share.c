/* share.c - the weighted dominant share of a branch: what it uses beyond its own quota, beside what
 * its parent has to lend. One function for the order and for preemption. */
#include "share.h"

#define WEIGHT_ONE_MILLI 1000

bool share_is_on(const struct quota_node *root)
{
    if (root->has_fair_sharing) {
        return true;
    }
    for (const struct quota_node *child = root->children; child != NULL;
         child = child->next_sibling) {
        if (share_is_on(child)) {
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

static i128 borrowed_of(const struct quota_node *branch, const struct quota_node *leaf,
                        const struct quota_probe *more, struct str resource)
{
    i128 borrowed = 0;
    for (uint32_t i = 0; i < branch->cell_count; i++) {
        const struct quota_cell *cell = &branch->cells[i];
        if (!str_eq(cell->resource, resource)) {
            continue;
        }
        i128 used = cell->used;
        for (uint32_t p = 0; more != NULL && p < more->count; p++) {
            const struct probe_item *item = &more->items[p];
            if (str_eq(item->resource, resource) && str_eq(item->flavor, cell->flavor)) {
                used += carried(leaf, branch, item);
            }
        }
        borrowed += used > cell->subtree ? used - cell->subtree : 0;
    }
    return borrowed;
}

i128 share_lendable(const struct quota_node *parent, struct str resource)
{
    i128 sum = 0;
    /* A flavor that nobody below lists is lent from further up all the same. */
    const struct quota_node *root = quota_root(parent);
    for (uint32_t i = 0; i < root->cell_count; i++) {
        if (str_eq(root->cells[i].resource, resource)) {
            sum += quota_potential(parent, root->cells[i].flavor, resource);
        }
    }
    return sum;
}

int64_t share_of(const struct quota_node *branch, const struct quota_node *leaf,
                 const struct quota_probe *more)
{
    int64_t weight_milli = branch->weight_milli > 0 ? branch->weight_milli : WEIGHT_ONE_MILLI;
    i128 dominant = 0;
    bool is_borrowing = false;
    for (uint32_t i = 0; i < branch->cell_count; i++) {
        struct str resource = branch->cells[i].resource;
        i128 borrowed = borrowed_of(branch, leaf, more, resource);
        if (borrowed == 0) {
            continue;
        }
        is_borrowing = true;
        /* One division, so that equal shares come out equal whatever their weights. */
        i128 lendable = (i128)i128_clamp(share_lendable(branch->parent, resource)) * weight_milli;
        i128 share = lendable <= 0
                         ? SHARE_INFINITE
                         : (i128)i128_clamp(borrowed) * SHARE_SCALE * WEIGHT_ONE_MILLI / lendable;
        dominant = share > dominant ? share : dominant;
    }
    if (!is_borrowing) {
        return 0;
    }
    return branch->weight_milli == 0 ? SHARE_INFINITE : i128_clamp(dominant);
}

bool share_borrows(const struct quota_node *branch, const struct quota_node *leaf,
                   const struct quota_probe *more)
{
    for (uint32_t i = 0; i < more->count; i++) {
        const struct probe_item *item = &more->items[i];
        const struct quota_cell *cell = quota_cell_find(branch, item->flavor, item->resource);
        i128 used = cell == NULL ? 0 : cell->used;
        i128 own = cell == NULL ? 0 : cell->subtree;
        if (used + carried(leaf, branch, item) > own) {
            return true;
        }
    }
    return false;
}
