/* loose_part.h - cards whose parts no counter ties to them. Private to the core. */
#pragma once

#include "internal.h"

/* Notes in the pool, which has just been read, whether it lists such ones. */
void pool_find_loose_part(struct core *core, struct pool_state *pool);
/* A warning for a gang that was let go on devices of such a pool, if it is on some. */
void tell_loose_parts(struct core *core, const struct gang *gang);
