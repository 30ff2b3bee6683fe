/* preempt_early.c - a gang whose victims still stop, when room has come free elsewhere.
 *
 * A victim may take its time, or stand on a dead node. So who is Reserved starts as soon as it fits
 * beside all that holds something now. Of another that is Reserved counts what its victims don't
 * hold for it, so that nobody takes what has come free for that one; on nodes, those that come
 * first by priority and place, as far as they find room. And it has to fit as well when all that
 * stops is gone and everybody Reserved is in their places.
 *
 * That is tried when something has come free since the last time, by marks on those few gangs. */
#include "booking.h"
#include "selectors.h"
#include "stopping.h"

#include "tallyman/base/limits.h"

/* -- what has come free --------------------------------------------------------------------------
 */

void preempt_early_note_quota(struct core *core, const struct queue_state *queue,
                              struct str resource)
{
    for (uint32_t i = 0; i < core->reserved.count; i++) {
        struct gang *gang = core->reserved.items[i];
        bool is_told = gang->shape == NULL || core->is_tree_stale ||
                       (quota_root(&gang->shape->queue->node) == quota_root(&queue->node) &&
                        quota_shape_asks(core, gang->shape, resource));
        gang->may_start_early = gang->may_start_early || is_told;
    }
}

void preempt_early_note_node(struct core *core, const struct node_state *node)
{
    for (uint32_t i = 0; i < core->reserved.count; i++) {
        struct gang *gang = core->reserved.items[i];
        gang->may_start_early = gang->may_start_early || gang->shape == NULL ||
                                shape_may_use_node(core, gang->shape, node);
    }
}

void preempt_early_note_all(struct core *core)
{
    for (uint32_t i = 0; i < core->reserved.count; i++) {
        core->reserved.items[i]->may_start_early = true;
    }
}

void preempt_early_note_beside(struct core *core)
{
    for (uint32_t i = 0; i < core->reserved.count; i++) {
        struct gang *gang = core->reserved.items[i];
        gang->may_start_early = gang->may_start_early || gang->is_beside_others;
    }
}

void preempt_early_note_shape(struct core *core, const struct shape *shape)
{
    for (uint32_t i = 0; i < core->reserved.count; i++) {
        struct gang *gang = core->reserved.items[i];
        gang->may_start_early = gang->may_start_early || gang->shape == shape;
    }
}

void preempt_mark_with_victims(struct core *core)
{
    for (uint32_t i = 0; i < core->reserved.count; i++) {
        core->reserved.items[i]->has_victims = false;
    }
    for (uint32_t i = 0; i < core->stopping.count; i++) {
        const struct gang *victim = core->stopping.items[i];
        struct gang *gang = gang_find(core, victim->stops_for);
        if (gang != NULL && victim->reservation != NULL) {
            gang->has_victims = true;
        }
    }
}

static bool waits_for_victims(const struct gang *gang)
{
    return gang->state == GANG_RESERVED && gang->room->check == NULL && gang->has_victims;
}

/* -- beside the others that are Reserved --------------------------------------------------------
 */

bool preempt_early_is_behind(const struct core *core, const struct gang *gang)
{
    return core->judged != NULL && core->judged != gang && waits_for_victims(gang) &&
           (!core->judged->has_victims || gang_compare_order(core->judged, gang) < 0);
}

/* What one of core.reserved has yet to get beside what its victims hold for it. */
struct outstanding {
    i128 *amounts; /* of its sets' charges, one after the other */
};

static uint32_t charge_count(const struct gang *gang)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < gang->reservation->set_count; s++) {
        count += gang->reservation->sets[s].per_pod.count;
    }
    return count;
}

/* A victim still holds so much of that account for the gang. */
static void stand_in(const struct gang *gang, struct outstanding *outstanding,
                     const struct charge *charge, i128 amount)
{
    struct reservation *reservation = gang->reservation;
    uint32_t at = 0;
    for (uint32_t s = 0; s < reservation->set_count; s++) {
        const struct charge_list *list = &reservation->sets[s].per_pod;
        for (uint32_t i = 0; i < list->count; i++, at++) {
            bool is_same = str_eq(list->items[i].resource, charge->resource) &&
                           str_eq(list->items[i].flavor, charge->flavor);
            i128 left = outstanding->amounts[at];
            i128 taken = !is_same ? 0 : amount < left ? amount : left;
            outstanding->amounts[at] -= taken;
            amount -= taken;
            (void)quota_use(&reservation->queue->node, charge->flavor, charge->resource, -taken);
        }
    }
}

