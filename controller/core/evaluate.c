/* evaluate.c - may the next gang of a shape start now, and on which flavors?
 *
 * All flavors of each resource group are judged, in the queue's order; the first combination with
 * quota and room wins. When none has, the verdict is the one that came nearest to a start. */
#include "attempt.h"

#include "check.h"
#include "selectors.h"
#include "tallyman/base/limits.h"

#define COMBINATIONS_MAX 256

/* How near a verdict is to a start: the nearest is the one that is told. */
static int verdict_rank(enum reason reason)
{
    switch ((int)reason) {
    case REASON_NONE:
        return 0; /* there is none yet */
    case REASON_RESERVED_FOR_OTHER:
        return 8;
    case REASON_NODE_SHAPE:
    case REASON_TOPOLOGY_UNSATISFIED:
        return 7;
    case REASON_DEVICES_EXHAUSTED:
    case REASON_DEVICES_UNHEALTHY:
    case REASON_NODES_FULL:
        return 6;
    case REASON_QUOTA_EXHAUSTED:
    case REASON_BORROWING_LIMIT:
    case REASON_COHORT_EXHAUSTED:
        return 5;
    case REASON_NEVER_FITS:
        return 4;
    case REASON_MISSING_REFERENCE:
        return 3;
    default:
        return 2;
    }
}

static struct verdict judge(struct attempt *attempt, struct evaluation *evaluation)
{
    *evaluation = (struct evaluation){.has_fit = false};
    struct verdict verdict = attempt_check_choice(attempt);
    if (verdict.reason != REASON_NONE) {
        return verdict;
    }
    attempt_choose_counts(attempt);
    verdict = attempt_check_quota(attempt, &evaluation->level);
    if (attempt->core->ignores_quota) {
        verdict = verdict_say(REASON_NONE, 0, STR_NONE);
    }
    if (verdict.reason == REASON_NONE && check_is_asked(attempt->shape)) {
        return check_obstacle(attempt->core, attempt->shape->queue, &attempt->core->scratch);
    }
    if (verdict.reason != REASON_NONE) {
        return attempt_waits_in_vain(attempt, attempt_combination(attempt), verdict.reason,
                                     evaluation)
                   ? evaluation->verdict
                   : verdict;
    }
    if (attempt->core->ignores_room || !queue_looks_at_nodes(attempt->shape->queue)) {
        return verdict;
    }
    return attempt_check_fit(attempt, evaluation);
}

/* The next combination in the queue's order, like an odometer whose slots are the groups of one set
 * after the other. What is chosen behind set `s` can't help it and isn't tried. False: there are no
 * more. */
static bool next_choice(struct attempt *attempt, uint32_t s)
{
    for (uint32_t o = s + 1; o < attempt->set_count; o++) {
        for (uint32_t g = 0; g < attempt->sets[o].group_count; g++) {
            attempt->sets[o].choice[g] = 0;
        }
    }
    for (uint32_t o = s + 1; o > 0; o--) {
        struct set_attempt *set = &attempt->sets[o - 1];
        for (uint32_t g = set->group_count; g > 0; g--) {
            const struct resource_group *group =
                &attempt->object->spec.resource_groups.items[set->groups[g - 1]];
            if (++set->choice[g - 1] < group->flavors.count) {
                return true;
            }
            set->choice[g - 1] = 0;
        }
    }
    return false;
}

/* -- the queue -------------------------------------------------------------------------------- */

