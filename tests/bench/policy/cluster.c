/* cluster.c - gives objects to the core, answers its writes and plays the scheduler; only the
 * core's steps are timed. */
#define _GNU_SOURCE
#include "policy/cluster_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tallyman/base/limits.h"
#include "tallyman/api/codec.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/text.h"

#define START_MS       INT64_C(1796000000000)
#define FIRST_HOUR_MS  INT64_C(1795950000000) /* 2026-11-29T11:00:00Z */
#define NODES_PER_GANG 256
#define TEXT_BYTES     16384

/* -- events ------------------------------------------------------------------------------------ */

static uint32_t job_of_name(struct str name)
{
    return (uint32_t)strtoul(name.ptr + 1, NULL, 10);
}

static void keep_answers(struct cluster *cluster, const struct effects *effects)
{
    for (uint32_t i = 0; i < effects->count; i++) {
        const struct effect *effect = &effects->items[i];
        if (effect->id == 0) {
            continue;
        }
        cluster->answers = mem_grow(cluster->answers, cluster->answer_count,
                                    &cluster->answer_capacity, sizeof(*cluster->answers));
        struct answer answer = {.id = effect->id, .kind = effect->kind};
        if (effect->kind == EFFECT_PATCH_JOB) {
            answer.job = job_of_name(effect->name);
            answer.is_admission = effect->patch.purpose == PATCH_ADMIT;
            answer.is_suspension = effect->patch.purpose == PATCH_SUSPEND;
        } else if (effect->kind == EFFECT_WRITE_ADMISSION) {
            answer.job = job_of_name(effect->name);
        }
        cluster->answers[cluster->answer_count++] = answer;
    }
}

static uint64_t step_once(struct cluster *cluster, enum timed timed, struct event *event)
{
    event->now_ms = cluster->now_ms;
    struct effects effects = {.arena = &cluster->effects};
    struct err err;
    meter_start();
    struct rc rc = core_step(cluster->core, event, &effects, &err);
    uint64_t ns = meter_stop(&cluster->series[timed]);
    if (rc_failed(rc)) {
        (void)fprintf(stderr, "bench: %s\n", err.text);
        exit(1);
    }
    cluster->wake_at_ms = effects.wake_at_ms;
    keep_answers(cluster, &effects);
    arena_reset(&cluster->effects);
    return ns;
}

/* With the ticks that take a pass to its end, as the loop gives them when nothing else comes. */
static void step(struct cluster *cluster, enum timed timed, struct event *event)
{
    uint64_t ns = step_once(cluster, timed, event);
    while (cluster->is_synced && cluster->wake_at_ms <= cluster->now_ms) {
        struct event tick = {.kind = EVENT_TICK};
        ns += step_once(cluster, timed == TIMED_RELEASE ? TIMED_REST : TIMED_OTHER, &tick);
    }
    if (timed == TIMED_RELEASE) {
        series_add(&cluster->series[TIMED_RELEASE_WHOLE], ns);
    }
}

void tell(struct cluster *cluster, enum timed timed, enum object_kind kind, bool is_deleted,
          const char *format, ...)
{
    static char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert(len > 0 && (size_t)len < sizeof(text));
    arena_reset(&cluster->objects);
    void *value = NULL;
    struct err err;
    struct str json = {text, (size_t)len};
    meter_start();
    struct rc rc = decode_json(&cluster->objects, kind_info(kind)->schema, json, &value, &err);
    meter_stop(&cluster->series[TIMED_DECODE]);
    if (rc_failed(rc)) {
        (void)fprintf(stderr, "bench: %s: %s\n", err.text, text);
        exit(1);
    }
    struct event event = {.kind = is_deleted ? EVENT_DELETED : EVENT_OBJECT,
                          .object = {kind, value}};
    step(cluster, timed, &event);
}

/* -- placing ----------------------------------------------------------------------------------- */

