/* pace.c - who is told of at once, the lines of those that wait, and what is owed. */
#include "pace.h"

#include "tallyman/base/limits.h"

/* -- the lines -------------------------------------------------------------------------------- */

static struct pace_line *line_of(struct core *core, enum pace_wait wait)
{
    return &core->late[wait - PACE_WAITS_BRIEFLY];
}

void pace_forget(struct core *core, struct gang *gang)
{
    if (gang->admission_wait == PACE_WAITS_NOT) {
        return;
    }
    struct pace_line *line = line_of(core, gang->admission_wait);
    struct gang *next = gang->next_late;
    struct gang *previous = gang->previous_late;
    *(previous == NULL ? &line->first : &previous->next_late) = next;
    *(next == NULL ? &line->last : &next->previous_late) = previous;
    gang->next_late = gang->previous_late = NULL;
    gang->admission_wait = PACE_WAITS_NOT;
}

/* From now on all of a line wait equally long, so its first is due first. */
static void wait_in_line(struct core *core, struct gang *gang, enum pace_wait wait)
{
    pace_forget(core, gang);
    struct pace_line *line = line_of(core, wait);
    gang->admission_next_ms =
        core->now_ms +
        (wait == PACE_WAITS_LONG ? PACE_PAID_MS : core->options.admission_interval_ms);
    gang->admission_wait = wait;
    gang->previous_late = line->last;
    *(line->last == NULL ? &line->first : &line->last->next_late) = gang;
    line->last = gang;
}

/* -- what is owed ----------------------------------------------------------------------------- */

/* Not where nobody reads it: a replay, a simulation that asks for states alone. */
static bool is_counted(const struct core *core)
{
    return core->options.admission_interval_ms > 0 && !core->options.is_terse;
}

static int64_t owed(const struct core *core, const struct gang *gang)
{
    int64_t left_ms = gang->pace_ms - core->now_ms;
    return left_ms <= 0 ? 0 : (left_ms + PACE_PAID_MS - 1) / PACE_PAID_MS;
}

static void owe(const struct core *core, struct gang *gang)
{
    if (owed(core, gang) <= PACE_NEWS_MAX) {
        gang->pace_ms =
            (gang->pace_ms > core->now_ms ? gang->pace_ms : core->now_ms) + PACE_PAID_MS;
    }
}

/* What everybody wants to know at once. */
static bool has_begun(enum gang_state state)
{
    return state == GANG_ADMITTED || state == GANG_RUNNING || state == GANG_FINISHED;
}

/* What has been held back, or refused, is as urgent as when it came up. */
static enum pace_urgency urgency(const struct gang *gang, enum gang_state told_state, bool is_news)
{
    enum pace_urgency now = gang->state != told_state && has_begun(gang->state) ? PACE_URGENT
                            : is_news                                           ? PACE_NEWS
                                                                                : PACE_NUMBERS;
    return now > gang->untold ? now : gang->untold;
}

bool pace_allows(struct core *core, struct gang *gang, enum gang_state told_state, bool is_news)
{
    if (!is_counted(core)) {
        return true;
    }
    gang->untold = urgency(gang, told_state, is_news);
    int64_t most = gang->untold == PACE_NUMBERS ? PACE_NUMBERS_MAX : PACE_NEWS_MAX;
    if (owed(core, gang) >= most && gang->untold != PACE_URGENT) {
        wait_in_line(core, gang, PACE_WAITS_LONG);
        return false;
    }
    owe(core, gang);
    gang->untold = PACE_NUMBERS;
    gang->admission_next_ms = core->now_ms + core->options.admission_interval_ms;
    return true;
}

void pace_give_back(struct gang *gang)
{
    gang->pace_ms -= PACE_PAID_MS;
    gang->untold = PACE_URGENT;
}

bool core_event_is_told(struct core *core, struct str job_uid)
{
    struct gang *gang = gang_find(core, job_uid);
    if (gang == NULL || !is_counted(core)) {
        return true;
    }
    bool is_told = owed(core, gang) < PACE_NEWS_MAX;
    if (is_told) {
        owe(core, gang);
    }
    return is_told;
}

/* -- what waits ------------------------------------------------------------------------------- */

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
    if (gang->admission_wait == PACE_WAITS_BRIEFLY && !is_news(gang)) {
        return;
    }
    if (!is_news(gang) && has_to_wait(core, gang)) {
        wait_in_line(core, gang,
                     PACE_WAITS_BRIEFLY); /* of the long line, too: it may have a new reason */
        return;
    }
    pace_forget(core, gang);
    admission_ask(core, gang);
}

void pace_hurry(struct core *core, struct gang *gang)
{
    gang->admission_next_ms = 0;
    if (gang->admission_wait != PACE_WAITS_NOT) {
        pace_forget(core, gang);
        gang_show(core, gang);
    }
}

static uint32_t tell_due(struct core *core, const struct pace_line *line, uint32_t most)
{
    uint32_t told = 0;
    struct gang *gang;
    while (told < most && (gang = line->first) != NULL && gang->admission_next_ms <= core->now_ms) {
        pace_forget(core, gang);
        if (is_shown(core, gang)) {
            admission_ask(core, gang);
        }
        told++;
    }
    return told;
}

void pace_tick(struct core *core)
{
    uint32_t left = TELL_GANGS_PER_STEP;
    for (int i = 0; i < PACE_LINES; i++) {
        left -= tell_due(core, &core->late[i], left);
    }
}

int64_t pace_due_ms(const struct core *core)
{
    int64_t due_ms = 0;
    for (int i = 0; i < PACE_LINES; i++) {
        const struct gang *first = core->late[i].first;
        if (first != NULL && (due_ms == 0 || first->admission_next_ms < due_ms)) {
            due_ms = first->admission_next_ms;
        }
    }
    return due_ms != 0 && due_ms <= core->now_ms ? core->now_ms + 1 : due_ms;
}
