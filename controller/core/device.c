/* device.c - which devices exist: the slices of each pool's newest complete generation. Which of
 * them are in use is the set of keys that the claims' allocations name (claim.c). */
#include "ailment.h"
#include "loose_part.h"
#include "ask.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

#define TEXT_OF(limit)  TEXT_OF_(limit)
#define TEXT_OF_(limit) #limit

static struct pool_state *pool_get(struct core *core, const struct resource_slice_spec *spec)
{
    struct str key = key_join(&core->scratch, spec->driver, spec->pool.name);
    struct pool_state *pool = NULL;
    HASH_FIND(hh, core->pools, key.ptr, (unsigned)key.len, pool);
    if (pool == NULL) {
        pool = MEM_NEW(struct pool_state);
        pool->key = str_own(key);
        HASH_ADD_KEYPTR(hh, core->pools, pool->key.ptr, (unsigned)pool->key.len, pool);
    }
    return pool;
}

static uint32_t slot_take(struct core *core)
{
    for (uint32_t slot = core->device_slot_hint; slot < core->device_slots; slot++) {
        if (core->devices[slot] == NULL) {
            core->device_slot_hint = slot + 1;
            return slot;
        }
    }
    core->devices = mem_grow(core->devices, core->device_slots, &core->device_capacity,
                             sizeof(struct device_state *));
    core->device_slot_hint = core->device_slots + 1;
    return core->device_slots++;
}

static void device_unlink_node(struct device_state *device)
{
    if (device->node == NULL) {
        return;
    }
    *(device->previous_on_node == NULL ? &device->node->devices
                                       : &device->previous_on_node->next_on_node) =
        device->next_on_node;
    if (device->next_on_node != NULL) {
        device->next_on_node->previous_on_node = device->previous_on_node;
    }
    device->node = NULL;
}

static void device_free(struct core *core, struct device_state *device)
{
    struct node_state *node = device->node;
    device_unlink_node(device);
    if (node != NULL) {
        node_touch_object(core, node);
        node_free_if_unused(core, node);
    }
    table_remove(&core->devices_by_key, device);
    RB_REMOVE(device_tree, &core->device_order, device);
    ailment_device_gone(core, device);
    device_set_ailing(core, device, false);
    device_set_evicting(core, device, false);
    core->devices[device->slot] = NULL;
    if (device->slot < core->device_slot_hint) {
        core->device_slot_hint = device->slot;
    }
    core->device_changes++;
    core->supply_changes++;
    core->roaming_devices -= node == NULL ? 1 : 0;
    core->is_roaming_stale = core->is_roaming_stale || node == NULL;
    str_drop(&device->key);
    mem_free(device->counters);
    mem_free(device->shares);
    mem_free(device);
}

static void device_read_counters(struct device_state *device, const struct device *object)
{
    struct pool_state *pool = device->pool;
    uint32_t capacity = 0;
    for (uint32_t i = 0; i < object->consumes_counters.count; i++) {
        const struct counter_consumption *part = &object->consumes_counters.items[i];
        for (uint32_t j = 0; j < part->counters.count; j++) {
            uint32_t c = 0;
            while (c < pool->counter_count &&
                   !(str_eq(pool->counters[c].set, part->counter_set) &&
                     str_eq(pool->counters[c].name, part->counters.items[j].key))) {
                c++;
            }
            i128 amount = part->counters.items[j].value.value.nano;
            if (c == pool->counter_count || amount < 0) {
                device->is_uncountable = amount < 0;
                pool->problem = amount < 0 ? pool->problem
                                           : "one of its devices draws on a counter that no "
                                             "counter set of the pool has";
                return;
            }
            device->counters = mem_grow(device->counters, device->counter_count, &capacity,
                                        sizeof(*device->counters));
            device->counters[device->counter_count++] =
                (struct counter_use){.counter = c, .amount = amount};
        }
    }
}

/* Which counters tie devices of several nodes together. */
static void device_note_spread(const struct device_state *device)
{
    for (uint32_t i = 0; i < device->counter_count; i++) {
        struct counter_state *counter = &device->pool->counters[device->counters[i].counter];
        bool is_other = counter->has_node && counter->node != device->node;
        counter->is_spread = counter->is_spread || is_other;
        counter->node = device->node;
        counter->has_node = true;
    }
}

