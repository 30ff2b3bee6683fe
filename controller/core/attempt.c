/* attempt.c - what a gang asks of its queue, and whether a combination of flavors has the quota. */
#include "attempt.h"
#include "bound.h"
#include "claim.h"

struct verdict verdict_say(enum reason reason, uint32_t waits_for, struct str message)
{
    return (struct verdict){.reason = reason, .waits_for = waits_for, .message = message};
}

bool verdict_is_passed_over(const struct verdict *verdict)
{
    return verdict->is_never || reason_info(verdict->reason)->is_passed_over;
}

/* -- what is asked ---------------------------------------------------------------------------- */

struct quota_demand *attempt_demand(struct set_attempt *set, struct str resource)
{
    for (uint32_t i = 0; i < set->demand_count; i++) {
        if (str_eq(set->demands[i].resource, resource)) {
            return &set->demands[i];
        }
    }
    if (set->demand_count == DEMANDS_MAX) {
        return NULL;
    }
    struct quota_demand *demand = &set->demands[set->demand_count++];
    *demand = (struct quota_demand){.resource = resource, .group = -1};
    return demand;
}

bool attempt_is_claim_counted(const struct attempt *attempt, uint32_t s, uint32_t claim)
{
    const struct claim_state *wanted = attempt->sets[s].set->claims[claim].claim;
    for (uint32_t o = 0; o <= s; o++) {
        const struct pod_set *other = attempt->sets[o].set;
        uint32_t count = o == s ? claim : other->claim_count;
        for (uint32_t c = 0; c < count; c++) {
            if (other->claims[c].claim == wanted) {
                return true;
            }
        }
    }
    return false;
}

/* By a gang that stays: who is out alone with it has taken its charge along (whatif.c). */
static bool is_paid_already(const struct core *core, struct str key)
{
    const struct gang *payer = ledger_claim_payer(core, key);
    return payer != NULL &&
           !(payer->is_out && ledger_claim_holders(core, key)->next_holder == NULL);
}

static bool collect_claims(struct attempt *attempt, uint32_t s)
{
    struct set_attempt *mine = &attempt->sets[s];
    for (uint32_t c = 0; c < mine->set->claim_count; c++) {
        const struct shared_claim_demand *claim = &mine->set->claims[c];
        bool is_paid = is_paid_already(attempt->core, claim->claim->key) ||
                       attempt_is_claim_counted(attempt, s, c);
        for (uint32_t i = 0; i < claim->request_count; i++) {
            struct quota_demand *demand =
                attempt_demand(mine, claim->requests[i].profile->class_name);
            if (demand == NULL) {
                return false;
            }
            demand->shared = sat_add(demand->shared, is_paid ? 0 : claim->requests[i].charged);
        }
    }
    return true;
}

static bool collect_set(struct attempt *attempt, uint32_t s)
{
    struct set_attempt *mine = &attempt->sets[s];
    const struct pod_set *set = mine->set;
    for (uint32_t i = 0; i < set->per_pod.count; i++) {
        struct quota_demand *demand = attempt_demand(mine, set->per_pod.items[i].resource);
        if (demand == NULL) {
            return false;
        }
        demand->per_pod = i128_clamp(set->per_pod.items[i].value);
    }
    for (uint32_t i = 0; i < set->device_count; i++) {
        struct quota_demand *demand = attempt_demand(mine, set->devices[i].profile->class_name);
        if (demand == NULL) {
            return false;
        }
        demand->per_pod = sat_add(demand->per_pod, set->devices[i].charged);
    }
    if (!collect_claims(attempt, s)) {
        return false;
    }
    struct quota_demand *pods =
        attempt_demand(mine, resource_find(attempt->core, STR(RESOURCE_PODS)));
    if (pods == NULL) {
        return false;
    }
    pods->per_pod = 1;
    return true;
}

/* As many as the set can ask for at most: this is done for every head of a queue, again and again.
 */
static uint32_t demand_room(const struct pod_set *set)
{
    uint32_t room = set->per_pod.count + set->device_count + 1;
    for (uint32_t c = 0; c < set->claim_count; c++) {
        room += set->claims[c].request_count;
    }
    return room < DEMANDS_MAX ? room : DEMANDS_MAX;
}

bool attempt_collect(struct attempt *attempt)
{
    struct arena *arena = &attempt->core->scratch;
    attempt->set_count = attempt->shape->set_count;
    attempt->sets = ARENA_ARRAY(arena, struct set_attempt, attempt->set_count);
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        attempt->sets[s].set = &attempt->shape->sets[s];
        attempt->sets[s].demands =
            ARENA_ARRAY(arena, struct quota_demand, demand_room(attempt->sets[s].set));
    }
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        if (!collect_set(attempt, s)) {
            return false;
        }
    }
    return true;
}

void attempt_name_set(const struct attempt *attempt, uint32_t s, struct verdict *verdict)
{
    if (attempt->set_count > 1 && !attempt->is_silent) {
        verdict->message =
            arena_format(&attempt->core->scratch, "pod set " STR_FMT ": " STR_FMT,
                         STR_ARG(attempt->sets[s].set->name), STR_ARG(verdict->message));
    }
}

