/* evaluate.c - may the next gang of a shape start now, and on which flavors?
 *
 * All flavors of each resource group are judged, in the queue's order; the first combination with
 * quota and room wins. When none has, the verdict is the one that came nearest to a start. */
#include "internal.h"

#include <assert.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

#define COMBINATIONS_MAX 256
#define DEMANDS_MAX      64

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
    int64_t count; /* pods that are asked for; fewer than the gang's with partial admission */
    uint32_t flavors_judged;
};

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

static struct verdict say(enum reason reason, uint32_t waits_for, struct str message)
{
    return (struct verdict){.reason = reason, .waits_for = waits_for, .message = message};
}

/* -- what is asked ---------------------------------------------------------------------------- */

static struct quota_demand *demand_of(struct attempt *attempt, struct str resource)
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

static bool collect_demands(struct attempt *attempt)
{
    const struct shape *shape = attempt->shape;
    for (uint32_t i = 0; i < shape->per_pod.count; i++) {
        struct quota_demand *demand = demand_of(attempt, shape->per_pod.items[i].resource);
        if (demand == NULL) {
            return false;
        }
        demand->per_pod = i128_clamp(shape->per_pod.items[i].value);
    }
    for (uint32_t i = 0; i < shape->device_count; i++) {
        struct quota_demand *demand = demand_of(attempt, shape->devices[i].profile->class_name);
        if (demand == NULL) {
            return false;
        }
        demand->per_pod = sat_add(demand->per_pod, shape->devices[i].count);
    }
    for (uint32_t c = 0; c < shape->claim_count; c++) {
        const struct shared_claim_demand *claim = &shape->claims[c];
        bool is_paid = ledger_claim_payer(attempt->core, claim->claim->key) != NULL;
        for (uint32_t i = 0; i < claim->request_count; i++) {
            struct quota_demand *demand =
                demand_of(attempt, claim->requests[i].profile->class_name);
            if (demand == NULL) {
                return false;
            }
            demand->shared = sat_add(demand->shared, is_paid ? 0 : claim->requests[i].count);
        }
    }
    struct quota_demand *pods =
        demand_of(attempt, resource_find(attempt->core, STR(RESOURCE_PODS)));
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

/* Finds each resource's group; a resource that must be listed and isn't ends the attempt. */
static struct verdict find_groups(struct attempt *attempt)
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
            return say(
                REASON_NO_MATCHING_FLAVOR, WAIT_CONFIG,
                arena_format(&attempt->core->scratch,
                             "asks for " STR_FMT ", which no flavor of queue " STR_FMT " lists",
                             STR_ARG(demand->resource), STR_ARG(attempt->shape->queue->name)));
        }
    }
    return say(REASON_NONE, 0, STR_NONE);
}

/* -- one combination of flavors --------------------------------------------------------------- */

static const struct quota_flavor *chosen(const struct attempt *attempt, uint32_t g)
{
    const struct resource_group *group =
        &attempt->object->spec.resource_groups.items[attempt->groups[g]];
    return &group->flavors.items[attempt->choice[g]];
}

static const struct quota_flavor *flavor_for(const struct attempt *attempt,
                                             const struct quota_demand *demand)
{
    for (uint32_t g = 0; g < attempt->group_count; g++) {
        if (attempt->groups[g] == demand->group) {
            return chosen(attempt, g);
        }
    }
    assert(false && "a demand's group is among the gang's");
    mem_die("a resource without its group");
}

