/* simulate_table.c - how a half stood, and both side by side. */
#include "simulate.h"

#include <string.h>

#define CELL_BYTES  48
#define COLUMNS_MAX 6
#define GAP         2 /* between two columns */

struct snapshot_job {
    struct snapshot *snapshot;
    struct sim *sim;
    struct arena *arena;
    uint32_t capacity;
};

static void count_job(void *ctx, const void *value)
{
    struct snapshot_job *job = ctx;
    const struct object_meta *meta = value;
    struct sim_job_state state;
    if (sim_job_state(job->sim, meta->namespace_name, meta->name, &state)) {
        job->snapshot->jobs++;
        job->snapshot->finished += state.is_finished ? 1 : 0;
        job->snapshot->working += state.is_whole && !state.is_finished ? 1 : 0;
    }
}

static void add_waiting(void *ctx, const void *value)
{
    struct snapshot_job *job = ctx;
    struct snapshot *snapshot = job->snapshot;
    const struct admission *admission = value;
    bool waits =
        str_eq_c(admission->status.state, "Pending") || str_eq_c(admission->status.state, "Held");
    if (!waits || str_is_empty(admission->status.summary)) {
        return;
    }
    snapshot->waiting = arena_grow(job->arena, snapshot->waiting, snapshot->waiting_count,
                                   &job->capacity, sizeof(struct waiting_job));
    snapshot->waiting[snapshot->waiting_count++] =
        (struct waiting_job){.name = arena_format(job->arena, STR_FMT "/" STR_FMT,
                                                  STR_ARG(admission->meta.namespace_name),
                                                  STR_ARG(admission->meta.name)),
                             .summary = arena_copy_str(job->arena, admission->status.summary)};
}

void snapshot_take(struct snapshot *snapshot, struct sim *sim, struct arena *arena)
{
    *snapshot = (struct snapshot){.at_ms = sim_now_ms(sim), .devices = sim_devices(sim)};
    struct snapshot_job job = {.snapshot = snapshot, .sim = sim, .arena = arena};
    sim_each(sim, KIND_JOB, count_job, &job);
    sim_each(sim, KIND_ADMISSION, add_waiting, &job);
}

void waiting_print(FILE *out, const struct snapshot *snapshot)
{
    if (snapshot->waiting_count == 0) {
        return;
    }
    fputs("\n  Waiting at ", out);
    print_clock(out, snapshot->at_ms);
    fputs(", with Tallyman:\n", out);
    for (uint32_t i = 0; i < snapshot->waiting_count; i++) {
        const struct waiting_job *job = &snapshot->waiting[i];
        fputs("    ", out);
        print_ink(out, INK_BOLD);
        print_safe(out, job->name);
        print_ink(out, INK_PLAIN);
        fputs("\n      ", out);
        print_ink(out, INK_YELLOW);
        print_wrapped(out, 6, job->summary);
        print_ink(out, INK_PLAIN);
    }
}

/* -- the table -----------------------------------------------------------------------------------
 */

struct table {
    const char *heads[COLUMNS_MAX];
    char cells[2][COLUMNS_MAX][CELL_BYTES];
    uint32_t early_count; /* columns that show the moment of competition; the others the end */
    uint32_t count;
};

static char *cell_next(struct table *table, uint32_t row, uint32_t *column)
{
    return table->cells[row][(*column)++];
}

/* Tenths of a device-hour, without floating point. */
static void format_hours(char cell[CELL_BYTES], int64_t device_ms)
{
    int64_t tenths = (device_ms + 180000) / 360000;
    snprintf(cell, CELL_BYTES, "%lld.%lld device-h", (long long)(tenths / 10),
             (long long)(tenths % 10));
}

static void fill_row(struct table *table, const struct half *half, uint32_t row, bool has_devices)
{
    uint32_t column = 0;
    const struct snapshot *early = &half->early;
    if (has_devices) {
        snprintf(cell_next(table, row, &column), CELL_BYTES, "%lld of %lld",
                 (long long)early->devices.held, (long long)early->devices.total);
    }
    snprintf(cell_next(table, row, &column), CELL_BYTES, "%lld of %lld", (long long)early->working,
             (long long)(early->jobs - early->finished));
    if (has_devices) {
        snprintf(cell_next(table, row, &column), CELL_BYTES, "%lld",
                 (long long)(early->devices.total - early->devices.held));
    }
    snprintf(cell_next(table, row, &column), CELL_BYTES, "%lld of %lld",
             (long long)half->timeline.finished, (long long)half->timeline.submitted);
    if (has_devices) {
        format_hours(cell_next(table, row, &column), half->wasted_device_ms);
    }
}

static void set_heads(struct table *table, bool has_devices)
{
    if (has_devices) {
        table->heads[table->count++] = "devices held";
    }
    table->heads[table->count++] = has_devices ? "jobs that train" : "jobs at work";
    if (has_devices) {
        table->heads[table->count++] = "left for others";
    }
    table->early_count = table->count;
    table->heads[table->count++] = "jobs finished";
    if (has_devices) {
        table->heads[table->count++] = "held for nothing";
    }
}

static int column_width(const struct table *table, uint32_t column, uint32_t rows)
{
    size_t width = strlen(table->heads[column]);
    for (uint32_t row = 0; row < rows; row++) {
        size_t length = strlen(table->cells[row][column]);
        width = length > width ? length : width;
    }
    return (int)width;
}

static void print_moments(FILE *out, const struct table *table, const struct half *half,
                          uint32_t rows)
{
    int width = 0;
    for (uint32_t column = 0; column < table->early_count; column++) {
        width += column_width(table, column, rows) + GAP;
    }
    print_ink(out, INK_DIM);
    fprintf(out, "  %-16s%*sat ", "", GAP, "");
    print_clock(out, half->early.at_ms);
    fprintf(out, "%*s", width > 11 ? width - 11 : 1, "");
    fputs("at ", out);
    print_clock(out, half->end.at_ms);
    print_ink(out, INK_PLAIN);
    fputc('\n', out);
}

/* The name in the ink that is set, then the cells; nothing behind the last. */
static void print_row(FILE *out, const struct table *table, const char *name,
                      const char *const *cells, uint32_t rows)
{
    fprintf(out, "  %-16s", name);
    if (name[0] != '\0') {
        print_ink(out, INK_PLAIN);
    }
    for (uint32_t column = 0; column < table->count; column++) {
        bool is_last = column + 1 == table->count;
        fprintf(out, "%*s%-*s", GAP, "", is_last ? 0 : column_width(table, column, rows),
                cells[column]);
    }
    print_ink(out, INK_PLAIN);
    fputc('\n', out);
}

void table_print(FILE *out, const struct half *halves, uint32_t count)
{
    struct table table = {.count = 0};
    bool has_devices = false;
    for (uint32_t row = 0; row < count; row++) {
        has_devices = has_devices || halves[row].end.devices.total > 0;
    }
    set_heads(&table, has_devices);
    for (uint32_t row = 0; row < count; row++) {
        fill_row(&table, &halves[row], row, has_devices);
    }
    print_moments(out, &table, &halves[0], count);
    print_ink(out, INK_BOLD);
    print_row(out, &table, "", table.heads, count);
    for (uint32_t row = 0; row < count; row++) {
        const char *cells[COLUMNS_MAX];
        for (uint32_t column = 0; column < table.count; column++) {
            cells[column] = table.cells[row][column];
        }
        print_ink(out, INK_BOLD);
        print_row(out, &table, halves[row].name, cells, count);
    }
}
