/* stops.c - who has to stop so that a gang fits: Kueue's rules for hierarchical cohorts, with the
 * design's order of candidates and its proof that the gang fits afterwards. */
#include "model/stops.h"

#include <string.h>

static struct cell cell_of(const struct need *need, int r)
{
    return cell_at(need->flavor, r);
}

const struct model_gang *gang_of(const struct need *need)
{
    return &need->books->state->gangs[need->gang];
}

static int demand_of(const struct need *need, int r)
{
    return ask_of(gang_of(need), (enum resource)r, need->count);
}

struct books books_without(const struct books *books, uint32_t gangs)
{
    struct books left = *books;
    for (int g = 0; g < GANGS; g++) {
        left.is_charged[g] = left.is_charged[g] && (gangs >> g & 1) == 0;
    }
    return left;
}

static int height_with(const struct books *books, const struct need *need)
{
    int height = 0;
    for (int r = 0; r < RESOURCES; r++) {
        int demand = demand_of(need, r);
        int here =
            demand > 0 ? tree_height(books, gang_of(need)->queue, cell_of(need, r), demand) : 0;
        height = here > height ? here : height;
    }
    return height;
}

static bool quota_fits(const struct books *books, const struct need *need, int height_max)
{
    int member = COHORTS + gang_of(need)->queue;
    for (int r = 0; r < RESOURCES; r++) {
        int demand = demand_of(need, r);
        if (demand > 0 && demand > tree_available(books, member, cell_of(need, r))) {
            return false;
        }
    }
    return height_with(books, need) <= height_max;
}

int pods_needed(const struct model_gang *gang, int count)
{
    return gang->min != NONE && !gang->is_partial && gang->min < count ? gang->min : count;
}

/* A room that may be judged either way is judged as the core did. */
static bool room_fits(const struct books *books, const struct need *need, uint32_t victims)
{
    const struct model_gang *gang = gang_of(need);
    enum room room =
        room_for(books, need->gang, need->flavor, need->count, pods_needed(gang, need->count));
    const struct answer *core = &books->core[need->gang];
    bool core_grants =
        core->flavor == need->flavor && core->count >= need->count &&
        (victims == 0 ? core->decision == DECISION_ADMIT
                      : core->decision == DECISION_PREEMPT && (core->victims & ~victims) == 0);
    return room == ROOM_YES || (room == ROOM_EITHER && core_grants);
}

static bool leaves_heads_their_room(const struct books *books, const struct need *need)
{
    enum room room = keep_allows(books, need->gang, need->flavor, need->count);
    const struct answer *core = &books->core[need->gang];
    bool core_grants = (core->decision == DECISION_ADMIT || core->decision == DECISION_PREEMPT) &&
                       core->flavor == need->flavor && core->count >= need->count;
    return room == ROOM_YES || (room == ROOM_EITHER && core_grants);
}

bool books_fit(const struct books *books, int gang, int flavor, int count, int height_max,
               uint32_t victims)
{
    struct books left = books_without(books, victims);
    struct need need = {.books = &left, .gang = gang, .flavor = flavor, .count = count};
    return quota_fits(&left, &need, height_max) && room_fits(&left, &need, victims) &&
           leaves_heads_their_room(&left, &need);
}

/* -- who may be stopped -------------------------------------------------------------------------
 */

static bool is_above(const struct model_state *state, int above, int member)
{
    while (member != NONE && member != above) {
        member = state->members[member].parent;
    }
    return member == above;
}

int stops_meet(const struct model_state *state, int a, int b)
{
    while (a != NONE && !is_above(state, a, b)) {
        a = state->members[a].parent;
    }
    return a;
}

/* More than its quota of something that is short and that the victim holds. */
static bool borrows_what_is_short(const struct books *books, const struct need *need, int v,
                                  int member)
{
    for (int r = 0; r < RESOURCES; r++) {
        struct cell at = cell_of(need, r);
        if (need->is_short[r] && cell_at(books->flavor[v], r).flavor == at.flavor &&
            books->state->gangs[v].ask[r] > 0 && tree_is_borrowing(books, member, at)) {
            return true;
        }
    }
    return false;
}

