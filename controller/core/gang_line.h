/* gang_line.h - those that wait, each in its place. Private to the core. */
#pragma once

#include "state.h"

void queue_put_gang(struct queue_state *queue, struct gang *gang);
void queue_take_gang(struct queue_state *queue, struct gang *gang);
/* While the shape is in no tree or line that its first gang orders. */
void shape_put_gang(struct shape *shape, struct gang *gang);
void shape_take_gang(struct shape *shape, struct gang *gang);
