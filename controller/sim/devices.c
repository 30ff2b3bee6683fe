/* devices.c - which devices there are, and which of them some claim holds. */
#include "sim_internal.h"

#include <stdlib.h>

#include "tallyman/base/alloc.h"

/* What the shares of a device take of one of its capacities. */
struct used_capacity {
    struct str name; /* owned */
    i128 nano;
};

struct used_key {
    struct str key; /* owned */
    uint32_t count;
    uint32_t whole_count;             /* of them, those that are no shares */
    struct used_capacity *capacities; /* owned */
    uint32_t capacity_count;
    uint32_t capacity_room;
    UT_hash_handle hh;
};

struct cached_program {
    struct str expression;       /* owned */
    struct cel_program *program; /* owned; NULL: it can't be compiled */
    UT_hash_handle hh;
};

static struct str own(struct str s)
{
    char *copy = mem_alloc(s.len + 1);
    memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return (struct str){copy, s.len};
}

static void drop(struct str s)
{
    mem_free((void *)(uintptr_t)s.ptr);
}

/* -- in use ---------------------------------------------------------------------------------------
 */

static struct used_key *used_find(const struct sim *sim, struct str key)
{
    struct used_key *used = NULL;
    HASH_FIND(hh, sim->used_keys, key.ptr, (unsigned)key.len, used);
    return used;
}

uint32_t device_use_count(const struct sim *sim, struct str key)
{
    const struct used_key *used = used_find(sim, key);
    return used == NULL ? 0 : used->count;
}

bool device_is_used_whole(const struct sim *sim, struct str key)
{
    const struct used_key *used = used_find(sim, key);
    return used != NULL && used->whole_count > 0;
}

static struct str result_key(struct sim *sim, const struct allocation_result *result)
{
    return arena_format(&sim->scratch, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(result->driver),
                        STR_ARG(result->pool), STR_ARG(result->device));
}

static struct used_capacity *capacity_find(const struct used_key *used, struct str name)
{
    for (uint32_t i = 0; i < used->capacity_count; i++) {
        if (str_eq(used->capacities[i].name, name)) {
            return &used->capacities[i];
        }
    }
    return NULL;
}

i128 device_capacity_used(const struct sim *sim, struct str key, struct str capacity)
{
    const struct used_key *used = used_find(sim, key);
    const struct used_capacity *found = used == NULL ? NULL : capacity_find(used, capacity);
    return found == NULL ? 0 : found->nano;
}

static void count_capacities(struct used_key *used, const struct resource_list *taken, int sign)
{
    for (uint32_t i = 0; i < taken->count; i++) {
        struct used_capacity *capacity = capacity_find(used, taken->items[i].name);
        if (capacity == NULL) {
            used->capacities = mem_grow(used->capacities, used->capacity_count,
                                        &used->capacity_room, sizeof(*used->capacities));
            capacity = &used->capacities[used->capacity_count++];
            *capacity = (struct used_capacity){.name = own(taken->items[i].name)};
        }
        capacity->nano += sign * taken->items[i].value.nano;
    }
}

static void used_free(struct sim *sim, struct used_key *used)
{
    HASH_DEL(sim->used_keys, used);
    for (uint32_t i = 0; i < used->capacity_count; i++) {
        drop(used->capacities[i].name);
    }
    mem_free(used->capacities);
    drop(used->key);
    mem_free(used);
}

static void count_claim(struct sim *sim, const struct resource_claim *claim, bool is_added)
{
    if (claim == NULL || claim->status.allocation == NULL) {
        return;
    }
    const struct allocation_result_list *results = &claim->status.allocation->devices.results;
    for (uint32_t i = 0; i < results->count; i++) {
        if (results->items[i].admin_access.is_set && results->items[i].admin_access.value) {
            continue;
        }
        struct str key = result_key(sim, &results->items[i]);
        struct used_key *used = used_find(sim, key);
        if (used == NULL) {
            used = MEM_NEW(struct used_key);
            used->key = own(key);
            HASH_ADD_KEYPTR(hh, sim->used_keys, used->key.ptr, (unsigned)used->key.len, used);
            sim->used_key_count++;
        }
        used->count += is_added ? 1 : UINT32_MAX;
        if (str_is_empty(results->items[i].share_id)) {
            used->whole_count += is_added ? 1 : UINT32_MAX;
        }
        count_capacities(used, &results->items[i].consumed_capacity, is_added ? 1 : -1);
        if (used->count == 0) {
            used_free(sim, used);
            sim->used_key_count--;
        }
    }
}

