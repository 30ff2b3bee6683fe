/* fit_asked.c - for how many pods a node's devices are enough, pod after pod as kube-scheduler
 * takes them.
 *
 * Pods of one template on one node are given the same devices in the same order whatever happens on
 * other nodes, so taking them one by one tells exactly how many there can be. Where the order of
 * slices matters and isn't known, the worst that any order can lead to counts. That holds while
 * nobody else is after these devices; what to do beside others is said in fit_robust.c. */
#include "allocate.h"

#include "internal.h"

#include "tallyman/base/limits.h"

/* -- the worst over unknown orders ------------------------------------------------------------- */

/* The candidates of one pod, ascending. */
struct picked {
    uint32_t *items;
    uint32_t count;
};

static struct picked read_picked(struct search *search, uint32_t first)
{
    struct picked picked = {.count = search->pick_count - first};
    picked.items = ARENA_ARRAY(&search->core->scratch, uint32_t, picked.count + (size_t)1);
    for (uint32_t i = 0; i < picked.count; i++) {
        uint32_t at = i;
        uint32_t candidate = search->picks[first + i].candidate;
        for (; at > 0 && picked.items[at - 1] > candidate; at--) {
            picked.items[at] = picked.items[at - 1];
        }
        picked.items[at] = candidate;
    }
    return picked;
}

static bool is_known(const struct picked *known, uint32_t count, const struct picked *picked)
{
    for (uint32_t i = 0; i < count; i++) {
        bool is_same = known[i].count == picked->count;
        for (uint32_t p = 0; p < picked->count && is_same; p++) {
            is_same = known[i].items[p] == picked->items[p];
        }
        if (is_same) {
            return true;
        }
    }
    return false;
}

#define ORDERS_MAX 24 /* of LOOSE_SLICES_MAX slices */

/* The fewest pods that any choice of orders leaves room for, at most `want`. Once the search is too
 * hard, so is the one for each further pod, at its first step. */
static int64_t least_pods(struct search *search, int64_t want, enum found *ret_end)
{
    struct picked known[ORDERS_MAX];
    uint32_t known_count = 0;
    int64_t least = want;
    for (uint32_t turn = 0; least > 0 && search_set_order(search, turn); turn++) {
        uint32_t first = search->pick_count;
        enum found found = search_pod(search);
        if (found != FOUND_ALL) {
            *ret_end = found;
            return 0; /* if one order finds no way, none does */
        }
        struct picked picked = read_picked(search, first);
        if (!is_known(known, known_count, &picked)) {
            known[known_count++] = picked;
            int64_t pods = 1 + least_pods(search, least - 1, ret_end);
            least = pods < least ? pods : least;
        }
        search_undo_pod(search, first);
    }
    return least;
}

/* -- one node ---------------------------------------------------------------------------------- */

static void search_close(struct search *search)
{
    for (uint32_t i = 0; i < search->count; i++) {
        const struct device_state *device = search->items[i].device;
        for (uint32_t c = 0; c < device->counter_count; c++) {
            device->pool->counters[device->counters[c].counter].pending = 0;
        }
    }
}

/* Whether what pods get elsewhere could change what they get here. */
static bool is_tied_to_others(const struct search *search)
{
    bool is_special = ask_is_special(search->ask);
    bool is_alike = search->core->plan_may_roam || !is_special;
    if (search->core->plan_is_one_node) {
        return false;
    }
    if (search->has_roaming && (search->loose > 1 || !is_alike)) {
        return true;
    }
    for (uint32_t i = 0; i < search->count; i++) {
        const struct device_state *device = search->items[i].device;
        for (uint32_t c = 0; c < device->counter_count; c++) {
            if (device->pool->counters[device->counters[c].counter].is_spread) {
                return true;
            }
        }
    }
    return search->core->plan_stays_local && is_special;
}

static void plan_picks(struct search *search)
{
    for (uint32_t i = 0; i < search->pick_count; i++) {
        const struct pick *pick = &search->picks[i];
        struct device_state *device = search->items[pick->candidate].device;
        if (pick->option->is_admin) {
            continue;
        }
        if (device->is_shareable) {
            device_plan_share(search->core, device, pick->amounts);
        } else {
            device_plan(search->core, device);
        }
    }
}

/* Adds pods until there are `want`; how many there are. */
static int64_t add_pods(struct search *search, int64_t want, enum found *ret_end)
{
    int64_t pods = 0;
    (void)search_set_order(search, 0);
    while (pods < want) {
        uint32_t first = search->pick_count;
        *ret_end = search_pod(search);
        if (*ret_end != FOUND_ALL) {
            search->pick_count = first;
            break;
        }
        pods++;
    }
    return pods;
}

int64_t node_place_asked(struct core *core, const struct device_ask *ask, struct node_state *node,
                         int64_t want)
{
    struct search search;
    enum found end = FOUND_NOT;
    int64_t pods = want;
    search_open(&search, core, ask, node, false);
    if (is_tied_to_others(&search)) {
        pods = 0;
        core->asked_is_tied = true;
    } else if (search.loose > LOOSE_SLICES_MAX) {
        pods = 0;
        end = FOUND_TOO_HARD;
    } else if (search.loose > 1) {
        pods = least_pods(&search, want, &end);
    }
    enum found last = FOUND_NOT;
    pods = add_pods(&search, pods, &last);
    core->asked_is_too_hard =
        core->asked_is_too_hard || end == FOUND_TOO_HARD || last == FOUND_TOO_HARD;
    plan_picks(&search);
    search_close(&search);
    return pods;
}

bool node_place_asked_once(struct core *core, const struct device_ask *ask, struct node_state *node)
{
    struct search search;
    search_open(&search, core, ask, node, false);
    enum found found = search_pod(&search);
    core->asked_is_too_hard = core->asked_is_too_hard || found == FOUND_TOO_HARD;
    if (found == FOUND_ALL) {
        plan_picks(&search);
    }
    search_close(&search);
    return found == FOUND_ALL;
}

bool node_could_serve(struct core *core, const struct device_ask *ask, struct node_state *node)
{
    struct search search;
    search_open(&search, core, ask, node, true);
    enum found found = search_pod(&search);
    search_close(&search);
    return found == FOUND_ALL || found == FOUND_TOO_HARD;
}

bool node_breaks_ask(struct core *core, const struct device_ask *ask, struct node_state *node,
                     int64_t pods, struct breach *ret_breach, bool *ret_is_too_hard)
{
    struct search search;
    enum found end = FOUND_NOT;
    search_open(&search, core, ask, node, false);
    (void)add_pods(&search, pods, &end);
    search_close(&search);
    *ret_breach = search.breach;
    *ret_is_too_hard = end == FOUND_TOO_HARD;
    return end == FOUND_BROKEN;
}
