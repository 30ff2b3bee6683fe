#include "http_internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* --- Clients -------------------------------------------------------------------------------------
 */

static void client_restart_clock(struct http_server *server, struct http_client *client)
{
    client->deadline_ms = uv_now(server->loop) + server->options.request_ms;
}

/* MHD sees the end of the stream and tidies up. */
static void client_cut_off(struct http_client *client)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    client->is_cut_off = true;
    (void)shutdown(info->connect_fd, SHUT_RDWR);
}

/* How many connections its address has. */
static uint32_t clients_of_address(const struct http_server *server,
                                   const struct http_client *client)
{
    uint32_t count = 0;

    for (const struct http_client *other = server->clients; other != NULL; other = other->next) {
        count += !other->is_cut_off && address_is_same_host(&other->address, &client->address);
    }
    return count;
}

/* Whoever connects and says little would keep others out, a kubelet's probe too. So places are kept
 * for who comes next: where they are taken, the one that has been answered nothing for longest
 * goes, of those whose address has the most. */
static void make_room(struct http_server *server)
{
    struct http_client *worst = NULL;
    uint32_t worst_count = 0;
    uint32_t open_count = 0;

    for (struct http_client *client = server->clients; client != NULL; client = client->next) {
        open_count += !client->is_cut_off;
    }
    for (struct http_client *client = server->clients;
         client != NULL && open_count > HTTP_CONNECTIONS_KEPT; client = client->next) {
        uint32_t count = client->is_cut_off ? 0 : clients_of_address(server, client);

        if (count > worst_count ||
            (count > 0 && count == worst_count && client->deadline_ms <= worst->deadline_ms)) {
            worst = client;
            worst_count = count;
        }
    }
    if (worst != NULL) {
        client_cut_off(worst);
    }
}

/* A slow client that sends a byte now and then is never idle: it is cut off by the clock. */
static void on_sweep(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    uint64_t now_ms = uv_now(server->loop);

    for (struct http_client *client = server->clients; client != NULL; client = client->next) {
        if (now_ms >= client->deadline_ms) {
            client_cut_off(client);
        }
    }
}

static void client_add(struct http_server *server, struct MHD_Connection *connection,
                       void **socket_context)
{
    struct http_client *client = MEM_NEW(struct http_client);

    client->server = server;
    client->connection = connection;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    if (info != NULL && info->client_addr != NULL) {
        bool is_ip6 = info->client_addr->sa_family == AF_INET6;

        memcpy(&client->address, info->client_addr,
               is_ip6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    }
    client->next = server->clients;
    if (client->next != NULL) {
        client->next->previous = client;
    } else {
        (void)uv_timer_start(&server->sweep, on_sweep, HTTP_SWEEP_MS, HTTP_SWEEP_MS);
    }
    server->clients = client;
    client_restart_clock(server, client);
    *socket_context = client;
    make_room(server);
}

static void client_remove(struct http_server *server, struct http_client *client)
{
    http_client_drop_review(client);
    if (client->previous != NULL) {
        client->previous->next = client->next;
    } else {
        server->clients = client->next;
    }
    if (client->next != NULL) {
        client->next->previous = client->previous;
    }
    mem_free(client);
    server->has_closed = true;
    if (server->clients == NULL) {
        (void)uv_timer_stop(&server->sweep);
    }
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = ctx;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        client_add(server, connection, socket_context);
    } else {
        client_remove(server, *socket_context);
    }
}

static bool has_body(struct MHD_Connection *connection)
{
    const char *length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);

    return (length != NULL && strcmp(length, "0") != 0) ||
           MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                       MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
}

/* MHD calls twice: with the head, and at the end of the request; then again after a suspension. An
 * answer to the head makes it close the connection, which is right where a body would follow:
 * nobody reads it. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_bytes, void **request_context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    bool is_first_call = *request_context == NULL;

    (void)version;
    (void)body;
    *body_bytes = 0; /* nothing of it is left for another call */
    *request_context = ctx;
    if (is_first_call && !has_body(connection)) {
        return MHD_YES;
    }
    return http_answer(ctx, info->socket_context, path, method);
}

