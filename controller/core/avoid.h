/* avoid.h - nodes that a flavor calls unhealthy, or on which a pod would be stuck, and
 * kube-scheduler knows nothing against them: an admission keeps the gang's pods off. Private to the
 * core. */
#pragma once

#include "internal.h"

/* What the required node affinity of the template becomes. */
struct avoidance {
    struct affinity *affinity; /* in the scratch arena, its required terms alone; NULL: there is
                                  nothing to avoid */
    const char *added; /* static; what the template hadn't: "affinity", "nodeAffinity", "required",
                          or "terms": only they are others */
};

struct avoidance avoid_find(struct core *core, const struct pod_set *set,
                            const struct set_choice *choice);
/* The hostnames that the admission of a set, just decided, keeps its pods off; in the scratch
 * arena, texts borrowed. */
struct str_list avoid_hosts(struct core *core, const struct gang *gang,
                            const struct reserved_set *reserved);
/* Into the PATCH that admits, and into the record what is to be put back. */
void avoid_patch(struct core *core, const struct avoidance *avoidance,
                 struct template_patch *patch);
void avoid_record(const struct pod_set *set, const struct avoidance *avoidance,
                  struct record_restore *restore);
/* Into the PATCH that puts back, if the record says that there is something. */
void avoid_restore(struct core *core, const struct record_restore *restore,
                   struct template_patch *patch);
/* The affinity as the user wrote it, of a template that an admission may have changed; in the
 * scratch arena, or the spec's own. */
struct affinity *avoid_plain(struct core *core, const struct pod_spec *spec,
                             const struct record_restore *restore);
