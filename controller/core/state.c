/* state.c - the orders, the trees and the amount vectors of state.h. */
#include "state.h"

#include <assert.h>
#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int gang_compare_uid(const struct gang *a, const struct gang *b)
{
    if (a->uid_start != b->uid_start) {
        return a->uid_start < b->uid_start ? -1 : 1;
    }
    return str_compare(a->uid, b->uid);
}

int gang_compare_order(const struct gang *a, const struct gang *b)
{
    int by_priority = compare_i64(b->priority, a->priority);
    if (by_priority != 0) {
        return by_priority;
    }
    int by_time = compare_i64(a->order_ms, b->order_ms);
    return by_time != 0 ? by_time : gang_compare_uid(a, b);
}

int gang_compare_timer(const struct gang *a, const struct gang *b)
{
    int by_time = compare_i64(a->timer_ms, b->timer_ms);
    return by_time != 0 ? by_time : gang_compare_uid(a, b);
}

int gang_compare_admitted(const struct gang *a, const struct gang *b)
{
    int by_time = compare_i64(a->admitted_ms, b->admitted_ms);
    return by_time != 0 ? by_time : gang_compare_uid(a, b);
}

int shape_compare_head(const struct shape *a, const struct shape *b)
{
    /* A shape is in the tree only while it has gangs; one gang has one shape, so this is total. */
    assert(a->first != NULL && b->first != NULL);
    return gang_compare_order(a->first, b->first);
}

int queue_compare_name(const struct queue_state *a, const struct queue_state *b)
{
    return str_compare(a->name, b->name);
}

int queue_compare_due(const struct queue_state *a, const struct queue_state *b)
{
    int by_time = compare_i64(a->due_ms, b->due_ms);
    return by_time != 0 ? by_time : str_compare(a->name, b->name);
}

int node_compare_name(const struct node_state *a, const struct node_state *b)
{
    return str_compare(a->name, b->name);
}

int device_compare_key(const struct device_state *a, const struct device_state *b)
{
    return str_compare(a->key, b->key);
}

RB_GENERATE(shape_tree, shape, by_head, shape_compare_head)
RB_GENERATE(queue_tree, queue_state, by_name, queue_compare_name)
RB_GENERATE(ready_tree, queue_state, by_ready, queue_compare_name)
RB_GENERATE(queue_due_tree, queue_state, by_due, queue_compare_due)
RB_GENERATE(node_tree, node_state, by_name, node_compare_name)
RB_GENERATE(device_tree, device_state, by_key, device_compare_key)
RB_GENERATE(ailing_tree, device_state, among_ailing, device_compare_key)

struct str str_own(struct str s)
{
    if (!str_is_set(s)) {
        return STR_NONE;
    }
    char *copy = mem_alloc(s.len + 1);
    memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return (struct str){copy, s.len};
}

void str_drop(struct str *s)
{
    mem_free((void *)(uintptr_t)s->ptr);
    *s = STR_NONE;
}

void str_replace(struct str *s, struct str with)
{
    struct str copy = str_own(with);
    str_drop(s);
    *s = copy;
}

struct string_map string_map_own(const struct string_map *map)
{
    struct string_map copy = {.count = map->count};
    if (copy.count == 0) {
        return copy;
    }
    copy.items = mem_zalloc(map->count * sizeof(struct string_pair));
    for (uint32_t i = 0; i < map->count; i++) {
        copy.items[i].key = str_own(map->items[i].key);
        copy.items[i].value = str_own(map->items[i].value);
    }
    return copy;
}

void string_map_drop(struct string_map *map)
{
    for (uint32_t i = 0; i < map->count; i++) {
        str_drop(&map->items[i].key);
        str_drop(&map->items[i].value);
    }
    mem_free(map->items);
    *map = (struct string_map){.items = NULL};
}

struct str key_join(struct arena *arena, struct str namespace_name, struct str name)
{
    return arena_format(arena, STR_FMT "/" STR_FMT, STR_ARG(namespace_name), STR_ARG(name));
}

struct str resource_find(const struct core *core, struct str name)
{
    struct resource_name *found = NULL;
    HASH_FIND(hh, core->resource_names, name.ptr, (unsigned)name.len, found);
    return found == NULL ? STR_NONE : found->text;
}

struct str resource_intern(struct core *core, struct str name)
{
    struct str known = resource_find(core, name);
    if (str_is_set(known) || HASH_COUNT(core->resource_names) >= RESOURCE_NAMES_MAX) {
        return known;
    }
    struct resource_name *entry = MEM_NEW(struct resource_name);
    entry->text = str_own(name);
    HASH_ADD_KEYPTR(hh, core->resource_names, entry->text.ptr, (unsigned)entry->text.len, entry);
    return entry->text;
}

struct str resource_intern_of_pod(struct core *core, struct str name)
{
    bool is_half_full = HASH_COUNT(core->resource_names) >= RESOURCE_NAMES_MAX / 2;
    return is_half_full ? resource_find(core, name) : resource_intern(core, name);
}

/* The index of the name, or where it would stand. */
static uint32_t vector_place(const struct vector *v, struct str resource, bool *ret_found)
{
    uint32_t i = 0;
    for (; i < v->count; i++) {
        int order = str_compare(v->items[i].resource, resource);
        if (order >= 0) {
            *ret_found = order == 0;
            return i;
        }
    }
    *ret_found = false;
    return i;
}

i128 vector_get(const struct vector *v, struct str resource)
{
    bool is_found;
    uint32_t i = vector_place(v, resource, &is_found);
    return is_found ? v->items[i].value : 0;
}

void vector_add(struct vector *v, struct str resource, i128 delta)
{
    bool is_found;
    uint32_t i = vector_place(v, resource, &is_found);
    if (!is_found) {
        if (delta == 0) {
            return;
        }
        v->items = mem_grow(v->items, v->count, &v->capacity, sizeof(*v->items));
        memmove(&v->items[i + 1], &v->items[i], (v->count - i) * sizeof(*v->items));
        v->items[i] = (struct vector_item){.resource = resource, .value = 0};
        v->count++;
    }
    v->items[i].value += delta;
    assert(v->items[i].value >= 0);
}

void vector_add_all(struct vector *v, const struct vector *other, int64_t times)
{
    for (uint32_t i = 0; i < other->count; i++) {
        vector_add(v, other->items[i].resource, other->items[i].value * times);
    }
}

void vector_clear(struct vector *v)
{
    v->count = 0;
}

void vector_deinit(struct vector *v)
{
    mem_free(v->items);
    *v = (struct vector){.items = NULL};
}

bool vector_equal(const struct vector *a, const struct vector *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        if (!str_eq(a->items[i].resource, b->items[i].resource) ||
            a->items[i].value != b->items[i].value) {
            return false;
        }
    }
    return true;
}

int64_t i128_clamp(i128 value)
{
    if (value > INT64_MAX) {
        return INT64_MAX;
    }
    return value < INT64_MIN ? INT64_MIN : (int64_t)value;
}
