/* watch.c - who is told of a change: the controllers at once (each takes its own time), Tallyman a
 * watch's delay later. */
#include "sim_internal.h"

#define JOB_CONTROLLER_MS   10   /* from a change of the Job to its sync */
#define JOB_BATCH_MS        1000 /* a Job's pod changes are taken together (syncJobBatchPeriod) */
#define CLAIM_CONTROLLER_MS 10

static void sync_claims(struct sim *sim, struct task *task)
{
    struct sim_object *pod = api_find_uid(sim, task->uid);
    if (pod != NULL) {
        claims_sync_pod(sim, pod);
    }
}

static void sync_all_claims(struct sim *sim, struct task *task)
{
    (void)task;
    claims_sync_all(sim);
}

static void review_job(struct sim *sim, struct task *task)
{
    struct sim_object *job = api_find_uid(sim, task->uid);
    if (job != NULL) {
        job_review(sim, job, NULL);
        job_sync_soon(sim, job, JOB_BATCH_MS);
    }
}

static void job_changed(struct sim *sim, struct sim_object *object, const struct job *old)
{
    const struct job *job = object_job(object);
    bool is_new_spec = old == NULL || old->meta.generation.value != job->meta.generation.value;
    if (is_new_spec) {
        job_sync_soon(sim, object, JOB_CONTROLLER_MS);
    }
    if (is_new_spec && old != NULL) {
        agenda_add(sim, sim->now_ms, review_job, object->uid); /* fewer pods may be enough now */
    }
}

static void pod_changed(struct sim *sim, struct sim_object *object, const struct pod *old)
{
    const struct pod *pod = object_pod(object);
    if (old == NULL) {
        pod_read_notes(sim, object);
    }
    job_count_pod(object, true);
    if (old == NULL || (pod_is_terminal(pod) && !pod_is_terminal(old))) {
        agenda_add(sim, sim_later(sim, CLAIM_CONTROLLER_MS), sync_claims, object->uid);
    }
    scheduler_pod_changed(sim, object, old);
    kubelet_pod_changed(sim, object, old);
    bool is_leaving = pod->meta.deletion_timestamp.is_set || str_eq_c(pod->status.phase, "Failed");
    if (object->pod.job != NULL) {
        if (is_leaving && !object->pod.is_expected_to_go) {
            job_excuse(object->pod.job);
        }
        job_review(sim, object->pod.job, object);
        job_sync_soon(sim, object->pod.job, JOB_BATCH_MS);
    }
}

void watch_changed(struct sim *sim, struct sim_object *object, const void *old)
{
    controller_deliver(sim, object, false);
    switch (object->kind) {
    case KIND_JOB:
        job_changed(sim, object, old);
        break;
    case KIND_POD:
        pod_changed(sim, object, old);
        break;
    case KIND_NODE:
        kubelet_node_changed(sim, object, old);
        scheduler_wake(sim);
        break;
    case KIND_RESOURCE_CLAIM:
        devices_claim_changed(sim, old, object->value);
        scheduler_wake(sim);
        break;
    case KIND_RESOURCE_SLICE:
        devices_slices_changed(sim);
        scheduler_wake(sim);
        break;
    case KIND_DEVICE_CLASS:
    case KIND_DEVICE_TAINT_RULE:
        scheduler_wake(sim);
        break;
    case KIND_RESOURCE_CLAIM_TEMPLATE:
        agenda_add(sim, sim_later(sim, CLAIM_CONTROLLER_MS), sync_all_claims, STR_NONE);
        break;
    case KIND_NAMESPACE:
    case KIND_LIMIT_RANGE:
    case KIND_RUNTIME_CLASS:
    case KIND_PRIORITY_CLASS:
    case KIND_QUEUE:
    case KIND_COHORT:
    case KIND_RESOURCE_FLAVOR:
    case KIND_ADMISSION:
    case KIND_NONE:
    case KIND_COUNT:
        break;
    case KIND_PROVISIONING_REQUEST:
        if (old == NULL) {
            autoscaler_request_made(sim, object);
        }
        break;
    }
}

