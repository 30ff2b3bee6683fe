/* schema_node.c - Node, Namespace, LimitRange, RuntimeClass and PriorityClass. */
#include "schema.h"

#include "tallyman/api/node.h"

static const struct field node_spec_fields[] = {
    F_BOOL(node_spec, unschedulable, "unschedulable"),
    F_OBJECT_LIST(node_spec, taints, "taints", taint),
};
static SCHEMA(node_spec);

static const struct field node_status_fields[] = {
    F_RESOURCE_LIST(node_status, allocatable, "allocatable"),
    F_OBJECT_LIST(node_status, conditions, "conditions", condition),
};
static SCHEMA(node_status);

static const struct field node_fields[] = {
    F_OBJECT(node, meta, "metadata", object_meta),
    F_OBJECT(node, spec, "spec", node_spec),
    F_OBJECT(node, status, "status", node_status),
};
SCHEMA(node);

static const struct field namespace_object_fields[] = {
    F_OBJECT(namespace_object, meta, "metadata", object_meta),
};
SCHEMA(namespace_object);

static const struct field limit_range_item_fields[] = {
    F_STRING(limit_range_item, type, "type"),
    F_RESOURCE_LIST(limit_range_item, max, "max"),
    F_RESOURCE_LIST(limit_range_item, min, "min"),
    F_RESOURCE_LIST(limit_range_item, default_limits, "default"),
    F_RESOURCE_LIST(limit_range_item, default_request, "defaultRequest"),
    F_RESOURCE_LIST(limit_range_item, max_limit_request_ratio, "maxLimitRequestRatio"),
};
static SCHEMA(limit_range_item);

static const struct field limit_range_spec_fields[] = {
    F_OBJECT_LIST(limit_range_spec, limits, "limits", limit_range_item),
};
static SCHEMA(limit_range_spec);

static const struct field limit_range_fields[] = {
    F_OBJECT(limit_range, meta, "metadata", object_meta),
    F_OBJECT(limit_range, spec, "spec", limit_range_spec),
};
SCHEMA(limit_range);

static const struct field runtime_overhead_fields[] = {
    F_RESOURCE_LIST(runtime_overhead, pod_fixed, "podFixed"),
};
static SCHEMA(runtime_overhead);

static const struct field runtime_scheduling_fields[] = {
    F_STRING_MAP(runtime_scheduling, node_selector, "nodeSelector"),
    F_OBJECT_LIST(runtime_scheduling, tolerations, "tolerations", toleration),
};
static SCHEMA(runtime_scheduling);

static const struct field runtime_class_fields[] = {
    F_OBJECT(runtime_class, meta, "metadata", object_meta),
    F_STRING(runtime_class, handler, "handler"),
    F_OBJECT_PTR(runtime_class, overhead, "overhead", runtime_overhead),
    F_OBJECT_PTR(runtime_class, scheduling, "scheduling", runtime_scheduling),
};
SCHEMA(runtime_class);

static const struct field priority_class_fields[] = {
    F_OBJECT(priority_class, meta, "metadata", object_meta),
    F_INT(priority_class, value, "value"),
    F_BOOL(priority_class, global_default, "globalDefault"),
    F_STRING(priority_class, preemption_policy, "preemptionPolicy"),
};
SCHEMA(priority_class);
