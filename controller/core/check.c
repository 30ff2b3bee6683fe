/* check.c - a gang that has its quota waits until an autoscaler has made room for it.
 *
 *   Pending --has quota: a ProvisioningRequest is made--> Reserved --Provisioned--> Admitted
 *                                                            |
 *                                                            '--failed, expired, out of time,
 *                                                               withdrawn--> Pending
 *
 * While it is Reserved its quota is held, and no place on a node: there may be none yet. The
 * request itself says how far it is, so that a restart takes it up where it was; which one an
 * admission has used stands on the Job, written by the PATCH that admits. */
#include "check.h"
#include "gate.h"
#include "selectors.h"

#include <assert.h>
#include <inttypes.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"
#include "tallyman/base/time_text.h"

/* -- what is asked ----------------------------------------------------------------------------- */

/* check_obstacle() has seen to it that it is there. */
static const struct queue_provisioning *provisioning_of(const struct shape *shape)
{
    const struct queue *object = shape->queue->object;
    assert(object != NULL && object->spec.provisioning != NULL);
    return object->spec.provisioning;
}

static bool has_name(const struct str_list *names, struct str name)
{
    for (uint32_t i = 0; i < names->count; i++) {
        if (str_eq(names->items[i], name)) {
            return true;
        }
    }
    return false;
}

