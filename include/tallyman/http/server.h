/* server.h - the controller's own HTTP server: /healthz, /readyz and /metrics, on the loop.
 *
 * libmicrohttpd without a thread: its epoll descriptor is polled by libuv and its timeouts are a
 * libuv timer, so that handlers run on the loop and need no lock. GET and HEAD only; anything else
 * is 405 with Allow, any other path 404, each with a plain sentence. Answers are never cached.
 *
 * Clients can't hurt the loop: at most HTTP_CONNECTIONS_MAX of them, HTTP_CONNECTIONS_PER_IP_MAX
 * from one address, HTTP_CONNECTION_BYTES for a request's head, no body that is read, HTTP_IDLE_S
 * without progress and HTTP_REQUEST_S from the start of a request (or of the connection) to the end
 * of its answer. Connections beyond the limit wait in the system's backlog. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "tallyman/base/err.h"
#include "tallyman/base/str.h"

struct metrics;
struct http_server;

/* Whether it is so, and the sentence that is the answer's body ("ok", "waits for the first list of
 * Jobs"). Called on the loop; the sentence is borrowed until the next call. */
typedef bool (*http_state_fn)(void *ctx, struct str *ret_sentence);

struct http_options {
    struct str listen;        /* "127.0.0.1:8080", "[::1]:8080", "0.0.0.0:0"; port 0: a free one */
    struct metrics *metrics;  /* borrowed until the server is closed; NULL: /metrics is 404 */
    http_state_fn is_healthy; /* NULL: always */
    http_state_fn is_ready;   /* NULL: always */
    void *ctx;                /* borrowed until the server is closed */
    uint32_t request_ms;      /* 0: HTTP_REQUEST_S */
    uint32_t idle_s;          /* 0: HTTP_IDLE_S */
};

/* RC_INVALID: `listen` isn't an address and a port. RC_IO: the address can't be used (in use, not
 * of this host, privileged). `loop` is borrowed until the server is closed. `*ret_server` is owned
 * by the caller, who ends it with http_server_close(). */
NODISCARD struct rc http_server_open(uv_loop_t *loop, const struct http_options *options,
                                     struct http_server **ret_server, struct err *err);
/* Where it listens, with the real port: "127.0.0.1:43121". Borrowed from the server. */
struct str http_server_address(const struct http_server *server);
/* Ends every connection, gives everything back and calls `on_closed` on the loop. NULL is fine for
 * both. */
void http_server_close(struct http_server *server, void (*on_closed)(void *ctx), void *ctx);