static void on_answered(void *ctx, struct MHD_Connection *connection, void **request_context,
                        enum MHD_RequestTerminationCode code)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    (void)request_context;
    (void)code;
    if (info != NULL && info->socket_context != NULL) {
        struct http_client *client = info->socket_context;

        client->verdict = HTTP_NOT_ASKED;
        client_restart_clock(ctx, client);
    }
}

/* Paths are compared as they came: an escaped one isn't one of ours, least of all with %00. */
static size_t keep_escapes(void *ctx, struct MHD_Connection *connection, char *text)
{
    (void)ctx;
    (void)connection;
    return strlen(text);
}

/* --- The loop ------------------------------------------------------------------------------------
 */

static void on_timer(uv_timer_t *timer)
{
    http_run(timer->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    http_run(poll->data);
}

void http_run(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;

    server->has_closed = false;
    (void)MHD_run(server->daemon);
    /* At its limit MHD stops to listen, and takes it up again in the run after the one that closed
     * a connection: where that was the last, no event would ever call it. */
    if (server->has_closed) {
        (void)uv_timer_start(&server->timer, on_timer, 0, 0);
    } else if (MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES) {
        (void)uv_timer_start(&server->timer, on_timer, wait_ms, 0);
    } else {
        (void)uv_timer_stop(&server->timer);
    }
}

/* --- Opening and closing -------------------------------------------------------------------------
 */

static struct rc listen_failed(int fd, struct str address, struct err *err)
{
    int error = errno;
    const char *advice = "";

    if (fd >= 0) {
        (void)close(fd);
    }
    if (error == EADDRINUSE) {
        advice = ": another program listens there, choose another port or 0 for a free one";
    } else if (error == EADDRNOTAVAIL) {
        advice = ": the address isn't this host's";
    } else if (error == EACCES) {
        advice = ": ports below 1024 need a privilege";
    }
    return err_set(err, RC_IO, "listen address " STR_FMT ": %s%s", STR_ARG(address),
                   uv_strerror(uv_translate_sys_error(error)), advice);
}

/* `ret_fd` is owned by the caller. */
static struct rc listen_on(struct http_server *server, int *ret_fd, struct err *err)
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof(address);
    const int yes = 1;

    TRY(address_parse(server->options.listen, &address, err));
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        bind(fd, (struct sockaddr *)&address, address_bytes(&address)) != 0 ||
        listen(fd, HTTP_BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) {
        return listen_failed(fd, server->options.listen, err);
    }
    (void)address_format(&address, server->address);
    server->options.is_tls = server->options.is_tls || server->options.certificate_file != NULL ||
                             !address_is_loopback(&address);
    *ret_fd = fd;
    return RC_SUCCESS;
}

/* TLS 1.2 with forward secrecy and authenticated ciphers, or later. */
#define HTTP_TLS_PRIORITIES                                                                        \
    "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-CIPHER-ALL:"                              \
    "+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305"

/* Whoever isn't on this host gets at it over a network. */
static struct rc open_tls(struct http_server *server, int fd, struct err *err)
{
    struct http_options *options = &server->options;

    if (!options->is_tls) {
        return RC_SUCCESS;
    }
    struct rc rc = http_tls_open(options->certificate_file, options->key_file, &server->tls, err);

    options->certificate_file = options->key_file = NULL; /* borrowed for the opening only */
    if (rc_failed(rc)) {
        (void)close(fd);
    }
    return rc;
}

