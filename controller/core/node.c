/* node.c - what a node offers, and what is taken of it. A heartbeat changes neither. */
#include "ailment.h"
#include "incident.h"

#include "tallyman/base/alloc.h"

struct node_state *node_get(struct core *core, struct str name)
{
    struct node_state *node = NULL;
    HASH_FIND(hh, core->nodes, name.ptr, (unsigned)name.len, node);
    if (node != NULL) {
        return node;
    }
    node = MEM_NEW(struct node_state);
    node->name = str_own(name);
    HASH_ADD_KEYPTR(hh, core->nodes, node->name.ptr, (unsigned)node->name.len, node);
    RB_INSERT(node_tree, &core->node_order, node);
    node_touch_object(core, node);
    flavors_touch(core);
    reaches_forget(core);
    return node;
}

static void node_free(struct core *core, struct node_state *node)
{
    core->harmful_nodes -= node->is_harmful ? 1 : 0;
    fit_plan_new(core); /* which may have it in its list */
    if (whatif_is_kept(core, node->freed_epoch)) {
        whatif_forget(core);
    }
    node_touch_drop(core, node);
    HASH_DEL(core->nodes, node);
    RB_REMOVE(node_tree, &core->node_order, node);
    str_drop(&node->name);
    mem_free(node->object);
    node_drop_conditions(node);
    vector_deinit(&node->capacity);
    vector_deinit(&node->used);
    vector_deinit(&node->planned);
    vector_deinit(&node->freed);
    mem_free(node);
}

void node_free_if_unused(struct core *core, struct node_state *node)
{
    if (node->object == NULL && node->pods == NULL && node->devices == NULL &&
        node->listed_devices == 0) {
        node_free(core, node);
    }
}

bool node_is_stuck(const struct core *core, const struct node_state *node)
{
    if (node->object == NULL) {
        return true; /* the Node is gone, and what ran there with it */
    }
    return node->not_ready_since_ms != 0 &&
           core->now_ms - node->not_ready_since_ms >= core->options.stuck_node_ms;
}

/* Only what a decision looks at; a heartbeat's times and messages are not. */
static struct node *node_slim_clone(const struct node *object)
{
    struct node slim = *object;
    slim.meta.annotations = (struct string_map){.items = NULL};
    slim.meta.resource_version = STR_NONE;
    slim.meta.generation = (struct opt_int){false, 0};
    slim.meta.finalizers = (struct str_list){.items = NULL};
    struct condition ready = {.type = STR("Ready"), .status = STR("Unknown")};
    const struct condition *now = condition_find(&object->status.conditions, "Ready");
    if (now != NULL) {
        ready.status = now->status;
        ready.last_transition_time = now->last_transition_time;
    }
    slim.status.conditions = (struct condition_list){.items = &ready, .count = 1};
    return object_clone(kind_info(KIND_NODE)->schema, &slim);
}

static void node_read_capacity(struct core *core, struct node_state *node)
{
    vector_clear(&node->capacity);
    const struct resource_list *allocatable = &node->object->status.allocatable;
    for (uint32_t i = 0; i < allocatable->count; i++) {
        const struct resource_amount *amount = &allocatable->items[i];
        struct str name = resource_intern(core, amount->name);
        /* Rounded as kube-scheduler's NodeInfo does: Quantity.Value() and MilliValue() round up. */
        int64_t value = resource_amount_from_quantity(amount->name, amount->value, true);
        if (str_is_set(name) && value > 0) {
            vector_add(&node->capacity, name, value - vector_get(&node->capacity, name));
        }
    }
}

static void node_gangs_recheck(struct core *core, struct node_state *node)
{
    for (struct pod_state *pod = node->pods; pod != NULL; pod = pod->next_on_node) {
        if (pod->group != NULL && pod->group->gang != NULL) {
            gang_pods_changed(core, pod->group->gang);
        }
    }
}

static void node_read_readiness(struct core *core, struct node_state *node)
{
    const struct condition *ready = condition_find(&node->object->status.conditions, "Ready");
    bool is_ready = ready != NULL && str_eq_c(ready->status, "True");
    bool was_ready = node->not_ready_since_ms == 0;
    if (is_ready) {
        node->not_ready_since_ms = 0;
    } else if (was_ready) {
        bool is_dated = ready != NULL && ready->last_transition_time.is_set;
        node->not_ready_since_ms = is_dated ? ready->last_transition_time.ms : core->now_ms;
    }
    if (!is_ready) {
        int64_t due_ms = node->not_ready_since_ms + core->options.stuck_node_ms;
        if (core->next_node_check_ms == 0 || due_ms < core->next_node_check_ms) {
            core->next_node_check_ms = due_ms;
        }
    }
    const struct opt_bool *cordoned = &node->object->spec.unschedulable;
    node->is_usable = is_ready && !opt_is_true(*cordoned);
}