/* The first node with so many devices side by side, as the scheduler's first fit. */
static bool place_pod(struct cluster *cluster, struct bench_job *job, uint32_t pod)
{
    uint32_t per_node = cluster->options.devices_per_node;
    for (uint32_t i = 0; i < cluster->options.nodes; i++) {
        uint32_t node = (cluster->node_hint + i) % cluster->options.nodes;
        if (cluster->device_free[node] < job->devices) {
            continue;
        }
        bool *used = &cluster->device_used[(size_t)node * per_node];
        for (uint32_t d = 0; d + job->devices <= per_node; d++) {
            uint32_t run = 0;
            while (run < job->devices && !used[d + run]) {
                run++;
            }
            if (run == job->devices) {
                memset(&used[d], 1, job->devices);
                cluster->device_free[node] -= job->devices;
                cluster->node_hint = job->devices == 0 ? node + 1 : node;
                job->nodes[pod] = node;
                job->device[pod] = d;
                return true;
            }
        }
    }
    return false;
}

static bool place_job(struct cluster *cluster, struct bench_job *job)
{
    job->nodes = mem_zalloc(job->pods * sizeof(uint32_t));
    job->device = mem_zalloc(job->pods * sizeof(uint32_t));
    for (uint32_t p = 0; p < job->pods; p++) {
        if (!place_pod(cluster, job, p)) {
            return false;
        }
    }
    return true;
}

static void remember_running(struct cluster *cluster, uint32_t index)
{
    cluster->running = mem_grow(cluster->running, cluster->running_count,
                                &cluster->running_capacity, sizeof(*cluster->running));
    cluster->running[cluster->running_count++] = index;
}

/* -- the API server, the Job controller and the scheduler ---------------------------------------
 */

static void start_job(struct cluster *cluster, uint32_t index)
{
    struct bench_job *job = &cluster->jobs[index];
    job->state = JOB_RUNS;
    cluster->admitted++;
    if (!place_job(cluster, job)) {
        return; /* it starts when the bench's scheduler finds room; not measured */
    }
    for (uint32_t p = 0; p < job->pods; p++) {
        tell_pod(cluster, TIMED_START, index, p, "Pending", false);
        if (job->devices > 0) {
            tell_claim(cluster, TIMED_START, index, p);
        }
        tell_pod(cluster, TIMED_START, index, p, "Pending", true);
        tell_pod(cluster, TIMED_START, index, p, "Running", true);
    }
    char status[100];
    (void)snprintf(status, sizeof(status),
                   "\"startTime\":\"2026-11-29T12:00:00Z\",\"active\":%u,\"ready\":%u", job->pods,
                   job->pods);
    tell_job(cluster, TIMED_START, index, status, true);
    remember_running(cluster, index);
}

static void answer_patch(struct cluster *cluster, const struct answer *answer)
{
    struct bench_job *job = &cluster->jobs[answer->job];
    char version[32];
    (void)snprintf(version, sizeof(version), "%u", job->version + 2);
    struct event event = {.kind = EVENT_EFFECT_DONE,
                          .done = {answer->id, EFFECT_OK, str_from_c(version), STR_NONE}};
    step(cluster, TIMED_OTHER, &event);
    if (answer->is_admission) {
        job->is_suspended = false;
        tell_job(cluster, TIMED_OTHER, answer->job, "", true);
        start_job(cluster, answer->job);
    }
    cluster->suspended += answer->is_suspension ? 1 : 0;
}

static void answer_all(struct cluster *cluster)
{
    while (cluster->next_answer < cluster->answer_count) {
        struct answer answer = cluster->answers[cluster->next_answer++];
        if (answer.kind == EFFECT_PATCH_JOB) {
            answer_patch(cluster, &answer);
            continue;
        }
        if (answer.kind == EFFECT_WRITE_ADMISSION) {
            char uid[BENCH_UID_BYTES];
            struct admission content;
            (void)core_admission_content(cluster->core, str_from_c(bench_uid(answer.job, uid)),
                                         &cluster->content, &content);
            arena_reset(&cluster->content);
        }
        struct event event = {.kind = EVENT_EFFECT_DONE,
                              .done = {answer.id, EFFECT_OK, STR("1"), STR_NONE}};
        step(cluster, TIMED_OTHER, &event);
    }
    cluster->next_answer = cluster->answer_count = 0;
}

