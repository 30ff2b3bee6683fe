/* room_index.c - see room_index.h. By place (which nodes the pods may use), and there by devices,
 * cpu and memory in a tree, in which those that ask for too much are passed over together. */
#include "room_index.h"
#include "ask.h"
#include "fit.h"

#include <assert.h>

#include "tallyman/base/alloc.h"

struct room_ask {
    struct room_place *place; /* NULL: not sorted */
    int64_t devices;          /* the most that one request asks for */
    int64_t cpu_milli;
    int64_t memory_bytes;
    RB_ENTRY(room_ask) in_place;
    struct room_asker *first; /* list by next */
};

RB_HEAD(room_ask_tree, room_ask);

struct room_place {
    struct str key; /* owned; pod_set.place_key */
    UT_hash_handle hh;
    RB_ENTRY(room_place) by_key;
    struct room_ask_tree asks; /* never empty */
};

RB_HEAD(room_place_tree, room_place);

struct room_index {
    struct room_place *places;
    struct room_place_tree order;
    struct room_ask unsorted;
};

static int compare_number(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_asks(const struct room_ask *a, const struct room_ask *b)
{
    int by_devices = compare_number(a->devices, b->devices);
    if (by_devices != 0) {
        return by_devices;
    }
    int by_cpu = compare_number(a->cpu_milli, b->cpu_milli);
    return by_cpu != 0 ? by_cpu : compare_number(a->memory_bytes, b->memory_bytes);
}

static int compare_places(const struct room_place *a, const struct room_place *b)
{
    return str_compare(a->key, b->key);
}

RB_GENERATE_STATIC(room_ask_tree, room_ask, in_place, compare_asks)
RB_GENERATE_STATIC(room_place_tree, room_place, by_key, compare_places)

/* -- who is where ------------------------------------------------------------------------------ */

static struct room_index *index_of(struct core *core)
{
    if (core->room_index == NULL) {
        core->room_index = MEM_NEW(struct room_index);
    }
    return core->room_index;
}

static struct room_place *place_get(struct room_index *index, struct str key)
{
    struct room_place *place = NULL;
    HASH_FIND(hh, index->places, key.ptr, (unsigned)key.len, place);
    if (place == NULL) {
        place = MEM_NEW(struct room_place);
        place->key = str_own(key);
        HASH_ADD_KEYPTR(hh, index->places, place->key.ptr, (unsigned)place->key.len, place);
        RB_INSERT(room_place_tree, &index->order, place);
    }
    return place;
}

/* Devices of which each of these pods needs as many at least, of those that a node has. */
static int64_t most_devices(const struct pod_set *set)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < set->device_count && set->variants == NULL; i++) {
        const struct device_demand *demand = &set->devices[i];
        bool is_counted = !demand->is_alternative && !demand->is_special;
        most = is_counted && demand->count > most ? demand->count : most;
    }
    return ask_is_special(set->ask) ? 0 : most;
}

static struct room_ask *ask_get(struct core *core, const struct pod_set *set)
{
    struct room_index *index = index_of(core);
    if (!set->shape->is_resolved || set->claim_count > 0 || !str_is_set(set->place_key)) {
        return &index->unsorted;
    }
    struct room_ask wanted = {.devices = most_devices(set),
                              .cpu_milli = i128_clamp(vector_get(&set->per_pod, STR("cpu"))),
                              .memory_bytes = i128_clamp(vector_get(&set->per_pod, STR("memory")))};
    wanted.place = place_get(index, set->place_key);
    struct room_ask *ask = RB_FIND(room_ask_tree, &wanted.place->asks, &wanted);
    if (ask == NULL) {
        ask = MEM_NEW(struct room_ask);
        *ask = wanted;
        RB_INSERT(room_ask_tree, &ask->place->asks, ask);
    }
    return ask;
}

static void link_asker(struct room_asker *asker, struct room_ask *ask)
{
    asker->ask = ask;
    asker->previous = NULL;
    asker->next = ask->first;
    if (ask->first != NULL) {
        ask->first->previous = asker;
    }
    ask->first = asker;
}

static void ask_free_if_empty(struct core *core, struct room_ask *ask)
{
    struct room_place *place = ask->place;
    if (ask->first != NULL || place == NULL) {
        return;
    }
    RB_REMOVE(room_ask_tree, &place->asks, ask);
    mem_free(ask);
    if (RB_EMPTY(&place->asks)) {
        HASH_DEL(core->room_index->places, place);
        RB_REMOVE(room_place_tree, &core->room_index->order, place);
        str_drop(&place->key);
        mem_free(place);
    }
}

static void unlink_asker(struct core *core, struct room_asker *asker)
{
    *(asker->previous == NULL ? &asker->ask->first : &asker->previous->next) = asker->next;
    if (asker->next != NULL) {
        asker->next->previous = asker->previous;
    }
    ask_free_if_empty(core, asker->ask);
}

