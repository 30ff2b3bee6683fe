/* pace.c - who is told of at once, the lines of those that wait, and what is owed for a name. */
#include "pace.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* What a gang that is gone owed: whoever is called so next owes it. */
struct pace_left {
    struct str key; /* owned; "namespace/name" */
    UT_hash_handle hh;
    int64_t since_ms;
    uint32_t owed;
};

/* -- what is owed ----------------------------------------------------------------------------- */

/* Where an Admission says a state alone, only states are told: nothing of them is held back. */
static bool is_counted(const struct core *core)
{
    return core->options.admission_interval_ms > 0 && !core->options.is_terse;
}

/* After what has been paid for since then. */
static uint32_t unpaid(const struct core *core, int64_t *since_ms, uint32_t owed)
{
    int64_t paid = (core->now_ms - *since_ms) / PACE_PAID_MS;
    if (paid >= (int64_t)owed) {
        *since_ms = core->now_ms;
        return 0;
    }
    *since_ms += paid * PACE_PAID_MS;
    return owed - (uint32_t)paid;
}

/* While it stands in line nothing is paid for: its time there goes from when it came. */
static void settle(const struct core *core, struct gang *gang)
{
    if (gang->admission_wait == PACE_WAITS_NOT) {
        gang->writes_owed = unpaid(core, &gang->pace_ms, gang->writes_owed) & PACE_OWED_MAX;
    }
}

void pace_note_other(const struct core *core, struct gang *gang)
{
    if (!is_counted(core)) {
        return;
    }
    settle(core, gang);
    if (gang->writes_owed < PACE_OWED_MAX) {
        gang->writes_owed++;
    }
}

void pace_note_write(const struct core *core, struct gang *gang)
{
    gang->is_admission_hurried = false;
    pace_note_other(core, gang);
}

bool pace_allows_news(const struct core *core, struct gang *gang)
{
    settle(core, gang);
    return gang->writes_owed < PACE_NEWS_MAX;
}

void pace_note_status(const struct core *core, struct status_pace *pace)
{
    int64_t interval_ms = STATUS_INTERVAL_MS;
    if (is_counted(core)) {
        pace->owed = unpaid(core, &pace->since_ms, pace->owed) + 1;
        interval_ms = pace->owed > STATUS_WRITES_BRISK_MAX ? PACE_PAID_MS : interval_ms;
    }
    pace->next_ms = core->now_ms + interval_ms;
}

/* -- of those that are gone ------------------------------------------------------------------- */

static void left_drop(struct core *core, struct pace_left *left)
{
    HASH_DEL(core->paces_left, left);
    str_drop(&left->key);
    mem_free(left);
}

static struct pace_left *left_find(const struct core *core, struct str key)
{
    struct pace_left *left = NULL;
    HASH_FIND(hh, core->paces_left, key.ptr, (unsigned)key.len, left);
    return left;
}

/* The table goes through them as they came. */
static void make_room(struct core *core)
{
    struct pace_left *first;
    while ((first = core->paces_left) != NULL &&
           (HASH_COUNT(core->paces_left) >= PACES_LEFT_MAX ||
            unpaid(core, &first->since_ms, first->owed) == 0)) {
        left_drop(core, first);
    }
}

void pace_leave(struct core *core, struct gang *gang)
{
    if (core->out == NULL || !is_counted(core)) {
        return;
    }
    pace_forget(core, gang);
    settle(core, gang);
    make_room(core);
    if (gang->writes_owed == 0 || left_find(core, gang->key) != NULL) {
        return;
    }
    struct pace_left *left = MEM_NEW(struct pace_left);
    *left = (struct pace_left){
        .key = str_own(gang->key), .since_ms = gang->pace_ms, .owed = gang->writes_owed};
    HASH_ADD_KEYPTR(hh, core->paces_left, left->key.ptr, (unsigned)left->key.len, left);
}

void pace_take_over(struct core *core, struct gang *gang)
{
    struct pace_left *left = left_find(core, gang->key);
    if (left != NULL) {
        gang->pace_ms = left->since_ms;
        gang->writes_owed = left->owed & PACE_OWED_MAX;
        left_drop(core, left);
    }
}

void paces_free(struct core *core)
{
    while (core->paces_left != NULL) {
        left_drop(core, core->paces_left);
    }
}

/* One more is owed, if it may be. */
static bool take_event(uint32_t *owed)
{
    bool is_told = *owed < PACE_EVENTS_MAX;
    *owed += is_told ? 1 : 0;
    return is_told;
}

