/* generate.c - random small states: tight quotas, deep little trees, many ties. */
#include <string.h>

#include "model/policy.h"
#include "support/property.h"

/* Flavors of the first group; one more of them for devices, where those have a group of their own.
 */
enum { PLAIN = 3, FIRST_CARD = 2 };

struct dice {
    uint64_t random;
};

static int roll(struct dice *dice, int sides)
{
    return (int)(random_next(&dice->random) % (uint32_t)sides);
}

static bool chance(struct dice *dice, int percent)
{
    return roll(dice, 100) < percent;
}

static void generate_one(struct dice *dice, const struct member *member, struct quota *quota)
{
    quota->nominal = roll(dice, 8);
    if (member->parent != NONE) {
        quota->borrowing = chance(dice, 25) ? roll(dice, 5) : NONE;
        quota->lending = chance(dice, 30) ? roll(dice, quota->nominal + 1) : NONE;
    }
}

static void generate_quota(struct dice *dice, struct member *member, int flavor, int devices)
{
    for (int r = 0; r < RESOURCES; r++) {
        struct quota *quota = &member->quota[flavor][r];
        *quota = (struct quota){NONE, NONE, NONE};
        if (r == DEVICE && devices == 0) {
            continue;
        }
        generate_one(dice, member, quota);
    }
}

static void forget_quota(struct member *member)
{
    for (int f = 0; f < FLAVORS; f++) {
        for (int r = 0; r < RESOURCES; r++) {
            member->quota[f][r] = (struct quota){NONE, NONE, NONE};
        }
    }
}

static void generate_cohorts(struct dice *dice, struct model_state *state, int count, bool is_fair)
{
    for (int c = 0; c < count; c++) {
        struct member *member = &state->members[c];
        *member =
            (struct member){.exists = true, .parent = NONE, .weight = NONE, .half_life_s = NONE};
        forget_quota(member);
        if (c > 0 && chance(dice, 70)) {
            member->parent = roll(dice, c);
        }
        member->is_object = member->parent != NONE || chance(dice, 60);
        if (is_fair && member->is_object && chance(dice, 40)) {
            member->weight = roll(dice, 5);
        }
        for (int f = 0; member->is_object && f < PLAIN; f++) {
            if (chance(dice, 25)) {
                generate_quota(dice, member, f, state->has_devices);
            }
        }
    }
}

static void generate_policy(struct dice *dice, struct model_queue *queue)
{
    queue->within = (enum within)roll(dice, 3);
    queue->reclaim = (enum reclaim)roll(dice, 3);
    queue->borrows_within = queue->reclaim != RECLAIM_NEVER && chance(dice, 40);
    queue->threshold = queue->borrows_within && chance(dice, 50) ? roll(dice, 3) : NONE;
    queue->protect_s = chance(dice, 20) ? 60 * roll(dice, 10) : 0;
    queue->is_strict = chance(dice, 30);
    queue->looks_on_before_borrowing = chance(dice, 40);
    queue->is_stopped = !queue->is_strict && chance(dice, 6);
}

static void generate_queues(struct dice *dice, struct model_state *state, int cohorts, bool is_fair)
{
    int count = 1 + roll(dice, QUEUES);
    for (int q = 0; q < count; q++) {
        struct member *member = &state->members[COHORTS + q];
        struct model_queue *queue = &state->queues[q];
        *member = (struct member){
            .exists = true, .is_object = true, .parent = NONE, .weight = NONE, .half_life_s = NONE};
        queue->past_s = NONE;
        forget_quota(member);
        if (cohorts > 0 && chance(dice, 85)) {
            member->parent = roll(dice, cohorts);
        }
        if (is_fair && chance(dice, 60)) {
            member->weight = roll(dice, 5);
        }
        generate_policy(dice, queue);
        int flavors = 1 + roll(dice, PLAIN);
        int first = roll(dice, PLAIN);
        queue->flavors[FLAVORS - 1] = NONE;
        queue->starvation_s = queue->default_runtime_s = queue->max_runtime_s = NONE;
        for (int i = 0; i < PLAIN; i++) {
            queue->flavors[i] = i < flavors ? (first + i) % PLAIN : NONE;
            if (i < flavors) {
                generate_quota(dice, member, queue->flavors[i], state->has_devices);
            }
        }
    }
}

static void generate_nodes(struct dice *dice, struct model_state *state)
{
    int count = state->is_physical ? 1 + roll(dice, NODES) : 0;
    for (int n = 0; n < count; n++) {
        state->nodes[n] =
            (struct model_node){.exists = true,
                                .flavor = roll(dice, PLAIN),
                                .has = {1 + roll(dice, 6), state->has_devices ? roll(dice, 5) : 0},
                                .pods = chance(dice, 20) ? 1 + roll(dice, 4) : 110};
    }
}

