/* schema_queue.c - Queue, Cohort, ResourceFlavor (tallyman.dev/v1beta1). */
#include "schema.h"

#include "tallyman/api/queue.h"

static const struct field quota_resource_fields[] = {
    F_STRING(quota_resource, name, "name"),
    F_QUANTITY(quota_resource, nominal_quota, "nominalQuota"),
    F_QUANTITY(quota_resource, borrowing_limit, "borrowingLimit"),
    F_QUANTITY(quota_resource, lending_limit, "lendingLimit"),
};
static SCHEMA(quota_resource);

static const struct field quota_flavor_fields[] = {
    F_STRING(quota_flavor, name, "name"),
    F_OBJECT_LIST(quota_flavor, resources, "resources", quota_resource),
};
static SCHEMA(quota_flavor);

static const struct field resource_group_fields[] = {
    F_OBJECT_LIST(resource_group, flavors, "flavors", quota_flavor),
};
static SCHEMA(resource_group);

static const struct field borrow_within_cohort_fields[] = {
    F_STRING(borrow_within_cohort, policy, "policy"),
    F_INT(borrow_within_cohort, max_priority_threshold, "maxPriorityThreshold"),
};
static SCHEMA(borrow_within_cohort);

static const struct field queue_preemption_fields[] = {
    F_STRING(queue_preemption, within_queue, "withinQueue"),
    F_STRING(queue_preemption, reclaim_within_cohort, "reclaimWithinCohort"),
    F_OBJECT_PTR(queue_preemption, borrow_within_cohort, "borrowWithinCohort",
                 borrow_within_cohort),
};
static SCHEMA(queue_preemption);

static const struct field flavor_fungibility_fields[] = {
    F_STRING(flavor_fungibility, when_can_borrow, "whenCanBorrow"),
    F_STRING(flavor_fungibility, when_can_preempt, "whenCanPreempt"),
    F_STRING(flavor_fungibility, preference, "preference"),
};
static SCHEMA(flavor_fungibility);

static const struct field fair_sharing_fields[] = {
    F_QUANTITY(fair_sharing, weight, "weight"),
    F_DURATION(fair_sharing, half_life, "halfLife"),
};
static SCHEMA(fair_sharing);

static const struct field requeue_policy_fields[] = {
    F_DURATION(requeue_policy, base, "base"),
    F_DURATION(requeue_policy, max, "max"),
    F_INT(requeue_policy, limit, "limit"),
};
static SCHEMA(requeue_policy);

static const struct field queue_provisioning_fields[] = {
    F_STRING(queue_provisioning, class_name, "className"),
    F_STRING_MAP(queue_provisioning, parameters, "parameters"),
    F_STRING_LIST(queue_provisioning, managed_resources, "managedResources"),
    F_STRING_MAP(queue_provisioning, node_selector, "nodeSelectorFromDetails"),
    F_DURATION(queue_provisioning, timeout, "timeout"),
};
static SCHEMA(queue_provisioning);

static const struct field queue_spec_fields[] = {
    F_STRING(queue_spec, cohort, "cohort"),
    F_OBJECT_PTR(queue_spec, namespace_selector, "namespaceSelector", label_selector),
    F_STRING(queue_spec, queueing_strategy, "queueingStrategy"),
    F_DURATION(queue_spec, starvation_bound, "starvationBound"),
    F_OBJECT_LIST(queue_spec, resource_groups, "resourceGroups", resource_group),
    F_OBJECT_PTR(queue_spec, preemption, "preemption", queue_preemption),
    F_OBJECT_PTR(queue_spec, flavor_fungibility, "flavorFungibility", flavor_fungibility),
    F_OBJECT_PTR(queue_spec, fair_sharing, "fairSharing", fair_sharing),
    F_STRING(queue_spec, stop_policy, "stopPolicy"),
    F_STRING(queue_spec, fit, "fit"),
    F_STRING(queue_spec, undeclared_resources, "undeclaredResources"),
    F_DURATION(queue_spec, default_runtime, "defaultRuntime"),
    F_DURATION(queue_spec, max_runtime, "maxRuntime"),
    F_DURATION(queue_spec, min_runtime_protection, "minRuntimeProtection"),
    F_DURATION(queue_spec, pods_ready_timeout, "podsReadyTimeout"),
    F_OBJECT_PTR(queue_spec, requeue, "requeue", requeue_policy),
    F_STRING_LIST(queue_spec, allowed_priority_classes, "allowedPriorityClasses"),
    F_STRING_LIST(queue_spec, admission_checks, "admissionChecks"),
    F_OBJECT_PTR(queue_spec, provisioning, "provisioning", queue_provisioning),
};
static SCHEMA(queue_spec);

static const struct field usage_resource_fields[] = {
    F_STRING(usage_resource, name, "name"),
    F_STRING(usage_resource, nominal, "nominal"),
    F_STRING(usage_resource, used, "used"),
    F_STRING(usage_resource, borrowed, "borrowed"),
};
static SCHEMA(usage_resource);

static const struct field usage_flavor_fields[] = {
    F_STRING(usage_flavor, name, "name"),
    F_OBJECT_LIST(usage_flavor, resources, "resources", usage_resource),
};
static SCHEMA(usage_flavor);

