/* job.h - Job (batch/v1), as far as admission looks at it. */
#pragma once

#include "tallyman/api/pod.h"

struct gang_policy {
    struct opt_int min_count;
};

struct scheduling_policy {
    struct gang_policy *gang;
};

/* One claim for all pods of the gang, owned by its PodGroup (DRAWorkloadResourceClaims, 1.37). */
struct scheduling_claim {
    struct str name;
    struct str resource_claim_name;
    struct str resource_claim_template_name;
};

struct scheduling_claim_list {
    struct scheduling_claim *items;
    uint32_t count;
};

struct job_scheduling {
    struct scheduling_policy *scheduling_policy;
    struct scheduling_claim_list resource_claims;
};

struct job_spec {
    struct opt_int parallelism;
    struct opt_int completions;
    struct opt_bool suspend;
    struct opt_int active_deadline_seconds;
    struct opt_int backoff_limit;
    struct opt_int ttl_seconds_after_finished;
    struct str completion_mode;
    struct str managed_by;
    struct str pod_replacement_policy;
    struct job_scheduling *scheduling; /* alpha; pruned by the server where its gate is off */
    struct pod_template pod_template;  /* JSON name: template */
};

struct uncounted_pods {
    struct str_list succeeded;
    struct str_list failed;
};

struct job_status {
    struct condition_list conditions;
    struct opt_time start_time;
    struct opt_time completion_time;
    struct opt_int active;
    struct opt_int ready;
    struct opt_int terminating;
    struct opt_int succeeded;
    struct opt_int failed;
    struct str completed_indexes; /* "1,3-5" */
    struct str failed_indexes;
    struct uncounted_pods *uncounted_terminated_pods;
};

struct job {
    struct object_meta meta;
    struct job_spec spec;
    struct job_status status;
};

/* Complete or Failed. */
bool job_is_finished(const struct job *job);
