/* fit_robust.c - is there room enough whatever order kube-scheduler places pods in?
 *
 * Gangs that were let go and whose pods are on their way may be placed anywhere, pod by pod, before
 * or between the candidate's pods. So each of the crowds has to find its places even if all pods of
 * all the others land where it hurts most. Where that can't be said, the candidate waits until they
 * are bound, which is a matter of moments. */
#include "ask.h"
#include "fit_plan.h"
#include "reach.h"
#include "roam.h"
#include "shadow.h"
#include "topology.h"

#include <string.h>

/* But for its domain. */
static bool may_be_on(const struct crowd *crowd, const struct node_state *node)
{
    uint64_t bit = UINT64_C(1) << (node->index % 64);
    return crowd->nodes == NULL || (crowd->nodes[node->index / 64] & bit) != 0;
}

/* One of them has a domain: the nodes in question are few. */
static bool share_a_node_of_a_domain(struct core *core, const struct crowd *crowd_a,
                                     const struct crowd *crowd_b)
{
    const struct pod_demand *a = &crowd_a->demand;
    const struct pod_demand *b = &crowd_b->demand;
    if (a->domain != NULL && b->domain != NULL && topology_are_apart(a->domain, b->domain)) {
        return false;
    }
    bool is_of_b =
        a->domain == NULL || (b->domain != NULL && b->domain->path.count > a->domain->path.count);
    struct node_indexes nodes = topology_nodes(core, is_of_b ? b->domain : a->domain);
    for (uint32_t i = 0; i < nodes.count; i++) {
        const struct node_state *node = core->node_index[nodes.items[i]];
        if (may_be_on(crowd_a, node) && may_be_on(crowd_b, node) &&
            node_exclusion(core, a, node) == EXCLUDED_COUNT &&
            node_exclusion(core, b, node) == EXCLUDED_COUNT) {
            return true;
        }
    }
    return false;
}

static bool share_a_node(struct core *core, const struct crowd *crowd_a,
                         const struct crowd *crowd_b)
{
    const struct pod_demand *a = &crowd_a->demand;
    const struct pod_demand *b = &crowd_b->demand;
    if (a->domain != NULL || b->domain != NULL) {
        return share_a_node_of_a_domain(core, crowd_a, crowd_b);
    }
    if (crowd_a->nodes != NULL && crowd_b->nodes != NULL) {
        bool is_shared = false;
        for (uint32_t i = 0; i <= HASH_COUNT(core->nodes) / 64 && !is_shared; i++) {
            is_shared = (crowd_a->nodes[i] & crowd_b->nodes[i]) != 0;
        }
        return is_shared;
    }
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node_exclusion(core, a, node) == EXCLUDED_COUNT &&
            node_exclusion(core, b, node) == EXCLUDED_COUNT) {
            return true;
        }
    }
    return false;
}

/* The nodes of each crowd are looked up once, not for each pair: among many unlike ones their
 * reaches would push each other out. */
static void find_nodes(struct core *core, const struct crowd_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        struct crowd *crowd = &list->items[i];
        const struct reach *reach = reach_of(core, &crowd->demand);
        if (reach != NULL) {
            uint32_t words = reach->node_count / 64 + 1;
            uint64_t *nodes = ARENA_ARRAY(&core->scratch, uint64_t, words);
            memcpy(nodes, reach->bits, words * sizeof(uint64_t));
            crowd->nodes = nodes;
        }
    }
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

/* How many devices that `mine` asks for one pod of `other` can take; -1: no saying. */
static int64_t devices_taken(struct core *core, const struct pod_demand *other,
                             const struct device_demand *mine)
{
    int64_t taken = 0;
    for (uint32_t i = 0; i < other->set->device_count; i++) {
        const struct device_demand *theirs = &other->set->devices[i];
        bool is_by_counters = false;
        if (theirs->profile != mine->profile &&
            !share_a_device(core, theirs->profile, mine->profile, &is_by_counters)) {
            continue;
        }
        bool is_special = mine->is_special || theirs->is_special || theirs->is_alternative ||
                          mine->is_alternative || profile_has_shareable(core, mine->profile);
        if (is_by_counters || is_special) {
            return -1;
        }
        taken = sat_add(taken, theirs->count);
    }
    return taken;
}

