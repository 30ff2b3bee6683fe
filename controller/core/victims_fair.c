/* victims_fair.c - who is stopped for a gang where fair sharing is on in its tree.
 *
 * The rule is Kueue's (KEP-1714, pkg/scheduler/preemption/fairsharing): victims come from the
 * branch with the highest share, from the root down. A gang of another queue may be stopped if
 *   final:   the gang's branch, with the gang in it, has a share no higher than the victim's branch
 *            without the victim; or else, one gang of a queue at most, if
 *   initial: it has a lower one than the victim's branch has with the victim;
 * the branches being those that meet in the lowest common cohort. A gang that stays within its
 * branch's own quota of all that it asks for may always take back what the branch lent. A branch of
 * weight 0 that borrows takes nothing.
 *
 * Invariant: never a cycle. For the set that is chosen it is checked that none of its gangs could
 * by the same rule stop the gang in turn, with nothing else changed. */
#include "victims.h"

#include <assert.h>

#include "share.h"

/* A queue with candidates, in the order in which they would be taken. */
struct target {
    struct queue_state *queue;
    struct gang **items;
    uint32_t count;
    uint32_t next;
    bool has_initial; /* one of its gangs goes by the second rule: scratch of rule_holds() */
};

struct fair {
    struct core *core;
    const struct search *search;
    const struct quota_node *leaf; /* the gang's queue */
    struct quota_probe ask;        /* what the gang takes there */
    int64_t *shares; /* of the branches from the queue up, with it and all others in */
    int64_t *before; /* the same without it */
    struct target *targets;
    uint32_t target_count;
};

/* -- shares ------------------------------------------------------------------------------------ */

static bool is_below(const struct quota_node *leaf, const struct quota_node *node)
{
    while (leaf != NULL && leaf != node) {
        leaf = leaf->parent;
    }
    return leaf == node;
}

struct pair {
    const struct quota_node *mine;   /* the gang's branch */
    const struct quota_node *theirs; /* the victim's, with the same parent */
};

static struct pair branches_of(const struct fair *fair, const struct gang *victim)
{
    const struct quota_node *other = &victim->reservation->queue->node;
    const struct quota_node *top = victims_common_node(fair->leaf, other);
    return (struct pair){victims_branch_below(fair->leaf, top), victims_branch_below(other, top)};
}

/* The share that the gang's branch would have. Those of its own queue or branch that are stopped
 * for it count as if they ran on, for they may start again in what others leave; unless without
 * them the branch stays within its own quota. */
static int64_t own_share(const struct fair *fair, const struct quota_node *branch)
{
    uint32_t level = 0;
    for (const struct quota_node *node = fair->leaf; node != branch; node = node->parent) {
        level++;
    }
    return share_borrows(branch, fair->leaf, &fair->ask) ? fair->shares[level] : 0;
}

static void note_shares(struct fair *fair)
{
    fair->shares = ARENA_ARRAY(&fair->core->scratch, int64_t, QUOTA_DEPTH_MAX + 1);
    fair->before = ARENA_ARRAY(&fair->core->scratch, int64_t, QUOTA_DEPTH_MAX + 1);
    uint32_t level = 0;
    for (const struct quota_node *node = fair->leaf; node->parent != NULL; node = node->parent) {
        fair->before[level] = share_of(node, NULL, NULL);
        fair->shares[level++] = share_of(node, fair->leaf, &fair->ask);
    }
}

/* Theirs, as it is now. */
static int64_t their_share(const struct fair *fair, const struct quota_node *branch,
                           const struct gang *victim)
{
    victims_set_barred(fair->core, fair->search, victim, true);
    int64_t share = share_of(branch, NULL, NULL);
    victims_set_barred(fair->core, fair->search, victim, false);
    return share;
}

static bool allows_initial(const struct fair *fair, const struct gang *victim)
{
    struct pair pair = branches_of(fair, victim);
    return own_share(fair, pair.mine) < their_share(fair, pair.theirs, victim);
}

/* Leaves the victim out if so. */
static bool take_out_if_final(const struct fair *fair, struct gang *victim)
{
    struct pair pair = branches_of(fair, victim);
    int64_t mine = own_share(fair, pair.mine);
    whatif_take_out(fair->core, victim);
    if (mine != SHARE_INFINITE && mine <= their_share(fair, pair.theirs, victim)) {
        return true;
    }
    whatif_put_back(fair->core, victim);
    return false;
}

