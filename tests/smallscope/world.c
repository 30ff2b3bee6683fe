/* world.c - the controller in a small world: its writes, its life, what its watches tell. */
#include "small.h"

#include <stdio.h>
#include <string.h>

#include "tallyman/api/codec.h"
#include "tallyman/base/alloc.h"

/* -- the driver's ports ---------------------------------------------------------------------------
 */

static int64_t port_now_ms(void *ctx)
{
    return ((const struct small_world *)ctx)->state.now_ms;
}

static void port_wake_at(void *ctx, int64_t at_ms)
{
    ((struct small_world *)ctx)->wake_ms = at_ms;
}

static void take_job_write(struct small_world *world, const struct driver_write *write)
{
    const struct job_patch *patch = &write->effect->patch;
    uint8_t gang = objects_gang_of(write->effect->uid);
    struct small_write *kept = &world->state.writes[gang];
    uint16_t base = 0;
    for (size_t i = 0; i < write->effect->resource_version.len; i++) {
        base = (uint16_t)(base * 10 + (write->effect->resource_version.ptr[i] - '0'));
    }
    if (kept->stage != WRITE_NONE && kept->stage != WRITE_PAUSED) {
        small_fail("two writes of one Job are on their way");
    }
    *kept = (struct small_write){.stage = WRITE_SENT,
                                 .purpose = (uint8_t)patch->purpose,
                                 .has_suspend = patch->suspend.is_set,
                                 .suspend = patch->suspend.value,
                                 .removes_record = patch->removes_record,
                                 .removes_suspended = patch->removes_suspended,
                                 .sets_hold = patch->sets_hold,
                                 .record = text_id(patch->record),
                                 .suspended = text_id(patch->suspended),
                                 .base_version = base};
    world->write_ids[gang] = write->id;
}

static void take_admission_write(struct small_world *world, const struct driver_write *write)
{
    struct small_admission_write *kept = &world->admission_writes[world->admission_write_count++];
    *kept = (struct small_admission_write){
        .id = write->id, .is_deletion = write->effect->kind == EFFECT_DELETE_ADMISSION};
    struct str name = kept->is_deletion ? write->effect->name : write->admission->meta.name;
    while (!str_eq_c(name, world->scope->gangs[kept->gang].name)) {
        kept->gang++;
    }
    if (kept->is_deletion) {
        kept->uid = write->effect->uid;
    } else {
        kept->content = object_clone(kind_info(KIND_ADMISSION)->schema, write->admission);
    }
}

static void port_write(void *ctx, const struct driver_write *write)
{
    struct small_world *world = ctx;
    switch (write->effect->kind) {
    case EFFECT_PATCH_JOB:
        take_job_write(world, write);
        break;
    case EFFECT_WRITE_ADMISSION:
    case EFFECT_DELETE_ADMISSION:
        take_admission_write(world, write);
        break;
    case EFFECT_RECORD_EVENT:
    case EFFECT_WRITE_STATUS:
    case EFFECT_SET_FINALIZER:
    case EFFECT_MARK_POD:
    case EFFECT_MAKE_REQUEST:
    case EFFECT_DELETE_REQUEST:
    case EFFECT_PERSIST:
    case EFFECT_LEDGER:
        world->answers[world->answer_count++] = write->id;
        break;
    }
}

/* -- Admissions -----------------------------------------------------------------------------------
 */

static void tell_admission(struct small_world *world, const struct admission *admission,
                           bool is_deleted)
{
    struct object told = {.kind = KIND_ADMISSION, .value = &admission->meta};
    if (is_deleted) {
        driver_deleted(world->driver, &told);
    } else {
        driver_object(world->driver, &told);
    }
}

static void store_admission(struct small_world *world, uint8_t gang, struct admission *content)
{
    struct admission **place = &world->admissions[gang];
    char text[16];
    (void)snprintf(text, sizeof(text), "%u", ++world->admission_serial);
    struct admission stored = *content;
    stored.meta.uid = *place != NULL ? (*place)->meta.uid : str_from_c(text);
    stored.meta.resource_version = str_from_c(text);
    struct admission *clone = object_clone(kind_info(KIND_ADMISSION)->schema, &stored);
    mem_free(*place);
    *place = clone;
    tell_admission(world, *place, false);
}

