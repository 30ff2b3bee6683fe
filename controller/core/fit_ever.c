/* fit_ever.c - how many pods of a set could run at once if nothing else did and all were healthy.
 *
 * A gang of more pods than that never fits, and StrictFIFO goes on behind it. The number is an
 * upper bound: a device that several requests could take counts for each of them, so that nobody is
 * passed over who could start. A node that is away, cordoned or under pressure counts, since it
 * comes back as it was, and so does one that a claim's devices can't be reached from: these are
 * given back, and others may be found. */
#include "ask.h"
#include "extended.h"
#include "topology.h"

#include "tallyman/base/alloc.h"

static bool is_there(const struct pod_demand *demand, const struct node_state *node)
{
    return node->object != NULL && !extended_is_refused(demand->set, node) &&
           node_is_eligible(demand, node);
}

static bool is_counted(struct core *core, const struct device_demand *device)
{
    return !device->is_alternative && !device->is_special && device->count > 0 &&
           !profile_has_shareable(core, device->profile);
}

static int64_t least(int64_t a, i128 b)
{
    return b < a ? (int64_t)b : a;
}

int64_t node_places_ever(struct core *core, const struct pod_demand *demand,
                         struct node_state *node)
{
    if (!is_there(demand, node)) {
        return 0;
    }
    const struct pod_set *set = pod_set_on(demand->set, node);
    int64_t places = least(pod_set_is_one_a_node(demand->set) ? 1 : INT64_MAX,
                           vector_get(&node->capacity, resource_find(core, STR(RESOURCE_PODS))));
    for (uint32_t i = 0; i < set->per_pod.count && places > 0; i++) {
        const struct vector_item *item = &set->per_pod.items[i];
        places = least(places, vector_get(&node->capacity, item->resource) / item->value);
    }
    return places > 0 ? least(places, node_device_places_ever(core, demand->set, node)) : 0;
}

/* -- what there is of one thing -----------------------------------------------------------------
 */

/* Whether every device that `a` could have is one for `b`, too, by what they say. */
static bool is_no_wider(const struct device_demand *a, const struct device_demand *b)
{
    if (a == b) {
        return true;
    }
    bool is_by_claim = !str_is_set(a->resource) && !str_is_set(b->resource);
    return is_by_claim && !a->is_alternative &&
           (a->profile == b->profile ||
            (b->profile->own.count == 0 && str_eq(a->profile->class_name, b->profile->class_name)));
}

int64_t devices_asked(const struct device_demand *items, uint32_t count,
                      const struct device_demand *of)
{
    int64_t asked = 0;
    for (uint32_t i = 0; i < count; i++) {
        asked = sat_add(asked, is_no_wider(&items[i], of) ? items[i].count : 0);
    }
    return asked;
}

/* Devices that no node owns were counted on each that sees them: there are no more than these. */
static int64_t devices_in_all(struct core *core, const struct pod_demand *demand,
                              struct device_profile *profile)
{
    int64_t devices = 0;
    for (uint32_t slot = 0; slot < core->device_slots; slot++) {
        const struct device_state *state = core->devices[slot];
        bool is_seen = state != NULL && (state->node == NULL || is_there(demand, state->node));
        devices += is_seen && profile_selects(core, profile, state) ? 1 : 0;
    }
    return devices;
}

static int64_t pods_for_devices(struct core *core, const struct pod_demand *demand)
{
    int64_t pods = INT64_MAX;
    for (uint32_t i = 0; i < demand->set->device_count; i++) {
        const struct device_demand *device = &demand->set->devices[i];
        if (!str_is_set(device->resource) && is_counted(core, device)) {
            int64_t devices = devices_in_all(core, demand, device->profile);
            pods = least(pods, devices / devices_asked(demand->set->devices,
                                                       demand->set->device_count, device));
        }
    }
    return pods;
}

/* Of a resource; of an extended one that a class serves, that class's devices where the node itself
 * doesn't offer it. */
