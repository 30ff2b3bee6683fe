/* simulate_manifests.c - manifests in virtual time, pod by pod: as plain Kubernetes places them,
 * and with Tallyman. */
#include "simulate.h"

#include "hints.h"

#define EARLY_MS  30000 /* by then the first Jobs have settled */
#define LINES_MAX 32    /* of one half, so that it stays on a screen */

/* -- input --------------------------------------------------------------------------------------
 */

/* The clock starts with the oldest Job that says when it was made. */
static void find_start(struct simulation *simulation)
{
    for (uint32_t i = 0; i < simulation->manifests.count; i++) {
        const struct object *object = &simulation->manifests.items[i].object;
        if (object->kind != KIND_JOB || !object->value->creation_timestamp.is_set) {
            continue;
        }
        int64_t created_ms = object->value->creation_timestamp.ms;
        if (simulation->start_ms == 0 || created_ms < simulation->start_ms) {
            simulation->start_ms = created_ms;
        }
    }
}

static int check_input(struct simulation *simulation)
{
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < simulation->manifests.count; i++) {
        const struct manifest *manifest = &simulation->manifests.items[i];
        simulation->jobs += manifest->object.kind == KIND_JOB ? 1 : 0;
        nodes += manifest->object.kind == KIND_NODE ? 1 : 0;
        if (manifest->object.kind == KIND_NONE) {
            fprintf(stderr,
                    "tallyman simulate: " STR_FMT ":%u: " STR_FMT " " STR_FMT
                    " plays no part here and is left out\n",
                    STR_ARG(manifest->file_name), manifest->line, STR_ARG(manifest->api_version),
                    STR_ARG(manifest->kind));
        }
    }
    if (simulation->jobs == 0) {
        fprintf(stderr,
                "tallyman simulate: there is no Job in %s%s, so there is nothing to play; add one "
                "as examples/deadlock/train.yaml has them\n",
                simulation->paths[0], simulation->path_count > 1 ? " and the others" : "");
        return 2;
    }
    if (nodes == 0) {
        fputs("tallyman simulate: there is no Node in the manifests, so no pod can be placed; add "
              "some as examples/deadlock/cluster.yaml has them\n",
              stderr);
    }
    find_start(simulation);
    return 0;
}

static int load_all(const struct simulation *simulation, struct sim *sim)
{
    for (uint32_t i = 0; i < simulation->manifests.count; i++) {
        const struct manifest *manifest = &simulation->manifests.items[i];
        struct err err;
        if (manifest->object.kind != KIND_NONE &&
            rc_failed(sim_load(sim, &manifest->object, &err))) {
            fprintf(stderr, "tallyman simulate: " STR_FMT ":%u: %s\n", STR_ARG(manifest->file_name),
                    manifest->line, err.text);
            return 2;
        }
    }
    return 0;
}

/* What the core refuses of the cluster is a wrong input, and said with its place before anything is
 * played. */
static int check_cluster(const struct simulation *simulation)
{
    struct bulk_options options = {.resource = STR("example.com/device")};
    struct bulk *bulk = bulk_new(&options);
    int status = 0;
    for (uint32_t i = 0; i < simulation->manifests.count && status == 0; i++) {
        const struct manifest *manifest = &simulation->manifests.items[i];
        struct err err;
        enum object_kind kind = manifest->object.kind;
        if (kind != KIND_NONE && kind != KIND_JOB && kind != KIND_POD &&
            rc_failed(bulk_load(bulk, &manifest->object, &err))) {
            fprintf(stderr, "tallyman simulate: " STR_FMT ":%u: %s\n", STR_ARG(manifest->file_name),
                    manifest->line, err.text);
            status = 2;
        }
    }
    bulk_free(bulk);
    return status;
}

/* -- one half -----------------------------------------------------------------------------------
 */

static void on_refused(void *ctx, const struct event *event, const struct err *err)
{
    (void)ctx;
    (void)event;
    fprintf(stderr, "tallyman simulate: an object is passed over: %s\n", err->text);
}

static void print_title(const struct half *half)
{
    print_ink(stdout, INK_BOLD);
    printf("%s\n", half->has_tallyman ? "With Tallyman" : "Plain Kubernetes");
    print_ink(stdout, INK_PLAIN);
}

