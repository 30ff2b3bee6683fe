/* objects.c - the objects of a small world, made of its numbers. */
#include "small.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tallyman/api/codec.h"
#include "tallyman/base/alloc.h"

#define TEXTS_MAX   4096
#define OBJECTS_MAX 16

static const char *const queue_names[SMALL_QUEUES] = {"a", "b"};
static const char *const node_names[SMALL_NODES] = {"n1", "n2"};
static const char *const uids[SMALL_GANGS] = {"uid-0", "uid-1", "uid-2"};

static struct {
    const struct small_scope *scope;
    struct arena arena;
    struct object given[OBJECTS_MAX];
    uint32_t given_count;
    struct job jobs[SMALL_GANGS];
    struct pod pods[SMALL_GANGS];
} objects;

/* -- texts ---------------------------------------------------------------------------------------
 */

static struct str texts[TEXTS_MAX];
static uint16_t text_count = 1;

uint16_t text_id(struct str text)
{
    if (!str_is_set(text)) {
        return 0;
    }
    for (uint16_t i = 1; i < text_count; i++) {
        if (str_eq(texts[i], text)) {
            return i;
        }
    }
    if (text_count == TEXTS_MAX) {
        small_fail("more texts than %d", TEXTS_MAX);
    }
    char *copy = mem_alloc(text.len + 1);
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    texts[text_count] = (struct str){copy, text.len};
    return text_count++;
}

struct str text_of(uint16_t id)
{
    return id == 0 ? STR_NONE : texts[id];
}

/* -- what is given -------------------------------------------------------------------------------
 */

static void *PRINTF_LIKE(2, 3) decode(enum object_kind kind, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    void *value = NULL;
    struct err err;
    if (rc_failed(decode_json(&objects.arena, kind_info(kind)->schema,
                              arena_copy_str(&objects.arena, str_from_c(text)), &value, &err))) {
        small_fail("%s\n%s", err.text, text);
    }
    return value;
}

static void give(enum object_kind kind, const void *value)
{
    objects.given[objects.given_count++] = (struct object){.kind = kind, .value = value};
}

static void give_queue(uint32_t queue)
{
    give(KIND_QUEUE,
         decode(KIND_QUEUE,
                "{\"metadata\":{\"name\":\"%s\",\"uid\":\"q-%s\",\"generation\":1,"
                "\"resourceVersion\":\"1\"},\"spec\":{\"namespaceSelector\":{},\"cohort\":\"lab\","
                "\"queueingStrategy\":\"%s\",\"preemption\":{\"withinQueue\":\"LowerPriority\","
                "\"reclaimWithinCohort\":\"Any\"},\"resourceGroups\":[{\"flavors\":[{\"name\":"
                "\"default\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":\"%d\"}]}]}]}}",
                queue_names[queue], queue_names[queue], objects.scope->strategy,
                objects.scope->quota[queue]));
}

static void give_gang(uint8_t gang)
{
    const struct small_gang *given = &objects.scope->gangs[gang];
    const struct job *job = decode(
        KIND_JOB,
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\",\"uid\":\"%s\","
        "\"generation\":1,\"labels\":{\"tallyman.dev/queue\":\"%s\"%s}},\"spec\":{"
        "\"parallelism\":%d,\"completions\":%d,\"suspend\":true,\"template\":{\"spec\":{"
        "\"containers\":[{\"name\":\"main\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}}}",
        given->name, uids[gang], queue_names[given->queue],
        given->is_high ? ",\"tallyman.dev/priority-class\":\"high\"" : "", given->pods,
        given->pods);
    objects.jobs[gang] = *job;
    objects.jobs[gang].meta.creation_timestamp = (struct opt_time){true, objects_created_ms(gang)};
    const struct pod *pod =
        decode(KIND_POD,
               "{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\",\"ownerReferences\":[{"
               "\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"%s\",\"uid\":\"%s\","
               "\"controller\":true}]},\"spec\":{\"containers\":[{\"name\":\"main\","
               "\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}",
               given->name, uids[gang]);
    objects.pods[gang] = *pod;
}

void objects_given(const struct small_scope *scope)
{
    arena_deinit(&objects.arena);
    arena_init(&objects.arena);
    objects.scope = scope;
    objects.given_count = 0;
    give(KIND_NAMESPACE, decode(KIND_NAMESPACE, "{\"metadata\":{\"name\":\"default\"}}"));
    give(KIND_PRIORITY_CLASS,
         decode(KIND_PRIORITY_CLASS, "{\"metadata\":{\"name\":\"high\"},\"value\":100}"));
    for (uint32_t i = 0; i < SMALL_NODES; i++) {
        give(KIND_NODE,
             decode(KIND_NODE,
                    "{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\"},\"status\":{\"allocatable\":{"
                    "\"cpu\":\"%d\",\"pods\":\"10\"},\"conditions\":[{\"type\":\"Ready\","
                    "\"status\":\"True\"}]}}",
                    node_names[i], node_names[i], scope->node_cpu));
    }
    for (uint32_t i = 0; i < SMALL_QUEUES; i++) {
        give_queue(i);
    }
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        give_gang(i);
    }
}

