/* driver.c - queues of writes in front of the ports, and the loop between core and ports. */
#include "tallyman/driver/driver.h"

#include <assert.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "window.h"
#include "write_queue.h"

enum { QUEUE_JOB, QUEUE_URGENT, QUEUE_OTHER, QUEUE_COUNT };

struct driver {
    struct core *core;
    struct driver_ports ports;
    struct driver_stats stats;
    struct arena effects_arena;
    struct write_queue queues[QUEUE_COUNT];
    struct write_queue delayed; /* waits for its next try */
    struct pending_write *in_flight;
    uint32_t jobs_in_flight;
    uint32_t others_in_flight;
    struct window job_window, other_window; /* so many may be */
    uint64_t next_id;
    int64_t core_wake_ms;
    bool is_stepping;
};

struct driver *driver_new(struct core *core, const struct driver_ports *ports)
{
    struct driver *driver = MEM_NEW(struct driver);
    driver->core = core;
    driver->ports = *ports;
    window_init(&driver->job_window, JOB_WRITES_IN_FLIGHT_MIN, JOB_WRITES_IN_FLIGHT_MAX);
    window_init(&driver->other_window, ADMISSION_WRITES_IN_FLIGHT_MIN,
                ADMISSION_WRITES_IN_FLIGHT_MAX);
    driver->core_wake_ms = INT64_MAX;
    arena_init(&driver->effects_arena);
    for (int i = 0; i < QUEUE_COUNT; i++) {
        queue_init(&driver->queues[i]);
    }
    queue_init(&driver->delayed);
    return driver;
}

static void write_free(struct pending_write *write)
{
    arena_deinit(&write->arena);
    mem_free(write);
}

void driver_free(struct driver *driver)
{
    if (driver == NULL) {
        return;
    }
    struct pending_write *write;
    for (int i = 0; i < QUEUE_COUNT; i++) {
        while ((write = queue_pop(&driver->queues[i])) != NULL) {
            write_free(write);
        }
    }
    while ((write = queue_pop(&driver->delayed)) != NULL) {
        write_free(write);
    }
    struct pending_write *next;
    HASH_ITER (hh, driver->in_flight, write, next) {
        HASH_DEL(driver->in_flight, write);
        write_free(write);
    }
    arena_deinit(&driver->effects_arena);
    mem_free(driver);
}

/* -- effects to writes ------------------------------------------------------------------------ */

static void copy_map(struct arena *arena, struct string_map *map)
{
    struct string_pair *pairs = map->items;
    map->items = ARENA_ARRAY(arena, struct string_pair, map->count + 1);
    for (uint32_t i = 0; i < map->count; i++) {
        map->items[i].key = arena_copy_str(arena, pairs[i].key);
        map->items[i].value = arena_copy_str(arena, pairs[i].value);
    }
}

static void copy_template(struct arena *arena, struct template_patch *patch)
{
    patch->pod_set = arena_copy_str(arena, patch->pod_set);
    copy_map(arena, &patch->node_selector);
    copy_map(arena, &patch->annotations);
    struct toleration *tolerations = patch->tolerations.items;
    patch->tolerations.items = ARENA_ARRAY(arena, struct toleration, patch->tolerations.count + 1);
    for (uint32_t i = 0; i < patch->tolerations.count; i++) {
        struct toleration *copy = &patch->tolerations.items[i];
        *copy = tolerations[i];
        copy->key = arena_copy_str(arena, tolerations[i].key);
        copy->op = arena_copy_str(arena, tolerations[i].op);
        copy->value = arena_copy_str(arena, tolerations[i].value);
        copy->effect = arena_copy_str(arena, tolerations[i].effect);
    }
}

static void copy_patch(struct arena *arena, struct job_patch *patch)
{
    patch->queue_label = arena_copy_str(arena, patch->queue_label);
    patch->record = arena_copy_str(arena, patch->record);
    patch->suspended = arena_copy_str(arena, patch->suspended);
    patch->provisioning_attempt = arena_copy_str(arena, patch->provisioning_attempt);
    patch->checkpoint_request = arena_copy_str(arena, patch->checkpoint_request);
    patch->checkpoint_for = arena_copy_str(arena, patch->checkpoint_for);
    struct template_patch *templates = patch->templates;
    patch->templates = ARENA_ARRAY(arena, struct template_patch, patch->template_count + 1);
    for (uint32_t i = 0; i < patch->template_count; i++) {
        patch->templates[i] = templates[i];
        copy_template(arena, &patch->templates[i]);
    }
}

