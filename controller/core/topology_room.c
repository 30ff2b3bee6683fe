/* topology_room.c - how many pods of one kind find room in each domain; see topology.h. */
#include "topology.h"

#include "ask.h"
#include "extended.h"

#include "tallyman/base/alloc.h"

/* -- one node --------------------------------------------------------------------------------- */

static int64_t least(int64_t a, i128 b)
{
    return b < a ? (int64_t)b : a;
}

static int64_t devices_for(struct core *core, const struct device_demand *demand,
                           struct node_state *node, bool is_empty)
{
    if (is_empty) {
        return node_count_devices(core, demand->profile, node) / demand->count;
    }
    int64_t free = node_free_devices(core, demand->profile, node);
    return free < 0 ? 0 : free / demand->count; /* a selector fails: nothing goes there */
}

/* By cpu, memory, pods and the like, and by host ports. */
static int64_t plain_places(struct core *core, const struct pod_demand *demand,
                            const struct pod_set *set, const struct node_state *node, bool is_empty)
{
    struct str pods = resource_find(core, STR(RESOURCE_PODS));
    int64_t places =
        least(pod_set_is_one_a_node(demand->set) ? 1 : INT64_MAX,
              is_empty ? vector_get(&node->capacity, pods) : node_room(core, node, pods));
    for (uint32_t i = 0; i < set->per_pod.count && places > 0; i++) {
        const struct vector_item *item = &set->per_pod.items[i];
        i128 room = is_empty ? vector_get(&node->capacity, item->resource)
                             : node_room(core, node, item->resource);
        places = least(places, room / item->value);
    }
    return places;
}

/* Such pods that the node could take, as things are or were it empty. */
static int64_t places_on(struct core *core, const struct pod_demand *demand,
                         struct node_state *node, bool is_empty)
{
    const struct pod_set *set = pod_set_on(demand->set, node);
    int64_t places = plain_places(core, demand, set, node, is_empty);
    if (ask_is_special(set->ask)) {
        return places; /* how many find their devices is seen when they are placed */
    }
    for (uint32_t i = 0; i < set->device_count && places > 0; i++) {
        places = least(places, devices_for(core, &set->devices[i], node, is_empty));
    }
    if (is_empty || places == 0) {
        return places;
    }
    /* Its ports and affinities are the same on all nodes: a variant doesn't repeat them. */
    places = least(places, node_slots_beside_others(core, demand->set, node));
    if (set->device_count > 1) {
        bool is_exact;
        int64_t safe = node_safe_device_slots(core, set, node, &is_exact);
        places = least(places, safe > 0 ? safe : 1);
    }
    return places;
}

/* -- sums ------------------------------------------------------------------------------------- */

static void add_places(const struct topology_tree *tree, struct topology_room *room, uint32_t index,
                       int64_t free, int64_t empty)
{
    for (uint32_t l = 0; l < tree->level_count; l++) {
        uint32_t domain = tree->levels[l].of[index];
        if (domain != TOPOLOGY_NONE) {
            room->sums[l].free[domain] += free;
            room->sums[l].empty[domain] += empty;
        }
    }
}

/* More places than pods can be asked for are as good as that many, so no sum overflows. */
static int64_t capped(int64_t places)
{
    return places < INT32_MAX ? places : INT32_MAX;
}

static void read_node(struct core *core, const struct topology_tree *tree,
                      const struct pod_demand *demand, struct topology_room *room, uint32_t index,
                      bool has_object_changed)
{
    struct node_state *node = core->node_index[index];
    if (has_object_changed) {
        room->is_out[index] = node_exclusion(core, demand, node) != EXCLUDED_COUNT;
    }
    bool is_out = room->is_out[index] || extended_is_refused(demand->set, node);
    int64_t free = is_out ? 0 : capped(places_on(core, demand, node, false));
    int64_t empty = room->empty[index];
    if (has_object_changed) {
        empty = is_out ? 0 : capped(places_on(core, demand, node, true));
    }
    add_places(tree, room, index, free - room->free[index], empty - room->empty[index]);
    room->free[index] = free;
    room->empty[index] = empty;
}

static void read_all(struct core *core, const struct topology_tree *tree,
                     const struct pod_demand *demand, struct topology_room *room)
{
    for (uint32_t i = 0; i < tree->node_count; i++) {
        read_node(core, tree, demand, room, i, true);
    }
    room->synced_at = core->node_changes;
}

static void room_sync(struct core *core, const struct topology_tree *tree,
                      const struct pod_demand *demand, struct topology_room *room)
{
    for (struct node_state *node = core->newest_node;
         node != NULL && node->changed_at > room->synced_at; node = node->older) {
        read_node(core, tree, demand, room, node->index, node->object_changed_at > room->synced_at);
    }
    room->synced_at = core->node_changes;
}

/* -- the table -------------------------------------------------------------------------------- */

