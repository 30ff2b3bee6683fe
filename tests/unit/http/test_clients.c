/* Clients that mean ill, and what the server costs when there are none. */
#include "fixture.h"

static void what_isnt_http_ends_the_connection(void **state)
{
    static const char *const wrong[] = {
        "\x16\x03\x01\x02\x01\x01\xfc\x03\x03 hello TLS\r\n\r\n",
        "GET\r\n\r\n",
        "GET /healthz HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nContent-Length: -1\r\nHost: 127.0.0.1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nno colon\r\nHost: 127.0.0.1\r\n\r\n",
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
    int length = snprintf(long_head, 64, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ");

    memset(long_head + length, 'a', HTTP_CONNECTION_BYTES);
    memcpy(long_head + length + HTTP_CONNECTION_BYTES, "\r\n\r\n", 5);
    expect_in(talk(f, long_head), " 431 ");
    mem_free(long_head);
    expect_answer(get(f, "GET", "/healthz"), "200 OK", "ok\n");
}

/* --- Slow ones -----------------------------------------------------------------------
 */

/* Feeds a request byte by byte, for ever; exits with how many seconds it was let live. */
static NORETURN void slow_client(in_port_t port)
{
    static const char request[] =
        "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
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

/* A kubelet's probe is answered however many there are that connect and say nothing. */
static void slow_clients_of_many_addresses_leave_room_for_others(void **state)
{
    struct fixture *f = *state;
    struct flood floods[4];
    char url[128];

    f->options.idle_s = 60;
    f->options.request_ms = 60000;
    open_server(f);
    (void)snprintf(url, sizeof(url), "http://%s/healthz", http_server_address(f->server).ptr);
    for (uint8_t i = 0; i < 4; i++) {
        (void)flood_start(f, &floods[i], (uint8_t)(2 + i), 40);
        assert_string_equal(curl(f, (char *[]){"curl", "-sSf", "-m", "2", url, NULL}), "ok\n");
    }
    for (int i = 0; i < 4; i++) {
        flood_stop(f, &floods[i]);
    }
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

/* The server sees that they have gone in one run, after which nothing more happens to call it. */
static void all_who_filled_it_may_leave_at_once(void **state)
{
    struct fixture *f = *state;
    struct flood floods[3];
    char url[128];

    f->options.idle_s = 60;
    open_server(f);
    for (uint8_t i = 0; i < 3; i++) {
        (void)flood_start(f, &floods[i], (uint8_t)(2 + i), 40);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(write(floods[i].until[1], "x", 1), 1);
        assert_int_equal(waitpid(floods[i].child, NULL, 0), floods[i].child);
        (void)close(floods[i].until[0]);
        (void)close(floods[i].until[1]);
    }
    (void)snprintf(url, sizeof(url), "http://%s/healthz", http_server_address(f->server).ptr);
    assert_string_equal(curl(f, (char *[]){"curl", "-sSf", "-m", "5", url, NULL}), "ok\n");
}

static void with_nobody_there_it_sleeps(void **state)
{
    struct fixture *f = *state;
    int turns = 0;

    open_server(f);
    expect_answer(get(f, "GET", "/healthz"), "200 OK", "ok\n");
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    (void)uv_timer_start(&f->tick, on_tick, 2500, 0);
    while (uv_is_active((uv_handle_t *)&f->tick)) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
        turns++;
    }
    assert_in_range(turns, 1, 2);
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
        T(slow_clients_are_cut_off_and_hinder_nobody),
        T(an_idle_connection_is_closed),
        T(a_flood_from_one_address_leaves_room_for_others),
        T(slow_clients_of_many_addresses_leave_room_for_others),
        T(at_the_limit_the_loop_doesnt_spin),
        T(all_who_filled_it_may_leave_at_once),
        T(with_nobody_there_it_sleeps),
        T(closing_ends_open_connections),
        T(what_isnt_http_ends_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