/* -- whose turn it is to lose -------------------------------------------------------------------
 */

struct pick {
    struct target *target; /* NULL: none */
    struct gang *first;
    int64_t share;
};

static struct target *target_of(const struct fair *fair, const struct queue_state *queue)
{
    for (uint32_t i = 0; i < fair->target_count; i++) {
        if (fair->targets[i].queue == queue) {
            return &fair->targets[i];
        }
    }
    return NULL;
}

static struct pick pick_queue(const struct fair *fair, const struct queue_state *queue)
{
    struct target *target = target_of(fair, queue);
    if (target == NULL || target->next == target->count) {
        return (struct pick){.target = NULL};
    }
    return (struct pick){.target = target, .first = target->items[target->next]};
}

static bool goes_first(const struct fair *fair, const struct pick *pick, const struct pick *best)
{
    if (best->target == NULL || pick->share != best->share) {
        return best->target == NULL || pick->share > best->share;
    }
    return victims_compare(fair->core, fair->search->gang, pick->first, best->first) < 0;
}

/* Of the branches below the one with the highest share; those that don't borrow lose nothing. */
static struct pick pick_below(const struct fair *fair, const struct quota_node *node)
{
    struct pick best = {.target = NULL};
    for (const struct quota_node *child = node->children; child != NULL;
         child = child->next_sibling) {
        struct pick pick =
            child->queue != NULL ? pick_queue(fair, child->queue) : pick_below(fair, child);
        if (pick.target == NULL) {
            continue;
        }
        bool is_mine = is_below(fair->leaf, child);
        pick.share = share_of(child, fair->leaf, is_mine ? &fair->ask : NULL);
        if ((pick.share > 0 || is_mine) && goes_first(fair, &pick, &best)) {
            best = pick;
        }
    }
    return best;
}

/* -- the two rules in turn ----------------------------------------------------------------------
 */

/* The next of the queue's gangs that the first rule allows, out already; NULL: none. Those that it
 * doesn't are kept at the front, for the second. */
static struct gang *take_by_final(struct fair *fair, struct target *target, uint32_t *kept)
{
    while (target->next < target->count) {
        struct gang *victim = target->items[target->next++];
        if (target->queue == fair->search->gang->queue) {
            whatif_take_out(fair->core, victim);
            return victim;
        }
        if (!victims_is_lent(fair->core, fair->search, victim)) {
            continue;
        }
        if (take_out_if_final(fair, victim)) {
            return victim;
        }
        target->items[(*kept)++] = victim;
    }
    return NULL;
}

