/* policy.h - the rules once more, plainly and slowly: the reference that the core is held against.
 *
 * Written from the design's text and the reference of the fields, and not from the core. Nothing is
 * kept: every number is added up anew from the gangs whenever it is asked for. */
#pragma once

#include <limits.h>

#include "model/state.h"

#define UNKNOWN_S INT_MAX

/* The head of a queue, for which room is kept; seconds from now. */
struct kept {
    int gang;
    int start_s; /* as was said; UNKNOWN_S: nobody knows when some will have ended that have to */
    int fresh_s; /* by what is known now */
    bool is_awaited[GANGS]; /* those */
    int choice;
    int count;
};

struct keeping {
    struct kept heads[QUEUES]; /* by gang order */
    int count;
};

/* What is held at one moment of the pass. */
struct books {
    const struct model_state *state;
    /* The core's answers: where the design leaves room between what is safe and what its documented
     * estimate grants, either answer is right and the core's own is gone on with. */
    const struct answer *core;
    const struct keeping *kept; /* NULL: it isn't asked for */
    bool is_charged[GANGS];
    bool is_using[GANGS]; /* the same, whoever is thought to be gone */
    bool is_stopping[GANGS];
    bool is_new[GANGS];      /* admitted in this pass: no pod is bound */
    bool is_reserved[GANGS]; /* and its victims are still there */
    int flavor[GANGS];
    int count[GANGS];
    int promised[GANGS]; /* pods that have to find a place */
    /* Later: who is on his way now is bound by then, in the room that there was. */
    bool is_later;
    int bound_max[GANGS]; /* so many pods; NONE: as many as there are */
};

struct books books_at_first(const struct model_state *state, const struct answer *core);
int ask_of(const struct model_gang *gang, enum resource r, int count);
/* All that it could run on, in the order in which they are tried: the flavor of the last group
 * changes first. */
int choices_of(const struct model_state *state, int gang, int ret_choices[CHOICES]);
/* The queue lists all that it asks for there, and its selector allows it. */
bool choice_is_open(const struct model_state *state, const struct model_gang *gang, int choice);
/* Its queue takes its PriorityClass. */
bool is_class_allowed(const struct model_state *state, const struct model_gang *gang);
/* The flavor whose nodes those are. */
int nodes_of(int choice);
/* Both ask the same of one queue: whatever keeps the one keeps the other. */
bool is_twin(const struct model_gang *a, const struct model_gang *b);
/* Whether `a` stands before `b` by priority, time and uid. */
bool is_ahead(const struct model_state *state, int a, int b);

/* -- tree.c: the tree -- */
struct cell {
    int flavor;
    enum resource resource;
};

static inline struct cell cell_at(int choice, int r)
{
    return (struct cell){flavor_of(choice, (enum resource)r), (enum resource)r};
}

/* What only those below may use. */
int tree_guaranteed(const struct model_state *state, int member, struct cell at);
int tree_subtree(const struct model_state *state, int member, struct cell at);
int tree_used(const struct books *books, int member, struct cell at);
int tree_available(const struct books *books, int member, struct cell at);
int tree_potential(const struct model_state *state, int member, struct cell at);
/* decide.c: whether the gang's queue could have that much if nobody else were there. */
bool could_have_quota(const struct books *books, int g, int flavor, int count);
bool tree_is_borrowing(const struct books *books, int member, struct cell at);
int tree_own_height(const struct model_state *state, int member); /* 0: nothing is below */
/* The height of the lowest subtree in which so much more still fits; 0: the queue's own quota. */
int tree_height(const struct books *books, int queue, struct cell at, int demand);

/* -- fair.c: whose turn it is -- */
struct turn {
    int gang;
    int flavor;
    int count;
    int height;
    bool is_hopeless; /* no flavor could ever have the quota: judged at once, and out of the way */
};

/* Of the queues' turns (gang NONE: the queue has none) the one that is next. */
int turn_next(const struct books *books, const struct turn turns[QUEUES]);
/* Whether `a` would be judged before `b`. */
bool is_judged_before(const struct books *books, int a, int b);

/* -- room.c: nodes -- */
enum room { ROOM_NO, ROOM_YES, ROOM_EITHER };

