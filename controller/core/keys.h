/* keys.h - labels, annotations and names that the core knows. Private to the core. */
#pragma once

#define LABEL_QUEUE                   "tallyman.dev/queue"
#define LABEL_CONTROLLER_UID          "batch.kubernetes.io/controller-uid"
#define LABEL_DEFAULT_QUEUE           "tallyman.dev/default-queue"
#define LABEL_PRIORITY_CLASS          "tallyman.dev/priority-class"
#define LABEL_POD_SET                 "tallyman.dev/pod-set" /* absent: the first set's */
#define ANNOTATION_ADMISSION          "tallyman.dev/admission"
#define ANNOTATION_SUSPENDED          "tallyman.dev/suspended"
#define ANNOTATION_HOLD               "tallyman.dev/hold"
#define ANNOTATION_PARTIAL            "tallyman.dev/partial"
#define ANNOTATION_CHECKPOINT         "tallyman.dev/last-checkpoint"
#define ANNOTATION_MIN_COUNT_SOURCE   "tallyman.dev/min-count-source"
#define ANNOTATION_REQUIRED_TOPOLOGY  "tallyman.dev/required-topology"
#define ANNOTATION_PREFERRED_TOPOLOGY "tallyman.dev/preferred-topology"
#define KEY_STOP_POLICY               "tallyman.dev/stop-policy"
#define LABEL_HOSTNAME                "kubernetes.io/hostname"
#define QUEUE_FINALIZER               "tallyman.dev/in-use"
#define FLAVOR_DEFAULT                "default"
#define RESOURCE_PODS                 "pods"
#define POD_SET_MAIN                  "main" /* the only set of a Job */

/* On claims that were made of a template: which of the pod's, or the PodGroup's, claims it is. */
#define ANNOTATION_POD_CLAIM "resource.kubernetes.io/pod-claim-name"

/* On claims that kube-scheduler makes for extended resources. */
#define ANNOTATION_EXTENDED_CLAIM "resource.kubernetes.io/extended-resource-claim"