struct verdict evaluate_queue(struct core *core, const struct shape *shape)
{
    struct arena *arena = &core->scratch;
    const struct queue *object = shape->queue->object;
    struct str name = shape->queue->name;
    if (object == NULL) {
        return verdict_say(REASON_QUEUE_NOT_FOUND, WAIT_CONFIG,
                           arena_format(arena, "there is no Queue " STR_FMT, STR_ARG(name)));
    }
    struct str trouble = quota_trouble(&shape->queue->node, arena);
    if (str_is_set(trouble)) {
        return verdict_say(REASON_INVALID, WAIT_CONFIG, trouble);
    }
    if (object->meta.deletion_timestamp.is_set) {
        return verdict_say(
            REASON_QUEUE_STOPPED, WAIT_CONFIG,
            arena_format(arena, "queue " STR_FMT " is being deleted", STR_ARG(name)));
    }
    struct stop_order order = stop_find(core, arena, shape->queue, shape->namespace_name);
    if (order.stop != STOP_NONE) {
        return verdict_say(REASON_QUEUE_STOPPED, WAIT_CONFIG, order.why);
    }
    const struct namespace_object *space = named_find(core, KIND_NAMESPACE, shape->namespace_name);
    static const struct string_map no_labels;
    const struct string_map *labels = space == NULL ? &no_labels : &space->meta.labels;
    if (!label_selector_matches(object->spec.namespace_selector, labels)) {
        return verdict_say(REASON_NAMESPACE_NOT_ALLOWED, WAIT_CONFIG,
                           arena_format(arena,
                                        "namespace " STR_FMT " may not use queue " STR_FMT
                                        ": its labels don't match the queue's namespaceSelector",
                                        STR_ARG(shape->namespace_name), STR_ARG(name)));
    }
    return verdict_say(REASON_NONE, 0, STR_NONE);
}

/* whenCanBorrow: MayStopSearch (the default) takes the first flavor that fits, borrowing or not. */
static bool stops_at_borrowing(const struct queue *object)
{
    const struct flavor_fungibility *fungibility = object->spec.flavor_fungibility;
    return fungibility == NULL || !str_eq_c(fungibility->when_can_borrow, "TryNextFlavor");
}

static void note_flavor(struct attempt *attempt, const struct verdict *verdict,
                        struct evidence *evidence)
{
    struct text name;
    text_init(&name, &attempt->core->scratch, 250);
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        const struct set_attempt *set = &attempt->sets[s];
        for (uint32_t g = 0; g < set->group_count; g++) {
            const char *joint = s > 0 && g == 0 ? "/" : "+";
            text_addf(&name, "%s" STR_FMT, name.len == 0 ? "" : joint,
                      STR_ARG(attempt_chosen(attempt, set, g)->name));
        }
    }
    if (evidence->flavor_count == FLAVOR_NOTES_MAX || name.len == 0) {
        return;
    }
    evidence->flavors[evidence->flavor_count++] = (struct flavor_note){
        .flavor = text_str(&name), .reason = verdict->reason, .message = verdict->message};
}

static void note_nearest(const struct core *core, const struct verdict *verdict,
                         const struct fit_result *fit, struct evidence *evidence)
{
    evidence->resource = verdict->resource;
    evidence->asked = verdict->asked;
    evidence->free = verdict->free;
    evidence->at_ms = core->now_ms;
    evidence->nodes_total = fit->nodes_total;
    evidence->topology = fit_topology_note(fit);
    for (int i = 0; i < EXCLUDED_COUNT; i++) {
        evidence->excluded[i] = fit->excluded[i];
        evidence->excluded_why[i] = fit->excluded_why[i];
    }
}

/* One that fits may still have to leave its room to a gang ahead of it. */
static struct verdict judge_beside_bookings(struct attempt *attempt, struct evaluation *evaluation)
{
    struct verdict verdict = judge(attempt, evaluation);
    if (verdict.reason == REASON_NONE) {
        attempt_fill(attempt, evaluation);
        verdict = booking_check(attempt->core, attempt->shape, evaluation);
    }
    return verdict;
}

static int64_t pods_in_all(const struct reserve_request *request)
{
    int64_t pods = 0;
    for (uint32_t s = 0; s < request->set_count; s++) {
        pods = sat_add(pods, request->sets[s].count);
    }
    return pods;
}

/* More pods before fewer, where the gang may start with fewer; then, where the next flavor is tried
 * before borrowing, what borrows less. */
