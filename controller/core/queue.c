/* queue.c - the tables of queues, flavors and cohorts, and the accounts of a queue. */
#include "gate.h"
#include "history.h"
#include "wait.h"

#include <assert.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

#define FIND(table, key, found) HASH_FIND(hh, table, (key).ptr, (unsigned)(key).len, found)

struct queue_state *queue_find(const struct core *core, struct str name)
{
    struct queue_state *queue = NULL;
    if (str_is_set(name)) {
        FIND(core->queues, name, queue);
    }
    return queue;
}

struct queue_state *queue_get(struct core *core, struct str name)
{
    struct queue_state *queue = queue_find(core, name);
    if (queue != NULL) {
        return queue;
    }
    queue = MEM_NEW(struct queue_state);
    queue->name = str_own(name);
    RB_INIT(&queue->ready);
    quota_node_init(&queue->node, queue->name, queue);
    HASH_ADD_KEYPTR(hh, core->queues, queue->name.ptr, (unsigned)queue->name.len, queue);
    RB_INSERT(queue_tree, &core->queue_order, queue);
    return queue;
}

static void queue_free(struct core *core, struct queue_state *queue)
{
    quota_mark_stale(core);
    HASH_DEL(core->queues, queue);
    RB_REMOVE(queue_tree, &core->queue_order, queue);
    history_free(queue);
    queue_clear_due(core, queue);
    queue_lines_free(queue);
    quota_node_deinit(&queue->node);
    mem_free(queue->object);
    str_drop(&queue->name);
    mem_free(queue);
}

void queue_free_if_unused(struct core *core, struct queue_state *queue)
{
    bool is_unused = queue->object == NULL && queue->shapes == NULL &&
                     gang_line_is_empty(&queue->pending) && queue->admitted_count == 0;
    if (is_unused) {
        queue_free(core, queue);
    }
}

bool queue_looks_at_nodes(const struct queue_state *queue)
{
    return queue->object != NULL && !str_eq_c(queue->object->spec.fit, "Quota");
}

bool queue_is_strict(const struct queue_state *queue)
{
    return queue->object != NULL && str_eq_c(queue->object->spec.queueing_strategy, "StrictFIFO");
}

/* A queue that says nothing preempts nobody. */
const struct queue_preemption *queue_preemption_policy(const struct queue_state *queue)
{
    static const struct queue_preemption never;
    bool is_set = queue->object != NULL && queue->object->spec.preemption != NULL;
    return is_set ? queue->object->spec.preemption : &never;
}

int64_t queue_pods_ready_timeout_ms(const struct queue_state *queue)
{
    if (queue->object == NULL || !queue->object->spec.pods_ready_timeout.is_set) {
        return PODS_READY_TIMEOUT_DEFAULT_MS;
    }
    return queue->object->spec.pods_ready_timeout.ms;
}

void queue_touch(struct core *core, struct queue_state *queue)
{
    queue->status.is_dirty = true;
    queue_set_due(core, queue);
}

void queue_tidy(struct core *core, struct queue_state *queue)
{
    quota_node_prune(&queue->node);
    queue_free_if_unused(core, queue);
}

static bool has_finalizer(const struct object_meta *meta)
{
    for (uint32_t i = 0; i < meta->finalizers.count; i++) {
        if (str_eq_c(meta->finalizers.items[i], QUEUE_FINALIZER)) {
            return true;
        }
    }
    return false;
}

/* The Queue's finalizers with ours in or out: a merge PATCH replaces the whole list. */
static struct str_list finalizers_with(struct arena *arena, const struct object_meta *meta,
                                       bool is_wanted)
{
    struct str_list list = {.items = ARENA_ARRAY(arena, struct str, meta->finalizers.count + 1)};
    for (uint32_t i = 0; i < meta->finalizers.count; i++) {
        if (!str_eq_c(meta->finalizers.items[i], QUEUE_FINALIZER)) {
            list.items[list.count++] = arena_copy_str(arena, meta->finalizers.items[i]);
        }
    }
    if (is_wanted) {
        list.items[list.count++] = STR(QUEUE_FINALIZER);
    }
    return list;
}

