/* apply.c - what users do to the cluster, and what the API server and the policies make of it. */
#include "sim_internal.h"

#include <stdio.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/time_text.h"

/* -- Jobs at the door ---------------------------------------------------------------------------
 */

/* config/policies/min-count.yaml: the gang size is saved before the field is dropped. It is kept
 * where claims for the whole gang are in it, which no cluster without the gates could play. */
static void drop_scheduling(struct sim *sim, struct job *job)
{
    if (job->spec.scheduling == NULL || podgroup_has_claims(job)) {
        return;
    }
    const struct scheduling_policy *policy = job->spec.scheduling->scheduling_policy;
    bool has_size = policy != NULL && policy->gang != NULL && policy->gang->min_count.is_set;
    if (has_size && !str_is_set(string_map_get(&job->meta.annotations, ANNOTATION_MIN_COUNT))) {
        struct str text =
            arena_format(&sim->scratch, "%lld", (long long)policy->gang->min_count.value);
        job->meta.annotations =
            api_map_with(sim, &job->meta.annotations, STR(ANNOTATION_MIN_COUNT), text);
    }
    job->spec.scheduling = NULL;
}

/* config/policies/default-queue.yaml */
static void default_queue(struct sim *sim, struct job *job)
{
    const struct sim_object *namespace = api_find(sim, KIND_NAMESPACE, job->meta.namespace_name);
    struct str queue = namespace == NULL
                           ? STR_NONE
                           : string_map_get(&object_meta(namespace)->labels, LABEL_DEFAULT_QUEUE);
    if (!str_is_empty(queue) && !str_is_set(string_map_get(&job->meta.labels, LABEL_QUEUE))) {
        job->meta.labels = api_map_with(sim, &job->meta.labels, STR(LABEL_QUEUE), queue);
    }
}

struct job apply_admit_job(struct sim *sim, const struct job *job)
{
    struct job next = *job;
    if (!next.spec.parallelism.is_set) {
        next.spec.parallelism = (struct opt_int){true, 1};
        if (!next.spec.completions.is_set) {
            next.spec.completions = (struct opt_int){true, 1};
        }
    }
    drop_scheduling(sim, &next);
    default_queue(sim, &next);
    bool is_admitted = str_is_set(string_map_get(&next.meta.annotations, ANNOTATION_ADMISSION));
    if (job_is_gang(&next) && !is_admitted) {
        next.spec.suspend = (struct opt_bool){true, sim->options.has_tallyman};
    }
    return next;
}

/* -- checks -------------------------------------------------------------------------------------
 */

struct rc apply_duration(const struct object_meta *meta, const char *kind, const char *annotation,
                         int64_t *ret_ms, struct err *err)
{
    struct str text = string_map_get(&meta->annotations, annotation);
    int64_t ms = -1;
    if (str_is_set(text) && !duration_parse(text, &ms)) {
        return err_set(err, RC_INVALID,
                       "%s " STR_FMT ": metadata.annotations[%s]: \"" STR_FMT
                       "\" is not a duration; write it like 90s, 10m or 1h30m",
                       kind, STR_ARG(meta->name), annotation, STR_ARG(text));
    }
    *ret_ms = ms;
    return RC_SUCCESS;
}

static struct rc check_run_for(const struct object *object, struct err *err)
{
    int64_t ignored;
    const char *kind = kind_info(object->kind)->name;
    TRY(apply_duration(object->value, kind, SIM_ANNOTATION_RUN_FOR, &ignored, err));
    if (object->kind == KIND_JOB) {
        struct object_meta meta = ((const struct job *)object->value)->spec.pod_template.meta;
        meta.name = object->value->name;
        return err_prefix(err, apply_duration(&meta, kind, SIM_ANNOTATION_RUN_FOR, &ignored, err),
                          "spec.template");
    }
    return RC_SUCCESS;
}

/* -- loading ------------------------------------------------------------------------------------
 */

static void *shallow_copy(enum object_kind kind, const void *value)
{
    size_t bytes = kind_info(kind)->schema->bytes;
    void *copy = mem_alloc(bytes);
    memcpy(copy, value, bytes);
    return copy;
}

