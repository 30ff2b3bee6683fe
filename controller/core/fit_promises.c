/* fit_promises.c - the gangs that were let go and whose pods are on their way: alike ones together,
 * as crowds. */
#include "topology.h"
#include "shadow.h"

#include "tallyman/base/alloc.h"

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

static bool has_pair(const struct string_map *map, const struct string_pair *pair)
{
    struct str value = string_map_find(map, pair->key);
    return str_is_set(value) && str_eq(value, pair->value);
}

/* Nothing stands there but the template's own pairs, the flavors' labels and the domain's. */
static bool is_implied(const struct string_map *selector, const struct pod_demand *demand)
{
    for (uint32_t i = 0; i < selector->count; i++) {
        const struct string_pair *pair = &selector->items[i];
        bool is_known = has_pair(&demand->set->node_selector, pair) ||
                        (demand->domain != NULL && has_pair(&demand->domain->path, pair));
        for (uint32_t f = 0; f < demand->flavor_count && !is_known; f++) {
            is_known = has_pair(&demand->flavors[f]->spec.node_labels, pair);
        }
        if (!is_known) {
            return false;
        }
    }
    return true;
}

/* It counts only as far as the pods' selector holds them to it. */
static const struct topology_domain *held_to(const struct gang *gang,
                                             const struct string_map *selector)
{
    if (gang->domain == NULL || gang->state == GANG_RESERVED) {
        return gang->domain; /* its pods aren't there yet, and will get it */
    }
    for (uint32_t l = 0; l < gang->domain->path.count; l++) {
        if (!has_pair(selector, &gang->domain->path.items[l])) {
            return NULL;
        }
    }
    return gang->domain;
}

/* How the pods of an admitted gang look for their places: as its template stands on the Job. */
static struct pod_demand promise_demand(struct core *core, const struct gang *gang,
                                        const struct pod_set *set,
                                        const struct reserved_set *reserved)
{
    struct pod_demand demand = {.set = set, .node_selector = &set->node_selector};
    const struct gang_set *own = gang_set_find(gang, set->name);
    if (own != NULL && own->admit_selector.count > 0) {
        demand.node_selector = &own->admit_selector;
    } else if (own != NULL && own->template_selector.count > 0) {
        demand.node_selector = &own->template_selector;
    }
    for (uint32_t i = 0; i < reserved->per_pod.count; i++) {
        demand_add_flavor(core, &demand, reserved->per_pod.items[i].flavor);
    }
    demand.domain = held_to(gang, demand.node_selector);
    if (is_implied(demand.node_selector, &demand)) {
        demand.node_selector = &set->node_selector; /* as those that wait ask for it */
    }
    return demand;
}

struct crowd *fit_crowd_find(const struct core *core, const struct crowd_list *list,
                             const struct pod_demand *demand)
{
    for (uint32_t i = list->count; i > 0; i--) {
        const struct pod_demand *other = &list->items[i - 1].demand;
        if (fit_is_same_selector(other->node_selector, demand->node_selector) &&
            fit_is_one_crowd(core, other, demand)) {
            return &list->items[i - 1];
        }
    }
    return NULL;
}

/* The crowd that such pods belong to, or a new one. */
static struct crowd *crowd_of(struct core *core, struct arena *arena, struct crowd_list *list,
                              const struct pod_demand *demand)
{
    struct crowd *found = fit_crowd_find(core, list, demand);
    if (found != NULL) {
        return found;
    }
    list->items =
        arena_grow(arena, list->items, list->count, &list->capacity, sizeof(struct crowd));
    list->items[list->count] = (struct crowd){.demand = *demand};
    return &list->items[list->count++];
}

static void add_promises(struct core *core, struct arena *arena, const struct gang *gang,
                         struct crowd_list *list)
{
    shape_resolve(core, gang->shape);
    list->is_incomplete = list->is_incomplete || gang->shape->broken.reason != REASON_NONE;
    for (uint32_t s = 0; s < gang->reservation->set_count; s++) {
        const struct reserved_set *reserved = &gang->reservation->sets[s];
        const struct pod_set *set = pod_set_find(gang->shape, reserved->name);
        int64_t pods = gang_set_promised_pods(gang, reserved);
        if (pods <= 0 || set == NULL) {
            continue; /* a set that its object has no more makes no pods */
        }
        struct pod_demand demand = promise_demand(core, gang, set, reserved);
        struct crowd *crowd = crowd_of(core, arena, list, &demand);
        crowd->pods = sat_add(crowd->pods, pods);
    }
}

static struct crowd_list list_promises(struct core *core, struct arena *arena)
{
    struct crowd_list list = {.items = NULL};
    struct gang *gang;
    RB_FOREACH (gang, gang_unbound_tree, &core->unbound) {
        if (gang_promised_pods(gang) > 0 && gang->shape != NULL) {
            add_promises(core, arena, gang, &list);
        }
    }
    return list;
}

struct crowd_list fit_promises(struct core *core)
{
    return list_promises(core, &core->scratch);
}

/* -- within a pass ------------------------------------------------------------------------------
 */

/* What one judgement has found serves the next, until the pass lets somebody go. */
struct kept_promises {
    struct arena arena;
    struct crowd_list list;
    uint64_t pass;
    uint64_t changes; /* core.promise_changes then */
};

struct crowd_list fit_promises_kept(struct core *core)
{
    if (!core->is_passing || core->is_what_if || core->options.is_plain) {
        return fit_promises(core);
    }
    if (core->kept_promises == NULL) {
        core->kept_promises = MEM_NEW(struct kept_promises);
        arena_init(&core->kept_promises->arena);
    }
    struct kept_promises *kept = core->kept_promises;
    if (kept->pass != core->pass || kept->changes != core->promise_changes) {
        arena_reset(&kept->arena);
        kept->list = list_promises(core, &kept->arena);
        kept->pass = core->pass;
        kept->changes = core->promise_changes; /* shapes may have been resolved for it */
    }
    return kept->list;
}

void fit_promises_free(struct core *core)
{
    if (core->kept_promises != NULL) {
        arena_deinit(&core->kept_promises->arena);
        mem_free(core->kept_promises);
    }
}
