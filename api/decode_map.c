/* decode_map.c - what lists and maps have in common, and a key that is given twice in a map. */
#include "decode_map.h"

#include <stdlib.h>
#include <string.h>

#include "tallyman/api/quantity.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

struct keyed_place {
    struct str key;
    uint32_t index;
};

static int keyed_place_compare(const void *a, const void *b)
{
    const struct keyed_place *left = a;
    const struct keyed_place *right = b;
    int order = str_compare(left->key, right->key);

    return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

/* All items of maps begin with their key. */
static struct str item_key(const struct any_list *list, uint32_t index, size_t bytes)
{
    struct str key;

    memcpy(&key, (const char *)list->items + index * bytes, sizeof(key));
    return key;
}

static bool map_has_duplicate(const struct any_list *list, size_t bytes)
{
    for (uint32_t i = 1; i < list->count; i++) {
        struct str key = item_key(list, i, bytes);

        for (uint32_t j = 0; j < i; j++) {
            if (str_eq(key, item_key(list, j, bytes))) {
                return true;
            }
        }
    }
    return false;
}

static void drop_by_sorting(struct arena *arena, struct any_list *list, size_t bytes)
{
    struct keyed_place *places = ARENA_ARRAY(arena, struct keyed_place, list->count);
    bool *is_dropped = ARENA_ARRAY(arena, bool, list->count);
    char *items = list->items;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        places[i] = (struct keyed_place){item_key(list, i, bytes), i};
    }
    qsort(places, list->count, sizeof(places[0]), keyed_place_compare);
    for (uint32_t i = 1; i < list->count; i++) {
        is_dropped[places[i - 1].index] = str_eq(places[i - 1].key, places[i].key);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        if (!is_dropped[i]) {
            memmove(items + kept * bytes, items + i * bytes, bytes);
            kept++;
        }
    }
    list->count = kept;
}

void map_drop_duplicates(struct arena *arena, struct any_list *list, size_t item_bytes)
{
    if (list->count < 2) {
        return;
    }
    /* Comparing each with each is the faster way for the handful that a map usually has. */
    if (list->count > DECODE_MAP_SMALL_ITEMS || map_has_duplicate(list, item_bytes)) {
        drop_by_sorting(arena, list, item_bytes);
    }
}

size_t field_item_bytes(const struct field *field)
{
    switch (field->kind) {
    case FIELD_STRING_LIST:
        return sizeof(struct str);
    case FIELD_STRING_MAP:
        return sizeof(struct string_pair);
    case FIELD_RESOURCE_LIST:
        return sizeof(struct resource_amount);
    case FIELD_OBJECT_LIST:
    case FIELD_OBJECT_MAP:
        return field->schema->bytes;
    case FIELD_STRING:
    case FIELD_BOOL:
    case FIELD_INT:
    case FIELD_QUANTITY:
    case FIELD_TIME:
    case FIELD_DURATION:
    case FIELD_OBJECT:
    case FIELD_OBJECT_PTR:
        break;
    }
    mem_die("a field without items has been asked for its items");
}
