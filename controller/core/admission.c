/* admission.c - what a gang's Admission says, and when it has to be said again. */
#include "gang_walk.h"
#include "ghost.h"
#include "pace.h"
#include "readiness.h"

#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"
#include "tallyman/base/time_text.h"

void admission_ask(struct core *core, struct gang *gang)
{
    struct effect *effect = effect_new(core, EFFECT_WRITE_ADMISSION);
    effect->id = ADMISSION_ID_BIT | ++core->next_admission_id;
    struct arena *arena = core->out->arena;
    effect->object_kind = KIND_ADMISSION;
    effect->namespace_name = arena_copy_str(arena, gang->namespace_name);
    effect->name = arena_copy_str(arena, gang->name);
    effect->uid = arena_copy_str(arena, gang->uid);
    effect->is_urgent = gang->state == GANG_ADMITTED;
    gang->admission_effect_id = effect->id;
}

int64_t gang_position(const struct gang *gang)
{
    if (!gang->is_in_queue) {
        return 0;
    }
    return (int64_t)gang_line_ahead(&gang->queue->pending, gang, POSITION_EXACT_MAX) + 1;
}

/* -- the object ------------------------------------------------------------------------------- */

static struct opt_time seconds(int64_t ms)
{
    return (struct opt_time){ms > 0, ms / 1000 * 1000};
}

static struct condition *add_condition(struct condition_list *list, const char *type, bool is_true,
                                       struct str reason, struct str message, int64_t since_ms)
{
    struct condition *condition = &list->items[list->count++];
    *condition = (struct condition){.type = str_from_c(type),
                                    .status = str_from_c(is_true ? "True" : "False"),
                                    .reason = reason,
                                    .message = str_is_set(message) ? message : STR(""),
                                    .last_transition_time = seconds(since_ms)};
    return condition;
}

static void fill_conditions(const struct gang *gang, struct arena *arena,
                            const struct admission_status *status, struct condition_list *list)
{
    list->items = ARENA_ARRAY(arena, struct condition, 3);
    bool is_admitted = gang->state == GANG_ADMITTED || gang->state == GANG_RUNNING;
    struct str reason = str_is_empty(status->reason) ? status->state : status->reason;
    (void)add_condition(list, "Admitted", is_admitted, is_admitted ? STR("Admitted") : reason,
                        is_admitted ? STR("") : status->message,
                        is_admitted ? gang->admitted_ms : gang->reason_since_ms);
    if (is_admitted) {
        int64_t short_ms = gang->state == GANG_RUNNING ? gang->run->short_since_ms : 0;
        struct str how = gang->state == GANG_RUNNING ? STR("Whole") : STR("Starting");
        (void)add_condition(list, CONDITION_PODS_READY,
                            gang->state == GANG_RUNNING && short_ms == 0,
                            short_ms == 0 ? how : STR(REASON_SHORT), STR(""),
                            short_ms == 0 ? gang->reason_since_ms : short_ms);
    }
}

static void fill_position(const struct gang *gang, struct arena *arena,
                          struct admission_status *status)
{
    int64_t position = gang_position(gang);
    if (position == 0) {
        return;
    }
    if (position > POSITION_EXACT_MAX) {
        status->pos = arena_format(arena, ">%d", POSITION_EXACT_MAX);
        return;
    }
    status->position = (struct opt_int){true, position};
    status->pos = arena_format(arena, "%lld", (long long)position);
}

/* Ready of all; of a finished gang what it was when it started, and nothing that it holds. */
static void fill_counts(struct core *core, const struct gang *gang, struct arena *arena,
                        struct admission_status *status)
{
    if (gang->state == GANG_FINISHED) {
        int64_t count = gang->record == NULL ? gang->run->succeeded : 0;
        for (uint32_t i = 0; gang->record != NULL && i < gang->record->pod_sets.count; i++) {
            count = sat_add(count, gang->record->pod_sets.items[i].count.value);
        }
        int64_t done = gang->run->succeeded < count ? gang->run->succeeded : count;
        status->pods = arena_format(arena, "%lld/%lld", (long long)done, (long long)count);
        return;
    }
    int64_t count =
        gang->reservation != NULL ? reservation_count(gang->reservation) : gang->size.pods;
    status->pods = arena_format(arena, "%u/%lld", gang->ready_pods, (long long)count);
    status->devices = gang->reservation != NULL ? reservation_text(core, gang, arena, true)
                                                : admission_asked_devices(gang, arena);
}

