/* booking.c - who has to wait for the head of a queue, and what is told of it; see booking.h.
 *
 * This is EASY backfilling (Lifka, 1995; Mu'alem and Feitelson, 2001): the head starts at the
 * earliest time at which it fits by the ends that are known, and a gang behind it may start now if
 * it will have ended by then, or if the head still fits then beside it. */
#include "booking.h"
#include "preempt.h"
#include "selectors.h"
#include "wait.h"

#include "tallyman/base/time_text.h"

/* -- who has to wait for it ---------------------------------------------------------------------
 */

/* As its start was worked out: whoever has ended by then is out. */
static void go_to_start(struct core *core, struct shadow *shadow, const struct booking *booking)
{
    for (uint32_t i = 0; i < shadow->count; i++) {
        struct shadow_entry *entry = &shadow->entries[i];
        bool is_out = entry->end_ms != INT64_MAX && entry->end_ms <= booking->start_ms;
        const struct gang *gang = entry->guest == NULL ? entry->gang : entry->guest->head;
        for (uint32_t a = 0; gang != NULL && a < booking->awaited_count; a++) {
            is_out = is_out || booking->awaited[a] == gang;
        }
        shadow_set_out(core, entry, is_out);
    }
}

/* Whether the head still fits when its time has come, with these pods beside it for ever. */
static bool fits_beside(struct core *core, const struct booking *booking, struct shape *shape,
                        const struct evaluation *evaluation)
{
    uint32_t count;
    struct shadow_guest *guests = booking_guests_before(core, booking, &count);
    struct charge_list charges = charges_in_all(&evaluation->reserve);
    struct crowd *crowds = ARENA_ARRAY(&core->scratch, struct crowd, evaluation->set_count + 1);
    crowds_of_evaluation(shape, evaluation, crowds);
    guests[count++] =
        (struct shadow_guest){.crowds = crowds,
                              .crowd_count = shape_is_physical(shape) ? evaluation->set_count : 0,
                              .node = &shape->queue->node,
                              .charges = charges,
                              .until_ms = INT64_MAX,
                              .starts_now = true};
    struct shadow shadow;
    struct evaluation then;
    shadow_open(core, &shadow, guests, count);
    go_to_start(core, &shadow, booking);
    bool fits = shadow_fits(core, &shadow, booking->gang, &then);
    shadow_close(core, &shadow);
    struct booking owner = {.charges = charges};
    booking_drop(&owner);
    return fits;
}

/* The same pods of the same queue, however many. */
static bool is_one_kind(const struct pod_demand *a, const struct pod_demand *b)
{
    bool is_same = a->set->shape->queue == b->set->shape->queue &&
                   str_eq(a->set->shape->namespace_name, b->set->shape->namespace_name) &&
                   a->domain == b->domain && a->flavor_count == b->flavor_count;
    for (uint32_t i = 0; is_same && i < a->flavor_count; i++) {
        is_same = a->flavors[i] == b->flavors[i];
    }
    return is_same &&
           (a->set == b->set || object_equal(&pod_spec_schema, a->set->spec, b->set->spec));
}

/* Of its kind the smallest that is known to be in the way; NULL: none is. */
static struct refusal *refusal_of(struct core *core, struct booking *booking,
                                  const struct pod_demand *demand)
{
    if (booking->refusal_epoch != core->bookings->epoch) {
        booking->refusal_epoch = core->bookings->epoch;
        booking->refusal_count = 0;
    }
    for (uint32_t i = 0; i < booking->refusal_count; i++) {
        if (is_one_kind(&booking->refusals[i].demand, demand)) {
            return &booking->refusals[i];
        }
    }
    return NULL;
}

/* As fits_beside(), which is asked only where the answer isn't known: in one state of the books all
 * gangs of a kind that are as large as one that doesn't fit don't fit either. */