static void stand_in_all(const struct gang *victim, const struct gang *gang,
                         struct outstanding *outstanding)
{
    for (uint32_t s = 0; s < victim->reservation->set_count; s++) {
        const struct reserved_set *set = &victim->reservation->sets[s];
        for (uint32_t i = 0; i < set->per_pod.count; i++) {
            const struct charge *charge = &set->per_pod.items[i];
            stand_in(gang, outstanding, charge, (i128)charge->amount * set->count);
        }
    }
}

/* Of all but that one, which is out. */
static struct outstanding *outstanding_begin(struct core *core, const struct gang *judged)
{
    struct outstanding *all =
        ARENA_ARRAY(&core->scratch, struct outstanding, core->reserved.count + 1);
    for (uint32_t r = 0; r < core->reserved.count; r++) {
        struct gang *gang = core->reserved.items[r];
        gang->scratch_index = r;
        all[r].amounts = ARENA_ARRAY(&core->scratch, i128, charge_count(gang) + 1);
        uint32_t at = 0;
        for (uint32_t s = 0; s < gang->reservation->set_count; s++) {
            const struct reserved_set *set = &gang->reservation->sets[s];
            for (uint32_t i = 0; i < set->per_pod.count; i++) {
                all[r].amounts[at++] = (i128)set->per_pod.items[i].amount * set->count;
            }
        }
    }
    for (uint32_t i = 0; i < core->stopping.count; i++) {
        const struct gang *victim = core->stopping.items[i];
        const struct gang *gang = gang_find(core, victim->stops_for);
        if (gang != NULL && gang != judged && waits_for_victims(gang) &&
            victim->reservation != NULL &&
            quota_root(&victim->reservation->queue->node) ==
                quota_root(&gang->reservation->queue->node)) {
            stand_in_all(victim, gang, &all[gang->scratch_index]);
        }
    }
    return all;
}

static void outstanding_end(const struct core *core, const struct outstanding *all)
{
    for (uint32_t r = 0; r < core->reserved.count; r++) {
        const struct reservation *reservation = core->reserved.items[r]->reservation;
        uint32_t at = 0;
        for (uint32_t s = 0; s < reservation->set_count; s++) {
            const struct reserved_set *set = &reservation->sets[s];
            for (uint32_t i = 0; i < set->per_pod.count; i++, at++) {
                const struct charge *charge = &set->per_pod.items[i];
                (void)quota_use(&reservation->queue->node, charge->flavor, charge->resource,
                                (i128)charge->amount * set->count - all[r].amounts[at]);
            }
        }
    }
}

/* -- the judgement ----------------------------------------------------------------------------- */

static struct outstanding *now_begin(struct core *core, struct gang *gang)
{
    struct outstanding *others = outstanding_begin(core, gang);
    bookings_ignore(core, true); /* those are looked at beside what will be there then */
    core->judged = gang;
    core->level_cap = gang->room->reserved_level;
    return others;
}

static void now_end(struct core *core, const struct outstanding *others)
{
    core->level_cap = LEVEL_ANY;
    core->judged = NULL;
    bookings_ignore(core, false);
    outstanding_end(core, others);
}

/* Beside all that holds something now. One that may preempt rather than borrow, or rather than go
 * on to the next flavor, has chosen. */
static bool fits_now(struct core *core, struct gang *gang, struct evaluation *ret_evaluation)
{
    struct outstanding *others = now_begin(core, gang);
    core->is_brief = true;
    evaluate_combination(core, gang->shape, gang->room->reserved_combination, ret_evaluation);
    bool is_choosy = fungible_may_preempt_first(gang->queue);
    bool fits = ret_evaluation->verdict.reason == REASON_NONE &&
                (!is_choosy || ret_evaluation->level <= gang->room->reserved_level);
    if (!fits && !is_choosy && evaluate_combination_count(core, gang->shape) > 1) {
        evaluate_shape(core, gang->shape, ret_evaluation);
        fits = ret_evaluation->verdict.reason == REASON_NONE;
    }
    core->is_brief = false;
    if (fits) { /* and says why on that flavor */
        evaluate_combination(core, gang->shape, ret_evaluation->combination, ret_evaluation);
        fits = ret_evaluation->verdict.reason == REASON_NONE;
    }
    now_end(core, others);
    return fits;
}

static int64_t pods_of(const struct evaluation *evaluation)
{
    int64_t pods = 0;
    for (uint32_t s = 0; s < evaluation->reserve.set_count; s++) {
        pods = sat_add(pods, evaluation->reserve.sets[s].count);
    }
    return pods;
}