/* Small gangs behind large ones. */
static void generate_sizes(struct dice *dice, const struct model_state *state,
                           struct model_gang *gang)
{
    if (state->is_physical) {
        gang->ask[CPU] = 1;
        gang->ask[DEVICE] = 0;
    }
    if (chance(dice, 40)) {
        gang->count = 1;
        gang->min = NONE;
        gang->priority = roll(dice, 2);
    } else if (chance(dice, 50)) {
        gang->count = 3 + roll(dice, 3);
        gang->min = gang->min > gang->count ? gang->count : gang->min;
        gang->priority = 1 + roll(dice, 3);
    }
}

static void generate_gang(struct dice *dice, struct model_state *state, int g, int queues)
{
    struct model_gang *gang = &state->gangs[g];
    *gang = (struct model_gang){
        .exists = true, .min = NONE, .selector = NONE, .saved_s = NONE, .bound_s = NONE};
    gang->queue = roll(dice, queues);
    gang->priority = roll(dice, 4);
    gang->age_s = 60 * roll(dice, 6) + 600;
    gang->uid = (g * 7 + 3) % 16;
    gang->count = 1 + roll(dice, 4);
    gang->ask[DEVICE] = state->has_devices && chance(dice, 60) ? 1 + roll(dice, 2) : 0;
    gang->ask[CPU] = chance(dice, 70) ? 1 : roll(dice, 4);
    gang->ask[CPU] += gang->ask[CPU] + gang->ask[DEVICE] == 0 ? 1 : 0;
    if (state->has_groups && state->is_physical && gang->ask[CPU] == 0) {
        gang->ask[CPU] = 1; /* a card says nothing about the node */
    }
    if (chance(dice, 25)) {
        gang->min = 1 + roll(dice, gang->count);
        gang->is_partial = chance(dice, 60);
    }
    if (state->keeps_room) {
        generate_sizes(dice, state, gang);
    }
    gang->is_held = chance(dice, 3);
    gang->selector = chance(dice, 10) ? roll(dice, PLAIN) : NONE;
    for (int p = 0; p < PODS_MAX; p++) {
        gang->nodes[p] = NONE;
    }
}

/* Binds its pods to nodes with room; false: they don't all find any. */
static bool bind_pods(struct dice *dice, struct model_state *state, struct model_gang *gang)
{
    for (int p = 0; p < gang->count; p++) {
        int first = roll(dice, NODES);
        for (int i = 0; i < NODES && gang->nodes[p] == NONE; i++) {
            struct model_node *node = &state->nodes[(first + i) % NODES];
            if (node->exists && node->flavor == nodes_of(gang->flavor) && node->pods > 0 &&
                node->has[CPU] >= gang->ask[CPU] && node->has[DEVICE] >= gang->ask[DEVICE]) {
                node->has[CPU] -= gang->ask[CPU];
                node->has[DEVICE] -= gang->ask[DEVICE];
                node->pods--;
                gang->nodes[p] = (first + i) % NODES;
            }
        }
        if (gang->nodes[p] == NONE) {
            return false;
        }
    }
    return true;
}

/* On that flavor, and in a state with two groups on one of its queue's cards; NONE: there is none.
 */
static int generate_choice(struct dice *dice, const struct model_state *state,
                           const struct model_gang *gang, int flavor)
{
    int card = flavor;
    if (state->has_groups && gang->ask[DEVICE] > 0) {
        card = state->queues[gang->queue].cards[roll(dice, 2)];
        if (card == NONE) {
            return NONE;
        }
    }
    return choice_of(gang->ask[CPU] > 0 ? flavor : NONE, gang->ask[DEVICE] > 0 ? card : NONE);
}

/* The room is counted down while pods are bound, in a copy. */
static void generate_running(struct dice *dice, struct model_state *state, struct model_state *left,
                             int g)
{
    struct model_gang *gang = &state->gangs[g];
    struct model_gang running = *gang;
    running.is_running = true;
    running.is_held = false;
    running.selector = NONE;
    int flavor = state->queues[gang->queue].flavors[roll(dice, PLAIN)];
    running.flavor = generate_choice(dice, state, &running, flavor);
    running.runs_s = 60 * roll(dice, 9);
    running.age_s = running.runs_s + 60 * roll(dice, 5);
    running.saved_s = chance(dice, 15) ? 60 * roll(dice, 10) : NONE;
    if (flavor == NONE || running.flavor == NONE) {
        return;
    }
    struct books books = books_at_first(state, NULL);
    bool fits_quota = true;
    for (int r = 0; r < RESOURCES; r++) {
        struct cell at = cell_at(running.flavor, r);
        fits_quota = fits_quota && ask_of(&running, at.resource, running.count) <=
                                       tree_available(&books, COHORTS + running.queue, at);
    }
    struct model_state before = *left;
    if ((fits_quota || chance(dice, 5)) &&
        (!state->is_physical || bind_pods(dice, left, &running))) {
        *gang = running;
    } else {
        *left = before;
    }
}

