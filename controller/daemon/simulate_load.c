/* simulate_load.c - a load: queues, classes of jobs and events, as a YAML file. Its form is told in
 * docs/reference/load.md. */
#include "simulate_load.h"

#include <stdio.h>

#include "tallyman/base/limits.h"

/* -- numbers --------------------------------------------------------------------------------------
 */

/* Where something stands, for errors: "queues[0].classes[1]". */
struct place {
    const char *path;
    uint32_t queue;
    int64_t class_index; /* -1: of the queue itself */
};

static struct rc wrong(const struct place *place, const char *field, const char *right,
                       struct err *err)
{
    if (place->class_index < 0) {
        return err_set(err, RC_INVALID, "%s: queues[%u].%s: %s", place->path, place->queue, field,
                       right);
    }
    return err_set(err, RC_INVALID, "%s: queues[%u].classes[%lld].%s: %s", place->path,
                   place->queue, (long long)place->class_index, field, right);
}

static struct rc take_int(const struct place *place, const char *field, struct opt_int given,
                          int64_t least, int64_t most, int64_t otherwise, int64_t *ret_value,
                          struct err *err)
{
    if (!given.is_set) {
        *ret_value = otherwise;
        return RC_SUCCESS;
    }
    if (given.value < least || given.value > most) {
        char right[128];
        snprintf(right, sizeof(right), "%lld isn't between %lld and %lld", (long long)given.value,
                 (long long)least, (long long)most);
        return wrong(place, field, right, err);
    }
    *ret_value = given.value;
    return RC_SUCCESS;
}

/* A fixed number from 0 to 9999 that looks random: the same in every run. */
static int64_t scatter(uint64_t a, uint64_t b)
{
    uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b * UINT64_C(0xbf58476d1ce4e5b9) + 1;
    x ^= x >> 31;
    x *= UINT64_C(0x94d049bb133111eb);
    x ^= x >> 29;
    return (int64_t)(x % 10000);
}

/* -- classes --------------------------------------------------------------------------------------
 */

struct class_numbers {
    int64_t jobs;
    int64_t pods;
    int64_t units;
    int64_t spread;
    int64_t failures;
    int64_t priority;
};

static struct rc check_class(const struct place *place, const struct load_class *class_given,
                             struct class_numbers *ret, struct err *err)
{
    if (str_is_empty(class_given->name)) {
        return wrong(place, "name", "missing; every class needs one", err);
    }
    if (!class_given->run_for.is_set) {
        return wrong(place, "runFor", "missing; say how long a job works, such as 10m", err);
    }
    TRY(take_int(place, "jobs", class_given->jobs, 0, SIMULATE_JOBS_MAX, 1, &ret->jobs, err));
    TRY(take_int(place, "pods", class_given->pods, 1, GANG_PODS_MAX, 1, &ret->pods, err));
    TRY(take_int(place, "devicesPerPod", class_given->devices_per_pod, 1, SIMULATE_UNITS_MAX, 1,
                 &ret->units, err));
    TRY(take_int(place, "spreadPercent", class_given->spread_percent, 0, 100, 0, &ret->spread,
                 err));
    TRY(take_int(place, "failures", class_given->failures, 0, 1000000,
                 class_given->fail_after.is_set ? 1 : 0, &ret->failures, err));
    TRY(take_int(place, "priority", class_given->priority, -1000000000, 1000000000, 0,
                 &ret->priority, err));
    if (ret->failures > 0 && (!class_given->fail_after.is_set || class_given->fail_after.ms == 0)) {
        return wrong(place, "failAfter", "missing; say when a job fails, such as 5m", err);
    }
    return RC_SUCCESS;
}