static void collect_pod(struct sim *sim, struct task *task)
{
    struct sim_object *pod = api_find_uid(sim, task->uid);
    if (pod != NULL) {
        pod->pod.is_expected_to_go = true;
        api_delete(sim, pod);
    }
}

static void collect_object(struct sim *sim, struct task *task)
{
    struct sim_object *object = api_find_uid(sim, task->uid);
    if (object != NULL) {
        api_delete(sim, object);
    }
}

static void collect_group_claims(struct sim *sim, struct task *task)
{
    (void)task;
    podgroup_collect(sim);
}

/* The garbage collector: what the Job owned goes after it. */
static void job_removed(struct sim *sim, struct sim_object *job)
{
    sim_tell(sim, SIM_JOB_DELETED, job, NULL, STR_NONE, STR_NONE);
    for (struct sim_object *pod = job->job.pods; pod != NULL; pod = pod->pod.next_in_job) {
        agenda_add(sim, sim_later(sim, JOB_CONTROLLER_MS), collect_pod, pod->uid);
    }
    if (podgroup_has_claims(object_job(job))) {
        agenda_add(sim, sim_later(sim, CLAIM_CONTROLLER_MS), collect_group_claims, STR_NONE);
    }
    autoscaler_job_gone(sim, job);
    struct sim_object *admission = api_find(sim, KIND_ADMISSION, job->key);
    if (admission != NULL) {
        const struct object_meta *meta = object_meta(admission);
        bool is_owned = meta->owner_references.count > 0 &&
                        str_eq(meta->owner_references.items[0].uid, job->uid);
        if (is_owned) {
            agenda_add(sim, sim_later(sim, JOB_CONTROLLER_MS), collect_object, admission->uid);
        }
    }
}

static void pod_removed(struct sim *sim, struct sim_object *object)
{
    const struct pod *pod = object_pod(object);
    struct sim_object *job = object->pod.job;
    if (!pod_is_terminal(pod)) {
        sim_tell(sim, SIM_POD_ENDED, job, object, pod->spec.node_name, STR_NONE);
        if (job != NULL && !object->pod.is_expected_to_go) {
            job->job.lost_pods++;
            job_excuse(job);
        }
    }
    claims_pod_gone(sim, object);
    scheduler_pod_gone(sim, object);
}

void watch_removed(struct sim *sim, struct sim_object *object)
{
    controller_deliver(sim, object, true);
    switch (object->kind) {
    case KIND_JOB:
        job_removed(sim, object);
        break;
    case KIND_POD:
        pod_removed(sim, object);
        if (object->pod.job != NULL) { /* it is counted without the pod only after this call */
            agenda_add(sim, sim->now_ms, review_job, object->pod.job->uid);
        }
        break;
    case KIND_NODE:
        kubelet_node_gone(sim, object_meta(object)->name);
        break;
    case KIND_RESOURCE_CLAIM:
        devices_claim_changed(sim, object->value, NULL);
        scheduler_wake(sim);
        break;
    case KIND_RESOURCE_SLICE:
        devices_slices_changed(sim);
        break;
    case KIND_DEVICE_TAINT_RULE:
        scheduler_wake(sim);
        break;
    case KIND_NONE:
    case KIND_NAMESPACE:
    case KIND_LIMIT_RANGE:
    case KIND_RUNTIME_CLASS:
    case KIND_PRIORITY_CLASS:
    case KIND_DEVICE_CLASS:
    case KIND_RESOURCE_CLAIM_TEMPLATE:
    case KIND_QUEUE:
    case KIND_COHORT:
    case KIND_RESOURCE_FLAVOR:
    case KIND_ADMISSION:
    case KIND_PROVISIONING_REQUEST:
    case KIND_COUNT:
        break;
    }
}
