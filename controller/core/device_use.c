/* device_use.c - who has a device: claims that are allocated, the plan, and what a what-if frees.
 *
 * A device that may be allocated several times (allowMultipleAllocations) is in use by shares, each
 * of which takes of its capacities; its counters are drawn on once, with the first share. */
#include <assert.h>

#include "ask.h"
#include "fit_plan.h"
#include "internal.h"

/* What is free on its node is another amount now, and on others whose devices draw on the same
 * counters. */
static void device_touch(struct core *core, struct device_state *device)
{
    if (device->node != NULL) {
        node_touch(core, device->node);
    }
    struct device_state *other = device->counter_count == 0 ? NULL : device->pool->devices;
    for (; other != NULL; other = other->next_in_pool) {
        if (other->node != NULL) {
            node_touch(core, other->node);
        }
    }
}

static void device_mark(struct core *core, struct device_state *device, bool is_used)
{
    if (device->is_used == is_used) {
        return;
    }
    device_touch(core, device);
    device->is_used = is_used;
    for (uint32_t i = 0; i < device->counter_count; i++) {
        struct counter_state *counter = &device->pool->counters[device->counters[i].counter];
        counter->used += is_used ? device->counters[i].amount : -device->counters[i].amount;
    }
}

void device_set_used(struct core *core, struct str key, struct used_device *used)
{
    struct device_state *device = table_find(&core->devices_by_key, key);
    if (device == NULL) {
        return;
    }
    if (whatif_is_kept(core, device->freed_epoch)) {
        whatif_forget(core); /* what others free of it has been reckoned with its users so far */
    }
    device->used = used;
    device_mark(core, device, used != NULL);
    if (device->is_shareable) {
        device_touch(core, device);
    }
}

i128 counter_drawn(const struct core *core, const struct counter_state *counter)
{
    i128 planned = counter->plan_epoch == core->plan_epoch ? counter->planned : 0;
    bool is_less = core->is_what_if && counter->freed_epoch == core->what_if_epoch;
    return counter->used + planned - (is_less ? counter->freed : 0);
}

static bool counters_suffice(const struct core *core, const struct device_state *device)
{
    for (uint32_t i = 0; i < device->counter_count; i++) {
        const struct counter_state *counter = &device->pool->counters[device->counters[i].counter];
        if (counter_drawn(core, counter) + device->counters[i].amount > counter->capacity) {
            return false;
        }
    }
    return true;
}

static uint32_t shares_freed(const struct core *core, const struct device_state *device)
{
    bool is_freed = core->is_what_if && device->freed_epoch == core->what_if_epoch;
    return is_freed ? device->freed_shares : 0;
}

bool device_has_shares(const struct core *core, const struct device_state *device)
{
    uint32_t planned = device->shares_epoch == core->plan_epoch ? device->planned_shares : 0;
    uint32_t used = device->used == NULL ? 0 : device->used->shares;
    return planned > 0 || used > shares_freed(core, device);
}

/* Somebody has all of it. A device that several claims name is free when all of them are. */
static bool is_used_whole(const struct core *core, const struct device_state *device)
{
    if (!device->is_used) {
        return false;
    }
    if (!device->is_shareable) {
        return shares_freed(core, device) < device->used->claims;
    }
    return device->used->claims > device->used->shares;
}

bool device_is_unheld(const struct core *core, const struct device_state *device)
{
    return !is_used_whole(core, device) && device->plan_epoch != core->plan_epoch;
}

bool device_is_free(const struct core *core, const struct device_state *device)
{
    if (!device_is_unheld(core, device) || device->is_uncountable) {
        return false;
    }
    bool is_shared = device->is_shareable && device_has_shares(core, device);
    return !is_shared && counters_suffice(core, device);
}

bool device_is_open(const struct core *core, const struct device_state *device)
{
    bool is_shared = device->is_shareable && !device->is_uncountable &&
                     !is_used_whole(core, device) && device_has_shares(core, device);
    return is_shared || device_is_free(core, device);
}

i128 device_share_room(const struct core *core, const struct device_state *device, uint32_t i)
{
    const struct device_capacity *capacity = &device->device->capacity.items[i];
    i128 room = capacity->value.value.nano;
    for (uint32_t u = 0; device->used != NULL && u < device->used->count; u++) {
        bool is_it = str_eq(device->used->items[u].name, capacity->key);
        room -= is_it ? device->used->items[u].amount : 0;
    }
    room -= device->shares_epoch == core->plan_epoch ? device->shares[i].planned : 0;
    return room + (shares_freed(core, device) > 0 ? device->shares[i].freed : 0);
}

