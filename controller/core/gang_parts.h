/* gang_parts.h - what few gangs have at once, apart from struct gang. Part of state.h.
 *
 * There are many gangs, and nearly all of them do nothing but wait. What only some have lives in
 * parts: a gang without one points to the part's `none`, which is all zeroes, so a part is read as
 * if it were always there (gang->run->active). GANG_PUT() writes a field; it makes a part of the
 * gang's own only for what isn't there already. Parts that have become all zeroes again are given
 * back by gang_parts_trim(). */
#pragma once

#include "tallyman/core/core.h"

struct check;
struct eviction;
struct evidence;
struct gang;
struct job_requests;
struct shape;

/* Its pods, and the writes to its Job. */
struct gang_run {
    /* the Job's status as last seen */
    int64_t active;
    int64_t ready;
    int64_t terminating;
    int64_t succeeded;

    int64_t promised_pods;        /* as last marked; see gang_mark_unbound() */
    int64_t promise_settled_pods; /* settled_pods then */
    int64_t short_since_ms;       /* fewer than min-count ready since; 0: whole */
    int64_t told_short_ms;        /* the same as its Admission says */
    int64_t told_ready_ms;
    uint32_t seen_ready_pods; /* at the last review */
    uint32_t told_ready_pods; /* as its Admission says */
    uint32_t lost_pods;       /* die on a dead node, and hold no quota any more */
    uint32_t surplus_pods;    /* that have devices beyond their share; see drift.c */
    const char *stop_cause;   /* static; of our last suspension, NULL: none */
    struct str stop_why;      /* owned; the sentence to it */
    int64_t checkpoint_ms;    /* annotation last-checkpoint; 0: none */
    int64_t request_ms;       /* annotation checkpoint-request; 0: none stands on the Job */
    struct str request_for;   /* owned; annotation checkpoint-for: "namespace/name/uid" */

    /* our own write on its way: no decision about the Job until the watch has shown it */
    uint64_t write_effect_id;    /* 0: none in flight */
    uint64_t write_base_version; /* the version it was guarded by */
    uint64_t awaited_version;    /* the watch has to reach it first; 0: nothing awaited */
    int64_t conflict_until_ms;   /* a conflict waits so long for the watch to show why; 0: none */
    uint32_t conflict_waits;     /* of CONFLICT_STEP_MS, with this one */
    int64_t write_retry_ms;      /* a refused suspension isn't tried before; 0: no matter */
    struct str version_text;     /* owned; absent: gang.version in digits */
};

/* How it gets room that isn't there yet: by victims, or by an autoscaler. */
struct gang_room {
    struct shape *reserved_shape;  /* what its victims stop for; borrowed */
    struct evidence *reserved_why; /* owned; of each flavor, while Reserved; NULL: nothing */
    int64_t reserved_until_ms;
    uint32_t reserved_combination; /* of flavors */
    uint32_t reserved_level;       /* so far up it may borrow for more pods than it needs */
    struct check *check;           /* owned; what it waits for while Reserved; NULL: victims */
    struct job_requests *requests; /* its ProvisioningRequests; NULL: there are none */
    int64_t used_attempt;          /* annotation provisioning-attempt: whose room it has used */
    int64_t used_before;           /* the same before our PATCH */
    int64_t dropped_attempt;       /* what was asked for until then isn't wanted any more */
};

/* What is wrong with it, and what has gone wrong. */
struct gang_trouble {
    struct str invalid; /* owned; the sentence, absent: the Job is fine */
    struct str refusal; /* owned; what the API server said to our PATCH */
    struct gang_memory memory;
    struct eviction *eviction; /* owned; NULL: it wasn't stopped yet */
};

extern const struct gang_run gang_run_none;
extern const struct gang_room gang_room_none;
extern const struct gang_trouble gang_trouble_none;

/* The gang's own, to be written to: made if it has none yet. */
struct gang_run *gang_run_edit(struct gang *gang);
struct gang_room *gang_room_edit(struct gang *gang);
struct gang_trouble *gang_trouble_edit(struct gang *gang);

#define GANG_PUT(gang, part, field, ...)                                                           \
    do {                                                                                           \
        typeof((gang)->part->field) put_value = (__VA_ARGS__);                                     \
        if ((gang)->part->field != put_value) {                                                    \
            gang_##part##_edit(gang)->field = put_value;                                           \
        }                                                                                          \
    } while (false)

/* The same for owned text, of which it keeps a copy. */
#define GANG_PUT_TEXT(gang, part, field, ...)                                                      \
    do {                                                                                           \
        struct str put_text = (__VA_ARGS__);                                                       \
        if (str_is_set((gang)->part->field) || str_is_set(put_text)) {                             \
            str_replace(&gang_##part##_edit(gang)->field, put_text);                               \
        }                                                                                          \
    } while (false)

void gang_put_memory(struct gang *gang, struct gang_memory memory);

void gang_parts_init(struct gang *gang);
void gang_parts_trim(struct gang *gang);
void gang_parts_free(struct gang *gang);
