/* check.c - what must hold in a small world, by the API server's side alone. */
#include "small.h"

#include <string.h>

#include "tallyman/base/text.h"

#define DRAIN_STEPS_MAX 2000
#define PAUSE_MS        60000
#define DRAIN_MS        (24 * 3600000LL)
#define STOPS_MAX       2 /* of a gang, on one way */

static uint32_t live_pods(const struct small_world *world, uint8_t gang)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SMALL_PODS; i++) {
        uint8_t stage = world->state.pods[gang][i].stage;
        count += stage == POD_PENDING || stage == POD_BOUND || stage == POD_STOPPING;
    }
    return count;
}

/* All its pods while it runs, and those that are left while it stops. */
static uint32_t held_pods(const struct small_world *world, uint8_t gang)
{
    const struct small_job *job = &world->state.jobs[gang];
    bool is_running = job->stage == STAGE_THERE && !job->is_suspended && !job->is_complete;
    uint32_t live = live_pods(world, gang);
    return is_running && live < world->scope->gangs[gang].pods ? world->scope->gangs[gang].pods
                                                               : live;
}

void check_started(const struct small_world *world, uint8_t gang)
{
    const struct small_state *state = &world->state;
    if (world->is_quiet || state->is_room_unsure) {
        return;
    }
    uint32_t held = 0;
    uint32_t quota = 0;
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        held += held_pods(world, i);
    }
    for (uint32_t i = 0; i < SMALL_QUEUES; i++) {
        quota += world->scope->quota[i];
    }
    if (held > quota) {
        small_fail("starting %s goes over quota: %u of %u", world->scope->gangs[gang].name, held,
                   quota);
    }
    if (held > (uint32_t)(SMALL_NODES * world->scope->node_cpu)) {
        small_fail("starting %s goes beyond the nodes: %u pods of 1 cpu, %d cpus",
                   world->scope->gangs[gang].name, held, SMALL_NODES * world->scope->node_cpu);
    }
    if (state->jobs[gang].record == 0) {
        small_fail("%s runs without a record", world->scope->gangs[gang].name);
    }
    if (state->jobs[gang].is_complete) {
        small_fail("%s is started though it has ended", world->scope->gangs[gang].name);
    }
}

void check_room(const struct small_world *world, uint8_t gang, bool is_placed)
{
    if (world->is_quiet || world->state.is_room_unsure || is_placed) {
        return;
    }
    if (!cluster_can_place(world, gang)) {
        small_fail("the pods of %s have no room all at once", world->scope->gangs[gang].name);
    }
}

void check_stopped(const struct small_world *world, uint8_t gang)
{
    if (!world->is_quiet && world->state.stops[gang] > STOPS_MAX) {
        small_fail("%s is stopped for the third time", world->scope->gangs[gang].name);
    }
}

/* -- a restart ------------------------------------------------------------------------------------
 */

static struct str decisions(const struct small_world *world, struct arena *arena)
{
    struct text text;
    text_init(&text, arena, 4096);
    struct decided_list list = core_decisions(world->core, arena);
    for (uint32_t i = 0; i < list.count; i++) {
        const struct decided_gang *gang = &list.items[i];
        text_addf(&text, STR_FMT " %s %lld\n", STR_ARG(gang->uid), decision_name(gang->decision),
                  (long long)gang->pods);
    }
    return text_str(&text);
}

void check_restart(const struct small_world *world)
{
    struct arena arena;
    arena_init(&arena);
    struct small_world *anew = world_restarted(world);
    struct str before = decisions(world, &arena);
    struct str after = decisions(anew, &arena);
    if (!str_eq(before, after)) {
        small_fail("a restart decides otherwise: before\n" STR_FMT "after\n" STR_FMT,
                   STR_ARG(before), STR_ARG(after));
    }
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        if (anew->state.writes[i].stage != WRITE_NONE) {
            small_fail("a controller that starts now writes to %s at once",
                       world->scope->gangs[i].name);
        }
    }
    world_free(anew);
    arena_deinit(&arena);
}

/* A pause after a refusal, or until a status may be written, isn't rest. False: it went on. */
bool check_pauses(struct small_world *world)
{
    world->is_draining = true;
    int64_t until_ms = world->state.now_ms + PAUSE_MS;
    struct small_step tick = {STEP_TICK, 0};
    while (world->wake_ms <= until_ms && world_can(world, tick)) {
        world_do(world, tick);
    }
    return world_is_quiet(world);
}

/* -- the end --------------------------------------------------------------------------------------
 */

static bool do_any(struct small_world *world, uint8_t from, uint8_t to)
{
    for (uint8_t kind = from; kind <= to; kind++) {
        for (uint8_t gang = 0; gang < SMALL_GANGS; gang++) {
            struct small_step step = {kind, gang};
            bool is_new = kind == STEP_ARRIVE;
            if (!is_new && world_can(world, step)) {
                world_do(world, step);
                return true;
            }
        }
    }
    return false;
}

void check_drains(struct small_world *world)
{
    world->is_draining = true;
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        struct small_step lift = {STEP_LIFT, i};
        if (world_can(world, lift)) {
            world_do(world, lift);
        }
    }
    int64_t until_ms = world->state.now_ms + DRAIN_MS;
    uint32_t steps = 0;
    for (; steps < DRAIN_STEPS_MAX; steps++) {
        if (do_any(world, STEP_DELIVER_JOB, STEP_GONE) || do_any(world, STEP_END, STEP_END)) {
            continue;
        }
        if (world->wake_ms > until_ms || !do_any(world, STEP_TICK, STEP_TICK)) {
            break;
        }
    }
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        const struct small_job *job = &world->state.jobs[i];
        if (job->stage == STAGE_THERE && !job->is_complete) {
            small_fail("%s never runs, though all others have ended", world->scope->gangs[i].name);
        }
    }
    if (steps == DRAIN_STEPS_MAX) {
        small_fail("it doesn't come to rest within %d steps", DRAIN_STEPS_MAX);
    }
}
