/* TLS, who may read what, and where a request comes from. */
#include "fixture.h"

#include <sys/stat.h>

/* The authorizer of these tests, in place of an API server. */
static enum http_verdict verdict = HTTP_ALLOWED;
static bool answers_later;
static bool answers_never;
static struct http_review *open_review;
static uv_timer_t later;
static char asked[256];

static void on_later(uv_timer_t *timer)
{
    (void)timer;
    struct http_review *review = open_review;
    open_review = NULL;
    http_review_answer(review, verdict);
}

static void authorize(void *ctx, struct str token, struct str path, struct http_review *review)
{
    struct fixture *f = ctx;
    (void)f;
    (void)snprintf(asked, sizeof(asked), STR_FMT " " STR_FMT, STR_ARG(token), STR_ARG(path));
    if (!answers_later) {
        http_review_answer(review, verdict);
        return;
    }
    assert_null(open_review);
    open_review = review;
    if (!answers_never) {
        (void)uv_timer_start(&later, on_later, 20, 0);
    }
}

static int setup_tls(void **state)
{
    (void)setup(state);
    struct fixture *f = *state;
    verdict = HTTP_ALLOWED;
    answers_later = answers_never = false;
    asked[0] = '\0';
    f->options.is_tls = true;
    f->options.authorize = authorize;
    (void)uv_timer_init(&f->loop, &later);
    return 0;
}

static int teardown_tls(void **state)
{
    uv_close((uv_handle_t *)&later, NULL);
    return teardown(state);
}

static char *url_of(struct fixture *f, const char *path)
{
    static char url[256];
    (void)snprintf(url, sizeof(url), "https://%s%s", http_server_address(f->server).ptr, path);
    return url;
}

/* What curl says to a path: its status in front, then the body. */
static const char *ask(struct fixture *f, const char *path, const char *header)
{
    return curl(f, (char *[]){"curl", "-sSk", "-m", "10", "-w", "\n%{http_code}", "-H",
                              (char *)(uintptr_t)header, url_of(f, path), NULL});
}

static void metrics_are_for_those_who_may_get_them(void **state)
{
    struct fixture *f = *state;

    open_server(f);
    assert_true(http_server_is_tls(f->server));
    expect_in(ask(f, "/metrics", "X-None: 1"), "\n401");
    expect_in(f->answer, "this path needs \"Authorization: Bearer TOKEN\"");
    expect_in(ask(f, "/metrics", "Authorization: Basic dTpw"), "\n401");
    expect_in(ask(f, "/metrics", "Authorization: Bearer "), "\n401");
    check_str(str_from_c(asked), "");
    expect_in(ask(f, "/metrics", "Authorization: bearer  abc.def"), "\n200");
    expect_in(f->answer, "tallyman_metrics_dropped_series_total");
    check_str(str_from_c(asked), "abc.def /metrics");
    verdict = HTTP_FORBIDDEN;
    expect_in(ask(f, "/metrics", "Authorization: Bearer abc"), "\n403");
    expect_in(f->answer, "tallyman-metrics-reader");
    verdict = HTTP_UNKNOWN_USER;
    expect_in(ask(f, "/metrics", "Authorization: Bearer abc"), "\n401");
    verdict = HTTP_UNAVAILABLE;
    expect_in(ask(f, "/metrics", "Authorization: Bearer abc"), "\n503");
}

static void health_is_for_everybody(void **state)
{
    struct fixture *f = *state;

    open_server(f);
    expect_in(ask(f, "/healthz", "X-None: 1"), "ok\n\n200");
    expect_in(ask(f, "/readyz", "X-None: 1"), "\n503");
    expect_in(ask(f, "/nothing", "X-None: 1"), "\n404");
    check_str(str_from_c(asked), "");
}

