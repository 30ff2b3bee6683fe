/* claim_controller.c - makes ResourceClaims of templates, and frees them behind their pods. Source
 * of the rules: k8s.io/kubernetes/pkg/controller/resourceclaim/controller.go. */
#include "sim_internal.h"

#define CLAIM_FREE_MS 10

static struct str made_claim(const struct pod *pod, struct str entry)
{
    const struct pod_claim_status_list *list = &pod->status.resource_claim_statuses;
    for (uint32_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i].name, entry)) {
            return list->items[i].resource_claim_name;
        }
    }
    return STR_NONE;
}

/* False: its template doesn't exist (yet). */
static bool make_claim(struct sim *sim, const struct pod *pod,
                       const struct pod_resource_claim *entry, struct str *ret_name)
{
    struct str key = api_key(sim, pod->meta.namespace_name, entry->resource_claim_template_name);
    struct sim_object *found = api_find(sim, KIND_RESOURCE_CLAIM_TEMPLATE, key);
    if (found == NULL) {
        return false;
    }
    const struct resource_claim_template *template = found->value;
    struct resource_claim claim = {.meta = template->spec.meta, .spec = template->spec.spec};
    struct str name = arena_format(&sim->scratch, STR_FMT "-" STR_FMT, STR_ARG(pod->meta.name),
                                   STR_ARG(entry->name));
    claim.meta.name = name;
    for (int i = 2; api_find(sim, KIND_RESOURCE_CLAIM,
                             api_key(sim, pod->meta.namespace_name, claim.meta.name)) != NULL;
         i++) {
        claim.meta.name = arena_format(&sim->scratch, STR_FMT "-%d", STR_ARG(name), i);
    }
    claim.meta.namespace_name = pod->meta.namespace_name;
    claim.meta.annotations =
        api_map_with(sim, &template->spec.meta.annotations, STR(ANNOTATION_POD_CLAIM), entry->name);
    struct owner_reference owner = {.api_version = STR("v1"),
                                    .kind = STR("Pod"),
                                    .name = pod->meta.name,
                                    .uid = pod->meta.uid,
                                    .controller = {true, true}};
    claim.meta.owner_references = (struct owner_reference_list){&owner, 1};
    *ret_name = arena_copy_str(&sim->scratch, claim.meta.name);
    (void)api_create(sim, KIND_RESOURCE_CLAIM, &claim);
    return true;
}

static void make_claims(struct sim *sim, struct sim_object *object)
{
    const struct pod *pod = object_pod(object);
    struct pod next = *pod;
    struct pod_claim_status_list *made = &next.status.resource_claim_statuses;
    const struct pod_claim_status_list *old = &pod->status.resource_claim_statuses;
    made->items = ARENA_ARRAY(&sim->scratch, struct pod_claim_status,
                              old->count + pod->spec.resource_claims.count + 1);
    for (uint32_t i = 0; i < old->count; i++) {
        made->items[i] = old->items[i];
    }
    for (uint32_t i = 0; i < pod->spec.resource_claims.count; i++) {
        const struct pod_resource_claim *entry = &pod->spec.resource_claims.items[i];
        struct str name = STR_NONE;
        if (str_is_empty(entry->resource_claim_template_name) ||
            str_is_set(made_claim(pod, entry->name))) {
            continue;
        }
        bool is_there = podgroup_find_claim(sim, object->pod.job, entry, &name)
                            ? str_is_set(name)
                            : make_claim(sim, pod, entry, &name);
        if (is_there) {
            made->items[made->count++] = (struct pod_claim_status){entry->name, name};
        }
    }
    api_update(sim, object, &next, false);
}

/* -- freeing ------------------------------------------------------------------------------------
 */

static bool is_owned_by(const struct resource_claim *claim, struct str uid)
{
    const struct owner_reference *owner = meta_controller(&claim->meta);
    return owner != NULL && str_eq(owner->uid, uid);
}

/* Takes the pod off the claim; the last one frees it. */
static void free_claim(struct sim *sim, struct sim_object *object, struct str uid)
{
    const struct resource_claim *claim = object_claim(object);
    struct resource_claim next = *claim;
    struct claim_consumer_list *left = &next.status.reserved_for;
    left->items =
        ARENA_ARRAY(&sim->scratch, struct claim_consumer, claim->status.reserved_for.count + 1);
    left->count = 0;
    for (uint32_t i = 0; i < claim->status.reserved_for.count; i++) {
        if (!str_eq(claim->status.reserved_for.items[i].uid, uid)) {
            left->items[left->count++] = claim->status.reserved_for.items[i];
        }
    }
    bool was_reserved = left->count < claim->status.reserved_for.count;
    if (left->count == 0) {
        left->items = NULL;
    }
    if (was_reserved && left->count == 0) {
        next.status.allocation = NULL;
    }
    if (is_owned_by(claim, uid)) {
        api_update(sim, object, &next, false);
        api_delete(sim, object);
    } else if (was_reserved) {
        api_update(sim, object, &next, false);
    }
}

static void free_claims(struct sim *sim, struct task *task)
{
    struct sim_object *next;
    for (struct sim_object *object = api_first(sim, KIND_RESOURCE_CLAIM); object != NULL;
         object = next) {
        next = api_next(object);
        free_claim(sim, object, task->uid);
    }
    podgroup_collect(sim);
}

static bool has_claims(const struct pod *pod)
{
    return pod->spec.resource_claims.count > 0 ||
           pod->status.extended_resource_claim_status != NULL;
}

void claims_pod_gone(struct sim *sim, const struct sim_object *pod)
{
    if (has_claims(object_pod(pod))) {
        (void)agenda_add(sim, sim_later(sim, CLAIM_FREE_MS), free_claims, pod->uid);
    }
}

void claims_sync_pod(struct sim *sim, struct sim_object *pod)
{
    const struct pod *object = object_pod(pod);
    if (!has_claims(object)) {
        return;
    }
    if (pod_is_terminal(object)) {
        (void)agenda_add(sim, sim->now_ms, free_claims, pod->uid);
    } else if (!object->meta.deletion_timestamp.is_set) {
        make_claims(sim, pod);
    }
}

void claims_sync_all(struct sim *sim)
{
    for (struct sim_object *job = api_first(sim, KIND_JOB); job != NULL; job = api_next(job)) {
        podgroup_make_claims(sim, job);
    }
    struct sim_object *next;
    for (struct sim_object *pod = api_first(sim, KIND_POD); pod != NULL; pod = next) {
        next = api_next(pod);
        if (!pod_is_terminal(object_pod(pod))) {
            claims_sync_pod(sim, pod);
        }
    }
}
