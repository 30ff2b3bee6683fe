/* pod.h - Pod (core/v1), as far as scheduling and accounting look at it. */
#pragma once

#include "tallyman/api/meta.h"
#include "tallyman/api/quantity.h"
#include "tallyman/api/selector.h"

struct container_claim {
    struct str name;    /* of pod.spec.resourceClaims[] */
    struct str request; /* one request of that claim; absent: all */
};

struct container_claim_list {
    struct container_claim *items;
    uint32_t count;
};

struct resource_requirements {
    struct resource_list requests;
    struct resource_list limits;
    struct container_claim_list claims;
};

struct container_port {
    struct opt_int container_port;
    struct opt_int host_port;
    struct str protocol; /* absent: TCP */
    struct str host_ip;
};

struct container_port_list {
    struct container_port *items;
    uint32_t count;
};

struct container {
    struct str name;
    struct str restart_policy; /* "Always" on an init container makes it a sidecar */
    struct resource_requirements resources;
    struct container_port_list ports;
};

struct container_list {
    struct container *items;
    uint32_t count;
};

struct pod_resource_claim {
    struct str name;
    struct str resource_claim_name;          /* either this … */
    struct str resource_claim_template_name; /* … or this */
};

struct pod_resource_claim_list {
    struct pod_resource_claim *items;
    uint32_t count;
};

struct named_item {
    struct str name;
};

struct named_item_list {
    struct named_item *items;
    uint32_t count;
};

struct pod_affinity_term {
    struct label_selector *label_selector; /* NULL: absent, matches no pod */
    struct str topology_key;
    struct str_list namespaces;
    struct label_selector *namespace_selector;
};

struct pod_affinity_term_list {
    struct pod_affinity_term *items;
    uint32_t count;
};

struct pod_affinity {
    struct pod_affinity_term_list required; /* requiredDuringSchedulingIgnoredDuringExecution */
};

struct node_affinity {
    struct node_selector *required; /* requiredDuringSchedulingIgnoredDuringExecution */
};

struct affinity {
    struct node_affinity *node_affinity;
    struct pod_affinity *pod_affinity;
    struct pod_affinity *pod_anti_affinity;
};

struct topology_spread_constraint {
    struct opt_int max_skew;
    struct str topology_key;
    struct str when_unsatisfiable;
    struct label_selector *label_selector;
};

struct topology_spread_constraint_list {
    struct topology_spread_constraint *items;
    uint32_t count;
};

/* The PodGroup that the pod belongs to (GenericWorkload, 1.37). */
struct scheduling_group {
    struct str pod_group_name;
};

struct pod_spec {
    struct container_list containers;
    struct container_list init_containers;
    struct resource_requirements *resources; /* pod level */
    struct resource_list overhead;
    struct string_map node_selector;
    struct affinity *affinity;
    struct toleration_list tolerations;
    struct topology_spread_constraint_list topology_spread_constraints;
    struct pod_resource_claim_list resource_claims;
    struct named_item_list scheduling_gates;
    struct scheduling_group *scheduling_group;
    struct str node_name;
    struct str scheduler_name;
    struct str priority_class_name;
    struct str runtime_class_name;
    struct str restart_policy;
    struct opt_int priority;
    struct opt_int active_deadline_seconds;
    struct opt_bool host_network;
};

/* One device that a container has, and how its driver says it is. */
struct resource_health {
    struct str resource_id; /* JSON name: resourceID */
    struct str health;      /* Healthy Unhealthy Unknown */
};

struct resource_health_list {
    struct resource_health *items;
    uint32_t count;
};

struct resource_status {
    struct str name; /* of a resource, or "claim:NAME" or "claim:NAME/REQUEST" */
    struct resource_health_list resources;
};

struct resource_status_list {
    struct resource_status *items;
    uint32_t count;
};

struct container_status {
    struct str name;
    struct resource_list allocated_resources;
    struct resource_requirements *resources; /* what the kubelet has really given */
    struct resource_status_list allocated_resources_status;
};

struct container_status_list {
    struct container_status *items;
    uint32_t count;
};

struct pod_claim_status {
    struct str name;                /* of pod.spec.resourceClaims[] */
    struct str resource_claim_name; /* the generated claim */
};

struct pod_claim_status_list {
    struct pod_claim_status *items;
    uint32_t count;
};

struct extended_claim_status {
    struct str resource_claim_name;
};

struct pod_status {
    struct str phase; /* Pending Running Succeeded Failed Unknown */
    struct str reason;
    struct condition_list conditions;
    struct container_status_list container_statuses;
    struct container_status_list init_container_statuses;
    struct pod_claim_status_list resource_claim_statuses;
    struct extended_claim_status *extended_resource_claim_status;
    struct resource_list allocated_resources; /* pod level */
    struct resource_requirements *resources;  /* pod level */
};

struct pod {
    struct object_meta meta;
    struct pod_spec spec;
    struct pod_status status;
};

struct pod_template {
    struct object_meta meta; /* labels and annotations */
    struct pod_spec spec;
};

/* Succeeded or Failed: it holds nothing any more. */
bool pod_is_terminal(const struct pod *pod);
bool pod_is_ready(const struct pod *pod);

/* How far a walk over a pod's host ports has come; {0} at its beginning. */
struct host_port_cursor {
    uint32_t container; /* init containers first */
    uint32_t port;
};

/* The next port of its node that the pod takes for as long as it runs; 0: no more. */
int64_t pod_next_host_port(const struct pod_spec *spec, struct host_port_cursor *cursor);

/* The affinity after a merge PATCH: `sets` gives the required node terms (NULL: nothing), `drops`
 * is absent or names what goes ("affinity", "nodeAffinity", "required"). In the arena; its parts
 * are borrowed. */
struct affinity *affinity_merge(struct arena *arena, const struct affinity *before,
                                const struct affinity *sets, struct str drops);