void devices_claim_changed(struct sim *sim, const struct resource_claim *old,
                           const struct resource_claim *now)
{
    count_claim(sim, now, true);
    count_claim(sim, old, false);
}

/* -- what exists ----------------------------------------------------------------------------------
 */

static bool same_pool(const struct resource_slice *a, const struct resource_slice *b)
{
    return str_eq(a->spec.driver, b->spec.driver) && str_eq(a->spec.pool.name, b->spec.pool.name);
}

/* Whether it belongs to its pool's newest generation, and that is complete. */
static bool slice_counts(const struct sim *sim, const struct resource_slice *slice)
{
    int64_t seen = 0;
    for (struct sim_object *object = api_first(sim, KIND_RESOURCE_SLICE); object != NULL;
         object = api_next(object)) {
        const struct resource_slice *other = object->value;
        if (!same_pool(slice, other)) {
            continue;
        }
        if (other->spec.pool.generation.value > slice->spec.pool.generation.value) {
            return false;
        }
        if (other->spec.pool.generation.value == slice->spec.pool.generation.value) {
            seen++;
            if (other->spec.pool.resource_slice_count.value !=
                slice->spec.pool.resource_slice_count.value) {
                return false;
            }
        }
    }
    return seen == slice->spec.pool.resource_slice_count.value;
}

static int compare_device(const void *a, const void *b)
{
    return str_compare(((const struct sim_device *)a)->key, ((const struct sim_device *)b)->key);
}

static void list_clear(struct device_list_cache *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        drop(list->items[i].key);
    }
    list->count = 0;
}

const struct device_list_cache *devices_list(struct sim *sim)
{
    struct device_list_cache *list = &sim->devices;
    if (!list->is_stale) {
        return list;
    }
    list_clear(list);
    list->is_stale = false;
    for (struct sim_object *object = api_first(sim, KIND_RESOURCE_SLICE); object != NULL;
         object = api_next(object)) {
        const struct resource_slice *slice = object->value;
        if (!slice_counts(sim, slice)) {
            continue;
        }
        for (uint32_t i = 0; i < slice->spec.devices.count; i++) {
            const struct device *device = &slice->spec.devices.items[i];
            struct allocation_result name = {.driver = slice->spec.driver,
                                             .pool = slice->spec.pool.name,
                                             .device = device->name};
            list->items =
                mem_grow(list->items, list->count, &list->capacity, sizeof(struct sim_device));
            list->items[list->count++] =
                (struct sim_device){own(result_key(sim, &name)), slice, device};
        }
    }
    if (list->count > 1) {
        qsort(list->items, list->count, sizeof(*list->items), compare_device);
    }
    return list;
}

void devices_slices_changed(struct sim *sim)
{
    sim->devices.is_stale = true;
}

bool device_is_at_node(const struct sim_device *device, const struct node *node)
{
    const struct resource_slice_spec *spec = &device->slice->spec;
    bool is_per_device =
        spec->per_device_node_selection.is_set && spec->per_device_node_selection.value;
    struct str node_name = is_per_device ? device->device->node_name : spec->node_name;
    const struct node_selector *selector =
        is_per_device ? device->device->node_selector : spec->node_selector;
    struct opt_bool all = is_per_device ? device->device->all_nodes : spec->all_nodes;
    if (!str_is_empty(node_name)) {
        return str_eq(node_name, node->meta.name);
    }
    if (selector != NULL) {
        return node_selector_matches(selector, &node->meta.labels, node->meta.name);
    }
    return all.is_set && all.value;
}

/* -- counters of partitionable devices ------------------------------------------------------------
 */

static i128 consumption(const struct device *device, struct str set, struct str counter)
{
    i128 sum = 0;
    for (uint32_t i = 0; i < device->consumes_counters.count; i++) {
        const struct counter_consumption *part = &device->consumes_counters.items[i];
        for (uint32_t j = 0; str_eq(part->counter_set, set) && j < part->counters.count; j++) {
            if (str_eq(part->counters.items[j].key, counter)) {
                sum += part->counters.items[j].value.value.nano;
            }
        }
    }
    return sum;
}

