/* plan.c - one pass over manifests: what would be admitted, and why each other gang waits. */
#include "commands.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "input.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/time_text.h"
#include "tallyman/driver/driver.h"

static const char usage[] =
    "usage: tallyman plan -f FILE|DIR [-f ...] [--now TIME] [-o table|json]\n"
    "\n"
    "Reads Kubernetes manifests and prints what Tallyman would decide now: which gangs are\n"
    "admitted, which are kept, and why each other one waits. Changes nothing. A Job without a uid\n"
    "counts as created now. Only what the manifests hold is there, Nodes and devices included.\n"
    "\n"
    "  -f, --filename FILE  manifests: a file, a directory, or - for standard input\n"
    "      --now TIME       the time of the decision, RFC 3339 (default: the clock)\n"
    "  -o, --output FORMAT  table (default) or json\n"
    "\n"
    "Exit status: 0 a plan was printed, 1 it could not be made, 2 the command line or a manifest\n"
    "is wrong.\n";

struct plan_options {
    const char *files[64];
    uint32_t file_count;
    int64_t now_ms;
    bool is_json;
};

struct plan {
    struct plan_options options;
    struct err refused;
    bool is_refused;
};

static int64_t plan_now(void *ctx)
{
    return ((struct plan *)ctx)->options.now_ms;
}

static void plan_wake(void *ctx, int64_t at_ms)
{
    (void)ctx;
    (void)at_ms;
}

/* Nothing is written: the core is left where it stands after its first pass. */
static void plan_write(void *ctx, const struct driver_write *write)
{
    (void)ctx;
    (void)write;
}

static void plan_refused(void *ctx, const struct event *event, const struct err *err)
{
    (void)event;
    struct plan *plan = ctx;
    plan->refused = *err;
    plan->is_refused = true;
}

