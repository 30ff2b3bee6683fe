/* fit_ever.c - how many pods of a set could run at once if nothing else did and all were healthy.
 *
 * StrictFIFO goes on behind a gang of more pods than that. The number is an upper bound: a device
 * that several requests could take counts for each of them, so that nobody is passed over who could
 * start. A node that is away or cordoned counts, since it comes back as it was. */
#include "ask.h"
#include "extended.h"
#include "topology.h"

static bool is_there(const struct core *core, const struct pod_demand *demand,
                     const struct node_state *node)
{
    if (node->object == NULL || extended_is_refused(demand->set, node)) {
        return false;
    }
    enum exclusion exclusion = node_exclusion(core, demand, node);
    return exclusion == EXCLUDED_COUNT ||
           (exclusion != EXCLUDED_TAINT && node_is_only_away(demand, node));
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

static int64_t places_of_devices(struct core *core, const struct pod_set *set,
                                 struct node_state *node)
{
    if (ask_is_special(set->ask)) {
        return node_could_serve(core, set->ask, node) ? INT64_MAX : 0;
    }
    int64_t places = INT64_MAX;
    for (uint32_t i = 0; i < set->device_count && places > 0; i++) {
        const struct device_demand *device = &set->devices[i];
        int64_t here = node_count_devices(core, device->profile, node);
        bool is_enough = here >= device->count;
        places = is_counted(core, device) ? least(places, here / device->count)
                 : is_enough              ? places
                                          : 0;
    }
    return places;
}

static int64_t places_when_empty(struct core *core, const struct pod_demand *demand,
                                 struct node_state *node)
{
    const struct pod_set *set = pod_set_on(demand->set, node);
    int64_t places = least(pod_set_is_one_a_node(demand->set) ? 1 : INT64_MAX,
                           vector_get(&node->capacity, resource_find(core, STR(RESOURCE_PODS))));
    for (uint32_t i = 0; i < set->per_pod.count && places > 0; i++) {
        const struct vector_item *item = &set->per_pod.items[i];
        places = least(places, vector_get(&node->capacity, item->resource) / item->value);
    }
    return places > 0 ? least(places, places_of_devices(core, set, node)) : 0;
}

/* Devices that no node owns were counted on each that sees them: there are no more than these. */
static int64_t pods_for_devices(struct core *core, const struct pod_demand *demand)
{
    int64_t pods = INT64_MAX;
    for (uint32_t i = 0; i < demand->set->device_count; i++) {
        const struct device_demand *device = &demand->set->devices[i];
        if (str_is_set(device->resource) || !is_counted(core, device)) {
            continue;
        }
        int64_t devices = 0;
        for (uint32_t slot = 0; slot < core->device_slots; slot++) {
            const struct device_state *state = core->devices[slot];
            devices += state != NULL &&
                               (state->node == NULL || is_there(core, demand, state->node)) &&
                               profile_selects(core, device->profile, state)
                           ? 1
                           : 0;
        }
        pods = least(pods, devices / device->count);
    }
    return pods;
}

int64_t fit_most_ever(struct core *core, const struct pod_demand *demand, int64_t want)
{
    bool is_one_node = demand_has_new_claims(demand);
    int64_t pods = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (pods >= want) {
            break;
        }
        int64_t here = is_there(core, demand, node) ? places_when_empty(core, demand, node) : 0;
        pods = !is_one_node ? sat_add(pods, here) : here > pods ? here : pods;
    }
    pods = pods < want ? pods : want;
    return core->roaming_devices > 0 && pods > 0 ? least(pods, pods_for_devices(core, demand))
                                                 : pods;
}
