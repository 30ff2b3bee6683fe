/* stops_fair.c - who is stopped where fair sharing is on: Kueue's two rules (KEP-1714) with what
 * decision 013 adds, so that it never goes in a circle. */
#include <string.h>

#include "model/stops.h"

struct hunt {
    const struct need *need;
    int order[GANGS]; /* the candidates */
    int count;
};

/* A set of victims, in the order in which they were chosen. */
struct catch
{
    int items[GANGS];
    int count;
};

static uint32_t all_of(const struct catch *catch)
{
    uint32_t all = 0;
    for (int i = 0; i < catch->count; i++) {
        all |= 1u << catch->items[i];
    }
    return all;
}

/* With so many pods of that gang running on that flavor. */
static struct books with(const struct books *books, int gang, int flavor, int count)
{
    struct books more = *books;
    more.is_charged[gang] = true;
    more.flavor[gang] = flavor;
    more.count[gang] = count;
    return more;
}

static struct books with_it(const struct hunt *hunt, const struct books *books)
{
    return with(books, hunt->need->gang, hunt->need->flavor, hunt->need->count);
}

static int branch_below(const struct model_state *state, int queue, int top)
{
    int member = COHORTS + queue;
    while (state->members[member].parent != top) {
        member = state->members[member].parent;
    }
    return member;
}

static bool borrows_what_it_asks(const struct books *after, int gang, int flavor, int member)
{
    for (int r = 0; r < RESOURCES; r++) {
        struct cell at = cell_at(flavor, r);
        if (after->state->gangs[gang].ask[r] > 0 && tree_is_borrowing(after, member, at)) {
            return true;
        }
    }
    return false;
}

/* Decision 013, 2: those of the branch that are stopped count as if they ran on; unless the branch
 * stays within its own without them. */
static struct share own_share(const struct hunt *hunt, const struct books *left, int branch)
{
    struct books after = with_it(hunt, left);
    if (!borrows_what_it_asks(&after, hunt->need->gang, hunt->need->flavor, branch)) {
        return (struct share){false, 0, 1};
    }
    struct books all = with_it(hunt, hunt->need->books);
    return share_at(&all, branch);
}

static int my_branch(const struct hunt *hunt, int v)
{
    return branch_below(hunt->need->books->state, gang_of(hunt->need)->queue,
                        stops_top(hunt->need, v));
}

static int their_branch(const struct hunt *hunt, int v)
{
    const struct model_state *state = hunt->need->books->state;
    return branch_below(state, state->gangs[v].queue, stops_top(hunt->need, v));
}

static bool is_own(const struct hunt *hunt, int v)
{
    return hunt->need->books->state->gangs[v].queue == gang_of(hunt->need)->queue;
}

/* LessThanOrEqualToFinalShare */
static bool by_final(const struct hunt *hunt, const struct books *left, int v)
{
    struct share mine = own_share(hunt, left, my_branch(hunt, v));
    struct books in_turn = stops_without_barred(left, hunt->need, v);
    struct books after = books_without(&in_turn, 1u << v);
    return !mine.is_last && share_compare(mine, share_at(&after, their_branch(hunt, v))) <= 0;
}

/* LessThanInitialShare */
static bool by_initial(const struct hunt *hunt, const struct books *left, int v)
{
    struct share mine = own_share(hunt, left, my_branch(hunt, v));
    struct books in_turn = stops_without_barred(left, hunt->need, v);
    return share_compare(mine, share_at(&in_turn, their_branch(hunt, v))) < 0;
}

static bool fits(const struct hunt *hunt, uint32_t victims)
{
    const struct need *need = hunt->need;
    return books_fit(need->books, need->gang, need->flavor, need->count, MEMBERS, victims);
}

/* -- whose turn it is to lose -------------------------------------------------------------------
 */

static int place_of(const struct hunt *hunt, int v)
{
    int place = 0;
    while (hunt->order[place] != v) {
        place++;
    }
    return place;
}

static bool is_above(const struct model_state *state, int above, int member)
{
    while (member != NONE && member != above) {
        member = state->members[member].parent;
    }
    return member == above;
}

static int next_of_queue(const struct hunt *hunt, uint32_t open, int queue)
{
    for (int i = 0; i < hunt->count; i++) {
        int v = hunt->order[i];
        if ((open >> v & 1) != 0 && hunt->need->books->state->gangs[v].queue == queue) {
            return v;
        }
    }
    return NONE;
}

struct loser {
    int gang;
    struct share share; /* of the branch that it is of */
};

