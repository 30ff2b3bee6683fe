/* patch.c - the writes to a Job: one PATCH admits, one suspends, one puts back what was put in. */
#include "avoid.h"
#include "loose_part.h"
#include "stopping.h"
#include "check.h"
#include "topology.h"

#include <assert.h>

#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"

struct effect *effect_new(struct core *core, enum effect_kind kind)
{
    struct effects *out = core->out;
    out->items =
        arena_grow(out->arena, out->items, out->count, &out->capacity, sizeof(struct effect));
    struct effect *effect = &out->items[out->count++];
    *effect = (struct effect){.kind = kind};
    return effect;
}

void note_event(struct core *core, const struct gang *gang, bool is_warning, const char *reason,
                const char *action, struct str text)
{
    struct effect *effect = effect_new(core, EFFECT_RECORD_EVENT);
    struct arena *arena = core->out->arena;
    effect->object_kind = KIND_JOB;
    effect->namespace_name = arena_copy_str(arena, gang->namespace_name);
    effect->name = arena_copy_str(arena, gang->name);
    effect->uid = arena_copy_str(arena, gang->uid);
    effect->note = (struct event_note){.is_warning = is_warning,
                                       .reason = reason,
                                       .action = action,
                                       .text = arena_copy_str(arena, text)};
}

static struct effect *patch_new(struct core *core, struct gang *gang,
                                enum job_patch_purpose purpose)
{
    assert(gang->run->write_effect_id == 0);
    struct effect *effect = effect_new(core, EFFECT_PATCH_JOB);
    effect->id = ++core->next_effect_id;
    struct arena *arena = core->out->arena;
    effect->object_kind = KIND_JOB;
    effect->namespace_name = arena_copy_str(arena, gang->namespace_name);
    effect->name = arena_copy_str(arena, gang->name);
    effect->uid = arena_copy_str(arena, gang->uid);
    effect->resource_version = str_is_set(gang->run->version_text)
                                   ? arena_copy_str(arena, gang->run->version_text)
                                   : arena_format(arena, "%llu", (unsigned long long)gang->version);
    effect->patch.purpose = purpose;
    if (gang->is_label_due) {
        effect->patch.queue_label = arena_copy_str(arena, gang->queue->name);
    }
    GANG_PUT(gang, run, write_effect_id, effect->id);
    gang->write_purpose = purpose;
    GANG_PUT(gang, run, write_base_version, gang->version);
    return effect;
}

/* -- admission -------------------------------------------------------------------------------- */

void patch_add_selector(struct arena *arena, struct template_patch *patch, struct str key,
                        struct str value, uint32_t *capacity)
{
    struct string_map *map = &patch->node_selector;
    if (str_is_set(string_map_find(map, key))) {
        return; /* a level's label may be a flavor's, too: the nodes have one value */
    }
    map->items = arena_grow(arena, map->items, map->count, capacity, sizeof(struct string_pair));
    map->items[map->count++] = (struct string_pair){
        arena_copy_str(arena, key), str_is_set(value) ? arena_copy_str(arena, value) : STR_NONE};
}

static bool has_toleration(const struct toleration_list *list, const struct toleration *wanted)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct toleration *have = &list->items[i];
        if (str_eq(have->key, wanted->key) && str_eq(have->op, wanted->op) &&
            str_eq(have->value, wanted->value) && str_eq(have->effect, wanted->effect)) {
            return true;
        }
    }
    return false;
}

static struct toleration copy_toleration(struct arena *arena, const struct toleration *from)
{
    struct toleration copy = *from;
    copy.key = arena_copy_str(arena, from->key);
    copy.op = arena_copy_str(arena, from->op);
    copy.value = arena_copy_str(arena, from->value);
    copy.effect = arena_copy_str(arena, from->effect);
    return copy;
}

static void append_tolerations(struct arena *arena, struct template_patch *patch,
                               const struct toleration_list *from, uint32_t *capacity)
{
    for (uint32_t i = 0; i < from->count; i++) {
        if (!has_toleration(&patch->tolerations, &from->items[i])) {
            patch->tolerations.items =
                arena_grow(arena, patch->tolerations.items, patch->tolerations.count, capacity,
                           sizeof(struct toleration));
            patch->tolerations.items[patch->tolerations.count++] =
                copy_toleration(arena, &from->items[i]);
        }
    }
}