static int64_t worst_device_loss(struct core *core, const struct pod_demand *other,
                                 const struct pod_demand *mine)
{
    int64_t loss = 0;
    for (uint32_t i = 0; i < mine->set->device_count; i++) {
        int64_t taken = devices_taken(core, other, &mine->set->devices[i]);
        if (taken < 0) {
            return LOSS_UNKNOWN;
        }
        int64_t cost = ceil_div(taken, mine->set->devices[i].count);
        loss = cost > loss ? cost : loss;
    }
    return loss;
}

/* On a node that both may use: by cpu, memory and the like. */
static int64_t worst_plain_loss(const struct pod_demand *other, const struct pod_demand *mine)
{
    if (pod_set_keeps_apart(other->set) &&
        str_eq(other->set->shape->namespace_name, mine->set->shape->namespace_name)) {
        return LOSS_UNKNOWN; /* one pod of it may cost a whole node */
    }
    int64_t loss = 1; /* a pod takes one of the node's pods */
    const struct vector *theirs = &other->set->per_pod;
    for (uint32_t i = 0; i < theirs->count; i++) {
        i128 ours = vector_get(&mine->set->per_pod, theirs->items[i].resource);
        int64_t cost = ours == 0 ? 0 : ceil_div(theirs->items[i].value, ours);
        loss = cost > loss ? cost : loss;
    }
    return loss;
}

/* How many places one pod of `other` can cost `mine`, wherever it lands. */
static int64_t worst_loss(struct core *core, const struct crowd *other, const struct crowd *mine)
{
    bool shares_a_node = share_a_node(core, other, mine);
    bool shares_devices = shares_a_node || core->roaming_devices > 0;
    int64_t plain = shares_a_node ? worst_plain_loss(&other->demand, &mine->demand) : 0;
    int64_t devices = shares_devices ? worst_device_loss(core, &other->demand, &mine->demand) : 0;
    return devices > plain ? devices : plain;
}

/* Whether one of these requests could take what one of those wants. */
static bool requests_meet(struct core *core, const struct device_demand *a, uint32_t a_count,
                          const struct device_demand *b, uint32_t b_count)
{
    for (uint32_t i = 0; i < a_count; i++) {
        for (uint32_t j = 0; j < b_count; j++) {
            bool is_by_counters = false;
            if (a[i].profile == b[j].profile ||
                share_a_device(core, a[i].profile, b[j].profile, &is_by_counters)) {
                return true;
            }
        }
    }
    return false;
}

/* A named claim gets its devices once, on the node that its gang is bound to: whether pods or named
 * claims of `other` may be after the same devices. */
bool fit_claims_collide(struct core *core, const struct pod_demand *mine,
                        const struct pod_demand *other)
{
    for (uint32_t c = 0; c < mine->set->claim_count; c++) {
        const struct shared_claim_demand *claim = &mine->set->claims[c];
        if (claim_is_allocated(claim->claim)) {
            continue;
        }
        if (requests_meet(core, claim->requests, claim->request_count, other->set->devices,
                          other->set->device_count)) {
            return true;
        }
        for (uint32_t o = 0; mine != other && o < other->set->claim_count; o++) {
            const struct shared_claim_demand *theirs = &other->set->claims[o];
            bool is_shared = theirs->claim == claim->claim; /* by two sets of one gang */
            if (!is_shared && !claim_is_allocated(theirs->claim) &&
                requests_meet(core, claim->requests, claim->request_count, theirs->requests,
                              theirs->request_count)) {
                return true;
            }
        }
    }
    return false;
}

static bool are_after_one_claim(struct core *core, const struct crowd *a, const struct crowd *b)
{
    if (a->demand.set->claim_count == 0 && b->demand.set->claim_count == 0) {
        return false;
    }
    return (core->roaming_devices > 0 || share_a_node(core, a, b)) &&
           (fit_claims_collide(core, &a->demand, &b->demand) ||
            fit_claims_collide(core, &b->demand, &a->demand));
}

/* Sets of different shapes may differ by their queue, namespace or size alone. */
static bool is_same_set(const struct pod_set *a, const struct pod_set *b)
{
    if (!vector_equal(&a->per_pod, &b->per_pod) || !ask_equal(a->ask, b->ask)) {
        return false;
    }
    if (a->device_count != b->device_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->device_count; i++) {
        if (a->devices[i].profile != b->devices[i].profile ||
            a->devices[i].resource.ptr != b->devices[i].resource.ptr ||
            a->devices[i].count != b->devices[i].count) {
            return false;
        }
    }
    return object_equal(&pod_spec_schema, a->spec, b->spec);
}

