/* evaluate.c - may the next gang of a shape start now, and on which flavors?
 *
 * All flavors of each resource group are judged, in the queue's order; the first combination with
 * quota and room wins. When none has, the verdict is the one that came nearest to a start. */
#include "attempt.h"

#include "gate.h"
#include "tallyman/base/limits.h"

#define COMBINATIONS_MAX 256

/* How near a verdict is to a start: the nearest is the one that is told. */
static int verdict_rank(enum reason reason)
{
    switch ((int)reason) {
    case REASON_NONE:
        return 9;
    case REASON_RESERVED_FOR_OTHER:
        return 8;
    case REASON_NODE_SHAPE:
        return 7;
    case REASON_DEVICES_EXHAUSTED:
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
    for (uint32_t g = 0; g < attempt->group_count; g++) {
        struct verdict verdict =
            attempt_check_flavor(attempt, attempt_chosen(attempt, g)->name, evaluation);
        if (verdict.reason != REASON_NONE) {
            return verdict;
        }
    }
    attempt->count = attempt_count(attempt);
    struct verdict verdict = attempt_check_quota(attempt, &evaluation->level);
    if (attempt->core->ignores_quota) {
        verdict = verdict_say(REASON_NONE, 0, STR_NONE);
    }
    if (verdict.reason != REASON_NONE || str_eq_c(attempt->object->spec.fit, "Quota")) {
        return verdict;
    }
    const struct pod_set *set = &attempt->shape->sets[0];
    struct pod_demand demand = {
        .set = set, .node_selector = &set->node_selector, .flavor_count = evaluation->flavor_count};
    for (uint32_t i = 0; i < evaluation->flavor_count; i++) {
        demand.flavors[i] = evaluation->flavors[i];
    }
    const struct gang_size *size = &set->size;
    evaluation->fit = fit_gang(attempt->core, &demand, attempt->count, size->min_count);
    evaluation->has_fit = true;
    evaluation->pin = evaluation->fit.pin;
    if (evaluation->fit.placed > 0) {
        if (size->is_partial_allowed) {
            attempt->count = evaluation->fit.placed; /* as many as quota and nodes hold */
            verdict = attempt_check_quota(attempt, &evaluation->level);
        }
        return verdict;
    }
    return fit_verdict(attempt->core, set, &evaluation->fit);
}

/* The next combination in the queue's order, like an odometer; false: there are no more. */
static bool next_choice(struct attempt *attempt)
{
    for (uint32_t g = attempt->group_count; g > 0; g--) {
        const struct resource_group *group =
            &attempt->object->spec.resource_groups.items[attempt->groups[g - 1]];
        if (++attempt->choice[g - 1] < group->flavors.count) {
            return true;
        }
        attempt->choice[g - 1] = 0;
    }
    return false;
}

/* -- what is reserved ------------------------------------------------------------------------- */

static void fill_claims(struct attempt *attempt, struct reserve_request *request)
{
    const struct pod_set *set = &attempt->shape->sets[0];
    struct arena *arena = &attempt->core->scratch;
    struct claim_charge *claims = ARENA_ARRAY(arena, struct claim_charge, set->claim_count + 1);
    for (uint32_t c = 0; c < set->claim_count; c++) {
        const struct shared_claim_demand *claim = &set->claims[c];
        claims[c].key = claim->claim->key;
        claims[c].charges.items = ARENA_ARRAY(arena, struct charge, claim->request_count + 1);
        for (uint32_t i = 0; i < claim->request_count; i++) {
            struct quota_demand *demand =
                attempt_demand(attempt, claim->requests[i].profile->class_name);
            if (demand != NULL && demand->group >= 0) {
                claims[c].charges.items[claims[c].charges.count++] =
                    (struct charge){.flavor = attempt_flavor(attempt, demand)->name,
                                    .resource = demand->resource,
                                    .amount = claim->requests[i].count};
            }
        }
    }
    request->claims = claims;
    request->claim_count = set->claim_count;
}

static void fill_request(struct attempt *attempt, struct evaluation *evaluation)
{
    struct reserve_request *request = &evaluation->reserve;
    request->queue = attempt->shape->queue;
    request->count = attempt->count;
    request->per_pod.items =
        ARENA_ARRAY(&attempt->core->scratch, struct charge, attempt->demand_count + 1);
    for (uint32_t i = 0; i < attempt->demand_count; i++) {
        const struct quota_demand *demand = &attempt->demands[i];
        if (demand->group >= 0 && demand->per_pod > 0) {
            request->per_pod.items[request->per_pod.count++] =
                (struct charge){.flavor = attempt_flavor(attempt, demand)->name,
                                .resource = demand->resource,
                                .amount = demand->per_pod};
        }
    }
    fill_claims(attempt, request);
}

/* -- the queue -------------------------------------------------------------------------------- */

static struct verdict check_queue(struct core *core, const struct shape *shape)
{
    struct arena *arena = &core->scratch;
    const struct queue *object = shape->queue->object;
    struct str name = shape->queue->name;
    if (object == NULL) {
        return verdict_say(REASON_QUEUE_NOT_FOUND, WAIT_CONFIG,
                           arena_format(arena, "there is no Queue " STR_FMT, STR_ARG(name)));
    }
    if (shape->queue->node.is_in_cycle) {
        return verdict_say(
            REASON_INVALID, WAIT_CONFIG,
            arena_format(arena,
                         "the cohorts above queue " STR_FMT
                         " form a cycle, or are more than %d deep; correct spec.parentName "
                         "of one of them",
                         STR_ARG(name), QUOTA_DEPTH_MAX));
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
    if (evidence->flavor_count == FLAVOR_NOTES_MAX || attempt->group_count == 0) {
        return;
    }
    struct text name;
    text_init(&name, &attempt->core->scratch, 250);
    for (uint32_t g = 0; g < attempt->group_count; g++) {
        text_addf(&name, "%s" STR_FMT, g == 0 ? "" : "+",
                  STR_ARG(attempt_chosen(attempt, g)->name));
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
    for (int i = 0; i < EXCLUDED_COUNT; i++) {
        evidence->excluded[i] = fit->excluded[i];
    }
}

/* One that fits may still have to leave its room to a gang ahead of it. */
static struct verdict judge_beside_bookings(struct attempt *attempt, struct evaluation *evaluation)
{
    struct verdict verdict = judge(attempt, evaluation);
    if (verdict.reason == REASON_NONE) {
        fill_request(attempt, evaluation);
        verdict = booking_check(attempt->core, attempt->shape, evaluation);
    }
    return verdict;
}

/* More pods before fewer, where the gang may start with fewer; then, where the next flavor is tried
 * before borrowing, what borrows less. */
static bool is_better(const struct attempt *attempt, const struct evaluation *evaluation,
                      const struct evaluation *best)
{
    if (attempt->count != best->reserve.count) {
        return attempt->count > best->reserve.count;
    }
    return !stops_at_borrowing(attempt->object) && evaluation->level < best->level;
}

static bool ends_search(const struct attempt *attempt, const struct evaluation *evaluation)
{
    bool is_whole = attempt->count == attempt->shape->sets[0].size.pods;
    return is_whole && (evaluation->level == 0 || stops_at_borrowing(attempt->object));
}

static void try_flavors(struct attempt *attempt, struct evaluation *ret_evaluation)
{
    struct evidence evidence = {.flavor_count = 0};
    struct verdict nearest = verdict_say(REASON_NONE, 0, STR_NONE);
    uint32_t waits_for = 0;
    uint32_t tried = 0;
    bool has_fit = false;
    do {
        struct evaluation evaluation;
        struct verdict verdict = judge_beside_bookings(attempt, &evaluation);
        if (verdict.reason == REASON_NONE) {
            if (!has_fit || is_better(attempt, &evaluation, ret_evaluation)) {
                *ret_evaluation = evaluation;
                ret_evaluation->combination = tried;
                has_fit = true;
            }
            if (ends_search(attempt, &evaluation)) {
                return;
            }
            tried++;
            continue;
        }
        waits_for |= verdict.waits_for;
        note_flavor(attempt, &verdict, &evidence);
        if (nearest.reason == REASON_NONE ||
            verdict_rank(verdict.reason) > verdict_rank(nearest.reason)) {
            nearest = verdict;
            note_nearest(attempt->core, &nearest, &evaluation.fit, &evidence);
        }
        tried++;
    } while (next_choice(attempt) && tried < COMBINATIONS_MAX);
    if (has_fit) {
        return;
    }
    nearest.waits_for = waits_for;
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
    *verdict = check_queue(core, shape);
    if (verdict->reason != REASON_NONE) {
        return;
    }
    if (shape->broken.reason == REASON_NO_MATCHING_FLAVOR) {
        shape->is_resolved = false; /* the resource may have become known */
    }
    shape_resolve(core, shape);
    if (shape->broken.reason != REASON_NONE) {
        *verdict = shape->broken;
        verdict->message = arena_copy_str(&core->scratch, shape->broken.message);
        return;
    }
    struct attempt attempt = {.core = core, .shape = shape, .object = shape->queue->object};
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

static void fill_probe(struct attempt *attempt, uint32_t level, struct quota_probe *probe)
{
    probe->items =
        ARENA_ARRAY(&attempt->core->scratch, struct probe_item, attempt->demand_count + 1);
    probe->level = level;
    for (uint32_t i = 0; i < attempt->demand_count; i++) {
        const struct quota_demand *demand = &attempt->demands[i];
        i128 asked = attempt_total(attempt, demand);
        if (demand->group >= 0 && asked > 0) {
            probe->items[probe->count++] =
                (struct probe_item){.flavor = attempt_flavor(attempt, demand)->name,
                                    .resource = demand->resource,
                                    .asked = asked};
        }
    }
}

static bool attempt_begin(struct core *core, struct shape *shape, struct attempt *ret_attempt)
{
    if (check_queue(core, shape).reason != REASON_NONE) {
        return false;
    }
    shape_resolve(core, shape);
    *ret_attempt = (struct attempt){
        .core = core, .shape = shape, .object = shape->queue->object, .is_silent = true};
    return shape->broken.reason == REASON_NONE && attempt_collect(ret_attempt) &&
           attempt_find_groups(ret_attempt).reason == REASON_NONE;
}

static bool may_have_flavors(struct attempt *attempt)
{
    struct evaluation evaluation = {.has_fit = false};
    for (uint32_t g = 0; g < attempt->group_count; g++) {
        struct str name = attempt_chosen(attempt, g)->name;
        if (attempt_check_flavor(attempt, name, &evaluation).reason != REASON_NONE) {
            return false;
        }
    }
    return true;
}

/* The combination that is chosen now, if it is better than what the probe has; true: it has the
 * quota and ends the search. One with quota goes before one that only might have it. */
static bool probe_choice(struct attempt *attempt, struct quota_probe *probe, bool *is_free)
{
    attempt->count = attempt_count(attempt);
    uint32_t level = 0;
    enum reason reason = attempt_check_quota(attempt, &level).reason;
    if (reason == REASON_NEVER_FITS || (reason != REASON_NONE && *is_free)) {
        return *is_free && stops_at_borrowing(attempt->object);
    }
    bool is_first = reason == REASON_NONE && !*is_free;
    if (is_first || level < probe->level) {
        *probe = (struct quota_probe){.level = level};
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
        is_done = may_have_flavors(&attempt) && probe_choice(&attempt, ret_probe, &is_free);
        is_done = is_done || !next_choice(&attempt);
    }
    if (ret_probe->level == UINT32_MAX) {
        *ret_probe = (struct quota_probe){.is_hopeless = true};
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
    for (uint32_t g = 0; g < attempt.group_count && count < COMBINATIONS_MAX; g++) {
        count *= attempt.object->spec.resource_groups.items[attempt.groups[g]].flavors.count;
    }
    return count < COMBINATIONS_MAX ? count : COMBINATIONS_MAX;
}

/* As next_choice() counts: the last group's flavor changes first. */
static bool choose(struct core *core, struct shape *shape, uint32_t combination,
                   struct attempt *ret_attempt)
{
    if (!attempt_begin(core, shape, ret_attempt)) {
        return false;
    }
    for (uint32_t g = ret_attempt->group_count; g > 0; g--) {
        const struct resource_group *group =
            &ret_attempt->object->spec.resource_groups.items[ret_attempt->groups[g - 1]];
        ret_attempt->choice[g - 1] = combination % group->flavors.count;
        combination /= group->flavors.count;
    }
    return combination == 0; /* else the queue has fewer now */
}

void evaluate_combination(struct core *core, struct shape *shape, uint32_t combination,
                          struct evaluation *ret_evaluation)
{
    struct attempt attempt;
    if (!choose(core, shape, combination, &attempt)) {
        *ret_evaluation = (struct evaluation){
            .verdict = verdict_say(REASON_NO_MATCHING_FLAVOR, WAIT_CONFIG, STR_NONE)};
        return;
    }
    struct verdict verdict = judge_beside_bookings(&attempt, ret_evaluation);
    ret_evaluation->verdict = verdict;
    ret_evaluation->combination = combination;
}

/* One group's flavor: what is short of it, else all of it. */
static void add_needs(struct attempt *attempt, uint32_t g, struct quota_probe *probe)
{
    const struct quota_node *node = &attempt->shape->queue->node;
    struct str flavor = attempt_chosen(attempt, g)->name;
    bool is_any_short = false;
    for (int round = 0; round < 2 && !is_any_short; round++) {
        for (uint32_t i = 0; i < attempt->demand_count; i++) {
            const struct quota_demand *demand = &attempt->demands[i];
            i128 asked = attempt_total(attempt, demand);
            bool is_short = asked > quota_available(node, flavor, demand->resource);
            if (demand->group != attempt->groups[g] || asked == 0 || (round == 0 && !is_short)) {
                continue;
            }
            is_any_short = true;
            probe->items[probe->count++] =
                (struct probe_item){.flavor = flavor, .resource = demand->resource, .asked = asked};
        }
    }
}

bool evaluate_ask(struct core *core, struct shape *shape, uint32_t combination,
                  struct quota_probe *ret_ask, struct quota_probe *ret_needs)
{
    struct attempt attempt;
    if (!choose(core, shape, combination, &attempt) || !may_have_flavors(&attempt)) {
        return false;
    }
    const struct gang_size *size = &shape->sets[0].size;
    attempt.count = size->is_partial_allowed ? size->min_count : size->pods;
    *ret_ask = *ret_needs = (struct quota_probe){.level = 0};
    fill_probe(&attempt, 0, ret_ask);
    ret_needs->items = ARENA_ARRAY(&core->scratch, struct probe_item, attempt.demand_count + 1);
    for (uint32_t g = 0; g < attempt.group_count; g++) {
        add_needs(&attempt, g, ret_needs);
    }
    return true;
}
