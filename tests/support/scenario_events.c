/* scenario_events.c - what happens to the objects of a scenario: the Job controller's, the
 * scheduler's and the users' part. */
#include "support/scenario_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

void map_remove(struct string_map *map, struct str key)
{
    for (uint32_t i = 0; i < map->count; i++) {
        if (str_eq(map->items[i].key, key)) {
            memmove(&map->items[i], &map->items[i + 1],
                    (map->count - i - 1) * sizeof(struct string_pair));
            map->count--;
            break;
        }
    }
    if (map->count == 0) {
        map->items = NULL; /* the server leaves an empty map out */
    }
}

void map_set(struct scenario *s, struct string_map *map, struct str key, struct str value)
{
    struct string_pair *items = ARENA_ARRAY(&s->arena, struct string_pair, map->count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        if (!str_eq(map->items[i].key, key)) {
            items[count++] = map->items[i];
        }
    }
    items[count++] =
        (struct string_pair){arena_copy_str(&s->arena, key), arena_copy_str(&s->arena, value)};
    *map = (struct string_map){items, count};
}

/* -- objects in general -------------------------------------------------------------------------
 */

void *scenario_object(struct scenario *s, enum object_kind kind, const char *name)
{
    return entry_need(s, kind, name)->value;
}

struct job *scenario_job(struct scenario *s, const char *name)
{
    return scenario_object(s, KIND_JOB, name);
}

void object_changed(struct scenario *s, enum object_kind kind, const char *name)
{
    scenario_start(s);
    struct entry *entry = entry_need(s, kind, name);
    entry_touch(s, entry);
    tell(s, entry);
}

void object_again(struct scenario *s, enum object_kind kind, const char *name)
{
    scenario_start(s);
    tell(s, entry_need(s, kind, name));
}

void object_gone(struct scenario *s, enum object_kind kind, const char *name)
{
    scenario_start(s);
    tell_gone(s, entry_need(s, kind, name));
}

/* -- pods ---------------------------------------------------------------------------------------
 */

static bool is_pod_of(const struct entry *entry, const struct job *job)
{
    if (entry->kind != KIND_POD) {
        return false;
    }
    const struct owner_reference *owner = meta_controller(entry->value);
    return owner != NULL && str_eq(owner->uid, job->meta.uid);
}

/* What the Job controller would write into the Job's status. */
static void sync_job(struct scenario *s, struct entry *entry)
{
    struct job *job = (struct job *)entry->value;
    int64_t active = 0;
    int64_t ready = 0;
    int64_t terminating = 0;
    for (struct entry *other = s->first; other != NULL; other = other->next) {
        if (!is_pod_of(other, job)) {
            continue;
        }
        const struct pod *pod = (const struct pod *)other->value;
        bool is_going = pod->meta.deletion_timestamp.is_set;
        active += !pod_is_terminal(pod) && !is_going ? 1 : 0;
        ready += !pod_is_terminal(pod) && pod_is_ready(pod) ? 1 : 0;
        terminating += !pod_is_terminal(pod) && is_going ? 1 : 0;
    }
    job->status.active = (struct opt_int){active > 0, active};
    job->status.ready = (struct opt_int){true, ready};
    job->status.terminating = (struct opt_int){true, terminating};
    entry_touch(s, entry);
    tell(s, entry);
}

static struct entry *job_of_pod(struct scenario *s, const struct pod *pod)
{
    const struct owner_reference *owner = meta_controller(&pod->meta);
    for (struct entry *entry = s->first; entry != NULL && owner != NULL; entry = entry->next) {
        if (entry->kind == KIND_JOB && str_eq(entry->value->uid, owner->uid)) {
            return entry;
        }
    }
    return NULL;
}

static void pod_changed(struct scenario *s, struct entry *entry)
{
    entry_touch(s, entry);
    tell(s, entry);
    struct entry *job = job_of_pod(s, (const struct pod *)entry->value);
    if (job != NULL) {
        sync_job(s, job);
    }
}

