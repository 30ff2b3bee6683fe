/* status_write.h - when the status of a Queue, Cohort or ResourceFlavor is written. Private to the
 * core.
 *
 * One write of an object is on its way at a time, and the next waits for its answer: of two, the
 * older might arrive last, and stay. What the watch shows is believed before what was answered: an
 * API server that was put back to an older state has forgotten writes to which it once said yes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct core;
struct pending_effect;
struct effect_done;

struct status_write {
    uint64_t said_hash;  /* of what was last sent */
    uint64_t shown_hash; /* of what the object has, as far as we know; 0: unknown */
    uint64_t effect_id;  /* of the write on its way; 0: none */
    bool is_shown_since; /* the watch has shown the object since it was sent */
    bool is_dirty;       /* there may be something new to say */
    int64_t next_ms;     /* not before */
};

/* Of what is said, to tell whether it is the same. */
uint64_t status_content_hash(enum object_kind kind, const void *content);
/* When it is to be written; INT64_MAX: nothing is. */
int64_t status_write_due_ms(const struct status_write *status);
/* `content`: a Queue, Cohort or ResourceFlavor with its name and the status as it should be. False:
 * the object has it already. */
bool status_write_is_news(enum object_kind kind, const void *content, struct status_write *status);
/* `content`: the same of the status that the watch shows. */
void status_write_shown(enum object_kind kind, const void *content, struct status_write *status);
void status_write_emit(struct core *core, enum object_kind kind, struct str name,
                       struct status_write *status);
void status_write_done(struct core *core, const struct pending_effect *effect,
                       const struct effect_done *done);
