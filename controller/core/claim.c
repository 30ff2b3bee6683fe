/* claim.c - ResourceClaims: a device is in use while an allocation names it, and each claim is
 * charged once, to the earliest-admitted gang that holds it. */
#include "claim.h"
#include "wait.h"

#include <assert.h>

#include "tallyman/base/alloc.h"

static void claim_free_if_unused(struct core *core, struct claim_state *claim)
{
    if (claim->object == NULL && claim->users == 0) {
        table_remove(&core->claims, claim);
        str_drop(&claim->key);
        mem_free(claim);
    }
}

struct claim_state *claim_get(struct core *core, struct str key)
{
    struct claim_state *claim = table_find(&core->claims, key);
    if (claim == NULL) {
        claim = MEM_NEW(struct claim_state);
        claim->key = str_own(key);
        table_add(&core->claims, claim);
    }
    return claim;
}

bool claim_is_allocated(const struct claim_state *claim)
{
    return claim->object != NULL && claim->object->status.allocation != NULL;
}

static void used_add(struct used_device *used, const struct resource_list *amounts, int sign)
{
    for (uint32_t i = 0; i < amounts->count; i++) {
        uint32_t at = 0;
        while (at < used->count && !str_eq(used->items[at].name, amounts->items[i].name)) {
            at++;
        }
        if (at == used->count) {
            used->items = mem_realloc(used->items, (used->count + 1) * sizeof(*used->items));
            used->items[used->count++] =
                (struct used_capacity){.name = str_own(amounts->items[i].name)};
        }
        i128 amount = amounts->items[i].value.nano;
        used->items[at].amount += amount > 0 ? sign * amount : 0; /* nobody gives by taking */
    }
}

static void used_free(struct core *core, struct used_device *used)
{
    table_remove(&core->used_devices, used);
    for (uint32_t i = 0; i < used->count; i++) {
        str_drop(&used->items[i].name);
    }
    mem_free(used->items);
    str_drop(&used->key);
    mem_free(used);
}

static void use_device(struct core *core, struct str key, const struct allocation_result *result)
{
    struct used_device *used = table_find(&core->used_devices, key);
    if (used == NULL) {
        used = MEM_NEW(struct used_device);
        used->key = str_own(key);
        table_add(&core->used_devices, used);
    }
    used->claims++;
    if (!str_is_empty(result->share_id)) {
        used->shares++;
        used_add(used, &result->consumed_capacity, 1);
    }
    device_set_used(core, key, used);
}

static void unuse_device(struct core *core, struct str key, const struct allocation_result *result)
{
    struct used_device *used = table_find(&core->used_devices, key);
    assert(used != NULL && used->claims > 0);
    used->claims--;
    if (!str_is_empty(result->share_id)) {
        used->shares--;
        used_add(used, &result->consumed_capacity, -1);
    }
    device_set_used(core, key, used->claims == 0 ? NULL : used);
    if (used->claims == 0) {
        used_free(core, used);
    }
}

bool allocation_is_use(const struct allocation_result *result)
{
    return !opt_is_true(result->admin_access);
}

struct str allocation_key(struct core *core, const struct allocation_result *result)
{
    struct str pool = key_join(&core->scratch, result->driver, result->pool);
    return key_join(&core->scratch, pool, result->device);
}

/* Adds or takes back what the claim's allocation names. */
static void claim_count(struct core *core, const struct claim_state *claim, bool is_added)
{
    if (!claim_is_allocated(claim)) {
        return;
    }
    const struct allocation_result_list *results =
        &claim->object->status.allocation->devices.results;
    for (uint32_t i = 0; i < results->count; i++) {
        const struct allocation_result *result = &results->items[i];
        if (!allocation_is_use(result)) {
            continue;
        }
        struct str key = allocation_key(core, result);
        if (is_added) {
            use_device(core, key, result);
        } else {
            unuse_device(core, key, result);
        }
    }
}

/* All pods of the gangs that hold the claim: a PodGroup among its consumers stands for some. */
static void claim_settle_holders(struct core *core, const struct resource_claim *object)
{
    struct str key = key_join(&core->scratch, object->meta.namespace_name, object->meta.name);
    const struct claim_hold *hold = ledger_claim_holders(core, key);
    for (; hold != NULL; hold = hold->next_holder) {
        for (struct pod_state *pod = gang_first_pod(hold->gang); pod != NULL;
             pod = pod->next_in_group) {
            pod_settle(core, pod);
        }
    }
}

/* Pods that wait for this claim's allocation to be counted for good. */
static void claim_settle_pods(struct core *core, const struct resource_claim *object)
{
    if (object == NULL) {
        return;
    }
    bool has_group = false;
    const struct claim_consumer_list *consumers = &object->status.reserved_for;
    for (uint32_t i = 0; i < consumers->count; i++) {
        struct str uid = consumers->items[i].uid;
        struct pod_state *pod = table_find(&core->pods, uid);
        if (pod != NULL) {
            pod_settle(core, pod);
        }
        has_group = has_group || str_eq_c(consumers->items[i].resource, "podgroups");
    }
    if (has_group) {
        claim_settle_holders(core, object);
    }
}

void claims_start(struct core *core)
{
    struct gang *next;
    for (struct gang *gang = gang_line_first(&core->holders); gang != NULL; gang = next) {
        next = gang_line_next(&core->holders, gang);
        for (uint32_t i = 0; i < gang->reservation->claim_count; i++) {
            const struct claim_state *claim =
                table_find(&core->claims, gang->reservation->claims[i].key);
            claim_settle_pods(core, claim == NULL ? NULL : claim->object);
        }
    }
}

