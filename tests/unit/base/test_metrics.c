/* Metrics, and their text held against the exposition format's grammar line by line. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/metrics.h"

static const int64_t SECONDS[] = {5, 50, 1000};

static const struct metric_options PENDING = {.name = "t_pending",
                                              .help = "Gangs that wait.",
                                              .kind = METRIC_GAUGE,
                                              .label_names = {"queue", "reason"}};
static const struct metric_options ATTEMPTS = {
    .name = "t_attempts_total", .help = "Attempts.", .kind = METRIC_COUNTER};
static const struct metric_options LATENCY = {.name = "t_latency_seconds",
                                              .help = "From parked to admitted.",
                                              .kind = METRIC_HISTOGRAM,
                                              .label_names = {"queue"},
                                              .decimals = 3,
                                              .buckets = SECONDS,
                                              .bucket_count = 3};

#define NO_DROPS                                                                                   \
    "# HELP tallyman_metrics_dropped_series_total Values that were dropped because their metric "  \
    "has as many series as it may have.\n"                                                         \
    "# TYPE tallyman_metrics_dropped_series_total counter\n"

static int setup(void **state)
{
    *state = metrics_new();
    return 0;
}

static int teardown(void **state)
{
    metrics_free(*state);
    return 0;
}

static void expect_text(struct metrics *metrics, const char *expected)
{
    struct str text = metrics_render(metrics);
    size_t own = strlen(expected);

    assert_true(text.len >= own);
    check_str(str_take(text, own), expected);
    check_str(str_skip(text, own), NO_DROPS);
}

static struct str two[2];

static const struct str *labels(const char *a, const char *b)
{
    two[0] = str_from_c(a);
    two[1] = str_from_c(b);
    return two;
}

static void a_gauge_is_set_and_a_counter_counts(void **state)
{
    struct metrics *metrics = *state;
    struct metric *pending = metrics_register(metrics, &PENDING);
    struct metric *attempts = metrics_register(metrics, &ATTEMPTS);

    expect_text(metrics, "# HELP t_pending Gangs that wait.\n# TYPE t_pending gauge\n"
                         "# HELP t_attempts_total Attempts.\n# TYPE t_attempts_total counter\n"
                         "t_attempts_total 0\n");
    metric_set(pending, labels("b", "x"), 2);
    metric_set(pending, labels("a", "y"), -3);
    metric_set(pending, labels("a", "x"), INT64_MIN);
    metric_set(pending, labels("b", "x"), 4);
    metric_add(attempts, NULL, 5);
    metric_add(attempts, NULL, 0);
    metric_add(attempts, NULL, 2);
    check_i64(metric_value(attempts, NULL), 7);
    check_i64(metric_value(pending, labels("b", "x")), 4);
    check_i64(metric_value(pending, labels("none", "x")), 0);
    expect_text(metrics, "# HELP t_pending Gangs that wait.\n# TYPE t_pending gauge\n"
                         "t_pending{queue=\"a\",reason=\"x\"} -9223372036854775808\n"
                         "t_pending{queue=\"a\",reason=\"y\"} -3\n"
                         "t_pending{queue=\"b\",reason=\"x\"} 4\n"
                         "# HELP t_attempts_total Attempts.\n# TYPE t_attempts_total counter\n"
                         "t_attempts_total 7\n");
    metric_add(attempts, NULL, INT64_MAX);
    check_i64(metric_value(attempts, NULL), INT64_MAX);
}

static void a_histogram_is_cumulative_and_in_its_unit(void **state)
{
    struct metrics *metrics = *state;
    struct metric *latency = metrics_register(metrics, &LATENCY);
    struct str queue = STR("q");

    metric_observe(latency, &queue, 5);
    metric_observe(latency, &queue, 6);
    metric_observe(latency, &queue, 999);
    metric_observe(latency, &queue, 60001);
    check_i64(metric_value(latency, &queue), 4);
    expect_text(metrics, "# HELP t_latency_seconds From parked to admitted.\n"
                         "# TYPE t_latency_seconds histogram\n"
                         "t_latency_seconds_bucket{queue=\"q\",le=\"0.005\"} 1\n"
                         "t_latency_seconds_bucket{queue=\"q\",le=\"0.050\"} 2\n"
                         "t_latency_seconds_bucket{queue=\"q\",le=\"1.000\"} 3\n"
                         "t_latency_seconds_bucket{queue=\"q\",le=\"+Inf\"} 4\n"
                         "t_latency_seconds_sum{queue=\"q\"} 61.011\n"
                         "t_latency_seconds_count{queue=\"q\"} 4\n");
}

static void a_histogram_without_labels_starts_with_zeros(void **state)
{
    struct metrics *metrics = *state;
    struct metric_options options = LATENCY;

    options.label_names[0] = NULL;
    options.decimals = 0;
    (void)metrics_register(metrics, &options);
    expect_text(metrics,
                "# HELP t_latency_seconds From parked to admitted.\n"
                "# TYPE t_latency_seconds histogram\n"
                "t_latency_seconds_bucket{le=\"5\"} 0\nt_latency_seconds_bucket{le=\"50\"} 0\n"
                "t_latency_seconds_bucket{le=\"1000\"} 0\nt_latency_seconds_bucket{le=\"+Inf\"} 0\n"
                "t_latency_seconds_sum 0\nt_latency_seconds_count 0\n");
}

static void decimals_keep_the_sign_and_the_zeros(void **state)
{
    struct metrics *metrics = *state;
    struct metric_options options = {.name = "t", .help = "h", .kind = METRIC_GAUGE, .decimals = 3};
    struct metric *gauge = metrics_register(metrics, &options);

    metric_set(gauge, NULL, -7);
    expect_text(metrics, "# HELP t h\n# TYPE t gauge\nt -0.007\n");
    metric_set(gauge, NULL, INT64_MIN);
    expect_text(metrics, "# HELP t h\n# TYPE t gauge\nt -9223372036854775.808\n");
    metric_set(gauge, NULL, 12000);
    expect_text(metrics, "# HELP t h\n# TYPE t gauge\nt 12.000\n");
}

static void labels_are_escaped_and_made_utf8(void **state)
{
    struct metrics *metrics = *state;
    struct metric_options options = {.name = "t",
                                     .help = "back\\slash\nline \"quote\"",
                                     .kind = METRIC_GAUGE,
                                     .label_names = {"l"}};
    struct metric *gauge = metrics_register(metrics, &options);
    struct str wild = STR("a\"b\\c\nd\xff"
                          "e\xc3\xa9\xe2\x82 ");

    metric_set(gauge, &wild, 1);
    expect_text(metrics, "# HELP t back\\\\slash\\nline \"quote\"\n# TYPE t gauge\n"
                         "t{l=\"a\\\"b\\\\c\\nd\xef\xbf\xbd"
                         "e\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd \"} 1\n");
}

static void what_is_forgotten_is_gone(void **state)
{
    struct metrics *metrics = *state;
    struct metric *pending = metrics_register(metrics, &PENDING);

    metric_set(pending, labels("a", "x"), 1);
    metric_set(pending, labels("b", "x"), 1);
    metric_set(pending, labels("c", "x"), 1);
    metric_remove(pending, labels("b", "x"));
    metric_remove(pending, labels("b", "never"));
    expect_text(metrics, "# HELP t_pending Gangs that wait.\n# TYPE t_pending gauge\n"
                         "t_pending{queue=\"a\",reason=\"x\"} 1\n"
                         "t_pending{queue=\"c\",reason=\"x\"} 1\n");
    metric_clear(pending);
    expect_text(metrics, "# HELP t_pending Gangs that wait.\n# TYPE t_pending gauge\n");
}

static void series_are_bounded_and_what_is_dropped_is_counted(void **state)
{
    struct metrics *metrics = *state;
    struct metric_options options = PENDING;
    char name[16];

    options.series_max = 100;
    struct metric *pending = metrics_register(metrics, &options);

    for (int i = 0; i < 150; i++) {
        (void)snprintf(name, sizeof(name), "%d", (i * 37) % 150);
        metric_set(pending, labels(name, "x"), i);
    }
    metric_set(pending, labels("0", "x"), 1);
    struct str text = metrics_render(metrics);
    struct str last = STR("tallyman_metrics_dropped_series_total{metric=\"t_pending\"} 50\n");
    uint32_t lines = 0;

    assert_true(str_ends_with(text, last));
    for (size_t i = 0; i < text.len; i++) {
        lines += text.ptr[i] == '\n';
    }
    assert_int_equal(lines, 2 + 100 + 2 + 1);
}

static void long_labels_are_cut_on_a_character(void **state)
{
    struct metrics *metrics = *state;
    struct metric_options options = PENDING;
    char value[600];
    char expected[1024];

    options.label_names[1] = NULL;
    struct metric *pending = metrics_register(metrics, &options);

    memset(value, 'x', sizeof(value));
    memcpy(value + METRIC_LABEL_MAX_BYTES - 1, "\xc3\xa9", 2);
    struct str label = {value, sizeof(value)};

    metric_set(pending, &label, 1);
    check_i64(metric_value(pending, &label), 1);
    (void)snprintf(expected, sizeof(expected),
                   "# HELP t_pending Gangs that wait.\n# TYPE t_pending gauge\n"
                   "t_pending{queue=\"%.255s\"} 1\n",
                   value);
    expect_text(metrics, expected);
}

static void collect(void *ctx)
{
    metric_set(ctx, NULL, metric_value(ctx, NULL) + 1);
}

static void collectors_run_before_each_text(void **state)
{
    struct metrics *metrics = *state;
    struct metric_options options = {.name = "t", .help = "h", .kind = METRIC_GAUGE};

    metrics_add_collector(metrics, collect, metrics_register(metrics, &options));
    expect_text(metrics, "# HELP t h\n# TYPE t gauge\nt 1\n");
    expect_text(metrics, "# HELP t h\n# TYPE t gauge\nt 2\n");
}

/* --- Grammar -------------------------------------------------------------------------------------
 */

