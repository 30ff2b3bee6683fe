/* gang_walk.h - the gangs in the order of their uids, for what mustn't depend on a hash. Private to
 * the core.
 *
 * Such walks are rare and pick few, so they sort what they pick, and a Job that comes pays for no
 * tree of all. A gang may be freed while they last, whichever it is: it is left out then. */
#pragma once

#include "state.h"

struct gang_walk_item {
    uint64_t uid_start;
    struct gang *gang; /* borrowed; NULL: it was freed */
};

struct gang_walk {
    struct gang_walk_item *items; /* owned */
    uint32_t count;
    uint32_t next;
    struct gang_walk *outer; /* the walk in which this one was begun */
};

/* Those for which `picks` (NULL: all), as they are now. */
void gang_walk_begin(struct core *core, struct gang_walk *walk,
                     bool (*picks)(const struct gang *gang, const void *with), const void *with);
/* Borrowed; NULL: that was the last, and the walk is over. */
struct gang *gang_walk_next(struct core *core, struct gang_walk *walk);
/* It is about to be freed. */
void gang_walks_forget(struct core *core, const struct gang *gang);
