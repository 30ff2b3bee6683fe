/* scenario.c - steps, and the API server's part. */
#define _GNU_SOURCE
#include "support/scenario_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

struct str make(struct scenario *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = NULL;
    int len = vasprintf(&text, format, args);
    va_end(args);
    assert_true(len >= 0);
    struct str copy = arena_copy_str(&s->arena, (struct str){text, (size_t)len});
    free(text);
    return copy;
}

/* -- the table of objects -----------------------------------------------------------------------
 */

static struct str table_key(struct scenario *s, enum object_kind kind, struct str key)
{
    return make(s, "%d:" STR_FMT, (int)kind, STR_ARG(key));
}

struct entry *entry_find_key(const struct scenario *s, enum object_kind kind, struct str key)
{
    char buffer[600];
    int len = snprintf(buffer, sizeof(buffer), "%d:" STR_FMT, (int)kind, STR_ARG(key));
    assert_true(len > 0 && (size_t)len < sizeof(buffer));
    struct entry *entry = NULL;
    HASH_FIND(hh, s->entries, buffer, (unsigned)len, entry);
    return entry;
}

struct entry *entry_find(const struct scenario *s, enum object_kind kind, const char *name)
{
    char buffer[560];
    bool is_whole = !kind_info(kind)->is_namespaced || strchr(name, '/') != NULL;
    int len = snprintf(buffer, sizeof(buffer), "%s%s", is_whole ? "" : NAMESPACE_DEFAULT "/", name);
    assert_true(len > 0 && (size_t)len < sizeof(buffer));
    return entry_find_key(s, kind, (struct str){buffer, (size_t)len});
}

struct entry *entry_need(struct scenario *s, enum object_kind kind, const char *name)
{
    struct entry *entry = entry_find(s, kind, name);
    if (entry == NULL) {
        fail_msg("the scenario has no %s %s", kind_info(kind)->name, name);
    }
    return entry;
}

void entry_touch(struct scenario *s, struct entry *entry)
{
    entry->value->resource_version = make(s, "%llu", (unsigned long long)++s->next_version);
}

struct entry *entry_put(struct scenario *s, enum object_kind kind, struct object_meta *value)
{
    bool is_namespaced = kind_info(kind)->is_namespaced;
    if (is_namespaced && !str_is_set(value->namespace_name)) {
        value->namespace_name = STR(NAMESPACE_DEFAULT);
    }
    struct str key = is_namespaced ? make(s, STR_FMT "/" STR_FMT, STR_ARG(value->namespace_name),
                                          STR_ARG(value->name))
                                   : value->name;
    struct entry *entry = entry_find_key(s, kind, key);
    if (entry == NULL) {
        entry = ARENA_NEW(&s->arena, struct entry);
        entry->kind = kind;
        entry->key = key;
        entry->table_key = table_key(s, kind, key);
        HASH_ADD_KEYPTR(hh, s->entries, entry->table_key.ptr, (unsigned)entry->table_key.len,
                        entry);
        entry->prev = s->last;
        *(s->last == NULL ? &s->first : &s->last->next) = entry;
        s->last = entry;
    } else if (!str_is_set(value->uid)) { /* given again: the same object, changed */
        value->uid = entry->value->uid;
        value->creation_timestamp = entry->value->creation_timestamp;
    }
    if (!str_is_set(value->uid)) {
        value->uid = make(s, "uid-%05u", ++s->next_uid);
    }
    if (!value->creation_timestamp.is_set) {
        value->creation_timestamp = (struct opt_time){true, s->now_ms / 1000 * 1000};
    }
    entry->value = value;
    entry_touch(s, entry);
    return entry;
}

void entry_drop(struct scenario *s, struct entry *entry)
{
    HASH_DEL(s->entries, entry);
    *(entry->prev == NULL ? &s->first : &entry->prev->next) = entry->next;
    *(entry->next == NULL ? &s->last : &entry->next->prev) = entry->prev;
}

/* -- steps --------------------------------------------------------------------------------------
 */

static void drain(struct scenario *s);

