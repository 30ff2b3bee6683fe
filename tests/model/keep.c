/* keep.c - the room that is kept for the head of a queue (decision 017): EASY backfilling, every
 * start worked out anew from the ends that are known. */
#include <limits.h>
#include <string.h>

#include "model/policy.h"

/* -- how long gangs run -------------------------------------------------------------------------
 */

static int lesser(int a, int b)
{
    return a == NONE ? b : b == NONE || a < b ? a : b;
}

/* By when it is ended, counted from its start. */
static int bound_of(const struct model_state *state, int g)
{
    const struct model_gang *gang = &state->gangs[g];
    return lesser(gang->bound_s, state->queues[gang->queue].max_runtime_s);
}

/* How long it is thought to run; NONE: nobody says. */
static int run_of(const struct model_state *state, int g)
{
    const struct model_gang *gang = &state->gangs[g];
    int estimate = gang->bound_s == NONE ? state->queues[gang->queue].default_runtime_s : NONE;
    return lesser(estimate, bound_of(state, g));
}

/* Seconds from now. */
static int end_of(const struct books *books, int g)
{
    if (books->is_stopping[g]) {
        return 0;
    }
    int ran_s = books->is_new[g] ? 0 : books->state->gangs[g].runs_s;
    int run_s = run_of(books->state, g);
    int bound_s = bound_of(books->state, g);
    if (run_s != NONE && run_s > ran_s) {
        return run_s - ran_s;
    }
    return bound_s == NONE ? UNKNOWN_S : bound_s > ran_s ? bound_s - ran_s : 0;
}

/* -- when a head starts -------------------------------------------------------------------------
 */

struct entry {
    int gang;
    int end_s;
    int admitted_s; /* before now */
    bool is_guest;  /* an earlier head, which comes and goes */
};

static bool ends_before(const struct books *books, const struct entry *a, const struct entry *b)
{
    if (a->end_s != b->end_s) {
        return a->end_s < b->end_s;
    }
    if (a->is_guest || b->is_guest) {
        return !a->is_guest;
    }
    if (a->admitted_s != b->admitted_s) {
        return a->admitted_s > b->admitted_s;
    }
    return books->state->gangs[a->gang].uid < books->state->gangs[b->gang].uid;
}

static void add_entry(const struct books *books, struct entry *entries, int *count,
                      struct entry entry)
{
    int at = (*count)++;
    for (; at > 0 && ends_before(books, &entry, &entries[at - 1]); at--) {
        entries[at] = entries[at - 1];
    }
    entries[at] = entry;
}

static bool may_meet(const struct model_state *state, int a, int b)
{
    return state->is_physical || tree_root(state, COHORTS + state->gangs[a].queue) ==
                                     tree_root(state, COHORTS + state->gangs[b].queue);
}

/* The books as they come to be: everybody ends in turn. */
struct scene {
    const struct books *now;
    struct books books;
    struct entry entries[2 * GANGS];
    int count;
};

/* Those about to end may be gone before. */
static int places_now(const struct books *books, int g, int choice)
{
    struct books now = *books;
    now.is_later = false;
    for (int other = 0; other < GANGS; other++) {
        bool is_ending = now.is_charged[other] && end_of(books, other) <= 10;
        now.is_charged[other] = now.is_charged[other] && !is_ending;
    }
    return room_now(&now, g, choice);
}

static void add_guest(struct scene *scene, const struct kept *head, bool starts_now)
{
    int g = head->gang;
    int run_s = run_of(scene->books.state, g);
    bool is_known = head->start_s != UNKNOWN_S && run_s != NONE;
    struct entry entry = {g, is_known ? head->start_s + run_s : UNKNOWN_S, 0, true};
    add_entry(&scene->books, scene->entries, &scene->count, entry);
    scene->books.is_charged[g] = scene->books.is_new[g] = true;
    scene->books.flavor[g] = head->choice;
    scene->books.count[g] = head->count;
    scene->books.bound_max[g] = starts_now ? places_now(scene->now, g, head->choice) : NONE;
}