void objects_list_given(struct driver *driver)
{
    for (uint32_t i = 0; i < objects.given_count; i++) {
        driver_take_in(driver, &objects.given[i], false);
    }
}

/* -- what changes --------------------------------------------------------------------------------
 */

struct str objects_uid(uint8_t gang)
{
    return str_from_c(uids[gang]);
}

uint8_t objects_gang_of(struct str uid)
{
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        if (str_eq_c(uid, uids[i])) {
            return i;
        }
    }
    small_fail("an effect for the unknown uid " STR_FMT, STR_ARG(uid));
}

uint8_t objects_first_named(const struct small_scope *scope, uint8_t gang)
{
    uint8_t first = 0;
    while (strcmp(scope->gangs[first].name, scope->gangs[gang].name) != 0) {
        first++;
    }
    return first;
}

int64_t objects_created_ms(uint8_t gang)
{
    return SMALL_START_MS - 60000 + 1000 * gang;
}

static struct opt_int count_of(uint8_t count)
{
    return (struct opt_int){true, count};
}

void objects_tell_job(struct small_world *world, uint8_t gang, const struct small_job *job)
{
    struct job object = objects.jobs[gang];
    char version[16];
    (void)snprintf(version, sizeof(version), "%u", job->version);
    object.meta.resource_version = str_from_c(version);
    struct string_pair pairs[4];
    struct string_map *annotations = &object.meta.annotations;
    *annotations = (struct string_map){.items = pairs};
    if (job->record != 0) {
        pairs[annotations->count++] =
            (struct string_pair){STR("tallyman.dev/admission"), text_of(job->record)};
    }
    if (job->suspended != 0) {
        pairs[annotations->count++] =
            (struct string_pair){STR("tallyman.dev/suspended"), text_of(job->suspended)};
    }
    if (job->is_held) {
        pairs[annotations->count++] = (struct string_pair){STR("tallyman.dev/hold"), STR("true")};
    }
    object.spec.suspend = (struct opt_bool){true, job->is_suspended};
    struct condition conditions[2];
    object.status.conditions = (struct condition_list){.items = conditions};
    if (job->has_stopped || job->is_started) {
        conditions[object.status.conditions.count++] = (struct condition){
            .type = STR("Suspended"), .status = job->has_stopped ? STR("True") : STR("False")};
    }
    if (job->is_complete) {
        conditions[object.status.conditions.count++] =
            (struct condition){.type = STR("Complete"), .status = STR("True")};
    }
    object.status.start_time = (struct opt_time){job->is_started, SMALL_START_MS};
    object.status.active = count_of(job->active);
    object.status.ready = count_of(job->active);
    object.status.terminating = count_of(job->terminating);
    object.status.succeeded = count_of(job->succeeded);
    struct object told = {.kind = KIND_JOB, .value = &object.meta};
    if (job->stage == STAGE_THERE) {
        driver_object(world->driver, &told);
    } else {
        driver_deleted(world->driver, &told);
    }
}

static void tell_pod(struct small_world *world, uint8_t gang, uint32_t number,
                     const struct small_pod *pod)
{
    struct pod object = objects.pods[gang];
    char name[32];
    (void)snprintf(name, sizeof(name), "%s-%u-%u-%u", objects.scope->gangs[gang].name, gang,
                   pod->batch, number);
    object.meta.name = str_from_c(name);
    object.meta.uid = object.meta.name;
    object.spec.node_name = pod->node == 0 ? STR_NONE : str_from_c(node_names[pod->node - 1]);
    object.status.phase = pod->stage == POD_DONE    ? STR("Succeeded")
                          : pod->stage == POD_BOUND ? STR("Running")
                                                    : STR("Pending");
    struct condition ready = {.type = STR("Ready"), .status = STR("True")};
    if (pod->stage == POD_BOUND) {
        object.status.conditions = (struct condition_list){&ready, 1};
    }
    if (pod->stage == POD_STOPPING || pod->stage == POD_REMOVED) {
        object.meta.deletion_timestamp = (struct opt_time){true, SMALL_START_MS};
    }
    struct object told = {.kind = KIND_POD, .value = &object.meta};
    driver_take_in(world->driver, &told, pod->stage == POD_REMOVED);
}

void objects_tell_pods(struct small_world *world, uint8_t gang, const struct small_pod *pods)
{
    for (uint32_t i = 0; i < SMALL_PODS; i++) {
        if (pods[i].stage != POD_NONE) {
            tell_pod(world, gang, i, &pods[i]);
        }
    }
    driver_tick(world->driver);
}