static bool are_same_flavors(const struct pod_demand *a, const struct pod_demand *b)
{
    if (a->flavor_count != b->flavor_count || a->is_written != b->is_written) {
        return false;
    }
    for (uint32_t i = 0; i < a->flavor_count; i++) {
        if (a->flavors[i] != b->flavors[i]) {
            return false;
        }
    }
    return true;
}

bool fit_is_alike(const struct pod_demand *a, const struct pod_demand *b)
{
    if (a->domain != b->domain || !are_same_flavors(a, b)) {
        return false;
    }
    if (a->set->claim_count > 0 || b->set->claim_count > 0) {
        return false;
    }
    return a->set == b->set || is_same_set(a->set, b->set);
}

bool fit_is_one_crowd(const struct core *core, const struct pod_demand *a,
                      const struct pod_demand *b)
{
    if (a->set == b->set) {
        return a->domain == b->domain && are_same_flavors(a, b);
    }
    /* Whom others keep off their nodes depends on the namespace and the labels. */
    bool is_apart = core->apart_pods > 0 || pod_set_keeps_apart(a->set);
    return !is_apart && str_eq(a->set->place_key, b->set->place_key) &&
           str_eq(a->set->shape->namespace_name, b->set->shape->namespace_name) &&
           fit_is_alike(a, b);
}

/* Whether pods of `other` could be after devices that pods of `mine` want. */
static bool may_take_devices(struct core *core, const struct pod_demand *other,
                             const struct pod_demand *mine)
{
    return requests_meet(core, other->set->devices, other->set->device_count, mine->set->devices,
                         mine->set->device_count);
}

/* How many pods of crowd `i` have a place though as much of every other crowd as can be there
 * stands on every node at once: worse than anything that kube-scheduler can do. Where crowds are
 * after the same devices, or keep others off their node, it can't be told this way: 0. */
static int64_t places_beside_all(struct core *core, const struct crowd_list *list, uint32_t i)
{
    const struct pod_demand *mine = &list->items[i].demand;
    for (uint32_t j = 0; j < list->count; j++) {
        const struct pod_demand *other = &list->items[j].demand;
        bool is_apart = pod_set_keeps_apart(other->set) || pod_set_keeps_apart(mine->set);
        if (j != i && (is_apart || may_take_devices(core, other, mine))) {
            return 0;
        }
    }
    struct node_state *node;
    fit_plan_new(core);
    RB_FOREACH (node, node_tree, &core->node_order) {
        for (uint32_t j = 0; node->object != NULL && j < list->count; j++) {
            if (j != i && node_exclusion(core, &list->items[j].demand, node) == EXCLUDED_COUNT) {
                node_crowd(core, &list->items[j].demand, node, list->items[j].pods);
            }
        }
    }
    return fit_place(core, mine, list->items[i].pods);
}

/* What the others can cost a crowd. */
struct weighed {
    int64_t needed;    /* places, so that it has its own whatever they do */
    bool is_unknown;   /* no saying */
    bool is_contested; /* some are after the same devices */
};

static void weigh_other(struct core *core, const struct crowd *mine, const struct crowd *other,
                        struct weighed *weighed)
{
    bool is_alike = fit_is_alike(&other->demand, &mine->demand);
    int64_t loss = is_alike ? 1 : worst_loss(core, other, mine);
    bool takes = !is_alike && may_take_devices(core, &other->demand, &mine->demand);
    weighed->is_unknown = weighed->is_unknown || loss == LOSS_UNKNOWN;
    weighed->is_contested = weighed->is_contested || takes;
    int64_t before = sat_mul(loss, other->pods);
    if (shadow_now(core) != NULL && loss != LOSS_UNKNOWN) {
        int64_t by_devices = worst_device_loss(core, &other->demand, &mine->demand);
        before = shadow_worst_cost(core, mine, other, loss, by_devices);
    }
    weighed->needed = sat_add(weighed->needed, before);
}

