/* simulate_workload.c - jobs are collected, shaped and put in order. */
#include "simulate_workload.h"

#include <stdlib.h>
#include <string.h>

#include "tallyman/api/quantity.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/map.h"

#define UNITS_PER_NODE_DEFAULT 8
#define LOAD_PERCENT           80 /* of a trace on a cluster that nobody gave a size */

struct queue_slot {
    struct str name; /* borrowed from the arena */
    uint32_t index;
    UT_hash_handle hh;
};

void workload_deinit(struct workload *workload)
{
    struct queue_slot *slot;
    struct queue_slot *next;
    HASH_ITER (hh, workload->queue_slots, slot, next) {
        HASH_DEL(workload->queue_slots, slot);
        mem_free(slot);
    }
    mem_free(workload->gangs);
    mem_free(workload->tags);
}

uint32_t workload_queue_get(struct workload *workload, struct str name)
{
    struct queue_slot *slot = NULL;
    HASH_FIND(hh, workload->queue_slots, name.ptr, (unsigned)name.len, slot);
    if (slot != NULL) {
        return slot->index;
    }
    workload->queues = arena_grow(workload->arena, workload->queues, workload->queue_count,
                                  &workload->queue_capacity, sizeof(*workload->queues));
    workload->queues[workload->queue_count] =
        (struct workload_queue){.name = arena_copy_str(workload->arena, name),
                                .nominal = WORKLOAD_NO_LIMIT,
                                .borrowing = WORKLOAD_NO_LIMIT,
                                .lending = WORKLOAD_NO_LIMIT,
                                .weight = WORKLOAD_NO_LIMIT};
    slot = MEM_NEW(struct queue_slot);
    slot->name = workload->queues[workload->queue_count].name;
    slot->index = workload->queue_count++;
    HASH_ADD_KEYPTR(hh, workload->queue_slots, slot->name.ptr, (unsigned)slot->name.len, slot);
    return slot->index;
}

uint32_t workload_class_get(struct workload *workload, struct str name)
{
    for (uint32_t i = 0; i < workload->class_count; i++) {
        if (str_eq(workload->classes[i].name, name)) {
            return i;
        }
    }
    workload->classes = arena_grow(workload->arena, workload->classes, workload->class_count,
                                   &workload->class_capacity, sizeof(*workload->classes));
    workload->classes[workload->class_count] =
        (struct workload_class){arena_copy_str(workload->arena, name)};
    return workload->class_count++;
}

struct rc workload_add(struct workload *workload, const struct bulk_gang *gang, uint32_t queue,
                       uint32_t class_index, struct err *err)
{
    if (workload->gang_count >= SIMULATE_JOBS_MAX) {
        return err_set(err, RC_LIMIT, "more than %d jobs; give fewer with --jobs",
                       SIMULATE_JOBS_MAX);
    }
    workload->gangs = mem_grow(workload->gangs, workload->gang_count, &workload->gang_capacity,
                               sizeof(*workload->gangs));
    workload->tags = mem_grow(workload->tags, workload->gang_count, &workload->tag_capacity,
                              sizeof(*workload->tags));
    workload->gangs[workload->gang_count] = *gang;
    workload->tags[workload->gang_count] =
        (struct workload_tag){queue, class_index, workload->gang_count};
    workload->gang_count++;
    return RC_SUCCESS;
}

void workload_shape(struct bulk_gang *gang, int64_t devices, int64_t pod_devices)
{
    int64_t units = pod_devices > 0 ? pod_devices : 1;
    units = units < devices ? units : devices;
    while (units > 1 && devices % units != 0) {
        units--;
    }
    gang->units_per_pod = units;
    gang->pods = devices / units;
}

int64_t workload_work(const struct workload *workload)
{
    int64_t work = 0;
    for (uint32_t i = 0; i < workload->gang_count; i++) {
        const struct bulk_gang *gang = &workload->gangs[i];
        work = sat_add(work, sat_mul(sat_mul(gang->pods, gang->units_per_pod), gang->run_ms));
    }
    return work;
}

int64_t workload_devices(const struct workload *workload)
{
    return sat_mul(workload->nodes, workload->units_per_node);
}

/* -- order ----------------------------------------------------------------------------------------
 */

struct sortable {
    struct bulk_gang gang;
    struct workload_tag tag;
};

static int compare(const void *a, const void *b)
{
    const struct sortable *left = a;
    const struct sortable *right = b;
    if (left->gang.submit_ms != right->gang.submit_ms) {
        return left->gang.submit_ms < right->gang.submit_ms ? -1 : 1;
    }
    return left->tag.order < right->tag.order ? -1 : left->tag.order > right->tag.order ? 1 : 0;
}

