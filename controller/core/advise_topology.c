/* advise_topology.c - what is said of a gang that would start with another topology. */
#include "internal.h"

void advice_fill_topology(const struct gang *gang, const struct advice_item *item,
                          struct arena *arena, struct explanation_action *action)
{
    bool is_required = gang->shape->is_topology_required;
    const char *now = is_required ? ANNOTATION_REQUIRED_TOPOLOGY : ANNOTATION_PREFERRED_TOPOLOGY;
    struct str job = arena_format(arena, STR_FMT " -n " STR_FMT, STR_ARG(gang->name),
                                  STR_ARG(gang->namespace_name));
    if (item->kind == ADVICE_TOPOLOGY_PREFERRED) {
        action->message = arena_format(
            arena, "would start now if topology " STR_FMT " were preferred, not required",
            STR_ARG(item->what));
        action->command = arena_format(arena,
                                       "kubectl annotate --overwrite job " STR_FMT
                                       " %s- " ANNOTATION_PREFERRED_TOPOLOGY "=" STR_FMT,
                                       STR_ARG(job), now, STR_ARG(item->what));
        return;
    }
    action->message =
        arena_format(arena, "would start now without topology " STR_FMT, STR_ARG(item->what));
    action->command =
        arena_format(arena, "kubectl annotate --overwrite job " STR_FMT " %s-", STR_ARG(job), now);
}