static struct str_list copy_strings(struct arena *arena, const struct str_list *from)
{
    struct str_list copy = {.items = ARENA_ARRAY(arena, struct str, from->count + 1),
                            .count = from->count};
    for (uint32_t i = 0; i < from->count; i++) {
        copy.items[i] = arena_copy_str(arena, from->items[i]);
    }
    return copy;
}

static struct pending_write *write_new(struct driver *driver, const struct effect *effect)
{
    struct pending_write *write = MEM_NEW(struct pending_write);
    arena_init_small(&write->arena, WRITE_ARENA_FIRST_BYTES);
    write->id = ++driver->next_id;
    write->effect = *effect;
    write->is_job = effect->kind == EFFECT_PATCH_JOB;
    struct effect *copy = &write->effect;
    copy->namespace_name = arena_copy_str(&write->arena, effect->namespace_name);
    copy->name = arena_copy_str(&write->arena, effect->name);
    copy->uid = arena_copy_str(&write->arena, effect->uid);
    copy->resource_version = arena_copy_str(&write->arena, effect->resource_version);
    copy->note.text = arena_copy_str(&write->arena, effect->note.text);
    if (write->is_job || effect->kind == EFFECT_MARK_POD) {
        copy_patch(&write->arena, &copy->patch);
    } else if (effect->kind == EFFECT_SET_FINALIZER) {
        copy->finalizers = copy_strings(&write->arena, &effect->finalizers);
    }
    return write;
}

static void count_write(struct driver *driver, const struct effect *effect)
{
    switch (effect->kind) {
    case EFFECT_PATCH_JOB:
        driver->stats.job_writes++;
        driver->stats.admitted += effect->patch.purpose == PATCH_ADMIT ? 1 : 0;
        driver->stats.suspended += effect->patch.purpose == PATCH_SUSPEND ? 1 : 0;
        break;
    case EFFECT_WRITE_ADMISSION:
    case EFFECT_DELETE_ADMISSION:
        driver->stats.admission_writes++;
        break;
    case EFFECT_RECORD_EVENT:
        driver->stats.events_recorded++;
        break;
    case EFFECT_WRITE_STATUS:
    case EFFECT_SET_FINALIZER:
        driver->stats.status_writes++;
        break;
    case EFFECT_MARK_POD:
        driver->stats.pod_writes++;
        break;
    case EFFECT_MAKE_REQUEST:
    case EFFECT_DELETE_REQUEST:
        driver->stats.request_writes++;
        break;
    case EFFECT_PERSIST:
    case EFFECT_LEDGER:
        break;
    }
}

static void take_effect(struct driver *driver, const struct effect *effect)
{
    if (effect->kind == EFFECT_PERSIST) {
        if (driver->ports.persist != NULL) {
            driver->ports.persist(driver->ports.ctx, effect->uid, &effect->memory);
        }
        return;
    }
    if (effect->kind == EFFECT_LEDGER) {
        if (driver->ports.ledger != NULL) {
            driver->ports.ledger(driver->ports.ctx, effect);
        }
        return;
    }
    struct pending_write *write = write_new(driver, effect);
    int queue = write->is_job ? QUEUE_JOB : effect->is_urgent ? QUEUE_URGENT : QUEUE_OTHER;
    queue_push(&driver->queues[queue], write);
}

/* -- steps ------------------------------------------------------------------------------------ */

static void set_wake(struct driver *driver)
{
    int64_t at_ms = driver->core_wake_ms;
    for (struct pending_write *write = driver->delayed.first; write != NULL; write = write->next) {
        at_ms = write->not_before_ms < at_ms ? write->not_before_ms : at_ms;
    }
    driver->ports.wake_at(driver->ports.ctx, at_ms);
}

static void step(struct driver *driver, struct event *event)
{
    assert(!driver->is_stepping && "ports never call back from inside");
    driver->is_stepping = true;
    event->now_ms = driver->ports.now_ms(driver->ports.ctx);
    driver->stats.events++;
    if (driver->ports.on_event != NULL) {
        driver->ports.on_event(driver->ports.ctx, event);
    }
    arena_reset(&driver->effects_arena);
    struct effects effects = {.arena = &driver->effects_arena};
    struct err err;
    if (rc_failed(core_step(driver->core, event, &effects, &err)) &&
        driver->ports.on_refused != NULL) {
        driver->ports.on_refused(driver->ports.ctx, event, &err);
    }
    driver->core_wake_ms = effects.wake_at_ms;
    if (driver->ports.on_effects != NULL) {
        driver->ports.on_effects(driver->ports.ctx, event, &effects);
    }
    for (uint32_t i = 0; i < effects.count; i++) {
        take_effect(driver, &effects.items[i]);
    }
    driver->is_stepping = false;
}

