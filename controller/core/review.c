/* review.c - looks at a gang's Job, its pods and the time, and does what follows.
 *
 * Called after anything about the gang has changed; doing it twice does nothing more. Nothing is
 * decided about a Job while a write of ours to it isn't settled: sent and unanswered, or answered
 * and not yet shown by the watch. */
#include "check.h"
#include "gate.h"
#include "incident.h"
#include "readiness.h"
#include "record_check.h"
#include "selectors.h"
#include "stopping.h"

#include <assert.h>

/* -- after a restart -------------------------------------------------------------------------- */

static void add_charge(const struct core *core, struct charge_list *list,
                       const struct record_pod_set *record, struct str asked, int64_t amount)
{
    struct str flavor = string_map_find(&record->flavors, asked);
    struct str account = account_of(core, asked);
    if (str_is_set(flavor) && amount > 0) {
        list->items[list->count++] =
            (struct charge){.flavor = flavor,
                            .resource = account,
                            .asked = str_eq(account, asked) ? STR_NONE : asked,
                            .amount = amount};
    }
}

/* What the record says that one pod of the set was charged. */
static void charges_of_record(const struct core *core, const struct record_pod_set *record,
                              struct charge_list *list)
{
    for (uint32_t i = 0; i < record->requests.count; i++) {
        struct str name = record->requests.items[i].name;
        add_charge(core, list, record, name,
                   resource_amount_from_quantity(name, record->requests.items[i].value, true));
    }
}

/* A record without amounts: they are what the template asks. */
static void charges_of_set(const struct core *core, const struct record_pod_set *record,
                           const struct pod_set *set, struct charge_list *list)
{
    for (uint32_t i = 0; i < set->per_pod.count; i++) {
        add_charge(core, list, record, set->per_pod.items[i].resource,
                   i128_clamp(set->per_pod.items[i].value));
    }
    for (uint32_t i = 0; i < set->device_count; i++) {
        add_charge(core, list, record, demand_asked(&set->devices[i]), set->devices[i].charged);
    }
    add_charge(core, list, record, STR(RESOURCE_PODS), 1);
}

static void adopt_claim(struct core *core, const struct record_pod_set *record,
                        const struct shared_claim_demand *claim, struct reserve_request *request,
                        struct claim_charge *claims)
{
    for (uint32_t i = 0; i < request->claim_count; i++) {
        if (str_eq(claims[i].key, claim->claim->key)) {
            return; /* the set in front is charged for it */
        }
    }
    struct claim_charge *charge = &claims[request->claim_count++];
    charge->key = claim->claim->key;
    charge->charges.items = ARENA_ARRAY(&core->scratch, struct charge, claim->request_count + 1);
    for (uint32_t i = 0; i < claim->request_count; i++) {
        add_charge(core, &charge->charges, record, claim->requests[i].profile->class_name,
                   claim->requests[i].charged);
    }
}

static void adopt_claims(struct core *core, const struct shape *shape,
                         const struct admission_record *from, struct reserve_request *request)
{
    uint32_t room = 0;
    for (uint32_t s = 0; s < shape->set_count; s++) {
        room += shape->sets[s].claim_count;
    }
    struct claim_charge *claims = ARENA_ARRAY(&core->scratch, struct claim_charge, room + 1);
    for (uint32_t s = 0; s < shape->set_count; s++) {
        const struct record_pod_set *record = record_set(from, shape->sets[s].name);
        for (uint32_t c = 0; record != NULL && c < shape->sets[s].claim_count; c++) {
            adopt_claim(core, record, &shape->sets[s].claims[c], request, claims);
        }
    }
    request->claims = claims;
}

