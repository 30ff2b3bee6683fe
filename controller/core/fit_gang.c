/* fit_gang.c - the pod sets of one gang, placed together.
 *
 * The sets share one plan. Those that ask for devices are placed first, because their pods have the
 * least choice, and a set that finds no place behind the others is tried in front of them; of each
 * set first min_count pods, then the others. That all find a place so isn't
 * enough: kube-scheduler takes the pods in any order, so whatever it does with one set must leave
 * the others their places (fit_robust.c), or the gang waits and is told which set is in the way. */
#include "fit_plan.h"
#include "incident.h"
#include "roam.h"
#include "topology.h"

#include "ask.h"

#include "tallyman/base/limits.h"

/* -- named claims ----------------------------------------------------------------------------- */

/* Whether a set in front of `w` has the claim in the plan already. */
static bool is_claim_planned(const struct fit_wants *wants, uint32_t w,
                             const struct claim_state *claim)
{
    for (uint32_t o = 0; o < w; o++) {
        const struct pod_set *set = wants->items[o].demand.set;
        for (uint32_t c = 0; c < set->claim_count; c++) {
            if (set->claims[c].claim == claim) {
                return true;
            }
        }
    }
    return false;
}

/* The devices of all new claims of all sets, on that node, each once. */
static bool place_claims(struct core *core, const struct fit_wants *wants, struct node_state *node)
{
    for (uint32_t w = 0; w < wants->count; w++) {
        const struct pod_set *set = wants->items[w].demand.set;
        for (uint32_t c = 0; c < set->claim_count; c++) {
            const struct shared_claim_demand *claim = &set->claims[c];
            bool is_new =
                !claim_is_allocated(claim->claim) && !is_claim_planned(wants, w, claim->claim);
            if (is_new && !node_place_claim(core, claim, node)) {
                return false;
            }
        }
    }
    return true;
}

/* -- the plan --------------------------------------------------------------------------------- */

static bool asks_for_devices(const struct fit_want *want)
{
    return want->demand.set->ask != NULL || want->demand.set->claim_count > 0;
}

/* More pods of the set, on top of the plan, until `want` of them have a place. */
static void place_more(struct core *core, struct fit_want *want, int64_t pods)
{
    if (want->placed < pods) {
        want->placed += fit_place(core, &want->demand, pods - want->placed);
    }
}

/* Those without a pin, in that order; those with one have their places. False: `ret_short` has not
 * enough. */
static bool place_sets(struct core *core, struct fit_wants *wants, const uint32_t *order,
                       uint32_t *ret_short)
{
    bool is_lone = wants->count == 1;
    for (uint32_t i = 0; i < wants->count; i++) {
        struct fit_want *want = &wants->items[order[i]];
        if (!str_is_set(want->pin)) {
            place_more(core, want, is_lone ? want->count : want->min_count);
        }
        if (want->placed < want->min_count) {
            *ret_short = order[i];
            return false;
        }
    }
    for (uint32_t w = 0; w < wants->count; w++) {
        if (!str_is_set(wants->items[w].pin)) {
            place_more(core, &wants->items[w], wants->items[w].count);
        }
    }
    return true;
}

static void forget_places(struct fit_wants *wants)
{
    for (uint32_t w = 0; w < wants->count; w++) {
        wants->items[w].count = wants->items[w].wanted;
        wants->items[w].placed = 0;
        wants->items[w].pin = STR_NONE;
    }
}

/* The sets as they were placed, and how many of each may be done without. */
struct shrinking {
    int64_t placed;
    int64_t spare;
};

/* A set that may start with fewer pods is made no larger than that, and so is in nobody's way
 * beyond it; all give up their part in proportion. */
static void shrink_to(struct fit_wants *wants, const struct shrinking *from, int64_t step,
                      int64_t steps)
{
    for (uint32_t w = 0; w < wants->count; w++) {
        struct fit_want *want = &wants->items[w];
        int64_t less = steps == 0 ? 0 : (int64_t)((i128)from[w].spare * step / steps);
        want->placed = from[w].placed - less;
        if (want->demand.set->size.is_partial_allowed) {
            want->count = want->placed;
        }
    }
}

