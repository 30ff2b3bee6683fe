/* api.c - the API server: typed objects with uids, versions and generations. */
#include "sim_internal.h"

#include <stdio.h>

#include "tallyman/base/alloc.h"

int sim_object_compare(const struct sim_object *a, const struct sim_object *b)
{
    return str_compare(a->key, b->key);
}

RB_GENERATE(sim_object_tree, sim_object, by_key, sim_object_compare)

static struct str own(struct str s)
{
    char *copy = mem_alloc(s.len + 1);
    memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return (struct str){copy, s.len};
}

static void drop(struct str *s)
{
    mem_free((void *)(uintptr_t)s->ptr);
    *s = STR_NONE;
}

struct str api_key(struct sim *sim, struct str namespace_name, struct str name)
{
    if (str_is_empty(namespace_name)) {
        return arena_copy_str(&sim->scratch, name);
    }
    return arena_format(&sim->scratch, STR_FMT "/" STR_FMT, STR_ARG(namespace_name), STR_ARG(name));
}

struct sim_object *api_find(const struct sim *sim, enum object_kind kind, struct str key)
{
    struct sim_object wanted = {.key = key};
    return RB_FIND(sim_object_tree, (struct sim_object_tree *)(uintptr_t)&sim->objects[kind],
                   &wanted);
}

struct sim_object *api_find_uid(const struct sim *sim, struct str uid)
{
    struct sim_object *object = NULL;
    if (!str_is_empty(uid)) {
        HASH_FIND(hh, sim->by_uid, uid.ptr, (unsigned)uid.len, object);
    }
    return object;
}

struct sim_object *api_first(const struct sim *sim, enum object_kind kind)
{
    return RB_MIN(sim_object_tree, (struct sim_object_tree *)(uintptr_t)&sim->objects[kind]);
}

struct sim_object *api_next(struct sim_object *object)
{
    return RB_NEXT(sim_object_tree, NULL, object);
}

static struct object_meta *value_meta(void *value)
{
    return value;
}

/* Clones a value under a meta of its own. */
static void *clone_with_meta(enum object_kind kind, const void *value,
                             const struct object_meta *meta)
{
    const struct schema *schema = kind_info(kind)->schema;
    void *shallow = mem_alloc(schema->bytes);
    memcpy(shallow, value, schema->bytes);
    *value_meta(shallow) = *meta;
    void *clone = object_clone(schema, shallow);
    mem_free(shallow);
    return clone;
}

static struct str next_version(struct sim *sim)
{
    return arena_format(&sim->scratch, "%llu", (unsigned long long)++sim->version);
}

static void link_pod_to_job(struct sim *sim, struct sim_object *pod)
{
    const struct owner_reference *owner = meta_controller(object_meta(pod));
    struct sim_object *job = owner == NULL ? NULL : api_find_uid(sim, owner->uid);
    if (job == NULL || job->kind != KIND_JOB) {
        return;
    }
    pod->pod.job = job;
    *job->job.last_pod = pod;
    job->job.last_pod = &pod->pod.next_in_job;
}

static void unlink_pod_from_job(struct sim_object *pod)
{
    struct sim_object *job = pod->pod.job;
    if (job == NULL) {
        return;
    }
    job_count_pod(pod, false);
    struct sim_object **link = &job->job.pods;
    while (*link != pod) {
        link = &(*link)->pod.next_in_job;
    }
    *link = pod->pod.next_in_job;
    if (job->job.last_pod == &pod->pod.next_in_job) {
        job->job.last_pod = link;
    }
    pod->pod.job = NULL;
    pod->pod.next_in_job = NULL;
}

static void orphan_pods(struct sim_object *job)
{
    struct sim_object *next;
    for (struct sim_object *pod = job->job.pods; pod != NULL; pod = next) {
        next = pod->pod.next_in_job;
        pod->pod.job = NULL;
        pod->pod.next_in_job = NULL;
    }
    job->job.pods = NULL;
    job->job.last_pod = &job->job.pods;
}

static struct object_meta new_meta(struct sim *sim, const struct object_meta *given,
                                   uint64_t serial)
{
    struct object_meta meta = *given;
    if (str_is_empty(meta.uid)) {
        meta.uid = arena_format(&sim->scratch, "00000000-0000-4000-8000-%012llx",
                                (unsigned long long)serial);
    }
    if (!meta.creation_timestamp.is_set) {
        int64_t clock_ms = sim_clock_ms(sim);
        meta.creation_timestamp = (struct opt_time){true, clock_ms - clock_ms % 1000};
    }
    meta.generation = (struct opt_int){true, 1};
    meta.resource_version = next_version(sim);
    return meta;
}

static void note_supply(struct sim *sim, enum object_kind kind)
{
    sim->supply_version += kind == KIND_NODE || kind == KIND_RESOURCE_SLICE ? 1 : 0;
}

