/* check.c - what must hold, by the cluster's objects alone. */
#include "vopr.h"

#include <string.h>

#include "support/check.h"
#include "tallyman/api/admission.h"
#include "tallyman/api/codec.h"
#include "tallyman/api/node.h"
#include "tallyman/api/pod.h"

/* kube-scheduler takes a moment for each pod. */
#define BINDING_MS 60000

struct str vopr_job_uid(const struct pod *pod)
{
    for (uint32_t i = 0; i < pod->meta.owner_references.count; i++) {
        if (str_eq_c(pod->meta.owner_references.items[i].kind, "Job")) {
            return pod->meta.owner_references.items[i].uid;
        }
    }
    return STR_NONE;
}

/* -- quota --------------------------------------------------------------------------------------
 */

struct charges {
    struct vopr *v;
    bool is_sure_only;  /* of what runs by its record, and nothing of what stops */
    struct str job_uid; /* whose pods are counted */
    int64_t live_pods;
    int64_t orphans[VOPR_MADE]; /* that are charged */
    int64_t used[VOPR_QUEUES][RESOURCE_COUNT];
};

/* What is left on a node that is gone, or dead for some time, holds no quota. */
static bool is_live(const struct vopr *v, const struct pod *pod)
{
    const struct node *node = sim_find(v->sim, KIND_NODE, STR_NONE, pod->spec.node_name);
    bool is_lost = str_is_set(pod->spec.node_name) &&
                   (node == NULL || !condition_is_true(&node->status.conditions, "Ready"));
    return !is_lost && !str_eq_c(pod->status.phase, "Succeeded") &&
           !str_eq_c(pod->status.phase, "Failed");
}

static void count_pod(void *ctx, const void *value)
{
    struct charges *charges = ctx;
    const struct pod *pod = value;
    if (is_live(charges->v, pod) && str_eq(vopr_job_uid(pod), charges->job_uid)) {
        charges->live_pods++;
    }
}

static uint32_t made_number(const struct vopr *v, struct str uid)
{
    uint32_t number = 0;
    while (number < v->made_count && !str_eq_c(uid, v->made[number].uid)) {
        number++;
    }
    return number;
}

void vopr_note_left(struct vopr *v, uint32_t number)
{
    const struct job *job = sim_find(v->sim, KIND_JOB, STR("default"), job_name(number));
    uint32_t made = job == NULL ? v->made_count : made_number(v, job->meta.uid);
    if (made < v->made_count) {
        int64_t count = vopr_admitted_count(job);
        v->made[made].left_count = count > 0 ? count : 0;
    }
}

/* Pods whose Job is gone hold what it held. Quota has let go of what a dead node kept of a run that
 * was stopped; when the node comes back such pods die, and hold room until then, but no quota. */
static void charge_orphan(void *ctx, const void *value)
{
    struct charges *charges = ctx;
    const struct pod *pod = value;
    struct str uid = vopr_job_uid(pod);
    uint32_t number = made_number(charges->v, uid);
    if (number == charges->v->made_count || !is_live(charges->v, pod) ||
        charges->orphans[number] == charges->v->made[number].left_count) {
        return;
    }
    for (uint32_t i = 0; i < VOPR_JOBS; i++) {
        const struct job *job = sim_find(charges->v->sim, KIND_JOB, STR("default"), job_name(i));
        if (job != NULL && str_eq(job->meta.uid, uid)) {
            return;
        }
    }
    const struct vopr_shape *shape = &charges->v->made[number].shape;
    charges->orphans[number]++;
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        charges->used[shape->queue][r] += shape->per_pod[r];
    }
}

int64_t vopr_admitted_count(const struct job *job)
{
    struct arena arena;
    arena_init(&arena);
    void *value = NULL;
    int64_t count = -1;
    struct err err;
    struct str text = string_map_get(&job->meta.annotations, "tallyman.dev/admission");
    if (str_is_set(text) &&
        !rc_failed(decode_json(&arena, &admission_record_schema, text, &value, &err))) {
        count = ((const struct admission_record *)value)->pod_sets.items[0].count.value;
    }
    arena_deinit(&arena);
    return count;
}

bool vopr_is_over(const struct job *job)
{
    return condition_is_true(&job->status.conditions, "Complete") ||
           condition_is_true(&job->status.conditions, "Failed");
}

static bool is_among(const bool numbers[VOPR_JOBS], const struct job *job)
{
    for (uint32_t i = 0; i < VOPR_JOBS; i++) {
        if (numbers[i] && str_eq(job->meta.name, job_name(i))) {
            return true;
        }
    }
    return false;
}

