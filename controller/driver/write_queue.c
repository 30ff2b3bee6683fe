#include "write_queue.h"

void queue_init(struct write_queue *queue)
{
    *queue = (struct write_queue){.last = &queue->first};
}

void queue_push(struct write_queue *queue, struct pending_write *write)
{
    write->next = NULL;
    *queue->last = write;
    queue->last = &write->next;
    queue->count++;
}

struct pending_write *queue_pop(struct write_queue *queue)
{
    struct pending_write *write = queue->first;
    if (write != NULL) {
        queue->first = write->next;
        queue->count--;
        if (queue->first == NULL) {
            queue->last = &queue->first;
        }
    }
    return write;
}

bool write_is_same_status(const struct pending_write *a, const struct pending_write *b)
{
    return a->effect.kind == EFFECT_WRITE_STATUS && b->effect.kind == EFFECT_WRITE_STATUS &&
           a->effect.object_kind == b->effect.object_kind && str_eq(a->effect.name, b->effect.name);
}

bool queue_has_older(const struct write_queue *queue, const struct pending_write *status)
{
    const struct pending_write *older = queue->first;
    while (older != NULL && (older->tries == 0 || !write_is_same_status(older, status))) {
        older = older->next;
    }
    return older != NULL;
}
