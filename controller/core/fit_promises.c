/* fit_promises.c - the gangs that were let go and whose pods are on their way: alike ones together,
 * as crowds. */
#include "fit_plan.h"
#include "preempt.h"
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

/* The flavors' labels are as they were when they were written there; where they have been edited
 * since, that is of no matter to pods that are let go already. */
static bool has_flavors_labels(const struct string_map *selector, const struct pod_demand *demand)
{
    for (uint32_t f = 0; f < demand->flavor_count; f++) {
        const struct string_map *labels = &demand->flavors[f]->spec.node_labels;
        for (uint32_t i = 0; i < labels->count; i++) {
            if (!has_pair(selector, &labels->items[i])) {
                return false;
            }
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
    demand.is_written = own != NULL && gang->state != GANG_RESERVED &&
                        !has_flavors_labels(demand.node_selector, &demand);
    if (!demand.is_written && is_implied(demand.node_selector, &demand)) {
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

/* -- the list ---------------------------------------------------------------------------------- */

/* In the order of their first gangs, as they were admitted, and of those gangs' sets. */
struct promise_list {
    struct arena *arena;
    struct crowd_list list;
    struct promise_first {
        const struct gang *gang;
        uint32_t set;
    } * firsts; /* of each crowd; its demand is that set's */
    uint32_t first_capacity;
};

static int compare_firsts(const struct promise_first *a, const struct promise_first *b)
{
    int by_gang = gang_compare_admitted(a->gang, b->gang);
    return by_gang != 0 ? by_gang : (a->set > b->set) - (a->set < b->set);
}

/* Its first gang is another one now: it goes where that one's place is. */
static void move_forward(struct promise_list *list, uint32_t at)
{
    struct crowd crowd = list->list.items[at];
    struct promise_first first = list->firsts[at];
    for (; at > 0 && compare_firsts(&first, &list->firsts[at - 1]) < 0; at--) {
        list->list.items[at] = list->list.items[at - 1];
        list->firsts[at] = list->firsts[at - 1];
    }
    list->list.items[at] = crowd;
    list->firsts[at] = first;
}

static void add_pods(struct core *core, struct promise_list *list, const struct pod_demand *demand,
                     const struct promise_first *first, int64_t pods)
{
    struct crowd *found = fit_crowd_find(core, &list->list, demand);
    uint32_t at = found == NULL ? list->list.count : (uint32_t)(found - list->list.items);
    if (found == NULL) {
        list->firsts = arena_grow(list->arena, list->firsts, list->list.count,
                                  &list->first_capacity, sizeof(*list->firsts));
        list->list.items = arena_grow(list->arena, list->list.items, list->list.count,
                                      &list->list.capacity, sizeof(struct crowd));
        list->list.items[list->list.count++] = (struct crowd){.pods = 0};
    }
    struct crowd *crowd = &list->list.items[at];
    crowd->pods = sat_add(crowd->pods, pods);
    if (found == NULL || compare_firsts(first, &list->firsts[at]) < 0) {
        crowd->demand = *demand;
        list->firsts[at] = *first;
        move_forward(list, at);
    }
}

static void add_promises(struct core *core, struct promise_list *list, const struct gang *gang)
{
    if (gang_promised_pods(gang) == 0 || gang->shape == NULL) {
        return;
    }
    shape_resolve(core, gang->shape);
    list->list.is_incomplete =
        list->list.is_incomplete || gang->shape->broken.reason != REASON_NONE;
    for (uint32_t s = 0; s < gang->reservation->set_count; s++) {
        const struct reserved_set *reserved = &gang->reservation->sets[s];
        const struct pod_set *set = pod_set_find(gang->shape, reserved->name);
        int64_t pods = gang_set_promised_pods(gang, reserved);
        if (pods <= 0 || set == NULL) {
            continue; /* a set that its object has no more makes no pods */
        }
        struct pod_demand demand = promise_demand(core, gang, set, reserved);
        struct promise_first first = {gang, s};
        add_pods(core, list, &demand, &first, pods);
    }
}

static void list_promises(struct core *core, struct promise_list *list)
{
    struct gang *gang;
    GANG_LINE_FOREACH (gang, &core->unbound) {
        if (!preempt_early_is_behind(core, gang)) {
            add_promises(core, list, gang);
        }
    }
}

struct crowd_list fit_promises(struct core *core)
{
    struct promise_list list = {.arena = &core->scratch};
    list_promises(core, &list);
    return list.list;
}

/* -- within a pass ------------------------------------------------------------------------------
 */

/* More are quicker listed anew. */
#define NEWCOMERS_MAX 32

/* What one judgement has found serves the next; gangs that the pass lets go are added. */
struct kept_promises {
    struct arena arena;
    struct promise_list list;
    uint64_t pass;
    uint64_t changes;                      /* core.promise_changes then */
    struct gang *newcomers[NEWCOMERS_MAX]; /* that aren't in the list yet; all of this pass */
    uint32_t newcomer_count;
};

/* Whether it is one that the list may take up later. */
static bool is_newcomer(const struct core *core, struct kept_promises *kept, struct gang *gang)
{
    for (uint32_t i = kept->newcomer_count; i > 0; i--) {
        if (kept->newcomers[i - 1] == gang) {
            return true;
        }
    }
    if (gang->is_in_unbound || kept->newcomer_count == NEWCOMERS_MAX || !core->is_passing) {
        return false; /* it is in the list, or may be */
    }
    kept->newcomers[kept->newcomer_count++] = gang;
    return true;
}

void fit_promises_changed(struct core *core, struct gang *gang)
{
    struct kept_promises *kept = core->kept_promises;
    bool is_kept =
        kept != NULL && kept->pass == core->pass && kept->changes == core->promise_changes;
    if (!is_kept || !is_newcomer(core, kept, gang)) {
        core->promise_changes++;
    }
}

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
        kept->list = (struct promise_list){.arena = &kept->arena};
        list_promises(core, &kept->list);
        kept->newcomer_count = 0;
    }
    for (uint32_t i = 0; i < kept->newcomer_count; i++) {
        add_promises(core, &kept->list, kept->newcomers[i]);
    }
    kept->newcomer_count = 0;
    kept->pass = core->pass;
    kept->changes = core->promise_changes; /* shapes may have been resolved for it */
    return kept->list.list;
}

void fit_promises_free(struct core *core)
{
    if (core->kept_promises != NULL) {
        arena_deinit(&core->kept_promises->arena);
        mem_free(core->kept_promises);
    }
}
