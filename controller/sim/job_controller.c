/* job_controller.c - makes and deletes a Job's pods. Source of the rules:
 * k8s.io/kubernetes/pkg/controller/job/job_controller.go (syncJob, manageJob, slow start). */
#include "sim_internal.h"

#include <stdio.h>

#include "tallyman/base/limits.h"

#define JOB_PODS_BATCH_MS   10    /* between two batches of new pods */
#define JOB_BACKOFF_BASE_MS 10000 /* DefaultJobPodFailureBackOff */
#define JOB_BACKOFF_MAX_MS  600000
#define JOB_BACKOFF_LIMIT   6

bool job_is_suspended(const struct job *job)
{
    return job->spec.suspend.is_set && job->spec.suspend.value;
}

static bool job_is_builtin(const struct job *job)
{
    return str_is_empty(job->spec.managed_by) ||
           str_eq_c(job->spec.managed_by, "kubernetes.io/job-controller");
}

bool job_is_gang(const struct job *job)
{
    return job_is_builtin(job) && !str_is_empty(string_map_get(&job->meta.labels, LABEL_QUEUE));
}

struct job_count job_count_pods(const struct sim_object *job)
{
    return job->job.count;
}

static struct job_count count_of(const struct pod *pod)
{
    struct job_count count = {.active = 0};
    if (str_eq_c(pod->status.phase, "Succeeded")) {
        count.succeeded = 1;
    } else if (str_eq_c(pod->status.phase, "Failed")) {
        count.failed = 1;
    } else if (pod->meta.deletion_timestamp.is_set) {
        count.terminating = 1;
    } else {
        count.active = 1;
        count.ready = pod_is_ready(pod) ? 1 : 0;
        count.bound = str_is_empty(pod->spec.node_name) ? 0 : 1;
    }
    return count;
}

static void count_add(struct job_count *sum, const struct job_count *count, int64_t sign)
{
    sum->active += sign * count->active;
    sum->ready += sign * count->ready;
    sum->terminating += sign * count->terminating;
    sum->succeeded += sign * count->succeeded;
    sum->failed += sign * count->failed;
    sum->bound += sign * count->bound;
}

void job_count_pod(struct sim_object *pod, bool is_there)
{
    struct sim_object *job = pod->pod.job;
    if (job == NULL) {
        return;
    }
    count_add(&job->job.count, &pod->pod.counted, -1);
    pod->pod.counted = is_there ? count_of(object_pod(pod)) : (struct job_count){.active = 0};
    count_add(&job->job.count, &pod->pod.counted, 1);
}

/* -- whole, or not ------------------------------------------------------------------------------
 */

void job_excuse(struct sim_object *job)
{
    job->job.is_excused = true;
    job->job.partial_since_ms = -1;
}

static void review_partial(struct sim *sim, struct sim_object *job, int64_t need)
{
    int64_t bound = job->job.count.bound;
    struct job_notes *notes = &job->job;
    if (bound == 0 || bound >= need) {
        notes->is_excused = false;
    }
    bool is_partial =
        bound > 0 && bound < need && !notes->is_excused && !job_is_suspended(object_job(job));
    if (is_partial && notes->partial_since_ms < 0) {
        notes->partial_since_ms = sim->now_ms;
    }
    if (notes->partial_since_ms >= 0) {
        int64_t lasted_ms = sim->now_ms - notes->partial_since_ms;
        notes->partial_max_ms =
            lasted_ms > notes->partial_max_ms ? lasted_ms : notes->partial_max_ms;
    }
    if (!is_partial) {
        notes->partial_since_ms = -1;
    }
}

/* Whole: ready and succeeded pods together are at least min-count. */
void job_review(struct sim *sim, struct sim_object *job, struct sim_object *pod)
{
    struct job_count count = job_count_pods(job);
    int64_t need = job_min_count(sim, job) - count.succeeded;
    review_partial(sim, job, need);
    bool is_whole = count.ready > 0 && count.ready >= need;
    bool was_whole = job->job.is_whole;
    job->job.is_whole = is_whole;
    if (is_whole && !was_whole) {
        sim_tell(sim, SIM_JOB_WHOLE, job, NULL, STR_NONE, STR_NONE);
    } else if (!is_whole && was_whole && need > 0) {
        sim_tell(sim, SIM_JOB_BROKEN, job, NULL, STR_NONE, STR_NONE);
    }
    if (is_whole != was_whole) {
        kubelet_gang_changed(sim, job);
    } else if (is_whole && pod != NULL) {
        kubelet_set_clock(sim, pod);
    }
}

/* -- making and deleting ------------------------------------------------------------------------
 */

