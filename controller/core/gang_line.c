/* gang_line.c - those that wait, each in its place: a queue's, and a shape's.
 *
 * A Job that comes was created last, so it mostly goes behind all others: its place is found by one
 * look at the last, not on the way down a tree whose every step is elsewhere in memory. */
#include "gang_line.h"

#include <assert.h>

/* The last has nobody to its right. */
#define GENERATE_PUT(tree_name, field)                                                             \
    static void tree_name##_put(struct tree_name *tree, struct gang **last, struct gang *gang)     \
    {                                                                                              \
        bool is_last = *last == NULL || gang_compare_order(gang, *last) > 0;                       \
        if (*last == NULL || !is_last) {                                                           \
            RB_INSERT(tree_name, tree, gang);                                                      \
        } else {                                                                                   \
            assert(RB_RIGHT(*last, field) == NULL);                                                \
            RB_SET(gang, *last, field);                                                            \
            RB_RIGHT(*last, field) = gang;                                                         \
            tree_name##_RB_INSERT_COLOR(tree, gang);                                               \
        }                                                                                          \
        *last = is_last ? gang : *last;                                                            \
    }

GENERATE_PUT(gang_tree, in_queue)
GENERATE_PUT(shape_gang_tree, in_shape)

void queue_put_gang(struct queue_state *queue, struct gang *gang)
{
    gang_tree_put(&queue->pending, &queue->last_pending, gang);
    queue->pending_count++;
}

void queue_take_gang(struct queue_state *queue, struct gang *gang)
{
    if (queue->last_pending == gang) {
        queue->last_pending = RB_PREV(gang_tree, NULL, gang);
    }
    RB_REMOVE(gang_tree, &queue->pending, gang);
    queue->pending_count--;
}

void shape_put_gang(struct shape *shape, struct gang *gang)
{
    shape_gang_tree_put(&shape->gangs, &shape->last, gang);
    if (shape->first == NULL || gang_compare_order(gang, shape->first) < 0) {
        shape->first = gang;
    }
}

void shape_take_gang(struct shape *shape, struct gang *gang)
{
    if (shape->last == gang) {
        shape->last = RB_PREV(shape_gang_tree, NULL, gang);
    }
    RB_REMOVE(shape_gang_tree, &shape->gangs, gang);
    if (shape->first == gang) {
        shape->first = RB_MIN(shape_gang_tree, &shape->gangs);
    }
}
