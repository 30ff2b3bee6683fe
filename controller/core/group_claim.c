/* group_claim.c - claims that a gang has once for all its pods.
 *
 * A Job may list claims of its pods in spec.scheduling.resourceClaims. Where the cluster's gates
 * are on, the Job controller makes a PodGroup for it, and the claim controller one ResourceClaim of
 * each template that is listed; a pod whose entry is equal (name and template) uses that one. Where
 * one gate is off (DRAWorkloadResourceClaims; the Job keeps the field by another, WorkloadWithJob),
 * each pod gets a claim of its own. So what counts is the ResourceClaim itself: both objects are
 * made while the Job is still suspended. Once it is there, it is to the gang what a claim that the
 * template names would be; until then the gang waits. */
#include "claim.h"

#include "tallyman/api/pod_group.h"
#include "tallyman/base/alloc.h"

#define GROUP_CLAIM_BITS 64 /* of pod_set.group_claims */

/* The ResourceClaims that PodGroups own, by what they were made for. */
struct group_claim {
    struct str key;            /* owned; "namespace/podgroup/entry" */
    struct claim_state *first; /* of those with that key, newest first; never NULL */
};

/* -- what a Job asks for ----------------------------------------------------------------------- */

static bool is_same_claim(const struct scheduling_claim *listed,
                          const struct pod_resource_claim *claim)
{
    return str_eq(listed->name, claim->name) &&
           str_eq(listed->resource_claim_name, claim->resource_claim_name) &&
           str_eq(listed->resource_claim_template_name, claim->resource_claim_template_name);
}

static bool is_by_template(const struct pod_resource_claim *claim)
{
    return !str_is_empty(claim->resource_claim_template_name);
}

/* Of claims by name it changes nothing. */
static bool is_listed(const struct job *job, const struct pod_resource_claim *claim)
{
    const struct job_scheduling *scheduling = job->spec.scheduling;
    for (uint32_t i = 0; scheduling != NULL && i < scheduling->resource_claims.count; i++) {
        if (is_by_template(claim) && is_same_claim(&scheduling->resource_claims.items[i], claim)) {
            return true;
        }
    }
    return false;
}

uint64_t group_claims_of(const struct job *job, const struct pod_spec *spec)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < spec->resource_claims.count && i < GROUP_CLAIM_BITS; i++) {
        if (is_listed(job, &spec->resource_claims.items[i])) {
            bits |= UINT64_C(1) << i;
        }
    }
    return bits;
}

struct str group_claims_pod_group(struct core *core, const struct job *job)
{
    struct str name = pod_group_name_of_job(&core->scratch, job);
    return key_join(&core->scratch, job->meta.namespace_name, name);
}

/* What would do instead. */
#define GROUP_CLAIM_ADVICE                                                                         \
    "let the template name a ResourceClaim (resourceClaimName) that all pods share, or take the "  \
    "entry out for a claim each"

static struct str trouble_of(struct core *core, const struct job *job,
                             const struct pod_resource_claim *claim, uint32_t index)
{
    struct str name = text_quote(&core->scratch, claim->name, 100);
    const struct owner_reference *owner = meta_controller(&job->meta);
    if (job->spec.pod_template.spec.scheduling_group != NULL) {
        return arena_format(
            &core->scratch,
            "spec.template.spec.schedulingGroup puts the pods into a PodGroup of yours, and "
            "Tallyman doesn't see whether that has claim \"" STR_FMT
            "\" once for all of them; take schedulingGroup out, or let all pods share a "
            "ResourceClaim that the template names (resourceClaimName)",
            STR_ARG(name));
    }
    if (!is_listed(job, claim)) {
        return STR_NONE;
    }
    if (owner != NULL) {
        return arena_format(&core->scratch,
                            "spec.scheduling.resourceClaims lists claim \"" STR_FMT
                            "\" for the whole gang, but this Job belongs to " STR_FMT " " STR_FMT
                            ", and Kubernetes makes a PodGroup only for a Job that belongs to "
                            "nothing; " GROUP_CLAIM_ADVICE,
                            STR_ARG(name), STR_ARG(owner->kind), STR_ARG(owner->name));
    }
    if (index >= GROUP_CLAIM_BITS || job->meta.name.len > POD_GROUP_JOB_NAME_MAX) {
        return arena_format(&core->scratch,
                            "spec.scheduling.resourceClaims lists claim \"" STR_FMT
                            "\", which Tallyman judges only of Jobs whose name has at most %d "
                            "characters, among the first %d claims of the template",
                            STR_ARG(name), POD_GROUP_JOB_NAME_MAX, GROUP_CLAIM_BITS);
    }
    return STR_NONE;
}