static void contest_cohort(struct dice *dice, const struct model_state *state, struct quota *quota)
{
    int devices = state->has_devices ? roll(dice, 6) : NONE;
    quota[CPU] = (struct quota){4 + roll(dice, 6), NONE, NONE};
    quota[DEVICE] = (struct quota){devices, NONE, NONE};
}

static void contest_queue(struct dice *dice, struct member *member, struct model_queue *queue)
{
    queue->reclaim = chance(dice, 70) ? RECLAIM_ANY : RECLAIM_LOWER;
    for (int i = chance(dice, 60) ? 1 : PLAIN; i < PLAIN; i++) {
        struct quota *quota = member->quota[(queue->flavors[0] + i) % PLAIN];
        quota[CPU] = quota[DEVICE] = (struct quota){NONE, NONE, NONE};
        queue->flavors[i] = NONE;
    }
    for (int f = 0; f < PLAIN; f++) {
        if (member->quota[f][CPU].nominal != NONE) {
            member->quota[f][CPU] = (struct quota){roll(dice, 3), NONE, NONE};
        }
    }
}

/* Cohorts that own most of the quota, queues that borrow it and may take it back, by shares or not:
 * what states of any kind seldom come to. */
static void contest(struct dice *dice, struct model_state *state)
{
    for (int c = 0; c < COHORTS; c++) {
        for (int f = 0; state->members[c].is_object && f < PLAIN; f++) {
            contest_cohort(dice, state, state->members[c].quota[f]);
        }
    }
    for (int q = 0; q < QUEUES; q++) {
        if (state->members[COHORTS + q].exists) {
            contest_queue(dice, &state->members[COHORTS + q], &state->queues[q]);
        }
    }
}

static void forbid_reclaim(struct model_state *state)
{
    for (int q = 0; q < QUEUES; q++) {
        state->queues[q].reclaim = RECLAIM_NEVER;
        state->queues[q].borrows_within = false;
    }
}

static void generate_gangs(struct dice *dice, struct model_state *state, int running_percent)
{
    int queues = 0;
    while (queues < QUEUES && state->members[COHORTS + queues].exists) {
        queues++;
    }
    int gangs = 2 + roll(dice, GANGS - 1);
    int percent = running_percent == NONE ? 20 + roll(dice, 60) : running_percent;
    struct model_state left = *state;
    for (int g = 0; g < gangs; g++) {
        generate_gang(dice, state, g, queues);
        if (chance(dice, percent)) {
            generate_running(dice, state, &left, g);
        }
    }
    for (int g = gangs; g < GANGS; g++) {
        state->gangs[g] = (struct model_gang){.exists = false};
    }
}

/* -- the past, and classes -----------------------------------------------------------------------
 */

/* Half-lives on some cohorts and queues, and what was used before now. */
static void look_back(struct dice *dice, struct model_state *state)
{
    for (int m = 0; m < MEMBERS; m++) {
        struct member *member = &state->members[m];
        if (member->exists && member->is_object && chance(dice, 40)) {
            member->half_life_s = 60 * (1 + roll(dice, 60));
        }
    }
    for (int q = 0; q < QUEUES; q++) {
        struct model_queue *queue = &state->queues[q];
        if (state->members[COHORTS + q].exists && chance(dice, 60)) {
            queue->past_s = 30 * roll(dice, 40);
            queue->past[CPU] = 100000 * roll(dice, 50);
            queue->past[DEVICE] = state->has_devices ? 100 * roll(dice, 50) : 0;
        }
    }
}

static void name_classes(struct dice *dice, struct model_state *state)
{
    for (int q = 0; q < QUEUES; q++) {
        state->queues[q].classes = chance(dice, 30) ? 1u + (uint32_t)roll(dice, 15) : 0;
    }
}

/* -- room that is kept ----------------------------------------------------------------------------
 */