static void fill_status(struct core *core, struct gang *gang, struct arena *arena,
                        struct admission_status *status)
{
    struct verdict verdict = gang_verdict(core, gang, arena);
    if (verdict.reason != gang->shown_reason || gang->reason_since_ms == 0 ||
        gang->shown_state != gang->state) {
        bool is_restored = gang->reason_since_ms != 0 && gang->shown_state == 0 &&
                           gang->shown_reason == verdict.reason;
        if (!is_restored) {
            past_turn(gang, verdict.reason, core->now_ms);
            gang->reason_since_ms = core->now_ms;
        }
        gang->shown_reason = verdict.reason;
        gang->shown_state = gang->state;
    }
    status->state = str_from_c(gang_state_name(gang->state));
    fill_position(gang, arena, status);
    fill_counts(core, gang, arena, status);
    status->flavor = gang->reservation != NULL ? admission_held_flavors(gang, arena) : STR_NONE;
    status->since = seconds(gang->reason_since_ms);
    status->queued_at = seconds(gang->order_ms);
    status->job_generation = (struct opt_int){true, gang->generation};
    int64_t evictions = gang->trouble->memory.evictions - (gang->is_eviction_unwritten ? 1 : 0);
    if (evictions > 0) {
        status->evictions = (struct opt_int){true, evictions};
    }
    if (gang->trouble->memory.requeue_count > 0) {
        status->requeue = ARENA_NEW(arena, struct requeue_state);
        status->requeue->count = (struct opt_int){true, gang->trouble->memory.requeue_count};
        status->requeue->at = seconds(gang->trouble->memory.requeue_at_ms);
    }
    status->explanation = explain_gang(core, gang, &verdict, arena);
    if (verdict.reason != REASON_NONE) {
        status->reason = str_from_c(reason_info(verdict.reason)->code);
        status->message =
            arena_copy_str(arena, text_quote(arena, verdict.message, MESSAGE_MAX_BYTES));
        status->summary = arena_format(arena, STR_FMT ": " STR_FMT, STR_ARG(status->reason),
                                       STR_ARG(status->message));
    }
    fill_conditions(gang, arena, status, &status->conditions);
}

/* Of when the numbers are isn't a change of what is said. */
static uint64_t content_hash(const struct admission *admission)
{
    struct admission slim = {.spec = admission->spec, .status = admission->status};
    struct explanation timeless;
    if (slim.status.explanation != NULL) {
        timeless = *slim.status.explanation;
        timeless.as_of = (struct opt_time){.is_set = false};
        slim.status.explanation = &timeless;
    }
    return status_content_hash(KIND_ADMISSION, &slim);
}

static struct hash_orphan *orphan_find(const struct core *core, struct str key)
{
    struct hash_orphan *orphan = NULL;
    HASH_FIND(hh, core->orphans, key.ptr, (unsigned)key.len, orphan);
    return orphan;
}

static bool fill_terse(struct core *core, struct gang *gang, struct arena *arena,
                       struct admission_status *status)
{
    struct verdict verdict = gang_verdict(core, gang, arena);
    bool is_changed = verdict.reason != gang->shown_reason || gang->shown_state != gang->state;
    gang->shown_reason = verdict.reason;
    gang->shown_state = gang->state;
    status->state = str_from_c(gang_state_name(gang->state));
    status->reason = str_from_c(reason_info(verdict.reason)->code);
    return is_changed;
}

