/* tree.c - the quota tree as Kueue defines it (subtree quota, guaranteed part, what bubbles up),
 * with decision 010 where a cohort is over its quota. */
#include "model/policy.h"

static int max(int a, int b)
{
    return a > b ? a : b;
}

static int min(int a, int b)
{
    return a < b ? a : b;
}

static const struct quota *quota_of(const struct model_state *state, int member, struct cell at)
{
    return &state->members[member].quota[at.flavor][at.resource];
}

int tree_guaranteed(const struct model_state *state, int member, struct cell at)
{
    int lending = quota_of(state, member, at)->lending;
    return lending == NONE ? 0 : max(0, tree_subtree(state, member, at) - lending);
}

static bool is_child(const struct model_state *state, int child, int parent)
{
    return state->members[child].exists && state->members[child].parent == parent;
}

int tree_subtree(const struct model_state *state, int member, struct cell at)
{
    int sum = max(0, quota_of(state, member, at)->nominal);
    for (int child = 0; child < MEMBERS; child++) {
        if (member < COHORTS && is_child(state, child, member)) {
            sum += tree_subtree(state, child, at) - tree_guaranteed(state, child, at);
        }
    }
    return sum;
}

static int used_by_gangs(const struct books *books, int queue, struct cell at)
{
    int sum = 0;
    for (int g = 0; g < GANGS; g++) {
        const struct model_gang *gang = &books->state->gangs[g];
        bool is_there = cell_at(books->flavor[g], at.resource).flavor == at.flavor;
        if (books->is_charged[g] && gang->queue == queue && is_there) {
            sum += ask_of(gang, at.resource, books->count[g]);
        }
    }
    return sum;
}

int tree_used(const struct books *books, int member, struct cell at)
{
    if (member >= COHORTS) {
        return used_by_gangs(books, member - COHORTS, at);
    }
    int sum = 0;
    for (int child = 0; child < MEMBERS; child++) {
        if (is_child(books->state, child, member)) {
            sum += max(0, tree_used(books, child, at) - tree_guaranteed(books->state, child, at));
        }
    }
    return sum;
}

int tree_available(const struct books *books, int member, struct cell at)
{
    const struct model_state *state = books->state;
    int parent = state->members[member].parent;
    int used = tree_used(books, member, at);
    int subtree = tree_subtree(state, member, at);
    if (parent == NONE) {
        return subtree - used;
    }
    int own = tree_guaranteed(state, member, at);
    int above = tree_available(books, parent, at);
    int borrowing = quota_of(state, member, at)->borrowing;
    if (borrowing != NONE) {
        above = min(above, subtree - own - max(0, used - own) + borrowing);
    }
    return max(0, own - used) + max(0, above);
}

int tree_potential(const struct model_state *state, int member, struct cell at)
{
    int parent = state->members[member].parent;
    int subtree = tree_subtree(state, member, at);
    if (parent == NONE) {
        return subtree;
    }
    int all = tree_guaranteed(state, member, at) + tree_potential(state, parent, at);
    int borrowing = quota_of(state, member, at)->borrowing;
    return borrowing == NONE ? all : min(all, subtree + borrowing);
}

static bool borrows_with(const struct books *books, int member, struct cell at, int demand)
{
    return tree_used(books, member, at) + demand > tree_subtree(books->state, member, at);
}

bool tree_is_borrowing(const struct books *books, int member, struct cell at)
{
    return borrows_with(books, member, at, 0);
}

int tree_own_height(const struct model_state *state, int member)
{
    int height = 0;
    for (int child = 0; child < MEMBERS; child++) {
        if (member < COHORTS && is_child(state, child, member)) {
            height = max(height, 1 + tree_own_height(state, child));
        }
    }
    return height;
}

int tree_height(const struct books *books, int queue, struct cell at, int demand)
{
    const struct model_state *state = books->state;
    int member = COHORTS + queue;
    int rest = demand;
    while (borrows_with(books, member, at, rest) && state->members[member].parent != NONE) {
        rest -= max(0, tree_guaranteed(state, member, at) - tree_used(books, member, at));
        member = state->members[member].parent;
    }
    return tree_own_height(state, member);
}
