/* small.h - every order of events at small scope, on the real core and driver.
 *
 * Three gangs, two queues, two nodes. A world is a handful of numbers (what the API server has,
 * what is on its way to the controller and from it), a core and a driver. A step is one thing that
 * happens: a gang arrives, a watch event is delivered, a write is carried out or answered, pods are
 * made, placed, end or go, a user holds or deletes, a fault strikes. main.c goes breadth first
 * through all orders of them; two ways that lead to the same numbers and to the same memory of the
 * core (fingerprint.c) are followed once, so that it ends. check.c knows what must hold, by the API
 * server's side alone.
 *
 * Time stands still but for STEP_TICK, so that it tells no two orders apart. */
#pragma once

#include "tallyman/driver/driver.h"

#define SMALL_GANGS    3
#define SMALL_PODS     3 /* of one gang, at most */
#define SMALL_NODES    2
#define SMALL_QUEUES   2
#define SMALL_STREAM   32 /* events of one kind on their way */
#define SMALL_STEPS    200
#define SMALL_CHILDREN 64

/* What is given, and how much may go wrong on one way. */
struct small_gang {
    const char *name;
    uint8_t queue;
    uint8_t pods; /* of 1 cpu */
    bool is_high; /* priority */
};

struct small_scope {
    const char *name;
    struct small_gang gangs[SMALL_GANGS];
    uint8_t gang_count; /* that come */
    uint8_t quota[SMALL_QUEUES];
    uint8_t node_cpu;
    const char *strategy;
    bool has_late_admissions; /* their writes take their time */
    uint8_t placements;       /* 0: pods are placed as they are made; else ways to place them */
    uint8_t user_edits;       /* deletions, holds and edits on one way, each kind once */
    uint8_t lag;              /* events on their way, beyond which nothing new happens */
    uint8_t faults;           /* crashes, lost writes, broken watches on one way, each kind once */
    uint8_t ticks;
};

/* -- the API server's side, in numbers --------------------------------------------------------- */

enum small_stage { STAGE_NOT_YET = 0, STAGE_THERE, STAGE_GONE };

struct small_job {
    uint8_t stage;
    bool is_suspended, is_held;
    bool has_stopped; /* condition Suspended */
    bool is_started;
    bool is_complete;
    uint8_t active, terminating, succeeded;
    uint8_t filler; /* states are compared byte by byte */
    uint16_t version;
    uint16_t record, suspended; /* texts; 0: none */
};

enum small_pod_stage { POD_NONE = 0, POD_PENDING, POD_BOUND, POD_STOPPING, POD_DONE, POD_REMOVED };

struct small_pod {
    uint8_t stage;
    uint8_t node;  /* from 1; 0: none */
    uint8_t batch; /* its Job has been started so often */
};

struct small_job_event {
    uint8_t gang;
    uint8_t filler;
    struct small_job job;
};

struct small_pod_event {
    uint8_t gang;
    struct small_pod pods[SMALL_PODS];
};

enum small_write_stage { WRITE_NONE = 0, WRITE_SENT, WRITE_APPLIED, WRITE_PAUSED };

/* A Job's PATCH on its way. */
struct small_write {
    uint8_t stage;
    uint8_t outcome; /* enum write_outcome, once it is applied */
    uint8_t purpose;
    bool has_suspend, suspend, removes_record, removes_suspended, sets_hold;
    uint16_t record, suspended;
    uint16_t base_version, result_version;
};

struct small_state {
    int64_t now_ms;
    uint8_t ticks, user_edits, faults;
    uint32_t used_kinds; /* of edits and faults, bit by bit */
    struct small_job jobs[SMALL_GANGS];
    struct small_pod pods[SMALL_GANGS][SMALL_PODS];
    uint8_t stops[SMALL_GANGS]; /* how often Tallyman has suspended it */
    struct small_job told_jobs[SMALL_GANGS];
    struct small_pod told_pods[SMALL_GANGS][SMALL_PODS];
    struct small_job_event job_events[SMALL_STREAM];
    uint8_t job_event_count;
    struct small_pod_event pod_events[SMALL_STREAM];
    uint8_t pod_event_count;
    struct small_write writes[SMALL_GANGS];
    bool is_room_unsure; /* a Job went before its pods were seen: nobody can know of them */
};

/* An Admission's write on its way. */
struct small_admission_write {
    uint64_t id;
    bool is_deletion;
    uint8_t gang;              /* whose name it has */
    struct admission *content; /* owned */
    struct str uid;            /* borrowed from the driver */
};

struct small_world {
    const struct small_scope *scope;
    struct small_state state;
    struct core *core;     /* owned */
    struct driver *driver; /* owned */
    int64_t wake_ms;
    uint64_t write_ids[SMALL_GANGS];
    uint64_t answers[64]; /* writes that are answered at once */
    uint32_t answer_count;
    struct small_admission_write admission_writes[16];
    uint32_t admission_write_count;
    struct admission *admissions[SMALL_GANGS]; /* owned; by the first gang of that name */
    uint32_t admission_serial;
    bool is_quiet;    /* somebody only looks: nothing is checked */
    bool is_draining; /* time may pass as often as it takes */
};

