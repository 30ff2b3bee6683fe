/* pace.c - who is told of at once, and the line of those that wait. */
#include "pace.h"

#include "tallyman/base/limits.h"

void pace_note_write(const struct core *core, struct gang *gang)
{
    gang->admission_next_ms = core->now_ms + core->options.admission_interval_ms;
}

void pace_forget(struct core *core, struct gang *gang)
{
    if (!gang->is_admission_late) {
        return;
    }
    struct gang *next = gang->next_late;
    struct gang *previous = gang->previous_late;
    *(previous == NULL ? &core->late_first : &previous->next_late) = next;
    *(next == NULL ? &core->late_last : &next->previous_late) = previous;
    gang->next_late = gang->previous_late = NULL;
    gang->is_admission_late = false;
}

/* From now on each waits equally long, so the first in line is due first. */
static void wait_in_line(struct core *core, struct gang *gang)
{
    gang->admission_next_ms = core->now_ms + core->options.admission_interval_ms;
    gang->is_admission_late = true;
    gang->previous_late = core->late_last;
    *(core->late_last == NULL ? &core->late_first : &core->late_last->next_late) = gang;
    core->late_last = gang;
}

/* Its user started it by hand, and that is undone. */
static bool is_undone(const struct gang *gang)
{
    return gang->shown_state == 0 && gang->state == GANG_SUSPENDING;
}

/* It waits for its turn or, its pods being on their way out, to be queued. Where no policy suspends
 * Jobs as they are made, pods turn up that the Job controller made before it saw that one is. */
static bool is_waiting(enum gang_state state)
{
    return state == GANG_PENDING || state == GANG_SUSPENDING;
}

static bool is_news(const struct gang *gang)
{
    return gang->state != gang->shown_state && !is_undone(gang) &&
           !(is_waiting(gang->state) && is_waiting(gang->shown_state));
}

/* The change is no news. */
static bool has_to_wait(const struct core *core, const struct gang *gang)
{
    return core->options.admission_interval_ms > 0 &&
           (is_undone(gang) || core->now_ms < gang->admission_next_ms);
}

static bool is_shown(const struct core *core, const struct gang *gang)
{
    return core->is_ready && !gang->is_job_gone && gang->state != 0;
}

void gang_show(struct core *core, struct gang *gang)
{
    if (!is_shown(core, gang)) {
        return;
    }
    if (gang->admission_effect_id != 0) {
        gang->is_admission_dirty = true;
        return;
    }
    if (gang->is_admission_late && !is_news(gang)) {
        return;
    }
    if (!is_news(gang) && has_to_wait(core, gang)) {
        wait_in_line(core, gang);
        return;
    }
    pace_forget(core, gang);
    admission_ask(core, gang);
}

void pace_hurry(struct core *core, struct gang *gang)
{
    gang->admission_next_ms = 0;
    if (gang->is_admission_late) {
        pace_forget(core, gang);
        gang_show(core, gang);
    }
}

void pace_tick(struct core *core)
{
    struct gang *gang;
    for (uint32_t told = 0; told < TELL_GANGS_PER_STEP && (gang = core->late_first) != NULL &&
                            gang->admission_next_ms <= core->now_ms;
         told++) {
        pace_forget(core, gang);
        if (is_shown(core, gang)) {
            admission_ask(core, gang);
        }
    }
}

int64_t pace_due_ms(const struct core *core)
{
    const struct gang *first = core->late_first;
    if (first == NULL) {
        return 0;
    }
    return first->admission_next_ms > core->now_ms ? first->admission_next_ms : core->now_ms + 1;
}
