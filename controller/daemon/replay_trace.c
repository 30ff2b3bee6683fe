/* replay_trace.c - a journal for people: what happened, who was looked at, what came of it. */
#include "replay.h"

#include "terminal.h"
#include "tallyman/base/time_text.h"

struct str replay_time(struct arena *arena, int64_t ms)
{
    char buffer[TIME_TEXT_BYTES];
    struct str seconds = time_format_rfc3339(ms, buffer);
    return arena_format(arena, STR_FMT ".%03dZ", STR_ARG(str_take(seconds, seconds.len - 1)),
                        (int)(ms % 1000));
}

static struct str object_name(struct arena *arena, const struct object *object)
{
    const struct object_meta *meta = object->value; /* each kind's first member */
    return str_is_set(meta->namespace_name)
               ? arena_format(arena, STR_FMT "/" STR_FMT, STR_ARG(meta->namespace_name),
                              STR_ARG(meta->name))
               : arena_copy_str(arena, meta->name);
}

static struct str event_text(struct arena *arena, const struct event *event)
{
    static const char *const outcomes[] = {[EFFECT_OK] = "done",
                                           [EFFECT_CONFLICT] = "conflict, somebody was first",
                                           [EFFECT_GONE] = "its object is gone",
                                           [EFFECT_REFUSED] = "refused"};
    bool is_deleted = event->kind == EVENT_DELETED;
    switch (event->kind) {
    case EVENT_OBJECT:
    case EVENT_DELETED:
        return arena_format(arena, "%s " STR_FMT " %s", kind_info(event->object.kind)->name,
                            STR_ARG(object_name(arena, &event->object)),
                            is_deleted ? "is gone" : "is new or changed");
    case EVENT_SYNCED:
        return arena_format(arena, "every %s is listed", kind_info(event->synced_kind)->name);
    case EVENT_TICK:
        return STR("time has passed");
    case EVENT_EFFECT_DONE:
        return arena_format(
            arena, "answer to write %llu: %s%s" STR_FMT, (unsigned long long)event->done.effect_id,
            outcomes[event->done.outcome], str_is_set(event->done.message) ? ": " : "",
            STR_ARG(event->done.message));
    }
    return STR("");
}

static const char *result_text(enum look_result result)
{
    switch (result) {
    case LOOK_ADMITTED:
        return "admitted";
    case LOOK_PREEMPTS:
        return "preempts";
    case LOOK_WAITS:
        return "waits";
    case LOOK_BLOCKED:
        return "blocked by the head of its queue";
    case LOOK_SHORT:
        return "as before: what came free went to those in front";
    }
    return "";
}

static bool is_border(struct str text, size_t at)
{
    return at >= text.len || str_find_char(STR(" \":,\n"), text.ptr[at]) < 5;
}

/* Whether the text names the Job as a word of its own. */
static bool names(struct str text, struct str job)
{
    for (size_t i = 0; i + job.len <= text.len; i++) {
        if (str_eq(str_take(str_skip(text, i), job.len), job) && is_border(text, i + job.len) &&
            (i == 0 || is_border(text, i - 1))) {
            return true;
        }
    }
    return false;
}

static bool is_look_at(const struct look *look, struct str job)
{
    size_t slash = str_find_char(job, '/');
    return str_eq(look->namespace_name, str_take(job, slash)) &&
           str_eq(look->name, str_skip(job, slash + 1));
}

static bool is_of_interest(struct replay_trace *trace, struct str what, struct look_list looks,
                           struct str decided)
{
    if (!str_is_set(trace->job)) {
        return looks.count > 0 || decided.len > 0;
    }
    bool is_seen = names(what, trace->job) || names(decided, trace->job);
    for (uint32_t i = 0; i < looks.count && !is_seen; i++) {
        is_seen = is_look_at(&looks.items[i], trace->job);
    }
    return is_seen;
}

static void print_decided(struct arena *arena, const char *title, struct str decided)
{
    while (decided.len > 0) {
        size_t end = str_find_char(decided, '\n');
        struct str line = terminal_safe(arena, str_take(decided, end));
        printf("    %s: " STR_FMT "\n", title, STR_ARG(line));
        decided = str_skip(decided, end + 1);
    }
}

static void print_look(struct arena *arena, uint32_t place, const struct look *look)
{
    printf("    %3u. " STR_FMT "/" STR_FMT " of " STR_FMT ": %s", place,
           STR_ARG(terminal_safe(arena, look->namespace_name)),
           STR_ARG(terminal_safe(arena, look->name)), STR_ARG(terminal_safe(arena, look->queue)),
           result_text(look->result));
    if (look->reason != REASON_NONE) {
        printf(", %s: " STR_FMT, reason_info(look->reason)->code,
               STR_ARG(terminal_safe(arena, look->message)));
    }
    printf("\n");
}

void replay_trace_event(struct replay_trace *trace, uint64_t number, const struct event *event,
                        struct look_list looks, struct str decided)
{
    arena_reset(&trace->arena);
    struct str what = event_text(&trace->arena, event);
    if (!is_of_interest(trace, what, looks, decided)) {
        return;
    }
    trace->has_shown = true;
    printf("#%llu  " STR_FMT "  " STR_FMT "\n", (unsigned long long)number,
           STR_ARG(replay_time(&trace->arena, event->now_ms)),
           STR_ARG(terminal_safe(&trace->arena, what)));
    for (uint32_t i = 0; i < looks.count; i++) {
        print_look(&trace->arena, i + 1, &looks.items[i]);
    }
    if (looks.left_out > 0) {
        printf("    and %u more\n", looks.left_out);
    }
    print_decided(&trace->arena, "decided", decided);
}

void replay_trace_recorded(struct replay_trace *trace, uint64_t number, struct str decided)
{
    arena_reset(&trace->arena);
    if (str_is_set(trace->job) && !names(decided, trace->job)) {
        return;
    }
    trace->has_shown = true;
    printf("#%llu\n", (unsigned long long)number);
    print_decided(&trace->arena, "recorded", decided);
}
