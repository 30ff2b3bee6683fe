/* schema_job.c - Job (batch/v1). */
#include "schema.h"

#include "tallyman/api/job.h"

static const struct field gang_policy_fields[] = {
    F_INT(gang_policy, min_count, "minCount"),
};
static SCHEMA(gang_policy);

static const struct field scheduling_policy_fields[] = {
    F_OBJECT_PTR(scheduling_policy, gang, "gang", gang_policy),
};
static SCHEMA(scheduling_policy);

static const struct field scheduling_claim_fields[] = {
    F_STRING(scheduling_claim, name, "name"),
    F_STRING(scheduling_claim, resource_claim_name, "resourceClaimName"),
    F_STRING(scheduling_claim, resource_claim_template_name, "resourceClaimTemplateName"),
};
static SCHEMA(scheduling_claim);

static const struct field job_scheduling_fields[] = {
    F_OBJECT_PTR(job_scheduling, scheduling_policy, "schedulingPolicy", scheduling_policy),
    F_OBJECT_LIST(job_scheduling, resource_claims, "resourceClaims", scheduling_claim),
};
static SCHEMA(job_scheduling);

static const struct field job_spec_fields[] = {
    F_INT(job_spec, parallelism, "parallelism"),
    F_INT(job_spec, completions, "completions"),
    F_BOOL(job_spec, suspend, "suspend"),
    F_INT(job_spec, active_deadline_seconds, "activeDeadlineSeconds"),
    F_INT(job_spec, backoff_limit, "backoffLimit"),
    F_INT(job_spec, ttl_seconds_after_finished, "ttlSecondsAfterFinished"),
    F_STRING(job_spec, completion_mode, "completionMode"),
    F_STRING(job_spec, managed_by, "managedBy"),
    F_STRING(job_spec, pod_replacement_policy, "podReplacementPolicy"),
    F_OBJECT_PTR(job_spec, scheduling, "scheduling", job_scheduling),
    F_OBJECT(job_spec, pod_template, "template", pod_template),
};
static SCHEMA(job_spec);

static const struct field uncounted_pods_fields[] = {
    F_STRING_LIST(uncounted_pods, succeeded, "succeeded"),
    F_STRING_LIST(uncounted_pods, failed, "failed"),
};
static SCHEMA(uncounted_pods);

static const struct field job_status_fields[] = {
    F_OBJECT_LIST(job_status, conditions, "conditions", condition),
    F_TIME(job_status, start_time, "startTime"),
    F_TIME(job_status, completion_time, "completionTime"),
    F_INT(job_status, active, "active"),
    F_INT(job_status, ready, "ready"),
    F_INT(job_status, terminating, "terminating"),
    F_INT(job_status, succeeded, "succeeded"),
    F_INT(job_status, failed, "failed"),
    F_STRING(job_status, completed_indexes, "completedIndexes"),
    F_STRING(job_status, failed_indexes, "failedIndexes"),
    F_OBJECT_PTR(job_status, uncounted_terminated_pods, "uncountedTerminatedPods", uncounted_pods),
};
static SCHEMA(job_status);

static const struct field job_fields[] = {
    F_OBJECT(job, meta, "metadata", object_meta),
    F_OBJECT(job, spec, "spec", job_spec),
    F_OBJECT(job, status, "status", job_status),
};
SCHEMA(job);
