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
    int32_t group;  /* index in spec.resourceGroups; -1: not rationed */
};

struct attempt {
    struct core *core;
    struct shape *shape;
    const struct queue *object;
    struct quota_demand demands[DEMANDS_MAX];
    uint32_t demand_count;
    int32_t groups[FLAVORS_PER_GANG_MAX]; /* those that the gang draws on */
    uint32_t group_count;
    uint32_t choice[FLAVORS_PER_GANG_MAX]; /* flavor index per group */
    int64_t count;  /* pods that are asked for; fewer than the gang's with partial admission */
    bool is_silent; /* only whether, and not why not: what is short of quota has no sentence */
};

struct verdict verdict_say(enum reason reason, uint32_t waits_for, struct str message);
/* What a pod asks, and the gang as a whole; false: more than DEMANDS_MAX resources. */
bool attempt_collect(struct attempt *attempt);
/* The demand for that resource, entered if new; NULL: the table is full. */
struct quota_demand *attempt_demand(struct attempt *attempt, struct str resource);
/* Finds each resource's group; a resource that must be listed and isn't ends the attempt. */
struct verdict attempt_find_groups(struct attempt *attempt);
/* The chosen flavor of the gang's g-th group, or of the demand's. */
const struct quota_flavor *attempt_chosen(const struct attempt *attempt, uint32_t g);
const struct quota_flavor *attempt_flavor(const struct attempt *attempt,
                                          const struct quota_demand *demand);
/* Whether the pods may have that flavor; notes it in the evaluation if so. */
struct verdict attempt_check_flavor(struct attempt *attempt, struct str name,
                                    struct evaluation *evaluation);
/* For attempt.count pods. */
i128 attempt_total(const struct attempt *attempt, const struct quota_demand *demand);
/* Whether every resource has the quota on its chosen flavor; how far up it has to borrow, or would
 * have to if that were free. */
struct verdict attempt_check_quota(struct attempt *attempt, uint32_t *ret_level);
/* With partial admission as many pods as the quota holds, at least min-count; else all. */
int64_t attempt_count(const struct attempt *attempt);
