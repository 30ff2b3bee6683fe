/* pod_progress.h - how far a Job's pods are: only for people who look, never for a decision. */
#pragma once

#include "tallyman/api/meta.h"

struct schema;

struct container_wait {
    struct str reason; /* "ImagePullBackOff", "ContainerCreating" */
};

struct container_end {
    struct str reason; /* "Error", "OOMKilled" */
    struct opt_int exit_code;
};

struct container_state {
    struct container_wait *waiting;
    struct container_end *terminated;
};

struct container_progress {
    struct str name;
    struct opt_bool ready;
    struct container_state state;
};

struct container_progress_list {
    struct container_progress *items;
    uint32_t count;
};

struct pod_progress_spec {
    struct str node_name;
};

struct pod_progress_status {
    struct str phase;
    struct str reason;
    struct condition_list conditions;
    struct container_progress_list container_statuses;
    struct container_progress_list init_container_statuses;
};

struct pod_progress {
    struct object_meta meta;
    struct pod_progress_spec spec;
    struct pod_progress_status status;
};

struct pod_progress_list {
    struct pod_progress *items;
    uint32_t count;
};

/* A PodList. */
struct pod_progress_page {
    struct pod_progress_list items;
};

extern const struct schema pod_progress_page_schema;

/* Why the pod isn't ready, in one word or two; empty: it is, or it has succeeded. Borrowed from the
 * pod, or static. */
struct str pod_progress_why(const struct pod_progress *pod);
