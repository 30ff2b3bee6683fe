/* state.h - a small state of a cluster in plain numbers, for the reference model.
 *
 * One state is one question: what is decided now? Everything is an index into a fixed table and an
 * absent number is NONE, so that a state can be generated, shrunk by dropping things, printed as
 * manifests, and judged by hand. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tallyman/core/core.h"

#define NONE (-1)

enum {
    COHORTS = 4,
    QUEUES = 4,
    MEMBERS = COHORTS + QUEUES, /* of the trees: cohorts first, then queues */
    FLAVORS = 4,
    SLOTS = FLAVORS + 1, /* of a choice: a flavor, or none */
    CHOICES = SLOTS * SLOTS,
    RESOURCES = 2, /* cpu, and one kind of device */
    GANGS = 12,
    NODES = 4,
    PODS_MAX = 6, /* of a gang */
};

enum resource { CPU, DEVICE };

/* What a gang runs on, in one number: the flavor of each resource that it asks for, and none of the
 * others. Where both are of one resource group they are the same. */
static inline int choice_of(int cpu, int device)
{
    return (cpu == NONE ? FLAVORS : cpu) * SLOTS + (device == NONE ? FLAVORS : device);
}

/* FLAVORS: it has none of that. */
static inline int flavor_of(int choice, enum resource r)
{
    return r == CPU ? choice / SLOTS : choice % SLOTS;
}

/* Of one flavor and resource; without a nominal it isn't listed. */
struct quota {
    int nominal;
    int borrowing;
    int lending;
};

struct member {
    bool exists;
    bool is_object;  /* a cohort may exist by its name alone */
    int parent;      /* a cohort, or NONE */
    int weight;      /* fairSharing, in halves; NONE: not set */
    int half_life_s; /* fairSharing; NONE: not set */
    struct quota quota[FLAVORS][RESOURCES];
};

enum within { WITHIN_NEVER, WITHIN_LOWER, WITHIN_LOWER_OR_NEWER };
enum reclaim { RECLAIM_NEVER, RECLAIM_LOWER, RECLAIM_ANY };

struct model_queue {
    int flavors[FLAVORS]; /* in the order in which they are tried; NONE ends them */
    int cards[FLAVORS];   /* those of the second group, where the state has two */
    enum within within;
    enum reclaim reclaim;
    bool borrows_within; /* borrowWithinCohort LowerPriority */
    int threshold;       /* its maxPriorityThreshold */
    int protect_s;       /* minRuntimeProtection */
    bool is_strict;
    bool is_backfill;
    int starvation_s;      /* starvationBound */
    int default_runtime_s; /* an estimate */
    int max_runtime_s;
    bool looks_on_before_borrowing; /* whenCanBorrow TryNextFlavor */
    bool is_stopped;
    uint32_t classes;    /* a bit for each priority that may be used; 0: all */
    int past[RESOURCES]; /* used before, in units times seconds, as of so long ago */
    int past_s;          /* NONE: the status says nothing */
};

struct model_gang {
    bool exists;
    int queue;
    int priority;
    int age_s; /* since its creation */
    int uid;   /* smaller is lower */
    int count;
    int min; /* NONE: no min-count */
    bool is_partial;
    bool is_held;
    int ask[RESOURCES]; /* of one pod */
    int bound_s;        /* its own run-time bound */
    int selector;       /* the flavor whose nodes it insists on */
    bool is_running;
    int flavor;          /* the choice on which it runs */
    int runs_s;          /* since its admission */
    int saved_s;         /* since its last checkpoint */
    int nodes[PODS_MAX]; /* of its pods; NONE: not bound yet */
};

struct model_node {
    bool exists;
    int flavor;
    int has[RESOURCES];
    int pods;
};

struct model_state {
    bool is_physical; /* else every queue has fit: Quota, and there are no nodes */
    bool has_devices;
    bool is_dra;     /* devices come by claims; else they are a device plugin's */
    bool keeps_room; /* some queues keep room for their heads; on nodes all pods are alike then */
    bool has_groups; /* devices are a resource group of their own, whose flavors are every node */
    struct member members[MEMBERS];
    struct model_queue queues[QUEUES];
    struct model_gang gangs[GANGS];
    struct model_node nodes[NODES];
};

/* What kinds of states there are to be. */
struct kinds {
    bool may_be_contested; /* a third have cohorts that own most of the quota, and queues that may
                              take it from each other */
    bool may_have_groups;  /* a quarter have two resource groups */
    bool may_look_back;    /* half of those with fair sharing have half-lives and past use */
    bool may_have_classes; /* some queues take some PriorityClasses only */
    bool may_keep_room;    /* a quarter have run-time bounds and queues that keep room for a head */
};

#define ALL_KINDS                                                                                  \
    ((struct kinds){.may_be_contested = true,                                                      \
                    .may_have_groups = true,                                                       \
                    .may_look_back = true,                                                         \
                    .may_have_classes = true,                                                      \
                    .may_keep_room = true})

/* The same seed gives the same state. */
void state_generate(struct model_state *state, uint64_t seed, struct kinds kinds);

struct answer {
    enum decision decision;
    int count;
    int flavor;       /* a choice */
    uint32_t victims; /* a bit each */
    enum reason reason;
    bool is_reason_open; /* looked at again, and there is more than one moment to tell of */
};

/* What the core decides. */
void core_answer(const struct model_state *state, struct answer answers[GANGS]);
/* What a core that runs decides about gangs of these names. */
void core_read_answers(const struct core *core, struct answer answers[GANGS]);
/* The state as a case for tests/cases, expecting these answers. */
void state_print(const struct model_state *state, const struct answer answers[GANGS], FILE *out);
/* "quay/g3 Admit count=2 flavor:cpu=f0", as an expectation of a case. */
void answer_print(const struct model_state *state, int gang, const struct answer *answer,
                  FILE *out);
/* Simplifies the state while the core and the model still differ about it. */
typedef bool (*differs_fn)(const struct model_state *state);
void state_shrink(struct model_state *state, differs_fn differs);
