/* room_index.h - who waits for room, found by what one of their pods asks of a node. Private to the
 * core.
 *
 * Where room comes free on a node, only those are looked at whose pods may use that node and ask
 * for no more devices, cpu or memory than it has free: whoever waits for more, or for other nodes,
 * costs nothing. The look itself is exact (wake_for_node).
 *
 * Sorted are shapes that are parked and resolved. Whose requests have to be read anew, or hang on a
 * claim of many, stands in a list of its own and is always looked at. */
#pragma once

#include "internal.h"

/* Pods of one set; the next and previous ask the same. */
struct room_asker {
    struct shape *shape; /* borrowed: that it belongs to */
    struct room_ask *ask;
    struct room_asker *next, *previous;
};

/* The shape's verdict is another one, or it doesn't wait any more. */
void room_index_put(struct core *core, struct shape *shape);
/* What its pods ask for may be another thing now. */
void room_index_unsort(struct core *core, struct shape *shape);
/* Each shape that the room on that node could be enough for, by these numbers, and some more than
 * once. `look` may wake it, and must leave the index alone. */
void room_index_visit(struct core *core, struct node_state *node,
                      void (*look)(struct core *core, struct shape *shape,
                                   struct node_state *node));
void room_index_free(struct core *core);
