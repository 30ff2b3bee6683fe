/* bulk_objects.c - a gang's Job and pods as the core is shown them: made on the stack, for the
 * moment. */
#include "bulk_internal.h"

#include <stdio.h>

#define TEXT_BYTES 48
#define PAIRS_MAX  4

static struct str print(char text[TEXT_BYTES], const char *prefix, uint64_t a, uint64_t b)
{
    int length = b == UINT64_MAX
                     ? snprintf(text, TEXT_BYTES, "%s%llu", prefix, (unsigned long long)a)
                     : snprintf(text, TEXT_BYTES, "%s%llu-%llu", prefix, (unsigned long long)a,
                                (unsigned long long)b);
    return (struct str){text, (size_t)length};
}

struct pod_spec bulk_template_spec(const struct bulk *bulk, uint32_t index,
                                   struct bulk_template *buffer)
{
    const struct bulk_gang *gang = &bulk->options.gangs[index];
    int length =
        snprintf(buffer->text, sizeof(buffer->text), "%lld", (long long)gang->units_per_pod);
    buffer->request = (struct resource_amount){.name = bulk->options.resource,
                                               .value = {(i128)gang->units_per_pod * 1000000000},
                                               .text = {buffer->text, (size_t)length}};
    buffer->container =
        (struct container){.name = STR("main"),
                           .resources.requests = {.items = &buffer->request, .count = 1},
                           .resources.limits = {.items = &buffer->request, .count = 1}};
    return (struct pod_spec){.containers = {.items = &buffer->container, .count = 1},
                             .restart_policy = STR("Never"),
                             .priority_class_name = gang->priority_class};
}

static void add_pair(struct string_map *map, const char *key, struct str value)
{
    if (str_is_set(value)) {
        map->items[map->count++] = (struct string_pair){str_from_c(key), value};
    }
}

static void fill_status(const struct bulk *bulk, uint32_t index, struct job *job,
                        struct condition *condition)
{
    const struct bulk_gang_state *state = &bulk->gangs[index];
    int64_t now_ms = sat_add(bulk->options.start_ms, bulk->now_ms);
    job->status.active = (struct opt_int){true, state->is_suspended || state->state == BULK_DONE
                                                    ? 0
                                                    : bulk->options.gangs[index].pods};
    job->status.ready = (struct opt_int){true, state->state == BULK_RUNNING ? state->placed : 0};
    if (state->was_started) {
        job->status.start_time = (struct opt_time){true, now_ms};
    }
    if (state->state == BULK_DONE) {
        *condition = (struct condition){.type = STR("Complete"), .status = STR("True")};
        job->status.succeeded = (struct opt_int){true, bulk->options.gangs[index].pods};
    } else if (state->is_suspended) {
        *condition = (struct condition){.type = STR("Suspended"), .status = STR("True")};
    } else {
        return;
    }
    job->status.conditions = (struct condition_list){.items = condition, .count = 1};
}

void bulk_show_job(struct bulk *bulk, uint32_t index, bool is_deleted)
{
    const struct bulk_gang *gang = &bulk->options.gangs[index];
    const struct bulk_gang_state *state = &bulk->gangs[index];
    char uid[TEXT_BYTES];
    char version[TEXT_BYTES];
    char bound[TEXT_BYTES];
    struct string_pair labels[PAIRS_MAX];
    struct string_pair annotations[PAIRS_MAX];
    struct condition condition;
    struct bulk_template template;
    struct job job = {
        .meta = {.name = gang->name,
                 .namespace_name = gang->namespace_name,
                 .uid = print(uid, "job-", index, UINT64_MAX),
                 .resource_version = print(version, "", state->version, UINT64_MAX),
                 .generation = {true, state->generation},
                 .creation_timestamp = {true, sat_add(bulk->options.start_ms, gang->submit_ms)},
                 .labels.items = labels,
                 .annotations.items = annotations},
        .spec = {.parallelism = {true, gang->pods},
                 .completions = {true, gang->pods},
                 .suspend = {true, state->is_suspended},
                 .completion_mode = STR("Indexed"),
                 .pod_template.spec = bulk_template_spec(bulk, index, &template)}};
    if (state->spec != NULL) {
        job.spec.pod_template.spec = *state->spec;
    }
    add_pair(&job.meta.labels, "tallyman.dev/queue", gang->queue);
    add_pair(&job.meta.labels, "tallyman.dev/priority-class", gang->priority_class);
    add_pair(&job.meta.annotations, "tallyman.dev/admission", state->record);
    add_pair(&job.meta.annotations, "tallyman.dev/suspended", state->suspended);
    if (gang->bound_ms > 0) {
        int length = snprintf(bound, sizeof(bound), "%lldms", (long long)gang->bound_ms);
        add_pair(&job.meta.annotations, "tallyman.dev/max-runtime",
                 (struct str){bound, (size_t)length});
    }
    fill_status(bulk, index, &job, &condition);
    driver_take_in(bulk->driver, &(struct object){KIND_JOB, &job.meta}, is_deleted);
}

void bulk_show_pod(struct bulk *bulk, uint32_t index, int64_t number, bool is_deleted)
{
    const struct bulk_gang *gang = &bulk->options.gangs[index];
    const struct bulk_gang_state *state = &bulk->gangs[index];
    char uid[TEXT_BYTES];
    char name[TEXT_BYTES];
    char job_uid[TEXT_BYTES];
    struct bulk_template template;
    struct owner_reference owner = {.api_version = STR("batch/v1"),
                                    .kind = STR("Job"),
                                    .name = gang->name,
                                    .uid = print(job_uid, "job-", index, UINT64_MAX),
                                    .controller = {true, true}};
    struct condition ready = {.type = STR("Ready"), .status = STR("True")};
    struct pod pod = {.meta = {.name = print(name, "pod-", index, (uint64_t)number),
                               .namespace_name = gang->namespace_name,
                               .uid = print(uid, "pod-", index, (uint64_t)number),
                               .owner_references = {.items = &owner, .count = 1}},
                      .spec = bulk_template_spec(bulk, index, &template),
                      .status = {.phase = STR("Running"), .conditions = {&ready, 1}}};
    pod.spec.node_name = bulk->nodes[state->nodes[number]].object->meta.name;
    driver_take_in(bulk->driver, &(struct object){KIND_POD, &pod.meta}, is_deleted);
}
