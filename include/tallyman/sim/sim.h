/* sim.h - a virtual cluster in virtual time.
 *
 * Plays API server, Job controller, ResourceClaim controller, a scheduler that places pod by pod,
 * and the kubelets; Tallyman's own core and driver may run in it, or not. No real time passes and
 * nothing is random: the same objects, options and calls give the same run, byte for byte.
 *
 * Who does what, and the sources of the rules, is told in docs/simulate.md. In short:
 * - a pod runs for annotation example.com/run-for (of the pod or its Job), for ever without it;
 * - a Job with label tallyman.dev/queue is a gang: its work goes on only while at least min-count
 *   of its pods are ready at once, with and without Tallyman;
 * - with Tallyman a labelled Job is suspended as it is created, as config/policies has it; without,
 *   the label means nothing and a labelled Job isn't suspended.
 *
 * A test: sim_new(), sim_load() its objects, sim_run_until() to let things happen, then
 * questions and sim_check(). Objects with annotation example.com/submit-after appear that much
 * later, those with example.com/delete-after go then; example.com/conditions on a Node tells how
 * its conditions change. */
#pragma once

#include "tallyman/api/dra.h"
#include "tallyman/driver/driver.h"

struct sim;

#define SIM_ANNOTATION_RUN_FOR      "example.com/run-for"
#define SIM_ANNOTATION_SUBMIT_AFTER "example.com/submit-after"
#define SIM_ANNOTATION_DELETE_AFTER "example.com/delete-after"
#define SIM_ANNOTATION_CONDITIONS   "example.com/conditions" /* of a Node: "10m Ready=False, …" */

/* How long things take. A zero is taken as the value in brackets. */
struct sim_delays {
    int64_t watch_ms;     /* from a change to whoever watches (5) */
    int64_t write_ms;     /* from a write of Tallyman's to its answer (10) */
    int64_t schedule_ms;  /* kube-scheduler's time for one pod (10) */
    int64_t bind_ms;      /* from its choice to the pod's nodeName (10) */
    int64_t start_ms;     /* from there to Ready (2000) */
    int64_t stop_ms;      /* from a pod's deletion to its end (1000) */
    int64_t provision_ms; /* from a ProvisioningRequest to its condition Provisioned (60000) */
};

enum sim_note_kind {
    SIM_JOB_SUBMITTED = 1,
    SIM_JOB_ADMITTED,  /* `text`: the flavor */
    SIM_JOB_SUSPENDED, /* `text`: the cause, if Tallyman did it */
    SIM_JOB_WAITS,     /* `text`: "Reason: sentence", as its Admission says; absent: no more */
    SIM_JOB_WHOLE,     /* min-count pods ready at once: it works */
    SIM_JOB_BROKEN,    /* not any more */
    SIM_JOB_FINISHED,  /* `text`: "Complete" or "Failed: why" */
    SIM_JOB_DELETED,
    SIM_POD_BOUND,         /* `pod`, `node`; `text`: its devices, "gpu-0 gpu-1" */
    SIM_POD_UNSCHEDULABLE, /* `pod`; `text`: as kube-scheduler says it */
    SIM_POD_ENDED,         /* `pod`; terminal, or gone */
    SIM_EVENT,             /* an Event that Tallyman recorded; `text`: "Reason: note" */
};

/* Something that a spectator wants to know. Texts are borrowed for the call. */
struct sim_note {
    int64_t at_ms; /* since the start */
    enum sim_note_kind kind;
    struct str job; /* "namespace/name"; absent: a pod without a Job */
    struct str pod; /* its name */
    int64_t index;  /* completion index of an Indexed Job's pod; -1: none */
    struct str node;
    struct str text;
    bool is_late; /* by a write of a controller that was */
};

/* What a fault makes of a write of Tallyman's. */
enum sim_fault {
    SIM_FAULT_NONE = 0,
    SIM_FAULT_LOST,        /* never arrives; the answer is WRITE_RETRY */
    SIM_FAULT_ANSWER_LOST, /* is carried out; the answer is WRITE_RETRY */
    SIM_FAULT_CONFLICT,    /* somebody was first: 409 */
    SIM_FAULT_REFUSED,     /* by somebody's webhook: 422 */
    SIM_FAULT_OVERLOADED,  /* 429, with a second to wait */
};

/* What a fault makes of one watch event, which keeps its place in its kind's stream. */
struct sim_watch_fault {
    int64_t late_ms; /* on top of the delay; those behind it come no earlier */
    bool is_twice;
};

/* What becomes of the writes that are on their way when the controller is killed. */
enum sim_writes {
    SIM_WRITES_LOST = 0, /* they never arrive */
    SIM_WRITES_APPLIED,  /* they are carried out before the next one lists */
    SIM_WRITES_LATE,     /* they arrive while the next one is at work, as an old leader's do */
};

struct sim_options {
    bool has_tallyman;
    int64_t start_ms; /* what the clock says at the start, since 1970; 0: 2026-01-01T00:00:00Z */
    struct sim_delays delays;
    uint64_t seed; /* other than 0: every delay is stretched by up to as much again, by this seed */
    void *ctx;     /* borrowed; for the calls below */
    void (*on_note)(void *ctx, const struct sim_note *note);
    enum sim_fault (*fault)(void *ctx, const struct driver_write *write);
    void (*watch_fault)(void *ctx, enum object_kind kind, struct sim_watch_fault *ret_fault);
    /* As the driver's ports: every event and what the core asked for. */
    void (*on_event)(void *ctx, const struct event *event);
    void (*on_effects)(void *ctx, const struct event *event, const struct effects *effects);
    void (*on_refused)(void *ctx, const struct event *event, const struct err *err);
    /* What a store would keep; see driver.h. */
    void (*persist)(void *ctx, struct str gang_uid, const struct gang_memory *memory);
    void (*ledger)(void *ctx, const struct effect *effect);
};

