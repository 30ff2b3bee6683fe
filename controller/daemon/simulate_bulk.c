/* simulate_bulk.c - a load or a trace in virtual time: reads it, plays it, shows what came of it.
 */
#define _GNU_SOURCE
#include "simulate.h"
#include "simulate_history.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tallyman/base/time_text.h"

#define MOMENTS_AT_ONCE  256
#define PROGRESS_FROM_MS 1000
#define PROGRESS_MS      200
#define PROGRESS_COLUMNS 30
#define START_MS         INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

/* -- the progress bar ----------------------------------------------------------------------------
 */

struct progress {
    bool is_on;
    bool was_shown;
    int64_t began_ms;
    int64_t shown_ms;
};

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void progress_show(struct progress *progress, uint32_t done, uint32_t total, int64_t now_ms)
{
    int64_t wall = progress->is_on ? wall_ms() : 0;
    if (!progress->is_on || wall - progress->began_ms < PROGRESS_FROM_MS ||
        wall - progress->shown_ms < PROGRESS_MS) {
        return;
    }
    progress->shown_ms = wall;
    progress->was_shown = true;
    char clock[TIME_TEXT_BYTES];
    uint32_t filled = total == 0 ? 0 : (uint32_t)((uint64_t)done * PROGRESS_COLUMNS / total);
    fprintf(stderr, "\r  [%.*s%*s] %u of %u jobs, day %lld %-8s", (int)filled,
            "##############################", (int)(PROGRESS_COLUMNS - filled), "", done, total,
            (long long)(now_ms / 86400000), duration_format_short(now_ms % 86400000, clock).ptr);
    fflush(stderr);
}

static void progress_end(const struct progress *progress)
{
    if (progress->was_shown) {
        fprintf(stderr, "\r%*s\r", 78, "");
    }
}

/* -- playing -------------------------------------------------------------------------------------
 */

static void on_note(void *ctx, const struct bulk_note *note)
{
    history_note(ctx, note);
}

static void on_capacity(void *ctx, int64_t at_ms, int64_t units)
{
    history_capacity(ctx, at_ms, units);
}

static void on_refused(void *ctx, const struct event *event, const struct err *err)
{
    (void)ctx;
    (void)event;
    fprintf(stderr, "tallyman simulate: an object is passed over: %s\n", err->text);
}

static void run(struct bulk *bulk, int64_t until_ms, uint32_t total)
{
    struct progress progress = {.is_on = isatty(STDERR_FILENO) == 1, .began_ms = wall_ms()};
    while (bulk_run(bulk, until_ms, MOMENTS_AT_ONCE)) {
        progress_show(&progress, total - bulk_unfinished(bulk), total, bulk_now_ms(bulk));
    }
    progress_end(&progress);
}

static struct rc play(struct workload *workload, const struct manifest_list *manifests,
                      int64_t until_ms, struct history *history, struct err *err)
{
    struct bulk_options options = {.gangs = workload->gangs,
                                   .gang_count = workload->gang_count,
                                   .resource = workload->resource,
                                   .start_ms = START_MS,
                                   .ctx = history,
                                   .on_note = on_note,
                                   .on_capacity = on_capacity,
                                   .on_refused = on_refused};
    struct bulk *bulk = bulk_new(&options);
    struct rc rc = workload_load_objects(workload, manifests, bulk, err);
    if (!rc_failed(rc)) {
        run(bulk, until_ms, workload->gang_count);
        history->is_stuck = bulk_is_stuck(bulk);
        history_close(history, bulk_unfinished(bulk) > 0 && until_ms != INT64_MAX
                                   ? until_ms
                                   : bulk_now_ms(bulk));
    }
    bulk_free(bulk);
    return rc;
}

/* -- input ---------------------------------------------------------------------------------------
 */