/* How high the gang's own branch is where it meets the victim's. */
static int branch_height(const struct need *need, int top)
{
    const struct model_state *state = need->books->state;
    int m = COHORTS + gang_of(need)->queue;
    while (state->members[m].parent != top) {
        m = state->members[m].parent;
    }
    return tree_own_height(state, m);
}

enum claim { CLAIM_NONE, CLAIM_OWN_QUEUE, CLAIM_ADVANTAGE, CLAIM_BORROWING, CLAIM_WITHIN_QUOTA };

static bool borrows_what_it_holds(const struct books *books, int v)
{
    const struct model_gang *gang = &books->state->gangs[v];
    for (int r = 0; r < RESOURCES; r++) {
        struct cell at = cell_at(books->flavor[v], r);
        if (gang->ask[r] > 0 && tree_is_borrowing(books, COHORTS + gang->queue, at)) {
            return true;
        }
    }
    return false;
}

static enum claim claim_in_queue(const struct need *need, int v)
{
    const struct model_state *state = need->books->state;
    const struct model_queue *queue = &state->queues[gang_of(need)->queue];
    const struct model_gang *victim = &state->gangs[v];
    bool is_lower = victim->priority < gang_of(need)->priority;
    bool is_newer =
        victim->priority == gang_of(need)->priority && victim->age_s < gang_of(need)->age_s;
    bool may = queue->within != WITHIN_NEVER &&
               (is_lower || (is_newer && queue->within == WITHIN_LOWER_OR_NEWER));
    bool is_protected = victim->runs_s < queue->protect_s && !borrows_what_it_holds(need->books, v);
    return may && !is_protected ? CLAIM_OWN_QUEUE : CLAIM_NONE;
}

/* borrowWithinCohort: at the cost of such a one the gang may borrow. */
static bool may_borrow_from(const struct need *need, int v)
{
    const struct model_queue *queue = &need->books->state->queues[gang_of(need)->queue];
    int priority = need->books->state->gangs[v].priority;
    bool is_within = queue->threshold == NONE || priority <= queue->threshold;
    return queue->borrows_within && priority < gang_of(need)->priority && is_within;
}

static bool may_reclaim(const struct need *need, int v)
{
    const struct model_state *state = need->books->state;
    enum reclaim reclaim = state->queues[gang_of(need)->queue].reclaim;
    bool is_lower = state->gangs[v].priority < gang_of(need)->priority;
    return reclaim == RECLAIM_ANY || (reclaim == RECLAIM_LOWER && is_lower);
}

static enum claim claim_in_cohort(const struct need *need, int v, int top)
{
    if (!may_reclaim(need, v)) {
        return CLAIM_NONE;
    }
    if (branch_height(need, top) >= height_with(need->books, need)) {
        return CLAIM_ADVANTAGE; /* it fits into a subtree that the victim isn't in */
    }
    return may_borrow_from(need, v) ? CLAIM_BORROWING : CLAIM_WITHIN_QUOTA;
}

int stops_top(const struct need *need, int v)
{
    const struct model_state *state = need->books->state;
    return stops_meet(state, COHORTS + gang_of(need)->queue, COHORTS + state->gangs[v].queue);
}

/* By which right that gang may be stopped at all. */
static enum claim claim_on(const struct need *need, int v)
{
    const struct books *books = need->books;
    const struct model_gang *victim = &books->state->gangs[v];
    int top = stops_top(need, v);
    if (!books->is_charged[v] || books->is_new[v] || books->is_stopping[v] || top == NONE) {
        return CLAIM_NONE;
    }
    return victim->queue == gang_of(need)->queue ? claim_in_queue(need, v)
                                                 : claim_in_cohort(need, v, top);
}

static bool is_lent_in(const struct books *left, const struct need *need, int v)
{
    const struct model_state *state = left->state;
    int top = stops_top(need, v);
    for (int m = COHORTS + state->gangs[v].queue; m != top; m = state->members[m].parent) {
        if (!borrows_what_is_short(left, need, v, m)) {
            return false;
        }
    }
    return true;
}