static bool loses_first(const struct hunt *hunt, const struct loser *one, const struct loser *two)
{
    int order = two->gang == NONE ? 1 : share_compare(one->share, two->share);
    return order > 0 || (order == 0 && place_of(hunt, one->gang) < place_of(hunt, two->gang));
}

/* The next candidate below that member: of the branches with any the one with the highest share.
 * `open`: those who may still be taken. */
static int next_below(const struct hunt *hunt, const struct books *left, uint32_t open, int member)
{
    const struct model_state *state = left->state;
    if (member >= COHORTS) {
        return next_of_queue(hunt, open, member - COHORTS);
    }
    struct loser best = {.gang = NONE};
    for (int child = 0; child < MEMBERS; child++) {
        if (!state->members[child].exists || state->members[child].parent != member) {
            continue;
        }
        bool is_mine = is_above(state, child, COHORTS + gang_of(hunt->need)->queue);
        struct books after = is_mine ? with_it(hunt, left) : *left;
        struct loser next = {next_below(hunt, left, open, child), share_at(&after, child)};
        bool may_lose = is_mine || next.share.is_last || next.share.numerator > 0;
        if (next.gang != NONE && may_lose && loses_first(hunt, &next, &best)) {
            best = next;
        }
    }
    return best.gang;
}

/* -- the two rules in turn ----------------------------------------------------------------------
 */

static int root_of(const struct hunt *hunt)
{
    return tree_root(hunt->need->books->state, COHORTS + gang_of(hunt->need)->queue);
}

/* Fills the catch; those that the first rule doesn't allow are left over for the second. */
static bool hunt_by_final(const struct hunt *hunt, struct catch *catch, uint32_t *ret_over)
{
    uint32_t open = 0;
    for (int i = 0; i < hunt->count; i++) {
        open |= 1u << hunt->order[i];
    }
    for (;;) {
        struct books left = books_without(hunt->need->books, all_of(catch));
        int v = next_below(hunt, &left, open, root_of(hunt));
        if (v == NONE) {
            return false;
        }
        open &= ~(1u << v);
        if (!is_own(hunt, v) && !stops_is_lent(&left, hunt->need, v)) {
            continue;
        }
        if (is_own(hunt, v) || by_final(hunt, &left, v)) {
            catch->items[catch->count++] = v;
            if (fits(hunt, all_of(catch))) {
                return true;
            }
        } else {
            *ret_over |= 1u << v;
        }
    }
}

static uint32_t of_queue(const struct model_state *state, int queue)
{
    uint32_t gangs = 0;
    for (int g = 0; g < GANGS; g++) {
        gangs |= state->gangs[g].queue == queue ? 1u << g : 0;
    }
    return gangs;
}

static bool hunt_by_initial(const struct hunt *hunt, struct catch *catch, uint32_t open)
{
    for (;;) {
        struct books left = books_without(hunt->need->books, all_of(catch));
        int v = next_below(hunt, &left, open, root_of(hunt));
        if (v == NONE) {
            return false;
        }
        open &= ~of_queue(left.state, left.state->gangs[v].queue); /* one of each queue */
        if (stops_is_lent(&left, hunt->need, v) && by_initial(hunt, &left, v)) {
            catch->items[catch->count++] = v;
            if (fits(hunt, all_of(catch))) {
                return true;
            }
        }
    }
}

/* -- nobody turns it back -----------------------------------------------------------------------
 */

/* Whether `other`, with so many pods on that flavor, could by the same rules stop the gang, which
 * is in then, while its victims are out. */
static bool could_take(const struct hunt *hunt, const struct books *left, int other, int flavor,
                       int count)
{
    const struct model_state *state = left->state;
    const struct model_gang *taker = &state->gangs[other];
    int top = stops_top(hunt->need, other);
    bool is_lower = gang_of(hunt->need)->priority < taker->priority;
    enum reclaim reclaim = state->queues[taker->queue].reclaim;
    bool may = reclaim == RECLAIM_ANY || (reclaim == RECLAIM_LOWER && is_lower);
    if (!may || top == NONE || is_own(hunt, other)) {
        return false;
    }
    struct books in = with_it(hunt, left);
    struct books back = with(left, other, flavor, count);
    int mine = my_branch(hunt, other);
    for (int m = COHORTS + gang_of(hunt->need)->queue; m != top; m = state->members[m].parent) {
        if (!borrows_what_it_asks(&in, hunt->need->gang, hunt->need->flavor, m)) {
            return false;
        }
    }
    struct share theirs = share_at(&back, their_branch(hunt, other));
    return !theirs.is_last && (share_compare(theirs, share_at(left, mine)) <= 0 ||
                               share_compare(theirs, share_at(&in, mine)) < 0);
}

