/* victims.c - who is stopped for a gang: the candidates by policy, in order, and of them the
 * smallest sufficient set.
 *
 * Who may be stopped is Kueue's rule (pkg/scheduler/preemption): in the own queue by withinQueue;
 * in other queues of the tree by reclaimWithinCohort, as long as their branch borrows and the gang
 * stays within its own branch's quota; with borrowWithinCohort it may borrow, from lower priorities
 * up to the threshold. Where fair sharing is on the shares decide instead (victims_fair.c). Before
 * anybody is stopped it is shown that the gang fits afterwards. */
#include "victims.h"

#include "share.h"
#include "stopping.h"

#include <assert.h>

/* -- policy ------------------------------------------------------------------------------------ */

bool victims_may_within_queue(const struct gang *gang, const struct gang *victim)
{
    const struct queue_preemption *policy = queue_preemption_policy(gang->queue);
    if (str_eq_c(policy->within_queue, "LowerPriority")) {
        return victim->priority < gang->priority;
    }
    if (str_eq_c(policy->within_queue, "LowerOrNewerEqualPriority")) {
        bool is_newer = victim->created_ms > gang->created_ms;
        return victim->priority < gang->priority ||
               (victim->priority == gang->priority && is_newer);
    }
    return false;
}

bool victims_may_reclaim(const struct gang *gang, const struct gang *victim)
{
    const struct queue_preemption *policy = queue_preemption_policy(gang->queue);
    if (str_eq_c(policy->reclaim_within_cohort, "Any")) {
        return true;
    }
    return str_eq_c(policy->reclaim_within_cohort, "LowerPriority") &&
           victim->priority < gang->priority;
}

static bool is_needed(const struct quota_probe *needs, const struct charge *charge)
{
    for (uint32_t i = 0; i < needs->count; i++) {
        if (str_eq(needs->items[i].resource, charge->resource) &&
            str_eq(needs->items[i].flavor, charge->flavor)) {
            return true;
        }
    }
    return false;
}

/* Whether the node uses more than its own quota of anything that the victim holds there and the
 * gang needs (`needs` NULL: of anything). */
static bool is_set_borrowing(const struct quota_node *node, const struct reserved_set *set,
                             const struct quota_probe *needs)
{
    for (uint32_t i = 0; i < set->per_pod.count; i++) {
        const struct charge *charge = &set->per_pod.items[i];
        const struct quota_cell *cell = quota_cell_find(node, charge->flavor, charge->resource);
        bool is_over = cell != NULL && cell->used > cell->subtree;
        if (is_over && (needs == NULL || is_needed(needs, charge))) {
            return true;
        }
    }
    return false;
}

static bool is_borrowing(const struct quota_node *node, const struct gang *victim,
                         const struct quota_probe *needs)
{
    for (uint32_t s = 0; s < victim->reservation->set_count; s++) {
        if (is_set_borrowing(node, &victim->reservation->sets[s], needs)) {
            return true;
        }
    }
    return false;
}

/* The lowest node above both; NULL: they stand in different trees. */
const struct quota_node *victims_common_node(const struct quota_node *a, const struct quota_node *b)
{
    while (a != NULL && b != NULL && a != b) {
        if (a->depth >= b->depth) {
            a = a->parent;
        } else {
            b = b->parent;
        }
    }
    return a == b ? a : NULL;
}

const struct quota_node *victims_branch_below(const struct quota_node *leaf,
                                              const struct quota_node *top)
{
    while (leaf->parent != top) {
        leaf = leaf->parent;
    }
    return leaf;
}

/* Another queue's gang may be taken while each branch that it stands in, up to where the two
 * queues' branches meet, uses more than its own quota. */
bool victims_is_lent_to(const struct gang *gang, const struct gang *victim,
                        const struct quota_probe *needs)
{
    const struct quota_node *node = &victim->reservation->queue->node;
    const struct quota_node *top = victims_common_node(node, &gang->queue->node);
    for (; top != NULL && node != top; node = node->parent) {
        if (!is_borrowing(node, victim, needs)) {
            return false;
        }
    }
    return top != NULL;
}

/* The height of the gang's own branch where it meets the victim's: as quota_borrow_level() counts.
 */
