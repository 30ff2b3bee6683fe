/* world.h - random operations on a small cluster of a scenario, for the properties of the core.
 *
 * Every operation is legal in whatever state it meets, or does nothing. */
#pragma once

#include "support/property.h"
#include "support/scenario.h"

enum world_op {
    OP_JOB_NEW = 0,
    OP_JOB_NEW_TOO, /* as likely as that */
    OP_POD_APPEARS,
    OP_POD_BINDS,
    OP_POD_BINDS_TOO,
    OP_POD_READY,
    OP_POD_SUCCEEDS,
    OP_JOB_FINISHES,
    OP_GANG_STOPS,
    OP_TIME,
    /* up to here nothing takes room away from a gang that is admitted */
    OP_CALM_COUNT,
    OP_JOB_DELETED = OP_CALM_COUNT,
    OP_JOB_RECREATED,
    OP_POD_GONE,
    OP_POD_TERMINATES,
    OP_QUOTA,
    OP_NODE,
    OP_FOREIGN_POD,
    OP_USER_SUSPENDS,
    OP_JOB_RESIZED,
    OP_HOLD,
    OP_RELABEL,
    OP_AGAIN,
    OP_CLAIM_FREED,
    OP_PRIORITY,
    OP_TEMPLATE,
    OP_COUNT,
};

extern const char *const world_op_names[OP_COUNT];

#define WORLD_JOBS 8

void world_given(struct scenario *s);
/* Jobs are deleted only once their pods are gone; else nothing tells a restart of their charge. */
void world_deletes_cleanly(bool is_clean);
void world_do(struct scenario *s, const struct op *op);
/* Devices promised to gangs, or in use, are never more than there are. */
void world_check_devices(struct scenario *s);
/* Binds whatever pods wait, as a scheduler does in a random order; fails the test if one of an
 * admitted gang finds no place though nothing has taken any away. */
void world_place_all(struct scenario *s, uint64_t seed);
