/* trees.h - random trees of shared quota with two flavors and two resources, for the properties of
 * sharing and preemption. Queues q0, q1, …; cohorts c0, c1, … (a parent's number is lower). */
#pragma once

#include "support/property.h"
#include "support/scenario.h"

#define COHORTS   4
#define QUEUES    6
#define FLAVORS   2
#define RESOURCES 2
#define CELLS     (FLAVORS * RESOURCES)
#define UNLIMITED (-1)

struct place {
    bool is_there;
    int parent; /* a cohort, or UNLIMITED: none */
    int64_t nominal[CELLS];
    int64_t lending[CELLS];
    int64_t borrowing[CELLS];
    bool reclaims_any;
    int64_t used[CELLS];
    int64_t subtree[CELLS];
};

struct trees {
    bool is_fair;
    struct place cohorts[COHORTS];
    struct place queues[QUEUES];
};

void trees_init(struct trees *trees, struct scenario *s, bool is_fair);
/* What the operation makes of them, the same each time. */
void trees_add_cohort(struct trees *trees, struct scenario *s, const struct op *op);
void trees_add_queue(struct trees *trees, struct scenario *s, const struct op *op);
uint64_t trees_random(const struct op *op);
/* 7 of "q7", "ml/g7", "f7". */
int trees_number(struct str name);
void trees_read_usage(struct trees *trees, struct scenario *s);
/* Worked out from the specs alone; after trees_read_usage(). */
bool trees_are_within_quota(struct trees *trees);
