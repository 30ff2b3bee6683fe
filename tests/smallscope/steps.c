/* steps.c - what can happen in a small world. */
#include "small.h"

#include <string.h>

static const char *const step_names[STEP_COUNT] = {
    [STEP_DELIVER_JOB] = "the watch shows a Job",
    [STEP_DELIVER_PODS] = "the watch shows pods",
    [STEP_APPLY] = "its write is carried out",
    [STEP_ANSWER] = "its write is answered",
    [STEP_ADMISSIONS] = "Admissions are written",
    [STEP_MAKE_PODS] = "its pods are made",
    [STEP_PLACE] = "its pods are placed",
    [STEP_PLACE_LAST] = "its pods are placed from the last node on",
    [STEP_STOP] = "its pods are deleted",
    [STEP_GONE] = "its pods are gone",
    [STEP_ARRIVE] = "it is made",
    [STEP_END] = "it ends",
    [STEP_TICK] = "time passes",
    [STEP_DELETE] = "its user deletes it",
    [STEP_HOLD] = "its user holds it",
    [STEP_LIFT] = "its user lifts the hold",
    [STEP_TOUCH] = "somebody else writes to it",
    [STEP_LOSE_WRITE] = "its write is lost",
    [STEP_LOSE_ANSWER] = "its write is carried out and the answer lost",
    [STEP_REFUSE] = "its write is refused",
    [STEP_CRASH] = "the controller is killed",
    [STEP_CRASH_APPLIED] = "the controller is killed, its writes arrive",
    [STEP_RELIST_JOBS] = "the watch of Jobs breaks",
    [STEP_RELIST_PODS] = "the watch of pods breaks",
};

const char *step_name(uint8_t kind)
{
    return step_names[kind];
}

/* -- steps ----------------------------------------------------------------------------------------
 */

static bool is_waiting_for_time(const struct small_world *world)
{
    const struct small_state *state = &world->state;
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        if (state->writes[i].stage == WRITE_SENT || state->writes[i].stage == WRITE_APPLIED) {
            return false;
        }
        struct small_step steps[] = {
            {STEP_MAKE_PODS, i}, {STEP_STOP, i}, {STEP_GONE, i}, {STEP_PLACE, i}};
        for (size_t n = 0; n < sizeof(steps) / sizeof(steps[0]); n++) {
            if (world_can(world, steps[n])) {
                return false;
            }
        }
    }
    return state->job_event_count == 0 && state->pod_event_count == 0 &&
           world->admission_write_count == 0;
}

bool world_is_quiet(const struct small_world *world)
{
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        if (world->state.writes[i].stage != WRITE_NONE) {
            return false;
        }
    }
    return is_waiting_for_time(world);
}

static bool can_arrive(const struct small_world *world, uint8_t gang)
{
    uint8_t first = objects_first_named(world->scope, gang);
    return gang < world->scope->gang_count && world->state.jobs[gang].stage == STAGE_NOT_YET &&
           (first == gang || world->state.jobs[first].stage == STAGE_GONE);
}

static bool has_to_stop(const struct small_world *world, uint8_t gang)
{
    const struct small_job *job = &world->state.jobs[gang];
    return job->is_suspended &&
           (job->active > 0 || !job->has_stopped || cluster_has_pods(world, gang, POD_PENDING) ||
            cluster_has_pods(world, gang, POD_BOUND));
}

static bool can_end(const struct small_world *world, uint8_t gang)
{
    return !world->state.jobs[gang].is_suspended && cluster_has_pods(world, gang, POD_BOUND) &&
           !cluster_has_pods(world, gang, POD_PENDING) &&
           !cluster_has_pods(world, gang, POD_STOPPING);
}

/* Its Job is there; most is for those that haven't ended. */
static bool can_by_job(const struct small_world *world, struct small_step step)
{
    const struct small_job *job = &world->state.jobs[step.gang];
    if (job->stage != STAGE_THERE) {
        return false;
    }
    if (step.kind == STEP_DELETE || step.kind == STEP_TOUCH) {
        return true;
    }
    if (job->is_complete) {
        return false;
    }
    switch (step.kind) {
    case STEP_MAKE_PODS:
        return !job->is_suspended && !cluster_is_alive(world, step.gang);
    case STEP_STOP:
        return has_to_stop(world, step.gang);
    case STEP_END:
        return can_end(world, step.gang);
    case STEP_HOLD:
        return !job->is_held;
    default:
        return step.kind == STEP_LIFT && job->is_held;
    }
}

static bool can_by_write(const struct small_world *world, struct small_step step)
{
    uint8_t stage = world->state.writes[step.gang].stage;
    return step.kind == STEP_ANSWER ? stage == WRITE_APPLIED : stage == WRITE_SENT;
}

static bool is_affordable(const struct small_world *world, uint8_t kind)
{
    const struct small_state *state = &world->state;
    if (kind < STEP_EDITS) {
        return true;
    }
    bool is_used = kind != STEP_LIFT && (state->used_kinds >> kind & 1) != 0;
    bool is_paid = kind < STEP_FAULTS ? state->user_edits < world->scope->user_edits
                                      : state->faults < world->scope->faults;
    return !is_used && (is_paid || kind == STEP_LIFT);
}

static bool is_too_far_ahead(const struct small_world *world, uint8_t kind)
{
    bool is_news =
        (kind >= STEP_MAKE_PODS && kind <= STEP_END) || (kind >= STEP_EDITS && kind < STEP_FAULTS);
    return is_news &&
           world->state.job_event_count + world->state.pod_event_count >= world->scope->lag;
}

