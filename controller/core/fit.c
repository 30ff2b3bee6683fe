/* fit.c - could a whole gang be placed at once, beside all that is promised?
 *
 * A heuristic that is never optimistic: pods of one gang are alike, so filling node after node
 * finds room for all if there is any. Other gangs whose pods are on their way may be placed
 * anywhere by kube-scheduler, pod by pod and in any order; so when they share nodes with this one,
 * the room has to suffice even if every one of their pods lands where it hurts most (fit_robust.c).
 * If it doesn't, the gang waits until those pods are bound, which is a matter of moments. */
#include "ask.h"
#include "bound.h"
#include "reach.h"
#include "roam.h"
#include "shadow.h"
#include "topology.h"

#include "tallyman/base/limits.h"

/* -- the plan --------------------------------------------------------------------------------- */

struct crowd_list fit_promised(struct core *core)
{
    struct crowd_list list = fit_promises_kept(core);
    return shadow_now(core) == NULL ? list : shadow_crowds(core, &list);
}

/* The same, looking only at nodes that have enough for a pod. */
static int64_t place_in_reach(struct core *core, const struct reach *reach,
                              const struct reach_needs *needs, const struct pod_demand *demand,
                              int64_t want, const int64_t *limits)
{
    int64_t placed = 0;
    struct node_state *node = reach_next(core, reach, needs, 0);
    while (node != NULL && placed < want) {
        int64_t left = want - placed;
        int64_t limit = limits == NULL ? left : limits[node->index];
        placed += node_place(core, demand, node, limit < left ? limit : left);
        node = reach_next(core, reach, needs, node->index + 1);
    }
    return placed;
}

/* The same in a domain. */
static int64_t place_in_domain(struct core *core, const struct reach *reach,
                               const struct reach_needs *needs, const struct pod_demand *demand,
                               int64_t want, const int64_t *limits)
{
    struct node_indexes nodes = topology_nodes(core, demand->domain);
    int64_t placed = 0;
    for (uint32_t i = 0; i < nodes.count && placed < want; i++) {
        uint32_t index = nodes.items[i];
        int64_t left = want - placed;
        int64_t limit = limits == NULL ? left : limits[index];
        if (limit > 0 && reach_has(reach, needs, index)) {
            placed +=
                node_place(core, demand, core->node_index[index], limit < left ? limit : left);
        }
    }
    return placed;
}

/* The same, looking at each node. */
static int64_t place_by_nodes(struct core *core, const struct pod_demand *demand, int64_t want,
                              const int64_t *limits)
{
    int64_t placed = 0;
    uint32_t index = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        int64_t limit = limits == NULL ? want : limits[index++];
        if (placed == want) {
            break;
        }
        if (node_exclusion(core, demand, node) != EXCLUDED_COUNT) {
            continue;
        }
        if (demand_has_new_claims(demand) && !node_place_claims(core, demand, node)) {
            continue;
        }
        int64_t left = want - placed;
        placed += node_place(core, demand, node, limit < left ? limit : left);
    }
    return placed;
}

static int64_t place_within(struct core *core, const struct pod_demand *demand, int64_t want,
                            const int64_t *limits)
{
    struct reach *reach = reach_of(core, demand);
    if (reach != NULL) {
        struct reach_needs needs;
        reach_find_needs(core, reach, demand, &needs);
        return demand->domain != NULL ? place_in_domain(core, reach, &needs, demand, want, limits)
                                      : place_in_reach(core, reach, &needs, demand, want, limits);
    }
    struct roaming roaming = roaming_judge(core, demand, want, limits != NULL);
    bool is_alone = roaming.sees_one_node || roaming.is_lone;
    bool stays_local = !(roaming.is_even || roaming.is_lone || roaming.is_counted);
    core->plan_may_roam = !stays_local;
    core->plan_stays_local = stays_local;
    core->plan_is_one_node = core->roaming_devices > 0 && is_alone;
    int64_t placed = place_by_nodes(core, demand, roaming.pods, limits);
    if (placed == 0 && roaming.may_be_one) {
        core->plan_may_roam = core->plan_is_one_node = true;
        core->plan_stays_local = false;
        placed = place_by_nodes(core, demand, 1, NULL);
    }
    core->plan_stays_local = core->plan_may_roam = core->plan_is_one_node = false;
    return placed;
}

