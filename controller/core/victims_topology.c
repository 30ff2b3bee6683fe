/* victims_topology.c - who is stopped for a gang all of whose pods must be in one domain.
 *
 * Room that is freed in several domains is of no use to it. So each domain that would hold the
 * gang, were everybody gone who may be stopped, is searched by itself, among those that have pods
 * there (and, where quota is short, the others). Of the sets that are found the one is taken that
 * stops nobody of the own queue, whose highest priority is the lowest, with the fewest gangs, that
 * lose the least work; then the first domain by its path (docs/decisions/036). */
#include "attempt.h"
#include "topology.h"
#include "victims.h"

#include "tallyman/base/limits.h"

#include <stdlib.h>

/* A domain, and how many more places it would need. */
struct place {
    int64_t missing;
    uint32_t index;
};

struct by_domain {
    struct core *core;
    struct search search;
    const struct victims *candidates;
    struct fit_wants wants;
    struct topology_tree *tree;
    uint32_t level;
    bool takes_all; /* quota is short: whoever gives some back helps */
    struct victims best;
    struct evaluation evaluation;
};

/* Places for the set by domain, by what is free but for pods on their way; copied. */
static int64_t *free_places(struct by_domain *by, uint32_t w)
{
    struct core *core = by->core;
    uint32_t count = by->tree->levels[by->level].count;
    fit_plan_new(core);
    const struct topology_room *room = topology_room_of(core, by->tree, &by->wants.items[w].demand);
    int64_t *places = ARENA_ARRAY(&core->scratch, int64_t, count + 1);
    for (uint32_t d = 0; d < count; d++) {
        places[d] = room->sums[by->level].free[d];
    }
    return places;
}

static int compare_places(const void *a, const void *b)
{
    const struct place *one = a;
    const struct place *other = b;
    if (one->missing != other->missing) {
        return one->missing < other->missing ? -1 : 1;
    }
    return one->index < other->index ? -1 : one->index > other->index ? 1 : 0;
}

/* Those that could hold it, the fullest last. */
static struct place *find_domains(struct by_domain *by, uint32_t *ret_count)
{
    struct core *core = by->core;
    uint32_t count = by->tree->levels[by->level].count;
    struct place *places = ARENA_ARRAY(&core->scratch, struct place, count + 1);
    bool *is_out = ARENA_ARRAY(&core->scratch, bool, count + 1);
    for (uint32_t w = 0; w < by->wants.count; w++) {
        int64_t wanted = by->wants.items[w].min_count;
        const int64_t *now = free_places(by, w);
        for (uint32_t i = 0; i < by->candidates->count; i++) {
            whatif_take_out(core, by->candidates->items[i]);
        }
        const int64_t *then = free_places(by, w);
        for (uint32_t i = 0; i < by->candidates->count; i++) {
            whatif_put_back(core, by->candidates->items[i]);
        }
        for (uint32_t d = 0; d < count; d++) {
            is_out[d] = is_out[d] || then[d] < wanted;
            places[d].index = d;
            places[d].missing += now[d] < wanted ? wanted - now[d] : 0;
        }
    }
    *ret_count = 0;
    for (uint32_t d = 0; d < count; d++) {
        if (!is_out[d]) {
            places[(*ret_count)++] = places[d];
        }
    }
    qsort(places, *ret_count, sizeof(*places), compare_places);
    return places;
}

/* A gang whose pods aren't all bound may have some anywhere. */
static bool has_pods_in(const struct by_domain *by, const struct gang *gang, uint32_t domain)
{
    if (gang_promised_pods(gang) > 0) {
        return true;
    }
    for (const struct pod_state *pod = gang_first_pod(gang); pod != NULL;
         pod = pod->next_in_group) {
        bool is_bound = pod->node != NULL && !pod->is_terminal;
        if (is_bound && by->tree->levels[by->level].of[pod->node->index] == domain) {
            return true;
        }
    }
    return false;
}

