/* job.c - what a Job says, read into its gang. */
#include "preempt.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/time_text.h"

static struct str job_label(const struct job *job, const char *key)
{
    return string_map_get(&job->meta.labels, key);
}

static struct str job_annotation(const struct job *job, const char *key)
{
    return string_map_get(&job->meta.annotations, key);
}

static bool has_negative(const struct resource_list *requests)
{
    for (uint32_t i = 0; i < requests->count; i++) {
        if (requests->items[i].value.nano < 0) {
            return true;
        }
    }
    return false;
}

/* The record if there is one that can be read; whoever forged another gets none. */
static struct admission_record *read_record(struct core *core, const struct job *job)
{
    struct str text = job_annotation(job, ANNOTATION_ADMISSION);
    void *value = NULL;
    struct err err;
    if (str_is_empty(text) ||
        rc_failed(decode_json(&core->scratch, &admission_record_schema, text, &value, &err))) {
        return NULL;
    }
    const struct admission_record *record = value;
    bool is_whole = !str_is_empty(record->queue) && record->at.is_set &&
                    record->pod_sets.count == 1 && record->pod_sets.items[0].count.is_set &&
                    record->pod_sets.items[0].count.value >= 0 &&
                    !has_negative(&record->pod_sets.items[0].requests);
    return is_whole ? object_clone(&admission_record_schema, record) : NULL;
}

static struct suspended_record *read_suspended(struct core *core, const struct job *job)
{
    struct str text = job_annotation(job, ANNOTATION_SUSPENDED);
    void *value = NULL;
    struct err err;
    if (str_is_empty(text) ||
        rc_failed(decode_json(&core->scratch, &suspended_record_schema, text, &value, &err))) {
        return NULL;
    }
    return object_clone(&suspended_record_schema, value);
}

static void read_version(struct gang *gang, const struct job *job)
{
    int64_t version = 0;
    (void)str_to_i64(job->meta.resource_version, &version);
    if ((uint64_t)version < gang->version) {
        gang->awaited_version = 0; /* the cluster was restored: nothing newer will come */
    }
    gang->version = (uint64_t)version;
    str_drop(&gang->version_text);
    gang->version_text = str_own(job->meta.resource_version);
}

static int64_t value_or(struct opt_int value, int64_t otherwise)
{
    return value.is_set ? value.value : otherwise;
}

static void read_status(struct gang *gang, const struct job *job)
{
    gang->is_job_finished = job_is_finished(job);
    gang->has_suspended_condition =
        condition_is_true(&job->status.conditions, "Suspended") || !job->status.start_time.is_set;
    gang->active = value_or(job->status.active, 0);
    gang->ready = value_or(job->status.ready, 0);
    gang->terminating = value_or(job->status.terminating, 0);
    gang->succeeded = value_or(job->status.succeeded, 0);
    gang->generation = value_or(job->meta.generation, 0);
}

static void read_priority(struct core *core, struct gang *gang, const struct job *job)
{
    struct str class_name = job_label(job, LABEL_PRIORITY_CLASS);
    if (str_is_empty(class_name)) {
        class_name = job->spec.pod_template.spec.priority_class_name;
    }
    if (!str_eq(gang->priority_class, class_name) || gang->shape == NULL) {
        str_drop(&gang->priority_class);
        gang->priority_class = str_own(class_name);
    }
    gang_reprioritize(core, gang);
}

/* What a Job may ask for and this version can't give: told, and not started on other terms. */
static const char *const unsupported_annotations[] = {
    "tallyman.dev/required-topology",
};

static struct str unsupported_trouble(struct core *core, const struct job *job)
{
    for (size_t i = 0; i < ARRAY_COUNT(unsupported_annotations); i++) {
        if (str_is_set(job_annotation(job, unsupported_annotations[i]))) {
            return arena_format(&core->scratch,
                                "annotation %s is set, and this version of Tallyman doesn't act on "
                                "it yet; without it the gang may be placed on any nodes",
                                unsupported_annotations[i]);
        }
    }
    return STR_NONE;
}

