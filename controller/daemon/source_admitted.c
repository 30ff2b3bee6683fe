/* source_admitted.c - writes the admission record that a Job of a manifest doesn't have. */
#include "source_admitted.h"

#include "tallyman/api/job.h"
#include "tallyman/api/queue.h"
#include "tallyman/base/time_text.h"

#define RECORD_KEY "tallyman.dev/admission"

static struct rc find_job(struct source *source, struct str name, const char *text,
                          struct object **ret_job, struct err *err)
{
    size_t slash = str_find_char(name, '/');
    bool has_namespace = slash < name.len;
    struct str space = has_namespace ? str_take(name, slash) : STR_NONE;
    struct str bare = has_namespace ? str_skip(name, slash + 1) : name;
    struct object *found = NULL;
    for (uint32_t i = 0; i < source->live.objects.count; i++) {
        struct object *object = &source->live.objects.items[i];
        if (object->kind != KIND_JOB || !str_eq(object->value->name, bare) ||
            (has_namespace && !str_eq(object->value->namespace_name, space))) {
            continue;
        }
        if (found != NULL && !str_eq(found->value->uid, object->value->uid)) {
            return err_set(err, RC_INVALID,
                           "--admitted %s: there are Jobs of that name in namespaces " STR_FMT
                           " and " STR_FMT "; write NAMESPACE/NAME=FLAVOR",
                           text, STR_ARG(found->value->namespace_name),
                           STR_ARG(object->value->namespace_name));
        }
        found = object;
    }
    if (found == NULL) {
        return err_set(err, RC_INVALID, "--admitted %s: there is no Job " STR_FMT, text,
                       STR_ARG(name));
    }
    *ret_job = found;
    return RC_SUCCESS;
}

static const struct queue *find_queue(const struct source *source, struct str name)
{
    const struct queue *queue = NULL;
    for (uint32_t i = 0; i < source->live.objects.count; i++) {
        const struct object *object = &source->live.objects.items[i];
        if (object->kind == KIND_QUEUE && str_eq(object->value->name, name)) {
            queue = (const struct queue *)object->value;
        }
    }
    return queue;
}

static void list_flavors(const struct queue *queue, struct text *text)
{
    for (uint32_t g = 0; g < queue->spec.resource_groups.count; g++) {
        const struct quota_flavor_list *flavors = &queue->spec.resource_groups.items[g].flavors;
        for (uint32_t f = 0; f < flavors->count; f++) {
            text_addf(text, "%s" STR_FMT, text->len == 0 ? "" : ", ",
                      STR_ARG(flavors->items[f].name));
        }
    }
}

/* The resources that the queue has on that flavor, as members of a JSON object. */
static uint32_t add_flavor(struct json_writer *writer, const struct queue *queue, struct str flavor)
{
    uint32_t count = 0;
    for (uint32_t g = 0; g < queue->spec.resource_groups.count; g++) {
        const struct quota_flavor_list *flavors = &queue->spec.resource_groups.items[g].flavors;
        for (uint32_t f = 0; f < flavors->count; f++) {
            const struct quota_resource_list *resources = &flavors->items[f].resources;
            for (uint32_t r = 0; str_eq(flavors->items[f].name, flavor) && r < resources->count;
                 r++) {
                json_key_str(writer, resources->items[r].name);
                json_string(writer, flavor);
                count++;
            }
        }
    }
    return count;
}

static struct rc write_flavors(struct source *source, struct json_writer *writer,
                               const struct queue *queue, struct str flavors, const char *text,
                               struct err *err)
{
    json_key(writer, "flavors");
    json_object_start(writer);
    while (!str_is_empty(flavors)) {
        size_t comma = str_find_char(flavors, ',');
        struct str flavor = str_take(flavors, comma);
        flavors = str_skip(flavors, comma + 1);
        if (add_flavor(writer, queue, flavor) == 0) {
            struct text names;
            text_init(&names, &source->live.arena, 512);
            list_flavors(queue, &names);
            return err_set(
                err, RC_INVALID,
                "--admitted %s: queue " STR_FMT " has no flavor " STR_FMT "; it has: " STR_FMT,
                text, STR_ARG(queue->meta.name), STR_ARG(flavor), STR_ARG(text_str(&names)));
        }
    }
    json_object_end(writer);
    return RC_SUCCESS;
}

/* All pods that the Job still has to run. */
static int64_t pods_of(const struct job *job)
{
    int64_t count = job->spec.parallelism.is_set ? job->spec.parallelism.value : 1;
    if (job->spec.completions.is_set) {
        int64_t left = job->spec.completions.value - job->status.succeeded.value;
        count = left < count ? left : count;
    }
    return count < 1 ? 1 : count;
}