/* Of interest only where some flavor has a rule about it. */
static void node_health_changed(struct core *core, struct node_state *node)
{
    struct flavor_state *flavor;
    struct flavor_state *next;
    HASH_ITER (hh, core->flavors, flavor, next) {
        if (flavor->object->spec.health != NULL) {
            core->cost.nodes_visited++;
            node_plan_rest(core, node);
            node_read_harm(core, node);
            node_touch_object(core, node);
            flavors_touch(core);
            node_gangs_recheck(core, node);
            wake_all(core, WAIT_CLUSTER);
            return;
        }
    }
}

static const struct string_map no_labels;

static void labels_change(struct core *core, const struct node_state *node,
                          const struct string_map *now)
{
    const struct string_map *before =
        node->object == NULL ? &no_labels : &node->object->meta.labels;
    topology_labels_changed(core, before, now);
}

struct rc node_apply(struct core *core, const struct node *object, struct err *err)
{
    for (uint32_t i = 0; i < object->status.allocatable.count; i++) {
        const struct resource_amount *amount = &object->status.allocatable.items[i];
        if (amount->value.nano < 0) {
            return err_set(err, RC_INVALID,
                           "Node " STR_FMT ": status.allocatable." STR_FMT " is negative (" STR_FMT
                           "); it must be 0 or more",
                           STR_ARG(object->meta.name), STR_ARG(amount->name),
                           STR_ARG(amount->text));
        }
    }
    struct node_state *node = node_get(core, object->meta.name);
    struct node *fresh = node_slim_clone(object);
    bool is_told_anew = node_read_conditions(node, object, core->now_ms);
    if (node->object != NULL && object_equal(kind_info(KIND_NODE)->schema, node->object, fresh)) {
        mem_free(fresh);
        if (is_told_anew) {
            node_health_changed(core, node);
        }
        return RC_SUCCESS;
    }
    core->cost.nodes_visited++;
    labels_change(core, node, &fresh->meta.labels);
    struct node_state before = *node;
    node->capacity = (struct vector){.items = NULL};
    node->object = fresh;
    node_read_capacity(core, node);
    node_read_readiness(core, node);
    node_plan_rest(core, node);
    node_read_harm(core, node);
    node_touch_object(core, node);
    flavors_touch(core);
    for (struct device_state *device = node->devices; device != NULL;
         device = device->next_on_node) {
        ailment_judge_device(core, device); /* it may be of other flavors now */
    }
    node_gangs_recheck(core, node);
    wake_for_node_edit(core, &before, node);
    vector_deinit(&before.capacity);
    mem_free(before.object);
    return RC_SUCCESS;
}

void node_deleted(struct core *core, const struct node *object)
{
    struct node_state *node = NULL;
    HASH_FIND(hh, core->nodes, object->meta.name.ptr, (unsigned)object->meta.name.len, node);
    if (node == NULL || node->object == NULL) {
        return;
    }
    core->cost.nodes_visited++;
    labels_change(core, node, &no_labels);
    struct node_state before = *node;
    node->capacity = (struct vector){.items = NULL};
    node->object = NULL;
    node->is_usable = false;
    node->not_ready_since_ms = 0;
    node_read_harm(core, node);
    node_touch_object(core, node);
    flavors_touch(core);
    node_gangs_recheck(core, node);
    wake_for_node_edit(core, &before, node);
    vector_deinit(&before.capacity);
    mem_free(before.object);
    node_free_if_unused(core, node);
}

void node_tick(struct core *core)
{
    if (core->next_node_check_ms == 0 || core->now_ms < core->next_node_check_ms) {
        return;
    }
    core->next_node_check_ms = 0;
    struct node_state *node;
    RB_FOREACH (node, node_tree, &core->node_order) {
        if (node->object == NULL || node->not_ready_since_ms == 0) {
            continue;
        }
        if (node_is_stuck(core, node)) {
            node_gangs_recheck(core, node);
            continue;
        }
        int64_t due_ms = node->not_ready_since_ms + core->options.stuck_node_ms;
        if (core->next_node_check_ms == 0 || due_ms < core->next_node_check_ms) {
            core->next_node_check_ms = due_ms;
        }
    }
}

void nodes_free(struct core *core)
{
    struct node_state *node;
    struct node_state *next;
    HASH_ITER (hh, core->nodes, node, next) {
        node_free(core, node);
    }
}
