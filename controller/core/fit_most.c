/* fit_most.c - for how many pods a node's devices could ever be enough, were they free and healthy.
 *
 * An upper bound, since a gang that could start must never be told that it can't:
 * - of each kind of device that is asked for, all requests that no other device could serve draw on
 *   the same ones, so these have to be enough for all of them together;
 * - of devices that share counters no more count than each counter alone would allow;
 * - one pod by itself, and a claim that all pods share, are looked for exactly, as kube-scheduler
 *   does: it finds a way for one pod if there is any, and with fewer free devices there is none
 *   more.
 * Devices that may be allocated several times, and requests with alternatives, are left out. */
#include "ask.h"
#include "extended.h"
#include "internal.h"

#include "tallyman/base/limits.h"

#define TAKERS_MAX 64 /* one bit each; more are left out, which leaves the bound one */

/* All requests of one kind: of each pod, and of claims that the pods share. */
struct taker {
    struct device_profile *profile;
    int64_t per_pod;
    int64_t once;
    bool takes_all; /* all that there are, for one pod */
};

struct taker_list {
    struct taker items[TAKERS_MAX];
    uint32_t count;
};

/* A device that some of them want. */
struct seat {
    const struct device_state *device;
    uint64_t wanted_by; /* bit per taker */
};

struct seat_list {
    struct seat *items; /* in the scratch arena */
    uint32_t count;
    uint32_t capacity;
    uint64_t shareable; /* takers that want a device which several may have */
    bool has_counters;
};

/* -- who takes ----------------------------------------------------------------------------------
 */

static struct taker *taker_of(struct taker_list *list, struct device_profile *profile)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].profile == profile) {
            return &list->items[i];
        }
    }
    if (list->count == TAKERS_MAX) {
        return NULL;
    }
    list->items[list->count] = (struct taker){.profile = profile};
    return &list->items[list->count++];
}

static void add_request(struct taker_list *list, const struct device_ask *ask,
                        const struct ask_request *request, bool is_once)
{
    const struct ask_option *option = &ask->options[request->first_option];
    if (request->option_count != 1 || option->is_admin) {
        return;
    }
    struct taker *taker = taker_of(list, option->profile);
    if (taker == NULL) {
        return;
    }
    int64_t *count = is_once ? &taker->once : &taker->per_pod;
    *count = sat_add(*count, option->count);
    taker->takes_all =
        taker->takes_all || (option->is_all && !is_once && option->object->capacity == NULL);
}

static void add_ask(struct taker_list *list, const struct device_ask *ask, bool is_once)
{
    for (uint32_t c = 0; ask != NULL && c < ask->claim_count; c++) {
        for (uint32_t r = 0; r < ask->claims[c].request_count; r++) {
            add_request(list, ask, &ask->claims[c].requests[r], is_once);
        }
    }
}

/* `there`: the set as its pods are on the node. */
static void list_takers(const struct pod_set *set, const struct pod_set *there,
                        struct taker_list *list)
{
    list->count = 0;
    add_ask(list, there->ask, false);
    for (uint32_t i = 0; i < there->device_count; i++) {
        const struct device_demand *device = &there->devices[i];
        struct taker *taker = str_is_set(device->resource) ? taker_of(list, device->profile) : NULL;
        if (taker != NULL) {
            taker->per_pod = sat_add(taker->per_pod, device->count);
        }
    }
    for (uint32_t c = 0; c < set->claim_count; c++) {
        if (!claim_is_allocated(set->claims[c].claim)) {
            add_ask(list, set->claims[c].ask, true);
        }
    }
}

/* -- what there is ------------------------------------------------------------------------------
 */

static void list_seats(struct core *core, const struct taker_list *takers,
                       const struct node_state *node, struct seat_list *seats)
{
    *seats = (struct seat_list){.items = NULL};
    struct device_walk walk = device_walk_start(core, node);
    struct device_state *device;
    while ((device = device_walk_next(&walk)) != NULL) {
        uint64_t wanted_by = 0;
        for (uint32_t i = 0; i < takers->count; i++) {
            bool is_wanted = profile_selects(core, takers->items[i].profile, device);
            wanted_by |= is_wanted ? UINT64_C(1) << i : 0;
        }
        if (wanted_by == 0 || device_is_beyond_counters(device)) {
            continue;
        }
        seats->items = arena_grow(&core->scratch, seats->items, seats->count, &seats->capacity,
                                  sizeof(struct seat));
        seats->items[seats->count++] = (struct seat){device, wanted_by};
        seats->shareable |= device->is_shareable ? wanted_by : 0;
        seats->has_counters = seats->has_counters || device->counter_count > 0;
    }
}

static bool is_of_card(const struct device_state *device, const struct device_state *first)
{
    return device->counter_count > 0 && device->pool == first->pool &&
           device_card(device) == device_card(first);
}