static void counters_free_more(struct core *core, const struct device_state *device, int sign)
{
    for (uint32_t i = 0; i < device->counter_count; i++) {
        struct counter_state *counter = &device->pool->counters[device->counters[i].counter];
        if (counter->freed_epoch != core->what_if_epoch) {
            counter->freed_epoch = core->what_if_epoch;
            counter->freed = 0;
        }
        counter->freed += sign * device->counters[i].amount;
    }
}

static void count_freed(struct device_state *device, int sign)
{
    device->freed_shares += sign > 0 ? 1u : (uint32_t)-1;
    if (device->freed_shares == 0) {
        device->freed_epoch = 0;
    }
}

/* One share of it comes free, or is taken back; its counters with the last. */
static void share_set_freed(struct core *core, struct device_state *device,
                            const struct allocation_result *result, int sign)
{
    if (device->freed_epoch != core->what_if_epoch) {
        device->freed_epoch = core->what_if_epoch;
        device->freed_shares = 0;
        for (uint32_t i = 0; i < device->device->capacity.count; i++) {
            device->shares[i].freed = 0;
        }
    }
    bool was_used = device_has_shares(core, device);
    count_freed(device, sign);
    for (uint32_t i = 0; i < device->device->capacity.count; i++) {
        for (uint32_t c = 0; c < result->consumed_capacity.count; c++) {
            const struct resource_amount *amount = &result->consumed_capacity.items[c];
            bool is_it = str_eq(amount->name, device->device->capacity.items[i].key);
            device->shares[i].freed +=
                is_it && amount->value.nano > 0 ? sign * amount->value.nano : 0;
        }
    }
    if (was_used != device_has_shares(core, device)) {
        counters_free_more(core, device, sign);
    }
}

static void whole_set_freed(struct core *core, struct device_state *device, int sign)
{
    if (device->freed_epoch != core->what_if_epoch) {
        device->freed_epoch = core->what_if_epoch;
        device->freed_shares = 0;
    }
    bool was_used = is_used_whole(core, device);
    count_freed(device, sign);
    if (was_used != is_used_whole(core, device)) {
        counters_free_more(core, device, sign);
    }
}

void device_set_freed(struct core *core, const struct allocation_result *result, bool is_freed)
{
    struct str key = allocation_key(core, result);
    struct device_state *device = table_find(&core->devices_by_key, key);
    if (device == NULL) {
        return;
    }
    device_touch(core, device);
    if (device->is_shareable) {
        if (!str_is_empty(result->share_id)) {
            share_set_freed(core, device, result, is_freed ? 1 : -1);
        }
        return;
    }
    whole_set_freed(core, device, is_freed ? 1 : -1);
}

static void counters_plan(struct core *core, struct device_state *device)
{
    struct device_state *other = device->counter_count == 0 ? NULL : device->pool->devices;
    for (; other != NULL; other = other->next_in_pool) {
        if (other->node != NULL) {
            node_open_plan(core, other->node);
            node_touch(core, other->node);
        }
    }
    for (uint32_t i = 0; i < device->counter_count; i++) {
        struct counter_state *counter = &device->pool->counters[device->counters[i].counter];
        if (counter->plan_epoch != core->plan_epoch) {
            counter->plan_epoch = core->plan_epoch;
            counter->planned = 0;
        }
        counter->planned += device->counters[i].amount;
    }
}

void device_plan(struct core *core, struct device_state *device)
{
    plan_note_device(core, device);
    device->plan_epoch = core->device_plan_epoch = core->plan_epoch;
    counters_plan(core, device);
}

void device_plan_share(struct core *core, struct device_state *device, const i128 *amounts)
{
    plan_note_other(core);
    if (!device_has_shares(core, device)) {
        counters_plan(core, device); /* they are drawn on once, however many share it */
    }
    core->device_plan_epoch = core->plan_epoch;
    if (device->shares_epoch != core->plan_epoch) {
        device->shares_epoch = core->plan_epoch;
        device->planned_shares = 0;
        for (uint32_t i = 0; i < device->device->capacity.count; i++) {
            device->shares[i].planned = 0;
        }
    }
    device->planned_shares++;
    for (uint32_t i = 0; i < device->device->capacity.count; i++) {
        device->shares[i].planned += amounts[i];
    }
}

static void device_leave_plan(struct device_state *device)
{
    device->plan_epoch = 0;
    for (uint32_t i = 0; i < device->counter_count; i++) {
        device->pool->counters[device->counters[i].counter].planned -= device->counters[i].amount;
    }
}

void device_unplan(struct core *core, struct device_state *device)
{
    plan_drop_device(core, device);
    device_leave_plan(device);
}

void device_take_back(struct core *core, struct device_state *device)
{
    assert(device->plan_epoch == core->plan_epoch);
    device_leave_plan(device);
    device_touch(core, device);
}
