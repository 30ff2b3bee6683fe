/* server.h - the controller's own HTTP server: /healthz, /readyz and /metrics, on the loop.
 *
 * On a loopback address it is plain HTTP for everybody on the host. On any other, and where TLS is
 * asked for, it is TLS, and /metrics is for those whom `authorize` lets have it; the health paths,
 * which a kubelet asks without a token, tell everybody one sentence. A request that another site's
 * page makes in a reader's browser is refused (Host and Origin).
 *
 * libmicrohttpd without a thread: its epoll descriptor is polled by libuv and its timeouts are a
 * libuv timer, so that handlers run on the loop and need no lock. GET and HEAD only; anything else
 * is 405 with Allow, any other path 404, each with a plain sentence. Answers are never cached.
 *
 * Clients can't hurt the loop: at most HTTP_CONNECTIONS_MAX of them, HTTP_CONNECTIONS_PER_IP_MAX
 * from one address (whoever comes finds room: where HTTP_CONNECTIONS_KEPT are open, one of the
 * address that has most is cut off), HTTP_CONNECTION_BYTES for a request's head, no body that is
 * read, HTTP_IDLE_S without progress and HTTP_REQUEST_S from the start of a request (or of the
 * connection) to the end of its answer. Connections beyond the limit wait in the system's backlog.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "tallyman/base/err.h"
#include "tallyman/base/str.h"

struct metrics;
struct http_server;
struct http_review;

/* Whether it is so, and the sentence that is the answer's body ("ok", "waits for the first list of
 * Jobs"). Called on the loop; the sentence is borrowed until the next call. */
typedef bool (*http_state_fn)(void *ctx, struct str *ret_sentence);

enum http_verdict {
    HTTP_NOT_ASKED = 0,
    HTTP_ALLOWED,
    HTTP_UNKNOWN_USER, /* 401 */
    HTTP_FORBIDDEN,    /* 403 */
    HTTP_UNAVAILABLE,  /* 503: it can't be found out now */
};

/* May the sender of this bearer token get that path? Answers by one call of http_review_answer(),
 * before it returns or later on the loop, be the server closed by then or not. Token and path are
 * borrowed for the call. */
typedef void (*http_authorize_fn)(void *ctx, struct str token, struct str path,
                                  struct http_review *review);

struct http_options {
    struct str listen;        /* "127.0.0.1:8080", "[::1]:8080", "0.0.0.0:0"; port 0: a free one */
    struct metrics *metrics;  /* borrowed until the server is closed; NULL: /metrics is 404 */
    http_state_fn is_healthy; /* NULL: always */
    http_state_fn is_ready;   /* NULL: always */
    bool is_tls;              /* asked for; it is so anyway where the address isn't loopback */
    const char *certificate_file; /* PEM; borrowed for the call; NULL: self-signed */
    const char *key_file;         /* PEM; NULL with certificate_file, and only with it */
    http_authorize_fn authorize;  /* asked where it is TLS; NULL: nobody may */
    void *ctx;                    /* borrowed until the server is closed */
    uint32_t request_ms;          /* 0: HTTP_REQUEST_S */
    uint32_t idle_s;              /* 0: HTTP_IDLE_S */
};

/* RC_INVALID: `listen` isn't an address and a port, or a TLS file is no good. RC_IO: the address
 * can't be used (in use, not of this host, privileged). `loop` is borrowed until the server is
 * closed. `*ret_server` is owned by the caller, who ends it with http_server_close(). */
NODISCARD struct rc http_server_open(uv_loop_t *loop, const struct http_options *options,
                                     struct http_server **ret_server, struct err *err);
/* Where it listens, with the real port: "127.0.0.1:43121". Borrowed from the server. */
struct str http_server_address(const struct http_server *server);
bool http_server_is_tls(const struct http_server *server);
/* Ends every connection, gives everything back and calls `on_closed` on the loop. NULL is fine for
 * both. */
void http_server_close(struct http_server *server, void (*on_closed)(void *ctx), void *ctx);
/* Frees the review. */
void http_review_answer(struct http_review *review, enum http_verdict verdict);
