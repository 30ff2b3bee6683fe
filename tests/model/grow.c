/* grow.c - what a queue borrows may be taken back: so whoever waits is looked at once more when
 * another queue of the tree has grown beyond its own in the same pass. */
#include "model/policy.h"

static bool may_be_helped(const struct answer *answer)
{
    return answer->decision == DECISION_WAIT &&
           (answer->reason == REASON_QUOTA_EXHAUSTED || answer->reason == REASON_NODES_FULL);
}

static bool may_take(const struct pass *pass, int g, int from)
{
    const struct model_state *state = pass->books.state;
    enum reclaim reclaim = state->queues[state->gangs[g].queue].reclaim;
    bool is_lower = false;
    for (int v = 0; v < GANGS; v++) {
        const struct model_gang *victim = &state->gangs[v];
        is_lower =
            is_lower || (victim->exists && victim->queue == from && pass->books.is_charged[v] &&
                         victim->priority < state->gangs[g].priority);
    }
    return reclaim == RECLAIM_ANY || (reclaim == RECLAIM_LOWER && is_lower);
}

/* Whether the branch of the gang's queue uses more than its own of what the gang asks for. */
static bool has_grown_beyond_its_own(const struct books *books, int g)
{
    const struct model_gang *gang = &books->state->gangs[g];
    for (int m = COHORTS + gang->queue; m != NONE; m = books->state->members[m].parent) {
        for (int r = 0; r < RESOURCES; r++) {
            struct cell at = {books->flavor[g], (enum resource)r};
            if (gang->ask[r] > 0 && tree_is_borrowing(books, m, at)) {
                return true;
            }
        }
    }
    return false;
}

static void reopen(struct pass *pass, int queue)
{
    pass->is_blocked[queue] = false;
    for (int g = 0; g < GANGS; g++) {
        struct answer *answer = &pass->answers[g];
        bool is_behind = answer->reason == REASON_BEHIND_IN_QUEUE;
        const struct model_gang *gang = &pass->books.state->gangs[g];
        if (gang->exists && gang->queue == queue && (is_behind || may_be_helped(answer))) {
            pass->is_done[g] = pass->is_judged[g] = false;
            pass->is_again[g] = true;
        }
    }
}

static bool may_be_helped_by(const struct pass *pass, int g, int grown)
{
    const struct model_state *state = pass->books.state;
    int queue = state->gangs[g].queue;
    int other = state->gangs[grown].queue;
    return state->gangs[g].exists && pass->is_done[g] && may_be_helped(&pass->answers[g]) &&
           queue != other &&
           tree_root(state, COHORTS + queue) == tree_root(state, COHORTS + other) &&
           may_take(pass, g, other);
}

bool look_again(struct pass *pass)
{
    const struct model_state *state = pass->books.state;
    bool is_any = false;
    for (int grown = 0; grown < GANGS; grown++) {
        bool is_first = pass->books.is_new[grown] && !pass->has_grown[grown];
        pass->has_grown[grown] = pass->has_grown[grown] || is_first;
        if (!is_first || !has_grown_beyond_its_own(&pass->books, grown)) {
            continue;
        }
        for (int g = 0; g < GANGS; g++) {
            if (may_be_helped_by(pass, g, grown)) {
                reopen(pass, state->gangs[g].queue);
                is_any = true;
            }
        }
    }
    return is_any;
}
