/* node.h - Node, Namespace, LimitRange, RuntimeClass and PriorityClass. */
#pragma once

#include "tallyman/api/pod.h"

struct node_spec {
    struct opt_bool unschedulable;
    struct taint_list taints;
};

struct node_status {
    struct resource_list allocatable;
    struct condition_list conditions;
};

struct node {
    struct object_meta meta;
    struct node_spec spec;
    struct node_status status;
};

struct namespace_object {
    struct object_meta meta;
};

struct limit_range_item {
    struct str type; /* Container Pod PersistentVolumeClaim */
    struct resource_list max;
    struct resource_list min;
    struct resource_list default_limits; /* JSON name: default */
    struct resource_list default_request;
    struct resource_list max_limit_request_ratio; /* numbers, not amounts */
};

struct limit_range_item_list {
    struct limit_range_item *items;
    uint32_t count;
};

struct limit_range_spec {
    struct limit_range_item_list limits;
};

struct limit_range {
    struct object_meta meta;
    struct limit_range_spec spec;
};

struct runtime_overhead {
    struct resource_list pod_fixed;
};

struct runtime_scheduling {
    struct string_map node_selector;
    struct toleration_list tolerations;
};

struct runtime_class {
    struct object_meta meta;
    struct str handler;
    struct runtime_overhead *overhead;
    struct runtime_scheduling *scheduling;
};

struct priority_class {
    struct object_meta meta;
    struct opt_int value;
    struct opt_bool global_default;
    struct str preemption_policy;
};
