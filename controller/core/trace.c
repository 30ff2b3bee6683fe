/* trace.c - who was looked at, in which order, and what came of it. */
#include "trace.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

struct trace {
    struct arena arena; /* of one step */
    struct look *looks; /* in the arena */
    uint32_t count;
    uint32_t capacity;
    uint32_t left_out;
};

struct trace *trace_new(void)
{
    struct trace *trace = MEM_NEW(struct trace);
    arena_init(&trace->arena);
    return trace;
}

void trace_free(struct trace *trace)
{
    if (trace != NULL) {
        arena_deinit(&trace->arena);
        mem_free(trace);
    }
}

void trace_begin(struct trace *trace)
{
    if (trace == NULL) {
        return;
    }
    arena_reset(&trace->arena);
    trace->looks = NULL;
    trace->count = trace->capacity = trace->left_out = 0;
}

void trace_look(struct core *core, const struct gang *gang, enum look_result result,
                const struct verdict *verdict)
{
    struct trace *trace = core->trace;
    if (trace == NULL) {
        return;
    }
    if (trace->count == LOOKS_MAX) {
        trace->left_out++;
        return;
    }
    trace->looks = arena_grow(&trace->arena, trace->looks, trace->count, &trace->capacity,
                              sizeof(*trace->looks));
    struct look *look = &trace->looks[trace->count++];
    *look = (struct look){.namespace_name = arena_copy_str(&trace->arena, gang->namespace_name),
                          .name = arena_copy_str(&trace->arena, gang->name),
                          .queue = arena_copy_str(&trace->arena, gang->shape->queue->name),
                          .result = result};
    if (verdict != NULL) {
        look->reason = verdict->reason;
        look->message = arena_copy_str(&trace->arena, verdict->message);
    }
}

struct look_list core_last_looks(const struct core *core)
{
    const struct trace *trace = core->trace;
    return trace == NULL ? (struct look_list){.items = NULL}
                         : (struct look_list){trace->looks, trace->count, trace->left_out};
}
