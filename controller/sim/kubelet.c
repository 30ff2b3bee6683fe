/* kubelet.c - pods start, work, end and are stopped; nodes come, go and fall silent. */
#include "sim_internal.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/time_text.h"

/* The default toleration of the taints not-ready and unreachable; the pod garbage collector's
 * period behind a node that is gone. */
#define NODE_EVICTION_MS 300000
#define NODE_POD_GC_MS   40000

static struct sim_object *node_of(const struct sim *sim, const struct pod *pod)
{
    return str_is_empty(pod->spec.node_name) ? NULL : api_find(sim, KIND_NODE, pod->spec.node_name);
}

bool node_object_is_ready(const struct node *node)
{
    const struct condition *ready = condition_find(&node->status.conditions, "Ready");
    return ready == NULL || str_eq_c(ready->status, "True");
}

static bool node_answers(const struct sim *sim, const struct pod *pod)
{
    const struct sim_object *node = node_of(sim, pod);
    return node != NULL && node_object_is_ready(node->value);
}

static void set_ready(struct sim *sim, struct sim_object *object, bool is_ready)
{
    struct pod next = *object_pod(object);
    if (is_ready) {
        next.status.phase = STR("Running");
    }
    struct condition ready = {.type = STR("Ready"),
                              .status = is_ready ? STR("True") : STR("False")};
    next.status.conditions = api_condition_with(sim, &next.status.conditions, &ready);
    api_update(sim, object, &next, false);
}

/* -- the work ------------------------------------------------------------------------------------
 */

void kubelet_end_pod(struct sim *sim, struct sim_object *pod, const char *phase)
{
    struct pod next = *object_pod(pod);
    next.status.phase = str_from_c(phase);
    struct condition ready = {
        .type = STR("Ready"), .status = STR("False"), .reason = STR("PodCompleted")};
    next.status.conditions = api_condition_with(sim, &next.status.conditions, &ready);
    pod->pod.finish_token = 0;
    sim_tell(sim, SIM_POD_ENDED, pod->pod.job, pod, next.spec.node_name, next.status.phase);
    api_update(sim, pod, &next, false);
}

static void finish_pod(struct sim *sim, struct task *task)
{
    struct sim_object *pod = api_find_uid(sim, task->uid);
    if (pod != NULL && pod->pod.finish_token == task->number && !pod_is_terminal(object_pod(pod))) {
        kubelet_end_pod(sim, pod, "Succeeded");
    }
}

/* The end of its work, as long as its gang is whole. Lost work is begun anew. */
void kubelet_set_clock(struct sim *sim, struct sim_object *pod)
{
    const struct sim_object *job = pod->pod.job;
    bool is_gang = job != NULL && job_is_gang(object_job(job));
    bool works = pod_is_ready(object_pod(pod)) && !pod_is_terminal(object_pod(pod)) &&
                 (!is_gang || job->job.is_whole);
    if (!works) {
        pod->pod.finish_token = 0;
        return;
    }
    if (pod->pod.finish_token != 0 || pod->pod.run_for_ms < 0) {
        return;
    }
    struct task *task = agenda_add(sim, sim->now_ms + pod->pod.run_for_ms, finish_pod, pod->uid);
    task->number = ++sim->next_token;
    pod->pod.finish_token = task->number;
}

void kubelet_gang_changed(struct sim *sim, struct sim_object *job)
{
    for (struct sim_object *pod = job->job.pods; pod != NULL; pod = pod->pod.next_in_job) {
        kubelet_set_clock(sim, pod);
    }
}

/* -- start and stop ------------------------------------------------------------------------------
 */

static void start_pod(struct sim *sim, struct task *task)
{
    struct sim_object *pod = api_find_uid(sim, task->uid);
    if (pod == NULL) {
        return;
    }
    const struct pod *object = object_pod(pod);
    bool may_start = !pod_is_terminal(object) && !object->meta.deletion_timestamp.is_set &&
                     node_answers(sim, object) &&
                     (!pod->pod.is_unscheduled || claims_are_allocated(sim, pod));
    if (may_start) {
        set_ready(sim, pod, true);
    }
}

static void end_stopping(struct sim *sim, struct task *task)
{
    struct sim_object *pod = api_find_uid(sim, task->uid);
    if (pod == NULL) {
        return;
    }
    pod->pod.is_stopping = false;
    if (node_answers(sim, object_pod(pod))) {
        api_remove(sim, pod);
    }
}

static void stop_pod(struct sim *sim, struct sim_object *pod)
{
    if (!pod->pod.is_stopping && node_answers(sim, object_pod(pod))) {
        pod->pod.is_stopping = true;
        (void)agenda_add(sim, sim_later(sim, sim->options.delays.stop_ms), end_stopping, pod->uid);
    }
}

/* -- pods that named their node -----------------------------------------------------------------
 */