bool core_event_is_told(struct core *core, const struct effect *event)
{
    if (!is_counted(core)) {
        return true;
    }
    struct gang *gang = gang_find(core, event->uid);
    if (gang != NULL) {
        settle(core, gang);
        uint32_t owed = gang->writes_owed;
        bool is_told = take_event(&owed);
        gang->writes_owed = owed & PACE_OWED_MAX;
        return is_told;
    }
    struct pace_left *left =
        left_find(core, key_join(&core->scratch, event->namespace_name, event->name));
    if (left == NULL) {
        return true;
    }
    left->owed = unpaid(core, &left->since_ms, left->owed);
    return take_event(&left->owed);
}

/* -- the lines -------------------------------------------------------------------------------- */

static struct pace_line *line_of(struct core *core, enum pace_wait wait)
{
    return &core->late[wait - 1];
}

static int64_t wait_ms(const struct core *core, enum pace_wait wait)
{
    switch (wait) {
    case PACE_WAITS_NOT:
        return 0;
    case PACE_WAITS_BRIEFLY:
        return core->options.admission_interval_ms;
    case PACE_WAITS:
        return PACE_SECOND_MS;
    case PACE_WAITS_LONG:
        return PACE_PAID_MS;
    }
    return 0;
}

static enum pace_wait wait_for(uint32_t owed)
{
    return owed < 2 ? PACE_WAITS_BRIEFLY : owed == 2 ? PACE_WAITS : PACE_WAITS_LONG;
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

/* From now on each of its line waits equally long, so the first in line is due first. */
static void wait_in_line(struct core *core, struct gang *gang)
{
    gang->admission_wait = wait_for(gang->writes_owed);
    gang->pace_ms = core->now_ms;
    struct pace_line *line = line_of(core, gang->admission_wait);
    gang->previous_late = line->last;
    *(line->last == NULL ? &line->first : &line->last->next_late) = gang;
    line->last = gang;
}

/* -- what is told, and when ------------------------------------------------------------------- */

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
    bool is_other_state = gang->state != gang->shown_state &&
                          !(is_waiting(gang->state) && is_waiting(gang->shown_state));
    return !is_undone(gang) && (gang->is_admission_hurried || is_other_state);
}

/* What it is told isn't told at once. */
static bool has_to_wait(const struct core *core, const struct gang *gang)
{
    if (core->options.admission_interval_ms == 0) {
        return false;
    }
    int64_t next_ms = gang->pace_ms + wait_ms(core, wait_for(gang->writes_owed));
    return is_undone(gang) || (gang->writes_owed > 0 && core->now_ms < next_ms);
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
    bool is_told_now = is_news(gang) && pace_allows_news(core, gang);
    if (gang->admission_wait != PACE_WAITS_NOT && !is_told_now) {
        return;
    }
    settle(core, gang);
    if (!is_told_now && has_to_wait(core, gang)) {
        wait_in_line(core, gang);
        return;
    }
    pace_forget(core, gang);
    admission_ask(core, gang);
}

void pace_hurry(struct core *core, struct gang *gang)
{
    gang->is_admission_hurried = true;
    if (gang->admission_wait != PACE_WAITS_NOT) {
        gang_show(core, gang);
    }
}

static bool is_due(const struct core *core, enum pace_wait wait, const struct gang *first)
{
    return first != NULL && first->pace_ms + wait_ms(core, wait) <= core->now_ms;
}

void pace_tick(struct core *core)
{
    uint32_t told = 0;
    for (enum pace_wait wait = PACE_WAITS_BRIEFLY; wait <= PACE_WAITS_LONG; wait++) {
        struct gang *gang;
        for (;
             told < TELL_GANGS_PER_STEP && is_due(core, wait, (gang = line_of(core, wait)->first));
             told++) {
            pace_forget(core, gang);
            if (is_shown(core, gang)) {
                admission_ask(core, gang);
            }
        }
    }
}

int64_t pace_due_ms(const struct core *core)
{
    int64_t due_ms = 0;
    for (enum pace_wait wait = PACE_WAITS_BRIEFLY; wait <= PACE_WAITS_LONG; wait++) {
        const struct gang *first = core->late[wait - 1].first;
        int64_t first_ms = first == NULL ? 0 : first->pace_ms + wait_ms(core, wait);
        due_ms = first_ms != 0 && (due_ms == 0 || first_ms < due_ms) ? first_ms : due_ms;
    }
    return due_ms == 0 || due_ms > core->now_ms ? due_ms : core->now_ms + 1;
}
