/* preempt.c - preemption as a transaction: victims are chosen and stopped whole, the freed room
 * belongs to the gang that it was freed for, and each victim is stopped at most once for it.
 *
 *   Pending --victims found, each is being suspended--> Reserved --gone, or it fits--> Admitted
 *                                                          |
 *                                                          '--withdrawn, or time is up--> Pending
 *
 * While it is Reserved the gang is charged and its places are promised beside what its victims
 * still hold, so nobody else gets what comes free. victims.c chooses the victims. */
#include "check.h"
#include "gang_walk.h"
#include "selectors.h"
#include "stopping.h"

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
    GANG_PUT(gang, room, reserved_shape, gang->shape);
    GANG_PUT(gang, room, reserved_combination, evaluation->combination);
    GANG_PUT(gang, room, reserved_level, evaluation->level);
    GANG_PUT(gang, room, reserved_until_ms, core->now_ms + grace_ms + PREEMPTION_TIMEOUT_MS);
    gang_set_state(core, gang, GANG_RESERVED, "Preempts");
    gang_mark_unbound(core, gang);
    gang_set_timer(core, gang, gang->room->reserved_until_ms);
    gang->may_start_early = core->reserved.count > 1; /* beside these it is judged otherwise */
    gang->is_beside_others = false;
}

bool preempt_is_allowed(const struct queue_state *queue)
{
    const struct queue_preemption *policy = queue_preemption_policy(queue);
    return is_set_other_than_never(policy->within_queue) ||
           is_set_other_than_never(policy->reclaim_within_cohort);
}

bool preempt_may(const struct queue_state *queue, enum reason reason)
{
    return preempt_can_help(reason) && preempt_is_allowed(queue);
}

bool preempt(struct core *core, struct gang *gang, struct evaluation *seen)
{
    enum reason reason = seen->verdict.reason;
    bool fits = reason == REASON_NONE;
    if (!(preempt_can_help(reason) || (fits && fungible_may_preempt_first(gang->queue))) ||
        !preempt_is_allowed(gang->queue)) {
        return false;
    }
    struct victims victims;
    struct evaluation evaluation;
    bookings_prepare(core);
    if (!victims_find(core, gang, seen, &victims, &evaluation)) {
        gang_set_timer(core, gang, fits ? 0 : gang->look_again_ms);
        return false;
    }
    preempt_relief_begin(core, &victims);
    reserve_for(core, gang, &victims, &evaluation);
    preempt_relief_end(core, &victims);
    preempt_forget_why(gang);
    GANG_PUT(gang, room, reserved_why, MEM_NEW(struct evidence));
    evidence_keep(gang->room->reserved_why, &seen->evidence);
    for (uint32_t i = 0; i < victims.count; i++) {
        checkpoint_begin(core, victims.items[i], gang);
    }
    return true;
}

uint32_t preempt_victims_asked(const struct core *core, const struct gang *gang)
{
    uint32_t asked = 0;
    for (uint32_t i = 0; i < core->stopping.count; i++) {
        const struct gang *victim = core->stopping.items[i];
        bool is_up = victim->state == GANG_ADMITTED || victim->state == GANG_RUNNING;
        asked += is_up && victim->grace_ms > 0 && stopping_is_for(victim, gang) ? 1 : 0;
    }
    return asked;
}

uint32_t preempt_victims_left(const struct core *core, const struct gang *gang)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < core->stopping.count; i++) {
        const struct gang *victim = core->stopping.items[i];
        left += victim->reservation != NULL && stopping_is_for(victim, gang) ? 1 : 0;
    }
    return left;
}

void preempt_forget_why(struct gang *gang)
{
    if (gang->room->reserved_why != NULL) {
        evidence_drop(gang->room->reserved_why);
        mem_free(gang->room->reserved_why);
        GANG_PUT(gang, room, reserved_why, NULL);
    }
}

void preempt_let_go(struct core *core, const struct gang *gang, bool keeps_stopping)
{
    struct gang *victim;
    GANG_LINE_FOREACH (victim, &core->holders) {
        if (stopping_is_for(victim, gang) &&
            !(keeps_stopping && victim->state == GANG_SUSPENDING)) {
            stopping_end(core, victim); /* what stops already goes on stopping */
            (void)checkpoint_withdraw(core, victim);
        }
    }
}

static void release_reserved(struct core *core, struct gang *gang, const char *cause)
{
    preempt_forget_why(gang);
    ledger_release(core, gang);
    gang_confine(gang, NULL);
    GANG_PUT(gang, room, reserved_shape, NULL);
    gang_set_state(core, gang, GANG_PENDING, cause);
    gang_mark_unbound(core, gang);
}

void preempt_abort(struct core *core, struct gang *gang)
{
    bool is_late = core->now_ms >= gang->room->reserved_until_ms;
    preempt_let_go(core, gang, !is_late);
    release_reserved(core, gang, "PreemptionEnded");
}

