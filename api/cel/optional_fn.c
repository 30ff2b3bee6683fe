#include "impl.h"

static struct cel_value optional(const struct cel_value *value)
{
    return (struct cel_value){.kind = CEL_OPTIONAL, .optional = value};
}

struct cel_value cel_has_value(struct cel_eval *ev, UNUSED const struct cel_node *node,
                               const struct cel_value *args, UNUSED uint32_t count)
{
    return args[0].kind == CEL_OPTIONAL ? cel_bool(args[0].optional != NULL) : cel_no_overload(ev);
}

struct cel_value cel_optional_none(UNUSED struct cel_eval *ev, UNUSED const struct cel_node *node,
                                   UNUSED const struct cel_value *args, UNUSED uint32_t count)
{
    return optional(NULL);
}

struct cel_value cel_optional_of(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                 const struct cel_value *args, UNUSED uint32_t count)
{
    const struct cel_value *box = cel_box(ev, args[0]);
    return box == NULL ? cel_stop(ev, RC_LIMIT, NULL) : optional(box);
}

static bool is_zero(struct cel_eval *ev, struct cel_value value)
{
    switch ((int)value.kind) {
    case CEL_NULL:
        return true;
    case CEL_BOOL:
        return !value.boolean;
    case CEL_INT:
    case CEL_UINT:
    case CEL_DURATION:
        return value.integer == 0;
    case CEL_DOUBLE:
        return value.real == 0;
    case CEL_STRING:
    case CEL_BYTES:
    case CEL_LIST:
    case CEL_MAP:
        return cel_size_cost(ev, value) == 0;
    case CEL_TIMESTAMP:
        return value.time.seconds == -62135596800 && value.time.nanos == 0;
    default:
        return false;
    }
}

struct cel_value cel_optional_of_non_zero(struct cel_eval *ev, const struct cel_node *node,
                                          const struct cel_value *args, uint32_t count)
{
    /* The maps that only look up don't say that they are empty. */
    bool is_domains = args[0].kind == CEL_MAP && args[0].map->kind == CEL_MAP_DOMAINS;
    return !is_domains && is_zero(ev, args[0]) ? optional(NULL)
                                               : cel_optional_of(ev, node, args, count);
}

struct cel_value cel_optional_unwrap(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                     const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_LIST) {
        return cel_no_overload(ev);
    }
    const struct cel_list *list = args[0].list;
    struct cel_value *items = cel_list_items(ev, list->count);
    uint32_t kept = 0;
    for (uint32_t i = 0; items != NULL && i < list->count; i++) {
        if (list->items[i].kind != CEL_OPTIONAL) {
            return cel_fault(ev, "every element must be an optional, this is a",
                             cel_kind_name(list->items[i].kind));
        }
        if (list->items[i].optional != NULL) {
            items[kept++] = *list->items[i].optional;
        }
    }
    return items == NULL ? cel_stop(ev, RC_LIMIT, NULL) : cel_list_value(ev, items, kept);
}

struct cel_value cel_optional_value(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                    const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_OPTIONAL) {
        return cel_no_overload(ev);
    }
    return args[0].optional != NULL ? *args[0].optional
                                    : cel_fault(ev, "this optional has no value", STR_NONE);
}

/* transformMap(): a key may come once only. */
static struct cel_value insert(struct cel_eval *ev, const struct cel_map *map, struct cel_value key,
                               struct cel_value value)
{
    if (key.kind == CEL_BYTES || key.kind == CEL_SEMVER) {
        return cel_stop(ev, RC_INVALID, "bytes and versions can't be a map's key");
    }
    if (cel_map_contains(ev, map, key)) {
        return cel_fault(ev, "this key is in the map already", STR_NONE);
    }
    return ev->stop == RC_OK ? cel_map_put(ev, map, key, value) : cel_stop(ev, RC_LIMIT, NULL);
}

struct cel_value cel_map_insert(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                const struct cel_value *args, uint32_t count)
{
    if (args[0].kind != CEL_MAP || args[0].map->kind != CEL_MAP_ENTRIES) {
        return cel_no_overload(ev);
    }
    if (count == 3) {
        return insert(ev, args[0].map, args[1], args[2]);
    }
    if (args[1].kind != CEL_MAP) {
        return cel_no_overload(ev);
    }
    const struct cel_map *added = cel_map_entries(ev, args[1].map);
    struct cel_value result = args[0];
    for (uint32_t i = 0; added != NULL && i < added->count && !cel_is_error(result); i++) {
        struct cel_entry entry = added->buffer->entries[i];
        result = insert(ev, result.map, entry.key, entry.value);
    }
    return result;
}