/* By its record. One that its user has scaled holds what the pods hold that are left. */
static bool is_running(const struct vopr *v, const struct job *job)
{
    return !is_among(v->is_scaled, job) && !(job->spec.suspend.is_set && job->spec.suspend.value) &&
           !vopr_is_over(job);
}

/* What the record says while it runs, of what is left to run; what still lives while it stops. */
static void charge_job(void *ctx, const void *value)
{
    struct charges *charges = ctx;
    const struct job *job = value;
    const struct vopr_shape *shape = cluster_shape(charges->v, job->meta.uid);
    int64_t count = vopr_admitted_count(job);
    bool runs = is_running(charges->v, job);
    bool is_sure = runs && !is_among(charges->v->is_restarted, job);
    if (shape == NULL || count < 0 || (charges->is_sure_only && !is_sure)) {
        return;
    }
    charges->job_uid = job->meta.uid;
    charges->live_pods = 0;
    sim_each(charges->v->sim, KIND_POD, count_pod, charges);
    int64_t charged = charges->live_pods < count ? charges->live_pods : count;
    if (runs) {
        int64_t left = shape->pods - job->status.succeeded.value;
        charged = count < left ? count : left;
    }
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        charges->used[shape->queue][r] += charged * shape->per_pod[r];
    }
    if (shape->is_shared && charged > 0) {
        charges->used[shape->queue][DEVICES]++;
    }
}

static void charge_known_job(void *ctx, const void *value)
{
    const struct charges *charges = ctx;
    const struct job *job = value;
    bool is_known = true;
    for (uint32_t i = 0; i < VOPR_JOBS; i++) {
        is_known =
            is_known && (known_to_run(charges->v, i) || !str_eq(job->meta.name, job_name(i)));
    }
    if (is_known) {
        charge_job(ctx, job);
    }
}

static struct charges count_charges(struct vopr *v, bool is_sure_only)
{
    struct charges charges = {.v = v, .is_sure_only = is_sure_only};
    sim_each(v->sim, KIND_JOB, charge_known_job, &charges);
    if (!is_sure_only) {
        sim_each(v->sim, KIND_POD, charge_orphan, &charges);
    }
    return charges;
}

int64_t vopr_used(struct vopr *v, uint32_t queue, enum vopr_resource resource)
{
    struct charges charges = count_charges(v, true);
    return queue < 2 ? charges.used[0][resource] + charges.used[1][resource]
                     : charges.used[queue][resource];
}

struct claim_users {
    struct str name, uid; /* of the Job that is asked about */
    bool has_others;
};

static void find_other_user(void *ctx, const void *value)
{
    struct claim_users *users = ctx;
    const struct pod *pod = value;
    bool is_over =
        str_eq_c(pod->status.phase, "Succeeded") || str_eq_c(pod->status.phase, "Failed");
    users->has_others =
        users->has_others || (!is_over && str_starts_with(pod->meta.name, users->name) &&
                              !str_eq(vopr_job_uid(pod), users->uid));
}

/* What is left of the Job that had its name before holds its claim, and pays for it. */
static bool is_claim_paid(struct vopr *v, const struct job *job)
{
    struct claim_users users = {.name = job->meta.name, .uid = job->meta.uid};
    sim_each(v->sim, KIND_POD, find_other_user, &users);
    return users.has_others;
}

static bool asks_for(struct vopr *v, const struct job *job, const struct vopr_shape *shape,
                     enum vopr_resource resource)
{
    return shape->per_pod[resource] > 0 ||
           (resource == DEVICES && shape->is_shared && !is_claim_paid(v, job));
}

static void check_quota(struct vopr *v, uint32_t number)
{
    if (sim_now_ms(v->sim) - v->quota_changed_ms > SEEN_MS) {
        memcpy(v->quota_seen, v->quota, sizeof(v->quota));
    }
    int64_t(*quotas)[RESOURCE_COUNT] = known_at_start(v, number) ? v->quota : v->quota_seen;
    struct charges charges = count_charges(v, v->is_charge_unsure);
    const struct job *job = sim_find(v->sim, KIND_JOB, STR("default"), job_name(number));
    const struct vopr_shape *shape = job == NULL ? NULL : cluster_shape(v, job->meta.uid);
    for (int r = 0; r < RESOURCE_COUNT && shape != NULL; r++) {
        /* Others may be over theirs since it was cut; nobody starts who takes from that. */
        bool is_lab = shape->queue < 2;
        int64_t used = is_lab ? charges.used[0][r] + charges.used[1][r] : charges.used[2][r];
        int64_t quota = is_lab ? quotas[0][r] + quotas[1][r] : quotas[2][r];
        if (used > quota && asks_for(v, job, shape, (enum vopr_resource)r)) {
            fail_msg("admitting " STR_FMT " goes over quota: %lld of %lld of resource %d",
                     STR_ARG(job_name(number)), (long long)used, (long long)quota, r);
        }
    }
}