static i128 amount_in_all(struct core *core, const struct pod_demand *demand, struct str resource,
                          struct device_profile *profile)
{
    i128 sum = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (is_there(demand, node)) {
            sum += profile == NULL || node_offers(node, resource)
                       ? vector_get(&node->capacity, resource)
                       : node_count_devices(core, profile, node);
        }
    }
    return sum;
}

static i128 asked_devices_in_all(struct core *core, const struct pod_demand *demand,
                                 const struct device_demand *device)
{
    return str_is_set(device->resource)
               ? amount_in_all(core, demand, device->resource, device->profile)
               : devices_in_all(core, demand, device->profile);
}

/* Notes it if all nodes together have less of that than the pods ask for. */
static bool note_short(struct str resource, i128 asked, i128 capacity, struct fit_ever *ever)
{
    if (capacity >= asked) {
        return false;
    }
    ever->resource = resource;
    ever->asked = i128_clamp(asked);
    ever->capacity = i128_clamp(capacity);
    return true;
}

/* Devices first: who asks for them has the least choice. */
static void find_short(struct core *core, const struct pod_demand *demand, int64_t count,
                       struct fit_ever *ever)
{
    const struct pod_set *set = demand->set;
    for (uint32_t i = 0; i < set->device_count && !ask_is_special(set->ask); i++) {
        const struct device_demand *device = &set->devices[i];
        if (is_counted(core, device) &&
            note_short(demand_asked(device),
                       (i128)devices_asked(set->devices, set->device_count, device) * count,
                       asked_devices_in_all(core, demand, device), ever)) {
            return;
        }
    }
    for (uint32_t i = 0; i < set->per_pod.count; i++) {
        const struct vector_item *item = &set->per_pod.items[i];
        if (note_short(item->resource, item->value * count,
                       amount_in_all(core, demand, item->resource, NULL), ever)) {
            return;
        }
    }
}

/* -- all nodes ---------------------------------------------------------------------------------
 */

/* Pods that name a claim go where its devices are: to one node, unless these are seen from several,
 * now or when they are given back. */
static bool is_on_one_node(struct core *core, const struct pod_demand *demand)
{
    if (demand->set->claim_count == 0 || core->roaming_devices > 0) {
        return false;
    }
    uint32_t reached = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        reached += node->object != NULL && node_reaches_claims(demand, node) ? 1 : 0;
    }
    return demand_has_new_claims(demand) || reached <= 1;
}

/* How many there are, at most `want`, as node by node tells. */
static int64_t count_places(struct core *core, const struct pod_demand *demand, int64_t want)
{
    bool is_one_node = is_on_one_node(core, demand);
    uint32_t steps = core->search_steps; /* these are of another judgement */
    core->search_steps = 0;
    int64_t pods = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (pods >= want) {
            break;
        }
        int64_t here = node_places_ever(core, demand, node);
        pods = !is_one_node ? sat_add(pods, here) : here > pods ? here : pods;
    }
    core->search_steps = steps;
    return pods < want ? pods : want;
}

static bool is_count_of(const struct ever_count *known, const struct pod_demand *demand,
                        uint64_t supply)
{
    bool is_same = known->supply == supply && known->flavor_count == demand->flavor_count;
    for (uint32_t f = 0; f < demand->flavor_count && is_same; f++) {
        is_same = known->flavors[f] == demand->flavors[f];
    }
    return is_same;
}