struct str group_claims_trouble(struct core *core, const struct job *job)
{
    const struct pod_resource_claim_list *claims = &job->spec.pod_template.spec.resource_claims;
    struct str trouble = STR_NONE;
    for (uint32_t i = 0; i < claims->count && !str_is_set(trouble); i++) {
        if (is_by_template(&claims->items[i])) {
            trouble = trouble_of(core, job, &claims->items[i], i);
        }
    }
    return trouble;
}

/* -- what there is ----------------------------------------------------------------------------- */

/* "namespace/podgroup", absent: no PodGroup owns it. */
static struct str pod_group_of(struct core *core, const struct resource_claim *object)
{
    const struct owner_reference *owner = object == NULL ? NULL : meta_controller(&object->meta);
    bool is_owned = owner != NULL && str_eq_c(owner->kind, "PodGroup") &&
                    str_starts_with(owner->api_version, STR("scheduling.k8s.io/"));
    return is_owned ? key_join(&core->scratch, object->meta.namespace_name, owner->name) : STR_NONE;
}

static struct str group_key_of(struct core *core, const struct resource_claim *object)
{
    struct str pod_group = pod_group_of(core, object);
    if (!str_is_set(pod_group)) {
        return STR_NONE;
    }
    struct str entry = string_map_get(&object->meta.annotations, ANNOTATION_POD_CLAIM);
    return str_is_empty(entry) ? STR_NONE : key_join(&core->scratch, pod_group, entry);
}

static void group_claim_join(struct core *core, struct claim_state *claim, struct str key)
{
    struct group_claim *group = table_find(&core->group_claims, key);
    if (group == NULL) {
        group = MEM_NEW(struct group_claim);
        group->key = str_own(key);
        table_add(&core->group_claims, group);
    }
    claim->next_of_group = group->first;
    group->first = claim;
}

static void group_claim_leave(struct core *core, struct claim_state *claim, struct str key)
{
    struct group_claim *group = table_find(&core->group_claims, key);
    struct claim_state **link = &group->first;
    while (*link != claim) {
        link = &(*link)->next_of_group;
    }
    *link = claim->next_of_group;
    claim->next_of_group = NULL;
    if (group->first == NULL) {
        table_remove(&core->group_claims, group);
        str_drop(&group->key);
        mem_free(group);
    }
}

/* The gang that has the PodGroup sees its claims differently now. */
static void tell_shapes(struct core *core, struct str pod_group)
{
    struct queue_state *queue;
    RB_FOREACH (queue, queue_tree, &core->queue_order) {
        for (struct shape *shape = queue->shapes; shape != NULL; shape = shape->next_in_queue) {
            if (str_is_set(pod_group) && str_eq(shape->pod_group, pod_group)) {
                shape_unresolve(core, shape);
            }
        }
    }
}

void group_claim_changed(struct core *core, struct claim_state *claim,
                         const struct resource_claim *old)
{
    struct str before = group_key_of(core, old);
    struct str now = group_key_of(core, claim->object);
    if (str_eq(before, now)) {
        return;
    }
    if (str_is_set(before)) {
        group_claim_leave(core, claim, before);
        tell_shapes(core, pod_group_of(core, old));
    }
    if (str_is_set(now)) {
        group_claim_join(core, claim, now);
        tell_shapes(core, pod_group_of(core, claim->object));
    }
    wake_if_promises_are_stale(core);
}

struct claim_state *group_claim_find(struct core *core, struct shape *shape, struct str entry)
{
    struct str name = text_quote(&core->scratch, entry, 100);
    struct group_claim *group =
        table_find(&core->group_claims, key_join(&core->scratch, shape->pod_group, entry));
    if (group == NULL) {
        shape_break(shape, REASON_MISSING_REFERENCE,
                    arena_format(&core->scratch,
                                 "PodGroup " STR_FMT " has no ResourceClaim for claim \"" STR_FMT
                                 "\" of spec.scheduling.resourceClaims; Kubernetes makes one for a "
                                 "new Job where its feature gates WorkloadWithJob and "
                                 "DRAWorkloadResourceClaims are on. Else " GROUP_CLAIM_ADVICE,
                                 STR_ARG(shape->pod_group), STR_ARG(name)));
        return NULL;
    }
    if (group->first->next_of_group != NULL) {
        shape_break(shape, REASON_INVALID,
                    arena_format(&core->scratch,
                                 "PodGroup " STR_FMT
                                 " has several ResourceClaims for claim \"" STR_FMT
                                 "\", and which of them its pods get can't be told; delete "
                                 "all of them but the one that its status names",
                                 STR_ARG(shape->pod_group), STR_ARG(name)));
        return NULL;
    }
    return group->first;
}

void group_claims_free(struct core *core)
{
    uint32_t at = 0;
    for (struct group_claim *group; (group = table_drain(&core->group_claims, &at)) != NULL;) {
        table_remove(&core->group_claims, group);
        str_drop(&group->key);
        mem_free(group);
    }
    table_deinit(&core->group_claims);
}
