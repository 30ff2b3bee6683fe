#include "tallyman/base/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

#define DECIMALS_MAX 9u
#define DROPPED_NAME "tallyman_metrics_dropped_series_total"
#define NUMBER_BYTES 32
#define REPLACEMENT  "\xef\xbf\xbd" /* U+FFFD */

struct series {
    char *label_bytes; /* owned */
    struct str labels[METRIC_LABELS_MAX];
    int64_t value;    /* histogram: the sum */
    int64_t *buckets; /* owned; histogram: how many fell into each, the last has no bound */
    int64_t observed;
};

struct metric {
    struct metric_options options;
    uint32_t label_count;
    struct series **series; /* owned; ordered by labels */
    uint32_t series_count;
    uint32_t series_capacity;
    int64_t dropped;
};

struct collector {
    void (*collect)(void *ctx);
    void *ctx; /* borrowed */
};

struct metrics {
    struct metric *items[METRICS_MAX]; /* owned */
    uint32_t count;
    struct collector collectors[METRIC_COLLECTORS_MAX];
    uint32_t collector_count;
    char *text; /* owned */
    size_t text_len;
    size_t text_capacity;
};

/* --- Registering ---------------------------------------------------------------------------------
 */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS  "0123456789"

static bool is_name(const char *name, bool takes_colon)
{
    const char *first = takes_colon ? LETTERS ":" : LETTERS;
    const char *later = takes_colon ? LETTERS DIGITS ":" : LETTERS DIGITS;

    return name != NULL && strspn(name, first) > 0 && name[strspn(name, later)] == '\0';
}

static void check_options(const struct metrics *metrics, const struct metric_options *options)
{
    assert(is_name(options->name, true) && options->help != NULL);
    assert(strcmp(options->name, DROPPED_NAME) != 0);
    assert(options->decimals <= DECIMALS_MAX && metrics->count < METRICS_MAX);
    assert((options->kind == METRIC_HISTOGRAM) == (options->bucket_count > 0));
    assert(options->bucket_count <= METRIC_BUCKETS_MAX);
    for (uint32_t i = 1; i < options->bucket_count; i++) {
        assert(options->buckets[i - 1] < options->buckets[i]);
    }
    for (uint32_t i = 0; i < metrics->count; i++) {
        assert(strcmp(metrics->items[i]->options.name, options->name) != 0);
    }
}

static uint32_t count_labels(const struct metric_options *options)
{
    uint32_t count = 0;

    while (count < METRIC_LABELS_MAX && options->label_names[count] != NULL) {
        const char *name = options->label_names[count];

        assert(is_name(name, false) && strncmp(name, "__", 2) != 0 && strcmp(name, "le") != 0);
        count++;
    }
    return count;
}

struct metrics *metrics_new(void)
{
    return MEM_NEW(struct metrics);
}

static void series_free(struct series *series)
{
    mem_free(series->label_bytes);
    mem_free(series->buckets);
    mem_free(series);
}

void metric_clear(struct metric *metric)
{
    for (uint32_t i = 0; i < metric->series_count; i++) {
        series_free(metric->series[i]);
    }
    metric->series_count = 0;
}

void metrics_free(struct metrics *metrics)
{
    if (metrics == NULL) {
        return;
    }
    for (uint32_t i = 0; i < metrics->count; i++) {
        metric_clear(metrics->items[i]);
        mem_free(metrics->items[i]->series);
        mem_free(metrics->items[i]);
    }
    mem_free(metrics->text);
    mem_free(metrics);
}

/* --- Series --------------------------------------------------------------------------------------
 */

static int labels_compare(const struct metric *metric, const struct str *a, const struct str *b)
{
    int order = 0;

    for (uint32_t i = 0; i < metric->label_count && order == 0; i++) {
        order = str_compare(a[i], b[i]);
    }
    return order;
}

