/* simulate.c - manifests in virtual time: as plain Kubernetes places them, and with Tallyman. */
#include "commands.h"

#include <getopt.h>
#include <string.h>

#include "simulate.h"
#include "tallyman/base/time_text.h"

#define UNTIL_DEFAULT_MS (2 * 3600 * INT64_C(1000))
#define UNTIL_MAX_MS     (365 * 24 * 3600 * INT64_C(1000))
#define EARLY_MS         30000 /* by then the first Jobs have settled */
#define LINES_MAX        32    /* of one half, so that it stays on a screen */
#define PATHS_MAX        64

static const char usage[] =
    "usage: tallyman simulate FILE|DIR... [--until DURATION] [--plain | --with-tallyman]\n"
    "\n"
    "Plays Kubernetes manifests in virtual time on a virtual cluster: first as plain Kubernetes\n"
    "places them pod by pod, then with Tallyman. Prints what happens, and both side by side.\n"
    "No cluster is needed, and nothing is changed anywhere. The same manifests always give the\n"
    "same run.\n"
    "\n"
    "The manifests bring the cluster too: Nodes, and ResourceSlices for their devices. Try\n"
    "  tallyman simulate examples/deadlock\n"
    "\n"
    "      --until DURATION  how long to play, in virtual time (default 2h)\n"
    "      --at DURATION     the moment that the closing table compares (default 30s after the\n"
    "                        first Job)\n"
    "      --plain           only plain Kubernetes\n"
    "      --with-tallyman   only with Tallyman\n"
    "      --all             every line of a long run, not just its beginning and end\n"
    "  -o, --output FORMAT   text, the only one\n"
    "  -h, --help            this text\n"
    "\n"
    "Annotations on a Job (or its pod template):\n"
    "  example.com/run-for: 10m       how long a pod works; for ever without it. The pods of a\n"
    "                                 gang work only while min-count of them are ready together\n"
    "  example.com/submit-after: 1m   when the Job is made; at the start without it\n"
    "\n"
    "Exit status: 0 it was played, 2 the command line or a manifest is wrong.\n";

struct simulation {
    const char *paths[PATHS_MAX];
    uint32_t path_count;
    int64_t until_ms;
    int64_t at_ms; /* -1: not given */
    bool is_plain_only;
    bool is_tallyman_only;
    bool shows_all;
    struct manifest_list manifests;
    int64_t start_ms; /* of the clock; 0: the simulator's own */
};

static int complain(const char *what, const char *value, const char *right)
{
    fprintf(stderr, "tallyman simulate: %s %s: %s\n", what, value, right);
    return 2;
}

static bool take_duration(const char *text, int64_t *ret_ms)
{
    int64_t ms;
    if (!duration_parse(str_from_c(text), &ms) || ms <= 0 || ms > UNTIL_MAX_MS) {
        return false;
    }
    *ret_ms = ms;
    return true;
}

static int take_option(struct simulation *simulation, int option)
{
    static const char *const duration = "not a duration between 1ms and a year; write 90s, 2h "
                                        "or 1h30m";
    switch (option) {
    case 'u':
        return take_duration(optarg, &simulation->until_ms) ? 0
                                                            : complain("--until", optarg, duration);
    case 'a':
        return take_duration(optarg, &simulation->at_ms) ? 0 : complain("--at", optarg, duration);
    case 'p':
        simulation->is_plain_only = true;
        return 0;
    case 't':
        simulation->is_tallyman_only = true;
        return 0;
    case 'l':
        simulation->shows_all = true;
        return 0;
    case 'o':
        return strcmp(optarg, "text") == 0 ? 0 : complain("-o", optarg, "only text is known");
    case 'h':
        fputs(usage, stdout);
        return -1;
    default:
        fputs("Try tallyman simulate --help.\n", stderr);
        return 2;
    }
}