void queue_check_finalizer(struct core *core, struct queue_state *queue)
{
    if (queue->object == NULL || queue->is_finalizer_pending || !core->is_ready) {
        return;
    }
    bool is_going = queue->object->meta.deletion_timestamp.is_set;
    bool is_wanted = !is_going || queue->admitted_count > 0;
    if (is_wanted == queue->has_finalizer || (is_going && !queue->has_finalizer)) {
        return;
    }
    struct effect *effect = effect_new(core, EFFECT_SET_FINALIZER);
    effect->id = ++core->next_effect_id;
    effect->object_kind = KIND_QUEUE;
    effect->name = arena_copy_str(core->out->arena, queue->name);
    effect->resource_version =
        arena_copy_str(core->out->arena, queue->object->meta.resource_version);
    effect->finalizers = finalizers_with(core->out->arena, &queue->object->meta, is_wanted);
    effect->finalizer_wanted = is_wanted;
    queue->is_finalizer_pending = true;
}

/* Its timeouts may be others now. Of one that is gone, those that only hold its quota for a check
 * give it back. */
static void queue_review_gangs(struct core *core, struct queue_state *queue)
{
    struct gang *gang = gang_line_first(&core->holders);
    while (gang != NULL) {
        struct gang *next = gang_line_next(&core->holders, gang);
        bool is_concerned = queue->object != NULL || gang->room->check != NULL;
        if (gang->reservation->queue == queue && is_concerned) {
            drift_gang(core, gang); /* it may list what it didn't */
            gang_review(core, gang);
        }
        gang = next;
    }
}

struct rc queue_apply(struct core *core, const struct queue *object, struct err *err)
{
    TRY(quota_check("Queue", object->meta.name, &object->spec.resource_groups, err));
    const struct schema *schema = kind_info(KIND_QUEUE)->schema;
    struct queue_state *queue = queue_get(core, object->meta.name);
    struct queue slim = *object;
    slim.meta.annotations = (struct string_map){.items = NULL};
    slim.meta.labels = (struct string_map){.items = NULL};
    bool is_same = false;
    bool is_policy_same = true;
    if (queue->object != NULL) {
        /* Our own status write comes back as an event: it must wake nobody. */
        struct queue a = slim;
        struct queue b = *queue->object;
        a.status = b.status = (struct queue_status){.pending = {false, 0}};
        a.meta.resource_version = b.meta.resource_version = STR_NONE;
        a.meta.finalizers = b.meta.finalizers = (struct str_list){.items = NULL};
        is_same = object_equal(schema, &a, &b);
        a.meta = b.meta;
        a.spec.resource_groups = b.spec.resource_groups;
        is_policy_same = object_equal(schema, &a, &b);
    }
    bool takes_same = gate_same_classes(queue->object, object);
    mem_free(queue->object);
    queue->object = object_clone(schema, &slim);
    queue->has_finalizer = has_finalizer(&object->meta);
    queue->is_finalizer_pending = false;
    queue_check_finalizer(core, queue);
    struct queue shown = {.meta.name = queue->name, .status = object->status};
    status_write_shown(KIND_QUEUE, &shown, &queue->status);
    queue_set_due(core, queue);
    if (is_same) {
        return RC_SUCCESS;
    }
    quota_node_read(core, &queue->node, &queue->object->spec.resource_groups);
    queue->node.is_edited = queue->node.is_edited || !is_policy_same;
    booking_queue_changed(core, queue);
    queue->blocker = NULL;
    queue_touch(core, queue);
    flavors_touch(core);
    wake_queue(core, queue, WAIT_ANY);
    struct gang *gang;
    GANG_LINE_FOREACH (gang, &queue->pending) {
        gang_show(core, gang);
    }
    queue_review_gangs(core, queue);
    if (!takes_same) {
        gate_classes_changed(core, queue);
    }
    return RC_SUCCESS;
}

void queue_deleted(struct core *core, const struct queue *object)
{
    struct queue_state *queue = queue_find(core, object->meta.name);
    if (queue == NULL || queue->object == NULL) {
        return;
    }
    bool takes_same = gate_same_classes(queue->object, NULL);
    mem_free(queue->object);
    queue->object = NULL;
    queue->has_finalizer = false;
    queue->is_finalizer_pending = false;
    queue->blocker = NULL;
    queue_set_due(core, queue);
    quota_node_read(core, &queue->node, NULL);
    booking_queue_changed(core, queue);
    wake_queue(core, queue, WAIT_ANY);
    queue_review_gangs(core, queue);
    if (!takes_same) {
        gate_classes_changed(core, queue);
    }
    queue_free_if_unused(core, queue);
}

void queues_free(struct core *core)
{
    struct queue_state *queue;
    struct queue_state *next_queue;
    HASH_ITER (hh, core->queues, queue, next_queue) {
        queue_free(core, queue);
    }
}