static void adopt_set(struct core *core, const struct gang *gang,
                      const struct record_pod_set *record, struct reserved_set *reserved)
{
    const struct pod_set *set = pod_set_find(gang->shape, record->name);
    uint32_t room = record->requests.count + 2;
    room += set == NULL ? 0 : set->per_pod.count + set->device_count;
    reserved->name = record->name;
    reserved->count = record->count.value;
    reserved->per_pod.items = ARENA_ARRAY(&core->scratch, struct charge, room);
    if (record->requests.count > 0) {
        charges_of_record(core, record, &reserved->per_pod);
    } else if (set != NULL) {
        charges_of_set(core, record, set, &reserved->per_pod);
    }
}

/* Something is charged by the shape, which the record doesn't say. */
static bool is_charged_by_shape(const struct shape *shape, const struct admission_record *record)
{
    bool is_charged = false;
    for (uint32_t s = 0; s < record->pod_sets.count; s++) {
        is_charged = is_charged || record->pod_sets.items[s].requests.count == 0;
    }
    for (uint32_t s = 0; s < shape->set_count; s++) {
        is_charged = is_charged || shape->sets[s].claim_count > 0;
    }
    return is_charged;
}

void gang_adopt(struct core *core, struct gang *gang, const struct admission_record *record)
{
    shape_resolve(core, gang->shape);
    if (is_charged_by_shape(gang->shape, record)) {
        shape_settle(core, gang->shape);
    }
    struct reserve_request request = {.queue = queue_get(core, record->queue),
                                      .set_count = record->pod_sets.count,
                                      .turn = {true, record->turn.value}};
    request.sets = ARENA_ARRAY(&core->scratch, struct reserved_set, request.set_count);
    for (uint32_t s = 0; s < request.set_count; s++) {
        adopt_set(core, gang, &record->pod_sets.items[s], &request.sets[s]);
    }
    adopt_claims(core, gang->shape, record, &request);
    gang->admitted_ms = record->at.ms;
    gang->is_start_unseen = false;
    ledger_reserve(core, gang, &request);
}

/* -- running ---------------------------------------------------------------------------------- */

/* What is given back for good: the room of pods that have succeeded, or that the object doesn't ask
 * for any more, set by set. A pod that still runs is still charged. */
static void review_resize(struct core *core, struct gang *gang)
{
    bool is_changed = false;
    for (uint32_t s = 0; s < gang->set_count; s++) {
        const struct gang_set *set = &gang->sets[s];
        struct reserved_set *reserved = reservation_set(gang->reservation, set->name);
        int64_t live = (int64_t)set->live_pods;
        int64_t kept = set->size.pods > live ? set->size.pods : live;
        if (reserved != NULL && kept < reserved->count) {
            ledger_resize(core, gang, reserved, kept);
            is_changed = true;
        }
    }
    if (is_changed) {
        gang_mark_unbound(core, gang);
        gang_show(core, gang);
    }
}

/* The set that asks for more than was admitted, or NULL; what is given back isn't taken again. */
static const struct gang_set *grown_set(const struct gang *gang, int64_t *ret_admitted)
{
    for (uint32_t s = 0; s < gang->set_count; s++) {
        const struct reserved_set *reserved =
            reservation_set(gang->reservation, gang->sets[s].name);
        *ret_admitted = reserved == NULL ? 0 : reserved->count;
        if (gang->sets[s].size.pods > *ret_admitted) {
            return &gang->sets[s];
        }
    }
    return NULL;
}

static bool review_growth(struct core *core, struct gang *gang)
{
    int64_t admitted = 0;
    const struct gang_set *grown = grown_set(gang, &admitted);
    if (grown == NULL) {
        return false;
    }
    struct str which = gang->set_count > 1 ? arena_format(&core->scratch, " in pod set " STR_FMT,
                                                          STR_ARG(grown->name))
                                           : STR("");
    struct str why =
        arena_format(&core->scratch,
                     "spec.parallelism now asks for %lld pods" STR_FMT " and %lld were admitted; "
                     "the gang starts again when there is room for all",
                     (long long)grown->size.pods, STR_ARG(which), (long long)admitted);
    patch_suspend(core, gang, "Resized", why);
    return true;
}

