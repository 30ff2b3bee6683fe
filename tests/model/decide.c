/* decide.c - one pass: the next gang by policy is judged against what is held now, until nobody is
 * left who could start. */
#include <string.h>

#include "model/policy.h"

enum mode { MODE_WAIT, MODE_FIT, MODE_PREEMPT };

struct proposal {
    enum mode mode;
    int flavor;
    int count;
    int height;
    uint32_t victims;
    enum reason reason;
};

/* -- one gang on one flavor ---------------------------------------------------------------------
 */

/* A flavor without a node is none, unless there is no node at all yet. */
static bool has_nodes(const struct model_state *state, int flavor)
{
    bool has_any = false;
    for (int n = 0; n < NODES; n++) {
        has_any = has_any || state->nodes[n].exists;
        if (state->nodes[n].exists && state->nodes[n].flavor == nodes_of(flavor)) {
            return true;
        }
    }
    return !state->is_physical || !has_any;
}

bool could_have_quota(const struct books *books, int g, int flavor, int count)
{
    const struct model_gang *gang = &books->state->gangs[g];
    for (int r = 0; r < RESOURCES; r++) {
        struct cell at = cell_at(flavor, r);
        int demand = ask_of(gang, (enum resource)r, count);
        if (demand > 0 && demand > tree_potential(books->state, COHORTS + gang->queue, at)) {
            return false;
        }
    }
    return true;
}

static bool could_ever_fit(const struct books *books, int g, int flavor, int count)
{
    return could_have_quota(books, g, flavor, count) && room_could_be(books, g, flavor) &&
           has_nodes(books->state, flavor);
}

static int height_on(const struct books *books, int g, int flavor, int count)
{
    const struct model_gang *gang = &books->state->gangs[g];
    int height = 0;
    for (int r = 0; r < RESOURCES; r++) {
        struct cell at = cell_at(flavor, r);
        int demand = ask_of(gang, (enum resource)r, count);
        int h = demand > 0 ? tree_height(books, gang->queue, at, demand) : 0;
        height = h > height ? h : height;
    }
    return height;
}

static bool has_quota(const struct books *books, int g, int flavor, int count)
{
    struct model_state roomy = *books->state;
    roomy.is_physical = false;
    struct books there = *books;
    there.state = &roomy;
    there.kept = NULL;
    return books_fit(&there, g, flavor, count, MEMBERS, 0);
}

static int nearness(enum reason reason)
{
    static const enum reason ranks[] = {REASON_NO_MATCHING_FLAVOR, REASON_NEVER_FITS,
                                        REASON_QUOTA_EXHAUSTED, REASON_NODES_FULL};
    int rank = (int)ARRAY_COUNT(ranks);
    while (rank > 0 && ranks[rank - 1] != reason) {
        rank--;
    }
    return rank;
}

static enum reason reason_on(const struct books *books, int g, int flavor)
{
    const struct model_gang *gang = &books->state->gangs[g];
    int least = gang->is_partial && gang->min != NONE ? gang->min : gang->count;
    if (!choice_is_open(books->state, gang, flavor)) {
        return REASON_NO_MATCHING_FLAVOR;
    }
    if (!could_have_quota(books, g, flavor, least)) {
        return REASON_NEVER_FITS;
    }
    if (!has_nodes(books->state, flavor)) {
        return REASON_NO_MATCHING_FLAVOR;
    }
    if (!room_is_ever_enough(books, g, flavor, least)) {
        return REASON_NEVER_FITS;
    }
    return has_quota(books, g, flavor, least) ? REASON_NODES_FULL : REASON_QUOTA_EXHAUSTED;
}

/* Whatever ends, it can't start on any of its choices: it keeps nobody behind it. */
static bool is_never(const struct books *books, int g)
{
    int choices[CHOICES];
    int count = choices_of(books->state, g, choices);
    for (int i = 0; i < count; i++) {
        if (!reason_info(reason_on(books, g, choices[i]))->is_passed_over) {
            return false;
        }
    }
    return count > 0;
}

/* The nearest to a start is told (decision 006): room, then quota, then what can never be. */
static enum reason reason_for(const struct books *books, int g)
{
    int choices[CHOICES];
    int count = choices_of(books->state, g, choices);
    enum reason nearest = REASON_NONE;
    for (int i = 0; i < count; i++) {
        enum reason reason = reason_on(books, g, choices[i]);
        nearest = nearness(reason) > nearness(nearest) ? reason : nearest;
    }
    return nearest;
}

/* -- one gang -----------------------------------------------------------------------------------
 */

