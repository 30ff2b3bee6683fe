/* booking_heads.c - for which gangs room is kept; see booking.h. */
#include "booking.h"

#include "tallyman/base/alloc.h"

static bool is_backfill(const struct queue *object)
{
    return str_eq_c(object->spec.queueing_strategy, "Backfill");
}

/* The first that waits for room, past those that can't start at all, and those that would still
 * wait if every gang ended: it isn't overtaking that keeps them. */
static struct gang *first_blocked(struct core *core, struct queue_state *queue)
{
    struct gang *gang;
    uint32_t passed = 0;
    GANG_LINE_FOREACH (gang, &queue->pending) {
        enum reason reason = gang->shape->verdict.reason;
        if (reason == REASON_NONE) {
            return NULL; /* it is about to be judged for the first time */
        }
        if (gang->shape->is_help_unsure) {
            booking_ask_help(core, gang);
        }
        if (!reason_info(reason)->is_passed_over && !gang->shape->is_beyond_help) {
            return gang;
        }
        if (++passed == BOOKING_PASSED_OVER_MAX) {
            return NULL;
        }
    }
    return NULL;
}

static bool hides_an_older(struct gang *first)
{
    uint32_t seen = 0;
    struct gang *gang = gang_line_next(&first->queue->pending, first);
    while (gang != NULL && gang->order_ms >= first->order_ms && ++seen < BOOKING_PASSED_OVER_MAX) {
        gang = gang_line_next(&first->queue->pending, gang);
    }
    return gang != NULL && gang->order_ms < first->order_ms;
}

/* The first that has to wait long enough. One that nothing could help is found out when it is
 * booked; but a young one isn't booked yet, and mustn't stand before those that have waited. */
static struct gang *first_to_starve(struct core *core, struct queue_state *queue)
{
    struct gang *gang = first_blocked(core, queue);
    while (gang != NULL && !gang->shape->is_help_asked && hides_an_older(gang)) {
        booking_ask_help(core, gang);
        gang = first_blocked(core, queue);
    }
    return gang;
}

/* The head that is to be booked now, or NULL; notes when one will have waited long enough. */
static struct gang *head_of(struct core *core, struct queue_state *queue)
{
    if (is_backfill(queue->object)) {
        return first_blocked(core, queue);
    }
    struct gang *gang = first_to_starve(core, queue);
    if (gang == NULL) {
        return NULL;
    }
    int64_t due_ms = sat_add(gang->order_ms, queue->object->spec.starvation_bound.ms);
    if (due_ms <= core->now_ms) {
        return gang;
    }
    if (core->bookings->next_starving_ms == 0 || due_ms < core->bookings->next_starving_ms) {
        core->bookings->next_starving_ms = due_ms;
    }
    return NULL;
}

void booking_drop(struct booking *booking)
{
    for (uint32_t i = 0; i < booking->charges.count; i++) {
        str_drop(&booking->charges.items[i].flavor);
        str_drop(&booking->charges.items[i].resource);
    }
    mem_free(booking->charges.items);
    mem_free(booking->awaited);
    mem_free(booking->crowds);
    booking->crowds = NULL;
    booking->crowd_count = 0;
    booking->charges = (struct charge_list){.items = NULL};
    booking->awaited = NULL;
    booking->awaited_count = 0;
}

static struct booking *booking_of(const struct core *core, const struct gang *gang)
{
    for (uint32_t i = 0; i < core->bookings->count; i++) {
        if (core->bookings->items[i].gang == gang) {
            return &core->bookings->items[i];
        }
    }
    return NULL;
}

/* Into its place by gang order; the last falls off a full list. */
static void insert_head(struct booking *list, uint32_t *count, const struct booking *booking)
{
    uint32_t at = *count;
    while (at > 0 && gang_compare_order(booking->gang, list[at - 1].gang) < 0) {
        at--;
    }
    if (at == BOOKINGS_MAX) {
        return;
    }
    *count += *count < BOOKINGS_MAX ? 1 : 0;
    for (uint32_t i = *count - 1; i > at; i--) {
        list[i] = list[i - 1];
    }
    list[at] = *booking;
}