/* Whether crowd `i` finds its places though all the others land where it hurts most. */
static bool is_safe(struct core *core, const struct crowd_list *list, uint32_t i)
{
    const struct crowd *mine = &list->items[i];
    /* Pods above min-count may have no place anyhow: there is nothing that others could take. */
    int64_t own = fit_place_alone(core, &mine->demand, mine->pods, false);
    struct weighed weighed = {.needed = own};
    for (uint32_t j = 0; j < list->count; j++) {
        if (j == i || own == 0) {
            continue;
        }
        if (are_after_one_claim(core, mine, &list->items[j])) {
            return false;
        }
        weigh_other(core, mine, &list->items[j], &weighed);
    }
    if (!weighed.is_unknown && fit_place_alone(core, &mine->demand, weighed.needed,
                                               weighed.is_contested) >= weighed.needed) {
        return true;
    }
    return places_beside_all(core, list, i) >= own;
}

bool fit_is_same_selector(const struct string_map *a, const struct string_map *b)
{
    if (a == b) {
        return true;
    }
    if (a->count != b->count) {
        return false;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        if (!str_eq(a->items[i].key, b->items[i].key) ||
            !str_eq(a->items[i].value, b->items[i].value)) {
            return false;
        }
    }
    return true;
}

static bool are_all_alike(struct core *core, const struct crowd_list *promised,
                          const struct fit_wants *wants)
{
    const struct pod_demand *first = &wants->items[0].demand;
    for (uint32_t i = 0; i < promised->count; i++) {
        const struct pod_demand *other = &promised->items[i].demand;
        if (!fit_is_alike(other, first) ||
            !fit_is_same_selector(other->node_selector, first->node_selector)) {
            return false;
        }
    }
    for (uint32_t w = 0; w < wants->count; w++) {
        bool is_whole = wants->items[w].placed >= wants->items[w].count;
        if (!is_whole || !fit_is_alike(&wants->items[w].demand, first)) {
            return false;
        }
    }
    /* Equal pods can't be in each other's way, unless some are put where they see what others
     * don't.
     */
    return promised->count + wants->count == 1 || !demand_roams_unevenly(core, first);
}

/* The gang's sets as crowds behind the others; sets that are alike are one. `ret_of` tells which
 * crowd is whose. */
static void add_own_crowds(const struct fit_wants *wants, struct crowd_list *all, uint32_t *ret_of)
{
    uint32_t first = all->count;
    for (uint32_t w = 0; w < wants->count; w++) {
        const struct fit_want *want = &wants->items[w];
        uint32_t at = first;
        while (at < all->count && !fit_is_alike(&all->items[at].demand, &want->demand)) {
            at++;
        }
        if (at == all->count) {
            all->items[all->count++] = (struct crowd){.demand = want->demand};
        }
        all->items[at].pods = sat_add(all->items[at].pods, want->count);
        ret_of[w] = at;
    }
}

static int64_t placed_of(const struct fit_wants *wants, const uint32_t *of, uint32_t crowd)
{
    int64_t placed = 0;
    for (uint32_t w = 0; w < wants->count; w++) {
        placed = sat_add(placed, of[w] == crowd ? wants->items[w].placed : 0);
    }
    return placed;
}

bool fit_is_robust(struct core *core, const struct crowd_list *promised,
                   const struct fit_wants *wants, uint32_t *ret_unsafe)
{
    if (promised->count + wants->count == 1 || are_all_alike(core, promised, wants)) {
        return true;
    }
    struct crowd_list all = {.count = promised->count};
    all.items = ARENA_ARRAY(&core->scratch, struct crowd, promised->count + wants->count);
    for (uint32_t i = 0; i < promised->count; i++) {
        all.items[i] = promised->items[i];
    }
    /* All its pods look for places, those too that none was found for. */
    uint32_t *of = ARENA_ARRAY(&core->scratch, uint32_t, wants->count);
    add_own_crowds(wants, &all, of);
    find_nodes(core, &all);
    /* In a shadow the others will have their places long before. */
    for (uint32_t i = 0; shadow_now(core) == NULL && i < promised->count; i++) {
        if (!is_safe(core, &all, i)) {
            return false;
        }
    }
    for (uint32_t w = 0; w < wants->count; w++) {
        struct crowd *own = &all.items[of[w]];
        int64_t pods = own->pods;
        own->pods = placed_of(wants, of, of[w]);
        if (!is_safe(core, &all, of[w])) {
            *ret_unsafe = w;
            return false;
        }
        own->pods = pods;
    }
    return true;
}
