/* cluster.c - the API server's side of a small world: Jobs, pods, and what writes do to them. */
#include "small.h"

#include <stdio.h>
#include <string.h>

#define RETRY_MS 1000

/* -- the API server's side ------------------------------------------------------------------------
 */

void cluster_job_changed(struct small_world *world, uint8_t gang)
{
    struct small_state *state = &world->state;
    state->jobs[gang].version++;
    if (state->job_event_count == SMALL_STREAM) {
        small_fail("more than %d events of Jobs on their way", SMALL_STREAM);
    }
    state->job_events[state->job_event_count++] =
        (struct small_job_event){.gang = gang, .job = state->jobs[gang]};
}

static void pods_changed(struct small_world *world, uint8_t gang)
{
    struct small_state *state = &world->state;
    if (state->pod_event_count == SMALL_STREAM) {
        small_fail("more than %d events of pods on their way", SMALL_STREAM);
    }
    struct small_pod_event *event = &state->pod_events[state->pod_event_count++];
    event->gang = gang;
    memcpy(event->pods, state->pods[gang], sizeof(event->pods));
    for (uint32_t i = 0; i < SMALL_PODS; i++) { /* what is gone is told once */
        if (state->pods[gang][i].stage == POD_REMOVED) {
            state->pods[gang][i] = (struct small_pod){.batch = state->pods[gang][i].batch};
        }
    }
}

bool cluster_has_pods(const struct small_world *world, uint8_t gang, uint8_t stage)
{
    for (uint32_t i = 0; i < SMALL_PODS; i++) {
        if (world->state.pods[gang][i].stage == stage) {
            return true;
        }
    }
    return false;
}

static void set_pods(struct small_world *world, uint8_t gang, uint8_t from, uint8_t to)
{
    for (uint32_t i = 0; i < SMALL_PODS; i++) {
        struct small_pod *pod = &world->state.pods[gang][i];
        if (pod->stage == from) {
            pod->stage = to;
        }
    }
}

bool cluster_is_alive(const struct small_world *world, uint8_t gang)
{
    return cluster_has_pods(world, gang, POD_PENDING) || cluster_has_pods(world, gang, POD_BOUND) ||
           cluster_has_pods(world, gang, POD_STOPPING);
}

static uint8_t free_on(const struct small_world *world, uint8_t node)
{
    uint8_t used = 0;
    for (uint8_t g = 0; g < SMALL_GANGS; g++) {
        for (uint32_t i = 0; i < SMALL_PODS; i++) {
            const struct small_pod *pod = &world->state.pods[g][i];
            bool holds = pod->stage == POD_BOUND || pod->stage == POD_STOPPING;
            used = (uint8_t)(used + (holds && pod->node == node ? 1 : 0));
        }
    }
    return (uint8_t)(world->scope->node_cpu - used);
}

bool cluster_can_place(const struct small_world *world, uint8_t gang)
{
    int missing = 0;
    for (uint32_t i = 0; i < SMALL_PODS; i++) {
        missing += world->state.pods[gang][i].stage == POD_PENDING ? 1 : 0;
    }
    return missing > 0 && free_on(world, 1) + free_on(world, 2) >= missing;
}

void cluster_place_pods(struct small_world *world, uint8_t gang, bool from_last)
{
    for (uint32_t i = 0; i < SMALL_PODS; i++) {
        struct small_pod *pod = &world->state.pods[gang][i];
        if (pod->stage == POD_PENDING) {
            uint8_t first = from_last ? 2 : 1;
            pod->node = free_on(world, first) > 0 ? first : (uint8_t)(3 - first);
            pod->stage = POD_BOUND;
        }
    }
    pods_changed(world, gang);
    check_room(world, gang, true);
}

void cluster_make_pods(struct small_world *world, uint8_t gang)
{
    struct small_job *job = &world->state.jobs[gang];
    uint8_t count = world->scope->gangs[gang].pods;
    for (uint32_t i = 0; i < count; i++) {
        struct small_pod *pod = &world->state.pods[gang][i];
        *pod = (struct small_pod){.stage = POD_PENDING, .batch = (uint8_t)(pod->batch + 1)};
    }
    job->is_started = true;
    job->has_stopped = false;
    job->active = count;
    check_room(world, gang, false);
    if (world->scope->placements == 0 && cluster_can_place(world, gang)) {
        cluster_place_pods(world, gang, false);
    } else {
        pods_changed(world, gang);
    }
    cluster_job_changed(world, gang);
}

