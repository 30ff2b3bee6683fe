/* limit_range.h - whether the API server would let the pods of a template in, by the LimitRanges of
 * their namespace. Inside the api layer only. Source: plugin/pkg/admission/limitranger. */
#pragma once

#include "pod_count.h"

/* A container or the whole pod, with what it asks for after all defaults. */
struct limited {
    bool is_pod;
    const char *owner; /* "container", "init container"; of a pod: unused */
    struct str name;
    const struct exact_list *requests;
    const struct exact_list *limits;
};

/* RC_INVALID sticks where it breaks one; the sentence names the LimitRange, what it allows and what
 * is asked. */
void limits_check(struct counting *counting, const struct request_context *context,
                  const struct limited *limited);
