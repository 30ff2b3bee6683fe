/* writes.c - what an API server makes of Tallyman's writes. Sources of the rules:
 * k8s.io/kubernetes pkg/registry/batch/job/strategy.go, pkg/apis/batch/validation/validation.go. */
#include "sim_internal.h"

#include "tallyman/base/alloc.h"

static struct driver_answer refuse(struct str message)
{
    return (struct driver_answer){.outcome = WRITE_REFUSED, .message = message};
}

/* A Job's template can be changed while it is suspended and has settled. The old object counts. */
static bool template_is_mutable(const struct job *job)
{
    bool has_settled =
        !job->status.start_time.is_set || condition_is_true(&job->status.conditions, "Suspended");
    return job_is_suspended(job) && has_settled && job->status.active.value == 0;
}

static void patch_labels(struct sim *sim, const struct job_patch *patch, struct object_meta *meta)
{
    if (str_is_set(patch->queue_label)) {
        meta->labels = api_map_with(sim, &meta->labels, STR(LABEL_QUEUE), patch->queue_label);
    }
}

static void set_or_remove(struct sim *sim, struct string_map *map, struct str key, struct str value,
                          bool removes)
{
    if (removes || str_is_set(value)) {
        *map = api_map_with(sim, map, key, removes ? STR_NONE : value);
    }
}

static void patch_annotations(struct sim *sim, const struct job_patch *patch,
                              struct object_meta *meta)
{
    struct string_map *map = &meta->annotations;
    set_or_remove(sim, map, STR("tallyman.dev/provisioning-attempt"), patch->provisioning_attempt,
                  false);
    set_or_remove(sim, map, STR(ANNOTATION_ADMISSION), patch->record, patch->removes_record);
    set_or_remove(sim, map, STR(ANNOTATION_SUSPENDED), patch->suspended, patch->removes_suspended);
    set_or_remove(sim, map, STR("tallyman.dev/checkpoint-request"), patch->checkpoint_request,
                  patch->removes_checkpoint);
    set_or_remove(sim, map, STR("tallyman.dev/checkpoint-for"), patch->checkpoint_for,
                  patch->removes_checkpoint);
    if (patch->sets_hold) {
        *map = api_map_with(sim, map, STR(ANNOTATION_HOLD), STR("true"));
    }
}

static void patch_template(struct sim *sim, const struct template_patch *patch,
                           struct pod_template *to)
{
    struct pod_spec *spec = &to->spec;
    for (uint32_t i = 0; i < patch->annotations.count; i++) {
        to->meta.annotations =
            api_map_with(sim, &to->meta.annotations, patch->annotations.items[i].key,
                         patch->annotations.items[i].value);
    }
    if (to->meta.annotations.count == 0) {
        to->meta.annotations.items = NULL;
    }
    for (uint32_t i = 0; i < patch->node_selector.count; i++) {
        spec->node_selector =
            api_map_with(sim, &spec->node_selector, patch->node_selector.items[i].key,
                         patch->node_selector.items[i].value);
    }
    if (spec->node_selector.count == 0) {
        spec->node_selector.items = NULL; /* the server stores no empty map */
    }
    if (patch->sets_tolerations) {
        spec->tolerations = patch->tolerations;
        if (spec->tolerations.count == 0) {
            spec->tolerations.items = NULL;
        }
    }
    if (patch->affinity != NULL || patch->drops_affinity != NULL) {
        spec->affinity = affinity_merge(&sim->scratch, spec->affinity, patch->affinity,
                                        str_from_c(patch->drops_affinity));
    }
}

/* Beside the template; true: something was in the patch. */
static bool patch_spec(const struct job_patch *patch, struct job_spec *spec)
{
    bool changes_deadline = patch->deadline_seconds.is_set || patch->removes_deadline;
    if (patch->suspend.is_set) {
        spec->suspend = patch->suspend;
    }
    if (changes_deadline) {
        spec->active_deadline_seconds = patch->deadline_seconds;
    }
    return patch->suspend.is_set || changes_deadline;
}

static void tell_patch(struct sim *sim, const struct sim_object *job, const struct job_patch *patch)
{
    void *value = NULL;
    if (patch->purpose == PATCH_ADMIT &&
        !rc_failed(
            decode_json(&sim->scratch, &admission_record_schema, patch->record, &value, NULL))) {
        const struct admission_record *record = value;
        const struct string_map *flavors = &record->pod_sets.items[0].flavors;
        sim_tell(sim, SIM_JOB_ADMITTED, job, NULL, STR_NONE,
                 flavors->count > 0 ? flavors->items[0].value : STR_NONE);
    } else if (patch->purpose == PATCH_SUSPEND &&
               !rc_failed(decode_json(&sim->scratch, &suspended_record_schema, patch->suspended,
                                      &value, NULL))) {
        sim_tell(sim, SIM_JOB_SUSPENDED, job, NULL, STR_NONE,
                 ((const struct suspended_record *)value)->cause);
    }
}

