/* preempt.c - preemption as a transaction: victims are chosen and stopped whole, the freed room
 * belongs to the gang that it was freed for, and each victim is stopped at most once for it.
 *
 *   Pending --victims found, each is being suspended--> Reserved --all have stopped--> Admitted
 *                                                          |
 *                                                          '--withdrawn, or time is up--> Pending
 *
 * While it is Reserved the gang is charged and its places are promised beside what its victims still
 * hold, so nobody else gets what comes free. Who may be preempted is Kueue's rule
 * (pkg/scheduler/preemption/preemption.go): in the own queue by withinQueue; in other queues of the
 * tree that borrow, by reclaimWithinCohort, if the gang then stays within its own quota; with
 * borrowWithinCohort it may borrow, from lower priorities up to the threshold. */
#include "internal.h"

#include <assert.h>
#include <stdlib.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* -- policy ------------------------------------------------------------------------------------ */

static const struct queue_preemption *policy_of(const struct queue_state *queue)
{
    return queue->object == NULL ? NULL : queue->object->spec.preemption;
}

static bool may_within_queue(const struct gang *gang, const struct gang *victim)
{
    const struct queue_preemption *policy = policy_of(gang->queue);
    if (str_eq_c(policy->within_queue, "LowerPriority")) {
        return victim->priority < gang->priority;
    }
    if (str_eq_c(policy->within_queue, "LowerOrNewerEqualPriority")) {
        bool is_newer = victim->created_ms > gang->created_ms;
        return victim->priority < gang->priority ||
               (victim->priority == gang->priority && is_newer);
    }
    return false;
}

static bool may_reclaim(const struct gang *gang, const struct gang *victim)
{
    const struct queue_preemption *policy = policy_of(gang->queue);
    if (str_eq_c(policy->reclaim_within_cohort, "Any")) {
        return true;
    }
    return str_eq_c(policy->reclaim_within_cohort, "LowerPriority") &&
           victim->priority < gang->priority;
}

/* Whether the queue uses more than its own quota of anything that the gang asks. */
static bool is_borrowing(const struct queue_state *queue, const struct gang *victim)
{
    for (uint32_t i = 0; i < victim->reservation->per_pod.count; i++) {
        const struct charge *charge = &victim->reservation->per_pod.items[i];
        const struct quota_cell *cell =
            quota_cell_find(&queue->node, charge->flavor, charge->resource);
        if (cell != NULL && cell->used > cell->subtree) {
            return true;
        }
    }
    return false;
}

static bool is_protected(const struct core *core, const struct gang *victim)
{
    const struct queue *object = victim->reservation->queue->object;
    if (object == NULL || !object->spec.min_runtime_protection.is_set) {
        return false;
    }
    bool is_young =
        core->now_ms - victim->admitted_ms < object->spec.min_runtime_protection.ms;
    return is_young && !is_borrowing(victim->reservation->queue, victim);
}

/* -- candidates -------------------------------------------------------------------------------- */

struct victim_list {
    struct gang **items; /* in the scratch arena */
    uint32_t count;
    uint32_t capacity;
};

static bool is_candidate(const struct core *core, const struct gang *gang,
                         const struct gang *victim, bool with_cohort)
{
    bool is_up = victim->state == GANG_ADMITTED || victim->state == GANG_RUNNING;
    if (!is_up || gang_is_busy(victim) || victim == gang || is_protected(core, victim)) {
        return false;
    }
    struct queue_state *queue = victim->reservation->queue;
    if (queue == gang->queue) {
        return may_within_queue(gang, victim);
    }
    return with_cohort && quota_root(&queue->node) == quota_root(&gang->queue->node) &&
           is_borrowing(queue, victim) && may_reclaim(gang, victim);
}

static i128 lost_work(const struct core *core, const struct gang *victim)
{
    i128 devices = 0;
    for (uint32_t i = 0; i < victim->reservation->per_pod.count; i++) {
        const struct charge *charge = &victim->reservation->per_pod.items[i];
        if (resource_is_device(charge->resource)) {
            devices += (i128)charge->amount * victim->reservation->count;
        }
    }
    int64_t since_ms = victim->checkpoint_ms > victim->admitted_ms ? victim->checkpoint_ms
                                                                   : victim->admitted_ms;
    int64_t run_ms = core->now_ms > since_ms ? core->now_ms - since_ms : 0;
    return devices * run_ms;
}

