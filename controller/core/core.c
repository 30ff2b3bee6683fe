/* core.c - one step: take the event in, let what it touched be reviewed, decide, say what is due.
 */
#include "tallyman/core/core.h"

#include <assert.h>

#include "ailment.h"
#include "behind.h"
#include "check.h"
#include "fit_plan.h"
#include "gang_input.h"
#include "gang_walk.h"
#include "gate.h"
#include "ghost.h"
#include "claim.h"
#include "incident.h"
#include "pace.h"
#include "room_index.h"
#include "stopping.h"
#include "selectors.h"
#include "trace.h"
#include "topology.h"

#include "tallyman/base/alloc.h"

struct core *core_new(const struct core_options *options)
{
    struct core *core = MEM_NEW(struct core);
    core->options = *options;
    if (core->options.stuck_node_ms == 0) {
        core->options.stuck_node_ms = STUCK_NODE_DEFAULT_MS;
    }
    core->read_gang = gang_input_of_job;
    core->next_status_ms = INT64_MAX;
    core->level_cap = LEVEL_ANY;
    core->trace = options->traces ? trace_new() : NULL;
    core->gangs = TABLE_OF(struct gang, uid);
    core->gangs_by_key = TABLE_OF(struct gang, key);
    RB_INIT(&core->queue_order);
    RB_INIT(&core->due_queues);
    RB_INIT(&core->node_order);
    RB_INIT(&core->device_order);
    RB_INIT(&core->ailing_devices);
    core->timers.order = LINE_BY_TIMER;
    core->unbound.order = core->holders.order = LINE_BY_ADMISSION;
    RB_INIT(&core->ready);
    arena_init(&core->scratch);
    bookings_init(core);
    fit_plan_init(core);
    tell_init(core);
    selectors_init(core);
    static const char *const always_known[] = {"cpu", "memory", "ephemeral-storage", RESOURCE_PODS};
    for (size_t i = 0; i < ARRAY_COUNT(always_known); i++) {
        (void)resource_intern(core, str_from_c(always_known[i]));
    }
    return core;
}

static void pending_drop(struct core *core, struct pending_effect *pending)
{
    HASH_DEL(core->pending_effects, pending);
    str_drop(&pending->gang_uid);
    str_drop(&pending->name);
    mem_free(pending);
}

void core_free(struct core *core)
{
    if (core == NULL) {
        return;
    }
    /* What is let go of while freeing may ask for effects: nobody will carry them out. */
    struct effects ignored = {.arena = &core->scratch};
    core->out = &ignored;
    core->is_ready = false;
    whatif_forget(core);
    whatif_free(core);
    gangs_free(core);
    stopping_free(core);
    requests_free(core);
    bookings_free(core);
    pods_free(core);
    devices_free(core);
    claims_free(core);
    ailments_free(core);
    taint_rules_free(core);
    reaches_forget(core); /* there may be one without any node */
    topology_free(core);
    profiles_free(core);
    extended_free(core);
    nodes_free(core);
    queues_free(core);
    flavors_free(core);
    named_free(core);
    admissions_free(core);
    default_queue_free(core);
    struct pending_effect *pending;
    struct pending_effect *next_pending;
    HASH_ITER (hh, core->pending_effects, pending, next_pending) {
        pending_drop(core, pending);
    }
    struct resource_name *name;
    struct resource_name *next;
    HASH_ITER (hh, core->resource_names, name, next) {
        HASH_DEL(core->resource_names, name);
        str_drop(&name->text);
        mem_free(name);
    }
    room_index_free(core);
    fit_promises_free(core);
    fit_plan_free(core);
    tell_free(core);
    selectors_free(core);
    arena_deinit(&core->scratch);
    trace_free(core->trace);
    mem_free(core);
}

/* The kinds that a decision rests on; all have to be listed before the first one. */
static bool all_synced(const struct core *core)
{
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        if ((core->synced_kinds & (1u << kind)) == 0) {
            return false;
        }
    }
    return true;
}

static void become_ready(struct core *core)
{
    if (core->is_ready || !all_synced(core)) {
        return;
    }
    core->is_ready = true;
    ailments_start(core);
    incidents_start(core);
    default_queue_start(core);
    quota_relink(core); /* what gangs have used so far is counted by the trees */
    /* What is held is counted before the first decision. */
    struct gang_walk walk;
    gang_walk_begin(core, &walk, NULL, NULL);
    for (struct gang *gang; (gang = gang_walk_next(core, &walk)) != NULL;) {
        gang_pods_changed(core, gang);
    }
    claims_start(core);
    drift_start(core);
    checks_restore(core);
    preempt_restore(core);
    core->has_restored = true;
    preempt_withdraw_requests(core);
    admissions_check(core);
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        queue_check_finalizer(core, queue);
    }
}