struct sim_object *api_create(struct sim *sim, enum object_kind kind, const void *value)
{
    struct sim_object *object = MEM_NEW(struct sim_object);
    object->kind = kind;
    object->serial = ++sim->next_serial;
    struct object_meta meta = new_meta(sim, (const struct object_meta *)value, object->serial);
    object->key = own(api_key(sim, meta.namespace_name, meta.name));
    object->uid = own(meta.uid);
    object->value = clone_with_meta(kind, value, &meta);
    object->job.last_pod = &object->job.pods;
    object->job.partial_since_ms = -1;
    RB_INSERT(sim_object_tree, &sim->objects[kind], object);
    HASH_ADD_KEYPTR(hh, sim->by_uid, object->uid.ptr, (unsigned)object->uid.len, object);
    sim->is_node_list_stale = sim->is_node_list_stale || kind == KIND_NODE;
    note_supply(sim, kind);
    if (kind == KIND_POD) {
        link_pod_to_job(sim, object);
    }
    watch_changed(sim, object, NULL);
    return object;
}

void api_update(struct sim *sim, struct sim_object *object, const void *value, bool is_spec)
{
    const struct schema *schema = kind_info(object->kind)->schema;
    if (object_equal(schema, object->value, value)) {
        return;
    }
    struct object_meta meta = *(const struct object_meta *)value;
    meta.resource_version = next_version(sim);
    if (is_spec) {
        meta.generation = (struct opt_int){true, meta.generation.value + 1};
    }
    void *old = object->value;
    object->value = clone_with_meta(object->kind, value, &meta);
    note_supply(sim, object->kind);
    watch_changed(sim, object, old);
    mem_free(old);
}

static void object_free(struct sim_object *object)
{
    drop(&object->key);
    drop(&object->uid);
    drop(&object->job.told);
    mem_free(object->pod.amounts.items);
    mem_free(object->value);
    mem_free(object);
}

void api_remove(struct sim *sim, struct sim_object *object)
{
    RB_REMOVE(sim_object_tree, &sim->objects[object->kind], object);
    HASH_DEL(sim->by_uid, object);
    sim->is_node_list_stale = sim->is_node_list_stale || object->kind == KIND_NODE;
    note_supply(sim, object->kind);
    watch_removed(sim, object);
    if (object->kind == KIND_POD) {
        unlink_pod_from_job(object);
    }
    if (object->kind == KIND_JOB) {
        orphan_pods(object);
    }
    object_free(object);
}

/* kubectl and the controllers delete in the background: the object goes at once unless a finalizer
 * or, for a pod, its kubelet has to be heard first. */
void api_delete(struct sim *sim, struct sim_object *object)
{
    const struct object_meta *meta = object_meta(object);
    bool is_held = meta->finalizers.count > 0;
    if (object->kind == KIND_POD) {
        const struct pod *pod = object_pod(object);
        is_held = is_held || (!str_is_empty(pod->spec.node_name) && !pod_is_terminal(pod));
    }
    if (!is_held) {
        api_remove(sim, object);
        return;
    }
    if (meta->deletion_timestamp.is_set) {
        return;
    }
    const struct schema *schema = kind_info(object->kind)->schema;
    void *shallow = mem_alloc(schema->bytes);
    memcpy(shallow, object->value, schema->bytes);
    value_meta(shallow)->deletion_timestamp = (struct opt_time){true, sim_clock_ms(sim)};
    api_update(sim, object, shallow, true);
    mem_free(shallow);
}

void api_free(struct sim *sim)
{
    struct sim_object *object;
    struct sim_object *next;
    HASH_ITER (hh, sim->by_uid, object, next) {
        HASH_DEL(sim->by_uid, object);
        object_free(object);
    }
}

struct string_map api_map_with(struct sim *sim, const struct string_map *map, struct str key,
                               struct str value)
{
    struct string_map out = {.count = 0};
    out.items = ARENA_ARRAY(&sim->scratch, struct string_pair, map->count + 1);
    bool is_found = false;
    for (uint32_t i = 0; i < map->count; i++) {
        bool is_it = str_eq(map->items[i].key, key);
        is_found = is_found || is_it;
        if (is_it && !str_is_set(value)) {
            continue;
        }
        out.items[out.count] = map->items[i];
        if (is_it) {
            out.items[out.count].value = value;
        }
        out.count++;
    }
    if (!is_found && str_is_set(value)) {
        out.items[out.count++] = (struct string_pair){key, value};
    }
    return out;
}

struct condition_list api_condition_with(struct sim *sim, const struct condition_list *list,
                                         const struct condition *condition)
{
    struct condition_list out = {.count = list->count};
    out.items = ARENA_ARRAY(&sim->scratch, struct condition, list->count + 1);
    struct condition *place = NULL;
    for (uint32_t i = 0; i < list->count; i++) {
        out.items[i] = list->items[i];
        if (str_eq(list->items[i].type, condition->type)) {
            place = &out.items[i];
        }
    }
    if (place == NULL) {
        place = &out.items[out.count++];
        *place = (struct condition){.type = condition->type};
    }
    bool is_same = str_eq(place->status, condition->status);
    struct opt_time since = place->last_transition_time;
    *place = *condition;
    if (is_same) {
        place->last_transition_time = since;
    } else {
        place->last_transition_time = (struct opt_time){true, sim_clock_ms(sim)};
    }
    return out;
}
