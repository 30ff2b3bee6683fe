/* informer_internal.h - one informer, as informer.c (states), informer_stream.c (requests and how
 * they end) and informer_event.c (what a stream says) see it; nobody else includes it. */
#pragma once

#include "tallyman/kube/informer.h"
#include "tallyman/kube/known.h"
#include "tallyman/kube/retry.h"
#include "tallyman/kube/transport.h"

enum informer_state {
    INFORMER_WAITING = 1, /* for the next try */
    INFORMER_FILLING,     /* a WatchList, before its end mark */
    INFORMER_LISTING,     /* pages */
    INFORMER_WATCHING,    /* changes as they come */
    INFORMER_CLOSING,
    INFORMER_STATE_COUNT,
};

/* What made us end a stream. */
enum stream_fault {
    FAULT_NONE = 0,
    FAULT_REVERSED,   /* the resourceVersion went backwards */
    FAULT_SERVER,     /* an ERROR event: 410, or another complaint */
    FAULT_UNREADABLE, /* not a stream of that kind */
};

#define INFORMER_VERSION_MAX_BYTES  64
#define INFORMER_CONTINUE_MAX_BYTES 4096

struct kube_informer {
    struct kube_informer_options options; /* its texts point to the two copies below */
    const struct kind_info *kind;
    struct kube_transport *transport;
    struct kube_kind_metrics *metrics;
    char *label_selector;
    char *namespace_name;
    enum informer_state state;
    uv_timer_t timer;
    struct kube_transfer *transfer; /* borrowed; NULL: none */
    struct watch_decoder *watch_decoder;
    struct list_decoder *list_decoder;
    struct known *known;
    void *bare; /* owned; an empty struct of the kind, for inferred deletions */
    struct arena scratch;
    struct kube_backoff backoff;
    struct kube_backoff absent_backoff;
    uint64_t random;

    char version[INFORMER_VERSION_MAX_BYTES]; /* the last seen; empty: none */
    uint64_t version_number;                  /* 0: none, or not a number */
    char continue_token[INFORMER_CONTINUE_MAX_BYTES];
    bool can_resume;   /* the last stream ended at its own deadline */
    bool is_sync_told; /* on_sync_start of this sync */
    bool is_synced;
    bool is_absent;
    uint32_t version_index; /* of kind_version(): as which the kind is read */
    uint32_t fill_failures; /* WatchLists in a row that ended before their end mark */
    uint64_t list_until_ms; /* loop time; until then no WatchList is tried */
    uint64_t absent_since_ms;
    uint64_t started_ms; /* of the stream */
    int64_t stream_ms;   /* how long it was asked to last */

    enum stream_fault fault;
    int64_t fault_retry_after_ms;
    struct err fault_text;

    uint32_t open_parts; /* while closing */
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

/* -- informer.c -- */
void informer_enter(struct kube_informer *informer, enum informer_state state);
/* Tries again in `wait_ms` and says why, unless `message` is empty. */
void informer_wait(struct kube_informer *informer, int64_t wait_ms, struct str message);
void informer_part_closed(struct kube_informer *informer);
uint64_t informer_now_ms(const struct kube_informer *informer);
uint64_t informer_draw(struct kube_informer *informer);

/* -- informer_stream.c -- */
void informer_start_fill(struct kube_informer *informer);
void informer_start_list(struct kube_informer *informer);
void informer_start_watch(struct kube_informer *informer);

/* -- informer_event.c -- */
struct watch_handler informer_watch_handler(struct kube_informer *informer);
/* The first bytes of a sync have come. */
void informer_begin_sync(struct kube_informer *informer);
/* All objects have come; `version` is where the changes begin. */
void informer_finish_sync(struct kube_informer *informer, struct str version);
/* Reports everything known as deleted. */
void informer_forget_all(struct kube_informer *informer);