/* A victim that was asked for a checkpoint, or whose suspension didn't come about (somebody changed
 * the Job first): while the gang that it makes room for still wants that. */
static bool review_victim(struct core *core, struct gang *gang)
{
    if (!str_is_set(gang->stops_for)) {
        return checkpoint_withdraw(core, gang);
    }
    const struct gang *beneficiary = gang_find(core, gang->stops_for);
    if (beneficiary == NULL || beneficiary->state != GANG_RESERVED ||
        beneficiary->room->check != NULL) {
        stopping_end(core, gang);
        return checkpoint_withdraw(core, gang);
    }
    checkpoint_go_on(core, gang, beneficiary);
    return true;
}

/* Unsuspended so that it can end: it starts nothing. */
static bool is_let_go(const struct gang *gang)
{
    return gang_is_over(gang) && gang->reservation == NULL && gang->live_pods == 0 &&
           gang->run->active == 0;
}

/* It runs without an admission of ours. */
static void review_unadmitted(struct core *core, struct gang *gang)
{
    if (is_let_go(gang)) {
        gang_set_state(core, gang, GANG_PENDING, NULL);
        gang_show(core, gang);
        return;
    }
    gang_set_state(core, gang, GANG_SUSPENDING, "NotAdmitted");
    if (core->now_ms < gang->run->write_retry_ms) {
        gang_set_timer(core, gang, gang->run->write_retry_ms);
        return;
    }
    patch_suspend(
        core, gang, "NotAdmitted",
        gang->is_record_refused
            ? STR("its annotation tallyman.dev/admission isn't one that Tallyman wrote: it "
                  "can't be read, is of a time to come, charges more or less than the template "
                  "asks, or charges a flavor that isn't there; it waits its turn, suspended")
            : STR("only Tallyman may start a Job that names a queue; it waits its turn, "
                  "suspended"));
}

static void review_running(struct core *core, struct gang *gang)
{
    gang_dequeue(core, gang);
    record_refuse_if_thin(core, gang);
    if (!record_is_in_force(gang)) {
        review_unadmitted(core, gang);
        return;
    }
    if (gang->reservation == NULL) {
        gang_adopt(core, gang, gang->record);
    }
    if (gang->state != GANG_RUNNING) {
        gang_set_state(core, gang, GANG_ADMITTED, NULL);
        if (gang->was_running) { /* before a restart: it has its time to recover */
            gang_set_state(core, gang, GANG_RUNNING, NULL);
        }
    }
    gang->was_running = false;
    gang_mark_unbound(core, gang);
    if (core->now_ms < gang->run->write_retry_ms) {
        gang_set_timer(core, gang, gang->run->write_retry_ms);
        return;
    }
    if (review_victim(core, gang) || incident_or_order_stops(core, gang)) {
        return;
    }
    review_resize(core, gang);
    if (!review_growth(core, gang)) {
        readiness_review(core, gang);
    }
}

/* -- suspended -------------------------------------------------------------------------------- */

static bool has_stopped(const struct gang *gang)
{
    /* The Job counts as terminating what dies on a dead node, too. */
    return gang->live_pods == 0 && gang->run->active == 0 &&
           gang->run->terminating <= (int64_t)gang->run->lost_pods && gang->has_suspended_condition;
}

static void review_stopping(struct core *core, struct gang *gang)
{
    gang_dequeue(core, gang);
    if (gang->reservation == NULL && gang->state != GANG_SUSPENDING && !has_stopped(gang)) {
        gang_adopt(core, gang, gang->record);
    }
    gang_set_state(core, gang, GANG_SUSPENDING,
                   gang->suspended != NULL ? "Suspended" : "SuspendedByUser");
    gang_mark_unbound(core, gang);
    if (!has_stopped(gang)) {
        return;
    }
    ledger_release(core, gang);
    stopping_end(core, gang);
    if (core->now_ms < gang->run->write_retry_ms) {
        gang_set_timer(core, gang, gang->run->write_retry_ms);
        return;
    }
    patch_restore(core, gang, gang->suspended == NULL || gang_is_over_limit(gang));
}