/* Whoever wrote hold=maybe wanted something: it isn't guessed, and nothing starts meanwhile. */
static struct str flag_trouble(struct core *core, const struct job *job)
{
    static const char *const flags[] = {ANNOTATION_HOLD, ANNOTATION_PARTIAL};
    for (size_t i = 0; i < ARRAY_COUNT(flags); i++) {
        struct str value = job_annotation(job, flags[i]);
        if (str_is_set(value) && !str_eq_c(value, "true") && !str_eq_c(value, "false")) {
            return arena_format(&core->scratch,
                                "annotation %s is \"" STR_FMT "\"; it has to be \"true\" or "
                                "\"false\"",
                                flags[i], STR_ARG(str_cut_utf8(value, 100)));
        }
    }
    return STR_NONE;
}

static struct str size_trouble(struct core *core, const struct job *job, struct gang_size *ret_size)
{
    struct err err;
    if (rc_failed(job_gang_size(&core->scratch, job, ret_size, &err))) {
        /* How many pods it would be is still told. */
        int64_t parallelism = value_or(job->spec.parallelism, 1);
        int64_t left = job_completions_left(job);
        ret_size->pods = parallelism < left ? parallelism : left;
        return arena_format(&core->scratch, "%s", err.text);
    }
    return STR_NONE;
}

/* The template as the user wrote it: what an admission put in is taken out again. */
static struct pod_spec plain_spec(const struct gang *gang, const struct job *job)
{
    struct pod_spec spec = job->spec.pod_template.spec;
    if (gang->record != NULL && gang->record->restore != NULL) {
        spec.node_selector = gang->record->restore->node_selector;
        spec.tolerations = gang->record->restore->tolerations;
    }
    return spec;
}

static void read_shape(struct core *core, struct gang *gang, const struct job *job,
                       struct str queue_name)
{
    struct pod_spec spec = plain_spec(gang, job);
    struct shape_input input = {.queue = queue_get(core, queue_name),
                                .namespace_name = gang->namespace_name,
                                .spec = &spec,
                                .size = gang->size,
                                .stated_runtime_ms = runtime_stated_ms(gang)};
    struct shape *shape = shape_use(core, &input);
    pod_set_meet_labels(&shape->sets[0], &job->spec.pod_template.meta.labels);
    struct shape *old = gang->shape;
    struct queue_state *old_queue = gang->queue;
    if (shape != old || input.queue != old_queue) {
        gang_dequeue(core, gang);
        gang->shape = shape;
        gang->queue = input.queue;
    }
    if (old != NULL) {
        shape_drop(core, old); /* one use more than needed, or of the old one */
    }
    if (old_queue != NULL && old_queue != input.queue) {
        queue_free_if_unused(core, old_queue);
    }
}

/* Whether the size is that of a field which the API server dropped: the policy's copy of it, or
 * what kubectl applied. */
static bool is_size_pruned(const struct gang *gang, const struct job *job)
{
    return gang->size.source == GANG_SIZE_LAST_APPLIED ||
           (gang->size.source == GANG_SIZE_ANNOTATION &&
            !str_is_empty(job_annotation(job, ANNOTATION_MIN_COUNT_SOURCE)));
}

static bool is_elastic_index(const struct job *job)
{
    return str_eq_c(job->spec.completion_mode, "Indexed") && job->spec.parallelism.is_set &&
           job->spec.completions.is_set &&
           job->spec.parallelism.value == job->spec.completions.value;
}

/* Size, run-time bound and grace; the first thing that is wrong with the Job, absent: nothing is.
 */
static struct str read_trouble(struct core *core, struct gang *gang, const struct job *job,
                               struct gang_size *ret_size)
{
    struct str runtime = runtime_read(core, gang, job);
    struct str trouble = size_trouble(core, job, ret_size);
    struct str bad_grace = checkpoint_read_grace(
        core, job_annotation(job, ANNOTATION_CHECKPOINT_GRACE), &gang->grace_ms);
    trouble = str_is_set(trouble) ? trouble : bad_grace;
    trouble = str_is_set(trouble) ? trouble : flag_trouble(core, job);
    trouble = str_is_set(trouble) ? trouble : runtime;
    return str_is_set(trouble) ? trouble : unsupported_trouble(core, job);
}

