/* driver.h - carries out what the core asks for, and feeds the outcome back.
 *
 * One core behind a table of I/O ports: the daemon's are real (API server, store, clock), those of
 * `plan`, `simulate` and the tests are not. Rules:
 * - each write that the core wants an answer for ends in exactly one answer to the core;
 * - Job writes go first, then Admissions of gangs that were just admitted, then the rest; at most
 *   JOB_WRITES_IN_FLIGHT_MAX and ADMISSION_WRITES_IN_FLIGHT_MAX are out at a time, and fewer while
 *   the server is slow, gives no answer or says that it has too much to do (driver/window.h);
 * - what an Admission or a status says is asked of the core when it is sent, so that changes that
 *   come while it waits cost no write;
 * - a write that may or may not have happened is sent again: every one is safe to repeat. */
#pragma once

#include "tallyman/core/core.h"

struct driver;

enum write_outcome {
    WRITE_OK = 1,
    WRITE_CONFLICT,
    WRITE_GONE,
    WRITE_REFUSED,
    WRITE_DENIED, /* rights are missing: as long as a server has just been started, perhaps only now
                   */
    WRITE_RETRY,  /* no definite answer: the driver sends it again */
};

/* One write as a port gets it. Texts and pointers are borrowed until its answer. */
struct driver_write {
    uint64_t id; /* to be given to driver_write_done() */
    const struct effect *effect;
    const struct admission *admission;     /* EFFECT_WRITE_ADMISSION */
    const struct status_content *status;   /* EFFECT_WRITE_STATUS */
    const struct request_content *request; /* EFFECT_MAKE_REQUEST */
    int64_t at_ms;
};

struct driver_answer {
    enum write_outcome outcome;
    struct str resource_version; /* WRITE_OK of a Job */
    struct str message;          /* of whatever wasn't done */
    int64_t retry_after_ms;      /* WRITE_RETRY: what the server asked for; 0: nothing */
    bool is_overloaded;          /* WRITE_RETRY: the server has too much to do (429) */
};

struct driver_ports {
    void *ctx;                    /* borrowed by the driver */
    int64_t (*now_ms)(void *ctx); /* since 1970; never goes backwards: see steady_time.h */
    /* Call driver_tick() at that time; replaces the wish before. INT64_MAX: never. */
    void (*wake_at)(void *ctx, int64_t at_ms);
    /* Starts the write; answered by driver_write_done(), never from inside this call. */
    void (*write)(void *ctx, const struct driver_write *write);
    /* May be NULL: nobody keeps it. */
    void (*persist)(void *ctx, struct str gang_uid, const struct gang_memory *memory);
    void (*ledger)(void *ctx, const struct effect *effect);
    /* Before each step that has an event, and after it with what it asked for. May be NULL. */
    void (*on_event)(void *ctx, const struct event *event);
    void (*on_effects)(void *ctx, const struct event *event, const struct effects *effects);
    /* An event that the core refused: a malformed object. */
    void (*on_refused)(void *ctx, const struct event *event, const struct err *err);
};

struct driver_stats {
    uint64_t events;
    uint64_t job_writes;
    uint64_t admission_writes;
    uint64_t status_writes;
    uint64_t events_recorded;
    uint64_t pod_writes;
    uint64_t request_writes;
    uint64_t retries;
    uint64_t admitted;
    uint64_t suspended;
    uint32_t job_writes_waiting;
    uint32_t other_writes_waiting;
};

/* `ports` is copied; `core` is borrowed until driver_free(). Owned. */
struct driver *driver_new(struct core *core, const struct driver_ports *ports);
void driver_free(struct driver *driver); /* NULL is fine */

/* What has happened. Effects are carried out before these return, as far as they can be. */
void driver_object(struct driver *driver, const struct object *object);
void driver_deleted(struct driver *driver, const struct object *object);
/* The same where others of that moment follow: nothing is decided or written before one of the
 * other calls, driver_tick() at the latest. */
void driver_take_in(struct driver *driver, const struct object *object, bool is_deleted);
/* The kind has been listed whole, or the server doesn't serve it; again as that changes. */
void driver_synced(struct driver *driver, enum object_kind kind, bool is_absent);
void driver_tick(struct driver *driver);
void driver_write_done(struct driver *driver, uint64_t id, const struct driver_answer *answer);

/* Nothing is on its way or waiting. */
bool driver_is_idle(const struct driver *driver);
const struct driver_stats *driver_stats(const struct driver *driver); /* borrowed */