/* Its victims are stopping, or it is checked: it keeps what is reserved for it while it still wants
 * the same. */
static bool keeps_reserved(struct core *core, struct gang *gang)
{
    if (gang->state != GANG_RESERVED) {
        return false;
    }
    bool is_open =
        stop_find(core, &core->scratch, gang->queue, gang->namespace_name).stop == STOP_NONE &&
        !str_is_set(gate_class_refusal(&core->scratch, gang));
    bool wants_it = is_open && gang->has_label && !gang->is_hold_wanted && !gang->is_job_deleting &&
                    !str_is_set(gang->trouble->invalid);
    if (gang->room->check == NULL) {
        return preempt_review(core, gang, wants_it);
    }
    if (wants_it && gang->shape == gang->room->reserved_shape) {
        return check_review(core, gang);
    }
    check_let_go(core, gang, "Withdrawn");
    return false;
}

static void line_up(struct core *core, struct gang *gang)
{
    GANG_PUT_TEXT(gang, trouble, refusal, STR_NONE);
    bool is_due = gang->look_again_ms != 0 && gang->look_again_ms <= core->now_ms;
    gang->look_again_ms = is_due ? 0 : gang->look_again_ms;
    gang_set_timer(core, gang, gang->look_again_ms);
    gang_enqueue(core, gang);
    if (is_due) {
        wake_shape(core, gang->shape); /* a gang that it could stop isn't protected any more */
    }
}

/* The Job controller can't end a Job that has no status.startTime, which each suspension takes
 * away: the API server refuses that. One that isn't suspended gets its startTime, and ends. */
static bool lets_end(struct core *core, struct gang *gang)
{
    bool can_end = gang->run->terminating == 0 && !gang->is_job_deleting;
    if (!gang_is_over(gang) || gang->has_started || !can_end) {
        return false;
    }
    gang_dequeue(core, gang);
    gang_show(core, gang);
    if (core->now_ms < gang->run->write_retry_ms) {
        gang_set_timer(core, gang, gang->run->write_retry_ms);
    } else {
        patch_finish(core, gang);
    }
    return true;
}

/* Stopped, and not held. */
static void review_open(struct core *core, struct gang *gang)
{
    gang_set_state(core, gang, GANG_PENDING, NULL);
    if (lets_end(core, gang) || check_has_given_up(core, gang)) {
        return;
    }
    bool backs_off = gang->trouble->memory.requeue_at_ms > core->now_ms;
    /* All completions are in, or it is being deleted: the Job is about to end. */
    bool is_idle = gang->size.pods == 0 || gang->is_ending || gang->is_job_deleting;
    if (gate_bars(core, gang) || backs_off || is_idle) {
        gang_dequeue(core, gang);
        gang_set_timer(core, gang, backs_off ? gang->trouble->memory.requeue_at_ms : 0);
        gang_show(core, gang);
        return;
    }
    line_up(core, gang);
}

static void review_waiting(struct core *core, struct gang *gang)
{
    if (keeps_reserved(core, gang)) {
        return;
    }
    if (gang->reservation != NULL) {
        ledger_release(core, gang); /* our admission never came about */
    }
    if (!has_stopped(gang)) {
        gang->is_start_unseen = gang->suspended == NULL;
        gang_dequeue(core, gang);
        gang_set_state(core, gang, GANG_SUSPENDING, "NotAdmitted");
        return;
    }
    if (gang->is_hold_wanted) {
        gang_dequeue(core, gang);
        gang_set_timer(core, gang, 0);
        if (gang->state != GANG_HELD) {
            gang_set_state(core, gang, GANG_PENDING, NULL);
            gang_set_state(core, gang, GANG_HELD, NULL);
        }
        requests_tidy(core, gang);
        return;
    }
    review_open(core, gang);
}