static struct rc write_record(struct source *source, struct json_writer *writer,
                              const struct job *job, const struct queue *queue, struct str flavors,
                              const char *text, int64_t now_ms, struct err *err)
{
    char buffer[TIME_TEXT_BYTES];
    /* From now on, where it has no start of its own: it has no pods to be whole by then either. */
    int64_t at_ms = job->status.start_time.is_set ? job->status.start_time.ms : now_ms;
    json_object_start(writer);
    json_key(writer, "queue");
    json_string(writer, queue->meta.name);
    json_key(writer, "at");
    json_string(writer, time_format_rfc3339(at_ms, buffer));
    json_key(writer, "podSets");
    json_array_start(writer);
    json_object_start(writer);
    json_key(writer, "name");
    json_string(writer, STR("main"));
    json_key(writer, "count");
    json_int(writer, pods_of(job));
    TRY(write_flavors(source, writer, queue, flavors, text, err));
    json_object_end(writer);
    json_array_end(writer);
    json_object_end(writer);
    return RC_SUCCESS;
}

static const struct resource_flavor *find_flavor(const struct source *source, struct str name)
{
    const struct resource_flavor *flavor = NULL;
    for (uint32_t i = 0; i < source->live.objects.count; i++) {
        const struct object *object = &source->live.objects.items[i];
        if (object->kind == KIND_RESOURCE_FLAVOR && str_eq(object->value->name, name)) {
            flavor = (const struct resource_flavor *)object->value;
        }
    }
    return flavor;
}

/* As the admission writes it: pods that aren't there yet go to the flavor's nodes only. */
static void select_nodes(struct arena *arena, const struct resource_flavor *flavor,
                         struct string_map *selector)
{
    const struct string_map *labels = &flavor->spec.node_labels;
    struct string_pair *pairs =
        ARENA_ARRAY(arena, struct string_pair, selector->count + labels->count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < selector->count; i++) {
        pairs[count++] = selector->items[i];
    }
    for (uint32_t i = 0; i < labels->count; i++) {
        if (!str_is_set(string_map_find(selector, labels->items[i].key))) {
            pairs[count++] = labels->items[i];
        }
    }
    *selector = (struct string_map){pairs, count};
}

static void select_flavors(struct source *source, struct object *object, struct str flavors)
{
    struct job changed = *(const struct job *)object->value;
    while (!str_is_empty(flavors)) {
        size_t comma = str_find_char(flavors, ',');
        const struct resource_flavor *flavor = find_flavor(source, str_take(flavors, comma));
        flavors = str_skip(flavors, comma + 1);
        if (flavor != NULL) {
            select_nodes(&source->live.arena, flavor,
                         &changed.spec.pod_template.spec.node_selector);
        }
    }
    object_set_replace(object, &changed.meta);
}

static void set_record(struct source *source, struct object *object, struct str record)
{
    struct arena *arena = &source->live.arena;
    struct job changed = *(const struct job *)object->value;
    const struct string_map *old = &changed.meta.annotations;
    struct string_pair *pairs = ARENA_ARRAY(arena, struct string_pair, old->count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < old->count; i++) {
        if (!str_eq_c(old->items[i].key, RECORD_KEY) &&
            !str_eq_c(old->items[i].key, "tallyman.dev/suspended")) {
            pairs[count++] = old->items[i];
        }
    }
    pairs[count++] = (struct string_pair){STR(RECORD_KEY), arena_copy_str(arena, record)};
    changed.meta.annotations = (struct string_map){pairs, count};
    changed.spec.suspend = (struct opt_bool){true, false};
    object_set_replace(object, &changed.meta);
}

struct rc source_admit(struct source *source, const char *text, int64_t now_ms, struct err *err)
{
    struct str whole = str_from_c(text);
    size_t equals = str_find_char(whole, '=');
    if (equals == 0 || equals + 1 >= whole.len) {
        return err_set(err, RC_INVALID, "--admitted %s: write NAME=FLAVOR or NAMESPACE/NAME=FLAVOR",
                       text);
    }
    struct object *object = NULL;
    struct rc found = find_job(source, str_take(whole, equals), text, &object, err);
    if (rc_failed(found) || object == NULL) {
        return found;
    }
    const struct job *job = (const struct job *)object->value;
    struct str name = string_map_get(&job->meta.labels, "tallyman.dev/queue");
    if (str_is_empty(name)) {
        return err_set(err, RC_INVALID,
                       "--admitted %s: the Job names no queue; give it label tallyman.dev/queue",
                       text);
    }
    const struct queue *queue = find_queue(source, name);
    if (queue == NULL) {
        return err_set(err, RC_INVALID, "--admitted %s: there is no Queue " STR_FMT, text,
                       STR_ARG(name));
    }
    struct json_writer *writer = json_writer_new();
    struct rc rc =
        write_record(source, writer, job, queue, str_skip(whole, equals + 1), text, now_ms, err);
    if (!rc_failed(rc)) {
        set_record(source, object, json_writer_text(writer));
        select_flavors(source, object, str_skip(whole, equals + 1));
    }
    json_writer_free(writer);
    return rc;
}