/* Where a kept room forbids as many as there would be room for, fewer aren't tried. */
static void try_to_fit(const struct books *books, int g, int count, bool is_denied[CHOICES],
                       struct proposal *proposal)
{
    struct books free = *books;
    free.kept = NULL;
    const struct model_gang *gang = &books->state->gangs[g];
    const struct model_queue *queue = &books->state->queues[gang->queue];
    int choices[CHOICES];
    int choice_count = choices_of(books->state, g, choices);
    for (int i = 0; i < choice_count; i++) {
        int flavor = choices[i];
        if (!choice_is_open(books->state, gang, flavor) || !has_nodes(books->state, flavor) ||
            is_denied[i] || !books_fit(&free, g, flavor, count, MEMBERS, 0)) {
            continue;
        }
        is_denied[i] = !books_fit(books, g, flavor, count, MEMBERS, 0);
        if (is_denied[i]) {
            continue;
        }
        int height = height_on(books, g, flavor, count);
        bool is_first = proposal->mode != MODE_FIT;
        if (is_first || (queue->looks_on_before_borrowing && height < proposal->height)) {
            *proposal = (struct proposal){MODE_FIT, flavor, count, height, 0, REASON_NONE};
        }
    }
}

struct books without_stopping(const struct books *books)
{
    struct books left = *books;
    for (int g = 0; g < GANGS; g++) {
        left.is_charged[g] = left.is_charged[g] && !left.is_stopping[g];
    }
    return left;
}

int most_that_fit(const struct books *books, int g, int flavor, int count, int height_max,
                  uint32_t victims)
{
    int most = books->state->gangs[g].count;
    while (most > count && !books_fit(books, g, flavor, most, height_max, victims)) {
        most--;
    }
    return most;
}

/* There is room on some flavor, and it is only that others' pods aren't placed yet. */
static bool has_only_to_wait(const struct books *books, int g, int count)
{
    const struct model_gang *gang = &books->state->gangs[g];
    int choices[CHOICES];
    int choice_count = choices_of(books->state, g, choices);
    for (int i = 0; i < choice_count; i++) {
        int flavor = choices[i];
        if (!choice_is_open(books->state, gang, flavor) || !has_nodes(books->state, flavor) ||
            !has_quota(books, g, flavor, count)) {
            continue;
        }
        /* Who would find a place depends on where others are placed: the core's word counts. */
        bool is_the_cores = books->core[g].reason == REASON_RESERVED_FOR_OTHER;
        if (room_is_only_promised(books, g, flavor, count) ||
            (is_the_cores && room_beside_bound(books, g, flavor, count))) {
            return true;
        }
    }
    return false;
}

static void try_to_preempt(const struct books *now, int g, int count, struct proposal *proposal)
{
    const struct books books = without_stopping(now);
    const struct model_gang *gang = &books.state->gangs[g];
    int choices[CHOICES];
    int choice_count = choices_of(books.state, g, choices);
    if (has_only_to_wait(now, g, count) || has_only_to_wait(&books, g, count)) {
        return;
    }
    for (int i = 0; i < choice_count; i++) {
        int flavor = choices[i];
        bool is_the_cores = now->core[g].decision == DECISION_PREEMPT;
        if (is_the_cores && now->core[g].flavor != flavor) {
            continue; /* which of several is no matter of these rules */
        }
        if (proposal->mode != MODE_WAIT || !choice_is_open(books.state, gang, flavor) ||
            !could_ever_fit(&books, g, flavor, count)) {
            continue;
        }
        int height_max = MEMBERS;
        uint32_t victims = stops_find(&books, g, flavor, count, &height_max);
        if (victims != 0) {
            *proposal = (struct proposal){MODE_PREEMPT, flavor,
                                          count,        height_on(&books, g, flavor, count),
                                          victims,      REASON_WAITING_FOR_VICTIMS};
            proposal->count = most_that_fit(&books, g, flavor, count, height_max, victims);
        }
    }
}

static int least_count(const struct model_gang *gang)
{
    return gang->is_partial && gang->min != NONE ? gang->min : gang->count;
}

static struct proposal fit_most(const struct books *books, int g)
{
    const struct model_gang *gang = &books->state->gangs[g];
    struct proposal proposal = {.mode = MODE_WAIT};
    bool is_denied[CHOICES] = {false};
    int least = least_count(gang);
    for (int count = gang->count; count >= least && proposal.mode == MODE_WAIT; count--) {
        try_to_fit(books, g, count, is_denied, &proposal);
    }
    return proposal;
}