static void device_add(struct core *core, struct pool_state *pool, const struct slice_state *slice,
                       const struct device *object)
{
    struct str key = key_join(&core->scratch, pool->key, object->name);
    struct device_state *device = table_find(&core->devices_by_key, key);
    if (device != NULL) {
        pool->problem = "a device of it is listed twice";
        return;
    }
    device = MEM_NEW(struct device_state);
    device->key = str_own(key);
    device->slot = slot_take(core);
    core->device_changes++;
    core->supply_changes++;
    core->devices[device->slot] = device;
    device->slice = slice->object;
    device->device = object;
    device->pool = pool;
    pool->has_binding_conditions =
        pool->has_binding_conditions || object->binding_conditions.count > 0;
    device->is_shareable = opt_is_true(object->allow_multiple_allocations);
    if (device->is_shareable) {
        device->shares = mem_zalloc((object->capacity.count + 1) * sizeof(*device->shares));
    }
    device_read_counters(device, object);
    device->next_in_pool = pool->devices;
    pool->devices = device;
    table_add(&core->devices_by_key, device);
    RB_INSERT(device_tree, &core->device_order, device);
    bool is_per_device = slice->object->spec.per_device_node_selection.is_set &&
                         slice->object->spec.per_device_node_selection.value;
    struct str node_name = is_per_device ? object->node_name : slice->object->spec.node_name;
    if (!str_is_empty(node_name)) {
        device->node = node_get(core, node_name);
        device->next_on_node = device->node->devices;
        if (device->next_on_node != NULL) {
            device->next_on_node->previous_on_node = device;
        }
        device->node->devices = device;
        node_touch_object(core, device->node);
    } else {
        core->roaming_devices++;
        core->is_roaming_stale = true;
    }
    device_note_spread(device);
    struct used_device *used = table_find(&core->used_devices, key);
    if (used != NULL) {
        device_set_used(core, key, used);
    }
    device_read_taints(core, device);
}

static void pool_clear(struct core *core, struct pool_state *pool)
{
    whatif_forget(core);
    while (pool->devices != NULL) {
        struct device_state *device = pool->devices;
        pool->devices = device->next_in_pool;
        device_free(core, device);
    }
    pool->counter_count = 0;
    pool->has_binding_conditions = false;
    core->doubtful_pools -= pool->loose_part != NULL ? 1 : 0;
    pool->loose_part = pool->loose_card = NULL;
}

static void pool_add_counters(struct pool_state *pool, const struct resource_slice *slice)
{
    for (uint32_t i = 0; i < slice->spec.shared_counters.count; i++) {
        const struct counter_set *set = &slice->spec.shared_counters.items[i];
        for (uint32_t c = 0; c < pool->counter_count; c++) {
            if (str_eq(pool->counters[c].set, set->name)) {
                pool->problem = "two counter sets have one name";
                return;
            }
        }
        for (uint32_t j = 0; j < set->counters.count; j++) {
            pool->counters = mem_grow(pool->counters, pool->counter_count, &pool->counter_capacity,
                                      sizeof(*pool->counters));
            pool->counters[pool->counter_count++] =
                (struct counter_state){.set = set->name,
                                       .name = set->counters.items[j].key,
                                       .capacity = set->counters.items[j].value.value.nano};
        }
    }
}

static int64_t pool_newest(const struct pool_state *pool)
{
    int64_t newest = INT64_MIN;
    for (struct slice_state *slice = pool->slices; slice != NULL; slice = slice->next_in_pool) {
        int64_t generation = slice->object->spec.pool.generation.value;
        newest = generation > newest ? generation : newest;
    }
    return newest;
}

static bool is_of_overfull_node(const struct core *core, const struct resource_slice *slice)
{
    struct str name = slice->spec.node_name;
    const struct node_state *node = NULL;
    if (!str_is_empty(name)) {
        HASH_FIND(hh, core->nodes, name.ptr, (unsigned)name.len, node);
    }
    return node != NULL && node->is_overfull;
}

