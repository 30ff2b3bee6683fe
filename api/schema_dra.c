/* schema_dra.c - the kinds of resource.k8s.io/v1 (k8s.io/api/resource/v1/types.go), and how its
 * older versions were written. v1beta2 is as v1. */
#include "schema.h"

#include "tallyman/api/dra.h"

static const struct field cel_selector_fields[] = {
    F_STRING(cel_selector, expression, "expression"),
};
static SCHEMA(cel_selector);

static const struct field device_selector_fields[] = {
    F_OBJECT_PTR(device_selector, cel, "cel", cel_selector),
};
static SCHEMA(device_selector);

static const struct field device_class_spec_fields[] = {
    F_OBJECT_LIST(device_class_spec, selectors, "selectors", device_selector),
    F_STRING(device_class_spec, extended_resource_name, "extendedResourceName"),
};
static SCHEMA(device_class_spec);

static const struct field device_class_fields[] = {
    F_OBJECT(device_class, meta, "metadata", object_meta),
    F_OBJECT(device_class, spec, "spec", device_class_spec),
};
SCHEMA(device_class);

static const struct field device_attribute_fields[] = {
    F_INT(device_attribute, int_value, "int"),
    F_BOOL(device_attribute, bool_value, "bool"),
    F_STRING(device_attribute, string_value, "string"),
    F_STRING(device_attribute, version_value, "version"),
};
static SCHEMA(device_attribute);

static const struct field capacity_range_fields[] = {
    F_QUANTITY(capacity_range, min, "min"),
    F_QUANTITY(capacity_range, max, "max"),
    F_QUANTITY(capacity_range, step, "step"),
};
static SCHEMA(capacity_range);

static const struct field capacity_request_policy_fields[] = {
    F_QUANTITY(capacity_request_policy, default_value, "default"),
    F_STRING_LIST(capacity_request_policy, valid_values, "validValues"),
    F_OBJECT_PTR(capacity_request_policy, valid_range, "validRange", capacity_range),
};
static SCHEMA(capacity_request_policy);

static const struct field device_capacity_fields[] = {
    F_QUANTITY(device_capacity, value, "value"),
    F_OBJECT_PTR(device_capacity, request_policy, "requestPolicy", capacity_request_policy),
};
static SCHEMA(device_capacity);

static const struct field counter_fields[] = {
    F_QUANTITY(counter, value, "value"),
};
static SCHEMA(counter);

static const struct field counter_set_fields[] = {
    F_STRING(counter_set, name, "name"),
    F_OBJECT_MAP(counter_set, counters, "counters", counter),
};
static SCHEMA(counter_set);

static const struct field counter_consumption_fields[] = {
    F_STRING(counter_consumption, counter_set, "counterSet"),
    F_OBJECT_MAP(counter_consumption, counters, "counters", counter),
};
static SCHEMA(counter_consumption);

static const struct field device_fields[] = {
    F_STRING(device, name, "name"),
    F_OBJECT_MAP(device, attributes, "attributes", device_attribute),
    F_OBJECT_MAP(device, capacity, "capacity", device_capacity),
    F_OBJECT_LIST(device, consumes_counters, "consumesCounters", counter_consumption),
    F_OBJECT_LIST(device, taints, "taints", taint),
    F_STRING(device, node_name, "nodeName"),
    F_OBJECT_PTR(device, node_selector, "nodeSelector", node_selector),
    F_BOOL(device, all_nodes, "allNodes"),
    F_BOOL(device, allow_multiple_allocations, "allowMultipleAllocations"),
    F_BOOL(device, binds_to_node, "bindsToNode"),
    F_STRING_LIST(device, binding_conditions, "bindingConditions"),
};
static SCHEMA(device);

static const struct field resource_pool_fields[] = {
    F_STRING(resource_pool, name, "name"),
    F_INT(resource_pool, generation, "generation"),
    F_INT(resource_pool, resource_slice_count, "resourceSliceCount"),
};
static SCHEMA(resource_pool);

static const struct field resource_slice_spec_fields[] = {
    F_STRING(resource_slice_spec, driver, "driver"),
    F_OBJECT(resource_slice_spec, pool, "pool", resource_pool),
    F_STRING(resource_slice_spec, node_name, "nodeName"),
    F_OBJECT_PTR(resource_slice_spec, node_selector, "nodeSelector", node_selector),
    F_BOOL(resource_slice_spec, all_nodes, "allNodes"),
    F_BOOL(resource_slice_spec, per_device_node_selection, "perDeviceNodeSelection"),
    F_OBJECT_LIST(resource_slice_spec, shared_counters, "sharedCounters", counter_set),
    F_OBJECT_LIST(resource_slice_spec, devices, "devices", device),
};
static SCHEMA(resource_slice_spec);

static const struct field resource_slice_fields[] = {
    F_OBJECT(resource_slice, meta, "metadata", object_meta),
    F_OBJECT(resource_slice, spec, "spec", resource_slice_spec),
};
SCHEMA(resource_slice);

static const struct field capacity_requirements_fields[] = {
    F_RESOURCE_LIST(capacity_requirements, requests, "requests"),
};
static SCHEMA(capacity_requirements);