static void forget(struct core *core, struct booking *booking)
{
    bool is_never = booking->start_ms == BOOKING_NEVER && booking->epoch != 0;
    booking->gang->likely_start_ms = is_never ? INT64_MAX : 0;
    core->bookings->wakes_held_back = core->bookings->wakes_held_back || !is_never;
    booking_drop(booking);
}

/* Who is booked: those that still are keep what was worked out for them. */
void bookings_find_heads(struct core *core)
{
    if (!core->bookings->are_heads_stale) {
        return;
    }
    core->bookings->are_heads_stale = false;
    core->bookings->next_starving_ms = 0;
    struct booking found[BOOKINGS_MAX];
    uint32_t count = 0;
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        struct gang *gang = queue->has_bookings ? head_of(core, queue) : NULL;
        if (gang != NULL) {
            struct booking fresh = {.gang = gang};
            const struct booking *old = booking_of(core, gang);
            insert_head(found, &count, old == NULL ? &fresh : old);
        }
    }
    for (uint32_t i = 0; i < core->bookings->count; i++) {
        bool is_kept = false;
        for (uint32_t j = 0; j < count; j++) {
            is_kept = is_kept || found[j].gang == core->bookings->items[i].gang;
        }
        if (!is_kept) {
            gang_show(core, core->bookings->items[i].gang);
            forget(core, &core->bookings->items[i]);
        }
    }
    bool is_changed = count != core->bookings->count;
    for (uint32_t i = 0; i < count; i++) {
        is_changed = is_changed || core->bookings->items[i].gang != found[i].gang;
        core->bookings->items[i] = found[i];
    }
    core->bookings->count = count;
    core->bookings->epoch += is_changed ? 1 : 0; /* each reckons with those before it */
}

void bookings_look_again(struct core *core)
{
    if (core->bookings->has_queues) {
        core->bookings->are_heads_stale = true;
        core->bookings->are_books_moved = true;
    }
}

void bookings_step(struct core *core)
{
    core->bookings->epoch++;
}

void bookings_ignore(struct core *core, bool is_ignored)
{
    core->bookings->is_ignored = is_ignored;
}

const struct shadow *shadow_now(const struct core *core)
{
    return core->bookings->shadow;
}

void shadow_enter(struct core *core, const struct shadow *shadow)
{
    core->bookings->shadow = shadow;
}

void bookings_move(struct core *core)
{
    core->bookings->epoch++;
    core->bookings->are_books_moved = core->bookings->has_queues;
}

void booking_queue_changed(struct core *core, struct queue_state *queue)
{
    const struct queue *object = queue->object;
    queue->has_bookings =
        object != NULL && (is_backfill(object) || object->spec.starvation_bound.is_set);
    core->bookings->has_queues = false;
    struct queue_state *other;
    RB_FOREACH (other, queue_tree, &core->queue_order) {
        core->bookings->has_queues = core->bookings->has_queues || other->has_bookings;
    }
    core->bookings->are_heads_stale = core->bookings->has_queues || core->bookings->count > 0;
}

void booking_forget(struct core *core, struct gang *gang)
{
    if (gang->queue->has_bookings) {
        bookings_look_again(core);
    }
    gang->likely_start_ms = 0;
    struct booking *booking = booking_of(core, gang);
    if (booking == NULL) {
        return;
    }
    forget(core, booking);
    gang->likely_start_ms = 0;
    core->bookings->count--;
    for (struct booking *next = booking; next < core->bookings->items + core->bookings->count;
         next++) {
        *next = next[1];
    }
}

void bookings_init(struct core *core)
{
    core->bookings = MEM_NEW(struct bookings);
}

void bookings_free(struct core *core)
{
    mem_free(core->bookings); /* each booking has gone with its gang */
}
