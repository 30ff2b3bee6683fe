/* config.c - the small objects that are looked up by name, and who hears of their changes. */
#include "gate.h"
#include "gang_walk.h"

#include <stdlib.h>

#include "tallyman/base/alloc.h"

const void *named_find(const struct core *core, enum object_kind kind, struct str key)
{
    struct named_object *found = NULL;
    HASH_FIND(hh, core->named[kind], key.ptr, (unsigned)key.len, found);
    return found == NULL ? NULL : found->value;
}

static struct str named_key(struct core *core, enum object_kind kind,
                            const struct object_meta *object)
{
    if (kind_info(kind)->is_namespaced) {
        return key_join(&core->scratch, object->namespace_name, object->name);
    }
    return object->name;
}

static bool pod_set_names_template(const struct pod_set *set, struct str name)
{
    const struct pod_resource_claim_list *claims = &set->spec->resource_claims;
    for (uint32_t i = 0; i < claims->count; i++) {
        if (str_eq(claims->items[i].resource_claim_template_name, name)) {
            return true;
        }
    }
    return false;
}

/* Whether the judgement of the set rests on that object. */
static bool pod_set_depends(const struct pod_set *set, enum object_kind kind,
                            const struct object_meta *object)
{
    struct str namespace_name = set->shape->namespace_name;
    bool is_namespace_same = str_eq(namespace_name, object->namespace_name);
    if (kind == KIND_NAMESPACE) {
        return str_eq(namespace_name, object->name);
    }
    if (kind == KIND_RUNTIME_CLASS) {
        return str_eq(set->spec->runtime_class_name, object->name);
    }
    bool is_template = kind == KIND_RESOURCE_CLAIM_TEMPLATE; /* else a LimitRange */
    return is_namespace_same && (!is_template || pod_set_names_template(set, object->name));
}

static bool shape_depends(const struct shape *shape, enum object_kind kind,
                          const struct object_meta *object)
{
    for (uint32_t s = 0; s < shape->set_count; s++) {
        if (pod_set_depends(&shape->sets[s], kind, object)) {
            return true;
        }
    }
    return false;
}

/* The queue's selector and the namespace's stop policy are all that its gangs see of it. */
static void tell_namespace(struct core *core, struct shape *shape)
{
    const struct verdict *told = &shape->verdict;
    struct verdict now = evaluate_queue(core, shape);
    bool is_told =
        told->reason == REASON_NAMESPACE_NOT_ALLOWED || told->reason == REASON_QUEUE_STOPPED;
    bool is_same = is_told ? now.reason == told->reason && str_eq(now.message, told->message)
                           : now.reason == REASON_NONE;
    if (!is_same || core->options.is_plain) {
        wake_shape(core, shape);
    }
}

/* Its queue lets nobody start, or not its namespace, and it has been told so. */
static bool is_kept_out(struct core *core, const struct shape *shape)
{
    enum reason reason = evaluate_queue(core, shape).reason;
    return reason != REASON_NONE && reason == shape->verdict.reason && !core->options.is_plain;
}

/* It depends on that object, which is another one now. */
static void tell_shape(struct core *core, struct shape *shape, enum object_kind kind)
{
    if (kind == KIND_NAMESPACE) {
        tell_namespace(core, shape);
    } else if (is_kept_out(core, shape)) {
        shape->is_resolved = false; /* what it asks for is no matter yet */
    } else if (kind != KIND_LIMIT_RANGE || !shape->is_resolved || core->options.is_plain ||
               !shape_asks_the_same(core, shape)) {
        shape_unresolve(core, shape);
    }
}

static void tell_shapes(struct core *core, enum object_kind kind, const struct object_meta *object)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        for (struct shape *shape = queue->shapes; shape != NULL; shape = shape->next_in_queue) {
            if (shape_depends(shape, kind, object)) {
                tell_shape(core, shape, kind);
            }
        }
    }
}

/* What promised pods take may be told otherwise now. */
static bool are_promises_stale(struct core *core)
{
    struct gang *gang;
    GANG_LINE_FOREACH (gang, &core->unbound) {
        if (gang->shape != NULL && !gang->shape->is_resolved) {
            return true;
        }
    }
    return core->options.is_plain;
}

void wake_if_promises_are_stale(struct core *core)
{
    if (are_promises_stale(core)) {
        wake_reserved(core);
    }
}

