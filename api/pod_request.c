/* A template. Pods that exist are in pod_request_live.c. */
#include "tallyman/api/pod_request.h"

#include "limit_range.h"

/* A pair of lists that is filled together. */
struct exact_resources {
    struct exact_list requests;
    struct exact_list limits;
};

/* What one LimitRange gives to a container. Of its items of type Container the last one to name a
 * resource counts; each is completed first, as the API server does on creation: max fills default,
 * default fills defaultRequest, and min fills the rest of that. */
static struct exact_resources limit_range_defaults(struct counting *counting,
                                                   const struct limit_range *range)
{
    struct exact_resources all = {.requests = {.count = 0}};
    for (uint32_t i = 0; i < range->spec.limits.count; i++) {
        const struct limit_range_item *item = &range->spec.limits.items[i];
        if (!str_eq_c(item->type, "Container")) {
            continue;
        }
        struct place place = {.owner = "LimitRange", .name = range->meta.name};
        struct exact_list limits = {.count = 0};
        struct exact_list requests = {.count = 0};
        struct exact_list max = {.count = 0};
        struct exact_list min = {.count = 0};
        place.field = "default";
        exact_load(counting, &limits, &place, &item->default_limits);
        place.field = "defaultRequest";
        exact_load(counting, &requests, &place, &item->default_request);
        place.field = "max";
        exact_load(counting, &max, &place, &item->max);
        place.field = "min";
        exact_load(counting, &min, &place, &item->min);
        exact_fill_list(counting, &limits, &max);
        exact_fill_list(counting, &requests, &limits);
        exact_fill_list(counting, &requests, &min);
        exact_fill_list(counting, &limits, &all.limits);
        exact_fill_list(counting, &requests, &all.requests);
        all = (struct exact_resources){requests, limits};
    }
    return all;
}

/* All LimitRanges of the namespace. The API server takes them in no certain order, first come first
 * served; here they come by name. */
static struct exact_resources context_defaults(struct counting *counting,
                                               const struct request_context *context)
{
    struct exact_resources all = {.requests = {.count = 0}};
    for (uint32_t i = 0; i < context->limit_range_count; i++) {
        struct exact_resources one = limit_range_defaults(counting, context->limit_ranges[i]);
        exact_fill_list(counting, &all.requests, &one.requests);
        exact_fill_list(counting, &all.limits, &one.limits);
    }
    return all;
}

static void load_resources(struct counting *counting, struct exact_resources *to,
                           struct place place, const struct resource_requirements *from)
{
    place.field = "resources.requests";
    exact_load(counting, &to->requests, &place, &from->requests);
    place.field = "resources.limits";
    exact_load(counting, &to->limits, &place, &from->limits);
}

/* Pod-level resources are completed only where some are written (DefaultPodLevelResources, on by
 * default since 1.37). Its last step fills limits, on which no request depends. */
static struct exact_resources template_pod_level(struct counting *counting,
                                                 const struct pod_spec *spec,
                                                 const struct exact_list *request_sum,
                                                 const struct exact_list *limit_sum)
{
    struct exact_resources level = {.requests = {.count = 0}};
    if (spec->resources == NULL) {
        return level;
    }
    load_resources(counting, &level, (struct place){.owner = "pod"}, spec->resources);
    if (level.requests.count == 0 && level.limits.count == 0) {
        return level;
    }
    for (uint32_t i = 0; i < limit_sum->count; i++) {
        const struct exact_amount *amount = &limit_sum->items[i];
        if (resource_is_hugepages(amount->resource) &&
            exact_find(&level.limits, amount->resource) == NULL) {
            exact_set(counting, &level.limits, amount->resource, amount->nano);
        }
    }
    for (uint32_t i = 0; i < request_sum->count; i++) {
        const struct exact_amount *amount = &request_sum->items[i];
        if (resource_is_cpu_or_memory(amount->resource) &&
            exact_find(&level.requests, amount->resource) == NULL) {
            exact_set(counting, &level.requests, amount->resource, amount->nano);
        }
    }
    exact_fill_list(counting, &level.requests, &level.limits);
    return level;
}

static void add_template_overhead(struct counting *counting, struct exact_list *sum,
                                  const struct pod_spec *spec, const struct runtime_class *class)
{
    struct exact_list overhead = {.count = 0};
    if (spec->overhead.count > 0) {
        struct place place = {.owner = "pod", .field = "overhead"};
        exact_load(counting, &overhead, &place, &spec->overhead);
    } else if (class != NULL && class->overhead != NULL) {
        struct place place = {"RuntimeClass", class->meta.name, "overhead.podFixed"};
        exact_load(counting, &overhead, &place, &class->overhead->pod_fixed);
    }
    exact_add_list(counting, sum, &overhead);
}

/* LimitRanger takes cpu and memory alone from the pod's own resources, and no overhead. */
static struct exact_list limited_sum(struct counting *counting, const struct exact_list *sum,
                                     const struct exact_list *pod_level)
{
    struct exact_list all = {.count = 0};
    exact_add_list(counting, &all, sum);
    for (uint32_t i = 0; i < pod_level->count; i++) {
        const struct exact_amount *amount = &pod_level->items[i];
        if (resource_is_cpu_or_memory(amount->resource)) {
            exact_set(counting, &all, amount->resource, amount->nano);
        }
    }
    return all;
}

struct rc pod_template_requests(struct arena *arena, const struct pod_spec *spec,
                                const struct request_context *context,
                                struct amount_list *ret_amounts, struct err *err)
{
    struct counting counting = {.arena = arena, .err = err};
    struct exact_resources defaults = context_defaults(&counting, context);
    struct exact_list *requests = container_lists_new(&counting, spec);
    struct exact_list *limits = container_lists_new(&counting, spec);
    for (uint32_t i = 0; i < container_total(spec) && !rc_failed(counting.failure); i++) {
        const struct container *container = container_at(spec, i);
        struct place place = {.owner = container_owner(spec, i), .name = container->name};
        struct exact_resources own = {.requests = {.count = 0}};
        load_resources(&counting, &own, place, &container->resources);
        exact_fill_list(&counting, &own.requests, &own.limits);
        exact_fill_list(&counting, &own.limits, &defaults.limits);
        exact_fill_list(&counting, &own.requests, &defaults.requests);
        requests[i] = own.requests;
        limits[i] = own.limits;
        const struct limited limited = {false, place.owner, place.name, &requests[i], &limits[i]};
        limits_check(&counting, context, &limited);
    }
    TRY(counting.failure);

    struct exact_list sum = containers_sum(&counting, spec, requests);
    struct exact_list limit_sum = containers_sum(&counting, spec, limits);
    struct exact_resources level = template_pod_level(&counting, spec, &sum, &limit_sum);
    struct exact_list asked = limited_sum(&counting, &sum, &level.requests);
    struct exact_list limited = limited_sum(&counting, &limit_sum, &level.limits);
    const struct limited pod = {.is_pod = true, .requests = &asked, .limits = &limited};
    limits_check(&counting, context, &pod);
    replace_by_pod_level(&counting, &sum, &level.requests);
    add_template_overhead(&counting, &sum, spec, context->runtime_class);
    return counting_finish(&counting, &sum, ret_amounts);
}
