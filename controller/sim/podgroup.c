/* podgroup.c - claims that a gang has once for all its pods (feature gates WorkloadWithJob and
 * DRAWorkloadResourceClaims, played where a Job lists such claims). There are no PodGroups here:
 * what others see of one is its name, and that it owns and holds claims. Sources of the rules:
 * k8s.io/kubernetes/pkg/controller/job/job_scheduling_manager.go, .../resourceclaim/controller.go;
 * what 1.37 was seen to do: docs/decisions/038. */
#include "sim_internal.h"

#include "tallyman/api/pod_group.h"

#define GROUP_KIND    "PodGroup"
#define GROUP_VERSION "scheduling.k8s.io/v1beta1"
#define UID_PREFIX    "podgroup-" /* before the Job's */

bool podgroup_has_claims(const struct job *job)
{
    return job->spec.scheduling != NULL && job->spec.scheduling->resource_claims.count > 0 &&
           meta_controller(&job->meta) == NULL;
}

static bool is_listed(const struct job *job, const struct pod_resource_claim *entry)
{
    bool is_it = false;
    for (uint32_t i = 0;
         podgroup_has_claims(job) && !str_is_empty(entry->resource_claim_template_name) &&
         i < job->spec.scheduling->resource_claims.count;
         i++) {
        const struct scheduling_claim *claim = &job->spec.scheduling->resource_claims.items[i];
        is_it = is_it ||
                (str_eq(claim->name, entry->name) &&
                 str_eq(claim->resource_claim_template_name, entry->resource_claim_template_name));
    }
    return is_it;
}

/* The claim's owner if that is a PodGroup, else NULL. */
static const struct owner_reference *group_of(const struct resource_claim *claim)
{
    const struct owner_reference *owner = meta_controller(&claim->meta);
    return owner != NULL && str_eq_c(owner->kind, GROUP_KIND) ? owner : NULL;
}

static struct sim_object *job_of(const struct sim *sim, struct str group_uid)
{
    struct sim_object *job = str_starts_with(group_uid, STR(UID_PREFIX))
                                 ? api_find_uid(sim, str_skip(group_uid, sizeof(UID_PREFIX) - 1))
                                 : NULL;
    return job != NULL && job->kind == KIND_JOB ? job : NULL;
}

const struct sim_object *podgroup_job(const struct sim *sim, const struct claim_consumer *holder)
{
    return job_of(sim, holder->uid);
}

struct claim_consumer podgroup_holder(const struct resource_claim *claim,
                                      const struct sim_object *pod)
{
    const struct owner_reference *group = group_of(claim);
    if (group == NULL) {
        return (struct claim_consumer){
            .resource = STR("pods"), .name = object_meta(pod)->name, .uid = pod->uid};
    }
    return (struct claim_consumer){.api_group = STR("scheduling.k8s.io"),
                                   .resource = STR("podgroups"),
                                   .name = group->name,
                                   .uid = group->uid};
}

/* -- making -------------------------------------------------------------------------------------
 */

static struct str claim_name(struct sim *sim, const struct job *job, struct str entry)
{
    return arena_format(&sim->scratch, STR_FMT "-" STR_FMT,
                        STR_ARG(pod_group_name_of_job(&sim->scratch, job)), STR_ARG(entry));
}

bool podgroup_find_claim(struct sim *sim, const struct sim_object *job,
                         const struct pod_resource_claim *entry, struct str *ret_name)
{
    *ret_name = STR_NONE;
    if (job == NULL || !is_listed(object_job(job), entry)) {
        return false;
    }
    struct str name = claim_name(sim, object_job(job), entry->name);
    struct str key = api_key(sim, object_meta(job)->namespace_name, name);
    *ret_name = api_find(sim, KIND_RESOURCE_CLAIM, key) != NULL ? name : STR_NONE;
    return true;
}

static void make_claim(struct sim *sim, const struct job *job,
                       const struct scheduling_claim *listed)
{
    struct str namespace_name = job->meta.namespace_name;
    struct sim_object *found =
        api_find(sim, KIND_RESOURCE_CLAIM_TEMPLATE,
                 api_key(sim, namespace_name, listed->resource_claim_template_name));
    struct str name = claim_name(sim, job, listed->name);
    if (found == NULL ||
        api_find(sim, KIND_RESOURCE_CLAIM, api_key(sim, namespace_name, name)) != NULL) {
        return;
    }
    const struct resource_claim_template *template = found->value;
    struct resource_claim claim = {.meta = template->spec.meta, .spec = template->spec.spec};
    claim.meta.name = name;
    claim.meta.namespace_name = namespace_name;
    claim.meta.annotations = api_map_with(sim, &template->spec.meta.annotations,
                                          STR(ANNOTATION_POD_CLAIM), listed->name);
    struct owner_reference owner = {
        .api_version = STR(GROUP_VERSION),
        .kind = STR(GROUP_KIND),
        .name = pod_group_name_of_job(&sim->scratch, job),
        .uid = arena_format(&sim->scratch, UID_PREFIX STR_FMT, STR_ARG(job->meta.uid)),
        .controller = {true, true}};
    claim.meta.owner_references = (struct owner_reference_list){&owner, 1};
    (void)api_create(sim, KIND_RESOURCE_CLAIM, &claim);
}

void podgroup_make_claims(struct sim *sim, const struct sim_object *job)
{
    const struct job *object = object_job(job);
    if (!podgroup_has_claims(object) || object->meta.name.len > POD_GROUP_JOB_NAME_MAX) {
        return;
    }
    const struct scheduling_claim_list *listed = &object->spec.scheduling->resource_claims;
    for (uint32_t i = 0; i < listed->count; i++) {
        if (!str_is_empty(listed->items[i].resource_claim_template_name)) {
            make_claim(sim, object, &listed->items[i]);
        }
    }
}

/* -- freeing ------------------------------------------------------------------------------------
 */

static bool has_live_pod(const struct sim *sim, const struct sim_object *claim)
{
    for (struct sim_object *item = api_first(sim, KIND_POD); item != NULL; item = api_next(item)) {
        const struct pod *pod = object_pod(item);
        const struct pod_claim_status_list *made = &pod->status.resource_claim_statuses;
        bool is_near = !pod_is_terminal(pod) &&
                       str_eq(pod->meta.namespace_name, object_meta(claim)->namespace_name);
        for (uint32_t i = 0; i < made->count && is_near; i++) {
            if (str_eq(made->items[i].resource_claim_name, object_meta(claim)->name)) {
                return true;
            }
        }
    }
    return false;
}

void podgroup_collect(struct sim *sim)
{
    struct sim_object *next;
    for (struct sim_object *claim = api_first(sim, KIND_RESOURCE_CLAIM); claim != NULL;
         claim = next) {
        next = api_next(claim);
        const struct owner_reference *group = group_of(object_claim(claim));
        if (group == NULL || job_of(sim, group->uid) != NULL || has_live_pod(sim, claim)) {
            continue;
        }
        struct resource_claim freed = *object_claim(claim);
        freed.status.allocation = NULL;
        freed.status.reserved_for = (struct claim_consumer_list){.count = 0};
        api_update(sim, claim, &freed, false);
        api_delete(sim, claim);
    }
}
