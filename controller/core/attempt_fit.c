/* attempt_fit.c - whether there is room for all pod sets on the flavors that are chosen. */
#include "attempt.h"

static struct fit_wants wants_of(struct attempt *attempt)
{
    struct fit_wants wants = {.count = attempt->set_count, .topology = attempt->topology};
    wants.items = ARENA_ARRAY(&attempt->core->scratch, struct fit_want, wants.count);
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        const struct set_attempt *chosen = &attempt->sets[s];
        struct fit_want *want = &wants.items[s];
        *want = (struct fit_want){.demand = {.set = chosen->set,
                                             .node_selector = &chosen->set->node_selector,
                                             .flavor_count = chosen->flavor_count},
                                  .wanted = chosen->count,
                                  .count = chosen->count,
                                  .min_count = chosen->set->size.min_count};
        for (uint32_t f = 0; f < chosen->flavor_count; f++) {
            want->demand.flavors[f] = chosen->flavors[f];
        }
    }
    return wants;
}

struct verdict attempt_check_fit(struct attempt *attempt, struct evaluation *evaluation)
{
    struct arena *arena = &attempt->core->scratch;
    struct fit_wants wants = wants_of(attempt);
    struct fit_result *fit = &evaluation->fit;
    *fit = fit_gang(attempt->core, &wants);
    evaluation->has_fit = true;
    if (!fit->is_fit && attempt->core->is_brief) {
        return verdict_say(REASON_NODES_FULL, WAIT_CLUSTER, STR_NONE);
    }
    if (!fit->is_fit) {
        struct verdict verdict = fit_verdict(attempt->core, &wants, fit);
        /* What fails beside the other sets may be saved by a flavor of theirs. */
        attempt->short_set = fit->is_alone ? fit->short_set : attempt->set_count - 1;
        attempt_name_set(attempt, fit->short_set, &verdict);
        return verdict;
    }
    attempt->domain = wants.domain;
    int64_t *placed = ARENA_ARRAY(arena, int64_t, wants.count);
    for (uint32_t s = 0; s < wants.count; s++) {
        attempt->sets[s].pin = wants.items[s].pin;
        placed[s] = wants.items[s].placed;
    }
    attempt_shrink_counts(attempt, placed); /* to what quota and nodes hold */
    return attempt->shape->size.is_partial_allowed
               ? attempt_check_quota(attempt, &evaluation->level)
               : verdict_say(REASON_NONE, 0, STR_NONE);
}