/* Everything in one piece: of a room that is kept, mem_alloc()'s, else the arena's. */
static struct topology_room *room_new(struct core *core, const struct topology_tree *tree,
                                      bool is_kept)
{
    size_t nodes = tree->node_count + (size_t)1;
    size_t numbers = 2 * nodes;
    for (uint32_t l = 0; l < tree->level_count; l++) {
        numbers += 2 * (tree->levels[l].count + (size_t)1);
    }
    struct topology_room *room =
        is_kept ? MEM_NEW(struct topology_room) : ARENA_NEW(&core->scratch, struct topology_room);
    int64_t *at = is_kept ? mem_zalloc(mem_array_bytes(numbers, sizeof(int64_t)))
                          : ARENA_ARRAY(&core->scratch, int64_t, numbers);
    room->sums = is_kept
                     ? mem_zalloc(mem_array_bytes(tree->level_count, sizeof(*room->sums)))
                     : arena_alloc_array(&core->scratch, tree->level_count, sizeof(*room->sums));
    room->is_out = is_kept ? mem_zalloc(nodes) : ARENA_ARRAY(&core->scratch, bool, nodes);
    room->is_kept = is_kept;
    room->tree_serial = tree->serial;
    room->level_count = tree->level_count;
    room->free = at;
    room->empty = at + nodes;
    at += 2 * nodes;
    for (uint32_t l = 0; l < tree->level_count; l++) {
        size_t domains = tree->levels[l].count + (size_t)1;
        room->sums[l].free = at;
        room->sums[l].empty = at + domains;
        at += 2 * domains;
    }
    return room;
}

static void room_free(struct core *core, struct topology_room *room)
{
    HASH_DEL(core->topology_rooms, room);
    str_drop(&room->key);
    mem_free(room->free);
    mem_free(room->sums);
    mem_free(room->is_out);
    mem_free(room);
}

void topology_rooms_forget(struct core *core)
{
    struct topology_room *room;
    struct topology_room *next;
    HASH_ITER (hh, core->topology_rooms, room, next) {
        room_free(core, room);
    }
}

void topology_rooms_forget_of(struct core *core, const struct topology_tree *tree)
{
    struct topology_room *room;
    struct topology_room *next;
    HASH_ITER (hh, core->topology_rooms, room, next) {
        if (room->tree_serial == tree->serial) {
            room_free(core, room);
        }
    }
}

/* What is counted depends on nothing else than on the nodes themselves, and on this key. */
static bool is_keepable(const struct core *core, const struct pod_set *set)
{
    return !core->options.is_plain && core->roaming_devices == 0 && set->claim_count == 0 &&
           !ask_is_special(set->ask) && str_is_set(set->place_key) && core->apart_pods == 0 &&
           !pod_set_is_one_a_node(set);
}

static struct str room_key(struct core *core, const struct topology_tree *tree,
                           const struct pod_demand *demand)
{
    struct text text;
    text_init(&text, &core->scratch, 1u << 20);
    text_addf(&text, "%llu ", (unsigned long long)tree->serial);
    for (uint32_t i = 0; i < demand->set->per_pod.count; i++) {
        const struct vector_item *item = &demand->set->per_pod.items[i];
        text_add(&text, item->resource);
        text_addf(&text, "=%lld ", (long long)i128_clamp(item->value));
    }
    for (uint32_t i = 0; i < demand->set->device_count; i++) {
        const struct device_demand *device = &demand->set->devices[i];
        text_addf(&text, "%zu:", device->profile->key.len);
        text_add(&text, device->profile->key);
        text_addf(&text, "=%lld " STR_FMT " ", (long long)device->count, STR_ARG(device->resource));
    }
    for (uint32_t i = 0; i < demand->flavor_count; i++) {
        text_add(&text, STR("+"));
        text_add(&text, demand->flavors[i]->meta.name);
    }
    text_add(&text, STR(" "));
    text_add(&text, demand->set->place_key);
    return text_str(&text);
}

static void drop_oldest(struct core *core)
{
    struct topology_room *oldest = core->topology_rooms;
    struct topology_room *room;
    struct topology_room *next;
    HASH_ITER (hh, core->topology_rooms, room, next) {
        oldest = room->used_at < oldest->used_at ? room : oldest;
    }
    if (HASH_COUNT(core->topology_rooms) >= TOPOLOGY_ROOMS_MAX) {
        room_free(core, oldest);
    }
}

struct topology_room *topology_room_of(struct core *core, const struct topology_tree *tree,
                                       const struct pod_demand *demand)
{
    struct pod_demand anywhere = *demand;
    anywhere.domain = NULL;
    anywhere.node_selector = &demand->set->node_selector;
    if (!is_keepable(core, demand->set)) {
        struct topology_room *room = room_new(core, tree, false);
        read_all(core, tree, &anywhere, room);
        return room;
    }
    struct str key = room_key(core, tree, demand);
    struct topology_room *room = NULL;
    HASH_FIND(hh, core->topology_rooms, key.ptr, (unsigned)key.len, room);
    if (room == NULL) {
        drop_oldest(core);
        room = room_new(core, tree, true);
        room->key = str_own(key);
        HASH_ADD_KEYPTR(hh, core->topology_rooms, room->key.ptr, (unsigned)room->key.len, room);
        read_all(core, tree, &anywhere, room);
    } else {
        room_sync(core, tree, &anywhere, room);
    }
    room->used_at = ++core->reach_uses;
    return room;
}
