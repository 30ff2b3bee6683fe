/* gang_line.h - gangs in an order: those of a queue and of a shape that wait, those with a timer,
 * those that hold something. Private to the core; part of state.h.
 *
 * Thousands stand in a line, each elsewhere in memory, so what their places are compared by stands
 * side by side in the line itself, in blocks: a search comes by two or three pages of memory and
 * not by one for each step. A gang takes 16 bytes and some room to grow. A block holds gangs of one
 * priority; there are few of these, as a PriorityClass is needed for each.
 *
 * What orders a gang (priority, order_ms, timer_ms, admitted_ms) stays as it is while it stands in
 * the line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gang;
struct line_block;
struct queue_state;
struct shape;

enum gang_line_order {
    LINE_BY_PLACE, /* gang_compare_order() */
    LINE_BY_TIMER,
    LINE_BY_ADMISSION,
};

/* All zeroes: empty, and by place. */
struct gang_line {
    struct line_block *blocks; /* owned; in order, none of them empty; NULL: nobody stands here */
    uint32_t count, capacity;  /* blocks */
    enum gang_line_order order;
};

/* Where a walk is; all zeroes: before the first. */
struct gang_line_walk {
    uint32_t block, at;
};

/* Whether it is the first now. It isn't in the line yet (asserted). */
bool gang_line_put(struct gang_line *line, struct gang *gang);
/* It is in the line (asserted). */
void gang_line_take(struct gang_line *line, const struct gang *gang);
/* Borrowed; NULL: nobody stands here. */
struct gang *gang_line_first(const struct gang_line *line);
/* The first that goes behind that gang, whether it is still in the line or not; NULL: none does. */
struct gang *gang_line_next(const struct gang_line *line, const struct gang *gang);
/* How many stand before that gang, which is in the line; `limit` if they are more. */
uint32_t gang_line_ahead(const struct gang_line *line, const struct gang *gang, uint32_t limit);

struct gang *gang_line_step(const struct gang_line *line, struct gang_line_walk *walk);
/* Not while any are put or taken. */
#define GANG_LINE_FOREACH(gang, line)                                                              \
    for (struct gang_line_walk line_walk = {0, 0};                                                 \
         ((gang) = gang_line_step(line, &line_walk)) != NULL;)

static inline bool gang_line_is_empty(const struct gang_line *line)
{
    return line->count == 0;
}

void queue_put_gang(struct queue_state *queue, struct gang *gang);
void queue_take_gang(struct queue_state *queue, const struct gang *gang);
/* While the shape is in no tree or line that its first gang orders. */
void shape_put_gang(struct shape *shape, struct gang *gang);
void shape_take_gang(struct shape *shape, const struct gang *gang);