static const struct field decayed_usage_fields[] = {
    F_STRING(decayed_usage, name, "name"),
    F_STRING(decayed_usage, value, "value"),
};
static SCHEMA(decayed_usage);

static const struct field fair_sharing_status_fields[] = {
    F_INT(fair_sharing_status, weighted_share, "weightedShare"),
    F_OBJECT_LIST(fair_sharing_status, decayed_usage, "decayedUsage", decayed_usage),
    F_TIME(fair_sharing_status, as_of, "asOf"),
};
static SCHEMA(fair_sharing_status);

static const struct field queue_status_fields[] = {
    F_INT(queue_status, observed_generation, "observedGeneration"),
    F_OBJECT_LIST(queue_status, conditions, "conditions", condition),
    F_INT(queue_status, pending, "pending"),
    F_INT(queue_status, admitted, "admitted"),
    F_STRING(queue_status, usage, "usage"),
    F_OBJECT_LIST(queue_status, flavors, "flavors", usage_flavor),
    F_OBJECT_PTR(queue_status, fair_sharing, "fairSharing", fair_sharing_status),
};
static SCHEMA(queue_status);

static const struct field queue_fields[] = {
    F_OBJECT(queue, meta, "metadata", object_meta),
    F_OBJECT(queue, spec, "spec", queue_spec),
    F_OBJECT(queue, status, "status", queue_status),
};
SCHEMA(queue);

static const struct field cohort_spec_fields[] = {
    F_STRING(cohort_spec, parent_name, "parentName"),
    F_OBJECT_LIST(cohort_spec, resource_groups, "resourceGroups", resource_group),
    F_OBJECT_PTR(cohort_spec, fair_sharing, "fairSharing", fair_sharing),
};
static SCHEMA(cohort_spec);

static const struct field cohort_status_fields[] = {
    F_INT(cohort_status, observed_generation, "observedGeneration"),
    F_OBJECT_LIST(cohort_status, conditions, "conditions", condition),
    F_INT(cohort_status, queues, "queues"),
    F_INT(cohort_status, cohorts, "cohorts"),
    F_STRING(cohort_status, usage, "usage"),
    F_OBJECT_LIST(cohort_status, flavors, "flavors", usage_flavor),
    F_OBJECT_PTR(cohort_status, fair_sharing, "fairSharing", fair_sharing_status),
};
static SCHEMA(cohort_status);

static const struct field cohort_fields[] = {
    F_OBJECT(cohort, meta, "metadata", object_meta),
    F_OBJECT(cohort, spec, "spec", cohort_spec),
    F_OBJECT(cohort, status, "status", cohort_status),
};
SCHEMA(cohort);

static const struct field flavor_topology_fields[] = {
    F_STRING_LIST(flavor_topology, levels, "levels"),
};
static SCHEMA(flavor_topology);

static const struct field health_condition_fields[] = {
    F_STRING(health_condition, type, "type"),
    F_STRING(health_condition, status, "status"),
};
static SCHEMA(health_condition);

static const struct field flavor_health_fields[] = {
    F_OBJECT_LIST(flavor_health, conditions, "conditions", health_condition),
    F_DURATION(flavor_health, quarantine, "quarantine"),
};
static SCHEMA(flavor_health);

static const struct field cost_rate_fields[] = {
    F_STRING(cost_rate, name, "name"),
    F_STRING(cost_rate, per_hour, "perHour"),
};
static SCHEMA(cost_rate);

static const struct field resource_flavor_spec_fields[] = {
    F_STRING_MAP(resource_flavor_spec, node_labels, "nodeLabels"),
    F_OBJECT_LIST(resource_flavor_spec, node_taints, "nodeTaints", taint),
    F_OBJECT_LIST(resource_flavor_spec, tolerations, "tolerations", toleration),
    F_OBJECT_PTR(resource_flavor_spec, topology, "topology", flavor_topology),
    F_OBJECT_PTR(resource_flavor_spec, health, "health", flavor_health),
    F_OBJECT_LIST(resource_flavor_spec, cost_rates, "costRates", cost_rate),
};
static SCHEMA(resource_flavor_spec);

static const struct field flavor_device_fields[] = {
    F_STRING(flavor_device, name, "name"),
    F_TIME(flavor_device, since, "since"),
    F_TIME(flavor_device, well_since, "wellSince"),
    F_BOOL(flavor_device, reported, "reported"),
};
static SCHEMA(flavor_device);

static const struct field resource_flavor_status_fields[] = {
    F_INT(resource_flavor_status, observed_generation, "observedGeneration"),
    F_OBJECT_LIST(resource_flavor_status, conditions, "conditions", condition),
    F_INT(resource_flavor_status, nodes, "nodes"),
    F_INT(resource_flavor_status, nodes_usable, "nodesUsable"),
    F_INT(resource_flavor_status, queues, "queues"),
    F_OBJECT_LIST(resource_flavor_status, devices, "devices", flavor_device),
};
static SCHEMA(resource_flavor_status);

static const struct field resource_flavor_fields[] = {
    F_OBJECT(resource_flavor, meta, "metadata", object_meta),
    F_OBJECT(resource_flavor, spec, "spec", resource_flavor_spec),
    F_OBJECT(resource_flavor, status, "status", resource_flavor_status),
};
SCHEMA(resource_flavor);