static uint32_t branch_level(const struct gang *gang, const struct gang *victim)
{
    const struct quota_node *top =
        victims_common_node(&victim->reservation->queue->node, &gang->queue->node);
    return victims_branch_below(&gang->queue->node, top)->height;
}

static bool is_protected(const struct core *core, const struct gang *victim)
{
    const struct queue *object = victim->reservation->queue->object;
    if (object == NULL || !object->spec.min_runtime_protection.is_set ||
        victim->room->check != NULL) {
        return false;
    }
    bool is_young = core->now_ms - victim->admitted_ms < object->spec.min_runtime_protection.ms;
    return is_young && !is_borrowing(&victim->reservation->queue->node, victim, NULL);
}

/* -- candidates -------------------------------------------------------------------------------- */

static bool is_wanted(struct core *core, const struct search *search, const struct gang *victim)
{
    if (victim->reservation->queue == search->gang->queue) {
        return victims_may_within_queue(search->gang, victim);
    }
    return victims_may_reclaim(search->gang, victim) && victims_is_lent(core, search, victim);
}

/* One that can't be stopped just yet leaves word to look again. */
static bool is_candidate(struct core *core, const struct search *search, struct gang *victim)
{
    struct gang *gang = search->gang;
    bool is_up = victim->state == GANG_ADMITTED || victim->state == GANG_RUNNING ||
                 victim->room->check != NULL;
    if (!is_up || victim == gang || str_is_set(victim->stops_for) ||
        !is_wanted(core, search, victim)) {
        return false;
    }
    if (gang_is_busy(victim)) {
        victim->wakes_preemptors = true;
        return false;
    }
    if (is_protected(core, victim)) {
        int64_t until_ms =
            sat_add(victim->admitted_ms,
                    victim->reservation->queue->object->spec.min_runtime_protection.ms);
        bool is_sooner = gang->look_again_ms == 0 || until_ms < gang->look_again_ms;
        gang->look_again_ms = is_sooner ? until_ms : gang->look_again_ms;
        return false;
    }
    return true;
}

i128 victims_lost_work(const struct core *core, const struct gang *victim)
{
    i128 devices = reservation_devices(victim->reservation);
    int64_t since_ms = victim->run->checkpoint_ms > victim->admitted_ms ? victim->run->checkpoint_ms
                                                                        : victim->admitted_ms;
    int64_t run_ms = core->now_ms > since_ms ? core->now_ms - since_ms : 0;
    return victim->room->check != NULL ? -1 : devices * run_ms;
}

static struct victims find_candidates(struct core *core, struct search *search)
{
    struct victims list = {.count = 0};
    struct gang *victim;
    if (search->gang->queue->node.parent != NULL) {
        GANG_LINE_FOREACH (victim, &core->holders) {
            victims_note_barred(core, search, victim);
        }
    }
    GANG_LINE_FOREACH (victim, &core->holders) {
        if (is_candidate(core, search, victim)) {
            victims_append(core, &list, victim);
        }
    }
    victims_sort(core, search->gang, &list);
    return list;
}

/* -- the smallest sufficient set ----------------------------------------------------------------
 */

bool victims_fit(struct core *core, const struct search *search, struct evaluation *evaluation)
{
    core->is_brief = true;
    core->level_cap = search->level_max;
    evaluate_combination(core, search->gang->shape, search->combination, evaluation);
    core->is_brief = false;
    core->level_cap = LEVEL_ANY;
    if (evaluation->has_fit && !evaluation->fit.is_fit && evaluation->fit.is_beside_promises) {
        search->gang->shape->is_preempting_beside_promises = true;
    }
    if (evaluation->has_fit && evaluation->verdict.reason != REASON_NONE) {
        search->gang->shape->is_preempting_short_of_room = true;
    }
    return evaluation->verdict.reason == REASON_NONE && evaluation->level <= search->level_max;
}

static bool is_own(const struct search *search, const struct gang *victim)
{
    return victim->reservation->queue == search->gang->queue;
}

/* A gang of another queue only while that one still borrows without those that are out. */
static bool still_allowed(struct core *core, const struct search *search, const struct gang *victim)
{
    if (is_own(search, victim)) {
        return true;
    }
    return !search->is_own_only && branch_level(search->gang, victim) >= search->from_level &&
           victims_is_lent(core, search, victim);
}

