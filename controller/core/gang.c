/* gang.c - the states of a gang, and the tables it stands in.
 *
 *              .--------------------- write refused ----------------------.
 *              v                                                          |
 *   Held <-> Pending --> Admitted --> Running                             |
 *              ^  |         |  '---------|----------------> Finished      |
 *              |  |         v            v                     ^          |
 *              |  '----> Suspending <----'                     |          |
 *              '-------------'---------------------------------'  <-------'
 *
 * Pending --> Reserved --> Admitted: its victims are stopping (preempt.c), or an autoscaler makes
 * room for it (check.c).
 *
 * Invariant: a gang holds a reservation exactly while it is Reserved, Admitted or Running, or while
 * it is Suspending and had one; the reservation goes with its last pod. */
#include "behind.h"
#include "check.h"
#include "fit_plan.h"
#include "gang_walk.h"
#include "pace.h"
#include "stopping.h"
#include "wait.h"

#include <assert.h>
#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

#define BIT(state) (1u << (state))

static const struct {
    const char *name;
    uint32_t next; /* BIT of each state that may follow */
} states[] = {
    /* After a restart a gang is found in whatever state it has reached. */
    [0] = {"", BIT(GANG_PENDING) | BIT(GANG_ADMITTED) | BIT(GANG_SUSPENDING) | BIT(GANG_FINISHED)},
    [GANG_PENDING] = {"Pending", BIT(GANG_HELD) | BIT(GANG_ADMITTED) | BIT(GANG_RUNNING) |
                                     BIT(GANG_SUSPENDING) | BIT(GANG_FINISHED) |
                                     BIT(GANG_RESERVED)},
    [GANG_HELD] = {"Held", BIT(GANG_PENDING) | BIT(GANG_ADMITTED) | BIT(GANG_RUNNING) |
                               BIT(GANG_SUSPENDING) | BIT(GANG_FINISHED)},
    [GANG_ADMITTED] = {"Admitted", BIT(GANG_PENDING) | BIT(GANG_RUNNING) | BIT(GANG_SUSPENDING) |
                                       BIT(GANG_FINISHED)},
    [GANG_RUNNING] = {"Running", BIT(GANG_PENDING) | BIT(GANG_ADMITTED) | BIT(GANG_SUSPENDING) |
                                     BIT(GANG_FINISHED)},
    [GANG_SUSPENDING] = {"Suspending", BIT(GANG_PENDING) | BIT(GANG_HELD) | BIT(GANG_ADMITTED) |
                                           BIT(GANG_RUNNING) | BIT(GANG_FINISHED)},
    /* The same Job can be unfinished again: etcd was restored to an earlier day. */
    [GANG_FINISHED] = {"Finished", BIT(GANG_PENDING) | BIT(GANG_ADMITTED) | BIT(GANG_SUSPENDING)},
    [GANG_RESERVED] = {"Reserved", BIT(GANG_PENDING) | BIT(GANG_HELD) | BIT(GANG_ADMITTED) |
                                       BIT(GANG_RUNNING) | BIT(GANG_SUSPENDING) |
                                       BIT(GANG_FINISHED)},
};

const char *gang_state_name(enum gang_state state)
{
    return states[state].name;
}

static void note_reserved(struct core *core, struct gang *gang, enum gang_state state)
{
    bool was_reserved = gang->state == GANG_RESERVED;
    if (was_reserved && state != GANG_RESERVED) {
        gang_list_remove(&core->reserved, gang);
    } else if (!was_reserved && state == GANG_RESERVED) {
        gang_list_add(&core->reserved, gang);
    }
}

void gang_set_state(struct core *core, struct gang *gang, enum gang_state state, const char *cause)
{
    if (gang->state == state) {
        return;
    }
    assert((states[gang->state].next & BIT(state)) != 0 && "a declared transition");
    struct effect *effect = effect_new(core, EFFECT_LEDGER);
    struct arena *arena = core->out->arena;
    effect->namespace_name = arena_copy_str(arena, gang->namespace_name);
    effect->name = arena_copy_str(arena, gang->name);
    effect->uid = arena_copy_str(arena, gang->uid);
    struct queue_state *queue = gang->reservation != NULL ? gang->reservation->queue : gang->queue;
    effect->transition = (struct gang_transition){
        .at_ms = core->now_ms,
        .from = states[gang->state].name,
        .to = states[state].name,
        .cause = str_from_c(cause),
        .queue = queue == NULL ? STR_NONE : arena_copy_str(arena, queue->name),
        .pods = gang->reservation != NULL ? reservation_count(gang->reservation) : gang->size.pods,
        .amounts =
            gang->reservation == NULL ? STR_NONE : reservation_text(core, gang, arena, false)};
    note_reserved(core, gang, state);
    gang->state = state;
    preempt_note_holder(core, gang);
    gang_mark_unbound(core, gang);
    gang_show(core, gang);
}

