/* trace.h - what a pass looked at, noted as it happens; core_last_looks() reads it. */
#pragma once

#include "internal.h"

struct trace; /* of a core that traces, else NULL */

struct trace *trace_new(void);
void trace_free(struct trace *trace); /* NULL is fine */
/* A step begins. NULL is fine. */
void trace_begin(struct trace *trace);
/* `verdict` may be NULL: there is nothing more to say. Does nothing where nobody traces. */
void trace_look(struct core *core, const struct gang *gang, enum look_result result,
                const struct verdict *verdict);
