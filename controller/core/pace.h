/* pace.h - how often something is written of one object. Private to the core.
 *
 * Pods that come and go, numbers and places change what an Admission says many times a second, and
 * each write costs the API server and every watcher. So does whoever edits, starts or makes anew
 * one Job in a loop. What is written of a gang (its Admission, Events, PATCHes, a deletion of the
 * Admission) is owed, and one write is paid for every PACE_PAID_MS:
 *
 *   - A new state is told at once, but whether it still stops or is queued already; so is what a
 *     restart has to know. From PACE_NEWS_MAX that are owed on, it waits as what is no news.
 *   - What else has changed waits the longer the more is owed: an interval
 *     (core_options.admission_interval_ms) for one, PACE_SECOND_MS for two, PACE_PAID_MS for more.
 *     What is written then is what is true then; if that is what was said before, nothing is.
 *   - A gang that nobody has been told of yet and that is being stopped waits, too: a Job that its
 *     user started by hand is queued a moment later, and is told once.
 *   - From PACE_EVENTS_MAX that are owed on, Events aren't written (core_event_is_told(), asked
 *     when one is sent); the Admission says all that they do.
 *   - PATCHes to the Job never wait: one suspends what nobody admitted, or admits. Each answers
 *     what somebody else has written.
 *
 * So whatever is done to a gang, it is a handful at first, and three writes a minute besides those
 * PATCHes. Who takes its name inherits what it owes.
 *
 * Nothing of it outlives a restart, which tells everything that isn't as the Admissions say. */
#pragma once

#include "internal.h"

/* An Admission is written; there is a change in it. */
void pace_note_write(const struct core *core, struct gang *gang);
/* Something else is. */
void pace_note_other(const struct core *core, struct gang *gang);
/* Whether what can wait is done at once. */
bool pace_allows_news(const struct core *core, struct gang *gang);
/* What its memory says has changed (gang_remember()): the next change doesn't wait. */
void pace_hurry(struct core *core, struct gang *gang);
/* Those whose time has come are told, so many of them. */
void pace_tick(struct core *core);
/* 0: none waits. Never now, for a tick that only goes on with a pass has no time for them. */
int64_t pace_due_ms(const struct core *core);
/* It is about to be freed. */
void pace_forget(struct core *core, struct gang *gang);
/* Its name is free again, or it has taken one. */
void pace_leave(struct core *core, struct gang *gang);
void pace_take_over(struct core *core, struct gang *gang);
void paces_free(struct core *core);
/* A status of that object is written: STATUS_INTERVAL_MS apart, and PACE_PAID_MS in the end. */
void pace_note_status(const struct core *core, struct status_pace *pace);
/* status.c: it may be; else core.next_status_ms is when, at the latest. */
bool status_is_due(struct core *core, const struct status_pace *pace);
/* admission.c: asks for the write. */
void admission_ask(struct core *core, struct gang *gang);
