/* client.h - requests to the API server, on one libuv loop, never blocking it.
 *
 * The daemon opens one client after kube_config_load() and gives it to the informers (informer.h)
 * and writers (writer.h). Promises:
 * - `on_done` is called exactly once per request, never before kube_client_send() has returned, and
 *   on the loop's thread; also when the client is closed (KUBE_CANCELLED).
 * - TLS is verified unless the config says otherwise; HTTP/2 where the server offers it. Requests
 *   share connections; every watch has one of its own.
 * - Everything is bounded: KUBE_RESPONSE_MAX_BYTES, KUBE_HEADERS_MAX_BYTES, the time of a request,
 *   KUBE_IN_FLIGHT_MAX at a time, KUBE_QUEUE_MAX waiting.
 * - After a 401 the credentials are read anew and the request is sent once more.
 * - Nothing else is retried here (libcurl itself repeats a request whose kept connection turns out
 *   to be dead before any answer): KUBE_RETRY tells the caller to, after `retry_after_ms` or the
 *   pause of a kube_backoff. Requests must therefore be safe to repeat; those of writer.h are.
 *
 * Not for several threads. */
#pragma once

#include <uv.h>

#include "tallyman/api/codec.h"
#include "tallyman/kube/config.h"
#include "tallyman/kube/metrics.h"

struct kube_client;
struct kube_call;

enum kube_outcome {
    KUBE_DONE = 1,  /* 2xx */
    KUBE_CONFLICT,  /* 409: somebody changed it first, or it exists already */
    KUBE_NOT_FOUND, /* 404: no such object, or the kind isn't served */
    KUBE_GONE,      /* 410: the resourceVersion or continue token is too old */
    KUBE_INVALID,   /* 400, 405, 406, 413, 415, 422: this request will never pass */
    KUBE_FORBIDDEN, /* 403: RBAC or an admission policy; 401 after the credentials were read anew */
    KUBE_RETRY,     /* 429, 5xx, no connection, no whole answer in time */
    KUBE_CANCELLED, /* by kube_call_cancel() or kube_client_close() */
};

/* The little that a write's answer is asked for. */
struct kube_answer_meta {
    struct str name;
    struct str namespace_name;
    struct str uid;
    struct str resource_version;
    struct opt_int generation;
};

/* All of it is borrowed for the call of on_done. */
struct kube_response {
    enum kube_outcome outcome;
    uint32_t code; /* HTTP; 0: no answer */
    /* KUBE_RETRY, KUBE_CANCELLED of a request that changes something: it may have been carried out
     * all the same. Read the object again before deciding anything. */
    bool may_have_happened;
    int64_t retry_after_ms; /* what the server asked for; 0: nothing */
    struct str body;
    const struct api_status *status; /* the server's refusal; NULL on success or if it sent none */
    const struct kube_answer_meta *meta; /* of the object in a 2xx answer; NULL if it isn't one */
    /* One sentence with request, code, reason and cause; empty on success. */
    struct str message;
};

struct kube_request {
    const char *method;       /* static: "GET", "PATCH", … */
    const char *verb;         /* static; for the metrics: "patch", "apply" */
    struct str resource;      /* for the metrics: "jobs" */
    struct str path;          /* "/apis/batch/v1/namespaces/a/jobs/b", percent-encoded; copied */
    struct str query;         /* "fieldManager=tallyman", encoded; copied; absent: none */
    struct str body;          /* copied; absent: none */
    const char *content_type; /* static; NULL: application/json */
    const char *accept;       /* static; NULL: application/json */
    int64_t timeout_ms;       /* 0: KUBE_REQUEST_TIMEOUT_MS */
    bool is_urgent;           /* waits for no others: what a replica leads by */
    void (*on_done)(void *ctx, const struct kube_response *response);
    void *ctx; /* borrowed until on_done */
};

struct kube_client_options {
    uv_loop_t *loop;                  /* borrowed until on_closed */
    const struct kube_config *config; /* borrowed until on_closed */
    const char *version;              /* static; the User-Agent is "tallyman/" and this */
    uint64_t seed;                    /* for jitter; draw it with uv_random() */
    int64_t connect_timeout_ms;       /* 0: KUBE_CONNECT_TIMEOUT_MS */
    int64_t request_timeout_ms;       /* 0: KUBE_REQUEST_TIMEOUT_MS */
    int64_t credential_timeout_ms;    /* an exec plugin's; 0: KUBE_EXEC_TIMEOUT_MS */
    int64_t credential_reread_ms;     /* age of a token file's content; 0: KUBE_TOKEN_REREAD_MS */
};

/* The first connection is made by the first request, so that a server that is down isn't an error
 * here. Fails on an address or a token file that is no good. `*ret_client` is owned; give it
 * back with kube_client_close(). */
NODISCARD struct rc kube_client_open(const struct kube_client_options *options,
                                     struct kube_client **ret_client, struct err *err);
/* Cancels everything (their callbacks come first), closes all handles and frees the client, then
 * calls on_closed (may be NULL). Informers on this client must have been closed before. */
void kube_client_close(struct kube_client *client, void (*on_closed)(void *ctx), void *ctx);

/* The handle is borrowed until on_done has been called. */
struct kube_call *kube_client_send(struct kube_client *client, const struct kube_request *request);
/* on_done comes later, with KUBE_CANCELLED. */
void kube_call_cancel(struct kube_call *call);

/* Borrowed until the client is closed. */
const struct kube_metrics *kube_client_metrics(const struct kube_client *client);
/* "https://127.0.0.1:6443". Borrowed until the client is closed. */
struct str kube_client_server(const struct kube_client *client);
const char *kube_outcome_name(enum kube_outcome outcome);
/* True if one of the server's causes is about that field ("metadata.uid"). */
bool kube_status_names_field(const struct api_status *status, const char *field);
