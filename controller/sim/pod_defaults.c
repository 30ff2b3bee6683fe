/* pod_defaults.c - what the API server makes of a new pod before it is stored. Sources:
 * k8s.io/kubernetes pkg/apis/core/v1/defaults.go, plugin/pkg/admission/{limitranger,priority,
 * runtimeclass}. */
#include "sim_internal.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/time_text.h"

static struct resource_amount *amount_find(const struct resource_list *list, struct str name)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i].name, name)) {
            return &list->items[i];
        }
    }
    return NULL;
}

/* `list` with what it lacks of `extra`. */
static void amounts_fill(struct sim *sim, struct resource_list *list,
                         const struct resource_list *extra)
{
    if (extra->count == 0) {
        return;
    }
    struct resource_list out = {.count = list->count};
    out.items = ARENA_ARRAY(&sim->scratch, struct resource_amount, list->count + extra->count);
    for (uint32_t i = 0; i < list->count; i++) {
        out.items[i] = list->items[i];
    }
    for (uint32_t i = 0; i < extra->count; i++) {
        if (amount_find(&out, extra->items[i].name) == NULL) {
            out.items[out.count++] = extra->items[i];
        }
    }
    *list = out;
}

/* A LimitRange's own defaults: the limit from the maximum, the request from the limit, then from
 * the minimum. */
static void container_limit_range(struct sim *sim, struct container *container,
                                  const struct limit_range_item *item)
{
    struct resource_list limits = item->default_limits;
    struct resource_list requests = item->default_request;
    amounts_fill(sim, &limits, &item->max);
    amounts_fill(sim, &requests, &limits);
    amounts_fill(sim, &requests, &item->min);
    amounts_fill(sim, &container->resources.limits, &limits);
    amounts_fill(sim, &container->resources.requests, &requests);
}

static void container_defaults(struct sim *sim, struct container *container,
                               struct str namespace_name)
{
    amounts_fill(sim, &container->resources.requests, &container->resources.limits);
    for (struct sim_object *object = api_first(sim, KIND_LIMIT_RANGE); object != NULL;
         object = api_next(object)) {
        const struct limit_range *range = object->value;
        if (!str_eq(range->meta.namespace_name, namespace_name)) {
            continue;
        }
        for (uint32_t i = 0; i < range->spec.limits.count; i++) {
            if (str_eq_c(range->spec.limits.items[i].type, "Container")) {
                container_limit_range(sim, container, &range->spec.limits.items[i]);
            }
        }
    }
}

static void containers_defaults(struct sim *sim, struct container_list *list,
                                struct str namespace_name)
{
    struct container *copies = ARENA_ARRAY(&sim->scratch, struct container, list->count + 1);
    for (uint32_t i = 0; i < list->count; i++) {
        copies[i] = list->items[i];
        container_defaults(sim, &copies[i], namespace_name);
    }
    list->items = list->count == 0 ? list->items : copies;
}

static void set_priority(struct sim *sim, struct pod_spec *spec)
{
    int64_t value = 0;
    bool is_found = false;
    for (struct sim_object *object = api_first(sim, KIND_PRIORITY_CLASS); object != NULL;
         object = api_next(object)) {
        const struct priority_class *class = object->value;
        bool is_named = str_eq(class->meta.name, spec->priority_class_name);
        bool is_default = str_is_empty(spec->priority_class_name) && class->global_default.is_set &&
                          class->global_default.value;
        bool is_lower = !is_found || class->value.value < value;
        if (is_named || (is_default && is_lower)) {
            value = class->value.value;
            is_found = true;
        }
    }
    spec->priority = (struct opt_int){true, value};
}

static void set_runtime_class(struct sim *sim, struct pod_spec *spec)
{
    struct sim_object *object = str_is_empty(spec->runtime_class_name)
                                    ? NULL
                                    : api_find(sim, KIND_RUNTIME_CLASS, spec->runtime_class_name);
    if (object == NULL) {
        return;
    }
    const struct runtime_class *class = object->value;
    if (class->overhead != NULL) {
        spec->overhead = class->overhead->pod_fixed;
    }
    if (class->scheduling == NULL) {
        return;
    }
    const struct string_map *selector = &class->scheduling->node_selector;
    for (uint32_t i = 0; i < selector->count; i++) {
        spec->node_selector = api_map_with(sim, &spec->node_selector, selector->items[i].key,
                                           selector->items[i].value);
    }
    const struct toleration_list *extra = &class->scheduling->tolerations;
    struct toleration *all =
        ARENA_ARRAY(&sim->scratch, struct toleration, spec->tolerations.count + extra->count + 1);
    for (uint32_t i = 0; i < spec->tolerations.count; i++) {
        all[i] = spec->tolerations.items[i];
    }
    for (uint32_t i = 0; i < extra->count; i++) {
        all[spec->tolerations.count + i] = extra->items[i];
    }
    spec->tolerations = (struct toleration_list){all, spec->tolerations.count + extra->count};
}

void pod_set_defaults(struct sim *sim, struct pod *pod)
{
    containers_defaults(sim, &pod->spec.containers, pod->meta.namespace_name);
    containers_defaults(sim, &pod->spec.init_containers, pod->meta.namespace_name);
    if (!pod->spec.priority.is_set) {
        set_priority(sim, &pod->spec);
    }
    set_runtime_class(sim, &pod->spec);
    if (!str_is_set(pod->status.phase)) {
        pod->status.phase = STR("Pending");
    }
}

/* The pod's own annotation, else its Job's; they were checked as they were loaded. */
static int64_t run_for_ms(const struct sim_object *pod)
{
    struct str text = string_map_get(&object_meta(pod)->annotations, SIM_ANNOTATION_RUN_FOR);
    if (!str_is_set(text) && pod->pod.job != NULL) {
        text = string_map_get(&object_meta(pod->pod.job)->annotations, SIM_ANNOTATION_RUN_FOR);
    }
    int64_t ms;
    return str_is_set(text) && duration_parse(text, &ms) ? ms : -1;
}

/* A copy for the pod's life: the views of the first one point into a value that will be replaced.
 */
static struct amount_list amounts_keep(const struct amount_list *from)
{
    struct amount_list list = {.count = from->count};
    size_t bytes = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        bytes += sizeof(struct amount) + from->items[i].resource.len;
    }
    if (from->count == 0) {
        return list;
    }
    list.items = mem_alloc(bytes);
    char *text = (char *)(list.items + from->count);
    for (uint32_t i = 0; i < from->count; i++) {
        struct str name = from->items[i].resource;
        memcpy(text, name.ptr, name.len);
        list.items[i] = (struct amount){{text, name.len}, from->items[i].value};
        text += name.len;
    }
    return list;
}

void pod_read_notes(struct sim *sim, struct sim_object *pod)
{
    struct pod_notes *notes = &pod->pod;
    struct amount_list amounts = {.count = 0};
    struct err err;
    if (!rc_failed(pod_requests(&sim->scratch, object_pod(pod), &amounts, &err))) {
        notes->amounts = amounts_keep(&amounts);
    }
    struct str index = string_map_get(&object_meta(pod)->labels, LABEL_INDEX);
    notes->index = -1;
    if (str_is_set(index)) {
        (void)str_to_i64(index, &notes->index);
    }
    notes->run_for_ms = run_for_ms(pod);
}