/* Of the card of that seat, for that taker; 0 where an earlier seat is of the same card. */
static int64_t count_card(struct core *core, const struct seat_list *seats, uint32_t at,
                          uint64_t bit, const struct device_state **devices)
{
    const struct device_state *first = seats->items[at].device;
    for (uint32_t i = 0; i < at; i++) {
        if ((seats->items[i].wanted_by & bit) != 0 && is_of_card(seats->items[i].device, first)) {
            return 0;
        }
    }
    uint32_t count = 0;
    for (uint32_t i = at; i < seats->count; i++) {
        if ((seats->items[i].wanted_by & bit) != 0 && is_of_card(seats->items[i].device, first)) {
            devices[count++] = seats->items[i].device;
        }
    }
    return card_most_devices(core, devices, count);
}

/* How many devices that the taker could have can be given out at once. */
static int64_t count_seats(struct core *core, const struct seat_list *seats, uint64_t bit)
{
    const struct device_state **devices =
        seats->has_counters ? ARENA_ARRAY(&core->scratch, const struct device_state *, seats->count)
                            : NULL;
    int64_t count = 0;
    for (uint32_t i = 0; i < seats->count; i++) {
        if ((seats->items[i].wanted_by & bit) == 0) {
            continue;
        }
        bool is_alone = seats->items[i].device->counter_count == 0;
        count += is_alone ? 1 : count_card(core, seats, i, bit, devices);
    }
    return count;
}

/* -- for how many pods it is enough -------------------------------------------------------------
 */

/* The takers whose devices that taker could have, too. */
static uint64_t takers_within(const struct seat_list *seats, uint64_t bit)
{
    uint64_t within = UINT64_MAX;
    for (uint32_t i = 0; i < seats->count; i++) {
        within &= (seats->items[i].wanted_by & bit) != 0 ? UINT64_MAX : ~seats->items[i].wanted_by;
    }
    return within;
}

static int64_t pods_by_taker(struct core *core, const struct taker_list *takers,
                             const struct seat_list *seats, uint32_t at)
{
    uint64_t bit = UINT64_C(1) << at;
    uint64_t within = takers_within(seats, bit);
    int64_t per_pod = 0;
    int64_t once = 0;
    for (uint32_t i = 0; i < takers->count; i++) {
        if ((within & (UINT64_C(1) << i)) != 0) {
            per_pod = sat_add(per_pod, takers->items[i].per_pod);
            once = sat_add(once, takers->items[i].once);
        }
    }
    int64_t left = count_seats(core, seats, bit) - once;
    if (left < 0) {
        return 0;
    }
    int64_t pods = per_pod == 0 ? INT64_MAX : left / per_pod;
    return takers->items[at].takes_all && pods > 1 ? 1 : pods;
}

static int64_t pods_by_count(struct core *core, const struct taker_list *takers,
                             const struct seat_list *seats)
{
    int64_t pods = INT64_MAX;
    for (uint32_t i = 0; i < takers->count && pods > 0; i++) {
        if ((seats->shareable & (UINT64_C(1) << i)) == 0) {
            int64_t here = pods_by_taker(core, takers, seats, i);
            pods = here < pods ? here : pods;
        }
    }
    return pods;
}

/* The counts above say as much. */
static bool is_counted_exactly(const struct device_ask *ask, const struct seat_list *seats)
{
    return ask == NULL || (!ask_is_special(ask) && ask->option_count == 1 && !seats->has_counters &&
                           seats->shareable == 0);
}

/* Whether it could be met there by itself; so where that has taken too many steps already. */
static bool could_serve(struct core *core, const struct device_ask *ask,
                        const struct seat_list *seats, struct node_state *node)
{
    return is_counted_exactly(ask, seats) || core->search_steps >= ALLOCATE_STEPS_ALL ||
           node_could_serve(core, ask, node);
}

int64_t node_device_places_ever(struct core *core, const struct pod_set *set,
                                struct node_state *node)
{
    const struct pod_set *there = pod_set_on(set, node);
    struct taker_list takers;
    struct seat_list seats;
    if (there->device_count == 0 && there->ask == NULL && set->claim_count == 0) {
        return INT64_MAX;
    }
    list_takers(set, there, &takers);
    list_seats(core, &takers, node, &seats);
    int64_t pods = pods_by_count(core, &takers, &seats);
    if (pods > 0 && !could_serve(core, there->ask, &seats, node)) {
        return 0;
    }
    for (uint32_t c = 0; c < set->claim_count && pods > 0; c++) {
        const struct shared_claim_demand *claim = &set->claims[c];
        bool is_met =
            claim_is_allocated(claim->claim) || could_serve(core, claim->ask, &seats, node);
        pods = is_met ? pods : 0;
    }
    return pods;
}
