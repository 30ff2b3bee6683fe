/* ailment.c - devices in quarantine.
 *
 * A device whose taint is gone, or that no pod reports Unhealthy any more, counts again only after
 * the quarantine of its flavor. A taint that is gone has left no trace in the API, so the status of
 * the flavor keeps which devices are ailing, and since when they are well: a restart goes on where
 * it was. One that became well while nobody looked is well since the start. */
#include "ailment.h"

#include <stdlib.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* -- by which rules -----------------------------------------------------------------------------
 */

static int64_t quarantine_ms(const struct resource_flavor *flavor)
{
    const struct flavor_health *health = flavor->spec.health;
    return health == NULL || !health->quarantine.is_set ? 0 : health->quarantine.ms;
}

/* Of a device that no node owns, any may be. */
static bool covers(const struct resource_flavor *flavor, const struct device_state *device)
{
    return device->node == NULL || device->node->object == NULL ||
           node_labels_contain(&flavor->spec.node_labels, &device->node->object->meta.labels);
}

static int64_t rest_ms(const struct core *core, const struct device_state *device, bool is_reported)
{
    int64_t longest_ms = is_reported ? REPORTED_REST_MS : 0;
    struct flavor_state *flavor;
    struct flavor_state *next;
    HASH_ITER (hh, core->flavors, flavor, next) {
        int64_t own_ms = quarantine_ms(flavor->object);
        if (own_ms > longest_ms && covers(flavor->object, device)) {
            longest_ms = own_ms;
        }
    }
    return longest_ms;
}

/* The first of its flavors by name, one with rules before one without. */
static const struct flavor_state *carrier_of(const struct core *core,
                                             const struct device_state *device)
{
    const struct flavor_state *best = NULL;
    struct flavor_state *flavor;
    struct flavor_state *next;
    HASH_ITER (hh, core->flavors, flavor, next) {
        if (!covers(flavor->object, device)) {
            continue;
        }
        bool has_rules = flavor->object->spec.health != NULL;
        bool best_has = best != NULL && best->object->spec.health != NULL;
        bool is_before = best == NULL || (has_rules && !best_has) ||
                         (has_rules == best_has && str_compare(flavor->name, best->name) < 0);
        best = is_before ? flavor : best;
    }
    return best;
}

/* -- the table ----------------------------------------------------------------------------------
 */

static struct device_ailment *ailment_find(const struct core *core, struct str key)
{
    struct device_ailment *ailment = NULL;
    HASH_FIND(hh, core->ailments, key.ptr, (unsigned)key.len, ailment);
    return ailment;
}

static void touch_status(struct core *core, const struct device_ailment *ailment)
{
    struct flavor_state *flavor = flavor_find(core, ailment->flavor);
    if (flavor != NULL) {
        flavor->status.is_dirty = true;
    }
}

static struct device_ailment *ailment_new(struct core *core, struct str key)
{
    struct device_ailment *ailment = MEM_NEW(struct device_ailment);
    ailment->key = str_own(key);
    ailment->since_ms = core->now_ms / 1000 * 1000; /* as the status keeps it */
    HASH_ADD_KEYPTR(hh, core->ailments, ailment->key.ptr, (unsigned)ailment->key.len, ailment);
    return ailment;
}

static void ailment_free(struct core *core, struct device_ailment *ailment)
{
    touch_status(core, ailment);
    HASH_DEL(core->ailments, ailment);
    str_drop(&ailment->key);
    str_drop(&ailment->flavor);
    mem_free(ailment);
}

static void plan_tick(struct core *core, int64_t due_ms)
{
    if (core->next_ailment_ms == 0 || due_ms < core->next_ailment_ms) {
        core->next_ailment_ms = due_ms;
    }
}

/* -- one device ---------------------------------------------------------------------------------
 */