/* Other queues first, lower priority, least lost work, latest admitted, uid. */
static int compare_victims(const struct core *core, const struct gang *preemptor,
                           const struct gang *a, const struct gang *b)
{
    bool a_own = a->reservation->queue == preemptor->queue;
    bool b_own = b->reservation->queue == preemptor->queue;
    if (a_own != b_own) {
        return a_own ? 1 : -1;
    }
    if (a->priority != b->priority) {
        return a->priority < b->priority ? -1 : 1;
    }
    i128 lost_a = lost_work(core, a);
    i128 lost_b = lost_work(core, b);
    if (lost_a != lost_b) {
        return lost_a < lost_b ? -1 : 1;
    }
    if (a->admitted_ms != b->admitted_ms) {
        return a->admitted_ms > b->admitted_ms ? -1 : 1;
    }
    return str_compare(a->uid, b->uid);
}

/* Sorted as they are found: a handful in the common case. */
static void add_victim(struct core *core, const struct gang *preemptor, struct victim_list *list,
                       struct gang *victim)
{
    list->items = arena_grow(&core->scratch, list->items, list->count, &list->capacity,
                             sizeof(struct gang *));
    uint32_t at = list->count++;
    while (at > 0 && compare_victims(core, preemptor, victim, list->items[at - 1]) < 0) {
        list->items[at] = list->items[at - 1];
        at--;
    }
    list->items[at] = victim;
}

static struct victim_list find_candidates(struct core *core, const struct gang *gang,
                                          bool with_cohort)
{
    struct victim_list list = {.count = 0};
    struct gang *victim;
    RB_FOREACH (victim, gang_holder_tree, &core->holders) {
        if (is_candidate(core, gang, victim, with_cohort)) {
            add_victim(core, gang, &list, victim);
        }
    }
    return list;
}

/* -- the smallest sufficient set ---------------------------------------------------------------- */

struct search {
    struct gang *gang;
    bool may_borrow;
    bool has_threshold; /* borrowWithinCohort: borrowing only at the cost of such priorities */
    int64_t threshold;
};

static bool fits(struct core *core, const struct search *search, struct evaluation *evaluation)
{
    evaluate_shape(core, search->gang->shape, evaluation);
    return evaluation->verdict.reason == REASON_NONE &&
           (search->may_borrow || evaluation->level == 0);
}

/* A gang of another queue only while that one still borrows without those that are out. */
static bool still_allowed(const struct gang *gang, const struct gang *victim)
{
    struct queue_state *queue = victim->reservation->queue;
    return queue == gang->queue || is_borrowing(queue, victim);
}

static bool take_out_until_fit(struct core *core, struct search *search,
                               const struct victim_list *candidates, struct victim_list *victims,
                               struct evaluation *evaluation)
{
    for (uint32_t i = 0; i < candidates->count; i++) {
        struct gang *victim = candidates->items[i];
        if (!still_allowed(search->gang, victim)) {
            continue;
        }
        bool is_other = victim->reservation->queue != search->gang->queue;
        if (is_other && search->has_threshold && victim->priority > search->threshold) {
            search->may_borrow = false;
        }
        whatif_take_out(core, victim);
        victims->items = arena_grow(&core->scratch, victims->items, victims->count,
                                    &victims->capacity, sizeof(struct gang *));
        victims->items[victims->count++] = victim;
        if (fits(core, search, evaluation)) {
            return true;
        }
    }
    return false;
}

/* From the last taken out to the first: whoever isn't needed goes back. */
static void fill_back(struct core *core, const struct search *search, struct victim_list *victims)
{
    for (uint32_t i = victims->count; i > 0; i--) {
        struct gang *victim = victims->items[i - 1];
        struct evaluation evaluation;
        whatif_put_back(core, victim);
        if (fits(core, search, &evaluation)) {
            for (uint32_t j = i - 1; j + 1 < victims->count; j++) {
                victims->items[j] = victims->items[j + 1];
            }
            victims->count--;
        } else {
            whatif_take_out(core, victim);
        }
    }
}

/* The rule once more, with all but the one in question out: no queue is left below its own quota
 * by more than one gang's worth. */