/* Which of the indexes below `limit` have a pod that isn't over. */
static bool *taken_indexes(struct sim *sim, const struct sim_object *job, int64_t limit)
{
    bool *taken = ARENA_ARRAY(&sim->scratch, bool, (size_t)limit + 1);
    for (const struct sim_object *item = job->job.pods; item != NULL;
         item = item->pod.next_in_job) {
        const struct pod *pod = object_pod(item);
        bool is_over = str_eq_c(pod->status.phase, "Failed") ||
                       (pod->meta.deletion_timestamp.is_set && !pod_is_terminal(pod));
        if (!is_over && item->pod.index >= 0 && item->pod.index < limit) {
            taken[item->pod.index] = true;
        }
    }
    return taken;
}

static void pod_from_template(struct sim *sim, const struct sim_object *job, int64_t index,
                              struct pod *pod)
{
    const struct job *owner = object_job(job);
    const struct pod_template *template = &owner->spec.pod_template;
    *pod = (struct pod){.spec = template->spec, .status.phase = STR("Pending")};
    uint64_t suffix = str_hash(owner->meta.uid, sim->next_serial) % UINT64_C(60466176);
    char text[6];
    for (int i = 4; i >= 0; i--) {
        text[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[suffix % 36];
        suffix /= 36;
    }
    text[5] = '\0';
    struct arena *arena = &sim->scratch;
    struct str base = owner->meta.name;
    if (index >= 0) {
        base = arena_format(arena, STR_FMT "-%lld", STR_ARG(base), (long long)index);
    }
    pod->meta.name = arena_format(arena, STR_FMT "-%s", STR_ARG(base), text);
    pod->meta.namespace_name = owner->meta.namespace_name;
    pod->meta.labels = api_map_with(sim, &template->meta.labels,
                                    STR("batch.kubernetes.io/job-name"), owner->meta.name);
    pod->meta.annotations = template->meta.annotations;
    if (index >= 0) {
        pod->meta.labels = api_map_with(sim, &pod->meta.labels, STR(LABEL_INDEX),
                                        arena_format(arena, "%lld", (long long)index));
    }
    struct owner_reference *reference = ARENA_NEW(arena, struct owner_reference);
    *reference = (struct owner_reference){.api_version = STR("batch/v1"),
                                          .kind = STR("Job"),
                                          .name = owner->meta.name,
                                          .uid = owner->meta.uid,
                                          .controller = {true, true}};
    pod->meta.owner_references = (struct owner_reference_list){reference, 1};
}

/* The same name twice is next to impossible; another number gives another one. */
static void make_pod(struct sim *sim, struct sim_object *job, int64_t index)
{
    struct pod pod;
    do {
        pod_from_template(sim, job, index, &pod);
        sim->next_serial++;
    } while (api_find(sim, KIND_POD, api_key(sim, pod.meta.namespace_name, pod.meta.name)) != NULL);
    pod_set_defaults(sim, &pod);
    (void)api_create(sim, KIND_POD, &pod);
}

static void make_pods(struct sim *sim, struct sim_object *job, int64_t count)
{
    bool is_indexed = str_eq_c(object_job(job)->spec.completion_mode, "Indexed");
    const struct job_count *now = &job->job.count;
    int64_t limit = now->active + now->succeeded + now->failed + now->terminating + count;
    const bool *taken = is_indexed ? taken_indexes(sim, job, limit) : NULL;
    int64_t index = -1;
    for (int64_t i = 0; i < count; i++) {
        do {
            index++;
        } while (is_indexed && index < limit && taken[index]);
        make_pod(sim, job, is_indexed ? index : -1);
    }
}

static void stop_pod(struct sim *sim, struct sim_object *pod)
{
    pod->pod.is_expected_to_go = true;
    api_delete(sim, pod);
}

void job_stop_pods(struct sim *sim, struct sim_object *job)
{
    job_excuse(job);
    struct sim_object *next;
    for (struct sim_object *item = job->job.pods; item != NULL; item = next) {
        next = item->pod.next_in_job;
        const struct pod *pod = object_pod(item);
        if (!pod_is_terminal(pod) && !pod->meta.deletion_timestamp.is_set) {
            stop_pod(sim, item);
        }
    }
}

/* Scales down: the highest index first, of the others the newest. */
static void drop_pods(struct sim *sim, struct sim_object *job, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        struct sim_object *worst = NULL;
        for (struct sim_object *item = job->job.pods; item != NULL; item = item->pod.next_in_job) {
            const struct pod *pod = object_pod(item);
            bool is_active = !pod_is_terminal(pod) && !pod->meta.deletion_timestamp.is_set;
            if (is_active && (worst == NULL || item->pod.index >= worst->pod.index)) {
                worst = item;
            }
        }
        if (worst == NULL) {
            return;
        }
        stop_pod(sim, worst);
    }
}

static int64_t wanted_pods(const struct job *job, const struct job_count *count)
{
    int64_t parallelism = job->spec.parallelism.is_set ? job->spec.parallelism.value : 1;
    if (!job->spec.completions.is_set) {
        return count->succeeded > 0 && count->active < parallelism ? count->active : parallelism;
    }
    int64_t left = job->spec.completions.value - count->succeeded;
    left = left > 0 ? left : 0;
    return left < parallelism ? left : parallelism;
}