static int32_t group_of(const struct core *core, const struct queue *queue, struct str resource)
{
    const struct resource_group_list *groups = &queue->spec.resource_groups;
    for (uint32_t g = 0; g < groups->count; g++) {
        for (uint32_t f = 0; f < groups->items[g].flavors.count; f++) {
            const struct quota_resource_list *listed = &groups->items[g].flavors.items[f].resources;
            for (uint32_t r = 0; r < listed->count; r++) {
                if (str_eq(account_of(core, listed->items[r].name), resource)) {
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

/* Its place among those that the set draws on, entered if new; FLAVORS_PER_GANG_MAX: no place is
 * left. */
static int32_t place_of_group(struct set_attempt *set, int32_t group)
{
    uint32_t g = 0;
    while (g < set->group_count && set->groups[g] != group) {
        g++;
    }
    if (g == set->group_count && g < FLAVORS_PER_GANG_MAX) {
        set->groups[set->group_count++] = group;
    }
    return (int32_t)g;
}

static struct verdict find_groups(struct attempt *attempt, struct set_attempt *set)
{
    struct str mode = attempt->object->spec.undeclared_resources;
    for (uint32_t i = 0; i < set->demand_count; i++) {
        struct quota_demand *demand = &set->demands[i];
        int32_t group = group_of(attempt->core, attempt->object, demand->resource);
        if (group >= 0) {
            demand->group = place_of_group(set, group);
            if (demand->group == FLAVORS_PER_GANG_MAX) {
                return verdict_say(REASON_INVALID, WAIT_CONFIG,
                                   arena_format(&attempt->core->scratch,
                                                "its pods draw on more than %d resource groups of "
                                                "queue " STR_FMT,
                                                FLAVORS_PER_GANG_MAX,
                                                STR_ARG(attempt->shape->queue->name)));
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
                             STR_ARG(pod_set_asked_text(attempt->core, set->set, demand->resource)),
                             STR_ARG(attempt->shape->queue->name)));
        }
    }
    return verdict_say(REASON_NONE, 0, STR_NONE);
}

struct verdict attempt_find_groups(struct attempt *attempt)
{
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        struct verdict verdict = find_groups(attempt, &attempt->sets[s]);
        if (verdict.reason != REASON_NONE) {
            attempt_name_set(attempt, s, &verdict);
            return verdict;
        }
    }
    return verdict_say(REASON_NONE, 0, STR_NONE);
}

bool attempt_is_fixed(const struct attempt *attempt)
{
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        const struct set_attempt *mine = &attempt->sets[s];
        if (mine->set->size.is_partial_allowed || mine->set->claim_count > 0) {
            return false;
        }
        for (uint32_t g = 0; g < mine->group_count; g++) {
            int32_t group = mine->groups[g];
            if (attempt->object->spec.resource_groups.items[group].flavors.count != 1) {
                return false;
            }
        }
    }
    return true;
}

/* -- one combination of flavors --------------------------------------------------------------- */

const struct quota_flavor *attempt_chosen(const struct attempt *attempt,
                                          const struct set_attempt *set, uint32_t g)
{
    const struct resource_group *group =
        &attempt->object->spec.resource_groups.items[set->groups[g]];
    return &group->flavors.items[set->choice[g]];
}

const struct quota_flavor *attempt_flavor(const struct attempt *attempt,
                                          const struct set_attempt *set,
                                          const struct quota_demand *demand)
{
    return attempt_chosen(attempt, set, (uint32_t)demand->group);
}

struct verdict attempt_check_flavor(struct attempt *attempt, struct set_attempt *set,
                                    struct str name)
{
    struct arena *arena = &attempt->core->scratch;
    const struct resource_flavor *flavor = flavor_object(attempt->core, name);
    if (flavor == NULL) {
        return verdict_say(
            REASON_MISSING_REFERENCE, WAIT_CONFIG,
            arena_format(arena, "ResourceFlavor " STR_FMT " doesn't exist", STR_ARG(name)));
    }
    const char *contradiction = flavor_contradiction(set->set, flavor);
    if (contradiction != NULL) {
        return verdict_say(REASON_NO_MATCHING_FLAVOR, WAIT_CONFIG,
                           arena_format(arena,
                                        "the pods' %s contradicts the labels of flavor " STR_FMT,
                                        contradiction, STR_ARG(name)));
    }
    struct verdict bound = bound_check_flavor(attempt->core, set->set, flavor);
    if (bound.reason != REASON_NONE) {
        return bound;
    }
    const struct taint *taint = flavor_untolerated(set->set, flavor);
    if (taint != NULL) {
        return verdict_say(
            REASON_NO_MATCHING_FLAVOR, WAIT_CONFIG,
            arena_format(arena, "the pods don't tolerate taint " STR_FMT " of flavor " STR_FMT,
                         STR_ARG(taint->key), STR_ARG(name)));
    }
    if (set->flavor_count < FLAVORS_PER_GANG_MAX) {
        set->flavors[set->flavor_count++] = flavor;
    }
    return verdict_say(REASON_NONE, 0, STR_NONE);
}

struct verdict attempt_check_flavors(struct attempt *attempt, struct set_attempt *set)
{
    set->flavor_count = 0;
    struct verdict bound = bound_check_node(attempt->core, set->set);
    if (bound.reason != REASON_NONE) {
        return bound;
    }
    for (uint32_t g = 0; g < set->group_count; g++) {
        struct verdict verdict =
            attempt_check_flavor(attempt, set, attempt_chosen(attempt, set, g)->name);
        if (verdict.reason != REASON_NONE) {
            return verdict;
        }
    }
    return attempt_check_level(attempt, set);
}

uint32_t attempt_flavors_of(const struct attempt *attempt, const struct set_attempt *set,
                            uint32_t g)
{
    return attempt->object->spec.resource_groups.items[set->groups[g]].flavors.count;
}

uint32_t attempt_combination(const struct attempt *attempt)
{
    uint64_t number = 0;
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        const struct set_attempt *set = &attempt->sets[s];
        for (uint32_t g = 0; g < set->group_count; g++) {
            number = number * attempt_flavors_of(attempt, set, g) + set->choice[g];
            number = number < UINT32_MAX ? number : UINT32_MAX;
        }
    }
    return (uint32_t)number;
}
