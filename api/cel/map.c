/* Maps keep the order of insertion; past a few entries they have an index. */
#include <math.h>
#include <string.h>

#include "eval.h"
#include "tallyman/base/limits.h"

#define LINEAR_MAX 8u

/* Keys as Go has them: the kind counts, so 1 and 1u are two keys. */
static bool is_same_key(struct cel_value a, struct cel_value b)
{
    if (a.kind != b.kind) {
        return false;
    }
    switch ((int)a.kind) {
    case CEL_BOOL:
        return a.boolean == b.boolean;
    case CEL_INT:
        return a.integer == b.integer;
    case CEL_UINT:
        return a.uinteger == b.uinteger;
    case CEL_DOUBLE:
        return a.real == b.real;
    case CEL_STRING:
    case CEL_TYPE:
        return str_eq(a.text, b.text);
    case CEL_DURATION:
        return a.duration_ns == b.duration_ns;
    case CEL_TIMESTAMP:
        return a.time.seconds == b.time.seconds && a.time.nanos == b.time.nanos &&
               a.time.offset_s == b.time.offset_s;
    case CEL_NULL:
        return true;
    default:
        return a.list == b.list;
    }
}

static uint64_t key_hash(struct cel_value key)
{
    uint64_t bits = 0;
    switch ((int)key.kind) {
    case CEL_STRING:
    case CEL_TYPE:
        return str_hash(key.text, 1);
    case CEL_DOUBLE:
        key.real = key.real == 0 ? 0 : key.real;
        memcpy(&bits, &key.real, sizeof(bits));
        break;
    case CEL_BOOL:
        bits = key.boolean ? 1 : 0;
        break;
    case CEL_TIMESTAMP:
        bits = (uint64_t)key.time.seconds;
        break;
    case CEL_NULL:
        break;
    default:
        bits = key.uinteger;
        break;
    }
    return (bits ^ (uint64_t)key.kind << 56) * 0x9e3779b97f4a7c15u;
}

static uint32_t first_place(const struct cel_map_buffer *buffer, struct cel_value key)
{
    return (uint32_t)(key_hash(key) >> 32) & (buffer->index_size - 1);
}

static uint32_t find_entry(struct cel_eval *ev, const struct cel_map *map, struct cel_value key)
{
    const struct cel_map_buffer *buffer = map->buffer;
    if (buffer->index == NULL) {
        for (uint32_t i = 0; i < map->count; i++) {
            if (is_same_key(buffer->entries[i].key, key)) {
                return i;
            }
        }
        return UINT32_MAX;
    }
    for (uint32_t place = first_place(buffer, key); buffer->index[place] != 0;
         place = (place + 1) & (buffer->index_size - 1)) {
        uint32_t entry = buffer->index[place] - 1;
        if (!cel_work(ev, 1)) {
            return UINT32_MAX;
        }
        if (is_same_key(buffer->entries[entry].key, key)) {
            return entry < map->count ? entry : UINT32_MAX;
        }
    }
    return UINT32_MAX;
}

static void index_add(struct cel_map_buffer *buffer, uint32_t entry)
{
    uint32_t place = first_place(buffer, buffer->entries[entry].key);
    while (buffer->index[place] != 0) {
        place = (place + 1) & (buffer->index_size - 1);
    }
    buffer->index[place] = entry + 1;
}

/* A buffer with the map's entries and room for more; NULL: out of bounds. */
static struct cel_map_buffer *copy_buffer(struct cel_eval *ev, const struct cel_map *map,
                                          uint32_t capacity)
{
    struct cel_map_buffer *buffer = cel_alloc(ev, 1, sizeof(*buffer));
    struct cel_entry *entries = cel_alloc(ev, capacity, sizeof(*entries));
    if (buffer == NULL || entries == NULL || !cel_work(ev, capacity)) {
        return NULL;
    }
    buffer->entries = entries;
    buffer->capacity = capacity;
    if (capacity > LINEAR_MAX) {
        buffer->index_size = LINEAR_MAX;
        while (buffer->index_size < 2 * capacity) {
            buffer->index_size *= 2;
        }
        buffer->index = cel_alloc(ev, buffer->index_size, sizeof(*buffer->index));
        if (buffer->index == NULL) {
            return NULL;
        }
    }
    for (uint32_t i = 0; map != NULL && i < map->count; i++) {
        buffer->entries[buffer->used++] = map->buffer->entries[i];
        if (buffer->index != NULL) {
            index_add(buffer, i);
        }
    }
    return buffer;
}

