/* fit_topology.c - one domain for all pods of a gang.
 *
 * Of the domains of a level that have places enough by count the smallest is tried first (by the
 * places that it would have if it were empty), of equally large ones the one that has the fewest
 * places left over, then by path. A gang that may start with fewer pods than it asks for goes where
 * most of them fit, if no domain holds all. What is preferred is sought level by level upwards; it
 * never costs a pod or a start. What is found by count is then placed, so nothing is taken for
 * granted. */
#include "topology.h"

#include "extended.h"
#include "fit_plan.h"

#include "tallyman/base/limits.h"

void demand_set_domain(struct fit_wants *wants, const struct topology_domain *domain)
{
    wants->domain = domain;
    for (uint32_t w = 0; w < wants->count; w++) {
        wants->items[w].demand.domain = domain;
    }
}

/* -- the search ------------------------------------------------------------------------------- */

/* The order in which domains are tried. */
struct rank {
    int64_t missing; /* pods that don't fit in */
    int64_t empty;   /* places if nothing were there */
    int64_t free;
    uint32_t index;
};

struct search {
    struct core *core;
    const struct crowd_list *promised; /* wherever the gang goes */
    struct fit_wants *wants;
    const struct topology_tree *tree;
    uint32_t level;
    struct topology_room **rooms; /* by set */
    struct crowd_list placed;     /* of the promised those that go into the plan */
    struct crowd_list counted;    /* the others; see count_confined() */
    int64_t *taken;               /* by domain of the level; places that those take */
    struct rank last;
    bool has_last;
    bool wants_all; /* all pods, not min-count alone */
};