/* 0: go on, -1: all said, else the exit status. */
static int parse_options(int argc, char **argv, struct simulation *simulation)
{
    static const struct option longs[] = {
        {"until", required_argument, NULL, 'u'}, {"at", required_argument, NULL, 'a'},
        {"plain", no_argument, NULL, 'p'},       {"with-tallyman", no_argument, NULL, 't'},
        {"all", no_argument, NULL, 'l'},         {"output", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    optind = 1;
    int option;
    while ((option = getopt_long(argc, argv, "o:h", longs, NULL)) != -1) {
        int status = take_option(simulation, option);
        if (status != 0) {
            return status;
        }
    }
    if (simulation->is_plain_only && simulation->is_tallyman_only) {
        return complain("--plain", "--with-tallyman",
                        "they exclude each other; give neither to see both");
    }
    if (argc - optind > PATHS_MAX) {
        fprintf(stderr, "tallyman simulate: more than %d files; give their directory\n", PATHS_MAX);
        return 2;
    }
    while (optind < argc) {
        simulation->paths[simulation->path_count++] = argv[optind++];
    }
    if (simulation->path_count == 0) {
        fputs("tallyman simulate: no manifests; give a file or a directory, such as "
              "examples/deadlock\n",
              stderr);
        return 2;
    }
    return 0;
}

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

static int read_input(struct simulation *simulation, struct arena *arena)
{
    for (uint32_t i = 0; i < simulation->path_count; i++) {
        struct err err;
        if (rc_failed(input_read(arena, simulation->paths[i], &simulation->manifests, &err))) {
            fprintf(stderr, "tallyman simulate: %s\n", err.text);
            return 2;
        }
    }
    uint32_t jobs = 0;
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < simulation->manifests.count; i++) {
        const struct manifest *manifest = &simulation->manifests.items[i];
        jobs += manifest->object.kind == KIND_JOB ? 1 : 0;
        nodes += manifest->object.kind == KIND_NODE ? 1 : 0;
        if (manifest->object.kind == KIND_NONE) {
            fprintf(stderr,
                    "tallyman simulate: " STR_FMT ":%u: " STR_FMT " " STR_FMT
                    " plays no part here and is left out\n",
                    STR_ARG(manifest->file_name), manifest->line, STR_ARG(manifest->api_version),
                    STR_ARG(manifest->kind));
        }
    }
    if (jobs == 0) {
        fprintf(stderr, "tallyman simulate: there is no Job in %s%s, so there is nothing to play\n",
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
    if (open == 0) {
        fputs("  the end: every Job has finished\n\n", stdout);
        return;
    }
    bool is_stuck = end->working == 0 && end->devices.held_for_nothing > 0;
    print_ink(stdout, is_stuck ? INK_RED : INK_PLAIN);
    char text[256];
    int length = snprintf(text, sizeof(text), "the end: %lld of %lld Jobs unfinished, %lld at work",
                          (long long)open, (long long)end->jobs, (long long)end->working);
    if (end->devices.held_for_nothing > 0 && length > 0) {
        snprintf(text + length, sizeof(text) - (size_t)length,
                 "; %lld of %lld devices held by Jobs that can't go on",
                 (long long)end->devices.held_for_nothing, (long long)end->devices.total);
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

static int play_half(const struct simulation *simulation, struct half *half, struct arena *arena)
{
    half->timeline = (struct timeline){.arena = arena};
    struct sim_options options = {.has_tallyman = half->has_tallyman,
                                  .start_ms = simulation->start_ms,
                                  .ctx = &half->timeline,
                                  .on_note = timeline_note,
                                  .on_refused = on_refused};
    struct sim *sim = sim_new(&options);
    half->timeline.sim = sim;
    int status = load_all(simulation, sim);
    if (status == 0) {
        int64_t early_ms = early_moment(simulation, sim, &half->timeline);
        (void)sim_run_until(sim, early_ms > sim_now_ms(sim) ? early_ms : sim_now_ms(sim));
        snapshot_take(&half->early, sim, arena);
        (void)sim_run_until(sim, simulation->until_ms);
        snapshot_take(&half->end, sim, arena);
        half->wasted_device_ms = sim_wasted_device_ms(sim);
        print_title(half);
        timeline_print(stdout, &half->timeline, simulation->shows_all ? 0 : LINES_MAX);
        print_end(half);
    }
    sim_free(sim);
    return status;
}

static int play(struct simulation *simulation, struct arena *arena)
{
    int status = read_input(simulation, arena);
    struct half halves[2];
    uint32_t count = 0;
    if (!simulation->is_tallyman_only) {
        halves[count++] = (struct half){.name = "plain Kubernetes"};
    }
    if (!simulation->is_plain_only) {
        halves[count++] = (struct half){.name = "with Tallyman", .has_tallyman = true};
    }
    print_choose_ink(stdout);
    for (uint32_t i = 0; i < count && status == 0; i++) {
        status = play_half(simulation, &halves[i], arena);
    }
    if (status == 0) {
        table_print(stdout, halves, count);
        waiting_print(stdout, &halves[count - 1].early);
    }
    return status;
}

int command_simulate(int argc, char **argv)
{
    struct simulation simulation = {.until_ms = UNTIL_DEFAULT_MS, .at_ms = -1};
    int status = parse_options(argc, argv, &simulation);
    if (status != 0) {
        return status < 0 ? 0 : status;
    }
    struct arena arena;
    arena_init(&arena);
    status = play(&simulation, &arena);
    arena_deinit(&arena);
    return status;
}
