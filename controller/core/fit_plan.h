/* fit_plan.h - what a judgement puts on nodes and devices on top of what is there, and how it is
 * taken back. Private to the core.
 *
 * A plan begins with the pods that are on their way, crowd by crowd, and goes on with those of the
 * gang that is judged. Within a pass nothing else changes on the nodes, so the next judgement takes
 * back what was the candidate's and keeps the crowds, as far as they are the same: one that has
 * grown by the gang that was let go is placed further from where it ended. What stands there then
 * is what a new plan would hold. */
#pragma once

#include "fit.h"

/* One crowd of pods on their way, as it was placed. */
struct plan_layer {
    struct pod_demand demand;
    int64_t pods;
    uint32_t first; /* of its entries */
    bool may_go_on; /* placing some and then the others is placing all */
};

/* Pods of a set on a node; or one device. */
struct plan_entry {
    struct node_state *node;
    const struct pod_set *set;
    int64_t pods;
    struct device_state *device; /* NULL: pods */
};

/* More kinds of pods are counted anew. */
#define PLAN_LONE_MAX 32

/* How many pods of a kind had a place when nothing else was planned. */
struct plan_lone {
    struct pod_demand demand; /* its selector is its set's */
    bool is_contested;
    int64_t asked;
    int64_t placed; /* fewer than asked: all that there are */
};

struct plan {
    struct plan_entry *entries; /* owned; what was planned, in that order */
    uint32_t entry_count;
    uint32_t entry_capacity;
    struct plan_layer *layers; /* owned */
    uint32_t layer_count;
    uint32_t layer_capacity;
    uint32_t layers_end; /* entries from here on are of the candidate */
    uint64_t pass;       /* whose state the layers rest on */
    struct plan_lone lone[PLAN_LONE_MAX];
    uint32_t lone_count;
    uint64_t lone_pass; /* whose state they rest on */
    bool is_lost;       /* something is planned that isn't noted */
    bool is_inexact;    /* since it was last cleared: how many fit depends on how many were asked */
};

void fit_plan_init(struct core *core);
void fit_plan_free(struct core *core);
/* Nothing is planned but these crowds. */
void fit_plan_promised(struct core *core, const struct crowd_list *list);

/* Of so many pods, how many find a place where nothing is planned; within a pass it is counted once
 * for each kind of pod. What is planned may be anything afterwards. */
int64_t fit_place_alone(struct core *core, const struct pod_demand *demand, int64_t want,
                        bool is_contested);

/* For those who plan: */
void plan_note_pods(struct core *core, struct node_state *node, const struct pod_set *set,
                    int64_t pods);
void plan_note_device(struct core *core, struct device_state *device);
void plan_drop_device(struct core *core, const struct device_state *device); /* the last noted */
void plan_note_other(struct core *core); /* can't be taken back */
/* device_use.c: as if it had never been planned. */
void device_take_back(struct core *core, struct device_state *device);
/* Its objects may be freed. */
void plan_lose(struct core *core);

/* -- fit_promises.c: whose pods are on their way ------------------------------------------------
 */

/* Before what the gang promises is another number, or its reservation is. */
void fit_promises_changed(struct core *core, struct gang *gang);
void fit_promises_free(struct core *core);
