/* attempt.c - what a gang asks of its queue, and whether a combination of flavors has the quota. */
#include "attempt.h"

#include <assert.h>

#include "tallyman/base/alloc.h"

struct verdict verdict_say(enum reason reason, uint32_t waits_for, struct str message)
{
    return (struct verdict){.reason = reason, .waits_for = waits_for, .message = message};
}

/* -- what is asked ---------------------------------------------------------------------------- */

struct quota_demand *attempt_demand(struct attempt *attempt, struct str resource)
{
    for (uint32_t i = 0; i < attempt->demand_count; i++) {
        if (str_eq(attempt->demands[i].resource, resource)) {
            return &attempt->demands[i];
        }
    }
    if (attempt->demand_count == DEMANDS_MAX) {
        return NULL;
    }
    struct quota_demand *demand = &attempt->demands[attempt->demand_count++];
    *demand = (struct quota_demand){.resource = resource, .group = -1};
    return demand;
}

bool attempt_collect(struct attempt *attempt)
{
    const struct pod_set *set = &attempt->shape->sets[0];
    for (uint32_t i = 0; i < set->per_pod.count; i++) {
        struct quota_demand *demand = attempt_demand(attempt, set->per_pod.items[i].resource);
        if (demand == NULL) {
            return false;
        }
        demand->per_pod = i128_clamp(set->per_pod.items[i].value);
    }
    for (uint32_t i = 0; i < set->device_count; i++) {
        struct quota_demand *demand = attempt_demand(attempt, set->devices[i].profile->class_name);
        if (demand == NULL) {
            return false;
        }
        demand->per_pod = sat_add(demand->per_pod, set->devices[i].count);
    }
    for (uint32_t c = 0; c < set->claim_count; c++) {
        const struct shared_claim_demand *claim = &set->claims[c];
        bool is_paid = ledger_claim_payer(attempt->core, claim->claim->key) != NULL;
        for (uint32_t i = 0; i < claim->request_count; i++) {
            struct quota_demand *demand =
                attempt_demand(attempt, claim->requests[i].profile->class_name);
            if (demand == NULL) {
                return false;
            }
            demand->shared = sat_add(demand->shared, is_paid ? 0 : claim->requests[i].count);
        }
    }
    struct quota_demand *pods =
        attempt_demand(attempt, resource_find(attempt->core, STR(RESOURCE_PODS)));
    if (pods == NULL) {
        return false;
    }
    pods->per_pod = 1;
    return true;
}

static int32_t group_of(const struct queue *queue, struct str resource)
{
    const struct resource_group_list *groups = &queue->spec.resource_groups;
    for (uint32_t g = 0; g < groups->count; g++) {
        for (uint32_t f = 0; f < groups->items[g].flavors.count; f++) {
            const struct quota_resource_list *listed = &groups->items[g].flavors.items[f].resources;
            for (uint32_t r = 0; r < listed->count; r++) {
                if (str_eq(listed->items[r].name, resource)) {
                    return (int32_t)g;
                }
            }
        }
    }
    return -1;
}

static bool is_basic(struct str resource)
{
    return str_eq_c(resource, "cpu") || str_eq_c(resource, "memory") ||
           str_eq_c(resource, "ephemeral-storage") || str_eq_c(resource, RESOURCE_PODS);
}

struct verdict attempt_find_groups(struct attempt *attempt)
{
    struct str mode = attempt->object->spec.undeclared_resources;
    for (uint32_t i = 0; i < attempt->demand_count; i++) {
        struct quota_demand *demand = &attempt->demands[i];
        demand->group = group_of(attempt->object, demand->resource);
        if (demand->group >= 0) {
            uint32_t g = 0;
            while (g < attempt->group_count && attempt->groups[g] != demand->group) {
                g++;
            }
            if (g == attempt->group_count && g < FLAVORS_PER_GANG_MAX) {
                attempt->groups[attempt->group_count++] = demand->group;
            }
            continue;
        }
        bool is_free = str_eq_c(mode, "Allow") || str_eq_c(demand->resource, RESOURCE_PODS) ||
                       (is_basic(demand->resource) && !str_eq_c(mode, "Refuse"));
        if (!is_free) {
            return verdict_say(
                REASON_NO_MATCHING_FLAVOR, WAIT_CONFIG,
                arena_format(&attempt->core->scratch,
                             "asks for " STR_FMT ", which no flavor of queue " STR_FMT " lists",
                             STR_ARG(demand->resource), STR_ARG(attempt->shape->queue->name)));
        }
    }
    return verdict_say(REASON_NONE, 0, STR_NONE);
}