static void answer_of_the_authorizer_may_come_later(void **state)
{
    struct fixture *f = *state;

    answers_later = true;
    open_server(f);
    expect_in(ask(f, "/metrics", "Authorization: Bearer abc"), "\n200");
    verdict = HTTP_FORBIDDEN;
    expect_in(ask(f, "/metrics", "Authorization: Bearer abc"), "\n403");
}

/* Each request of a kept connection is asked for anew: the token may be another one. */
static void verdict_is_of_one_request(void **state)
{
    struct fixture *f = *state;

    open_server(f);
    expect_in(
        curl(f, (char *[]){"curl", "-sSk", "-m", "10", "-w", "%{http_code}\n", "-H",
                           "Authorization: Bearer abc", url_of(f, "/metrics"), "--next", "-sSk",
                           "-w", "%{http_code} %{num_connects}\n", url_of(f, "/metrics"), NULL}),
        "401 0\n");
    expect_in(f->answer, "200\n");
}

static void server_closes_over_a_question(void **state)
{
    struct fixture *f = *state;
    int ended = 0;

    answers_later = answers_never = true;
    open_server(f);
    pid_t child = fork();
    if (child == 0) {
        (void)execlp("curl", "curl", "-sk", "-m", "10", "-H", "Authorization: Bearer abc",
                     url_of(f, "/metrics"), NULL);
        _exit(127);
    }
    (void)uv_timer_start(&f->tick, on_tick, 2, 2);
    while (open_review == NULL) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    (void)uv_timer_stop(&f->tick);
    http_server_close(f->server, on_closed, f);
    f->server = NULL;
    assert_int_equal(waitpid(child, &ended, 0), child);
    on_later(&later); /* to nobody */
}

/* -- certificates -------------------------------------------------------------------------------
 */

static void make_certificate(const char *directory, const char *name)
{
    char command[1024];
    (void)snprintf(command, sizeof(command),
                   "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
                   "-keyout %s/%s.key -out %s/%s.crt -days 2 -subj /CN=%s "
                   "-addext subjectAltName=IP:127.0.0.1 2> /dev/null",
                   directory, name, directory, name, name);
    assert_int_equal(system(command), 0);
}

static void certificate_comes_from_files(void **state)
{
    struct fixture *f = *state;
    char directory[] = "/tmp/tallyman-tls-XXXXXX";
    char certificate[64];
    char key[64];

    assert_non_null(mkdtemp(directory));
    make_certificate(directory, "first");
    (void)snprintf(certificate, sizeof(certificate), "%s/first.crt", directory);
    (void)snprintf(key, sizeof(key), "%s/first.key", directory);
    f->options.certificate_file = certificate;
    f->options.key_file = key;
    open_server(f);
    expect_in(curl(f, (char *[]){"curl", "-sS", "-m", "10", "--cacert", certificate,
                                 url_of(f, "/healthz"), NULL}),
              "ok\n");
    (void)unlink(certificate);
    (void)unlink(key);
    (void)rmdir(directory);
}

static void expect_no_server(struct fixture *f, const char *certificate, const char *key,
                             const char *sentence)
{
    struct http_server *server = NULL;
    struct http_options options = f->options;

    options.certificate_file = certificate;
    options.key_file = key;
    struct rc rc = http_server_open(&f->loop, &options, &server, &f->err);
    assert_int_equal(rc.code, RC_INVALID);
    expect_in(f->err.text, sentence);
}

