/* wake_cluster.c - a change of a Node or of a pool of devices wakes those who could use it.
 *
 * Such an edit is compared with what was there before, for each that waits for room: a node that
 * its pods may use neither before nor after (by readiness, selector, taints, or any flavor of its
 * queue) is nothing to it, nor is an amount of something that it doesn't ask for. Where it can't be
 * told so simply (flavors of several resource groups, named claims) the gang is woken. */
#include "ask.h"
#include "bound.h"
#include "extended.h"
#include "preempt.h"
#include "selectors.h"

/* What a node is to a set's pods, on whichever flavor of their queue; unsure: it may be open. */
enum service { SERVICE_NONE, SERVICE_DOWN, SERVICE_MISFIT, SERVICE_OPEN, SERVICE_UNSURE };

enum { FLAVOR_BITS = 63 };

static bool wants_devices(const struct pod_set *set)
{
    bool has_extended = set->device_count > 0 || set->claim_count > 0;
    return has_extended || set->spec->resource_claims.count > 0;
}

bool shape_wants_devices(const struct shape *shape)
{
    for (uint32_t s = 0; s < shape->set_count; s++) {
        if (wants_devices(&shape->sets[s])) {
            return true;
        }
    }
    return false;
}

/* Whether some flavor is chosen for the set's pods: its queue lists something that they ask for. */
static bool draws_on_a_flavor(const struct core *core, const struct queue_state *queue,
                              const struct pod_set *set)
{
    for (uint32_t c = 0; c < queue->node.cell_count; c++) {
        const struct quota_cell *cell = &queue->node.cells[c];
        for (uint32_t i = 0; i < set->per_pod.count && cell->is_listed; i++) {
            if (str_eq(account_of(core, set->per_pod.items[i].resource), cell->resource)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_open_on(const struct core *core, const struct pod_set *set,
                       const struct node_state *node, const struct resource_flavor *flavor)
{
    struct pod_demand demand = {.set = set, .node_selector = &set->node_selector};
    if (flavor != NULL) {
        demand.flavors[demand.flavor_count++] = flavor;
    }
    return node_exclusion(core, &demand, node) == EXCLUDED_COUNT;
}

/* The flavors of the queue's group on which the set's pods may use the node: a bit for each, and
 * the last where they take none. */
static uint64_t open_flavors(const struct core *core, const struct shape *shape,
                             const struct pod_set *set, const struct node_state *node)
{
    const struct queue *queue = shape->queue->object;
    const struct quota_flavor_list *flavors = &queue->spec.resource_groups.items[0].flavors;
    bool is_plain =
        !draws_on_a_flavor(core, shape->queue, set) && is_open_on(core, set, node, NULL);
    uint64_t open = is_plain ? UINT64_C(1) << FLAVOR_BITS : 0;
    for (uint32_t f = 0; f < flavors->count; f++) {
        const struct resource_flavor *flavor = flavor_object(core, flavors->items[f].name);
        bool is_open = flavor != NULL && is_open_on(core, set, node, flavor);
        open |= is_open ? UINT64_C(1) << f : 0;
    }
    return open;
}

static enum service service_of(const struct core *core, const struct shape *shape,
                               const struct pod_set *set, const struct node_state *node,
                               uint64_t *ret_flavors)
{
    *ret_flavors = 0;
    if (node->object == NULL || !pod_set_may_be_on(set, node)) {
        return SERVICE_NONE;
    }
    if (!node_is_up_for(set, node)) {
        return SERVICE_DOWN;
    }
    const struct queue *queue = shape->queue->object;
    if (queue == NULL || queue->spec.resource_groups.count != 1 || set->claim_count > 0 ||
        queue->spec.resource_groups.items[0].flavors.count > FLAVOR_BITS) {
        return SERVICE_UNSURE;
    }
    *ret_flavors = open_flavors(core, shape, set, node);
    return *ret_flavors != 0 ? SERVICE_OPEN : SERVICE_MISFIT;
}

/* What pods may use of it, before and after, is another amount of something that they ask for. */
static bool is_amount_changed(const struct pod_set *set, const struct node_state *before,
                              const struct node_state *node)
{
    for (uint32_t i = 0; i < set->per_pod.count; i++) {
        struct str resource = set->per_pod.items[i].resource;
        if (vector_get(&before->capacity, resource) != vector_get(&node->capacity, resource)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < set->device_count; i++) {
        struct str resource = set->devices[i].resource;
        if (str_is_set(resource) &&
            vector_get(&before->capacity, resource) != vector_get(&node->capacity, resource)) {
            return true;
        }
    }
    struct str pods = STR(RESOURCE_PODS);
    return vector_get(&before->capacity, pods) != vector_get(&node->capacity, pods);
}

static bool is_relabelled(const struct node_state *before, const struct node_state *node)
{
    const struct string_map *old = &before->object->meta.labels;
    const struct string_map *new = &node->object->meta.labels;
    bool is_same = old->count == new->count;
    for (uint32_t i = 0; i < new->count &&is_same; i++) {
        is_same = str_eq(old->items[i].key, new->items[i].key) &&
                  str_eq(old->items[i].value, new->items[i].value);
    }
    return !is_same;
}

/* Before and after the edit. */
struct node_edit {
    const struct node_state *before;
    const struct node_state *node;
    bool is_relabelled;
    bool is_lone; /* there is no other */
};

/* A label that makes the domains of the level that is asked for. */
static bool is_level_relabelled(const struct core *core, const struct shape *shape,
                                const struct node_edit *edit)
{
    const struct resource_group_list *groups = &shape->queue->object->spec.resource_groups;
    const struct string_map *old = &edit->before->object->meta.labels;
    const struct string_map *new = &edit->node->object->meta.labels;
    for (uint32_t g = 0; g < groups->count; g++) {
        for (uint32_t f = 0; f < groups->items[g].flavors.count; f++) {
            const struct resource_flavor *flavor =
                flavor_object(core, groups->items[g].flavors.items[f].name);
            bool has_levels = flavor != NULL && flavor->spec.topology != NULL;
            for (uint32_t l = 0; has_levels && l < flavor->spec.topology->levels.count; l++) {
                struct str key = flavor->spec.topology->levels.items[l];
                if (!str_eq(string_map_find(old, key), string_map_find(new, key))) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* The pods may use the node before and after, on the same flavors: the labels matter to who asks
 * for a domain, for what other pods keep away from, and for devices that are offered by label. */
static bool is_place_changed(const struct core *core, const struct shape *shape,
                             const struct node_edit *edit)
{
    if (!edit->is_relabelled) {
        return false;
    }
    return core->roaming_devices > 0 || core->apart_pods > 0 || shape->queue->object == NULL ||
           (str_is_set(shape->topology_key) && is_level_relabelled(core, shape, edit));
}

/* A node is another one that the pods may not use now. What is away counts for what could ever be;
 * and where no node at all can take the pods, the reason says why. */
static bool is_away_told(const struct shape *shape, bool is_otherwise)
{
    const struct verdict *verdict = &shape->verdict;
    return verdict->is_never || verdict->waits_for == WAIT_QUOTA ||
           (is_otherwise && !str_is_set(verdict->resource));
}

static bool concerns_set(const struct core *core, const struct shape *shape,
                         const struct pod_set *set, const struct node_edit *edit)
{
    uint64_t flavors_before;
    uint64_t flavors_after;
    enum service before = service_of(core, shape, set, edit->before, &flavors_before);
    enum service after = service_of(core, shape, set, edit->node, &flavors_after);
    if (before == SERVICE_UNSURE || after == SERVICE_UNSURE) {
        return true;
    }
    if (before == SERVICE_OPEN && after == SERVICE_OPEN) {
        return flavors_before != flavors_after || is_place_changed(core, shape, edit) ||
               is_amount_changed(set, edit->before, edit->node);
    }
    if (before == SERVICE_OPEN || after == SERVICE_OPEN) {
        return true;
    }
    bool is_down_told = before == SERVICE_DOWN || after == SERVICE_DOWN || edit->is_lone;
    return is_down_told && is_away_told(shape, before != after);
}

/* Room is kept for others: it matters where these may go and which devices they may take, or that
 * they find none. */
static bool is_beside_others(const struct shape *shape)
{
    return (shape->verdict.waits_for & (WAIT_PROMISES | WAIT_BOOKING)) != 0 ||
           shape->is_preempting_beside_promises;
}

static bool concerns_shape(const struct core *core, const struct shape *shape,
                           const struct node_edit *edit)
{
    if (!shape->is_resolved || is_beside_others(shape)) {
        return true;
    }
    if (shape->broken.reason != REASON_NONE) {
        return shape->broken.reason == REASON_NO_MATCHING_FLAVOR; /* no node has offered it */
    }
    for (uint32_t s = 0; s < shape->set_count; s++) {
        const struct pod_set *set = &shape->sets[s];
        bool concerns = pod_set_is_bound(set) /* no other node is anything to its pods */
                            ? pod_set_may_be_on(set, edit->node)
                            : concerns_set(core, shape, set, edit);
        if (concerns) {
            return true;
        }
    }
    return false;
}

static bool has_other_nodes(const struct core *core, const struct node_state *node)
{
    struct node_state *other = RB_MIN(node_tree, (struct node_tree *)(uintptr_t)&core->node_order);
    while (other != NULL && (other == node || other->object == NULL)) {
        other = RB_NEXT(node_tree, NULL, other);
    }
    return other != NULL;
}

/* A head of a StrictFIFO queue that is short of quota blocks only as long as all nodes together
 * could hold it. */
static bool is_head_short_of_quota(const struct queue_state *queue)
{
    const struct shape *shape = queue->blocker == NULL ? NULL : queue->blocker->shape;
    return shape != NULL && shape->verdict.waits_for == WAIT_QUOTA && !shape->is_ready;
}

static void wake_heads_for_node(struct core *core, const struct node_edit *edit)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        if (is_head_short_of_quota(queue) && concerns_shape(core, queue->blocker->shape, edit)) {
            wake_shape(core, queue->blocker->shape);
        }
    }
}

void wake_for_node_edit(struct core *core, const struct node_state *before,
                        const struct node_state *node)
{
    preempt_early_note_all(core);
    struct node_edit edit = {.before = before, .node = node};
    edit.is_lone = !has_other_nodes(core, node);
    edit.is_relabelled =
        before->object != NULL && node->object != NULL && is_relabelled(before, node);
    wake_heads_for_node(core, &edit);
    if (core->options.is_plain) {
        wake_all(core, WAIT_CLUSTER | WAIT_CONFIG);
        return;
    }
    for (struct shape *shape = core->room_waiters; shape != NULL; shape = shape->next_room_waiter) {
        if ((shape->verdict.waits_for & (WAIT_CLUSTER | WAIT_CONFIG)) != 0 && !shape->is_ready &&
            concerns_shape(core, shape, &edit)) {
            wake_shape(core, shape);
        }
    }
    for (struct shape *shape = core->preemptors; shape != NULL; shape = shape->next_preemptor) {
        if (!shape->is_room_changed && concerns_shape(core, shape, &edit)) {
            shape->is_room_changed = core->has_room_changed = true;
        }
    }
    wake_reserved(core); /* whose pods are on their way may go elsewhere now, or no longer */
}

/* -- pools of devices -------------------------------------------------------------------------- */

/* A selector that fails on a device, or a device that several may have, matters wherever it is. */
static bool concerns_request(struct core *core, const struct shape *shape,
                             const struct pod_set *set, struct device_profile *profile,
                             const struct device_state *device)
{
    if (!selectors_have_budget(core) && !profile_is_tried(core, profile)) {
        return true; /* it may be such a device */
    }
    enum match match = profile_match(core, profile, device);
    if (match == MATCH_NO) {
        return false;
    }
    uint64_t flavors;
    enum service service = service_of(core, shape, set, device->node, &flavors);
    bool is_anywhere = match == MATCH_FAILED || device->is_shareable;
    return is_anywhere || service == SERVICE_OPEN || service == SERVICE_UNSURE;
}

static bool device_concerns_set(struct core *core, const struct shape *shape,
                                const struct pod_set *set, const struct device_state *device)
{
    for (uint32_t i = 0; i < set->device_count; i++) {
        if (concerns_request(core, shape, set, set->devices[i].profile, device)) {
            return true;
        }
    }
    for (uint32_t i = 0; set->ask != NULL && i < set->ask->option_count; i++) {
        if (concerns_request(core, shape, set, set->ask->options[i].profile, device)) {
            return true;
        }
    }
    return false;
}

static bool pool_concerns_set(struct core *core, const struct shape *shape,
                              const struct pod_set *set, const struct pool_state *pool)
{
    if (set->claim_count > 0 || (set->device_count == 0 && set->ask == NULL)) {
        return wants_devices(set);
    }
    const struct device_state *device = pool->devices;
    for (; device != NULL; device = device->next_in_pool) {
        if (device->node == NULL || device_concerns_set(core, shape, set, device)) {
            return true;
        }
    }
    return false;
}

static bool pool_concerns_shape(struct core *core, const struct shape *shape,
                                const struct pool_state *pool)
{
    if (!shape->is_resolved || is_beside_others(shape)) {
        return true;
    }
    if (shape->broken.reason != REASON_NONE) {
        return shape_wants_devices(shape);
    }
    for (uint32_t s = 0; s < shape->set_count; s++) {
        if (pool_concerns_set(core, shape, &shape->sets[s], pool)) {
            return true;
        }
    }
    return false;
}

static void wake_heads_for_pool(struct core *core, const struct pool_state *pool)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        if (is_head_short_of_quota(queue) &&
            pool_concerns_shape(core, queue->blocker->shape, pool)) {
            wake_shape(core, queue->blocker->shape);
        }
    }
}

void wake_for_pool(struct core *core, const struct pool_state *pool)
{
    preempt_early_note_all(core);
    wake_heads_for_pool(core, pool);
    if (core->options.is_plain) {
        wake_all(core, WAIT_CLUSTER);
        return;
    }
    for (struct shape *shape = core->room_waiters; shape != NULL; shape = shape->next_room_waiter) {
        if ((shape->verdict.waits_for & WAIT_CLUSTER) != 0 && !shape->is_ready &&
            pool_concerns_shape(core, shape, pool)) {
            wake_shape(core, shape);
        }
    }
    for (struct shape *shape = core->preemptors; shape != NULL; shape = shape->next_preemptor) {
        if (!shape->is_room_changed && pool_concerns_shape(core, shape, pool)) {
            shape->is_room_changed = core->has_room_changed = true;
        }
    }
}

static bool devices_concern_shape(const struct shape *shape)
{
    return !shape->is_resolved || is_beside_others(shape) || shape_wants_devices(shape);
}

void wake_for_devices(struct core *core)
{
    preempt_early_note_all(core);
    if (core->options.is_plain) {
        wake_all(core, WAIT_CLUSTER);
        return;
    }
    for (struct shape *shape = core->room_waiters; shape != NULL; shape = shape->next_room_waiter) {
        if ((shape->verdict.waits_for & WAIT_CLUSTER) != 0 && devices_concern_shape(shape)) {
            wake_shape(core, shape);
        }
    }
    for (struct shape *shape = core->preemptors; shape != NULL; shape = shape->next_preemptor) {
        if (devices_concern_shape(shape)) {
            shape->is_room_changed = core->has_room_changed = true;
        }
    }
}