struct entry *pod_make(struct scenario *s, const struct entry *job_entry, struct str name,
                       const struct pod_spec *spec, struct str set)
{
    const struct job *job = (const struct job *)job_entry->value;
    struct pod *pod = ARENA_NEW(&s->arena, struct pod);
    pod->meta.name = name;
    pod->meta.namespace_name = job->meta.namespace_name;
    struct owner_reference *owner = ARENA_NEW(&s->arena, struct owner_reference);
    *owner = (struct owner_reference){.api_version = STR("batch/v1"),
                                      .kind = STR("Job"),
                                      .name = job->meta.name,
                                      .uid = job->meta.uid,
                                      .controller = {true, true}};
    pod->meta.owner_references = (struct owner_reference_list){owner, 1};
    pod->spec = *spec;
    pod->status.phase = STR("Pending");
    if (str_is_set(set)) {
        map_set(s, &pod->meta.labels, STR("tallyman.dev/pod-set"), set);
    }
    struct entry *entry = entry_put(s, KIND_POD, &pod->meta);
    tell(s, entry);
    return entry;
}

void pods_appear(struct scenario *s, const char *name, int count)
{
    scenario_start(s);
    struct entry *job = entry_need(s, KIND_JOB, name);
    struct job *object = (struct job *)job->value;
    object->status.start_time = (struct opt_time){true, s->now_ms};
    object->status.conditions.count = 0;
    int made = 0;
    for (int i = 0; made < count; i++) {
        char pod[300];
        (void)snprintf(pod, sizeof(pod), STR_FMT "-%d", STR_ARG(job->key), i);
        if (entry_find(s, KIND_POD, pod) == NULL) {
            (void)pod_make(s, job, make(s, STR_FMT "-%d", STR_ARG(job->value->name), i),
                           &object->spec.pod_template.spec, STR_NONE);
            made++;
        }
    }
    sync_job(s, job);
}

void pod_binds(struct scenario *s, const char *name, const char *node)
{
    struct entry *entry = entry_need(s, KIND_POD, name);
    ((struct pod *)entry->value)->spec.node_name = arena_copy_str(&s->arena, str_from_c(node));
    pod_changed(s, entry);
}

void pod_is_ready_now(struct scenario *s, const char *name, bool is_ready)
{
    struct entry *entry = entry_need(s, KIND_POD, name);
    struct pod *pod = (struct pod *)entry->value;
    struct condition *ready = ARENA_NEW(&s->arena, struct condition);
    *ready =
        (struct condition){.type = STR("Ready"), .status = is_ready ? STR("True") : STR("False")};
    pod->status.conditions = (struct condition_list){ready, 1};
    pod->status.phase = STR("Running");
    pod_changed(s, entry);
}

/* "0,2" and "1" make "0,1,2": the Job controller writes them in order. */
static struct str with_index(struct scenario *s, struct str indexes, const char *index)
{
    struct str before = STR_NONE;
    struct str rest = indexes;
    while (str_is_set(rest) && rest.len > 0) {
        size_t comma = str_find_char(rest, ',');
        char number[16];
        (void)snprintf(number, sizeof(number), STR_FMT, STR_ARG(str_take(rest, comma)));
        if (strtol(number, NULL, 10) > strtol(index, NULL, 10)) {
            break;
        }
        before = str_take(indexes, indexes.len - rest.len + comma);
        rest = comma < rest.len ? str_skip(rest, comma + 1) : STR_NONE;
    }
    bool is_last = !str_is_set(rest) || rest.len == 0;
    return make(s, STR_FMT "%s%s%s" STR_FMT, STR_ARG(before), str_is_empty(before) ? "" : ",",
                index, is_last ? "" : ",", STR_ARG(rest));
}

void pod_succeeds(struct scenario *s, const char *name)
{
    struct entry *entry = entry_need(s, KIND_POD, name);
    struct pod *pod = (struct pod *)entry->value;
    pod->status.phase = STR("Succeeded");
    pod->status.conditions.count = 0;
    struct entry *job_entry = job_of_pod(s, pod);
    if (job_entry != NULL) {
        struct job *job = (struct job *)job_entry->value;
        job->status.succeeded = (struct opt_int){true, job->status.succeeded.value + 1};
        job->status.completed_indexes =
            with_index(s, job->status.completed_indexes, strrchr(name, '-') + 1);
    }
    pod_changed(s, entry);
}

void pod_terminates(struct scenario *s, const char *name)
{
    struct entry *entry = entry_need(s, KIND_POD, name);
    entry->value->deletion_timestamp = (struct opt_time){true, s->now_ms};
    pod_changed(s, entry);
}

void pod_gone(struct scenario *s, const char *name)
{
    struct entry *entry = entry_need(s, KIND_POD, name);
    struct entry *job = job_of_pod(s, (const struct pod *)entry->value);
    tell_gone(s, entry);
    if (job != NULL) {
        sync_job(s, job);
    }
}

