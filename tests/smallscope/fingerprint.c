/* fingerprint.c - two ways that end in the same fingerprint go on alike: what the API server has
 * and what is on its way, and all that the core remembers and decides by. Left out are texts that
 * only people read, counters that only tell apart, and numbers of versions: how far they are apart
 * is in. main.c tries on a sample whether that is so (--verify). */
#include "small.h"

#include <string.h>

#include "../../controller/core/gang_walk.h"
#include "../../controller/core/internal.h"
#include "../../controller/core/wait.h"

static void mix(uint64_t *hash, uint64_t value)
{
    uint64_t h = (*hash ^ value) * 0x9e3779b97f4a7c15u;
    *hash = h ^ (h >> 29);
}

static void mix_str(uint64_t *hash, struct str text)
{
    mix(hash, str_is_set(text) ? text.len + 1 : 0);
    for (size_t i = 0; str_is_set(text) && i < text.len; i++) {
        mix(hash, (uint8_t)text.ptr[i]);
    }
}

/* -- the API server's side -----------------------------------------------------------------------
 */

static uint16_t behind(const struct small_state *state, uint8_t gang, uint16_t version)
{
    return version == 0 ? 0 : (uint16_t)(1 + state->jobs[gang].version - version);
}

static void mix_admission(uint64_t *hash, const struct admission *admission)
{
    mix(hash, admission != NULL);
    if (admission == NULL) {
        return;
    }
    mix_str(hash, admission->spec.job_uid);
    mix_str(hash, admission->status.state);
    mix_str(hash, admission->status.reason);
    mix(hash, (uint64_t)admission->status.evictions.value);
    if (admission->status.requeue != NULL) {
        mix(hash, (uint64_t)admission->status.requeue->count.value);
        mix(hash, (uint64_t)admission->status.requeue->at.ms);
    }
}

static void mix_state(uint64_t *hash, const struct small_world *world)
{
    struct small_state state = world->state;
    /* What can't happen any more needn't be told apart. */
    uint32_t edits = (1u << STEP_FAULTS) - (1u << STEP_EDITS);
    state.used_kinds &= state.user_edits == world->scope->user_edits ? ~edits : UINT32_MAX;
    state.used_kinds &= state.faults == world->scope->faults ? (1u << STEP_FAULTS) - 1 : UINT32_MAX;
    for (uint8_t i = 0; i < SMALL_GANGS; i++) {
        state.told_jobs[i].version = behind(&world->state, i, state.told_jobs[i].version);
        state.writes[i].base_version = behind(&world->state, i, state.writes[i].base_version);
        state.writes[i].result_version = behind(&world->state, i, state.writes[i].result_version);
        state.jobs[i].version = state.jobs[i].version != 0;
    }
    for (uint32_t i = 0; i < state.job_event_count; i++) {
        struct small_job_event *event = &state.job_events[i];
        event->job.version = behind(&world->state, event->gang, event->job.version);
    }
    const uint8_t *bytes = (const uint8_t *)&state;
    for (size_t i = 0; i < sizeof(state); i++) {
        mix(hash, bytes[i]);
    }
    for (uint32_t i = 0; i < SMALL_GANGS; i++) {
        mix_admission(hash, world->admissions[i]);
    }
    for (uint32_t i = 0; i < world->admission_write_count; i++) {
        mix(hash, world->admission_writes[i].gang);
        mix_admission(hash, world->admission_writes[i].content);
    }
    mix(hash, (uint64_t)world->wake_ms);
}

/* -- the core's memory ---------------------------------------------------------------------------
 */

static void mix_reservation(uint64_t *hash, const struct reservation *reservation)
{
    mix(hash, reservation != NULL);
    if (reservation == NULL) {
        return;
    }
    mix_str(hash, reservation->queue->name);
    for (uint32_t i = 0; i < reservation->set_count; i++) {
        mix(hash, (uint64_t)reservation->sets[i].count);
        for (uint32_t n = 0; n < reservation->sets[i].per_pod.count; n++) {
            mix_str(hash, reservation->sets[i].per_pod.items[n].resource);
            mix(hash, (uint64_t)reservation->sets[i].per_pod.items[n].amount);
        }
    }
}

static void mix_gang_numbers(uint64_t *hash, const struct gang *gang, uint64_t current)
{
    const int64_t numbers[] = {
        gang->priority,
        gang->order_ms,
        gang->size.pods,
        gang->run->active,
        gang->run->ready,
        gang->run->terminating,
        gang->run->succeeded,
        gang->live_pods,
        gang->settled_pods,
        gang->ready_pods,
        gang->run->promised_pods,
        gang->run->promise_settled_pods,
        gang->admitted_ms,
        gang->room->reserved_until_ms,
        gang->look_again_ms,
        gang->run->short_since_ms,
        gang->run->told_short_ms,
        gang->run->conflict_until_ms,
        gang->run->conflict_waits,
        gang->run->write_retry_ms,
        gang->trouble->memory.requeue_count,
        gang->trouble->memory.requeue_at_ms,
        gang->trouble->memory.evictions,
        gang->is_timer_set ? gang->timer_ms : 0,
        gang->run->lost_pods,
        gang->run->seen_ready_pods,
        (int64_t)(current - gang->version),
        (int64_t)(gang->run->write_base_version == 0 ? 0
                                                     : 1 + current - gang->run->write_base_version),
        (int64_t)(gang->run->awaited_version == 0 ? 0 : 1 + current - gang->run->awaited_version),
        gang->run->write_effect_id != 0,
        gang->admission_effect_id != 0,
        gang->state,
        gang->shown_state,
        gang->shown_reason,
        gang->run->write_effect_id != 0 ? gang->write_purpose : 0};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        mix(hash, (uint64_t)numbers[i]);
    }
}