/* The largest that finds its places whatever the others do; false: not even min-count of each. */
static bool shrink_until_robust(struct core *core, const struct crowd_list *promised,
                                struct fit_wants *wants, uint32_t *ret_unsafe)
{
    struct shrinking *from = ARENA_ARRAY(&core->scratch, struct shrinking, wants->count);
    int64_t steps = 0;
    bool is_partial = false;
    for (uint32_t w = 0; w < wants->count; w++) {
        const struct fit_want *want = &wants->items[w];
        bool may_shrink = want->demand.set->size.is_partial_allowed;
        is_partial = is_partial || may_shrink;
        from[w] = (struct shrinking){want->placed, may_shrink ? want->placed - want->min_count : 0};
        steps = sat_add(steps, from[w].spare);
    }
    if (!is_partial) {
        return fit_is_robust(core, promised, wants, ret_unsafe);
    }
    int64_t low = 0;
    int64_t high = steps;
    int64_t found = -1;
    while (low <= high) {
        int64_t middle = low + (high - low) / 2;
        shrink_to(wants, from, middle, steps);
        if (fit_is_robust(core, promised, wants, ret_unsafe)) {
            found = middle;
            high = middle - 1;
        } else {
            low = middle + 1;
        }
    }
    shrink_to(wants, from, found < 0 ? steps : found, steps);
    return found >= 0;
}

/* All sets are placed; do they stay whole whatever kube-scheduler does? First by themselves: what
 * only others may take is a matter of moments. */
static bool stays_whole(struct core *core, const struct crowd_list *promised,
                        struct fit_wants *wants, struct fit_result *result)
{
    static const struct crowd_list nobody;
    if (wants->count > 1 && !shrink_until_robust(core, &nobody, wants, &result->short_set)) {
        result->is_own_way = true;
        return false;
    }
    if (!shrink_until_robust(core, promised, wants, &result->short_set)) {
        result->is_promised = true;
        return false;
    }
    return true;
}

/* -- one node --------------------------------------------------------------------------------- */

/* Pods of the others may be anywhere. */
static bool is_to_be_pinned(const struct fit_wants *wants, uint32_t w)
{
    return wants->are_pinned || demand_has_new_claims(&wants->items[w].demand);
}

/* The sets with new claims, on that node: they are pinned to it. `pair` is its hostname label. */
static bool place_pinned(struct core *core, struct fit_wants *wants, struct node_state *node,
                         struct string_map *pinned, uint32_t *ret_short)
{
    for (uint32_t w = 0; w < wants->count; w++) {
        struct fit_want *want = &wants->items[w];
        if (!is_to_be_pinned(wants, w)) {
            continue;
        }
        core->plan_is_one_node = true;
        want->placed = node_place(core, &want->demand, node, want->count);
        core->plan_is_one_node = false;
        if (want->placed < want->min_count) {
            *ret_short = w;
            return false;
        }
        want->pin = pinned->items[0].value;
        want->demand.node_selector = pinned;
    }
    return true;
}

/* -- an order that works ----------------------------------------------------------------------- */

/* What one attempt at a plan starts from. */
struct trial {
    const struct crowd_list *promised;
    struct fit_wants *wants;
    struct node_state *node;   /* for the sets with new claims; NULL: there are none */
    struct string_map *pinned; /* its hostname label */
};

static bool place_all(struct core *core, const struct trial *trial, const uint32_t *order,
                      uint32_t *ret_short)
{
    forget_places(trial->wants);
    fit_plan_promised(core, trial->promised);
    if (trial->node != NULL &&
        !(place_claims(core, trial->wants, trial->node) &&
          place_pinned(core, trial->wants, trial->node, trial->pinned, ret_short))) {
        return false;
    }
    return place_sets(core, trial->wants, order, ret_short);
}

/* A set that finds no place behind the others is tried in front of them, once each. */
static bool place_in_some_order(struct core *core, const struct trial *trial, uint32_t *ret_short)
{
    uint32_t count = trial->wants->count;
    uint32_t *order = ARENA_ARRAY(&core->scratch, uint32_t, count);
    bool *has_led = ARENA_ARRAY(&core->scratch, bool, count);
    uint32_t filled = 0;
    for (int round = 0; round < 2; round++) {
        for (uint32_t w = 0; w < count; w++) {
            if (asks_for_devices(&trial->wants->items[w]) == (round == 0)) {
                order[filled++] = w;
            }
        }
    }
    while (!place_all(core, trial, order, ret_short)) {
        if (has_led[*ret_short] || order[0] == *ret_short) {
            return false;
        }
        has_led[*ret_short] = true;
        uint32_t at = 0;
        while (order[at] != *ret_short) {
            at++;
        }
        for (; at > 0; at--) {
            order[at] = order[at - 1];
        }
        order[0] = *ret_short;
    }
    return true;
}

static bool fit_trial(struct core *core, const struct trial *trial, struct fit_result *result)
{
    return place_in_some_order(core, trial, &result->short_set) &&
           stays_whole(core, trial->promised, trial->wants, result);
}

