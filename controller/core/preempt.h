/* preempt.h - who is stopped for whom, and the transaction in which that happens. */
#pragma once

#include "internal.h"

struct victims {
    struct gang **items; /* in the scratch arena */
    uint32_t count;
    uint32_t capacity;
};

void victims_append(struct core *core, struct victims *victims, struct gang *victim);

/* The smallest set of gangs to stop, and how the gang fits then; the set is empty if it fits as
 * soon as those are gone that stop for it already. False: there is none, or it has only to wait.
 * `fits`: it fits now by borrowing, and stopping others may still be preferred. Leaves in
 * gang->look_again_ms when a candidate's protection ends (0: none has one). */
bool victims_find(struct core *core, struct gang *gang, bool fits, struct victims *ret_victims,
                  struct evaluation *ret_evaluation);

/* Whether a gang that doesn't fit for that reason might if others stopped. */
bool preempt_can_help(enum reason reason);
/* fungible.c: whether a gang of the queue may be better off preempting though it fits. */
bool fungible_may_preempt_first(const struct queue_state *queue);
/* Finds victims for the gang, stops them and reserves their room for it; false: there are none, or
 * it had better take what fits now (`reason` REASON_NONE). */
bool preempt(struct core *core, struct gang *gang, enum reason reason);
/* Those of its victims that still hold something. */
uint32_t preempt_victims_left(const struct core *core, const struct gang *gang);
/* It no longer wants the room, or has waited too long for it. */
void preempt_abort(struct core *core, struct gang *gang);
/* Admits the gangs whose victims have all stopped. */
void preempt_finish_ready(struct core *core);
/* Takes up the transactions that a restart has interrupted. */
void preempt_restore(struct core *core);
