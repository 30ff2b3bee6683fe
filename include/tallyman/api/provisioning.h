/* provisioning.h - ProvisioningRequest (autoscaling.x-k8s.io/v1), by which an autoscaler is asked
 * for room, and the annotation that rides on each of ours. Source: kubernetes/autoscaler,
 * cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1/types.go. */
#pragma once

#include "tallyman/api/admission.h"

struct pod_template_reference {
    struct str name; /* of a PodTemplate of the same namespace */
};

struct provisioning_pod_set {
    struct pod_template_reference pod_template_ref;
    struct opt_int count;
};

struct provisioning_pod_set_list {
    struct provisioning_pod_set *items;
    uint32_t count;
};

struct provisioning_spec {
    struct str provisioning_class_name;
    struct provisioning_pod_set_list pod_sets;
    struct string_map parameters;
};

struct provisioning_status {
    struct condition_list
        conditions; /* Accepted Provisioned Failed BookingExpired CapacityRevoked */
    struct string_map provisioning_class_details;
};

struct provisioning_request {
    struct object_meta meta;
    struct provisioning_spec spec;
    struct provisioning_status status;
};

/* Annotation tallyman.dev/reservation: what the gang holds while it waits, so that a restart holds
 * it again. */
struct request_record {
    struct str queue;
    struct str asks; /* stands for the gang's template and what its queue says of the check */
    struct opt_int failures; /* of the gang before this request */
    struct record_pod_set_list pod_sets;
};
