/* booking.h - the room that is kept for the head of a queue. Private to booking.c and its users.
 *
 * A head that can't start is booked: at once in a queue with strategy Backfill, and with
 * starvationBound under every strategy once it has waited so long. Its booking says when it will
 * start at the latest by the ends that are known, and no gang behind it may start that would keep
 * it from starting then. Nothing is charged for a booking: it is worked out anew from what there
 * is, and so is the same after a restart. docs/decisions has the why. */
#pragma once

#include "shadow.h"

#include "tallyman/base/limits.h"

#define BOOKING_UNKNOWN INT64_MAX       /* gangs have to end whose end nobody knows */
#define BOOKING_NEVER   (INT64_MAX - 1) /* it wouldn't fit even if all had ended */

/* A gang that would have been in the way, so that larger ones of the kind needn't be tried. */
struct refusal {
    struct pod_demand demand; /* valid in the epoch of its booking's refusals */
    int64_t pods;
};

struct booking {
    struct gang *gang;       /* borrowed; it waits in its queue */
    int64_t start_ms;        /* at the latest; see keep_promise() */
    int64_t missed_since_ms; /* by what is known it would be later; 0: it wouldn't */
    uint64_t epoch;          /* of the books that it was worked out from; 0: it never was */
    struct crowd *crowds;    /* owned; its pod sets; valid while the epoch is the core's */
    uint32_t crowd_count;
    struct charge_list charges; /* owned; what it takes in all */
    struct gang **awaited;      /* owned; those without a known end that have to end, heads too */
    uint32_t awaited_count;
    struct refusal refusals[BOOKING_REFUSALS_MAX];
    uint32_t refusal_count;
    uint64_t refusal_epoch;
};

struct bookings {
    struct booking items[BOOKINGS_MAX]; /* in the order of their gangs */
    uint32_t count;
    uint64_t epoch; /* counts changes of what they are worked out from */
    bool is_ignored;
    const struct shadow *shadow; /* see shadow_now() */
    bool has_queues;             /* some queue has_bookings */
    bool are_heads_stale;        /* others may have to be booked */
    bool are_books_moved;        /* since the start times were last shown */
    bool wakes_held_back;        /* a booking has gone, or lets others go first now */
    uint32_t rounds;             /* passes of this step */
    int64_t next_starving_ms;    /* the next head has waited its starvationBound; 0: none */
    int64_t next_refresh_ms;     /* start times aren't shown before */
};

/* booking_heads.c: who is booked. Those that still are keep what was worked out for them. */
void bookings_find_heads(struct core *core);
/* Frees what was worked out. */
void booking_drop(struct booking *booking);

/* booking_start.c: when they start. All up to the `count`-th, each beside those before it. */
void bookings_work_out(struct core *core, uint32_t count);
/* All of them, whoever they are in the end. */
void bookings_work_out_all(struct core *core);
/* Whether it would fit if every gang had ended: kept with its shape. */
void booking_ask_help(struct core *core, struct gang *gang);
/* The heads that are booked before that one and could be in its way; room for one more guest. */
struct shadow_guest *booking_guests_before(struct core *core, const struct booking *booking,
                                           uint32_t *ret_count);
/* Whether the one could take what the other needs: quota of one tree, or the same nodes. */
bool shapes_may_meet(struct core *core, struct shape *a, struct shape *b);
bool shape_is_physical(const struct shape *shape);
struct charge_list charges_in_all(const struct reserve_request *request); /* owned */
/* The pods of one set; `ret_crowds` has room for all of the evaluation's. */
void crowds_of_evaluation(const struct shape *shape, const struct evaluation *evaluation,
                          struct crowd *ret_crowds);
