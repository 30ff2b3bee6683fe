/* fit_device.c - how many pods a node's devices are enough for, whichever of them they get.
 *
 * kube-scheduler searches well for one pod, but it doesn't look ahead: the first pod may get the
 * device that only the second could have used, or a whole card of which two halves were needed. So
 * a count is safe only if it holds whatever the scheduler picks:
 * - a device is counted as one choice; a card whose parts can't all be given out at once is one
 *   choice as a whole, because any of its parts may use it up;
 * - a pod takes at most as many of the choices of a request as it asks for in all the requests
 *   that draw on the same choices.
 * One pod alone, on a node that the plan hasn't touched, may go where any way is found for it. */
#include "ask.h"
#include "internal.h"

#define REQUESTS_JUDGED_MAX 64

/* One thing to choose: a device, or a card whose parts exclude each other. */
struct choice {
    const struct device_state *device;
    uint64_t wanted_by; /* bit per request that it may be given to */
    uint32_t card;      /* devices that share counters, directly or through others, have one */
    bool is_short;      /* the card's counters aren't enough for all of them */
};

struct choice_list {
    struct choice *items; /* in the scratch arena */
    uint32_t count;
    uint32_t capacity;
    bool has_shareable; /* some of the devices may be allocated several times */
};

static uint64_t wanted_by(struct core *core, const struct pod_set *set,
                          const struct device_state *device)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < set->device_count; i++) {
        if (profile_match(core, set->devices[i].profile, device) == MATCH_YES) {
            bits |= UINT64_C(1) << i;
        }
    }
    return bits;
}

static struct choice_list list_devices(struct core *core, const struct pod_set *set,
                                       const struct node_state *node)
{
    struct choice_list list = {.items = NULL};
    struct device_walk walk = device_walk_start(core, node);
    struct device_state *device;
    while ((device = device_walk_next(&walk)) != NULL) {
        uint64_t bits = device_is_open(core, device) ? wanted_by(core, set, device) : 0;
        list.has_shareable = list.has_shareable || (bits != 0 && device->is_shareable);
        if (bits == 0 || !device_is_free(core, device)) {
            continue;
        }
        list.items = arena_grow(&core->scratch, list.items, list.count, &list.capacity,
                                sizeof(struct choice));
        list.items[list.count] =
            (struct choice){.device = device, .wanted_by = bits, .card = list.count};
        list.count++;
    }
    return list;
}

static bool share_a_counter(const struct device_state *a, const struct device_state *b)
{
    if (a->pool != b->pool) {
        return false;
    }
    for (uint32_t i = 0; i < a->counter_count; i++) {
        for (uint32_t j = 0; j < b->counter_count; j++) {
            if (a->counters[i].counter == b->counters[j].counter) {
                return true;
            }
        }
    }
    return false;
}

static void find_cards(struct choice_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        for (uint32_t j = i + 1; j < list->count; j++) {
            uint32_t from = list->items[j].card;
            uint32_t to = list->items[i].card;
            if (from == to || !share_a_counter(list->items[i].device, list->items[j].device)) {
                continue;
            }
            for (uint32_t k = 0; k < list->count; k++) {
                list->items[k].card = list->items[k].card == from ? to : list->items[k].card;
            }
        }
    }
}

/* Whether the counter has enough for all the listed devices at once. */
static bool counter_suffices(const struct core *core, const struct choice_list *list,
                             const struct pool_state *pool, uint32_t index)
{
    const struct counter_state *counter = &pool->counters[index];
    i128 drawn = counter_drawn(core, counter);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct device_state *device = list->items[i].device;
        for (uint32_t c = 0; device->pool == pool && c < device->counter_count; c++) {
            drawn += device->counters[c].counter == index ? device->counters[c].amount : 0;
        }
    }
    return drawn <= counter->capacity;
}

static bool is_card_short(const struct core *core, const struct choice_list *list, uint32_t card)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct device_state *device = list->items[i].device;
        for (uint32_t c = 0; list->items[i].card == card && c < device->counter_count; c++) {
            if (!counter_suffices(core, list, device->pool, device->counters[c].counter)) {
                return true;
            }
        }
    }
    return false;
}

/* Cards whose parts can't all be given out at once become one choice each. */
static void merge_short_cards(const struct core *core, struct choice_list *list)
{
    bool has_counters = false;
    for (uint32_t i = 0; i < list->count; i++) {
        has_counters = has_counters || list->items[i].device->counter_count > 0;
    }
    if (!has_counters) {
        return;
    }
    find_cards(list);
    for (uint32_t i = 0; i < list->count; i++) {
        list->items[i].is_short = is_card_short(core, list, list->items[i].card);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        struct choice *choice = &list->items[i];
        uint32_t at = 0;
        while (at < count && !(choice->is_short && list->items[at].card == choice->card)) {
            at++;
        }
        if (at < count) {
            list->items[at].wanted_by |= choice->wanted_by;
        } else {
            list->items[count++] = *choice;
        }
    }
    list->count = count;
}

/* Of request `i`: how many choices there are, for how many that one pod may use up of them. */
static int64_t pods_by_request(const struct pod_set *set, const struct choice_list *list,
                               uint32_t i)
{
    int64_t choices = 0;
    uint64_t rivals = UINT64_C(1) << i;
    for (uint32_t c = 0; c < list->count; c++) {
        if ((list->items[c].wanted_by & (UINT64_C(1) << i)) != 0) {
            choices++;
            rivals |= list->items[c].wanted_by;
        }
    }
    int64_t used_up = 0;
    for (uint32_t j = 0; j < set->device_count; j++) {
        used_up = sat_add(used_up, (rivals & (UINT64_C(1) << j)) != 0 ? set->devices[j].count : 0);
    }
    return choices / used_up;
}

int64_t node_safe_device_slots(struct core *core, const struct pod_set *set,
                               const struct node_state *node, bool *ret_is_exact)
{
    *ret_is_exact = false;
    if (set->device_count > REQUESTS_JUDGED_MAX) {
        return 0;
    }
    struct choice_list list = list_devices(core, set, node);
    uint32_t devices = list.count;
    merge_short_cards(core, &list);
    /* Where all devices are as good as each other, there can't be more either. */
    *ret_is_exact = set->device_count == 1 && list.count == devices && !list.has_shareable;
    int64_t slots = INT64_MAX;
    for (uint32_t i = 0; i < set->device_count; i++) {
        int64_t pods = pods_by_request(set, &list, i);
        slots = pods < slots ? pods : slots;
    }
    return slots;
}

bool demand_sees_one_node(struct core *core, const struct pod_demand *demand)
{
    uint32_t count = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        bool is_seen = node_exclusion(core, demand, node) == EXCLUDED_COUNT;
        if (is_seen && ++count > 1) {
            return false;
        }
    }
    return true;
}