/* True: it has another size now. */
static bool patch_pod_set(struct sim *sim, const struct template_patch *patch,
                          struct job_spec *spec)
{
    patch_template(sim, patch, &spec->pod_template);
    if (patch->parallelism.is_set) {
        spec->parallelism = patch->parallelism;
        spec->completions = patch->sets_completions ? patch->parallelism : spec->completions;
    }
    return patch->parallelism.is_set;
}

/* An Indexed Job's may change together with its parallelism, as long as the two are one. */
static bool completions_are_mutable(const struct job *before, const struct job *after)
{
    const struct job_spec *spec = &after->spec;
    if (spec->completions.is_set == before->spec.completions.is_set &&
        spec->completions.value == before->spec.completions.value) {
        return true;
    }
    return str_eq_c(spec->completion_mode, "Indexed") &&
           spec->completions.value == spec->parallelism.value &&
           before->spec.completions.value == before->spec.parallelism.value;
}

static struct driver_answer patch_job(struct sim *sim, const struct effect *effect)
{
    struct sim_object *object =
        api_find(sim, KIND_JOB, api_key(sim, effect->namespace_name, effect->name));
    if (object == NULL || !str_eq(object->uid, effect->uid)) {
        return (struct driver_answer){.outcome = WRITE_GONE};
    }
    const struct job *job = object_job(object);
    if (!str_is_empty(effect->resource_version) &&
        !str_eq(effect->resource_version, job->meta.resource_version)) {
        return (struct driver_answer){.outcome = WRITE_CONFLICT};
    }
    struct job next = *job;
    patch_labels(sim, &effect->patch, &next.meta);
    patch_annotations(sim, &effect->patch, &next.meta);
    bool is_resized = effect->patch.template_count > 0 &&
                      patch_pod_set(sim, &effect->patch.templates[0], &next.spec);
    if (!completions_are_mutable(job, &next)) {
        return refuse(arena_format(&sim->scratch,
                                   "Job.batch \"" STR_FMT "\" is invalid: spec.completions: "
                                   "Invalid value: field is immutable",
                                   STR_ARG(effect->name)));
    }
    bool changes_template =
        !object_equal(&pod_spec_schema, &job->spec.pod_template.spec, &next.spec.pod_template.spec);
    if (changes_template && !template_is_mutable(job)) {
        return refuse(arena_format(&sim->scratch,
                                   "Job.batch \"" STR_FMT "\" is invalid: spec.template: Invalid "
                                   "value: field is immutable",
                                   STR_ARG(effect->name)));
    }
    bool is_spec = patch_spec(&effect->patch, &next.spec) || changes_template || is_resized;
    tell_patch(sim, object, &effect->patch);
    api_update(sim, object, &next, is_spec);
    return (struct driver_answer){
        .outcome = WRITE_OK,
        .resource_version = arena_copy_str(&sim->scratch, object_meta(object)->resource_version)};
}

/* -- Admissions
 * ------------------------------------------------------------------------------------- */

static void tell_wait(struct sim *sim, const struct admission *admission)
{
    struct sim_object *job =
        api_find(sim, KIND_JOB, api_key(sim, admission->meta.namespace_name, admission->meta.name));
    if (job == NULL || !str_eq(job->uid, admission->spec.job_uid)) {
        return;
    }
    struct str summary =
        str_is_empty(admission->status.summary) ? STR_NONE : admission->status.summary;
    if (str_eq(job->job.told, summary)) {
        return;
    }
    mem_free((void *)(uintptr_t)job->job.told.ptr);
    job->job.told = STR_NONE;
    if (str_is_set(summary)) {
        char *copy = mem_alloc(summary.len + 1);
        memcpy(copy, summary.ptr, summary.len);
        copy[summary.len] = '\0';
        job->job.told = (struct str){copy, summary.len};
    }
    sim_tell(sim, SIM_JOB_WAITS, job, NULL, STR_NONE, job->job.told);
}

/* Server-side apply: creates what is missing, else replaces what Tallyman owns of it: all. */
static struct driver_answer write_admission(struct sim *sim, const struct admission *content)
{
    struct sim_object *object = api_find(
        sim, KIND_ADMISSION, api_key(sim, content->meta.namespace_name, content->meta.name));
    tell_wait(sim, content);
    if (object == NULL) {
        object = api_create(sim, KIND_ADMISSION, content);
    } else {
        struct admission next = *content;
        next.meta = *object_meta(object);
        next.meta.owner_references = content->meta.owner_references;
        api_update(sim, object, &next, true);
    }
    return (struct driver_answer){
        .outcome = WRITE_OK,
        .resource_version = arena_copy_str(&sim->scratch, object_meta(object)->resource_version)};
}

