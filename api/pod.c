/* pod.c - what a Pod's status says. */
#include "tallyman/api/pod.h"

bool pod_is_terminal(const struct pod *pod)
{
    return str_eq_c(pod->status.phase, "Succeeded") || str_eq_c(pod->status.phase, "Failed");
}

bool pod_is_ready(const struct pod *pod)
{
    return condition_is_true(&pod->status.conditions, "Ready");
}