static void tell_all(struct core *core, enum object_kind kind, const struct object_meta *object)
{
    if (kind == KIND_DEVICE_CLASS) {
        extended_class_changed(core);
        profiles_class_changed(core, object->name);
    } else if (kind == KIND_PRIORITY_CLASS) {
        struct gang_walk walk;
        gang_walk_begin(core, &walk, NULL, NULL);
        for (struct gang *gang; (gang = gang_walk_next(core, &walk)) != NULL;) {
            gang_reprioritize(core, gang);
            gang_review(core, gang); /* the class may be there now, or gone; may free the gang */
        }
    } else {
        tell_shapes(core, kind, object);
    }
    if (kind == KIND_NAMESPACE) {
        stop_namespace_changed(core, object->name);
        default_queue_changed(core, object->name);
    }
    wake_if_promises_are_stale(core);
}

void named_apply(struct core *core, enum object_kind kind, const struct object_meta *object)
{
    const struct schema *schema = kind_info(kind)->schema;
    struct str key = named_key(core, kind, object);
    struct named_object *entry = NULL;
    HASH_FIND(hh, core->named[kind], key.ptr, (unsigned)key.len, entry);
    void *old = NULL;
    if (entry == NULL) {
        entry = MEM_NEW(struct named_object);
        entry->key = str_own(key);
        entry->kind = kind;
        HASH_ADD_KEYPTR(hh, core->named[kind], entry->key.ptr, (unsigned)entry->key.len, entry);
    } else {
        old = entry->value;
    }
    entry->value = object_clone(schema, object);
    struct object_meta *meta = entry->value;
    meta->resource_version = STR_NONE; /* so that a touch without a change is none */
    meta->generation = (struct opt_int){false, 0};
    meta->annotations = (struct string_map){.items = NULL};
    struct string_pair stop_policy = {STR(KEY_STOP_POLICY), STR_NONE};
    stop_policy.value = string_map_get(&object->annotations, KEY_STOP_POLICY);
    if (kind == KIND_NAMESPACE && str_is_set(stop_policy.value)) {
        meta->annotations = (struct string_map){&stop_policy, 1};
        void *slim = entry->value;
        entry->value = object_clone(schema, slim);
        mem_free(slim);
    }
    bool is_same = old != NULL && object_equal(schema, old, entry->value);
    mem_free(old);
    if (!is_same) {
        tell_all(core, kind, object);
    }
}

void named_deleted(struct core *core, enum object_kind kind, const struct object_meta *object)
{
    struct str key = named_key(core, kind, object);
    struct named_object *entry = NULL;
    HASH_FIND(hh, core->named[kind], key.ptr, (unsigned)key.len, entry);
    if (entry == NULL) {
        return;
    }
    HASH_DEL(core->named[kind], entry);
    str_drop(&entry->key);
    mem_free(entry->value);
    mem_free(entry);
    tell_all(core, kind, object);
}

static int compare_limit_ranges(const void *a, const void *b)
{
    const struct limit_range *const *left = a;
    const struct limit_range *const *right = b;
    return str_compare((*left)->meta.name, (*right)->meta.name);
}

struct request_context namespace_limits(struct core *core, struct str namespace_name)
{
    const struct limit_range **found = NULL;
    uint32_t count = 0;
    uint32_t capacity = 0;
    struct named_object *entry;
    struct named_object *next;
    HASH_ITER (hh, core->named[KIND_LIMIT_RANGE], entry, next) {
        const struct limit_range *range = entry->value;
        if (str_eq(range->meta.namespace_name, namespace_name)) {
            found =
                arena_grow(&core->scratch, found, count, &capacity, sizeof(struct limit_range *));
            found[count++] = range;
        }
    }
    if (count > 1) {
        qsort(found, count, sizeof(struct limit_range *), compare_limit_ranges);
    }
    return (struct request_context){.limit_ranges = found, .limit_range_count = count};
}

bool priority_of_class(const struct core *core, struct str class_name, int64_t *ret_priority)
{
    if (!str_is_empty(class_name)) {
        const struct priority_class *named = named_find(core, KIND_PRIORITY_CLASS, class_name);
        *ret_priority = named != NULL && named->value.is_set ? named->value.value : 0;
        return named != NULL || str_starts_with(class_name, STR("system-"));
    }
    /* The global default; the lowest value where several claim to be it. */
    bool is_found = false;
    *ret_priority = 0;
    struct named_object *entry;
    struct named_object *next;
    HASH_ITER (hh, core->named[KIND_PRIORITY_CLASS], entry, next) {
        const struct priority_class *candidate = entry->value;
        bool is_default = opt_is_true(candidate->global_default);
        if (is_default && (!is_found || candidate->value.value < *ret_priority)) {
            is_found = true;
            *ret_priority = candidate->value.value;
        }
    }
    return true;
}

void named_free(struct core *core)
{
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct named_object *entry;
        struct named_object *next;
        HASH_ITER (hh, core->named[kind], entry, next) {
            HASH_DEL(core->named[kind], entry);
            str_drop(&entry->key);
            mem_free(entry->value);
            mem_free(entry);
        }
    }
}
