/* transport.h - transfers: one request and its answer, streamed, under the client's credentials.
 *
 * The ground that client.h (whole answers) and informer.h (streams) stand on; nobody else needs it.
 * - kube_transfer_start() only queues: it may be called from any callback. on_end comes exactly
 * once, from the loop, whatever happens.
 * - Three lanes: LANE_REQUEST shares connections (HTTP/2 multiplexing), at most KUBE_IN_FLIGHT_MAX
 * at a time; LANE_STREAM gives each transfer a connection of its own, so that a burst on one watch
 *   never holds up another; LANE_URGENT is for single requests that wait for nothing of all that,
 *   on connections of their own.
 * - gzip is asked for and undone here for LANE_STREAM.
 * - A 401 has the credentials read anew and the transfer sent once more, before anybody hears of
 * it. */
#pragma once

#include <uv.h>

#include "tallyman/kube/client.h"

struct kube_transport;
struct kube_transfer;

enum transfer_lane { LANE_REQUEST = 1, LANE_STREAM, LANE_URGENT };

enum transfer_ending {
    ENDED_WHOLE = 1,  /* the server said all that it wanted to, with whatever code */
    ENDED_UNSENT,     /* the request never left: no connection, no credentials, queue full */
    ENDED_BROKEN,     /* the connection or the answer broke off */
    ENDED_SILENT,     /* no byte for idle_ms, or not done within timeout_ms */
    ENDED_BY_HANDLER, /* on_data said so */
    ENDED_CANCELLED,
};

struct transfer_end {
    enum transfer_ending ending;
    uint32_t code;          /* HTTP; 0: none came */
    int64_t retry_after_ms; /* header Retry-After; 0: none */
    struct str refusal;     /* body of an answer that isn't 2xx, cut at KUBE_REFUSAL_MAX_BYTES */
    struct str error;       /* one sentence; empty if ENDED_WHOLE */
};

struct transfer_handler {
    /* Bytes of the body of a 2xx answer, decompressed. False: enough, end it. Borrowed. */
    bool (*on_data)(void *ctx, const char *bytes, size_t count);
    /* The transfer is freed afterwards. What `end` points to is borrowed for the call. */
    void (*on_end)(void *ctx, const struct transfer_end *end);
    void *ctx; /* borrowed until on_end */
};

struct transfer_spec {
    enum transfer_lane lane;
    const char *method;       /* static */
    const char *verb;         /* static, for the metrics */
    struct str resource;      /* copied, for the metrics */
    struct str path;          /* copied */
    struct str query;         /* copied; absent: none */
    struct str body;          /* copied; absent: none */
    const char *content_type; /* static; NULL: application/json */
    const char *accept;       /* static; NULL: application/json */
    int64_t timeout_ms;       /* of the whole; 0: none */
    int64_t idle_ms;          /* of silence; 0: none */
    struct transfer_handler handler;
};

NODISCARD struct rc kube_transport_open(const struct kube_client_options *options,
                                        struct kube_transport **ret_transport, struct err *err);
/* Cancels every transfer, then frees; on_closed is the last callback. */
void kube_transport_close(struct kube_transport *transport, void (*on_closed)(void *ctx),
                          void *ctx);

/* Borrowed until on_end. */
struct kube_transfer *kube_transfer_start(struct kube_transport *transport,
                                          const struct transfer_spec *spec);
void kube_transfer_cancel(struct kube_transfer *transfer); /* on_end comes, later */
void kube_transfer_set_idle(struct kube_transfer *transfer, int64_t idle_ms);

struct kube_metrics *kube_transport_metrics(struct kube_transport *transport);
struct str kube_transport_server(const struct kube_transport *transport);
uv_loop_t *kube_transport_loop(const struct kube_transport *transport);
/* A new number for a jitter's seed. */
uint64_t kube_transport_next_seed(struct kube_transport *transport);

/* The transport of a client, for the informer. Borrowed until the client is closed. */
struct kube_transport *kube_client_transport(struct kube_client *client);
