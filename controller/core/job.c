/* job.c - what a Job says, read into its gang. */
#include "avoid.h"
#include "check.h"
#include "gang_input.h"
#include "gate.h"
#include "claim.h"
#include "preempt.h"
#include "record_check.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/text.h"
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

static bool is_record_whole(const struct admission_record *record)
{
    bool is_whole = !str_is_empty(record->queue) && record->at.is_set &&
                    record->pod_sets.count >= 1 && record->pod_sets.count <= POD_SETS_MAX;
    for (uint32_t s = 0; is_whole && s < record->pod_sets.count; s++) {
        const struct record_pod_set *set = &record->pod_sets.items[s];
        is_whole = set->count.is_set && set->count.value >= 0 && !has_negative(&set->requests);
    }
    return is_whole;
}

/* A partial admission's count isn't put back where the Job's user has changed it since. */
static void keep_edited_count(struct admission_record *record, const struct job *job)
{
    const struct opt_int *now = &job->spec.parallelism;
    if (now->is_set && now->value != record->pod_sets.items[0].count.value) {
        record->restore->parallelism = (struct opt_int){false, 0};
    }
}

/* The record if there is one that can be read; whoever forged another gets none. */
static struct admission_record *read_record(struct core *core, const struct gang *gang,
                                            const struct job *job, const struct gang_input *input)
{
    struct str text = job_annotation(job, ANNOTATION_ADMISSION);
    void *value = NULL;
    struct err err;
    if (str_is_empty(text) ||
        rc_failed(decode_json(&core->scratch, &admission_record_schema, text, &value, &err))) {
        return NULL;
    }
    struct admission_record *record = value;
    if (record->pod_sets.count == 1 && input->set_count == 1) {
        record->pod_sets.items[0].name = input->sets[0].name; /* no other can be meant */
    }
    bool is_taken = is_record_whole(record);
    if (is_taken && record->restore != NULL) {
        keep_edited_count(record, job);
    }
    if (is_taken && gang->reservation == NULL) { /* it is about to be charged for */
        is_taken = record_is_believable(core, record, input, job->meta.namespace_name);
    }
    return is_taken ? object_clone(&admission_record_schema, record) : NULL;
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

static int64_t count_of(struct opt_int value)
{
    return value.is_set && value.value > 0 && value.value < SUSPENDED_COUNT_MAX ? value.value : 0;
}

/* After a restart, or while another replica leads: the counts as of the newest suspension, which
 * its Admission may not have. */
static void take_memory(struct gang *gang)
{
    const struct suspended_record *suspended = gang->suspended;
    struct gang_memory memory = gang->trouble->memory;
    if (suspended == NULL) {
        return;
    }
    if (count_of(suspended->evictions) > memory.evictions) {
        memory.evictions = suspended->evictions.value;
    }
    if (suspended->requeue != NULL && count_of(suspended->requeue->count) > memory.requeue_count) {
        memory.requeue_count = suspended->requeue->count.value;
        memory.requeue_at_ms = suspended->requeue->at.is_set ? suspended->requeue->at.ms : 0;
    }
    gang_put_memory(gang, memory);
}

static void read_version(struct core *core, struct gang *gang, const struct job *job)
{
    int64_t version = 0;
    (void)str_to_i64(job->meta.resource_version, &version);
    if ((uint64_t)version < gang->version) {
        GANG_PUT(gang, run, awaited_version,
                 0); /* the cluster was restored: nothing newer will come */
    }
    gang->version = (uint64_t)version;
    struct str plain = arena_format(&core->scratch, "%llu", (unsigned long long)gang->version);
    GANG_PUT_TEXT(gang, run, version_text,
                  str_eq(plain, job->meta.resource_version) ? STR_NONE
                                                            : job->meta.resource_version);
}

static int64_t value_or(struct opt_int value, int64_t otherwise)
{
    return value.is_set ? value.value : otherwise;
}

static void read_status(struct gang *gang, const struct job *job)
{
    gang->is_job_finished = job_is_finished(job);
    gang->has_started = job->status.start_time.is_set;
    gang->has_suspended_condition =
        condition_is_true(&job->status.conditions, "Suspended") || !gang->has_started;
    gang->is_ending = condition_is_true(&job->status.conditions, "FailureTarget") ||
                      condition_is_true(&job->status.conditions, "SuccessCriteriaMet");
    GANG_PUT(gang, run, active, value_or(job->status.active, 0));
    GANG_PUT(gang, run, ready, value_or(job->status.ready, 0));
    GANG_PUT(gang, run, terminating, value_or(job->status.terminating, 0));
    GANG_PUT(gang, run, succeeded, value_or(job->status.succeeded, 0));
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
    if (!str_eq(gang->template_class, job->spec.pod_template.spec.priority_class_name)) {
        str_drop(&gang->template_class);
        gang->template_class = str_own(job->spec.pod_template.spec.priority_class_name);
    }
    gang_reprioritize(core, gang);
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
                                flags[i], STR_ARG(text_quote(&core->scratch, value, 100)));
        }
    }
    return STR_NONE;
}

