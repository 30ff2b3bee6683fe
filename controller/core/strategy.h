/* strategy.h - how long gangs may run, and the room that is kept for the head of a queue. Part of
 * internal.h, which includes it. */
#pragma once

#include "state.h"

#define ANNOTATION_MAX_RUNTIME "tallyman.dev/max-runtime"

struct evaluation;

/* -- runtime.c: how long a gang may run ------------------------------------------------------- */

/* Both 0 where nobody says. */
struct runtime {
    int64_t expected_ms; /* what is reckoned with */
    int64_t enforced_ms; /* it is ended then */
};

/* Of a gang of that queue whose Job itself states `stated_ms` (0: nothing). */
struct runtime runtime_of(const struct queue_state *queue, int64_t stated_ms);
/* The lesser of annotation max-runtime and the Job's own activeDeadlineSeconds; 0: none. */
int64_t runtime_stated_ms(const struct gang *gang);
/* When a gang with a reservation will have ended: never before now; INT64_MAX: nobody says. */
int64_t runtime_end_ms(const struct core *core, const struct gang *gang);
/* The activeDeadlineSeconds that its admission sets; not set: the Job's own is right. */
struct opt_int runtime_deadline_to_set(const struct gang *gang);
/* Reads annotation and deadline; the sentence if they are wrong (scratch arena), else absent. */
struct str runtime_read(struct core *core, struct gang *gang, const struct job *job);

/* -- booking.c: room that is kept for the head of a queue ---------------------------------------
 */

/* What the gangs hold has changed, or what there is. */
void bookings_move(struct core *core);
/* A step begins: anything may have changed. */
void bookings_step(struct core *core);
/* While a gang takes the room that was freed for it, nobody else's is looked at. */
void bookings_ignore(struct core *core, bool is_ignored);
/* Heads may be others now. */
void bookings_look_again(struct core *core);
void booking_queue_changed(struct core *core, struct queue_state *queue);
/* It no longer waits in its queue. */
void booking_forget(struct core *core, struct gang *gang);
/* Works out all that isn't up to date, before a what-if begins. */
void bookings_prepare(struct core *core);
/* Whether the first gang of the shape may start so, beside those that are booked ahead of it. */
struct verdict booking_check(struct core *core, struct shape *shape,
                             const struct evaluation *evaluation);
/* After a pass; true: gangs that a booking held back have been woken. */
bool bookings_settle(struct core *core);
int64_t bookings_due_ms(const struct core *core); /* INT64_MAX: nothing is due */
void bookings_init(struct core *core);
void bookings_free(struct core *core);