bool fits_somewhere(const struct books *books, int g, int *ret_choice, int *ret_count)
{
    struct books free = *books;
    free.kept = NULL;
    struct proposal proposal = fit_most(&free, g);
    if (proposal.mode == MODE_WAIT) {
        return false;
    }
    *ret_choice = proposal.flavor;
    *ret_count = proposal.count;
    return true;
}

/* With as many pods as can be; and only where not even the fewest can, by stopping others. */
static struct proposal judge(const struct books *books, int g)
{
    const struct model_gang *gang = &books->state->gangs[g];
    struct proposal proposal = fit_most(books, g);
    int least = least_count(gang);
    if (proposal.mode == MODE_WAIT) {
        try_to_preempt(books, g, least, &proposal);
    }
    if (proposal.mode == MODE_WAIT) {
        /* What is only promised is looked at again when it is bound, and not before. */
        bool is_promised =
            books->core[g].reason == REASON_RESERVED_FOR_OTHER && has_only_to_wait(books, g, least);
        proposal.reason = is_promised ? REASON_RESERVED_FOR_OTHER : reason_for(books, g);
        proposal.count = gang->count;
    }
    return proposal;
}

/* -- whose turn ---------------------------------------------------------------------------------
 */

/* What quota alone would give a gang: the order between queues looks at no node. */
static int count_by_quota(const struct books *books, int g, int flavor)
{
    const struct model_gang *gang = &books->state->gangs[g];
    int count = gang->count;
    while (count > least_count(gang) && !has_quota(books, g, flavor, count)) {
        count--;
    }
    return count;
}

struct turn turn_of(const struct books *books, int g)
{
    const struct model_gang *gang = &books->state->gangs[g];
    const struct model_queue *queue = &books->state->queues[gang->queue];
    struct turn turn = {.gang = g, .flavor = NONE, .count = gang->count, .is_hopeless = true};
    bool has_quota_now = false;
    int choices[CHOICES];
    int choice_count = choices_of(books->state, g, choices);
    for (int i = 0; i < choice_count; i++) {
        int flavor = choices[i];
        int count = count_by_quota(books, g, flavor);
        if (!choice_is_open(books->state, gang, flavor) ||
            !could_have_quota(books, g, flavor, count)) {
            continue;
        }
        bool is_free = has_quota(books, g, flavor, count);
        int height = height_on(books, g, flavor, count);
        bool is_lower = (queue->looks_on_before_borrowing || !is_free) && height < turn.height;
        bool is_freer = is_free && !has_quota_now;
        if (turn.flavor == NONE || is_freer || (is_free == has_quota_now && is_lower)) {
            turn = (struct turn){g, flavor, count, height, false};
            has_quota_now = is_free;
        }
    }
    return turn;
}

/* -- the pass -----------------------------------------------------------------------------------
 */

static int head_of(const struct pass *pass, int queue)
{
    int head = NONE;
    for (int g = 0; g < GANGS; g++) {
        bool is_of = pass->books.state->gangs[g].exists && !pass->is_done[g] &&
                     pass->books.state->gangs[g].queue == queue;
        if (is_of && (head == NONE || is_ahead(pass->books.state, g, head))) {
            head = g;
        }
    }
    return head;
}

static void wait_for(struct pass *pass, int g, enum reason reason)
{
    pass->is_done[g] = true;
    pass->answers[g] = (struct answer){.decision = DECISION_WAIT,
                                       .count = pass->books.state->gangs[g].count,
                                       .flavor = NONE,
                                       .reason = reason,
                                       .is_reason_open = pass->is_again[g]};
}

/* Behind the gang that blocks: who could never start is told so. */
static enum reason reason_behind(const struct books *books, int g)
{
    enum reason reason = reason_for(books, g);
    return is_never(books, g) && reason_info(reason)->is_passed_over ? reason
                                                                     : REASON_BEHIND_IN_QUEUE;
}

/* The first in line that isn't settled; behind a blocker everybody is. */
static int first_of(struct pass *pass, int queue)
{
    int g = head_of(pass, queue);
    while (g != NONE && pass->is_blocked[queue]) {
        wait_for(pass, g, reason_behind(&pass->books, g));
        g = head_of(pass, queue);
    }
    return g;
}

static enum reason twins_reason(const struct pass *pass, int g)
{
    for (int t = 0; t < GANGS; t++) {
        const struct model_gang *twin = &pass->books.state->gangs[t];
        if (pass->is_judged[t] && is_twin(twin, &pass->books.state->gangs[g])) {
            return pass->answers[t].reason;
        }
    }
    return REASON_NONE;
}

