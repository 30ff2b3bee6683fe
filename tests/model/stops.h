/* stops.h - between stops.c and stops_fair.c: what has to come free, and for whom. */
#pragma once

#include "model/policy.h"

struct need {
    const struct books *books;
    int gang;
    int flavor;
    int count;
    bool is_short[RESOURCES];
};

const struct model_gang *gang_of(const struct need *need);
struct books books_without(const struct books *books, uint32_t gangs);
/* The lowest cohort that has both queues below it; NONE: they are of two trees. */
int stops_top(const struct need *need, int v);
/* Without those of its queue that would lose before it, but have only just been let in: they can't
 * be stopped yet, and nobody else is stopped in their place. */
struct books stops_without_barred(const struct books *left, const struct need *need, int v);
/* What another queue's gang holds is lent to it, without those: all branches below the meeting
 * point borrow. */
bool stops_is_lent(const struct books *left, const struct need *need, int v);
/* The gangs that may be stopped at all, in the order in which they would be: `is_fair` by policy
 * alone, else also by the part of the quota that they are in the way of. */
int stops_candidates(const struct need *need, bool is_fair, int order[GANGS]);

/* Where fair sharing is on; 0: nobody. */
uint32_t stops_find_fair(const struct need *need);
