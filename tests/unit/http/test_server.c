/* The server as its clients see it. */
#include "fixture.h"

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
    expect_answer(
        talk(f, "POST /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\nhello"),
        "405 Method Not Allowed", "this server takes GET and HEAD only\n");
    expect_answer(
        talk(f, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 90000000\r\n\r\nhell"),
        "200 OK", "ok\n");
}

static void one_connection_serves_many_requests(void **state)
{
    struct fixture *f = *state;
    int count = 0;

    open_server(f);
    const char *answer =
        talk(f, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
                "HEAD /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
                "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");

    for (const char *at = strstr(answer, "HTTP/1.1 200 OK"); at != NULL;
         at = strstr(at + 1, "HTTP/1.1 200 OK")) {
        count++;
    }
    assert_int_equal(count, 3);
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
        T(curl_is_served),
        T(an_address_that_cant_be_used_is_said),
        T(ip6_is_served_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