static void read_job(struct core *core, struct gang *gang, const struct job *job)
{
    read_version(gang, job);
    read_status(gang, job);
    gang->created_ms = job->meta.creation_timestamp.is_set ? job->meta.creation_timestamp.ms : 0;
    if (gang->order_ms < gang->created_ms) {
        gang->order_ms = gang->created_ms;
    }
    gang->is_suspended = job->spec.suspend.is_set && job->spec.suspend.value;
    gang->is_job_deleting = job->meta.deletion_timestamp.is_set;
    gang->is_hold_wanted = str_eq_c(job_annotation(job, ANNOTATION_HOLD), "true");
    gang->is_paused = job->spec.parallelism.is_set && job->spec.parallelism.value <= 0;
    mem_free(gang->record);
    gang->record = read_record(core, job);
    mem_free(gang->suspended);
    gang->suspended = read_suspended(core, job);
    if (!gang_is_busy(gang)) {
        string_map_drop(&gang->admit_selector);
    }
    string_map_drop(&gang->template_selector);
    gang->template_selector = string_map_own(&job->spec.pod_template.spec.node_selector);
    gang->checkpoint_ms = 0;
    (void)time_parse_rfc3339(job_annotation(job, ANNOTATION_CHECKPOINT), &gang->checkpoint_ms);
    gang->request_ms = 0;
    (void)time_parse_rfc3339(job_annotation(job, ANNOTATION_CHECKPOINT_REQUEST), &gang->request_ms);
    str_drop(&gang->request_for);
    gang->request_for = str_own(job_annotation(job, ANNOTATION_CHECKPOINT_FOR));
    gang->is_elastic_index = is_elastic_index(job);
    gang->template_tolerations = job->spec.pod_template.spec.tolerations.count;
    struct gang_size size = {.pods = 0};
    str_drop(&gang->invalid);
    gang->invalid = str_own(read_trouble(core, gang, job, &size));
    gang->size = size;
    gang->is_size_pruned = is_size_pruned(gang, job);
    struct str label = job_label(job, LABEL_QUEUE);
    gang->has_label = !str_is_empty(label);
    if (!gang->has_label && gang->record != NULL) {
        label = gang->record->queue; /* it is counted there until it has stopped */
    }
    if (!str_is_empty(label)) {
        read_shape(core, gang, job, label);
    }
    read_priority(core, gang, job);
}

static bool is_ours(const struct job *job)
{
    struct str manager = job->spec.managed_by;
    bool is_builtin = str_is_empty(manager) || str_eq_c(manager, "kubernetes.io/job-controller");
    return is_builtin && (!str_is_empty(job_label(job, LABEL_QUEUE)) ||
                          !str_is_empty(job_annotation(job, ANNOTATION_ADMISSION)));
}

void job_apply(struct core *core, const struct job *object)
{
    struct gang *gang = gang_find(core, object->meta.uid);
    struct str key = key_join(&core->scratch, object->meta.namespace_name, object->meta.name);
    struct gang *namesake = NULL;
    HASH_FIND(hh_key, core->gangs_by_key, key.ptr, (unsigned)key.len, namesake);
    if (namesake != NULL && namesake != gang) {
        gang_job_gone(core, namesake); /* deleted and made again: another Job */
    }
    if (gang == NULL) {
        if (!is_ours(object)) {
            return;
        }
        gang = gang_new(core, object->meta.uid, object->meta.namespace_name, object->meta.name);
        admissions_meet_job(core, gang);
    }
    read_job(core, gang, object);
    gang_pods_changed(core, gang);
}

void job_deleted(struct core *core, const struct job *object)
{
    struct gang *gang = gang_find(core, object->meta.uid);
    if (gang != NULL) {
        gang_job_gone(core, gang);
    }
}
