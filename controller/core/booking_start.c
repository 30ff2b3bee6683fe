/* booking_start.c - when a head starts by the ends that are known; see booking.h. */
#include "booking.h"
#include "check.h"

#include "tallyman/base/alloc.h"

/* -- who is concerned ---------------------------------------------------------------------------
 */

bool shape_is_physical(const struct shape *shape)
{
    return queue_looks_at_nodes(shape->queue) && !check_is_asked(shape);
}

/* Whichever flavor it may get: that one could tolerate a taint. */
static bool may_go_to(const struct core *core, const struct shape *shape,
                      const struct node_state *node)
{
    for (uint32_t i = 0; i < shape->set_count; i++) {
        const struct pod_set *set = &shape->sets[i];
        struct pod_demand demand = {.set = set, .node_selector = &set->node_selector};
        enum exclusion exclusion = node_exclusion(core, &demand, node);
        if (exclusion == EXCLUDED_COUNT || exclusion == EXCLUDED_TAINT) {
            return true;
        }
    }
    return false;
}

/* Whether the one could take what the other needs: quota of one tree, or the same nodes. */
bool shapes_may_meet(struct core *core, struct shape *a, struct shape *b)
{
    if (quota_root(&a->queue->node) == quota_root(&b->queue->node)) {
        return true;
    }
    if (!shape_is_physical(a) || !shape_is_physical(b)) {
        return false;
    }
    if (core->roaming_devices > 0) {
        return true;
    }
    shape_resolve(core, a);
    shape_resolve(core, b);
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node->object != NULL && may_go_to(core, a, node) && may_go_to(core, b, node)) {
            return true;
        }
    }
    return false;
}

/* -- when it starts -----------------------------------------------------------------------------
 */

static struct runtime booked_runtime(const struct booking *booking)
{
    return runtime_of(booking->gang->queue, booking->gang->shape->stated_runtime_ms);
}

static struct shadow_guest guest_of_booking(const struct booking *booking)
{
    struct runtime runtime = booked_runtime(booking);
    bool is_known = booking->start_ms < BOOKING_NEVER && runtime.expected_ms > 0;
    return (struct shadow_guest){
        .head = booking->gang,
        .crowds = booking->crowds,
        .crowd_count = booking->crowd_count,
        .node = &booking->gang->queue->node,
        .charges = booking->charges,
        .until_ms = is_known ? sat_add(booking->start_ms, runtime.expected_ms) : INT64_MAX};
}

/* The heads that are booked before that one and could be in its way; room for one more guest. */
struct shadow_guest *booking_guests_before(struct core *core, const struct booking *booking,
                                           uint32_t *ret_count)
{
    struct shadow_guest *guests =
        ARENA_ARRAY(&core->scratch, struct shadow_guest, core->bookings->count + 1);
    *ret_count = 0;
    for (const struct booking *other = core->bookings->items; other < booking; other++) {
        bool is_there = other->epoch == core->bookings->epoch && other->start_ms != BOOKING_NEVER;
        if (is_there && shapes_may_meet(core, other->gang->shape, booking->gang->shape)) {
            guests[(*ret_count)++] = guest_of_booking(other);
        }
    }
    return guests;
}

static void add_charge(struct charge_list *list, const struct charge *charge, int64_t times)
{
    list->items[list->count++] = (struct charge){.flavor = str_own(charge->flavor),
                                                 .resource = str_own(charge->resource),
                                                 .amount = sat_mul(charge->amount, times)};
}

/* What it takes in all, the named claims too that somebody else may be charged for by then. */
struct charge_list charges_in_all(const struct reserve_request *request)
{
    uint32_t room = 1;
    for (uint32_t s = 0; s < request->set_count; s++) {
        room += request->sets[s].per_pod.count;
    }
    for (uint32_t c = 0; c < request->claim_count; c++) {
        room += request->claims[c].charges.count;
    }
    struct charge_list list = {.items = mem_zalloc(room * sizeof(struct charge))};
    for (uint32_t s = 0; s < request->set_count; s++) {
        for (uint32_t i = 0; i < request->sets[s].per_pod.count; i++) {
            add_charge(&list, &request->sets[s].per_pod.items[i], request->sets[s].count);
        }
    }
    for (uint32_t c = 0; c < request->claim_count; c++) {
        for (uint32_t i = 0; i < request->claims[c].charges.count; i++) {
            add_charge(&list, &request->claims[c].charges.items[i], 1);
        }
    }
    return list;
}

void crowds_of_evaluation(const struct shape *shape, const struct evaluation *evaluation,
                          struct crowd *ret_crowds)
{
    for (uint32_t s = 0; s < evaluation->set_count; s++) {
        const struct pod_set *set = &shape->sets[s];
        const struct set_choice *choice = &evaluation->sets[s];
        struct pod_demand demand = {.set = set,
                                    .node_selector = &set->node_selector,
                                    .domain = evaluation->domain,
                                    .flavor_count = choice->flavor_count};
        for (uint32_t f = 0; f < choice->flavor_count; f++) {
            demand.flavors[f] = choice->flavors[f];
        }
        ret_crowds[s] = (struct crowd){.demand = demand, .pods = evaluation->reserve.sets[s].count};
    }
}