static bool finds_room_beside(struct core *core, struct booking *booking, struct shape *shape,
                              const struct evaluation *evaluation)
{
    if (shape->set_count > 1) {
        return fits_beside(core, booking, shape, evaluation); /* of several sets none is larger */
    }
    struct crowd crowd;
    crowds_of_evaluation(shape, evaluation, &crowd);
    struct refusal refusal = {crowd.demand, crowd.pods};
    struct refusal *known = core->is_what_if ? NULL : refusal_of(core, booking, &refusal.demand);
    if (known != NULL && known->pods <= refusal.pods) {
        return false;
    }
    if (fits_beside(core, booking, shape, evaluation)) {
        return true;
    }
    if (known != NULL) {
        known->pods = refusal.pods;
    } else if (!core->is_what_if && booking->refusal_count < BOOKING_REFUSALS_MAX) {
        booking->refusals[booking->refusal_count++] = refusal;
    }
    return false;
}

static bool lets_go_first(struct core *core, struct booking *booking, struct shape *shape,
                          const struct evaluation *evaluation)
{
    if (booking->start_ms == BOOKING_NEVER) {
        return true; /* it isn't those behind it that it waits for */
    }
    int64_t run_ms = runtime_of(shape->queue, shape->stated_runtime_ms).expected_ms;
    bool is_known = booking->start_ms != BOOKING_UNKNOWN;
    if (is_known && run_ms > 0 && sat_add(core->now_ms, run_ms) <= booking->start_ms) {
        return true;
    }
    return finds_room_beside(core, booking, shape, evaluation);
}

/* "4 pods, 4 gpu.example.com" */
static struct str size_text(struct core *core, const struct booking *booking)
{
    struct text text;
    text_init(&text, &core->scratch, 200);
    int64_t pods = 0;
    for (uint32_t i = 0; i < booking->crowd_count; i++) {
        pods = sat_add(pods, booking->crowds[i].pods);
    }
    text_addf(&text, "%lld pod%s", (long long)pods, pods == 1 ? "" : "s");
    for (uint32_t i = 0; i < booking->charges.count; i++) {
        const struct charge *charge = &booking->charges.items[i];
        if (!str_eq_c(charge->resource, RESOURCE_PODS)) {
            text_addf(
                &text, ", " STR_FMT " " STR_FMT,
                STR_ARG(resource_amount_format(&core->scratch, charge->resource, charge->amount)),
                STR_ARG(charge->resource));
        }
    }
    return text_str(&text);
}

static int64_t whole_minute(int64_t ms)
{
    return (ms + 59999) / 60000 * 60000;
}

static struct verdict kept_verdict(struct core *core, const struct booking *booking,
                                   const struct shape *shape)
{
    struct arena *arena = &core->scratch;
    bool is_own = str_eq(booking->gang->namespace_name, shape->namespace_name);
    struct str who =
        arena_format(arena, "%s" STR_FMT " of queue " STR_FMT " (" STR_FMT ")",
                     is_own ? "gang " : "a gang", STR_ARG(is_own ? booking->gang->name : STR("")),
                     STR_ARG(booking->gang->queue->name), STR_ARG(size_text(core, booking)));
    char buffer[TIME_TEXT_BYTES];
    struct str message;
    if (booking->start_ms == BOOKING_UNKNOWN) {
        message = arena_format(arena,
                               "would take room that is kept for " STR_FMT
                               ", which is ahead of it; nobody knows when that one starts, because "
                               "gangs in its way state no run-time bound",
                               STR_ARG(who));
    } else if (booking->start_ms <= core->now_ms) {
        message = arena_format(arena,
                               "would take room that is kept for " STR_FMT
                               ", which is ahead of it and starts as soon as the gangs in its way "
                               "have stopped, whose run-time bounds are over",
                               STR_ARG(who));
    } else {
        message = arena_format(
            arena,
            "would take room that is kept for " STR_FMT
            ", which is ahead of it and starts by " STR_FMT
            "; it could go first with a run-time bound that ends before "
            "(annotation " ANNOTATION_MAX_RUNTIME ")",
            STR_ARG(who), STR_ARG(time_format_rfc3339(whole_minute(booking->start_ms), buffer)));
    }
    return (struct verdict){.reason = REASON_RESERVED_FOR_OTHER,
                            .waits_for = WAIT_BOOKING | WAIT_QUOTA | WAIT_CLUSTER,
                            .message = message};
}