/* After a failure the Job controller waits, longer each time. */
static bool is_backing_off(struct sim *sim, struct sim_object *job, int64_t failures)
{
    int64_t seen = object_job(job)->status.failed.value;
    if (failures > seen) {
        int64_t delay_ms = JOB_BACKOFF_BASE_MS;
        for (int64_t i = 1; i < failures && delay_ms < JOB_BACKOFF_MAX_MS; i++) {
            delay_ms *= 2;
        }
        delay_ms = delay_ms < JOB_BACKOFF_MAX_MS ? delay_ms : JOB_BACKOFF_MAX_MS;
        job->job.next_try_ms = sim->now_ms + delay_ms;
    }
    if (job->job.next_try_ms > sim->now_ms) {
        job_sync_soon(sim, job, job->job.next_try_ms - sim->now_ms);
        return true;
    }
    return false;
}

/* True if more pods are to be made in a moment. */
static bool manage_pods(struct sim *sim, struct sim_object *job, const struct job_count *count)
{
    const struct job *object = object_job(job);
    int64_t have = count->active;
    if (str_eq_c(object->spec.pod_replacement_policy, "Failed")) {
        have += count->terminating;
    }
    int64_t missing = wanted_pods(object, count) - have;
    if (missing <= 0) {
        job->job.batch = 1;
        drop_pods(sim, job, -missing);
        return false;
    }
    if (is_backing_off(sim, job, count->failed + job->job.lost_pods)) {
        return false;
    }
    int64_t batch = job->job.batch > 0 ? job->job.batch : 1;
    make_pods(sim, job, missing < batch ? missing : batch);
    job->job.batch = batch * 2;
    if (missing <= batch) {
        job->job.batch = 1;
        return false;
    }
    job_sync_soon(sim, job, JOB_PODS_BATCH_MS);
    return true;
}

static bool has_failed(const struct sim *sim, const struct job *job, int64_t failures,
                       struct str *ret_why)
{
    int64_t limit =
        job->spec.backoff_limit.is_set ? job->spec.backoff_limit.value : JOB_BACKOFF_LIMIT;
    if (failures > limit) {
        *ret_why = STR("BackoffLimitExceeded");
        return true;
    }
    if (job->spec.active_deadline_seconds.is_set && job->status.start_time.is_set) {
        int64_t end_ms = job->status.start_time.ms + job->spec.active_deadline_seconds.value * 1000;
        if (sim_clock_ms(sim) >= end_ms) {
            *ret_why = STR("DeadlineExceeded");
            return true;
        }
    }
    return false;
}

/* The first Failed that is decided stays: status.reason of the target condition. */
static void target_failure(struct sim *sim, struct sim_object *job, struct str why)
{
    struct job next = *object_job(job);
    struct condition target = {.type = STR("FailureTarget"), .status = STR("True"), .reason = why};
    next.status.conditions = api_condition_with(sim, &next.status.conditions, &target);
    api_update(sim, job, &next, false);
    job_stop_pods(sim, job);
}

static void job_sync(struct sim *sim, struct sim_object *job)
{
    const struct job *object = object_job(job);
    if (job_is_finished(object) || !job_is_builtin(object)) {
        return;
    }
    podgroup_make_claims(sim, job);
    struct job_count count = job_count_pods(job);
    struct str why = STR_NONE;
    bool is_failing = condition_is_true(&object->status.conditions, "FailureTarget");
    if (!is_failing && !job_is_suspended(object) &&
        has_failed(sim, object, count.failed + job->job.lost_pods, &why)) {
        target_failure(sim, job, why);
        is_failing = true;
    } else if (job_is_suspended(object)) {
        job_stop_pods(sim, job);
        job->job.batch = 1;
    } else if (!is_failing && manage_pods(sim, job, &count)) {
        return; /* the status follows with the last batch */
    }
    count = job_count_pods(job);
    (void)job_write_status(sim, job, &count);
}

static void run_sync(struct sim *sim, struct task *task)
{
    struct sim_object *job = api_find_uid(sim, task->uid);
    if (job == NULL || !job->job.is_sync_due || job->job.sync_at_ms != task->at_ms) {
        return;
    }
    job->job.is_sync_due = false;
    job_sync(sim, job);
}

void job_sync_soon(struct sim *sim, struct sim_object *job, int64_t delay_ms)
{
    int64_t at_ms = sim_later(sim, delay_ms);
    if (job->job.is_sync_due && job->job.sync_at_ms <= at_ms) {
        return;
    }
    job->job.is_sync_due = true;
    job->job.sync_at_ms = at_ms;
    (void)agenda_add(sim, at_ms, run_sync, job->uid);
}