static void files_that_are_no_good_are_named(void **state)
{
    struct fixture *f = *state;
    char directory[] = "/tmp/tallyman-tls-XXXXXX";
    char command[256];
    char paths[4][64];

    assert_non_null(mkdtemp(directory));
    make_certificate(directory, "a");
    make_certificate(directory, "b");
    static const char *const names[] = {"a.crt", "a.key", "b.key", "none"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        (void)snprintf(paths[i], sizeof(paths[i]), "%s/%s", directory, names[i]);
    }
    expect_no_server(f, paths[3], paths[1], "none: ");
    expect_no_server(f, paths[0], paths[3], "TLS key ");
    expect_no_server(f, paths[0], paths[0], "private key");
    expect_no_server(f, paths[1], paths[1], "TLS certificate ");
    expect_no_server(f, paths[0], paths[2], "isn't the key of certificate");
    (void)snprintf(command, sizeof(command), "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

static void old_protocols_are_refused(void **state)
{
    struct fixture *f = *state;
    char command[256];
    static const char *const versions[] = {"-no_tls1_3", "-tls1_3", "-tls1_1"};

    open_server(f);
    for (size_t i = 0; i < ARRAY_COUNT(versions); i++) {
        pid_t child = fork();
        if (child == 0) {
            (void)snprintf(command, sizeof(command),
                           "openssl s_client -cipher ALL:@SECLEVEL=0 %s -connect %s < /dev/null > "
                           "/dev/null 2>&1",
                           versions[i], http_server_address(f->server).ptr);
            _exit(system(command) == 0 ? 0 : 1);
        }
        assert_int_equal(run_until_exit(f, child), i < 2 ? 0 : 1);
    }
}

/* -- where a request comes from -----------------------------------------------------------------
 */

static int setup_plain(void **state)
{
    (void)setup_tls(state);
    struct fixture *f = *state;
    f->options.is_tls = false;
    return 0;
}

static void expect_status(struct fixture *f, const char *headers, const char *status)
{
    char request[512];
    (void)snprintf(request, sizeof(request),
                   "GET /metrics HTTP/1.1\r\n%s\r\nConnection: close\r\n\r\n", headers);
    const char *answer = talk(f, request);
    if (strncmp(answer + 9, status, 3) != 0) {
        fail_msg("%s: wanted %s: %s", headers, status, answer);
    }
}

static void another_sites_page_gets_nothing(void **state)
{
    struct fixture *f = *state;

    open_server(f);
    expect_status(f, "Host: localhost:8080", "200");
    expect_status(f, "Host: LOCALHOST", "200");
    expect_status(f, "Host: 127.0.0.1", "200");
    expect_status(f, "Host: [::1]:80", "200");
    expect_status(f, "Host: evil.example.com:8080", "403");
    expect_status(f, "Host: localhost.evil.example.com", "403");
    expect_status(f, "Host: 127.evil.example.com", "403");
    expect_status(f, "Host: [::1].evil.example.com", "403");
    expect_status(f, "Host: localhost:80\r\nOrigin: http://localhost:80", "200");
    expect_status(f, "Host: localhost:80\r\nOrigin: http://localhost:81", "403");
    expect_status(f, "Host: localhost:80\r\nOrigin: https://localhost:80", "403");
    expect_status(f, "Host: localhost:80\r\nOrigin: http://evil.example.com", "403");
    expect_status(f, "Host: localhost:80\r\nOrigin: null", "403");
    expect_status(f, "Host: localhost:80\r\nSec-Fetch-Site: cross-site", "403");
    expect_status(f, "Host: localhost:80\r\nSec-Fetch-Site: same-site", "403");
    expect_status(f, "Host: localhost:80\r\nSec-Fetch-Site: same-origin", "200");
    expect_status(f, "Host: localhost:80\r\nSec-Fetch-Site: none", "200");
    expect_answer(talk(f, "GET /healthz HTTP/1.0\r\n\r\n"), "200 OK", "ok\n"); /* no browser */
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup_tls, teardown_tls)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(metrics_are_for_those_who_may_get_them),
        T(health_is_for_everybody),
        T(answer_of_the_authorizer_may_come_later),
        T(verdict_is_of_one_request),
        T(server_closes_over_a_question),
        T(certificate_comes_from_files),
        T(files_that_are_no_good_are_named),
        T(old_protocols_are_refused),
        cmocka_unit_test_setup_teardown(another_sites_page_gets_nothing, setup_plain, teardown_tls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
