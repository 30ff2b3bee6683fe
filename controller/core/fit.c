/* fit.c - could a whole gang be placed at once, beside all that is promised?
 *
 * A heuristic that is never optimistic: pods of one gang are alike, so filling node after node
 * finds room for all if there is any. Other gangs whose pods are on their way may be placed
 * anywhere by kube-scheduler, pod by pod and in any order; so when they share nodes with this one,
 * the room has to suffice even if every one of their pods lands where it hurts most (is_robust). If
 * it doesn't, the gang waits until those pods are bound, which is a matter of moments. */
#include "internal.h"

#include "tallyman/base/limits.h"

/* Gangs of one demand whose pods are on their way, or the candidate. */
struct crowd {
    struct pod_demand demand;
    int64_t pods;
};

struct crowd_list {
    struct crowd *items; /* in the scratch arena */
    uint32_t count;
    uint32_t capacity;
};

static void plan_new(struct core *core)
{
    core->plan_epoch++;
}

/* -- promises --------------------------------------------------------------------------------- */

static void demand_add_flavor(const struct core *core, struct pod_demand *demand, struct str name)
{
    const struct resource_flavor *flavor = flavor_object(core, name);
    if (flavor == NULL || demand->flavor_count == FLAVORS_PER_GANG_MAX) {
        return;
    }
    for (uint32_t i = 0; i < demand->flavor_count; i++) {
        if (demand->flavors[i] == flavor) {
            return;
        }
    }
    demand->flavors[demand->flavor_count++] = flavor;
}

/* How the pods of an admitted gang look for their places: as its template stands on the Job. */
static struct pod_demand promise_demand(struct core *core, struct gang *gang)
{
    shape_resolve(core, gang->shape);
    struct pod_demand demand = {.shape = gang->shape, .node_selector = &gang->shape->node_selector};
    if (gang->template_selector.count > 0) {
        demand.node_selector = &gang->template_selector;
    }
    for (uint32_t i = 0; i < gang->reservation->per_pod.count; i++) {
        demand_add_flavor(core, &demand, gang->reservation->per_pod.items[i].flavor);
    }
    return demand;
}

static struct crowd_list promises(struct core *core)
{
    struct crowd_list list = {.items = NULL};
    struct gang *gang;
    RB_FOREACH (gang, gang_unbound_tree, &core->unbound) {
        int64_t pods = gang_promised_pods(gang);
        if (pods <= 0 || gang->shape == NULL) {
            continue;
        }
        list.items = arena_grow(&core->scratch, list.items, list.count, &list.capacity,
                                sizeof(struct crowd));
        list.items[list.count++] =
            (struct crowd){.demand = promise_demand(core, gang), .pods = pods};
    }
    return list;
}

/* Fills node after node; at most `want`. */
static int64_t place(struct core *core, const struct pod_demand *demand, int64_t want)
{
    int64_t placed = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (placed == want) {
            break;
        }
        if (node->object == NULL || node_exclusion(core, demand, node) != EXCLUDED_COUNT) {
            continue;
        }
        if (demand_has_new_claims(demand) && !node_place_claims(core, demand, node)) {
            continue;
        }
        placed += node_place(core, demand, node, want - placed);
    }
    return placed;
}

static void place_promises(struct core *core, const struct crowd_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        (void)place(core, &list->items[i].demand, list->items[i].pods);
    }
}

/* -- worst case ------------------------------------------------------------------------------- */

static bool share_a_node(struct core *core, const struct pod_demand *a, const struct pod_demand *b)
{
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node->object != NULL && node_exclusion(core, a, node) == EXCLUDED_COUNT &&
            node_exclusion(core, b, node) == EXCLUDED_COUNT) {
            return true;
        }
    }
    return false;
}

/* Whether some device could go to either, directly or through the counters of one card. */
static bool share_a_device(struct core *core, struct device_profile *a, struct device_profile *b,
                           bool *ret_counters)
{
    *ret_counters = false;
    for (uint32_t slot = 0; slot < core->device_slots; slot++) {
        const struct device_state *device = core->devices[slot];
        if (device == NULL) {
            continue;
        }
        bool by_a = profile_match(core, a, device) == MATCH_YES;
        bool by_b = profile_match(core, b, device) == MATCH_YES;
        if ((by_a || by_b) && device->counter_count > 0) {
            *ret_counters = true;
            return true;
        }
        if (by_a && by_b) {
            return true;
        }
    }
    return false;
}

