/* preempt_relief.c - gangs that could start only by stopping others, when somebody begins to stop.
 *
 * What stops counts as gone for whoever looks for gangs to stop (victims_find()). So what the gang
 * that it stops for leaves of it may be enough together with what others would give up, long before
 * it comes free. Who draws on an account of which less is used in that sense, by its queue or by a
 * branch that the queue stands in, looks again, and who was short of room and could use a node that
 * some stop on; nobody else does. */
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

/* Of its room: where its pods are, or their devices, which may be of no node. */
static bool leaves_room_for(const struct core *core, const struct shape *shape,
                            const struct gang *victim)
{
    const struct pod_state *pod = gang_first_pod(victim);
    bool wants_devices = shape_wants_devices(shape);
    for (; pod != NULL; pod = pod->next_in_group) {
        bool is_there = pod->node != NULL && !pod->is_terminal;
        if (is_there && ((wants_devices && pod->claim_count > 0) ||
                         shape_may_use_node(core, shape, pod->node))) {
            return true;
        }
    }
    return false;
}

/* For those that found quota enough, but not room, whoever stopped. */
static void mark_room_relieved(struct core *core, const struct victims *victims)
{
    for (struct shape *shape = core->preemptors; shape != NULL; shape = shape->next_preemptor) {
        bool is_relieved = false;
        for (uint32_t i = 0;
             shape->is_preempting_short_of_room && !is_relieved && i < victims->count; i++) {
            is_relieved = leaves_room_for(core, shape, victims->items[i]);
        }
        shape->is_room_relieved = shape->is_room_relieved || is_relieved;
        core->has_relief = core->has_relief || is_relieved;
    }
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
    mark_room_relieved(core, victims);
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
        bool is_due = core->options.is_plain || shape->is_room_relieved || is_relieved(core, shape);
        shape->is_room_relieved = false;
        arena_reset(&core->scratch);
        if (is_due && !shape->is_ready && !gang_line_is_empty(&shape->gangs) &&
            preempt_may_stop_somebody(core, shape)) {
            wake_shape(core, shape);
            is_woken = true;
        }
    }
    stopping_set_out(core, false);
    return is_woken;
}