/* How it ended, if it didn't end well. */
static void print_end(const struct half *half)
{
    const struct snapshot *end = &half->end;
    int64_t open = end->jobs - end->finished;
    fputs("  ", stdout);
    print_ink(stdout, INK_DIM);
    print_clock(stdout, end->at_ms);
    print_ink(stdout, INK_PLAIN);
    if (open == 0 && half->unmade == 0) {
        fputs("  the end: every Job has finished\n\n", stdout);
        return;
    }
    if (open == 0) {
        printf(
            "  the end: every Job that came has finished; %lld would come later than --until\n\n",
            (long long)half->unmade);
        return;
    }
    bool is_stuck = end->working == 0 && end->devices.held_for_nothing > 0;
    print_ink(stdout, is_stuck ? INK_RED : INK_PLAIN);
    char text[256];
    int length = snprintf(text, sizeof(text), "the end: %lld of %lld Jobs unfinished, %lld at work",
                          (long long)open, (long long)end->jobs, (long long)end->working);
    if (end->devices.held_for_nothing > 0 && length > 0) {
        length += snprintf(text + length, sizeof(text) - (size_t)length,
                           "; %lld of %lld devices held by Jobs that can't go on",
                           (long long)end->devices.held_for_nothing, (long long)end->devices.total);
    }
    if (half->unmade > 0 && length > 0) {
        snprintf(text + length, sizeof(text) - (size_t)length,
                 "; %lld would come later than --until", (long long)half->unmade);
    }
    fputs("  ", stdout);
    print_wrapped(stdout, 12, str_from_c(text));
    print_ink(stdout, INK_PLAIN);
    fputc('\n', stdout);
}

/* EARLY_MS behind the first Job, unless the command line says another moment. */
static int64_t early_moment(const struct simulation *simulation, struct sim *sim,
                            const struct timeline *timeline)
{
    int64_t at_ms = simulation->at_ms;
    while (at_ms < 0 && timeline->count == 0 && sim_next_ms(sim) <= simulation->until_ms) {
        (void)sim_run_until(sim, sim_next_ms(sim));
    }
    if (at_ms < 0) {
        at_ms = (timeline->count > 0 ? timeline->lines[0].at_ms : 0) + EARLY_MS;
    }
    return at_ms < simulation->until_ms ? at_ms : simulation->until_ms;
}

/* What is told of a half goes to both. */
struct spectators {
    struct timeline *timeline;
    struct record *record;
    struct faults *faults; /* NULL: nothing goes wrong */
    struct sim *sim;
};

static void on_note(void *ctx, const struct sim_note *note)
{
    struct spectators *spectators = ctx;
    timeline_note(spectators->timeline, note);
    record_note(spectators->record, note);
    if (spectators->faults != NULL) {
        faults_note(spectators->faults, spectators->sim, note);
    }
}

static enum sim_fault on_write(void *ctx, const struct driver_write *write)
{
    struct spectators *spectators = ctx;
    bool is_on = faults_are_on(spectators->faults, sim_now_ms(spectators->sim));
    return faults_of_write(spectators->faults, write, is_on);
}

static void on_watch(void *ctx, enum object_kind kind, struct sim_watch_fault *ret_fault)
{
    struct spectators *spectators = ctx;
    (void)kind;
    faults_of_watch(spectators->faults, ret_fault,
                    faults_are_on(spectators->faults, sim_now_ms(spectators->sim)));
}

static void run_until(const struct spectators *spectators, int64_t until_ms)
{
    struct sim *sim = spectators->sim;
    while (sim_now_ms(sim) < until_ms) {
        if (spectators->faults != NULL) {
            faults_step(spectators->faults, sim, until_ms);
        } else {
            int64_t next_ms = sim_next_ms(sim);
            next_ms = next_ms > sim_now_ms(sim) ? next_ms : sim_now_ms(sim);
            (void)sim_run_until(sim, next_ms < until_ms ? next_ms : until_ms);
        }
        record_capacity(spectators->record, sim);
    }
}

static void play_time(const struct simulation *simulation, struct half *half,
                      const struct spectators *spectators, struct arena *arena)
{
    struct sim *sim = spectators->sim;
    struct record *record = spectators->record;
    record_capacity(record, sim);
    int64_t early_ms = early_moment(simulation, sim, &half->timeline);
    run_until(spectators, early_ms);
    snapshot_take(&half->early, sim, arena);
    run_until(spectators, simulation->until_ms);
    snapshot_take(&half->end, sim, arena);
    half->wasted_device_ms = sim_wasted_device_ms(sim);
    int64_t unmade = simulation->jobs - half->timeline.submitted;
    half->unmade = unmade > 0 ? unmade : 0;
    history_close(&record->history, sim_now_ms(sim));
}