/* For `gang`, with those heads there that come before it and could be in its way. */
static void open_scene(const struct books *books, const struct kept *heads, int head_count,
                       int gang, struct scene *ret_scene)
{
    *ret_scene = (struct scene){.now = books, .books = *books};
    ret_scene->books.kept = NULL;
    ret_scene->books.is_later = true;
    for (int g = 0; g < GANGS; g++) {
        if (books->is_charged[g]) {
            int since_s = books->is_new[g] ? 0 : books->state->gangs[g].runs_s;
            struct entry entry = {g, end_of(books, g), since_s, false};
            add_entry(books, ret_scene->entries, &ret_scene->count, entry);
            ret_scene->books.bound_max[g] =
                books->state->is_physical ? places_now(books, g, books->flavor[g]) : NONE;
        }
    }
    for (int h = 0; h < head_count; h++) {
        if (may_meet(books->state, heads[h].gang, gang)) {
            add_guest(ret_scene, &heads[h], false);
        }
    }
}

/* Of those without a known end as few as have to end, the oldest first. */
static void find_awaited(struct scene *scene, int out, struct kept *head)
{
    for (int i = out - 1; i >= 0 && scene->entries[i].end_s == UNKNOWN_S; i--) {
        int g = scene->entries[i].gang;
        scene->books.is_charged[g] = true;
        if (!fits_somewhere(&scene->books, head->gang, &head->choice, &head->count)) {
            scene->books.is_charged[g] = false;
            head->is_awaited[g] = true;
        }
    }
}

/* False where it wouldn't start even if all had ended. */
static bool work_out(const struct books *books, const struct keeping *keeping, struct kept *head)
{
    struct scene scene;
    open_scene(books, keeping->heads, keeping->count, head->gang, &scene);
    int out = 0;
    while (!fits_somewhere(&scene.books, head->gang, &head->choice, &head->count)) {
        if (out == scene.count) {
            return false;
        }
        scene.books.is_charged[scene.entries[out++].gang] = false;
    }
    head->fresh_s = out == 0 ? 0 : scene.entries[out - 1].end_s;
    if (head->fresh_s == UNKNOWN_S) {
        struct kept first = *head;
        find_awaited(&scene, out, head);
        head->choice = first.choice;
        head->count = first.count;
    }
    return true;
}

/* -- who the heads are --------------------------------------------------------------------------
 */

static bool is_kept_for(const struct model_state *state, int g)
{
    const struct model_queue *queue = &state->queues[state->gangs[g].queue];
    bool is_starving = queue->starvation_s != NONE && state->gangs[g].age_s >= queue->starvation_s;
    return queue->is_backfill || is_starving;
}

static int next_in_queue(const struct pass *pass, int queue, int after)
{
    const struct model_state *state = pass->books.state;
    int next = NONE;
    for (int g = 0; g < GANGS; g++) {
        const struct model_gang *gang = &state->gangs[g];
        bool waits = gang->exists && gang->queue == queue && !gang->is_running && !gang->is_held &&
                     !pass->books.is_charged[g] && is_class_allowed(state, gang);
        bool is_behind = after == NONE || is_ahead(state, after, g);
        if (waits && is_behind && (next == NONE || is_ahead(state, g, next))) {
            next = g;
        }
    }
    return next;
}

/* The first that has to wait; past those that can't start at all. */
static int head_of_queue(const struct pass *pass, int queue)
{
    int g = next_in_queue(pass, queue, NONE);
    while (g != NONE) {
        enum reason reason = pass->answers[g].reason;
        struct books empty = pass->books;
        int choice;
        int count;
        empty.kept = NULL;
        memset(empty.is_charged, 0, sizeof(empty.is_charged));
        if (reason == REASON_NONE || reason == REASON_BEHIND_IN_QUEUE) {
            return NONE; /* its turn is still to come */
        }
        if (!reason_info(reason)->is_passed_over && fits_somewhere(&empty, g, &choice, &count)) {
            return is_kept_for(pass->books.state, g) ? g : NONE;
        }
        g = next_in_queue(pass, queue, g);
    }
    return NONE;
}

/* What was said holds: a start isn't put off in one pass. */
static void keep_promise(struct pass *pass, struct kept *head)
{
    int *said_s = &pass->said_s[head->gang];
    bool is_later = *said_s != NONE && *said_s > 0 && head->fresh_s > *said_s;
    *said_s = is_later ? *said_s : head->fresh_s;
    head->start_s = *said_s;
}