static void answer_core(struct driver *driver, const struct pending_write *write,
                        enum effect_outcome outcome, const struct driver_answer *answer)
{
    if (write->effect.id == 0) {
        return;
    }
    struct event event = {.kind = EVENT_EFFECT_DONE,
                          .done = {.effect_id = write->effect.id, .outcome = outcome}};
    if (answer != NULL) {
        event.done.resource_version = answer->resource_version;
        event.done.message = answer->message;
    }
    step(driver, &event);
}

/* Asks the core what to say now; false: there is nothing to say any more. */
static bool fill_content(struct driver *driver, struct pending_write *write)
{
    if (write->effect.kind == EFFECT_WRITE_ADMISSION) {
        write->admission = ARENA_NEW(&write->arena, struct admission);
        return core_admission_content(driver->core, write->effect.uid, &write->arena,
                                      write->admission);
    }
    if (write->effect.kind == EFFECT_WRITE_STATUS) {
        write->status = ARENA_NEW(&write->arena, struct status_content);
        return core_status_content(driver->core, write->effect.object_kind, write->effect.name,
                                   &write->arena, write->status);
    }
    if (write->effect.kind == EFFECT_RECORD_EVENT) {
        return core_event_is_told(driver->core, write->effect.uid);
    }
    if (write->effect.kind == EFFECT_MAKE_REQUEST) {
        write->request = ARENA_NEW(&write->arena, struct request_content);
        return core_request_content(driver->core, write->effect.uid, &write->arena, write->request);
    }
    return true;
}

static void send(struct driver *driver, struct pending_write *write)
{
    HASH_ADD(hh, driver->in_flight, id, sizeof(write->id), write);
    driver->jobs_in_flight += write->is_job ? 1 : 0;
    driver->others_in_flight += write->is_job ? 0 : 1;
    count_write(driver, &write->effect);
    struct driver_write out = {.id = write->id,
                               .effect = &write->effect,
                               .admission = write->admission,
                               .status = write->status,
                               .request = write->request,
                               .at_ms = driver->ports.now_ms(driver->ports.ctx)};
    write->sent_ms = out.at_ms;
    driver->ports.write(driver->ports.ctx, &out);
}

static struct pending_write *next_write(struct driver *driver)
{
    if (driver->jobs_in_flight < driver->job_window.allowed &&
        driver->queues[QUEUE_JOB].count > 0) {
        return queue_pop(&driver->queues[QUEUE_JOB]);
    }
    if (driver->queues[QUEUE_JOB].count > 0 ||
        driver->others_in_flight >= driver->other_window.allowed) {
        return NULL;
    }
    struct pending_write *write = queue_pop(&driver->queues[QUEUE_URGENT]);
    return write != NULL ? write : queue_pop(&driver->queues[QUEUE_OTHER]);
}

static void pump(struct driver *driver)
{
    struct pending_write *write;
    while ((write = next_write(driver)) != NULL) {
        if (write->tries == 0 && !fill_content(driver, write)) {
            answer_core(driver, write, EFFECT_OK, NULL);
            write_free(write);
            continue;
        }
        send(driver, write);
    }
    driver->stats.job_writes_waiting = driver->queues[QUEUE_JOB].count;
    driver->stats.other_writes_waiting =
        driver->queues[QUEUE_URGENT].count + driver->queues[QUEUE_OTHER].count;
    set_wake(driver);
}

/* -- what the outside tells ------------------------------------------------------------------- */

void driver_object(struct driver *driver, const struct object *object)
{
    struct event event = {.kind = EVENT_OBJECT, .object = *object};
    step(driver, &event);
    pump(driver);
}

void driver_deleted(struct driver *driver, const struct object *object)
{
    struct event event = {.kind = EVENT_DELETED, .object = *object};
    step(driver, &event);
    pump(driver);
}

void driver_take_in(struct driver *driver, const struct object *object, bool is_deleted)
{
    struct event event = {
        .kind = is_deleted ? EVENT_DELETED : EVENT_OBJECT, .object = *object, .more_follow = true};
    step(driver, &event);
}

void driver_synced(struct driver *driver, enum object_kind kind, bool is_absent)
{
    struct event event = {.kind = EVENT_SYNCED, .synced_kind = kind, .is_absent = is_absent};
    step(driver, &event);
    pump(driver);
}