/* What is remembered of this demand, as the set's first count; NULL: nothing may be. */
static struct ever_count *count_known(struct core *core, const struct pod_demand *demand)
{
    struct pod_set *set = (struct pod_set *)(uintptr_t)demand->set;
    uint64_t supply = core->supply_changes + 1;
    if (set->claim_count > 0 || demand->domain != NULL || core->options.is_plain ||
        demand->node_selector != &set->node_selector || demand->flavor_count > EVER_FLAVORS) {
        return NULL; /* what claims hold matters, too, and another selector may be gone */
    }
    if (set->ever == NULL) {
        set->ever = mem_zalloc(mem_array_bytes(EVER_COUNTS, sizeof(struct ever_count)));
    }
    struct ever_count first = {.supply = supply, .flavor_count = demand->flavor_count};
    for (uint32_t f = 0; f < demand->flavor_count; f++) {
        first.flavors[f] = demand->flavors[f];
    }
    uint32_t at = 0;
    while (at < EVER_COUNTS && !is_count_of(&set->ever[at], demand, supply)) {
        at++;
    }
    if (at < EVER_COUNTS) {
        first = set->ever[at];
    } else {
        at = EVER_COUNTS - 1; /* the oldest goes */
    }
    for (; at > 0; at--) {
        set->ever[at] = set->ever[at - 1];
    }
    set->ever[0] = first;
    return &set->ever[0];
}

/* The same; what was counted is remembered until Nodes, devices or flavors change. */
static int64_t count_places_once(struct core *core, const struct pod_demand *demand, int64_t want)
{
    struct ever_count *known = count_known(core, demand);
    if (known == NULL) {
        return count_places(core, demand, want);
    }
    if (known->pods == known->wanted && want > known->wanted) { /* or nothing was counted yet */
        known->wanted = want;
        known->pods = count_places(core, demand, want);
    }
    return known->pods < want ? known->pods : want;
}

int64_t fit_most_ever(struct core *core, const struct pod_demand *demand, int64_t want)
{
    int64_t pods = count_places_once(core, demand, want);
    return core->roaming_devices > 0 && pods > 0 ? least(pods, pods_for_devices(core, demand))
                                                 : pods;
}

bool fit_could_hold_one(struct core *core, const struct pod_demand *demand)
{
    return count_places_once(core, demand, 1) > 0;
}

void fit_find_ever(struct core *core, const struct pod_demand *demand, int64_t count,
                   struct fit_ever *ret_ever)
{
    *ret_ever = (struct fit_ever){.pods = fit_most_ever(core, demand, count), .count = count};
    ret_ever->is_too_many = ret_ever->pods < count;
    if (ret_ever->is_too_many) {
        ret_ever->is_one_node = is_on_one_node(core, demand);
        for (uint32_t i = 0; i < demand->set->device_count; i++) {
            ret_ever->has_counters = ret_ever->has_counters ||
                                     profile_has_counters(core, demand->set->devices[i].profile);
        }
        find_short(core, demand, count, ret_ever);
    }
}

/* -- one domain --------------------------------------------------------------------------------
 */

bool fit_domain_is_ever_enough(struct core *core, const struct topology_ask *topology,
                               const struct pod_demand *demand, int64_t count)
{
    const struct topology_tree *tree = topology_tree_of(core, &topology->levels);
    const struct topology_level *level = &tree->levels[topology->level];
    for (uint32_t d = 0; d < level->count; d++) {
        int64_t pods = 0;
        uint32_t steps = core->search_steps;
        core->search_steps = 0;
        for (uint32_t i = level->first[d]; i < level->end[d] && pods < count; i++) {
            struct node_state *node = core->node_index[tree->order[i]];
            pods = sat_add(pods, node_places_ever(core, demand, node));
        }
        core->search_steps = steps;
        if (pods >= count) {
            return true;
        }
    }
    return false;
}

/* -- a gang ------------------------------------------------------------------------------------
 */

bool fit_could_ever(struct core *core, const struct fit_wants *wants)
{
    const struct topology_ask *topology = &wants->topology;
    bool is_in_a_domain = topology->levels.count > 0 && topology->is_required;
    for (uint32_t w = 0; w < wants->count; w++) {
        const struct fit_want *want = &wants->items[w];
        if (is_in_a_domain
                ? !fit_domain_is_ever_enough(core, topology, &want->demand, want->min_count)
                : fit_most_ever(core, &want->demand, want->min_count) < want->min_count) {
            return false;
        }
    }
    return true;
}