/* Why the newest generation can't be used, or NULL. Slices of older ones don't count. */
static const char *pool_problem(const struct core *core, const struct pool_state *pool,
                                int64_t newest)
{
    int64_t wanted = -1;
    int64_t seen = 0;
    uint64_t devices = 0;
    for (struct slice_state *slice = pool->slices; slice != NULL; slice = slice->next_in_pool) {
        if (slice->object->spec.pool.generation.value != newest) {
            continue;
        }
        int64_t count = slice->object->spec.pool.resource_slice_count.value;
        if (wanted >= 0 && wanted != count) {
            return "slices of one generation disagree on resourceSliceCount";
        }
        if (is_of_overfull_node(core, slice->object)) {
            return "its node lists more than " TEXT_OF(NODE_DEVICES_MAX) " devices";
        }
        wanted = count;
        seen++;
        devices += slice->object->spec.devices.count;
    }
    if (devices > POOL_DEVICES_MAX) {
        return "it lists more than " TEXT_OF(POOL_DEVICES_MAX) " devices";
    }
    if (wanted > 0 && seen > wanted) {
        return "it has more slices than their resourceSliceCount says; has another node a pool of "
               "the same name?";
    }
    return seen == wanted ? NULL : "its newest generation isn't complete yet";
}

static void pool_rebuild(struct core *core, struct pool_state *pool)
{
    pool_clear(core, pool);
    if (pool->slices == NULL) {
        HASH_DEL(core->pools, pool);
        mem_free(pool->counters);
        str_drop(&pool->key);
        mem_free(pool);
        return;
    }
    int64_t newest = pool_newest(pool);
    pool->problem = pool_problem(core, pool, newest);
    if (pool->problem != NULL) {
        return;
    }
    for (struct slice_state *slice = pool->slices; slice != NULL; slice = slice->next_in_pool) {
        if (slice->object->spec.pool.generation.value == newest) {
            pool_add_counters(pool, slice->object);
        }
    }
    for (struct slice_state *slice = pool->slices; slice != NULL; slice = slice->next_in_pool) {
        const struct device_list *devices = &slice->object->spec.devices;
        if (slice->object->spec.pool.generation.value != newest) {
            continue;
        }
        for (uint32_t i = 0; i < devices->count; i++) {
            device_add(core, pool, slice, &devices->items[i]);
        }
    }
    if (pool->problem != NULL) {
        pool_clear(core, pool);
    }
    pool_find_cards(pool);
    pool_find_loose_part(core, pool);
}

/* Those hear of it who could use its devices, as they were or as they are; where the pool gives
 * none for another reason now, or for none, all who want some are told so. */
static void pool_renew(struct core *core, struct pool_state *pool)
{
    const char *problem = pool->problem;
    bool is_gone = pool->slices == NULL;
    wake_for_pool(core, pool);
    pool_rebuild(core, pool);
    if (problem != (is_gone ? NULL : pool->problem)) {
        wake_for_devices(core);
    } else if (!is_gone) {
        wake_for_pool(core, pool);
    }
}

/* -- what one node lists ----------------------------------------------------------------------- */

static bool pool_is_on_node(const struct pool_state *pool, const struct node_state *node)
{
    for (struct slice_state *slice = pool->slices; slice != NULL; slice = slice->next_in_pool) {
        if (str_eq(slice->object->spec.node_name, node->name)) {
            return true;
        }
    }
    return false;
}

/* All slices count, whatever has become of their pools: so it doesn't matter which came first. */
static void slice_count(struct core *core, const struct resource_slice *slice, bool is_there)
{
    if (!str_is_empty(slice->spec.node_name)) {
        struct node_state *node = node_get(core, slice->spec.node_name);
        uint32_t count = slice->spec.devices.count;
        node->listed_devices += is_there ? count : -count;
    }
}

