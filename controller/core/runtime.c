/* runtime.c - how long a gang may run, and when it will have ended.
 *
 * Three sources say it: annotation tallyman.dev/max-runtime or else the Job's own
 * activeDeadlineSeconds, and the queue's maxRuntime; the least of them is enforced, by the Job
 * controller, through activeDeadlineSeconds in the PATCH that admits. The queue's defaultRuntime is
 * only an estimate, for Jobs that say nothing themselves. */
#include "internal.h"

#include "tallyman/base/text.h"
#include "tallyman/base/time_text.h"

/* The lesser of two bounds, of which 0 is none. */
static int64_t lesser_bound(int64_t a, int64_t b)
{
    if (a == 0 || b == 0) {
        return a == 0 ? b : a;
    }
    return a < b ? a : b;
}

static int64_t queue_max_runtime_ms(const struct queue *object)
{
    return object != NULL && object->spec.max_runtime.is_set ? object->spec.max_runtime.ms : 0;
}

struct runtime runtime_of(const struct queue_state *queue, int64_t stated_ms)
{
    const struct queue *object = queue == NULL ? NULL : queue->object;
    struct runtime runtime = {.enforced_ms = lesser_bound(stated_ms, queue_max_runtime_ms(object))};
    bool is_estimated = stated_ms == 0 && object != NULL && object->spec.default_runtime.is_set;
    runtime.expected_ms =
        lesser_bound(is_estimated ? object->spec.default_runtime.ms : 0, runtime.enforced_ms);
    return runtime;
}

int64_t runtime_stated_ms(const struct gang *gang)
{
    return lesser_bound(gang->max_runtime_ms, gang->deadline_ms);
}

int64_t runtime_end_ms(const struct core *core, const struct gang *gang)
{
    if (gang->state == GANG_SUSPENDING || gang->state == GANG_FINISHED) {
        return core->now_ms;
    }
    struct runtime runtime = runtime_of(gang->reservation->queue, runtime_stated_ms(gang));
    int64_t since_ms = gang->state == GANG_RESERVED ? core->now_ms : gang->admitted_ms;
    int64_t expected_ms = sat_add(since_ms, runtime.expected_ms);
    if (runtime.expected_ms > 0 && expected_ms > core->now_ms) {
        return expected_ms;
    }
    if (runtime.enforced_ms == 0) {
        return INT64_MAX; /* nobody says, or the estimate was wrong */
    }
    int64_t end_ms = sat_add(since_ms, runtime.enforced_ms);
    return end_ms > core->now_ms ? end_ms : core->now_ms;
}

struct opt_int runtime_deadline_to_set(const struct gang *gang)
{
    int64_t bound_ms =
        lesser_bound(gang->max_runtime_ms, queue_max_runtime_ms(gang->queue->object));
    if (bound_ms == 0 || (gang->deadline_ms != 0 && gang->deadline_ms <= bound_ms)) {
        return (struct opt_int){false, 0};
    }
    return (struct opt_int){true, sat_add(bound_ms, 999) / 1000};
}

struct str runtime_read(struct core *core, struct gang *gang, const struct job *job)
{
    struct opt_int deadline = job->spec.active_deadline_seconds;
    if (gang->record != NULL && gang->record->restore != NULL &&
        gang->record->restore->active_deadline_seconds.is_set) {
        deadline = gang->record->restore->active_deadline_seconds; /* the other one is ours */
    }
    bool has_deadline = deadline.is_set && deadline.value > 0;
    gang->deadline_ms = has_deadline ? sat_mul(deadline.value, 1000) : 0;
    gang->max_runtime_ms = 0;
    struct str text = string_map_get(&job->meta.annotations, ANNOTATION_MAX_RUNTIME);
    if (!str_is_set(text)) {
        return STR_NONE;
    }
    int64_t bound_ms = 0;
    if (!duration_parse(text, &bound_ms) || bound_ms <= 0) {
        return arena_format(&core->scratch,
                            "annotation " ANNOTATION_MAX_RUNTIME " is \"" STR_FMT
                            "\"; it must be a duration of more than zero, such as 90m or 8h",
                            STR_ARG(text_quote(&core->scratch, text, 60)));
    }
    gang->max_runtime_ms = bound_ms;
    return STR_NONE;
}