static struct driver_answer delete_admission(struct sim *sim, const struct effect *effect)
{
    struct sim_object *object =
        api_find(sim, KIND_ADMISSION, api_key(sim, effect->namespace_name, effect->name));
    if (object == NULL) {
        return (struct driver_answer){.outcome = WRITE_GONE};
    }
    if (!str_eq(object->uid, effect->uid)) {
        return (struct driver_answer){.outcome = WRITE_CONFLICT};
    }
    api_delete(sim, object);
    return (struct driver_answer){.outcome = WRITE_OK};
}

/* -- Queues, Cohorts, ResourceFlavors
 * ---------------------------------------------------------------- */

static struct driver_answer write_status(struct sim *sim, const struct status_content *content)
{
    const struct object_meta *meta = content->kind == KIND_QUEUE    ? &content->queue.meta
                                     : content->kind == KIND_COHORT ? &content->cohort.meta
                                                                    : &content->flavor.meta;
    struct sim_object *object = api_find(sim, content->kind, meta->name);
    if (object == NULL) {
        return (struct driver_answer){.outcome = WRITE_GONE};
    }
    if (content->kind == KIND_QUEUE) {
        struct queue next = *(const struct queue *)object->value;
        next.status = content->queue.status;
        api_update(sim, object, &next, false);
    } else if (content->kind == KIND_COHORT) {
        struct cohort next = *(const struct cohort *)object->value;
        next.status = content->cohort.status;
        api_update(sim, object, &next, false);
    } else {
        struct resource_flavor next = *(const struct resource_flavor *)object->value;
        next.status = content->flavor.status;
        api_update(sim, object, &next, false);
    }
    return (struct driver_answer){.outcome = WRITE_OK};
}

#define QUEUE_FINALIZER "tallyman.dev/in-use"

static struct driver_answer set_finalizer(struct sim *sim, const struct effect *effect)
{
    struct sim_object *object = api_find(sim, KIND_QUEUE, effect->name);
    if (object == NULL) {
        return (struct driver_answer){.outcome = WRITE_GONE};
    }
    struct queue next = *(const struct queue *)object->value;
    next.meta.finalizers = effect->finalizers;
    api_update(sim, object, &next, false);
    if (effect->finalizers.count == 0 && next.meta.deletion_timestamp.is_set) {
        api_remove(sim, object);
    }
    return (struct driver_answer){.outcome = WRITE_OK};
}

static struct driver_answer record_event(struct sim *sim, const struct effect *effect)
{
    const struct sim_object *job = api_find_uid(sim, effect->uid);
    struct str text = arena_format(&sim->scratch, "%s: " STR_FMT, effect->note.reason,
                                   STR_ARG(effect->note.text));
    sim_tell(sim, SIM_EVENT, job, NULL, STR_NONE, text);
    return (struct driver_answer){.outcome = WRITE_OK};
}

static struct driver_answer mark_pod(struct sim *sim, const struct effect *effect)
{
    struct sim_object *object =
        api_find(sim, KIND_POD, api_key(sim, effect->namespace_name, effect->name));
    if (object == NULL || !str_eq(object->uid, effect->uid)) {
        return (struct driver_answer){.outcome = WRITE_GONE};
    }
    struct pod next = *(const struct pod *)object->value;
    next.meta.annotations = api_map_with(
        sim, &next.meta.annotations, STR("tallyman.dev/checkpoint-request"),
        effect->patch.removes_checkpoint ? STR_NONE : effect->patch.checkpoint_request);
    api_update(sim, object, &next, false);
    return (struct driver_answer){.outcome = WRITE_OK};
}

struct driver_answer write_carry_out(struct sim *sim, const struct driver_write *write)
{
    switch (write->effect->kind) {
    case EFFECT_PATCH_JOB:
        return patch_job(sim, write->effect);
    case EFFECT_WRITE_ADMISSION:
        return write_admission(sim, write->admission);
    case EFFECT_DELETE_ADMISSION:
        return delete_admission(sim, write->effect);
    case EFFECT_RECORD_EVENT:
        return record_event(sim, write->effect);
    case EFFECT_WRITE_STATUS:
        return write_status(sim, write->status);
    case EFFECT_SET_FINALIZER:
        return set_finalizer(sim, write->effect);
    case EFFECT_MARK_POD:
        return mark_pod(sim, write->effect);
    case EFFECT_MAKE_REQUEST:
        return autoscaler_make_request(sim, &write->request->request);
    case EFFECT_DELETE_REQUEST:
        return autoscaler_delete_request(sim, write->effect);
    case EFFECT_PERSIST:
    case EFFECT_LEDGER:
        break;
    }
    return refuse(STR("this isn't a write"));
}
