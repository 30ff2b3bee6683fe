/* preempt.c - preemption as a transaction: victims are chosen and stopped whole, the freed room
 * belongs to the gang that it was freed for, and each victim is stopped at most once for it.
 *
 *   Pending --victims found, each is being suspended--> Reserved --all have stopped--> Admitted
 *                                                          |
 *                                                          '--withdrawn, or time is up--> Pending
 *
 * While it is Reserved the gang is charged and its places are promised beside what its victims
 * still hold, so nobody else gets what comes free. victims.c chooses the victims. */
#include "check.h"
#include "preempt.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* -- the transaction -----------------------------------------------------------------------------
 */

void victims_append(struct core *core, struct victims *victims, struct gang *victim)
{
    victims->items = arena_grow(&core->scratch, victims->items, victims->count, &victims->capacity,
                                sizeof(struct gang *));
    victims->items[victims->count++] = victim;
}

bool preempt_can_help(enum reason reason)
{
    switch ((int)reason) {
    case REASON_QUOTA_EXHAUSTED:
    case REASON_BORROWING_LIMIT:
    case REASON_COHORT_EXHAUSTED:
    case REASON_NODES_FULL:
    case REASON_NODE_SHAPE:
    case REASON_TOPOLOGY_UNSATISFIED:
    case REASON_DEVICES_EXHAUSTED:
    case REASON_DEVICES_UNHEALTHY:
        return true;
    default:
        return false;
    }
}

static bool is_set_other_than_never(struct str policy)
{
    return str_is_set(policy) && !str_eq_c(policy, "Never");
}

static void reserve_for(struct core *core, struct gang *gang, const struct victims *victims,
                        const struct evaluation *evaluation)
{
    int64_t grace_ms = 0;
    for (uint32_t i = 0; i < victims->count; i++) {
        int64_t asked_ms = victims->items[i]->grace_ms;
        grace_ms = asked_ms > grace_ms ? asked_ms : grace_ms;
    }
    gang_dequeue(core, gang);
    gang->admitted_ms = core->now_ms;
    ledger_reserve(core, gang, &evaluation->reserve);
    gang_confine(gang, evaluation->domain);
    gang->reserved_shape = gang->shape;
    gang->reserved_combination = evaluation->combination;
    gang->reserved_level = evaluation->level;
    gang->reserved_until_ms = core->now_ms + grace_ms + PREEMPTION_TIMEOUT_MS;
    gang_set_state(core, gang, GANG_RESERVED, "Preempts");
    gang_mark_unbound(core, gang);
    gang_set_timer(core, gang, gang->reserved_until_ms);
}

bool preempt_may(const struct queue_state *queue, enum reason reason)
{
    const struct queue_preemption *policy = queue_preemption_policy(queue);
    return preempt_can_help(reason) && (is_set_other_than_never(policy->within_queue) ||
                                        is_set_other_than_never(policy->reclaim_within_cohort));
}

