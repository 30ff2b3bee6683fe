/* http_internal.h - what the files of the server share; nobody else includes it. */
#pragma once

#include <microhttpd.h>

#include "tallyman/http/address.h"
#include "tallyman/http/server.h"
#include "tls.h"

/* One client. In the server's list from the moment it is accepted until it is gone. */
struct http_client {
    struct http_server *server;        /* borrowed */
    struct MHD_Connection *connection; /* borrowed from MHD, which calls when it ends */
    struct http_review *review;        /* borrowed from the authorizer; NULL: none is under way */
    enum http_verdict verdict;         /* on the request that is being read */
    uint64_t deadline_ms;              /* loop time by which its request must be answered */
    struct sockaddr_storage address;   /* where it comes from */
    bool is_cut_off;                   /* MHD will see that its stream has ended */
    struct http_client *previous;
    struct http_client *next;
};

struct http_server {
    uv_loop_t *loop; /* borrowed */
    struct http_options options;
    struct MHD_Daemon *daemon; /* owned */
    struct http_tls *tls;      /* owned; NULL: plain HTTP */
    char address[ADDRESS_TEXT_BYTES];
    struct http_client *clients; /* owned */
    bool has_closed;             /* a connection went during this run of MHD */

    uv_poll_t poll;   /* MHD's epoll descriptor */
    uv_timer_t timer; /* when MHD wants to run without an event */
    uv_timer_t sweep; /* while there are clients: who has taken too long? */
    uint32_t open_handles;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

/* server.c: lets MHD do what it can do now. */
void http_run(struct http_server *server);

/* answer.c: queues the answer to a request whose head has been read, or suspends the connection
 * until it is known who sends it. */
enum MHD_Result http_answer(struct http_server *server, struct http_client *client,
                            const char *path, const char *method);

/* authorize.c: true: client->verdict tells. False: the connection is suspended, and the request
 * comes again with the verdict. */
bool http_ask(struct http_server *server, struct http_client *client, struct str path);
/* The client goes: an answer that is still to come finds nobody. */
void http_client_drop_review(struct http_client *client);
/* A page of another site asks through its reader's browser. */
bool http_is_foreign(const struct http_server *server, struct MHD_Connection *connection);