/* name := [a-zA-Z_:][a-zA-Z0-9_:]* ; how many bytes of it are at `at`. */
static size_t name_bytes(const char *at)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";

    return strspn(at, letters) == 0 ? 0
                                    : strspn(at, "0123456789abcdefghijklmnopqrstuvwxyz"
                                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ_:");
}

/* "…" with \\ \" \n as its only escapes; NULL: it isn't one. */
static const char *skip_quoted(const char *at)
{
    if (*at++ != '"') {
        return NULL;
    }
    while (*at != '"') {
        if (*at == '\0' || *at == '\n') {
            return NULL;
        }
        if (*at == '\\') {
            at++;
            if (*at != '\\' && *at != '"' && *at != 'n') {
                return NULL;
            }
        }
        at++;
    }
    return at + 1;
}

/* Behind the labels, or NULL. */
static const char *skip_labels(const char *at)
{
    if (*at != '{') {
        return at;
    }
    do {
        at++;
        size_t bytes = name_bytes(at);

        if (bytes == 0 || at[bytes] != '=') {
            return NULL;
        }
        at = skip_quoted(at + bytes + 1);
    } while (at != NULL && *at == ',');
    return at != NULL && *at == '}' ? at + 1 : NULL;
}

static void check_sample(const char *line, const char *family)
{
    size_t bytes = name_bytes(line);

    assert_true(bytes >= strlen(family));
    assert_int_equal(strncmp(line, family, strlen(family)), 0);
    const char *at = skip_labels(line + bytes);
    char *end = NULL;

    if (at == NULL || *at != ' ') {
        fail_msg("not a sample: %s", line);
    }
    (void)strtod(at + 1, &end);
    if (end == at + 1 || *end != '\0') {
        fail_msg("not a number: %s", line);
    }
}