static bool take_out_until_fit(struct core *core, struct search *search,
                               const struct victims *candidates, struct victims *victims,
                               struct evaluation *evaluation)
{
    for (uint32_t i = 0; i < candidates->count; i++) {
        struct gang *victim = candidates->items[i];
        if (!still_allowed(core, search, victim)) {
            continue;
        }
        if (!is_own(search, victim) && search->has_threshold &&
            victim->priority > search->threshold) {
            uint32_t level = branch_level(search->gang, victim);
            search->level_max = level < search->level_max ? level : search->level_max;
        }
        whatif_take_out(core, victim);
        victims_append(core, victims, victim);
        if (victims_fit(core, search, evaluation)) {
            return true;
        }
    }
    return false;
}

/* From the last taken out to the first: whoever isn't needed goes back. */
static void fill_back(struct core *core, const struct search *search, struct victims *victims)
{
    for (uint32_t i = victims->count; i > 0; i--) {
        struct gang *victim = victims->items[i - 1];
        struct evaluation evaluation;
        whatif_put_back(core, victim);
        if (victims_fit(core, search, &evaluation)) {
            for (uint32_t j = i - 1; j + 1 < victims->count; j++) {
                victims->items[j] = victims->items[j + 1];
            }
            victims->count--;
        } else {
            whatif_take_out(core, victim);
        }
    }
}

/* The rule once more for those that are left, one after the other: each is taken while its queue
 * borrows, so that a queue falls below its own quota by less than one gang. */
static bool rule_holds(struct core *core, const struct search *search,
                       const struct victims *victims)
{
    bool is_allowed = true;
    for (uint32_t i = 0; i < victims->count; i++) {
        whatif_put_back(core, victims->items[i]);
    }
    for (uint32_t i = 0; i < victims->count; i++) {
        is_allowed = is_allowed && still_allowed(core, search, victims->items[i]);
        whatif_take_out(core, victims->items[i]);
    }
    return is_allowed;
}

static bool search_victims(struct core *core, struct search search,
                           const struct victims *candidates, struct victims *victims,
                           struct evaluation *evaluation)
{
    *victims = (struct victims){.count = 0};
    bool is_found = take_out_until_fit(core, &search, candidates, victims, evaluation);
    if (is_found) {
        fill_back(core, &search, victims);
        is_found = victims->count > 0 && rule_holds(core, &search, victims) &&
                   victims_fit(core, &search, evaluation);
    }
    for (uint32_t i = 0; i < victims->count; i++) {
        whatif_put_back(core, victims->items[i]);
    }
    return is_found;
}

/* -- the policies in turn --------------------------------------------------------------------- */

static bool search_borrowing(struct core *core, struct search search,
                             const struct victims *candidates, struct victims *victims,
                             struct evaluation *evaluation)
{
    const struct borrow_within_cohort *borrow =
        queue_preemption_policy(search.gang->queue)->borrow_within_cohort;
    if (borrow == NULL || !str_eq_c(borrow->policy, "LowerPriority")) {
        return false;
    }
    search.level_max = LEVEL_ANY;
    search.has_threshold = true;
    search.threshold = search.gang->priority - 1;
    if (borrow->max_priority_threshold.is_set &&
        borrow->max_priority_threshold.value < search.threshold) {
        search.threshold = borrow->max_priority_threshold.value;
    }
    struct victims left = {.count = 0};
    for (uint32_t i = 0; i < candidates->count; i++) {
        victims_append(core, &left, candidates->items[i]);
    }
    while (search_victims(core, search, &left, victims, evaluation)) {
        if (!victims_leave_out_reclaiming(core, &search, victims, evaluation->level, &left)) {
            return true;
        }
    }
    return false;
}

static uint32_t borrow_level(const struct search *search)
{
    uint32_t level = 0;
    for (uint32_t i = 0; i < search->ask->count; i++) {
        const struct probe_item *item = &search->ask->items[i];
        uint32_t here = quota_borrow_level(&search->gang->queue->node, item->flavor, item->resource,
                                           item->asked);
        level = here > level ? here : level;
    }
    return level;
}

/* Its queue uses all that it owns of something that is needed. */
static bool has_used_its_own(const struct search *search)
{
    for (uint32_t i = 0; i < search->needs->count; i++) {
        const struct probe_item *item = &search->needs->items[i];
        const struct quota_cell *cell =
            quota_cell_find(&search->gang->queue->node, item->flavor, item->resource);
        if (cell == NULL || cell->used >= cell->subtree) {
            return true;
        }
    }
    return false;
}