static struct rc add_jobs(struct workload *workload, const struct load_class *class_given,
                          const struct class_numbers *numbers, uint32_t queue, struct err *err)
{
    struct str queue_name = workload->queues[queue].name;
    uint32_t class_index = workload_class_get(workload, class_given->name);
    struct bulk_gang gang = {.namespace_name = str_is_empty(class_given->namespace_name)
                                                   ? STR("default")
                                                   : class_given->namespace_name,
                             .queue = queue_name,
                             .bound_ms = class_given->max_runtime.ms,
                             .pods = numbers->pods,
                             .units_per_pod = numbers->units,
                             .checkpoint_ms = class_given->checkpoint_every.ms,
                             .fails_after_ms = class_given->fail_after.ms,
                             .failures = numbers->failures};
    if (class_given->priority.is_set) {
        gang.priority_class =
            arena_format(workload->arena, "priority-%lld", (long long)numbers->priority);
    }
    for (int64_t i = 0; i < numbers->jobs; i++) {
        gang.name = arena_format(workload->arena, STR_FMT "-" STR_FMT "-%lld", STR_ARG(queue_name),
                                 STR_ARG(class_given->name), (long long)i + 1);
        gang.submit_ms = sat_add(class_given->first.ms, sat_mul(class_given->every.ms, i));
        /* runFor, less or more by up to spreadPercent */
        int64_t off = (scatter((uint64_t)queue << 16 | class_index, (uint64_t)i) - 5000) *
                      numbers->spread / 50;
        i128 run_ms = (i128)class_given->run_for.ms * (10000 + off) / 10000;
        gang.run_ms = (int64_t)run_ms;
        TRY(workload_add(workload, &gang, queue, class_index, err));
    }
    return RC_SUCCESS;
}

/* -- queues ---------------------------------------------------------------------------------------
 */

static struct rc add_queue(struct workload *workload, const struct place *place,
                           const struct load_queue *given, int64_t number, int64_t count,
                           int64_t cohorts, struct err *err)
{
    struct str name = count == 1 ? given->name
                                 : arena_format(workload->arena, STR_FMT "-%lld",
                                                STR_ARG(given->name), (long long)number + 1);
    if (workload->queue_count >= SIMULATE_QUEUES_MAX) {
        return err_set(err, RC_LIMIT, "%s: more than %d queues", place->path, SIMULATE_QUEUES_MAX);
    }
    uint32_t before = workload->queue_count;
    uint32_t index = workload_queue_get(workload, name);
    if (index != before) {
        return wrong(place, "name", "another queue has that name; give it one of its own", err);
    }
    struct workload_queue *queue = &workload->queues[index];
    if (!str_is_empty(given->cohort)) {
        queue->cohort = cohorts == 1
                            ? given->cohort
                            : arena_format(workload->arena, STR_FMT "-%lld", STR_ARG(given->cohort),
                                           (long long)(number * cohorts / count) + 1);
    }
    queue->nominal = given->nominal.is_set ? given->nominal.value : WORKLOAD_NO_LIMIT;
    queue->borrowing = given->borrowing.is_set ? given->borrowing.value : WORKLOAD_NO_LIMIT;
    queue->lending = given->lending.is_set ? given->lending.value : WORKLOAD_NO_LIMIT;
    queue->weight = given->weight.is_set ? given->weight.value : WORKLOAD_NO_LIMIT;
    queue->strategy = given->strategy;
    queue->fit = given->fit;
    queue->starvation_ms = given->starvation_bound.ms;
    queue->within = given->preemption.within_queue;
    queue->reclaim = given->preemption.reclaim_within_cohort;
    return RC_SUCCESS;
}

static bool is_one_of(struct str text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq_c(text, names[i])) {
            return true;
        }
    }
    return str_is_empty(text);
}

static struct rc check_queue(const struct place *place, const struct load_queue *given,
                             int64_t *ret_count, int64_t *ret_cohorts, struct err *err)
{
    static const char *const strategies[] = {"BestEffortFIFO", "StrictFIFO", "Backfill"};
    static const char *const fits[] = {"Physical", "Quota"};
    static const char *const within[] = {"Never", "LowerPriority", "LowerOrNewerEqualPriority"};
    static const char *const reclaim[] = {"Never", "LowerPriority", "Any"};
    int64_t ignored;
    if (str_is_empty(given->name)) {
        return wrong(place, "name", "missing; every queue needs one", err);
    }
    TRY(take_int(place, "count", given->count, 1, SIMULATE_QUEUES_MAX, 1, ret_count, err));
    TRY(take_int(place, "cohorts", given->cohorts, 1, *ret_count, 1, ret_cohorts, err));
    TRY(take_int(place, "nominalQuota", given->nominal, 0, INT32_MAX, 0, &ignored, err));
    TRY(take_int(place, "borrowingLimit", given->borrowing, 0, INT32_MAX, 0, &ignored, err));
    TRY(take_int(place, "lendingLimit", given->lending, 0, INT32_MAX, 0, &ignored, err));
    TRY(take_int(place, "weight", given->weight, 0, 1000000, 0, &ignored, err));
    if (!is_one_of(given->strategy, strategies, ARRAY_COUNT(strategies))) {
        return wrong(place, "queueingStrategy", "one of BestEffortFIFO, StrictFIFO, Backfill", err);
    }
    if (!is_one_of(given->fit, fits, ARRAY_COUNT(fits))) {
        return wrong(place, "fit", "one of Physical, Quota", err);
    }
    if (!is_one_of(given->preemption.within_queue, within, ARRAY_COUNT(within))) {
        return wrong(place, "preemption.withinQueue",
                     "one of Never, LowerPriority, LowerOrNewerEqualPriority", err);
    }
    if (!is_one_of(given->preemption.reclaim_within_cohort, reclaim, ARRAY_COUNT(reclaim))) {
        return wrong(place, "preemption.reclaimWithinCohort", "one of Never, LowerPriority, Any",
                     err);
    }
    return RC_SUCCESS;
}