/* Writes whose pause is over go back to the head of the line they came from. */
static void retry_due(struct driver *driver)
{
    int64_t now_ms = driver->ports.now_ms(driver->ports.ctx);
    uint32_t count = driver->delayed.count;
    for (uint32_t i = 0; i < count; i++) {
        struct pending_write *write = queue_pop(&driver->delayed);
        if (write->not_before_ms > now_ms) {
            queue_push(&driver->delayed, write);
        } else {
            queue_push(&driver->queues[write->is_job ? QUEUE_JOB : QUEUE_OTHER], write);
        }
    }
}

void driver_tick(struct driver *driver)
{
    retry_due(driver);
    struct event event = {.kind = EVENT_TICK};
    step(driver, &event);
    pump(driver);
}

static int64_t retry_delay_ms(const struct pending_write *write, const struct driver_answer *answer)
{
    const int64_t max_ms = write->is_job ? WRITE_JOB_RETRY_MAX_MS : WRITE_RETRY_MAX_MS;
    int64_t delay_ms = WRITE_RETRY_BASE_MS;
    for (uint32_t i = 1; i < write->tries && delay_ms < max_ms; i++) {
        delay_ms *= 2;
    }
    delay_ms = delay_ms < max_ms ? delay_ms : max_ms;
    return answer->retry_after_ms > delay_ms ? answer->retry_after_ms : delay_ms;
}

/* A Job's write is sent until it gets an answer; others are given up after a while, and the core
 * writes them anew. */
static bool tries_again(struct driver *driver, struct pending_write *write,
                        const struct driver_answer *answer)
{
    write->tries++;
    write->is_in_doubt =
        write->is_in_doubt || (answer->outcome == WRITE_RETRY && !answer->is_overloaded);
    if (!write->is_job && write->tries >= WRITE_RETRIES_MAX) {
        return false;
    }
    driver->stats.retries++;
    write->not_before_ms = driver->ports.now_ms(driver->ports.ctx) + retry_delay_ms(write, answer);
    queue_push(&driver->delayed, write);
    return true;
}

/* What is refused after a try without an answer may have been carried out by that one. Only the
 * watch can tell. */
static enum effect_outcome outcome_of(const struct pending_write *write, enum write_outcome outcome)
{
    if (write->is_job && write->is_in_doubt && outcome != WRITE_OK && outcome != WRITE_GONE) {
        return EFFECT_CONFLICT;
    }
    switch (outcome) {
    case WRITE_OK:
        return EFFECT_OK;
    case WRITE_CONFLICT:
        return EFFECT_CONFLICT;
    case WRITE_GONE:
        return EFFECT_GONE;
    case WRITE_REFUSED:
    case WRITE_DENIED:
    case WRITE_RETRY:
        return EFFECT_REFUSED;
    }
    return EFFECT_REFUSED;
}

static bool is_unsettled(const struct pending_write *write, const struct driver_answer *answer)
{
    return answer->outcome == WRITE_RETRY ||
           (answer->outcome == WRITE_DENIED && write->denials < WRITE_DENIED_TRIES_MAX);
}

void driver_write_done(struct driver *driver, uint64_t id, const struct driver_answer *answer)
{
    struct pending_write *write = NULL;
    HASH_FIND(hh, driver->in_flight, &id, sizeof(id), write);
    assert(write != NULL && "one answer per write");
    HASH_DEL(driver->in_flight, write);
    driver->jobs_in_flight -= write->is_job ? 1 : 0;
    driver->others_in_flight -= write->is_job ? 0 : 1;
    window_answered(write->is_job ? &driver->job_window : &driver->other_window, write->sent_ms,
                    driver->ports.now_ms(driver->ports.ctx), answer->outcome == WRITE_RETRY);
    write->denials += answer->outcome == WRITE_DENIED ? 1 : 0;
    if (is_unsettled(write, answer) && tries_again(driver, write, answer)) {
        pump(driver);
        return;
    }
    answer_core(driver, write, outcome_of(write, answer->outcome), answer);
    write_free(write);
    pump(driver);
}

bool driver_is_idle(const struct driver *driver)
{
    uint32_t waiting = driver->delayed.count;
    for (int i = 0; i < QUEUE_COUNT; i++) {
        waiting += driver->queues[i].count;
    }
    return waiting == 0 && driver->in_flight == NULL;
}

const struct driver_stats *driver_stats(const struct driver *driver)
{
    return &driver->stats;
}