/* Why nothing is left to be played, and what would be right. */
static struct rc refuse_empty(const struct bulk_command *command, const struct workload *workload,
                              struct err *err)
{
    const char *trace = command->swf_path != NULL ? command->swf_path : command->csv_path;
    const char *file = trace != NULL ? trace : command->load_path;
    char why[ERR_TEXT_MAX_BYTES / 2] = "";
    size_t at = 0;
    if (workload->left_out > 0) {
        at = (size_t)snprintf(why, sizeof(why), "%u of them state no devices or no run time; %s",
                              workload->left_out, "each needs both");
    }
    if (workload->too_large > 0) {
        (void)snprintf(why + at, sizeof(why) - at,
                       "%s%u of them need more than the %lld devices of all nodes or the %lld of "
                       "one; give %s that are enough",
                       at > 0 ? "; " : "", workload->too_large,
                       (long long)workload_devices(workload), (long long)workload->units_per_node,
                       trace != NULL ? "--devices and --node-devices" : "the `cluster` nodes");
    } else if (workload->left_out == 0) {
        (void)snprintf(why, sizeof(why), "%s",
                       trace != NULL ? "a trace has a line for each"
                                     : "give a class of a queue `jobs`, such as jobs: 10");
    }
    return err_set(err, RC_INVALID, "%s: there are no jobs to simulate: %s", file, why);
}

static struct rc read_workload(const struct bulk_command *command, struct workload *workload,
                               struct err *err)
{
    struct trace_options trace = command->trace;
    if (command->load_path != NULL) {
        TRY(workload_read_load(workload, command->load_path, err));
    }
    if (command->swf_path != NULL) {
        TRY(workload_read_swf(workload, command->swf_path, &trace, err));
    } else if (command->csv_path != NULL) {
        TRY(workload_read_csv(workload, command->csv_path, &trace, err));
    }
    for (uint32_t i = 0; i < command->manifests.count; i++) {
        workload->has_nodes =
            workload->has_nodes || command->manifests.items[i].object.kind == KIND_NODE;
    }
    if (command->nodes_units > 0) {
        workload->units_per_node = command->nodes_units;
    }
    if (command->swf_path != NULL || command->csv_path != NULL) {
        workload_finish_trace(workload, &trace);
    }
    workload_sort(workload);
    if (workload->gang_count == 0) {
        return refuse_empty(command, workload, err);
    }
    return RC_SUCCESS;
}

/* -- output --------------------------------------------------------------------------------------
 */

struct rc simulate_write_svg(const char *path, const struct summary *summary, struct str title,
                             struct err *err)
{
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        return err_set(err, RC_IO, "--svg %s: can't be written: %s", path, strerror(errno));
    }
    gantt_print(file, summary, title);
    bool has_failed = ferror(file) != 0;
    if (fclose(file) != 0 || has_failed) {
        return err_set(err, RC_IO, "--svg %s: can't be written: %s", path, strerror(errno));
    }
    return RC_SUCCESS;
}

void simulate_print_summary(enum simulate_format format, const struct summary *summary)
{
    switch (format) {
    case FORMAT_TEXT:
        print_choose_ink(stdout);
        summary_print(stdout, summary);
        break;
    case FORMAT_JSON:
        summary_print_json(stdout, summary);
        break;
    case FORMAT_CSV:
        summary_print_csv(stdout, summary);
        break;
    }
}

static const char *name_of(const struct bulk_command *command)
{
    const char *path = command->swf_path != NULL   ? command->swf_path
                       : command->csv_path != NULL ? command->csv_path
                                                   : command->load_path;
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static struct rc show(const struct bulk_command *command, const struct summary *summary,
                      struct err *err)
{
    if (command->svg_path != NULL) {
        TRY(simulate_write_svg(command->svg_path, summary, str_from_c(name_of(command)), err));
    }
    simulate_print_summary(command->format, summary);
    return RC_SUCCESS;
}

int simulate_bulk(const struct bulk_command *command, struct arena *arena)
{
    struct workload workload = {.arena = arena, .resource = STR("example.com/device")};
    struct history history = {.workload = &workload};
    struct err err;
    struct rc rc = read_workload(command, &workload, &err);
    if (!rc_failed(rc)) {
        rc = play(&workload, &command->manifests, command->until_ms, &history, &err);
    }
    if (!rc_failed(rc)) {
        rc = show(command, summary_make(arena, &history), &err);
    }
    history_deinit(&history);
    workload_deinit(&workload);
    if (rc_failed(rc)) {
        fprintf(stderr, "tallyman simulate: %s\n", err.text);
        return rc.code == RC_IO ? 1 : 2;
    }
    return 0;
}
