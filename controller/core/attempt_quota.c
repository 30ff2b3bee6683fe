/* attempt_quota.c - whether a gang's pod sets together have the quota on the flavors that are
 * chosen for them, and how many pods of each it is enough for. */
#include "attempt.h"

static struct verdict quota_short(struct attempt *attempt, const struct quota_demand *demand,
                                  struct str flavor, i128 asked, i128 available)
{
    struct arena *arena = &attempt->core->scratch;
    const struct quota_node *node = &attempt->shape->queue->node;
    const struct quota_cell *cell = quota_cell_find(node, flavor, demand->resource);
    struct str name = cell == NULL ? demand->resource : cell_name(cell);
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
    if (quota_hits_borrowing_limit(node, flavor, demand->resource, asked)) {
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
    i128 potential = quota_potential(node, flavor, demand->resource);
    struct verdict verdict;
    if (attempt->is_silent) {
        verdict = verdict_say(asked > potential ? REASON_NEVER_FITS : REASON_QUOTA_EXHAUSTED,
                              WAIT_QUOTA, STR_NONE);
    } else if (asked > potential) {
        const struct quota_cell *cell = quota_cell_find(node, flavor, demand->resource);
        struct str name = cell == NULL ? demand->resource : cell_name(cell);
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
    verdict.resource = demand->resource;
    verdict.asked = i128_clamp(asked);
    verdict.free = i128_clamp(available);
    return verdict;
}

i128 attempt_total(const struct set_attempt *set, const struct quota_demand *demand)
{
    return (i128)demand->per_pod * set->count + demand->shared;
}

/* What the sets in front of that one are going to take of the same account. */
static i128 taken_before(const struct attempt *attempt, uint32_t s, struct str flavor,
                         struct str resource)
{
    i128 taken = 0;
    for (uint32_t o = 0; o < s; o++) {
        const struct set_attempt *other = &attempt->sets[o];
        for (uint32_t i = 0; i < other->demand_count; i++) {
            const struct quota_demand *demand = &other->demands[i];
            if (demand->group >= 0 && str_eq(demand->resource, resource) &&
                str_eq(attempt_flavor(attempt, other, demand)->name, flavor)) {
                taken += attempt_total(other, demand);
            }
        }
    }
    return taken;
}

/* One account that a set draws on. */
struct draw {
    const struct quota_demand *demand;
    struct str flavor;
    i128 asked; /* by the set and those in front of it */
    i128 available;
};

/* False: the set asks for nothing of the sort, or it isn't rationed. */
static bool draw_of(const struct attempt *attempt, uint32_t s, uint32_t i, struct draw *ret_draw)
{
    const struct set_attempt *set = &attempt->sets[s];
    const struct quota_demand *demand = &set->demands[i];
    i128 own = attempt_total(set, demand);
    if (demand->group < 0 || own == 0) {
        return false;
    }
    struct str flavor = attempt_flavor(attempt, set, demand)->name;
    *ret_draw = (struct draw){
        .demand = demand,
        .flavor = flavor,
        .asked = own + taken_before(attempt, s, flavor, demand->resource),
        .available = quota_available(&attempt->shape->queue->node, flavor, demand->resource)};
    return true;
}

static bool is_short(const struct attempt *attempt, const struct draw *draw)
{
    const struct quota_node *node = &attempt->shape->queue->node;
    const struct quota_cell *cell = quota_cell_find(node, draw->flavor, draw->demand->resource);
    bool is_cut = node->parent == NULL && cell != NULL && cell->used > cell->subtree;
    return draw->asked > draw->available || is_cut;
}

static struct verdict check_set_quota(struct attempt *attempt, uint32_t s, uint32_t *level)
{
    const struct quota_node *node = &attempt->shape->queue->node;
    struct verdict worst = verdict_say(REASON_NONE, 0, STR_NONE);
    for (uint32_t i = 0; i < attempt->sets[s].demand_count; i++) {
        struct draw draw;
        if (!draw_of(attempt, s, i, &draw)) {
            continue;
        }
        uint32_t here = quota_borrow_level(node, draw.flavor, draw.demand->resource, draw.asked);
        *level = here > *level ? here : *level;
        if (!is_short(attempt, &draw)) {
            continue;
        }
        struct verdict verdict =
            quota_verdict(attempt, draw.demand, draw.flavor, draw.asked, draw.available);
        if (worst.reason == REASON_NONE || verdict.reason == REASON_NEVER_FITS) {
            worst = verdict;
        }
    }
    return worst;
}

struct verdict attempt_check_quota(struct attempt *attempt, uint32_t *ret_level)
{
    struct verdict told = verdict_say(REASON_NONE, 0, STR_NONE);
    *ret_level = 0;
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        struct verdict verdict = check_set_quota(attempt, s, ret_level);
        if (verdict.reason == REASON_NONE) {
            continue;
        }
        attempt->short_set = told.reason == REASON_NONE ? s : attempt->short_set;
        if (told.reason == REASON_NONE || verdict.reason == REASON_NEVER_FITS) {
            told = verdict;
            attempt_name_set(attempt, s, &told);
        }
    }
    return told;
}

/* -- how many pods ------------------------------------------------------------------------------
 */

static int64_t spare_pods(const struct pod_set *set)
{
    return set->size.is_partial_allowed ? set->size.pods - set->size.min_count : 0;
}

/* All pods at step 0, min-count of each set at the last; the sets shrink in proportion, as Kueue's
 * PodSetReducer has it. */
static void set_counts(struct attempt *attempt, int64_t step, int64_t steps)
{
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        const struct pod_set *set = attempt->sets[s].set;
        int64_t less = steps == 0 ? 0 : (int64_t)((i128)spare_pods(set) * step / steps);
        attempt->sets[s].count = set->size.pods - less;
    }
}

static int64_t count_steps(const struct attempt *attempt)
{
    int64_t steps = 0;
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        steps = sat_add(steps, spare_pods(attempt->sets[s].set));
    }
    return steps;
}

static bool is_too_far_up(const struct attempt *attempt, const struct draw *draw)
{
    return attempt->core->level_cap != LEVEL_ANY &&
           quota_borrow_level(&attempt->shape->queue->node, draw->flavor, draw->demand->resource,
                              draw->asked) > attempt->core->level_cap;
}

static bool has_quota(const struct attempt *attempt)
{
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        for (uint32_t i = 0; i < attempt->sets[s].demand_count; i++) {
            struct draw draw;
            if (draw_of(attempt, s, i, &draw) &&
                (is_short(attempt, &draw) || is_too_far_up(attempt, &draw))) {
                return false;
            }
        }
    }
    return true;
}

static bool is_placed(const struct attempt *attempt, const int64_t *placed)
{
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        bool may_shrink = attempt->sets[s].set->size.is_partial_allowed;
        if (may_shrink && attempt->sets[s].count > placed[s]) {
            return false;
        }
    }
    return true;
}

/* The first step whose counts are enough of a shrinking; `placed` NULL: to have the quota. */
static void shrink(struct attempt *attempt, const int64_t *placed)
{
    int64_t steps = count_steps(attempt);
    int64_t low = 0;
    int64_t high = steps;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        set_counts(attempt, middle, steps);
        if (placed == NULL ? has_quota(attempt) : is_placed(attempt, placed)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    set_counts(attempt, low, steps);
}

void attempt_choose_counts(struct attempt *attempt)
{
    shrink(attempt, NULL);
}

void attempt_choose_least(struct attempt *attempt)
{
    set_counts(attempt, 1, 1);
}

void attempt_shrink_counts(struct attempt *attempt, const int64_t *placed)
{
    shrink(attempt, placed);
}