static struct cel_value map_value(struct cel_eval *ev, struct cel_map_buffer *buffer,
                                  uint32_t count)
{
    struct cel_map *map = cel_alloc(ev, 1, sizeof(*map));
    if (map == NULL || buffer == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    *map = (struct cel_map){.kind = CEL_MAP_ENTRIES, .count = count, .buffer = buffer};
    return (struct cel_value){.kind = CEL_MAP, .map = map};
}

struct cel_value cel_map_new(struct cel_eval *ev, uint32_t capacity)
{
    struct cel_map_buffer *buffer = copy_buffer(ev, NULL, capacity == 0 ? 1 : capacity);
    return map_value(ev, buffer, 0);
}

struct cel_value cel_map_put(struct cel_eval *ev, const struct cel_map *map, struct cel_value key,
                             struct cel_value value)
{
    uint32_t found = find_entry(ev, map, key);
    struct cel_map_buffer *buffer = map->buffer;
    uint32_t count = map->count;
    if (found != UINT32_MAX || buffer->used != count || buffer->used == buffer->capacity) {
        if (count > CEL_WORK_MAX / 4) {
            return cel_stop(ev, RC_LIMIT, "a map has too many entries");
        }
        buffer = copy_buffer(ev, map, count < LINEAR_MAX / 2 ? LINEAR_MAX : 2 * count);
    }
    if (buffer == NULL || ev->stop != RC_OK) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    if (found != UINT32_MAX) {
        buffer->entries[found].value = value;
        return map_value(ev, buffer, count);
    }
    buffer->entries[buffer->used++] = (struct cel_entry){key, value};
    if (buffer->index != NULL) {
        index_add(buffer, count);
    }
    return map_value(ev, buffer, count + 1);
}

struct cel_value cel_map_drop(struct cel_eval *ev, const struct cel_map *map, struct cel_value key)
{
    uint32_t found = find_entry(ev, map, key);
    struct cel_value result = cel_map_new(ev, map->count);
    if (found == UINT32_MAX) {
        return (struct cel_value){.kind = CEL_MAP, .map = map};
    }
    for (uint32_t i = 0; i < map->count && !cel_is_error(result); i++) {
        if (i != found) {
            struct cel_entry entry = map->buffer->entries[i];
            result = cel_map_put(ev, result.map, entry.key, entry.value);
        }
    }
    return result;
}

static bool find_exact(struct cel_eval *ev, const struct cel_map *map, struct cel_value key,
                       struct cel_value *ret_value)
{
    uint32_t entry = find_entry(ev, map, key);
    if (entry == UINT32_MAX) {
        return false;
    }
    *ret_value = map->buffer->entries[entry].value;
    return true;
}

/* 1.0 finds 1 and 1u, 1 finds 1u, 1u finds 1; an int never finds a double, as in cel-go. */
static bool find_number(struct cel_eval *ev, const struct cel_map *map, struct cel_value key,
                        struct cel_value *ret_value)
{
    double d = key.real;
    switch ((int)key.kind) {
    case CEL_DOUBLE:
        if (d > -0x1p63 && d < 0x1p63 && trunc(d) == d &&
            find_exact(ev, map, cel_int((int64_t)d), ret_value)) {
            return true;
        }
        return d >= 0 && d < 0x1p64 && trunc(d) == d &&
               find_exact(ev, map, cel_uint((uint64_t)d), ret_value);
    case CEL_INT:
        return key.integer >= 0 && find_exact(ev, map, cel_uint((uint64_t)key.integer), ret_value);
    case CEL_UINT:
        return key.uinteger <= INT64_MAX &&
               find_exact(ev, map, cel_int((int64_t)key.uinteger), ret_value);
    default:
        return false;
    }
}

bool cel_map_find(struct cel_eval *ev, const struct cel_map *map, struct cel_value key,
                  struct cel_value *ret_value)
{
    if (map->kind != CEL_MAP_ENTRIES) {
        if (key.kind != CEL_STRING) {
            /* Whatever the key, attributes and capacity answer with an empty map. */
            *ret_value = cel_map_new(ev, 0);
            return map->kind == CEL_MAP_DOMAINS;
        }
        return cel_device_map_find(ev, map, key.text, ret_value);
    }
    if (map->count == 0) {
        return false;
    }
    if (key.kind == CEL_BYTES || key.kind == CEL_SEMVER) {
        (void)cel_stop(ev, RC_INVALID, "bytes and versions can't be a map's key");
        return false;
    }
    return find_exact(ev, map, key, ret_value) || find_number(ev, map, key, ret_value);
}

bool cel_map_contains(struct cel_eval *ev, const struct cel_map *map, struct cel_value key)
{
    struct cel_value value;
    if (map->kind == CEL_MAP_DOMAINS) {
        return key.kind == CEL_STRING && cel_device_map_has_domain(ev, map, key.text);
    }
    return cel_map_find(ev, map, key, &value);
}

const struct cel_map *cel_map_entries(struct cel_eval *ev, const struct cel_map *map)
{
    if (map->kind == CEL_MAP_ENTRIES) {
        return map;
    }
    struct cel_value listed = cel_device_map_list(ev, map);
    return listed.kind == CEL_MAP ? listed.map : NULL;
}
