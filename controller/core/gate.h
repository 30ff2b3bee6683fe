/* gate.h - who may start where: stop policies. */
#pragma once

#include "internal.h"

/* -- stop.c: queues, and namespaces' use of them, that are stopped ----------------------------- */

enum stop { STOP_NONE = 0, STOP_HOLD, STOP_DRAIN };

struct stop_order {
    enum stop stop;
    struct str why; /* in the arena; absent with STOP_NONE */
};

/* What keeps gangs of that namespace from starting in that queue. */
struct stop_order stop_find(const struct core *core, struct arena *arena,
                            const struct queue_state *queue, struct str namespace_name);
/* Suspends the admitted gang if where it runs is being drained; false: it isn't. */
bool stop_drain(struct core *core, struct gang *gang);
/* Its running gangs are looked at: they may have to stop. */
void stop_namespace_changed(struct core *core, struct str namespace_name);
