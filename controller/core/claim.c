/* claim.c - ResourceClaims: a device is in use while an allocation names it, and each claim is
 * charged once, to the earliest-admitted gang that holds it. */
#include "internal.h"

#include <assert.h>

#include "tallyman/base/alloc.h"

static void claim_free_if_unused(struct core *core, struct claim_state *claim)
{
    if (claim->object == NULL && claim->users == 0) {
        HASH_DEL(core->claims, claim);
        str_drop(&claim->key);
        mem_free(claim);
    }
}

struct claim_state *claim_get(struct core *core, struct str key)
{
    struct claim_state *claim = NULL;
    HASH_FIND(hh, core->claims, key.ptr, (unsigned)key.len, claim);
    if (claim == NULL) {
        claim = MEM_NEW(struct claim_state);
        claim->key = str_own(key);
        HASH_ADD_KEYPTR(hh, core->claims, claim->key.ptr, (unsigned)claim->key.len, claim);
    }
    return claim;
}

bool claim_is_allocated(const struct claim_state *claim)
{
    return claim->object != NULL && claim->object->status.allocation != NULL;
}

static void use_device(struct core *core, struct str key)
{
    struct used_device *used = NULL;
    HASH_FIND(hh, core->used_devices, key.ptr, (unsigned)key.len, used);
    if (used == NULL) {
        used = MEM_NEW(struct used_device);
        used->key = str_own(key);
        HASH_ADD_KEYPTR(hh, core->used_devices, used->key.ptr, (unsigned)used->key.len, used);
        device_set_used(core, key, true);
    }
    used->claims++;
}

static void unuse_device(struct core *core, struct str key)
{
    struct used_device *used = NULL;
    HASH_FIND(hh, core->used_devices, key.ptr, (unsigned)key.len, used);
    assert(used != NULL && used->claims > 0);
    if (--used->claims == 0) {
        device_set_used(core, key, false);
        HASH_DEL(core->used_devices, used);
        str_drop(&used->key);
        mem_free(used);
    }
}

/* Adds or takes back what the claim's allocation names. Admin access uses nothing. */
static void claim_count(struct core *core, const struct claim_state *claim, bool is_added)
{
    if (!claim_is_allocated(claim)) {
        return;
    }
    const struct allocation_result_list *results =
        &claim->object->status.allocation->devices.results;
    for (uint32_t i = 0; i < results->count; i++) {
        const struct allocation_result *result = &results->items[i];
        if (result->admin_access.is_set && result->admin_access.value) {
            continue;
        }
        struct str pool = key_join(&core->scratch, result->driver, result->pool);
        struct str key = key_join(&core->scratch, pool, result->device);
        if (is_added) {
            use_device(core, key);
        } else {
            unuse_device(core, key);
        }
    }
}

/* Pods that wait for this claim's allocation to be counted for good. */
static void claim_settle_pods(struct core *core, const struct resource_claim *object)
{
    if (object == NULL) {
        return;
    }
    const struct claim_consumer_list *consumers = &object->status.reserved_for;
    for (uint32_t i = 0; i < consumers->count; i++) {
        struct pod_state *pod = NULL;
        struct str uid = consumers->items[i].uid;
        HASH_FIND(hh, core->pods, uid.ptr, (unsigned)uid.len, pod);
        if (pod != NULL) {
            pod_settle(core, pod);
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

static void claim_replace(struct core *core, struct claim_state *claim,
                          struct resource_claim *object)
{
    bool was_allocated = claim_is_allocated(claim);
    bool was_there = claim->object != NULL;
    struct resource_claim *old = claim->object;
    claim_count(core, claim, false);
    claim->object = object;
    claim_count(core, claim, true);
    claim_settle_pods(core, old);
    claim_settle_pods(core, claim->object);
    if (was_allocated && !claim_is_allocated(claim)) {
        wake_all(core, WAIT_CLUSTER);
    }
    bool has_fewer_users = object != NULL && old != NULL &&
                           object->status.reserved_for.count < old->status.reserved_for.count;
    bool is_changed = was_there != (object != NULL) || was_allocated != claim_is_allocated(claim) ||
                      has_fewer_users;
    drift_claim(core, claim);
    if (is_changed && claim->users > 0) {
        claim_tell_shapes(core, claim);
    }
    mem_free(old);
}

void claim_apply(struct core *core, const struct resource_claim *object)
{
    struct str key = key_join(&core->scratch, object->meta.namespace_name, object->meta.name);
    claim_replace(core, claim_get(core, key),
                  object_clone(kind_info(KIND_RESOURCE_CLAIM)->schema, object));
}

void claim_drop(struct core *core, struct claim_state *claim)
{
    claim->users--;
    claim_free_if_unused(core, claim);
}

void claim_deleted(struct core *core, const struct resource_claim *object)
{
    struct str key = key_join(&core->scratch, object->meta.namespace_name, object->meta.name);
    struct claim_state *claim = NULL;
    HASH_FIND(hh, core->claims, key.ptr, (unsigned)key.len, claim);
    if (claim == NULL) {
        return;
    }
    claim_replace(core, claim, NULL);
    claim_free_if_unused(core, claim);
}

void claims_free(struct core *core)
{
    struct claim_state *claim;
    struct claim_state *next;
    HASH_ITER (hh, core->claims, claim, next) {
        claim_count(core, claim, false);
        HASH_DEL(core->claims, claim);
        mem_free(claim->object);
        str_drop(&claim->key);
        mem_free(claim);
    }
}
