/* past.c - what a gang has waited for before, and how it was last stopped.
 *
 * Kept by its Admission alone and written with the change that makes it past, so it costs no write
 * and is as old after a restart as before it. Losing it costs history, nothing else. */
#include "internal.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/time_text.h"

/* -- reasons ---------------------------------------------------------------------------------- */

static void past_add(struct gang *gang, enum reason reason, int64_t since_ms)
{
    bool is_repeat = gang->past_count > 0 && gang->past[gang->past_count - 1].reason == reason;
    if (since_ms == 0 || is_repeat) {
        return;
    }
    if (gang->past_count == PAST_REASONS_MAX) {
        for (uint32_t i = 1; i < gang->past_count; i++) {
            gang->past[i - 1] = gang->past[i];
        }
        gang->past_count--;
    } else {
        gang->past = mem_realloc(gang->past, (gang->past_count + 1) * sizeof(struct past_reason));
    }
    gang->past[gang->past_count++] = (struct past_reason){since_ms, reason};
}

void past_turn(struct gang *gang, enum reason next, int64_t now_ms)
{
    if (next != gang->shown_reason) {
        past_add(gang, gang->shown_reason, gang->reason_began_ms);
    } else if (gang->reason_began_ms != 0) {
        return; /* another state, for the same reason */
    }
    gang->reason_began_ms = now_ms;
}

static struct opt_time seconds(int64_t ms)
{
    return (struct opt_time){ms > 0, ms / 1000 * 1000};
}

static void explain_reasons(const struct gang *gang, struct arena *arena,
                            struct explanation_past_list *list)
{
    if (gang->past_count == 0) {
        return;
    }
    list->items = ARENA_ARRAY(arena, struct explanation_past, gang->past_count);
    for (uint32_t i = 0; i < gang->past_count; i++) {
        const struct past_reason *past = &gang->past[i];
        bool is_last = i + 1 == gang->past_count;
        const char *code = reason_info(past->reason)->code;
        list->items[list->count++] = (struct explanation_past){
            .reason = past->reason == REASON_NONE ? STR("Admitted") : str_from_c(code),
            .since = seconds(past->since_ms),
            .until = seconds(is_last ? gang->reason_began_ms : gang->past[i + 1].since_ms)};
    }
}

static enum reason reason_of(struct str code)
{
    for (int reason = REASON_NONE + 1; reason < REASON_COUNT; reason++) {
        if (str_eq_c(code, reason_info((enum reason)reason)->code)) {
            return (enum reason)reason;
        }
    }
    return REASON_NONE;
}

/* -- evictions -------------------------------------------------------------------------------- */

static void eviction_free(struct eviction *eviction)
{
    if (eviction != NULL) {
        str_drop(&eviction->rule);
        str_drop(&eviction->by);
        str_drop(&eviction->queue);
        str_drop(&eviction->lost);
        mem_free(eviction);
    }
}

/* Since its last checkpoint, or its start. */
static struct str lost_text(struct core *core, const struct gang *gang)
{
    int64_t from_ms =
        gang->run->checkpoint_ms > gang->admitted_ms ? gang->run->checkpoint_ms : gang->admitted_ms;
    int64_t lost_ms = core->now_ms > from_ms ? core->now_ms - from_ms : 0;
    char buffer[TIME_TEXT_BYTES];
    struct str time = duration_format_short(lost_ms, buffer);
    struct str devices = reservation_text(core, gang, &core->scratch, true);
    if (!str_is_empty(devices)) {
        return arena_format(&core->scratch, STR_FMT " on " STR_FMT, STR_ARG(time),
                            STR_ARG(devices));
    }
    int64_t pods = reservation_count(gang->reservation);
    return arena_format(&core->scratch, STR_FMT " of %lld pod%s", STR_ARG(time), (long long)pods,
                        pods == 1 ? "" : "s");
}

void past_note_eviction(struct core *core, struct gang *gang, const char *rule,
                        const struct gang *by)
{
    eviction_free(gang->trouble->eviction);
    GANG_PUT(gang, trouble, eviction, MEM_NEW(struct eviction));
    gang->trouble->eviction->rule = str_own(str_from_c(rule));
    gang->trouble->eviction->lost = str_own(lost_text(core, gang));
    gang->trouble->eviction->at_ms = core->now_ms;
    if (by != NULL) {
        bool is_own_namespace = str_eq(by->namespace_name, gang->namespace_name);
        gang->trouble->eviction->by = is_own_namespace ? str_own(by->name) : STR_NONE;
        gang->trouble->eviction->queue = str_own(by->queue->name);
    }
}

static void explain_eviction(const struct gang *gang, struct arena *arena,
                             struct explanation *explanation)
{
    if (gang->trouble->eviction == NULL) {
        return;
    }
    explanation->eviction = ARENA_NEW(arena, struct explanation_eviction);
    *explanation->eviction = (struct explanation_eviction){
        .rule = arena_copy_str(arena, gang->trouble->eviction->rule),
        .by = arena_copy_str(arena, gang->trouble->eviction->by),
        .queue = arena_copy_str(arena, gang->trouble->eviction->queue),
        .lost = arena_copy_str(arena, gang->trouble->eviction->lost),
        .at = seconds(gang->trouble->eviction->at_ms)};
}

/* -- together --------------------------------------------------------------------------------- */

void past_explain(const struct gang *gang, struct arena *arena, struct explanation *explanation)
{
    explain_reasons(gang, arena, &explanation->history);
    explain_eviction(gang, arena, explanation);
}

static void take_past(struct gang *gang, const struct explanation *explanation)
{
    if (gang->past_count == 0) {
        for (uint32_t i = 0; i < explanation->history.count; i++) {
            const struct explanation_past *past = &explanation->history.items[i];
            if (past->since.is_set) {
                past_add(gang, reason_of(past->reason), past->since.ms);
            }
        }
    }
    const struct explanation_eviction *told = explanation->eviction;
    if (gang->trouble->eviction == NULL && told != NULL && told->at.is_set) {
        GANG_PUT(gang, trouble, eviction, MEM_NEW(struct eviction));
        gang->trouble->eviction->rule = str_own(told->rule);
        gang->trouble->eviction->by = str_own(told->by);
        gang->trouble->eviction->queue = str_own(told->queue);
        gang->trouble->eviction->lost = str_own(told->lost);
        gang->trouble->eviction->at_ms = told->at.ms;
    }
}

void past_take(struct gang *gang, const struct admission_status *status)
{
    if (!status->since.is_set) {
        return;
    }
    gang->reason_since_ms = status->since.ms;
    gang->reason_began_ms = status->since.ms;
    gang->shown_reason = reason_of(status->reason);
    if (status->explanation != NULL) {
        take_past(gang, status->explanation);
    }
}

void past_free(struct gang *gang)
{
    mem_free(gang->past);
    gang->past = NULL;
    gang->past_count = 0;
    eviction_free(gang->trouble->eviction);
    GANG_PUT(gang, trouble, eviction, NULL);
}
