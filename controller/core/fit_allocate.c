/* fit_allocate.c - the devices of one pod, found as kube-scheduler's allocator finds them.
 *
 * Claim after claim, request after request and device after device the first candidate that may be
 * taken is taken, and taken back when the rest can't be met: so the first way is found that there
 * is, and one is found if there is any. Of alternatives the first with which everything else can be
 * met is taken. Candidates that can't be told apart from one that didn't help are passed over. */
#include "allocate.h"

#include "internal.h"

#include "tallyman/base/limits.h"

#define STEPS_BEFORE_ALIKE 200
#define TRIED_MAX          8

/* -- what it may cost -------------------------------------------------------------------------- */

/* Where some nodes took much the others are no easier, and everybody else waits meanwhile. */
uint32_t searches_allowed(const struct core *core)
{
    return core->search_steps < ALLOCATE_STEPS_ALL ? ALLOCATE_STEPS_MAX : ALLOCATE_STEPS_FEW;
}

void search_count(struct search *search, uint32_t steps)
{
    search->steps += steps;
    search->core->search_steps += steps;
}

/* -- constraints ------------------------------------------------------------------------------- */

/* Whether the candidate keeps that constraint of the claim, beside what this pod has by now. */
static bool keeps_constraint(const struct search *search, const struct candidate *candidate,
                             uint32_t claim, uint32_t index)
{
    const struct device_constraint *constraint =
        &search->ask->claims[claim].spec->constraints.items[index];
    bool is_match = str_is_set(constraint->match_attribute);
    uint32_t at = search->first_values[claim] + index;
    uint32_t own = candidate->values[at];
    if (own == 0) {
        return false;
    }
    for (uint32_t i = search->first_pick; i < search->pick_count; i++) {
        const struct pick *pick = &search->picks[i];
        bool is_under = (pick->option->constraints & (UINT32_C(1) << index)) != 0;
        if (pick->claim != claim || !is_under) {
            continue;
        }
        if ((own == search->items[pick->candidate].values[at]) != is_match) {
            return false;
        }
    }
    return true;
}

static bool keeps_constraints(const struct search *search, const struct candidate *candidate,
                              const struct ask_option *option, uint32_t claim)
{
    uint32_t count = search->ask->claims[claim].spec->constraints.count;
    for (uint32_t i = 0; option->constraints != 0 && i < count; i++) {
        bool is_under = (option->constraints & (UINT32_C(1) << i)) != 0;
        if (is_under && !keeps_constraint(search, candidate, claim, i)) {
            return false;
        }
    }
    return true;
}

/* -- one device -------------------------------------------------------------------------------- */

/* Some share of it is in use, so that its counters are drawn on already. */
static bool is_shared_already(const struct candidate *candidate)
{
    return candidate->shares != NULL && (candidate->has_shares || candidate->share_count > 0);
}

static void draw_counters(const struct candidate *candidate, int sign)
{
    const struct device_state *device = candidate->device;
    for (uint32_t i = 0; i < device->counter_count; i++) {
        device->pool->counters[device->counters[i].counter].pending +=
            sign * device->counters[i].amount;
    }
}

static bool counters_hold(const struct search *search, const struct candidate *candidate)
{
    const struct device_state *device = candidate->device;
    for (uint32_t i = 0; i < device->counter_count; i++) {
        const struct counter_state *counter = &device->pool->counters[device->counters[i].counter];
        i128 drawn = search->is_emptied ? 0 : counter_drawn(search->core, counter);
        if (drawn + counter->pending > counter->capacity) {
            return false;
        }
    }
    return !candidate->is_overdrawn;
}

/* What this allocation takes of the candidate's capacities. */
static enum share_answer take_amounts(const struct search *search,
                                      const struct candidate *candidate,
                                      const struct ask_option *option, i128 *ret_amounts)
{
    const struct capacity_requirements *capacity = option->object->capacity;
    const struct device *device = candidate->device->device;
    enum share_answer answer =
        share_amounts(device, capacity == NULL ? NULL : &capacity->requests, ret_amounts);
    for (uint32_t i = 0; answer == SHARE_FITS && i < device->capacity.count; i++) {
        if (candidate->shares == NULL) {
            break; /* nobody else takes a part of it */
        }
        i128 room = search->is_emptied ? device->capacity.items[i].value.value.nano
                                       : device_share_room(search->core, candidate->device, i);
        answer = candidate->shares[i] + ret_amounts[i] > room ? SHARE_REFUSED : SHARE_FITS;
    }
    return answer;
}