/* `options` is copied. Owned; sim_free(). */
struct sim *sim_new(const struct sim_options *options);
void sim_free(struct sim *sim); /* NULL is fine */

/* -- what users do ------------------------------------------------------------------------------
 */

/* Applies an object: creates it (later, if it has SIM_ANNOTATION_SUBMIT_AFTER; a Job's
 * creationTimestamp counts too where it is behind the start), or replaces metadata and spec of the
 * one that is there and keeps uid and status. Copied. RC_INVALID: a bad annotation, or a name that
 * is missing; the sentence names object and field. RC_REFUSED: what an API server would refuse. */
NODISCARD struct rc sim_load(struct sim *sim, const struct object *object, struct err *err);
/* Deletes it as `kubectl delete` does: dependents follow, pods stop first, finalizers hold it.
 * False: there is none. `namespace_name` is absent for cluster-wide kinds. */
bool sim_delete(struct sim *sim, enum object_kind kind, struct str namespace_name, struct str name);
/* A user's `kubectl annotate job`; an absent value removes it. False: no such Job. */
bool sim_job_annotate(struct sim *sim, struct str namespace_name, struct str name, struct str key,
                      struct str value);
/* A user's `kubectl patch job` of spec.suspend and spec.parallelism. False: no such Job. */
bool sim_job_suspend(struct sim *sim, struct str namespace_name, struct str name, bool suspend);
bool sim_job_scale(struct sim *sim, struct str namespace_name, struct str name,
                   int64_t parallelism);
/* The node's condition Ready. Its pods stop being ready; after 5 min they are deleted, and are gone
 * only when the node is back or deleted. False: no such node. */
bool sim_node_set_ready(struct sim *sim, struct str name, bool is_ready);
/* A pod fails (its container exits with an error). False: no such pod. */
bool sim_pod_fail(struct sim *sim, struct str namespace_name, struct str name);

/* -- time -----------------------------------------------------------------------------------------
 */

/* Lets everything happen that is due until then (since the start). Returns the time of the last
 * thing that happened in this call, -1 if nothing did. */
int64_t sim_run_until(struct sim *sim, int64_t until_ms);
int64_t sim_now_ms(const struct sim *sim); /* since the start */
/* When something is due next; INT64_MAX: never again. */
int64_t sim_next_ms(const struct sim *sim);

/* Kills the controller and starts it again with nothing but what the API server has. */
void sim_restart_controller(struct sim *sim, enum sim_writes writes);
/* The same in two steps: between them nobody decides. */
void sim_stop_controller(struct sim *sim, enum sim_writes writes);
void sim_start_controller(struct sim *sim);
/* The watch of that kind breaks: what is on its way is lost, and after that time a fresh list tells
 * what there is and what has gone. Only where `watch_fault` is set. */
void sim_relist(struct sim *sim, enum object_kind kind, int64_t after_ms);
/* The clock that Tallyman reads jumps forwards; nothing else does. */
void sim_step_clock(struct sim *sim, int64_t by_ms);

/* -- questions ------------------------------------------------------------------------------------
 */

/* The object as it stands, NULL if there is none. Borrowed until time passes or anything is done.
 */
const void *sim_find(const struct sim *sim, enum object_kind kind, struct str namespace_name,
                     struct str name);
/* Calls `each` for every object of that kind, in order of namespace and name. */
void sim_each(const struct sim *sim, enum object_kind kind,
              void (*each)(void *ctx, const void *value), void *ctx);

struct sim_job_state {
    struct str namespace_name; /* borrowed as sim_find() */
    struct str name;
    bool is_suspended;
    bool is_finished; /* Complete or Failed */
    bool is_gang;     /* names a queue */
    bool is_whole;    /* at least min-count of its pods are ready or have succeeded; not finished */
    int64_t wanted;   /* pods that want to run at once */
    int64_t min_count;
    int64_t pods;  /* not terminal, terminating ones included */
    int64_t bound; /* of them, those that have a node */
    int64_t ready;
    int64_t succeeded;
    int64_t devices;        /* DRA devices that its pods' claims hold */
    int64_t partial_max_ms; /* the longest time it had some pods bound and not min-count; neither
                             * after a suspension nor after a pod was lost */
    int64_t partial_ms;     /* how long it has been so now; 0: it isn't */
};

bool sim_job_state(const struct sim *sim, struct str namespace_name, struct str name,
                   struct sim_job_state *ret_state);
/* Its pods that have a node and are neither terminal nor being stopped; 0: no such Job. Cheap. */
int64_t sim_job_bound(const struct sim *sim, struct str namespace_name, struct str name);

struct sim_devices {
    int64_t total;            /* devices of complete pools on nodes that exist */
    int64_t held;             /* keys that some allocation names */
    int64_t held_for_nothing; /* of them, by gangs that aren't whole */
};

struct sim_devices sim_devices(const struct sim *sim);
/* Another number after each change of a Node or a ResourceSlice. */
uint64_t sim_supply_version(const struct sim *sim);
/* Device-milliseconds held by gangs that weren't whole, until now. */
int64_t sim_wasted_device_ms(const struct sim *sim);

/* Checks what must hold at any moment: no node holds more than it has, no device is allocated
 * twice. RC_INVALID with a sentence that names the node or device. */
NODISCARD struct rc sim_check(const struct sim *sim, struct err *err);

/* Borrowed; NULL without Tallyman, and before sim_run_until() is called first: it starts on a
 * cluster that has what was loaded until then. */
struct core *sim_core(const struct sim *sim);