static struct rc apply_object(struct core *core, const struct object *object, struct err *err)
{
    const void *value = object->value;
    switch (object->kind) {
    case KIND_JOB:
        job_apply(core, value);
        return RC_SUCCESS;
    case KIND_POD:
        return pod_apply(core, value, err);
    case KIND_NODE:
        return node_apply(core, value, err);
    case KIND_QUEUE:
        return queue_apply(core, value, err);
    case KIND_COHORT:
        return cohort_apply(core, value, err);
    case KIND_RESOURCE_FLAVOR:
        flavor_apply(core, value);
        return RC_SUCCESS;
    case KIND_ADMISSION:
        admission_apply(core, value);
        return RC_SUCCESS;
    case KIND_PROVISIONING_REQUEST:
        request_apply(core, value);
        return RC_SUCCESS;
    case KIND_RESOURCE_SLICE:
        slice_apply(core, value);
        return RC_SUCCESS;
    case KIND_RESOURCE_CLAIM:
        claim_apply(core, value);
        return RC_SUCCESS;
    case KIND_DEVICE_TAINT_RULE:
        taint_rule_apply(core, value);
        return RC_SUCCESS;
    case KIND_NAMESPACE:
    case KIND_LIMIT_RANGE:
    case KIND_RUNTIME_CLASS:
    case KIND_PRIORITY_CLASS:
    case KIND_DEVICE_CLASS:
    case KIND_RESOURCE_CLAIM_TEMPLATE:
        named_apply(core, object->kind, object->value);
        return RC_SUCCESS;
    case KIND_NONE:
    case KIND_COUNT:
        break;
    }
    return err_set(err, RC_INVALID, "an object of a kind that Tallyman doesn't know");
}

static void delete_object(struct core *core, const struct object *object)
{
    const void *value = object->value;
    switch (object->kind) {
    case KIND_JOB:
        job_deleted(core, value);
        break;
    case KIND_POD:
        pod_deleted(core, value);
        break;
    case KIND_NODE:
        node_deleted(core, value);
        break;
    case KIND_QUEUE:
        queue_deleted(core, value);
        break;
    case KIND_COHORT:
        cohort_deleted(core, value);
        break;
    case KIND_RESOURCE_FLAVOR:
        flavor_deleted(core, value);
        break;
    case KIND_ADMISSION:
        admission_deleted(core, value);
        break;
    case KIND_PROVISIONING_REQUEST:
        request_deleted(core, value);
        break;
    case KIND_RESOURCE_SLICE:
        slice_deleted(core, value);
        break;
    case KIND_RESOURCE_CLAIM:
        claim_deleted(core, value);
        break;
    case KIND_DEVICE_TAINT_RULE:
        taint_rule_deleted(core, value);
        break;
    case KIND_NAMESPACE:
    case KIND_LIMIT_RANGE:
    case KIND_RUNTIME_CLASS:
    case KIND_PRIORITY_CLASS:
    case KIND_DEVICE_CLASS:
    case KIND_RESOURCE_CLAIM_TEMPLATE:
        named_deleted(core, object->kind, object->value);
        break;
    case KIND_NONE:
    case KIND_COUNT:
        break;
    }
}

static void finalizer_write_done(struct core *core, const struct pending_effect *pending,
                                 const struct effect_done *done)
{
    struct queue_state *queue = queue_find(core, pending->name);
    if (queue != NULL) {
        /* After a success the watch shows the Queue as it is now; see queue_apply(). */
        queue->is_finalizer_pending = done->outcome == EFFECT_OK;
    }
}

static void effect_done(struct core *core, const struct effect_done *done)
{
    struct pending_effect *pending = NULL;
    HASH_FIND(hh, core->pending_effects, &done->effect_id, sizeof(done->effect_id), pending);
    if (pending == NULL) {
        return; /* of a gang or queue that is gone meanwhile */
    }
    struct gang *gang = gang_find(core, pending->gang_uid);
    if ((done->effect_id & STATUS_ID_BIT) != 0) {
        status_write_done(core, pending, done);
    } else if (pending->object_kind == KIND_QUEUE) {
        finalizer_write_done(core, pending, done);
    }
    pending_drop(core, pending);
    if (gang == NULL) {
        return;
    }
    if (gang->run->write_effect_id == done->effect_id) {
        job_write_done(core, gang, done);
    } else if (gang->admission_effect_id == done->effect_id) {
        admission_write_done(core, gang, done);
    } else if (gang->room->check != NULL && gang->room->check->effect_id == done->effect_id) {
        check_write_done(core, gang, done);
    }
}