static void add_shares(struct candidate *candidate, const i128 *amounts, int sign)
{
    for (uint32_t i = 0; i < candidate->device->device->capacity.count; i++) {
        candidate->shares[i] += sign * amounts[i];
    }
    candidate->share_count += sign > 0 ? 1u : (uint32_t)-1;
}

static uint64_t option_bit(const struct search *search, const struct ask_option *option)
{
    return UINT64_C(1) << (option - search->ask->options);
}

static bool may_be_taken(const struct candidate *candidate, const struct ask_option *option,
                         uint32_t claim)
{
    if (option->is_admin) {
        return (candidate->marks & (UINT32_C(1) << claim)) == 0;
    }
    return candidate->is_open && !candidate->is_taken && candidate->marks == 0;
}

static enum found break_off(struct search *search, enum breach_kind kind, uint32_t claim)
{
    search->breach = (struct breach){kind, claim};
    return FOUND_BROKEN;
}

/* With its counters drawn on: whether they hold, and the claim's constraints. */
static enum found check_drawn(struct search *search, const struct candidate *candidate,
                              const struct pick *pick, enum share_answer answer)
{
    bool has_counters = pick->draws && candidate->device->counter_count > 0;
    if (has_counters && !counters_hold(search, candidate)) {
        return FOUND_NOT;
    }
    if (!keeps_constraints(search, candidate, pick->option, pick->claim)) {
        /* All of them are wanted, and the claim itself forbids it: the scheduler gives up. */
        return pick->option->is_all ? break_off(search, BREACH_CONSTRAINT, pick->claim) : FOUND_NOT;
    }
    return answer == SHARE_FITS ? FOUND_ALL : FOUND_NOT;
}

/* Gives the candidate to the option, if it may be given. */
static enum found take(struct search *search, uint32_t index, const struct ask_option *option,
                       uint32_t claim)
{
    struct candidate *candidate = &search->items[index];
    bool is_out = (candidate->out & option_bit(search, option)) != 0;
    if (is_out || candidate->device->is_uncountable || !may_be_taken(candidate, option, claim)) {
        return FOUND_NOT;
    }
    size_t capacities = candidate->device->device->capacity.count;
    i128 *amounts = ARENA_ARRAY(&search->core->scratch, i128, capacities + 1);
    enum share_answer answer = take_amounts(search, candidate, option, amounts);
    if (answer == SHARE_BROKEN) {
        return break_off(search, BREACH_CAPACITY, claim);
    }
    if (answer != SHARE_FITS && !option->is_all) {
        return FOUND_NOT;
    }
    struct pick pick = {.candidate = index,
                        .option = option,
                        .claim = claim,
                        .amounts = amounts,
                        .draws = !is_shared_already(candidate)};
    draw_counters(candidate, pick.draws ? 1 : 0);
    enum found found = check_drawn(search, candidate, &pick, answer);
    if (found != FOUND_ALL) {
        draw_counters(candidate, pick.draws ? -1 : 0);
        return found;
    }
    if (candidate->shares == NULL) {
        candidate->marks |= UINT32_C(1) << claim;
    } else {
        add_shares(candidate, amounts, 1);
    }
    search->picks[search->pick_count++] = pick;
    return FOUND_ALL;
}

/* Takes back the last pick; `was_kept`: of a pod that was found its devices. */
static void give_back(struct search *search, bool was_kept)
{
    const struct pick *pick = &search->picks[--search->pick_count];
    struct candidate *candidate = &search->items[pick->candidate];
    if (was_kept && pick->option->is_admin) {
        return; /* it left everything as it was */
    }
    if (pick->draws) {
        draw_counters(candidate, -1);
    }
    if (candidate->shares != NULL) {
        add_shares(candidate, pick->amounts, -1);
    } else if (was_kept) {
        candidate->is_taken = false;
    } else {
        candidate->marks &= ~(UINT32_C(1) << pick->claim);
    }
}