void gang_starts(struct scenario *s, const char *name, const char *nodes)
{
    struct str node;
    const char *rest = nodes;
    int count = 0;
    while (next_word(&rest, &node)) {
        count++;
    }
    pods_appear(s, name, count);
    struct job *job = scenario_job(s, name);
    struct entry *next;
    for (struct entry *entry = s->first; entry != NULL; entry = next) {
        next = entry->next;
        struct pod *pod = (struct pod *)entry->value;
        if (!is_pod_of(entry, job) || str_is_set(pod->spec.node_name)) {
            continue;
        }
        if (!next_word(&nodes, &node)) {
            break;
        }
        char pod_name[300];
        (void)snprintf(pod_name, sizeof(pod_name), STR_FMT, STR_ARG(entry->key));
        pod->spec.node_name = arena_copy_str(&s->arena, node);
        pod_is_ready_now(s, pod_name, true);
    }
}

static void set_suspended(struct scenario *s, struct job *job)
{
    struct condition *suspended = ARENA_NEW(&s->arena, struct condition);
    *suspended = (struct condition){.type = STR("Suspended"), .status = STR("True")};
    job->status.conditions = (struct condition_list){suspended, 1};
    job->status.start_time.is_set = false;
}

void job_says_suspended(struct scenario *s, const char *name)
{
    struct entry *entry = entry_need(s, KIND_JOB, name);
    set_suspended(s, (struct job *)entry->value);
    sync_job(s, entry);
}

void gang_stops(struct scenario *s, const char *name)
{
    struct entry *job_entry = entry_need(s, KIND_JOB, name);
    struct job *job = (struct job *)job_entry->value;
    set_suspended(s, job);
    struct entry *next;
    for (struct entry *entry = s->first; entry != NULL; entry = next) {
        next = entry->next;
        if (is_pod_of(entry, job)) {
            tell_gone(s, entry);
        }
    }
    sync_job(s, job_entry);
}

/* -- claims -------------------------------------------------------------------------------------
 */

static void allocate(struct scenario *s, struct resource_claim *claim, const char *devices)
{
    struct claim_allocation *allocation = ARENA_NEW(&s->arena, struct claim_allocation);
    struct allocation_result *results = ARENA_ARRAY(&s->arena, struct allocation_result, 64);
    struct str word;
    uint32_t count = 0;
    while (next_word(&devices, &word)) {
        size_t slash = str_find_char(word, '/');
        assert_true(slash < word.len && count < 64);
        results[count++] = (struct allocation_result){
            .request = STR("gpu"),
            .driver = STR("gpu.example.com"),
            .pool = arena_copy_str(&s->arena, str_take(word, slash)),
            .device = arena_copy_str(&s->arena, str_skip(word, slash + 1))};
    }
    allocation->devices.results = (struct allocation_result_list){results, count};
    claim->status.allocation = allocation;
}

void claim_allocated(struct scenario *s, const char *name, const char *devices)
{
    allocate(s, scenario_object(s, KIND_RESOURCE_CLAIM, name), devices);
    object_changed(s, KIND_RESOURCE_CLAIM, name);
}

void claim_freed(struct scenario *s, const char *name)
{
    struct resource_claim *claim = scenario_object(s, KIND_RESOURCE_CLAIM, name);
    claim->status = (struct resource_claim_status){.allocation = NULL};
    object_changed(s, KIND_RESOURCE_CLAIM, name);
}

static void reserve_for(struct scenario *s, struct resource_claim *claim, const struct pod *pod)
{
    struct claim_consumer_list *list = &claim->status.reserved_for;
    struct claim_consumer *items = ARENA_ARRAY(&s->arena, struct claim_consumer, list->count + 1);
    for (uint32_t i = 0; i < list->count; i++) {
        items[i] = list->items[i];
    }
    items[list->count] = (struct claim_consumer){
        .resource = STR("pods"), .name = pod->meta.name, .uid = pod->meta.uid};
    *list = (struct claim_consumer_list){items, list->count + 1};
}

void claim_reserved(struct scenario *s, const char *name, const char *pod)
{
    reserve_for(s, scenario_object(s, KIND_RESOURCE_CLAIM, name),
                scenario_object(s, KIND_POD, pod));
    object_changed(s, KIND_RESOURCE_CLAIM, name);
}

