/* schema_admission.c - Admission (tallyman.dev/v1beta1), and the two annotations that ride on a
 * Job. */
#include "schema.h"

#include "tallyman/api/admission.h"

static const struct field requeue_state_fields[] = {
    F_INT(requeue_state, count, "count"),
    F_TIME(requeue_state, at, "at"),
};
static SCHEMA(requeue_state);

static const struct field explanation_action_fields[] = {
    F_STRING(explanation_action, kind, "kind"),
    F_STRING(explanation_action, message, "message"),
    F_STRING(explanation_action, command, "command"),
};
static SCHEMA(explanation_action);

static const struct field explanation_resource_fields[] = {
    F_STRING(explanation_resource, name, "name"),   F_STRING(explanation_resource, asked, "asked"),
    F_STRING(explanation_resource, used, "used"),   F_STRING(explanation_resource, free, "free"),
    F_STRING(explanation_resource, total, "total"),
};
static SCHEMA(explanation_resource);

static const struct field explanation_blocker_fields[] = {
    F_STRING(explanation_blocker, name, "name"), F_STRING(explanation_blocker, queue, "queue"),
    F_STRING(explanation_blocker, size, "size"), F_TIME(explanation_blocker, since, "since"),
    F_TIME(explanation_blocker, until, "until"),
};
static SCHEMA(explanation_blocker);

static const struct field explanation_ahead_fields[] = {
    F_INT(explanation_ahead, gangs, "gangs"),
    F_INT(explanation_ahead, devices, "devices"),
    F_INT(explanation_ahead, pods, "pods"),
};
static SCHEMA(explanation_ahead);

static const struct field explanation_quota_fields[] = {
    F_STRING(explanation_quota, kind, "kind"),
    F_STRING(explanation_quota, name, "name"),
    F_STRING(explanation_quota, flavor, "flavor"),
    F_STRING(explanation_quota, resource, "resource"),
    F_STRING(explanation_quota, asked, "asked"),
    F_STRING(explanation_quota, used, "used"),
    F_STRING(explanation_quota, limit, "limit"),
    F_BOOL(explanation_quota, limiting, "limiting"),
};
static SCHEMA(explanation_quota);

static const struct field explanation_exclusion_fields[] = {
    F_STRING(explanation_exclusion, reason, "reason"),
    F_INT(explanation_exclusion, count, "count"),
    F_STRING(explanation_exclusion, message, "message"),
};
static SCHEMA(explanation_exclusion);

static const struct field explanation_places_fields[] = {
    F_INT(explanation_places, pods, "pods"),
    F_INT(explanation_places, nodes, "nodes"),
};
static SCHEMA(explanation_places);

static const struct field explanation_nodes_fields[] = {
    F_INT(explanation_nodes, total, "total"),
    F_INT(explanation_nodes, fitting, "fitting"),
    F_OBJECT_LIST(explanation_nodes, places, "places", explanation_places),
    F_OBJECT_LIST(explanation_nodes, excluded, "excluded", explanation_exclusion),
};
static SCHEMA(explanation_nodes);

static const struct field explanation_topology_fields[] = {
    F_STRING(explanation_topology, level, "level"),
    F_INT(explanation_topology, total, "total"),
    F_OBJECT_LIST(explanation_topology, excluded, "excluded", explanation_exclusion),
};
static SCHEMA(explanation_topology);

static const struct field explanation_flavor_fields[] = {
    F_STRING(explanation_flavor, name, "name"),
    F_STRING(explanation_flavor, reason, "reason"),
    F_STRING(explanation_flavor, message, "message"),
};
static SCHEMA(explanation_flavor);

static const struct field explanation_reason_fields[] = {
    F_STRING(explanation_reason, reason, "reason"),
    F_STRING(explanation_reason, message, "message"),
};
static SCHEMA(explanation_reason);

static const struct field explanation_past_fields[] = {
    F_STRING(explanation_past, reason, "reason"),
    F_TIME(explanation_past, since, "since"),
    F_TIME(explanation_past, until, "until"),
};
static SCHEMA(explanation_past);

static const struct field explanation_eviction_fields[] = {
    F_STRING(explanation_eviction, rule, "rule"), F_TIME(explanation_eviction, at, "at"),
    F_STRING(explanation_eviction, by, "by"),     F_STRING(explanation_eviction, queue, "queue"),
    F_STRING(explanation_eviction, lost, "lost"),
};
static SCHEMA(explanation_eviction);