/* -- the search -------------------------------------------------------------------------------- */

/* Where the search stands: the next device of an option. */
struct place {
    uint32_t claim;
    uint32_t request;
    const struct ask_option *option;
    int64_t device;
    uint32_t from; /* in search.order */
};

static enum found find_request(struct search *search, uint32_t claim, uint32_t request);
static enum found find_device(struct search *search, const struct place *place);

static int64_t count_all(const struct search *search, uint64_t bit)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < search->count; i++) {
        count += (search->items[i].options & bit) != 0;
    }
    return count;
}

static int64_t count_results(const struct search *search, uint32_t claim)
{
    int64_t count = 0;
    for (uint32_t i = search->first_pick; i < search->pick_count; i++) {
        count += search->picks[i].claim == claim;
    }
    return count;
}

/* With the candidate taken: the next device, and what follows. */
static enum found go_on(struct search *search, const struct place *place, uint32_t from)
{
    struct place next = *place;
    next.device++;
    next.from = from;
    enum found found = find_device(search, &next);
    if (found != FOUND_ALL) {
        give_back(search, false);
    }
    return found;
}

/* Of all that match, the one whose turn it is: there is no choice. */
static enum found find_next_of_all(struct search *search, const struct place *place, uint64_t bit)
{
    uint32_t at = place->from;
    while ((search->items[search->order[at]].options & bit) == 0) {
        at++;
    }
    enum found found = take(search, search->order[at], place->option, place->claim);
    return found == FOUND_ALL ? go_on(search, place, at + 1) : found;
}

/* Candidates of one step that didn't help. */
struct tried {
    uint32_t items[TRIED_MAX];
    uint32_t count;
};

static bool is_like_tried(const struct search *search, const struct tried *tried,
                          const struct candidate *candidate)
{
    for (uint32_t i = 0; search->knows_alike && i < tried->count; i++) {
        if (tried->items[i] == candidate->alike) {
            return true;
        }
    }
    return false;
}

static void note_tried(struct search *search, struct tried *tried,
                       const struct candidate *candidate)
{
    if (!search->knows_alike && search->steps > STEPS_BEFORE_ALIKE) {
        search_find_alike(search);
    } else if (search->knows_alike && tried->count < TRIED_MAX) {
        tried->items[tried->count++] = candidate->alike;
    }
}

static enum found find_any(struct search *search, const struct place *place, uint64_t bit)
{
    struct tried tried = {.count = 0};
    for (uint32_t at = place->from; at < search->count; at++) {
        search_count(search, at % 8 == 7 ? 1 : 0);
        uint32_t index = search->order[at];
        const struct candidate *candidate = &search->items[index];
        if (!may_be_taken(candidate, place->option, place->claim)) {
            continue; /* and says nothing about those like it */
        }
        if ((candidate->failing & bit) != 0) {
            /* The error ends the whole search. */
            return break_off(search, BREACH_SELECTOR, place->claim);
        }
        if ((candidate->options & bit) == 0 || is_like_tried(search, &tried, candidate)) {
            continue;
        }
        search_count(search, 1 + (search->pick_count - search->first_pick) / 4);
        if (search->steps > search->steps_allowed) {
            return FOUND_TOO_HARD;
        }
        enum found found = take(search, index, place->option, place->claim);
        if (found == FOUND_ALL) {
            found = go_on(search, place, at + 1);
        }
        if (found != FOUND_NOT) {
            return found;
        }
        note_tried(search, &tried, candidate);
    }
    return FOUND_NOT;
}

static enum found find_device(struct search *search, const struct place *place)
{
    const struct ask_option *option = place->option;
    uint64_t bit = option_bit(search, option);
    int64_t wanted = option->is_all ? count_all(search, bit) : option->count;
    search_count(search, 1);
    if (search->steps > search->steps_allowed) {
        return FOUND_TOO_HARD;
    }
    if (wanted == 0) {
        return FOUND_NOT;
    }
    if (place->device >= wanted) {
        return find_request(search, place->claim, place->request + 1);
    }
    if (wanted - place->device > CLAIM_DEVICES_MAX - count_results(search, place->claim)) {
        return FOUND_NOT;
    }
    return option->is_all ? find_next_of_all(search, place, bit) : find_any(search, place, bit);
}

