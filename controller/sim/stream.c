/* stream.c - what Tallyman is told of each kind, in the order of its stream, and what a fault makes
 * of that: late, twice, or lost until the kind is listed afresh, as an informer does after a 410.
 */
#include "sim_internal.h"

#include <assert.h>

#include "tallyman/base/alloc.h"

/* What was told last of an object, so that a fresh list can tell what has gone meanwhile. */
struct told_object {
    struct str key; /* owned; kind and key */
    UT_hash_handle hh;
    enum object_kind kind;
    void *value; /* owned clone */
};

static struct str told_key(struct sim *sim, enum object_kind kind, const void *value)
{
    const struct object_meta *meta = value;
    return arena_format(&sim->scratch, "%d " STR_FMT "/" STR_FMT, (int)kind,
                        STR_ARG(meta->namespace_name), STR_ARG(meta->name));
}

static void told_free(struct sim *sim, struct told_object *told)
{
    HASH_DEL(sim->told, told);
    mem_free((void *)(uintptr_t)told->key.ptr);
    mem_free(told->value);
    mem_free(told);
}

static void told_set(struct sim *sim, enum object_kind kind, const void *value, bool is_deleted)
{
    struct str key = told_key(sim, kind, value);
    struct told_object *told = NULL;
    HASH_FIND(hh, sim->told, key.ptr, key.len, told);
    if (told != NULL) {
        told_free(sim, told);
    }
    if (is_deleted) {
        return;
    }
    told = MEM_NEW(struct told_object);
    char *copy = mem_alloc(key.len);
    memcpy(copy, key.ptr, key.len);
    told->key = (struct str){copy, key.len};
    told->kind = kind;
    told->value = object_clone(kind_info(kind)->schema, value);
    HASH_ADD_KEYPTR(hh, sim->told, told->key.ptr, told->key.len, told);
}

void stream_forget(struct sim *sim)
{
    struct told_object *told;
    struct told_object *next;
    HASH_ITER (hh, sim->told, told, next) {
        told_free(sim, told);
    }
}

static void tell(struct sim *sim, enum object_kind kind, void *value, bool is_deleted)
{
    struct object object = {.kind = kind, .value = value};
    if (sim->options.watch_fault != NULL) {
        told_set(sim, kind, value, is_deleted);
    }
    if (is_deleted) {
        driver_deleted(sim->driver, &object);
    } else {
        driver_object(sim->driver, &object);
    }
}

static void deliver(struct sim *sim, struct task *task)
{
    if (task->number == sim->stream[task->kind].number) {
        tell(sim, task->kind, task->value, task->ctx != NULL);
    }
}

static void add_delivery(struct sim *sim, const struct sim_object *object, bool is_deleted)
{
    struct sim_stream *stream = &sim->stream[object->kind];
    struct task *task = agenda_add(sim, stream->delivered_ms, deliver, STR_NONE);
    task->kind = object->kind;
    task->value = object_clone(kind_info(object->kind)->schema, object->value);
    task->number = stream->number;
    task->ctx = is_deleted ? sim : NULL;
}

void controller_deliver(struct sim *sim, const struct sim_object *object, bool is_deleted)
{
    if (sim->driver == NULL || sim->stream[object->kind].is_broken) {
        return; /* the list that follows has it */
    }
    struct sim_watch_fault fault = {0};
    if (sim->options.watch_fault != NULL) {
        sim->options.watch_fault(sim->options.ctx, object->kind, &fault);
    }
    struct sim_stream *stream = &sim->stream[object->kind];
    int64_t at_ms = sim_later(sim, sim->options.delays.watch_ms) + fault.late_ms;
    stream->delivered_ms = at_ms > stream->delivered_ms ? at_ms : stream->delivered_ms;
    add_delivery(sim, object, is_deleted);
    if (fault.is_twice) {
        add_delivery(sim, object, is_deleted);
    }
}

void stream_list(struct sim *sim, enum object_kind kind)
{
    sim->stream[kind].number = ++sim->last_stream;
    sim->stream[kind].is_broken = false;
    for (struct sim_object *item = api_first(sim, kind); item != NULL; item = api_next(item)) {
        tell(sim, kind, item->value, false);
    }
}

/* Those that were told and aren't there any more, as the last that was told of them. */
static void tell_gone(struct sim *sim, enum object_kind kind)
{
    struct told_object *told;
    struct told_object *next;
    HASH_ITER (hh, sim->told, told, next) {
        const struct object_meta *meta = told->value;
        struct str key = api_key(sim, meta->namespace_name, meta->name);
        const struct sim_object *now = told->kind == kind ? api_find(sim, kind, key) : NULL;
        bool is_same = now != NULL && str_eq(now->uid, meta->uid);
        if (told->kind == kind && !is_same) {
            void *value = object_clone(kind_info(kind)->schema, told->value);
            tell(sim, kind, value, true);
            mem_free(value);
        }
    }
}

static void list_afresh(struct sim *sim, struct task *task)
{
    if (task->number == sim->stream[task->kind].number) {
        tell_gone(sim, task->kind);
        stream_list(sim, task->kind);
    }
}

void sim_relist(struct sim *sim, enum object_kind kind, int64_t after_ms)
{
    assert(sim->options.watch_fault != NULL && "else nobody keeps what was told");
    if (sim->driver == NULL) {
        return;
    }
    /* What is on its way belongs to the stream that broke. */
    sim->stream[kind].number = ++sim->last_stream;
    struct task *task = agenda_add(sim, sim->now_ms + after_ms, list_afresh, STR_NONE);
    task->kind = kind;
    task->number = sim->stream[kind].number;
    sim->stream[kind].is_broken = true;
}
