/* reach.h - the nodes that pods of one kind may use, indexed by what is free on them.
 *
 * Pods that ask for the same nodes (selector, affinity, tolerations, flavors) share one reach,
 * whatever amounts they ask. For each resource and device profile that was asked about it keeps
 * what is free on every node, in the order of names, under a tree of maxima: so the nodes that can
 * take a pod are found without looking at the others, and sums and maxima are at hand for the
 * sentence. What has changed on a node since (a pod, a device, the plan, a what-if) is taken in
 * when the reach is used next.
 *
 * A reach says what the plain walk over all nodes says. Where it can't be used (devices that no
 * node owns, named claims) the plain walk does the work: reach_of() is NULL then. */
#pragma once

#include "internal.h"

#define REACH_COLUMNS_MAX 12
#define REACHES_MAX       512 /* of some bytes per node, and what their columns take */
#define REACH_COLUMNS_ALL 192 /* of all reaches: each has 16 bytes per node and more */
#define REACH_NONE        UINT32_MAX

/* One resource, or the devices of one profile. */
struct reach_column {
    struct str resource;            /* borrowed from core.resource_names; absent: devices */
    struct device_profile *profile; /* NULL: a resource, or the column is free. Both: an extended
                                       resource, or devices where the node doesn't offer it */
    int64_t *maxima;                /* owned; the tree, its leaves from `leaves` on */
    i128 sum;                       /* free, over the nodes in reach */
    /* What there is, used or not, as it was at `capacity_at`. */
    i128 capacity_sum; /* of devices: on all nodes, in reach or not */
    int64_t capacity_largest;
    uint64_t capacity_at;
};

struct reach {
    struct str key; /* owned */
    UT_hash_handle hh;
    uint64_t used_at;
    uint64_t synced_at; /* all changes up to this one are in */
    uint32_t node_count;
    uint32_t leaves;     /* a power of two */
    uint64_t *bits;      /* owned; bit per node in reach */
    uint8_t *exclusions; /* owned; enum exclusion per node; EXCLUDED_COUNT: in reach */
    uint32_t nodes_total;
    uint32_t excluded[EXCLUDED_COUNT + 1];
    struct reach_column columns[REACH_COLUMNS_MAX];
    uint32_t column_count;
};

/* What one pod needs of a column. */
struct reach_need {
    const struct reach_column *column;
    int64_t amount;
};

struct reach_needs {
    struct reach_need items[REACH_COLUMNS_MAX];
    uint32_t count;
};

/* Up to date; borrowed until the next call but one. NULL: walk the nodes. */
struct reach *reach_of(struct core *core, const struct pod_demand *demand);
/* What of the demand the reach can tell nodes apart by. */
void reach_find_needs(struct core *core, struct reach *reach, const struct pod_demand *demand,
                      struct reach_needs *ret_needs);
/* The first node at `from` or behind it that has enough of each; NULL: there is none. */
struct node_state *reach_next(const struct core *core, const struct reach *reach,
                              const struct reach_needs *needs, uint32_t from);
/* The column of a resource, or of a profile's devices; NULL: there are too many columns. */
struct reach_column *reach_column_of(struct core *core, struct reach *reach, struct str resource,
                                     struct device_profile *profile);
/* Whether that node has enough of each. */
bool reach_has(const struct reach *reach, const struct reach_needs *needs, uint32_t index);
/* Fills in what there is, used or not. */
void reach_measure_capacity(struct core *core, struct reach *reach, struct reach_column *column);
