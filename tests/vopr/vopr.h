/* vopr.h - the real core and driver on a simulated cluster, with faults at every seam.
 *
 * A run is a list of operations drawn from a seed (support/property.h shrinks it where it fails):
 * users make, edit, hold and delete Jobs, nodes and devices come and go, quota changes, and writes
 * and watches go wrong: lost, answered late or never, refused, in conflict; late, twice, broken;
 * the controller is killed, the clock jumps, an old leader's writes arrive late. cluster.c makes
 * the objects, check.c knows what must hold and looks at the cluster's objects alone, never at the
 * core. At the end the faults stop: everybody who can run has to run, and then all is quiet. */
#pragma once

#include "tallyman/sim/sim.h"

#define VOPR_JOBS   8
#define VOPR_NODES  3
#define VOPR_QUEUES 3
#define VOPR_MADE   256 /* Jobs of one run */

#define NODE_CPU_MILLI 4000
#define NODE_DEVICES   2
#define NODE_PODS      5

enum vopr_resource { CPU_MILLI = 0, DEVICES, RESOURCE_COUNT };

/* What one Job asks for, as it was made. */
struct vopr_shape {
    uint32_t queue;
    int64_t pods;
    int64_t per_pod[RESOURCE_COUNT];
    bool is_high;
    bool is_shared; /* its pods share one named claim, so they go to one node */
    bool is_by_limits, has_sidecar, has_zero; /* ways to ask for the same */
    bool is_partial;
    int64_t min_count; /* 0: all */
    int64_t run_s;
};

struct vopr_made {
    char uid[64];
    int64_t made_ms;
    int64_t left_count; /* of its pods, that held quota when it was deleted */
    struct vopr_shape shape;
};

struct vopr {
    struct sim *sim;
    uint64_t random;        /* for the faults */
    uint32_t fault_rate;    /* of 100 writes and watch events */
    uint32_t kinds;         /* of operations, bit by bit: each run leaves some out */
    bool is_disturbed;      /* room may have gone under an admitted gang's feet */
    bool is_remade;         /* a Job was made again under the name of one that ran */
    bool is_charge_unsure;  /* what stops may be charged or not; what runs is */
    uint64_t writes;        /* that were sent */
    uint64_t minute_writes; /* of them in `minute` */
    int64_t minute;
    int64_t quota[VOPR_QUEUES][RESOURCE_COUNT];
    /* the highest that a queue's quota was since `quota_since_ms`: a change is seen late */
    int64_t quota_seen[VOPR_QUEUES][RESOURCE_COUNT];
    int64_t quota_changed_ms;
    /* Counted in events that the controller got: since when it knows each quota as it is (0: it
     * doesn't), and when it asked for each Job's start, with which write. */
    uint64_t events;
    uint64_t known_since[VOPR_QUEUES];
    uint64_t asked_at[VOPR_JOBS];
    uint64_t asked_by[VOPR_JOBS];
    int64_t room_changed_ms;        /* nodes, devices, or pods that aren't the controller's doing */
    int64_t fault_ms;               /* the last that struck */
    int64_t class_changed_ms;       /* or a hold: who is before whom */
    int64_t high_value;             /* of the PriorityClass */
    uint32_t devices[VOPR_NODES];   /* that its slice lists */
    int64_t starting_ms[VOPR_JOBS]; /* when a write that starts it was sent last */
    int64_t waits_ms[VOPR_JOBS];    /* since when its Admission says that it waits for room */
    int64_t promised_ms[VOPR_JOBS]; /* when somebody was first asked to stop for it; 0: nobody */
    int64_t late_ms[VOPR_JOBS];     /* when a write of a controller that was started it; 0: none */
    int64_t loose_ms[VOPR_JOBS];    /* since when it runs without a record; 0: it doesn't */
    int64_t broken_ms[VOPR_JOBS];   /* since when it is admitted and not whole; 0: it isn't */
    int64_t oversized_ms[VOPR_JOBS]; /* since when it has more pods than it was admitted with */
    struct vopr_made made[VOPR_MADE];
    uint32_t made_count;
    uint32_t generation; /* of the pools */
    uint32_t foreign_pods;
    bool is_scaled[VOPR_JOBS];        /* by its user, to what may not fit */
    bool is_restarted[VOPR_JOBS];     /* by its user, while it had a record */
    bool is_admitted[VOPR_JOBS];      /* by a note, and not undone since */
    bool is_just_admitted[VOPR_JOBS]; /* and not looked at yet */
};

/* -- cluster.c -- */

void cluster_given(struct vopr *v);
void cluster_queue(struct vopr *v, uint32_t queue, const char *stop_policy);
void cluster_node(struct vopr *v, uint32_t node);
void cluster_slice(struct vopr *v, uint32_t node, uint32_t devices, uint32_t generation);
/* False: the name is taken. */
bool cluster_job(struct vopr *v, uint32_t number, uint8_t draw);
void cluster_foreign_pod(struct vopr *v, uint32_t number, uint32_t node, int64_t cpu_milli);
struct str job_name(uint32_t number);
struct str queue_name(uint32_t queue);

void cluster_priority_class(struct vopr *v);
const struct vopr_shape *cluster_shape(const struct vopr *v, struct str job_uid);

/* -- room.c -- */

/* Fails if the gangs that run, and the one that was admitted just now, can't all have their pods
 * placed at once. */
void check_room(struct vopr *v, uint32_t number);
/* Since the controller must have seen all that changes the room. */
bool is_room_known(const struct vopr *v);

/* -- known.c -- */

void known_take(struct vopr *v, const struct event *event);
void known_ask(struct vopr *v, uint32_t number, uint64_t write_id);
void known_forget(struct vopr *v); /* there is another controller now */
bool known_at_start(const struct vopr *v, uint32_t number);
/* A gang was started, by this controller or by a late write of one that was. */
void known_start(struct vopr *v, uint32_t number, bool is_late);
/* A start by a late write may not have been seen yet. */
bool known_to_run(const struct vopr *v, uint32_t number);

/* -- order.c -- */

/* A gang was admitted: nobody of higher priority in its queue waits who asks for no more. */
void check_order(struct vopr *v, uint32_t number);
void order_hear(struct vopr *v, uint32_t number, const struct sim_note *note);
/* Somebody is to be suspended: whoever it is for keeps that room. */
void order_hear_stop(struct vopr *v, const struct job_patch *patch);
/* Nobody runs for long without a record, broken, or larger than admitted. */
void check_duration(struct vopr *v, uint32_t number);

/* -- check.c -- */

/* A change is seen by the controller after its delay, a fault's and a list's. */
#define SEEN_MS 30000

struct str vopr_job_uid(const struct pod *pod);       /* of the Job that made it; absent: none */
int64_t vopr_admitted_count(const struct job *job);   /* as its record says; -1: it has none */
void vopr_note_left(struct vopr *v, uint32_t number); /* before that Job is deleted */
bool vopr_is_over(const struct job *job);

/* What the gangs that run are charged, of its cohort together. */
int64_t vopr_used(struct vopr *v, uint32_t queue, enum vopr_resource resource);

/* What must hold at every moment; fails the test. */
void check_moment(struct vopr *v);
/* A gang was admitted just now. */
void check_admission(struct vopr *v, uint32_t number);
/* The faults have stopped and time has passed: nobody waits who could run. */
void check_drained(struct vopr *v);