static void fill_admission(struct core *core, struct gang *gang, struct arena *arena,
                           struct admission *admission)
{
    *admission = (struct admission){.meta.name = arena_copy_str(arena, gang->name)};
    admission->meta.namespace_name = arena_copy_str(arena, gang->namespace_name);
    struct owner_reference *owner = ARENA_NEW(arena, struct owner_reference);
    *owner = (struct owner_reference){.api_version = STR("batch/v1"),
                                      .kind = STR("Job"),
                                      .name = admission->meta.name,
                                      .uid = arena_copy_str(arena, gang->uid),
                                      .controller = {true, true}};
    admission->meta.owner_references = (struct owner_reference_list){owner, 1};
    admission->spec.queue = arena_copy_str(arena, gang->queue->name);
    admission->spec.job_uid = owner->uid;
    admission->spec.priority = (struct opt_int){true, gang->priority};
    admission->spec.pod_sets.items =
        ARENA_ARRAY(arena, struct admission_pod_set, gang->set_count + 1);
    admission->spec.pod_sets.count = gang->set_count;
    for (uint32_t i = 0; i < gang->set_count; i++) {
        const struct gang_set *set = &gang->sets[i];
        admission->spec.pod_sets.items[i] =
            (struct admission_pod_set){.name = arena_copy_str(arena, set->name),
                                       .count = {true, set->size.pods},
                                       .min_count = {true, set->size.min_count}};
    }
    fill_status(core, gang, arena, &admission->status);
}

bool core_admission_now(struct core *core, struct str job_uid, struct arena *arena,
                        struct admission *ret_admission)
{
    struct gang *gang = gang_find(core, job_uid);
    if (gang == NULL || gang->is_job_gone || gang->queue == NULL || gang->state == 0) {
        return false;
    }
    fill_admission(core, gang, arena, ret_admission);
    return true;
}

bool core_admission_content(struct core *core, struct str job_uid, struct arena *arena,
                            struct admission *ret_admission)
{
    struct gang *gang = gang_find(core, job_uid);
    if (gang == NULL) {
        return false;
    }
    /* Whatever is answered: asking again at once would be answered the same, for ever. */
    gang->is_admission_dirty = false;
    if (gang->is_job_gone || gang->queue == NULL || orphan_find(core, gang->key) != NULL) {
        return false;
    }
    if (gang->run->write_effect_id != 0 && gang->write_purpose == PATCH_ADMIT) {
        return false; /* it is told when the server has said yes or no */
    }
    if (core->options.is_terse) {
        *ret_admission = (struct admission){.spec.job_uid = job_uid};
        return fill_terse(core, gang, arena, &ret_admission->status);
    }
    enum gang_state told_state = gang->shown_state;
    enum reason told_reason = gang->shown_reason;
    fill_admission(core, gang, arena, ret_admission);
    uint64_t hash = content_hash(ret_admission);
    bool is_news =
        gang->state != told_state || gang->shown_reason != told_reason || gang->admission_hash == 0;
    if (hash == gang->admission_hash || !pace_allows(core, gang, told_state, is_news)) {
        return false;
    }
    gang->admission_hash = hash;
    return true;
}

static void write_later(struct core *core, struct gang *gang)
{
    gang->is_admission_dirty = true;
    if (core->next_admission_retry_ms == 0) {
        core->next_admission_retry_ms = core->now_ms + TELL_RETRY_MS;
    }
}

void admission_write_done(struct core *core, struct gang *gang, const struct effect_done *done)
{
    gang->admission_effect_id = 0;
    if (done->outcome != EFFECT_OK) {
        pace_give_back(gang);
        gang->admission_hash = 0;
        write_later(core, gang);
    } else if (gang->is_admission_dirty) {
        gang_show(core, gang);
    }
}

static bool is_unwritten(const struct gang *gang, const void *unused)
{
    (void)unused;
    return gang->is_admission_dirty && gang->admission_effect_id == 0;
}

