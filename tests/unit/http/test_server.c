/* The server as its clients see it. Clients are processes of their own with blocking sockets (or
 * curl), while the loop runs here. */
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

static bool ask_ready(void *ctx, struct str *ret_sentence)
{
    struct fixture *f = ctx;

    *ret_sentence = f->is_ready ? STR("ok") : STR("waits for the first list of Jobs");
    return f->is_ready;
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer; /* wakes the loop, so that the test can look whether its client has ended */
}

static int setup(void **state)
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

static void on_closed(void *ctx)
{
    ((struct fixture *)ctx)->is_closed = true;
}

static int teardown(void **state)
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

static void open_server(struct fixture *f)
{
    if (rc_failed(http_server_open(&f->loop, &f->options, &f->server, &f->err))) {
        fail_msg("%s", f->err.text);
    }
}

/* --- Clients -------------------------------------------------------------------------------------
 */

static in_port_t port_of(const struct fixture *f)
{
    const char *colon = strrchr(http_server_address(f->server).ptr, ':');

    assert_non_null(colon);
    return (in_port_t)strtoul(colon + 1, NULL, 10);
}

/* Runs the loop until the child ends; its exit code. */
static int run_until_exit(struct fixture *f, pid_t child)
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
static int client_connect(in_port_t port, uint8_t host)
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

static void client_send(int fd, const char *bytes, size_t count)
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
static NORETURN void client_talk(in_port_t port, struct str request, int out)
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
static const char *talk_bytes(struct fixture *f, struct str request)
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

static const char *talk(struct fixture *f, const char *request)
{
    return talk_bytes(f, str_from_c(request));
}

static const char *get(struct fixture *f, const char *method, const char *path)
{
    char request[512];

    (void)snprintf(request, sizeof(request),
                   "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method, path);
    return talk(f, request);
}

static void expect_in(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" isn't in: %s", part, text);
    }
}

/* The answer's status and its body. */
static void expect_answer(const char *answer, const char *status, const char *body)
{
    const char *end = strstr(answer, "\r\n\r\n");

    assert_int_equal(strncmp(answer, "HTTP/1.1 ", 9), 0);
    if (strncmp(answer + 9, status, strlen(status)) != 0 || end == NULL) {
        fail_msg("wanted %s: %s", status, answer);
    }
    assert_string_equal(end + 4, body);
}

/* --- Answers -------------------------------------------------------------------------------------
 */

static void health_and_readiness_are_told_apart(void **state)
{
    struct fixture *f = *state;

    open_server(f);
    expect_answer(get(f, "GET", "/healthz"), "200 OK", "ok\n");
    expect_answer(get(f, "GET", "/readyz"), "503 Service Unavailable",
                  "waits for the first list of Jobs\n");
    f->is_ready = true;
    expect_answer(get(f, "GET", "/readyz"), "200 OK", "ok\n");
    expect_answer(get(f, "GET", "/readyz?verbose=1"), "200 OK", "ok\n");
    expect_in(f->answer, "Cache-Control: no-store\r\n");
    expect_in(f->answer, "Content-Type: text/plain; charset=utf-8\r\n");
}