bool preempt_review(struct core *core, struct gang *gang, bool wants_it)
{
    wants_it = wants_it && core->now_ms < gang->room->reserved_until_ms;
    if (wants_it && gang->shape == gang->room->reserved_shape) {
        gang_set_timer(core, gang, gang->room->reserved_until_ms);
        return true;
    }
    if (wants_it) {
        preempt_unsettle(core, gang);
    }
    preempt_abort(core, gang);
    return false;
}

/* Of a gang that can't start although its victims make room: until its time is up, it may come to
 * fit, by what is on its way elsewhere or by a node that comes back. */
static bool keeps_room(enum reason reason)
{
    return preempt_can_help(reason) || reason == REASON_RESERVED_FOR_OTHER;
}

void preempt_start(struct core *core, struct gang *gang, struct evaluation *evaluation)
{
    ledger_release(core, gang);
    GANG_PUT(gang, room, reserved_shape, NULL);
    preempt_forget_why(gang);
    check_or_admit(core, gang, evaluation);
}

/* All victims have stopped. Their devices may be freed a little later than their pods, and somebody
 * else may have taken a place (a foreign pod, a node that went): the room stays reserved until the
 * gang fits or its time is up. False: it stays so. */
static bool finish(struct core *core, struct gang *gang)
{
    struct evaluation evaluation;
    arena_reset(&core->scratch);
    if (!selectors_are_known(core, gang->shape)) {
        return false;
    }
    whatif_begin(core);
    whatif_take_out(core, gang);
    bookings_ignore(core, true);                  /* the room is its own */
    core->level_cap = gang->room->reserved_level; /* what its victims held beyond that isn't */
    evaluate_combination(core, gang->shape, gang->room->reserved_combination, &evaluation);
    if (evaluation.verdict.reason != REASON_NONE) {
        evaluate_shape(core, gang->shape, &evaluation);
    }
    core->level_cap = LEVEL_ANY;
    bookings_ignore(core, false);
    whatif_put_back(core, gang);
    whatif_end(core);
    enum reason reason = evaluation.verdict.reason;
    if (reason == REASON_NONE) {
        preempt_start(core, gang, &evaluation);
    } else if (!keeps_room(reason)) {
        preempt_abort(core, gang);
        gang_review(core, gang);
    } else {
        return false;
    }
    return true;
}

/* The first behind that one, in the order in which they were Reserved, whose victims are gone. */
static struct gang *next_due(const struct core *core, const struct gang *behind)
{
    struct gang *next = NULL;
    for (uint32_t i = 0; i < core->reserved.count; i++) {
        struct gang *gang = core->reserved.items[i];
        bool is_due = gang->room->check == NULL && !gang_is_busy(gang) && !gang->has_victims &&
                      (behind == NULL || gang_compare_admitted(behind, gang) < 0);
        if (is_due && (next == NULL || gang_compare_admitted(gang, next) < 0)) {
            next = gang;
        }
    }
    return next;
}

void preempt_finish_ready(struct core *core)
{
    if (core->reserved.count == 0) {
        return;
    }
    preempt_mark_with_victims(core);
    struct gang *gang = next_due(core, NULL);
    while (gang != NULL) {
        bool is_done = finish(core, gang);
        if (is_done) {
            preempt_mark_with_victims(core);
        }
        gang = next_due(core, is_done ? NULL : gang);
    }
    preempt_finish_early(core);
}

/* -- after a restart, or when the gang or the quota has changed ---------------------------------
 *
 * Either way the same is done, so that a restart decides as the controller that runs on: what stops
 * for a gang makes room for whatever it wants by now. */

/* "namespace/name", and its Job's uid behind it, unless the record is of an older version. */
struct named_gang {
    struct str key;
    struct str uid; /* absent: whoever has the name */
};

static struct named_gang named_gang_read(struct str text)
{
    size_t slash = str_find_char(text, '/');
    struct str name = str_skip(text, slash < text.len ? slash + 1 : text.len);
    size_t end = str_find_char(name, '/');
    if (end >= name.len) {
        return (struct named_gang){.key = text};
    }
    return (struct named_gang){.key = str_take(text, text.len - name.len + end),
                               .uid = str_skip(name, end + 1)};
}

/* Of a gang that holds something and has been stopped for another, or asked to. */
static struct named_gang recorded_beneficiary(const struct gang *victim)
{
    bool is_up = victim->state == GANG_ADMITTED || victim->state == GANG_RUNNING;
    if (victim->state == GANG_SUSPENDING && victim->suspended != NULL) {
        return (struct named_gang){victim->suspended->for_gang, victim->suspended->for_uid};
    }
    return is_up && victim->run->request_ms != 0 ? named_gang_read(victim->run->request_for)
                                                 : (struct named_gang){.key = STR_NONE};
}

/* NULL: there is none, or another Job has taken its name since. */
static struct gang *find_beneficiary(const struct core *core, const struct gang *victim)
{
    if (victim->reservation == NULL) {
        return NULL;
    }
    if (str_is_set(victim->stops_for)) {
        return gang_find(core, victim->stops_for);
    }
    struct named_gang named = recorded_beneficiary(victim);
    struct gang *gang = NULL;
    if (str_is_set(named.key)) {
        gang = table_find(&core->gangs_by_key, named.key);
    }
    bool is_another = gang != NULL && str_is_set(named.uid) && !str_eq(named.uid, gang->uid);
    return is_another ? NULL : gang;
}