static int64_t ceil_div(i128 a, i128 b)
{
    return i128_clamp((a + b - 1) / b);
}

#define LOSS_UNKNOWN INT64_MAX

/* How many places one pod of `other` can cost `mine`, wherever it lands. */
static int64_t worst_loss(struct core *core, const struct pod_demand *other,
                          const struct pod_demand *mine)
{
    if (!share_a_node(core, other, mine)) {
        return 0;
    }
    int64_t loss = 1; /* a pod takes one of the node's pods */
    const struct vector *theirs = &other->shape->per_pod;
    for (uint32_t i = 0; i < theirs->count; i++) {
        i128 ours = vector_get(&mine->shape->per_pod, theirs->items[i].resource);
        int64_t cost = ours == 0 ? 0 : ceil_div(theirs->items[i].value, ours);
        loss = cost > loss ? cost : loss;
    }
    for (uint32_t i = 0; i < other->shape->device_count; i++) {
        for (uint32_t j = 0; j < mine->shape->device_count; j++) {
            const struct device_demand *a = &other->shape->devices[i];
            const struct device_demand *b = &mine->shape->devices[j];
            bool is_by_counters = false;
            if (a->profile != b->profile &&
                !share_a_device(core, a->profile, b->profile, &is_by_counters)) {
                continue;
            }
            if (is_by_counters && a->profile != b->profile) {
                return LOSS_UNKNOWN;
            }
            int64_t cost = ceil_div(a->count, b->count);
            loss = cost > loss ? cost : loss;
        }
    }
    return loss;
}

static bool is_same_demand(const struct pod_demand *a, const struct pod_demand *b)
{
    if (a->shape->per_pod.count != b->shape->per_pod.count ||
        !vector_equal(&a->shape->per_pod, &b->shape->per_pod) ||
        a->shape->device_count != b->shape->device_count || a->flavor_count != b->flavor_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->shape->device_count; i++) {
        if (a->shape->devices[i].profile != b->shape->devices[i].profile ||
            a->shape->devices[i].count != b->shape->devices[i].count) {
            return false;
        }
    }
    for (uint32_t i = 0; i < a->flavor_count; i++) {
        if (a->flavors[i] != b->flavors[i]) {
            return false;
        }
    }
    bool has_claims = a->shape->claim_count > 0 || b->shape->claim_count > 0;
    return !has_claims && object_equal(&pod_spec_schema, a->shape->spec, b->shape->spec);
}

/* Whether crowd `i` finds its places though all the others land where it hurts most. */
static bool is_safe(struct core *core, const struct crowd_list *list, uint32_t i)
{
    const struct crowd *mine = &list->items[i];
    int64_t needed = mine->pods;
    for (uint32_t j = 0; j < list->count; j++) {
        if (j == i) {
            continue;
        }
        const struct crowd *other = &list->items[j];
        bool is_alike = is_same_demand(&other->demand, &mine->demand);
        int64_t loss = is_alike ? 1 : worst_loss(core, &other->demand, &mine->demand);
        if (loss == LOSS_UNKNOWN) {
            return false;
        }
        needed = sat_add(needed, sat_mul(loss, other->pods));
    }
    plan_new(core);
    return place(core, &mine->demand, needed) >= needed;
}

static bool is_robust(struct core *core, const struct crowd_list *promised,
                      const struct pod_demand *demand, int64_t pods)
{
    if (promised->count == 0) {
        return true;
    }
    struct crowd_list all = {.count = promised->count + 1};
    all.items = ARENA_ARRAY(&core->scratch, struct crowd, all.count);
    bool is_all_alike = true;
    for (uint32_t i = 0; i < promised->count; i++) {
        all.items[i] = promised->items[i];
        is_all_alike = is_all_alike && is_same_demand(&promised->items[i].demand, demand);
    }
    if (is_all_alike) {
        return true; /* equal pods can't be in each other's way */
    }
    all.items[promised->count] = (struct crowd){.demand = *demand, .pods = pods};
    for (uint32_t i = 0; i < all.count; i++) {
        if (!is_safe(core, &all, i)) {
            return false;
        }
    }
    return true;
}

