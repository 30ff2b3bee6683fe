/* schema_pod.c - Pod (core/v1) and the template of one. */
#include "schema.h"

#include "tallyman/api/pod.h"

static const struct field container_claim_fields[] = {
    F_STRING(container_claim, name, "name"),
    F_STRING(container_claim, request, "request"),
};
static SCHEMA(container_claim);

static const struct field resource_requirements_fields[] = {
    F_RESOURCE_LIST(resource_requirements, requests, "requests"),
    F_RESOURCE_LIST(resource_requirements, limits, "limits"),
    F_OBJECT_LIST(resource_requirements, claims, "claims", container_claim),
};
static SCHEMA(resource_requirements);

static const struct field container_port_fields[] = {
    F_INT(container_port, container_port, "containerPort"),
    F_INT(container_port, host_port, "hostPort"),
    F_STRING(container_port, protocol, "protocol"),
    F_STRING(container_port, host_ip, "hostIP"),
};
static SCHEMA(container_port);

static const struct field container_fields[] = {
    F_STRING(container, name, "name"),
    F_STRING(container, restart_policy, "restartPolicy"),
    F_OBJECT(container, resources, "resources", resource_requirements),
    F_OBJECT_LIST(container, ports, "ports", container_port),
};
static SCHEMA(container);

static const struct field pod_resource_claim_fields[] = {
    F_STRING(pod_resource_claim, name, "name"),
    F_STRING(pod_resource_claim, resource_claim_name, "resourceClaimName"),
    F_STRING(pod_resource_claim, resource_claim_template_name, "resourceClaimTemplateName"),
};
static SCHEMA(pod_resource_claim);

static const struct field named_item_fields[] = {
    F_STRING(named_item, name, "name"),
};
static SCHEMA(named_item);

static const struct field pod_affinity_term_fields[] = {
    F_OBJECT_PTR(pod_affinity_term, label_selector, "labelSelector", label_selector),
    F_STRING(pod_affinity_term, topology_key, "topologyKey"),
    F_STRING_LIST(pod_affinity_term, namespaces, "namespaces"),
    F_OBJECT_PTR(pod_affinity_term, namespace_selector, "namespaceSelector", label_selector),
};
static SCHEMA(pod_affinity_term);

static const struct field pod_affinity_fields[] = {
    F_OBJECT_LIST(pod_affinity, required, "requiredDuringSchedulingIgnoredDuringExecution",
                  pod_affinity_term),
};
static SCHEMA(pod_affinity);

static const struct field node_affinity_fields[] = {
    F_OBJECT_PTR(node_affinity, required, "requiredDuringSchedulingIgnoredDuringExecution",
                 node_selector),
};
static SCHEMA(node_affinity);

static const struct field affinity_fields[] = {
    F_OBJECT_PTR(affinity, node_affinity, "nodeAffinity", node_affinity),
    F_OBJECT_PTR(affinity, pod_affinity, "podAffinity", pod_affinity),
    F_OBJECT_PTR(affinity, pod_anti_affinity, "podAntiAffinity", pod_affinity),
};
static SCHEMA(affinity);

static const struct field topology_spread_constraint_fields[] = {
    F_INT(topology_spread_constraint, max_skew, "maxSkew"),
    F_STRING(topology_spread_constraint, topology_key, "topologyKey"),
    F_STRING(topology_spread_constraint, when_unsatisfiable, "whenUnsatisfiable"),
    F_OBJECT_PTR(topology_spread_constraint, label_selector, "labelSelector", label_selector),
};
static SCHEMA(topology_spread_constraint);

static const struct field scheduling_group_fields[] = {
    F_STRING(scheduling_group, pod_group_name, "podGroupName"),
};
static SCHEMA(scheduling_group);