/* Beside those of the pod's other entries. */
static void add_claim_status(struct scenario *s, struct pod *pod,
                             const struct pod_claim_status *made)
{
    const struct pod_claim_status_list *before = &pod->status.resource_claim_statuses;
    struct pod_claim_status_list after = {.count = 0};
    after.items = ARENA_ARRAY(&s->arena, struct pod_claim_status, before->count + 1);
    for (uint32_t i = 0; i < before->count; i++) {
        if (!str_eq(before->items[i].name, made->name)) {
            after.items[after.count++] = before->items[i];
        }
    }
    after.items[after.count++] = *made;
    pod->status.resource_claim_statuses = after;
}

void pod_claims(struct scenario *s, const char *pod_name, const char *template_name,
                const char *devices)
{
    struct pod *pod = scenario_object(s, KIND_POD, pod_name);
    struct resource_claim *claim = ARENA_NEW(&s->arena, struct resource_claim);
    claim->meta.name = make(s, STR_FMT "-%s", STR_ARG(pod->meta.name), template_name);
    claim->meta.namespace_name = pod->meta.namespace_name;
    struct entry *made_of = entry_find(s, KIND_RESOURCE_CLAIM_TEMPLATE, template_name);
    if (made_of != NULL) {
        claim->spec = ((struct resource_claim_template *)made_of->value)->spec.spec;
    }
    allocate(s, claim, devices);
    reserve_for(s, claim, pod);
    struct pod_claim_status *made = ARENA_NEW(&s->arena, struct pod_claim_status);
    *made = (struct pod_claim_status){.name = make(s, "c-%s", template_name),
                                      .resource_claim_name = claim->meta.name};
    add_claim_status(s, pod, made);
    struct entry *entry = entry_put(s, KIND_RESOURCE_CLAIM, &claim->meta);
    pod_changed(s, entry_need(s, KIND_POD, pod_name));
    tell(s, entry);
}

/* -- Jobs -------------------------------------------------------------------------------------- */

void job_finishes(struct scenario *s, const char *name)
{
    struct entry *job_entry = entry_need(s, KIND_JOB, name);
    struct job *job = (struct job *)job_entry->value;
    for (struct entry *entry = s->first; entry != NULL; entry = entry->next) {
        if (is_pod_of(entry, job) && !pod_is_terminal((const struct pod *)entry->value)) {
            ((struct pod *)entry->value)->status.phase = STR("Succeeded");
            entry_touch(s, entry);
            tell(s, entry);
        }
    }
    struct condition *complete = ARENA_NEW(&s->arena, struct condition);
    *complete = (struct condition){.type = STR("Complete"), .status = STR("True")};
    job->status.conditions = (struct condition_list){complete, 1};
    job->status.succeeded = job->spec.completions;
    sync_job(s, job_entry);
}

void job_suspended_by_user(struct scenario *s, const char *name, bool is_suspended)
{
    scenario_start(s);
    scenario_job(s, name)->spec.suspend = (struct opt_bool){true, is_suspended};
    object_changed(s, KIND_JOB, name);
}

void job_relabelled(struct scenario *s, const char *name, const char *queue)
{
    struct job *job = scenario_job(s, name);
    if (*queue == '\0') {
        map_remove(&job->meta.labels, STR("tallyman.dev/queue"));
    } else {
        map_set(s, &job->meta.labels, STR("tallyman.dev/queue"), str_from_c(queue));
    }
    object_changed(s, KIND_JOB, name);
}

void job_annotated(struct scenario *s, const char *name, const char *key, const char *value)
{
    struct job *job = scenario_job(s, name);
    if (value == NULL) {
        map_remove(&job->meta.annotations, str_from_c(key));
    } else {
        map_set(s, &job->meta.annotations, str_from_c(key), str_from_c(value));
    }
    object_changed(s, KIND_JOB, name);
}

void job_has_record(struct scenario *s, const char *name, const char *record)
{
    map_set(s, &scenario_job(s, name)->meta.annotations, STR("tallyman.dev/admission"),
            str_from_c(record));
}

void job_resized(struct scenario *s, const char *name, int parallelism, int completions)
{
    struct job *job = scenario_job(s, name);
    job->spec.parallelism = (struct opt_int){true, parallelism};
    job->spec.completions = (struct opt_int){true, completions};
    object_changed(s, KIND_JOB, name);
}

void job_deleted_now(struct scenario *s, const char *name)
{
    object_gone(s, KIND_JOB, name);
}

void job_recreated(struct scenario *s, const char *name, const char *queue, const char *options)
{
    /* As one watch burst may show it: no DELETED in between. */
    scenario_start(s);
    entry_drop(s, entry_need(s, KIND_JOB, name));
    given_job(s, name, queue, options);
}
