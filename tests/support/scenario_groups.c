/* scenario_groups.c - claims that a PodGroup has for all its pods. */
#include "support/scenario_internal.h"

#include <stdio.h>

#include "tallyman/api/pod_group.h"

static const char *group_claim_name(struct scenario *s, const char *job, const char *template_name)
{
    return make(s, "%s-%s", job, template_name).ptr;
}

void given_group_claim(struct scenario *s, const char *job, const char *template_name)
{
    struct resource_claim *claim = ARENA_NEW(&s->arena, struct resource_claim);
    struct owner_reference *owner = ARENA_NEW(&s->arena, struct owner_reference);
    *owner = (struct owner_reference){
        .api_version = STR("scheduling.k8s.io/v1beta1"),
        .kind = STR("PodGroup"),
        .name = pod_group_name_of_job(&s->arena, scenario_job(s, job)),
        .uid = make(s, "pod-group-of-%s", job),
        .controller = {true, true},
    };
    claim->meta.name = str_from_c(group_claim_name(s, job, template_name));
    claim->meta.owner_references = (struct owner_reference_list){owner, 1};
    map_set(s, &claim->meta.annotations, STR("resource.kubernetes.io/pod-claim-name"),
            make(s, "c-%s", template_name));
    const struct resource_claim_template *template =
        scenario_object(s, KIND_RESOURCE_CLAIM_TEMPLATE, template_name);
    claim->spec = template->spec.spec;
    tell(s, entry_put(s, KIND_RESOURCE_CLAIM, &claim->meta));
}

static void name_claim(struct scenario *s, const char *pod_name, const char *template_name,
                       struct str claim)
{
    struct pod *pod = scenario_object(s, KIND_POD, pod_name);
    struct pod_claim_status *made = ARENA_NEW(&s->arena, struct pod_claim_status);
    *made = (struct pod_claim_status){.name = make(s, "c-%s", template_name),
                                      .resource_claim_name = claim};
    pod->status.resource_claim_statuses = (struct pod_claim_status_list){made, 1};
    object_changed(s, KIND_POD, pod_name);
}

void group_claim_allocated(struct scenario *s, const char *job, const char *template_name,
                           const char *devices)
{
    const char *name = group_claim_name(s, job, template_name);
    struct resource_claim *claim = scenario_object(s, KIND_RESOURCE_CLAIM, name);
    char pod[300];
    for (int i = 0; snprintf(pod, sizeof(pod), "%s-%d", job, i), scenario_has(s, KIND_POD, pod);
         i++) {
        name_claim(s, pod, template_name, claim->meta.name);
    }
    const struct owner_reference *owner = meta_controller(&claim->meta);
    struct claim_consumer *group = ARENA_NEW(&s->arena, struct claim_consumer);
    *group = (struct claim_consumer){.api_group = STR("scheduling.k8s.io"),
                                     .resource = STR("podgroups"),
                                     .name = owner->name,
                                     .uid = owner->uid};
    claim->status.reserved_for = (struct claim_consumer_list){group, 1};
    claim_allocated(s, name, devices);
}