/* -- one combination of flavors --------------------------------------------------------------- */

const struct quota_flavor *attempt_chosen(const struct attempt *attempt, uint32_t g)
{
    const struct resource_group *group =
        &attempt->object->spec.resource_groups.items[attempt->groups[g]];
    return &group->flavors.items[attempt->choice[g]];
}

const struct quota_flavor *attempt_flavor(const struct attempt *attempt,
                                          const struct quota_demand *demand)
{
    for (uint32_t g = 0; g < attempt->group_count; g++) {
        if (attempt->groups[g] == demand->group) {
            return attempt_chosen(attempt, g);
        }
    }
    assert(false && "a demand's group is among the gang's");
    mem_die("a resource without its group");
}

struct verdict attempt_check_flavor(struct attempt *attempt, struct str name,
                                    struct evaluation *evaluation)
{
    struct arena *arena = &attempt->core->scratch;
    const struct resource_flavor *flavor = flavor_object(attempt->core, name);
    if (flavor == NULL) {
        return verdict_say(
            REASON_MISSING_REFERENCE, WAIT_CONFIG,
            arena_format(arena, "ResourceFlavor " STR_FMT " doesn't exist", STR_ARG(name)));
    }
    const char *contradiction = flavor_contradiction(&attempt->shape->sets[0], flavor);
    if (contradiction != NULL) {
        return verdict_say(REASON_NO_MATCHING_FLAVOR, WAIT_CONFIG,
                           arena_format(arena,
                                        "the pods' %s contradicts the labels of flavor " STR_FMT,
                                        contradiction, STR_ARG(name)));
    }
    const struct taint *taint = flavor_untolerated(&attempt->shape->sets[0], flavor);
    if (taint != NULL) {
        return verdict_say(
            REASON_NO_MATCHING_FLAVOR, WAIT_CONFIG,
            arena_format(arena, "the pods don't tolerate taint " STR_FMT " of flavor " STR_FMT,
                         STR_ARG(taint->key), STR_ARG(name)));
    }
    if (evaluation->flavor_count < FLAVORS_PER_GANG_MAX) {
        evaluation->flavors[evaluation->flavor_count++] = flavor;
    }
    return verdict_say(REASON_NONE, 0, STR_NONE);
}

static struct verdict quota_short(struct attempt *attempt, const struct quota_demand *demand,
                                  struct str flavor, i128 asked, i128 available)
{
    struct arena *arena = &attempt->core->scratch;
    const struct quota_node *node = &attempt->shape->queue->node;
    struct str name = demand->resource;
    const struct quota_cell *cell = quota_cell_find(node, flavor, name);
    int64_t nominal = cell == NULL ? 0 : cell->nominal;
    struct str asked_text = resource_amount_format(arena, name, i128_clamp(asked));
    struct str free_text = resource_amount_format(arena, name, i128_clamp(available));
    struct str nominal_text = resource_amount_format(arena, name, nominal);
    if (node->parent == NULL) {
        return verdict_say(REASON_QUOTA_EXHAUSTED, WAIT_QUOTA,
                           arena_format(arena,
                                        "needs " STR_FMT " " STR_FMT " at once, queue " STR_FMT
                                        " has " STR_FMT " of " STR_FMT " free on flavor " STR_FMT,
                                        STR_ARG(asked_text), STR_ARG(name), STR_ARG(node->name),
                                        STR_ARG(free_text), STR_ARG(nominal_text),
                                        STR_ARG(flavor)));
    }
    if (quota_hits_borrowing_limit(node, flavor, name, asked)) {
        return verdict_say(REASON_BORROWING_LIMIT, WAIT_QUOTA,
                           arena_format(arena,
                                        "needs " STR_FMT " " STR_FMT " at once; queue " STR_FMT
                                        " has a quota of " STR_FMT " on flavor " STR_FMT
                                        " and may borrow " STR_FMT "; " STR_FMT " are free",
                                        STR_ARG(asked_text), STR_ARG(name), STR_ARG(node->name),
                                        STR_ARG(nominal_text), STR_ARG(flavor),
                                        STR_ARG(resource_amount_format(
                                            arena, name, cell == NULL ? 0 : cell->borrowing_limit)),
                                        STR_ARG(free_text)));
    }
    return verdict_say(
        REASON_COHORT_EXHAUSTED, WAIT_QUOTA,
        arena_format(arena,
                     "needs " STR_FMT " " STR_FMT " at once, " STR_FMT
                     " are free for queue " STR_FMT " in cohort " STR_FMT " on flavor " STR_FMT,
                     STR_ARG(asked_text), STR_ARG(name), STR_ARG(free_text), STR_ARG(node->name),
                     STR_ARG(node->parent->name), STR_ARG(flavor)));
}