static enum found find_request(struct search *search, uint32_t claim, uint32_t request)
{
    while (claim < search->ask->claim_count &&
           request == search->ask->claims[claim].request_count) {
        claim++;
        request = 0;
    }
    if (claim == search->ask->claim_count) {
        return FOUND_ALL;
    }
    const struct ask_request *asked = &search->ask->claims[claim].requests[request];
    for (uint32_t o = 0; o < asked->option_count; o++) {
        struct place place = {.claim = claim,
                              .request = request,
                              .option = &search->ask->options[asked->first_option + o]};
        enum found found = find_device(search, &place);
        if (found != FOUND_NOT) {
            return found;
        }
    }
    return FOUND_NOT;
}

/* Of all devices every one is looked at first. */
static bool fails_for_all(struct search *search)
{
    for (uint32_t o = 0; o < search->ask->option_count; o++) {
        const struct ask_option *option = &search->ask->options[o];
        for (uint32_t i = 0; option->is_all && i < search->count; i++) {
            const struct candidate *candidate = &search->items[i];
            if ((candidate->failing & (UINT64_C(1) << o)) != 0) {
                bool is_selector =
                    profile_match(search->core, option->profile, candidate->device) == MATCH_FAILED;
                (void)break_off(search, is_selector ? BREACH_SELECTOR : BREACH_CAPACITY,
                                option->claim);
                return true;
            }
        }
    }
    return false;
}

/* The scheduler gives up on a claim that is larger than its limit whatever it is given. */
static bool is_too_large(struct search *search)
{
    for (uint32_t c = 0; c < search->ask->claim_count; c++) {
        const struct ask_claim *claim = &search->ask->claims[c];
        int64_t least = 0;
        for (uint32_t r = 0; r < claim->request_count; r++) {
            int64_t fewest = INT64_MAX;
            for (uint32_t o = 0; o < claim->requests[r].option_count; o++) {
                const struct ask_option *option =
                    &search->ask->options[claim->requests[r].first_option + o];
                int64_t wanted =
                    option->is_all ? count_all(search, option_bit(search, option)) : option->count;
                fewest = wanted < fewest ? wanted : fewest;
            }
            least = sat_add(least, fewest);
        }
        if (least > CLAIM_DEVICES_MAX) {
            (void)break_off(search, BREACH_COUNT, c);
            return true;
        }
    }
    return false;
}

static void make_room(struct search *search)
{
    uint32_t room = search->pick_count + search->ask->claim_count * CLAIM_DEVICES_MAX;
    if (room <= search->pick_room) {
        return;
    }
    struct pick *picks = ARENA_ARRAY(&search->core->scratch, struct pick, 2 * (size_t)room);
    for (uint32_t i = 0; i < search->pick_count; i++) {
        picks[i] = search->picks[i];
    }
    search->picks = picks;
    search->pick_room = 2 * room;
}

/* The pod has its devices; what it has for admin access alone is as it was. */
static void keep_pod(struct search *search)
{
    for (uint32_t i = search->first_pick; i < search->pick_count; i++) {
        const struct pick *pick = &search->picks[i];
        struct candidate *candidate = &search->items[pick->candidate];
        bool is_admin = pick->option->is_admin;
        candidate->marks = 0;
        candidate->is_taken = candidate->is_taken || (candidate->shares == NULL && !is_admin);
        if (is_admin && pick->draws) {
            draw_counters(candidate, -1);
        }
        if (is_admin && candidate->shares != NULL) {
            add_shares(candidate, pick->amounts, -1);
        }
    }
}

enum found search_pod(struct search *search)
{
    make_room(search);
    search->first_pick = search->pick_count;
    search->knows_alike = false;
    if (is_too_large(search) || fails_for_all(search)) {
        return FOUND_BROKEN;
    }
    enum found found = find_request(search, 0, 0);
    if (found == FOUND_ALL) {
        keep_pod(search);
    }
    return found;
}

void search_undo_pod(struct search *search, uint32_t first_pick)
{
    while (search->pick_count > first_pick) {
        give_back(search, true);
    }
}