static const struct field device_request_exact_fields[] = {
    F_STRING(device_request_exact, name, "name"),
    F_STRING(device_request_exact, device_class_name, "deviceClassName"),
    F_OBJECT_LIST(device_request_exact, selectors, "selectors", device_selector),
    F_STRING(device_request_exact, allocation_mode, "allocationMode"),
    F_INT(device_request_exact, count, "count"),
    F_BOOL(device_request_exact, admin_access, "adminAccess"),
    F_OBJECT_LIST(device_request_exact, tolerations, "tolerations", toleration),
    F_OBJECT_PTR(device_request_exact, capacity, "capacity", capacity_requirements),
};
static SCHEMA(device_request_exact);

static const struct field device_request_fields[] = {
    F_STRING(device_request, name, "name"),
    F_OBJECT_PTR(device_request, exactly, "exactly", device_request_exact),
    F_OBJECT_LIST(device_request, first_available, "firstAvailable", device_request_exact),
};
static SCHEMA(device_request);

/* v1beta1: a device's fields are in `basic`, and those of `exactly` stand in the request itself. */
static const struct older_shape older_shapes[] = {
    {.schema = &device_schema, .flattened = "basic"},
    {.schema = &device_request_schema,
     .inlined = &device_request_exact_schema,
     .offset = offsetof(struct device_request, exactly)},
};

const struct older_shape *older_shape_of(const struct schema *schema)
{
    for (size_t i = 0; i < ARRAY_COUNT(older_shapes); i++) {
        if (older_shapes[i].schema == schema) {
            return &older_shapes[i];
        }
    }
    return NULL;
}

static const struct field device_constraint_fields[] = {
    F_STRING_LIST(device_constraint, requests, "requests"),
    F_STRING(device_constraint, match_attribute, "matchAttribute"),
    F_STRING(device_constraint, distinct_attribute, "distinctAttribute"),
};
static SCHEMA(device_constraint);

static const struct field device_claim_fields[] = {
    F_OBJECT_LIST(device_claim, requests, "requests", device_request),
    F_OBJECT_LIST(device_claim, constraints, "constraints", device_constraint),
};
SCHEMA(device_claim);

static const struct field resource_claim_spec_fields[] = {
    F_OBJECT(resource_claim_spec, devices, "devices", device_claim),
};
static SCHEMA(resource_claim_spec);

static const struct field allocation_result_fields[] = {
    F_STRING(allocation_result, request, "request"),
    F_STRING(allocation_result, driver, "driver"),
    F_STRING(allocation_result, pool, "pool"),
    F_STRING(allocation_result, device, "device"),
    F_BOOL(allocation_result, admin_access, "adminAccess"),
    F_STRING(allocation_result, share_id, "shareID"),
    F_OBJECT_LIST(allocation_result, tolerations, "tolerations", toleration),
    F_RESOURCE_LIST(allocation_result, consumed_capacity, "consumedCapacity"),
};
static SCHEMA(allocation_result);

static const struct field device_allocation_fields[] = {
    F_OBJECT_LIST(device_allocation, results, "results", allocation_result),
};
static SCHEMA(device_allocation);

static const struct field claim_allocation_fields[] = {
    F_OBJECT(claim_allocation, devices, "devices", device_allocation),
    F_OBJECT_PTR(claim_allocation, node_selector, "nodeSelector", node_selector),
};
static SCHEMA(claim_allocation);

static const struct field claim_consumer_fields[] = {
    F_STRING(claim_consumer, api_group, "apiGroup"),
    F_STRING(claim_consumer, resource, "resource"),
    F_STRING(claim_consumer, name, "name"),
    F_STRING(claim_consumer, uid, "uid"),
};
static SCHEMA(claim_consumer);

static const struct field resource_claim_status_fields[] = {
    F_OBJECT_PTR(resource_claim_status, allocation, "allocation", claim_allocation),
    F_OBJECT_LIST(resource_claim_status, reserved_for, "reservedFor", claim_consumer),
};
static SCHEMA(resource_claim_status);

static const struct field resource_claim_fields[] = {
    F_OBJECT(resource_claim, meta, "metadata", object_meta),
    F_OBJECT(resource_claim, spec, "spec", resource_claim_spec),
    F_OBJECT(resource_claim, status, "status", resource_claim_status),
};
SCHEMA(resource_claim);

static const struct field claim_template_spec_fields[] = {
    F_OBJECT(claim_template_spec, meta, "metadata", object_meta),
    F_OBJECT(claim_template_spec, spec, "spec", resource_claim_spec),
};
static SCHEMA(claim_template_spec);

static const struct field resource_claim_template_fields[] = {
    F_OBJECT(resource_claim_template, meta, "metadata", object_meta),
    F_OBJECT(resource_claim_template, spec, "spec", claim_template_spec),
};
SCHEMA(resource_claim_template);

static const struct field device_taint_selector_fields[] = {
    F_STRING(device_taint_selector, driver, "driver"),
    F_STRING(device_taint_selector, pool, "pool"),
    F_STRING(device_taint_selector, device, "device"),
};
static SCHEMA(device_taint_selector);

static const struct field device_taint_rule_spec_fields[] = {
    F_OBJECT_PTR(device_taint_rule_spec, device_selector, "deviceSelector", device_taint_selector),
    F_OBJECT(device_taint_rule_spec, taint, "taint", taint),
};
static SCHEMA(device_taint_rule_spec);

static const struct field device_taint_rule_fields[] = {
    F_OBJECT(device_taint_rule, meta, "metadata", object_meta),
    F_OBJECT(device_taint_rule, spec, "spec", device_taint_rule_spec),
};
SCHEMA(device_taint_rule);