static struct verdict quota_verdict(struct attempt *attempt, const struct quota_demand *demand,
                                    struct str flavor, i128 asked, i128 available)
{
    struct arena *arena = &attempt->core->scratch;
    const struct quota_node *node = &attempt->shape->queue->node;
    struct str name = demand->resource;
    i128 potential = quota_potential(node, flavor, name);
    struct verdict verdict;
    if (attempt->is_silent) {
        verdict = verdict_say(asked > potential ? REASON_NEVER_FITS : REASON_QUOTA_EXHAUSTED,
                              WAIT_QUOTA, STR_NONE);
    } else if (asked > potential) {
        const char *whose = node->parent == NULL ? "has a quota of" : "can have at most";
        verdict = verdict_say(
            REASON_NEVER_FITS, WAIT_CONFIG,
            arena_format(arena,
                         "needs " STR_FMT " " STR_FMT ", and queue " STR_FMT " %s " STR_FMT
                         " on flavor " STR_FMT,
                         STR_ARG(resource_amount_format(arena, name, i128_clamp(asked))),
                         STR_ARG(name), STR_ARG(node->name), whose,
                         STR_ARG(resource_amount_format(arena, name, i128_clamp(potential))),
                         STR_ARG(flavor)));
    } else {
        verdict = quota_short(attempt, demand, flavor, asked, available);
    }
    verdict.flavor = flavor;
    verdict.resource = name;
    verdict.asked = i128_clamp(asked);
    verdict.free = i128_clamp(available);
    return verdict;
}

i128 attempt_total(const struct attempt *attempt, const struct quota_demand *demand)
{
    return (i128)demand->per_pod * attempt->count + demand->shared;
}

struct verdict attempt_check_quota(struct attempt *attempt, uint32_t *ret_level)
{
    const struct quota_node *node = &attempt->shape->queue->node;
    struct verdict worst = verdict_say(REASON_NONE, 0, STR_NONE);
    *ret_level = 0;
    for (uint32_t i = 0; i < attempt->demand_count; i++) {
        const struct quota_demand *demand = &attempt->demands[i];
        i128 asked = attempt_total(attempt, demand);
        if (demand->group < 0 || asked == 0) {
            continue;
        }
        struct str flavor = attempt_flavor(attempt, demand)->name;
        i128 available = quota_available(node, flavor, demand->resource);
        const struct quota_cell *cell = quota_cell_find(node, flavor, demand->resource);
        bool is_cut = node->parent == NULL && cell != NULL && cell->used > cell->subtree;
        uint32_t level = quota_borrow_level(node, flavor, demand->resource, asked);
        *ret_level = level > *ret_level ? level : *ret_level;
        if (asked <= available && !is_cut) {
            continue;
        }
        struct verdict verdict = quota_verdict(attempt, demand, flavor, asked, available);
        if (worst.reason == REASON_NONE || verdict.reason == REASON_NEVER_FITS) {
            worst = verdict;
        }
    }
    return worst;
}

int64_t attempt_count(const struct attempt *attempt)
{
    const struct gang_size *size = &attempt->shape->sets[0].size;
    i128 count = size->pods;
    for (uint32_t i = 0; size->is_partial_allowed && i < attempt->demand_count; i++) {
        const struct quota_demand *demand = &attempt->demands[i];
        if (demand->group < 0 || demand->per_pod == 0) {
            continue;
        }
        i128 available = quota_available(&attempt->shape->queue->node,
                                         attempt_flavor(attempt, demand)->name, demand->resource);
        i128 room = (available - demand->shared) / demand->per_pod;
        count = room < count ? room : count;
    }
    return count < size->min_count ? size->min_count : (int64_t)count;
}
