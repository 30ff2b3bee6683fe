/* fair.c - the order between queues: not borrowing before borrowing, by height; then, where fair
 * sharing is on, the lower weighted dominant share with the gang's own demand added, level by
 * level; with a half-life less use over time before that (past.c); then priority, time, uid. */
#include "model/policy.h"

int tree_root(const struct model_state *state, int member)
{
    while (state->members[member].parent != NONE) {
        member = state->members[member].parent;
    }
    return member;
}

bool tree_is_fair(const struct model_state *state, int root)
{
    for (int m = 0; m < MEMBERS; m++) {
        const struct member *member = &state->members[m];
        if (member->exists && (member->weight != NONE || member->half_life_s != NONE) &&
            tree_root(state, m) == root) {
            return true;
        }
    }
    return false;
}

/* Beyond its own quota, of what its parent could give, of the resource where that is most. */
struct share share_at(const struct books *books, int member)
{
    const struct model_state *state = books->state;
    struct share most = {false, 0, 1};
    int parent = state->members[member].parent;
    for (int r = 0; parent != NONE && r < RESOURCES; r++) {
        int64_t borrowed = 0;
        int64_t lendable = 0;
        for (int f = 0; f < FLAVORS; f++) {
            struct cell at = {f, (enum resource)r};
            int over = tree_used(books, member, at) - tree_subtree(state, member, at);
            borrowed += over > 0 ? over : 0;
            lendable += tree_potential(state, parent, at);
        }
        if (lendable == 0 && borrowed > 0) {
            return (struct share){true, borrowed, 1}; /* of nothing */
        }
        if (lendable > 0 && borrowed * most.denominator > most.numerator * lendable) {
            most = (struct share){false, borrowed, lendable};
        }
    }
    int weight = state->members[member].weight == NONE ? 2 : state->members[member].weight;
    if (weight == 0) {
        most.is_last = most.numerator > 0;
        return most;
    }
    most.denominator *= weight;
    return most;
}

int share_compare(struct share a, struct share b)
{
    if (a.is_last || b.is_last) {
        return a.is_last - b.is_last; /* two that are last are last alike */
    }
    int64_t left = a.numerator * b.denominator;
    int64_t right = b.numerator * a.denominator;
    return left < right ? -1 : left > right ? 1 : 0;
}

static struct share share_with(const struct books *books, int member, const struct turn *turn)
{
    if (turn->flavor == NONE) {
        return share_at(books, member);
    }
    struct books with = *books;
    with.is_charged[turn->gang] = true;
    with.flavor[turn->gang] = turn->flavor;
    with.count[turn->gang] = turn->count;
    return share_at(&with, member);
}

static int better(const struct books *books, const struct turn *turns, const int queues[2],
                  const int branches[2])
{
    const struct turn *a = &turns[queues[0]];
    const struct turn *b = &turns[queues[1]];
    if (a->is_hopeless != b->is_hopeless) {
        return a->is_hopeless ? queues[0] : queues[1];
    }
    if (a->height != b->height) {
        return a->height < b->height ? queues[0] : queues[1];
    }
    int past = branches[0] == NONE
                   ? 0
                   : share_compare(past_of(books, branches[0]), past_of(books, branches[1]));
    if (past != 0) {
        return past < 0 ? queues[0] : queues[1];
    }
    int order = branches[0] == NONE ? 0
                                    : share_compare(share_with(books, branches[0], a),
                                                    share_with(books, branches[1], b));
    if (order != 0) {
        return order < 0 ? queues[0] : queues[1];
    }
    return is_ahead(books->state, a->gang, b->gang) ? queues[0] : queues[1];
}

/* The first of the queues below that member. */
static int champion(const struct books *books, const struct turn *turns, int member, bool is_fair)
{
    if (member >= COHORTS) {
        return turns[member - COHORTS].gang == NONE ? NONE : member - COHORTS;
    }
    int best[2] = {NONE, NONE};
    for (int child = 0; child < MEMBERS; child++) {
        const struct member *below = &books->state->members[child];
        if (!below->exists || below->parent != member) {
            continue;
        }
        int queue = champion(books, turns, child, is_fair);
        bool is_better = queue != NONE && best[0] == NONE;
        if (queue != NONE && best[0] != NONE) {
            int branches[2] = {is_fair ? child : NONE, is_fair ? best[1] : NONE};
            is_better = better(books, turns, (int[2]){queue, best[0]}, branches) == queue;
        }
        if (is_better) {
            best[0] = queue;
            best[1] = child;
        }
    }
    return best[0];
}

static int branch_below(const struct model_state *state, int member, int top)
{
    while (state->members[member].parent != top) {
        member = state->members[member].parent;
    }
    return member;
}

bool is_judged_before(const struct books *books, int a, int b)
{
    const struct model_state *state = books->state;
    int queues[2] = {state->gangs[a].queue, state->gangs[b].queue};
    int top = stops_meet(state, COHORTS + queues[0], COHORTS + queues[1]);
    if (queues[0] == queues[1] || top == NONE) {
        return is_ahead(state, a, b);
    }
    struct turn turns[QUEUES];
    turns[queues[0]] = turn_of(books, a);
    turns[queues[1]] = turn_of(books, b);
    bool is_fair = tree_is_fair(state, tree_root(state, top));
    int branches[2] = {NONE, NONE};
    for (int i = 0; i < 2 && is_fair; i++) {
        branches[i] = branch_below(state, COHORTS + queues[i], top);
    }
    return better(books, turns, queues, branches) == queues[0];
}

int turn_next(const struct books *books, const struct turn turns[QUEUES])
{
    int best = NONE;
    for (int m = 0; m < MEMBERS; m++) {
        const struct member *member = &books->state->members[m];
        if (!member->exists || member->parent != NONE) {
            continue;
        }
        int queue = champion(books, turns, m, tree_is_fair(books->state, m));
        if (queue != NONE && turns[queue].is_hopeless) {
            return queue;
        }
        if (queue != NONE &&
            (best == NONE || is_ahead(books->state, turns[queue].gang, turns[best].gang))) {
            best = queue;
        }
    }
    return best;
}
