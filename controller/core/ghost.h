/* ghost.h - Admissions whose Job is no more, and what runs on without it. */
#pragma once

#include "internal.h"

/* An Admission whose owner isn't a Job that we know. */
struct hash_orphan {
    struct str key; /* owned; "namespace/name" */
    UT_hash_handle hh;
    struct admission *object; /* owned clone */
    int64_t due_ms;           /* whoever should have collected it has had the time; 0: not known */
};

/* An Admission without a Job of ours has been kept: it is looked at again in a while. */
void ghost_watch(struct core *core, struct hash_orphan *orphan);
/* What nobody else will collect is deleted, unless pods of its Job still run. */
void ghost_check(struct core *core, struct hash_orphan *orphan);
void ghosts_tick(struct core *core);
/* admission.c: deletes that incarnation of it. */
void admission_delete(struct core *core, struct str key, struct str uid);