static bool search_final(struct fair *fair, struct victims *victims, struct evaluation *evaluation)
{
    const struct quota_node *root = quota_root(fair->leaf);
    uint32_t *kept = ARENA_ARRAY(&fair->core->scratch, uint32_t, fair->target_count + 1);
    struct pick pick;
    while ((pick = pick_below(fair, root)).target != NULL) {
        struct gang *victim = take_by_final(fair, pick.target, &kept[pick.target - fair->targets]);
        if (victim == NULL) {
            continue;
        }
        victims_append(fair->core, victims, victim);
        if (victims_fit(fair->core, fair->search, evaluation)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < fair->target_count; i++) {
        fair->targets[i].next = 0;
        fair->targets[i].count = kept[i];
    }
    return false;
}

static bool search_initial(struct fair *fair, struct victims *victims,
                           struct evaluation *evaluation)
{
    const struct quota_node *root = quota_root(fair->leaf);
    struct pick pick;
    while ((pick = pick_below(fair, root)).target != NULL) {
        struct gang *victim = pick.target->items[pick.target->next];
        pick.target->next = pick.target->count; /* one of each queue */
        if (!victims_is_lent(fair->core, fair->search, victim) || !allows_initial(fair, victim)) {
            continue;
        }
        whatif_take_out(fair->core, victim);
        victims_append(fair->core, victims, victim);
        if (victims_fit(fair->core, fair->search, evaluation)) {
            return true;
        }
    }
    return false;
}

/* -- the rule once more, for those that are left --------------------------------------------------
 */

static bool takes_by_rule(const struct fair *fair, struct gang *victim)
{
    struct target *target = target_of(fair, victim->reservation->queue);
    assert(target != NULL && "a victim was a candidate");
    if (target->queue == fair->search->gang->queue) {
        whatif_take_out(fair->core, victim);
        return true;
    }
    bool is_lent = victims_is_lent(fair->core, fair->search, victim);
    if (is_lent && take_out_if_final(fair, victim)) {
        return true;
    }
    bool is_initial = is_lent && !target->has_initial && allows_initial(fair, victim);
    target->has_initial = target->has_initial || is_initial;
    whatif_take_out(fair->core, victim);
    return is_initial;
}

/* Each account once, whichever sets draw on it. */
static void probe_add(struct quota_probe *probe, const struct charge *charge, int64_t times)
{
    uint32_t at = 0;
    while (at < probe->count && !(str_eq(probe->items[at].flavor, charge->flavor) &&
                                  str_eq(probe->items[at].resource, charge->resource))) {
        at++;
    }
    if (at == probe->count) {
        probe->items[probe->count++] =
            (struct probe_item){.flavor = charge->flavor, .resource = charge->resource};
    }
    probe->items[at].asked += (i128)charge->amount * times;
}

static struct quota_probe probe_of(struct core *core, const struct reserved_set *sets,
                                   uint32_t set_count)
{
    uint32_t room = 0;
    for (uint32_t s = 0; s < set_count; s++) {
        room += sets[s].per_pod.count;
    }
    struct quota_probe probe = {.count = 0};
    probe.items = ARENA_ARRAY(&core->scratch, struct probe_item, room + 1);
    for (uint32_t s = 0; s < set_count; s++) {
        for (uint32_t i = 0; i < sets[s].per_pod.count; i++) {
            probe_add(&probe, &sets[s].per_pod.items[i], sets[s].count);
        }
    }
    return probe;
}

static bool is_borrowed_up_to(const struct fair *fair, const struct quota_node *branch)
{
    for (const struct quota_node *node = fair->leaf; node != branch->parent; node = node->parent) {
        if (!share_borrows(node, fair->leaf, &fair->ask)) {
            return false;
        }
    }
    return true;
}

/* Whether `other`, with `ask` more for its queue, might by the same rule stop the gang that is
 * looked for: it is in then, its victims are out. */
static bool could_take(const struct fair *fair, const struct gang *other,
                       const struct quota_node *leaf, const struct quota_probe *ask)
{
    const struct quota_node *top = victims_common_node(fair->leaf, leaf);
    if (leaf == fair->leaf || top == NULL || !victims_may_reclaim(other, fair->search->gang)) {
        return false;
    }
    const struct quota_node *mine = victims_branch_below(fair->leaf, top);
    int64_t theirs = share_of(victims_branch_below(leaf, top), leaf, ask);
    return theirs != SHARE_INFINITE && is_borrowed_up_to(fair, mine) &&
           (theirs <= share_of(mine, NULL, NULL) ||
            theirs < share_of(mine, fair->leaf, &fair->ask));
}

static bool could_turn_back(const struct fair *fair, const struct gang *victim)
{
    const struct reservation *held = victim->reservation;
    struct quota_probe back = probe_of(fair->core, held->sets, held->set_count);
    return could_take(fair, victim, &held->queue->node, &back);
}

/* Whether the queue could have that much if nobody else were there. */
static bool could_ever_have(const struct quota_node *leaf, const struct quota_probe *ask)
{
    for (uint32_t i = 0; i < ask->count; i++) {
        const struct probe_item *item = &ask->items[i];
        if (item->asked > quota_potential(leaf, item->flavor, item->resource)) {
            return false;
        }
    }
    return true;
}

static bool could_shape_take(const struct fair *fair, struct shape *shape)
{
    const struct gang *first = shape->first;
    uint32_t count = first == NULL ? 0 : evaluate_combination_count(fair->core, shape);
    for (uint32_t combination = 0; combination < count; combination++) {
        struct quota_probe ask;
        struct quota_probe needs;
        if (evaluate_ask(fair->core, shape, combination, &ask, &needs) &&
            could_ever_have(&shape->queue->node, &ask) &&
            could_take(fair, first, &shape->queue->node, &ask)) {
            return true;
        }
    }
    return false;
}

static bool could_anybody_take(const struct fair *fair, const struct quota_node *node)
{
    if (node->queue != NULL && node != fair->leaf) {
        for (struct shape *shape = node->queue->shapes; shape != NULL;
             shape = shape->next_in_queue) {
            if (could_shape_take(fair, shape)) {
                return true;
            }
        }
    }
    for (const struct quota_node *child = node->children; child != NULL;
         child = child->next_sibling) {
        if (could_anybody_take(fair, child)) {
            return true;
        }
    }
    return false;
}

/* A gang that grows its queue's share by stopping others of the queue would be taken in turn by who
 * couldn't take those: then it waits. */
static bool would_be_taken(const struct fair *fair, const struct victims *victims)
{
    bool has_own = false;
    for (uint32_t i = 0; i < victims->count; i++) {
        has_own = has_own || victims->items[i]->reservation->queue == fair->search->gang->queue;
    }
    bool grows = false;
    uint32_t level = 0;
    for (const struct quota_node *node = fair->leaf; has_own && node->parent != NULL;
         node = node->parent) {
        grows = grows || share_of(node, fair->leaf, &fair->ask) > fair->before[level++];
    }
    return grows && could_anybody_take(fair, quota_root(fair->leaf));
}

/* All are out before and after. */
static bool rule_holds(const struct fair *fair, const struct victims *victims)
{
    bool is_allowed = true;
    for (uint32_t i = 0; i < fair->target_count; i++) {
        fair->targets[i].has_initial = false;
    }
    for (uint32_t i = 0; i < victims->count; i++) {
        whatif_put_back(fair->core, victims->items[i]);
    }
    for (uint32_t i = 0; i < victims->count; i++) {
        is_allowed = takes_by_rule(fair, victims->items[i]) && is_allowed;
    }
    for (uint32_t i = 0; i < victims->count; i++) {
        is_allowed = is_allowed && !could_turn_back(fair, victims->items[i]);
    }
    return is_allowed && !would_be_taken(fair, victims);
}

/* From the last to the first: whoever isn't needed goes back, `with_rule` if the rule still holds
 * for the others. */
static void fill_back(const struct fair *fair, struct victims *victims, bool with_rule)
{
    for (uint32_t i = victims->count; i > 0; i--) {
        struct gang *victim = victims->items[i - 1];
        struct victims others = {.count = 0};
        struct evaluation evaluation;
        for (uint32_t j = 0; j < victims->count; j++) {
            if (j != i - 1) {
                victims_append(fair->core, &others, victims->items[j]);
            }
        }
        whatif_put_back(fair->core, victim);
        if (victims_fit(fair->core, fair->search, &evaluation) &&
            (!with_rule || rule_holds(fair, &others))) {
            *victims = others;
        } else {
            whatif_take_out(fair->core, victim);
        }
    }
}

/* -- the search ---------------------------------------------------------------------------------
 */

static void group_by_queue(struct fair *fair, const struct victims *candidates)
{
    struct arena *arena = &fair->core->scratch;
    fair->targets = ARENA_ARRAY(arena, struct target, candidates->count + 1);
    for (uint32_t i = 0; i < candidates->count; i++) {
        struct gang *victim = candidates->items[i];
        struct target *target = target_of(fair, victim->reservation->queue);
        if (target == NULL) {
            target = &fair->targets[fair->target_count++];
            *target = (struct target){.queue = victim->reservation->queue};
            target->items = ARENA_ARRAY(arena, struct gang *, candidates->count - i);
        }
        target->items[target->count++] = victim;
    }
}

bool victims_find_fair(struct core *core, const struct search *search,
                       const struct victims *candidates, struct victims *victims,
                       struct evaluation *evaluation)
{
    struct fair fair = {
        .core = core, .search = search, .leaf = &search->gang->queue->node, .ask = *search->ask};
    note_shares(&fair);
    group_by_queue(&fair, candidates);
    *victims = (struct victims){.count = 0};
    bool is_found =
        search_final(&fair, victims, evaluation) || search_initial(&fair, victims, evaluation);
    if (is_found) {
        fill_back(&fair, victims, true);
        if (!rule_holds(&fair, victims)) { /* it may for fewer, though not for each step there */
            fill_back(&fair, victims, false);
        }
        is_found = victims->count > 0 && victims_fit(core, search, evaluation);
    }
    if (is_found) { /* with partial admission it may be more pods than were asked for at least */
        struct victims all = *victims;
        for (uint32_t i = 0; i < all.count; i++) {
            whatif_put_back(core, all.items[i]);
        }
        fair.ask = probe_of(core, evaluation->reserve.sets, evaluation->reserve.set_count);
        note_shares(&fair);
        for (uint32_t i = 0; i < all.count; i++) {
            whatif_take_out(core, all.items[i]);
        }
        is_found = rule_holds(&fair, victims);
    }
    for (uint32_t i = 0; i < victims->count; i++) {
        whatif_put_back(core, victims->items[i]);
    }
    return is_found;
}