static void queue_effects(struct scenario *s, const struct effects *effects)
{
    bool is_most = effects->count > s->counts.most_effects;
    s->counts.most_effects = is_most ? effects->count : s->counts.most_effects;
    for (uint32_t i = 0; i < effects->count; i++) {
        struct queued_effect *queued = ARENA_NEW(&s->arena, struct queued_effect);
        queued->effect = effects->items[i];
        *s->queue_last = queued;
        s->queue_last = &queued->next;
        s->counts.effects++;
        if (queued->effect.kind == EFFECT_PATCH_JOB &&
            queued->effect.patch.purpose == PATCH_ADMIT && !s->is_cheap) {
            check_admission(s, &queued->effect);
        }
    }
}

static void step_core(struct scenario *s, struct event *event)
{
    event->now_ms = s->now_ms;
    struct effects effects = {.arena = &s->arena};
    struct err err;
    read_sets_of(s);
    struct rc rc = core_step(s->core, event, &effects, &err);
    if (rc_failed(rc)) {
        text_addf(&s->trace, "[%4lld] refused: %s\n", (long long)(s->now_ms - SCENARIO_START_MS),
                  err.text);
    }
    s->wake_ms = effects.wake_at_ms;
    struct core_cost cost = core_last_cost(s->core);
    s->counts.gangs_visited += cost.gangs_visited;
    s->counts.nodes_visited += cost.nodes_visited;
    s->counts.queues_ranked += cost.queues_ranked;
    s->counts.shapes_woken += cost.shapes_woken;
    s->counts.waiters_visited += cost.waiters_visited;
    s->counts.admitted += cost.gangs_admitted;
    bool is_costliest = cost.selector_cost > s->counts.most_selector_cost;
    s->counts.most_selector_cost = is_costliest ? cost.selector_cost : s->counts.most_selector_cost;
    if (!s->is_cheap) {
        core_assert_consistent(s->core);
    }
    queue_effects(s, &effects);
}

void step(struct scenario *s, struct event *event)
{
    step_core(s, event);
    if (event->more_follow) {
        return; /* answers come later than what follows at once */
    }
    while (s->wake_ms <= s->now_ms && scenarios_cut_at() > 0) {
        struct event tick = {.kind = EVENT_TICK};
        step_core(s, &tick); /* the rest of the pass */
    }
    drain(s);
}

void tell(struct scenario *s, struct entry *entry)
{
    if (!s->is_started) {
        return; /* it is listed when the controller starts */
    }
    struct event event = {.kind = EVENT_OBJECT, .object = {entry->kind, entry->value}};
    s->is_gathering ? gather(s, &event) : step(s, &event);
}

void tell_gone(struct scenario *s, struct entry *entry)
{
    entry_drop(s, entry);
    if (s->is_started) {
        struct event event = {.kind = EVENT_DELETED, .object = {entry->kind, entry->value}};
        s->is_gathering ? gather(s, &event) : step(s, &event);
    }
}

/* -- the API server -----------------------------------------------------------------------------
 */

void answer(struct scenario *s, const struct effect *effect, enum effect_outcome outcome,
            struct str version, struct str message)
{
    if (effect->id == 0) {
        return;
    }
    struct event event = {.kind = EVENT_EFFECT_DONE,
                          .done = {effect->id, outcome, version, message}};
    step(s, &event);
}

struct entry *target_of(const struct scenario *s, const struct effect *effect)
{
    char buffer[560];
    int len = snprintf(buffer, sizeof(buffer), STR_FMT "/" STR_FMT, STR_ARG(effect->namespace_name),
                       STR_ARG(effect->name));
    return entry_find_key(s, effect->object_kind, (struct str){buffer, (size_t)len});
}

/* Does the write with its guards, as the server would. */
static enum effect_outcome serve_job_patch(struct scenario *s, const struct effect *effect)
{
    struct entry *entry = target_of(s, effect);
    if (entry == NULL || !str_eq(entry->value->uid, effect->uid)) {
        return EFFECT_GONE;
    }
    if (!str_eq(entry->value->resource_version, effect->resource_version)) {
        return EFFECT_CONFLICT;
    }
    apply_patch(s, (struct job *)entry->value, &effect->patch);
    entry_touch(s, entry);
    return EFFECT_OK;
}

static void finish_job_patch(struct scenario *s, const struct effect *effect, bool is_shown)
{
    struct entry *entry = target_of(s, effect);
    enum effect_outcome outcome = serve_job_patch(s, effect);
    struct str version = outcome == EFFECT_OK ? entry->value->resource_version : STR_NONE;
    answer(s, effect, outcome, version, STR_NONE);
    if (outcome == EFFECT_OK && is_shown) {
        tell(s, entry);
    }
}

