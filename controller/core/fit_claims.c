/* fit_claims.c - named claims for which a gang has to wait. */
#include "incident.h"

#include "ask.h"
#include "claim.h"
#include "ledger.h"

#include "tallyman/base/limits.h"

/* Pods of all sets that name the claim. */
static int64_t count_sharers(const struct fit_wants *wants, const struct claim_state *claim)
{
    int64_t sharers = 0;
    for (uint32_t w = 0; w < wants->count; w++) {
        const struct pod_set *set = wants->items[w].demand.set;
        for (uint32_t c = 0; c < set->claim_count; c++) {
            if (set->claims[c].claim == claim) {
                sharers = sat_add(sharers, set->size.pods);
                break;
            }
        }
    }
    return sharers;
}

/* Whether a gang that stays is about to get the claim's devices: not the one that is judged, whose
 * room is reserved with the claim, nor one that is to stop. */
static bool is_awaited(const struct core *core, struct str key)
{
    const struct claim_hold *hold =
        ledger_claim_payer(core, key) == NULL ? NULL : ledger_claim_holders(core, key);
    while (hold != NULL && hold->gang->is_out) {
        hold = hold->next_holder;
    }
    return hold != NULL;
}

bool fit_waits_for_claim(struct core *core, const struct fit_wants *wants, uint32_t w,
                         struct fit_result *result)
{
    const struct pod_set *set = wants->items[w].demand.set;
    for (uint32_t i = 0; i < set->claim_count; i++) {
        const struct claim_state *claim = set->claims[i].claim;
        if (!claim_is_allocated(claim) && is_awaited(core, claim->key)) {
            result->is_promised = true;
            result->claim_trouble = arena_format(
                &core->scratch,
                "ResourceClaim " STR_FMT " is being allocated for another gang that shares it",
                STR_ARG(claim->key));
            return true;
        }
        struct str harm = claim_harm(core, claim->key);
        if (str_is_set(harm)) {
            result->is_claim_ill = true;
            result->claim_trouble =
                arena_format(&core->scratch, "ResourceClaim " STR_FMT " is allocated: " STR_FMT,
                             STR_ARG(claim->key), STR_ARG(harm));
            return true;
        }
        int64_t sharers = claim_is_allocated(claim) ? claim->object->status.reserved_for.count : 0;
        bool is_of_pods = !set->claims[i].is_of_group;
        if (is_of_pods && sat_add(sharers, count_sharers(wants, claim)) > CLAIM_SHARERS_MAX) {
            result->claim_trouble =
                arena_format(&core->scratch,
                             "ResourceClaim " STR_FMT " is in use by %lld pods of the %d that "
                             "Kubernetes allows",
                             STR_ARG(claim->key), (long long)sharers, CLAIM_SHARERS_MAX);
            return true;
        }
    }
    return false;
}

bool fit_claims_are_in_own_way(struct core *core, const struct fit_want *want,
                               struct fit_result *result)
{
    const struct pod_demand *demand = &want->demand;
    if (want->min_count <= 1 || !fit_claims_collide(core, demand, demand)) {
        return false;
    }
    if (!core->is_brief) {
        fit_plan_new(core);
        fit_explain(core, demand, want->min_count, result); /* whether it could ever fit */
    }
    result->is_claim_in_way = true;
    struct str key = demand->set->claims[0].claim->key;
    result->claim_trouble = arena_format(
        &core->scratch,
        "ResourceClaim " STR_FMT
        " and the pods' own claim templates may be given the same devices, "
        "so that nobody can tell whether all pods would find theirs; they would start with device "
        "selectors that exclude each other",
        STR_ARG(key));
    return true;
}
