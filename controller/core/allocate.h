/* allocate.h - one node's devices as kube-scheduler's allocator goes through them, and the search
 * for one pod's. Private to fit_candidates.c, fit_allocate.c and fit_asked.c.
 *
 * Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating, 1.37. */
#pragma once

#include "ask.h"

#define LOOSE_SLICES_MAX 4 /* slices of a node that are tried in every order */

/* A device that some option of the ask matches. */
struct candidate {
    struct device_state *device;
    uint64_t options;  /* bit per option that it matches */
    uint64_t failing;  /* bit per option whose selectors fail on it */
    uint64_t out;      /* of options: those that can't have it, for a taint */
    uint32_t alike;    /* index of the first candidate that it can't be told apart from */
    bool is_open;      /* nobody has it as a whole, in the cluster or the plan */
    bool is_taken;     /* by a pod of this search */
    bool has_shares;   /* shares of it are in use, or planned */
    bool is_overdrawn; /* its pool's counters are drawn on beyond what there is */
    uint32_t marks;    /* bit per claim of the pod being placed that has it */
    i128 *shares;      /* by capacity, of this search; NULL: it isn't shareable */
    uint32_t share_count;
    uint32_t *values; /* by constraint: equal for equal attributes, 0 where it has none */
};

/* A candidate that was given to a request. */
struct pick {
    uint32_t candidate;
    const struct ask_option *option;
    uint32_t claim;
    const i128 *amounts; /* by capacity; in the scratch arena */
    bool draws;          /* on the candidate's counters: nobody had a share of it */
};

enum found { FOUND_NOT = 0, FOUND_ALL, FOUND_BROKEN, FOUND_TOO_HARD };

struct search {
    struct core *core;
    const struct device_ask *ask;
    struct candidate *items; /* in the scratch arena, in the allocator's order */
    uint32_t count;
    uint32_t *order; /* in which they are gone through now; indices of items */
    uint32_t loose;  /* slices, where their order may matter and isn't known; else 0 */
    bool has_roaming;
    bool is_emptied;    /* as if nothing were in use, and all were healthy */
    bool knows_alike;   /* candidate.alike is valid */
    struct pick *picks; /* of this pod and those before it */
    uint32_t pick_count;
    uint32_t pick_room;
    uint32_t first_pick; /* of this pod */
    uint32_t steps;
    uint32_t steps_allowed;
    uint32_t value_count;
    uint32_t *first_values; /* by claim: where its constraints begin in candidate.values */
    struct breach breach;   /* of FOUND_BROKEN */
};

/* -- fit_candidates.c -------------------------------------------------------------------------- */

void search_open(struct search *search, struct core *core, const struct device_ask *ask,
                 const struct node_state *node, bool is_emptied);
void search_find_alike(struct search *search);
/* The order number `turn`, from 0, in which the loose slices may come; the first is the one by
 * name. False: there are no more. */
bool search_set_order(struct search *search, uint32_t turn);

/* Its attribute of that full name, NULL: it has none. */
const struct device_attribute *device_attribute_find(const struct device_state *device,
                                                     struct str name);

/* -- fit_allocate.c ---------------------------------------------------------------------------- */

/* What looking at devices took; beyond search.steps_allowed the search ends FOUND_TOO_HARD. */
void search_count(struct search *search, uint32_t steps);
/* How many steps the next search of this judgement may take. */
uint32_t searches_allowed(const struct core *core);
/* The first way that the allocator finds for one more pod; its picks are added. Nothing changes
 * unless it is FOUND_ALL. */
enum found search_pod(struct search *search);
/* Takes back the last pod, whose picks begin there. */
void search_undo_pod(struct search *search, uint32_t first_pick);