static struct victims candidates_in(struct by_domain *by, uint32_t domain)
{
    struct victims found = {.count = 0};
    for (uint32_t i = 0; i < by->candidates->count; i++) {
        struct gang *gang = by->candidates->items[i];
        if (by->takes_all || has_pods_in(by, gang, domain)) {
            victims_append(by->core, &found, gang);
        }
    }
    return found;
}

static bool is_quota_short(const struct search *search)
{
    for (uint32_t i = 0; i < search->ask->count; i++) {
        const struct probe_item *item = &search->ask->items[i];
        if (item->asked >
            quota_available(&search->gang->queue->node, item->flavor, item->resource)) {
            return true;
        }
    }
    return false;
}

/* What a set costs, the weightiest first. */
struct price {
    bool has_own;
    int64_t priority;
    uint32_t count;
    i128 lost;
};

static struct price price_of(const struct by_domain *by, const struct victims *victims)
{
    struct price price = {.priority = INT64_MIN, .count = victims->count};
    for (uint32_t i = 0; i < victims->count; i++) {
        const struct gang *victim = victims->items[i];
        price.has_own = price.has_own || victim->reservation->queue == by->search.gang->queue;
        price.priority = victim->priority > price.priority ? victim->priority : price.priority;
        i128 lost = victims_lost_work(by->core, victim);
        price.lost += lost > 0 ? lost : 0;
    }
    return price;
}

static bool is_cheaper(const struct price *a, const struct price *b)
{
    if (a->has_own != b->has_own) {
        return b->has_own;
    }
    if (a->priority != b->priority) {
        return a->priority < b->priority;
    }
    if (a->count != b->count) {
        return a->count < b->count;
    }
    return a->lost < b->lost;
}

/* In the order of the paths, so that of two alike the first is kept. */
static int compare_index(const void *a, const void *b)
{
    uint32_t one = ((const struct place *)a)->index;
    uint32_t other = ((const struct place *)b)->index;
    return one < other ? -1 : one > other ? 1 : 0;
}

static void search_domain(struct by_domain *by, uint32_t domain)
{
    struct core *core = by->core;
    struct victims victims = {.count = 0};
    struct evaluation evaluation;
    struct victims there = candidates_in(by, domain);
    struct string_map path = topology_path(core, by->tree, by->level, domain);
    core->only_domain = topology_domain_of(core, &path);
    bool is_found =
        there.count > 0 && victims_search_among(core, &by->search, &there, &victims, &evaluation);
    core->only_domain = NULL;
    if (!is_found) {
        return;
    }
    struct price price = price_of(by, &victims);
    struct price best = price_of(by, &by->best);
    if (by->best.count == 0 || is_cheaper(&price, &best)) {
        by->best = victims;
        by->evaluation = evaluation;
    }
}

bool victims_search_domains(struct core *core, const struct search *search,
                            const struct victims *candidates, struct victims *ret_victims,
                            struct evaluation *ret_evaluation)
{
    struct by_domain by = {.core = core, .search = *search, .candidates = candidates};
    if (!attempt_wants_of(core, search->gang->shape, search->combination, &by.wants)) {
        return false;
    }
    nodes_index(core);
    struct topology_tree *held = topology_hold(core, &by.wants.topology.levels);
    by.tree = held;
    by.level = by.wants.topology.level;
    by.takes_all = is_quota_short(search);
    uint32_t count = 0;
    struct place *places = find_domains(&by, &count);
    bool is_cut = count > VICTIM_DOMAINS_MAX;
    count = is_cut ? VICTIM_DOMAINS_MAX : count;
    qsort(places, count, sizeof(*places), compare_index);
    for (uint32_t i = 0; i < count; i++) {
        search_domain(&by, places[i].index);
    }
    topology_give_back(held);
    if (by.best.count == 0) {
        return is_cut &&
               victims_search_among(core, search, candidates, ret_victims, ret_evaluation);
    }
    *ret_victims = by.best;
    *ret_evaluation = by.evaluation;
    return true;
}
