/* source.c - joins manifests and a live cluster, and puts both to a core. */
#include "source.h"

#include <stdio.h>

#include "input.h"
#include "source_admitted.h"
#include "tallyman/api/job.h"
#include "tallyman/api/node.h"

static struct str object_key(struct arena *arena, const struct object_meta *meta)
{
    return arena_format(arena, STR_FMT "/" STR_FMT, STR_ARG(meta->namespace_name),
                        STR_ARG(meta->name));
}

/* A manifest that was never sent to a server has no uid. It is taken as if it were created now: a
 * Job that names a queue is suspended then, by the policies or by the controller. */
static void create(struct arena *arena, int64_t now_ms, const struct object *object)
{
    struct object_meta *meta = (struct object_meta *)(uintptr_t)object->value; /* the arena's */
    if (!str_is_empty(meta->uid)) {
        return;
    }
    meta->uid = arena_format(arena, "%s/" STR_FMT "/" STR_FMT, kind_info(object->kind)->name,
                             STR_ARG(meta->namespace_name), STR_ARG(meta->name));
    if (!meta->creation_timestamp.is_set) {
        meta->creation_timestamp = (struct opt_time){true, now_ms};
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

static struct object *find_live(struct source *source, const struct object *object, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct object *live = &source->live.objects.items[i];
        if (live->kind == object->kind && str_eq(live->value->name, object->value->name) &&
            str_eq(live->value->namespace_name, object->value->namespace_name)) {
            return live;
        }
    }
    return NULL;
}

/* As after `kubectl apply`: what the manifest says, and what only the cluster can know. */
static void take_over(struct arena *arena, const struct object *live, struct object *manifest)
{
    struct object_meta *meta = (struct object_meta *)(uintptr_t)manifest->value;
    meta->uid = live->value->uid;
    meta->resource_version = live->value->resource_version;
    meta->generation = live->value->generation;
    meta->creation_timestamp = live->value->creation_timestamp;
    meta->deletion_timestamp = live->value->deletion_timestamp;
    meta->finalizers = live->value->finalizers;
    const struct string_map *kept = &live->value->annotations;
    struct string_map *annotations = &meta->annotations;
    struct string_pair *pairs =
        ARENA_ARRAY(arena, struct string_pair, annotations->count + kept->count + 1);
    uint32_t count = annotations->count;
    for (uint32_t i = 0; i < count; i++) {
        pairs[i] = annotations->items[i];
    }
    for (uint32_t i = 0; i < kept->count; i++) {
        if (!str_is_set(string_map_find(annotations, kept->items[i].key))) {
            pairs[count++] = kept->items[i];
        }
    }
    *annotations = (struct string_map){pairs, count};
    if (manifest->kind == KIND_JOB) {
        const struct job *there = (const struct job *)live->value;
        struct job *job = (struct job *)(uintptr_t)manifest->value;
        job->spec.suspend = there->spec.suspend;
        job->status = there->status;
    }
}

static void join(struct source *source, const struct source_options *options,
                 struct manifest *manifest, uint32_t live_count)
{
    struct arena *arena = &source->live.arena;
    struct object_meta *meta = (struct object_meta *)(uintptr_t)manifest->object.value;
    if (manifest->has_no_namespace) {
        meta->namespace_name = source->live.namespace_name;
    }
    struct object *live = find_live(source, &manifest->object, live_count);
    if (live != NULL) {
        take_over(arena, live, &manifest->object);
        object_set_replace(live, manifest->object.value);
    } else {
        create(arena, options->now_ms, &manifest->object);
        object_set_add(&source->live.objects, manifest->object.kind, manifest->object.value);
    }
    if (manifest->object.kind == KIND_JOB) {
        source->given.items = arena_grow(arena, source->given.items, source->given.count,
                                         &source->given_capacity, sizeof(struct str));
        source->given.items[source->given.count++] = object_key(arena, meta);
    }
}

static struct rc read_manifests(struct source *source, const struct source_options *options,
                                struct err *err)
{
    struct manifest_list manifests = {.count = 0};
    for (uint32_t i = 0; i < options->file_count; i++) {
        TRY(input_read(&source->live.arena, options->files[i], &manifests, err));
    }
    source->manifest_count = manifests.count;
    source->manifests = manifests;
    uint32_t live_count = source->live.objects.count;
    for (uint32_t i = 0; i < manifests.count; i++) {
        if (manifests.items[i].object.kind != KIND_NONE) {
            join(source, options, &manifests.items[i], live_count);
        }
    }
    return RC_SUCCESS;
}

static struct rc read_cluster(struct source *source, const struct source_options *options,
                              struct err *err)
{
    struct session *session = NULL;
    TRY(session_open(&options->session, &session, err));
    struct rc rc = live_read(session, options->namespace_name, &source->live, err);
    session_close(session);
    return rc;
}

static bool has_kind(const struct source *source, enum object_kind kind)
{
    for (uint32_t i = 0; i < source->live.objects.count; i++) {
        if (source->live.objects.items[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* Without a single queue every answer would be QueueNotFound, which is nobody's fault here. */
static struct rc check_queues(const struct source *source, struct err *err)
{
    for (uint32_t i = 0; i < source->live.gap_count; i++) {
        const struct live_gap *gap = &source->live.gaps[i];
        if (gap->kind == KIND_QUEUE && !has_kind(source, KIND_QUEUE)) {
            return err_set(err, RC_REFUSED,
                           "the queues can't be read, so there is nothing to plan with: " STR_FMT
                           "; ask the cluster's admin for ClusterRole tallyman-reader, or see why "
                           "one Job waits with `tallyman explain JOB`",
                           STR_ARG(gap->message));
        }
    }
    return RC_SUCCESS;
}

struct rc source_read(const struct source_options *options, struct source *ret_source,
                      struct err *err)
{
    struct source *source = ret_source;
    *source = (struct source){.is_live = options->is_live};
    if (options->is_live) {
        TRY(read_cluster(source, options, err));
    } else {
        arena_init(&source->live.arena);
        source->live.namespace_name =
            str_is_empty(options->namespace_name) ? STR("default") : options->namespace_name;
    }
    TRY(read_manifests(source, options, err));
    TRY(check_queues(source, err));
    live_fill_gaps(&source->live);
    for (uint32_t i = 0; i < options->admitted_count; i++) {
        TRY(source_admit(source, options->admitted[i], options->now_ms, err));
    }
    return RC_SUCCESS;
}

void source_free(struct source *source)
{
    live_free(&source->live);
}

void source_print_gaps(const struct source *source, const char *command)
{
    const struct live *live = &source->live;
    for (uint32_t i = 0; i < live->gap_count; i++) {
        const struct live_gap *gap = &live->gaps[i];
        if (gap->extent == LIVE_NAMESPACE) {
            fprintf(stderr, "tallyman %s: %s can be read in namespace " STR_FMT " only, so %s\n",
                    command, kind_info(gap->kind)->plural, STR_ARG(live->namespace_name),
                    gap->meaning);
        } else {
            fprintf(stderr, "tallyman %s: %s can't be read, so %s\n", command,
                    kind_info(gap->kind)->plural, gap->meaning);
        }
    }
    if (live->malformed_count > 0) {
        fprintf(stderr, "tallyman %s: %u objects are wrong and left out; the first: " STR_FMT "\n",
                command, live->malformed_count, STR_ARG(live->first_malformed));
    }
    if (live->is_mixed) {
        fprintf(stderr,
                "tallyman %s: the lists are of slightly different moments, because the server no "
                "longer had all of one\n",
                command);
    }
}

/* -- the core --------------------------------------------------------------------------------- */

static int64_t outlook_now(void *ctx)
{
    return ((struct outlook *)ctx)->now_ms;
}

static void outlook_wake(void *ctx, int64_t at_ms)
{
    (void)ctx;
    (void)at_ms;
}

/* Nothing is written: the core is left where it stands after its first pass. */
static void outlook_write(void *ctx, const struct driver_write *write)
{
    (void)ctx;
    (void)write;
}

static void outlook_refused(void *ctx, const struct event *event, const struct err *err)
{
    struct outlook *outlook = ctx;
    struct live *live = &outlook->source->live;
    bool is_of_cluster = outlook->source->is_live && event->kind == EVENT_OBJECT &&
                         !str_is_empty(event->object.value->resource_version);
    if (!is_of_cluster) {
        outlook->refused = *err;
        outlook->is_refused = true;
    } else if (live->malformed_count++ == 0) {
        live->first_malformed = arena_copy_str(&live->arena, err_text(err));
    }
}

struct rc outlook_open(struct outlook *outlook, struct source *source, int64_t now_ms,
                       struct err *err)
{
    *outlook = (struct outlook){.now_ms = now_ms, .source = source};
    struct core_options options = {.gives_advice = true};
    outlook->core = core_new(&options);
    struct driver_ports ports = {.ctx = outlook,
                                 .now_ms = outlook_now,
                                 .wake_at = outlook_wake,
                                 .write = outlook_write,
                                 .on_refused = outlook_refused};
    outlook->driver = driver_new(outlook->core, &ports);
    for (uint32_t i = 0; i < source->live.objects.count; i++) {
        driver_object(outlook->driver, &source->live.objects.items[i]);
    }
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        driver_synced(outlook->driver, (enum object_kind)kind, false);
    }
    core_renew_messages(outlook->core);
    return outlook->is_refused ? err_set(err, RC_INVALID, "%s", outlook->refused.text) : RC_SUCCESS;
}

void outlook_close(struct outlook *outlook)
{
    driver_free(outlook->driver);
    core_free(outlook->core);
}
