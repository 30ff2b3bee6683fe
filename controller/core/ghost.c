/* ghost.c - Admissions whose Job is no more.
 *
 * The garbage collector takes an Admission with its Job. It doesn't where the Job was deleted with
 * --cascade=orphan: then the Admission has lost its owner, as the pods have. While such pods run
 * they hold what the gang was charged, and the Admission says so; with the last of them it is
 * deleted. After a restart the charge is made anew from what is left: the queue, the flavors and
 * the devices that the Admission names, and what the pods ask for. */
#include "ghost.h"

#include "tallyman/base/limits.h"

void ghost_watch(struct core *core, struct hash_orphan *orphan)
{
    orphan->due_ms = core->now_ms + GHOST_GRACE_MS;
    if (core->next_ghost_check_ms == 0) {
        core->next_ghost_check_ms = orphan->due_ms;
    }
}

/* -- after a restart: a gang without its Job ----------------------------------------------------
 */

struct charge_maker {
    struct core *core;
    const struct queue_state *queue;
    struct str flavors; /* "a,b", as the Admission shows them */
    struct charge_list list;
    uint32_t capacity;
};

/* The first of the flavors in which the queue rations the resource. */
static struct str flavor_for(const struct charge_maker *maker, struct str resource)
{
    struct str rest = maker->flavors;
    while (rest.len > 0) {
        size_t comma = str_find_char(rest, ',');
        struct str flavor = str_take(rest, comma);
        if (quota_cell_find(&maker->queue->node, flavor, resource) != NULL) {
            return flavor;
        }
        rest = comma < rest.len ? str_skip(rest, comma + 1) : STR("");
    }
    return STR_NONE;
}

static void add_charge(struct charge_maker *maker, struct str asked, int64_t amount)
{
    struct str resource = account_of(maker->core, asked);
    struct str flavor = flavor_for(maker, resource);
    if (!str_is_set(flavor) || amount <= 0) {
        return;
    }
    struct charge_list *list = &maker->list;
    for (uint32_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i].resource, resource)) {
            return; /* the pods ask for it themselves */
        }
    }
    list->items = arena_grow(&maker->core->scratch, list->items, list->count, &maker->capacity,
                             sizeof(struct charge));
    list->items[list->count++] =
        (struct charge){.flavor = flavor, .resource = resource, .asked = asked, .amount = amount};
}

/* "gpu.example.com=4 …" of all pods together: so much of it for each, rounded up. */
static void add_devices(struct charge_maker *maker, struct str text, int64_t pods)
{
    while (text.len > 0) {
        size_t space = str_find_char(text, ' ');
        struct str word = str_take(text, space);
        text = space < text.len ? str_skip(text, space + 1) : STR("");
        size_t equals = str_find_char(word, '=');
        int64_t total = 0;
        if (equals < word.len && str_to_i64(str_skip(word, equals + 1), &total) && total > 0) {
            add_charge(maker, str_take(word, equals), total / pods + (total % pods > 0 ? 1 : 0));
        }
    }
}

static uint32_t live_orphans(const struct pod_group *group, const struct pod_state **ret_largest)
{
    uint32_t count = 0;
    for (const struct pod_state *pod = group->pods; pod != NULL; pod = pod->next_in_group) {
        if (!pod->is_orphan || pod->is_terminal) {
            continue;
        }
        count++;
        bool is_larger = *ret_largest == NULL || str_compare(pod->uid, (*ret_largest)->uid) < 0;
        *ret_largest =
            is_larger ? pod : *ret_largest; /* they are alike: any, but always the same */
    }
    return count;
}