static void refuse_pod(struct sim *sim, struct task *task)
{
    struct sim_object *pod = api_find_uid(sim, task->uid);
    if (pod != NULL && !pod_is_terminal(object_pod(pod))) {
        kubelet_end_pod(sim, pod, "Failed");
    }
}

/* The kubelet takes such a pod of a Job, or it has failed: then it takes no room from those that
 * come after it. */
static bool is_refused(struct sim *sim, struct sim_object *pod)
{
    const struct sim_object *node = node_of(sim, object_pod(pod));
    if (!pod->pod.is_unscheduled || node == NULL || node_takes(sim, pod, node->value)) {
        return false;
    }
    load_remove(sim, pod);
    (void)agenda_add(sim, sim->now_ms, refuse_pod, pod->uid);
    return true;
}

static void start_soon(struct sim *sim, struct sim_object *pod)
{
    (void)agenda_add(sim, sim_later(sim, sim->options.delays.start_ms), start_pod, pod->uid);
}

void kubelet_pod_changed(struct sim *sim, struct sim_object *pod, const struct pod *old)
{
    const struct pod *object = object_pod(pod);
    bool is_bound = !str_is_empty(object->spec.node_name);
    bool was_bound = old != NULL && !str_is_empty(old->spec.node_name);
    bool is_to_start = is_bound && !was_bound && !pod_is_terminal(object) && !pod_is_ready(object);
    pod->pod.is_unscheduled |= is_bound && old == NULL && pod->pod.job != NULL;
    if (is_to_start && !is_refused(sim, pod)) {
        start_soon(sim, pod);
    }
    if (is_bound && object->meta.deletion_timestamp.is_set) {
        stop_pod(sim, pod);
    }
    kubelet_set_clock(sim, pod);
}

/* -- nodes ---------------------------------------------------------------------------------------
 */

static void evict_pods(struct sim *sim, struct task *task)
{
    struct sim_object *node = api_find_uid(sim, task->uid);
    if (node == NULL || node_object_is_ready(node->value)) {
        return;
    }
    const struct condition *ready =
        condition_find(&((const struct node *)node->value)->status.conditions, "Ready");
    if (ready->last_transition_time.ms != (int64_t)task->number) {
        return; /* it was back in between */
    }
    struct str name = object_meta(node)->name;
    struct sim_object *next;
    for (struct sim_object *pod = api_first(sim, KIND_POD); pod != NULL; pod = next) {
        next = api_next(pod);
        if (str_eq(object_pod(pod)->spec.node_name, name)) {
            api_delete(sim, pod);
        }
    }
}

static void lose_node(struct sim *sim, struct sim_object *node)
{
    const struct node *object = node->value;
    struct sim_object *next;
    for (struct sim_object *pod = api_first(sim, KIND_POD); pod != NULL; pod = next) {
        next = api_next(pod);
        const struct pod *on_node = object_pod(pod);
        if (str_eq(on_node->spec.node_name, object->meta.name) && pod_is_ready(on_node)) {
            set_ready(sim, pod, false);
        }
    }
    const struct condition *ready = condition_find(&object->status.conditions, "Ready");
    struct task *task = agenda_add(sim, sim->now_ms + NODE_EVICTION_MS, evict_pods, node->uid);
    task->number = (uint64_t)ready->last_transition_time.ms;
}

static void regain_node(struct sim *sim, struct str name)
{
    struct sim_object *next;
    for (struct sim_object *pod = api_first(sim, KIND_POD); pod != NULL; pod = next) {
        next = api_next(pod);
        const struct pod *on_node = object_pod(pod);
        if (!str_eq(on_node->spec.node_name, name) || pod_is_terminal(on_node)) {
            continue;
        }
        if (on_node->meta.deletion_timestamp.is_set) {
            stop_pod(sim, pod);
        } else {
            start_soon(sim, pod);
        }
    }
}

void kubelet_node_changed(struct sim *sim, struct sim_object *node, const struct node *old)
{
    bool is_ready = node_object_is_ready(node->value);
    bool was_ready = old == NULL || node_object_is_ready(old);
    if (old != NULL && was_ready && !is_ready) {
        lose_node(sim, node);
    } else if (is_ready && (old == NULL || !was_ready)) {
        regain_node(sim, object_meta(node)->name);
    }
}

static void collect_lost(struct sim *sim, struct task *task)
{
    struct sim_object *pod = api_find_uid(sim, task->uid);
    if (pod != NULL && node_of(sim, object_pod(pod)) == NULL) {
        api_remove(sim, pod);
    }
}

void kubelet_node_gone(struct sim *sim, struct str node_name)
{
    for (struct sim_object *pod = api_first(sim, KIND_POD); pod != NULL; pod = api_next(pod)) {
        if (str_eq(object_pod(pod)->spec.node_name, node_name)) {
            (void)agenda_add(sim, sim->now_ms + NODE_POD_GC_MS, collect_lost, pod->uid);
        }
    }
}
