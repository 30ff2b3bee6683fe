/* autoscaler.c - plays a cluster autoscaler that answers ProvisioningRequests: each is accepted as
 * it is seen, and provisioned a while later. No node is added for it: the cluster is as large as
 * the manifests say, and whoever finds no place in it shows up as not ready. */
#include "sim_internal.h"

#define AUTOSCALER_COLLECT_MS 5 /* the garbage collector, behind the Job */

static struct condition_list with_condition(struct sim *sim, const struct condition_list *before,
                                            const char *type, const char *message)
{
    struct condition_list list = {
        .items = ARENA_ARRAY(&sim->scratch, struct condition, before->count + 1)};
    for (uint32_t i = 0; i < before->count; i++) {
        if (!str_eq_c(before->items[i].type, type)) {
            list.items[list.count++] = before->items[i];
        }
    }
    int64_t clock_ms = sim_clock_ms(sim);
    list.items[list.count++] =
        (struct condition){.type = str_from_c(type),
                           .status = STR("True"),
                           .reason = str_from_c(type),
                           .message = str_from_c(message),
                           .last_transition_time = {true, clock_ms - clock_ms % 1000}};
    return list;
}

static void set_condition(struct sim *sim, struct sim_object *object, const char *type,
                          const char *message)
{
    struct provisioning_request next = *(const struct provisioning_request *)object->value;
    next.status.conditions = with_condition(sim, &next.status.conditions, type, message);
    api_update(sim, object, &next, false);
}

static void provision(struct sim *sim, struct task *task)
{
    struct sim_object *object = api_find_uid(sim, task->uid);
    if (object != NULL) {
        set_condition(sim, object, "Provisioned", "there is room for its pods");
    }
}

static void accept(struct sim *sim, struct task *task)
{
    struct sim_object *object = api_find_uid(sim, task->uid);
    if (object != NULL) {
        set_condition(sim, object, "Accepted", "nodes are on their way");
    }
}

void autoscaler_request_made(struct sim *sim, const struct sim_object *object)
{
    agenda_add(sim, sim_later(sim, sim->options.delays.watch_ms), accept, object->uid);
    agenda_add(sim, sim_later(sim, sim->options.delays.provision_ms), provision, object->uid);
}

struct driver_answer autoscaler_make_request(struct sim *sim,
                                             const struct provisioning_request *request)
{
    struct sim_object *object =
        api_find(sim, KIND_PROVISIONING_REQUEST,
                 api_key(sim, request->meta.namespace_name, request->meta.name));
    if (object == NULL) {
        object = api_create(sim, KIND_PROVISIONING_REQUEST, request);
    }
    return (struct driver_answer){
        .outcome = WRITE_OK,
        .resource_version = arena_copy_str(&sim->scratch, object_meta(object)->resource_version)};
}

struct driver_answer autoscaler_delete_request(struct sim *sim, const struct effect *effect)
{
    struct sim_object *object = api_find(sim, KIND_PROVISIONING_REQUEST,
                                         api_key(sim, effect->namespace_name, effect->name));
    if (object == NULL || !str_eq(object->uid, effect->uid)) {
        return (struct driver_answer){.outcome = WRITE_GONE};
    }
    api_remove(sim, object);
    return (struct driver_answer){.outcome = WRITE_OK};
}

static void collect(struct sim *sim, struct task *task)
{
    struct sim_object *object = api_find_uid(sim, task->uid);
    if (object != NULL) {
        api_remove(sim, object);
    }
}

void autoscaler_job_gone(struct sim *sim, const struct sim_object *job)
{
    struct sim_object *object = api_first(sim, KIND_PROVISIONING_REQUEST);
    for (; object != NULL; object = api_next(object)) {
        const struct owner_reference *owner = meta_controller(object_meta(object));
        if (owner != NULL && str_eq(owner->uid, job->uid)) {
            agenda_add(sim, sim_later(sim, AUTOSCALER_COLLECT_MS), collect, object->uid);
        }
    }
}