/* Run-time bounds, and queues that keep room for their heads. */
static void keep_room(struct dice *dice, struct model_state *state)
{
    bool may_preempt = chance(dice, 30);
    for (int q = 0; q < QUEUES; q++) {
        struct model_queue *queue = &state->queues[q];
        queue->is_backfill = !queue->is_strict && chance(dice, 60);
        queue->starvation_s = !queue->is_backfill && chance(dice, 60) ? 60 * roll(dice, 18) : NONE;
        queue->default_runtime_s = chance(dice, 25) ? 60 * (1 + roll(dice, 10)) : NONE;
        queue->max_runtime_s = chance(dice, 20) ? 60 * (11 + roll(dice, 5)) : NONE;
        queue->within = may_preempt ? queue->within : WITHIN_NEVER;
    }
    if (!may_preempt) {
        forbid_reclaim(state);
    }
    for (int g = 0; g < GANGS; g++) {
        state->gangs[g].bound_s = chance(dice, 65) ? 60 * (1 + roll(dice, 15)) : NONE;
    }
}

/* -- two resource groups ------------------------------------------------------------------------
 */

static void split_queue(struct dice *dice, struct model_queue *queue, struct member *member)
{
    int count = 0;
    for (int i = 0; i < PLAIN; i++) {
        if (queue->flavors[i] != NONE && queue->flavors[i] < FIRST_CARD) {
            queue->flavors[count++] = queue->flavors[i];
        }
    }
    if (count == 0) {
        queue->flavors[count++] = 0;
        generate_one(dice, member, &member->quota[0][CPU]);
    }
    int first = roll(dice, 2);
    int cards = 1 + roll(dice, 2);
    for (int i = 0; i < FLAVORS; i++) {
        queue->flavors[i] = i < count ? queue->flavors[i] : NONE;
        queue->cards[i] = i < cards ? FIRST_CARD + (first + i) % 2 : NONE;
        if (i < cards) {
            generate_one(dice, member, &member->quota[queue->cards[i]][DEVICE]);
        }
    }
}

/* Devices get a group of their own: its flavors are cards, whatever the node. */
static void split_groups(struct dice *dice, struct model_state *state)
{
    state->has_groups = true;
    for (int m = 0; m < MEMBERS; m++) {
        struct member *member = &state->members[m];
        for (int f = 0; f < FLAVORS; f++) {
            struct quota *other = &member->quota[f][f < FIRST_CARD ? DEVICE : CPU];
            *other = (struct quota){NONE, NONE, NONE};
        }
        member->quota[FIRST_CARD][DEVICE] = (struct quota){NONE, NONE, NONE};
        if (member->exists && m >= COHORTS) {
            split_queue(dice, &state->queues[m - COHORTS], member);
        }
        for (int f = FIRST_CARD; member->is_object && m < COHORTS && f < FLAVORS; f++) {
            if (chance(dice, 30)) {
                generate_one(dice, member, &member->quota[f][DEVICE]);
            }
        }
    }
}

/* The trees; true: contested ones. */
static bool generate_trees(struct dice *dice, struct model_state *state, struct kinds kinds)
{
    bool is_fair = chance(dice, 40);
    int cohorts = roll(dice, COHORTS + 1);
    generate_cohorts(dice, state, cohorts, is_fair);
    generate_queues(dice, state, cohorts, is_fair);
    bool is_contested = kinds.may_be_contested && cohorts > 0 && chance(dice, 35);
    if (is_contested) {
        contest(dice, state);
    }
    if (kinds.may_have_groups && state->has_devices && chance(dice, 40)) {
        split_groups(dice, state);
    }
    if (is_fair && !kinds.may_be_contested) {
        forbid_reclaim(state);
    }
    return is_contested;
}

void state_generate(struct model_state *state, uint64_t seed, struct kinds kinds)
{
    struct dice dice = {seed * UINT64_C(0x9e3779b97f4a7c15) + 11};
    (void)roll(&dice, 2);
    memset(state, 0, sizeof(*state));
    state->is_physical = chance(&dice, 40);
    state->has_devices = chance(&dice, 60);
    state->is_dra = state->has_devices && chance(&dice, 30);
    bool is_contested = generate_trees(&dice, state, kinds);
    generate_nodes(&dice, state);
    state->keeps_room = kinds.may_keep_room && chance(&dice, 40);
    generate_gangs(&dice, state, is_contested ? 60 : NONE);
    if (state->keeps_room) {
        keep_room(&dice, state);
    }
    if (kinds.may_look_back && chance(&dice, 30)) {
        look_back(&dice, state);
    }
    if (kinds.may_have_classes && chance(&dice, 25)) {
        name_classes(&dice, state);
    }
}