static struct verdict check_flavor(struct attempt *attempt, struct str name,
                                   struct evaluation *evaluation)
{
    struct arena *arena = &attempt->core->scratch;
    const struct resource_flavor *flavor = flavor_object(attempt->core, name);
    if (flavor == NULL) {
        return say(REASON_MISSING_REFERENCE, WAIT_CONFIG,
                   arena_format(arena, "ResourceFlavor " STR_FMT " doesn't exist", STR_ARG(name)));
    }
    const char *contradiction = flavor_contradiction(attempt->shape, flavor);
    if (contradiction != NULL) {
        return say(REASON_NO_MATCHING_FLAVOR, WAIT_CONFIG,
                   arena_format(arena, "the pods' %s contradicts the labels of flavor " STR_FMT,
                                contradiction, STR_ARG(name)));
    }
    const struct taint *taint = flavor_untolerated(attempt->shape, flavor);
    if (taint != NULL) {
        return say(REASON_NO_MATCHING_FLAVOR, WAIT_CONFIG,
                   arena_format(arena,
                                "the pods don't tolerate taint " STR_FMT " of flavor " STR_FMT,
                                STR_ARG(taint->key), STR_ARG(name)));
    }
    if (evaluation->flavor_count < FLAVORS_PER_GANG_MAX) {
        evaluation->flavors[evaluation->flavor_count++] = flavor;
    }
    return say(REASON_NONE, 0, STR_NONE);
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
        return say(REASON_QUOTA_EXHAUSTED, WAIT_QUOTA,
                   arena_format(arena,
                                "needs " STR_FMT " " STR_FMT " at once, " STR_FMT " of " STR_FMT
                                " of queue " STR_FMT "'s quota on flavor " STR_FMT " are free",
                                STR_ARG(asked_text), STR_ARG(name), STR_ARG(free_text),
                                STR_ARG(nominal_text), STR_ARG(node->name), STR_ARG(flavor)));
    }
    if (quota_hits_borrowing_limit(node, flavor, name, asked)) {
        return say(REASON_BORROWING_LIMIT, WAIT_QUOTA,
                   arena_format(arena,
                                "needs " STR_FMT " " STR_FMT
                                " at once; queue " STR_FMT " has a quota of " STR_FMT
                                " on flavor " STR_FMT " and may borrow " STR_FMT "; " STR_FMT
                                " are free",
                                STR_ARG(asked_text), STR_ARG(name), STR_ARG(node->name),
                                STR_ARG(nominal_text), STR_ARG(flavor),
                                STR_ARG(resource_amount_format(
                                    arena, name, cell == NULL ? 0 : cell->borrowing_limit)),
                                STR_ARG(free_text)));
    }
    return say(REASON_COHORT_EXHAUSTED, WAIT_QUOTA,
               arena_format(arena,
                            "needs " STR_FMT " " STR_FMT " at once, " STR_FMT
                            " are free for queue " STR_FMT " in cohort " STR_FMT
                            " on flavor " STR_FMT,
                            STR_ARG(asked_text), STR_ARG(name), STR_ARG(free_text),
                            STR_ARG(node->name), STR_ARG(node->parent->name), STR_ARG(flavor)));
}

