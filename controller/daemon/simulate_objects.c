/* simulate_objects.c - the cluster of a load or a trace, as objects. */
#include "simulate_workload.h"

#include "tallyman/api/node.h"
#include "tallyman/api/queue.h"
#include "tallyman/base/limits.h"

#define NODE_PODS 100000 /* the resource is what counts */

static bool manifests_have(const struct manifest_list *manifests, enum object_kind kind,
                           struct str name)
{
    for (uint32_t i = 0; i < manifests->count; i++) {
        const struct object *object = &manifests->items[i].object;
        if (object->kind == kind && str_eq(object->value->name, name)) {
            return true;
        }
    }
    return false;
}

static struct resource_amount amount_of(struct arena *arena, struct str name, int64_t units)
{
    return (struct resource_amount){.name = name,
                                    .value = {(i128)units * 1000000000},
                                    .text = arena_format(arena, "%lld", (long long)units)};
}

static struct rc load_nodes(const struct workload *workload, struct bulk *bulk, struct err *err)
{
    for (int64_t i = 0; i < workload->nodes && !workload->has_nodes; i++) {
        struct resource_amount amounts[] = {
            amount_of(workload->arena, workload->resource, workload->units_per_node),
            amount_of(workload->arena, STR("pods"), NODE_PODS)};
        struct condition ready = {.type = STR("Ready"), .status = STR("True")};
        struct str name = arena_format(workload->arena, "node-%lld", (long long)i + 1);
        struct node node = {.meta = {.name = name, .uid = name},
                            .status = {.allocatable = {.items = amounts, .count = 2},
                                       .conditions = {.items = &ready, .count = 1}}};
        TRY(bulk_load(bulk, &(struct object){KIND_NODE, &node.meta}, err));
    }
    return RC_SUCCESS;
}

/* Even shares; the first queues get what doesn't divide. */
static int64_t nominal_of(const struct workload *workload, uint32_t index)
{
    const struct workload_queue *queue = &workload->queues[index];
    if (queue->nominal != WORKLOAD_NO_LIMIT) {
        return queue->nominal;
    }
    int64_t devices = workload_devices(workload);
    int64_t count = workload->queue_count;
    return devices / count + (index < devices % count ? 1 : 0);
}

static struct opt_quantity quantity_of(struct arena *arena, int64_t units)
{
    return (struct opt_quantity){.is_set = units != WORKLOAD_NO_LIMIT,
                                 .value = {(i128)(units < 0 ? 0 : units) * 1000000000},
                                 .text = arena_format(arena, "%lld", (long long)units)};
}

static struct rc load_queue(const struct workload *workload, uint32_t index, struct bulk *bulk,
                            struct err *err)
{
    const struct workload_queue *given = &workload->queues[index];
    struct arena *arena = workload->arena;
    struct quota_resource resource = {.name = workload->resource,
                                      .nominal_quota =
                                          quantity_of(arena, nominal_of(workload, index)),
                                      .borrowing_limit = quantity_of(arena, given->borrowing),
                                      .lending_limit = quantity_of(arena, given->lending)};
    struct quota_flavor flavor = {.name = STR("default"), .resources = {&resource, 1}};
    struct resource_group group = {.flavors = {&flavor, 1}};
    struct label_selector everybody = {.match_labels = {NULL, 0}};
    struct queue_preemption preemption = {.within_queue = given->within,
                                          .reclaim_within_cohort = given->reclaim};
    struct fair_sharing fair_sharing = {.weight = quantity_of(arena, given->weight)};
    struct queue queue = {.meta = {.name = given->name, .uid = given->name},
                          .spec = {.cohort = given->cohort,
                                   .namespace_selector = &everybody,
                                   .queueing_strategy = given->strategy,
                                   .fit = given->fit,
                                   .resource_groups = {&group, 1}}};
    if (given->starvation_ms > 0) {
        queue.spec.starvation_bound = (struct opt_duration){true, given->starvation_ms};
    }
    if (str_is_set(given->within) || str_is_set(given->reclaim)) {
        queue.spec.preemption = &preemption;
    }
    if (given->weight != WORKLOAD_NO_LIMIT) {
        queue.spec.fair_sharing = &fair_sharing;
    }
    return bulk_load(bulk, &(struct object){KIND_QUEUE, &queue.meta}, err);
}

