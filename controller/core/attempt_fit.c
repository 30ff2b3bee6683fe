/* attempt_fit.c - whether there is room for all pod sets on the flavors that are chosen. */
#include "attempt.h"
#include "booking.h"
#include "stopping.h"

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

bool attempt_wants_of(struct core *core, struct shape *shape, uint32_t combination,
                      struct fit_wants *ret_wants)
{
    struct attempt attempt;
    if (!attempt_choose(core, shape, combination, &attempt) ||
        attempt_check_choice(&attempt).reason != REASON_NONE) {
        return false;
    }
    attempt_choose_least(&attempt);
    *ret_wants = wants_of(&attempt);
    return true;
}

/* Others are Reserved, and can't be placed before their victims are gone: what is free now may be
 * part of what they need. So the places that were found have to do in both states. May leave
 * fewer pods placed. */
static bool leaves_reserved_their_room(struct core *core, struct fit_wants *wants)
{
    uint32_t own;
    struct victims stopping = {.count = 0};
    if (core->reserved.count > 0 && !core->is_what_if) {
        stopping = stopping_find(core, NULL, &own);
    }
    if (stopping.count == 0) {
        return true;
    }
    struct fit_wants later = {.count = wants->count, .domain = wants->domain};
    later.items = ARENA_ARRAY(&core->scratch, struct fit_want, wants->count);
    for (uint32_t w = 0; w < wants->count; w++) {
        later.items[w] = wants->items[w];
        later.items[w].wanted = wants->items[w].placed;
    }
    bool was_brief = core->is_brief;
    whatif_begin_without(core, stopping.items, stopping.count);
    core->is_brief = true;
    bool is_fit = fit_gang(core, &later).is_fit;
    core->is_brief = was_brief;
    whatif_end_without(core, stopping.items, stopping.count);
    for (uint32_t w = 0; is_fit && w < wants->count; w++) {
        struct fit_want *want = &wants->items[w];
        is_fit = str_eq(want->pin, later.items[w].pin);
        want->placed = later.items[w].placed < want->placed ? later.items[w].placed : want->placed;
    }
    return is_fit;
}

struct verdict attempt_check_fit(struct attempt *attempt, struct evaluation *evaluation)
{
    struct arena *arena = &attempt->core->scratch;
    struct fit_wants wants = wants_of(attempt);
    if (attempt->core->only_domain != NULL) {
        wants.topology = (struct topology_ask){.level = 0};
        demand_set_domain(&wants, attempt->core->only_domain);
    }
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
    if (!leaves_reserved_their_room(attempt->core, &wants)) {
        return verdict_say(REASON_RESERVED_FOR_OTHER, WAIT_CLUSTER | WAIT_PROMISES,
                           STR("the room is kept for gangs that others are being stopped for"));
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

/* Whether it could ever start on what is chosen; a "yes" is kept with the shape until Nodes,
 * devices or flavors change, since it is asked again and again for quota alone. */
static bool could_ever(struct attempt *attempt, uint32_t choice)
{
    struct core *core = attempt->core;
    struct shape *shape = attempt->shape;
    uint64_t supply = core->supply_changes;
    bool is_known = shape->could_start_at == supply && choice < 64;
    if (is_known && (shape->could_start_on >> choice & 1) != 0) {
        return true;
    }
    struct fit_wants wants = wants_of(attempt);
    bool could = fit_could_ever(core, &wants);
    bool names_claims = false; /* what these hold matters, too */
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        names_claims = names_claims || attempt->sets[s].set->claim_count > 0;
    }
    if (could && !names_claims && choice < 64) {
        shape->could_start_on = (is_known ? shape->could_start_on : 0) | UINT64_C(1) << choice;
        shape->could_start_at = supply;
    }
    return could;
}

bool attempt_waits_in_vain(struct attempt *attempt, uint32_t choice, enum reason quota,
                           struct evaluation *evaluation)
{
    bool is_known = attempt->core->is_brief || quota == REASON_NEVER_FITS;
    if (is_known || !shape_is_physical(attempt->shape) || could_ever(attempt, choice)) {
        return false;
    }
    struct evaluation of_room = {.has_fit = false};
    uint32_t short_set = attempt->short_set;
    of_room.verdict = attempt_check_fit(attempt, &of_room);
    if (!verdict_is_passed_over(&of_room.verdict)) {
        attempt->short_set = short_set;
        return false;
    }
    evaluation->has_fit = true;
    evaluation->fit = of_room.fit;
    evaluation->verdict = of_room.verdict;
    return true;
}