/* A node that lists too many gives none, and does again when it doesn't. */
static void node_review_listed(struct core *core, struct str name)
{
    if (str_is_empty(name)) {
        return;
    }
    struct node_state *node = node_get(core, name);
    bool is_overfull = node->listed_devices > NODE_DEVICES_MAX;
    struct pool_state *pool = NULL;
    struct pool_state *next = is_overfull != node->is_overfull ? core->pools : NULL;
    node->is_overfull = is_overfull;
    while ((pool = next) != NULL) {
        next = pool->hh.next;
        if (pool_is_on_node(pool, node)) {
            pool_renew(core, pool);
        }
    }
    node_free_if_unused(core, node);
}

static void slice_unlink(struct slice_state *slice)
{
    struct slice_state **link = &slice->pool->slices;
    while (*link != slice) {
        link = &(*link)->next_in_pool;
    }
    *link = slice->next_in_pool;
}

void slice_apply(struct core *core, const struct resource_slice *object)
{
    struct slice_state *slice = NULL;
    struct str name = object->meta.name;
    HASH_FIND(hh, core->slices, name.ptr, (unsigned)name.len, slice);
    struct pool_state *old_pool = NULL;
    struct str old_node = STR_NONE;
    if (slice == NULL) {
        slice = MEM_NEW(struct slice_state);
        slice->name = str_own(name);
        HASH_ADD_KEYPTR(hh, core->slices, slice->name.ptr, (unsigned)slice->name.len, slice);
    } else {
        struct resource_slice same = *object;
        same.meta = slice->object->meta;
        if (object_equal(kind_info(KIND_RESOURCE_SLICE)->schema, &same, slice->object)) {
            return; /* a touch */
        }
        old_pool = slice->pool;
        slice_unlink(slice);
        wake_for_pool(core, old_pool);
        pool_clear(core, old_pool); /* its devices point into the old clone */
        slice_count(core, slice->object, false);
        old_node = arena_copy_str(&core->scratch, slice->object->spec.node_name);
        mem_free(slice->object);
    }
    slice->object = object_clone(kind_info(KIND_RESOURCE_SLICE)->schema, object);
    slice_count(core, slice->object, true);
    slice->pool = pool_get(core, &object->spec);
    slice->next_in_pool = slice->pool->slices;
    slice->pool->slices = slice;
    asks_for_all_changed(core);
    pool_renew(core, slice->pool);
    if (old_pool != NULL && old_pool != slice->pool) {
        pool_renew(core, old_pool);
    }
    node_review_listed(core, object->spec.node_name);
    node_review_listed(core, old_node);
}

void slice_deleted(struct core *core, const struct resource_slice *object)
{
    struct slice_state *slice = NULL;
    struct str name = object->meta.name;
    HASH_FIND(hh, core->slices, name.ptr, (unsigned)name.len, slice);
    if (slice == NULL) {
        return;
    }
    struct pool_state *pool = slice->pool;
    HASH_DEL(core->slices, slice);
    slice_unlink(slice);
    wake_for_pool(core, pool);
    pool_clear(core, pool);
    slice_count(core, slice->object, false);
    struct str node_name = arena_copy_str(&core->scratch, slice->object->spec.node_name);
    mem_free(slice->object);
    str_drop(&slice->name);
    mem_free(slice);
    asks_for_all_changed(core);
    pool_renew(core, pool);
    node_review_listed(core, node_name);
}

struct str pools_trouble(const struct core *core, struct arena *arena)
{
    const struct pool_state *first = NULL;
    struct pool_state *pool;
    struct pool_state *next;
    HASH_ITER (hh, core->pools, pool, next) {
        bool is_first = first == NULL || str_compare(pool->key, first->key) < 0;
        first = pool->problem != NULL && is_first ? pool : first;
    }
    return first == NULL ? STR_NONE
                         : arena_format(arena, "pool " STR_FMT " gives none: %s",
                                        STR_ARG(first->key), first->problem);
}

void devices_free(struct core *core)
{
    struct slice_state *slice;
    struct slice_state *next;
    HASH_ITER (hh, core->slices, slice, next) {
        slice_deleted(core, slice->object);
    }
    table_deinit(&core->devices_by_key);
    mem_free(core->devices);
    mem_free(core->roaming);
}
