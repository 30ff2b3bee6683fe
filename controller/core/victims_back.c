/* victims_back.c - who is stopped for a gang that borrows (borrowWithinCohort) and could stop it in
 * its turn: see victims.h. */
#include "victims.h"

/* Whether it would take its own quota back from the gang, which borrows, as soon as that is in: the
 * two would stop each other in turn. The victims are out. */
static bool could_reclaim(const struct search *search, const struct gang *victim, uint32_t level)
{
    const struct reservation *held = victim->reservation;
    const struct quota_node *leaf = &held->queue->node;
    const struct quota_node *other = &search->gang->queue->node;
    const struct quota_node *top = victims_common_node(leaf, other);
    if (leaf == other || level <= victims_branch_below(other, top)->height ||
        !victims_may_reclaim(victim, search->gang)) {
        return false;
    }
    uint32_t own = victims_branch_below(leaf, top)->height;
    for (uint32_t s = 0; s < held->set_count; s++) {
        for (uint32_t i = 0; i < held->sets[s].per_pod.count; i++) {
            const struct charge *charge = &held->sets[s].per_pod.items[i];
            i128 asked = reservation_amount(held, charge->flavor, charge->resource);
            if (quota_borrow_level(leaf, charge->flavor, charge->resource, i128_clamp(asked)) >
                own) {
                return false;
            }
        }
    }
    return true;
}

bool victims_leave_out_reclaiming(struct core *core, const struct search *search,
                                  const struct victims *victims, uint32_t level,
                                  struct victims *candidates)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < victims->count; i++) {
        whatif_take_out(core, victims->items[i]);
    }
    for (uint32_t i = 0; i < candidates->count; i++) {
        struct gang *candidate = candidates->items[i];
        bool is_victim = false;
        for (uint32_t k = 0; k < victims->count; k++) {
            is_victim = is_victim || victims->items[k] == candidate;
        }
        if (!is_victim || !could_reclaim(search, candidate, level)) {
            candidates->items[count++] = candidate;
        }
    }
    for (uint32_t i = 0; i < victims->count; i++) {
        whatif_put_back(core, victims->items[i]);
    }
    bool has_any = count < candidates->count;
    candidates->count = count;
    return has_any;
}
