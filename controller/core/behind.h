/* behind.h - who stands behind the gang that blocks a StrictFIFO queue, and could never start.
 *
 * Nobody behind that gang is judged for his turn. But what can be mended only by him or the admin
 * is told at once, not when he is the first: a class that doesn't exist, more than the queue could
 * ever give. He is looked at when he comes and when what he waits for may have changed, so many at
 * each step; whoever could start one day is told that he is behind. */
#pragma once

#include "internal.h"

/* decide.c: keeps the verdict with the shape; tells its gangs if the reason is another one now. */
void shape_park(struct core *core, struct shape *shape, const struct evaluation *evaluation);
/* To be looked at, at the end of this step or a later one. */
void behind_ask(struct core *core, struct shape *shape);
/* The gang has come into its queue; `is_first`: nobody else of its shape waits. */
void behind_came(struct core *core, const struct gang *gang, bool is_first);
void behind_forget(struct core *core, struct shape *shape); /* it is freed */
void behind_look(struct core *core);
/* 0: nobody is left to be looked at. */
int64_t behind_due_ms(const struct core *core);
/* Whether a gang that blocks its queue stands in front of this one. */
bool behind_is_blocked(const struct gang *gang);