static bool is_better(const struct attempt *attempt, const struct evaluation *evaluation,
                      const struct evaluation *best)
{
    int64_t pods = pods_in_all(&evaluation->reserve);
    int64_t before = pods_in_all(&best->reserve);
    if (pods != before) {
        return pods > before;
    }
    return !stops_at_borrowing(attempt->object) && evaluation->level < best->level;
}

static bool ends_search(const struct attempt *attempt, const struct evaluation *evaluation)
{
    bool is_whole = pods_in_all(&evaluation->reserve) == attempt->shape->size.pods;
    return is_whole && (evaluation->level == 0 || stops_at_borrowing(attempt->object));
}

/* The combination can't be had before there is so much of that. */
static void note_shortage(struct attempt *attempt, const struct verdict *verdict,
                          struct evaluation *evaluation, uint32_t *capacity)
{
    if ((verdict->waits_for & WAIT_QUOTA) == 0) {
        return;
    }
    evaluation->shortages =
        arena_grow(&attempt->core->scratch, evaluation->shortages, evaluation->shortage_count,
                   capacity, sizeof(*evaluation->shortages));
    evaluation->shortages[evaluation->shortage_count++] = (struct quota_shortage){
        .flavor = verdict->flavor, .resource = verdict->resource, .asked = verdict->asked};
}

static void try_flavors(struct attempt *attempt, struct evaluation *ret_evaluation)
{
    struct evidence evidence = {.flavor_count = 0};
    struct verdict nearest = verdict_say(REASON_NONE, 0, STR_NONE);
    uint32_t waits_for = 0;
    uint32_t tried = 0;
    uint32_t shortage_capacity = 0;
    bool has_fit = false;
    bool is_never = true;
    do {
        struct evaluation evaluation;
        struct verdict verdict = judge_beside_bookings(attempt, &evaluation);
        if (verdict.reason == REASON_NONE) {
            if (!has_fit || is_better(attempt, &evaluation, ret_evaluation)) {
                *ret_evaluation = evaluation;
                ret_evaluation->combination = attempt_combination(attempt);
                has_fit = true;
            }
            if (ends_search(attempt, &evaluation)) {
                return;
            }
            tried++;
            attempt->short_set = attempt->set_count - 1;
            continue;
        }
        waits_for |= verdict.waits_for;
        is_never &= verdict_is_passed_over(&verdict);
        note_shortage(attempt, &verdict, ret_evaluation, &shortage_capacity);
        note_flavor(attempt, &verdict, &evidence);
        if (verdict_rank(verdict.reason) > verdict_rank(nearest.reason)) {
            nearest = verdict;
            ret_evaluation->fit = evaluation.fit;
            note_nearest(attempt->core, &nearest, &evaluation.fit, &evidence);
        }
        tried++;
    } while (next_choice(attempt, attempt->short_set) && tried < COMBINATIONS_MAX);
    if (has_fit) {
        return;
    }
    nearest.waits_for = waits_for;
    nearest.is_never = is_never;
    if (tried > 1) {
        nearest.asked = 0; /* room in any of the flavors may be enough */
        nearest.resource = STR_NONE;
    }
    ret_evaluation->evidence = evidence;
    ret_evaluation->verdict = nearest;
}

void evaluate_shape(struct core *core, struct shape *shape, struct evaluation *ret_evaluation)
{
    *ret_evaluation = (struct evaluation){.has_fit = false};
    struct verdict *verdict = &ret_evaluation->verdict;
    if (shape->broken.reason == REASON_NO_MATCHING_FLAVOR) {
        shape->is_resolved = false; /* the resource may have become known */
    }
    shape_settle(core, shape); /* what it asks for is told, whatever its queue is like */
    *verdict = evaluate_queue(core, shape);
    if (verdict->reason != REASON_NONE) {
        return;
    }
    if (shape->broken.reason != REASON_NONE) {
        *verdict = shape->broken;
        verdict->message = arena_copy_str(&core->scratch, shape->broken.message);
        return;
    }
    struct attempt attempt = {
        .core = core, .shape = shape, .object = shape->queue->object, .is_silent = core->is_brief};
    if (!attempt_collect(&attempt)) {
        *verdict = verdict_say(
            REASON_INVALID, WAIT_CONFIG,
            arena_format(&core->scratch, "asks for more than %d different resources", DEMANDS_MAX));
        return;
    }
    *verdict = attempt_find_groups(&attempt);
    if (verdict->reason == REASON_NONE) {
        try_flavors(&attempt, ret_evaluation);
    }
}