void world_remove_admission(struct small_world *world, uint8_t gang)
{
    struct admission *gone = world->admissions[gang];
    world->admissions[gang] = NULL;
    if (gone != NULL && world->driver != NULL) {
        tell_admission(world, gone, true);
    }
    mem_free(gone);
}

void world_write_admissions(struct small_world *world)
{
    struct small_admission_write writes[16];
    uint32_t count = world->admission_write_count;
    memcpy(writes, world->admission_writes, sizeof(writes));
    world->admission_write_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct driver_answer answer = {.outcome = WRITE_OK};
        const struct admission *there = world->admissions[writes[i].gang];
        if (!writes[i].is_deletion) {
            store_admission(world, writes[i].gang, writes[i].content);
        } else if (there == NULL) {
            answer.outcome = WRITE_GONE;
        } else if (!str_eq(there->meta.uid, writes[i].uid)) {
            answer.outcome = WRITE_CONFLICT;
        } else {
            world_remove_admission(world, writes[i].gang);
        }
        mem_free(writes[i].content);
        driver_write_done(world->driver, writes[i].id, &answer);
    }
}

/* Statuses and Events are carried out at once; so are Admissions where they don't take time. */
void world_settle(struct small_world *world)
{
    while (world->answer_count > 0 ||
           (world->admission_write_count > 0 && !world->scope->has_late_admissions)) {
        if (world->answer_count > 0) {
            struct driver_answer answer = {.outcome = WRITE_OK};
            driver_write_done(world->driver, world->answers[--world->answer_count], &answer);
        } else {
            world_write_admissions(world);
        }
    }
}

/* -- a controller's life --------------------------------------------------------------------------
 */

static void start_controller(struct small_world *world)
{
    struct driver_ports ports = {
        .ctx = world, .now_ms = port_now_ms, .wake_at = port_wake_at, .write = port_write};
    world->core = core_new(&(struct core_options){.stuck_node_ms = 0});
    world->wake_ms = INT64_MAX;
    world->driver = driver_new(world->core, &ports);
    objects_list_given(world->driver);
    struct small_state *state = &world->state;
    memset(state->told_jobs, 0, sizeof(state->told_jobs));
    memset(state->told_pods, 0, sizeof(state->told_pods));
    state->job_event_count = state->pod_event_count = 0;
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        if (state->jobs[i].stage == STAGE_THERE) {
            objects_tell_job(world, i, &state->jobs[i]);
            state->told_jobs[i] = state->jobs[i];
        }
        objects_tell_pods(world, i, state->pods[i]);
        memcpy(state->told_pods[i], state->pods[i], sizeof(state->pods[i]));
        if (world->admissions[i] != NULL) {
            tell_admission(world, world->admissions[i], false);
        }
    }
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        driver_synced(world->driver, (enum object_kind)kind, false);
    }
    world_settle(world);
}

static void stop_controller(struct small_world *world)
{
    driver_free(world->driver);
    core_free(world->core);
    world->driver = NULL;
    world->core = NULL;
    world->answer_count = 0;
    for (uint32_t i = 0; i < world->admission_write_count; i++) {
        mem_free(world->admission_writes[i].content);
    }
    world->admission_write_count = 0;
    memset(world->state.writes, 0, sizeof(world->state.writes));
}

struct small_world *world_new(const struct small_scope *scope)
{
    struct small_world *world = MEM_NEW(struct small_world);
    world->scope = scope;
    world->state.now_ms = SMALL_START_MS;
    start_controller(world);
    return world;
}