/* Index of the series, or where it would stand. */
static uint32_t series_position(const struct metric *metric, const struct str *labels)
{
    uint32_t low = 0;
    uint32_t high = metric->series_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (labels_compare(metric, metric->series[middle]->labels, labels) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void cut_labels(const struct metric *metric, const struct str *labels,
                       struct str ret_labels[METRIC_LABELS_MAX])
{
    for (uint32_t i = 0; i < metric->label_count; i++) {
        ret_labels[i] = str_cut_utf8(labels[i], METRIC_LABEL_MAX_BYTES);
    }
}

/* NULL: there is none. */
static struct series *series_find(const struct metric *metric, const struct str *labels)
{
    struct str cut[METRIC_LABELS_MAX];

    cut_labels(metric, labels, cut);
    uint32_t at = series_position(metric, cut);

    if (at < metric->series_count && labels_compare(metric, metric->series[at]->labels, cut) == 0) {
        return metric->series[at];
    }
    return NULL;
}

static struct series *series_new(const struct metric *metric, const struct str *labels)
{
    struct series *series = MEM_NEW(struct series);
    size_t bytes = 0;

    for (uint32_t i = 0; i < metric->label_count; i++) {
        bytes += labels[i].len;
    }
    series->label_bytes = mem_alloc(bytes);
    char *at = series->label_bytes;

    for (uint32_t i = 0; i < metric->label_count; i++) {
        if (labels[i].len > 0) {
            memcpy(at, labels[i].ptr, labels[i].len);
        }
        series->labels[i] = (struct str){at, labels[i].len};
        at += labels[i].len;
    }
    if (metric->options.kind == METRIC_HISTOGRAM) {
        series->buckets =
            mem_zalloc(mem_array_bytes(metric->options.bucket_count + 1, sizeof(int64_t)));
    }
    return series;
}

/* NULL: the metric has all the series that it may have. */
static struct series *series_get(struct metric *metric, const struct str *labels)
{
    struct series *series = series_find(metric, labels);
    struct str cut[METRIC_LABELS_MAX];

    if (series != NULL) {
        return series;
    }
    if (metric->series_count >= metric->options.series_max) {
        metric->dropped++;
        return NULL;
    }
    cut_labels(metric, labels, cut);
    uint32_t at = series_position(metric, cut);

    metric->series = mem_grow(metric->series, metric->series_count, &metric->series_capacity,
                              sizeof(struct series *));
    memmove(&metric->series[at + 1], &metric->series[at],
            (metric->series_count - at) * sizeof(struct series *));
    metric->series[at] = series_new(metric, cut);
    metric->series_count++;
    return metric->series[at];
}

struct metric *metrics_register(struct metrics *metrics, const struct metric_options *options)
{
    check_options(metrics, options);
    struct metric *metric = MEM_NEW(struct metric);

    metric->options = *options;
    metric->label_count = count_labels(options);
    if (metric->options.series_max == 0) {
        metric->options.series_max = METRIC_SERIES_MAX;
    }
    if (metric->label_count == 0) {
        (void)series_get(metric, NULL);
    }
    metrics->items[metrics->count++] = metric;
    return metric;
}

static void add_saturating(int64_t *total, int64_t by)
{
    if (__builtin_add_overflow(*total, by, total)) {
        *total = by < 0 ? INT64_MIN : INT64_MAX;
    }
}

void metric_add(struct metric *counter, const struct str *labels, int64_t by)
{
    assert(counter->options.kind == METRIC_COUNTER && by >= 0);
    struct series *series = series_get(counter, labels);

    if (series != NULL) {
        add_saturating(&series->value, by);
    }
}

void metric_set(struct metric *gauge, const struct str *labels, int64_t value)
{
    assert(gauge->options.kind == METRIC_GAUGE);
    struct series *series = series_get(gauge, labels);

    if (series != NULL) {
        series->value = value;
    }
}

void metric_observe(struct metric *histogram, const struct str *labels, int64_t value)
{
    assert(histogram->options.kind == METRIC_HISTOGRAM);
    struct series *series = series_get(histogram, labels);
    uint32_t bucket = 0;

    if (series == NULL) {
        return;
    }
    while (bucket < histogram->options.bucket_count && value > histogram->options.buckets[bucket]) {
        bucket++;
    }
    series->buckets[bucket]++;
    series->observed++;
    add_saturating(&series->value, value);
}

void metric_remove(struct metric *metric, const struct str *labels)
{
    struct series *series = series_find(metric, labels);

    if (series == NULL) {
        return;
    }
    uint32_t at = series_position(metric, series->labels);

    metric->series_count--;
    memmove(&metric->series[at], &metric->series[at + 1],
            (metric->series_count - at) * sizeof(struct series *));
    series_free(series);
}

int64_t metric_value(const struct metric *metric, const struct str *labels)
{
    const struct series *series = series_find(metric, labels);

    if (series == NULL) {
        return 0;
    }
    return metric->options.kind == METRIC_HISTOGRAM ? series->observed : series->value;
}

/* --- Text ----------------------------------------------------------------------------------------
 */

static void add_piece(struct metrics *metrics, struct str piece)
{
    size_t needed = metrics->text_len + piece.len;

    if (needed > metrics->text_capacity) {
        size_t doubled = metrics->text_capacity * 2 + 4096;

        metrics->text_capacity = doubled < needed ? needed : doubled;
        metrics->text = mem_realloc(metrics->text, metrics->text_capacity);
    }
    if (piece.len > 0) {
        memcpy(metrics->text + metrics->text_len, piece.ptr, piece.len);
    }
    metrics->text_len = needed;
}

static void add_text(struct metrics *metrics, const char *text)
{
    add_piece(metrics, str_from_c(text));
}

/* Backslash and newline, and in a label's value the quote; what isn't UTF-8 is replaced. */
static void add_escaped(struct metrics *metrics, struct str text, bool is_label)
{
    while (text.len > 0) {
        const char *start = text.ptr;
        uint32_t c = 0;

        if (!str_take_utf8(&text, &c)) {
            add_text(metrics, REPLACEMENT);
            text = str_skip(text, 1);
        } else if (c == '\\') {
            add_text(metrics, "\\\\");
        } else if (c == '\n') {
            add_text(metrics, "\\n");
        } else if (c == '"' && is_label) {
            add_text(metrics, "\\\"");
        } else {
            add_piece(metrics, (struct str){start, (size_t)(text.ptr - start)});
        }
    }
}

/* 1234 with three decimals is "1.234". */
static void format_number(int64_t value, uint32_t decimals, char ret_text[NUMBER_BYTES])
{
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint64_t unit = 1;

    for (uint32_t i = 0; i < decimals; i++) {
        unit *= 10;
    }
    int length = snprintf(ret_text, NUMBER_BYTES, "%s%" PRIu64, value < 0 ? "-" : "", size / unit);

    if (decimals > 0) {
        (void)snprintf(ret_text + length, NUMBER_BYTES - (size_t)length, ".%0*" PRIu64,
                       (int)decimals, size % unit);
    }
}

/* name_suffix{labels,le="bound"} number */
static void add_sample(struct metrics *metrics, const struct metric *metric,
                       const struct series *series, const char *suffix, const char *bound,
                       const char *number)
{
    bool has_label = false;

    add_text(metrics, metric->options.name);
    add_text(metrics, suffix);
    for (uint32_t i = 0; i < metric->label_count; i++) {
        add_text(metrics, has_label ? "," : "{");
        add_text(metrics, metric->options.label_names[i]);
        add_text(metrics, "=\"");
        add_escaped(metrics, series->labels[i], true);
        add_text(metrics, "\"");
        has_label = true;
    }
    if (bound != NULL) {
        add_text(metrics, has_label ? ",le=\"" : "{le=\"");
        add_text(metrics, bound);
        add_text(metrics, "\"");
        has_label = true;
    }
    add_text(metrics, has_label ? "} " : " ");
    add_text(metrics, number);
    add_text(metrics, "\n");
}

static void add_histogram(struct metrics *metrics, const struct metric *metric,
                          const struct series *series)
{
    char number[NUMBER_BYTES];
    char bound[NUMBER_BYTES];
    int64_t below = 0;

    for (uint32_t i = 0; i <= metric->options.bucket_count; i++) {
        bool is_last = i == metric->options.bucket_count;

        below += series->buckets[i];
        format_number(below, 0, number);
        if (!is_last) {
            format_number(metric->options.buckets[i], metric->options.decimals, bound);
        }
        add_sample(metrics, metric, series, "_bucket", is_last ? "+Inf" : bound, number);
    }
    format_number(series->value, metric->options.decimals, number);
    add_sample(metrics, metric, series, "_sum", NULL, number);
    format_number(series->observed, 0, number);
    add_sample(metrics, metric, series, "_count", NULL, number);
}

static void add_head(struct metrics *metrics, const char *name, const char *help, const char *type)
{
    add_text(metrics, "# HELP ");
    add_text(metrics, name);
    add_text(metrics, " ");
    add_escaped(metrics, str_from_c(help), false);
    add_text(metrics, "\n# TYPE ");
    add_text(metrics, name);
    add_text(metrics, " ");
    add_text(metrics, type);
    add_text(metrics, "\n");
}

static void add_metric(struct metrics *metrics, const struct metric *metric)
{
    static const char *const TYPES[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};
    char number[NUMBER_BYTES];

    add_head(metrics, metric->options.name, metric->options.help, TYPES[metric->options.kind]);
    for (uint32_t i = 0; i < metric->series_count; i++) {
        const struct series *series = metric->series[i];

        if (metric->options.kind == METRIC_HISTOGRAM) {
            add_histogram(metrics, metric, series);
        } else {
            format_number(series->value, metric->options.decimals, number);
            add_sample(metrics, metric, series, "", NULL, number);
        }
    }
}

static void add_dropped(struct metrics *metrics)
{
    char number[NUMBER_BYTES];

    add_head(metrics, DROPPED_NAME,
             "Values that were dropped because their metric has as many series as it may have.",
             "counter");
    for (uint32_t i = 0; i < metrics->count; i++) {
        format_number(metrics->items[i]->dropped, 0, number);
        if (metrics->items[i]->dropped > 0) {
            add_text(metrics, DROPPED_NAME "{metric=\"");
            add_text(metrics, metrics->items[i]->options.name);
            add_text(metrics, "\"} ");
            add_text(metrics, number);
            add_text(metrics, "\n");
        }
    }
}

void metrics_add_collector(struct metrics *metrics, void (*collect)(void *ctx), void *ctx)
{
    assert(metrics->collector_count < METRIC_COLLECTORS_MAX);
    metrics->collectors[metrics->collector_count++] = (struct collector){collect, ctx};
}

struct str metrics_render(struct metrics *metrics)
{
    for (uint32_t i = 0; i < metrics->collector_count; i++) {
        metrics->collectors[i].collect(metrics->collectors[i].ctx);
    }
    metrics->text_len = 0;
    for (uint32_t i = 0; i < metrics->count; i++) {
        add_metric(metrics, metrics->items[i]);
    }
    add_dropped(metrics);
    return (struct str){metrics->text, metrics->text_len};
}
