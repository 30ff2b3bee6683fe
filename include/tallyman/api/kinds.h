/* kinds.h - the kinds of object that Tallyman reads, and their schemas.
 *
 * A schema is a table from JSON names to struct members; codec.h decodes and encodes by it. */
#pragma once

#include <stdbool.h>

#include "tallyman/api/meta.h"

struct schema;

/* The numbers are part of the journal's format: append only. */
enum object_kind {
    KIND_NONE = 0,
    KIND_JOB,
    KIND_POD,
    KIND_NODE,
    KIND_NAMESPACE,
    KIND_LIMIT_RANGE,
    KIND_RUNTIME_CLASS,
    KIND_PRIORITY_CLASS,
    KIND_DEVICE_CLASS,
    KIND_RESOURCE_SLICE,
    KIND_RESOURCE_CLAIM,
    KIND_RESOURCE_CLAIM_TEMPLATE,
    KIND_QUEUE,
    KIND_COHORT,
    KIND_RESOURCE_FLAVOR,
    KIND_ADMISSION,
    KIND_DEVICE_TAINT_RULE,
    KIND_PROVISIONING_REQUEST,
    KIND_COUNT,
};

struct kind_info {
    enum object_kind kind;
    const char *name;    /* "Job" */
    const char *group;   /* "batch"; "" is the core group */
    const char *version; /* "v1" */
    const char *plural;  /* "jobs" */
    bool is_namespaced;
    bool is_optional; /* a server may lack it: resource.k8s.io, tallyman.dev before install */
    const struct schema *schema; /* static */
};

/* Static; NULL for KIND_NONE and beyond KIND_COUNT. */
const struct kind_info *kind_info(enum object_kind kind);
/* The versions of the kind's group whose objects decode into its struct, the newest first: the
 * first is `version`. Static; NULL beyond the last. */
const char *kind_version(const struct kind_info *kind, uint32_t index);
/* By apiVersion ("batch/v1") and kind ("Job"); NULL if it isn't one of ours. */
const struct kind_info *kind_find(struct str api_version, struct str kind);

/* An object of any kind: `value` points to the struct of that kind, which begins with its meta. */
struct object {
    enum object_kind kind;
    const struct object_meta *value; /* borrowed from the decoding arena */
};

extern const struct schema pod_spec_schema;
extern const struct schema device_claim_schema;
extern const struct schema admission_record_schema;
extern const struct schema suspended_record_schema;
extern const struct schema request_record_schema;
extern const struct schema api_status_schema;