/* -- quota alone --------------------------------------------------------------------------------
 */

/* Each account once, whichever sets draw on it. */
static struct probe_item *probe_item(struct core *core, struct quota_probe *probe,
                                     struct str flavor, struct str resource)
{
    for (uint32_t i = 0; i < probe->count; i++) {
        struct probe_item *item = &probe->items[i];
        if (str_eq(item->resource, resource) && str_eq(item->flavor, flavor)) {
            return item;
        }
    }
    probe->items = arena_grow(&core->scratch, probe->items, probe->count, &probe->capacity,
                              sizeof(struct probe_item));
    probe->items[probe->count] = (struct probe_item){.flavor = flavor, .resource = resource};
    return &probe->items[probe->count++];
}

static void fill_probe(struct attempt *attempt, uint32_t level, struct quota_probe *probe)
{
    *probe = (struct quota_probe){.level = level};
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        const struct set_attempt *set = &attempt->sets[s];
        for (uint32_t i = 0; i < set->demand_count; i++) {
            const struct quota_demand *demand = &set->demands[i];
            i128 asked = attempt_total(set, demand);
            if (demand->group >= 0 && asked > 0) {
                struct str flavor = attempt_flavor(attempt, set, demand)->name;
                probe_item(attempt->core, probe, flavor, demand->resource)->asked += asked;
            }
        }
    }
}

static bool attempt_begin(struct core *core, struct shape *shape, struct attempt *ret_attempt)
{
    if (evaluate_queue(core, shape).reason != REASON_NONE) {
        return false;
    }
    shape_resolve(core, shape);
    *ret_attempt = (struct attempt){
        .core = core, .shape = shape, .object = shape->queue->object, .is_silent = true};
    return shape->broken.reason == REASON_NONE && attempt_collect(ret_attempt) &&
           attempt_find_groups(ret_attempt).reason == REASON_NONE;
}

/* The first set that may not have what is chosen for it; set_count: there is none. */
static uint32_t find_misfit(struct attempt *attempt)
{
    uint32_t s = 0;
    while (s < attempt->set_count &&
           attempt_check_flavors(attempt, &attempt->sets[s]).reason == REASON_NONE) {
        s++;
    }
    return s;
}

/* The combination that is chosen now, if it is better than what the probe has; true: it has the
 * quota and ends the search. One with quota goes before one that only might have it. */
static bool probe_choice(struct attempt *attempt, struct quota_probe *probe, bool *is_free)
{
    attempt_choose_counts(attempt);
    uint32_t level = 0;
    enum reason reason = attempt_check_quota(attempt, &level).reason;
    if (reason == REASON_NEVER_FITS || (reason != REASON_NONE && *is_free)) {
        return *is_free && stops_at_borrowing(attempt->object);
    }
    bool is_first = reason == REASON_NONE && !*is_free;
    if (is_first || level < probe->level) {
        fill_probe(attempt, level, probe);
    }
    *is_free = reason == REASON_NONE;
    return *is_free && (level == 0 || stops_at_borrowing(attempt->object));
}

void evaluate_quota(struct core *core, struct shape *shape, struct quota_probe *ret_probe)
{
    *ret_probe = (struct quota_probe){.level = UINT32_MAX};
    struct attempt attempt;
    bool is_free = false;
    bool is_done = !attempt_begin(core, shape, &attempt);
    for (uint32_t tried = 0; !is_done && tried < COMBINATIONS_MAX; tried++) {
        uint32_t misfit = find_misfit(&attempt);
        bool is_allowed = misfit == attempt.set_count;
        is_done = is_allowed && probe_choice(&attempt, ret_probe, &is_free);
        is_done = is_done || !next_choice(&attempt, is_allowed ? misfit - 1 : misfit);
    }
    if (ret_probe->level == UINT32_MAX) {
        *ret_probe = (struct quota_probe){.is_hopeless = true};
    } else {
        ret_probe->is_fixed = attempt_is_fixed(&attempt);
    }
}