/* The first booking that the gang would be in the way of, or NULL. */
static const struct booking *in_whose_way(struct core *core, struct gang *gang,
                                          const struct evaluation *evaluation)
{
    for (uint32_t i = 0; i < core->bookings->count; i++) {
        struct booking *booking = &core->bookings->items[i];
        if (booking->gang == gang || !shapes_may_meet(core, booking->gang->shape, gang->shape) ||
            !order_is_ahead(core, booking->gang, gang)) {
            continue;
        }
        if (!core->is_what_if) {
            bookings_work_out(core, i + 1);
        }
        if (!lets_go_first(core, booking, gang->shape, evaluation)) {
            return booking;
        }
    }
    return NULL;
}

struct verdict booking_check(struct core *core, struct shape *shape,
                             const struct evaluation *evaluation)
{
    struct gang *gang = core->judged != NULL ? core->judged : shape->first;
    bool is_asked =
        core->bookings->has_queues && shadow_now(core) == NULL && !core->bookings->is_ignored;
    const struct booking *booking = NULL;
    bool is_settled = !is_asked || gang == NULL;
    while (booking == NULL && !is_settled) {
        if (!core->is_what_if) {
            bookings_find_heads(core);
        }
        booking = in_whose_way(core, gang, evaluation);
        is_settled = core->is_what_if || !core->bookings->are_heads_stale;
    }
    return booking == NULL ? (struct verdict){.reason = REASON_NONE}
                           : kept_verdict(core, booking, shape);
}

void bookings_prepare(struct core *core)
{
    if (core->bookings->has_queues) {
        bookings_work_out_all(core);
    }
}

/* -- after a pass -------------------------------------------------------------------------------
 */

/* The minute it starts at is told; a change within it isn't. */
static void show_start(struct core *core, const struct booking *booking)
{
    bool is_known = booking->start_ms < BOOKING_NEVER;
    int64_t shown_ms = is_known ? whole_minute(booking->start_ms) : INT64_MAX;
    if (booking->gang->likely_start_ms != shown_ms) {
        booking->gang->likely_start_ms = shown_ms;
        gang_show(core, booking->gang);
    }
}

static bool has_untold(const struct core *core)
{
    for (uint32_t i = 0; i < core->bookings->count; i++) {
        const struct booking *booking = &core->bookings->items[i];
        if (booking->epoch == 0 || booking->gang->likely_start_ms == 0) {
            return true;
        }
    }
    return false;
}

bool bookings_settle(struct core *core)
{
    if (core->bookings->has_queues && !selectors_beside_are_known(core)) {
        return false; /* soon */
    }
    bool is_starving =
        core->bookings->next_starving_ms != 0 && core->bookings->next_starving_ms <= core->now_ms;
    core->bookings->are_heads_stale = core->bookings->are_heads_stale || is_starving;
    bookings_find_heads(core);
    bool is_due =
        core->bookings->are_books_moved && core->now_ms >= core->bookings->next_refresh_ms;
    if (core->bookings->count > 0 && (is_due || has_untold(core))) {
        core->bookings->are_books_moved = false;
        bookings_work_out_all(core);
        for (uint32_t i = 0; i < core->bookings->count; i++) {
            show_start(core, &core->bookings->items[i]);
        }
        core->bookings->next_refresh_ms = core->now_ms + BOOKING_REFRESH_MS;
    }
    if (!core->bookings->wakes_held_back) {
        core->bookings->rounds = 0;
        return false;
    }
    if (++core->bookings->rounds > BOOKING_ROUNDS_MAX) {
        core->bookings->rounds = 0;
        core->bookings->are_books_moved = true; /* the rest is looked at soon */
        return false;
    }
    core->bookings->wakes_held_back = false;
    wake_beside(core, WAIT_BOOKING);
    preempt_early_note_beside(core);
    core->may_finish_reserved = true; /* who is Reserved goes before those that were woken */
    return true;
}

int64_t bookings_due_ms(const struct core *core)
{
    int64_t due_ms =
        core->bookings->next_starving_ms == 0 ? INT64_MAX : core->bookings->next_starving_ms;
    bool is_wanted = core->bookings->count > 0 || core->bookings->wakes_held_back;
    bool is_refreshed = is_wanted && core->bookings->are_books_moved;
    return is_refreshed && core->bookings->next_refresh_ms < due_ms
               ? core->bookings->next_refresh_ms
               : due_ms;
}
