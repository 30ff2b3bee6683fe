/* schema_provisioning.c - ProvisioningRequest (autoscaling.x-k8s.io/v1). */
#include "schema.h"

#include "tallyman/api/provisioning.h"

static const struct field pod_template_reference_fields[] = {
    F_STRING(pod_template_reference, name, "name"),
};
static SCHEMA(pod_template_reference);

static const struct field provisioning_pod_set_fields[] = {
    F_OBJECT(provisioning_pod_set, pod_template_ref, "podTemplateRef", pod_template_reference),
    F_INT(provisioning_pod_set, count, "count"),
};
static SCHEMA(provisioning_pod_set);

static const struct field provisioning_spec_fields[] = {
    F_STRING(provisioning_spec, provisioning_class_name, "provisioningClassName"),
    F_OBJECT_LIST(provisioning_spec, pod_sets, "podSets", provisioning_pod_set),
    F_STRING_MAP(provisioning_spec, parameters, "parameters"),
};
static SCHEMA(provisioning_spec);

static const struct field provisioning_status_fields[] = {
    F_OBJECT_LIST(provisioning_status, conditions, "conditions", condition),
    F_STRING_MAP(provisioning_status, provisioning_class_details, "provisioningClassDetails"),
};
static SCHEMA(provisioning_status);

static const struct field provisioning_request_fields[] = {
    F_OBJECT(provisioning_request, meta, "metadata", object_meta),
    F_OBJECT(provisioning_request, spec, "spec", provisioning_spec),
    F_OBJECT(provisioning_request, status, "status", provisioning_status),
};
SCHEMA(provisioning_request);

static const struct field request_record_fields[] = {
    F_STRING(request_record, queue, "queue"),
    F_STRING(request_record, asks, "asks"),
    F_INT(request_record, failures, "failures"),
    F_OBJECT_LIST(request_record, pod_sets, "podSets", record_pod_set),
};
SCHEMA(request_record);
