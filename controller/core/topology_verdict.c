/* topology_verdict.c - the sentence for a gang that no domain can hold. */
#include "topology.h"

/* "rack" of topology.kubernetes.io/rack. */
static struct str short_level(struct str key)
{
    size_t slash = str_find_char(key, '/');
    return slash < key.len ? str_skip(key, slash + 1) : key;
}

static struct str asked_text(struct arena *arena, const struct topology_shortage *shortage)
{
    if (str_is_set(shortage->resource)) {
        return arena_format(
            arena, STR_FMT " " STR_FMT,
            STR_ARG(resource_amount_format(arena, shortage->resource, shortage->asked)),
            STR_ARG(shortage->resource));
    }
    return arena_format(arena, "places for %lld pod%s", (long long)shortage->asked,
                        shortage->asked == 1 ? "" : "s");
}

static struct str free_text(struct arena *arena, const struct topology_shortage *shortage)
{
    if (str_is_set(shortage->resource)) {
        return resource_amount_format(arena, shortage->resource, shortage->free);
    }
    return arena_format(arena, "places for %lld", (long long)shortage->free);
}

struct verdict topology_verdict(struct core *core, const struct topology_shortage *shortage)
{
    struct arena *arena = &core->scratch;
    struct str level = short_level(shortage->level);
    struct verdict verdict = {.reason = shortage->is_never ? REASON_NEVER_FITS
                                                           : REASON_TOPOLOGY_UNSATISFIED,
                              .waits_for = WAIT_CLUSTER};
    if (shortage->total == shortage->unusable) {
        verdict.message =
            arena_format(arena,
                         "needs all its pods in one " STR_FMT ", and no node that it may use is in "
                         "any: their labels " STR_FMT " and those of the levels above make them",
                         STR_ARG(level), STR_ARG(shortage->level));
        return verdict;
    }
    verdict.message = arena_format(
        arena, "needs " STR_FMT " in one " STR_FMT "; the %s, " STR_FMT ", has " STR_FMT "%s",
        STR_ARG(asked_text(arena, shortage)), STR_ARG(level),
        shortage->is_never ? "largest" : "emptiest", STR_ARG(shortage->emptiest),
        STR_ARG(free_text(arena, shortage)),
        shortage->is_never ? " even when it is empty" : " free");
    if (str_is_set(shortage->resource)) {
        verdict.resource = shortage->resource;
        verdict.asked = shortage->asked;
        verdict.free = shortage->free;
    }
    return verdict;
}

struct topology_note fit_topology_note(const struct fit_result *fit)
{
    const struct topology_shortage *shortage = &fit->topology;
    struct topology_note note = {.level = STR_NONE};
    if (shortage->is_short || shortage->is_never) {
        note = (struct topology_note){.level = shortage->level,
                                      .total = shortage->total,
                                      .unusable = shortage->unusable,
                                      .too_small = shortage->too_small,
                                      .full = shortage->full};
    }
    return note;
}
