/* selector.h - label selectors, node affinity, taints and tolerations, as Kubernetes matches them.
 *
 * Sources: apimachinery labels/selector.go, component-helpers scheduling/corev1/nodeaffinity,
 * component-helpers scheduling/corev1/helpers.go. */
#pragma once

#include <stdbool.h>

#include "tallyman/api/meta.h"

/* matchExpressions of label selectors and of node selector terms (which add Gt and Lt). */
struct match_expression {
    struct str key;
    struct str op; /* In NotIn Exists DoesNotExist Gt Lt */
    struct str_list values;
};

struct match_expression_list {
    struct match_expression *items;
    uint32_t count;
};

struct label_selector {
    struct string_map match_labels;
    struct match_expression_list match_expressions;
};

struct node_selector_term {
    struct match_expression_list match_expressions;
    struct match_expression_list match_fields; /* metadata.name only */
};

struct node_selector_term_list {
    struct node_selector_term *items;
    uint32_t count;
};

struct node_selector {
    struct node_selector_term_list node_selector_terms;
};

struct taint {
    struct str key;
    struct str value;
    struct str effect; /* NoSchedule PreferNoSchedule NoExecute; a device's also None */
    struct opt_time time_added;
};

struct taint_list {
    struct taint *items;
    uint32_t count;
};

struct toleration {
    struct str key;
    struct str op; /* Equal (default) Exists; Lt Gt with their gate */
    struct str value;
    struct str effect;
    struct opt_int toleration_seconds;
};

struct toleration_list {
    struct toleration *items;
    uint32_t count;
};

/* An empty selector matches all; a NULL one matches nothing. An operator that isn't known matches
 * nothing. */
bool label_selector_matches(const struct label_selector *selector, const struct string_map *labels);

/* OR over the terms, AND within one; an empty term matches nothing; NULL matches all. */
bool node_selector_matches(const struct node_selector *selector, const struct string_map *labels,
                           struct str node_name);
/* A pod's spec.nodeSelector: every pair has to be there. */
bool node_labels_contain(const struct string_map *wanted, const struct string_map *labels);

bool toleration_tolerates(const struct toleration *toleration, const struct taint *taint);
/* The first taint of effect NoSchedule or NoExecute that no toleration covers, or NULL. Borrowed.
 */
const struct taint *taints_find_untolerated(const struct taint_list *taints,
                                            const struct toleration_list *tolerations);
/* "rack" or "example.com/rack", as the API server takes it. */
bool label_key_is_valid(struct str key);