static bool waits_elsewhere(const struct hunt *hunt, int g)
{
    const struct books *books = hunt->need->books;
    const struct model_gang *gang = &books->state->gangs[g];
    return gang->exists && !gang->is_running && !gang->is_held && !books->is_new[g] &&
           is_class_allowed(books->state, gang) && !books->state->queues[gang->queue].is_stopped &&
           !is_own(hunt, g);
}

static bool could_anybody_take(const struct hunt *hunt, const struct books *left)
{
    const struct model_state *state = left->state;
    for (int g = 0; g < GANGS; g++) {
        const struct model_gang *gang = &state->gangs[g];
        int least = gang->is_partial && gang->min != NONE ? gang->min : gang->count;
        int choices[CHOICES];
        int count = waits_elsewhere(hunt, g) ? choices_of(state, g, choices) : 0;
        for (int i = 0; i < count; i++) {
            if (choice_is_open(state, gang, choices[i]) &&
                could_have_quota(left, g, choices[i], least) &&
                could_take(hunt, left, g, choices[i], least)) {
                return true;
            }
        }
    }
    return false;
}

/* Decision 013, 5. */
static bool would_be_taken(const struct hunt *hunt, const struct books *left,
                           const struct catch *catch)
{
    bool has_own = false;
    bool grows = false;
    for (int i = 0; i < catch->count; i++) {
        has_own = has_own || is_own(hunt, catch->items[i]);
    }
    const struct books *before = hunt->need->books;
    struct books in = with_it(hunt, left);
    int m = COHORTS + gang_of(hunt->need)->queue;
    for (; left->state->members[m].parent != NONE; m = left->state->members[m].parent) {
        grows = grows || share_compare(share_at(&in, m), share_at(before, m)) > 0;
    }
    return has_own && grows && could_anybody_take(hunt, left);
}

/* The rules once more, one victim after the other. */
static bool holds(const struct hunt *hunt, const struct catch *catch)
{
    uint32_t gone = 0;
    bool has_initial[QUEUES] = {false};
    const struct model_state *state = hunt->need->books->state;
    for (int i = 0; i < catch->count; i++) {
        struct books left = books_without(hunt->need->books, gone);
        int v = catch->items[i];
        int queue = state->gangs[v].queue;
        bool is_lent = stops_is_lent(&left, hunt->need, v);
        if (!is_own(hunt, v) && !(is_lent && by_final(hunt, &left, v))) {
            if (!is_lent || has_initial[queue] || !by_initial(hunt, &left, v)) {
                return false;
            }
            has_initial[queue] = true;
        }
        gone |= 1u << v;
    }
    struct books left = books_without(hunt->need->books, gone);
    for (int i = 0; i < catch->count; i++) {
        int v = catch->items[i];
        if (could_take(hunt, &left, v, left.flavor[v], left.count[v])) {
            return false;
        }
    }
    return !would_be_taken(hunt, &left, catch);
}

static struct catch without_one(const struct catch *catch, int at)
{
    struct catch fewer = {.count = 0};
    for (int i = 0; i < catch->count; i++) {
        if (i != at) {
            fewer.items[fewer.count++] = catch->items[i];
        }
    }
    return fewer;
}

static void fill_back(const struct hunt *hunt, struct catch *catch, bool with_rule)
{
    for (int i = catch->count - 1; i >= 0; i--) {
        struct catch fewer = without_one(catch, i);
        if (fits(hunt, all_of(&fewer)) && (!with_rule || holds(hunt, &fewer))) {
            *catch = fewer;
        }
    }
}

uint32_t stops_find_fair(const struct need *need)
{
    struct hunt hunt = {.need = need};
    struct catch catch = {.count = 0};
    uint32_t over = 0;
    hunt.count = stops_candidates(need, true, hunt.order);
    if (!hunt_by_final(&hunt, &catch, &over) && !hunt_by_initial(&hunt, &catch, over)) {
        return 0;
    }
    fill_back(&hunt, &catch, true);
    if (!holds(&hunt, &catch)) {
        fill_back(&hunt, &catch, false);
    }
    struct need most = *need; /* what comes free is taken as far as it goes */
    most.count =
        most_that_fit(need->books, need->gang, need->flavor, need->count, MEMBERS, all_of(&catch));
    hunt.need = &most;
    return catch.count > 0 && holds(&hunt, &catch) ? all_of(&catch) : 0;
}
