/* incident.h - gangs that have to stop because a node or a device of theirs isn't healthy any more.
 * Private to the core. */
#pragma once

#include "internal.h"

/* What the pod's status says of its devices. */
void pod_read_reports(struct core *core, struct pod_state *pod, const struct pod *object);
void pod_drop_reports(struct core *core, struct pod_state *pod);
/* Whether its condition says that kube evicts it for a taint. */
void pod_read_eviction(struct core *core, struct pod_state *pod, const struct pod *object);
void incidents_start(struct core *core); /* all has been listed */
/* Whether gangs there may have to stop: by a taint, or by a flavor's rule. */
void node_read_harm(struct core *core, struct node_state *node);
/* Suspends the admitted gang, whole, if a node or device of it isn't healthy, its queue or
 * namespace is drained, or its check is revoked; false: nothing stops it. */
bool incident_or_order_stops(struct core *core, struct gang *gang);
/* What evicts the pods of an allocated claim, in the scratch arena; absent: nothing does. */
struct str claim_harm(struct core *core, struct str claim_key);
/* Looks at those that hold something, after something has become harmful. */
void incidents_tick(struct core *core);