struct gang *gang_find(const struct core *core, struct str uid)
{
    struct gang *gang = NULL;
    if (str_is_set(uid)) {
        gang = table_find(&core->gangs, uid);
    }
    return gang;
}

struct str owner_key(struct core *core, struct str namespace_name, struct str job_uid)
{
    return key_join(&core->scratch, namespace_name, job_uid);
}

struct gang *gang_of_owner(const struct core *core, struct str owner)
{
    size_t slash = str_find_char(owner, '/');
    struct gang *gang = gang_find(core, str_skip(owner, slash + 1));
    bool is_of = gang != NULL && str_eq(gang->namespace_name, str_take(owner, slash));
    return is_of ? gang : NULL;
}

/* Its first bytes as a number that is as great as they come late. */
static uint64_t start_of(struct str uid)
{
    uint64_t start = 0;
    for (size_t i = 0; i < sizeof(start); i++) {
        start = start << 8 | (i < uid.len ? (unsigned char)uid.ptr[i] : 0);
    }
    return start;
}

struct gang *gang_new(struct core *core, struct str uid, struct str namespace_name, struct str name)
{
    struct gang *gang = MEM_NEW(struct gang);
    gang_parts_init(gang);
    struct str key = key_join(&core->scratch, namespace_name, name);
    char *text = mem_alloc(uid.len + key.len + 1);
    memcpy(text, uid.ptr, uid.len);
    memcpy(text + uid.len, key.ptr, key.len);
    gang->uid = (struct str){text, uid.len};
    gang->uid_start = start_of(uid);
    gang->key = (struct str){text + uid.len, key.len};
    gang->namespace_name = str_take(gang->key, namespace_name.len);
    gang->name = str_skip(gang->key, namespace_name.len + 1);
    gang->pods = pod_group_find(core, owner_key(core, namespace_name, uid));
    if (gang->pods != NULL) {
        gang->pods->gang = gang;
    }
    table_add(&core->gangs, gang);
    table_add(&core->gangs_by_key, gang);
    gang->is_in_keys = true;
    requests_meet_gang(core, gang);
    return gang;
}

void gang_enqueue(struct core *core, struct gang *gang)
{
    if (gang->is_in_queue) {
        return;
    }
    assert(gang->shape != NULL && gang->queue == gang->shape->queue);
    assert(gang->reservation == NULL);
    gang_parts_trim(gang);
    gang->is_in_queue = true;
    queue_put_gang(gang->queue, gang);
    gang->queue->is_pending_dirty = true;
    bool was_empty = gang_line_is_empty(&gang->shape->gangs);
    struct shape *shape = gang->shape;
    bool was_ready = shape->is_ready;
    bool was_in_line = shape->is_in_line;
    ready_remove(core, shape); /* its place may change with its head */
    waits_unlink(shape);
    shape_put_gang(shape, gang);
    if (was_ready) {
        ready_add(core, shape);
    } else if (was_in_line) {
        waits_link(shape);
    }
    const struct queue *object = gang->queue->object;
    bool may_preempt = object != NULL && object->spec.preemption != NULL;
    bool is_judged = !was_empty && shape->verdict.reason != REASON_NONE &&
                     !(may_preempt && shape->first == gang);
    if (queue_is_strict(gang->queue)) {
        is_judged = behind_is_blocked(gang);
        behind_came(core, gang, was_empty);
    }
    if (!is_judged) {
        wake_shape(core, shape);
    }
    queue_touch(core, gang->queue);
    gang_show(core, gang);
}

void gang_dequeue(struct core *core, struct gang *gang)
{
    if (!gang->is_in_queue) {
        return;
    }
    struct shape *shape = gang->shape;
    struct queue_state *queue = gang->queue;
    gang->is_in_queue = false;
    booking_forget(core, gang);
    queue_take_gang(queue, gang);
    queue->is_pending_dirty = true;
    bool was_ready = shape->is_ready;
    bool was_in_line = shape->is_in_line;
    ready_remove(core, shape);
    waits_unlink(shape);
    tell_gang_leaves(core, shape, gang);
    shape_take_gang(shape, gang);
    if (was_ready) {
        ready_add(core, shape);
    } else if (was_in_line) {
        waits_link(shape);
    }
    if (was_ready && !shape->is_ready) {
        waits_go_on(core, queue);
    }
    /* A head that was woken blocks nobody, and nobody behind it is awake but its likes. */
    if (queue->blocker == gang || (was_ready && queue_is_strict(queue))) {
        queue->blocker = NULL;
        if (!gang_line_is_empty(&queue->pending)) {
            wake_shape(core, gang_line_first(&queue->pending)->shape);
        }
    }
    queue_touch(core, queue);
}

