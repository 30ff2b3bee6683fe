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
 * Nothing of it outlives a restart, which tells everything that isn't as the Admissions say; so
 * what a restart has to know is told at once, too. */
#pragma once

#include "internal.h"

/* An Admission is written; there is a change in it. */
void pace_note_write(const struct core *core, struct gang *gang);
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
