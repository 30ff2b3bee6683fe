/* attempt.h - one gang's attempt on its queue's flavors: what it asks, and whether a combination of
 * flavors has the quota for it. Between evaluate.c and attempt.c. */
#pragma once

#include "internal.h"

#define DEMANDS_MAX 64

/* One resource that the gang asks of its queue. */
struct quota_demand {
    struct str resource;
    int64_t per_pod;
    int64_t shared; /* by named claims that nobody is charged for yet */
    int32_t group;  /* index in the set's groups; -1: not rationed */
};

/* One pod set's part in it. */
struct set_attempt {
    const struct pod_set *set;
    struct quota_demand *demands; /* in the scratch arena; DEMANDS_MAX at most */
    uint32_t demand_count;
    int32_t groups[FLAVORS_PER_GANG_MAX]; /* in spec.resourceGroups: those that the set draws on */
    uint32_t group_count;
    uint32_t choice[FLAVORS_PER_GANG_MAX];                       /* flavor index per group */
    const struct resource_flavor *flavors[FLAVORS_PER_GANG_MAX]; /* of that choice */
    uint32_t flavor_count;
    int64_t count;  /* pods that are asked for; fewer than the set's with partial admission */
    struct str pin; /* the hostname label that all its pods must go to, absent: none */
};

struct attempt {
    struct core *core;
    struct shape *shape;
    const struct queue *object;
    struct set_attempt *sets; /* in the scratch arena; as the shape's sets */
    uint32_t set_count;
    uint32_t short_set; /* the one that is in trouble, whatever is chosen for those behind it */
    struct topology_ask topology;
    const struct topology_domain *domain; /* that was found for it; NULL: none */
    bool is_silent; /* only whether, and not why not: what is short of quota has no sentence */
};

struct verdict verdict_say(enum reason reason, uint32_t waits_for, struct str message);
/* What a pod of each set asks, and the sets as a whole; false: more than DEMANDS_MAX resources. */
bool attempt_collect(struct attempt *attempt);
/* The set's demand for that resource, entered if new; NULL: the table is full. */
struct quota_demand *attempt_demand(struct set_attempt *set, struct str resource);
/* A set in front of that one names the claim, and is charged for it. */
bool attempt_is_claim_counted(const struct attempt *attempt, uint32_t s, uint32_t claim);
/* evaluate.c: that combination of flavors is chosen; false: there is none of that number. */
bool attempt_choose(struct core *core, struct shape *shape, uint32_t combination,
                    struct attempt *ret_attempt);
/* What it would have placed of a gang that starts as small as it may; false: its pods can't have
 * that combination. */
bool attempt_wants_of(struct core *core, struct shape *shape, uint32_t combination,
                      struct fit_wants *ret_wants);
/* Finds each resource's group; a resource that must be listed and isn't ends the attempt. */
struct verdict attempt_find_groups(struct attempt *attempt);
/* The chosen flavor of the set's g-th group, or of the demand's. */
const struct quota_flavor *attempt_chosen(const struct attempt *attempt,
                                          const struct set_attempt *set, uint32_t g);
const struct quota_flavor *attempt_flavor(const struct attempt *attempt,
                                          const struct set_attempt *set,
                                          const struct quota_demand *demand);
/* Whether the pods of that set may have that flavor; notes it there if so. */
struct verdict attempt_check_flavor(struct attempt *attempt, struct set_attempt *set,
                                    struct str name);
/* The flavors that are chosen for all its groups; the first that the pods may not have. */
struct verdict attempt_check_flavors(struct attempt *attempt, struct set_attempt *set);
/* attempt_topology.c: whether one of the set's flavors has the level that is asked for. */
struct verdict attempt_check_level(struct attempt *attempt, const struct set_attempt *set);
/* All that is chosen, for all sets: whether they may have it, and agree on the topology's levels
 * (attempt->topology). */
struct verdict attempt_check_choice(struct attempt *attempt);
const char *shape_topology_annotation(const struct shape *shape);
/* For set.count pods. */
i128 attempt_total(const struct set_attempt *set, const struct quota_demand *demand);
/* Whether every resource has the quota on its chosen flavor for all sets together; how far up it
 * has to borrow, or would have to if that were free. */
struct verdict attempt_check_quota(struct attempt *attempt, uint32_t *ret_level);
/* There is one choice of flavors and counts, whatever is free. */
bool attempt_is_fixed(const struct attempt *attempt);
/* How many pods of each set are asked for: with partial admission as many as the quota holds and
 * not fewer than min-count; else all. */
void attempt_choose_counts(struct attempt *attempt);
/* As few as it would start with. */
void attempt_choose_least(struct attempt *attempt);
/* With partial admission: not more than were placed. */
void attempt_shrink_counts(struct attempt *attempt, const int64_t *placed);
/* Whether there is room for all sets on the chosen flavors; their counts shrink to it. */
struct verdict attempt_check_fit(struct attempt *attempt, struct evaluation *evaluation);
/* The quota is short for that reason, and no quota would help: room could never be enough for the
 * sets on that choice of flavors. The evaluation says so then. */
bool attempt_waits_in_vain(struct attempt *attempt, uint32_t choice, enum reason quota,
                           struct evaluation *evaluation);
/* How many flavors there are to choose from for that group. */
uint32_t attempt_flavors_of(const struct attempt *attempt, const struct set_attempt *set,
                            uint32_t g);
/* The number of what is chosen now; of those beyond, which nobody asks for, UINT32_MAX. */
uint32_t attempt_combination(const struct attempt *attempt);
/* What is to be reserved, and where the pods of each set go. */
void attempt_fill(struct attempt *attempt, struct evaluation *evaluation);
/* Several sets: the sentence tells which one is meant. */
void attempt_name_set(const struct attempt *attempt, uint32_t s, struct verdict *verdict);
