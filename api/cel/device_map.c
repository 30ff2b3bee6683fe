/* `device` and the maps inside it, read in place: nothing is built unless a macro walks over it.
 *
 * Source: k8s.io/dynamic-resource-allocation/cel/compile.go, DeviceMatches(). */
#include "eval.h"
#include "semver.h"

struct name_parts {
    struct str domain;
    struct str id;
};

/* "domain/id", or "id" in the driver's own domain. */
static struct name_parts split_name(struct str key, struct str driver)
{
    size_t slash = str_find_char(key, '/');
    if (slash == key.len) {
        return (struct name_parts){driver, key};
    }
    return (struct name_parts){str_take(key, slash), str_skip(key, slash + 1)};
}

static bool is_in(struct str key, struct str driver, struct str domain, struct str *ret_id)
{
    struct name_parts parts = split_name(key, driver);
    *ret_id = parts.id;
    return str_eq(parts.domain, domain);
}

static struct cel_value device_map(struct cel_eval *ev, struct cel_map map)
{
    struct cel_map *made = cel_alloc(ev, 1, sizeof(*made));
    if (made == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    *made = map;
    return (struct cel_value){.kind = CEL_MAP, .map = made};
}

struct cel_value cel_device_value(struct cel_eval *ev)
{
    static const struct cel_map map = {.kind = CEL_MAP_DEVICE};
    if (ev->device == NULL) {
        return cel_fault(ev, "there is no device", STR_NONE);
    }
    return (struct cel_value){.kind = CEL_MAP, .map = &map};
}

static struct cel_value attribute_value(struct cel_eval *ev, const struct device_attribute *a)
{
    if (a->int_value.is_set) {
        return cel_int(a->int_value.value);
    }
    if (a->bool_value.is_set) {
        return cel_bool(a->bool_value.value);
    }
    if (str_is_set(a->string_value)) {
        return cel_string(a->string_value);
    }
    struct cel_semver *version = cel_alloc(ev, 1, sizeof(*version));
    if (version == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    (void)cel_semver_parse(a->version_value, version);
    return (struct cel_value){.kind = CEL_SEMVER, .semver = version};
}

static struct cel_value capacity_value(struct cel_eval *ev, const struct device_capacity *c)
{
    struct cel_quantity *quantity = cel_alloc(ev, 1, sizeof(*quantity));
    if (quantity == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    quantity->amount = c->value.value;
    quantity->text = c->value.text;
    return (struct cel_value){.kind = CEL_QUANTITY, .quantity = quantity};
}

bool cel_device_is_sound(const struct device *device, struct str *ret_name)
{
    for (uint32_t i = 0; i < device->attributes.count; i++) {
        const struct device_attribute *a = &device->attributes.items[i];
        struct cel_semver version;
        if (a->int_value.is_set || a->bool_value.is_set || str_is_set(a->string_value)) {
            continue;
        }
        if (!str_is_set(a->version_value) || !cel_semver_parse(a->version_value, &version)) {
            *ret_name = a->key;
            return false;
        }
    }
    return true;
}

static bool find_in_device(struct cel_eval *ev, struct str key, struct cel_value *ret_value)
{
    static const struct cel_map attributes = {.kind = CEL_MAP_DOMAINS};
    static const struct cel_map capacity = {.kind = CEL_MAP_DOMAINS, .is_capacity = true};
    const struct opt_bool *shared = &ev->device->device->allow_multiple_allocations;
    if (str_eq_c(key, "attributes")) {
        *ret_value = (struct cel_value){.kind = CEL_MAP, .map = &attributes};
    } else if (str_eq_c(key, "driver")) {
        *ret_value = cel_string(ev->device->driver);
    } else if (str_eq_c(key, "capacity")) {
        *ret_value = (struct cel_value){.kind = CEL_MAP, .map = &capacity};
    } else if (str_eq_c(key, "allowMultipleAllocations")) {
        *ret_value = cel_bool(shared->is_set && shared->value);
    } else {
        return false;
    }
    return true;
}

static bool find_in_domain(struct cel_eval *ev, const struct cel_map *map, struct str key,
                           struct cel_value *ret_value)
{
    const struct device *device = ev->device->device;
    struct str driver = ev->device->driver;
    uint32_t count = map->is_capacity ? device->capacity.count : device->attributes.count;
    for (uint32_t i = 0; i < count; i++) {
        struct str id;
        struct str name =
            map->is_capacity ? device->capacity.items[i].key : device->attributes.items[i].key;
        if (name.len < key.len || !str_ends_with(name, key)) {
            continue;
        }
        if (is_in(name, driver, map->domain, &id) && str_eq(id, key)) {
            *ret_value = map->is_capacity ? capacity_value(ev, &device->capacity.items[i])
                                          : attribute_value(ev, &device->attributes.items[i]);
            return true;
        }
    }
    return false;
}

bool cel_device_map_find(struct cel_eval *ev, const struct cel_map *map, struct str key,
                         struct cel_value *ret_value)
{
    if (map->kind == CEL_MAP_DEVICE) {
        return find_in_device(ev, key, ret_value);
    }
    if (map->kind == CEL_MAP_DOMAIN) {
        return find_in_domain(ev, map, key, ret_value);
    }
    /* A domain that isn't there is an empty map, so whether it is needn't be found out. */
    *ret_value = device_map(
        ev,
        (struct cel_map){.kind = CEL_MAP_DOMAIN, .is_capacity = map->is_capacity, .domain = key});
    return true;
}

static struct str item_name(const struct cel_eval *ev, const struct cel_map *map, uint32_t i)
{
    const struct device *device = ev->device->device;
    return map->is_capacity ? device->capacity.items[i].key : device->attributes.items[i].key;
}

static uint32_t item_count(const struct cel_eval *ev, const struct cel_map *map)
{
    const struct device *device = ev->device->device;
    return map->is_capacity ? device->capacity.count : device->attributes.count;
}

bool cel_device_map_has_domain(const struct cel_eval *ev, const struct cel_map *map,
                               struct str domain)
{
    for (uint32_t i = 0; i < item_count(ev, map); i++) {
        struct str id;
        if (is_in(item_name(ev, map, i), ev->device->driver, domain, &id)) {
            return true;
        }
    }
    return false;
}

static struct cel_value list_keys(struct cel_eval *ev, const struct cel_map *map,
                                  struct cel_value result, struct str key)
{
    struct cel_value value;
    if (!cel_is_error(result) && cel_device_map_find(ev, map, key, &value)) {
        return cel_map_put(ev, result.map, cel_string(key), value);
    }
    return result;
}

struct cel_value cel_device_map_list(struct cel_eval *ev, const struct cel_map *map)
{
    static const struct str fields[] = {STR_INIT("driver"), STR_INIT("allowMultipleAllocations"),
                                        STR_INIT("attributes"), STR_INIT("capacity")};
    struct cel_value result = cel_map_new(ev, ARRAY_COUNT(fields));
    if (map->kind == CEL_MAP_DEVICE) {
        for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
            result = list_keys(ev, map, result, fields[i]);
        }
        return result;
    }
    for (uint32_t i = 0; i < item_count(ev, map) && ev->stop == RC_OK; i++) {
        struct name_parts parts = split_name(item_name(ev, map, i), ev->device->driver);
        if (map->kind == CEL_MAP_DOMAINS) {
            result = list_keys(ev, map, result, parts.domain);
        } else if (str_eq(parts.domain, map->domain)) {
            result = list_keys(ev, map, result, parts.id);
        }
    }
    return result;
}