static bool rule_holds(struct core *core, const struct search *search,
                       const struct victim_list *victims)
{
    for (uint32_t i = 0; i < victims->count; i++) {
        struct gang *victim = victims->items[i];
        whatif_put_back(core, victim);
        bool is_allowed = still_allowed(search->gang, victim);
        whatif_take_out(core, victim);
        if (!is_allowed) {
            return false;
        }
    }
    return true;
}

static bool search_victims(struct core *core, struct search search,
                           const struct victim_list *candidates, struct victim_list *victims,
                           struct evaluation *evaluation)
{
    *victims = (struct victim_list){.count = 0};
    if (candidates->count == 0) {
        return false;
    }
    whatif_begin(core);
    bool is_found = take_out_until_fit(core, &search, candidates, victims, evaluation);
    if (is_found) {
        fill_back(core, &search, victims);
        is_found = victims->count > 0 && rule_holds(core, &search, victims) &&
                   fits(core, &search, evaluation);
    }
    for (uint32_t i = 0; i < victims->count; i++) {
        whatif_put_back(core, victims->items[i]);
    }
    whatif_end(core);
    return is_found;
}

static bool choose_victims(struct core *core, struct gang *gang, struct victim_list *victims,
                           struct evaluation *evaluation)
{
    const struct queue_preemption *policy = policy_of(gang->queue);
    struct victim_list own = find_candidates(core, gang, false);
    struct victim_list all = find_candidates(core, gang, true);
    const struct borrow_within_cohort *borrow = policy->borrow_within_cohort;
    bool may_borrow = borrow != NULL && str_eq_c(borrow->policy, "LowerPriority");
    if (all.count > own.count) {
        struct search search = {.gang = gang, .may_borrow = may_borrow};
        if (may_borrow) {
            search.has_threshold = true;
            search.threshold = gang->priority - 1;
            if (borrow->max_priority_threshold.is_set &&
                borrow->max_priority_threshold.value < search.threshold) {
                search.threshold = borrow->max_priority_threshold.value;
            }
        }
        if (search_victims(core, search, &all, victims, evaluation)) {
            return true;
        }
    }
    struct search search = {.gang = gang, .may_borrow = true};
    return search_victims(core, search, &own, victims, evaluation);
}

/* -- the transaction ----------------------------------------------------------------------------- */

static bool can_be_helped(enum reason reason)
{
    switch ((int)reason) {
    case REASON_QUOTA_EXHAUSTED:
    case REASON_BORROWING_LIMIT:
    case REASON_COHORT_EXHAUSTED:
    case REASON_NODES_FULL:
    case REASON_NODE_SHAPE:
    case REASON_DEVICES_EXHAUSTED:
        return true;
    default:
        return false;
    }
}

static bool is_set_other_than_never(struct str policy)
{
    return str_is_set(policy) && !str_eq_c(policy, "Never");
}

static void reserve_for(struct core *core, struct gang *gang, const struct evaluation *evaluation)
{
    gang_dequeue(core, gang);
    gang->admitted_ms = core->now_ms;
    ledger_reserve(core, gang, &evaluation->reserve);
    gang->reserved_shape = gang->shape;
    gang->reserved_until_ms = core->now_ms + PREEMPTION_TIMEOUT_MS;
    gang_set_state(core, gang, GANG_RESERVED, "Preempts");
    gang_mark_unbound(core, gang);
    gang_set_timer(core, gang, gang->reserved_until_ms);
}

bool preempt(struct core *core, struct gang *gang, enum reason reason)
{
    const struct queue_preemption *policy = policy_of(gang->queue);
    if (policy == NULL || !can_be_helped(reason) ||
        !(is_set_other_than_never(policy->within_queue) ||
          is_set_other_than_never(policy->reclaim_within_cohort))) {
        return false;
    }
    struct victim_list victims;
    struct evaluation evaluation;
    if (!choose_victims(core, gang, &victims, &evaluation)) {
        return false;
    }
    reserve_for(core, gang, &evaluation);
    for (uint32_t i = 0; i < victims.count; i++) {
        struct gang *victim = victims.items[i];
        bool is_own = victim->reservation->queue == gang->queue;
        str_drop(&victim->stops_for);
        victim->stops_for = str_own(gang->uid);
        patch_suspend_for(core, victim, gang,
                          is_own ? "PreemptedWithinQueue" : "ReclaimedWithinCohort");
    }
    return true;
}

