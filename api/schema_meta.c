/* schema_meta.c - what many kinds share: metadata, conditions, selectors, taints; and what a server
 * answers. */
#include "schema.h"

#include "tallyman/api/selector.h"

static const struct field owner_reference_fields[] = {
    F_STRING(owner_reference, api_version, "apiVersion"),
    F_STRING(owner_reference, kind, "kind"),
    F_STRING(owner_reference, name, "name"),
    F_STRING(owner_reference, uid, "uid"),
    F_BOOL(owner_reference, controller, "controller"),
};
static SCHEMA(owner_reference);

static const struct field object_meta_fields[] = {
    F_STRING(object_meta, name, "name"),
    F_STRING(object_meta, namespace_name, "namespace"),
    F_STRING(object_meta, uid, "uid"),
    F_STRING(object_meta, resource_version, "resourceVersion"),
    F_INT(object_meta, generation, "generation"),
    F_TIME(object_meta, creation_timestamp, "creationTimestamp"),
    F_TIME(object_meta, deletion_timestamp, "deletionTimestamp"),
    F_STRING_MAP(object_meta, labels, "labels"),
    F_STRING_MAP(object_meta, annotations, "annotations"),
    F_OBJECT_LIST(object_meta, owner_references, "ownerReferences", owner_reference),
    F_STRING_LIST(object_meta, finalizers, "finalizers"),
};
SCHEMA(object_meta);

static const struct field condition_fields[] = {
    F_STRING(condition, type, "type"),
    F_STRING(condition, status, "status"),
    F_STRING(condition, reason, "reason"),
    F_STRING(condition, message, "message"),
    F_INT(condition, observed_generation, "observedGeneration"),
    F_TIME(condition, last_transition_time, "lastTransitionTime"),
};
SCHEMA(condition);

static const struct field match_expression_fields[] = {
    F_STRING(match_expression, key, "key"),
    F_STRING(match_expression, op, "operator"),
    F_STRING_LIST(match_expression, values, "values"),
};
SCHEMA(match_expression);

static const struct field label_selector_fields[] = {
    F_STRING_MAP(label_selector, match_labels, "matchLabels"),
    F_OBJECT_LIST(label_selector, match_expressions, "matchExpressions", match_expression),
};
SCHEMA(label_selector);

static const struct field node_selector_term_fields[] = {
    F_OBJECT_LIST(node_selector_term, match_expressions, "matchExpressions", match_expression),
    F_OBJECT_LIST(node_selector_term, match_fields, "matchFields", match_expression),
};
static SCHEMA(node_selector_term);

static const struct field node_selector_fields[] = {
    F_OBJECT_LIST(node_selector, node_selector_terms, "nodeSelectorTerms", node_selector_term),
};
SCHEMA(node_selector);

static const struct field taint_fields[] = {
    F_STRING(taint, key, "key"),
    F_STRING(taint, value, "value"),
    F_STRING(taint, effect, "effect"),
    F_TIME(taint, time_added, "timeAdded"),
};
SCHEMA(taint);

static const struct field toleration_fields[] = {
    F_STRING(toleration, key, "key"),
    F_STRING(toleration, op, "operator"),
    F_STRING(toleration, value, "value"),
    F_STRING(toleration, effect, "effect"),
    F_INT(toleration, toleration_seconds, "tolerationSeconds"),
};
SCHEMA(toleration);

static const struct field list_meta_fields[] = {
    F_STRING(list_meta, resource_version, "resourceVersion"),
    F_STRING(list_meta, continue_token, "continue"),
    F_INT(list_meta, remaining_item_count, "remainingItemCount"),
};
SCHEMA(list_meta);

static const struct field api_status_cause_fields[] = {
    F_STRING(api_status_cause, reason, "reason"),
    F_STRING(api_status_cause, message, "message"),
    F_STRING(api_status_cause, field, "field"),
};
static SCHEMA(api_status_cause);

static const struct field api_status_details_fields[] = {
    F_STRING(api_status_details, name, "name"),
    F_STRING(api_status_details, kind, "kind"),
    F_INT(api_status_details, retry_after_seconds, "retryAfterSeconds"),
    F_OBJECT_LIST(api_status_details, causes, "causes", api_status_cause),
};
static SCHEMA(api_status_details);

static const struct field api_status_fields[] = {
    F_OBJECT(api_status, meta, "metadata", object_meta),
    F_STRING(api_status, status, "status"),
    F_STRING(api_status, message, "message"),
    F_STRING(api_status, reason, "reason"),
    F_INT(api_status, code, "code"),
    F_OBJECT_PTR(api_status, details, "details", api_status_details),
};
SCHEMA(api_status);