void patch_add_directives(struct arena *arena, const struct pod_set *set,
                          const struct set_choice *choice, struct template_patch *patch)
{
    uint32_t selector_capacity = 0;
    uint32_t toleration_capacity = 0;
    bool adds_tolerations = false;
    for (uint32_t f = 0; f < choice->flavor_count; f++) {
        const struct resource_flavor_spec *flavor = &choice->flavors[f]->spec;
        for (uint32_t i = 0; i < flavor->node_labels.count; i++) {
            patch_add_selector(arena, patch, flavor->node_labels.items[i].key,
                               flavor->node_labels.items[i].value, &selector_capacity);
        }
        adds_tolerations = adds_tolerations || flavor->tolerations.count > 0;
    }
    for (uint32_t l = 0; choice->domain != NULL && l < choice->domain->path.count; l++) {
        const struct string_pair *pair = &choice->domain->path.items[l];
        patch_add_selector(arena, patch, pair->key, pair->value, &selector_capacity);
    }
    if (str_is_set(choice->pin)) {
        patch_add_selector(arena, patch, STR(LABEL_HOSTNAME), choice->pin, &selector_capacity);
    }
    if (adds_tolerations) {
        patch->sets_tolerations = true;
        append_tolerations(arena, patch, &set->spec->tolerations, &toleration_capacity);
        for (uint32_t f = 0; f < choice->flavor_count; f++) {
            append_tolerations(arena, patch, &choice->flavors[f]->spec.tolerations,
                               &toleration_capacity);
        }
    }
}

/* One per pod set, in the shape's order. */
static void add_templates(struct core *core, const struct gang *gang, struct job_patch *patch)
{
    struct arena *arena = core->out->arena;
    patch->template_count = gang->shape->set_count;
    patch->templates = ARENA_ARRAY(arena, struct template_patch, patch->template_count);
    for (uint32_t s = 0; s < patch->template_count; s++) {
        patch->templates[s].pod_set = arena_copy_str(arena, gang->shape->sets[s].name);
    }
}

static void admit_set(struct core *core, const struct gang *gang, uint32_t s,
                      const struct evaluation *evaluation, struct template_patch *patch)
{
    const struct pod_set *set = &gang->shape->sets[s];
    struct gang_set *own = gang_set_find(gang, set->name);
    int64_t count = evaluation->reserve.sets[s].count;
    if (count < set->size.pods) {
        patch->parallelism = (struct opt_int){true, count};
        patch->sets_completions = own->is_elastic_index;
    }
    patch_add_directives(core->out->arena, set, &evaluation->sets[s], patch);
    struct avoidance avoidance = avoid_find(core, set, &evaluation->sets[s]);
    avoid_patch(core, &avoidance, patch);
    if (gang->room->check != NULL) {
        check_directives(core, gang, patch);
    }
    string_map_drop(&own->admit_selector);
    own->admit_selector = string_map_own(&patch->node_selector);
}

void patch_admit(struct core *core, struct gang *gang, const struct evaluation *evaluation)
{
    gang_dequeue(core, gang);
    gang->admitted_ms = core->now_ms / 1000 * 1000; /* as the record keeps it */
    GANG_PUT(gang, run, short_since_ms, 0);
    GANG_PUT(gang, run, told_short_ms, 0);
    GANG_PUT(gang, run, told_ready_pods, 0);
    GANG_PUT(gang, run, told_ready_ms, core->now_ms);
    ledger_reserve(core, gang, &evaluation->reserve);
    gang_confine(gang, evaluation->domain);
    struct effect *effect = patch_new(core, gang, PATCH_ADMIT);
    struct job_patch *patch = &effect->patch;
    patch->suspend = (struct opt_bool){true, false};
    patch->record = record_text(core, gang, evaluation);
    if (gang->room->check != NULL) {
        patch->provisioning_attempt =
            arena_format(core->out->arena, "%lld", (long long)gang->room->check->attempt);
    }
    patch->removes_suspended = gang->suspended != NULL;
    patch->removes_checkpoint = gang->run->request_ms != 0;
    add_templates(core, gang, patch);
    for (uint32_t s = 0; s < patch->template_count; s++) {
        admit_set(core, gang, s, evaluation, &patch->templates[s]);
    }
    patch->deadline_seconds = runtime_deadline_to_set(gang);
    core->cost.gangs_admitted++;
    gang->wakes_promised = true;
    gang_set_state(core, gang, GANG_ADMITTED, NULL);
    gang_mark_unbound(core, gang);
}

