/* bulk.c - the bulk simulator's life and its clock. */
#include "bulk_internal.h"

#include <assert.h>

#include "tallyman/api/codec.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

struct bulk *bulk_new(const struct bulk_options *options)
{
    struct bulk *bulk = MEM_NEW(struct bulk);
    bulk->options = *options;
    bulk->wake_at_ms = INT64_MAX;
    bulk->unfinished = options->gang_count;
    bulk->gangs =
        mem_zalloc(mem_array_bytes((size_t)options->gang_count + 1, sizeof(*bulk->gangs)));
    for (uint32_t i = 1; i < options->gang_count; i++) {
        assert(options->gangs[i - 1].submit_ms <= options->gangs[i].submit_ms);
    }
    bulk_ports_open(bulk);
    return bulk;
}

void bulk_free(struct bulk *bulk)
{
    if (bulk == NULL) {
        return;
    }
    driver_free(bulk->driver);
    core_free(bulk->core);
    for (uint32_t i = 0; i < bulk->options.gang_count; i++) {
        struct bulk_gang_state *state = &bulk->gangs[i];
        mem_free((void *)(uintptr_t)state->record.ptr);
        mem_free((void *)(uintptr_t)state->suspended.ptr);
        mem_free(state->spec);
        mem_free(state->nodes);
    }
    for (uint32_t i = 0; i < bulk->node_count; i++) {
        mem_free(bulk->nodes[i].object);
    }
    mem_free(bulk->gangs);
    mem_free(bulk->nodes);
    mem_free(bulk->free_lists);
    mem_free(bulk->due);
    mem_free(bulk->writes);
    mem_free(bulk->echoes);
    mem_free(bulk->unplaced);
    mem_free(bulk);
}

/* -- what is due ----------------------------------------------------------------------------------
 */

static bool due_before(const struct bulk_due *a, const struct bulk_due *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->sequence < b->sequence;
}