struct small_world *world_restarted(const struct small_world *other)
{
    struct small_world *world = MEM_NEW(struct small_world);
    world->scope = other->scope;
    world->state = other->state;
    world->admission_serial = other->admission_serial;
    world->is_quiet = true;
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        if (other->admissions[i] != NULL) {
            world->admissions[i] =
                object_clone(kind_info(KIND_ADMISSION)->schema, other->admissions[i]);
        }
    }
    memset(world->state.writes, 0, sizeof(world->state.writes));
    start_controller(world);
    return world;
}

void world_free(struct small_world *world)
{
    stop_controller(world);
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        mem_free(world->admissions[i]);
    }
    mem_free(world);
}

void world_crash(struct small_world *world, bool is_applied)
{
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        /* Pods whose Job is gone tell the next controller nothing of their queue. */
        world->state.is_room_unsure =
            world->state.is_room_unsure ||
            (world->state.jobs[i].stage == STAGE_GONE && cluster_is_alive(world, i));
        if (is_applied && world->state.writes[i].stage == WRITE_SENT) {
            cluster_carry_out(world, i);
        }
    }
    stop_controller(world);
    start_controller(world);
}

/* -- watches --------------------------------------------------------------------------------------
 */

void world_deliver_job(struct small_world *world)
{
    struct small_state *state = &world->state;
    struct small_job_event event = state->job_events[0];
    memmove(state->job_events, state->job_events + 1,
            --state->job_event_count * sizeof(state->job_events[0]));
    memset(&state->job_events[state->job_event_count], 0, sizeof(state->job_events[0]));
    state->told_jobs[event.gang] = event.job;
    objects_tell_job(world, event.gang, &event.job);
}

static void tell_pods(struct small_world *world, const struct small_pod_event *event)
{
    struct small_pod *told = world->state.told_pods[event->gang];
    memcpy(told, event->pods, sizeof(event->pods));
    for (uint32_t i = 0; i < SMALL_PODS; i++) {
        if (told[i].stage == POD_REMOVED) {
            told[i] = (struct small_pod){.batch = told[i].batch};
        }
    }
    objects_tell_pods(world, event->gang, event->pods);
}

void world_deliver_pods(struct small_world *world)
{
    struct small_state *state = &world->state;
    struct small_pod_event event = state->pod_events[0];
    memmove(state->pod_events, state->pod_events + 1,
            --state->pod_event_count * sizeof(state->pod_events[0]));
    memset(&state->pod_events[state->pod_event_count], 0, sizeof(state->pod_events[0]));
    tell_pods(world, &event);
}

/* What was on its way is lost; the list tells what is there, and the informer what went. */
void world_relist_jobs(struct small_world *world)
{
    struct small_state *state = &world->state;
    memset(state->job_events, 0, sizeof(state->job_events));
    state->job_event_count = 0;
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        if (state->told_jobs[i].stage == STAGE_THERE && state->jobs[i].stage != STAGE_THERE) {
            state->told_jobs[i].stage = STAGE_GONE;
            objects_tell_job(world, i, &state->told_jobs[i]);
        }
    }
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        if (state->jobs[i].stage == STAGE_THERE) {
            state->told_jobs[i] = state->jobs[i];
            objects_tell_job(world, i, &state->jobs[i]);
        }
    }
}

void world_relist_pods(struct small_world *world)
{
    struct small_state *state = &world->state;
    memset(state->pod_events, 0, sizeof(state->pod_events));
    state->pod_event_count = 0;
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        struct small_pod_event gone = {.gang = i};
        for (uint32_t n = 0; n < SMALL_PODS; n++) {
            const struct small_pod *told = &state->told_pods[i][n];
            const struct small_pod *now = &state->pods[i][n];
            bool is_there = now->stage != POD_NONE && now->batch == told->batch;
            if (told->stage != POD_NONE && !is_there) {
                gone.pods[n] = *told;
                gone.pods[n].stage = POD_REMOVED;
            }
        }
        tell_pods(world, &gone);
        struct small_pod_event there = {.gang = i};
        memcpy(there.pods, state->pods[i], sizeof(there.pods));
        tell_pods(world, &there);
    }
}