static struct rc start_daemon(struct http_server *server, int fd, struct err *err)
{
    const struct MHD_OptionItem options[] = {
        {MHD_OPTION_LISTEN_SOCKET, fd, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTIONS_MAX, NULL},
        {MHD_OPTION_PER_IP_CONNECTION_LIMIT, HTTP_CONNECTIONS_PER_IP_MAX, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, server->options.idle_s, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, HTTP_CONNECTION_BYTES, NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    bool is_tls = server->tls != NULL;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (is_tls ? MHD_USE_TLS : 0u);

    /* The options end before the certificate where there is none. */
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_ARRAY, options,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_NOTIFY_COMPLETED,
        on_answered, server, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
        is_tls ? MHD_OPTION_HTTPS_CERT_CALLBACK : MHD_OPTION_END, http_tls_retrieve,
        MHD_OPTION_HTTPS_PRIORITIES, HTTP_TLS_PRIORITIES, MHD_OPTION_END);
    if (server->daemon == NULL) {
        (void)close(fd);
        return err_set(err, RC_IO, "listen address %s: the HTTP server can't be started",
                       server->address);
    }
    return RC_SUCCESS;
}

static void free_server(struct http_server *server)
{
    if (server->daemon != NULL) {
        MHD_stop_daemon(server->daemon);
    }
    http_tls_close(server->tls);
    mem_free(server);
}

static struct rc watch_daemon(struct http_server *server, struct err *err)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    int error =
        info == NULL ? UV_EINVAL : uv_poll_init(server->loop, &server->poll, info->epoll_fd);

    if (error != 0) {
        return err_set(err, RC_IO, "listen address %s: the event loop can't watch it: %s",
                       server->address, uv_strerror(error));
    }
    (void)uv_timer_init(server->loop, &server->timer);
    (void)uv_timer_init(server->loop, &server->sweep);
    server->poll.data = server->timer.data = server->sweep.data = server;
    server->open_handles = 3;
    (void)uv_poll_start(&server->poll, UV_READABLE, on_poll);
    return RC_SUCCESS;
}

struct rc http_server_open(uv_loop_t *loop, const struct http_options *options,
                           struct http_server **ret_server, struct err *err)
{
    struct http_server *server = MEM_NEW(struct http_server);
    int fd = -1;

    server->loop = loop;
    server->options = *options;
    if (server->options.request_ms == 0) {
        server->options.request_ms = HTTP_REQUEST_S * 1000;
    }
    if (server->options.idle_s == 0) {
        server->options.idle_s = HTTP_IDLE_S;
    }
    struct rc rc = listen_on(server, &fd, err);

    if (!rc_failed(rc)) {
        rc = open_tls(server, fd, err);
    }
    if (!rc_failed(rc)) {
        rc = start_daemon(server, fd, err);
    }
    if (!rc_failed(rc)) {
        rc = watch_daemon(server, err);
    }
    if (rc_failed(rc)) {
        free_server(server);
        return rc;
    }
    server->options.listen = STR_NONE; /* borrowed for this call only */
    *ret_server = server;
    return RC_SUCCESS;
}

struct str http_server_address(const struct http_server *server)
{
    return str_from_c(server->address);
}

bool http_server_is_tls(const struct http_server *server)
{
    return server->tls != NULL;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;

    server->open_handles--;
    if (server->open_handles == 0) {
        void (*on_closed)(void *) = server->on_closed;
        void *ctx = server->closed_ctx;

        free_server(server);
        if (on_closed != NULL) {
            on_closed(ctx);
        }
    }
}

void http_server_close(struct http_server *server, void (*on_closed)(void *ctx), void *ctx)
{
    if (server == NULL) {
        return;
    }
    server->on_closed = on_closed;
    server->closed_ctx = ctx;
    for (struct http_client *client = server->clients; client != NULL; client = client->next) {
        if (client->review != NULL) {
            http_client_drop_review(client);
            MHD_resume_connection(client->connection); /* MHD stops with nobody suspended */
        }
    }
    /* In this order: the descriptor is closed by MHD, and clients leave the list by its calls,
     * which touch the sweep's timer. */
    (void)uv_poll_stop(&server->poll);
    MHD_stop_daemon(server->daemon);
    server->daemon = NULL;
    uv_close((uv_handle_t *)&server->poll, on_handle_closed);
    uv_close((uv_handle_t *)&server->timer, on_handle_closed);
    uv_close((uv_handle_t *)&server->sweep, on_handle_closed);
}