/* -- objects.c: what the controller is told ------------------------------------------------------
 */

void objects_given(const struct small_scope *scope);
void objects_list_given(struct driver *driver);
void objects_tell_job(struct small_world *world, uint8_t gang, const struct small_job *job);
void objects_tell_pods(struct small_world *world, uint8_t gang, const struct small_pod *pods);
struct str objects_uid(uint8_t gang);
uint8_t objects_gang_of(struct str uid);
uint8_t objects_first_named(const struct small_scope *scope, uint8_t gang);
int64_t objects_created_ms(uint8_t gang);
uint16_t text_id(struct str text); /* 0: absent */
struct str text_of(uint16_t id);

#define SMALL_START_MS INT64_C(1767225600000)

/* -- world.c: the controller's side ---------------------------------------------------------------
 */

void world_settle(struct small_world *world); /* what is answered at once is answered */
void world_write_admissions(struct small_world *world);
void world_remove_admission(struct small_world *world, uint8_t gang);
void world_crash(struct small_world *world, bool is_applied);
void world_deliver_job(struct small_world *world);
void world_deliver_pods(struct small_world *world);
void world_relist_jobs(struct small_world *world);
void world_relist_pods(struct small_world *world);

/* -- cluster.c: the API server's side ------------------------------------------------------------
 */

bool cluster_has_pods(const struct small_world *world, uint8_t gang, uint8_t stage);
bool cluster_is_alive(const struct small_world *world, uint8_t gang);
bool cluster_can_place(const struct small_world *world, uint8_t gang);
void cluster_job_changed(struct small_world *world, uint8_t gang);
void cluster_make_pods(struct small_world *world, uint8_t gang);
void cluster_place_pods(struct small_world *world, uint8_t gang, bool from_last);
void cluster_stop_pods(struct small_world *world, uint8_t gang);
void cluster_pods_gone(struct small_world *world, uint8_t gang);
void cluster_end(struct small_world *world, uint8_t gang);
void cluster_delete_job(struct small_world *world, uint8_t gang);
void cluster_carry_out(struct small_world *world, uint8_t gang); /* its write */
void cluster_answer(struct small_world *world, uint8_t gang, enum write_outcome outcome);

/* -- steps.c: what can happen
 * ---------------------------------------------------------------------- */

enum small_step_kind {
    STEP_DELIVER_JOB = 1, /* the first of the stream */
    STEP_DELIVER_PODS,
    STEP_APPLY,  /* the API server carries a write out */
    STEP_ANSWER, /* and the answer comes */
    STEP_ADMISSIONS,
    STEP_MAKE_PODS,
    STEP_PLACE,      /* all its pods, from the first node on */
    STEP_PLACE_LAST, /* or from the last */
    STEP_STOP,       /* the Job controller deletes the pods of a suspended Job */
    STEP_GONE,       /* and they are gone */
    STEP_ARRIVE,
    STEP_END,
    STEP_TICK, /* the time comes that core or driver asked for */
    STEP_EDITS,
    STEP_DELETE = STEP_EDITS,
    STEP_HOLD,
    STEP_LIFT,
    STEP_TOUCH, /* somebody else writes to the Job */
    STEP_FAULTS,
    STEP_LOSE_WRITE = STEP_FAULTS,
    STEP_LOSE_ANSWER,
    STEP_REFUSE,
    STEP_CRASH,         /* what is on its way is lost */
    STEP_CRASH_APPLIED, /* what is on its way arrives */
    STEP_RELIST_JOBS,   /* the watch breaks; what is on its way is lost, a new list tells */
    STEP_RELIST_PODS,
    STEP_COUNT,
};

struct small_step {
    uint8_t kind;
    uint8_t gang;
};

struct small_world *world_new(const struct small_scope *scope);
/* A controller that starts on what the other's API server has. */
struct small_world *world_restarted(const struct small_world *other);
void world_free(struct small_world *world);
bool world_can(const struct small_world *world, struct small_step step);
void world_do(struct small_world *world, struct small_step step);
/* Nothing is on its way, nobody has anything to do. */
bool world_is_quiet(const struct small_world *world);
const char *step_name(uint8_t kind);

/* -- fingerprint.c ----------------------------------------------------------------------------- */

uint64_t world_fingerprint(const struct small_world *world);

/* -- check.c: what must hold ---------------------------------------------------------------------
 */

/* A write that starts a gang has just been carried out. */
void check_started(const struct small_world *world, uint8_t gang);
/* A gang's pods were made: there has to be room for all of them. */
void check_room(const struct small_world *world, uint8_t gang, bool is_placed);
void check_stopped(const struct small_world *world, uint8_t gang);
/* At rest: lets the pauses of a minute pass. False: somebody had something to do after one. */
bool check_pauses(struct small_world *world);
/* At rest: a controller that starts now decides alike. */
void check_restart(const struct small_world *world);
/* At rest: when gangs end and time passes, everybody runs. Uses the world up. */
void check_drains(struct small_world *world);

/* -- main.c -- */

/* Tells the way that led here, and ends the program. */
void small_fail(const char *format, ...) PRINTF_LIKE(1, 2) __attribute__((noreturn));