void admissions_retry(struct core *core)
{
    if (core->next_admission_retry_ms == 0 || core->now_ms < core->next_admission_retry_ms) {
        return;
    }
    core->next_admission_retry_ms = 0;
    struct gang_walk walk;
    gang_walk_begin(core, &walk, is_unwritten, NULL);
    for (struct gang *gang; (gang = gang_walk_next(core, &walk)) != NULL;) {
        gang_show(core, gang);
    }
}

/* -- what is there already -------------------------------------------------------------------- */

static void take_place(struct core *core, struct gang *gang, const struct admission_status *status)
{
    if (!status->queued_at.is_set || status->queued_at.ms <= gang->order_ms) {
        return;
    }
    bool was_queued = gang->is_in_queue;
    gang_dequeue(core, gang); /* its place in the tree is by this time */
    gang->order_ms = status->queued_at.ms;
    if (was_queued) {
        gang_enqueue(core, gang);
    }
}

/* At the start the newer of what the store and the Admission say; later, while another replica
 * leads, what that one says. */
static void take_counts(struct gang *gang, const struct admission_status *status, bool is_first)
{
    struct gang_memory memory = gang->trouble->memory;
    if (status->requeue != NULL && (!is_first || memory.requeue_count == 0)) {
        memory.requeue_count = status->requeue->count.value;
        memory.requeue_at_ms = status->requeue->at.is_set ? status->requeue->at.ms : 0;
    } else if (status->requeue == NULL && !is_first) {
        memory.requeue_count = memory.requeue_at_ms = 0; /* it has been whole since */
    }
    if (status->evictions.is_set && status->evictions.value > memory.evictions) {
        memory.evictions = status->evictions.value;
    }
    gang_put_memory(gang, memory);
}

/* As admission_held_flavors() writes them. */
static bool lists_flavor(struct str names, struct str flavor)
{
    while (names.len > 0) {
        size_t comma = str_find_char(names, ',');
        if (str_eq(str_take(names, comma), flavor)) {
            return true;
        }
        names = str_skip(names, comma < names.len ? comma + 1 : names.len);
    }
    return false;
}

static void take_memory(struct core *core, struct gang *gang, const struct admission *object,
                        uint64_t hash)
{
    bool is_first = !gang->is_admission_seen;
    gang->is_admission_seen = true;
    str_drop(&gang->admission_uid);
    gang->admission_uid = str_own(object->meta.uid);
    if (core->is_ready && (!is_first || gang->admission_hash != 0)) {
        /* Our own write comes back; or an older one, of which the newer is seen in a moment, unless
         * the API server was put back to an older state. */
        if (hash != gang->admission_hash && gang->admission_hash != 0) {
            gang->admission_hash = hash;
            write_later(core, gang);
        }
        return;
    }
    gang->admission_hash = hash;
    const struct admission_status *status = &object->status;
    take_counts(gang, status, is_first);
    gang->was_running = gang->state == 0 && str_eq_c(status->state, gang_state_name(GANG_RUNNING));
    gang->was_on_default = gang->state == 0 && lists_flavor(status->flavor, STR(FLAVOR_DEFAULT));
    if (gang->was_running) {
        readiness_take(core, gang, &status->conditions);
    }
    take_place(core, gang, status);
    past_take(gang, status);
}

void admission_delete(struct core *core, struct str key, struct str uid)
{
    struct effect *effect = effect_new(core, EFFECT_DELETE_ADMISSION);
    struct arena *arena = core->out->arena;
    size_t slash = str_find_char(key, '/');
    effect->object_kind = KIND_ADMISSION;
    effect->namespace_name = arena_copy_str(arena, str_take(key, slash));
    effect->name = arena_copy_str(arena, str_skip(key, slash + 1));
    effect->uid = arena_copy_str(arena, uid);
}

static void orphan_drop(struct core *core, struct hash_orphan *orphan)
{
    HASH_DEL(core->orphans, orphan);
    mem_free(orphan->object);
    str_drop(&orphan->key);
    mem_free(orphan);
}