/* -- why not ---------------------------------------------------------------------------------- */

/* Remembers the first resource that is free in all, and not on one node. */
static void note_apart(struct fit_result *result, struct str resource, int64_t per_pod,
                       int64_t free, int64_t largest)
{
    if (largest < per_pod && !str_is_set(result->apart)) {
        result->apart = resource;
        result->apart_per_pod = per_pod;
        result->apart_free = free;
        result->apart_largest = largest > 0 ? largest : 0;
    }
}

static void measure_resource(struct core *core, const struct pod_demand *demand,
                             struct str resource, i128 per_pod, int64_t count,
                             struct fit_result *result)
{
    i128 free = 0;
    i128 capacity = 0;
    i128 largest = -1;
    i128 largest_free = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node->object == NULL || node_exclusion(core, demand, node) != EXCLUDED_COUNT) {
            continue;
        }
        i128 room = node_room(core, node, resource);
        free += room;
        largest_free = room > largest_free ? room : largest_free;
        i128 here = vector_get(&node->capacity, resource);
        capacity += here;
        largest = here > largest ? here : largest;
    }
    note_apart(result, resource, i128_clamp(per_pod), i128_clamp(free), i128_clamp(largest_free));
    bool is_too_large = largest >= 0 && largest < per_pod;
    bool is_worse = !str_is_set(result->short_of) || (is_too_large && !result->is_too_large);
    if ((is_too_large || free < per_pod * count) && is_worse) {
        result->short_of = resource;
        result->asked = i128_clamp(per_pod * count);
        result->free = i128_clamp(free);
        result->capacity = i128_clamp(capacity);
        result->is_too_large = is_too_large;
        result->is_class = false;
    }
}

/* The most devices that one node sees, used or not; -1: no node is in question. Of those that are
 * free the most is in `ret_free`. */
static int64_t largest_on_a_node(struct core *core, const struct pod_demand *demand,
                                 struct device_profile *profile, int64_t *ret_free)
{
    int64_t largest = -1;
    *ret_free = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node->object == NULL || node_exclusion(core, demand, node) != EXCLUDED_COUNT) {
            continue;
        }
        int64_t here = node_count_devices(core, profile, node);
        int64_t free = node_free_devices(core, profile, node);
        largest = here > largest ? here : largest;
        *ret_free = free > *ret_free ? free : *ret_free;
    }
    return largest;
}

static void measure_class(struct core *core, const struct pod_demand *demand,
                          const struct device_demand *device, int64_t count,
                          struct fit_result *result)
{
    int64_t free = 0;
    int64_t capacity = 0;
    for (uint32_t slot = 0; slot < core->device_slots; slot++) {
        const struct device_state *candidate = core->devices[slot];
        if (candidate == NULL || profile_match(core, device->profile, candidate) != MATCH_YES) {
            continue;
        }
        capacity++;
        bool is_out = candidate->node != NULL &&
                      (candidate->node->object == NULL ||
                       node_exclusion(core, demand, candidate->node) != EXCLUDED_COUNT);
        free += !is_out && device_is_free(core, candidate) ? 1 : 0;
    }
    int64_t asked = sat_mul(device->count, count);
    int64_t largest_free;
    int64_t largest = largest_on_a_node(core, demand, device->profile, &largest_free);
    note_apart(result, device->profile->class_name, device->count, free, largest_free);
    bool is_too_large = largest >= 0 && largest < device->count;
    if ((free < asked || is_too_large) && !result->is_too_large) {
        result->short_of = device->profile->class_name;
        result->asked = asked;
        result->free = free;
        result->capacity = capacity;
        result->is_class = true;
        result->is_too_large = is_too_large;
    }
}

