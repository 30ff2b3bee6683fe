/* advise_fill.c - the changes that would start a gang, as its Admission tells them: a sentence, and
 * the exact command. */
#include "internal.h"

#include "tallyman/base/limits.h"

static struct str annotate_command(const struct gang *gang, struct arena *arena, const char *keys,
                                   int64_t value, const char *unit)
{
    return arena_format(
        arena, "kubectl annotate --overwrite job " STR_FMT " -n " STR_FMT " %s=%lld%s",
        STR_ARG(gang->name), STR_ARG(gang->namespace_name), keys, (long long)value, unit);
}

static void fill_fewer(const struct gang *gang, const struct advice_item *item, struct arena *arena,
                       struct explanation_action *action)
{
    action->message = arena_format(arena, "would start now with %lld of %lld pods",
                                   (long long)item->count, (long long)gang->size.pods);
    action->command = annotate_command(
        gang, arena, "tallyman.dev/partial=true tallyman.dev/min-count", item->count, "");
}

static void fill_shorter(const struct gang *gang, const struct advice_item *item,
                         struct arena *arena, struct explanation_action *action)
{
    action->message =
        arena_format(arena, "would start now if it ran for %lldm at most", (long long)item->count);
    action->command = annotate_command(gang, arena, "tallyman.dev/max-runtime", item->count, "m");
}

static void fill_selector(const struct gang *gang, const struct advice_item *item,
                          struct arena *arena, struct explanation_action *action)
{
    action->message =
        item->kind == ADVICE_OTHER_FLAVOR
            ? arena_format(arena, "would start now on flavor " STR_FMT, STR_ARG(item->what))
            : arena_format(arena, "would start now without nodeSelector " STR_FMT,
                           STR_ARG(item->what));
    action->command =
        arena_format(arena,
                     "kubectl patch job " STR_FMT " -n " STR_FMT
                     " --type=merge -p '{\"spec\":{\"template\":{\"spec\":"
                     "{\"nodeSelector\":{" STR_FMT "}}}}}'",
                     STR_ARG(gang->name), STR_ARG(gang->namespace_name), STR_ARG(item->patch));
}

void advice_fill(const struct gang *gang, const struct advice *advice, struct arena *arena,
                 struct explanation_action_list *list)
{
    for (uint32_t i = 0; i < advice->count; i++) {
        const struct advice_item *item = &advice->items[i];
        struct explanation_action action = {.kind = STR("ChangeJob")};
        if (item->kind == ADVICE_FEWER_PODS) {
            fill_fewer(gang, item, arena, &action);
        } else if (item->kind == ADVICE_SHORTER_RUN) {
            fill_shorter(gang, item, arena, &action);
        } else if (item->kind == ADVICE_TOPOLOGY_PREFERRED || item->kind == ADVICE_NO_TOPOLOGY) {
            advice_fill_topology(gang, item, arena, &action);
        } else {
            fill_selector(gang, item, arena, &action);
        }
        if (action.command.len <= ADVICE_COMMAND_MAX_BYTES) {
            list->items[list->count++] = action;
        }
    }
}
