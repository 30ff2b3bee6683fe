/* check_admit.c - the gangs whose check has passed are admitted as they were reserved; and a
 * restart reserves again what was reserved before it. */
#include "check.h"
#include "gang_walk.h"
#include "selectors.h"

/* -- admission --------------------------------------------------------------------------------- */

static bool is_same_charge(const struct charge *a, const struct charge *b)
{
    return a->amount == b->amount && str_eq(a->resource, b->resource) &&
           str_eq(a->flavor, b->flavor);
}

/* The same charges on as many pods or more, which are cut down to as many. */
static bool set_holds(const struct reserved_set *held, struct reserved_set *now)
{
    if (held == NULL || now->count < held->count || held->per_pod.count != now->per_pod.count) {
        return false;
    }
    for (uint32_t i = 0; i < held->per_pod.count; i++) {
        if (!is_same_charge(&held->per_pod.items[i], &now->per_pod.items[i])) {
            return false;
        }
    }
    now->count = held->count;
    return true;
}

/* Room was asked for on those flavors, for so many pods: it is admitted so or not at all. */
static bool is_as_reserved(const struct gang *gang, struct evaluation *evaluation)
{
    for (uint32_t s = 0; s < evaluation->reserve.set_count; s++) {
        struct reserved_set *now = &evaluation->reserve.sets[s];
        if (!set_holds(reservation_set(gang->reservation, now->name), now)) {
            return false;
        }
    }
    return true;
}

static bool find_as_reserved(struct core *core, struct gang *gang, struct evaluation *evaluation)
{
    uint32_t count = evaluate_combination_count(core, gang->shape);
    for (uint32_t combination = 0; combination < count; combination++) {
        evaluate_combination(core, gang->shape, combination, evaluation);
        if (evaluation->verdict.reason == REASON_NONE && is_as_reserved(gang, evaluation)) {
            return true;
        }
    }
    return false;
}

static void finish(struct core *core, struct gang *gang)
{
    struct evaluation evaluation;
    arena_reset(&core->scratch);
    whatif_begin(core);
    whatif_take_out(core, gang);
    bookings_ignore(core, true); /* the quota is its own */
    bool is_found = find_as_reserved(core, gang, &evaluation);
    bookings_ignore(core, false);
    whatif_put_back(core, gang);
    whatif_end(core);
    if (!is_found) {
        check_let_go(core, gang, "CheckChanged");
        gang_review(core, gang);
        return;
    }
    ledger_release(core, gang);
    GANG_PUT(gang, room, reserved_shape, NULL);
    GANG_PUT(gang, room, used_before, gang->room->used_attempt);
    GANG_PUT(gang, room, used_attempt, gang->room->check->attempt);
    patch_admit(core, gang, &evaluation);
    check_drop(gang);
}

void checks_finish_ready(struct core *core)
{
    if (!core->has_passed_check) {
        return;
    }
    core->has_passed_check = false;
    struct gang *gang = gang_line_first(&core->holders);
    while (gang != NULL) {
        struct gang *next = gang_line_next(&core->holders, gang);
        bool is_passed =
            gang->room->check != NULL && gang->room->check->is_passed && !gang_is_busy(gang);
        if (is_passed && !selectors_are_known(core, gang->shape)) {
            selectors_miss_check(core);
        } else if (is_passed) {
            finish(core, gang);
            next = gang_line_first(&core->holders);
        }
        gang = next;
    }
}

/* -- after a restart ----------------------------------------------------------------------------
 */

/* The record's sets without what they say that a pod asks: that is for the template to say. NULL:
 * they aren't the gang's. */
static struct record_pod_set *sets_of_record(struct core *core, const struct gang *gang,
                                             const struct request_record *record)
{
    const struct shape *shape = gang->shape;
    if (record->pod_sets.count != shape->set_count) {
        return NULL;
    }
    struct record_pod_set *sets =
        ARENA_ARRAY(&core->scratch, struct record_pod_set, shape->set_count);
    for (uint32_t s = 0; s < shape->set_count; s++) {
        const struct record_pod_set *kept = &record->pod_sets.items[s];
        bool is_whole = str_eq(kept->name, shape->sets[s].name) && kept->count.is_set &&
                        kept->count.value >= 1 && kept->count.value <= shape->sets[s].size.pods;
        if (!is_whole) {
            return NULL;
        }
        sets[s] = (struct record_pod_set){
            .name = kept->name, .count = kept->count, .flavors = kept->flavors};
    }
    return sets;
}

/* What was held is held again, whatever the quota is now: as if nothing had happened. */
static bool restore_one(struct core *core, struct gang *gang, const struct request_state *request)
{
    arena_reset(&core->scratch);
    shape_resolve(core, gang->shape);
    const struct request_record *kept = request_record(core, request);
    if (kept == NULL || !check_is_asked(gang->shape) ||
        check_obstacle(core, gang->queue, &core->scratch).reason != REASON_NONE ||
        !str_eq(kept->queue, gang->queue->name) ||
        !str_eq(kept->asks, check_asks(core, gang->shape))) {
        return false;
    }
    struct record_pod_set *sets = sets_of_record(core, gang, kept);
    if (sets == NULL) {
        return false;
    }
    struct admission_record record = {.queue = kept->queue,
                                      .at = {true, request_made_ms(core, request)},
                                      .pod_sets = {.items = sets, .count = gang->shape->set_count}};
    check_resume(core, gang, request, &record);
    return true;
}

static bool has_requests(const struct gang *gang, const void *unused)
{
    (void)unused;
    return gang->room->requests != NULL;
}

void checks_restore(struct core *core)
{
    struct gang_walk walk;
    gang_walk_begin(core, &walk, has_requests, NULL);
    for (struct gang *gang; (gang = gang_walk_next(core, &walk)) != NULL;) {
        const struct request_state *request =
            gang->room->requests == NULL ? NULL : gang->room->requests->first;
        bool is_open = request != NULL && request->attempt > gang->room->used_attempt &&
                       !request->is_let_go && !request_is_over(request);
        bool is_waiting = gang->state == GANG_PENDING && gang->is_in_queue;
        if (is_open && !(is_waiting && restore_one(core, gang, request))) {
            check_forget(core, gang); /* it is held, or runs, or asks for something else now */
        }
    }
}