static void set_resting(struct core *core, struct device_state *device, bool is_resting)
{
    device_set_ailing(core, device, device->is_tainted || is_resting);
    if (device->is_resting == is_resting) {
        return;
    }
    device->is_resting = is_resting;
    profiles_slot_changed(core, device->slot);
    if (device->node != NULL) {
        node_touch(core, device->node);
    }
    if (!is_resting && device->node != NULL) {
        wake_reserved(core);
        wake_for_node(core, device->node);
    } else {
        wake_for_devices(core);
    }
}

static void carry(struct core *core, struct device_ailment *ailment,
                  const struct device_state *device)
{
    const struct flavor_state *carrier = carrier_of(core, device);
    struct str name = carrier == NULL ? STR_NONE : carrier->name;
    if (!str_eq(name, ailment->flavor)) {
        touch_status(core, ailment);
        str_drop(&ailment->flavor);
        ailment->flavor = str_own(name);
    }
    touch_status(core, ailment);
}

static void fall_ill(struct core *core, struct device_ailment *ailment,
                     const struct device_state *device)
{
    if (ailment->well_ms != 0) {
        ailment->well_ms = 0;
        ailment->since_ms = core->now_ms / 1000 * 1000;
    }
    carry(core, ailment, device);
}

/* False: its quarantine is over. */
static bool recover(struct core *core, struct device_ailment *ailment,
                    const struct device_state *device)
{
    if (ailment->well_ms == 0) {
        ailment->well_ms = core->now_ms / 1000 * 1000;
        carry(core, ailment, device);
    }
    int64_t end_ms = sat_add(ailment->well_ms, rest_ms(core, device, ailment->is_reported));
    if (core->now_ms >= end_ms) {
        ailment_free(core, ailment);
        return false;
    }
    plan_tick(core, end_ms);
    return true;
}

void ailment_judge_device(struct core *core, struct device_state *device)
{
    if (!core->is_ready) {
        return;
    }
    struct device_ailment *ailment = ailment_find(core, device->key);
    bool is_ill = device->is_tainted || (ailment != NULL && ailment->reports > 0);
    if (ailment == NULL && is_ill && rest_ms(core, device, false) > 0) {
        ailment = ailment_new(core, device->key);
        carry(core, ailment, device);
    }
    if (ailment == NULL) {
        set_resting(core, device, false);
        return;
    }
    ailment->gone_ms = 0;
    if (is_ill) {
        fall_ill(core, ailment, device);
        set_resting(core, device, ailment->is_reported);
        return;
    }
    set_resting(core, device, recover(core, ailment, device));
}

void ailment_device_gone(struct core *core, const struct device_state *device)
{
    struct device_ailment *ailment = ailment_find(core, device->key);
    if (ailment != NULL && core->is_ready) {
        ailment->gone_ms = core->now_ms;
        plan_tick(core, sat_add(core->now_ms, AILMENT_GONE_MS));
    }
}

void ailment_report(struct core *core, struct str key, bool is_unhealthy)
{
    struct device_ailment *ailment = ailment_find(core, key);
    struct device_state *device = table_find(&core->devices_by_key, key);
    if (ailment == NULL && device != NULL && is_unhealthy) {
        ailment = ailment_new(core, key);
    }
    if (ailment == NULL) {
        return;
    }
    ailment->reports += is_unhealthy ? 1 : 0;
    ailment->reports -= !is_unhealthy && ailment->reports > 0 ? 1 : 0;
    ailment->is_reported = ailment->is_reported || is_unhealthy;
    if (device != NULL) {
        ailment_judge_device(core, device);
    }
}

int64_t ailment_end_ms(const struct core *core, const struct device_state *device)
{
    const struct device_ailment *ailment = ailment_find(core, device->key);
    return ailment == NULL || ailment->well_ms == 0
               ? 0
               : sat_add(ailment->well_ms, rest_ms(core, device, ailment->is_reported));
}

/* -- all of them --------------------------------------------------------------------------------
 */