/* -- what the measurements call ------------------------------------------------------------------
 */

struct cluster *cluster_new(const struct cluster_options *options)
{
    struct cluster *cluster = MEM_NEW(struct cluster);
    cluster->options = *options;
    cluster->now_ms = START_MS;
    struct core_options core_options = {.admissions_per_step = options->admissions_per_step,
                                        .selector_cost_per_step = SELECTOR_COST_PER_STEP};
    cluster->core = core_new(&core_options);
    arena_init(&cluster->objects);
    arena_init(&cluster->effects);
    arena_init(&cluster->content);
    size_t devices = (size_t)options->nodes * options->devices_per_node;
    cluster->device_used = mem_zalloc(devices * sizeof(bool));
    cluster->device_free = mem_zalloc(options->nodes * sizeof(uint32_t));
    tell_templates(cluster);
    for (uint32_t node = 0; node < options->nodes; node++) {
        cluster->device_free[node] = options->devices_per_node;
        tell_node(cluster, TIMED_OTHER, node);
        if (options->devices_per_node > 0) {
            tell_slice(cluster, node);
        }
    }
    for (uint32_t queue = 0; queue < options->queues; queue++) {
        tell_queue(cluster, queue, options->quota);
    }
    return cluster;
}

void cluster_free(struct cluster *cluster)
{
    core_free(cluster->core);
    for (uint32_t i = 0; i < cluster->job_count; i++) {
        mem_free(cluster->jobs[i].nodes);
        mem_free(cluster->jobs[i].device);
    }
    for (int i = 0; i < TIMED_COUNT; i++) {
        series_free(&cluster->series[i]);
    }
    arena_deinit(&cluster->objects);
    arena_deinit(&cluster->effects);
    arena_deinit(&cluster->content);
    mem_free(cluster->device_used);
    mem_free(cluster->device_free);
    mem_free(cluster->jobs);
    mem_free(cluster->running);
    mem_free(cluster->answers);
    mem_free(cluster);
}

void cluster_sync(struct cluster *cluster)
{
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        struct event event = {.kind = EVENT_SYNCED, .synced_kind = (enum object_kind)kind};
        step(cluster, TIMED_OTHER, &event);
    }
    cluster->is_synced = true;
    answer_all(cluster);
}

static uint32_t job_new(struct cluster *cluster, uint32_t pods, uint32_t devices)
{
    cluster->jobs =
        mem_grow(cluster->jobs, cluster->job_count, &cluster->job_capacity, sizeof(*cluster->jobs));
    uint32_t kinds = cluster->options.kinds == 0 ? 1 : cluster->options.kinds;
    bool is_new = cluster->is_synced && !cluster->options.comes_among_others;
    int64_t of_hour_ms = FIRST_HOUR_MS + cluster->job_count % 3600 * INT64_C(1000);
    cluster->jobs[cluster->job_count] =
        (struct bench_job){.pods = pods,
                           .devices = devices,
                           .queue = cluster->next_queue,
                           .kind = cluster->job_count / cluster->options.queues % kinds,
                           .state = JOB_WAITS,
                           .created_ms = is_new ? cluster->now_ms : of_hour_ms,
                           .is_suspended = true};
    cluster->next_queue = (cluster->next_queue + 1) % cluster->options.queues;
    return cluster->job_count++;
}

void cluster_add_job(struct cluster *cluster, uint32_t pods, uint32_t devices, int priority)
{
    uint32_t index = job_new(cluster, pods, devices);
    cluster->jobs[index].priority = priority;
    tell_job(cluster, TIMED_ARRIVAL, index, "", false);
    if (cluster->is_synced) {
        answer_all(cluster);
    }
}

