/* simulate_summary_data.c - a summary for programs: JSON of the whole, CSV of every job. Its form
 * is told in docs/reference/simulate-output.md. */
#include "simulate_history.h"
#include "terminal.h"

#include "tallyman/api/codec.h"

#define NUMBER_BYTES 32

/* Thousandths as a decimal number: seconds of milliseconds, a share of one. */
static void put_milli(struct json_writer *writer, const char *key, int64_t milli)
{
    char text[NUMBER_BYTES];
    int length = snprintf(text, sizeof(text), "%lld.%03lld", (long long)(milli / 1000),
                          (long long)(milli % 1000));
    json_key(writer, key);
    json_number(writer, (struct str){text, (size_t)length});
}

static void put_int(struct json_writer *writer, const char *key, int64_t value)
{
    json_key(writer, key);
    json_int(writer, value);
}

static void put_distribution(struct json_writer *writer, const char *key,
                             const struct distribution *values)
{
    json_key(writer, key);
    json_object_start(writer);
    put_milli(writer, "mean", values->mean);
    put_milli(writer, "p50", values->p50);
    put_milli(writer, "p90", values->p90);
    put_milli(writer, "p99", values->p99);
    put_milli(writer, "max", values->max);
    json_object_end(writer);
}

static void put_waits(struct json_writer *writer, const struct summary_group *group)
{
    json_key(writer, "waitSecondsByReason");
    json_object_start(writer);
    for (int reason = 0; reason < REASON_COUNT; reason++) {
        if (group->waits_ms[reason] > 0) {
            put_milli(writer,
                      reason == REASON_NONE ? "none" : reason_info((enum reason)reason)->code,
                      group->waits_ms[reason]);
        }
    }
    json_object_end(writer);
}

static void put_group(struct json_writer *writer, const struct summary_group *group,
                      bool has_reasons)
{
    json_object_start(writer);
    json_key(writer, "name");
    json_string(writer, group->name);
    put_int(writer, "jobs", group->jobs);
    put_int(writer, "finished", group->finished);
    put_distribution(writer, "waitSeconds", &group->wait_ms);
    if (group->finished > 0) {
        put_distribution(writer, "boundedSlowdown", &group->slowdown_milli);
    } else { /* nobody has one, and 0 would be better than any */
        json_key(writer, "boundedSlowdown");
        json_null(writer);
    }
    put_milli(writer, "deviceSeconds", group->worked);
    put_milli(writer, "lostDeviceSeconds", group->lost);
    put_int(writer, "stopped", group->stops);
    put_int(writer, "failures", group->failures);
    if (has_reasons) {
        put_waits(writer, group);
    }
    json_object_end(writer);
}

static void put_groups(struct json_writer *writer, const char *key,
                       const struct summary_group *groups, uint32_t count, bool has_reasons)
{
    json_key(writer, key);
    json_array_start(writer);
    for (uint32_t i = 0; i < count; i++) {
        put_group(writer, &groups[i], has_reasons);
    }
    json_array_end(writer);
}

static void put_bound(struct json_writer *writer, const struct summary *summary)
{
    json_key(writer, "lowerBound");
    json_object_start(writer);
    put_milli(writer, "seconds", summary->bound.ms);
    put_milli(writer, "workSeconds", summary->bound.work_ms);
    put_milli(writer, "longestSeconds", summary->bound.longest_ms);
    put_milli(writer, "afterReleaseSeconds", summary->bound.after_release_ms);
    json_object_end(writer);
    if (summary->unfinished == 0) {
        put_milli(writer, "makespanToBound",
                  summary_milli(summary->makespan_ms, summary->bound.ms));
    }
}

static void put_periods(struct json_writer *writer, const struct summary *summary)
{
    json_key(writer, "periods");
    json_array_start(writer);
    for (uint32_t p = 0; p < SUMMARY_PERIODS; p++) {
        const struct summary_period *period = &summary->periods[p];
        json_object_start(writer);
        put_milli(writer, "fromSeconds", period->from_ms);
        put_milli(writer, "utilisation", summary_milli(period->used, period->there));
        put_milli(writer, "jain", period->jain_milli);
        json_key(writer, "shares");
        json_object_start(writer);
        for (uint32_t q = 0; q < summary->history->workload->queue_count; q++) {
            if (period->queues[q] > 0) {
                json_key_str(writer, summary->queues[q].name);
                char text[NUMBER_BYTES];
                int64_t milli = summary_milli(period->queues[q], period->used);
                int length = snprintf(text, sizeof(text), "%lld.%03lld", (long long)(milli / 1000),
                                      (long long)(milli % 1000));
                json_number(writer, (struct str){text, (size_t)length});
            }
        }
        json_object_end(writer);
        json_object_end(writer);
    }
    json_array_end(writer);
}

