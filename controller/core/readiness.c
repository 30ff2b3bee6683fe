/* readiness.c - whether an admitted gang has become whole in time, or has been short for too long.
 */
#include "readiness.h"

#include "tallyman/base/limits.h"
#include "tallyman/base/time_text.h"

/* The pods of a large gang come one by one: how many are ready is told now and then. When to look
 * again, `due_ms` at the latest (0: never). */
static int64_t tell_progress(struct core *core, struct gang *gang, int64_t due_ms)
{
    if (gang->ready_pods < gang->run->seen_ready_pods) { /* it may end, and that is told anyhow */
        GANG_PUT(gang, run, told_ready_ms, core->now_ms);
    }
    GANG_PUT(gang, run, seen_ready_pods, gang->ready_pods);
    if (gang->ready_pods == gang->run->told_ready_pods &&
        gang->run->short_since_ms == gang->run->told_short_ms) {
        return due_ms;
    }
    int64_t next_ms = sat_add(gang->run->told_ready_ms, READY_REFRESH_MS);
    if (core->now_ms < next_ms) {
        return due_ms == 0 || next_ms < due_ms ? next_ms : due_ms;
    }
    GANG_PUT(gang, run, told_ready_pods, gang->ready_pods);
    GANG_PUT(gang, run, told_short_ms, gang->run->short_since_ms);
    GANG_PUT(gang, run, told_ready_ms, core->now_ms);
    gang_show(core, gang);
    return due_ms;
}

void readiness_review(struct core *core, struct gang *gang)
{
    /* min_count is of the pods still to finish, so those that succeeded count as ready. */
    if (gang_is_whole(gang)) {
        if (gang->state == GANG_ADMITTED && gang->trouble->memory.requeue_count != 0) {
            GANG_PUT(gang, trouble, memory.requeue_count, 0);
            GANG_PUT(gang, trouble, memory.requeue_at_ms, 0);
            gang_remember(core, gang);
        }
        GANG_PUT(gang, run, short_since_ms, 0);
        GANG_PUT(gang, run, write_retry_ms, 0);
        bool is_news = gang->state != GANG_RUNNING;
        gang_set_state(core, gang, GANG_RUNNING, NULL);
        if (is_news) {
            GANG_PUT(gang, run, told_ready_pods, gang->ready_pods);
            GANG_PUT(gang, run, told_ready_ms, core->now_ms);
        }
        gang_set_timer(core, gang, tell_progress(core, gang, 0));
        return;
    }
    if (gang->state == GANG_RUNNING && gang->run->short_since_ms == 0) {
        GANG_PUT(gang, run, short_since_ms, core->now_ms / 1000 * 1000); /* as it is told */
    }
    int64_t since_ms = gang->state == GANG_RUNNING ? gang->run->short_since_ms : gang->admitted_ms;
    int64_t timeout_ms = queue_pods_ready_timeout_ms(gang->reservation->queue);
    int64_t due_ms = sat_add(since_ms, timeout_ms);
    if (core->now_ms < due_ms) {
        gang_set_timer(core, gang, tell_progress(core, gang, due_ms));
        return;
    }
    if (gang->run->write_retry_ms == 0) { /* else it is counted, and only tried again */
        gang_count_eviction(gang);
        gang_back_off(core, gang);
        gang->order_ms = core->now_ms / 1000 * 1000; /* as its Admission keeps it */
    }
    char buffer[TIME_TEXT_BYTES];
    struct str why = arena_format(&core->scratch,
                                  "%u of %lld pods were ready after " STR_FMT
                                  "; the gang stops whole and is tried again later",
                                  gang->ready_pods, (long long)gang->size.min_count,
                                  STR_ARG(duration_format_short(timeout_ms, buffer)));
    patch_suspend(core, gang, "PodsReadyTimeout", why);
}

void readiness_take(const struct core *core, struct gang *gang,
                    const struct condition_list *conditions)
{
    const struct condition *ready = condition_find(conditions, CONDITION_PODS_READY);
    if (ready == NULL || !str_eq_c(ready->reason, REASON_SHORT)) {
        return;
    }
    int64_t since_ms = ready->last_transition_time.ms;
    since_ms = since_ms < core->now_ms ? since_ms : core->now_ms; /* of whatever clock */
    GANG_PUT(gang, run, short_since_ms, since_ms);
    GANG_PUT(gang, run, told_short_ms, since_ms);
}