/* What the pods that are left are charged. */
static struct reserve_request charge_of(struct core *core, const struct admission *object,
                                        const struct pod_state *pod, uint32_t count)
{
    struct charge_maker maker = {.core = core,
                                 .queue = queue_get(core, object->spec.queue),
                                 .flavors = object->status.flavor};
    for (uint32_t i = 0; i < pod->amounts.count; i++) {
        add_charge(&maker, pod->amounts.items[i].resource, i128_clamp(pod->amounts.items[i].value));
    }
    int64_t pods =
        object->spec.pod_sets.count == 0 ? 0 : object->spec.pod_sets.items[0].count.value;
    add_devices(&maker, object->status.devices, pods > 0 ? pods : 1);
    struct reserved_set *set = ARENA_NEW(&core->scratch, struct reserved_set);
    *set = (struct reserved_set){.name = STR("main"), .per_pod = maker.list, .count = count};
    return (struct reserve_request){
        .queue = queue_get(core, object->spec.queue), .sets = set, .set_count = 1};
}

/* False: nothing of it runs. */
static bool revive(struct core *core, struct hash_orphan *orphan)
{
    const struct admission *object = orphan->object;
    size_t slash = str_find_char(orphan->key, '/');
    struct str namespace_name = str_take(orphan->key, slash);
    struct pod_group *group =
        pod_group_find(core, owner_key(core, namespace_name, object->spec.job_uid));
    const struct pod_state *pod = NULL;
    uint32_t count = group == NULL ? 0 : live_orphans(group, &pod);
    if (count == 0 || str_is_empty(object->spec.queue)) {
        return false;
    }
    struct gang *gang =
        gang_new(core, object->spec.job_uid, namespace_name, str_skip(orphan->key, slash + 1));
    gang->is_job_gone = true; /* nothing is asked of it or written about it until it is freed */
    gang->is_admission_seen = true;
    gang->is_admission_ownerless = meta_controller(&object->meta) == NULL;
    gang->admission_uid = str_own(object->meta.uid);
    gang->admitted_ms = object->status.since.is_set ? object->status.since.ms : 0;
    struct reserve_request request = charge_of(core, object, pod, count);
    ledger_reserve(core, gang, &request);
    gang_job_gone(core, gang);
    return true;
}

/* -- who goes -----------------------------------------------------------------------------------
 */

void ghost_check(struct core *core, struct hash_orphan *orphan)
{
    const struct admission *object = orphan->object;
    struct gang *gang = gang_find(core, object->spec.job_uid);
    bool is_ownerless = meta_controller(&object->meta) == NULL;
    if (gang != NULL && gang->is_job_gone && gang->reservation != NULL) {
        gang->is_admission_ownerless = gang->is_admission_ownerless || is_ownerless;
        gang->is_admission_seen = true;
        str_drop(&gang->admission_uid);
        gang->admission_uid = str_own(object->meta.uid);
        return; /* it goes with the last pod */
    }
    struct gang *namesake = table_find(&core->gangs_by_key, orphan->key);
    /* It may have its owner still, where the garbage collector doesn't know Admissions yet. */
    if (namesake == NULL && gang == NULL && revive(core, orphan)) {
        return;
    }
    if (namesake != NULL || is_ownerless) {
        admission_delete(core, orphan->key, object->meta.uid);
    }
}

/* The garbage collector has had its time. */
void ghosts_tick(struct core *core)
{
    if (core->next_ghost_check_ms == 0 || core->now_ms < core->next_ghost_check_ms) {
        return;
    }
    int64_t next_ms = 0;
    struct hash_orphan *orphan;
    struct hash_orphan *following;
    HASH_ITER (hh, core->orphans, orphan, following) {
        bool is_held = gang_find(core, orphan->object->spec.job_uid) != NULL;
        if (orphan->due_ms <= core->now_ms) {
            orphan->due_ms = core->now_ms + GHOST_GRACE_MS;
            if (!is_held) {
                admission_delete(core, orphan->key, orphan->object->meta.uid);
            }
        }
        next_ms = next_ms == 0 || orphan->due_ms < next_ms ? orphan->due_ms : next_ms;
    }
    core->next_ghost_check_ms = next_ms;
}
