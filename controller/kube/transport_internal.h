/* transport_internal.h - what transport.c (queues, credentials, shutdown) and transfer.c (one curl
 * handle) share; nobody else includes it. */
#pragma once

#include <sys/queue.h>

#include "authority.h"
#include "tallyman/base/limits.h"
#include "tallyman/kube/auth.h"
#include "tallyman/kube/curl_loop.h"
#include "tallyman/kube/inflate.h"
#include "tallyman/kube/transport.h"

/* QUEUED -> ACTIVE -> (freed)      a transfer's way; ENDING: its end is decided and only has to be
 *    |  <-retry-  |                told. A refused credential sends it back to QUEUED once.
 *    +-> ENDING <-+  */
enum transfer_state { TRANSFER_QUEUED = 1, TRANSFER_ACTIVE, TRANSFER_ENDING };

TAILQ_HEAD(transfer_list, kube_transfer);

struct kube_transfer {
    TAILQ_ENTRY(kube_transfer) link;  /* in the list of its state */
    struct kube_transport *transport; /* borrowed */
    enum transfer_state state;
    enum transfer_lane lane;
    const char *method;
    const char *verb;
    const char *content_type;
    const char *accept;
    char resource[64];
    char *url;  /* owned */
    char *body; /* owned; NULL: none */
    size_t body_bytes;
    int64_t timeout_ms;
    int64_t idle_ms;
    struct transfer_handler handler;

    CURL *easy;                   /* owned while active */
    struct curl_slist *headers;   /* owned while active */
    struct kube_inflate *inflate; /* owned; NULL: not compressed */
    char *refusal;                /* owned; NULL: none */
    size_t refusal_bytes;
    size_t header_bytes;
    uint64_t last_byte_ms; /* loop time */
    uint64_t credential_generation;
    int64_t retry_after_ms;
    uint32_t code;
    bool has_auth_retry; /* the one try after a 401 has been used */
    bool is_counted;
    enum transfer_ending ending; /* 0: not decided yet */
    char error[512];             /* goes with `ending` */
    char curl_error[CURL_ERROR_SIZE];
};

struct kube_transport {
    uv_loop_t *loop;
    const struct kube_config *config;
    struct kube_auth *auth;
    struct kube_authority authority;
    struct curl_loop request_lane;
    struct curl_loop stream_lane;
    struct transfer_list queued;
    struct transfer_list active;
    struct transfer_list ending;
    uv_idle_t work;
    uv_timer_t idle_timer;
    struct kube_metrics metrics;
    uint32_t request_capacity;     /* of metrics.requests */
    char *base_url;                /* "https://name:port", owned */
    struct curl_slist *connect_to; /* owned; NULL: as the URL says */
    char *user_agent;              /* owned */
    bool is_loopback;
    int64_t connect_timeout_ms;
    uint64_t random;
    CURL *spare[KUBE_IDLE_HANDLES_MAX]; /* owned; finished handles, for the next transfers */
    uint32_t spare_count;
    uint32_t open_parts; /* of the shutdown */
    bool is_closing;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

/* Puts the transfer into libcurl. False: it couldn't be; `ending` and `error` are set. */
bool transfer_launch(struct kube_transfer *transfer);
/* Takes it out of libcurl. */
void transfer_withdraw(struct kube_transfer *transfer);
/* What libcurl's result means, into `ending` and `error`, unless something is there already. */
void transfer_conclude(struct kube_transfer *transfer, CURLcode result);
/* Back to how it was before transfer_launch(). */
void transfer_rewind(struct kube_transfer *transfer);
void transfer_free(struct kube_transfer *transfer);
/* Counts the request in the metrics, once, with the code that it has by now. */
void transfer_count(struct kube_transfer *transfer);
void transfer_set_ending(struct kube_transfer *transfer, enum transfer_ending ending,
                         const char *format, ...) PRINTF_LIKE(3, 4);
/* The earliest moment at which a silent stream is given up decides when the timer fires. */
void transport_arm_idle_timer(struct kube_transport *transport);

/* Callbacks that transport_open.c ties to the lanes and to the credentials. */
void transport_on_done(void *ctx, CURL *easy, CURLcode result);
void transport_on_credentials(void *ctx, struct rc rc, const struct err *why);
void transport_on_part_closed(void *ctx);