static bool set_asks_any(const struct pod_set *set, const struct str_list *names)
{
    for (uint32_t i = 0; i < set->per_pod.count; i++) {
        if (set->per_pod.items[i].value > 0 && has_name(names, set->per_pod.items[i].resource)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < set->device_count; i++) {
        if (has_name(names, set->devices[i].profile->class_name)) {
            return true;
        }
    }
    for (uint32_t c = 0; c < set->claim_count; c++) {
        for (uint32_t i = 0; i < set->claims[c].request_count; i++) {
            if (has_name(names, set->claims[c].requests[i].profile->class_name)) {
                return true;
            }
        }
    }
    return false;
}

bool check_is_asked(const struct shape *shape)
{
    const struct queue *object = shape->queue->object;
    if (object == NULL || object->spec.admission_checks.count == 0) {
        return false;
    }
    const struct queue_provisioning *spec = object->spec.provisioning;
    bool is_known = shape->is_resolved && shape->broken.reason == REASON_NONE;
    if (spec == NULL || spec->managed_resources.count == 0 || !is_known) {
        return true;
    }
    for (uint32_t s = 0; s < shape->set_count; s++) {
        if (set_asks_any(&shape->sets[s], &spec->managed_resources)) {
            return true;
        }
    }
    return false;
}

static void add_map(struct text *text, const struct string_map *map)
{
    for (uint32_t i = 0; i < map->count; i++) {
        text_addf(text, "\n" STR_FMT "=" STR_FMT, STR_ARG(map->items[i].key),
                  STR_ARG(map->items[i].value));
    }
}

/* Stands for all that the request rests on: with another it is another request. */
struct str check_asks(struct core *core, const struct shape *shape)
{
    const struct queue_provisioning *spec = provisioning_of(shape);
    struct text text;
    text_init(&text, &core->scratch, 2 * DECODE_OBJECT_MAX_BYTES);
    text_addf(&text, STR_FMT "\n" STR_FMT, STR_ARG(shape->key), STR_ARG(spec->class_name));
    add_map(&text, &spec->parameters);
    add_map(&text, &spec->node_selector);
    return arena_format(&core->scratch, "%016" PRIx64, str_hash(text_str(&text), 1));
}

/* -- there and back ---------------------------------------------------------------------------- */

void check_drop(struct gang *gang)
{
    if (gang->room->check != NULL) {
        str_drop(&gang->room->check->record);
        str_drop(&gang->room->check->asks);
        mem_free(gang->room->check);
        GANG_PUT(gang, room, check, NULL);
    }
}

static void give_back(struct core *core, struct gang *gang, const char *cause)
{
    check_drop(gang);
    gang_set_timer(core, gang, 0);
    ledger_release(core, gang);
    GANG_PUT(gang, room, reserved_shape, NULL);
    gang_set_state(core, gang, GANG_PENDING, cause);
    gang_mark_unbound(core, gang);
}

void check_let_go(struct core *core, struct gang *gang, const char *cause)
{
    GANG_PUT(gang, room, dropped_attempt, gang->room->check->attempt);
    give_back(core, gang, cause);
    requests_tidy(core, gang);
}

/* It counts against the gang, which is tried again later. */
static void check_fail(struct core *core, struct gang *gang, struct str why)
{
    gang_back_off(core, gang);
    gang_remember(core, gang);
    note_event(core, gang, true, "ProvisioningFailed", "Provision", why);
    check_let_go(core, gang, "CheckFailed");
    GANG_PUT_TEXT(gang, trouble, refusal, why);
    gang->has_failed_check = true;
}

static int64_t latest_attempt(const struct gang *gang)
{
    int64_t latest = gang->room->requests == NULL ? 0 : gang->room->requests->first->attempt;
    latest = gang->room->dropped_attempt > latest ? gang->room->dropped_attempt : latest;
    return gang->room->used_attempt > latest ? gang->room->used_attempt : latest;
}

/* One that is there already and asks for the same, so that nobody is asked twice: a restart came in
 * between, or the PATCH that would have used it failed. */
struct request_state *check_find_usable(struct core *core, const struct gang *gang,
                                        struct evaluation *evaluation)
{
    struct request_state *request =
        gang->room->requests == NULL ? NULL : gang->room->requests->first;
    if (request == NULL || request->is_let_go || request->attempt <= gang->room->dropped_attempt ||
        request->attempt <= gang->room->used_attempt || request_is_over(request)) {
        return NULL;
    }
    const struct request_record *record = request_record(core, request);
    bool is_usable = record != NULL && str_eq(record->queue, gang->queue->name) &&
                     str_eq(record->asks, check_asks(core, gang->shape)) &&
                     record_fits(core, gang, record, evaluation);
    return is_usable ? request : NULL;
}

static void make_request(struct core *core, struct gang *gang)
{
    struct arena *arena = core->out->arena;
    struct effect *effect = effect_new(core, EFFECT_MAKE_REQUEST);
    effect->id = ++core->next_effect_id;
    effect->object_kind = KIND_PROVISIONING_REQUEST;
    effect->namespace_name = arena_copy_str(arena, gang->namespace_name);
    effect->name = request_name(arena, gang->name, gang->uid, gang->room->check->attempt);
    effect->uid = arena_copy_str(arena, gang->uid);
    gang->room->check->effect_id = effect->id;
    note_event(core, gang, false, "ProvisioningRequested", "Provision",
               arena_format(&core->scratch,
                            "its quota is held, and room for its pods is asked for by "
                            "ProvisioningRequest " STR_FMT " of class " STR_FMT,
                            STR_ARG(effect->name),
                            STR_ARG(provisioning_of(gang->shape)->class_name)));
}

/* Its quota is held from here on. Whatever else it has asked for isn't needed. */
static void enter(struct core *core, struct gang *gang, const struct request_state *request,
                  struct str asks, struct str record)
{
    struct check *check = MEM_NEW(struct check);
    GANG_PUT(gang, room, check, check);
    check->attempt = request != NULL ? request->attempt : latest_attempt(gang) + 1;
    check->asks = str_own(asks);
    check->record = str_own(record);
    check->since_ms = request != NULL ? request_made_ms(core, request) : core->now_ms;
    GANG_PUT(gang, room, dropped_attempt, check->attempt - 1);
    GANG_PUT(gang, room, reserved_shape, gang->shape);
    gang_set_state(core, gang, GANG_RESERVED, "WaitsForCheck");
    gang_mark_unbound(core, gang);
    if (request == NULL) {
        make_request(core, gang);
    }
    requests_tidy(core, gang);
    gang_review(core, gang);
}

void check_begin(struct core *core, struct gang *gang, struct evaluation *evaluation)
{
    gang_dequeue(core, gang);
    struct str asks = check_asks(core, gang->shape);
    const struct request_state *request = check_find_usable(core, gang, evaluation);
    struct str record = record_reservation(core, gang, evaluation, asks);
    gang->admitted_ms = core->now_ms;
    ledger_reserve(core, gang, &evaluation->reserve);
    enter(core, gang, request, asks, record);
}

void check_resume(struct core *core, struct gang *gang, const struct request_state *request,
                  const struct admission_record *record)
{
    gang_dequeue(core, gang);
    struct str asks = check_asks(core, gang->shape);
    gang_adopt(core, gang, record);
    enter(core, gang, request, asks,
          string_map_get(&request->object->meta.annotations, ANNOTATION_RESERVATION));
}

void check_or_admit(struct core *core, struct gang *gang, struct evaluation *evaluation)
{
    if (check_is_asked(gang->shape)) {
        check_begin(core, gang, evaluation);
    } else {
        patch_admit(core, gang, evaluation);
    }
}

/* -- waiting ----------------------------------------------------------------------------------- */

/* Waits on, until its time is up. */
static bool check_wait(struct core *core, struct gang *gang)
{
    struct check *check = gang->room->check;
    int64_t timeout_ms = check_timeout_ms(gang->reservation->queue);
    int64_t due_ms = timeout_ms == 0 ? 0 : sat_add(check->since_ms, timeout_ms);
    if (due_ms != 0 && core->now_ms >= due_ms) {
        char buffer[TIME_TEXT_BYTES];
        struct str name = request_name(&core->scratch, gang->name, gang->uid, check->attempt);
        check_fail(core, gang,
                   arena_format(&core->scratch,
                                "ProvisioningRequest " STR_FMT " was not provisioned in " STR_FMT
                                " (spec.provisioning.timeout of queue " STR_FMT ")",
                                STR_ARG(name), STR_ARG(duration_format_short(timeout_ms, buffer)),
                                STR_ARG(gang->reservation->queue->name)));
        return false;
    }
    gang_set_timer(core, gang, due_ms);
    return true;
}

bool check_review(struct core *core, struct gang *gang)
{
    struct check *check = gang->room->check;
    shape_settle(core, gang->shape);
    if (!check_is_asked(gang->shape)) {
        check_let_go(core, gang, "CheckChanged");
        return false;
    }
    struct verdict obstacle = check_obstacle(core, gang->queue, &core->scratch);
    if (obstacle.reason != REASON_NONE || !str_eq(check->asks, check_asks(core, gang->shape))) {
        check_let_go(core, gang, "CheckChanged");
        return false;
    }
    check->is_passed = false;
    struct request_state *request = request_find(gang, check->attempt);
    if (request == NULL) {
        return check_wait(core, gang);
    }
    const struct condition *because;
    enum request_says says = request_says(request, &because);
    bool has_details = !str_is_set(check_missing_detail(gang->reservation->queue, request));
    if (says == REQUEST_PROVISIONED && has_details) {
        check->is_passed = true;
        core->has_passed_check = true;
        gang_set_timer(core, gang, 0);
        return true;
    }
    if (request_is_over(request)) {
        note_event(core, gang, true, "ProvisioningFailed", "Provision",
                   check_failure(&core->scratch, request));
        give_back(core, gang, "CheckFailed"); /* its failure is counted where it waits */
        return false;
    }
    return check_wait(core, gang);
}

void check_request_changed(struct core *core, struct gang *gang)
{
    struct check *check = gang->room->check;
    struct request_state *request = check == NULL ? NULL : request_find(gang, check->attempt);
    if (request != NULL) {
        check->since_ms = request_made_ms(core, request);
    }
    requests_tidy(core, gang);
    if (gang->state == GANG_RESERVED) {
        gang_show(core, gang);
    }
    gang_review(core, gang);
}

void check_request_gone(struct core *core, struct gang *gang, int64_t attempt)
{
    if (gang->room->check == NULL || gang->room->check->attempt != attempt) {
        return;
    }
    struct str name = request_name(&core->scratch, gang->name, gang->uid, attempt);
    check_fail(core, gang,
               arena_format(&core->scratch,
                            "ProvisioningRequest " STR_FMT " was deleted before it was provisioned",
                            STR_ARG(name)));
    gang_review(core, gang);
}

void check_write_done(struct core *core, struct gang *gang, const struct effect_done *done)
{
    gang->room->check->effect_id = 0;
    if (done->outcome != EFFECT_OK) {
        struct str message = done->outcome == EFFECT_GONE
                                 ? STR("the API server doesn't know the Job, or the kind, any more")
                                 : text_quote(&core->scratch, done->message, 400);
        struct str name =
            request_name(&core->scratch, gang->name, gang->uid, gang->room->check->attempt);
        check_fail(core, gang,
                   arena_format(&core->scratch,
                                "ProvisioningRequest " STR_FMT " could not be made: " STR_FMT,
                                STR_ARG(name), STR_ARG(message)));
    }
    gang_show(core, gang);
    gang_review(core, gang);
}

/* -- failures ---------------------------------------------------------------------------------- */

/* What its latest request failed of counts against the gang, once. */
static void count_failure(struct core *core, struct gang *gang)
{
    struct request_state *request =
        gang->room->requests == NULL ? NULL : gang->room->requests->first;
    if (request == NULL || request->is_counted || request->is_let_go ||
        request->attempt <= gang->room->used_attempt || !request_is_over(request)) {
        return;
    }
    request->is_counted = true;
    const struct condition *because;
    (void)request_says(request, &because);
    bool has_time = because != NULL && because->last_transition_time.is_set &&
                    because->last_transition_time.ms < core->now_ms;
    const struct request_record *record = request_record(core, request);
    int64_t before = record != NULL && record->failures.is_set ? record->failures.value : 0;
    gang_failed_before(core, gang, before,
                       has_time ? because->last_transition_time.ms : core->now_ms);
    GANG_PUT_TEXT(gang, trouble, refusal, check_failure(&core->scratch, request));
    gang->has_failed_check = true;
}

bool check_has_given_up(struct core *core, struct gang *gang)
{
    requests_tidy(core, gang);
    count_failure(core, gang);
    bool has_failed = gang->has_failed_check;
    gang->has_failed_check = false;
    if (!has_failed || !gang_is_over_limit(gang)) {
        return false;
    }
    check_forget(core, gang);
    gang_dequeue(core, gang);
    patch_restore(core, gang, true);
    return true;
}

void check_forget(struct core *core, struct gang *gang)
{
    GANG_PUT(gang, room, dropped_attempt, latest_attempt(gang));
    requests_tidy(core, gang);
}

bool check_revoked(struct core *core, struct gang *gang)
{
    struct request_state *request = request_find(gang, gang->room->used_attempt);
    const struct condition *because;
    if (request == NULL || request_says(request, &because) != REQUEST_REVOKED) {
        return false;
    }
    if (!request->is_counted) {
        request->is_counted = true;
        gang_count_eviction(gang);
        gang_back_off(core, gang);
    }
    patch_suspend(core, gang, "CapacityRevoked",
                  arena_format(&core->scratch,
                               STR_FMT "; the gang stops whole and is tried again later",
                               STR_ARG(check_failure(&core->scratch, request))));
    return true;
}

void checks_kind_changed(struct core *core, bool is_absent)
{
    if (core->lacks_requests == is_absent) {
        return;
    }
    core->lacks_requests = is_absent;
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        if (queue->object != NULL && queue->object->spec.admission_checks.count > 0) {
            wake_queue(core, queue, WAIT_ANY);
            queue_touch(core, queue);
        }
    }
}
