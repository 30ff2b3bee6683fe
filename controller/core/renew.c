/* renew.c - the sentences of those that wait, with the numbers as they are after the pass. A gang
 * is told what was short when it was judged; whoever was judged after it may have taken the rest.
 */
#include "internal.h"

static void renew(struct core *core, struct shape *shape)
{
    struct evaluation evaluation;
    arena_reset(&core->scratch);
    evaluate_shape(core, shape, &evaluation);
    struct verdict *kept = &shape->verdict;
    if (evaluation.verdict.reason == kept->reason) {
        str_drop(&kept->message);
        kept->message = str_own(evaluation.verdict.message);
    }
}

void core_renew_messages(struct core *core)
{
    if (core->is_tree_stale) {
        return;
    }
    struct core_cost cost = core->cost; /* of the step, which this isn't part of */
    whatif_begin(core);
    for (struct shape *shape = core->shapes; shape != NULL; shape = shape->hh.next) {
        bool is_waiting = !gang_line_is_empty(&shape->gangs) && !shape->is_ready;
        if (is_waiting && advice_is_possible(shape->verdict.reason)) {
            renew(core, shape);
        }
    }
    whatif_end(core);
    core->cost = cost;
}
