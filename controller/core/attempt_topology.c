/* attempt_topology.c - the level that a gang asks for, in the flavors that are chosen for it.
 *
 * Each flavor has levels of its own. A pod set's flavors, of several resource groups, all label the
 * same nodes, so one of them that has the level is enough; the sets have to agree on the levels
 * above, because they share the domain. */
#include "attempt.h"
#include "booking.h"
#include "check.h"

#include "tallyman/base/limits.h"

/* The number of levels down to that label; 0: it is none of them. */
static uint32_t depth_in(const struct flavor_topology *topology, struct str key)
{
    for (uint32_t l = 0; topology != NULL && l < topology->levels.count; l++) {
        if (str_eq(topology->levels.items[l], key)) {
            return l + 1;
        }
    }
    return 0;
}

static struct str levels_text(struct arena *arena, const struct set_attempt *set)
{
    struct text text;
    text_init(&text, arena, 300);
    for (uint32_t f = 0; f < set->flavor_count; f++) {
        const struct flavor_topology *topology = set->flavors[f]->spec.topology;
        for (uint32_t l = 0; topology != NULL && l < topology->levels.count; l++) {
            text_addf(&text, "%s" STR_FMT, text.len == 0 ? "its levels are " : ", ",
                      STR_ARG(topology->levels.items[l]));
        }
    }
    return text.len == 0 ? STR("it has none") : text_str(&text);
}

static const struct flavor_topology *topology_of(const struct set_attempt *set, struct str key)
{
    for (uint32_t f = 0; f < set->flavor_count; f++) {
        const struct flavor_topology *topology = set->flavors[f]->spec.topology;
        if (depth_in(topology, key) > 0) {
            return topology;
        }
    }
    return NULL;
}

const char *shape_topology_annotation(const struct shape *shape)
{
    return shape->is_topology_required ? ANNOTATION_REQUIRED_TOPOLOGY
                                       : ANNOTATION_PREFERRED_TOPOLOGY;
}

struct verdict attempt_check_level(struct attempt *attempt, const struct set_attempt *set)
{
    struct str key = attempt->shape->topology_key;
    if (!str_is_set(key) || set->flavor_count == 0 || topology_of(set, key) != NULL) {
        return verdict_say(REASON_NONE, 0, STR_NONE);
    }
    struct arena *arena = &attempt->core->scratch;
    return verdict_say(
        REASON_NO_MATCHING_FLAVOR, WAIT_CONFIG,
        arena_format(arena,
                     "annotation %s asks for " STR_FMT
                     ", which is no topology level of flavor " STR_FMT " (" STR_FMT ")",
                     shape_topology_annotation(attempt->shape), STR_ARG(key),
                     STR_ARG(set->flavors[0]->meta.name), STR_ARG(levels_text(arena, set))));
}

static bool is_same_down_to(const struct flavor_topology *a, const struct flavor_topology *b,
                            struct str key)
{
    uint32_t depth = depth_in(a, key);
    bool is_same = depth_in(b, key) == depth;
    for (uint32_t l = 0; l < depth && is_same; l++) {
        is_same = str_eq(a->levels.items[l], b->levels.items[l]);
    }
    return is_same;
}

static struct verdict find_topology(struct attempt *attempt)
{
    struct arena *arena = &attempt->core->scratch;
    struct str key = attempt->shape->topology_key;
    attempt->topology = (struct topology_ask){.level = 0};
    if (!str_is_set(key)) {
        return verdict_say(REASON_NONE, 0, STR_NONE);
    }
    if (!shape_is_physical(attempt->shape)) {
        bool is_required = attempt->shape->is_topology_required;
        return verdict_say(
            is_required ? REASON_TOPOLOGY_UNSATISFIED : REASON_NONE, WAIT_CONFIG,
            arena_format(arena,
                         "queue " STR_FMT " admits by quota alone (%s), so nobody can tell "
                         "whether one domain will hold all its pods; it would start "
                         "with annotation %s, or without one",
                         STR_ARG(attempt->shape->queue->name),
                         check_is_asked(attempt->shape) ? "and has an autoscaler make the room"
                                                        : "fit: Quota",
                         ANNOTATION_PREFERRED_TOPOLOGY));
    }
    const struct flavor_topology *found = NULL;
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        const struct flavor_topology *own = topology_of(&attempt->sets[s], key);
        if (own == NULL) {
            continue; /* it draws on no flavor, and goes where the others go */
        }
        if (found != NULL && !is_same_down_to(found, own, key)) {
            attempt->short_set = s;
            return verdict_say(REASON_NO_MATCHING_FLAVOR, WAIT_CONFIG,
                               arena_format(arena,
                                            "its pod sets' flavors have different topology levels "
                                            "above " STR_FMT ", so no domain can hold all pods",
                                            STR_ARG(key)));
        }
        found = found == NULL ? own : found;
    }
    if (found == NULL) {
        return verdict_say(REASON_NO_MATCHING_FLAVOR, WAIT_CONFIG,
                           arena_format(arena,
                                        "annotation %s asks for " STR_FMT
                                        ", and its pods draw on no flavor that could have it as a "
                                        "topology level",
                                        shape_topology_annotation(attempt->shape), STR_ARG(key)));
    }
    uint32_t level = 0;
    while (!str_eq(found->levels.items[level], key)) {
        level++;
    }
    attempt->topology = (struct topology_ask){.levels = found->levels,
                                              .level = level,
                                              .is_required = attempt->shape->is_topology_required};
    return verdict_say(REASON_NONE, 0, STR_NONE);
}

struct verdict attempt_check_choice(struct attempt *attempt)
{
    for (uint32_t s = 0; s < attempt->set_count; s++) {
        attempt->short_set = s;
        struct verdict verdict = attempt_check_flavors(attempt, &attempt->sets[s]);
        if (verdict.reason != REASON_NONE) {
            attempt_name_set(attempt, s, &verdict);
            return verdict;
        }
    }
    return find_topology(attempt);
}