void summary_print_json(FILE *out, const struct summary *summary)
{
    const struct workload *workload = summary->history->workload;
    struct json_writer *writer = json_writer_new();
    json_object_start(writer);
    put_int(writer, "jobs", summary->all.jobs);
    put_int(writer, "finished", summary->all.finished);
    json_key(writer, "stuck");
    json_bool(writer, summary->history->is_stuck);
    put_int(writer, "leftOut", workload->left_out);
    put_int(writer, "tooLarge", workload->too_large);
    put_int(writer, "devices", summary->devices);
    put_milli(writer, "makespanSeconds", summary->makespan_ms);
    put_bound(writer, summary);
    put_milli(writer, "utilisation", summary_milli(summary->all.worked, summary->there));
    json_key(writer, "fairness");
    json_object_start(writer);
    put_milli(writer, "jainMean", summary->jain_mean_milli);
    put_milli(writer, "jainLeast", summary->jain_least_milli);
    json_object_end(writer);
    json_key(writer, "all");
    put_group(writer, &summary->all, true);
    put_groups(writer, "queues", summary->queues, workload->queue_count, true);
    put_groups(writer, "classes", summary->classes, workload->class_count, false);
    put_periods(writer, summary);
    json_object_end(writer);
    terminal_print_json(out, json_writer_text(writer), false);
    fputc('\n', out);
    json_writer_free(writer);
}

/* -- CSV -----------------------------------------------------------------------------------------
 */

/* A text that a spreadsheet neither splits nor runs. */
static void print_text(FILE *out, struct str text)
{
    bool is_formula = text.len > 0 && (text.ptr[0] == '=' || text.ptr[0] == '+' ||
                                       text.ptr[0] == '-' || text.ptr[0] == '@');
    fputs(is_formula ? "\"'" : "\"", out);
    while (text.len > 0) {
        struct str before = text;
        uint32_t c;
        if (!str_take_utf8(&text, &c)) {
            text = str_skip(text, 1);
            c = 0;
        }
        if (str_char_is_unsafe(c)) {
            fputc(' ', out);
        } else {
            fputs(c == '"' ? "\"" : "", out);
            fwrite(before.ptr, 1, before.len - text.len, out);
        }
    }
    fputc('"', out);
}

static void print_milli(FILE *out, int64_t milli)
{
    fprintf(out, ",%lld.%03lld", (long long)(milli / 1000), (long long)(milli % 1000));
}

static void print_job(FILE *out, const struct history *history, uint32_t index)
{
    const struct history_job *job = &history->jobs[index];
    const struct workload *workload = history->workload;
    const struct bulk_gang *gang = &workload->gangs[index];
    print_text(out, gang->namespace_name);
    fputc(',', out);
    print_text(out, gang->name);
    fputc(',', out);
    print_text(out, gang->queue);
    fputc(',', out);
    print_text(out, workload->classes[workload->tags[index].class_index].name);
    fprintf(out, ",%lld", (long long)bulk_gang_units(gang));
    print_milli(out, gang->submit_ms);
    print_milli(out, gang->run_ms);
    if (job->first == HISTORY_NONE) {
        fputs(",", out);
    } else {
        print_milli(out, history->spans[job->first].start_ms);
    }
    if (job->is_finished) {
        print_milli(out, job->end_ms);
    } else {
        fputs(",", out);
    }
    print_milli(out, job->wait_ms);
    if (job->is_finished) {
        print_milli(out, history_slowdown_milli(history, index));
    } else {
        fputs(",", out);
    }
    fprintf(out, ",%u,%u", job->stops, job->failures);
    print_milli(out, job->lost_ms);
    fputc('\n', out);
}

void summary_print_csv(FILE *out, const struct summary *summary)
{
    const struct history *history = summary->history;
    fputs("namespace,job,queue,class,devices,submit_s,run_s,start_s,end_s,wait_s,bounded_slowdown,"
          "stopped,failures,lost_s\n",
          out);
    for (uint32_t i = 0; i < history->job_count; i++) {
        if (history->jobs[i].is_submitted) {
            print_job(out, history, i);
        }
    }
}
