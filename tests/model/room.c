/* room.c - nodes: do the pods find their places wherever others land?
 *
 * Two answers bound the core's. It may not admit where some order and choice of nodes leaves a pod
 * without a place: every one is tried. It has to admit where decision 001's estimate grants it.
 * Between the two it may wait. */
#include <string.h>

#include "model/policy.h"

enum { GROUPS_MAX = 5, TRIED_MAX = 1 << 14 };

/* Pods on their way, alike. */
struct group {
    const int *ask;
    int made; /* so many will be created */
    int need; /* and so many have to find a place */
};

struct place {
    int left[RESOURCES];
    int pods;
};

struct question {
    struct place places[NODES];
    struct group groups[GANGS + 1];
    int group_count;
};

static void take(struct place *place, const int ask[RESOURCES], int pods)
{
    for (int r = 0; r < RESOURCES; r++) {
        place->left[r] -= ask[r] * pods;
    }
    place->pods -= pods;
}

static bool has_place(const struct place *place, const int ask[RESOURCES])
{
    bool has = place->pods >= 1;
    for (int r = 0; r < RESOURCES; r++) {
        has = has && (ask[r] == 0 || place->left[r] >= ask[r]);
    }
    return has;
}

static int places_alone(const struct place *places, const int ask[RESOURCES])
{
    int sum = 0;
    for (int n = 0; n < NODES; n++) {
        struct place place = places[n];
        while (has_place(&place, ask)) {
            take(&place, ask, 1);
            sum++;
        }
    }
    return sum;
}

static int unbound(const struct model_gang *gang)
{
    int sum = 0;
    for (int p = 0; p < gang->count; p++) {
        sum += gang->nodes[p] == NONE ? 1 : 0;
    }
    return sum;
}

static void place_bound(const struct books *books, struct place places[NODES])
{
    for (int g = 0; g < GANGS; g++) {
        const struct model_gang *gang = &books->state->gangs[g];
        for (int p = 0; books->is_charged[g] && !books->is_new[g] && p < gang->count; p++) {
            if (gang->nodes[p] != NONE) {
                take(&places[gang->nodes[p]], gang->ask, 1);
            }
        }
    }
}

static struct group on_its_way(const struct books *books, int g)
{
    const struct model_gang *gang = &books->state->gangs[g];
    int made = books->is_new[g] ? books->count[g] : unbound(gang);
    if (books->is_later) { /* bound by then */
        bool is_limited = books->bound_max[g] != NONE && made > books->bound_max[g];
        return (struct group){gang->ask, is_limited ? books->bound_max[g] : made, 0};
    }
    return (struct group){gang->ask, made, books->is_new[g] ? books->promised[g] : made};
}

static struct question ask_about(const struct books *books, int flavor)
{
    struct question question = {.group_count = 0};
    for (int n = 0; n < NODES; n++) {
        const struct model_node *node = &books->state->nodes[n];
        if (node->exists && node->flavor == nodes_of(flavor)) {
            memcpy(question.places[n].left, node->has, sizeof(node->has));
            question.places[n].pods = node->pods;
        }
    }
    place_bound(books, question.places);
    for (int g = 0; g < GANGS; g++) {
        struct group group = on_its_way(books, g);
        if (books->is_charged[g] && nodes_of(books->flavor[g]) == nodes_of(flavor) &&
            group.made > 0) {
            question.groups[question.group_count++] = group;
        }
    }
    return question;
}

/* -- decision 001's estimate --------------------------------------------------------------------
 */

static int cost(const int ask[RESOURCES], const int other[RESOURCES])
{
    int most = 1; /* of the pods that a node takes */
    for (int r = 0; r < RESOURCES; r++) {
        int places = ask[r] > 0 ? (other[r] + ask[r] - 1) / ask[r] : 0;
        most = places > most ? places : most;
    }
    return most;
}