static void orphan_keep(struct core *core, struct str key, const struct admission *object)
{
    struct hash_orphan *orphan = orphan_find(core, key);
    if (orphan != NULL) {
        orphan_drop(core, orphan);
    }
    orphan = MEM_NEW(struct hash_orphan);
    orphan->key = str_own(key);
    orphan->object = object_clone(kind_info(KIND_ADMISSION)->schema, object);
    HASH_ADD_KEYPTR(hh, core->orphans, orphan->key.ptr, (unsigned)orphan->key.len, orphan);
    ghost_watch(core, orphan);
}

void admission_apply(struct core *core, const struct admission *object)
{
    struct str key = key_join(&core->scratch, object->meta.namespace_name, object->meta.name);
    struct gang *gang = gang_find(core, object->spec.job_uid);
    if (gang != NULL && !gang->is_job_gone && str_eq(gang->key, key)) {
        gang->is_admission_ownerless = meta_controller(&object->meta) == NULL;
        take_memory(core, gang, object, content_hash(object));
        return;
    }
    orphan_keep(core, key, object);
    if (core->is_ready) {
        ghost_check(core, orphan_find(core, key));
    }
}

void admissions_check(struct core *core)
{
    struct hash_orphan *orphan;
    struct hash_orphan *next;
    HASH_ITER (hh, core->orphans, orphan, next) {
        ghost_check(core, orphan);
    }
}

void admission_outlives(struct core *core, const struct gang *gang)
{
    if (!gang->is_admission_seen || orphan_find(core, gang->key) != NULL) {
        return;
    }
    struct owner_reference owner = {
        .kind = STR("Job"), .uid = gang->uid, .controller = {true, true}};
    struct admission left = {.meta = {.uid = gang->admission_uid}, .spec = {.job_uid = gang->uid}};
    if (!gang->is_admission_ownerless) {
        left.meta.owner_references = (struct owner_reference_list){&owner, 1};
    }
    orphan_keep(core, gang->key, &left);
}

void admissions_meet_job(struct core *core, struct gang *gang)
{
    struct hash_orphan *orphan = orphan_find(core, gang->key);
    if (orphan == NULL) {
        return;
    }
    if (str_eq(orphan->object->spec.job_uid, gang->uid)) {
        take_memory(core, gang, orphan->object, content_hash(orphan->object));
        orphan_drop(core, orphan);
        return;
    }
    /* Of a Job of that name that is no more: never adopted. */
    if (core->is_ready) {
        admission_delete(core, gang->key, orphan->object->meta.uid);
    }
}

static void forget_seen(struct gang *gang, const struct admission *object)
{
    if (gang != NULL && str_eq(gang->admission_uid, object->meta.uid)) {
        gang->is_admission_seen = false;
        gang->admission_hash = 0;
    }
}

void admission_deleted(struct core *core, const struct admission *object)
{
    struct str key = key_join(&core->scratch, object->meta.namespace_name, object->meta.name);
    struct hash_orphan *orphan = orphan_find(core, key);
    if (orphan != NULL && str_eq(orphan->object->meta.uid, object->meta.uid)) {
        orphan_drop(core, orphan);
    }
    /* Its Job may be gone, with pods that hold it, and another one may have its name; or a late
     * write for that Job was the last to say whose it is. */
    forget_seen(gang_find(core, object->spec.job_uid), object);
    struct gang *gang = table_find(&core->gangs_by_key, key);
    forget_seen(gang, object);
    if (gang != NULL) {
        gang_show(core, gang);
    }
}

void admission_withdraw(struct core *core, const struct gang *gang)
{
    bool is_ours = !gang->is_job_gone || gang->is_admission_ownerless;
    if (gang->is_admission_seen && is_ours && core->out != NULL) {
        admission_delete(core, gang->key, gang->admission_uid);
    }
}

void admissions_free(struct core *core)
{
    struct hash_orphan *orphan;
    struct hash_orphan *next;
    HASH_ITER (hh, core->orphans, orphan, next) {
        orphan_drop(core, orphan);
    }
}