static void review_finished(struct core *core, struct gang *gang)
{
    bool is_found_so = gang->reservation == NULL && gang->state != GANG_FINISHED;
    if (is_found_so && gang->record != NULL && gang->live_pods > 0 && gang->shape != NULL) {
        gang_adopt(core, gang, gang->record); /* after a restart: its pods are still there */
    }
    gang_dequeue(core, gang);
    gang_set_timer(core, gang, 0);
    if (gang->live_pods == 0) {
        ledger_release(core, gang);
        gang_set_state(core, gang, GANG_FINISHED, NULL);
    }
}

static void review_gone(struct core *core, struct gang *gang)
{
    if (gang->live_pods > 0 && gang->reservation != NULL) {
        gang_set_state(core, gang, GANG_SUSPENDING, "Deleted");
        return;
    }
    gang_free(core, gang);
}

/* Once in a Job's life: where there is an Admission, it was told before a restart. */
static void tell_pruned_field(struct core *core, struct gang *gang)
{
    bool is_news = gang->is_size_pruned && !gang->has_told_pruned && !gang->is_admission_seen &&
                   !gang->is_job_gone && !gang->is_job_finished;
    if (!is_news) {
        return;
    }
    gang->has_told_pruned = true;
    bool is_copy = gang->size.source == GANG_SIZE_ANNOTATION;
    note_event(core, gang, true, "SchedulingFieldDropped", "ReadGangSize",
               arena_format(&core->scratch,
                            "the API server dropped spec.scheduling, because its feature gate "
                            "WorkloadWithJob is off; the gang size %lld is taken from %s. "
                            "Set annotation tallyman.dev/min-count yourself to be independent of "
                            "the gate",
                            (long long)gang->size.min_count,
                            is_copy ? "the copy that policy tallyman-min-count made"
                                    : "kubectl's last-applied-configuration annotation"));
}

/* It names no queue any more, and nothing of it is left to be looked after. */
static bool is_released(const struct gang *gang)
{
    if (gang->has_label || gang->record != NULL) {
        return false;
    }
    bool is_stopping = gang->state == GANG_SUSPENDING || gang->reservation != NULL;
    return !is_stopping || (gang->is_suspended && has_stopped(gang));
}

static void review_job(struct core *core, struct gang *gang)
{
    if (gang->is_job_finished) {
        review_finished(core, gang);
    } else if (is_released(gang)) {
        gang_free(core, gang); /* no longer ours */
    } else if (gang->is_job_deleting && gang->live_pods == 0 && gang->state != GANG_RESERVED) {
        stopping_is_deleted(core, gang);
    } else if (!gang->is_suspended) {
        review_running(core, gang);
    } else if (gang->record != NULL) {
        review_stopping(core, gang);
    } else {
        review_waiting(core, gang);
    }
}

void gang_review(struct core *core, struct gang *gang)
{
    if (!core->is_ready) {
        return;
    }
    tell_pruned_field(core, gang);
    if (gang->is_job_gone) {
        review_gone(core, gang);
        return;
    }
    if (gang_is_busy(gang) && !conflict_is_over(core, gang)) {
        return;
    }
    GANG_PUT(gang, run, conflict_until_ms, 0);
    GANG_PUT(gang, run, conflict_waits, 0);
    /* Somebody would have stopped it, but it hadn't started, or our write was on its way:
     * preempt_wake(). */
    if (gang->wakes_preemptors && gang->state != GANG_RESERVED) {
        core->has_freed = true;
        gang->wakes_preemptors = false;
    }
    core->has_let_go = core->has_let_go || gang->wakes_promised;
    gang->wakes_promised = false;
    review_job(core, gang);
}