/* With all that stops gone, and whoever is Reserved or booked in their places. */
static bool fits_then(struct core *core, struct gang *gang, const struct evaluation *now)
{
    uint32_t own;
    struct evaluation then;
    struct victims stopping = stopping_find(core, NULL, &own);
    for (uint32_t i = 0; i < stopping.count; i++) {
        whatif_take_out(core, stopping.items[i]);
    }
    core->judged = gang;
    core->is_brief = true;
    bookings_ignore(core, !gang->has_victims); /* then the room is its own */
    evaluate_combination(core, gang->shape, now->combination, &then);
    bookings_ignore(core, false);
    core->is_brief = false;
    core->judged = NULL;
    for (uint32_t i = 0; i < stopping.count; i++) {
        whatif_put_back(core, stopping.items[i]);
    }
    return then.verdict.reason == REASON_NONE && pods_of(&then) >= pods_of(now);
}

/* Where it fits now it will be in somebody's way: on another flavor it may not. */
static bool fits_on_another(struct core *core, struct gang *gang, struct evaluation *ret_evaluation)
{
    uint32_t count =
        fungible_may_preempt_first(gang->queue) ? 0 : evaluate_combination_count(core, gang->shape);
    bool fits = false;
    for (uint32_t combination = 0; combination < count && count > 1 && !fits; combination++) {
        struct outstanding *others = now_begin(core, gang);
        evaluate_combination(core, gang->shape, combination, ret_evaluation);
        now_end(core, others);
        fits =
            ret_evaluation->verdict.reason == REASON_NONE && fits_then(core, gang, ret_evaluation);
    }
    return fits;
}

/* One that was let go a moment ago may have pods that the watch has yet to show: its Job counts
 * them, or will, and nobody knows their nodes. */
static bool has_unseen_pods(const struct gang *victim)
{
    int64_t told = sat_add(victim->run->active, victim->run->terminating);
    int64_t seen = (int64_t)victim->live_pods + (int64_t)victim->run->lost_pods;
    bool may_come = told == 0 && seen == 0 && !victim->has_suspended_condition;
    return victim->reservation != NULL && !victim->is_job_gone && (told > seen || may_come);
}

static bool are_victims_seen(const struct core *core, const struct gang *gang)
{
    uint32_t count = queue_looks_at_nodes(gang->queue) ? core->stopping.count : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (has_unseen_pods(core->stopping.items[i])) {
            return false;
        }
    }
    return true;
}

/* One that is busy may be invalid, and have no shape. */
static bool can_be_judged(struct core *core, const struct gang *gang)
{
    return !gang_is_busy(gang) && (gang->may_start_early || core->options.is_plain) &&
           are_victims_seen(core, gang) && selectors_are_known(core, gang->shape);
}

static bool fits_early(struct core *core, struct gang *gang, struct evaluation *ret_evaluation)
{
    gang->may_start_early = gang->may_start_early || core->has_freed; /* until it is judged */
    if (!can_be_judged(core, gang)) {
        return false;
    }
    core->cost.gangs_visited += gang->may_start_early ? 1 : 0;
    bookings_prepare(core);
    whatif_begin(core);
    whatif_take_out(core, gang);
    bool fits_beside = fits_now(core, gang, ret_evaluation);
    bool fits = fits_beside && (fits_then(core, gang, ret_evaluation) ||
                                fits_on_another(core, gang, ret_evaluation));
    whatif_put_back(core, gang);
    whatif_end(core);
    gang->may_start_early = false;
    gang->is_beside_others =
        fits_beside || (ret_evaluation->has_fit && ret_evaluation->fit.is_beside_promises);
    return fits;
}

/* -- in their order ---------------------------------------------------------------------------- */

/* Of those that are Reserved for victims: by priority and place, as a restart finds them. */
static struct gang *next_waiting(const struct core *core, const struct gang *behind)
{
    struct gang *next = NULL;
    for (uint32_t i = 0; i < core->reserved.count; i++) {
        struct gang *gang = core->reserved.items[i];
        bool is_left = behind == NULL || gang_compare_order(behind, gang) < 0;
        if (is_left && gang->room->check == NULL &&
            (next == NULL || gang_compare_order(gang, next) < 0)) {
            next = gang;
        }
    }
    return next;
}

void preempt_finish_early(struct core *core)
{
    struct gang *gang = next_waiting(core, NULL);
    for (uint32_t waiting = 0; gang != NULL && waiting < RESERVED_JUDGED_MAX;) {
        struct evaluation evaluation;
        arena_reset(&core->scratch);
        if (fits_early(core, gang, &evaluation)) {
            preempt_start(core, gang, &evaluation);
            preempt_let_go(core, gang, true);
            preempt_mark_with_victims(core);
        } else {
            waiting++;
        }
        gang = next_waiting(core, gang);
    }
}
