/* http_internal.h - what the files of the server share; nobody else includes it. */
#pragma once

#include <microhttpd.h>

#include "tallyman/http/address.h"
#include "tallyman/http/server.h"

/* One client. In the server's list from the moment it is accepted until it is gone. */
struct http_client {
    struct MHD_Connection *connection; /* borrowed from MHD, which calls when it ends */
    uint64_t deadline_ms;              /* loop time by which its request must be answered */
    struct http_client *previous;
    struct http_client *next;
};

struct http_server {
    uv_loop_t *loop; /* borrowed */
    struct http_options options;
    struct MHD_Daemon *daemon; /* owned */
    char address[ADDRESS_TEXT_BYTES];
    struct http_client *clients; /* owned */

    uv_poll_t poll;   /* MHD's epoll descriptor */
    uv_timer_t timer; /* when MHD wants to run without an event */
    uv_timer_t sweep; /* while there are clients: who has taken too long? */
    uint32_t open_handles;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

/* answer.c: queues the answer to a request whose head has been read. */
enum MHD_Result http_answer(const struct http_server *server, struct MHD_Connection *connection,
                            const char *path, const char *method);