static void mix_gang(uint64_t *hash, const struct gang *gang, uint64_t current)
{
    mix_gang_numbers(hash, gang, current);
    const bool flags[] = {gang->is_in_queue,
                          gang->is_in_unbound,
                          gang->is_job_gone,
                          gang->is_suspended,
                          gang->is_job_finished,
                          gang->is_hold_wanted,
                          gang->has_suspended_condition,
                          gang->has_started,
                          gang->is_ending,
                          gang->wakes_preemptors,
                          gang->wakes_promised,
                          gang->state == GANG_RESERVED && gang->may_start_early,
                          gang->state == GANG_RESERVED && gang->is_beside_others,
                          gang->is_stop_counted,
                          gang->is_admission_dirty,
                          gang->is_admission_seen,
                          gang->record != NULL,
                          gang->suspended != NULL,
                          str_is_set(gang->trouble->refusal)};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        mix(hash, flags[i]);
    }
    mix_str(hash, gang->queue == NULL ? STR_NONE : gang->queue->name);
    mix_str(hash, gang->run->stop_cause == NULL ? STR_NONE : str_from_c(gang->run->stop_cause));
    mix_str(hash, gang->stops_for);
    mix_str(hash, gang->room->reserved_shape == NULL ? STR_NONE : gang->room->reserved_shape->key);
    mix_str(hash, gang->suspended == NULL ? STR_NONE : gang->suspended->cause);
    mix_reservation(hash, gang->reservation);
}

static uint64_t hash_shape(const struct shape *shape)
{
    uint64_t hash = 1;
    mix_str(&hash, shape->key);
    const uint64_t numbers[] = {shape->is_ready,         shape->is_in_line,
                                shape->verdict.reason,   shape->verdict.waits_for,
                                shape->is_room_waiter,   shape->is_preemptor,
                                shape->is_room_changed,  shape->is_preempting_beside_promises,
                                shape->is_beyond_help,   shape->is_help_unsure,
                                shape->is_woken_by_cell, shape->users};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        mix(&hash, numbers[i]);
    }
    for (uint32_t i = 0; i < shape->wait_count; i++) {
        mix(&hash, (uint64_t)shape->waits[i].asked);
        mix(&hash, shape->waits[i].line->is_woken);
    }
    return hash;
}

static uint64_t hash_pod(const struct pod_state *pod)
{
    uint64_t hash = 2;
    mix_str(&hash, pod->uid);
    mix_str(&hash, pod->node == NULL ? STR_NONE : pod->node->name);
    const bool flags[] = {pod->is_settled,     pod->is_terminal,
                          pod->is_ready,       pod->is_succeeded,
                          pod->is_terminating, pod->group != NULL && pod->group->gang != NULL};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        mix(&hash, flags[i]);
    }
    return hash;
}

static void mix_queue(uint64_t *hash, const struct queue_state *queue)
{
    mix(hash, queue->pending_count);
    mix(hash, queue->admitted_count);
    mix(hash, queue->has_grown);
    mix_str(hash, queue->blocker == NULL ? STR_NONE : queue->blocker->uid);
    mix(hash, queue->is_due_set ? (uint64_t)queue->due_ms : 0);
    for (uint32_t i = 0; i < queue->node.cell_count; i++) {
        mix(hash, (uint64_t)queue->node.cells[i].used);
    }
}

static void mix_core(uint64_t *hash, const struct small_world *world)
{
    struct core *core = world->core;
    struct gang_walk walk;
    gang_walk_begin(core, &walk, NULL, NULL);
    for (const struct gang *gang; (gang = gang_walk_next(core, &walk)) != NULL;) {
        uint8_t number = objects_gang_of(gang->uid);
        mix(hash, number);
        mix_gang(hash, gang, world->state.jobs[number].version);
    }
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        mix_queue(hash, queue);
    }
    uint64_t sum = 0; /* of tables without an order */
    for (const struct shape *shape = core->shapes; shape != NULL; shape = shape->hh.next) {
        sum += hash_shape(shape);
    }
    uint32_t at = 0;
    for (const struct pod_state *pod; (pod = table_next(&core->pods, &at)) != NULL;) {
        sum += hash_pod(pod);
    }
    mix(hash, sum);
    const bool flags[] = {core->has_freed,     core->has_room_changed,    core->has_grown,
                          core->is_tree_stale, core->may_finish_reserved, core->has_freed_quota,
                          core->has_unsettled};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        mix(hash, flags[i]);
    }
    mix(hash, core->reserved.count);
    mix(hash, (uint64_t)core->next_ghost_check_ms);
}

uint64_t world_fingerprint(const struct small_world *world)
{
    uint64_t hash = 0x74616c6c;
    mix_state(&hash, world);
    mix_core(&hash, world);
    return hash;
}