static int print_half(const struct simulation *simulation, struct half *half,
                      const struct faults *faults)
{
    if (simulation->bulk.format == FORMAT_TEXT) {
        print_title(half);
        timeline_print(stdout, &half->timeline, simulation->shows_all ? 0 : LINES_MAX);
        print_end(half);
    }
    FILE *out = simulation->bulk.format == FORMAT_TEXT ? stdout : stderr;
    return faults == NULL || faults_print(out, faults, simulation->seed) ? 0 : 1;
}

static int play_half(const struct simulation *simulation, struct half *half, struct record *record,
                     struct arena *arena)
{
    half->timeline = (struct timeline){.arena = arena};
    struct spectators spectators = {.timeline = &half->timeline, .record = record};
    struct sim_options options = {.has_tallyman = half->has_tallyman,
                                  .start_ms = simulation->start_ms,
                                  .ctx = &spectators,
                                  .on_note = on_note,
                                  .on_refused = on_refused};
    if (simulation->has_faults) {
        spectators.faults = faults_new(simulation->seed, simulation->until_ms);
        options.seed = simulation->seed;
        options.fault = on_write;
        options.watch_fault = on_watch;
    }
    struct sim *sim = sim_new(&options);
    spectators.sim = half->timeline.sim = record->sim = sim;
    int status = load_all(simulation, sim);
    if (status == 0) {
        play_time(simulation, half, &spectators, arena);
        status = print_half(simulation, half, spectators.faults);
    }
    sim_free(sim);
    if (spectators.faults != NULL) {
        faults_free(spectators.faults);
    }
    return status;
}

static void print_more(const struct simulation *simulation)
{
    print_ink(stdout, INK_DIM);
    fprintf(stdout, "\n  More of it (waits, slowdown, utilisation, fairness): -o json, -o csv%s\n",
            simulation->bulk.svg_path == NULL ? ", --svg FILE" : "");
    print_ink(stdout, INK_PLAIN);
}

/* Of the last half: with Tallyman, unless only plain Kubernetes was asked for. */
static int show_record(const struct simulation *simulation, const struct record *record,
                       struct arena *arena)
{
    const struct bulk_command *command = &simulation->bulk;
    if (command->format == FORMAT_TEXT && command->svg_path == NULL) {
        return 0;
    }
    struct err err;
    const struct summary *summary = summary_make(arena, &record->history);
    if (command->svg_path != NULL &&
        rc_failed(simulate_write_svg(command->svg_path, summary, str_from_c(simulation->paths[0]),
                                     &err))) {
        fprintf(stderr, "tallyman simulate: %s\n", err.text);
        return 1;
    }
    if (command->format != FORMAT_TEXT) {
        simulate_print_summary(command->format, summary);
    }
    return 0;
}

static bool shows_plain(const struct simulation *simulation)
{
    bool is_one_half = simulation->is_tallyman_only || simulation->has_faults;
    return !is_one_half && (simulation->bulk.format == FORMAT_TEXT || simulation->is_plain_only);
}

int simulate_manifests(struct simulation *simulation, struct arena *arena)
{
    int status = check_input(simulation);
    status = status != 0 ? status : check_cluster(simulation);
    if (status == 0) {
        hints_print("simulate", &simulation->manifests, NULL, false);
    }
    struct half halves[2];
    struct record *records[2];
    uint32_t count = 0;
    bool is_text = simulation->bulk.format == FORMAT_TEXT;
    if (shows_plain(simulation)) {
        halves[count++] = (struct half){.name = "plain Kubernetes"};
    }
    if (!simulation->is_plain_only) {
        halves[count++] = (struct half){.name = "with Tallyman", .has_tallyman = true};
    }
    print_choose_ink(stdout);
    uint32_t played = 0;
    while (played < count && status == 0) {
        records[played] = record_new(arena);
        status = play_half(simulation, &halves[played], records[played], arena);
        played++;
    }
    if (status == 0 && is_text) {
        table_print(stdout, halves, count);
        waiting_print(stdout, &halves[count - 1].early);
        print_more(simulation);
    }
    if (status == 0) {
        status = show_record(simulation, records[count - 1], arena);
    }
    for (uint32_t i = 0; i < played; i++) {
        record_deinit(records[i]);
    }
    return status;
}