int64_t fit_place(struct core *core, const struct pod_demand *demand, int64_t want)
{
    return place_within(core, demand, want, NULL);
}

void fit_place_promises(struct core *core, const struct crowd_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct crowd *crowd = &list->items[i];
        (void)place_within(core, &crowd->demand, crowd->pods, crowd->limits);
    }
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

/* What there is of one resource or class over the nodes that aren't excluded. */
struct measured {
    i128 free;
    i128 largest_free; /* on one node */
    i128 capacity;
    i128 largest; /* on one node, used or not; -1: no node is in question */
};

static bool measure_in_reach(struct core *core, const struct pod_demand *demand,
                             struct str resource, struct device_profile *profile,
                             struct measured *ret_measured)
{
    struct reach *reach = demand->domain != NULL ? NULL : reach_of(core, demand);
    struct reach_column *column =
        reach == NULL ? NULL : reach_column_of(core, reach, resource, profile);
    if (column == NULL) {
        return false;
    }
    reach_measure_capacity(core, reach, column);
    int64_t largest_free = column->maxima[1];
    *ret_measured = (struct measured){.free = column->sum,
                                      .largest_free = largest_free > 0 ? largest_free : 0,
                                      .capacity = column->capacity_sum,
                                      .largest = column->capacity_largest};
    return true;
}

static struct measured walk_resource(struct core *core, const struct pod_demand *demand,
                                     struct str resource)
{
    struct measured measured = {.largest = -1};
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node_exclusion(core, demand, node) != EXCLUDED_COUNT) {
            continue;
        }
        i128 room = node_room(core, node, resource);
        measured.free += room;
        measured.largest_free = room > measured.largest_free ? room : measured.largest_free;
        i128 here = vector_get(&node->capacity, resource);
        measured.capacity += here;
        measured.largest = here > measured.largest ? here : measured.largest;
    }
    return measured;
}

static void measure_resource(struct core *core, const struct pod_demand *demand,
                             struct str resource, i128 per_pod, int64_t count,
                             struct fit_result *result)
{
    struct measured measured;
    if (!measure_in_reach(core, demand, resource, NULL, &measured)) {
        measured = walk_resource(core, demand, resource);
    }
    note_apart(result, resource, i128_clamp(per_pod), i128_clamp(measured.free),
               i128_clamp(measured.largest_free));
    struct fit_shortage shortage = {.resource = resource,
                                    .per_pod = i128_clamp(per_pod),
                                    .asked = i128_clamp(per_pod * count),
                                    .free = i128_clamp(measured.free),
                                    .largest_free = i128_clamp(measured.largest_free),
                                    .capacity = i128_clamp(measured.capacity)};
    bool is_curable = fit_note_health(core, demand, &shortage, result);
    if (is_curable && resource_is_device(resource)) {
        return;
    }
    bool is_too_large = measured.largest >= 0 && measured.largest < per_pod && !is_curable;
    bool is_worse = !str_is_set(result->short_of) || (is_too_large && !result->is_too_large);
    if ((is_too_large || measured.free < per_pod * count) && is_worse) {
        result->short_of = resource;
        result->asked = i128_clamp(per_pod * count);
        result->free = i128_clamp(measured.free);
        result->capacity = i128_clamp(measured.capacity);
        result->per_pod = i128_clamp(per_pod);
        result->largest = i128_clamp(measured.largest);
        result->selector = STR_NONE;
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
        if (node_exclusion(core, demand, node) != EXCLUDED_COUNT) {
            continue;
        }
        int64_t here = node_count_devices(core, profile, node);
        int64_t free = node_free_devices(core, profile, node);
        largest = here > largest ? here : largest;
        *ret_free = free > *ret_free ? free : *ret_free;
    }
    return largest;
}

/* The slice that was looked at last, and whether its devices are seen. */
struct sight {
    const struct resource_slice *slice;
    bool is_seen;
};

/* Whether its node isn't excluded, or any node sees it that no one node has. Those of a slice
 * mostly share the answer. */
static bool is_in_sight(struct core *core, const struct pod_demand *demand,
                        const struct device_state *device, struct sight *sight)
{
    if (device->node != NULL) {
        return node_exclusion(core, demand, device->node) == EXCLUDED_COUNT;
    }
    const struct opt_bool *each = &device->slice->spec.per_device_node_selection;
    if (sight->slice == device->slice && !opt_is_true(*each)) {
        return sight->is_seen;
    }
    *sight = (struct sight){.slice = device->slice};
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node->object != NULL && device_is_visible(device, node)) {
            sight->is_seen = true;
            break;
        }
    }
    return sight->is_seen;
}