static const struct field pod_spec_fields[] = {
    F_OBJECT_LIST(pod_spec, containers, "containers", container),
    F_OBJECT_LIST(pod_spec, init_containers, "initContainers", container),
    F_OBJECT_PTR(pod_spec, resources, "resources", resource_requirements),
    F_RESOURCE_LIST(pod_spec, overhead, "overhead"),
    F_STRING_MAP(pod_spec, node_selector, "nodeSelector"),
    F_OBJECT_PTR(pod_spec, affinity, "affinity", affinity),
    F_OBJECT_LIST(pod_spec, tolerations, "tolerations", toleration),
    F_OBJECT_LIST(pod_spec, topology_spread_constraints, "topologySpreadConstraints",
                  topology_spread_constraint),
    F_OBJECT_LIST(pod_spec, resource_claims, "resourceClaims", pod_resource_claim),
    F_OBJECT_LIST(pod_spec, scheduling_gates, "schedulingGates", named_item),
    F_OBJECT_PTR(pod_spec, scheduling_group, "schedulingGroup", scheduling_group),
    F_STRING(pod_spec, node_name, "nodeName"),
    F_STRING(pod_spec, scheduler_name, "schedulerName"),
    F_STRING(pod_spec, priority_class_name, "priorityClassName"),
    F_STRING(pod_spec, runtime_class_name, "runtimeClassName"),
    F_STRING(pod_spec, restart_policy, "restartPolicy"),
    F_INT(pod_spec, priority, "priority"),
    F_INT(pod_spec, active_deadline_seconds, "activeDeadlineSeconds"),
    F_BOOL(pod_spec, host_network, "hostNetwork"),
};
SCHEMA(pod_spec);

static const struct field resource_health_fields[] = {
    F_STRING(resource_health, resource_id, "resourceID"),
    F_STRING(resource_health, health, "health"),
};
static SCHEMA(resource_health);

static const struct field resource_status_fields[] = {
    F_STRING(resource_status, name, "name"),
    F_OBJECT_LIST(resource_status, resources, "resources", resource_health),
};
static SCHEMA(resource_status);

static const struct field container_status_fields[] = {
    F_STRING(container_status, name, "name"),
    F_RESOURCE_LIST(container_status, allocated_resources, "allocatedResources"),
    F_OBJECT_PTR(container_status, resources, "resources", resource_requirements),
    F_OBJECT_LIST(container_status, allocated_resources_status, "allocatedResourcesStatus",
                  resource_status),
};
static SCHEMA(container_status);

static const struct field pod_claim_status_fields[] = {
    F_STRING(pod_claim_status, name, "name"),
    F_STRING(pod_claim_status, resource_claim_name, "resourceClaimName"),
};
static SCHEMA(pod_claim_status);

static const struct field extended_claim_status_fields[] = {
    F_STRING(extended_claim_status, resource_claim_name, "resourceClaimName"),
};
static SCHEMA(extended_claim_status);

static const struct field pod_status_fields[] = {
    F_STRING(pod_status, phase, "phase"),
    F_STRING(pod_status, reason, "reason"),
    F_OBJECT_LIST(pod_status, conditions, "conditions", condition),
    F_OBJECT_LIST(pod_status, container_statuses, "containerStatuses", container_status),
    F_OBJECT_LIST(pod_status, init_container_statuses, "initContainerStatuses", container_status),
    F_OBJECT_LIST(pod_status, resource_claim_statuses, "resourceClaimStatuses", pod_claim_status),
    F_OBJECT_PTR(pod_status, extended_resource_claim_status, "extendedResourceClaimStatus",
                 extended_claim_status),
    F_RESOURCE_LIST(pod_status, allocated_resources, "allocatedResources"),
    F_OBJECT_PTR(pod_status, resources, "resources", resource_requirements),
};
static SCHEMA(pod_status);

static const struct field pod_fields[] = {
    F_OBJECT(pod, meta, "metadata", object_meta),
    F_OBJECT(pod, spec, "spec", pod_spec),
    F_OBJECT(pod, status, "status", pod_status),
};
SCHEMA(pod);

static const struct field pod_template_fields[] = {
    F_OBJECT(pod_template, meta, "metadata", object_meta),
    F_OBJECT(pod_template, spec, "spec", pod_spec),
};
SCHEMA(pod_template);