/* Whether it could take each set by cpu, memory and the like. */
static bool has_all_slots(struct core *core, const struct fit_wants *wants, struct node_state *node)
{
    fit_plan_new(core);
    for (uint32_t w = 0; w < wants->count; w++) {
        const struct fit_want *want = &wants->items[w];
        if (node_plain_slots(core, &want->demand, node, want->min_count) < want->min_count) {
            return false;
        }
    }
    return true;
}

static bool keeps_out(struct core *core, const struct fit_wants *wants, struct node_state *node)
{
    if (wants->domain != NULL && node->object != NULL &&
        !node_labels_contain(&wants->domain->path, &node->object->meta.labels)) {
        return true;
    }
    for (uint32_t w = 0; w < wants->count; w++) {
        if (is_to_be_pinned(wants, w) &&
            node_exclusion(core, &wants->items[w].demand, node) != EXCLUDED_COUNT) {
            return true;
        }
    }
    return false;
}

/* The first pod's node fixes the claim's devices, so all pods that name it have to go to that one
 * node: found here, and written into their nodeSelector. So it is where on several nodes the pods
 * could take each other's devices. */
static bool fit_one_node(struct core *core, const struct crowd_list *promised,
                         struct fit_wants *wants, struct fit_result *result)
{
    const struct string_map **selectors =
        ARENA_ARRAY(&core->scratch, const struct string_map *, wants->count);
    for (uint32_t w = 0; w < wants->count; w++) {
        selectors[w] = wants->items[w].demand.node_selector;
    }
    uint32_t tried = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        struct str hostname = node->object == NULL
                                  ? STR_NONE
                                  : string_map_get(&node->object->meta.labels, LABEL_HOSTNAME);
        if (str_is_empty(hostname) || keeps_out(core, wants, node)) {
            continue; /* before all that is promised is placed once more for a try */
        }
        if (wants->are_pinned &&
            (!has_all_slots(core, wants, node) || ++tried > PINNED_NODES_MAX)) {
            continue;
        }
        struct string_pair *pair = ARENA_NEW(&core->scratch, struct string_pair);
        struct string_map *pinned = ARENA_NEW(&core->scratch, struct string_map);
        *pair = (struct string_pair){STR(LABEL_HOSTNAME), hostname};
        *pinned = (struct string_map){pair, 1};
        struct trial trial = {promised, wants, node, pinned};
        if (fit_trial(core, &trial, result)) {
            return true;
        }
        for (uint32_t w = 0; w < wants->count; w++) {
            wants->items[w].demand.node_selector = selectors[w];
        }
    }
    return false;
}

/* -- the gang --------------------------------------------------------------------------------- */

static int64_t count_promised(const struct crowd_list *promised)
{
    int64_t pods = 0;
    for (uint32_t i = 0; i < promised->count; i++) {
        pods = sat_add(pods, promised->items[i].pods);
    }
    return pods;
}

static bool is_hopeless(struct core *core, const struct fit_wants *wants,
                        const struct crowd_list *promised, struct fit_result *result)
{
    bool has_devices = false;
    for (uint32_t w = 0; w < wants->count; w++) {
        const struct pod_demand *demand = &wants->items[w].demand;
        result->short_set = w;
        if (fit_waits_for_claim(core, wants, w, result)) {
            result->is_beside_promises = true;
            return true;
        }
        has_devices = has_devices || demand->set->ask != NULL || demand_has_new_claims(demand);
        int64_t pods = sat_add(wants->items[w].count, count_promised(promised));
        if (demand_breaks(core, demand, pods, result)) {
            return true;
        }
    }
    result->short_set = 0;
    if (promised->is_incomplete && has_devices) {
        result->is_promised = true;
        return true;
    }
    for (uint32_t w = 0; w < wants->count; w++) {
        result->short_set = w;
        bool is_in_way = demand_has_new_claims(&wants->items[w].demand) &&
                         fit_claims_are_in_own_way(core, &wants->items[w], result);
        if (is_in_way || fit_would_be_misled(core, &wants->items[w].demand, result)) {
            return true;
        }
    }
    result->short_set = 0;
    return false;
}

/* With the promises and the sets that have their places in the plan: the numbers behind a "no". */
static void explain_short(struct core *core, const struct crowd_list *promised,
                          struct fit_wants *wants, struct fit_result *result)
{
    struct fit_want *want = &wants->items[result->short_set];
    if (wants->count > 1) {
        struct fit_want lone = {
            .demand = want->demand, .count = want->min_count, .min_count = want->min_count};
        fit_plan_promised(core, promised);
        place_more(core, &lone, lone.count);
        result->is_alone = lone.placed < lone.min_count;
    }
    fit_plan_promised(core, promised);
    for (uint32_t w = 0; w < wants->count && !result->is_alone; w++) {
        if (w != result->short_set) {
            (void)fit_place(core, &wants->items[w].demand, wants->items[w].placed);
        }
    }
    fit_explain(core, &want->demand, want->min_count, result);
}

