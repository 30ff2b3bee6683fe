/* card.c - cards: devices of a pool that draw on the same counters, directly or through others.
 *
 * How many of them can be given out at once is a question of packing. What is counted here is an
 * upper bound of the answer: by each counter alone, as if the devices that draw least on it came
 * first. */
#include "ask.h"

#include "internal.h"

static void relabel(struct pool_state *pool, uint32_t from, uint32_t to)
{
    for (uint32_t c = 0; c < pool->counter_count; c++) {
        pool->counters[c].card = pool->counters[c].card == from ? to : pool->counters[c].card;
    }
}

void pool_find_cards(struct pool_state *pool)
{
    for (uint32_t c = 0; c < pool->counter_count; c++) {
        pool->counters[c].card = c;
    }
    const struct device_state *device = pool->devices;
    for (; device != NULL; device = device->next_in_pool) {
        for (uint32_t i = 1; i < device->counter_count; i++) {
            uint32_t card = pool->counters[device->counters[0].counter].card;
            uint32_t other = pool->counters[device->counters[i].counter].card;
            if (card != other) {
                relabel(pool, other, card);
            }
        }
    }
}

uint32_t device_card(const struct device_state *device)
{
    return device->pool->counters[device->counters[0].counter].card;
}

const struct counter_state *device_scarce_counter(const struct device_state *device)
{
    for (uint32_t i = 0; i < device->counter_count; i++) {
        const struct counter_state *counter = &device->pool->counters[device->counters[i].counter];
        if (device->counters[i].amount > counter->capacity) {
            return counter;
        }
    }
    return NULL;
}

bool device_is_beyond_counters(const struct device_state *device)
{
    return device->is_uncountable || device_scarce_counter(device) != NULL;
}

static i128 amount_drawn(const struct device_state *device, uint32_t counter)
{
    i128 amount = 0;
    for (uint32_t i = 0; i < device->counter_count; i++) {
        amount += device->counters[i].counter == counter ? device->counters[i].amount : 0;
    }
    return amount;
}

/* Those that draw least come first; `amounts` has room for all of them. */
static int64_t most_by_counter(const struct device_state *const *devices, uint32_t count,
                               uint32_t counter, i128 *amounts)
{
    for (uint32_t i = 0; i < count; i++) {
        i128 amount = amount_drawn(devices[i], counter);
        uint32_t at = i;
        for (; at > 0 && amounts[at - 1] > amount; at--) {
            amounts[at] = amounts[at - 1];
        }
        amounts[at] = amount;
    }
    i128 left = devices[0]->pool->counters[counter].capacity;
    uint32_t most = 0;
    while (most < count && amounts[most] <= left) {
        left -= amounts[most++];
    }
    return most;
}

int64_t card_most_devices(struct core *core, const struct device_state *const *devices,
                          uint32_t count)
{
    const struct pool_state *pool = devices[0]->pool;
    uint32_t card = device_card(devices[0]);
    i128 *amounts = ARENA_ARRAY(&core->scratch, i128, count);
    int64_t most = count;
    for (uint32_t c = 0; c < pool->counter_count; c++) {
        if (pool->counters[c].card == card) {
            int64_t here = most_by_counter(devices, count, c, amounts);
            most = here < most ? here : most;
        }
    }
    return most;
}
