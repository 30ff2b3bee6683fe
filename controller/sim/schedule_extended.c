/* schedule_extended.c - extended resources that a DeviceClass serves: what kube-scheduler's plugin
 * does about them (dynamicresources/extendeddynamicresources.go), one request per resource. */
#include "sim_internal.h"

#define IMPLICIT_PREFIX "deviceclass.resource.kubernetes.io/"
#define ANNOTATION_MADE "resource.kubernetes.io/extended-resource-claim"

/* Of two classes with one name the newer, then the one whose own name comes first; NULL: none. */
static const struct device_class *class_of(struct sim *sim, struct str resource)
{
    struct str prefix = STR(IMPLICIT_PREFIX);
    if (str_find_char(resource, '/') == resource.len) {
        return NULL;
    }
    if (str_starts_with(resource, prefix)) {
        struct sim_object *named = api_find(sim, KIND_DEVICE_CLASS, str_skip(resource, prefix.len));
        return named == NULL ? NULL : named->value;
    }
    const struct device_class *found = NULL;
    for (struct sim_object *object = api_first(sim, KIND_DEVICE_CLASS); object != NULL;
         object = api_next(object)) {
        const struct device_class *class = object->value;
        if (str_eq(class->spec.extended_resource_name, resource) &&
            (found == NULL ||
             class->meta.creation_timestamp.ms > found->meta.creation_timestamp.ms)) {
            found = class; /* they come by their names */
        }
    }
    return found;
}

bool extended_is_by_devices(struct sim *sim, const struct node *node, struct str resource)
{
    return class_of(sim, resource) != NULL && node_allocatable(node, resource) <= 0;
}

bool extended_claim_for(struct sim *sim, const struct placement *placement, const struct node *node,
                        struct pod_claim *ret_claim)
{
    const struct amount_list *amounts = &placement->pod->pod.amounts;
    struct resource_claim *claim = NULL;
    for (uint32_t i = 0; i < amounts->count; i++) {
        struct str resource = amounts->items[i].resource;
        if (!extended_is_by_devices(sim, node, resource)) {
            continue;
        }
        struct device_request_exact *exactly =
            ARENA_NEW(&sim->scratch, struct device_request_exact);
        *exactly =
            (struct device_request_exact){.device_class_name = class_of(sim, resource)->meta.name,
                                          .allocation_mode = STR("ExactCount"),
                                          .count = {true, amounts->items[i].value}};
        if (claim == NULL) {
            claim = ARENA_NEW(&sim->scratch, struct resource_claim);
            claim->spec.devices.requests.items =
                ARENA_ARRAY(&sim->scratch, struct device_request, amounts->count);
        }
        struct device_request_list *requests = &claim->spec.devices.requests;
        requests->items[requests->count] = (struct device_request){
            .name = arena_format(&sim->scratch, "container-0-request-%u", requests->count),
            .exactly = exactly};
        requests->count++;
    }
    *ret_claim = (struct pod_claim){.object = claim};
    return claim != NULL;
}

void extended_bind(struct sim *sim, const struct placement *placement,
                   struct claim_allocation *allocation)
{
    struct sim_object *object = placement->pod;
    const struct pod *pod = object_pod(object);
    struct resource_claim claim = *placement->claims[placement->own_claim_count].object;
    claim.meta.namespace_name = pod->meta.namespace_name;
    claim.meta.name =
        arena_format(&sim->scratch, STR_FMT "-extended-resources", STR_ARG(pod->meta.name));
    claim.meta.annotations =
        api_map_with(sim, &claim.meta.annotations, STR(ANNOTATION_MADE), STR("true"));
    struct owner_reference owner = {.api_version = STR("v1"),
                                    .kind = STR("Pod"),
                                    .name = pod->meta.name,
                                    .uid = pod->meta.uid,
                                    .controller = {true, true}};
    claim.meta.owner_references = (struct owner_reference_list){&owner, 1};
    struct claim_consumer consumer = {
        .resource = STR("pods"), .name = pod->meta.name, .uid = pod->meta.uid};
    claim.status.allocation = allocation;
    claim.status.reserved_for = (struct claim_consumer_list){&consumer, 1};
    struct extended_claim_status status = {.resource_claim_name =
                                               arena_copy_str(&sim->scratch, claim.meta.name)};
    (void)api_create(sim, KIND_RESOURCE_CLAIM, &claim);
    struct pod next = *object_pod(object);
    next.status.extended_resource_claim_status = &status;
    api_update(sim, object, &next, false);
}
