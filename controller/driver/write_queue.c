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