static void every_line_follows_the_grammar(void **state)
{
    struct metrics *metrics = *state;
    struct metric *pending = metrics_register(metrics, &PENDING);
    struct metric *latency = metrics_register(metrics, &LATENCY);
    char family[128] = "";
    char copy[65536];
    char *rest = NULL;
    uint32_t random = 1;

    (void)metrics_register(metrics, &ATTEMPTS);
    for (int i = 0; i < 60; i++) {
        char wild[24];

        for (size_t k = 0; k < sizeof(wild); k++) {
            random = random * 1664525 + 1013904223;
            wild[k] = (char)((random >> 24) % 5 == 0 ? "\"\\\n{},= "[(random >> 16) % 8]
                                                     : (char)(random >> 20));
        }
        two[0] = (struct str){wild, sizeof(wild)};
        two[1] = STR("r");
        metric_set(pending, two, (int64_t)random - INT32_MAX);
        metric_observe(latency, two, (int64_t)(random % 2000));
    }
    struct str text = metrics_render(metrics);

    assert_true(text.len < sizeof(copy) && text.ptr[text.len - 1] == '\n');
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    /* A label may hold a NUL byte, which isn't ours to judge; here none is read over it. */
    for (size_t i = 0; i < text.len; i++) {
        copy[i] = (char)(copy[i] == '\0' ? '0' : copy[i]);
    }
    for (char *line = strtok_r(copy, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            size_t bytes = name_bytes(line + 7);

            (void)snprintf(family, sizeof(family), "%.*s", (int)bytes, line + 7);
            assert_true(bytes > 0 && line[7 + bytes] == ' ');
        } else if (strncmp(line, "# TYPE ", 7) == 0) {
            assert_int_equal(strncmp(line + 7, family, strlen(family)), 0);
            assert_int_equal(line[7 + strlen(family)], ' ');
        } else {
            check_sample(line, family);
        }
    }
}