/* -- suspension ------------------------------------------------------------------------------- */

static void keep_cause(struct gang *gang, const char *cause, struct str why)
{
    GANG_PUT(gang, run, stop_cause, cause);
    GANG_PUT_TEXT(gang, run, stop_why, why);
}

/* What is counted rides on the write that it is counted for: a crash before the Admission is
 * written loses nothing, not even with the store. */
static void carry_memory(struct core *core, const struct gang *gang,
                         struct suspended_record *record)
{
    const struct gang_memory *memory = &gang->trouble->memory;
    if (memory->evictions > 0) {
        record->evictions = (struct opt_int){true, memory->evictions};
    }
    if (memory->requeue_count > 0) {
        struct requeue_state *requeue = ARENA_NEW(core->out->arena, struct requeue_state);
        *requeue = (struct requeue_state){.count = {true, memory->requeue_count},
                                          .at = {memory->requeue_at_ms > 0, memory->requeue_at_ms}};
        record->requeue = requeue;
    }
}

void patch_suspend(struct core *core, struct gang *gang, const char *cause, struct str why)
{
    struct effect *effect = patch_new(core, gang, PATCH_SUSPEND);
    struct suspended_record record = {.cause = str_from_c(cause), .at = {true, core->now_ms}};
    carry_memory(core, gang, &record);
    effect->patch.suspend = (struct opt_bool){true, true};
    effect->patch.suspended = record_json(core, &suspended_record_schema, &record);
    gang_set_timer(core, gang, 0);
    if (gang->reservation != NULL) {
        past_note_eviction(core, gang, cause, NULL);
        gang_set_state(core, gang, GANG_SUSPENDING, cause);
        gang_mark_unbound(core, gang);
    }
    if (!gang->is_stop_unwritten || !str_eq(gang->run->stop_why, why)) { /* else it has been told */
        note_event(core, gang, true, cause, "Suspend", why);
    }
    gang->is_stop_unwritten = true;
    keep_cause(gang, cause, why);
}

static const char *cause_of(const struct gang *victim, const struct gang *gang)
{
    return victim->reservation->queue == gang->queue ? "PreemptedWithinQueue"
                                                     : "ReclaimedWithinCohort";
}

void patch_suspend_for(struct core *core, struct gang *victim, const struct gang *gang)
{
    struct effect *effect = patch_new(core, victim, PATCH_SUSPEND);
    struct suspended_record record = {.cause = str_from_c(cause_of(victim, gang)),
                                      .for_gang = gang->key,
                                      .for_uid = gang->uid,
                                      .at = {true, core->now_ms}};
    carry_memory(core, victim, &record);
    effect->patch.suspend = (struct opt_bool){true, true};
    effect->patch.suspended = record_json(core, &suspended_record_schema, &record);
    gang_set_timer(core, victim, 0);
    keep_cause(victim, cause_of(victim, gang),
               arena_format(&core->scratch,
                            "stops whole to make room for a gang of queue " STR_FMT
                            " (priority %lld)",
                            STR_ARG(gang->queue->name), (long long)gang->priority));
    if (victim->reservation != NULL) {
        past_note_eviction(core, victim, cause_of(victim, gang), gang);
    }
    gang_set_state(core, victim, GANG_SUSPENDING, cause_of(victim, gang));
    stopping_tell(core, victim);
}

void patch_tell_victim(struct core *core, struct gang *victim, const struct gang *gang)
{
    bool is_own_namespace = str_eq(victim->namespace_name, gang->namespace_name);
    note_event(core, victim, true, cause_of(victim, gang), "Suspend",
               arena_format(&core->scratch,
                            "stopped whole to make room for %s" STR_FMT " of queue " STR_FMT
                            " (priority %lld); it keeps its place in its "
                            "queue",
                            is_own_namespace ? "gang " : "a gang",
                            STR_ARG(is_own_namespace ? gang->name : STR("")),
                            STR_ARG(gang->queue->name), (long long)gang->priority));
}

