/* pod_request.h - what one pod takes from a node, as kube-scheduler counts it, and how many pods a
 * gang is.
 *
 * A Job's template gets none of the defaulting that a Pod gets on creation, so it is redone here in
 * the API server's order: limits fill requests, LimitRange fills both, RuntimeClass adds overhead.
 * Sources: component-helpers resource/helpers.go PodRequests; plugin/pkg/admission/limitranger;
 * pkg/apis/core/v1/defaults.go. Sums are exact, and rounded up to the resource's unit at the end.
 */
#pragma once

#include "tallyman/api/job.h"
#include "tallyman/api/node.h"

struct amount {
    struct str resource;
    int64_t value; /* cpu in thousandths, others whole; never negative */
};

struct amount_list {
    struct amount *items; /* sorted by resource name, no zero values */
    uint32_t count;
};

struct request_context {
    const struct limit_range *const *limit_ranges; /* of the pod's namespace, by name */
    uint32_t limit_range_count;
    const struct runtime_class *runtime_class; /* the one that the pod names; NULL: none */
};

/* A template, before it is a pod. RC_INVALID names the container and resource of a negative
 * request; RC_LIMIT: more than POD_RESOURCES_MAX different resources. `pods` isn't in the list.
 * Texts are borrowed from the template, arrays from the arena. */
NODISCARD struct rc pod_template_requests(struct arena *arena, const struct pod_spec *spec,
                                          const struct request_context *context,
                                          struct amount_list *ret_amounts, struct err *err);

/* A pod that exists, with the same errors: defaulted already; resizes in flight are counted as the
 * scheduler does (the largest of spec, allocated and actual). */
NODISCARD struct rc pod_requests(struct arena *arena, const struct pod *pod,
                                 struct amount_list *ret_amounts, struct err *err);

enum gang_size_source {
    GANG_SIZE_FIELD = 1,
    GANG_SIZE_ANNOTATION,
    GANG_SIZE_LAST_APPLIED,
    GANG_SIZE_DEFAULT
};

struct gang_size {
    int64_t pods;      /* that will run at once: min(parallelism, completions left); >= 0 */
    int64_t min_count; /* of them, those that must be placed at once; 1..pods when pods > 0 */
    enum gang_size_source source;
    bool is_partial_allowed; /* annotation tallyman.dev/partial */
};

/* RC_INVALID: min-count isn't a positive whole number or is above parallelism; the sentence names
 * the Job's field or annotation. With parallelism 0, which is a pause, no min-count is wrong.
 * `arena` is scratch for the last-applied annotation. */
NODISCARD struct rc job_gang_size(struct arena *arena, const struct job *job,
                                  struct gang_size *ret_size, struct err *err);
/* Completions not done yet: completions - succeeded - failed for good (failed indexes; a failed pod
 * of a NonIndexed Job is tried again). Without completions (work queue): parallelism, and after the
 * first success the pods that still run, since no more are started then. Never negative. */
int64_t job_completions_left(const struct job *job);