static bool is_waiting(const struct gang *gang)
{
    return gang->state == GANG_PENDING && gang->is_in_queue;
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

/* By the quota alone, or with a place for each pod. */
static enum reason evaluate_again(struct core *core, struct gang *gang,
                                  const struct victims *victims, bool ignores_room,
                                  struct evaluation *ret_evaluation)
{
    whatif_begin(core);
    bookings_ignore(core, true);
    core->level_cap = 0; /* how far up it had meant to borrow isn't known any more */
    core->ignores_room = ignores_room;
    evaluate_without(core, gang, victims, ret_evaluation);
    core->ignores_room = false;
    core->level_cap = LEVEL_ANY;
    bookings_ignore(core, false);
    whatif_end(core);
    return ret_evaluation->verdict.reason;
}

static void reserve_again(struct core *core, struct gang *gang)
{
    struct evaluation evaluation;
    struct victims victims = {.count = 0};
    struct gang *victim;
    GANG_LINE_FOREACH (victim, &core->holders) {
        if (find_beneficiary(core, victim) == gang) {
            victims_append(core, &victims, victim);
        }
    }
    enum reason reason = evaluate_again(core, gang, &victims, false, &evaluation);
    bool is_settled = reason != REASON_NONE && /* or else some had not been stopped yet */
                      preempt(core, gang, &evaluation);
    if (!is_settled && reason != REASON_NONE && keeps_room(reason)) {
        reason = evaluate_again(core, gang, &victims, true, &evaluation);
    }
    if (!is_settled && reason == REASON_NONE) {
        reserve_for(core, gang, &victims, &evaluation);
    }
    gang->may_start_early = true;
    review_asked(core, &victims);
}

/* Makes room for another, or has. */
static bool may_be_victim(const struct gang *gang, const void *unused)
{
    (void)unused;
    return gang->reservation != NULL || gang->suspended != NULL || str_is_set(gang->stops_for);
}

/* In the order of the victims' uids, for those that wait; `is_all`: or only if they are unsettled.
 */
static void reserve_again_in_turn(struct core *core, bool is_all)
{
    struct gang_walk walk;
    gang_walk_begin(core, &walk, may_be_victim, NULL);
    for (struct gang *gang; (gang = gang_walk_next(core, &walk)) != NULL;) {
        struct gang *beneficiary = find_beneficiary(core, gang);
        if (beneficiary != NULL && is_waiting(beneficiary) &&
            (is_all || beneficiary->is_unsettled)) {
            beneficiary->is_unsettled = !selectors_are_known(core, beneficiary->shape);
            core->has_unsettled = core->has_unsettled || beneficiary->is_unsettled;
            quota_relink(core);
            if (!beneficiary->is_unsettled) {
                reserve_again(core, beneficiary);
            }
        }
    }
}

void preempt_restore(struct core *core)
{
    struct gang_walk walk;
    gang_walk_begin(core, &walk, may_be_victim, NULL);
    for (struct gang *gang; (gang = gang_walk_next(core, &walk)) != NULL;) {
        const struct gang *beneficiary = find_beneficiary(core, gang);
        if (beneficiary != NULL && (gang->state == GANG_SUSPENDING || is_waiting(beneficiary))) {
            stopping_begin(core, gang, beneficiary);
        }
    }
    reserve_again_in_turn(core, true);
}

void preempt_unsettle(struct core *core, struct gang *gang)
{
    gang->is_unsettled = true;
    core->has_unsettled = true;
}

void preempt_settle(struct core *core)
{
    if (!core->has_unsettled) {
        return;
    }
    core->has_unsettled = false;
    struct gang *gang = gang_line_first(&core->holders);
    while (gang != NULL) {
        struct gang *next = gang_line_next(&core->holders, gang);
        if (gang->is_unsettled && gang->state == GANG_RESERVED && gang->room->check == NULL) {
            release_reserved(core, gang, "PreemptionEnded");
            gang_review(core, gang);
            next = gang_line_first(&core->holders);
        }
        gang = next;
    }
    reserve_again_in_turn(core, false);
    uint32_t at = 0;
    while (!core->has_unsettled && (gang = table_next(&core->gangs, &at)) != NULL) {
        gang->is_unsettled = false;
    }
}

static bool is_asked(const struct gang *gang, const void *unused)
{
    (void)unused;
    return gang->run->request_ms != 0;
}

void preempt_withdraw_requests(struct core *core)
{
    struct gang_walk walk;
    gang_walk_begin(core, &walk, is_asked, NULL);
    for (struct gang *gang; (gang = gang_walk_next(core, &walk)) != NULL;) {
        if (is_asked(gang, NULL) && !str_is_set(gang->stops_for)) {
            gang_review(core, gang);
        }
    }
}