static bool names_claim(const struct shape *shape, const struct claim_state *claim)
{
    for (uint32_t s = 0; s < shape->set_count; s++) {
        for (uint32_t i = 0; i < shape->sets[s].claim_count; i++) {
            if (shape->sets[s].claims[i].claim == claim) {
                return true;
            }
        }
    }
    return false;
}

/* Shapes that name the claim see it differently now. */
static void claim_tell_shapes(struct core *core, const struct claim_state *claim)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        for (struct shape *shape = queue->shapes; shape != NULL; shape = shape->next_in_queue) {
            if (names_claim(shape, claim)) {
                shape_unresolve(core, shape);
            }
        }
    }
}

/* The node whose pods alone gain by that device's release; NULL: others could as well. */
static struct node_state *only_gainer(const struct device_state *device)
{
    if (device == NULL || device->node == NULL || device->pool->loose_part != NULL) {
        return NULL;
    }
    const struct device_state *other = device->counter_count == 0 ? NULL : device->pool->devices;
    for (; other != NULL; other = other->next_in_pool) {
        if (other->counter_count > 0 && other->node != device->node) {
            return NULL; /* which may draw on the same counters */
        }
    }
    return device->node;
}

/* Who could use the nodes that they are on looks again. */
static void wake_for_freed_devices(struct core *core, const struct claim_allocation *allocation)
{
    const struct allocation_result_list *results = &allocation->devices.results;
    struct node_state **nodes =
        ARENA_ARRAY(&core->scratch, struct node_state *, results->count + 1);
    uint32_t count = 0;
    core->has_freed = true;
    bool is_for_all = core->options.is_plain;
    for (uint32_t i = 0; i < results->count && !is_for_all; i++) {
        const struct allocation_result *result = &results->items[i];
        if (!allocation_is_use(result)) {
            continue;
        }
        struct node_state *node =
            only_gainer(table_find(&core->devices_by_key, allocation_key(core, result)));
        is_for_all = node == NULL;
        if (count == 0 || nodes[count - 1] != node) {
            nodes[count++] = node;
        }
    }
    if (is_for_all) {
        wake_all(core, WAIT_CLUSTER);
        return;
    }
    wake_reserved(core); /* pods on their way may take what has come free, and leave another room */
    wake_beside(core, WAIT_BOOKING);
    for (uint32_t i = 0; i < count; i++) {
        wake_for_node(core, nodes[i]);
    }
}

static void claim_replace(struct core *core, struct claim_state *claim,
                          struct resource_claim *object)
{
    bool was_allocated = claim_is_allocated(claim);
    bool was_there = claim->object != NULL;
    struct resource_claim *old = claim->object;
    whatif_forget_claim(core, old);
    whatif_forget_claim(core, object);
    claim_count(core, claim, false);
    claim->object = object;
    claim_count(core, claim, true);
    claim_settle_pods(core, old);
    claim_settle_pods(core, claim->object);
    if (was_allocated && !claim_is_allocated(claim)) {
        wake_for_freed_devices(core, old->status.allocation);
    }
    bool has_fewer_users = object != NULL && old != NULL &&
                           object->status.reserved_for.count < old->status.reserved_for.count;
    bool is_going = object != NULL && object->meta.deletion_timestamp.is_set;
    bool was_going = old != NULL && old->meta.deletion_timestamp.is_set;
    bool is_changed = was_there != (object != NULL) || was_allocated != claim_is_allocated(claim) ||
                      has_fewer_users || is_going != was_going;
    drift_claim(core, claim->key);
    group_claim_changed(core, claim, old);
    if (is_changed && claim->users > 0) {
        claim_tell_shapes(core, claim);
        wake_if_promises_are_stale(core); /* a claim that comes back says what pods will take */
    }
    mem_free(old);
}

void claim_apply(struct core *core, const struct resource_claim *object)
{
    struct str key = key_join(&core->scratch, object->meta.namespace_name, object->meta.name);
    struct claim_state *claim = claim_get(core, key);
    bool was_allocated = claim_is_allocated(claim);
    const struct gang *user = whatif_claim_user(core, claim);
    claim_replace(core, claim, object_clone(kind_info(KIND_RESOURCE_CLAIM)->schema, object));
    const struct gang *new_user = whatif_claim_user(core, claim);
    /* Its devices are held by that gang alone now, and stopping it would set them free. */
    core->has_freed = core->has_freed || (was_allocated && new_user != NULL && new_user != user);
}

void claim_drop(struct core *core, struct claim_state *claim)
{
    claim->users--;
    claim_free_if_unused(core, claim);
}

void claim_deleted(struct core *core, const struct resource_claim *object)
{
    struct str key = key_join(&core->scratch, object->meta.namespace_name, object->meta.name);
    struct claim_state *claim = table_find(&core->claims, key);
    if (claim == NULL) {
        return;
    }
    claim_replace(core, claim, NULL);
    claim_free_if_unused(core, claim);
}

void claims_free(struct core *core)
{
    uint32_t at = 0;
    for (struct claim_state *claim; (claim = table_drain(&core->claims, &at)) != NULL;) {
        claim_count(core, claim, false);
        table_remove(&core->claims, claim);
        mem_free(claim->object);
        str_drop(&claim->key);
        mem_free(claim);
    }
    group_claims_free(core);
    table_deinit(&core->claims);
    table_deinit(&core->used_devices);
}
