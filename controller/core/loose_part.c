/* loose_part.c - slices that list a card and its partitions without counters.
 *
 * By the API these are devices apart, and kube-scheduler gives out both; so Tallyman counts them
 * so. But a part that names a listed card as its own (attribute parentUUID, the card's uuid, as
 * drivers of GPUs write them) was meant otherwise, and whoever starts on such devices is told. */
#include "loose_part.h"

#include "allocate.h"

static struct str text_of(const struct device_state *device, struct str name)
{
    const struct device_attribute *attribute = device_attribute_find(device, name);
    return attribute == NULL ? STR_NONE : attribute->string_value;
}

/* Of the driver's own attributes, without the domain or with it. */
static struct str own_text(const struct device_state *device, const char *name)
{
    struct str plain = text_of(device, str_from_c(name));
    if (str_is_set(plain)) {
        return plain;
    }
    for (uint32_t i = 0; i < device->device->attributes.count; i++) {
        const struct device_attribute *attribute = &device->device->attributes.items[i];
        size_t slash = str_find_char(attribute->key, '/');
        if (slash < attribute->key.len && str_eq_c(str_skip(attribute->key, slash + 1), name)) {
            return attribute->string_value;
        }
    }
    return STR_NONE;
}

static bool are_tied(const struct device_state *a, const struct device_state *b)
{
    for (uint32_t i = 0; i < a->counter_count; i++) {
        for (uint32_t j = 0; j < b->counter_count; j++) {
            if (a->counters[i].counter == b->counters[j].counter) {
                return true;
            }
        }
    }
    return false;
}

static const struct device_state *card_of(const struct pool_state *pool,
                                          const struct device_state *part)
{
    struct str parent = own_text(part, "parentUUID");
    for (const struct device_state *device = pool->devices;
         device != NULL && str_is_set(parent) && parent.len > 0; device = device->next_in_pool) {
        if (device != part && str_eq(own_text(device, "uuid"), parent)) {
            return device;
        }
    }
    return NULL;
}

void pool_find_loose_part(struct core *core, struct pool_state *pool)
{
    for (const struct device_state *part = pool->devices; part != NULL; part = part->next_in_pool) {
        const struct device_state *card = card_of(pool, part);
        if (card != NULL && !are_tied(part, card)) {
            pool->loose_part = part;
            pool->loose_card = card;
            core->doubtful_pools++;
            return;
        }
    }
}

/* A pool of which the set asks for devices, the first by the devices' order. */
static const struct pool_state *doubtful_pool(struct core *core, const struct pod_set *set)
{
    struct device_state *device;
    RB_FOREACH (device, device_tree, &core->device_order) {
        for (uint32_t i = 0; i < set->device_count && device->pool->loose_part != NULL; i++) {
            if (profile_selects(core, set->devices[i].profile, device)) {
                return device->pool;
            }
        }
    }
    return NULL;
}

void tell_loose_parts(struct core *core, const struct gang *gang)
{
    const struct pool_state *pool = NULL;
    bool may_be = core->doubtful_pools > 0 && gang->shape != NULL;
    for (uint32_t s = 0; may_be && s < gang->shape->set_count; s++) {
        pool = pool == NULL ? doubtful_pool(core, &gang->shape->sets[s]) : pool;
    }
    if (pool == NULL) {
        return;
    }
    note_event(core, gang, true, "PartsWithoutCounters", "CountDevices",
               arena_format(&core->scratch,
                            "pool " STR_FMT " lists device " STR_FMT " and its part " STR_FMT
                            " without shared counters: kube-scheduler may give both out at once, "
                            "and so does Tallyman; the driver's ResourceSlices have to say "
                            "sharedCounters and consumesCounters",
                            STR_ARG(pool->key), STR_ARG(pool->loose_card->device->name),
                            STR_ARG(pool->loose_part->device->name)));
}