/* False: no such counter. */
static bool counter_capacity(const struct sim *sim, const struct resource_slice *slice,
                             struct str set, struct str counter, i128 *ret_nano)
{
    for (struct sim_object *object = api_first(sim, KIND_RESOURCE_SLICE); object != NULL;
         object = api_next(object)) {
        const struct resource_slice *other = object->value;
        if (!same_pool(slice, other) ||
            other->spec.pool.generation.value != slice->spec.pool.generation.value) {
            continue;
        }
        for (uint32_t i = 0; i < other->spec.shared_counters.count; i++) {
            const struct counter_set *have = &other->spec.shared_counters.items[i];
            for (uint32_t j = 0; str_eq(have->name, set) && j < have->counters.count; j++) {
                if (str_eq(have->counters.items[j].key, counter)) {
                    *ret_nano = have->counters.items[j].value.value.nano;
                    return true;
                }
            }
        }
    }
    return false;
}

/* A shared device draws on its counters once, with its first share. */
static bool draws_anew(const struct sim *sim, const struct sim_device *const *chosen, uint32_t at)
{
    bool is_first =
        !device_is_shareable(chosen[at]->device) || device_use_count(sim, chosen[at]->key) == 0;
    for (uint32_t i = 0; i < at && device_is_shareable(chosen[at]->device); i++) {
        is_first = is_first && chosen[i] != chosen[at];
    }
    return is_first;
}

static i128 counter_used(struct sim *sim, const struct sim_device *device, struct str set,
                         struct str counter, const struct sim_device *const *chosen,
                         uint32_t chosen_count)
{
    i128 used = 0;
    for (uint32_t i = 0; i < chosen_count; i++) {
        if (same_pool(chosen[i]->slice, device->slice) && draws_anew(sim, chosen, i)) {
            used += consumption(chosen[i]->device, set, counter);
        }
    }
    const struct device_list_cache *list = devices_list(sim);
    for (uint32_t i = 0; i < list->count; i++) {
        if (same_pool(list->items[i].slice, device->slice) &&
            device_use_count(sim, list->items[i].key) > 0) {
            used += consumption(list->items[i].device, set, counter);
        }
    }
    return used;
}

bool device_counters_allow(struct sim *sim, const struct sim_device *device,
                           const struct sim_device *const *chosen, uint32_t chosen_count)
{
    bool is_shared = device_is_shareable(device->device) && device_use_count(sim, device->key) > 0;
    for (uint32_t i = 0; i < chosen_count && device_is_shareable(device->device); i++) {
        is_shared = is_shared || chosen[i] == device;
    }
    for (uint32_t i = 0; i < device->device->consumes_counters.count && !is_shared; i++) {
        const struct counter_consumption *part = &device->device->consumes_counters.items[i];
        for (uint32_t j = 0; j < part->counters.count; j++) {
            struct str counter = part->counters.items[j].key;
            i128 capacity;
            if (!counter_capacity(sim, device->slice, part->counter_set, counter, &capacity)) {
                return false;
            }
            i128 used = counter_used(sim, device, part->counter_set, counter, chosen, chosen_count);
            if (used + consumption(device->device, part->counter_set, counter) > capacity) {
                return false;
            }
        }
    }
    return true;
}

/* -- expressions ----------------------------------------------------------------------------------
 */

const struct cel_program *devices_program(struct sim *sim, struct str expression)
{
    struct cached_program *cached = NULL;
    HASH_FIND(hh, sim->programs, expression.ptr, (unsigned)expression.len, cached);
    if (cached == NULL) {
        cached = MEM_NEW(struct cached_program);
        cached->expression = own(expression);
        if (rc_failed(cel_compile(expression, &cached->program, NULL))) {
            cached->program = NULL;
        }
        HASH_ADD_KEYPTR(hh, sim->programs, cached->expression.ptr, (unsigned)cached->expression.len,
                        cached);
    }
    return cached->program;
}

void devices_forget(struct sim *sim)
{
    list_clear(&sim->devices);
    mem_free(sim->devices.items);
    struct used_key *used;
    struct used_key *next_used;
    HASH_ITER (hh, sim->used_keys, used, next_used) {
        used_free(sim, used);
    }
    struct cached_program *cached;
    struct cached_program *next_cached;
    HASH_ITER (hh, sim->programs, cached, next_cached) {
        HASH_DEL(sim->programs, cached);
        drop(cached->expression);
        cel_program_free(cached->program);
        mem_free(cached);
    }
}
