/* fixture.h - a server on a loop, and clients that are processes of their own with blocking sockets
 * (or curl), while the loop runs here. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/metrics.h"
#include "tallyman/http/server.h"

#define ANSWER_BYTES ((size_t)1024 * 1024)

struct fixture {
    uv_loop_t loop;
    uv_timer_t tick;
    struct metrics *metrics;
    struct metric *requests;
    struct http_options options;
    struct http_server *server;
    struct err err;
    bool is_ready;
    bool is_closed;
    char *answer; /* what the last client read */
};

static UNUSED bool ask_ready(void *ctx, struct str *ret_sentence)
{
    struct fixture *f = ctx;

    *ret_sentence = f->is_ready ? STR("ok") : STR("waits for the first list of Jobs");
    return f->is_ready;
}

static UNUSED void on_tick(uv_timer_t *timer)
{
    (void)timer; /* wakes the loop, so that the test can look whether its client has ended */
}

static UNUSED int setup(void **state)
{
    static const struct metric_options requests = {.name = "test_requests_total",
                                                   .help = "Requests.",
                                                   .kind = METRIC_COUNTER,
                                                   .label_names = {"queue"}};
    struct fixture *f = MEM_NEW(struct fixture);

    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    (void)uv_timer_init(&f->loop, &f->tick);
    f->metrics = metrics_new();
    f->requests = metrics_register(f->metrics, &requests);
    f->answer = mem_zalloc(ANSWER_BYTES);
    f->options = (struct http_options){
        .listen = STR_INIT("127.0.0.1:0"), .metrics = f->metrics, .is_ready = ask_ready, .ctx = f};
    *state = f;
    return 0;
}

static UNUSED void on_closed(void *ctx)
{
    ((struct fixture *)ctx)->is_closed = true;
}

static UNUSED int teardown(void **state)
{
    struct fixture *f = *state;

    uv_close((uv_handle_t *)&f->tick, NULL);
    if (f->server != NULL) {
        http_server_close(f->server, on_closed, f);
    } else {
        f->is_closed = true;
    }
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    assert_true(f->is_closed);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    metrics_free(f->metrics);
    mem_free(f->answer);
    mem_free(f);
    return 0;
}

static UNUSED void open_server(struct fixture *f)
{
    if (rc_failed(http_server_open(&f->loop, &f->options, &f->server, &f->err))) {
        fail_msg("%s", f->err.text);
    }
}

/* --- Clients -------------------------------------------------------------------------------------
 */

static UNUSED in_port_t port_of(const struct fixture *f)
{
    const char *colon = strrchr(http_server_address(f->server).ptr, ':');

    assert_non_null(colon);
    return (in_port_t)strtoul(colon + 1, NULL, 10);
}

/* Runs the loop until the child ends; its exit code. */
static UNUSED int run_until_exit(struct fixture *f, pid_t child)
{
    int status = 0;

    (void)uv_timer_start(&f->tick, on_tick, 2, 2);
    while (waitpid(child, &status, WNOHANG) == 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    (void)uv_timer_stop(&f->tick);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* A connection from 127.0.0.`host`, in a child; -1 where it is refused. */
static UNUSED int client_connect(in_port_t port, uint8_t host)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    from.sin_addr.s_addr = htonl(UINT32_C(0x7f000000) | host);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&from, sizeof(from)) != 0 ||
        connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static UNUSED void client_send(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = write(fd, bytes, count);

        if (sent <= 0) {
            return;
        }
        bytes += sent;
        count -= (size_t)sent;
    }
}

/* Sends `request`, half-closes where asked, and writes all that comes back to `out`. */
static UNUSED NORETURN void client_talk(in_port_t port, struct str request, int out)
{
    char buffer[4096];
    ssize_t got;
    int fd = client_connect(port, 1);

    client_send(fd, request.ptr, request.len);
    while ((got = read(fd, buffer, sizeof(buffer))) > 0) {
        client_send(out, buffer, (size_t)got);
    }
    _exit(0);
}

/* The whole answer to raw bytes; the request has to make the server close. */
static UNUSED const char *talk_bytes(struct fixture *f, struct str request)
{
    FILE *out = tmpfile();
    pid_t child = fork();

    if (child == 0) {
        client_talk(port_of(f), request, fileno(out));
    }
    assert_int_equal(run_until_exit(f, child), 0);
    rewind(out);
    f->answer[fread(f->answer, 1, ANSWER_BYTES - 1, out)] = '\0';
    (void)fclose(out);
    return f->answer;
}

static UNUSED const char *talk(struct fixture *f, const char *request)
{
    return talk_bytes(f, str_from_c(request));
}

static UNUSED const char *get(struct fixture *f, const char *method, const char *path)
{
    char request[512];

    (void)snprintf(request, sizeof(request),
                   "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", method, path);
    return talk(f, request);
}

static UNUSED void expect_in(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" isn't in: %s", part, text);
    }
}

/* The answer's status and its body. */
static UNUSED void expect_answer(const char *answer, const char *status, const char *body)
{
    const char *end = strstr(answer, "\r\n\r\n");

    assert_int_equal(strncmp(answer, "HTTP/1.1 ", 9), 0);
    if (strncmp(answer + 9, status, strlen(status)) != 0 || end == NULL) {
        fail_msg("wanted %s: %s", status, answer);
    }
    assert_string_equal(end + 4, body);
}

/* --- curl ----------------------------------------------------------------------------------------
 */

static UNUSED const char *curl(struct fixture *f, char *const arguments[])
{
    FILE *out = tmpfile();
    pid_t child = fork();

    if (child == 0) {
        (void)dup2(fileno(out), STDOUT_FILENO);
        (void)execvp("curl", arguments);
        _exit(127);
    }
    int code = run_until_exit(f, child);

    rewind(out);
    f->answer[fread(f->answer, 1, ANSWER_BYTES - 1, out)] = '\0';
    (void)fclose(out);
    if (code != 0) {
        fail_msg("curl ended with %d (127: it isn't installed): %s", code, f->answer);
    }
    return f->answer;
}