static const struct field explanation_fields[] = {
    F_TIME(explanation, since, "since"),
    F_TIME(explanation, as_of, "asOf"),
    F_BOOL(explanation, changes_tried, "changesTried"),
    F_TIME(explanation, likely_start, "likelyStart"),
    F_BOOL(explanation, likely_start_unknown, "likelyStartUnknown"),
    F_OBJECT_LIST(explanation, actions, "actions", explanation_action),
    F_OBJECT_LIST(explanation, resources, "resources", explanation_resource),
    F_OBJECT_LIST(explanation, in_the_way, "inTheWay", explanation_blocker),
    F_OBJECT_PTR(explanation, ahead, "ahead", explanation_ahead),
    F_OBJECT_LIST(explanation, quota, "quota", explanation_quota),
    F_OBJECT_PTR(explanation, nodes, "nodes", explanation_nodes),
    F_OBJECT_PTR(explanation, topology, "topology", explanation_topology),
    F_OBJECT_LIST(explanation, flavors, "flavors", explanation_flavor),
    F_OBJECT_LIST(explanation, other_reasons, "otherReasons", explanation_reason),
    F_OBJECT_LIST(explanation, history, "history", explanation_past),
    F_OBJECT_PTR(explanation, eviction, "eviction", explanation_eviction),
};
static SCHEMA(explanation);

static const struct field admission_status_fields[] = {
    F_STRING(admission_status, state, "state"),
    F_INT(admission_status, position, "position"),
    F_STRING(admission_status, pos, "pos"),
    F_STRING(admission_status, pods, "pods"),
    F_STRING(admission_status, devices, "devices"),
    F_STRING(admission_status, flavor, "flavor"),
    F_STRING(admission_status, reason, "reason"),
    F_STRING(admission_status, message, "message"),
    F_STRING(admission_status, summary, "summary"),
    F_TIME(admission_status, since, "since"),
    F_TIME(admission_status, queued_at, "queuedAt"),
    F_OBJECT_PTR(admission_status, requeue, "requeue", requeue_state),
    F_INT(admission_status, evictions, "evictions"),
    F_INT(admission_status, job_generation, "jobGeneration"),
    F_OBJECT_LIST(admission_status, conditions, "conditions", condition),
    F_OBJECT_PTR(admission_status, explanation, "explanation", explanation),
};
static SCHEMA(admission_status);

static const struct field admission_pod_set_fields[] = {
    F_STRING(admission_pod_set, name, "name"),
    F_INT(admission_pod_set, count, "count"),
    F_INT(admission_pod_set, min_count, "minCount"),
};
static SCHEMA(admission_pod_set);

static const struct field admission_spec_fields[] = {
    F_STRING(admission_spec, queue, "queue"),
    F_STRING(admission_spec, job_uid, "jobUID"),
    F_INT(admission_spec, priority, "priority"),
    F_OBJECT_LIST(admission_spec, pod_sets, "podSets", admission_pod_set),
};
static SCHEMA(admission_spec);

static const struct field admission_fields[] = {
    F_OBJECT(admission, meta, "metadata", object_meta),
    F_OBJECT(admission, spec, "spec", admission_spec),
    F_OBJECT(admission, status, "status", admission_status),
};
SCHEMA(admission);

static const struct field record_restore_fields[] = {
    F_STRING_MAP(record_restore, node_selector, "nodeSelector"),
    F_OBJECT_LIST(record_restore, tolerations, "tolerations", toleration),
    F_INT(record_restore, parallelism, "parallelism"),
    F_INT(record_restore, active_deadline_seconds, "activeDeadlineSeconds"),
    F_STRING(record_restore, added_affinity, "addedAffinity"),
    F_OBJECT_PTR(record_restore, required_affinity, "requiredAffinity", node_selector),
};
static SCHEMA(record_restore);

static const struct field record_pod_set_fields[] = {
    F_STRING(record_pod_set, name, "name"),
    F_INT(record_pod_set, count, "count"),
    F_STRING_MAP(record_pod_set, flavors, "flavors"),
    F_RESOURCE_LIST(record_pod_set, requests, "requests"),
    F_OBJECT_PTR(record_pod_set, restore, "restore", record_restore),
};
SCHEMA(record_pod_set);

static const struct field record_level_fields[] = {
    F_STRING_LIST(record_level, values, ""),
};
static SCHEMA(record_level);

static const struct field record_domain_fields[] = {
    F_OBJECT_MAP(record_domain, levels, "", record_level),
};
static SCHEMA(record_domain);

static const struct field admission_record_fields[] = {
    F_STRING(admission_record, queue, "queue"),
    F_TIME(admission_record, at, "at"),
    F_INT(admission_record, priority, "priority"),
    F_OBJECT_LIST(admission_record, pod_sets, "podSets", record_pod_set),
    F_STRING(admission_record, request, "request"),
    F_INT(admission_record, turn, "turn"),
    F_OBJECT_MAP(admission_record, topology, "topology", record_domain),
    F_OBJECT_PTR(admission_record, restore, "restore", record_restore),
};
SCHEMA(admission_record);

static const struct field suspended_record_fields[] = {
    F_STRING(suspended_record, cause, "cause"),
    F_STRING(suspended_record, for_gang, "for"),
    F_STRING(suspended_record, for_uid, "forUid"),
    F_TIME(suspended_record, at, "at"),
    F_INT(suspended_record, evictions, "evictions"),
    F_OBJECT_PTR(suspended_record, requeue, "requeue", requeue_state),
};
SCHEMA(suspended_record);
