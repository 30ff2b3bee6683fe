/* preempt_relief.c - gangs that could start only by stopping others, when somebody begins to stop.
 *
 * What stops counts as gone for whoever looks for gangs to stop (victims_find()). So what the gang
 * that it stops for leaves of it may be enough together with what others would give up, long before
 * it comes free. Who draws on an account of which less is used in that sense, by its queue or by a
 * branch that the queue stands in, looks again; nobody else does. */
#include "preempt.h"
#include "stopping.h"

static void note_used(struct quota_node *node)
{
    for (; node != NULL; node = node->parent) {
        for (uint32_t i = 0; i < node->cell_count; i++) {
            node->cells[i].used_before = node->cells[i].used;
        }
    }
}

static bool mark_relieved(const struct core *core, struct quota_node *node)
{
    bool is_any = false;
    for (; node != NULL; node = node->parent) {
        for (uint32_t i = 0; i < node->cell_count; i++) {
            struct quota_cell *cell = &node->cells[i];
            if (cell->used < cell->used_before) {
                cell->relieved_in = core->relief_round + 1; /* 0: never */
                is_any = true;
            }
        }
    }
    return is_any;
}

void preempt_relief_begin(struct core *core, const struct victims *victims)
{
    if (core->preemptors == NULL) {
        return;
    }
    stopping_set_out(core, true);
    for (uint32_t i = 0; i < victims->count; i++) {
        note_used(&victims->items[i]->reservation->queue->node);
    }
    stopping_set_out(core, false);
}

void preempt_relief_end(struct core *core, const struct victims *victims)
{
    if (core->preemptors == NULL || core->is_tree_stale) {
        return;
    }
    stopping_set_out(core, true);
    for (uint32_t i = 0; i < victims->count; i++) {
        whatif_set_quota(core, victims->items[i], true);
    }
    for (uint32_t i = 0; i < victims->count; i++) {
        bool is_any = mark_relieved(core, &victims->items[i]->reservation->queue->node);
        core->has_relief = core->has_relief || is_any;
    }
    for (uint32_t i = 0; i < victims->count; i++) {
        whatif_set_quota(core, victims->items[i], false);
    }
    stopping_set_out(core, false);
}

static bool is_relieved(const struct core *core, const struct shape *shape)
{
    for (const struct quota_node *node = &shape->queue->node; node != NULL; node = node->parent) {
        for (uint32_t i = 0; i < node->cell_count; i++) {
            if (node->cells[i].relieved_in == core->relief_round &&
                quota_shape_asks(core, shape, node->cells[i].resource)) {
                return true;
            }
        }
    }
    return false;
}

bool preempt_wake_for_relief(struct core *core)
{
    if (!core->has_relief) {
        return false;
    }
    core->has_relief = false;
    core->relief_round++;
    bool is_woken = false;
    preempt_find_last_holders(core);
    stopping_set_out(core, true);
    for (struct shape *shape = core->preemptors; shape != NULL; shape = shape->next_preemptor) {
        bool is_due = core->options.is_plain || is_relieved(core, shape);
        arena_reset(&core->scratch);
        if (is_due && !shape->is_ready && !RB_EMPTY(&shape->gangs) &&
            preempt_may_stop_somebody(core, shape)) {
            wake_shape(core, shape);
            is_woken = true;
        }
    }
    stopping_set_out(core, false);
    return is_woken;
}
