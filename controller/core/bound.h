/* bound.h - pods that name their node: spec.nodeName in the template. Private to the core.
 *
 * Such pods pass kube-scheduler by: the kubelet of that node takes or refuses each of them (in 1.37
 * pkg/kubelet/lifecycle/predicate.go). It looks at nodeSelector and required node affinity, at
 * what is left of the node's allocatable, at host ports and at taints NoExecute. Neither a cordon
 * nor a taint NoSchedule keeps them off, but under pressure the kubelet takes no more pods. Nobody
 * allocates devices for them: only kube-scheduler does that. */
#pragma once

#include "state.h"

struct resource_flavor;

bool pod_set_is_bound(const struct pod_set *set);
/* False for all nodes but the one that the pods name, if they name one. */
bool pod_set_may_be_on(const struct pod_set *set, const struct node_state *node);
/* The one that they name; NULL: there is no such Node. */
struct node_state *bound_node(const struct core *core, const struct pod_set *set);
/* Whether the node takes pods of the set at all: ready, and not cordoned where that matters. */
bool node_is_up_for(const struct pod_set *set, const struct node_state *node);
/* The taint is one that keeps off pods that don't tolerate it. */
bool taint_keeps_off(const struct pod_set *set, const struct taint *taint);
/* Breaks the set's shape if its pods wait for claims that nobody would allocate. */
void pod_set_check_bound(struct core *core, struct pod_set *set);
/* REASON_NONE, or what is wrong with the node that the pods name, whatever is free there. */
struct verdict bound_check_node(struct core *core, const struct pod_set *set);
/* The same for one of the flavors that are chosen, whose labels the admission puts into the pods'
 * nodeSelector. */
struct verdict bound_check_flavor(struct core *core, const struct pod_set *set,
                                  const struct resource_flavor *flavor);