static bool estimate_grants(const struct question *question)
{
    for (int i = 0; i < question->group_count; i++) {
        const struct group *group = &question->groups[i];
        int places = places_alone(question->places, group->ask);
        for (int j = 0; j < question->group_count; j++) {
            const struct group *other = &question->groups[j];
            places -= i == j ? 0 : other->made * cost(group->ask, other->ask);
        }
        if (group->need > 0 && places < group->need) {
            return false;
        }
    }
    return true;
}

/* -- every order and choice ---------------------------------------------------------------------
 */

struct search {
    struct question question;
    int placed[GROUPS_MAX];
    uint64_t position; /* three bits for each group on each node */
    uint64_t *tried;
    int tried_count;
};

static bool was_tried(struct search *search)
{
    uint64_t key = search->position + 1;
    uint64_t slot = (key * 0x9e3779b97f4a7c15u) >> 49;
    while (search->tried[slot] != 0 && search->tried[slot] != key) {
        slot = (slot + 1) % (2 * TRIED_MAX);
    }
    bool was = search->tried[slot] == key;
    search->tried[slot] = key;
    search->tried_count += was ? 0 : 1;
    return was;
}

static bool always_placed(struct search *search);

/* Goes on with a pod of that group on each node in turn; sets whether there was any. */
static bool place_one(struct search *search, int g, bool *ret_has_place)
{
    struct group *group = &search->question.groups[g];
    for (int n = 0; n < NODES; n++) {
        struct place *place = &search->question.places[n];
        if (!has_place(place, group->ask)) {
            continue;
        }
        *ret_has_place = true;
        uint64_t step = UINT64_C(1) << (3 * (g * NODES + n));
        take(place, group->ask, 1);
        search->placed[g]++;
        search->position += step;
        bool holds = always_placed(search);
        search->position -= step;
        search->placed[g]--;
        take(place, group->ask, -1);
        if (!holds) {
            return false;
        }
    }
    return true;
}

static bool always_placed(struct search *search)
{
    if (search->tried_count >= TRIED_MAX || was_tried(search)) {
        return true;
    }
    for (int g = 0; g < search->question.group_count; g++) {
        bool has = search->placed[g] >= search->question.groups[g].need;
        if (search->placed[g] < search->question.groups[g].made && !place_one(search, g, &has)) {
            return false;
        }
        if (!has) {
            return false;
        }
    }
    return true;
}

static bool is_safe(const struct question *question)
{
    static uint64_t tried[2 * TRIED_MAX];
    if (question->group_count > GROUPS_MAX) {
        return true;
    }
    memset(tried, 0, sizeof(tried));
    struct search search = {.question = *question, .tried = tried};
    return always_placed(&search);
}

static bool are_alike(const struct question *question)
{
    for (int i = 1; i < question->group_count; i++) {
        if (memcmp(question->groups[i].ask, question->groups[0].ask, sizeof(int[RESOURCES])) != 0) {
            return false;
        }
    }
    return true;
}

static enum room answer(const struct question *question)
{
    if (estimate_grants(question)) {
        return ROOM_YES;
    }
    return are_alike(question) || !is_safe(question) ? ROOM_NO : ROOM_EITHER;
}

/* -- with gangs that are stopping for others ----------------------------------------------------
 */

/* Those whose victims are still there come later. */
static struct books before_victims_are_gone(const struct books *books)
{
    struct books now = *books;
    for (int g = 0; g < GANGS; g++) {
        bool waits = now.is_new[g] && now.is_reserved[g];
        now.is_charged[g] = now.is_charged[g] && !waits;
    }
    return now;
}

static enum room room_in(const struct books *books, const struct group *group, int flavor)
{
    struct question question = ask_about(books, flavor);
    question.groups[question.group_count++] = *group;
    return answer(&question);
}

/* Those that fit beside the others' pods as these would be placed first: all that will be made, or
 * only those that have to find a place. */
