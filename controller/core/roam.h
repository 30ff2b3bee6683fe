/* roam.h - devices that no node owns, and pods that may be put where others see them too. Private
 * to the core. */
#pragma once

#include "fit.h"

/* How such pods can be counted, with what is in the plan. */
struct roaming {
    bool sees_one_node; /* there is at most one node that they may use */
    bool is_even;       /* one place is as good as another: filling node after node counts them */
    bool is_lone;       /* it is one pod, and nobody else's devices are in the plan: it finds any */
    bool is_counted; /* `pods` holds whatever kube-scheduler does; else only a node's own count */
    bool may_be_one; /* if there is no saying for more, one may be sought as if it were alone */
    int64_t pods;    /* at most as many as are wanted */
};

/* `has_limits`: only so many of them may be put on each node. */
struct roaming roaming_judge(struct core *core, const struct pod_demand *demand, int64_t want,
                             bool has_limits);
/* Whether which pods find devices depends on where the others are put. */
bool demand_roams_unevenly(struct core *core, const struct pod_demand *demand);