/* The template as the user wrote it: what an admission put in is taken out again. */
static struct pod_spec plain_spec(struct core *core, const struct gang *gang,
                                  const struct gang_input_set *set)
{
    struct pod_spec spec = set->pod_template->spec;
    const struct record_restore *restore = record_restore(gang->record, set->name);
    if (restore != NULL) {
        spec.node_selector = restore->node_selector;
        spec.tolerations = restore->tolerations;
        spec.affinity = avoid_plain(core, &set->pod_template->spec, restore);
    }
    return spec;
}

static void read_shape(struct core *core, struct gang *gang, const struct job *job,
                       const struct gang_input *from, struct str queue_name)
{
    struct shape_input_set *sets =
        ARENA_ARRAY(&core->scratch, struct shape_input_set, from->set_count);
    struct pod_spec *specs = ARENA_ARRAY(&core->scratch, struct pod_spec, from->set_count);
    bool has_group_claims = false;
    for (uint32_t s = 0; s < from->set_count; s++) {
        specs[s] = plain_spec(core, gang, &from->sets[s]);
        sets[s] = (struct shape_input_set){.name = from->sets[s].name,
                                           .spec = &specs[s],
                                           .size = from->sets[s].size,
                                           .group_claims = group_claims_of(job, &specs[s])};
        has_group_claims = has_group_claims || sets[s].group_claims != 0;
    }
    struct shape_input input = {.queue = queue_get(core, queue_name),
                                .namespace_name = gang->namespace_name,
                                .sets = sets,
                                .set_count = from->set_count,
                                .stated_runtime_ms = runtime_stated_ms(gang)};
    (void)topology_read(core, job, &input);
    input.pod_group = has_group_claims ? group_claims_pod_group(core, job) : STR_NONE;
    struct shape *shape = shape_use(core, &input);
    for (uint32_t s = 0; s < from->set_count; s++) {
        pod_set_meet_labels(&shape->sets[s], &from->sets[s].pod_template->meta.labels);
    }
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

/* Run-time bound and grace; the first thing that is wrong with the Job. */
static void read_trouble(struct core *core, struct gang *gang, const struct job *job,
                         struct str size_trouble)
{
    struct str runtime = runtime_read(core, gang, job);
    struct str bad_grace = checkpoint_read_grace(
        core, job_annotation(job, ANNOTATION_CHECKPOINT_GRACE), &gang->grace_ms);
    struct str trouble = str_is_set(size_trouble) ? size_trouble : bad_grace;
    trouble = str_is_set(trouble) ? trouble : flag_trouble(core, job);
    trouble = str_is_set(trouble) ? trouble : runtime;
    trouble = str_is_set(trouble) ? trouble : group_claims_trouble(core, job);
    struct shape_input unused;
    trouble = str_is_set(trouble) ? trouble : topology_read(core, job, &unused);
    if (gang->reservation != NULL && !str_eq(trouble, gang->trouble->invalid)) {
        gang_show(core, gang); /* it isn't stopped for that, so nothing else would tell */
    }
    GANG_PUT_TEXT(gang, trouble, invalid, trouble);
}

/* The queue that it belongs to; empty: none any more. */
static struct str read_label(const struct core *core, struct gang *gang, const struct job *job)
{
    struct str label = job_label(job, LABEL_QUEUE);
    gang->is_label_due = false;
    if (str_is_empty(label) && gang->record == NULL) {
        label = default_queue_of(core, gang->namespace_name);
        gang->is_label_due = str_is_set(label);
    }
    gang->has_label = !str_is_empty(label);
    if (!gang->has_label && gang->record != NULL) {
        label = gang->record->queue; /* it is counted there until it has stopped */
    }
    return label;
}

/* Of the ProvisioningRequest whose room the gang has used last. */
static void read_attempt(struct gang *gang, const struct job *job)
{
    GANG_PUT(gang, room, used_attempt, 0);
    int64_t attempt = 0;
    bool is_number = str_to_i64(job_annotation(job, ANNOTATION_ATTEMPT), &attempt);
    if (is_number && attempt > 0 && attempt <= REQUEST_ATTEMPTS_MAX) {
        GANG_PUT(gang, room, used_attempt, attempt);
    }
    GANG_PUT(gang, room, used_before, gang->room->used_attempt);
}

/* 0: there is none, or it isn't a time. */
static int64_t time_annotation(const struct job *job, const char *key)
{
    int64_t at_ms = 0;
    (void)time_parse_rfc3339(job_annotation(job, key), &at_ms);
    return at_ms;
}

static void read_job(struct core *core, struct gang *gang, const struct job *job)
{
    read_version(core, gang, job);
    read_status(gang, job);
    gang->created_ms = job->meta.creation_timestamp.is_set ? job->meta.creation_timestamp.ms : 0;
    if (gang->order_ms < gang->created_ms && !gang->is_in_queue) {
        gang->order_ms = gang->created_ms;
    }
    gang->is_suspended = opt_is_true(job->spec.suspend);
    gang->is_eviction_unwritten &= !gang->is_suspended;
    gang->is_stop_unwritten &= !gang->is_suspended;
    gang->is_job_deleting = job->meta.deletion_timestamp.is_set;
    gang->is_hold_wanted = str_eq_c(job_annotation(job, ANNOTATION_HOLD), "true");
    gang->is_paused = job->spec.parallelism.is_set && job->spec.parallelism.value <= 0;
    struct gang_input input;
    struct err err;
    bool is_sized = !rc_failed(core->read_gang(&core->scratch, job, &input, &err));
    mem_free(gang->record);
    gang->record = read_record(core, gang, job, &input);
    gang->is_record_refused =
        gang->record == NULL && !str_is_empty(job_annotation(job, ANNOTATION_ADMISSION));
    mem_free(gang->suspended);
    gang->suspended = read_suspended(core, job);
    take_memory(gang);
    if (!gang_is_busy(gang)) {
        gang_sets_forget_patch(gang);
        read_attempt(gang, job);
    }
    gang_read_domain(core, gang);
    GANG_PUT(gang, run, checkpoint_ms, time_annotation(job, ANNOTATION_CHECKPOINT));
    GANG_PUT(gang, run, request_ms, time_annotation(job, ANNOTATION_CHECKPOINT_REQUEST));
    GANG_PUT_TEXT(gang, run, request_for, job_annotation(job, ANNOTATION_CHECKPOINT_FOR));
    read_trouble(core, gang, job, is_sized ? STR_NONE : str_from_c(err.text));
    gang_sets_read(gang, &input);
    gang->is_size_pruned = is_size_pruned(gang, job);
    struct str label = read_label(core, gang, job);
    if (!str_is_empty(label)) {
        read_shape(core, gang, job, &input, label);
    }
    read_priority(core, gang, job);
}

static bool is_ours(struct core *core, const struct job *job)
{
    struct str manager = job->spec.managed_by;
    bool is_builtin = str_is_empty(manager) || str_eq_c(manager, "kubernetes.io/job-controller");
    if (!is_builtin) {
        return false;
    }
    if (!str_is_empty(job_label(job, LABEL_QUEUE)) ||
        !str_is_empty(job_annotation(job, ANNOTATION_ADMISSION))) {
        return true;
    }
    return default_queue_takes(core, job);
}

/* Its user has named no queue, or has taken the label off. */
static void tell_default_queue(struct core *core, const struct gang *gang, bool was_labelled)
{
    if (!core->is_ready) {
        return;
    }
    const char *what = was_labelled ? "was taken off; it goes on in" : "isn't set; it goes into";
    note_event(core, gang, was_labelled, "DefaultQueue", "SetQueue",
               arena_format(&core->scratch,
                            "label " LABEL_QUEUE " %s queue " STR_FMT
                            ", the default of namespace " STR_FMT " (label " LABEL_DEFAULT_QUEUE
                            ")",
                            what, STR_ARG(gang->queue->name), STR_ARG(gang->namespace_name)));
}

void job_apply(struct core *core, const struct job *object)
{
    struct gang *gang = gang_find(core, object->meta.uid);
    struct str key = key_join(&core->scratch, object->meta.namespace_name, object->meta.name);
    struct gang *namesake = table_find(&core->gangs_by_key, key);
    if (namesake != NULL && namesake != gang) {
        gang_job_gone(core, namesake); /* deleted and made again: another Job */
    }
    if (gang == NULL) {
        if (!is_ours(core, object)) {
            return;
        }
        gang = gang_new(core, object->meta.uid, object->meta.namespace_name, object->meta.name);
        admissions_meet_job(core, gang);
    }
    bool was_labelled = gang->has_label && !gang->is_label_due;
    bool was_due = gang->is_label_due || (gang->is_admission_seen && !was_labelled);
    read_job(core, gang, object);
    if (gang->has_label && !gang->is_label_due) {
        default_queue_forget(core, gang->uid);
    } else {
        default_queue_remember(core, object);
    }
    if (gang->is_label_due && !was_due) {
        tell_default_queue(core, gang, was_labelled);
    }
    gang_pods_changed(core, gang);
}

void job_deleted(struct core *core, const struct job *object)
{
    default_queue_forget(core, object->meta.uid);
    struct gang *gang = gang_find(core, object->meta.uid);
    if (gang != NULL) {
        gang_job_gone(core, gang);
    }
}