static int places_beside(const struct books *books, int gang, int flavor, bool is_of_all)
{
    struct question question = ask_about(books, flavor);
    for (int g = 0; g < question.group_count; g++) {
        const struct group *group = &question.groups[g];
        for (int pods = is_of_all ? group->made : group->need; pods > 0; pods--) {
            for (int n = 0; n < NODES; n++) {
                if (has_place(&question.places[n], group->ask)) {
                    take(&question.places[n], group->ask, 1);
                    break;
                }
            }
        }
    }
    return places_alone(question.places, books->state->gangs[gang].ask);
}

enum room room_for(const struct books *books, int gang, int flavor, int count, int need)
{
    if (!books->state->is_physical) {
        return ROOM_YES;
    }
    struct group group = {books->state->gangs[gang].ask, count, need};
    enum room all = room_in(books, &group, flavor);
    if (need < count && all == ROOM_YES && !books->is_later) {
        /* All that can be placed are promised, so the core may look whether all those are safe. */
        int places = places_beside(books, gang, flavor, false);
        group.need = places < count ? places : count;
        all = room_in(books, &group, flavor) == ROOM_YES ? ROOM_YES : ROOM_EITHER;
        group.need = need;
    }
    bool has_stopping = false;
    for (int g = 0; g < GANGS; g++) {
        has_stopping = has_stopping || books->is_stopping[g];
    }
    if (all == ROOM_YES || !has_stopping) {
        return all;
    }
    /* A place that a victim leaves may be taken by a pod that was let go beside it, if that isn't
     * bound by then; the core takes that chance. */
    struct books now = before_victims_are_gone(books);
    return room_in(&now, &group, flavor) == ROOM_NO ? ROOM_NO : ROOM_EITHER;
}

int room_now(const struct books *books, int gang, int flavor)
{
    struct books bound = *books;
    for (int g = 0; g < GANGS; g++) {
        bound.is_charged[g] = bound.is_charged[g] && !bound.is_new[g];
    }
    struct question question = ask_about(&bound, flavor);
    return places_alone(question.places, books->state->gangs[gang].ask);
}

int room_places(const struct books *books, int gang, int flavor)
{
    struct question question = ask_about(books, flavor);
    const int *ask = books->state->gangs[gang].ask;
    int places = places_alone(question.places, ask);
    for (int g = 0; g < question.group_count; g++) {
        places -= question.groups[g].made * cost(ask, question.groups[g].ask);
    }
    return places;
}

/* Were nobody else there; where there are no nodes yet, nothing can be said. */
static bool could_place(const struct books *books, int gang, int flavor, int pods)
{
    struct books empty = *books;
    memset(empty.is_charged, 0, sizeof(empty.is_charged));
    struct question question = ask_about(&empty, flavor);
    bool has_node = false;
    for (int n = 0; n < NODES; n++) {
        has_node = has_node || question.places[n].pods > 0;
    }
    return !books->state->is_physical || !has_node ||
           places_alone(question.places, books->state->gangs[gang].ask) >= pods;
}

bool room_could_be(const struct books *books, int gang, int flavor)
{
    return could_place(books, gang, flavor, 1);
}

bool room_is_ever_enough(const struct books *books, int gang, int flavor, int count)
{
    return could_place(books, gang, flavor, pods_needed(&books->state->gangs[gang], count));
}

bool room_is_only_promised(const struct books *books, int gang, int flavor, int count)
{
    return !books->state->is_physical || places_beside(books, gang, flavor, true) >=
                                             pods_needed(&books->state->gangs[gang], count);
}

bool room_beside_bound(const struct books *books, int gang, int flavor, int count)
{
    struct question question = ask_about(books, flavor);
    const struct model_gang *asks = &books->state->gangs[gang];
    return places_alone(question.places, asks->ask) >= pods_needed(asks, count);
}

bool room_on(const struct books *books, int gang, int node)
{
    const struct model_node *there = &books->state->nodes[node];
    struct question question = ask_about(books, books->flavor[gang]);
    return there->flavor == nodes_of(books->flavor[gang]) &&
           has_place(&question.places[node], books->state->gangs[gang].ask);
}
