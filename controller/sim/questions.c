/* questions.c - what a spectator may ask, and what must hold at any moment. */
#include "sim_internal.h"

static struct str join_key(struct str namespace_name, struct str name, char *buffer, size_t bytes)
{
    size_t at = 0;
    if (str_is_empty(name) || namespace_name.len + name.len + 2 > bytes) {
        return STR_NONE;
    }
    if (!str_is_empty(namespace_name)) {
        memcpy(buffer, namespace_name.ptr, namespace_name.len);
        buffer[namespace_name.len] = '/';
        at = namespace_name.len + 1;
    }
    memcpy(buffer + at, name.ptr, name.len);
    return (struct str){buffer, at + name.len};
}

#define KEY_BYTES 640 /* Kubernetes: a name has at most 253 bytes, a namespace 63 */

static struct sim_object *find(const struct sim *sim, enum object_kind kind,
                               struct str namespace_name, struct str name)
{
    char buffer[KEY_BYTES];
    struct str key = join_key(namespace_name, name, buffer, sizeof(buffer));
    return str_is_set(key) ? api_find(sim, kind, key) : NULL;
}

const void *sim_find(const struct sim *sim, enum object_kind kind, struct str namespace_name,
                     struct str name)
{
    const struct sim_object *object = find(sim, kind, namespace_name, name);
    return object == NULL ? NULL : object->value;
}

void sim_each(const struct sim *sim, enum object_kind kind,
              void (*each)(void *ctx, const void *value), void *ctx)
{
    for (struct sim_object *object = api_first(sim, kind); object != NULL;
         object = api_next(object)) {
        each(ctx, object->value);
    }
}

/* -- devices -------------------------------------------------------------------------------------
 */

static int64_t claim_devices(const struct resource_claim *claim)
{
    return claim->status.allocation == NULL
               ? 0
               : (int64_t)claim->status.allocation->devices.results.count;
}

/* The Job that holds the claim: that of its first consumer, a pod or a PodGroup. */
static const struct sim_object *claim_job(const struct sim *sim, const struct resource_claim *claim)
{
    if (claim->status.reserved_for.count == 0) {
        return NULL;
    }
    const struct claim_consumer *holder = &claim->status.reserved_for.items[0];
    const struct sim_object *pod = api_find_uid(sim, holder->uid);
    if (pod == NULL) {
        return podgroup_job(sim, holder);
    }
    return pod == NULL || pod->kind != KIND_POD ? NULL : pod->pod.job;
}

struct sim_devices sim_devices(const struct sim *sim)
{
    struct sim_devices devices = {.held = sim->used_key_count};
    devices.total = devices_list((struct sim *)(uintptr_t)sim)->count; /* only a cache changes */
    for (struct sim_object *object = api_first(sim, KIND_RESOURCE_CLAIM); object != NULL;
         object = api_next(object)) {
        const struct sim_object *job = claim_job(sim, object_claim(object));
        if (job != NULL && job_is_gang(object_job(job)) && !job->job.is_whole) {
            devices.held_for_nothing += claim_devices(object_claim(object));
        }
    }
    return devices;
}

uint64_t sim_supply_version(const struct sim *sim)
{
    return sim->supply_version;
}

int64_t sim_wasted_device_ms(const struct sim *sim)
{
    return sim->wasted_device_ms;
}

/* -- Jobs ----------------------------------------------------------------------------------------
 */

static void count_job_pods(const struct sim_object *job, struct sim_job_state *state)
{
    for (const struct sim_object *item = job->job.pods; item != NULL;
         item = item->pod.next_in_job) {
        const struct pod *pod = object_pod(item);
        if (pod_is_terminal(pod)) {
            state->succeeded += str_eq_c(pod->status.phase, "Succeeded") ? 1 : 0;
            continue;
        }
        state->pods++;
        state->bound += str_is_empty(pod->spec.node_name) ? 0 : 1;
        state->ready += pod_is_ready(pod) ? 1 : 0;
    }
}