static void judge_all(struct core *core)
{
    for (uint32_t slot = 0; slot < core->device_slots; slot++) {
        if (core->devices[slot] != NULL) {
            ailment_judge_device(core, core->devices[slot]);
        }
    }
}

/* A time to come was written by a clock that was wrong. */
static int64_t not_to_come(const struct core *core, int64_t time_ms)
{
    return time_ms < core->now_ms ? time_ms : core->now_ms;
}

static void take_status(struct core *core, const struct flavor_state *flavor)
{
    const struct flavor_device_list *list = &flavor->object->status.devices;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct flavor_device *kept = &list->items[i];
        if (str_is_empty(kept->name) || ailment_find(core, kept->name) != NULL) {
            continue;
        }
        struct device_ailment *ailment = ailment_new(core, kept->name);
        ailment->since_ms =
            kept->since.is_set ? not_to_come(core, kept->since.ms) : ailment->since_ms;
        ailment->well_ms = kept->well_since.is_set ? not_to_come(core, kept->well_since.ms) : 0;
        ailment->is_reported = opt_is_true(kept->reported);
        ailment->flavor = str_own(flavor->name);
        ailment->gone_ms = core->now_ms; /* until its device is met */
        plan_tick(core, sat_add(core->now_ms, AILMENT_GONE_MS));
    }
}

void ailments_start(struct core *core)
{
    struct flavor_state *flavor;
    struct flavor_state *next;
    HASH_ITER (hh, core->flavors, flavor, next) {
        take_status(core, flavor);
    }
    judge_all(core);
}

void ailments_rules_changed(struct core *core)
{
    if (core->is_ready) {
        judge_all(core);
    }
}

void ailments_tick(struct core *core)
{
    if (core->next_ailment_ms == 0 || core->now_ms < core->next_ailment_ms) {
        return;
    }
    core->next_ailment_ms = 0;
    struct device_ailment *ailment;
    struct device_ailment *next;
    HASH_ITER (hh, core->ailments, ailment, next) {
        struct device_state *device = table_find(&core->devices_by_key, ailment->key);
        if (device != NULL) {
            ailment_judge_device(core, device);
        } else if (core->now_ms - ailment->gone_ms >= AILMENT_GONE_MS) {
            ailment_free(core, ailment);
        } else {
            plan_tick(core, sat_add(ailment->gone_ms, AILMENT_GONE_MS));
        }
    }
}

void ailments_free(struct core *core)
{
    struct device_ailment *ailment;
    struct device_ailment *next;
    HASH_ITER (hh, core->ailments, ailment, next) {
        ailment_free(core, ailment);
    }
}

/* -- what the status keeps ----------------------------------------------------------------------
 */

static int compare_names(const void *left, const void *right)
{
    const struct flavor_device *a = left;
    const struct flavor_device *b = right;
    return str_compare(a->name, b->name);
}

struct flavor_device_list ailments_of_flavor(const struct core *core, struct str flavor,
                                             struct arena *arena)
{
    struct flavor_device_list list = {.count = 0};
    struct device_ailment *ailment;
    struct device_ailment *next;
    uint32_t capacity = 0;
    HASH_ITER (hh, core->ailments, ailment, next) {
        if (!str_eq(ailment->flavor, flavor)) {
            continue;
        }
        list.items =
            arena_grow(arena, list.items, list.count, &capacity, sizeof(struct flavor_device));
        list.items[list.count++] =
            (struct flavor_device){.name = arena_copy_str(arena, ailment->key),
                                   .since = {true, ailment->since_ms},
                                   .well_since = {ailment->well_ms != 0, ailment->well_ms},
                                   .reported = {ailment->is_reported, ailment->is_reported}};
    }
    if (list.count > 1) {
        qsort(list.items, list.count, sizeof(struct flavor_device), compare_names);
    }
    list.count = list.count > FLAVOR_DEVICES_MAX ? FLAVOR_DEVICES_MAX : list.count;
    return list;
}