static int parse_options(int argc, char **argv, struct plan_options *options)
{
    static const struct option longs[] = {{"filename", required_argument, NULL, 'f'},
                                          {"now", required_argument, NULL, 'n'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    optind = 1;
    int option;
    while ((option = getopt_long(argc, argv, "f:o:h", longs, NULL)) != -1) {
        switch (option) {
        case 'f':
            if (options->file_count == ARRAY_COUNT(options->files)) {
                fprintf(stderr, "tallyman plan: more than %zu -f options\n",
                        ARRAY_COUNT(options->files));
                return 2;
            }
            options->files[options->file_count++] = optarg;
            break;
        case 'n':
            if (!time_parse_rfc3339(str_from_c(optarg), &options->now_ms)) {
                fprintf(stderr,
                        "tallyman plan: --now %s is not a time; write 2026-11-29T12:00:00Z\n",
                        optarg);
                return 2;
            }
            break;
        case 'o':
            options->is_json = strcmp(optarg, "json") == 0;
            if (!options->is_json && strcmp(optarg, "table") != 0) {
                fprintf(stderr, "tallyman plan: -o %s is unknown; use table or json\n", optarg);
                return 2;
            }
            break;
        case 'h':
            fputs(usage, stdout);
            return -1;
        default:
            fputs(usage, stderr);
            return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "tallyman plan: \"%s\" isn't an option; files are given with -f\n",
                argv[optind]);
        return 2;
    }
    if (options->file_count == 0) {
        fprintf(stderr, "tallyman plan: no manifests; give them with -f FILE\n");
        return 2;
    }
    return 0;
}

static void put(struct json_writer *writer, const char *key, struct str value)
{
    json_key(writer, key);
    json_string(writer, str_is_set(value) ? value : STR(""));
}

static void print_pod_sets(struct json_writer *writer, const struct decided_gang *gang)
{
    json_key(writer, "podSets");
    json_array_start(writer);
    for (uint32_t i = 0; i < gang->pod_set_count; i++) {
        const struct decided_pod_set *set = &gang->pod_sets[i];
        json_object_start(writer);
        put(writer, "name", set->name);
        json_key(writer, "count");
        json_int(writer, set->count);
        json_key(writer, "flavors");
        json_object_start(writer);
        for (uint32_t f = 0; f < set->flavors.count; f++) {
            json_key_str(writer, set->flavors.items[f].key);
            json_string(writer, set->flavors.items[f].value);
        }
        json_object_end(writer);
        json_object_end(writer);
    }
    json_array_end(writer);
}

static void print_json(const struct decided_list *list)
{
    struct json_writer *writer = json_writer_new();
    json_object_start(writer);
    json_key(writer, "decisions");
    json_array_start(writer);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct decided_gang *gang = &list->items[i];
        json_object_start(writer);
        put(writer, "namespace", gang->namespace_name);
        put(writer, "name", gang->name);
        put(writer, "uid", gang->uid);
        put(writer, "queue", gang->queue);
        put(writer, "decision", str_from_c(decision_name(gang->decision)));
        print_pod_sets(writer, gang);
        json_key(writer, "victims");
        json_array_start(writer);
        for (uint32_t v = 0; v < gang->victims.count; v++) {
            json_string(writer, gang->victims.items[v]);
        }
        json_array_end(writer);
        put(writer, "reason", str_from_c(reason_info(gang->reason)->code));
        put(writer, "message", gang->message);
        json_key(writer, "position");
        json_int(writer, gang->position);
        json_object_end(writer);
    }
    json_array_end(writer);
    json_object_end(writer);
    struct str text = json_writer_text(writer);
    printf(STR_FMT "\n", STR_ARG(text));
    json_writer_free(writer);
}

static int max_width(int width, struct str text)
{
    return (int)text.len > width ? (int)text.len : width;
}

static void print_table(const struct decided_list *list)
{
    int namespace_width = 9;
    int name_width = 4;
    int queue_width = 5;
    for (uint32_t i = 0; i < list->count; i++) {
        namespace_width = max_width(namespace_width, list->items[i].namespace_name);
        name_width = max_width(name_width, list->items[i].name);
        queue_width = max_width(queue_width, list->items[i].queue);
    }
    printf("%-*s  %-*s  %-*s  %-8s  %3s  %4s  %s\n", namespace_width, "NAMESPACE", name_width,
           "NAME", queue_width, "QUEUE", "DECISION", "POS", "PODS", "REASON");
    for (uint32_t i = 0; i < list->count; i++) {
        const struct decided_gang *gang = &list->items[i];
        char position[24] = "";
        if (gang->position > 0) {
            snprintf(position, sizeof(position), "%lld", (long long)gang->position);
        }
        printf("%-*.*s  %-*.*s  %-*.*s  %-8s  %3s  %4lld  %s%s" STR_FMT "\n", namespace_width,
               STR_ARG(gang->namespace_name), name_width, STR_ARG(gang->name), queue_width,
               STR_ARG(gang->queue), decision_name(gang->decision), position,
               (long long)gang->pod_sets[0].count, reason_info(gang->reason)->code,
               gang->reason == REASON_NONE ? "" : ": ", STR_ARG(gang->message));
    }
}

/* A manifest that was never sent to a server has no uid. It is taken as if it were created now: a
 * Job that names a queue is suspended then, by the policies or by the controller. */
static void create(struct plan *plan, struct arena *arena, const struct object *object)
{
    struct object_meta *meta = (struct object_meta *)(uintptr_t)object->value; /* the arena's */
    if (!str_is_empty(meta->uid)) {
        return;
    }
    meta->uid = arena_format(arena, "%s/" STR_FMT "/" STR_FMT, kind_info(object->kind)->name,
                             STR_ARG(meta->namespace_name), STR_ARG(meta->name));
    if (!meta->creation_timestamp.is_set) {
        meta->creation_timestamp = (struct opt_time){true, plan->options.now_ms};
    }
    if (object->kind == KIND_JOB) {
        struct job *job = (struct job *)(uintptr_t)object->value;
        bool is_started = job->status.start_time.is_set || job->status.active.is_set;
        bool has_record = str_is_set(string_map_get(&meta->annotations, "tallyman.dev/admission"));
        if (!is_started && !has_record) {
            job->spec.suspend = (struct opt_bool){true, true};
        }
    }
}

/* A manifest can carry whatever its author likes; a terminal must not be steered by it. */
static struct str printable(struct arena *arena, struct str text)
{
    struct str copy = arena_copy_str(arena, text);
    char *bytes = (char *)(uintptr_t)copy.ptr;
    for (size_t i = 0; i < copy.len; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (byte < 0x20 || byte == 0x7f) {
            bytes[i] = '?';
        }
    }
    return copy;
}

static void print_plan(const struct plan *plan, struct arena *arena, struct decided_list *list,
                       uint32_t manifest_count)
{
    if (plan->options.is_json) {
        print_json(list);
        return;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        struct decided_gang *gang = &list->items[i];
        gang->namespace_name = printable(arena, gang->namespace_name);
        gang->name = printable(arena, gang->name);
        gang->queue = printable(arena, gang->queue);
        gang->message = printable(arena, gang->message);
    }
    if (list->count == 0) {
        printf("No Job in %u manifest%s names a queue (label tallyman.dev/queue).\n",
               manifest_count, manifest_count == 1 ? "" : "s");
        return;
    }
    print_table(list);
}

static void feed(struct plan *plan, struct arena *arena, struct driver *driver,
                 const struct manifest_list *manifests)
{
    for (uint32_t i = 0; i < manifests->count; i++) {
        if (manifests->items[i].object.kind != KIND_NONE) {
            create(plan, arena, &manifests->items[i].object);
            driver_object(driver, &manifests->items[i].object);
        }
    }
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        driver_synced(driver, (enum object_kind)kind);
    }
}

static int plan_run(struct plan *plan, struct arena *arena)
{
    struct manifest_list manifests = {.count = 0};
    for (uint32_t i = 0; i < plan->options.file_count; i++) {
        struct err err;
        if (rc_failed(input_read(arena, plan->options.files[i], &manifests, &err))) {
            fprintf(stderr, "tallyman plan: %s\n", err.text);
            return 2;
        }
    }
    struct core_options core_options = {.stuck_node_ms = 0};
    struct core *core = core_new(&core_options);
    struct driver_ports ports = {.ctx = plan,
                                 .now_ms = plan_now,
                                 .wake_at = plan_wake,
                                 .write = plan_write,
                                 .on_refused = plan_refused};
    struct driver *driver = driver_new(core, &ports);
    feed(plan, arena, driver, &manifests);
    int status = 0;
    if (plan->is_refused) {
        fprintf(stderr, "tallyman plan: %s\n", plan->refused.text);
        status = 2;
    } else {
        struct decided_list list = core_decisions(core, arena);
        print_plan(plan, arena, &list, manifests.count);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "tallyman plan: the plan could not be written: %s\n", strerror(errno));
        status = 1;
    }
    driver_free(driver);
    core_free(core);
    return status;
}

int command_plan(int argc, char **argv)
{
    struct plan plan = {.options = {.now_ms = (int64_t)time(NULL) * 1000}};
    int status = parse_options(argc, argv, &plan.options);
    if (status != 0) {
        return status < 0 ? 0 : status;
    }
    struct arena arena;
    arena_init(&arena);
    status = plan_run(&plan, &arena);
    arena_deinit(&arena);
    return status;
}