uint32_t preempt_victims_left(const struct core *core, const struct gang *gang)
{
    uint32_t left = 0;
    struct gang *victim;
    RB_FOREACH (victim, gang_holder_tree, (struct gang_holder_tree *)(uintptr_t)&core->holders) {
        left += str_is_set(victim->stops_for) && str_eq(victim->stops_for, gang->uid) ? 1 : 0;
    }
    return left;
}

void preempt_abort(struct core *core, struct gang *gang)
{
    ledger_release(core, gang);
    gang->reserved_shape = NULL;
    gang_set_state(core, gang, GANG_PENDING, "PreemptionEnded");
    gang_mark_unbound(core, gang);
}

/* All victims have stopped: the gang starts in the room that is its own. */
static void finish(struct core *core, struct gang *gang)
{
    struct evaluation evaluation;
    arena_reset(&core->scratch);
    ledger_release(core, gang);
    gang_mark_unbound(core, gang);
    evaluate_shape(core, gang->shape, &evaluation);
    if (evaluation.verdict.reason == REASON_NONE) {
        gang->reserved_shape = NULL;
        patch_admit(core, gang, &evaluation);
        return;
    }
    /* Somebody who asks nobody took it (a foreign pod, a node that went): it waits like all. */
    gang->reserved_shape = NULL;
    gang_set_state(core, gang, GANG_PENDING, "PreemptionEnded");
    gang_review(core, gang);
}

void preempt_finish_ready(struct core *core)
{
    struct gang *gang = RB_MIN(gang_holder_tree, &core->holders);
    while (gang != NULL) {
        struct gang *next = RB_NEXT(gang_holder_tree, &core->holders, gang);
        bool is_due = gang->state == GANG_RESERVED && !gang_is_busy(gang) &&
                      preempt_victims_left(core, gang) == 0;
        if (is_due) {
            finish(core, gang);
            next = RB_MIN(gang_holder_tree, &core->holders);
        }
        gang = next;
    }
}

/* -- after a restart ------------------------------------------------------------------------------ */

static void restore_one(struct core *core, struct gang *gang)
{
    struct evaluation evaluation;
    struct victim_list victims = {.count = 0};
    whatif_begin(core);
    struct gang *victim;
    RB_FOREACH (victim, gang_holder_tree, &core->holders) {
        bool is_for = victim->state == GANG_SUSPENDING && victim->suspended != NULL &&
                      str_eq(victim->suspended->for_gang, gang->key);
        if (is_for) {
            victims.items = arena_grow(&core->scratch, victims.items, victims.count,
                                       &victims.capacity, sizeof(struct gang *));
            victims.items[victims.count++] = victim;
            whatif_take_out(core, victim);
        }
    }
    evaluate_shape(core, gang->shape, &evaluation);
    for (uint32_t i = 0; i < victims.count; i++) {
        whatif_put_back(core, victims.items[i]);
        str_drop(&victims.items[i]->stops_for);
        victims.items[i]->stops_for = str_own(gang->uid);
    }
    whatif_end(core);
    if (victims.count > 0 && evaluation.verdict.reason == REASON_NONE) {
        reserve_for(core, gang, &evaluation);
    }
}

void preempt_restore(struct core *core)
{
    struct gang *gang = RB_MIN(gang_order_tree, &core->gang_order);
    for (; gang != NULL; gang = RB_NEXT(gang_order_tree, &core->gang_order, gang)) {
        struct gang *beneficiary = NULL;
        bool is_victim = gang->state == GANG_SUSPENDING && gang->reservation != NULL &&
                         gang->suspended != NULL && str_is_set(gang->suspended->for_gang);
        if (!is_victim) {
            continue;
        }
        struct str key = gang->suspended->for_gang;
        HASH_FIND(hh_key, core->gangs_by_key, key.ptr, (unsigned)key.len, beneficiary);
        if (beneficiary != NULL && beneficiary->state == GANG_PENDING && beneficiary->is_in_queue) {
            quota_relink(core);
            restore_one(core, beneficiary);
        }
    }
}
