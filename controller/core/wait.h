/* wait.h - which parked shapes a release of quota could free, and only those.
 *
 * A shape that is short of quota waits at the accounts that its queue was short of: one for each
 * combination of flavors that was tried, with the amount that it asks of it. Until one of these has
 * so much to give, the shape can't start. A release reaches the queues below the highest node whose
 * usage it changes; of each it wakes the first in line that asks for no more than is free now, and
 * the next when that one has been judged: those that ask for more aren't looked at. */
#pragma once

#include "internal.h"

#define SHORTAGES_MAX 16 /* more combinations of flavors: any release wakes */

/* A parked shape at one account. */
struct quota_wait {
    RB_ENTRY(quota_wait) in_line; /* by the order of the shapes' first gangs */
    struct shape *shape;
    struct quota_line *line;
    int64_t asked;
    int64_t least; /* the smallest `asked` at and below it in the tree */
};

RB_HEAD(quota_wait_tree, quota_wait);

/* All of a queue that wait at one account. */
struct quota_line {
    struct quota_line *next_in_queue;
    struct str flavor;   /* owned */
    struct str resource; /* owned; both absent: of those that any release wakes */
    struct quota_wait_tree waits;
    bool is_woken; /* something has come free, and it isn't known that it is too little */
};

/* The shape is parked, and waits for these (replacing what it waited for). */
void waits_set(struct shape *shape, const struct quota_shortage *shortages, uint32_t count);
/* It stands in line, or is taken out: while it is ready, and while its first gang changes. */
void waits_link(struct shape *shape);
void waits_unlink(struct shape *shape);
void waits_clear(struct shape *shape);
/* Something came free at `top` and maybe below. */
void waits_wake(struct core *core, struct quota_node *top, struct str flavor, struct str resource);
/* A shape of the queue was judged or put aside: the next that a release could free is woken. */
void waits_go_on(struct core *core, struct queue_state *queue);
void queue_lines_free(struct queue_state *queue);

/* As waits_wake(), by looking at every shape: for tests. */
void wake_for_release_plain(struct core *core, struct str flavor, struct str resource);
/* After a change of its verdict: it stands among those that wait for room or an object, or not. */
void room_wait(struct core *core, struct shape *shape);
/* Those that wait for room beside what is promised (WAIT_PROMISES) or kept (WAIT_BOOKING). */
void wake_beside(struct core *core, uint32_t bits);