void cluster_fill(struct cluster *cluster, uint32_t pods, uint32_t devices)
{
    for (;;) {
        uint32_t index = job_new(cluster, pods, devices);
        struct bench_job *job = &cluster->jobs[index];
        job->is_suspended = false;
        if (!place_job(cluster, job)) {
            mem_free(job->nodes);
            mem_free(job->device);
            cluster->job_count--;
            return;
        }
        for (uint32_t p = 0; p < pods; p++) {
            if (devices > 0) {
                tell_claim(cluster, TIMED_OTHER, index, p);
            }
            tell_pod(cluster, TIMED_OTHER, index, p, "Running", true);
        }
        job->state = JOB_RUNS;
        char status[100];
        (void)snprintf(status, sizeof(status),
                       "\"startTime\":\"2026-11-29T12:00:00Z\",\"active\":%u,\"ready\":%u", pods,
                       pods);
        tell_job(cluster, TIMED_OTHER, index, status, true);
        remember_running(cluster, index);
    }
}

void cluster_end_oldest(struct cluster *cluster)
{
    assert(cluster->first_running < cluster->running_count);
    uint32_t index = cluster->running[cluster->first_running++];
    struct bench_job *job = &cluster->jobs[index];
    uint32_t per_node = cluster->options.devices_per_node;
    for (uint32_t p = 0; p < job->pods; p++) {
        tell_pod(cluster, TIMED_RELEASE, index, p, "Succeeded", true);
        if (job->devices > 0) {
            tell(cluster, TIMED_RELEASE, KIND_RESOURCE_CLAIM, true,
                 "{\"metadata\":{\"name\":\"c%07u-%u\",\"namespace\":\"ml\"}}", index, p);
            memset(&cluster->device_used[(size_t)job->nodes[p] * per_node + job->device[p]], 0,
                   job->devices);
            cluster->device_free[job->nodes[p]] += job->devices;
            cluster->node_hint = job->nodes[0];
        }
    }
    char status[300];
    (void)snprintf(status, sizeof(status),
                   "\"startTime\":\"2026-11-29T12:00:00Z\",\"succeeded\":%u,\"conditions\":[{"
                   "\"type\":\"Complete\",\"status\":\"True\"}]",
                   job->pods);
    job->state = JOB_ENDED;
    tell_job(cluster, TIMED_RELEASE, index, status, true);
    answer_all(cluster);
}

void cluster_heartbeat(struct cluster *cluster, uint32_t node)
{
    tell_node(cluster, TIMED_HEARTBEAT, node);
}

void cluster_set_quota(struct cluster *cluster, uint32_t queue, uint32_t devices)
{
    tell_queue(cluster, queue, devices);
}

void cluster_advance(struct cluster *cluster, int64_t ms)
{
    int64_t until_ms = cluster->now_ms + ms;
    while (cluster->is_synced && cluster->wake_at_ms <= until_ms) {
        bool is_later = cluster->wake_at_ms > cluster->now_ms;
        cluster->now_ms = is_later ? cluster->wake_at_ms : cluster->now_ms;
        struct event event = {.kind = EVENT_TICK};
        step(cluster, TIMED_TICK, &event);
        answer_all(cluster);
    }
    cluster->now_ms = until_ms;
}

struct series *cluster_series(struct cluster *cluster, enum timed timed)
{
    return &cluster->series[timed];
}

void cluster_clear_series(struct cluster *cluster)
{
    for (int i = 0; i < TIMED_COUNT; i++) {
        series_clear(&cluster->series[i]);
    }
}

size_t cluster_own_bytes(struct cluster *cluster)
{
    arena_deinit(&cluster->objects);
    arena_deinit(&cluster->effects);
    arena_deinit(&cluster->content);
    size_t bytes = cluster->job_capacity * sizeof(*cluster->jobs) +
                   cluster->running_capacity * sizeof(*cluster->running) +
                   cluster->answer_capacity * sizeof(*cluster->answers);
    for (int i = 0; i < TIMED_COUNT; i++) {
        bytes += cluster->series[i].capacity * sizeof(*cluster->series[i].ns);
    }
    return bytes;
}

uint32_t cluster_admitted(const struct cluster *cluster)
{
    return cluster->admitted;
}

uint32_t cluster_suspended(const struct cluster *cluster)
{
    return cluster->suspended;
}

uint32_t cluster_let_go(const struct cluster *cluster)
{
    uint32_t count = 0;
    for (uint32_t i = cluster->next_answer; i < cluster->answer_count; i++) {
        count += cluster->answers[i].is_admission ? 1 : 0;
    }
    return count;
}