bool sim_job_state(const struct sim *sim, struct str namespace_name, struct str name,
                   struct sim_job_state *ret_state)
{
    const struct sim_object *job = find(sim, KIND_JOB, namespace_name, name);
    if (job == NULL) {
        return false;
    }
    const struct job *object = object_job(job);
    struct job_count count = job_count_pods(job);
    struct sim *scratch_owner = (struct sim *)(uintptr_t)sim; /* nothing else of it changes */
    struct gang_size size = job_live_size(scratch_owner, job, &count);
    struct sim_job_state state = {.namespace_name = object->meta.namespace_name,
                                  .name = object->meta.name,
                                  .is_suspended = job_is_suspended(object),
                                  .is_finished = job_is_finished(object),
                                  .is_gang = job_is_gang(object),
                                  .is_whole = job->job.is_whole,
                                  .wanted = size.pods,
                                  .min_count = size.min_count,
                                  .partial_max_ms = job->job.partial_max_ms};
    count_job_pods(job, &state);
    if (job->job.partial_since_ms >= 0) {
        int64_t lasted_ms = sim->now_ms - job->job.partial_since_ms;
        state.partial_max_ms = lasted_ms > state.partial_max_ms ? lasted_ms : state.partial_max_ms;
        state.partial_ms = lasted_ms;
    }
    for (struct sim_object *claim = api_first(sim, KIND_RESOURCE_CLAIM); claim != NULL;
         claim = api_next(claim)) {
        if (claim_job(sim, object_claim(claim)) == job) {
            state.devices += claim_devices(object_claim(claim));
        }
    }
    *ret_state = state;
    return true;
}

int64_t sim_job_bound(const struct sim *sim, struct str namespace_name, struct str name)
{
    const struct sim_object *job = find(sim, KIND_JOB, namespace_name, name);
    return job == NULL ? 0 : job_count_pods(job).bound;
}

/* -- what must hold ------------------------------------------------------------------------------
 */

static struct rc check_node(const struct sim *sim, const struct node *node, struct err *err)
{
    for (uint32_t i = 0; i < node->status.allocatable.count; i++) {
        struct str resource = node->status.allocatable.items[i].name;
        int64_t used = node_used(sim, node, resource);
        int64_t have = node_allocatable(node, resource);
        if (used > have) {
            struct arena *arena = &((struct sim *)(uintptr_t)sim)->scratch;
            return err_set(
                err, RC_INVALID,
                "Node " STR_FMT ": its pods ask for " STR_FMT " " STR_FMT ", it has " STR_FMT,
                STR_ARG(node->meta.name), STR_ARG(resource_amount_format(arena, resource, used)),
                STR_ARG(resource), STR_ARG(resource_amount_format(arena, resource, have)));
        }
    }
    return RC_SUCCESS;
}

static struct rc check_shares(const struct sim *sim, const struct sim_device *device,
                              struct err *err)
{
    for (uint32_t i = 0; i < device->device->capacity.count; i++) {
        const struct device_capacity *capacity = &device->device->capacity.items[i];
        i128 used = device_capacity_used(sim, device->key, capacity->key);
        if (used > capacity->value.value.nano) {
            return err_set(
                err, RC_INVALID,
                "device " STR_FMT ": its shares take %lld of " STR_FMT ", it has %lld",
                STR_ARG(device->key), (long long)quantity_units_up((struct quantity){used}),
                STR_ARG(capacity->key), (long long)quantity_units_down(capacity->value.value));
        }
    }
    return RC_SUCCESS;
}

struct rc sim_check(const struct sim *sim, struct err *err)
{
    for (struct sim_object *node = api_first(sim, KIND_NODE); node != NULL; node = api_next(node)) {
        TRY(check_node(sim, node->value, err));
    }
    const struct device_list_cache *list = devices_list((struct sim *)(uintptr_t)sim);
    for (uint32_t i = 0; i < list->count; i++) {
        if (device_is_shareable(list->items[i].device)) {
            TRY(check_shares(sim, &list->items[i], err));
        } else if (device_use_count(sim, list->items[i].key) > 1) {
            return err_set(err, RC_INVALID, "device " STR_FMT " is allocated %u times",
                           STR_ARG(list->items[i].key), device_use_count(sim, list->items[i].key));
        }
    }
    return RC_SUCCESS;
}

struct core *sim_core(const struct sim *sim)
{
    return sim->core;
}
