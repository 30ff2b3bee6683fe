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

static bool borrows(const struct books *books, int member, int g)
{
    const struct model_gang *gang = &books->state->gangs[g];
    for (int r = 0; r < RESOURCES; r++) {
        struct cell at = cell_at(books->flavor[g], r);
        if (gang->ask[r] > 0 && tree_is_borrowing(books, member, at)) {
            return true;
        }
    }
    return false;
}

/* Whether that gang has made its queue, or a branch above it, borrow what it didn't; with fair
 * sharing, or borrow more. */
static bool has_grown_beyond_its_own(const struct books *books, int g)
{
    const struct model_state *state = books->state;
    int queue = COHORTS + state->gangs[g].queue;
    struct books before = *books;
    before.is_charged[g] = false;
    for (int m = queue; state->members[m].parent != NONE; m = state->members[m].parent) {
        if (borrows(books, m, g) && !borrows(&before, m, g)) {
            return true;
        }
    }
    return tree_is_fair(state, tree_root(state, queue)) && borrows(books, queue, g);
}

static int branch_towards(const struct model_state *state, int queue, int other)
{
    int member = COHORTS + queue;
    for (; state->members[member].parent != NONE; member = state->members[member].parent) {
        int above = COHORTS + other;
        while (above != NONE && above != state->members[member].parent) {
            above = state->members[above].parent;
        }
        if (above != NONE) {
            break;
        }
    }
    return member;
}

/* Only by a share that is no higher anything can be taken, whichever of the two rules it is. */
static bool is_share_no_higher(const struct books *books, int g, int other)
{
    const struct model_state *state = books->state;
    const struct model_gang *gang = &state->gangs[g];
    struct share theirs = share_at(books, branch_towards(state, other, gang->queue));
    int choices[CHOICES];
    int count = choices_of(state, g, choices);
    for (int i = 0; i < count; i++) {
        struct books with = *books;
        int mine = branch_towards(state, gang->queue, other);
        with.is_charged[g] = true;
        with.flavor[g] = choices[i];
        with.count[g] = gang->is_partial && gang->min != NONE ? gang->min : gang->count;
        if (!borrows(&with, mine, g) || share_compare(share_at(&with, mine), theirs) <= 0) {
            return true;
        }
    }
    return false;
}

/* A StrictFIFO queue is gone through from its head again, those that were passed over included. */
static void reopen(struct pass *pass, int queue)
{
    bool is_strict = pass->books.state->queues[queue].is_strict;
    pass->is_blocked[queue] = false;
    for (int g = 0; g < GANGS; g++) {
        struct answer *answer = &pass->answers[g];
        bool is_in_line = answer->reason == REASON_BEHIND_IN_QUEUE ||
                          (is_strict && answer->decision == DECISION_WAIT);
        const struct model_gang *gang = &pass->books.state->gangs[g];
        if (gang->exists && gang->queue == queue && (is_in_line || may_be_helped(answer))) {
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
           may_take(pass, g, other) &&
           (!tree_is_fair(state, tree_root(state, COHORTS + queue)) ||
            is_share_no_higher(&pass->books, g, other));
}

/* How much has grown decides who is looked at again, and then which of two moments is told of. */
static void open_reasons(struct pass *pass)
{
    for (int g = 0; g < GANGS; g++) {
        bool may_be = may_be_helped(&pass->answers[g]);
        pass->answers[g].is_reason_open = pass->answers[g].is_reason_open || may_be;
    }
}

/* Less of something that it asks for is used in its queue, or in a branch above it. */
static bool is_relieved(const struct books *before, const struct books *books, int g)
{
    const struct model_state *state = books->state;
    const struct model_gang *gang = &state->gangs[g];
    for (int m = COHORTS + gang->queue; m != NONE; m = state->members[m].parent) {
        for (int f = 0; f < FLAVORS; f++) {
            for (int r = 0; r < RESOURCES; r++) {
                struct cell at = {f, (enum resource)r};
                if (gang->ask[r] > 0 && tree_used(books, m, at) < tree_used(before, m, at)) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* Pods of one that has begun to stop are on nodes that it could use. */
static bool is_room_relieved(const struct books *before, const struct books *books, int g)
{
    const struct model_state *state = books->state;
    int choices[CHOICES];
    int count = choices_of(state, g, choices);
    for (int v = 0; state->is_physical && v < GANGS; v++) {
        bool has_begun = books->is_stopping[v] && !before->is_stopping[v];
        for (int i = 0; has_begun && i < count; i++) {
            if (choice_is_open(state, &state->gangs[g], choices[i]) &&
                nodes_of(choices[i]) == nodes_of(books->flavor[v])) {
                return true;
            }
        }
    }
    return false;
}

void note_relief(struct pass *pass, const struct books *before)
{
    const struct model_state *state = pass->books.state;
    const struct books then = without_stopping(before);
    const struct books now = without_stopping(&pass->books);
    for (int g = 0; g < GANGS; g++) {
        const struct model_queue *queue = &state->queues[state->gangs[g].queue];
        bool may_preempt = queue->within != WITHIN_NEVER || queue->reclaim != RECLAIM_NEVER;
        bool waits = state->gangs[g].exists && pass->is_done[g] && may_be_helped(&pass->answers[g]);
        pass->is_relieved[g] =
            pass->is_relieved[g] ||
            (waits && may_preempt &&
             (is_relieved(&then, &now, g) || is_room_relieved(before, &pass->books, g)));
    }
}

static bool look_again_relieved(struct pass *pass)
{
    bool is_any = false;
    for (int g = 0; g < GANGS; g++) {
        if (pass->is_relieved[g] && pass->is_done[g] && may_be_helped(&pass->answers[g])) {
            reopen(pass, pass->books.state->gangs[g].queue);
            is_any = true;
        }
        pass->is_relieved[g] = false;
    }
    return is_any;
}

bool look_again(struct pass *pass)
{
    const struct model_state *state = pass->books.state;
    bool is_any = look_again_relieved(pass);
    for (int grown = 0; grown < GANGS; grown++) {
        bool is_first = pass->books.is_new[grown] && !pass->has_grown[grown];
        pass->has_grown[grown] = pass->has_grown[grown] || is_first;
        if (is_first) {
            open_reasons(pass);
        }
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