static bool search_own(struct core *core, struct search search, const struct victims *candidates,
                       struct victims *victims, struct evaluation *evaluation)
{
    search.is_own_only = true;
    search.level_max = LEVEL_ANY;
    return search_victims(core, search, candidates, victims, evaluation);
}

/* With gangs of other queues: the gang then has to stay within its own branch's quota, the branch
 * being what lies below the cohort that both have in common. */
static bool search_cohort(struct core *core, struct search search, const struct victims *candidates,
                          struct victims *victims, struct evaluation *evaluation)
{
    uint32_t highest = 0;
    bool has_others = false;
    for (uint32_t i = 0; i < candidates->count; i++) {
        if (!is_own(&search, candidates->items[i])) {
            uint32_t level = branch_level(search.gang, candidates->items[i]);
            highest = level > highest ? level : highest;
            has_others = true;
        }
    }
    if (!has_others) {
        return false;
    }
    if (search_borrowing(core, search, candidates, victims, evaluation)) {
        return true;
    }
    uint32_t now = borrow_level(&search);
    if (now > highest && has_used_its_own(&search) &&
        search_own(core, search, candidates, victims, evaluation)) {
        return true; /* it has nothing to reclaim, and gets by without */
    }
    /* As far up as it has to borrow now, then less, which those of its own queue would have to make
     * possible. */
    for (uint32_t level = (now < highest ? now : highest) + 1; level-- > 0;) {
        search.level_max = search.from_level = level;
        if (search_victims(core, search, candidates, victims, evaluation)) {
            return true;
        }
    }
    return false;
}

bool victims_search_among(struct core *core, const struct search *search,
                          const struct victims *candidates, struct victims *ret_victims,
                          struct evaluation *ret_evaluation)
{
    const struct quota_node *root = quota_root(&search->gang->queue->node);
    if (root->queue == NULL && share_is_on(root)) {
        return victims_find_fair(core, search, candidates, ret_victims, ret_evaluation);
    }
    return search_cohort(core, *search, candidates, ret_victims, ret_evaluation) ||
           search_own(core, *search, candidates, ret_victims, ret_evaluation);
}

bool victims_search(struct core *core, struct gang *gang, uint32_t combination,
                    struct victims *ret_victims, struct evaluation *ret_evaluation)
{
    struct quota_probe ask;
    struct quota_probe needs;
    struct search search = {.gang = gang,
                            .combination = combination,
                            .needs = &needs,
                            .ask = &ask,
                            .level_max = LEVEL_ANY};
    struct victims candidates = {.count = 0};
    if (evaluate_ask(core, gang->shape, combination, &ask, &needs)) {
        candidates = find_candidates(core, &search);
    }
    if (candidates.count == 0) {
        return false;
    }
    return gang->shape->is_topology_required
               ? victims_search_domains(core, &search, &candidates, ret_victims, ret_evaluation)
               : victims_search_among(core, &search, &candidates, ret_victims, ret_evaluation);
}

bool victims_find(struct core *core, struct gang *gang, struct evaluation *seen,
                  struct victims *ret_victims, struct evaluation *ret_evaluation)
{
    *ret_victims = (struct victims){.count = 0};
    gang->look_again_ms = 0;
    gang->shape->is_preempting_beside_promises = false;
    gang->shape->is_preempting_short_of_room = false;
    uint32_t own;
    struct victims stopping = stopping_find(core, gang, &own);
    bool is_short = seen->verdict.reason != REASON_NONE && stopping.count > 0;
    bool is_found = false;
    whatif_begin_without(core, stopping.items, stopping.count);
    if (is_short) {
        evaluate_shape(core, gang->shape, ret_evaluation);
    }
    enum reason reason = ret_evaluation->verdict.reason;
    if (is_short && (reason == REASON_NONE || reason == REASON_RESERVED_FOR_OTHER)) {
        /* It has only to wait until they are gone, and others' pods in their places. */
        is_found = reason == REASON_NONE && own > 0;
    } else {
        is_found = fungible_search(core, gang, &seen->evidence, ret_victims, ret_evaluation);
    }
    whatif_end_without(core, stopping.items, stopping.count);
    return is_found;
}