static void take(struct core *core, struct shape *shape)
{
    for (uint32_t s = 0; s < shape->set_count && shape->askers != NULL; s++) {
        unlink_asker(core, &shape->askers[s]);
    }
    mem_free(shape->askers);
    shape->askers = NULL;
    shape->is_sorted = false;
}

void room_index_put(struct core *core, struct shape *shape)
{
    bool is_wanted = (shape->verdict.waits_for & WAIT_CLUSTER) != 0;
    if (is_wanted && shape->is_sorted) {
        return; /* it asks for what it did: else it would have been taken out */
    }
    take(core, shape);
    if (!is_wanted) {
        return;
    }
    shape->askers = mem_zalloc(shape->set_count * sizeof(struct room_asker));
    shape->is_sorted = shape->is_resolved;
    for (uint32_t s = 0; s < shape->set_count; s++) {
        shape->askers[s].shape = shape;
        link_asker(&shape->askers[s], ask_get(core, &shape->sets[s]));
    }
}

void room_index_unsort(struct core *core, struct shape *shape)
{
    for (uint32_t s = 0; s < shape->set_count && shape->is_sorted; s++) {
        unlink_asker(core, &shape->askers[s]);
        link_asker(&shape->askers[s], &core->room_index->unsorted);
    }
    shape->is_sorted = false;
}

void room_index_free(struct core *core)
{
    mem_free(core->room_index); /* the last shape that goes takes the last place with it */
    core->room_index = NULL;
}

/* -- who could use a node ---------------------------------------------------------------------- */

/* What is free on a node, and what to do with who could use it. */
struct room_visit {
    struct node_state *node;
    int64_t devices;
    int64_t cpu_milli;
    int64_t memory_bytes;
    void (*look)(struct core *core, struct shape *shape, struct node_state *node);
};

static void visit_askers(struct core *core, const struct room_ask *ask,
                         const struct room_visit *visit)
{
    for (struct room_asker *asker = ask->first; asker != NULL; asker = asker->next) {
        if (!asker->shape->is_ready) {
            core->cost.waiters_visited++;
            visit->look(core, asker->shape, visit->node);
        }
    }
}

/* Any of the place's pods stands for all: they ask for the same nodes. What flavors tolerate isn't
 * known here. */
static bool may_use_node(const struct core *core, struct room_place *place,
                         const struct node_state *node)
{
    const struct room_ask *ask = RB_MIN(room_ask_tree, &place->asks);
    assert(ask != NULL && ask->first != NULL && "a place goes with the last who asks for it");
    const struct room_asker *asker = ask->first;
    const struct pod_set *set = &asker->shape->sets[asker - asker->shape->askers];
    struct pod_demand demand = {.set = set, .node_selector = &set->node_selector};
    enum exclusion exclusion = node_exclusion(core, &demand, node);
    return exclusion == EXCLUDED_COUNT || exclusion == EXCLUDED_TAINT;
}

static void visit_place(struct core *core, struct room_place *place, const struct room_visit *visit)
{
    struct room_ask *ask = RB_MIN(room_ask_tree, &place->asks);
    while (ask != NULL && ask->devices <= visit->devices) {
        if (ask->cpu_milli > visit->cpu_milli) { /* as all that follow with as many devices */
            struct room_ask more = {.devices = sat_add(ask->devices, 1)};
            ask = RB_NFIND(room_ask_tree, &place->asks, &more);
            continue;
        }
        if (ask->memory_bytes <= visit->memory_bytes) {
            visit_askers(core, ask, visit);
        }
        ask = RB_NEXT(room_ask_tree, &place->asks, ask);
    }
}

static int64_t open_devices(struct core *core, const struct node_state *node)
{
    if (core->roaming_devices > 0) {
        return INT64_MAX; /* those of no node aren't worth counting */
    }
    int64_t count = 0;
    struct device_walk walk = device_walk_start(core, node);
    for (struct device_state *device; (device = device_walk_next(&walk)) != NULL;) {
        count += device_is_open(core, device) ? 1 : 0;
    }
    return count;
}

void room_index_visit(struct core *core, struct node_state *node,
                      void (*look)(struct core *core, struct shape *shape, struct node_state *node))
{
    struct room_index *index = index_of(core);
    struct room_visit visit = {.node = node, .look = look};
    visit_askers(core, &index->unsorted, &visit);
    fit_plan_new(core);
    if (node->object == NULL || node_room(core, node, STR(RESOURCE_PODS)) < 1) {
        return;
    }
    visit.devices = open_devices(core, node);
    visit.cpu_milli = i128_clamp(node_room(core, node, STR("cpu")));
    visit.memory_bytes = i128_clamp(node_room(core, node, STR("memory")));
    struct room_place *place;
    RB_FOREACH (place, room_place_tree, &index->order) {
        if (may_use_node(core, place, node)) {
            visit_place(core, place, &visit);
        }
    }
}