static struct rc take_queues(struct workload *workload, struct place place,
                             const struct load_queue *given, struct err *err)
{
    int64_t count = 0;
    int64_t cohorts = 0;
    place.class_index = -1;
    TRY(check_queue(&place, given, &count, &cohorts, err));
    uint32_t first = workload->queue_count;
    for (int64_t number = 0; number < count; number++) {
        TRY(add_queue(workload, &place, given, number, count, cohorts, err));
    }
    for (uint32_t i = 0; i < given->classes.count; i++) {
        struct class_numbers numbers = {.jobs = 0};
        place.class_index = i;
        TRY(check_class(&place, &given->classes.items[i], &numbers, err));
        for (uint32_t queue = first; queue < workload->queue_count; queue++) {
            TRY(add_jobs(workload, &given->classes.items[i], &numbers, queue, err));
        }
    }
    return RC_SUCCESS;
}

/* -- the rest -------------------------------------------------------------------------------------
 */

static struct rc take_event(struct workload *workload, const char *path, uint32_t number,
                            const struct load_event *given, struct err *err)
{
    bool is_one = given->ready.is_set != given->devices.is_set;
    if (!given->at.is_set || str_is_empty(given->node) || !is_one || given->devices.value < 0 ||
        given->devices.value > SIMULATE_UNITS_MAX) {
        return err_set(err, RC_INVALID,
                       "%s: events[%u]: an event has `at`, `node`, and either `ready` (true or "
                       "false) or `devices` (0 to %d)",
                       path, number, SIMULATE_UNITS_MAX);
    }
    workload->events = arena_grow(workload->arena, workload->events, workload->event_count,
                                  &workload->event_capacity, sizeof(*workload->events));
    workload->events[workload->event_count++] =
        (struct workload_event){.at_ms = given->at.ms,
                                .node = given->node,
                                .change = given->devices.is_set ? BULK_NODE_UNITS
                                          : given->ready.value  ? BULK_NODE_UP
                                                                : BULK_NODE_DOWN,
                                .units = given->devices.value};
    return RC_SUCCESS;
}

static struct rc take_cluster(struct workload *workload, const char *path,
                              const struct load_cluster *given, struct err *err)
{
    bool is_bad =
        (given->nodes.is_set &&
         (given->nodes.value < 1 || given->nodes.value > SIMULATE_NODES_MAX)) ||
        (given->devices_per_node.is_set &&
         (given->devices_per_node.value < 1 || given->devices_per_node.value > SIMULATE_UNITS_MAX));
    if (is_bad) {
        return err_set(err, RC_INVALID, "%s: cluster: nodes are 1 to %d, devicesPerNode is 1 to %d",
                       path, SIMULATE_NODES_MAX, SIMULATE_UNITS_MAX);
    }
    workload->nodes = given->nodes.value;
    workload->units_per_node = given->devices_per_node.value;
    return RC_SUCCESS;
}

struct rc workload_read_load(struct workload *workload, const char *path, struct err *err)
{
    struct str text;
    const struct load *load;
    TRY(input_read_text(workload->arena, path, &text, err));
    TRY(load_decode(workload->arena, path, text, &load, err));
    workload->load_name = str_from_c(path);
    TRY(take_cluster(workload, path, &load->cluster, err));
    for (uint32_t i = 0; i < load->queues.count; i++) {
        struct place place = {.path = path, .queue = i};
        TRY(take_queues(workload, place, &load->queues.items[i], err));
    }
    for (uint32_t i = 0; i < load->events.count; i++) {
        TRY(take_event(workload, path, i, &load->events.items[i], err));
    }
    return RC_SUCCESS;
}