/* What the server and the controllers own of the object stays. */
static void keep_server_fields(const struct sim_object *object, void *next)
{
    struct object_meta *meta = next;
    const struct object_meta *old = object_meta(object);
    meta->uid = old->uid;
    meta->resource_version = old->resource_version;
    meta->generation = old->generation;
    meta->creation_timestamp = old->creation_timestamp;
    meta->deletion_timestamp = old->deletion_timestamp;
    meta->finalizers = old->finalizers;
    switch (object->kind) {
    case KIND_POD:
        ((struct pod *)next)->status = object_pod(object)->status;
        ((struct pod *)next)->spec.node_name = object_pod(object)->spec.node_name;
        break;
    case KIND_RESOURCE_CLAIM:
        ((struct resource_claim *)next)->status = object_claim(object)->status;
        break;
    case KIND_QUEUE:
        ((struct queue *)next)->status = ((const struct queue *)object->value)->status;
        break;
    case KIND_COHORT:
        ((struct cohort *)next)->status = ((const struct cohort *)object->value)->status;
        break;
    case KIND_RESOURCE_FLAVOR:
        ((struct resource_flavor *)next)->status =
            ((const struct resource_flavor *)object->value)->status;
        break;
    case KIND_NONE:
    case KIND_JOB:
    case KIND_NODE:
    case KIND_NAMESPACE:
    case KIND_LIMIT_RANGE:
    case KIND_RUNTIME_CLASS:
    case KIND_PRIORITY_CLASS:
    case KIND_DEVICE_CLASS:
    case KIND_RESOURCE_SLICE:
    case KIND_RESOURCE_CLAIM_TEMPLATE:
    case KIND_ADMISSION:
    case KIND_DEVICE_TAINT_RULE:
    case KIND_PROVISIONING_REQUEST:
    case KIND_COUNT:
        break;
    }
}

/* A Job that is applied again: labels, annotations, size and time bound; the template only says
 * what it said, or the server refuses. */
static struct rc replace_job(struct sim *sim, struct sim_object *object, const struct job *given,
                             struct err *err)
{
    const struct job *old = object_job(object);
    struct job next = *old;
    next.meta.labels = given->meta.labels;
    for (uint32_t i = 0; i < given->meta.annotations.count; i++) {
        const struct string_pair *pair = &given->meta.annotations.items[i];
        next.meta.annotations = api_map_with(sim, &next.meta.annotations, pair->key, pair->value);
    }
    next.spec.parallelism =
        given->spec.parallelism.is_set ? given->spec.parallelism : old->spec.parallelism;
    next.spec.active_deadline_seconds = given->spec.active_deadline_seconds;
    if (given->spec.suspend.is_set) {
        next.spec.suspend = given->spec.suspend;
    }
    struct pod_spec template = given->spec.pod_template.spec;
    template.node_selector = old->spec.pod_template.spec.node_selector;
    template.tolerations = old->spec.pod_template.spec.tolerations;
    if (!object_equal(&pod_spec_schema, &template, &old->spec.pod_template.spec)) {
        return err_set(err, RC_REFUSED,
                       "Job " STR_FMT ": spec.template: field is immutable; delete the Job and "
                       "make it anew",
                       STR_ARG(object->key));
    }
    bool is_spec = next.spec.parallelism.value != old->spec.parallelism.value ||
                   job_is_suspended(&next) != job_is_suspended(old);
    api_update(sim, object, &next, is_spec);
    return RC_SUCCESS;
}

static void create_job(struct sim *sim, const struct job *given)
{
    struct job next = apply_admit_job(sim, given);
    struct sim_object *object = api_create(sim, KIND_JOB, &next);
    sim_tell(sim, SIM_JOB_SUBMITTED, object, NULL, STR_NONE, STR_NONE);
}

static struct rc apply_object(struct sim *sim, enum object_kind kind, void *value, struct err *err)
{
    struct object_meta *meta = value;
    if (kind_info(kind)->is_namespaced && str_is_empty(meta->namespace_name)) {
        meta->namespace_name = STR("default");
    }
    if (kind == KIND_NAMESPACE) { /* the API server labels every one with its name */
        meta->labels =
            api_map_with(sim, &meta->labels, STR("kubernetes.io/metadata.name"), meta->name);
    }
    struct sim_object *object = api_find(sim, kind, api_key(sim, meta->namespace_name, meta->name));
    if (object != NULL && kind == KIND_JOB) {
        return replace_job(sim, object, value, err);
    }
    if (object != NULL) {
        keep_server_fields(object, value);
        api_update(sim, object, value, true);
        return RC_SUCCESS;
    }
    if (kind == KIND_JOB) {
        create_job(sim, value);
        return RC_SUCCESS;
    }
    if (kind == KIND_POD) {
        pod_set_defaults(sim, value);
    }
    const struct sim_object *made = api_create(sim, kind, value);
    if (kind == KIND_POD && !str_is_empty(object_pod(made)->spec.node_name)) {
        sim_tell(sim, SIM_POD_BOUND, made->pod.job, made, object_pod(made)->spec.node_name,
                 STR_NONE);
    }
    return RC_SUCCESS;
}

