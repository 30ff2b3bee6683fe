/* affinity.c - a merge PATCH of a pod template's affinity, for those who play the API server. */
#include "tallyman/api/pod.h"

struct affinity *affinity_merge(struct arena *arena, const struct affinity *before,
                                const struct affinity *sets, struct str drops)
{
    if (str_eq_c(drops, "affinity")) {
        return NULL;
    }
    struct affinity *after = ARENA_NEW(arena, struct affinity);
    after->node_affinity = ARENA_NEW(arena, struct node_affinity);
    if (before != NULL) {
        struct node_affinity *fresh = after->node_affinity;
        *after = *before;
        after->node_affinity = fresh;
        if (before->node_affinity != NULL) {
            *fresh = *before->node_affinity;
        }
    }
    if (sets != NULL) {
        after->node_affinity->required = sets->node_affinity->required;
    } else if (str_eq_c(drops, "nodeAffinity")) {
        after->node_affinity = NULL;
    } else if (str_eq_c(drops, "required")) {
        after->node_affinity->required = NULL;
    }
    return after;
}
