/* quota_tree.h - the trees in which quota is shared. Private to the core. */
#pragma once

#include "amounts.h"

struct order_node;
struct queue_state;

/* The account of one resource in one flavor of a queue. */
struct quota_cell {
    struct str flavor;   /* owned */
    struct str resource; /* owned; of a device the class's name */
    struct str listed;   /* as the spec has it, from core.resource_names; absent: it hasn't */
    int64_t nominal;
    int64_t borrowing_limit; /* QUOTA_UNLIMITED: none */
    int64_t lending_limit;   /* QUOTA_UNLIMITED: none */
    i128 subtree;            /* nominal, and what the children lend */
    i128 used;               /* = the sum of the reservations' charges here, asserted */
    bool is_listed;          /* in the Queue's spec; a cell stays while it is used */
    /* as it was before the edits that the trees aren't linked for yet; see quota_wake.c */
    bool is_edited; /* of a root: for somebody in its tree */
    uint64_t terms_before;
    i128 free_before;
    i128 potential_before;
    uint64_t freed_in; /* of a root: core.freed_round in which some of it came free in its tree */
    i128 used_before;  /* before somebody began to stop; see preempt_relief.c */
    uint64_t relieved_in; /* core.relief_round in which less of it came to be used so */
};

#define QUOTA_UNLIMITED (-1)

/* A place in a tree of shared quota: a queue is a leaf, a cohort an inner node. What is used beyond
 * a node's guaranteed part (subtree - lendingLimit) is used in its parent too. */
#define LEVEL_ANY UINT32_MAX /* however far up is borrowed */

struct quota_node {
    struct str name; /* borrowed from its queue or cohort */
    bool is_cohort;
    bool is_in_cycle;            /* its parents go round: nothing is admitted */
    struct quota_node *parent;   /* NULL: a root */
    struct quota_node *children; /* list by next_sibling, in order of kind and name */
    struct quota_node *next_sibling;
    struct queue_state *queue; /* NULL: a cohort */
    struct quota_cell *cells;
    uint32_t cell_count;
    uint32_t cell_capacity;
    /* Two names in its spec that are one account, from core.resource_names; absent: none are. */
    struct str doubled, doubled_by;
    uint64_t seen_in;     /* the round of order_next_plain() that has looked at this root */
    uint32_t depth;       /* 0: a root */
    uint32_t height;      /* of the subtree; 0: a queue */
    int64_t weight_milli; /* fairSharing.weight in thousandths */
    int64_t half_life_ms; /* its own fairSharing.halfLife; 0: none */
    bool has_fair_sharing;
    bool is_share_on;         /* of a root: somebody in its tree has fair sharing */
    bool is_edited;           /* since the trees were linked, in more than its quota */
    uint64_t chain_before;    /* the cohorts above it then */
    uint64_t version;         /* counts the changes of what is used here */
    uint64_t changes;         /* at and below: of what is used, and of whose gangs are ready */
    uint32_t ready_below;     /* queues at and below with shapes to be judged */
    struct order_node *order; /* owned; what order.c keeps; NULL: nothing yet */
    struct quota_node *next_active, *previous_active; /* in core.active_roots */
};

/* Whether each amount is there, where it has to be, and none is negative; a sentence if not. */
struct rc quota_check(const char *kind, struct str name, const struct resource_group_list *groups,
                      struct err *err);