static void keep_demand(struct booking *booking, const struct evaluation *evaluation)
{
    booking->charges = charges_in_all(&evaluation->reserve);
    booking->crowds = mem_zalloc((evaluation->set_count + 1) * sizeof(struct crowd));
    booking->crowd_count = evaluation->set_count;
    crowds_of_evaluation(booking->gang->shape, evaluation, booking->crowds);
}

/* The fewest entries that have to be out for it to fit; more than there are: it never does. */
static uint32_t fewest_out(struct core *core, struct shadow *shadow, struct booking *booking,
                           struct evaluation *best)
{
    uint32_t low = 0;
    uint32_t high = shadow->count;
    shadow_go_to(core, shadow, high);
    if (!shadow_fits(core, shadow, booking->gang, best)) {
        return high + 1;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct evaluation evaluation;
        shadow_go_to(core, shadow, middle);
        if (shadow_fits(core, shadow, booking->gang, &evaluation)) {
            *best = evaluation;
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return high;
}

void booking_ask_help(struct core *core, struct gang *gang)
{
    struct shadow shadow;
    struct evaluation evaluation;
    shadow_open(core, &shadow, NULL, 0);
    shadow_go_to(core, &shadow, shadow.count);
    gang->shape->is_beyond_help = !shadow_fits(core, &shadow, gang, &evaluation);
    gang->shape->is_help_unsure = false;
    gang->shape->is_help_asked = true;
    shadow_close(core, &shadow);
}

/* Of the gangs and heads without a known end those that really have to end: whoever can stay is put
 * back, so that no more room is kept than is needed. */
static void find_awaited(struct core *core, struct shadow *shadow, struct booking *booking,
                         uint32_t out)
{
    booking->awaited = mem_zalloc((out - shadow->known + 1) * sizeof(struct gang *));
    for (uint32_t i = 0; i < out; i++) {
        shadow_set_out(core, &shadow->entries[i], true);
    }
    uint32_t tried = 0;
    for (uint32_t i = out; i > shadow->known; i--) {
        struct shadow_entry *entry = &shadow->entries[i - 1];
        struct evaluation evaluation;
        shadow_set_out(core, entry, false);
        if (++tried > BOOKING_AWAITED_MAX ||
            !shadow_fits(core, shadow, booking->gang, &evaluation)) {
            shadow_set_out(core, entry, true);
            booking->awaited[booking->awaited_count++] =
                entry->guest == NULL ? entry->gang : entry->guest->head;
        }
    }
}

/* What was said once holds while it can. Much that puts the start off passes by itself: a pod has
 * ended, and its Job doesn't say yet that it wants no other one. If such a moment let others go
 * first, they would put it off for good. */
static void keep_promise(struct core *core, struct booking *booking, int64_t start_ms)
{
    bool is_later =
        booking->epoch != 0 && booking->start_ms > core->now_ms && start_ms > booking->start_ms;
    if (!is_later) {
        booking->missed_since_ms = 0;
        booking->start_ms = start_ms;
        return;
    }
    core->bookings->are_books_moved = true; /* looked at again soon */
    if (booking->missed_since_ms == 0) {
        booking->missed_since_ms = core->now_ms;
    } else if (core->now_ms - booking->missed_since_ms >= BOOKING_REFRESH_MS) {
        booking->missed_since_ms = 0;
        booking->start_ms = start_ms;
        core->bookings->wakes_held_back = true;
    }
}

/* More gangs have to end than was known, since others were let in: what comes free beside the head
 * may be enough for those that had to leave it its room. */
static void note_awaited(struct core *core, const struct booking *booking, uint32_t known_before)
{
    if (booking->epoch != 0 && booking->awaited_count > known_before) {
        core->bookings->wakes_held_back = true;
    }
}

static void work_out(struct core *core, struct booking *booking)
{
    uint32_t awaited_before = booking->awaited_count;
    booking_drop(booking);
    uint32_t guest_count;
    struct shadow_guest *guests = booking_guests_before(core, booking, &guest_count);
    struct shadow shadow;
    struct evaluation best;
    shadow_open(core, &shadow, guests, guest_count);
    uint32_t out = fewest_out(core, &shadow, booking, &best);
    if (out > shadow.count) {
        booking->start_ms = BOOKING_NEVER;
        booking->gang->shape->is_beyond_help = true; /* the next one is the head */
        core->bookings->are_heads_stale = true;
    } else {
        keep_demand(booking, &best);
        int64_t start_ms = BOOKING_UNKNOWN;
        if (out > shadow.known) {
            find_awaited(core, &shadow, booking, out);
            note_awaited(core, booking, awaited_before);
        } else {
            start_ms = out == 0 ? core->now_ms : shadow.entries[out - 1].end_ms;
        }
        keep_promise(core, booking, start_ms);
    }
    shadow_close(core, &shadow);
    booking->epoch = core->bookings->epoch;
}

/* All up to the `count`-th: each reckons with those before it. */
void bookings_work_out(struct core *core, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (core->bookings->items[i].epoch != core->bookings->epoch) {
            work_out(core, &core->bookings->items[i]);
        }
    }
}

void bookings_work_out_all(struct core *core)
{
    do {
        bookings_find_heads(core);
        bookings_work_out(core, core->bookings->count);
    } while (core->bookings->are_heads_stale); /* each time one more gang is beyond help */
}