static struct measured walk_devices(struct core *core, const struct pod_demand *demand,
                                    struct device_profile *profile)
{
    struct measured measured = {.largest = -1};
    struct sight seen = {.slice = NULL};
    for (uint32_t slot = 0; slot < core->device_slots; slot++) {
        const struct device_state *candidate = core->devices[slot];
        if (candidate == NULL || !profile_selects(core, profile, candidate)) {
            continue;
        }
        measured.capacity++;
        bool is_out = profile_match(core, profile, candidate) != MATCH_YES ||
                      !is_in_sight(core, demand, candidate, &seen);
        measured.free += !is_out && device_is_free(core, candidate) ? 1 : 0;
    }
    int64_t largest_free;
    measured.largest = largest_on_a_node(core, demand, profile, &largest_free);
    measured.largest_free = largest_free;
    return measured;
}

/* An extended resource: of the device plugins where there are some, else devices. */
static struct measured walk_extended(struct core *core, const struct pod_demand *demand,
                                     const struct device_demand *device)
{
    struct measured measured = {.largest = -1};
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node_exclusion(core, demand, node) != EXCLUDED_COUNT) {
            continue;
        }
        bool is_offered = node_offers(node, device->resource);
        i128 free = is_offered ? node_room(core, node, device->resource)
                               : node_free_devices(core, device->profile, node);
        i128 here = is_offered ? vector_get(&node->capacity, device->resource)
                               : node_count_devices(core, device->profile, node);
        free = free > 0 ? free : 0;
        measured.free += free;
        measured.largest_free = free > measured.largest_free ? free : measured.largest_free;
        measured.capacity += here;
        measured.largest = here > measured.largest ? here : measured.largest;
    }
    return measured;
}

/* How many devices are free doesn't always say for how many pods, or for which claim, it is enough.
 */
static bool count_tells(struct core *core, const struct device_demand *device,
                        const struct claim_state *claim)
{
    bool is_all = device->is_all && claim == NULL;
    return !device->is_alternative && !is_all && !profile_has_shareable(core, device->profile);
}

/* Of what `count` pods (or, of a named claim, one claim) ask for together. */
static void measure_class(struct core *core, const struct pod_demand *demand,
                          const struct device_demand *device, int64_t per_pod, int64_t count,
                          const struct claim_state *claim, struct fit_result *result)
{
    struct measured measured;
    if (!count_tells(core, device, claim)) {
        return;
    }
    if (!measure_in_reach(core, demand, device->resource, device->profile, &measured)) {
        measured = str_is_set(device->resource) ? walk_extended(core, demand, device)
                                                : walk_devices(core, demand, device->profile);
    }
    struct str name = demand_asked(device);
    int64_t asked = sat_mul(per_pod, count);
    int64_t free = i128_clamp(measured.free);
    note_apart(result, name, per_pod, free, i128_clamp(measured.largest_free));
    struct fit_shortage shortage = {.resource = name,
                                    .extended = device->resource,
                                    .profile = device->profile,
                                    .per_pod = per_pod,
                                    .asked = asked,
                                    .free = free,
                                    .largest_free = i128_clamp(measured.largest_free),
                                    .capacity = i128_clamp(measured.capacity)};
    if (fit_note_health(core, demand, &shortage, result)) {
        return;
    }
    bool is_too_large = measured.largest >= 0 && measured.largest < per_pod;
    if ((free < asked || is_too_large) && !result->is_too_large) {
        result->too_large_of = is_too_large && claim != NULL ? claim->key : STR_NONE;
        result->short_of = name;
        result->asked = asked;
        result->free = free;
        result->capacity = i128_clamp(measured.capacity);
        result->per_pod = per_pod;
        result->largest = i128_clamp(measured.largest);
        result->selector = profile_selector_text(core, device->profile);
        result->is_class = true;
        result->is_too_large = is_too_large;
    }
}