/* Gangs of a queue that ask the same are judged once: those behind have no better chance. */
static void park(struct pass *pass, int g, enum reason reason)
{
    wait_for(pass, g, reason);
    if (pass->books.state->queues[pass->books.state->gangs[g].queue].is_strict) {
        return; /* there each is looked at when those before it have been passed over */
    }
    for (int t = 0; t < GANGS; t++) {
        const struct model_gang *twin = &pass->books.state->gangs[t];
        if (twin->exists && !pass->is_done[t] && is_twin(twin, &pass->books.state->gangs[g])) {
            wait_for(pass, t, reason);
        }
    }
}

static void charge(struct pass *pass, int g, const struct proposal *proposal)
{
    struct books *books = &pass->books;
    const struct books before = *books;
    const struct model_gang *gang = &books->state->gangs[g];
    int places = books->state->is_physical ? room_places(books, g, proposal->flavor) : 0;
    int needed = pods_needed(gang, proposal->count); /* found to have room, whatever else is said */
    places = places > needed ? places : needed;
    pass->is_done[g] = true;
    pass->answers[g] = (struct answer){
        .decision = proposal->mode == MODE_FIT ? DECISION_ADMIT : DECISION_PREEMPT,
        .count = proposal->count,
        .flavor = proposal->flavor,
        .victims = proposal->victims,
        .reason = proposal->reason,
    };
    books->is_charged[g] = books->is_using[g] = true;
    books->is_new[g] = true;
    books->is_reserved[g] = proposal->mode == MODE_PREEMPT;
    books->flavor[g] = proposal->flavor;
    books->count[g] = proposal->count;
    books->promised[g] =
        places < proposal->count && proposal->mode == MODE_FIT ? places : proposal->count;
    for (int v = 0; v < GANGS; v++) {
        if ((proposal->victims >> v & 1) != 0) {
            books->is_stopping[v] = true;
            pass->answers[v].decision = DECISION_EVICT;
        }
    }
    if (proposal->victims != 0) {
        note_relief(pass, &before);
    }
}

static void settle_those_out_of_the_pass(struct pass *pass)
{
    const struct model_state *state = pass->books.state;
    for (int g = 0; g < GANGS; g++) {
        const struct model_gang *gang = &state->gangs[g];
        struct answer *answer = &pass->answers[g];
        *answer = (struct answer){.count = gang->count, .flavor = NONE};
        pass->is_done[g] = true;
        if (gang->exists && gang->is_running) {
            answer->decision = DECISION_KEEP;
            answer->flavor = gang->flavor;
        } else if (gang->exists && gang->is_held) {
            answer->decision = DECISION_HELD;
            answer->reason = REASON_HELD;
        } else if (gang->exists && !is_class_allowed(state, gang)) {
            answer->decision = DECISION_INVALID;
            answer->reason = REASON_INVALID;
        } else if (gang->exists && state->queues[gang->queue].is_stopped) {
            wait_for(pass, g, REASON_QUEUE_STOPPED);
        } else if (gang->exists) {
            pass->is_done[g] = false;
        }
    }
}

/* The twin of one that was passed over is as well. */
static void settle(struct pass *pass, int queue, int g)
{
    enum reason known = twins_reason(pass, g);
    struct proposal proposal = {.mode = MODE_WAIT, .reason = known};
    proposal = known == REASON_NONE ? judge(&pass->books, g) : proposal;
    if (proposal.mode != MODE_WAIT) {
        charge(pass, g, &proposal);
        return;
    }
    pass->is_blocked[queue] = pass->books.state->queues[queue].is_strict && known == REASON_NONE &&
                              !reason_info(proposal.reason)->is_passed_over &&
                              !is_never(&pass->books, g);
    pass->is_judged[g] = true;
    park(pass, g, proposal.reason);
}

void model_answer(const struct model_state *state, const struct answer core[GANGS],
                  struct answer answers[GANGS])
{
    struct pass pass = {.books = books_at_first(state, core), .answers = answers};
    settle_those_out_of_the_pass(&pass);
    for (int g = 0; g < GANGS; g++) {
        pass.said_s[g] = NONE;
    }
    for (;;) {
        struct keeping keeping;
        keep_work_out(&pass, &keeping);
        pass.books.kept = &keeping;
        struct turn turns[QUEUES];
        for (int q = 0; q < QUEUES; q++) {
            int g = first_of(&pass, q);
            turns[q] = g == NONE ? (struct turn){.gang = NONE} : turn_of(&pass.books, g);
        }
        int next = turn_next(&pass.books, turns);
        if (next == NONE && (look_again(&pass) || keep_look_again(&pass))) {
            continue;
        }
        if (next == NONE) {
            return;
        }
        settle(&pass, next, turns[next].gang);
    }
}
