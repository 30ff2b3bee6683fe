/* pod_progress.c - a pod's status, as far as it tells a person what the pod waits for. */
#include "tallyman/api/pod_progress.h"

#include "schema.h"

static const struct field container_wait_fields[] = {
    F_STRING(container_wait, reason, "reason"),
};
static SCHEMA(container_wait);

static const struct field container_end_fields[] = {
    F_STRING(container_end, reason, "reason"),
    F_INT(container_end, exit_code, "exitCode"),
};
static SCHEMA(container_end);

static const struct field container_state_fields[] = {
    F_OBJECT_PTR(container_state, waiting, "waiting", container_wait),
    F_OBJECT_PTR(container_state, terminated, "terminated", container_end),
};
static SCHEMA(container_state);

static const struct field container_progress_fields[] = {
    F_STRING(container_progress, name, "name"),
    F_BOOL(container_progress, ready, "ready"),
    F_OBJECT(container_progress, state, "state", container_state),
};
static SCHEMA(container_progress);

static const struct field pod_progress_spec_fields[] = {
    F_STRING(pod_progress_spec, node_name, "nodeName"),
};
static SCHEMA(pod_progress_spec);

static const struct field pod_progress_status_fields[] = {
    F_STRING(pod_progress_status, phase, "phase"),
    F_STRING(pod_progress_status, reason, "reason"),
    F_OBJECT_LIST(pod_progress_status, conditions, "conditions", condition),
    F_OBJECT_LIST(pod_progress_status, container_statuses, "containerStatuses", container_progress),
    F_OBJECT_LIST(pod_progress_status, init_container_statuses, "initContainerStatuses",
                  container_progress),
};
static SCHEMA(pod_progress_status);

static const struct field pod_progress_fields[] = {
    F_OBJECT(pod_progress, meta, "metadata", object_meta),
    F_OBJECT(pod_progress, spec, "spec", pod_progress_spec),
    F_OBJECT(pod_progress, status, "status", pod_progress_status),
};
static SCHEMA(pod_progress);

static const struct field pod_progress_page_fields[] = {
    F_OBJECT_LIST(pod_progress_page, items, "items", pod_progress),
};
SCHEMA(pod_progress_page);

static struct str container_why(const struct container_progress_list *list, bool is_init)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct container_progress *each = &list->items[i];
        bool is_done = each->ready.is_set && each->ready.value;
        if (each->state.waiting != NULL && !str_is_empty(each->state.waiting->reason)) {
            return each->state.waiting->reason;
        }
        const struct container_end *end = each->state.terminated;
        bool has_failed = end != NULL && !(end->exit_code.is_set && end->exit_code.value == 0);
        if (has_failed) {
            return str_is_empty(end->reason) ? STR("Error") : end->reason;
        }
        if (is_init && !is_done && end == NULL) {
            return STR("Initializing");
        }
    }
    return STR("");
}

struct str pod_progress_why(const struct pod_progress *pod)
{
    const struct pod_progress_status *status = &pod->status;
    if (str_eq_c(status->phase, "Succeeded") || condition_is_true(&status->conditions, "Ready")) {
        return pod->meta.deletion_timestamp.is_set ? STR("Terminating") : STR("");
    }
    if (str_eq_c(status->phase, "Failed")) {
        return str_is_empty(status->reason) ? STR("Failed") : status->reason;
    }
    if (pod->meta.deletion_timestamp.is_set) {
        return STR("Terminating");
    }
    const struct condition *scheduled = condition_find(&status->conditions, "PodScheduled");
    if (str_is_empty(pod->spec.node_name)) {
        return scheduled == NULL || str_is_empty(scheduled->reason) ? STR("NotScheduledYet")
                                                                    : scheduled->reason;
    }
    struct str why = container_why(&status->init_container_statuses, true);
    if (str_is_empty(why)) {
        why = container_why(&status->container_statuses, false);
    }
    return str_is_empty(why) ? STR("NotReady") : why;
}