/* Whether `need` pods of the gang find their places on that flavor's nodes wherever `count` of its
 * own and those of other gangs on their way land. */
enum room room_for(const struct books *books, int gang, int flavor, int count, int need);
/* Whether it would have room, were the others' pods placed one after the other. */
bool room_is_only_promised(const struct books *books, int gang, int flavor, int count);
/* The same, were those not there at all. */
bool room_beside_bound(const struct books *books, int gang, int flavor, int count);
/* The pods of the gang that find a place there. */
int room_places(const struct books *books, int gang, int flavor);
/* Those that could be bound this moment, were it alone on its way. */
int room_now(const struct books *books, int gang, int flavor);
/* Whether one more pod of the gang fits on that node. */
bool room_on(const struct books *books, int gang, int node);
bool room_could_be(const struct books *books, int gang, int flavor);
/* Whether so many of its pods fit on the flavor's nodes when nobody else is there. */
bool room_is_ever_enough(const struct books *books, int gang, int flavor, int count);

/* -- stops.c -- */
/* Who has to stop so that the gang fits there; 0: that can't be. Tells how far it may
 * borrow then.
 */
uint32_t stops_find(const struct books *books, int gang, int flavor, int count,
                    int *ret_height_max);
/* The lowest cohort that has both members below it; NONE: they are of two trees. */
int stops_meet(const struct model_state *state, int a, int b);
/* How many pods have to find a place at once. */
int pods_needed(const struct model_gang *gang, int count);
/* `height_max`: how far up it may borrow; MEMBERS: however far. */
bool books_fit(const struct books *books, int gang, int flavor, int count, int height_max,
               uint32_t victims);

/* -- keep.c -- */
struct pass;
/* For whom room is kept as things are. */
void keep_work_out(struct pass *pass, struct keeping *ret_keeping);
/* Those that had to leave a room to a head, where they needn't any more. False: there are none. */
bool keep_look_again(struct pass *pass);
/* Whether it leaves the heads before it their room. */
enum room keep_allows(const struct books *books, int gang, int choice, int count);

/* -- decide.c -- */
/* What stops already, for whomever, counts as gone. */
struct books without_stopping(const struct books *books);
/* With as many pods as can be; a room that is kept isn't asked for. */
bool fits_somewhere(const struct books *books, int gang, int *ret_choice, int *ret_count);
struct turn turn_of(const struct books *books, int gang);
/* What comes free is taken as far as it goes. */
int most_that_fit(const struct books *books, int gang, int flavor, int count, int height_max,
                  uint32_t victims);

struct pass {
    struct books books;
    struct answer *answers;
    bool is_done[GANGS];
    bool is_judged[GANGS]; /* and waits */
    bool is_blocked[QUEUES];
    bool is_again[GANGS];    /* looked at once more */
    bool is_let[GANGS];      /* looked at once more, because no head is in its way any longer */
    int said_s[GANGS];       /* when it is to start; NONE: nothing was said */
    bool is_relieved[GANGS]; /* since it was judged: note_relief() */
    bool has_grown[GANGS];   /* its queue, by that gang, and who waits has been looked at since */
};

/* -- grow.c: those who waited, once another queue of their tree has begun to borrow or, with fair
 * sharing, borrows more: they may take it back. False: there are none. -- */
bool look_again(struct pass *pass);
/* Somebody has begun to stop, and counts as gone for whoever looks for gangs to stop: what the one
 * that it stops for leaves of it may be enough for those that wait, together with others. */
void note_relief(struct pass *pass, const struct books *before);

/* -- fair.c -- */
/* numerator / denominator; beyond all others where is_last. */
struct share {
    bool is_last;
    int64_t numerator;
    int64_t denominator;
};

/* What the member borrows, by its weight, of what its parent could give. */
struct share share_at(const struct books *books, int member);
int share_compare(struct share a, struct share b);
/* past.c: what the member has used, as the share weighs it, with a half-life; else nothing. */
struct share past_of(const struct books *books, int member);
int tree_root(const struct model_state *state, int member);
bool tree_is_fair(const struct model_state *state, int root);

void model_answer(const struct model_state *state, const struct answer core[GANGS],
                  struct answer answers[GANGS]);