void gang_set_timer(struct core *core, struct gang *gang, int64_t at_ms)
{
    if (gang->is_timer_set && gang->timer_ms == at_ms) {
        return;
    }
    if (gang->is_timer_set) {
        gang_line_take(&core->timers, gang);
        gang->is_timer_set = false;
    }
    gang->timer_ms = at_ms;
    if (at_ms != 0) {
        (void)gang_line_put(&core->timers, gang);
        gang->is_timer_set = true;
    }
}

bool gang_is_busy(const struct gang *gang)
{
    return gang->run->write_effect_id != 0 || gang->run->awaited_version > gang->version;
}

void gang_remember(struct core *core, struct gang *gang)
{
    struct effect *effect = effect_new(core, EFFECT_PERSIST);
    effect->uid = arena_copy_str(core->out->arena, gang->uid);
    effect->memory = gang->trouble->memory;
    pace_hurry(core, gang);
}

static int64_t requeue_delay_ms(const struct queue_state *queue, int64_t failures)
{
    int64_t base_ms = REQUEUE_BASE_DEFAULT_MS;
    int64_t max_ms = REQUEUE_MAX_DEFAULT_MS;
    if (queue != NULL && queue->object != NULL && queue->object->spec.requeue != NULL) {
        const struct requeue_policy *policy = queue->object->spec.requeue;
        base_ms = policy->base.is_set ? policy->base.ms : base_ms;
        max_ms = policy->max.is_set ? policy->max.ms : max_ms;
    }
    int64_t delay_ms = base_ms;
    for (int64_t i = 1; i < failures && delay_ms < max_ms; i++) {
        delay_ms = sat_mul(delay_ms, 2);
    }
    return delay_ms < max_ms ? delay_ms : max_ms;
}

void gang_count_eviction(struct gang *gang)
{
    if (!gang->is_eviction_unwritten) { /* else the last one never came about */
        gang_trouble_edit(gang)->memory.evictions++;
        gang->is_eviction_unwritten = true;
    }
}

void gang_back_off(struct core *core, struct gang *gang)
{
    struct queue_state *queue = gang->reservation != NULL ? gang->reservation->queue : gang->queue;
    struct gang_memory *memory = &gang_trouble_edit(gang)->memory;
    memory->requeue_count++;
    int64_t at_ms = core->now_ms + requeue_delay_ms(queue, memory->requeue_count);
    memory->requeue_at_ms = (at_ms + 999) / 1000 * 1000; /* as its Admission keeps it */
}

void gang_failed_before(struct core *core, struct gang *gang, int64_t before, int64_t at_ms)
{
    struct gang_memory memory = gang->trouble->memory;
    if (memory.requeue_count > before) {
        return; /* it was counted before a restart */
    }
    memory.requeue_count = sat_add(before, 1);
    int64_t due_ms = sat_add(at_ms, requeue_delay_ms(gang->queue, memory.requeue_count));
    memory.requeue_at_ms = (due_ms + 999) / 1000 * 1000;
    gang_put_memory(gang, memory);
    gang_remember(core, gang);
}

bool gang_is_over_limit(const struct gang *gang)
{
    const struct queue *queue = gang->queue == NULL ? NULL : gang->queue->object;
    int64_t limit =
        queue != NULL && queue->spec.requeue != NULL && queue->spec.requeue->limit.is_set
            ? queue->spec.requeue->limit.value
            : 0;
    return limit > 0 && gang->trouble->memory.requeue_count > limit;
}

void gang_reprioritize(struct core *core, struct gang *gang)
{
    int64_t priority;
    gang->is_class_missing = !priority_of_class(core, gang->priority_class, &priority);
    if (priority == gang->priority) {
        return;
    }
    bool was_queued = gang->is_in_queue;
    gang_dequeue(core, gang);
    preempt_forget_holder(core, gang);
    bool may_stop_sooner = gang->reservation != NULL && priority < gang->priority;
    core->has_freed = core->has_freed || may_stop_sooner;
    core->has_let_go = core->has_let_go || may_stop_sooner;
    gang->may_start_early = true; /* before others that are Reserved */
    gang->priority = priority;
    preempt_note_holder(core, gang);
    if (was_queued) {
        gang_enqueue(core, gang);
        wake_shape(core, gang->shape);
    }
    gang_show(core, gang);
}

