/* dra.h - dynamic resource allocation (resource.k8s.io/v1): DeviceClass, ResourceSlice,
 * ResourceClaim, ResourceClaimTemplate. Source: k8s.io/api/resource/v1/types.go. */
#pragma once

#include "tallyman/api/meta.h"
#include "tallyman/api/quantity.h"
#include "tallyman/api/selector.h"

struct cel_selector {
    struct str expression;
};

struct device_selector {
    struct cel_selector *cel;
};

struct device_selector_list {
    struct device_selector *items;
    uint32_t count;
};

struct device_class_spec {
    struct device_selector_list selectors;
    struct str extended_resource_name;
};

struct device_class {
    struct object_meta meta;
    struct device_class_spec spec;
};

/* One value; exactly one member is present. */
struct device_attribute {
    struct str key; /* "model" or "domain/model" */
    struct opt_int int_value;
    struct opt_bool bool_value;
    struct str string_value;
    struct str version_value;
};

struct device_attribute_map {
    struct device_attribute *items;
    uint32_t count;
};

struct capacity_range {
    struct opt_quantity min;
    struct opt_quantity max;
    struct opt_quantity step;
};

/* How much of a capacity one share of the device may take. */
struct capacity_request_policy {
    struct opt_quantity default_value;
    struct str_list valid_values; /* quantities, ascending */
    struct capacity_range *valid_range;
};

struct device_capacity {
    struct str key;
    struct opt_quantity value;
    struct capacity_request_policy *request_policy;
};

struct device_capacity_map {
    struct device_capacity *items;
    uint32_t count;
};

struct counter {
    struct str key;
    struct opt_quantity value;
};

struct counter_map {
    struct counter *items;
    uint32_t count;
};

struct counter_set {
    struct str name;
    struct counter_map counters;
};

struct counter_set_list {
    struct counter_set *items;
    uint32_t count;
};

struct counter_consumption {
    struct str counter_set;
    struct counter_map counters;
};

struct counter_consumption_list {
    struct counter_consumption *items;
    uint32_t count;
};

struct device {
    struct str name;
    struct device_attribute_map attributes;
    struct device_capacity_map capacity;
    struct counter_consumption_list consumes_counters;
    struct taint_list taints;
    struct str node_name;
    struct node_selector *node_selector;
    struct opt_bool all_nodes;
    struct opt_bool allow_multiple_allocations;
    struct opt_bool binds_to_node;
    struct str_list binding_conditions;
};

struct device_list {
    struct device *items;
    uint32_t count;
};

struct resource_pool {
    struct str name;
    struct opt_int generation;
    struct opt_int resource_slice_count;
};

struct resource_slice_spec {
    struct str driver;
    struct resource_pool pool;
    struct str node_name;
    struct node_selector *node_selector;
    struct opt_bool all_nodes;
    struct opt_bool per_device_node_selection;
    struct counter_set_list shared_counters;
    struct device_list devices;
};

struct resource_slice {
    struct object_meta meta;
    struct resource_slice_spec spec;
};

struct capacity_requirements {
    struct resource_list requests;
};

/* `exactly`, and one alternative of `firstAvailable` (which has a name of its own). */
struct device_request_exact {
    struct str name;
    struct str device_class_name;
    struct device_selector_list selectors;
    struct str allocation_mode; /* ExactCount (default) All */
    struct opt_int count;       /* default 1 */
    struct opt_bool admin_access;
    struct toleration_list tolerations;
    struct capacity_requirements *capacity;
};

struct device_request_exact_list {
    struct device_request_exact *items;
    uint32_t count;
};

struct device_request {
    struct str name;
    struct device_request_exact *exactly;
    struct device_request_exact_list first_available;
};

struct device_request_list {
    struct device_request *items;
    uint32_t count;
};

struct device_constraint {
    struct str_list requests;
    struct str match_attribute;
    struct str distinct_attribute;
};

struct device_constraint_list {
    struct device_constraint *items;
    uint32_t count;
};

struct device_claim {
    struct device_request_list requests;
    struct device_constraint_list constraints;
};

struct resource_claim_spec {
    struct device_claim devices;
};

struct allocation_result {
    struct str request;
    struct str driver;
    struct str pool;
    struct str device;
    struct opt_bool admin_access;
    struct str share_id;                /* of a device that may be allocated several times */
    struct toleration_list tolerations; /* of the request that it was allocated for */
    struct resource_list consumed_capacity;
};

struct allocation_result_list {
    struct allocation_result *items;
    uint32_t count;
};

struct device_allocation {
    struct allocation_result_list results;
};

struct claim_allocation {
    struct device_allocation devices;
    struct node_selector *node_selector;
};

struct claim_consumer {
    struct str api_group;
    struct str resource; /* pods, podgroups, … */
    struct str name;
    struct str uid;
};

struct claim_consumer_list {
    struct claim_consumer *items;
    uint32_t count;
};

struct resource_claim_status {
    struct claim_allocation *allocation; /* NULL: not allocated, so it uses nothing */
    struct claim_consumer_list reserved_for;
};

struct resource_claim {
    struct object_meta meta;
    struct resource_claim_spec spec;
    struct resource_claim_status status;
};

struct claim_template_spec {
    struct object_meta meta;
    struct resource_claim_spec spec;
};

struct resource_claim_template {
    struct object_meta meta;
    struct claim_template_spec spec;
};

/* What is absent doesn't narrow the choice. */
struct device_taint_selector {
    struct str driver;
    struct str pool;
    struct str device;
};

struct device_taint_rule_spec {
    struct device_taint_selector *device_selector; /* NULL: no device at all */
    struct taint taint;
};

/* Taints devices of other people's ResourceSlices. */
struct device_taint_rule {
    struct object_meta meta;
    struct device_taint_rule_spec spec;
};

/* Whether the rule is about that device of the slice. */
bool device_taint_rule_selects(const struct device_taint_rule *rule,
                               const struct resource_slice_spec *slice, struct str device_name);
/* NoSchedule or NoExecute: an effect that isn't known is None. */
bool device_taint_keeps_off(const struct taint *taint);
/* Until when a claim with these tolerations may hold a device of that taint: INT64_MAX for good, 0
 * not at all. Only for NoExecute there is anything between (tolerationSeconds). */
int64_t device_taint_tolerated_until_ms(const struct taint *taint,
                                        const struct toleration_list *tolerations);