static int compare_ranks(const struct rank *a, const struct rank *b)
{
    if (a->missing != b->missing) {
        return a->missing < b->missing ? -1 : 1;
    }
    if (a->empty != b->empty) {
        return a->empty < b->empty ? -1 : 1;
    }
    if (a->free != b->free) {
        return a->free < b->free ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index ? 1 : 0;
}

/* False: the domain has too few places for one of the sets. */
static bool rank_of(const struct search *search, uint32_t index, struct rank *ret_rank)
{
    struct rank rank = {.index = index};
    for (uint32_t w = 0; w < search->wants->count; w++) {
        const struct fit_want *want = &search->wants->items[w];
        int64_t free = search->rooms[w]->sums[search->level].free[index] - search->taken[index];
        if (free < (search->wants_all ? want->wanted : want->min_count)) {
            return false;
        }
        rank.missing += free < want->wanted ? want->wanted - free : 0;
        rank.free += free;
        rank.empty += search->rooms[w]->sums[search->level].empty[index];
    }
    *ret_rank = rank;
    return true;
}

/* The next behind the last; false: there are no more. */
static bool next_domain(struct search *search)
{
    const struct topology_level *level = &search->tree->levels[search->level];
    struct rank best = {.index = TOPOLOGY_NONE};
    for (uint32_t d = 0; d < level->count; d++) {
        struct rank rank;
        if (!rank_of(search, d, &rank) ||
            (search->has_last && compare_ranks(&rank, &search->last) <= 0)) {
            continue;
        }
        if (best.index == TOPOLOGY_NONE || compare_ranks(&rank, &best) < 0) {
            best = rank;
        }
    }
    search->last = best;
    search->has_last = true;
    return best.index != TOPOLOGY_NONE;
}

/* Pods that are like the gang's, on their way to a domain that lies within one of those that are
 * tried, take as many places there as they are: which of its nodes they choose makes no difference.
 * All others are placed. */
static bool is_countable(const struct search *search, const struct crowd *crowd)
{
    const struct topology_domain *domain = crowd->demand.domain;
    struct pod_demand alike = search->wants->items[0].demand;
    alike.domain = domain;
    return search->wants->count == 1 && crowd->limits == NULL && domain != NULL &&
           domain->path.count > search->level && topology_is_of(search->tree, domain) &&
           crowd->demand.node_selector == &crowd->demand.set->node_selector &&
           fit_is_alike(&crowd->demand, &alike);
}

static void split_promised(struct search *search)
{
    struct arena *arena = &search->core->scratch;
    uint32_t count = search->promised->count;
    search->placed = (struct crowd_list){.items = ARENA_ARRAY(arena, struct crowd, count + 1)};
    search->counted = (struct crowd_list){.items = ARENA_ARRAY(arena, struct crowd, count + 1)};
    for (uint32_t i = 0; i < count; i++) {
        const struct crowd *crowd = &search->promised->items[i];
        struct crowd_list *list = is_countable(search, crowd) ? &search->counted : &search->placed;
        list->items[list->count++] = *crowd;
    }
}

/* No more than there are: pods without a place take none. */
static void count_confined(struct search *search)
{
    struct core *core = search->core;
    const struct topology_level *level = &search->tree->levels[search->level];
    search->taken = ARENA_ARRAY(&core->scratch, int64_t, level->count + 1);
    for (uint32_t i = 0; i < search->counted.count; i++) {
        const struct crowd *crowd = &search->counted.items[i];
        struct node_indexes nodes = topology_nodes(core, crowd->demand.domain);
        int64_t there = 0;
        for (uint32_t n = 0; n < nodes.count && there < crowd->pods; n++) {
            there += search->rooms[0]->free[nodes.items[n]];
        }
        if (nodes.count > 0) {
            search->taken[level->of[nodes.items[0]]] += there < crowd->pods ? there : crowd->pods;
        }
    }
}

/* What there is room for beside the promises. */
static void measure(struct search *search)
{
    struct core *core = search->core;
    demand_set_domain(search->wants, NULL);
    fit_plan_promised(core, &search->placed);
    for (uint32_t w = 0; w < search->wants->count; w++) {
        search->rooms[w] = topology_room_of(core, search->tree, &search->wants->items[w].demand);
    }
    count_confined(search);
}

static bool is_whole(const struct fit_wants *wants)
{
    for (uint32_t w = 0; w < wants->count; w++) {
        if (wants->items[w].placed < wants->items[w].wanted) {
            return false;
        }
    }
    return true;
}

/* What stands in the way of one domain is the last word about it only if it is the promises, which
 * go away by themselves. */
static bool search_level(struct search *search, const struct crowd_list *all,
                         struct fit_result *result)
{
    struct core *core = search->core;
    bool is_promised = false;
    bool is_own_way = false;
    uint32_t unsafe = 0;
    search->has_last = false;
    split_promised(search);
    for (uint32_t tried = 0; tried < TOPOLOGY_TRIALS_MAX && unsafe < TOPOLOGY_UNSAFE_MAX; tried++) {
        measure(search);
        if (!next_domain(search)) {
            break;
        }
        struct string_map path =
            topology_path(core, search->tree, search->level, search->last.index);
        demand_set_domain(search->wants, topology_domain_of(core, &path));
        struct crowd_list near = fit_near(core, all, search->wants);
        result->is_promised = result->is_own_way = false;
        if (fit_anywhere(core, &near, search->wants, result) &&
            (!search->wants_all || is_whole(search->wants))) {
            return true;
        }
        is_promised = is_promised || result->is_promised;
        is_own_way = is_own_way || result->is_own_way;
        unsafe += result->is_promised || result->is_own_way ? 1 : 0;
    }
    result->is_promised = is_promised;
    result->is_own_way = is_own_way;
    return false;
}

static bool may_be_fewer(const struct fit_wants *wants)
{
    for (uint32_t w = 0; w < wants->count; w++) {
        if (wants->items[w].min_count < wants->items[w].wanted) {
            return true;
        }
    }
    return false;
}

static struct search search_of(struct core *core, const struct crowd_list *promised,
                               struct fit_wants *wants)
{
    struct search search = {.core = core, .promised = promised, .wants = wants};
    search.tree = topology_tree_of(core, &wants->topology.levels);
    search.rooms = ARENA_ARRAY(&core->scratch, struct topology_room *, wants->count);
    return search;
}

bool fit_in_a_domain(struct core *core, const struct crowd_list *all,
                     const struct crowd_list *promised, struct fit_wants *wants,
                     struct fit_result *result)
{
    struct topology_tree *held = topology_hold(core, &wants->topology.levels);
    struct search search = search_of(core, promised, wants);
    search.wants_all = true;
    bool is_found = false;
    for (search.level = wants->topology.level;; search.level--) {
        is_found = search_level(&search, all, result);
        if (is_found || wants->topology.is_required || search.level == 0) {
            break;
        }
    }
    if (!is_found && wants->topology.is_required && may_be_fewer(wants)) {
        search.wants_all = false;
        is_found = search_level(&search, all, result);
    }
    if (!is_found) {
        demand_set_domain(wants, NULL);
        result->is_promised = result->is_promised && wants->topology.is_required;
        result->is_own_way = result->is_own_way && wants->topology.is_required;
    }
    topology_give_back(held);
    return is_found;
}

/* -- why not ---------------------------------------------------------------------------------- */

/* The places of the set that has the fewest for what it needs, in shares of that: so one of several
 * sets speaks for all. */
static uint32_t tightest_set(const struct search *search, uint32_t index)
{
    uint32_t tightest = 0;
    for (uint32_t w = 1; w < search->wants->count; w++) {
        int64_t mine = search->rooms[w]->sums[search->level].free[index];
        int64_t other = search->rooms[tightest]->sums[search->level].free[index];
        i128 mine_share = (i128)mine * search->wants->items[tightest].min_count;
        if (mine_share < (i128)other * search->wants->items[w].min_count) {
            tightest = w;
        }
    }
    return tightest;
}

static void count_domains(const struct search *search, struct topology_shortage *shortage)
{
    shortage->total = search->tree->levels[search->level].count;
    for (uint32_t d = 0; d < shortage->total; d++) {
        bool is_unusable = true;
        bool is_too_small = false;
        for (uint32_t w = 0; w < search->wants->count; w++) {
            int64_t empty = search->rooms[w]->sums[search->level].empty[d];
            is_unusable = is_unusable && empty == 0;
            is_too_small = is_too_small || empty < search->wants->items[w].min_count;
        }
        shortage->unusable += is_unusable ? 1 : 0;
        shortage->too_small += is_too_small && !is_unusable ? 1 : 0;
        shortage->full += is_too_small ? 0 : 1;
    }
    shortage->is_never = shortage->full == 0;
}

/* By places that are free for its tightest set; where nothing could ever fit, by those that would
 * be free were it empty. */
static uint32_t find_emptiest(const struct search *search, bool is_never)
{
    uint32_t emptiest = TOPOLOGY_NONE;
    i128 most = -1;
    for (uint32_t d = 0; d < search->tree->levels[search->level].count; d++) {
        uint32_t w = tightest_set(search, d);
        const struct topology_room *room = search->rooms[w];
        int64_t places =
            is_never ? room->sums[search->level].empty[d] : room->sums[search->level].free[d];
        if (places > most) {
            most = places;
            emptiest = d;
        }
    }
    return emptiest;
}

/* Devices first, then what is plain. */
static struct str resource_of(const struct pod_set *set, uint32_t item)
{
    return item < set->device_count ? demand_asked(&set->devices[item])
                                    : set->per_pod.items[item - set->device_count].resource;
}

static i128 per_pod_of(const struct pod_set *set, uint32_t item)
{
    return item < set->device_count ? set->devices[item].count
                                    : set->per_pod.items[item - set->device_count].value;
}

static i128 amount_on(struct core *core, const struct pod_set *set, uint32_t item,
                      struct node_state *node, bool is_never)
{
    bool is_plugin = item < set->device_count && node_offers(node, set->devices[item].resource);
    if (item < set->device_count && !is_plugin) {
        struct device_profile *profile = set->devices[item].profile;
        int64_t devices = is_never ? node_count_devices(core, profile, node)
                                   : node_free_devices(core, profile, node);
        return devices > 0 ? devices : 0;
    }
    struct str resource = is_plugin ? set->devices[item].resource : resource_of(set, item);
    return is_never ? vector_get(&node->capacity, resource) : node_room(core, node, resource);
}

/* The first of devices and amounts of which the domain has less than min-count pods need. */
static void find_resource(const struct search *search, uint32_t index, const struct fit_want *want,
                          const struct topology_room *room, struct topology_shortage *shortage)
{
    const struct topology_level *level = &search->tree->levels[search->level];
    const struct pod_set *set = want->demand.set;
    for (uint32_t item = 0; item < set->device_count + set->per_pod.count; item++) {
        i128 free = 0;
        for (uint32_t i = level->first[index]; i < level->end[index]; i++) {
            uint32_t at = search->tree->order[i];
            free += room->is_out[at] ? 0
                                     : amount_on(search->core, set, item,
                                                 search->core->node_index[at], shortage->is_never);
        }
        i128 asked = per_pod_of(set, item) * want->min_count;
        if (free < asked) {
            shortage->resource = resource_of(set, item);
            shortage->asked = i128_clamp(asked);
            shortage->free = i128_clamp(free);
            return;
        }
    }
    const int64_t *places =
        shortage->is_never ? room->sums[search->level].empty : room->sums[search->level].free;
    shortage->asked = want->min_count;
    shortage->free = places[index];
}

/* Its own label's value, with those above it where there is another of the same. */
static struct str domain_name(const struct search *search, uint32_t index)
{
    struct core *core = search->core;
    struct string_map path = topology_path(core, search->tree, search->level, index);
    struct str name = path.items[search->level].value;
    bool is_ambiguous = str_is_empty(name);
    for (uint32_t d = 0; d < search->tree->levels[search->level].count && !is_ambiguous; d++) {
        struct string_map other = topology_path(core, search->tree, search->level, d);
        is_ambiguous = d != index && str_eq(other.items[search->level].value, name);
    }
    if (!is_ambiguous) {
        return name;
    }
    struct text text;
    text_init(&text, &core->scratch, 300);
    for (uint32_t l = 0; l <= search->level; l++) {
        text_addf(&text, "%s" STR_FMT, l == 0 ? "" : "/", STR_ARG(path.items[l].value));
    }
    return text_str(&text);
}

void fit_explain_topology(struct core *core, const struct fit_wants *wants,
                          struct fit_result *result)
{
    struct topology_shortage *shortage = &result->topology;
    struct fit_wants own = *wants;
    struct crowd_list nobody = {.items = NULL};
    struct search search = search_of(core, &nobody, &own);
    search.level = wants->topology.level;
    for (uint32_t w = 0; w < wants->count; w++) {
        search.rooms[w] = topology_room_of(core, search.tree, &wants->items[w].demand);
    }
    shortage->level = wants->topology.levels.items[search.level];
    count_domains(&search, shortage);
    shortage->is_never = shortage->is_never && !fit_could_ever(core, wants); /* what is away */
    uint32_t emptiest = find_emptiest(&search, shortage->is_never);
    if (emptiest == TOPOLOGY_NONE) {
        return;
    }
    uint32_t w = tightest_set(&search, emptiest);
    shortage->emptiest = domain_name(&search, emptiest);
    find_resource(&search, emptiest, &wants->items[w], search.rooms[w], shortage);
}