/* Later there is nobody to tell: what the server refuses then doesn't happen. */
static void apply_later(struct sim *sim, struct task *task)
{
    void *copy = shallow_copy(task->kind, task->value);
    (void)!rc_failed(apply_object(sim, task->kind, copy, NULL));
    mem_free(copy);
}

static struct rc submit_delay(const struct sim *sim, const struct object *object,
                              int64_t *ret_delay_ms, struct err *err)
{
    const char *kind = kind_info(object->kind)->name;
    int64_t delay_ms;
    TRY(apply_duration(object->value, kind, SIM_ANNOTATION_SUBMIT_AFTER, &delay_ms, err));
    const struct opt_time *created = &object->value->creation_timestamp;
    if (delay_ms < 0 && object->kind == KIND_JOB && created->is_set) {
        delay_ms = created->ms - sim->options.start_ms;
    }
    *ret_delay_ms = delay_ms;
    return RC_SUCCESS;
}

struct rc sim_load(struct sim *sim, const struct object *object, struct err *err)
{
    if (object->kind <= KIND_NONE || object->kind >= KIND_COUNT || object->value == NULL) {
        return err_set(err, RC_INVALID, "an object of a kind that the simulator doesn't know");
    }
    const char *kind = kind_info(object->kind)->name;
    if (str_is_empty(object->value->name)) {
        return err_set(err, RC_INVALID, "%s: metadata.name is missing; every object needs one",
                       kind);
    }
    TRY(check_run_for(object, err));
    int64_t delay_ms;
    TRY(submit_delay(sim, object, &delay_ms, err));
    TRY(changes_plan(sim, object, err));
    if (delay_ms > sim->now_ms) {
        struct task *task = agenda_add(sim, delay_ms, apply_later, STR_NONE);
        task->kind = object->kind;
        task->value = object_clone(kind_info(object->kind)->schema, object->value);
        return RC_SUCCESS;
    }
    void *copy = shallow_copy(object->kind, object->value);
    struct rc rc = apply_object(sim, object->kind, copy, err);
    mem_free(copy);
    return rc;
}

/* -- other things that happen -------------------------------------------------------------------
 */

bool sim_delete(struct sim *sim, enum object_kind kind, struct str namespace_name, struct str name)
{
    struct sim_object *object = api_find(sim, kind, api_key(sim, namespace_name, name));
    if (object != NULL) {
        api_delete(sim, object);
    }
    return object != NULL;
}

static struct sim_object *find_job(struct sim *sim, struct str namespace_name, struct str name)
{
    return api_find(sim, KIND_JOB, api_key(sim, namespace_name, name));
}

bool sim_job_annotate(struct sim *sim, struct str namespace_name, struct str name, struct str key,
                      struct str value)
{
    struct sim_object *object = find_job(sim, namespace_name, name);
    if (object != NULL) {
        struct job next = *object_job(object);
        next.meta.annotations = api_map_with(sim, &next.meta.annotations, key, value);
        api_update(sim, object, &next, false);
    }
    return object != NULL;
}

bool sim_job_suspend(struct sim *sim, struct str namespace_name, struct str name, bool suspend)
{
    struct sim_object *object = find_job(sim, namespace_name, name);
    if (object != NULL) {
        struct job next = *object_job(object);
        next.spec.suspend = (struct opt_bool){true, suspend};
        api_update(sim, object, &next, true);
    }
    return object != NULL;
}

bool sim_job_scale(struct sim *sim, struct str namespace_name, struct str name, int64_t parallelism)
{
    struct sim_object *object = find_job(sim, namespace_name, name);
    if (object != NULL) {
        struct job next = *object_job(object);
        next.spec.parallelism = (struct opt_int){true, parallelism};
        api_update(sim, object, &next, true);
    }
    return object != NULL;
}

bool sim_node_set_ready(struct sim *sim, struct str name, bool is_ready)
{
    struct sim_object *object = api_find(sim, KIND_NODE, name);
    if (object != NULL) {
        struct node next = *(const struct node *)object->value;
        struct condition ready = {.type = STR("Ready"),
                                  .status = is_ready ? STR("True") : STR("False")};
        next.status.conditions = api_condition_with(sim, &next.status.conditions, &ready);
        api_update(sim, object, &next, false);
    }
    return object != NULL;
}

bool sim_pod_fail(struct sim *sim, struct str namespace_name, struct str name)
{
    struct sim_object *pod = api_find(sim, KIND_POD, api_key(sim, namespace_name, name));
    bool can_fail = pod != NULL && !pod_is_terminal(object_pod(pod));
    if (can_fail) {
        kubelet_end_pod(sim, pod, "Failed");
    }
    return can_fail;
}