static void write_admission(struct scenario *s, const struct effect *effect)
{
    struct admission *admission = ARENA_NEW(&s->arena, struct admission);
    if (!core_admission_content(s->core, effect->uid, &s->arena, admission)) {
        answer(s, effect, EFFECT_OK, STR_NONE, STR_NONE);
        return;
    }
    s->counts.admission_writes++;
    if (s->are_admissions_refused) {
        answer(s, effect, EFFECT_REFUSED, STR_NONE, STR("exceeded quota"));
        return;
    }
    trace_admission(s, admission);
    char key[560];
    (void)snprintf(key, sizeof(key), STR_FMT "/" STR_FMT, STR_ARG(effect->namespace_name),
                   STR_ARG(effect->name));
    struct entry *before = entry_find(s, KIND_ADMISSION, key);
    if (before != NULL) {
        const struct admission *old = (const struct admission *)before->value;
        assert_true(str_eq(old->spec.job_uid, admission->spec.job_uid) &&
                    "another Job's Admission is never taken over");
    }
    struct entry *entry = entry_put(s, KIND_ADMISSION, &admission->meta);
    answer(s, effect, EFFECT_OK, STR_NONE, STR_NONE);
    tell(s, entry);
}

static void delete_admission(struct scenario *s, const struct effect *effect)
{
    trace_effect(s, effect);
    s->counts.admission_writes++;
    struct entry *entry = target_of(s, effect);
    if (entry != NULL && str_eq(entry->value->uid, effect->uid)) {
        tell_gone(s, entry);
    }
    answer(s, effect, EFFECT_OK, STR_NONE, STR_NONE);
}

static void write_status(struct scenario *s, const struct effect *effect)
{
    struct status_content content;
    if (core_status_content(s->core, effect->object_kind, effect->name, &s->arena, &content)) {
        s->counts.status_writes++;
        if (s->are_statuses_refused) {
            answer(s, effect, EFFECT_REFUSED, STR_NONE, STR("forbidden"));
            return;
        }
        struct entry *entry = entry_find_key(s, effect->object_kind, effect->name);
        if (entry != NULL && effect->object_kind == KIND_QUEUE) {
            ((struct queue *)entry->value)->status = content.queue.status;
            entry_touch(s, entry);
            tell(s, entry);
        } else if (entry != NULL && effect->object_kind == KIND_RESOURCE_FLAVOR) {
            ((struct resource_flavor *)entry->value)->status = content.flavor.status;
            entry_touch(s, entry);
            tell(s, entry);
        } else if (entry != NULL && effect->object_kind == KIND_COHORT) {
            ((struct cohort *)entry->value)->status = content.cohort.status;
            entry_touch(s, entry);
            tell(s, entry);
        }
    }
    answer(s, effect, EFFECT_OK, STR_NONE, STR_NONE);
}

static void set_finalizer(struct scenario *s, const struct effect *effect)
{
    struct entry *entry = entry_find_key(s, KIND_QUEUE, effect->name);
    if (entry == NULL || !str_eq(entry->value->resource_version, effect->resource_version)) {
        answer(s, effect, entry == NULL ? EFFECT_GONE : EFFECT_CONFLICT, STR_NONE, STR_NONE);
        return;
    }
    trace_effect(s, effect);
    struct str *items = ARENA_ARRAY(&s->arena, struct str, effect->finalizers.count + 1);
    for (uint32_t i = 0; i < effect->finalizers.count; i++) {
        items[i] = arena_copy_str(&s->arena, effect->finalizers.items[i]);
    }
    entry->value->finalizers = (struct str_list){items, effect->finalizers.count};
    entry_touch(s, entry);
    answer(s, effect, EFFECT_OK, STR_NONE, STR_NONE);
    if (entry->value->deletion_timestamp.is_set && entry->value->finalizers.count == 0) {
        tell_gone(s, entry);
    } else {
        tell(s, entry);
    }
}

static void mark_pod(struct scenario *s, const struct effect *effect)
{
    struct entry *entry = target_of(s, effect);
    if (entry != NULL && str_eq(entry->value->uid, effect->uid)) {
        set_mark(s, entry->value, &effect->patch);
        entry_touch(s, entry);
        tell(s, entry);
    }
}

