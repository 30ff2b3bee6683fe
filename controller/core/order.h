/* order.h - what the ranking of queues is told, so that it can keep what it has found. */
#pragma once

#include "internal.h"

/* What is used at the node has changed, or whose gangs are ready at the queue. */
void order_changed(struct quota_node *node);
/* A queue has shapes to be judged now, or none any more. */
void order_count_ready(struct core *core, struct quota_node *node, bool is_ready);
void order_node_free(struct order_node *order); /* NULL is fine */
/* As order_next(), from scratch: for tests. */
struct shape *order_next_plain(struct core *core);
/* The quota that woke it went to those in front: nothing has changed for it. */
bool shape_is_still_short(const struct shape *shape);
/* The ready shape that is next in the queue, or NULL. */
struct shape *order_first_ready(const struct core *core, struct queue_state *queue);
