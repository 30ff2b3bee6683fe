/* decide.c - the pass: takes the next gang by order, evaluates it against the state as it is now,
 * commits, goes on. No snapshot: an admission is charged before the next gang is looked at. */
#include "behind.h"
#include "check.h"
#include "order.h"
#include "preempt.h"
#include "selectors.h"
#include "trace.h"
#include "wait.h"

#include <assert.h>

void shape_park(struct core *core, struct shape *shape, const struct evaluation *evaluation)
{
    const struct verdict *verdict = &evaluation->verdict;
    evidence_keep(&shape->evidence, &evaluation->evidence);
    /* Not the verdict's, which each admission drops: its gangs would all be told again. */
    bool is_changed = shape->told_reason != verdict->reason;
    shape->told_reason = verdict->reason;
    struct verdict kept = *verdict;
    kept.message = str_own(verdict->message);
    kept.flavor = str_own(verdict->flavor);
    kept.resource = str_own(verdict->resource);
    bool is_reworded = !str_eq(kept.message, shape->verdict.message);
    verdict_drop(&shape->verdict);
    shape->verdict = kept;
    room_wait(core, shape);
    waits_set(shape, evaluation->shortages, evaluation->shortage_count);
    waits_link(shape);
    shape->queue->is_pending_dirty = shape->queue->is_pending_dirty || is_reworded;
    shape->is_help_unsure = shape->is_beyond_help;
    shape->is_help_asked = false;
    bookings_look_again(core);
    queue_set_due(core, shape->queue);
    if (!is_changed) {
        return;
    }
    tell_reason(core, shape);
}

static void strict_block(struct core *core, struct queue_state *queue, struct gang *gang)
{
    queue->blocker = gang; /* there was none: who wakes the head takes it away */
    struct shape *shape = RB_MAX(shape_tree, &queue->ready);
    while (shape != NULL && gang_compare_order(shape->first, gang) > 0) {
        ready_remove(core, shape); /* whose turn it isn't, and mustn't stand for its tree */
        behind_ask(core, shape);
        shape = RB_MAX(shape_tree, &queue->ready);
    }
    gang_show(core, gang);
}

/* StrictFIFO: the next gang in line that this pass hasn't passed over. One that it has seen block
 * is judged again: quota that came free since has woken the head. */
static void strict_go_on(struct core *core, struct queue_state *queue)
{
    struct gang *gang;
    GANG_LINE_FOREACH (gang, &queue->pending) {
        if (gang->shape->is_aside) {
            strict_block(core, queue, gang);
            return;
        }
        if (gang->shape->judged_in != core->pass ||
            !verdict_is_passed_over(&gang->shape->verdict)) {
            ready_add(core, gang->shape);
            return;
        }
    }
}

static void take_next(struct core *core, struct shape *shape)
{
    struct gang *gang = shape->first;
    struct queue_state *queue = shape->queue;
    bool is_strict = queue_is_strict(queue);
    if (is_strict && behind_is_blocked(gang)) {
        trace_look(core, gang, LOOK_BLOCKED, NULL);
        behind_ask(core, shape);
        waits_link(shape);
        return; /* it was the head when it was woken, and one that came in since blocks it */
    }
    if (!selectors_are_known(core, shape)) {
        selectors_put_aside(core, shape);
        if (is_strict) {
            strict_block(core, queue, gang); /* until it has been judged */
        }
        return;
    }
    struct evaluation evaluation;
    core->cost.gangs_visited++;
    evaluate_shape(core, shape, &evaluation);
    bool is_preempting = preempt(core, gang, &evaluation);
    if (!is_preempting && evaluation.verdict.reason == REASON_NONE) {
        verdict_drop(&shape->verdict);
        room_wait(core, shape);
        preempt_park(core, shape, false);
        waits_clear(shape);
        trace_look(core, gang, LOOK_ADMITTED, NULL);
        check_or_admit(core, gang, &evaluation);
        if (is_strict) {
            strict_go_on(core, queue);
        } else {
            ready_add(core, shape);
        }
        return;
    }
    if (is_preempting) {
        shape->is_woken_by_cell = false; /* the next one may find somebody to stop as well */
        trace_look(core, gang, LOOK_PREEMPTS, NULL);
        is_strict ? strict_go_on(core, queue) : ready_add(core, shape);
        return;
    }
    trace_look(core, gang, LOOK_WAITS, &evaluation.verdict);
    shape->judged_in = core->pass;
    shape_park(core, shape, &evaluation);
    preempt_park(core, shape, preempt_may(queue, evaluation.verdict.reason));
    if (!is_strict) {
        return;
    }
    if (verdict_is_passed_over(&evaluation.verdict)) {
        gang_show(core, gang);
        strict_go_on(core, queue);
    } else {
        strict_block(core, queue, gang);
    }
}

/* The quota that woke it went to those in front: nothing has changed for it. */
bool shape_is_still_short(const struct shape *shape)
{
    const struct verdict *verdict = &shape->verdict;
    bool is_one_cell = verdict->waits_for == WAIT_QUOTA && verdict->asked > 0;
    if (!shape->is_woken_by_cell || !is_one_cell || queue_is_strict(shape->queue)) {
        return false;
    }
    return quota_available(&shape->queue->node, verdict->flavor, verdict->resource) <
           verdict->asked;
}

/* Who preempts gangs that held nothing but quota, or asks for room that is there already, needn't
 * wait for anything. */
static bool finish_at_once(struct core *core)
{
    if (!core->may_finish_reserved && !core->has_passed_check) {
        return false;
    }
    core->may_finish_reserved = false;
    core->is_passing = false;
    preempt_finish_ready(core);
    checks_finish_ready(core);
    core->is_passing = true;
    return true;
}

static bool settle_bookings(struct core *core)
{
    bool has_woken = bookings_settle(core);
    if (has_woken) {
        (void)finish_at_once(core);
    }
    return has_woken;
}

/* Whether this step has let enough gangs go, and there may be more. */
static bool is_enough(const struct core *core)
{
    uint32_t limit = core->options.admissions_per_step;
    return limit > 0 && core->cost.gangs_admitted >= limit && core->active_roots != NULL;
}

/* False: the pass is cut; those that are ready stay so. */
static bool judge_ready(struct core *core)
{
    struct shape *shape;
    while ((shape = order_next(core)) != NULL) {
        struct queue_state *queue = shape->queue;
        ready_remove(core, shape);
        arena_reset(&core->scratch);
        if (shape_is_still_short(shape)) {
            trace_look(core, shape->first, LOOK_SHORT, &shape->verdict);
            waits_link(shape);
        } else {
            take_next(core, shape);
        }
        waits_go_on(core, queue);
        if (is_enough(core)) {
            return false;
        }
    }
    return true;
}

void decide(struct core *core, bool goes_on)
{
    if (!goes_on) {
        quota_relink(core);
        preempt_settle(core);
        preempt_finish_ready(core);
        checks_finish_ready(core);
    }
    core->is_passing = true;
    if (!goes_on) {
        preempt_wake(core);
    }
    do {
        core->pass += goes_on ? 0 : 1; /* who is woken at the end of a round is judged anew */
        goes_on = false;
        core->is_cut = !judge_ready(core);
    } while (!core->is_cut && (settle_bookings(core) || finish_at_once(core) ||
                               preempt_wake_for_growth(core) || preempt_wake_for_relief(core)));
    core->is_passing = false;
    if (!core->is_cut) {
        behind_look(core);
    }
}