bool world_can(const struct small_world *world, struct small_step step)
{
    const struct small_state *state = &world->state;
    if (!is_affordable(world, step.kind) || is_too_far_ahead(world, step.kind)) {
        return false;
    }
    switch (step.kind) {
    case STEP_DELIVER_JOB:
    case STEP_RELIST_JOBS:
        return step.gang == 0 && state->job_event_count > 0;
    case STEP_DELIVER_PODS:
    case STEP_RELIST_PODS:
        return step.gang == 0 && state->pod_event_count > 0;
    case STEP_ADMISSIONS:
        return step.gang == 0 && world->admission_write_count > 0;
    case STEP_TICK:
        return step.gang == 0 && (state->ticks < world->scope->ticks || world->is_draining) &&
               world->wake_ms < INT64_MAX && is_waiting_for_time(world);
    case STEP_CRASH:
    case STEP_CRASH_APPLIED:
        return step.gang == 0;
    case STEP_APPLY:
    case STEP_ANSWER:
    case STEP_LOSE_WRITE:
    case STEP_LOSE_ANSWER:
    case STEP_REFUSE:
        return can_by_write(world, step);
    case STEP_PLACE:
        return cluster_can_place(world, step.gang);
    case STEP_PLACE_LAST:
        return world->scope->placements > 1 && cluster_can_place(world, step.gang);
    case STEP_ARRIVE:
        return can_arrive(world, step.gang);
    case STEP_GONE:
        return cluster_has_pods(world, step.gang, POD_STOPPING);
    default:
        return can_by_job(world, step);
    }
}

static void pay(struct small_world *world, uint8_t kind)
{
    struct small_state *state = &world->state;
    if (kind >= STEP_EDITS) {
        state->used_kinds |= 1u << kind;
        state->user_edits = (uint8_t)(state->user_edits + (kind < STEP_FAULTS ? 1 : 0));
        state->faults = (uint8_t)(state->faults + (kind >= STEP_FAULTS ? 1 : 0));
    }
}

static void arrive(struct small_world *world, uint8_t gang)
{
    /* A later one of that name has versions of its own. */
    world->state.jobs[gang] = (struct small_job){.stage = STAGE_THERE,
                                                 .is_suspended = true,
                                                 .has_stopped = true,
                                                 .version = (uint16_t)(1000 * (gang + 1))};
    cluster_job_changed(world, gang);
}

static void edit(struct small_world *world, struct small_step step)
{
    struct small_job *job = &world->state.jobs[step.gang];
    if (step.kind == STEP_DELETE) {
        cluster_delete_job(world, step.gang);
        return;
    }
    job->is_held = step.kind == STEP_HOLD || (step.kind == STEP_TOUCH && job->is_held);
    cluster_job_changed(world, step.gang);
}

static void do_write_step(struct small_world *world, struct small_step step)
{
    uint8_t gang = step.gang;
    switch (step.kind) {
    case STEP_APPLY:
        cluster_carry_out(world, gang);
        break;
    case STEP_ANSWER:
        cluster_answer(world, gang, (enum write_outcome)world->state.writes[gang].outcome);
        break;
    case STEP_LOSE_ANSWER:
        cluster_carry_out(world, gang);
        cluster_answer(world, gang, WRITE_RETRY);
        break;
    case STEP_LOSE_WRITE:
        cluster_answer(world, gang, WRITE_RETRY);
        break;
    default:
        cluster_answer(world, gang, WRITE_REFUSED);
        break;
    }
}

static void tick(struct small_world *world)
{
    struct small_state *state = &world->state;
    state->ticks++;
    state->now_ms = world->wake_ms > state->now_ms ? world->wake_ms : state->now_ms;
    driver_tick(world->driver);
}

static void do_step(struct small_world *world, struct small_step step)
{
    uint8_t gang = step.gang;
    switch (step.kind) {
    case STEP_DELIVER_JOB:
        world_deliver_job(world);
        break;
    case STEP_DELIVER_PODS:
        world_deliver_pods(world);
        break;
    case STEP_ADMISSIONS:
        world_write_admissions(world);
        break;
    case STEP_MAKE_PODS:
        cluster_make_pods(world, gang);
        break;
    case STEP_PLACE:
    case STEP_PLACE_LAST:
        cluster_place_pods(world, gang, step.kind == STEP_PLACE_LAST);
        break;
    case STEP_STOP:
        cluster_stop_pods(world, gang);
        break;
    case STEP_GONE:
        cluster_pods_gone(world, gang);
        break;
    case STEP_ARRIVE:
        arrive(world, gang);
        break;
    case STEP_END:
        cluster_end(world, gang);
        break;
    case STEP_TICK:
        tick(world);
        break;
    case STEP_CRASH:
    case STEP_CRASH_APPLIED:
        world_crash(world, step.kind == STEP_CRASH_APPLIED);
        break;
    case STEP_RELIST_JOBS:
        world_relist_jobs(world);
        break;
    case STEP_RELIST_PODS:
        world_relist_pods(world);
        break;
    default:
        if (step.kind < STEP_EDITS || step.kind >= STEP_FAULTS) {
            do_write_step(world, step);
        } else {
            edit(world, step);
        }
        break;
    }
}

void world_do(struct small_world *world, struct small_step step)
{
    pay(world, step.kind);
    do_step(world, step);
    world_settle(world);
}
