/* pace.h - how often an Admission is written. Private to the core.
 *
 * Pods that come and go, numbers and places change what an Admission says many times a second, and
 * each write costs the API server and every watcher. A new state is told at once, but
 * whether it still stops or is queued already. What else has changed waits until an interval
 * (core_options.admission_interval_ms) has passed since the last write, at most one interval long,
 * and what is written then is what is true then; if that is what was said before, nothing is. A
 * gang that nobody has been told of yet and that is being stopped waits as long: a Job that its
 * user started by hand is queued a moment later, and is told once.
 *
 * A Job that is edited in a loop, or whose pods come and go for ever, would be written of every
 * interval. So each write is owed for until PACE_PAID_MS have paid for it. A gang that owes
 * PACE_NUMBERS_MAX has its numbers told so far apart; one that owes PACE_NEWS_MAX its reasons, and
 * whether it waits or stops, as well, and its Events aren't told. That it starts, runs or has ended
 * is told at once whatever it owes.
 *
 * Nothing of it outlives a restart, which tells everything that isn't as the Admissions say; so
 * what a restart has to know doesn't wait for the interval (pace_hurry()). */
#pragma once

#include "internal.h"

/* Its Admission, which says `told_state`, is about to be written; `is_news`: for another state or
 * reason, or because there is none. False: it is too early, and it waits in line. True: it counts
 * as written. */
bool pace_allows(struct core *core, struct gang *gang, enum gang_state told_state, bool is_news);
/* It couldn't be written after all. */
void pace_give_back(struct gang *gang);
/* What its memory says has changed (gang_remember()): the next change doesn't wait. */
void pace_hurry(struct core *core, struct gang *gang);
/* Those whose time has come are told, so many of them. */
void pace_tick(struct core *core);
/* 0: none waits. Never now, for a tick that only goes on with a pass has no time for them. */
int64_t pace_due_ms(const struct core *core);
/* It is about to be freed. */
void pace_forget(struct core *core, struct gang *gang);
/* admission.c: asks for the write. */
void admission_ask(struct core *core, struct gang *gang);
