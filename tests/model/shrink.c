/* shrink.c - drops whatever a disagreement doesn't need. */
#include "model/state.h"

/* A simplification; false: there is nothing to simplify at that index. */
typedef bool (*simplify_fn)(struct model_state *state, int i);

static bool drop_gang(struct model_state *state, int g)
{
    bool was = state->gangs[g].exists;
    state->gangs[g].exists = false;
    state->gangs[g].is_running = false;
    return was;
}

static bool drop_node(struct model_state *state, int n)
{
    if (n >= NODES) {
        return false;
    }
    bool was = state->nodes[n].exists;
    for (int g = 0; g < GANGS; g++) {
        for (int p = 0; p < state->gangs[g].count && state->gangs[g].is_running; p++) {
            was = was && state->gangs[g].nodes[p] != n;
        }
    }
    state->nodes[n].exists = state->nodes[n].exists && !was;
    return was;
}

static bool drop_member(struct model_state *state, int m)
{
    bool was = m < MEMBERS && state->members[m].exists;
    for (int g = 0; g < GANGS && was; g++) {
        was = !state->gangs[g].exists || COHORTS + state->gangs[g].queue != m;
    }
    if (!was) {
        return false;
    }
    state->members[m].exists = false;
    for (int child = 0; child < MEMBERS; child++) {
        if (m < COHORTS && state->members[child].parent == m) {
            state->members[child].parent = state->members[m].parent;
        }
    }
    return true;
}

/* Limits need somebody to borrow from and lend to. */
static bool leave_cohort(struct model_state *state, int m)
{
    if (m >= MEMBERS || !state->members[m].exists || state->members[m].parent == NONE) {
        return false;
    }
    state->members[m].parent = NONE;
    for (int f = 0; f < FLAVORS; f++) {
        for (int r = 0; r < RESOURCES; r++) {
            state->members[m].quota[f][r].borrowing = NONE;
            state->members[m].quota[f][r].lending = NONE;
        }
    }
    return true;
}

static bool clear(int *value, int to)
{
    bool was = *value != to;
    *value = to;
    return was;
}

static bool unset(bool *value)
{
    bool was = *value;
    *value = false;
    return was;
}

static bool drop_limit(struct model_state *state, int i)
{
    int m = i / (2 * FLAVORS * RESOURCES);
    if (m >= MEMBERS) {
        return false;
    }
    struct quota *quota =
        &state->members[m].quota[i / (2 * RESOURCES) % FLAVORS][i / 2 % RESOURCES];
    return clear(i % 2 == 0 ? &quota->borrowing : &quota->lending, NONE);
}

static bool drop_cohort_quota(struct model_state *state, int i)
{
    if (i >= COHORTS * FLAVORS) {
        return false;
    }
    bool was = false;
    for (int r = 0; r < RESOURCES; r++) {
        struct quota *quota = &state->members[i / FLAVORS].quota[i % FLAVORS][r];
        was = clear(&quota->nominal, NONE) || was;
    }
    return was;
}

static bool simplify_queue(struct model_state *state, int i)
{
    struct model_queue *queue = &state->queues[i % QUEUES];
    switch (i / QUEUES) {
    case 0:
        return unset(&queue->is_strict);
    case 1:
        return unset(&queue->looks_on_before_borrowing);
    case 2:
        return clear(&queue->protect_s, 0);
    case 3:
        return clear(&queue->threshold, NONE);
    case 4:
        queue->threshold = NONE;
        return unset(&queue->borrows_within);
    case 5: {
        bool was = queue->within != WITHIN_NEVER;
        queue->within = WITHIN_NEVER;
        return was;
    }
    case 6: {
        bool was = queue->reclaim != RECLAIM_NEVER && !queue->borrows_within;
        queue->reclaim = was ? RECLAIM_NEVER : queue->reclaim;
        return was;
    }
    case 7:
        return unset(&queue->is_backfill);
    case 8:
        return clear(&queue->starvation_s, NONE);
    case 9:
        return clear(&queue->default_runtime_s, NONE);
    case 10:
        return clear(&queue->max_runtime_s, NONE);
    case 11:
        queue->past[CPU] = queue->past[DEVICE] = 0;
        return clear(&queue->past_s, NONE);
    case 12: {
        bool was = queue->classes != 0;
        queue->classes = 0;
        return was;
    }
    default:
        return false;
    }
}

static bool simplify_gang(struct model_state *state, int i)
{
    struct model_gang *gang = &state->gangs[i % GANGS];
    bool is_bound = gang->is_running;
    switch (i / GANGS) {
    case 0:
        gang->is_partial = false;
        return clear(&gang->min, NONE);
    case 1:
        return clear(&gang->selector, NONE);
    case 2:
        return !is_bound && (gang->ask[CPU] > 0 || gang->ask[DEVICE] == 0) &&
               clear(&gang->ask[DEVICE], 0);
    case 3:
        return !is_bound && clear(&gang->ask[CPU], 1);
    case 4:
        return clear(&gang->priority, 0);
    case 5:
        return clear(&gang->saved_s, NONE);
    case 6:
        return unset(&gang->is_held);
    case 7:
        return clear(&gang->bound_s, NONE);
    default:
        return false;
    }
}

static bool simplify_all(struct model_state *state, int i)
{
    switch (i) {
    case 0:
        for (int n = 0; n < NODES; n++) {
            state->nodes[n].exists = false;
        }
        for (int g = 0; g < GANGS; g++) {
            for (int p = 0; p < PODS_MAX; p++) {
                state->gangs[g].nodes[p] = NONE;
            }
        }
        return unset(&state->is_physical);
    case 1:
        return unset(&state->is_dra);
    default:
        return i < 2 + MEMBERS ? clear(&state->members[i - 2].weight, NONE)
                               : i < 2 + 2 * MEMBERS &&
                                     clear(&state->members[i - 2 - MEMBERS].half_life_s, NONE);
    }
}

/* More than any simplification has. */
#define TRIES (8 * GANGS)

void state_shrink(struct model_state *state, differs_fn differs)
{
    static const simplify_fn steps[] = {drop_gang,   simplify_all,   drop_node,
                                        drop_member, leave_cohort,   drop_cohort_quota,
                                        drop_limit,  simplify_queue, simplify_gang};
    bool has_shrunk = true;
    while (has_shrunk) {
        has_shrunk = false;
        for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
            for (int i = 0; i < TRIES; i++) {
                struct model_state smaller = *state;
                if ((s != 0 || i < GANGS) && steps[s](&smaller, i) && differs(&smaller)) {
                    *state = smaller;
                    has_shrunk = true;
                }
            }
        }
    }
}