static bool roams_unevenly(struct core *core, const struct fit_wants *wants)
{
    for (uint32_t w = 0; w < wants->count; w++) {
        if (demand_roams_unevenly(core, &wants->items[w].demand)) {
            return true;
        }
    }
    return false;
}

bool fit_anywhere(struct core *core, const struct crowd_list *promised, struct fit_wants *wants,
                  struct fit_result *result)
{
    bool has_claims = false;
    for (uint32_t w = 0; w < wants->count; w++) {
        has_claims = has_claims || demand_has_new_claims(&wants->items[w].demand);
    }
    struct trial anywhere = {.promised = promised, .wants = wants};
    wants->are_pinned = false;
    if (has_claims) {
        return fit_one_node(core, promised, wants, result);
    }
    if (fit_trial(core, &anywhere, result)) {
        return true;
    }
    wants->are_pinned = result->is_uneven = roams_unevenly(core, wants);
    return wants->are_pinned && fit_one_node(core, promised, wants, result);
}

/* Not in one domain: is it that, or wouldn't it fit anyhow? */
static void explain_no_domain(struct core *core, const struct crowd_list *promised,
                              struct fit_wants *wants, struct fit_result *result)
{
    struct fit_result elsewhere = {.is_fit = false};
    bool would_fit = fit_anywhere(core, promised, wants, &elsewhere);
    forget_places(wants);
    fit_plan_promised(core, promised);
    fit_explain_topology(core, wants, result);
    result->topology.is_short = would_fit || elsewhere.is_promised;
    if (!would_fit) {
        result->short_set = elsewhere.short_set;
    }
}

/* Why nobody can say for how many pods the devices are enough, if that is it. */
static void explain_too_hard(struct core *core, const struct fit_wants *wants,
                             struct fit_result *result)
{
    const struct pod_set *set = wants->items[result->short_set].demand.set;
    if (core->asked_is_too_hard) {
        result->ask_trouble = ask_is_too_hard(core, set);
        result->ask_reason = REASON_NODE_SHAPE;
    } else if (core->asked_is_tied) {
        result->ask_trouble = ask_is_tied(core, set);
        result->ask_reason = REASON_NODE_SHAPE;
    } else if (core->asked_held_back != NULL) {
        result->ask_trouble = ask_is_held_back(core, set, core->asked_held_back);
        result->ask_reason = REASON_DEVICES_UNHEALTHY;
    }
}

/* Nothing is short, and no pod too large for a node: is it only that pods on their way may be put
 * where these can't be beside them, as with host ports? */
static bool is_only_promised(struct core *core, struct fit_wants *wants,
                             const struct fit_result *result)
{
    static const struct crowd_list nobody;
    bool is_told = str_is_set(result->short_of) || str_is_set(result->apart) ||
                   str_is_set(result->ask_trouble) || str_is_set(result->claim_trouble) ||
                   str_is_set(result->health.resource);
    bool is_apart = pod_set_is_one_a_node(wants->items[result->short_set].demand.set);
    if (!is_apart || !result->is_beside_promises || is_told || result->is_own_way ||
        result->is_promised || wants->topology.is_required) {
        return false;
    }
    struct fit_result alone = {.is_fit = false};
    bool would_fit = fit_anywhere(core, &nobody, wants, &alone);
    forget_places(wants);
    return would_fit;
}

struct fit_result fit_gang(struct core *core, struct fit_wants *wants)
{
    struct fit_result result = {.is_fit = false};
    core->asked_is_too_hard = core->asked_is_tied = false;
    core->asked_held_back = NULL;
    core->search_steps = 0;
    struct crowd_list all = fit_promised(core);
    struct crowd_list promised = fit_near(core, &all, wants);
    result.is_beside_promises = promised.count > 0;
    if (is_hopeless(core, wants, &promised, &result)) {
        return result;
    }
    bool has_topology = wants->topology.levels.count > 0;
    result.is_fit = has_topology && fit_in_a_domain(core, &all, &promised, wants, &result);
    if (!result.is_fit && !(has_topology && wants->topology.is_required)) {
        result.is_fit = fit_anywhere(core, &promised, wants, &result);
    } else if (!result.is_fit && !core->is_brief && !result.is_promised) {
        explain_no_domain(core, &promised, wants, &result);
    }
    if (!result.is_fit && !core->is_brief) {
        explain_too_hard(core, wants, &result);
        explain_short(core, &promised, wants, &result);
        result.is_promised = result.is_promised || is_only_promised(core, wants, &result);
    }
    return result;
}