static void count_exclusions(struct core *core, const struct pod_demand *demand,
                             struct fit_result *result)
{
    result->bound_to = demand->set->spec->node_name;
    bool is_walked = demand->domain != NULL || pod_set_is_bound(demand->set);
    const struct reach *reach = is_walked ? NULL : reach_of(core, demand);
    if (reach != NULL) {
        result->nodes_total = reach->nodes_total;
        for (int i = 0; i < EXCLUDED_COUNT; i++) {
            result->excluded[i] = reach->excluded[i];
        }
        result->excluded[EXCLUDED_FULL] += reach->excluded[EXCLUDED_COUNT];
        return;
    }
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node->object == NULL || !pod_set_may_be_on(demand->set, node)) {
            continue;
        }
        result->nodes_total++;
        enum exclusion exclusion = node_exclusion(core, demand, node);
        if (exclusion == EXCLUDED_COUNT) {
            exclusion = EXCLUDED_FULL;
        }
        result->excluded[exclusion]++;
    }
}

/* Its devices are found by a search: how many are free doesn't say for how many pods. */
static bool is_searched(struct core *core, const struct pod_set *set)
{
    bool is_special = ask_is_special(set->ask);
    for (uint32_t i = 0; i < set->device_count && set->ask != NULL && !is_special; i++) {
        is_special = profile_has_shareable(core, set->devices[i].profile) ||
                     profile_has_counters(core, set->devices[i].profile);
    }
    return is_special;
}

/* Devices that are there and don't count could make another answer of it. */
static bool depends_on_pools(const struct pod_demand *demand, const struct fit_result *result)
{
    bool wants_devices = demand->set->device_count + demand->set->claim_count > 0;
    return result->is_class || str_is_set(result->health.resource) ||
           (result->ever.is_too_many && wants_devices);
}

/* Fills the numbers behind a "no", with the promises in the plan and the candidate out of it. */
void fit_explain(struct core *core, const struct pod_demand *demand, int64_t count,
                 struct fit_result *result)
{
    count_exclusions(core, demand, result);
    fit_list_sick(core, demand, result);
    const struct vector *per_pod = &demand->set->per_pod;
    for (uint32_t i = 0; i < per_pod->count; i++) {
        measure_resource(core, demand, per_pod->items[i].resource, per_pod->items[i].value, count,
                         result);
    }
    measure_resource(core, demand, resource_find(core, STR(RESOURCE_PODS)), 1, count, result);
    for (uint32_t i = 0; i < demand->set->device_count; i++) {
        const struct device_demand *devices = demand->set->devices;
        int64_t asked = devices_asked(devices, demand->set->device_count, &devices[i]);
        measure_class(core, demand, &devices[i], asked, count, NULL, result);
    }
    result->is_asked_special = is_searched(core, demand->set);
    for (uint32_t c = 0; c < demand->set->claim_count; c++) {
        const struct shared_claim_demand *claim = &demand->set->claims[c];
        for (uint32_t i = 0; i < claim->request_count && !claim_is_allocated(claim->claim); i++) {
            int64_t asked =
                devices_asked(claim->requests, claim->request_count, &claim->requests[i]);
            measure_class(core, demand, &claim->requests[i], asked, 1, claim->claim, result);
        }
    }
    if (result->is_asked_special || result->is_uneven) {
        result->asked_placed = fit_place(core, demand, count);
    }
    result->is_never_together =
        result->excluded[EXCLUDED_FULL] > 0 && !fit_could_hold_one(core, demand);
    fit_find_ever(core, demand, count, &result->ever);
    if (depends_on_pools(demand, result)) {
        result->pool_trouble = pools_trouble(core, &core->scratch);
    }
    if (!str_is_set(result->pool_trouble)) {
        result->unmatched = set_unmatched(core, demand->set);
    }
    if (core->wants_places) {
        fit_list_places(core, demand, count, result);
    }
    fit_search_healthy(core, demand, count, result);
}

bool fit_node_has_room(struct core *core, const struct pod_demand *demand, struct node_state *node)
{
    if (node->object == NULL) {
        return false;
    }
    /* What the flavors tolerate isn't known here, so a taint keeps nobody from looking again. */
    enum exclusion exclusion = node_exclusion(core, demand, node);
    if (exclusion != EXCLUDED_COUNT && exclusion != EXCLUDED_TAINT) {
        return false;
    }
    fit_plan_new(core);
    return node_place(core, demand, node, 1) > 0;
}