/* Who waits for the answer of each effect of this step that wants one. */
static void remember_effects(struct core *core)
{
    for (uint32_t i = 0; i < core->out->count; i++) {
        const struct effect *effect = &core->out->items[i];
        if (effect->id == 0) {
            continue;
        }
        struct pending_effect *pending = MEM_NEW(struct pending_effect);
        pending->id = effect->id;
        if (effect->kind == EFFECT_SET_FINALIZER || effect->kind == EFFECT_WRITE_STATUS) {
            pending->object_kind = effect->object_kind;
            pending->name = str_own(effect->name);
        } else {
            pending->gang_uid = str_own(effect->uid);
        }
        HASH_ADD(hh, core->pending_effects, id, sizeof(pending->id), pending);
    }
}

static void fire_timers(struct core *core)
{
    struct gang *gang;
    while ((gang = gang_line_first(&core->timers)) != NULL && gang->timer_ms <= core->now_ms) {
        gang_set_timer(core, gang, 0);
        gang_review(core, gang);
    }
    node_tick(core);
    health_tick(core);
    ailments_tick(core);
    incidents_tick(core);
    admissions_retry(core);
    pace_tick(core);
    ghosts_tick(core);
}

/* Of two times; 0 is none. */
static int64_t earlier(int64_t wake_ms, int64_t due_ms)
{
    return due_ms != 0 && due_ms < wake_ms ? due_ms : wake_ms;
}

static int64_t next_wake_ms(const struct core *core)
{
    int64_t wake_ms = queue_next_due_ms(core);
    const struct gang *gang = gang_line_first(&core->timers);
    wake_ms = earlier(wake_ms, gang == NULL ? 0 : gang->timer_ms);
    wake_ms = earlier(wake_ms, core->next_node_check_ms);
    wake_ms = earlier(wake_ms, core->next_harm_ms);
    wake_ms = earlier(wake_ms, core->next_ailment_ms);
    wake_ms = earlier(wake_ms, core->next_rest_end_ms);
    wake_ms = earlier(wake_ms, core->next_ghost_check_ms);
    wake_ms = earlier(wake_ms, core->next_admission_retry_ms);
    wake_ms = earlier(wake_ms, pace_due_ms(core));
    wake_ms = earlier(wake_ms, tell_due_ms(core));
    wake_ms = earlier(wake_ms, behind_due_ms(core));
    return earlier(wake_ms, bookings_due_ms(core));
}

static struct rc take_in(struct core *core, const struct event *event, struct err *err)
{
    switch (event->kind) {
    case EVENT_OBJECT:
        return apply_object(core, &event->object, err);
    case EVENT_DELETED:
        delete_object(core, &event->object);
        return RC_SUCCESS;
    case EVENT_SYNCED:
        core->synced_kinds |= 1u << event->synced_kind;
        if (event->synced_kind == KIND_PROVISIONING_REQUEST) {
            checks_kind_changed(core, event->is_absent);
        }
        become_ready(core);
        return RC_SUCCESS;
    case EVENT_EFFECT_DONE:
        effect_done(core, &event->done);
        return RC_SUCCESS;
    case EVENT_TICK:
        return RC_SUCCESS;
    }
    return err_set(err, RC_INVALID, "an event of an unknown kind");
}

struct rc core_step(struct core *core, const struct event *event, struct effects *ret_effects,
                    struct err *err)
{
    assert(core->out == NULL && "steps don't nest");
    arena_reset(&core->scratch);
    trace_begin(core->trace);
    topology_tidy(core);
    core->cost = (struct core_cost){.gangs_visited = 0};
    core->now_ms = event->now_ms > core->now_ms ? event->now_ms : core->now_ms;
    bookings_step(core);
    tell_step(core);
    selectors_step(core, event->kind == EVENT_TICK);
    *ret_effects = (struct effects){.arena = ret_effects->arena};
    core->out = ret_effects;
    struct rc rc = take_in(core, event, err);
    if (core->is_ready && !event->more_follow) {
        bool goes_on =
            core->is_cut && event->kind == EVENT_TICK && next_wake_ms(core) > core->now_ms;
        if (!goes_on) {
            fire_timers(core);
            selectors_go_on(core);
        }
        decide(core, goes_on);
        if (!core->is_cut) {
            tell_go_on(core);
            queue_tick(core);
        }
    }
    remember_effects(core);
    bool is_due = core->is_cut || selectors_are_due(core);
    ret_effects->wake_at_ms = !core->is_ready ? INT64_MAX
                              : is_due        ? core->now_ms
                                              : next_wake_ms(core);
    core->out = NULL;
    return rc;
}

struct core_cost core_last_cost(const struct core *core)
{
    return core->cost;
}

void core_assert_consistent(const struct core *core)
{
    ledger_assert(core);
}