static void sort_gangs(struct workload *workload)
{
    uint32_t count = workload->gang_count;
    struct sortable *all = mem_alloc(mem_array_bytes((size_t)count + 1, sizeof(*all)));
    for (uint32_t i = 0; i < count; i++) {
        all[i] = (struct sortable){workload->gangs[i], workload->tags[i]};
    }
    qsort(all, count, sizeof(*all), compare);
    for (uint32_t i = 0; i < count; i++) {
        workload->gangs[i] = all[i].gang;
        workload->tags[i] = all[i].tag;
    }
    mem_free(all);
}

/* -- the cluster ----------------------------------------------------------------------------------
 */

static int64_t largest_gang(const struct workload *workload)
{
    int64_t most = 1;
    for (uint32_t i = 0; i < workload->gang_count; i++) {
        int64_t units = workload->gangs[i].pods * workload->gangs[i].units_per_pod;
        most = units > most ? units : most;
    }
    return most;
}

/* Enough for LOAD_PERCENT of load over the time in which jobs come. */
static int64_t devices_for_load(const struct workload *workload)
{
    if (workload->gang_count == 0) {
        return 1;
    }
    int64_t span_ms = workload->gangs[workload->gang_count - 1].submit_ms;
    int64_t work = workload_work(workload);
    int64_t busy = span_ms > 0 ? work / span_ms : 0;
    int64_t wanted = busy / LOAD_PERCENT * 100 + busy % LOAD_PERCENT * 100 / LOAD_PERCENT;
    int64_t largest = largest_gang(workload);
    return wanted > largest ? wanted : largest;
}

static void size_cluster(struct workload *workload, int64_t devices)
{
    if (workload->units_per_node == 0) {
        workload->units_per_node = UNITS_PER_NODE_DEFAULT;
    }
    if (workload->nodes == 0 && !workload->has_nodes) {
        int64_t wanted = devices > 0 ? devices : devices_for_load(workload);
        int64_t units = workload->units_per_node < wanted ? workload->units_per_node : wanted;
        workload->units_per_node = units;
        workload->nodes = (wanted + units - 1) / units;
    }
}

static void drop_too_large(struct workload *workload)
{
    int64_t devices = workload_devices(workload);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < workload->gang_count; i++) {
        const struct bulk_gang *gang = &workload->gangs[i];
        bool fits = gang->pods * gang->units_per_pod <= devices &&
                    gang->units_per_pod <= workload->units_per_node;
        if (fits || workload->has_nodes) {
            workload->tags[kept] = workload->tags[i];
            workload->gangs[kept++] = *gang;
        }
    }
    workload->too_large = workload->gang_count - kept;
    workload->gang_count = kept;
}

void workload_sort(struct workload *workload)
{
    sort_gangs(workload);
    size_cluster(workload, 0);
    drop_too_large(workload);
}

/* Times from the first job on, and as fast as wanted; bounds where the trace has none. */
static void adapt(struct bulk_gang *gang, int64_t first_ms, const struct trace_options *options)
{
    i128 since_ms = (i128)(gang->submit_ms - first_ms) * 1000 / options->saturation_milli;
    gang->submit_ms = (int64_t)since_ms;
    if (options->saturation_milli != 1000) {
        gang->submit_ms = gang->submit_ms / 1000 * 1000; /* whole seconds, as a Job has them */
    }
    if (options->bound_milli > 0 && gang->bound_ms == 0) {
        i128 bound_ms = (i128)gang->run_ms * options->bound_milli / 1000;
        bound_ms = bound_ms > 0 ? bound_ms : 1; /* 0 is no bound */
        gang->bound_ms = (int64_t)((bound_ms + 999) / 1000 * 1000);
    }
    if (gang->bound_ms > 0 && gang->bound_ms < gang->run_ms) {
        gang->bound_ms = gang->run_ms; /* it did run for so long */
    }
}

void workload_finish_trace(struct workload *workload, const struct trace_options *options)
{
    sort_gangs(workload);
    if (options->first_jobs > 0 && workload->gang_count > options->first_jobs) {
        workload->gang_count = (uint32_t)options->first_jobs;
    }
    int64_t first_ms = workload->gang_count > 0 ? workload->gangs[0].submit_ms : 0;
    for (uint32_t i = 0; i < workload->gang_count; i++) {
        adapt(&workload->gangs[i], first_ms, options);
    }
    size_cluster(workload, options->devices);
    for (uint32_t i = 0; i < workload->queue_count; i++) {
        struct workload_queue *queue = &workload->queues[i];
        queue->strategy = str_is_set(queue->strategy) ? queue->strategy : options->strategy;
        queue->starvation_ms =
            queue->starvation_ms > 0 ? queue->starvation_ms : options->starvation_ms;
        queue->cohort = str_is_set(queue->cohort) ? queue->cohort : STR("trace");
    }
}