void bulk_note_due(struct bulk *bulk, struct bulk_due due)
{
    due.sequence = bulk->next_sequence++;
    bulk->due = mem_grow(bulk->due, bulk->due_count, &bulk->due_capacity, sizeof(*bulk->due));
    uint32_t at = bulk->due_count++;
    while (at > 0 && due_before(&due, &bulk->due[(at - 1) / 2])) {
        bulk->due[at] = bulk->due[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    bulk->due[at] = due;
}

static struct bulk_due due_take(struct bulk *bulk)
{
    struct bulk_due first = bulk->due[0];
    struct bulk_due last = bulk->due[--bulk->due_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = at * 2 + 1;
        if (child >= bulk->due_count) {
            break;
        }
        if (child + 1 < bulk->due_count && due_before(&bulk->due[child + 1], &bulk->due[child])) {
            child++;
        }
        if (!due_before(&bulk->due[child], &last)) {
            break;
        }
        bulk->due[at] = bulk->due[child];
        at = child;
    }
    bulk->due[at] = last;
    return first;
}

/* -- what is told ---------------------------------------------------------------------------------
 */

void bulk_tell(struct bulk *bulk, const struct bulk_note *note)
{
    if (bulk->options.on_note != NULL) {
        struct bulk_note told = *note;
        told.at_ms = bulk->now_ms;
        bulk->options.on_note(bulk->options.ctx, &told);
    }
}

void bulk_tell_capacity(struct bulk *bulk)
{
    int64_t units = 0;
    for (uint32_t i = 0; i < bulk->node_count; i++) {
        units = sat_add(units, bulk->nodes[i].is_ready ? bulk->nodes[i].units : 0);
    }
    if (bulk->options.on_capacity != NULL) {
        bulk->options.on_capacity(bulk->options.ctx, bulk->now_ms, units);
    }
}

/* -- the cluster ----------------------------------------------------------------------------------
 */

static void keep_node(struct bulk *bulk, const struct node *object)
{
    bulk->nodes =
        mem_grow(bulk->nodes, bulk->node_count, &bulk->node_capacity, sizeof(*bulk->nodes));
    struct bulk_node *node = &bulk->nodes[bulk->node_count++];
    bool has_ready = condition_find(&object->status.conditions, "Ready") != NULL;
    *node = (struct bulk_node){
        .object = object_clone(kind_info(KIND_NODE)->schema, object),
        .units = bulk_node_units(bulk, object),
        .is_ready = (!has_ready || condition_is_true(&object->status.conditions, "Ready")) &&
                    !(object->spec.unschedulable.is_set && object->spec.unschedulable.value),
        .next = BULK_NO_NODE,
        .previous = BULK_NO_NODE};
}

struct rc bulk_load(struct bulk *bulk, const struct object *object, struct err *err)
{
    assert(!bulk->is_started && "objects come before time passes");
    if (object->kind == KIND_JOB || object->kind == KIND_POD) {
        return err_set(err, RC_INVALID, "%s " STR_FMT ": a load or a trace brings the jobs itself",
                       kind_info(object->kind)->name, STR_ARG(object->value->name));
    }
    struct event event = {.kind = EVENT_OBJECT,
                          .object = *object,
                          .now_ms = bulk->options.start_ms,
                          .more_follow = true};
    if (bulk->options.on_event != NULL) {
        bulk->options.on_event(bulk->options.ctx, &event);
    }
    /* Straight to the core: nothing is decided yet, and a refusal is the caller's to tell. */
    struct arena arena;
    arena_init(&arena);
    struct effects effects = {.arena = &arena};
    struct rc rc = core_step(bulk->core, &event, &effects, err);
    arena_deinit(&arena);
    if (!rc_failed(rc) && object->kind == KIND_NODE) {
        keep_node(bulk, (const struct node *)(const void *)object->value);
    }
    return rc;
}

bool bulk_node_at(struct bulk *bulk, int64_t at_ms, struct str node, enum bulk_node_change change,
                  int64_t units)
{
    for (uint32_t i = 0; i < bulk->node_count; i++) {
        if (str_eq(bulk->nodes[i].object->meta.name, node)) {
            bulk_note_due(bulk, (struct bulk_due){.at_ms = at_ms,
                                                  .kind = DUE_NODE,
                                                  .index = i,
                                                  .change = change,
                                                  .units = units});
            return true;
        }
    }
    return false;
}

/* -- time -----------------------------------------------------------------------------------------
 */

static void start(struct bulk *bulk)
{
    bulk->is_started = true;
    bulk_nodes_link(bulk);
    bulk_tell_capacity(bulk);
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        driver_synced(bulk->driver, (enum object_kind)kind, false);
    }
}

static int64_t next_ms(const struct bulk *bulk)
{
    int64_t at_ms = bulk->due_count > 0 ? bulk->due[0].at_ms : INT64_MAX;
    if (bulk->next_gang < bulk->options.gang_count &&
        bulk->options.gangs[bulk->next_gang].submit_ms < at_ms) {
        at_ms = bulk->options.gangs[bulk->next_gang].submit_ms;
    }
    if (bulk->wake_at_ms != INT64_MAX) {
        int64_t wake_ms = bulk->wake_at_ms - bulk->options.start_ms;
        wake_ms = wake_ms > bulk->now_ms ? wake_ms : bulk->now_ms;
        at_ms = wake_ms < at_ms ? wake_ms : at_ms;
    }
    return at_ms;
}

/* Nobody works, nobody comes and no node changes. What the core's own clock brings (a gang that
 * isn't whole is stopped and tried again) may let another gang start, but can go round for ever. */
static void count_idle(struct bulk *bulk)
{
    bool is_idle = bulk->due_count == 0 && bulk->next_gang == bulk->options.gang_count;
    bulk->idle_moments = is_idle ? bulk->idle_moments + 1 : 0;
}

static void take_due(struct bulk *bulk)
{
    while (bulk->due_count > 0 && bulk->due[0].at_ms <= bulk->now_ms) {
        struct bulk_due due = due_take(bulk);
        if (due.kind == DUE_NODE) {
            bulk_node_change(bulk, &due);
        } else if (bulk->gangs[due.index].attempt == due.attempt) {
            bulk_gang_end(bulk, due.index);
        }
    }
    while (bulk->next_gang < bulk->options.gang_count &&
           bulk->options.gangs[bulk->next_gang].submit_ms <= bulk->now_ms) {
        bulk_gang_submit(bulk, bulk->next_gang++);
    }
}

static void place_unplaced(struct bulk *bulk)
{
    if (!bulk->has_room_come) {
        return;
    }
    bulk->has_room_come = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < bulk->unplaced_count; i++) {
        uint32_t gang = bulk->unplaced[i];
        if (bulk->gangs[gang].state == BULK_UNPLACED && !bulk_gang_place(bulk, gang)) {
            bulk->unplaced[kept++] = gang;
        }
    }
    bulk->unplaced_count = kept;
}

/* The core decides, its writes are answered and shown, until it asks for nothing more. */
static void settle(struct bulk *bulk)
{
    uint32_t rounds = 0;
    bool has_news = true;
    while (has_news) {
        assert(rounds++ < SIM_TASKS_AT_ONCE_MAX && "something goes round without time passing");
        place_unplaced(bulk);
        driver_tick(bulk->driver);
        while (bulk_writes_answer(bulk)) {
        }
        has_news = bulk->echo_count > 0;
        for (uint32_t i = 0; i < bulk->echo_count; i++) {
            bulk_gang_echo(bulk, bulk->echoes[i]);
        }
        bulk->echo_count = 0;
    }
}

bool bulk_run(struct bulk *bulk, int64_t until_ms, uint32_t moments)
{
    if (!bulk->is_started) {
        start(bulk);
        settle(bulk);
    }
    for (uint32_t i = 0; i < moments && bulk->unfinished > 0; i++) {
        int64_t at_ms = next_ms(bulk);
        if (at_ms > until_ms || bulk_is_stuck(bulk)) {
            return false;
        }
        bulk->now_ms = at_ms;
        take_due(bulk);
        settle(bulk);
        count_idle(bulk);
    }
    return bulk->unfinished > 0 && next_ms(bulk) <= until_ms && !bulk_is_stuck(bulk);
}

int64_t bulk_now_ms(const struct bulk *bulk)
{
    return bulk->now_ms;
}

bool bulk_is_stuck(const struct bulk *bulk)
{
    return bulk->unfinished > 0 &&
           (next_ms(bulk) == INT64_MAX || bulk->idle_moments >= SIM_IDLE_MOMENTS_MAX);
}

uint32_t bulk_unfinished(const struct bulk *bulk)
{
    return bulk->unfinished;
}

struct core *bulk_core(const struct bulk *bulk)
{
    return bulk->core;
}