/* A PriorityClass "priority-50" is worth 50; see simulate_load.c. */
static struct rc load_priority(struct bulk *bulk, struct str name, struct err *err)
{
    int64_t value = 0;
    (void)str_to_i64(str_skip(name, sizeof("priority-") - 1), &value);
    struct priority_class object = {.meta = {.name = name, .uid = name}, .value = {true, value}};
    return bulk_load(bulk, &(struct object){KIND_PRIORITY_CLASS, &object.meta}, err);
}

/* The namespaces and PriorityClasses that the jobs name: few, and mostly the same as the job before
 * them. */
struct names {
    struct str *items;
    uint32_t count;
    uint32_t capacity;
};

static bool names_add(struct arena *arena, struct names *names, struct str name)
{
    for (uint32_t i = names->count; i > 0; i--) {
        if (str_eq(names->items[i - 1], name)) {
            return false;
        }
    }
    names->items =
        arena_grow(arena, names->items, names->count, &names->capacity, sizeof(struct str));
    names->items[names->count++] = name;
    return true;
}

static struct rc load_names(const struct workload *workload, const struct manifest_list *manifests,
                            struct bulk *bulk, struct err *err)
{
    struct names namespaces = {.items = NULL};
    struct names priorities = {.items = NULL};
    struct str last_namespace = STR_NONE;
    struct str last_priority = STR_NONE;
    for (uint32_t i = 0; i < workload->gang_count; i++) {
        struct str space = workload->gangs[i].namespace_name;
        struct str priority = workload->gangs[i].priority_class;
        if (!str_eq(space, last_namespace) && names_add(workload->arena, &namespaces, space) &&
            !manifests_have(manifests, KIND_NAMESPACE, space)) {
            struct namespace_object object = {.meta = {.name = space, .uid = space}};
            TRY(bulk_load(bulk, &(struct object){KIND_NAMESPACE, &object.meta}, err));
        }
        if (str_is_set(priority) && !str_eq(priority, last_priority) &&
            names_add(workload->arena, &priorities, priority) &&
            !manifests_have(manifests, KIND_PRIORITY_CLASS, priority)) {
            TRY(load_priority(bulk, priority, err));
        }
        last_namespace = space;
        last_priority = priority;
    }
    return RC_SUCCESS;
}

static struct rc load_events(const struct workload *workload, struct bulk *bulk, struct err *err)
{
    for (uint32_t i = 0; i < workload->event_count; i++) {
        const struct workload_event *event = &workload->events[i];
        if (!bulk_node_at(bulk, event->at_ms, event->node, event->change, event->units)) {
            return err_set(err, RC_INVALID,
                           STR_FMT ": events[%u].node: there is no node \"" STR_FMT
                                   "\"; the nodes that are made are node-1 to node-%lld",
                           STR_ARG(workload->load_name), i, STR_ARG(event->node),
                           (long long)workload->nodes);
        }
    }
    return RC_SUCCESS;
}

/* A load's pods are made by nobody's request, so no autoscaler answers. */
static struct rc load_manifest(struct bulk *bulk, const struct object *object, struct err *err)
{
    const struct queue *queue = object->kind == KIND_QUEUE ? (const void *)object->value : NULL;
    if (queue != NULL && queue->spec.admission_checks.count > 0) {
        return err_set(err, RC_INVALID,
                       "Queue " STR_FMT ": spec.admissionChecks isn't played with loads and "
                       "traces; leave it out, or play the Jobs as manifests",
                       STR_ARG(queue->meta.name));
    }
    return bulk_load(bulk, object, err);
}

struct rc workload_load_objects(struct workload *workload, const struct manifest_list *manifests,
                                struct bulk *bulk, struct err *err)
{
    for (uint32_t i = 0; i < manifests->count; i++) {
        const struct manifest *manifest = &manifests->items[i];
        if (manifest->object.kind == KIND_NONE) {
            continue;
        }
        TRY(err_prefix(err, load_manifest(bulk, &manifest->object, err), STR_FMT ":%u",
                       STR_ARG(manifest->file_name), manifest->line));
    }
    TRY(load_nodes(workload, bulk, err));
    TRY(load_names(workload, manifests, bulk, err));
    for (uint32_t i = 0; i < workload->queue_count; i++) {
        if (!manifests_have(manifests, KIND_QUEUE, workload->queues[i].name)) {
            TRY(load_queue(workload, i, bulk, err));
        }
    }
    return load_events(workload, bulk, err);
}