/* --- Mistakes ------------------------------------------------------------------------------------
 */

static bool dies(const struct metric_options *first, const struct metric_options *second)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        struct metrics *metrics = metrics_new();

        (void)signal(SIGABRT, SIG_DFL);
        (void)close(STDERR_FILENO);
        (void)metrics_register(metrics, first);
        if (second != NULL) {
            (void)metrics_register(metrics, second);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void a_programmers_mistake_ends_the_program(void **state)
{
    struct metric_options wrong = ATTEMPTS;

    (void)state;
    assert_false(dies(&ATTEMPTS, &PENDING));
    assert_true(dies(&ATTEMPTS, &ATTEMPTS));
    wrong.name = "0starts_with_a_digit";
    assert_true(dies(&wrong, NULL));
    wrong.name = "has-a-dash";
    assert_true(dies(&wrong, NULL));
    wrong.name = "";
    assert_true(dies(&wrong, NULL));
    wrong = PENDING;
    wrong.label_names[0] = "le";
    assert_true(dies(&wrong, NULL));
    wrong.label_names[0] = "__reserved";
    assert_true(dies(&wrong, NULL));
    wrong.label_names[0] = "a:colon";
    assert_true(dies(&wrong, NULL));
    wrong = LATENCY;
    wrong.bucket_count = 0;
    assert_true(dies(&wrong, NULL));
    wrong = ATTEMPTS;
    wrong.decimals = 10;
    assert_true(dies(&wrong, NULL));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_gauge_is_set_and_a_counter_counts),
        T(a_histogram_is_cumulative_and_in_its_unit),
        T(a_histogram_without_labels_starts_with_zeros),
        T(decimals_keep_the_sign_and_the_zeros),
        T(labels_are_escaped_and_made_utf8),
        T(what_is_forgotten_is_gone),
        T(series_are_bounded_and_what_is_dropped_is_counted),
        T(long_labels_are_cut_on_a_character),
        T(collectors_run_before_each_text),
        T(every_line_follows_the_grammar),
        T(a_programmers_mistake_ends_the_program),
    };

    metrics_free(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
