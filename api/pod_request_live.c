/* A pod that exists: what it asks for, was promised and has been given may differ while it is being
 * resized. */
#include "tallyman/api/pod_request.h"

#include "pod_count.h"

/* The node can't do the resize that spec asks for: spec doesn't count, then. */
static bool is_resize_infeasible(const struct pod *pod)
{
    const struct condition *pending = condition_find(&pod->status.conditions, "PodResizePending");
    return pending != NULL && str_eq_c(pending->reason, "Infeasible");
}

static const struct container_status *find_status(const struct container_status_list *list,
                                                  struct str name)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i].name, name)) {
            return &list->items[i];
        }
    }
    return NULL;
}

static const struct container_status *pod_container_status(const struct pod *pod, struct str name)
{
    const struct container_status *status = find_status(&pod->status.container_statuses, name);
    return status != NULL ? status : find_status(&pod->status.init_container_statuses, name);
}

static bool list_is_set(const struct resource_list *list)
{
    return list->items != NULL;
}

/* Absent, as opposed to empty: what falls back to the next source. */
static const struct resource_list list_absent = {.items = NULL};

static const struct resource_list *actual_requests(const struct resource_requirements *resources)
{
    return resources == NULL ? &list_absent : &resources->requests;
}

/* The three ways in which a running pod's containers are counted. */
struct pod_views {
    struct exact_list *spec;
    struct exact_list *allocated; /* what the kubelet has agreed to */
    struct exact_list *actual;    /* what it has set */
};

static void load_container_views(struct counting *counting, const struct pod *pod, uint32_t index,
                                 struct pod_views *views)
{
    const struct container *container = container_at(&pod->spec, index);
    const struct container_status *status = pod_container_status(pod, container->name);
    struct place place = {container_owner(&pod->spec, index), container->name,
                          "resources.requests"};
    exact_load(counting, &views->spec[index], &place, &container->resources.requests);

    const struct resource_list *allocated =
        status == NULL ? &list_absent : &status->allocated_resources;
    const struct resource_list *actual =
        status == NULL ? &list_absent : actual_requests(status->resources);
    bool is_spec_counted = !is_resize_infeasible(pod);
    place.field = "status.allocatedResources";
    if (list_is_set(allocated)) {
        exact_load(counting, &views->allocated[index], &place, allocated);
    } else if (is_spec_counted) {
        views->allocated[index] = views->spec[index];
    }
    place.field = "status.resources.requests";
    if (list_is_set(actual)) {
        exact_load(counting, &views->actual[index], &place, actual);
    } else {
        views->actual[index] = views->allocated[index];
    }
}

/* Pod-level status, where the kubelet writes it, already holds the sum over the containers. */
static bool has_pod_level_status(const struct pod *pod)
{
    return list_is_set(&pod->status.allocated_resources) &&
           list_is_set(actual_requests(pod->status.resources));
}

static struct exact_list load_pod_list(struct counting *counting, const char *field,
                                       const struct resource_list *from)
{
    struct exact_list list = {.count = 0};
    struct place place = {.owner = "pod", .field = field};
    exact_load(counting, &list, &place, from);
    return list;
}

static struct exact_list pod_containers_sum(struct counting *counting, const struct pod *pod)
{
    struct exact_list sum = {.count = 0};
    struct pod_views views = {container_lists_new(counting, &pod->spec),
                              container_lists_new(counting, &pod->spec),
                              container_lists_new(counting, &pod->spec)};
    for (uint32_t i = 0; i < container_total(&pod->spec); i++) {
        load_container_views(counting, pod, i, &views);
        if (rc_failed(counting->failure)) {
            return sum;
        }
    }
    struct exact_list allocated;
    struct exact_list actual;
    if (has_pod_level_status(pod)) {
        allocated =
            load_pod_list(counting, "status.allocatedResources", &pod->status.allocated_resources);
        actual = load_pod_list(counting, "status.resources.requests",
                               actual_requests(pod->status.resources));
    } else {
        allocated = containers_sum(counting, &pod->spec, views.allocated);
        actual = containers_sum(counting, &pod->spec, views.actual);
    }
    if (!is_resize_infeasible(pod)) {
        sum = containers_sum(counting, &pod->spec, views.spec);
    }
    exact_max_list(counting, &sum, &actual);
    exact_max_list(counting, &sum, &allocated);
    return sum;
}

static bool has_pod_level_request(const struct exact_list *requests)
{
    for (uint32_t i = 0; i < requests->count; i++) {
        if (resource_is_pod_level(requests->items[i].resource)) {
            return true;
        }
    }
    return false;
}

static struct exact_list pod_level_requests(struct counting *counting, const struct pod *pod)
{
    struct exact_list level = {.count = 0};
    if (pod->spec.resources == NULL) {
        return level;
    }
    level = load_pod_list(counting, "resources.requests", &pod->spec.resources->requests);
    if (!has_pod_level_request(&level) || pod->status.resources == NULL) {
        return level;
    }
    struct exact_list actual =
        load_pod_list(counting, "status.resources.requests", &pod->status.resources->requests);
    struct exact_list allocated =
        load_pod_list(counting, "status.allocatedResources", &pod->status.allocated_resources);
    if (is_resize_infeasible(pod)) {
        level = (struct exact_list){.count = 0};
    }
    exact_max_list(counting, &level, &actual);
    exact_max_list(counting, &level, &allocated);
    return level;
}

struct rc pod_requests(struct arena *arena, const struct pod *pod, struct amount_list *ret_amounts,
                       struct err *err)
{
    struct counting counting = {.arena = arena, .err = err};
    struct exact_list sum = pod_containers_sum(&counting, pod);
    TRY(counting.failure);
    struct exact_list level = pod_level_requests(&counting, pod);
    replace_by_pod_level(&counting, &sum, &level);
    struct exact_list overhead = load_pod_list(&counting, "overhead", &pod->spec.overhead);
    exact_add_list(&counting, &sum, &overhead);
    return counting_finish(&counting, &sum, ret_amounts);
}
