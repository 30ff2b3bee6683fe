/* share.h - how much of what others lend a branch of a tree of shared quota uses, by its weight. */
#pragma once

#include "internal.h"

/* Parts of a billion, weighted; SHARE_INFINITE: a branch of weight 0 that borrows. */
#define SHARE_SCALE    1000000000
#define SHARE_INFINITE INT64_MAX

/* Whether fair sharing is on in the tree: some queue or cohort of it names it. */
bool share_is_on(const struct quota_node *root);
/* The weighted dominant share of what the branch (not a root) borrows, with `more` at the queue
 * `leaf` in or below it; `more` may be NULL. */
int64_t share_of(const struct quota_node *branch, const struct quota_node *leaf,
                 const struct quota_probe *more);
/* Whether the branch, with `more` at the queue `leaf` in or below it, uses more than its own quota
 * of any of that. */
bool share_borrows(const struct quota_node *branch, const struct quota_node *leaf,
                   const struct quota_probe *more);
/* What the node has to give below it of the resource, all flavors together. */
i128 share_lendable(const struct quota_node *node, struct str resource);