static void metrics_are_served_as_they_are_rendered(void **state)
{
    struct fixture *f = *state;
    struct str queue = STR("re\"search");

    metric_add(f->requests, &queue, 3);
    open_server(f);
    const char *answer = get(f, "GET", "/metrics");

    expect_in(answer, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
    expect_answer(answer, "200 OK",
                  "# HELP test_requests_total Requests.\n# TYPE test_requests_total counter\n"
                  "test_requests_total{queue=\"re\\\"search\"} 3\n"
                  "# HELP tallyman_metrics_dropped_series_total Values that were dropped because "
                  "their metric has as many series as it may have.\n"
                  "# TYPE tallyman_metrics_dropped_series_total counter\n");
}

static void a_large_text_arrives_whole(void **state)
{
    struct fixture *f = *state;
    char name[32];

    for (int i = 0; i < 10000; i++) {
        (void)snprintf(name, sizeof(name), "queue-%05d", i);
        struct str queue = str_from_c(name);

        metric_add(f->requests, &queue, i);
    }
    open_server(f);
    const char *answer = get(f, "GET", "/metrics");
    struct str expected = metrics_render(f->metrics);
    const char *body = strstr(answer, "\r\n\r\n") + 4;

    assert_true(expected.len > 300000);
    assert_true(str_eq(str_from_c(body), expected));
}

static void without_metrics_the_path_isnt_there(void **state)
{
    struct fixture *f = *state;

    f->options.metrics = NULL;
    f->options.is_ready = NULL;
    open_server(f);
    expect_in(get(f, "GET", "/metrics"), "404 Not Found");
    expect_answer(get(f, "GET", "/readyz"), "200 OK", "ok\n");
}

static void head_gives_the_head_alone(void **state)
{
    struct fixture *f = *state;

    open_server(f);
    expect_answer(get(f, "HEAD", "/healthz"), "200 OK", "");
    expect_in(f->answer, "Content-Length: 3\r\n");
}

static void other_paths_and_methods_are_refused_in_plain_words(void **state)
{
    static const char *const paths[] = {"/",         "/healthz/",   "/HEALTHZ",    "/metrics/x",
                                        "//healthz", "/../healthz", "/healthz%00", "*"};
    static const char *const methods[] = {"POST",  "PUT",     "DELETE", "OPTIONS",
                                          "TRACE", "CONNECT", "get",    "BREW"};
    struct fixture *f = *state;

    open_server(f);
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        expect_in(get(f, "GET", paths[i]), " 404 ");
    }
    expect_answer(
        get(f, "GET", "/"), "404 Not Found",
        "there is nothing at this path; this server has /healthz, /readyz and /metrics\n");
    for (size_t i = 0; i < ARRAY_COUNT(methods); i++) {
        expect_answer(get(f, methods[i], "/healthz"), "405 Method Not Allowed",
                      "this server takes GET and HEAD only\n");
        expect_in(f->answer, "Allow: GET, HEAD\r\n");
    }
    expect_answer(talk(f, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"),
                  "405 Method Not Allowed", "this server takes GET and HEAD only\n");
    expect_answer(
        talk(f, "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 90000000\r\n\r\nhell"),
        "200 OK", "ok\n");
}

static void one_connection_serves_many_requests(void **state)
{
    struct fixture *f = *state;
    int count = 0;

    open_server(f);
    const char *answer = talk(f, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
                                 "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
                                 "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");

    for (const char *at = strstr(answer, "HTTP/1.1 200 OK"); at != NULL;
         at = strstr(at + 1, "HTTP/1.1 200 OK")) {
        count++;
    }
    assert_int_equal(count, 3);
}

static void what_isnt_http_ends_the_connection(void **state)
{
    static const char *const wrong[] = {
        "\x16\x03\x01\x02\x01\x01\xfc\x03\x03 hello TLS\r\n\r\n",
        "GET\r\n\r\n",
        "GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nContent-Length: -1\r\nHost: x\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nno colon\r\nHost: x\r\n\r\n",
        "GET /healthz HTTP/1.1\r\n\r\n", /* no Host */
    };
    struct fixture *f = *state;
    char *long_head = mem_alloc(HTTP_CONNECTION_BYTES * 2);

    f->options.request_ms = 1000;
    open_server(f);
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        (void)talk(f, wrong[i]);
        if (strstr(f->answer, " 200 ") != NULL) {
            fail_msg("request %zu was answered: %s", i, f->answer);
        }
    }
    int length = snprintf(long_head, 64, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ");

    memset(long_head + length, 'a', HTTP_CONNECTION_BYTES);
    memcpy(long_head + length + HTTP_CONNECTION_BYTES, "\r\n\r\n", 5);
    expect_in(talk(f, long_head), " 431 ");
    mem_free(long_head);
    expect_answer(get(f, "GET", "/healthz"), "200 OK", "ok\n");
}

/* --- curl ----------------------------------------------------------------------------------------
 */

static const char *curl(struct fixture *f, char *const arguments[])
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

static void curl_is_served(void **state)
{
    struct fixture *f = *state;
    struct str queue = STR("q");
    char url[128];
    char second[128];

    metric_add(f->requests, &queue, 1);
    open_server(f);
    (void)snprintf(url, sizeof(url), "http://%s/metrics", http_server_address(f->server).ptr);
    (void)snprintf(second, sizeof(second), "http://%s/healthz", http_server_address(f->server).ptr);
    expect_in(curl(f, (char *[]){"curl", "-sSf", "-m", "10", url, second, NULL}),
              "test_requests_total{queue=\"q\"} 1\n");
    expect_in(f->answer, "counter\nok\n");
    expect_in(curl(f, (char *[]){"curl", "-sS", "-m", "10", "-I", second, NULL}),
              "HTTP/1.1 200 OK\r\n");
    expect_in(curl(f, (char *[]){"curl", "-sS", "-m", "10", "-d", "body", second, NULL}),
              "this server takes GET and HEAD only\n");
}

/* --- Clients that mean ill -----------------------------------------------------------------------
 */

/* Feeds a request byte by byte, for ever; exits with how many seconds it was let live. */
static NORETURN void slow_client(in_port_t port)
{
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    uint64_t started_ns = uv_hrtime();
    int fd = client_connect(port, 1);
    char answer[1024];

    for (size_t i = 0; fd >= 0; i++) {
        if (write(fd, &request[i < sizeof(request) - 1 ? i : sizeof(request) - 2], 1) <= 0 ||
            recv(fd, answer, sizeof(answer), MSG_DONTWAIT) == 0) {
            break;
        }
        (void)usleep(50 * 1000);
    }
    _exit((int)((uv_hrtime() - started_ns) / 1000000000));
}

static void slow_clients_are_cut_off_and_hinder_nobody(void **state)
{
    struct fixture *f = *state;
    pid_t slow[10];

    f->options.request_ms = 2000;
    open_server(f);
    in_port_t port = port_of(f);

    for (size_t i = 0; i < ARRAY_COUNT(slow); i++) {
        slow[i] = fork();
        if (slow[i] == 0) {
            slow_client(port);
        }
    }
    for (int i = 0; i < 5; i++) {
        uint64_t started_ns = uv_hrtime();

        expect_answer(get(f, "GET", "/healthz"), "200 OK", "ok\n");
        assert_true(uv_hrtime() - started_ns < 1000000000);
    }
    for (size_t i = 0; i < ARRAY_COUNT(slow); i++) {
        int seconds = run_until_exit(f, slow[i]);

        assert_in_range(seconds, 1, 5);
    }
}

static void an_idle_connection_is_closed(void **state)
{
    struct fixture *f = *state;

    f->options.idle_s = 1;
    open_server(f);
    uint64_t started_ns = uv_hrtime();

    assert_string_equal(talk(f, "GET /hea"), "");
    assert_in_range((uv_hrtime() - started_ns) / 1000000, 500, 4000);
}

/* Opens `count` connections from one address; tells how many are open, then waits for its end. */
static NORETURN void flooding_client(in_port_t port, uint8_t host, int count, int out, int until)
{
    static int fds[512];
    char byte = 0;
    uint8_t open_count = 0;

    for (int i = 0; i < count; i++) {
        fds[i] = client_connect(port, host);
    }
    (void)usleep(400 * 1000);
    for (int i = 0; i < count; i++) {
        /* Closed by the server: end of stream or a reset. Left open: nothing to read. */
        if (fds[i] >= 0 && recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN) {
            open_count++;
        }
    }
    client_send(out, (const char *)&open_count, 1);
    (void)!read(until, &byte, 1);
    _exit(0);
}

struct flood {
    pid_t child;
    int out[2];
    int until[2];
};

/* How many connections the server left open. */
static int flood_start(struct fixture *f, struct flood *flood, uint8_t host, int count)
{
    uint8_t open_count = 0;

    assert_int_equal(pipe(flood->out), 0);
    assert_int_equal(pipe(flood->until), 0);
    in_port_t port = port_of(f);

    flood->child = fork();
    if (flood->child == 0) {
        flooding_client(port, host, count, flood->out[1], flood->until[0]);
    }
    (void)close(flood->out[1]);
    struct pollfd ready = {.fd = flood->out[0], .events = POLLIN};

    (void)uv_timer_start(&f->tick, on_tick, 2, 2);
    while (poll(&ready, 1, 0) == 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    (void)uv_timer_stop(&f->tick);
    assert_int_equal(read(flood->out[0], &open_count, 1), 1);
    (void)close(flood->out[0]);
    return open_count;
}

static void flood_stop(struct fixture *f, struct flood *flood)
{
    assert_int_equal(write(flood->until[1], "x", 1), 1);
    assert_int_equal(run_until_exit(f, flood->child), 0);
    (void)close(flood->until[0]);
    (void)close(flood->until[1]);
}

static int64_t cpu_ms(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

static void a_flood_from_one_address_leaves_room_for_others(void **state)
{
    struct fixture *f = *state;
    struct flood flood;
    char url[128];

    open_server(f);
    assert_int_equal(flood_start(f, &flood, 2, 200), HTTP_CONNECTIONS_PER_IP_MAX);
    (void)snprintf(url, sizeof(url), "http://%s/healthz", http_server_address(f->server).ptr);
    assert_string_equal(curl(f, (char *[]){"curl", "-sSf", "-m", "5", url, NULL}), "ok\n");
    flood_stop(f, &flood);
    expect_answer(get(f, "GET", "/healthz"), "200 OK", "ok\n");
}

static void at_the_limit_the_loop_doesnt_spin(void **state)
{
    struct fixture *f = *state;
    struct flood floods[3];

    f->options.idle_s = 60;
    open_server(f);
    for (uint8_t i = 0; i < 3; i++) {
        (void)flood_start(f, &floods[i], (uint8_t)(2 + i), 40);
    }
    int64_t before_ms = cpu_ms();

    (void)uv_timer_start(&f->tick, on_tick, 20, 20);
    for (uint64_t end_ns = uv_hrtime() + 1000000000; uv_hrtime() < end_ns;) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    (void)uv_timer_stop(&f->tick);
    assert_in_range(cpu_ms() - before_ms, 0, 200);
    for (int i = 0; i < 3; i++) {
        flood_stop(f, &floods[i]);
    }
    expect_answer(get(f, "GET", "/healthz"), "200 OK", "ok\n");
}

static void with_nobody_there_it_sleeps(void **state)
{
    struct fixture *f = *state;
    int turns = 0;

    open_server(f);
    expect_answer(get(f, "GET", "/healthz"), "200 OK", "ok\n");
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    (void)uv_timer_start(&f->tick, on_tick, 1500, 0);
    while (uv_is_active((uv_handle_t *)&f->tick)) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
        turns++;
    }
    assert_in_range(turns, 1, 3);
}

/* --- Addresses -----------------------------------------------------------------------------------
 */

static void expect_refused(struct fixture *f, const char *listen_on, enum rc_code code,
                           const char *sentence)
{
    struct http_server *server = NULL;
    struct http_options options = f->options;

    options.listen = str_from_c(listen_on);
    struct rc rc = http_server_open(&f->loop, &options, &server, &f->err);

    assert_int_equal(rc.code, code);
    assert_null(server);
    expect_in(f->err.text, sentence);
}

static void an_address_that_cant_be_used_is_said(void **state)
{
    struct fixture *f = *state;

    open_server(f);
    expect_refused(f, http_server_address(f->server).ptr, RC_IO,
                   "another program listens there, choose another port or 0 for a free one");
    expect_refused(f, "192.0.2.1:0", RC_IO, "the address isn't this host's");
    expect_refused(f, "nowhere", RC_INVALID, "want an IP address and a port");
}

static void ip6_is_served_too(void **state)
{
    struct fixture *f = *state;
    char url[128];

    f->options.listen = STR("[::1]:0");
    if (rc_failed(http_server_open(&f->loop, &f->options, &f->server, &f->err))) {
        print_message("this host has no ::1: %s\n", f->err.text);
        skip();
    }
    (void)snprintf(url, sizeof(url), "http://%s/healthz", http_server_address(f->server).ptr);
    assert_string_equal(curl(f, (char *[]){"curl", "-gsSf", "-m", "5", url, NULL}), "ok\n");
}

static void closing_ends_open_connections(void **state)
{
    struct fixture *f = *state;
    struct flood flood;

    open_server(f);
    assert_int_equal(flood_start(f, &flood, 1, 5), 5);
    http_server_close(f->server, on_closed, f);
    f->server = NULL;
    while (!f->is_closed) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    flood_stop(f, &flood);
    http_server_close(NULL, NULL, NULL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(health_and_readiness_are_told_apart),
        T(metrics_are_served_as_they_are_rendered),
        T(a_large_text_arrives_whole),
        T(without_metrics_the_path_isnt_there),
        T(head_gives_the_head_alone),
        T(other_paths_and_methods_are_refused_in_plain_words),
        T(one_connection_serves_many_requests),
        T(what_isnt_http_ends_the_connection),
        T(curl_is_served),
        T(slow_clients_are_cut_off_and_hinder_nobody),
        T(an_idle_connection_is_closed),
        T(a_flood_from_one_address_leaves_room_for_others),
        T(at_the_limit_the_loop_doesnt_spin),
        T(with_nobody_there_it_sleeps),
        T(an_address_that_cant_be_used_is_said),
        T(ip6_is_served_too),
        T(closing_ends_open_connections),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
