/* checkpoint.c - a gang that can save its work is asked to before it is stopped for another.
 *
 *   Running --asked: annotation checkpoint-request--> Running --saved since, or out of grace-->
 *   Suspending
 *
 * The request stands on the Job, with the gang that it is for beside it, so that a restart takes
 * it up where it was. It goes when the gang has stopped, or when nobody waits for its room any
 * more. */
#include "check.h"
#include "stopping.h"

#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"
#include "tallyman/base/time_text.h"

struct str checkpoint_read_grace(struct core *core, struct str text, int64_t *ret_grace_ms)
{
    *ret_grace_ms = 0;
    if (!str_is_set(text)) {
        return STR_NONE;
    }
    if (!duration_parse(text, ret_grace_ms)) {
        *ret_grace_ms = 0;
        return arena_format(&core->scratch,
                            "annotation %s is \"" STR_FMT
                            "\", and must be a duration of 0 or more, such as \"90s\" or \"5m\"",
                            ANNOTATION_CHECKPOINT_GRACE,
                            STR_ARG(text_quote(&core->scratch, text, 60)));
    }
    bool is_long = *ret_grace_ms > CHECKPOINT_GRACE_MAX_MS;
    *ret_grace_ms = is_long ? CHECKPOINT_GRACE_MAX_MS : *ret_grace_ms;
    return STR_NONE;
}

/* A pod reads its own annotations through a volume, without any rights; its Job's it can't. */
static void mark_pods(struct core *core, const struct gang *victim, struct str since)
{
    for (struct pod_state *pod = gang_first_pod(victim); pod != NULL; pod = pod->next_in_group) {
        if (pod->is_terminal || pod->is_terminating) {
            continue;
        }
        struct effect *effect = effect_new(core, EFFECT_MARK_POD);
        struct arena *arena = core->out->arena;
        effect->object_kind = KIND_POD;
        effect->namespace_name = arena_copy_str(arena, victim->namespace_name);
        effect->name = arena_copy_str(arena, str_skip(pod->key, victim->namespace_name.len + 1));
        effect->uid = arena_copy_str(arena, pod->uid);
        effect->is_urgent = true;
        effect->patch.checkpoint_request = arena_copy_str(arena, since);
        effect->patch.removes_checkpoint = !str_is_set(since);
    }
}

/* A gang that isn't whole has nothing to save yet. */
static bool can_be_asked(const struct gang *victim)
{
    return victim->grace_ms > 0 && victim->state == GANG_RUNNING;
}

static bool has_saved(const struct gang *victim)
{
    return victim->run->checkpoint_ms >= victim->run->request_ms;
}

static void ask(struct core *core, struct gang *victim, const struct gang *gang)
{
    char buffer[TIME_TEXT_BYTES];
    struct str since = time_format_rfc3339(core->now_ms, buffer);
    struct str beneficiary = key_join(&core->scratch, gang->key, gang->uid);
    patch_checkpoint(core, victim, since, beneficiary);
    mark_pods(core, victim, since);
    note_event(core, victim, false, "CheckpointRequested", "Checkpoint",
               arena_format(&core->scratch,
                            "asked to write a checkpoint and to say so in annotation %s; it stops "
                            "whole then, or in " STR_FMT ", to make room for another gang",
                            ANNOTATION_CHECKPOINT,
                            STR_ARG(duration_format_short(victim->grace_ms, buffer))));
    gang_show(core, victim);
}

static void stop(struct core *core, struct gang *victim, const struct gang *gang)
{
    if (!victim->is_stop_counted) {
        victim->is_stop_counted = true;
        gang_count_eviction(victim);
        patch_suspend_for(core, victim, gang);
        patch_tell_victim(core, victim, gang);
    } else {
        patch_suspend_for(core, victim, gang); /* the write didn't come about */
    }
}

void checkpoint_begin(struct core *core, struct gang *victim, const struct gang *gang)
{
    stopping_end(core, victim);
    if (victim->room->check != NULL) {
        patch_tell_victim(core, victim, gang);
        check_let_go(core, victim, "Preempted"); /* there is nothing to stop */
        core->may_finish_reserved = true;
        gang_review(core, victim);
        return;
    }
    stopping_begin(core, victim, gang);
    victim->is_stop_counted = false;
    if (can_be_asked(victim)) {
        ask(core, victim, gang);
    } else {
        stop(core, victim, gang);
    }
}

void checkpoint_go_on(struct core *core, struct gang *victim, const struct gang *gang)
{
    if (victim->run->request_ms == 0 && can_be_asked(victim) && !victim->is_stop_counted) {
        ask(core, victim, gang); /* the write didn't come about */
        return;
    }
    int64_t until_ms = sat_add(victim->run->request_ms, victim->grace_ms);
    if (victim->run->request_ms != 0 && !has_saved(victim) && core->now_ms < until_ms) {
        gang_set_timer(core, victim, until_ms);
        gang_show(core, victim);
        return;
    }
    stop(core, victim, gang);
}

bool checkpoint_withdraw(struct core *core, struct gang *victim)
{
    if (victim->run->request_ms == 0 || !core->has_restored || gang_is_busy(victim) ||
        core->now_ms < victim->run->write_retry_ms) {
        return false;
    }
    patch_checkpoint(core, victim, STR_NONE, STR_NONE);
    mark_pods(core, victim, STR_NONE);
    note_event(core, victim, false, "CheckpointWithdrawn", "Checkpoint",
               STR("no checkpoint is needed any more: the gang that it was to make room for no "
                   "longer waits for that; it runs on"));
    gang_show(core, victim);
    return true;
}

struct verdict checkpoint_verdict(const struct gang *gang, struct arena *arena)
{
    char buffer[TIME_TEXT_BYTES];
    if (gang->run->request_ms == 0) {
        return (struct verdict){.reason = REASON_CHECKPOINT_REQUESTED,
                                .message = STR("it is asked to write a checkpoint before it stops "
                                               "for another gang")};
    }
    struct str until = time_format_rfc3339(sat_add(gang->run->request_ms, gang->grace_ms), buffer);
    return (struct verdict){
        .reason = REASON_CHECKPOINT_REQUESTED,
        .message = arena_format(arena,
                                "it stops for another gang as soon as annotation %s shows a "
                                "checkpoint, or at " STR_FMT,
                                ANNOTATION_CHECKPOINT, STR_ARG(until))};
}