void check_admission(struct vopr *v, uint32_t number)
{
    if (v->is_admitted[number]) {
        fail_msg(STR_FMT " is admitted twice", STR_ARG(job_name(number)));
    }
    v->is_admitted[number] = true;
    if (!known_to_run(v, number)) {
        return; /* what was so when that was decided may be so no more */
    }
    check_quota(v, number);
    if (is_room_known(v)) {
        check_room(v, number);
    }
    check_order(v, number);
}

/* -- at every moment ----------------------------------------------------------------------------
 */

void check_moment(struct vopr *v)
{
    struct err err;
    if (rc_failed(sim_check(v->sim, &err))) {
        fail_msg("%s", err.text);
    }
    for (uint32_t i = 0; i < VOPR_JOBS; i++) {
        check_duration(v, i);
    }
    for (uint32_t i = 0; i < VOPR_JOBS && !v->is_disturbed; i++) {
        struct sim_job_state state;
        if (sim_job_state(v->sim, STR("default"), job_name(i), &state) &&
            state.partial_max_ms > BINDING_MS) {
            fail_msg(STR_FMT " had some of its pods bound and not all for %lld ms",
                     STR_ARG(job_name(i)), (long long)state.partial_max_ms);
        }
    }
}

/* -- at the end ---------------------------------------------------------------------------------
 */

static bool cannot_fit(const struct admission *admission)
{
    return str_eq_c(admission->status.reason, "Invalid") ||
           str_eq_c(admission->status.reason, "NeverFits");
}

/* Of all that go on, whoever still waits does so for ever. */
static void check_queue(struct vopr *v, uint32_t number, int64_t waiting)
{
    const struct queue *queue = sim_find(v->sim, KIND_QUEUE, STR_NONE, queue_name(number));
    const struct queue_status *status = &queue->status;
    if (status->pending.value != waiting || status->admitted.value != 0) {
        fail_msg("Queue " STR_FMT " says that %lld wait and %lld are admitted, not %lld and 0",
                 STR_ARG(queue_name(number)), (long long)status->pending.value,
                 (long long)status->admitted.value, (long long)waiting);
    }
    for (uint32_t f = 0; f < status->flavors.count; f++) {
        const struct usage_resource_list *resources = &status->flavors.items[f].resources;
        for (uint32_t r = 0; r < resources->count; r++) {
            if (!str_eq_c(resources->items[r].used, "0")) {
                fail_msg("Queue " STR_FMT " says that " STR_FMT " of " STR_FMT
                         " are used, when all has ended",
                         STR_ARG(queue_name(number)), STR_ARG(resources->items[r].used),
                         STR_ARG(resources->items[r].name));
            }
        }
    }
}

void check_drained(struct vopr *v)
{
    int64_t waiting[VOPR_QUEUES] = {0};
    for (uint32_t i = 0; i < VOPR_JOBS; i++) {
        const struct job *job = sim_find(v->sim, KIND_JOB, STR("default"), job_name(i));
        if (job != NULL && !vopr_is_over(job)) {
            const struct admission *admission =
                sim_find(v->sim, KIND_ADMISSION, STR("default"), job_name(i));
            if (v->is_scaled[i] && admission != NULL && cannot_fit(admission)) {
                bool is_queued = str_eq_c(admission->status.reason, "NeverFits");
                for (uint32_t q = 0; q < VOPR_QUEUES && is_queued; q++) {
                    waiting[q] += str_eq(admission->spec.queue, queue_name(q)) ? 1 : 0;
                }
                continue;
            }
            fail_msg(STR_FMT " hasn't ended: " STR_FMT, STR_ARG(job_name(i)),
                     STR_ARG(admission == NULL ? STR("no Admission") : admission->status.summary));
        }
    }
    for (uint32_t q = 0; q < VOPR_QUEUES; q++) {
        check_queue(v, q, waiting[q]);
    }
}