bool preempt(struct core *core, struct gang *gang, struct evaluation *seen)
{
    enum reason reason = seen->verdict.reason;
    const struct queue_preemption *policy = queue_preemption_policy(gang->queue);
    bool fits = reason == REASON_NONE;
    if (!(preempt_can_help(reason) || (fits && fungible_may_preempt_first(gang->queue))) ||
        !(is_set_other_than_never(policy->within_queue) ||
          is_set_other_than_never(policy->reclaim_within_cohort))) {
        return false;
    }
    struct victims victims;
    struct evaluation evaluation;
    bookings_prepare(core);
    if (!victims_find(core, gang, seen, &victims, &evaluation)) {
        gang_set_timer(core, gang, fits ? 0 : gang->look_again_ms);
        return false;
    }
    reserve_for(core, gang, &victims, &evaluation);
    preempt_forget_why(gang);
    gang->reserved_why = MEM_NEW(struct evidence);
    evidence_keep(gang->reserved_why, &seen->evidence);
    for (uint32_t i = 0; i < victims.count; i++) {
        checkpoint_begin(core, victims.items[i], gang);
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

void preempt_forget_why(struct gang *gang)
{
    if (gang->reserved_why != NULL) {
        evidence_drop(gang->reserved_why);
        mem_free(gang->reserved_why);
        gang->reserved_why = NULL;
    }
}

void preempt_let_go(struct core *core, const struct gang *gang)
{
    struct gang *victim;
    RB_FOREACH (victim, gang_holder_tree, &core->holders) {
        if (str_is_set(victim->stops_for) && str_eq(victim->stops_for, gang->uid)) {
            str_drop(&victim->stops_for); /* what stops already goes on stopping */
            (void)checkpoint_withdraw(core, victim);
        }
    }
}

void preempt_abort(struct core *core, struct gang *gang)
{
    preempt_let_go(core, gang);
    preempt_forget_why(gang);
    ledger_release(core, gang);
    gang_confine(gang, NULL);
    gang->reserved_shape = NULL;
    gang_set_state(core, gang, GANG_PENDING, "PreemptionEnded");
    gang_mark_unbound(core, gang);
}

/* All victims have stopped. Their devices may be freed a little later than their pods, and somebody
 * else may have taken a place (a foreign pod, a node that went): the room stays reserved until the
 * gang fits or its time is up. False: it stays so. */
static bool finish(struct core *core, struct gang *gang)
{
    struct evaluation evaluation;
    arena_reset(&core->scratch);
    whatif_begin(core);
    whatif_take_out(core, gang);
    bookings_ignore(core, true);            /* the room is its own */
    core->level_cap = gang->reserved_level; /* what its victims held beyond that isn't */
    evaluate_combination(core, gang->shape, gang->reserved_combination, &evaluation);
    if (evaluation.verdict.reason != REASON_NONE) {
        evaluate_shape(core, gang->shape, &evaluation);
    }
    core->level_cap = LEVEL_ANY;
    bookings_ignore(core, false);
    whatif_put_back(core, gang);
    whatif_end(core);
    enum reason reason = evaluation.verdict.reason;
    if (reason == REASON_NONE) {
        ledger_release(core, gang);
        gang->reserved_shape = NULL;
        preempt_forget_why(gang);
        check_or_admit(core, gang, &evaluation);
    } else if (!preempt_can_help(reason) && reason != REASON_RESERVED_FOR_OTHER) {
        preempt_abort(core, gang);
        gang_review(core, gang);
    } else {
        return false;
    }
    return true;
}

/* In one walk for all that are Reserved: preempt_victims_left() walks for each. */
static void mark_with_victims(struct core *core)
{
    struct gang *gang;
    RB_FOREACH (gang, gang_holder_tree, &core->holders) {
        gang->has_victims = false;
    }
    RB_FOREACH (gang, gang_holder_tree, &core->holders) {
        struct gang *other = str_is_set(gang->stops_for) ? gang_find(core, gang->stops_for) : NULL;
        if (other != NULL) {
            other->has_victims = true;
        }
    }
}

void preempt_finish_ready(struct core *core)
{
    if (core->reserved_count == 0) {
        return;
    }
    mark_with_victims(core);
    struct gang *gang = RB_MIN(gang_holder_tree, &core->holders);
    while (gang != NULL) {
        struct gang *next = RB_NEXT(gang_holder_tree, &core->holders, gang);
        bool is_due = gang->state == GANG_RESERVED && gang->check == NULL && !gang_is_busy(gang) &&
                      !gang->has_victims;
        if (is_due && finish(core, gang)) {
            mark_with_victims(core);
            next = RB_MIN(gang_holder_tree, &core->holders);
        }
        gang = next;
    }
}

/* -- after a restart ------------------------------------------------------------------------------
 */

/* Of a gang that holds something and has been stopped for another, or asked to; else absent. */
static struct str beneficiary_key(const struct gang *victim)
{
    bool is_up = victim->state == GANG_ADMITTED || victim->state == GANG_RUNNING;
    if (victim->reservation == NULL || str_is_set(victim->stops_for)) {
        return STR_NONE;
    }
    if (victim->state == GANG_SUSPENDING && victim->suspended != NULL) {
        return victim->suspended->for_gang;
    }
    return is_up && victim->request_ms != 0 ? victim->request_for : STR_NONE;
}

/* Not another Job that has taken the name since. A record that doesn't say which is believed. */
static bool makes_room_for(const struct gang *victim, const struct gang *gang)
{
    bool is_stopped = victim->state == GANG_SUSPENDING && victim->suspended != NULL;
    bool is_another = is_stopped && str_is_set(victim->suspended->for_uid) &&
                      !str_eq(victim->suspended->for_uid, gang->uid);
    return !is_another && str_eq(beneficiary_key(victim), gang->key);
}

static void review_asked(struct core *core, const struct victims *victims)
{
    for (uint32_t i = 0; i < victims->count; i++) {
        gang_review(core, victims->items[i]);
    }
}

/* The flavors that these victims stop for: the first that have room without them and none with
 * them; else any that have room. */
static void evaluate_without(struct core *core, struct gang *gang, const struct victims *victims,
                             struct evaluation *ret_evaluation)
{
    uint32_t count = evaluate_combination_count(core, gang->shape);
    for (uint32_t combination = 0; combination < count; combination++) {
        struct evaluation beside;
        evaluate_combination(core, gang->shape, combination, &beside);
        for (uint32_t i = 0; i < victims->count; i++) {
            whatif_take_out(core, victims->items[i]);
        }
        evaluate_combination(core, gang->shape, combination, ret_evaluation);
        for (uint32_t i = 0; i < victims->count; i++) {
            whatif_put_back(core, victims->items[i]);
        }
        if (ret_evaluation->verdict.reason == REASON_NONE && beside.verdict.reason != REASON_NONE) {
            return;
        }
    }
    for (uint32_t i = 0; i < victims->count; i++) {
        whatif_take_out(core, victims->items[i]);
    }
    evaluate_shape(core, gang->shape, ret_evaluation);
    for (uint32_t i = 0; i < victims->count; i++) {
        whatif_put_back(core, victims->items[i]);
    }
}

static void restore_one(struct core *core, struct gang *gang)
{
    struct evaluation evaluation;
    struct victims victims = {.count = 0};
    whatif_begin(core);
    struct gang *victim;
    RB_FOREACH (victim, gang_holder_tree, &core->holders) {
        if (makes_room_for(victim, gang)) {
            victims_append(core, &victims, victim);
        }
    }
    bookings_ignore(core, true);
    core->level_cap = 0; /* how far up it had meant to borrow isn't known any more */
    evaluate_without(core, gang, &victims, &evaluation);
    core->level_cap = LEVEL_ANY;
    bookings_ignore(core, false);
    for (uint32_t i = 0; i < victims.count; i++) {
        str_drop(&victims.items[i]->stops_for);
        victims.items[i]->stops_for = str_own(gang->uid);
    }
    whatif_end(core);
    if (victims.count > 0 && evaluation.verdict.reason == REASON_NONE) {
        reserve_for(core, gang, &victims, &evaluation);
        review_asked(core, &victims);
    } else if (victims.count > 0) {
        (void)preempt(core, gang, &evaluation); /* some had not been stopped yet */
        review_asked(core, &victims);
    }
}

void preempt_restore(struct core *core)
{
    struct gang *gang = RB_MIN(gang_order_tree, &core->gang_order);
    for (; gang != NULL; gang = RB_NEXT(gang_order_tree, &core->gang_order, gang)) {
        struct gang *beneficiary = NULL;
        struct str key = beneficiary_key(gang);
        if (!str_is_set(key)) {
            continue;
        }
        HASH_FIND(hh_key, core->gangs_by_key, key.ptr, (unsigned)key.len, beneficiary);
        bool is_waiting =
            beneficiary != NULL && beneficiary->state == GANG_PENDING && beneficiary->is_in_queue;
        if (is_waiting && makes_room_for(gang, beneficiary)) {
            quota_relink(core);
            restore_one(core, beneficiary);
        }
    }
}

void preempt_withdraw_requests(struct core *core)
{
    struct gang *gang = RB_MIN(gang_order_tree, &core->gang_order);
    while (gang != NULL) {
        struct gang *next = RB_NEXT(gang_order_tree, &core->gang_order, gang);
        if (gang->request_ms != 0 && !str_is_set(gang->stops_for)) {
            gang_review(core, gang);
        }
        gang = next;
    }
}