static struct verdict quota_verdict(struct attempt *attempt, const struct quota_demand *demand,
                                    struct str flavor, i128 asked, i128 available)
{
    struct arena *arena = &attempt->core->scratch;
    const struct quota_node *node = &attempt->shape->queue->node;
    struct str name = demand->resource;
    i128 potential = quota_potential(node, flavor, name);
    struct verdict verdict;
    if (asked > potential) {
        const char *whose = node->parent == NULL ? "has a quota of" : "can have at most";
        verdict = say(
            REASON_NEVER_FITS, WAIT_CONFIG,
            arena_format(arena, "needs " STR_FMT " " STR_FMT ", and queue " STR_FMT " %s " STR_FMT
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

static i128 demand_total(const struct attempt *attempt, const struct quota_demand *demand)
{
    return (i128)demand->per_pod * attempt->count + demand->shared;
}

/* Whether every resource has the quota on its chosen flavor; how far up it has to borrow. */
static struct verdict check_quota(struct attempt *attempt, uint32_t *ret_level)
{
    const struct quota_node *node = &attempt->shape->queue->node;
    struct verdict worst = say(REASON_NONE, 0, STR_NONE);
    *ret_level = 0;
    for (uint32_t i = 0; i < attempt->demand_count; i++) {
        const struct quota_demand *demand = &attempt->demands[i];
        i128 asked = demand_total(attempt, demand);
        if (demand->group < 0 || asked == 0) {
            continue;
        }
        struct str flavor = flavor_for(attempt, demand)->name;
        i128 available = quota_available(node, flavor, demand->resource);
        const struct quota_cell *cell = quota_cell_find(node, flavor, demand->resource);
        bool is_cut = node->parent == NULL && cell != NULL && cell->used > cell->subtree;
        if (asked <= available && !is_cut) {
            uint32_t level = quota_borrow_level(node, flavor, demand->resource, asked);
            *ret_level = level > *ret_level ? level : *ret_level;
            continue;
        }
        struct verdict verdict = quota_verdict(attempt, demand, flavor, asked, available);
        if (worst.reason == REASON_NONE || verdict.reason == REASON_NEVER_FITS) {
            worst = verdict;
        }
    }
    return worst;
}

/* With partial admission as many pods as the quota holds, at least min-count; else all. */
static int64_t partial_count(const struct attempt *attempt)
{
    const struct gang_size *size = &attempt->shape->size;
    i128 count = size->pods;
    for (uint32_t i = 0; size->is_partial_allowed && i < attempt->demand_count; i++) {
        const struct quota_demand *demand = &attempt->demands[i];
        if (demand->group < 0 || demand->per_pod == 0) {
            continue;
        }
        i128 available = quota_available(&attempt->shape->queue->node,
                                         flavor_for(attempt, demand)->name, demand->resource);
        i128 room = (available - demand->shared) / demand->per_pod;
        count = room < count ? room : count;
    }
    return count < size->min_count ? size->min_count : (int64_t)count;
}

static struct verdict judge(struct attempt *attempt, struct evaluation *evaluation)
{
    *evaluation = (struct evaluation){.has_fit = false};
    for (uint32_t g = 0; g < attempt->group_count; g++) {
        struct verdict verdict = check_flavor(attempt, chosen(attempt, g)->name, evaluation);
        if (verdict.reason != REASON_NONE) {
            return verdict;
        }
    }
    attempt->count = partial_count(attempt);
    struct verdict verdict = check_quota(attempt, &evaluation->level);
    if (verdict.reason != REASON_NONE || str_eq_c(attempt->object->spec.fit, "Quota")) {
        return verdict;
    }
    struct pod_demand demand = {.shape = attempt->shape,
                                .node_selector = &attempt->shape->node_selector,
                                .flavor_count = evaluation->flavor_count};
    for (uint32_t i = 0; i < evaluation->flavor_count; i++) {
        demand.flavors[i] = evaluation->flavors[i];
    }
    const struct gang_size *size = &attempt->shape->size;
    evaluation->fit = fit_gang(attempt->core, &demand, attempt->count, size->min_count);
    evaluation->has_fit = true;
    evaluation->pin = evaluation->fit.pin;
    if (evaluation->fit.placed > 0) {
        if (size->is_partial_allowed) {
            attempt->count = evaluation->fit.placed; /* as many as quota and nodes hold */
        }
        return verdict;
    }
    return fit_verdict(attempt->core, attempt->shape, &evaluation->fit);
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
    const struct shape *shape = attempt->shape;
    struct arena *arena = &attempt->core->scratch;
    struct claim_charge *claims = ARENA_ARRAY(arena, struct claim_charge, shape->claim_count + 1);
    for (uint32_t c = 0; c < shape->claim_count; c++) {
        const struct shared_claim_demand *claim = &shape->claims[c];
        claims[c].key = claim->claim->key;
        claims[c].charges.items = ARENA_ARRAY(arena, struct charge, claim->request_count + 1);
        for (uint32_t i = 0; i < claim->request_count; i++) {
            struct quota_demand *demand =
                demand_of(attempt, claim->requests[i].profile->class_name);
            if (demand != NULL && demand->group >= 0) {
                claims[c].charges.items[claims[c].charges.count++] =
                    (struct charge){.flavor = flavor_for(attempt, demand)->name,
                                    .resource = demand->resource,
                                    .amount = claim->requests[i].count};
            }
        }
    }
    request->claims = claims;
    request->claim_count = shape->claim_count;
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
                (struct charge){.flavor = flavor_for(attempt, demand)->name,
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
        return say(REASON_QUEUE_NOT_FOUND, WAIT_CONFIG,
                   arena_format(arena, "there is no Queue " STR_FMT, STR_ARG(name)));
    }
    if (shape->queue->node.is_in_cycle) {
        return say(REASON_INVALID, WAIT_CONFIG,
                   arena_format(arena,
                                "the cohorts above queue " STR_FMT
                                " form a cycle, or are more than %d deep; correct spec.parentName "
                                "of one of them",
                                STR_ARG(name), QUOTA_DEPTH_MAX));
    }
    if (object->meta.deletion_timestamp.is_set) {
        return say(REASON_QUEUE_STOPPED, WAIT_CONFIG,
                   arena_format(arena, "queue " STR_FMT " is being deleted", STR_ARG(name)));
    }
    if (str_is_set(object->spec.stop_policy) && !str_eq_c(object->spec.stop_policy, "None")) {
        return say(REASON_QUEUE_STOPPED, WAIT_CONFIG,
                   arena_format(arena, "queue " STR_FMT " is stopped (stopPolicy " STR_FMT ")",
                                STR_ARG(name), STR_ARG(object->spec.stop_policy)));
    }
    const struct namespace_object *space = named_find(core, KIND_NAMESPACE, shape->namespace_name);
    static const struct string_map no_labels;
    const struct string_map *labels = space == NULL ? &no_labels : &space->meta.labels;
    if (!label_selector_matches(object->spec.namespace_selector, labels)) {
        return say(REASON_NAMESPACE_NOT_ALLOWED, WAIT_CONFIG,
                   arena_format(arena,
                                "namespace " STR_FMT " may not use queue " STR_FMT
                                ": its labels don't match the queue's namespaceSelector",
                                STR_ARG(shape->namespace_name), STR_ARG(name)));
    }
    return say(REASON_NONE, 0, STR_NONE);
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
        text_addf(&name, "%s" STR_FMT, g == 0 ? "" : "+", STR_ARG(chosen(attempt, g)->name));
    }
    evidence->flavors[evidence->flavor_count++] = (struct flavor_note){
        .flavor = text_str(&name), .reason = verdict->reason, .message = verdict->message};
}

static void note_nodes(const struct fit_result *fit, struct evidence *evidence)
{
    evidence->nodes_total = fit->nodes_total;
    for (int i = 0; i < EXCLUDED_COUNT; i++) {
        evidence->excluded[i] = fit->excluded[i];
    }
}

static void try_flavors(struct attempt *attempt, struct evaluation *ret_evaluation)
{
    struct evidence evidence = {.flavor_count = 0};
    struct verdict nearest = say(REASON_NONE, 0, STR_NONE);
    uint32_t waits_for = 0;
    uint32_t tried = 0;
    bool has_fit = false;
    do {
        struct evaluation evaluation;
        struct verdict verdict = judge(attempt, &evaluation);
        if (verdict.reason == REASON_NONE) {
            bool is_better = !has_fit || evaluation.level < ret_evaluation->level;
            if (is_better) {
                fill_request(attempt, &evaluation);
                *ret_evaluation = evaluation;
                has_fit = true;
            }
            if (evaluation.level == 0 || stops_at_borrowing(attempt->object)) {
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
            note_nodes(&evaluation.fit, &evidence);
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
    if (!collect_demands(&attempt)) {
        *verdict = say(
            REASON_INVALID, WAIT_CONFIG,
            arena_format(&core->scratch, "asks for more than %d different resources", DEMANDS_MAX));
        return;
    }
    *verdict = find_groups(&attempt);
    if (verdict->reason == REASON_NONE) {
        try_flavors(&attempt, ret_evaluation);
    }
}

/* -- quota alone -------------------------------------------------------------------------------- */

static void fill_probe(struct attempt *attempt, uint32_t level, struct quota_probe *probe)
{
    probe->items =
        ARENA_ARRAY(&attempt->core->scratch, struct probe_item, attempt->demand_count + 1);
    probe->level = level;
    for (uint32_t i = 0; i < attempt->demand_count; i++) {
        const struct quota_demand *demand = &attempt->demands[i];
        i128 asked = demand_total(attempt, demand);
        if (demand->group >= 0 && asked > 0) {
            probe->items[probe->count++] =
                (struct probe_item){.flavor = flavor_for(attempt, demand)->name,
                                    .resource = demand->resource,
                                    .asked = asked};
        }
    }
}

void evaluate_quota(struct core *core, struct shape *shape, struct quota_probe *ret_probe)
{
    *ret_probe = (struct quota_probe){.level = UINT32_MAX};
    if (check_queue(core, shape).reason != REASON_NONE) {
        return;
    }
    shape_resolve(core, shape);
    struct attempt attempt = {.core = core, .shape = shape, .object = shape->queue->object};
    if (shape->broken.reason != REASON_NONE || !collect_demands(&attempt) ||
        find_groups(&attempt).reason != REASON_NONE) {
        return;
    }
    uint32_t tried = 0;
    do {
        struct evaluation evaluation = {.has_fit = false};
        struct verdict verdict = say(REASON_NONE, 0, STR_NONE);
        for (uint32_t g = 0; g < attempt.group_count && verdict.reason == REASON_NONE; g++) {
            verdict = check_flavor(&attempt, chosen(&attempt, g)->name, &evaluation);
        }
        uint32_t level = 0;
        attempt.count = verdict.reason == REASON_NONE ? partial_count(&attempt) : shape->size.pods;
        if (verdict.reason != REASON_NONE ||
            check_quota(&attempt, &level).reason != REASON_NONE) {
            continue;
        }
        if (level < ret_probe->level) {
            *ret_probe = (struct quota_probe){.level = level};
            fill_probe(&attempt, level, ret_probe);
        }
        if (level == 0 || stops_at_borrowing(attempt.object)) {
            return;
        }
    } while (next_choice(&attempt) && ++tried < COMBINATIONS_MAX);
}
