/* schedule_node.c - which node a pod may go to, and which it would rather. Sources:
 * kube-scheduler's plugins NodeUnschedulable, TaintToleration, NodeAffinity and NodeResourcesFit.
 */
#include "sim_internal.h"

#include "tallyman/base/alloc.h"

/* What NodeResourcesFit scores a pod with that asks for nothing. */
#define DEFAULT_CPU_MILLI    100
#define DEFAULT_MEMORY_BYTES (200 * INT64_C(1024) * 1024)

static struct node_load *load_find(const struct sim *sim, struct str name)
{
    struct node_load *load = NULL;
    HASH_FIND(hh, sim->loads, name.ptr, (unsigned)name.len, load);
    return load;
}

void load_add(struct sim *sim, struct sim_object *pod, struct str node_name)
{
    if (pod->pod.load != NULL) {
        return;
    }
    struct node_load *load = load_find(sim, node_name);
    if (load == NULL) {
        load = MEM_NEW(struct node_load);
        char *name = mem_alloc(node_name.len + 1);
        memcpy(name, node_name.ptr, node_name.len);
        name[node_name.len] = '\0';
        load->name = (struct str){name, node_name.len};
        HASH_ADD_KEYPTR(hh, sim->loads, load->name.ptr, (unsigned)load->name.len, load);
    }
    pod->pod.load = load;
    pod->pod.next_on_node = load->pods;
    load->pods = pod;
}

void load_remove(struct sim *sim, struct sim_object *pod)
{
    (void)sim;
    if (pod->pod.load == NULL) {
        return;
    }
    struct sim_object **link = &pod->pod.load->pods;
    while (*link != pod) {
        link = &(*link)->pod.next_on_node;
    }
    *link = pod->pod.next_on_node;
    pod->pod.load = NULL;
}

void loads_free(struct sim *sim)
{
    struct node_load *load;
    struct node_load *next;
    HASH_ITER (hh, sim->loads, load, next) {
        HASH_DEL(sim->loads, load);
        mem_free((void *)(uintptr_t)load->name.ptr);
        mem_free(load);
    }
}

static int64_t amount_of(const struct sim_object *pod, struct str resource)
{
    const struct amount_list *amounts = &pod->pod.amounts;
    for (uint32_t i = 0; i < amounts->count; i++) {
        if (str_eq(amounts->items[i].resource, resource)) {
            return amounts->items[i].value;
        }
    }
    return str_eq_c(resource, RESOURCE_PODS) ? 1 : 0;
}

int64_t node_used(const struct sim *sim, const struct node *node, struct str resource)
{
    const struct node_load *load = load_find(sim, node->meta.name);
    int64_t used = 0;
    for (const struct sim_object *pod = load == NULL ? NULL : load->pods; pod != NULL;
         pod = pod->pod.next_on_node) {
        used = sat_add(used, amount_of(pod, resource));
    }
    return used;
}

int64_t node_allocatable(const struct node *node, struct str resource)
{
    const struct resource_list *list = &node->status.allocatable;
    for (uint32_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i].name, resource)) {
            return resource_amount_from_quantity(resource, list->items[i].value, false);
        }
    }
    return 0;
}

static bool resource_fits(const struct sim *sim, const struct sim_object *pod,
                          const struct node *node, struct str resource)
{
    int64_t asked = amount_of(pod, resource);
    return asked == 0 ||
           sat_add(node_used(sim, node, resource), asked) <= node_allocatable(node, resource);
}

static bool resources_fit(struct sim *sim, const struct sim_object *pod, const struct node *node,
                          struct str *ret_resource)
{
    if (!resource_fits(sim, pod, node, STR(RESOURCE_PODS))) {
        *ret_resource = STR(RESOURCE_PODS);
        return false;
    }
    const struct amount_list *amounts = &pod->pod.amounts;
    for (uint32_t i = 0; i < amounts->count; i++) {
        if (!extended_is_by_devices(sim, node, amounts->items[i].resource) &&
            !resource_fits(sim, pod, node, amounts->items[i].resource)) {
            *ret_resource = amounts->items[i].resource;
            return false;
        }
    }
    return true;
}

static bool is_selected(const struct pod_spec *spec, const struct node *node)
{
    const struct node_selector *required =
        spec->affinity == NULL || spec->affinity->node_affinity == NULL
            ? NULL
            : spec->affinity->node_affinity->required;
    return node_labels_contain(&spec->node_selector, &node->meta.labels) &&
           node_selector_matches(required, &node->meta.labels, node->meta.name);
}

enum rejection node_filter(struct sim *sim, const struct sim_object *pod, const struct node *node,
                           struct str *ret_resource)
{
    const struct pod_spec *spec = &object_pod(pod)->spec;
    if (!node_object_is_ready(node)) {
        return REJECT_NOT_READY;
    }
    if (node->spec.unschedulable.is_set && node->spec.unschedulable.value) {
        return REJECT_UNSCHEDULABLE;
    }
    if (taints_find_untolerated(&node->spec.taints, &spec->tolerations) != NULL) {
        return REJECT_TAINT;
    }
    if (!is_selected(spec, node)) {
        return REJECT_AFFINITY;
    }
    return resources_fit(sim, pod, node, ret_resource) ? REJECT_NONE : REJECT_RESOURCE;
}

bool node_takes(struct sim *sim, const struct sim_object *pod, const struct node *node)
{
    const struct pod_spec *spec = &object_pod(pod)->spec;
    const struct taint_list *taints = &node->spec.taints;
    for (uint32_t i = 0; i < taints->count; i++) {
        struct taint_list one = {.items = &taints->items[i], .count = 1};
        if (str_eq_c(taints->items[i].effect, "NoExecute") &&
            taints_find_untolerated(&one, &spec->tolerations) != NULL) {
            return false;
        }
    }
    bool takes = is_selected(spec, node) && node_used(sim, node, STR(RESOURCE_PODS)) <=
                                                node_allocatable(node, STR(RESOURCE_PODS));
    const struct amount_list *amounts = &pod->pod.amounts;
    for (uint32_t i = 0; takes && i < amounts->count; i++) {
        struct str resource = amounts->items[i].resource;
        takes = amounts->items[i].value == 0 || extended_is_by_devices(sim, node, resource) ||
                node_used(sim, node, resource) <= node_allocatable(node, resource);
    }
    return takes;
}

static int64_t scored_amount(const struct sim_object *pod, struct str resource)
{
    int64_t asked = amount_of(pod, resource);
    if (asked == 0) {
        return str_eq_c(resource, "cpu") ? DEFAULT_CPU_MILLI : DEFAULT_MEMORY_BYTES;
    }
    return asked;
}

static int64_t least_allocated(const struct sim *sim, const struct sim_object *pod,
                               const struct node *node, struct str resource)
{
    int64_t capacity = node_allocatable(node, resource);
    const struct node_load *load = load_find(sim, node->meta.name);
    int64_t used = scored_amount(pod, resource);
    for (const struct sim_object *other = load == NULL ? NULL : load->pods; other != NULL;
         other = other->pod.next_on_node) {
        used = sat_add(used, scored_amount(other, resource));
    }
    if (capacity <= 0 || used > capacity) {
        return 0;
    }
    return (int64_t)((i128)(capacity - used) * 100 / capacity);
}

int64_t node_score(const struct sim *sim, const struct sim_object *pod, const struct node *node)
{
    return (least_allocated(sim, pod, node, STR("cpu")) +
            least_allocated(sim, pod, node, STR("memory"))) /
           2;
}