void patch_checkpoint(struct core *core, struct gang *gang, struct str since, struct str for_key)
{
    struct job_patch *patch = &patch_new(core, gang, PATCH_CHECKPOINT)->patch;
    patch->checkpoint_request = arena_copy_str(core->out->arena, since);
    patch->checkpoint_for = arena_copy_str(core->out->arena, for_key);
    patch->removes_checkpoint = !str_is_set(since);
}

static void restore_selector(struct core *core, const struct gang_set *own,
                             const struct pod_set *set, struct template_patch *patch)
{
    uint32_t capacity = 0;
    const struct string_map *now = &own->template_selector;
    const struct string_map *before = &set->spec->node_selector;
    for (uint32_t i = 0; i < now->count; i++) {
        struct str wanted = string_map_find(before, now->items[i].key);
        if (!str_is_set(wanted) || !str_eq(wanted, now->items[i].value)) {
            patch_add_selector(core->out->arena, patch, now->items[i].key, wanted, &capacity);
        }
    }
}

/* After a partial admission the set asks for all its pods again. */
static void restore_parallelism(const struct gang *gang, const struct gang_set *own,
                                struct template_patch *patch)
{
    const struct record_pod_set *record = record_set(gang->record, own->name);
    const struct record_restore *restore = record_restore(gang->record, own->name);
    if (restore == NULL || !restore->parallelism.is_set ||
        restore->parallelism.value <= record->count.value) {
        return;
    }
    patch->parallelism = restore->parallelism;
    patch->sets_completions = own->is_elastic_index;
}

static void restore_set(struct core *core, const struct gang *gang, const struct pod_set *set,
                        struct template_patch *patch)
{
    const struct gang_set *own = gang_set_find(gang, set->name);
    restore_selector(core, own, set, patch);
    restore_parallelism(gang, own, patch);
    avoid_restore(core, record_restore(gang->record, set->name), patch);
    if (gang->record != NULL && str_is_set(gang->record->request)) {
        struct string_pair *keys = ARENA_ARRAY(core->out->arena, struct string_pair, 2);
        keys[0].key = STR(ANNOTATION_CONSUME);
        keys[1].key = STR(ANNOTATION_CLASS);
        patch->annotations = (struct string_map){keys, 2};
    }
    if (own->template_tolerations != set->spec->tolerations.count) {
        uint32_t capacity = 0;
        patch->sets_tolerations = true;
        append_tolerations(core->out->arena, patch, &set->spec->tolerations, &capacity);
    }
}

/* The Job's own deadline again, where ours was lower. */
static void restore_deadline(const struct gang *gang, struct job_patch *patch)
{
    const struct record_restore *restore = gang->record == NULL ? NULL : gang->record->restore;
    if (restore != NULL && restore->active_deadline_seconds.is_set) {
        bool had_none = restore->active_deadline_seconds.value == 0;
        patch->removes_deadline = had_none;
        patch->deadline_seconds =
            had_none ? (struct opt_int){false, 0} : restore->active_deadline_seconds;
    }
}

void patch_restore(struct core *core, struct gang *gang, bool sets_hold)
{
    struct effect *effect = patch_new(core, gang, PATCH_RESTORE);
    struct job_patch *patch = &effect->patch;
    patch->removes_record = true;
    patch->removes_suspended = gang->suspended != NULL;
    patch->removes_checkpoint = gang->run->request_ms != 0;
    patch->sets_hold = sets_hold;
    restore_deadline(gang, patch);
    add_templates(core, gang, patch);
    for (uint32_t s = 0; s < patch->template_count; s++) {
        restore_set(core, gang, &gang->shape->sets[s], &patch->templates[s]);
    }
}

void patch_finish(struct core *core, struct gang *gang)
{
    patch_new(core, gang, PATCH_FINISH)->patch.suspend = (struct opt_bool){true, false};
}

/* -- answers ---------------------------------------------------------------------------------- */

