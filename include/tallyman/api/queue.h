/* queue.h - Queue, Cohort, ResourceFlavor (tallyman.dev/v1beta1). docs/reference has the meaning of
 * each field. */
#pragma once

#include "tallyman/api/meta.h"
#include "tallyman/api/quantity.h"
#include "tallyman/api/selector.h"

struct quota_resource {
    struct str name;
    struct opt_quantity nominal_quota;
    struct opt_quantity borrowing_limit;
    struct opt_quantity lending_limit;
};

struct quota_resource_list {
    struct quota_resource *items;
    uint32_t count;
};

struct quota_flavor {
    struct str name;
    struct quota_resource_list resources;
};

struct quota_flavor_list {
    struct quota_flavor *items;
    uint32_t count;
};

struct resource_group {
    struct quota_flavor_list flavors;
};

struct resource_group_list {
    struct resource_group *items;
    uint32_t count;
};

struct borrow_within_cohort {
    struct str policy;
    struct opt_int max_priority_threshold;
};

struct queue_preemption {
    struct str within_queue;
    struct str reclaim_within_cohort;
    struct borrow_within_cohort *borrow_within_cohort;
};

struct flavor_fungibility {
    struct str when_can_borrow;
    struct str when_can_preempt;
    struct str preference;
};

struct fair_sharing {
    struct opt_quantity weight;
    struct opt_duration half_life;
};

struct requeue_policy {
    struct opt_duration base;
    struct opt_duration max;
    struct opt_int limit;
};

/* What an autoscaler is asked for before a gang starts (ProvisioningRequest). */
struct queue_provisioning {
    struct str class_name;
    struct string_map parameters;
    struct str_list managed_resources; /* gangs that ask for none of them start without; empty: all
                                          ask */
    struct string_map node_selector;   /* label key -> the provisioning detail that is its value */
    struct opt_duration timeout;
};

struct queue_spec {
    struct str cohort;
    struct label_selector *namespace_selector; /* NULL: absent, nobody may use it */
    struct str queueing_strategy;
    struct opt_duration starvation_bound;
    struct resource_group_list resource_groups;
    struct queue_preemption *preemption;
    struct flavor_fungibility *flavor_fungibility;
    struct fair_sharing *fair_sharing;
    struct str stop_policy;
    struct str fit;
    struct str undeclared_resources;
    struct opt_duration default_runtime;
    struct opt_duration max_runtime;
    struct opt_duration min_runtime_protection;
    struct opt_duration pods_ready_timeout;
    struct requeue_policy *requeue;
    struct str_list allowed_priority_classes;
    struct str_list admission_checks;
    struct queue_provisioning *provisioning;
};

/* One resource of one flavor, as texts for people: "6", "500m", "1Gi". */
struct usage_resource {
    struct str name;
    struct str nominal;
    struct str used;
    struct str borrowed;
};

struct usage_resource_list {
    struct usage_resource *items;
    uint32_t count;
};

struct usage_flavor {
    struct str name;
    struct usage_resource_list resources;
};

struct usage_flavor_list {
    struct usage_flavor *items;
    uint32_t count;
};

struct decayed_usage {
    struct str name; /* of the resource */
    struct str value;
};

struct decayed_usage_list {
    struct decayed_usage *items;
    uint32_t count;
};

/* What fair sharing remembers: the usage as it was at `as_of`, decayed from then on. */
struct fair_sharing_status {
    struct opt_int weighted_share;
    struct decayed_usage_list decayed_usage;
    struct opt_time as_of;
};

struct queue_status {
    struct opt_int observed_generation;
    struct condition_list conditions;
    struct opt_int pending;
    struct opt_int admitted;
    struct str usage; /* "gpu.example.com 4/6", for the table */
    struct usage_flavor_list flavors;
    struct fair_sharing_status *fair_sharing;
};

struct queue {
    struct object_meta meta;
    struct queue_spec spec;
    struct queue_status status;
};

struct cohort_spec {
    struct str parent_name;
    struct resource_group_list resource_groups;
    struct fair_sharing *fair_sharing;
};

struct cohort_status {
    struct opt_int observed_generation;
    struct condition_list conditions;
    struct opt_int queues;
    struct opt_int cohorts;
    struct str usage;
    struct usage_flavor_list flavors;
    struct fair_sharing_status *fair_sharing;
};

struct cohort {
    struct object_meta meta;
    struct cohort_spec spec;
    struct cohort_status status;
};

struct flavor_topology {
    struct str_list levels; /* node-label keys, widest first */
};

/* A node with that condition at that status isn't healthy. */
struct health_condition {
    struct str type;
    struct str status;
};

struct health_condition_list {
    struct health_condition *items;
    uint32_t count;
};

struct flavor_health {
    struct health_condition_list conditions;
    struct opt_duration quarantine;
};

struct cost_rate {
    struct str name;     /* of the resource */
    struct str per_hour; /* a decimal number, in no named currency */
};

struct cost_rate_list {
    struct cost_rate *items;
    uint32_t count;
};

struct resource_flavor_spec {
    struct string_map node_labels;
    struct taint_list node_taints;
    struct toleration_list tolerations;
    struct flavor_topology *topology;
    struct flavor_health *health;
    struct cost_rate_list cost_rates;
};

/* A device of the flavor that is ailing, or in quarantine. */
struct flavor_device {
    struct str name; /* driver/pool/device */
    struct opt_time since;
    struct opt_time well_since; /* not set: it is ailing still */
    struct opt_bool reported;   /* by a pod's status */
};

struct flavor_device_list {
    struct flavor_device *items;
    uint32_t count;
};

struct resource_flavor_status {
    struct opt_int observed_generation;
    struct condition_list conditions;
    struct opt_int nodes;
    struct opt_int nodes_usable;
    struct opt_int queues;
    struct flavor_device_list devices;
};

struct resource_flavor {
    struct object_meta meta;
    struct resource_flavor_spec spec;
    struct resource_flavor_status status;
};
