/* write_queue.h - writes between the core's wish and their answer. Private to the driver. */
#pragma once

#include "tallyman/base/map.h"
#include "tallyman/driver/driver.h"

/* A write from its effect to its answer. The arena holds its texts. */
struct pending_write {
    uint64_t id;
    UT_hash_handle hh;
    struct pending_write *next; /* in its queue */
    struct effect effect;
    struct admission *admission;     /* in the arena, once it is sent */
    struct status_content *status;   /* in the arena, once it is sent */
    struct request_content *request; /* in the arena, once it is sent */
    struct arena arena;
    int64_t not_before_ms;
    int64_t sent_ms; /* the last time */
    uint32_t tries;
    uint32_t denials; /* of them, for want of rights */
    bool is_job;
    bool is_in_doubt; /* a try of it got no definite answer, so it may have been carried out */
};

/* First in, first out. */
struct write_queue {
    struct pending_write *first;
    struct pending_write **last;
    uint32_t count;
};

void queue_init(struct write_queue *queue);
void queue_push(struct write_queue *queue, struct pending_write *write);
/* NULL: it is empty. */
struct pending_write *queue_pop(struct write_queue *queue);
