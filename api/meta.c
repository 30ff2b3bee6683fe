/* meta.c - look-ups in what all objects share. */
#include "tallyman/api/meta.h"

struct str string_map_find(const struct string_map *map, struct str key)
{
    for (uint32_t i = 0; i < map->count; i++) {
        if (str_eq(map->items[i].key, key)) {
            return map->items[i].value;
        }
    }
    return STR_NONE;
}

struct str string_map_get(const struct string_map *map, const char *key)
{
    return string_map_find(map, str_from_c(key));
}

const struct condition *condition_find(const struct condition_list *list, const char *type)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (str_eq_c(list->items[i].type, type)) {
            return &list->items[i];
        }
    }
    return NULL;
}

bool condition_is_true(const struct condition_list *list, const char *type)
{
    const struct condition *condition = condition_find(list, type);

    return condition != NULL && str_eq_c(condition->status, "True");
}

const struct owner_reference *meta_controller(const struct object_meta *meta)
{
    for (uint32_t i = 0; i < meta->owner_references.count; i++) {
        const struct owner_reference *owner = &meta->owner_references.items[i];

        if (owner->controller.is_set && owner->controller.value) {
            return owner;
        }
    }
    return NULL;
}
