/* kinds.c - the table of kinds. */
#include "tallyman/api/kinds.h"

#include <assert.h>
#include <string.h>

#include "schema.h"

#define GROUP_DRA      "resource.k8s.io"
#define GROUP_TALLYMAN "tallyman.dev"

static const struct kind_info kinds[KIND_COUNT] = {
    [KIND_JOB] = {KIND_JOB, "Job", "batch", "v1", "jobs", true, false, &job_schema},
    [KIND_POD] = {KIND_POD, "Pod", "", "v1", "pods", true, false, &pod_schema},
    [KIND_NODE] = {KIND_NODE, "Node", "", "v1", "nodes", false, false, &node_schema},
    [KIND_NAMESPACE] = {KIND_NAMESPACE, "Namespace", "", "v1", "namespaces", false, false,
                        &namespace_object_schema},
    [KIND_LIMIT_RANGE] = {KIND_LIMIT_RANGE, "LimitRange", "", "v1", "limitranges", true, false,
                          &limit_range_schema},
    [KIND_RUNTIME_CLASS] = {KIND_RUNTIME_CLASS, "RuntimeClass", "node.k8s.io", "v1",
                            "runtimeclasses", false, false, &runtime_class_schema},
    [KIND_PRIORITY_CLASS] = {KIND_PRIORITY_CLASS, "PriorityClass", "scheduling.k8s.io", "v1",
                             "priorityclasses", false, false, &priority_class_schema},
    [KIND_DEVICE_CLASS] = {KIND_DEVICE_CLASS, "DeviceClass", GROUP_DRA, "v1", "deviceclasses",
                           false, true, &device_class_schema},
    [KIND_RESOURCE_SLICE] = {KIND_RESOURCE_SLICE, "ResourceSlice", GROUP_DRA, "v1",
                             "resourceslices", false, true, &resource_slice_schema},
    [KIND_RESOURCE_CLAIM] = {KIND_RESOURCE_CLAIM, "ResourceClaim", GROUP_DRA, "v1",
                             "resourceclaims", true, true, &resource_claim_schema},
    [KIND_RESOURCE_CLAIM_TEMPLATE] = {KIND_RESOURCE_CLAIM_TEMPLATE, "ResourceClaimTemplate",
                                      GROUP_DRA, "v1", "resourceclaimtemplates", true, true,
                                      &resource_claim_template_schema},
    [KIND_QUEUE] = {KIND_QUEUE, "Queue", GROUP_TALLYMAN, "v1beta1", "queues", false, true,
                    &queue_schema},
    [KIND_COHORT] = {KIND_COHORT, "Cohort", GROUP_TALLYMAN, "v1beta1", "cohorts", false, true,
                     &cohort_schema},
    [KIND_RESOURCE_FLAVOR] = {KIND_RESOURCE_FLAVOR, "ResourceFlavor", GROUP_TALLYMAN, "v1beta1",
                              "resourceflavors", false, true, &resource_flavor_schema},
    [KIND_ADMISSION] = {KIND_ADMISSION, "Admission", GROUP_TALLYMAN, "v1beta1", "admissions", true,
                        true, &admission_schema},
    [KIND_DEVICE_TAINT_RULE] = {KIND_DEVICE_TAINT_RULE, "DeviceTaintRule", GROUP_DRA, "v1",
                                "devicetaintrules", false, true, &device_taint_rule_schema},
    [KIND_PROVISIONING_REQUEST] = {KIND_PROVISIONING_REQUEST, "ProvisioningRequest",
                                   "autoscaling.x-k8s.io", "v1", "provisioningrequests", true, true,
                                   &provisioning_request_schema},
};

const struct kind_info *kind_info(enum object_kind kind)
{
    if (kind <= KIND_NONE || kind >= KIND_COUNT) {
        return NULL;
    }
    assert(kinds[kind].kind == kind);
    return &kinds[kind];
}

const char *kind_version(const struct kind_info *kind, uint32_t index)
{
    static const char *const dra[] = {"v1", "v1beta2", "v1beta1"};
    if (strcmp(kind->group, GROUP_DRA) == 0) {
        return index < ARRAY_COUNT(dra) ? dra[index] : NULL;
    }
    return index == 0 ? kind->version : NULL;
}

static bool is_version_of(const struct kind_info *info, struct str version)
{
    for (uint32_t i = 0; kind_version(info, i) != NULL; i++) {
        if (str_eq_c(version, kind_version(info, i))) {
            return true;
        }
    }
    return false;
}

/* "batch/v1" is group and version; "v1" alone is of the core group. */
static bool api_version_is(const struct kind_info *info, struct str api_version)
{
    size_t slash = str_find_char(api_version, '/');

    if (slash == api_version.len) {
        return info->group[0] == '\0' && str_eq_c(api_version, info->version);
    }
    return info->group[0] != '\0' && str_eq_c(str_take(api_version, slash), info->group) &&
           is_version_of(info, str_skip(api_version, slash + 1));
}

const struct kind_info *kind_find(struct str api_version, struct str kind)
{
    for (int i = KIND_NONE + 1; i < KIND_COUNT; i++) {
        if (str_eq_c(kind, kinds[i].name) && api_version_is(&kinds[i], api_version)) {
            return &kinds[i];
        }
    }
    return NULL;
}
