/* admission.h - Admission (tallyman.dev/v1beta1), and the two annotations that ride on a Job. */
#pragma once

#include "tallyman/api/meta.h"
#include "tallyman/api/quantity.h"
#include "tallyman/api/selector.h"

struct requeue_state {
    struct opt_int count;
    struct opt_time at;
};

/* The explanation: the evidence behind status.message as data, so that any client can print it. Its
 * texts hold no name of another namespace's objects. */

struct explanation_action {
    struct str kind; /* Wait ChangeJob AskAdmin Bug */
    struct str message;
    struct str command;
};

struct explanation_action_list {
    struct explanation_action *items;
    uint32_t count;
};

struct explanation_resource {
    struct str name;
    struct str asked;
    struct str used;
    struct str free;
    struct str total;
};

struct explanation_resource_list {
    struct explanation_resource *items;
    uint32_t count;
};

/* A gang that holds what is asked for. */
struct explanation_blocker {
    struct str name;
    struct str queue;
    struct str size;
    struct opt_time since;
    struct opt_time until;
};

struct explanation_blocker_list {
    struct explanation_blocker *items;
    uint32_t count;
};

struct explanation_ahead {
    struct opt_int gangs;
    struct opt_int devices;
    struct opt_int pods;
};

struct explanation_quota {
    struct str kind; /* Queue Cohort */
    struct str name;
    struct str flavor;
    struct str resource;
    struct str asked;
    struct str used;
    struct str limit;
    struct opt_bool limiting;
};

struct explanation_quota_list {
    struct explanation_quota *items;
    uint32_t count;
};

/* So many nodes or domains are out, for that reason. */
struct explanation_exclusion {
    struct str reason;
    struct opt_int count;
    struct str message;
};

struct explanation_exclusion_list {
    struct explanation_exclusion *items;
    uint32_t count;
};

/* So many nodes have room for so many of the gang's pods. */
struct explanation_places {
    struct opt_int pods;
    struct opt_int nodes;
};

struct explanation_places_list {
    struct explanation_places *items;
    uint32_t count;
};

struct explanation_nodes {
    struct opt_int total;
    struct opt_int fitting;
    struct explanation_places_list places;
    struct explanation_exclusion_list excluded;
};

struct explanation_topology {
    struct str level;
    struct opt_int total;
    struct explanation_exclusion_list excluded;
};

struct explanation_flavor {
    struct str name;
    struct str reason;
    struct str message;
};

struct explanation_flavor_list {
    struct explanation_flavor *items;
    uint32_t count;
};

struct explanation_reason {
    struct str reason;
    struct str message;
};

struct explanation_reason_list {
    struct explanation_reason *items;
    uint32_t count;
};

struct explanation_past {
    struct str reason;
    struct opt_time since;
    struct opt_time until;
};

struct explanation_past_list {
    struct explanation_past *items;
    uint32_t count;
};

/* How it was last stopped. */
struct explanation_eviction {
    struct str rule; /* PreemptedWithinQueue ReclaimedWithinCohort PodsReadyTimeout … */
    struct opt_time at;
    struct str by;    /* the Job that it made room for, if that is of the same namespace */
    struct str queue; /* of that Job */
    struct str lost;  /* "2h13m on gpu.example.com=4" */
};

struct explanation {
    struct opt_time since;
    struct opt_time as_of;         /* of when the numbers of nodes and flavors are */
    struct opt_bool changes_tried; /* whether changes that would start it now were looked for */
    struct opt_time likely_start;
    struct opt_bool likely_start_unknown; /* nobody can say; neither: it wasn't worked out */
    struct explanation_action_list actions;
    struct explanation_resource_list resources;
    struct explanation_blocker_list in_the_way;
    struct explanation_ahead *ahead;
    struct explanation_quota_list quota;
    struct explanation_nodes *nodes;
    struct explanation_topology *topology;
    struct explanation_flavor_list flavors;
    struct explanation_reason_list other_reasons;
    struct explanation_past_list history;
    struct explanation_eviction *eviction;
};

struct admission_status {
    struct str state;
    struct opt_int position; /* absent beyond POSITION_EXACT_MAX */
    struct str pos;          /* "1", ">100" */
    struct str pods;
    struct str devices;
    struct str flavor;
    struct str reason;
    struct str message;
    struct str summary; /* "Reason: message", or the reason alone: the REASON column */
    struct opt_time since;
    struct opt_time queued_at;
    struct requeue_state *requeue;
    struct opt_int evictions;
    struct opt_int job_generation;
    struct condition_list conditions;
    struct explanation *explanation;
};

struct admission_pod_set {
    struct str name;
    struct opt_int count;
    struct opt_int min_count;
};

struct admission_pod_set_list {
    struct admission_pod_set *items;
    uint32_t count;
};

struct admission_spec {
    struct str queue;
    struct str job_uid; /* JSON name: jobUID */
    struct opt_int priority;
    struct admission_pod_set_list pod_sets;
};

struct admission {
    struct object_meta meta;
    struct admission_spec spec;
    struct admission_status status;
};

struct record_restore {
    struct string_map node_selector; /* what the template had; absent: nothing */
    struct toleration_list tolerations;
    struct opt_int parallelism;
    struct opt_int active_deadline_seconds; /* 0: none; absent: it wasn't touched */
    /* What the template hadn't of "affinity", "nodeAffinity", "required"; or "terms": it had those
     * of required_affinity. Absent: it wasn't touched. */
    struct str added_affinity;
    struct node_selector *required_affinity;
};

struct record_pod_set {
    struct str name;
    struct opt_int count;
    struct string_map flavors; /* resource -> flavor */
    /* What one pod is charged, so that the charge survives a restart whatever becomes of the
     * templates and classes. Absent in a record made by hand: computed anew. */
    struct resource_list requests;
    struct record_restore *restore; /* where there are several sets; of a Job's only one, below */
};

struct record_pod_set_list {
    struct record_pod_set *items;
    uint32_t count;
};

/* The label values of one topology level that a pod set's nodes have: one. */
struct record_level {
    struct str key; /* the node label */
    struct str_list values;
};

struct record_level_list {
    struct record_level *items;
    uint32_t count;
};

/* The domain that all pods of a set go to: its levels from the widest to the one that was asked. */
struct record_domain {
    struct str key; /* the pod set's name */
    struct record_level_list levels;
};

struct record_domain_list {
    struct record_domain *items;
    uint32_t count;
};

/* Annotation tallyman.dev/admission: the Job has been admitted, so, and this is put back later. */
struct admission_record {
    struct str queue;
    struct opt_time at;
    struct opt_int priority;
    struct record_pod_set_list pod_sets;
    struct str request;  /* the ProvisioningRequest that its pods use; absent: none */
    struct opt_int turn; /* among those that share its claims, see ledger.h; absent: 0 */
    struct record_domain_list topology; /* of each pod set that has a domain */
    struct record_restore *restore;
};

/* Annotation tallyman.dev/suspended: Tallyman suspended it, and why. */
struct suspended_record {
    struct str cause;
    struct str for_gang; /* JSON name: for; "namespace/name" of the beneficiary, absent if none */
    struct str for_uid;  /* JSON name: forUid; its Job's, because another may take the name */
    struct opt_time at;
    struct opt_int evictions;      /* this one counted; the Admission has it only a moment later */
    struct requeue_state *requeue; /* absent: none */
};