static void serve(struct scenario *s, const struct effect *effect)
{
    switch (effect->kind) {
    case EFFECT_PATCH_JOB:
        s->counts.job_writes++;
        trace_effect(s, effect);
        if (s->is_manual) {
            struct entry *entry = target_of(s, effect);
            assert_non_null(entry);
            entry->pending_effect = effect->id;
            entry->effect = *effect;
        } else {
            finish_job_patch(s, effect, true);
        }
        break;
    case EFFECT_WRITE_ADMISSION:
        write_admission(s, effect);
        break;
    case EFFECT_DELETE_ADMISSION:
        delete_admission(s, effect);
        break;
    case EFFECT_RECORD_EVENT:
        if (core_event_is_told(s->core, effect->uid)) {
            s->counts.events++;
            trace_effect(s, effect);
        }
        break;
    case EFFECT_WRITE_STATUS:
        write_status(s, effect);
        break;
    case EFFECT_SET_FINALIZER:
        set_finalizer(s, effect);
        break;
    case EFFECT_MARK_POD:
        mark_pod(s, effect);
        break;
    case EFFECT_MAKE_REQUEST:
        trace_effect(s, effect);
        if (!s->are_requests_manual) {
            request_make(s, effect);
        } else {
            s->request_effect = *effect;
        }
        break;
    case EFFECT_DELETE_REQUEST:
        request_delete(s, effect);
        break;
    case EFFECT_PERSIST:
    case EFFECT_LEDGER:
        break;
    }
}

/* The driver's order: writes to Jobs, Admissions of gangs that were just admitted, the rest. */
static int rank_of(const struct effect *effect)
{
    if (effect->kind == EFFECT_PATCH_JOB) {
        return 0;
    }
    return effect->is_urgent ? 1 : 2;
}

static struct queued_effect *take_queued(struct scenario *s)
{
    struct queued_effect **best = NULL;
    for (struct queued_effect **link = &s->queue_first; *link != NULL; link = &(*link)->next) {
        if (best == NULL || rank_of(&(*link)->effect) < rank_of(&(*best)->effect)) {
            best = link;
        }
        if (rank_of(&(*best)->effect) == 0) {
            break;
        }
    }
    struct queued_effect *taken = *best;
    *best = taken->next;
    if (taken->next == NULL) {
        s->queue_last = best;
    }
    return taken;
}

static void drain(struct scenario *s)
{
    if (s->is_draining) {
        return;
    }
    s->is_draining = true;
    while (s->queue_first != NULL) {
        serve(s, &take_queued(s)->effect);
    }
    s->is_draining = false;
}

/* -- manual answers -----------------------------------------------------------------------------
 */

void writes_are_manual(struct scenario *s, bool is_manual)
{
    s->is_manual = is_manual;
}

static struct effect take_pending(struct scenario *s, const char *job)
{
    struct entry *entry = entry_need(s, KIND_JOB, job);
    if (entry->pending_effect == 0) {
        fail_msg("no write to Job %s is out", job);
    }
    entry->pending_effect = 0;
    return entry->effect;
}

bool write_is_out(const struct scenario *s, const char *job)
{
    struct entry *entry = entry_find(s, KIND_JOB, job);
    return entry != NULL && entry->pending_effect != 0;
}

void write_ok(struct scenario *s, const char *job, bool is_shown)
{
    struct effect effect = take_pending(s, job);
    finish_job_patch(s, &effect, is_shown);
}

void job_shown(struct scenario *s, const char *job)
{
    tell(s, entry_need(s, KIND_JOB, job));
}

void admissions_are_refused(struct scenario *s, bool are_refused)
{
    s->are_admissions_refused = are_refused;
}

void statuses_are_refused(struct scenario *s, bool are_refused)
{
    s->are_statuses_refused = are_refused;
}

void write_conflict(struct scenario *s, const char *job)
{
    struct effect effect = take_pending(s, job);
    answer(s, &effect, EFFECT_CONFLICT, STR_NONE, STR_NONE);
}

void write_refused(struct scenario *s, const char *job, const char *message)
{
    struct effect effect = take_pending(s, job);
    answer(s, &effect, EFFECT_REFUSED, STR_NONE, str_from_c(message));
}

void write_gone(struct scenario *s, const char *job)
{
    struct effect effect = take_pending(s, job);
    answer(s, &effect, EFFECT_GONE, STR_NONE, STR_NONE);
}
