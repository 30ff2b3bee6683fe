/* verdict.c - why a gang isn't running: its own state first, then what its shape was told. */
#include "behind.h"
#include "check.h"
#include "gate.h"
#include "preempt.h"

#include "tallyman/base/time_text.h"

static struct verdict backoff_verdict(const struct gang *gang, struct arena *arena)
{
    char buffer[TIME_TEXT_BYTES];
    struct str at = time_format_rfc3339(gang->trouble->memory.requeue_at_ms, buffer);
    const struct eviction *last = gang->trouble->eviction;
    bool is_for_health = last != NULL && (str_eq_c(last->rule, "NodeUnhealthy") ||
                                          str_eq_c(last->rule, "DeviceUnhealthy"));
    struct str why = str_is_set(gang->trouble->refusal) ? gang->trouble->refusal
                     : is_for_health ? STR("nodes or devices that it was given became unhealthy, "
                                           "twice within ten minutes")
                                     : STR("its pods weren't ready in time");
    return (struct verdict){
        .reason = REASON_BACKOFF,
        .message = arena_format(arena, "tried again at " STR_FMT " (%lld failed so far): " STR_FMT,
                                STR_ARG(at), (long long)gang->trouble->memory.requeue_count,
                                STR_ARG(why))};
}

bool gang_is_over(const struct gang *gang)
{
    return gang->is_ending || (gang->size.pods == 0 && !gang->is_paused);
}

/* A gang that asks for no pod is nobody's to admit. */
static struct verdict idle_verdict(const struct gang *gang)
{
    if (!gang_is_over(gang)) {
        return (struct verdict){.reason = REASON_HELD,
                                .message = STR("spec.parallelism is 0, so its user has paused it; "
                                               "it is considered again with 1 or more")};
    }
    return (struct verdict){.reason = REASON_WAITING_FOR_TERMINATION,
                            .message =
                                gang->size.pods == 0
                                    ? STR("all its completions are in, so no pod is left to start; "
                                          "the Job is about to end")
                                    : STR("it has failed or has all that it needs, so no pod is "
                                          "left to start; the Job is about to end")};
}

static struct verdict waiting_verdict(const struct core *core, const struct gang *gang,
                                      struct arena *arena)
{
    if (gang_is_over(gang)) {
        return idle_verdict(gang);
    }
    if (gang->is_job_deleting) {
        return (struct verdict){.reason = REASON_WAITING_FOR_TERMINATION,
                                .message =
                                    STR("the Job is being deleted (metadata.deletionTimestamp), so "
                                        "no pod of it is started any more")};
    }
    if (str_is_set(gang->trouble->invalid)) {
        return (struct verdict){.reason = REASON_INVALID, .message = gang->trouble->invalid};
    }
    struct str refusal = gate_class_refusal(arena, gang);
    if (str_is_set(refusal)) {
        return (struct verdict){.reason = REASON_INVALID, .message = refusal};
    }
    if (gang->is_class_missing) {
        return (struct verdict){.reason = REASON_MISSING_REFERENCE,
                                .message =
                                    arena_format(arena, "PriorityClass " STR_FMT " doesn't exist",
                                                 STR_ARG(gang->priority_class))};
    }
    if (gang->trouble->memory.requeue_at_ms > core->now_ms) {
        return backoff_verdict(gang, arena);
    }
    if (gang->size.pods == 0) {
        return idle_verdict(gang);
    }
    bool could_never =
        gang->shape != NULL && reason_info(gang->shape->verdict.reason)->is_passed_over;
    if (behind_is_blocked(gang) && !could_never) {
        struct str queue = gang->queue->name;
        struct str message = arena_format(
            arena, "queue " STR_FMT " is StrictFIFO, and a gang ahead of it waits for room",
            STR_ARG(queue));
        return (struct verdict){.reason = REASON_BEHIND_IN_QUEUE, .message = message};
    }
    return gang->shape == NULL ? (struct verdict){.reason = REASON_NONE} : gang->shape->verdict;
}

static struct verdict stopping_verdict(const struct gang *gang, struct arena *arena)
{
    int64_t by_status = sat_add(gang->run->active, gang->run->terminating);
    int64_t left = by_status > (int64_t)gang->live_pods ? by_status : (int64_t)gang->live_pods;
    if (left > 0) {
        return (struct verdict){.reason = REASON_WAITING_FOR_TERMINATION,
                                .message = arena_format(arena, "%lld of its pods %s still stopping",
                                                        (long long)left, left == 1 ? "is" : "are")};
    }
    if (gang->record != NULL && gang->is_suspended && gang->suspended == NULL) {
        return (struct verdict){.reason = REASON_HELD,
                                .message = STR("its user suspended it; it is considered again when "
                                               "annotation tallyman.dev/hold is taken off")};
    }
    return (struct verdict){.reason = REASON_WAITING_FOR_TERMINATION,
                            .message = STR("its pods are gone; its template is put back before it "
                                           "is considered again")};
}

static struct verdict reserved_verdict(const struct core *core, const struct gang *gang,
                                       struct arena *arena)
{
    uint32_t left = preempt_victims_left(core, gang);
    uint32_t asked = preempt_victims_asked(core, gang);
    const char *who =
        left == 1 ? "gang that makes room for it is" : "gangs that make room for it are";
    struct str message =
        left == 0    ? STR("the gangs that made room have stopped; what they held is coming free")
        : asked == 0 ? arena_format(arena, "%u %s stopping", left, who)
                     : arena_format(arena, "%u %s to stop; %u %s on for a checkpoint first", left,
                                    who, asked, asked == 1 ? "runs" : "run");
    return (struct verdict){.reason = REASON_WAITING_FOR_VICTIMS, .message = message};
}

/* Edited while it runs, to what couldn't start: it isn't stopped for that, and its user is told. */
static struct verdict running_verdict(const struct gang *gang, struct arena *arena)
{
    struct str invalid = gang->trouble->invalid;
    if (!str_is_set(invalid)) {
        return (struct verdict){.reason = REASON_NONE};
    }
    struct str message =
        arena_format(arena, "it runs on, but couldn't start again: " STR_FMT, STR_ARG(invalid));
    return (struct verdict){.reason = REASON_INVALID, .message = message};
}

struct verdict gang_verdict(const struct core *core, const struct gang *gang, struct arena *arena)
{
    switch (gang->state) {
    case GANG_HELD:
        return (struct verdict){
            .reason = REASON_HELD,
            .message = STR("annotation tallyman.dev/hold is \"true\"; it keeps its place and isn't "
                           "considered")};
    case GANG_SUSPENDING:
        return stopping_verdict(gang, arena);
    case GANG_PENDING:
        return waiting_verdict(core, gang, arena);
    case GANG_RESERVED:
        if (gang->room->check != NULL) {
            return check_verdict(core, gang, arena);
        }
        return reserved_verdict(core, gang, arena);
    case GANG_ADMITTED:
    case GANG_RUNNING:
        if (str_is_set(gang->stops_for)) {
            return checkpoint_verdict(gang, arena);
        }
        return running_verdict(gang, arena);
    case GANG_FINISHED:
        break;
    }
    return (struct verdict){.reason = REASON_NONE};
}
