/* past.c - fairness over time (decision 014): with a half-life those go first who have used less so
 * far, the longer ago the less, present use as if it had gone on for ever. Who is only thought to
 * be gone has used what he has used. */
#include <math.h>

#include "model/policy.h"

static const double LN2 = 0.6931471805599453094;

/* Its own, else that of the nearest cohort above. */
static int half_life_of(const struct model_state *state, int member)
{
    while (member != NONE && state->members[member].half_life_s == NONE) {
        member = state->members[member].parent;
    }
    return member == NONE ? NONE : state->members[member].half_life_s;
}

/* What a use of 1 adds that began so long ago and goes on: its early part has faded. */
static double grown(double seconds, double half_life_s)
{
    return half_life_s / LN2 * (1.0 - exp2(-seconds / half_life_s));
}

/* Of a queue, in thousandths of cpu or in devices, times seconds. */
static double used_by_queue(const struct books *books, int q, enum resource r)
{
    const struct model_state *state = books->state;
    const struct model_queue *queue = &state->queues[q];
    double half_life_s = half_life_of(state, COHORTS + q);
    double unit = r == CPU ? 1000.0 : 1.0;
    bool is_told = queue->past_s != NONE;
    if (half_life_s < 0) {
        return 0.0;
    }
    double sum = is_told ? queue->past[r] * exp2(-queue->past_s / half_life_s) : 0.0;
    for (int g = 0; g < GANGS; g++) {
        const struct model_gang *gang = &state->gangs[g];
        if (!books->is_using[g] || gang->queue != q) {
            continue;
        }
        int since_s = books->is_new[g] || !is_told   ? 0
                      : gang->runs_s < queue->past_s ? gang->runs_s
                                                     : queue->past_s;
        double use = unit * ask_of(gang, r, books->count[g]);
        sum += use * (grown(since_s, half_life_s) + half_life_s / LN2);
    }
    return sum;
}

static double used_below(const struct books *books, int member, enum resource r)
{
    if (member >= COHORTS) {
        return used_by_queue(books, member - COHORTS, r);
    }
    double sum = 0.0;
    for (int child = 0; child < MEMBERS; child++) {
        const struct member *below = &books->state->members[child];
        sum += below->exists && below->parent == member ? used_below(books, child, r) : 0.0;
    }
    return sum;
}

/* Of what its parent could give, of the resource where that is most, in whole seconds. */
struct share past_of(const struct books *books, int member)
{
    const struct model_state *state = books->state;
    struct share most = {false, 0, 1};
    int parent = state->members[member].parent;
    for (int r = 0; parent != NONE && r < RESOURCES; r++) {
        int64_t used = (int64_t)floor(used_below(books, member, (enum resource)r));
        int64_t whole = 0;
        for (int f = 0; f < FLAVORS; f++) {
            struct cell at = {f, (enum resource)r};
            whole += tree_potential(state, parent, at) * (r == CPU ? 1000 : 1);
        }
        if (used > 0 && whole == 0) {
            return (struct share){true, used, 1}; /* of nothing */
        }
        if (used > 0 && used * most.denominator > most.numerator * whole) {
            most = (struct share){false, used, whole};
        }
    }
    int weight = state->members[member].weight == NONE ? 2 : state->members[member].weight;
    most.is_last = weight == 0 && most.numerator > 0;
    most.denominator *= weight == 0 ? 1 : weight;
    return most;
}