struct books stops_without_barred(const struct books *left, const struct need *need, int v)
{
    const struct model_gang *gangs = left->state->gangs;
    uint32_t barred = 0;
    for (int b = 0; b < GANGS; b++) {
        bool is_new = need->books->is_charged[b] && need->books->is_new[b];
        if (is_new && gangs[b].queue == gangs[v].queue && gangs[b].priority <= gangs[v].priority &&
            may_reclaim(need, b) && is_lent_in(need->books, need, b)) {
            barred |= 1u << b;
        }
    }
    return books_without(left, barred);
}

bool stops_is_lent(const struct books *left, const struct need *need, int v)
{
    struct books without = stops_without_barred(left, need, v);
    return is_lent_in(&without, need, v);
}

static bool is_candidate(const struct need *need, bool is_fair, int v)
{
    enum claim claim = claim_on(need, v);
    if (is_fair && claim == CLAIM_WITHIN_QUOTA) {
        claim = CLAIM_BORROWING; /* the shares decide instead */
    }
    return claim == CLAIM_OWN_QUEUE || (claim != CLAIM_NONE && stops_is_lent(need->books, need, v));
}

/* On what terms gangs are stopped: how far up the gang may borrow then, and at whose cost. */
struct terms {
    bool is_own_only;
    bool is_by_priority; /* borrowWithinCohort */
    int height_max;      /* else those whose branch meets the gang's that high */
};

/* And whether it still may, with those before it gone. */
static bool still_may(const struct books *left, const struct need *need, int v,
                      const struct terms *terms)
{
    enum claim claim = claim_on(need, v);
    if (claim == CLAIM_OWN_QUEUE || terms->is_own_only) {
        return claim == CLAIM_OWN_QUEUE;
    }
    bool is_on_terms = terms->is_by_priority
                           ? claim != CLAIM_WITHIN_QUOTA
                           : branch_height(need, stops_top(need, v)) >= terms->height_max;
    return is_on_terms && stops_is_lent(left, need, v);
}

/* -- in which order, and how many ---------------------------------------------------------------
 */

static int64_t lost_work(const struct model_gang *gang)
{
    bool is_saved = gang->saved_s != NONE && gang->saved_s < gang->runs_s;
    return (int64_t)(is_saved ? gang->saved_s : gang->runs_s) * gang->count * gang->ask[DEVICE];
}

/* Whether a is to go before b. */
static bool goes_first(const struct need *need, int a, int b)
{
    const struct model_gang *one = &need->books->state->gangs[a];
    const struct model_gang *two = &need->books->state->gangs[b];
    int queue = gang_of(need)->queue;
    if ((one->queue == queue) != (two->queue == queue)) {
        return two->queue == queue;
    }
    if (one->priority != two->priority) {
        return one->priority < two->priority;
    }
    if (lost_work(one) != lost_work(two)) {
        return lost_work(one) < lost_work(two);
    }
    return one->runs_s != two->runs_s ? one->runs_s < two->runs_s : one->uid < two->uid;
}

int stops_candidates(const struct need *need, bool is_fair, int order[GANGS])
{
    int count = 0;
    for (int v = 0; v < GANGS; v++) {
        if (!is_candidate(need, is_fair, v)) {
            continue;
        }
        int at = count++;
        for (; at > 0 && goes_first(need, v, order[at - 1]); at--) {
            order[at] = order[at - 1];
        }
        order[at] = v;
    }
    return count;
}

static bool fits_without(const struct need *need, const struct terms *terms, uint32_t victims)
{
    return books_fit(need->books, need->gang, need->flavor, need->count, terms->height_max,
                     victims);
}

static uint32_t attempt(const struct need *need, const int *order, int count,
                        const struct terms *terms)
{
    uint32_t victims = 0;
    int taken[GANGS];
    int taken_count = 0;
    bool fits = false;
    for (int i = 0; i < count && !fits; i++) {
        struct books left = books_without(need->books, victims);
        if (still_may(&left, need, order[i], terms)) {
            victims |= 1u << order[i];
            taken[taken_count++] = order[i];
            fits = fits_without(need, terms, victims);
        }
    }
    if (!fits) {
        return 0;
    }
    for (int i = taken_count - 1; i >= 0; i--) {
        uint32_t fewer = victims & ~(1u << taken[i]);
        victims = fits_without(need, terms, fewer) ? fewer : victims;
    }
    return victims;
}