void cluster_stop_pods(struct small_world *world, uint8_t gang)
{
    struct small_job *job = &world->state.jobs[gang];
    set_pods(world, gang, POD_PENDING, POD_STOPPING);
    set_pods(world, gang, POD_BOUND, POD_STOPPING);
    if (job->stage == STAGE_THERE) {
        job->terminating = job->active;
        job->active = 0;
        job->has_stopped = true;
        job->is_started = false;
        cluster_job_changed(world, gang);
    }
    pods_changed(world, gang);
}

void cluster_pods_gone(struct small_world *world, uint8_t gang)
{
    struct small_job *job = &world->state.jobs[gang];
    set_pods(world, gang, POD_STOPPING, POD_REMOVED);
    pods_changed(world, gang);
    if (job->stage == STAGE_THERE) {
        job->terminating = 0;
        cluster_job_changed(world, gang);
    }
}

void cluster_end(struct small_world *world, uint8_t gang)
{
    struct small_job *job = &world->state.jobs[gang];
    set_pods(world, gang, POD_BOUND, POD_DONE);
    job->succeeded = world->scope->gangs[gang].pods;
    job->active = 0;
    job->is_complete = true;
    pods_changed(world, gang);
    cluster_job_changed(world, gang);
}

/* The garbage collector deletes its pods and its Admission. */
void cluster_delete_job(struct small_world *world, uint8_t gang)
{
    struct small_job *job = &world->state.jobs[gang];
    bool is_unseen = memcmp(world->state.told_pods[gang], world->state.pods[gang],
                            sizeof(world->state.pods[gang])) != 0;
    if ((cluster_is_alive(world, gang) && is_unseen) ||
        (job->stage == STAGE_THERE && !job->is_suspended && !cluster_is_alive(world, gang))) {
        world->state.is_room_unsure = true;
    }
    job->stage = STAGE_GONE;
    set_pods(world, gang, POD_DONE, POD_REMOVED);
    cluster_job_changed(world, gang);
    if (cluster_is_alive(world, gang)) {
        cluster_stop_pods(world, gang);
    } else {
        pods_changed(world, gang);
    }
    uint8_t first = objects_first_named(world->scope, gang);
    const struct admission *admission = world->admissions[first];
    if (admission != NULL && str_eq(admission->spec.job_uid, objects_uid(gang))) {
        world_remove_admission(world, first);
    }
}

/* -- writes ---------------------------------------------------------------------------------------
 */

/* Where Tallyman's own write is let through. */
static void patch_job(struct small_world *world, uint8_t gang)
{
    struct small_write *write = &world->state.writes[gang];
    struct small_job *job = &world->state.jobs[gang];
    bool is_start = write->has_suspend && !write->suspend;
    bool is_stop = write->has_suspend && write->suspend && !job->is_suspended;
    job->is_suspended = write->has_suspend ? write->suspend : job->is_suspended;
    job->record = write->removes_record ? 0 : write->record != 0 ? write->record : job->record;
    job->suspended = write->removes_suspended ? 0
                     : write->suspended != 0  ? write->suspended
                                              : job->suspended;
    job->is_held = job->is_held || write->sets_hold;
    cluster_job_changed(world, gang);
    write->outcome = WRITE_OK;
    write->result_version = job->version;
    if (is_start) {
        check_started(world, gang);
    } else if (is_stop) {
        world->state.stops[gang]++;
        check_stopped(world, gang);
    }
}

void cluster_carry_out(struct small_world *world, uint8_t gang)
{
    struct small_write *write = &world->state.writes[gang];
    struct small_job *job = &world->state.jobs[gang];
    write->stage = WRITE_APPLIED;
    if (job->stage != STAGE_THERE) {
        write->outcome = WRITE_GONE;
        return;
    }
    if (write->base_version != 0 && write->base_version != job->version) {
        write->outcome = WRITE_CONFLICT;
        return;
    }
    patch_job(world, gang);
}

void cluster_answer(struct small_world *world, uint8_t gang, enum write_outcome outcome)
{
    struct small_write *write = &world->state.writes[gang];
    char version[16];
    (void)snprintf(version, sizeof(version), "%u", write->result_version);
    struct driver_answer answer = {.outcome = outcome, .message = STR("denied")};
    if (outcome == WRITE_OK) {
        answer.resource_version = str_from_c(version);
    }
    if (outcome == WRITE_RETRY) {
        answer.retry_after_ms = RETRY_MS;
        write->stage = WRITE_PAUSED;
        write->outcome = 0;
        write->result_version = 0;
    } else {
        *write = (struct small_write){0};
    }
    driver_write_done(world->driver, world->write_ids[gang], &answer);
}