void keep_work_out(struct pass *pass, struct keeping *ret_keeping)
{
    *ret_keeping = (struct keeping){.count = 0};
    bool is_head[GANGS] = {false};
    int heads[QUEUES];
    int count = 0;
    for (int q = 0; q < QUEUES; q++) {
        int g = head_of_queue(pass, q);
        int at = count;
        for (; g != NONE && at > 0 && is_ahead(pass->books.state, g, heads[at - 1]); at--) {
            heads[at] = heads[at - 1];
        }
        if (g != NONE) {
            heads[at] = g;
            count++;
        }
    }
    for (int h = 0; h < count; h++) {
        struct kept head = {.gang = heads[h]};
        if (work_out(&pass->books, ret_keeping, &head)) {
            keep_promise(pass, &head);
            is_head[head.gang] = true;
            ret_keeping->heads[ret_keeping->count++] = head;
        }
    }
    for (int g = 0; g < GANGS; g++) {
        pass->said_s[g] = is_head[g] ? pass->said_s[g] : NONE;
    }
}

/* -- who has to wait for them -------------------------------------------------------------------
 */

/* Whether the head still fits at that time with the gang there for ever. */
static bool fits_beside(const struct books *books, int h, int start_s, const struct kept *guest)
{
    const struct kept *head = &books->kept->heads[h];
    struct scene scene;
    open_scene(books, books->kept->heads, h, head->gang, &scene);
    add_guest(&scene, guest, true);
    for (int i = 0; i < scene.count; i++) {
        const struct entry *entry = &scene.entries[i];
        bool is_out =
            (entry->end_s != UNKNOWN_S && entry->end_s <= start_s) || head->is_awaited[entry->gang];
        if (is_out && entry->gang != guest->gang) {
            scene.books.is_charged[entry->gang] = false;
        }
    }
    int choice;
    int count;
    return fits_somewhere(&scene.books, head->gang, &choice, &count);
}

static bool lets_go_first(const struct books *books, int h, int start_s, const struct kept *guest)
{
    int run_s = run_of(books->state, guest->gang);
    return (start_s != UNKNOWN_S && run_s != NONE && run_s <= start_s) ||
           fits_beside(books, h, start_s, guest);
}

/* Where the promise and what is known now differ, it depends on when somebody asked. */
enum room keep_allows(const struct books *books, int g, int choice, int count)
{
    enum room all = ROOM_YES;
    for (int h = 0; books->kept != NULL && h < books->kept->count; h++) {
        const struct kept *head = &books->kept->heads[h];
        struct kept guest = {.gang = g, .start_s = UNKNOWN_S, .choice = choice, .count = count};
        if (head->gang == g || !may_meet(books->state, head->gang, g) ||
            !is_judged_before(books, head->gang, g)) {
            continue;
        }
        bool is_let = lets_go_first(books, h, head->start_s, &guest);
        bool is_let_now = lets_go_first(books, h, head->fresh_s, &guest);
        if (!is_let && !is_let_now) {
            return ROOM_NO;
        }
        all = is_let && is_let_now ? all : ROOM_EITHER;
    }
    return all;
}

/* With as many pods as there is room for without the heads. */
static bool may_start(const struct books *books, int g, int choice)
{
    struct books free = *books;
    free.kept = NULL;
    const struct model_gang *gang = &books->state->gangs[g];
    int least = gang->is_partial && gang->min != NONE ? gang->min : gang->count;
    int count = gang->count;
    while (count > least && !books_fit(&free, g, choice, count, MEMBERS, 0)) {
        count--;
    }
    return choice_is_open(books->state, gang, choice) &&
           books_fit(books, g, choice, count, MEMBERS, 0);
}

bool keep_look_again(struct pass *pass)
{
    const struct books *books = &pass->books;
    bool is_any = false;
    for (int g = 0; books->state->keeps_room && g < GANGS; g++) {
        int choices[CHOICES];
        int count = choices_of(books->state, g, choices);
        bool was_denied = pass->answers[g].decision == DECISION_WAIT &&
                          pass->answers[g].reason == REASON_NODES_FULL && !pass->is_let[g];
        bool may = false;
        for (int i = 0; was_denied && i < count; i++) {
            may = may || may_start(books, g, choices[i]);
        }
        if (may) {
            pass->is_done[g] = pass->is_judged[g] = false;
            pass->is_let[g] = true;
            is_any = true;
        }
    }
    return is_any;
}