/* Fills the numbers behind a "no", with the promises in the plan and the candidate out of it. */
static void explain(struct core *core, const struct pod_demand *demand, int64_t count,
                    struct fit_result *result)
{
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node->object == NULL) {
            continue;
        }
        result->nodes_total++;
        enum exclusion exclusion = node_exclusion(core, demand, node);
        if (exclusion == EXCLUDED_COUNT) {
            exclusion = EXCLUDED_FULL;
        }
        result->excluded[exclusion]++;
    }
    const struct vector *per_pod = &demand->shape->per_pod;
    for (uint32_t i = 0; i < per_pod->count; i++) {
        measure_resource(core, demand, per_pod->items[i].resource, per_pod->items[i].value, count,
                         result);
    }
    measure_resource(core, demand, resource_find(core, STR(RESOURCE_PODS)), 1, count, result);
    for (uint32_t i = 0; i < demand->shape->device_count; i++) {
        measure_class(core, demand, &demand->shape->devices[i], count, result);
    }
    for (uint32_t c = 0; c < demand->shape->claim_count; c++) {
        const struct shared_claim_demand *claim = &demand->shape->claims[c];
        for (uint32_t i = 0; i < claim->request_count && !claim_is_allocated(claim->claim); i++) {
            measure_class(core, demand, &claim->requests[i], 1, result);
        }
    }
}

/* -- named claims ----------------------------------------------------------------------------- */

/* A claim that is on its way to devices that another gang's pods will choose. */
static bool waits_for_claim(struct core *core, const struct pod_demand *demand,
                            struct fit_result *result)
{
    for (uint32_t i = 0; i < demand->shape->claim_count; i++) {
        const struct claim_state *claim = demand->shape->claims[i].claim;
        if (!claim_is_allocated(claim) && ledger_claim_payer(core, claim->key) != NULL) {
            result->is_promised = true;
            result->claim_trouble = arena_format(
                &core->scratch,
                "ResourceClaim " STR_FMT " is being allocated for another gang that shares it",
                STR_ARG(claim->key));
            return true;
        }
        int64_t sharers = claim_is_allocated(claim) ? claim->object->status.reserved_for.count : 0;
        if (sat_add(sharers, demand->shape->size.pods) > CLAIM_SHARERS_MAX) {
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

/* The first pod's node fixes the claim's devices, so all pods have to go to that one node: found
 * here, and written into the pods' nodeSelector. */
static void fit_one_node(struct core *core, const struct pod_demand *demand,
                         const struct crowd_list *promised, int64_t count, int64_t min_count,
                         struct fit_result *result)
{
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        struct str hostname = node->object == NULL
                                  ? STR_NONE
                                  : string_map_get(&node->object->meta.labels, LABEL_HOSTNAME);
        if (str_is_empty(hostname) || node_exclusion(core, demand, node) != EXCLUDED_COUNT) {
            continue;
        }
        plan_new(core);
        place_promises(core, promised);
        if (!node_place_claims(core, demand, node)) {
            continue;
        }
        int64_t placed = node_place(core, demand, node, count);
        if (placed < min_count) {
            continue;
        }
        struct string_pair pair = {STR(LABEL_HOSTNAME), hostname};
        struct string_map pinned = {&pair, 1};
        struct pod_demand there = *demand;
        there.node_selector = &pinned;
        if (is_robust(core, promised, &there, placed)) {
            result->placed = placed;
            result->pin = hostname;
            return;
        }
        result->is_promised = true;
    }
}

struct fit_result fit_gang(struct core *core, const struct pod_demand *demand, int64_t count,
                           int64_t min_count)
{
    struct fit_result result = {.placed = 0};
    struct crowd_list promised = promises(core);
    if (waits_for_claim(core, demand, &result)) {
        return result;
    }
    if (demand_has_new_claims(demand)) {
        fit_one_node(core, demand, &promised, count, min_count, &result);
    } else {
        plan_new(core);
        place_promises(core, &promised);
        int64_t placed = place(core, demand, count);
        if (placed >= min_count && is_robust(core, &promised, demand, placed)) {
            result.placed = placed;
        } else {
            result.is_promised = placed >= min_count;
        }
    }
    if (result.placed == 0) {
        plan_new(core);
        place_promises(core, &promised);
        explain(core, demand, min_count, &result);
    }
    return result;
}

bool fit_node_has_room(struct core *core, const struct pod_demand *demand, struct node_state *node)
{
    if (node->object == NULL || node_exclusion(core, demand, node) != EXCLUDED_COUNT) {
        return false;
    }
    plan_new(core);
    return node_place(core, demand, node, 1) > 0;
}