/* -- one combination of flavors ------------------------------------------------------------------
 */

uint32_t evaluate_combination_count(struct core *core, struct shape *shape)
{
    struct attempt attempt;
    if (!attempt_begin(core, shape, &attempt)) {
        return 0;
    }
    uint32_t count = 1;
    for (uint32_t s = 0; s < attempt.set_count; s++) {
        for (uint32_t g = 0; g < attempt.sets[s].group_count && count < COMBINATIONS_MAX; g++) {
            count *= attempt_flavors_of(&attempt, &attempt.sets[s], g);
        }
    }
    return count < COMBINATIONS_MAX ? count : COMBINATIONS_MAX;
}

/* As next_choice() counts: the last group's flavor of the last set changes first. */
bool attempt_choose(struct core *core, struct shape *shape, uint32_t combination,
                    struct attempt *ret_attempt)
{
    if (!attempt_begin(core, shape, ret_attempt)) {
        return false;
    }
    for (uint32_t s = ret_attempt->set_count; s > 0; s--) {
        struct set_attempt *set = &ret_attempt->sets[s - 1];
        for (uint32_t g = set->group_count; g > 0; g--) {
            uint32_t flavors = attempt_flavors_of(ret_attempt, set, g - 1);
            set->choice[g - 1] = combination % flavors;
            combination /= flavors;
        }
    }
    return combination == 0; /* else the queue has fewer now */
}

void evaluate_combination(struct core *core, struct shape *shape, uint32_t combination,
                          struct evaluation *ret_evaluation)
{
    struct attempt attempt;
    shape_settle(core, shape);
    if (!attempt_choose(core, shape, combination, &attempt)) {
        *ret_evaluation = (struct evaluation){
            .verdict = verdict_say(REASON_NO_MATCHING_FLAVOR, WAIT_CONFIG, STR_NONE)};
        return;
    }
    struct verdict verdict = judge_beside_bookings(&attempt, ret_evaluation);
    ret_evaluation->verdict = verdict;
    ret_evaluation->combination = combination;
}

/* What a set takes of its flavors, all of it or only what is short. `ask` is of all sets. */
static void add_needs(struct attempt *attempt, const struct set_attempt *set, bool is_short_only,
                      struct quota_probe *ask, struct quota_probe *needs)
{
    const struct quota_node *node = &attempt->shape->queue->node;
    for (uint32_t i = 0; i < set->demand_count; i++) {
        const struct quota_demand *demand = &set->demands[i];
        if (demand->group < 0 || attempt_total(set, demand) == 0) {
            continue;
        }
        struct str flavor = attempt_flavor(attempt, set, demand)->name;
        i128 asked = probe_item(attempt->core, ask, flavor, demand->resource)->asked;
        if (!is_short_only || asked > quota_available(node, flavor, demand->resource)) {
            probe_item(attempt->core, needs, flavor, demand->resource)->asked = asked;
        }
    }
}

bool evaluate_ask(struct core *core, struct shape *shape, uint32_t combination,
                  struct quota_probe *ret_ask, struct quota_probe *ret_needs)
{
    struct attempt attempt;
    if (!attempt_choose(core, shape, combination, &attempt) ||
        find_misfit(&attempt) < attempt.set_count) {
        return false;
    }
    attempt_choose_least(&attempt);
    *ret_needs = (struct quota_probe){.level = 0};
    fill_probe(&attempt, 0, ret_ask);
    /* Where no quota is short it is room, and that of anything. */
    for (int round = 0; round < 2 && ret_needs->count == 0; round++) {
        for (uint32_t s = 0; s < attempt.set_count; s++) {
            add_needs(&attempt, &attempt.sets[s], round == 0, ret_ask, ret_needs);
        }
    }
    return true;
}
