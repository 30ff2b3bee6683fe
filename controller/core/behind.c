/* behind.c - see the header. */
#include "behind.h"

#include "selectors.h"
#include "tallyman/base/limits.h"
#include "wait.h"

void behind_ask(struct core *core, struct shape *shape)
{
    if (!shape->is_unasked) {
        shape->is_unasked = true;
        shape->next_unasked = core->unasked;
        core->unasked = shape;
    }
}

void behind_forget(struct core *core, struct shape *shape)
{
    struct shape **link = &core->unasked;
    while (shape->is_unasked && *link != shape) {
        link = &(*link)->next_unasked;
    }
    if (shape->is_unasked) {
        *link = shape->next_unasked;
        shape->is_unasked = false;
    }
}

bool behind_is_blocked(const struct gang *gang)
{
    const struct gang *blocker = gang->queue == NULL ? NULL : gang->queue->blocker;
    return blocker != NULL && blocker != gang && gang_compare_order(gang, blocker) > 0;
}

void behind_came(struct core *core, const struct gang *gang, bool is_first)
{
    if (is_first && behind_is_blocked(gang)) {
        behind_ask(core, gang->shape);
    }
}

static void look(struct core *core, struct shape *shape)
{
    struct evaluation evaluation;
    arena_reset(&core->scratch);
    if (!selectors_are_known(core, shape)) {
        selectors_put_aside(core, shape);
        return;
    }
    core->cost.gangs_visited++;
    evaluate_shape(core, shape, &evaluation);
    if (reason_info(evaluation.verdict.reason)->is_passed_over) {
        evaluation.shortage_count = 0; /* nothing that others give back makes it possible */
        shape_park(core, shape, &evaluation);
        return;
    }
    bool was_never = reason_info(shape->verdict.reason)->is_passed_over;
    verdict_drop(&shape->verdict);
    room_wait(core, shape);
    waits_clear(shape);
    shape->told_reason = REASON_NONE;
    if (was_never) {
        tell_reason(core, shape);
    }
}

void behind_look(struct core *core)
{
    for (uint32_t i = 0; core->unasked != NULL && i < TELL_GANGS_PER_STEP; i++) {
        struct shape *shape = core->unasked;
        behind_forget(core, shape);
        if (!gang_line_is_empty(&shape->gangs) && !shape->is_ready &&
            behind_is_blocked(shape->first)) {
            look(core, shape);
        }
    }
}

int64_t behind_due_ms(const struct core *core)
{
    return core->unasked != NULL ? core->now_ms + 1 : 0;
}
