/* metrics.h - counters, gauges and histograms, and their text as Prometheus reads it (0.0.4).
 *
 * Values are int64 in a fixed unit; `decimals` says where the point stands when they are written,
 * so that milliseconds are shown as seconds (decimals 3) without a float anywhere. Sums saturate.
 *
 * A metric holds at most `series_max` combinations of label values; further ones are dropped and
 * counted in tallyman_metrics_dropped_series_total, so that no user's object can grow it.
 * Metrics are written in the order of registering, series by label values. */
#pragma once

#include <stdint.h>

#include "tallyman/base/str.h"

enum metric_kind { METRIC_COUNTER = 1, METRIC_GAUGE, METRIC_HISTOGRAM };

#define METRIC_LABELS_MAX 4

struct metrics;
struct metric;

struct metric_options {
    const char *name; /* static; [a-zA-Z_:][a-zA-Z0-9_:]* */
    const char *help; /* static */
    enum metric_kind kind;
    const char *label_names[METRIC_LABELS_MAX]; /* static; the first NULL ends them */
    uint32_t decimals;                          /* 0 to 9 */
    const int64_t *buckets; /* static; histogram only: upper bounds, ascending */
    uint32_t bucket_count;
    uint32_t series_max; /* 0: METRIC_SERIES_MAX */
};

/* Owned by the caller. */
NODISCARD RETURNS_NONNULL struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics); /* NULL is fine */

/* A wrong or repeated name is a programmer's mistake and ends the program. A metric without labels
 * is written from the start, with 0. Borrowed from `metrics`. */
RETURNS_NONNULL struct metric *metrics_register(struct metrics *metrics,
                                                const struct metric_options *options);

/* `labels` has one value per label name (NULL where there are none); the values are copied. */
void metric_add(struct metric *counter, const struct str *labels, int64_t by); /* by >= 0 */
void metric_set(struct metric *gauge, const struct str *labels, int64_t value);
void metric_observe(struct metric *histogram, const struct str *labels, int64_t value);
/* Forgets one series, or all: a queue was deleted, or a gauge is about to be filled anew. */
void metric_remove(struct metric *metric, const struct str *labels);
void metric_clear(struct metric *metric);
/* The value of a counter or gauge, the number of observations of a histogram; 0 without a series.
 */
int64_t metric_value(const struct metric *metric, const struct str *labels);

/* Runs before each text is made: the place to set gauges from state. `ctx` is borrowed. At most
 * METRIC_COLLECTORS_MAX. */
void metrics_add_collector(struct metrics *metrics, void (*collect)(void *ctx), void *ctx);

/* The whole text. Borrowed from `metrics` until the next call. */
struct str metrics_render(struct metrics *metrics);