void gang_mark_unbound(struct core *core, struct gang *gang)
{
    int64_t promised = gang_promised_pods(gang);
    fit_promises_changed(core, gang);
    int64_t dropped = gang->run->promised_pods - promised;
    int64_t taken_up = (int64_t)gang->settled_pods - gang->run->promise_settled_pods;
    GANG_PUT(gang, run, promised_pods, promised);
    GANG_PUT(gang, run, promise_settled_pods, (int64_t)gang->settled_pods);
    if (dropped > 0) {
        wake_reserved(core);
    }
    if (dropped > 0 && dropped > taken_up) {
        wake_all(core, WAIT_CLUSTER); /* places that are given back */
    }
    bool is_unbound = promised > 0;
    if (is_unbound == gang->is_in_unbound) {
        return;
    }
    assert(!gang->is_in_queue);
    gang->is_in_unbound = is_unbound;
    if (is_unbound) {
        (void)gang_line_put(&core->unbound, gang);
    } else {
        gang_line_take(&core->unbound, gang);
    }
}

void gang_pods_changed(struct core *core, struct gang *gang)
{
    gang_count_pods(core, gang);
    gang_mark_unbound(core, gang);
    gang_review(core, gang);
}

void gang_pod_changed(struct core *core, struct gang *gang, struct pod_state *pod)
{
    gang_count_pod(core, gang, pod);
    gang_mark_unbound(core, gang);
    gang_review(core, gang);
}

/* Another Job may have its name now. */
static void gang_drop_key(struct core *core, struct gang *gang)
{
    if (gang->is_in_keys) {
        table_remove(&core->gangs_by_key, gang);
        gang->is_in_keys = false;
    }
}

void gang_job_gone(struct core *core, struct gang *gang)
{
    gang->is_job_gone = true;
    admission_outlives(core, gang);
    gang_drop_key(core, gang);
    gang_dequeue(core, gang);
    gang_pods_changed(core, gang);
}

/* What was remembered of it is of no use any more. */
static void gang_forget(struct core *core, struct gang *gang)
{
    struct gang_memory memory = gang->trouble->memory;
    bool is_remembered =
        memory.requeue_count != 0 || memory.requeue_at_ms != 0 || memory.evictions != 0;
    if (is_remembered && core->out != NULL) {
        gang_put_memory(gang, (struct gang_memory){.requeue_count = 0});
        gang_remember(core, gang);
    }
}

void gang_free(struct core *core, struct gang *gang)
{
    if (gang->state == GANG_RESERVED && core->is_ready) {
        preempt_let_go(core, gang, false);
    }
    admission_withdraw(core, gang);
    gang_forget(core, gang);
    if (gang->room->check != NULL) {
        GANG_PUT(gang, room, dropped_attempt, gang->room->check->attempt);
        requests_tidy(core, gang);
    }
    check_drop(gang);
    requests_leave_gang(gang);
    gang_dequeue(core, gang);
    note_reserved(core, gang, GANG_FINISHED);
    stopping_end(core, gang);
    ledger_release(core, gang);
    gang_confine(gang, NULL);
    gang_set_timer(core, gang, 0);
    pace_forget(core, gang);
    table_remove(&core->gangs, gang);
    gang_drop_key(core, gang);
    gang_walks_forget(core, gang);
    struct queue_state *queue = gang->queue;
    if (gang->shape != NULL) {
        shape_drop(core, gang->shape);
    }
    for (struct pod_state *pod = gang_first_pod(gang); pod != NULL; pod = pod->next_in_group) {
        pod->counted = (struct pod_count){.is_live = false};
    }
    if (gang->pods != NULL) {
        whatif_forget_gang(core, gang);
        gang->pods->gang = NULL;
        pod_group_free_if_unused(core, gang->pods);
    }
    mem_free(gang->record);
    mem_free(gang->suspended);
    gang_sets_free(gang);
    str_drop(&gang->uid); /* the key stands behind it */
    str_drop(&gang->priority_class);
    str_drop(&gang->template_class);
    str_drop(&gang->admission_uid);
    preempt_forget_why(gang);
    past_free(gang);
    gang_parts_free(gang);
    mem_free(gang);
    if (queue != NULL) {
        queue_free_if_unused(core, queue);
    }
}

void gangs_free(struct core *core)
{
    uint32_t at = 0;
    for (struct gang *gang; (gang = table_drain(&core->gangs, &at)) != NULL;) {
        gang_free(core, gang);
    }
    table_deinit(&core->gangs);
    table_deinit(&core->gangs_by_key);
}