static const char *const purpose_texts[] = {
    [PATCH_ADMIT] = "start",
    [PATCH_SUSPEND] = "suspend",
    [PATCH_RESTORE] = "put back the template of",
    [PATCH_CHECKPOINT] = "ask for a checkpoint of",
    [PATCH_FINISH] = "let end",
};

static void write_refused(struct core *core, struct gang *gang, const struct effect_done *done)
{
    struct str why = arena_format(&core->scratch, "the API server refused to %s the Job: " STR_FMT,
                                  purpose_texts[gang->write_purpose],
                                  STR_ARG(text_quote(&core->scratch, done->message, 600)));
    note_event(core, gang, true, "WriteRefused", "Patch", why);
    if (gang->write_purpose == PATCH_ADMIT) {
        GANG_PUT_TEXT(gang, trouble, refusal, why);
        gang_back_off(core, gang);
        gang_remember(core, gang);
        return;
    }
    GANG_PUT(gang, run, write_retry_ms, core->now_ms + WRITE_REFUSED_RETRY_MS);
}

/* A 409 can be about something else than the Job (a quota's own conflict, a webhook's), and then
 * nothing of it will ever be shown. The wait goes step by step: a clock that jumps forwards takes
 * one step of it, and leaves the watch the time to show that the write was carried out. */
bool conflict_is_over(struct core *core, struct gang *gang)
{
    if (gang->run->conflict_until_ms == 0 || gang->run->write_effect_id != 0) {
        return false;
    }
    if (core->now_ms >= gang->run->conflict_until_ms && gang->run->conflict_waits > 1) {
        GANG_PUT(gang, run, conflict_waits, gang->run->conflict_waits - 1);
        GANG_PUT(gang, run, conflict_until_ms, core->now_ms + CONFLICT_STEP_MS);
    }
    if (core->now_ms < gang->run->conflict_until_ms) {
        gang_set_timer(core, gang, gang->run->conflict_until_ms);
        return false;
    }
    GANG_PUT(gang, run, awaited_version, 0);
    return true;
}

void job_write_done(struct core *core, struct gang *gang, const struct effect_done *done)
{
    GANG_PUT(gang, run, write_effect_id, 0);
    if (done->outcome != EFFECT_OK) {
        gang_sets_forget_patch(gang);
        GANG_PUT(gang, room, used_attempt,
                 gang->write_purpose == PATCH_ADMIT ? gang->room->used_before
                                                    : gang->room->used_attempt);
    }
    gang_show(core, gang);
    int64_t version = 0;
    switch (done->outcome) {
    case EFFECT_OK:
        (void)str_to_i64(done->resource_version, &version);
        GANG_PUT(gang, run, awaited_version, (uint64_t)version);
        GANG_PUT(gang, run, write_retry_ms, 0);
        if (gang->write_purpose == PATCH_SUSPEND) {
            gang->is_eviction_unwritten = false;
            gang->is_stop_unwritten = false;
            gang_remember(core, gang); /* not before: what never came about isn't counted */
        }
        if (gang->write_purpose == PATCH_ADMIT) {
            struct str amounts = STR_NONE;
            if (gang->reservation != NULL) {
                amounts = reservation_text(core, gang, &core->scratch, false);
            }
            note_event(core, gang, false, "Admitted", "Admit",
                       arena_format(&core->scratch,
                                    "admitted on queue " STR_FMT ": %lld pod%s%s" STR_FMT,
                                    STR_ARG(gang->queue->name), (long long)gang->size.pods,
                                    gang->size.pods == 1 ? "" : "s",
                                    str_is_empty(amounts) ? "" : ", ", STR_ARG(amounts)));
            tell_loose_parts(core, gang);
        }
        break;
    case EFFECT_CONFLICT:
        /* What we hold stays held until the watch has shown what the Job really says now. */
        GANG_PUT(gang, run, awaited_version, gang->run->write_base_version + 1);
        GANG_PUT(gang, run, conflict_waits, CONFLICT_WAIT_MS / CONFLICT_STEP_MS);
        GANG_PUT(gang, run, conflict_until_ms, core->now_ms + CONFLICT_STEP_MS);
        break;
    case EFFECT_GONE:
        gang_job_gone(core, gang);
        return;
    case EFFECT_REFUSED:
        write_refused(core, gang, done);
        break;
    }
    gang_review(core, gang);
}