/* What is short of quota; where nothing is, it is room that is short, of all that is asked for. */
static void find_what_is_short(struct need *need)
{
    bool is_any = false;
    for (int r = 0; r < RESOURCES; r++) {
        int member = COHORTS + gang_of(need)->queue;
        need->is_short[r] =
            demand_of(need, r) > 0 &&
            demand_of(need, r) > tree_available(need->books, member, cell_of(need, r));
        is_any = is_any || need->is_short[r];
    }
    for (int r = 0; r < RESOURCES && !is_any; r++) {
        need->is_short[r] = demand_of(need, r) > 0;
    }
}

/* Of the branches that meet those of other queues' candidates; NONE: there are no such candidates.
 */
static int highest_branch(const struct need *need, const int *order, int count)
{
    int highest = NONE;
    for (int i = 0; i < count; i++) {
        int height = claim_on(need, order[i]) == CLAIM_OWN_QUEUE
                         ? NONE
                         : branch_height(need, stops_top(need, order[i]));
        highest = height > highest ? height : highest;
    }
    return highest;
}

static bool has_used_its_own(const struct need *need)
{
    int member = COHORTS + gang_of(need)->queue;
    for (int r = 0; r < RESOURCES; r++) {
        struct cell at = cell_of(need, r);
        if (need->is_short[r] &&
            tree_used(need->books, member, at) >= tree_subtree(need->books->state, member, at)) {
            return true;
        }
    }
    return false;
}

/* With more pods than it needs it may borrow as far up as those allow who are stopped. */
static int height_allowed(const struct need *need, const struct terms *terms, uint32_t victims)
{
    int most = terms->height_max;
    for (int v = 0; v < GANGS && terms->is_by_priority; v++) {
        bool is_others =
            (victims >> v & 1) != 0 && need->books->state->gangs[v].queue != gang_of(need)->queue;
        if (is_others && !may_borrow_from(need, v)) {
            int height = branch_height(need, stops_top(need, v));
            most = height < most ? height : most;
        }
    }
    return most;
}

uint32_t stops_find(const struct books *books, int gang, int flavor, int count, int *ret_height_max)
{
    struct need need = {.books = books, .gang = gang, .flavor = flavor, .count = count};
    find_what_is_short(&need);
    int order[GANGS];
    int root = tree_root(books->state, COHORTS + gang_of(&need)->queue);
    if (root < COHORTS && tree_is_fair(books->state, root)) {
        *ret_height_max = MEMBERS;
        return stops_find_fair(&need);
    }
    int candidates = stops_candidates(&need, false, order);
    /* By priority; then borrowing as far up as it has to now, then less; then its own queue's
     * alone, which comes before where the queue has nothing to reclaim. */
    struct terms terms[MEMBERS + 3];
    int terms_count = 0;
    int highest = highest_branch(&need, order, candidates);
    int now = height_with(books, &need);
    const struct terms own = {.is_own_only = true, .height_max = MEMBERS};
    if (highest != NONE) {
        if (books->state->queues[gang_of(&need)->queue].borrows_within) {
            terms[terms_count++] = (struct terms){.is_by_priority = true, .height_max = MEMBERS};
        }
        if (now > highest && has_used_its_own(&need)) {
            terms[terms_count++] = own;
        }
        for (int height = now < highest ? now : highest; height >= 0; height--) {
            terms[terms_count++] = (struct terms){.height_max = height};
        }
    }
    terms[terms_count++] = own;
    uint32_t victims = 0;
    for (int i = 0; i < terms_count && victims == 0; i++) {
        victims = attempt(&need, order, candidates, &terms[i]);
        *ret_height_max = height_allowed(&need, &terms[i], victims);
    }
    return victims;
}
