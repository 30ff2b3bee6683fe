/* core.h - the decisions: an event in, a list of things to do out.
 *
 * The core is a pure function of its events: no clock, no I/O, no randomness, so that the same
 * events give the same effects byte for byte. Time arrives in the event. A gang is a Job that
 * names a queue: it starts whole, waits whole, stops whole.
 *
 * Contract with the driver:
 * - every object of every kind is fed as EVENT_OBJECT and EVENT_DELETED, and EVENT_SYNCED once a
 *   kind's first listing is complete (or the kind is absent); nothing is decided before all kinds
 *   are synced;
 * - every effect with an id ends in exactly one EVENT_EFFECT_DONE;
 * - effects are idempotent: a driver may send one again until it gets a definite answer;
 * - at effects.wake_at_ms at the latest, a tick (any event) follows. */
#pragma once

#include "tallyman/api/admission.h"
#include "tallyman/api/job.h"
#include "tallyman/api/kinds.h"
#include "tallyman/api/provisioning.h"
#include "tallyman/api/queue.h"
#include "tallyman/base/arena.h"
#include "tallyman/base/err.h"
#include "tallyman/core/reason.h"

struct core;

enum event_kind {
    EVENT_OBJECT = 1, /* `object` is new or changed */
    EVENT_DELETED,    /* `object` is gone (its last state) */
    EVENT_SYNCED,     /* `synced_kind` has been listed whole, or is absent; again as that changes */
    EVENT_TICK,       /* time has passed */
    EVENT_EFFECT_DONE, /* `done` */
};

enum effect_outcome {
    EFFECT_OK = 1,
    EFFECT_CONFLICT, /* somebody changed the object first; the watch will show it */
    EFFECT_GONE,     /* the object, or that incarnation of it, is no more */
    EFFECT_REFUSED,  /* the API server said no; `message` quotes it */
};

struct effect_done {
    uint64_t effect_id;
    enum effect_outcome outcome;
    struct str resource_version; /* of the object after the write; absent unless OK */
    struct str message;          /* absent unless REFUSED */
};

struct event {
    int64_t now_ms; /* never smaller than the event's before it; the core takes the larger */
    enum event_kind kind;
    struct object object; /* borrowed for the step */
    enum object_kind synced_kind;
    bool is_absent;          /* EVENT_SYNCED: the server doesn't serve that kind */
    struct effect_done done; /* borrowed for the step */
    bool more_follow;        /* of the same moment: it is taken in, and the last one decides */
};

enum effect_kind {
    EFFECT_PATCH_JOB = 1,    /* `patch`, guarded by uid and resourceVersion */
    EFFECT_WRITE_ADMISSION,  /* content by core_admission_content() when it is sent */
    EFFECT_DELETE_ADMISSION, /* of that uid: another Job's of the same name, or nobody's any more */
    EFFECT_RECORD_EVENT,     /* `note`; core_event_is_told() when it is sent */
    EFFECT_WRITE_STATUS,     /* of a Queue, Cohort or ResourceFlavor; core_status_content() */
    EFFECT_SET_FINALIZER,    /* of a Queue: its whole list is `finalizers` */
    EFFECT_MARK_POD,         /* a Pod's annotation, as `patch` has the checkpoint's; no answer */
    EFFECT_MAKE_REQUEST,   /* a ProvisioningRequest and its PodTemplates; core_request_content() */
    EFFECT_DELETE_REQUEST, /* of that uid; no answer */
    EFFECT_PERSIST,        /* `memory`; no answer */
    EFFECT_LEDGER,         /* `transition`; no answer */
};

enum job_patch_purpose {
    PATCH_ADMIT = 1,
    PATCH_SUSPEND,
    PATCH_RESTORE,
    PATCH_CHECKPOINT,
    PATCH_FINISH, /* unsuspended, since no pod is left to start: the Job controller ends it then */
};

/* What is changed in the pod template of one set, and in its size. */
struct template_patch {
    struct str pod_set;
    struct string_map node_selector; /* an absent value removes the key */
    bool sets_tolerations;           /* the whole list; empty removes it */
    struct toleration_list tolerations;
    struct affinity *affinity;     /* its required node terms alone are set; NULL: left alone */
    const char *drops_affinity;    /* static; "affinity", "nodeAffinity" or "required" goes */
    struct string_map annotations; /* an absent value removes the key */
    struct opt_int parallelism;
    bool sets_completions; /* to the same number, for an Indexed Job whose two are one */
};

/* One merge PATCH of a Job. Absent members are left alone. */
struct job_patch {
    enum job_patch_purpose purpose;
    struct opt_bool suspend;
    struct str queue_label; /* label tallyman.dev/queue, where the Job has none */
    struct str record;      /* annotation tallyman.dev/admission; see removes_record */
    bool removes_record;
    struct str suspended; /* annotation tallyman.dev/suspended */
    bool removes_suspended;
    struct str provisioning_attempt; /* annotation tallyman.dev/provisioning-attempt */
    struct str checkpoint_request;   /* annotations tallyman.dev/checkpoint-request: since when, */
    struct str checkpoint_for;       /* and tallyman.dev/checkpoint-for: for which gang */
    bool removes_checkpoint;         /* both */
    bool sets_hold;                  /* annotation tallyman.dev/hold: "true" */
    struct opt_int deadline_seconds; /* spec.activeDeadlineSeconds */
    bool removes_deadline;
    struct template_patch *templates; /* of a Job there is one at most */
    uint32_t template_count;
};

/* One Event on a Job. */
struct event_note {
    bool is_warning;
    const char *reason; /* static, CamelCase */
    const char *action; /* static, CamelCase */
    struct str text;
};

/* Soft state of a gang, kept by the store and carried by its Admission too. All zero: there is
 * nothing to keep, and when the gang is gone this is told once. */
struct gang_memory {
    int64_t requeue_count;
    int64_t requeue_at_ms; /* 0: none */
    int64_t evictions;
};

/* A line of the metering ledger: the gang went from one state to another. */
struct gang_transition {
    int64_t at_ms;
    const char *from; /* static; state names as in an Admission */
    const char *to;
    struct str cause; /* absent: none */
    struct str queue;
    int64_t pods;
    struct str amounts; /* "cpu=4000m gpu.example.com=4" */
};

struct effect {
    uint64_t id; /* 0: no answer wanted */
    enum effect_kind kind;
    enum object_kind object_kind;
    struct str namespace_name;
    struct str name;
    struct str uid;
    struct str resource_version;
    struct job_patch patch;
    struct event_note note;
    struct gang_memory memory;
    struct gang_transition transition;
    struct str_list finalizers; /* others' are kept */
    bool finalizer_wanted;      /* ours is among them */
    bool is_urgent; /* an Admission of a gang that was just admitted goes before the others */
};

/* What a step asks for. Items and their texts are borrowed from `arena` until it is reset. */
struct effects {
    struct arena *arena; /* brought by the caller */
    struct effect *items;
    uint32_t count;
    uint32_t capacity;
    int64_t wake_at_ms; /* INT64_MAX: nothing is due */
};

struct core_options {
    int64_t stuck_node_ms; /* pods on a node NotReady for so long hold no quota; 0: 5 min */
    bool is_plain; /* nothing is looked up in an index: the same decisions, slowly, for tests */
    /* For simulators: an Admission says state and reason alone and is written when they change;
     * positions and the statuses of other kinds aren't written. Decisions are the same. */
    bool is_terse;
    bool gives_advice; /* Admissions tell changes that would start a gang: where people read them */
    bool traces;       /* core_last_looks() tells what a step looked at */
    /* A step that has let so many gangs go leaves the others of its pass to the next one, which it
     * wants at once: a large release doesn't hold up what comes in meanwhile. If that next step is
     * a tick, the decisions are those of one pass. 0: no limit. */
    uint32_t admissions_per_step;
    /* Device selectors are tried on devices until that has cost so much since the last tick: units
     * of CEL_COST_MAX, SELECTOR_BASE_COST for each trial on top. Who needs more is judged when it
     * has been done, by the steps that follow at once; everybody else is judged meanwhile. 0: no
     * limit, and everybody is judged in his turn. */
    uint64_t selector_cost_per_step;
    /* Between two writes of one Admission, where the second tells no other state. 0: none. */
    int64_t admission_interval_ms;
};

/* Owned; core_free(). */
struct core *core_new(const struct core_options *options);
void core_free(struct core *core); /* NULL is fine */

/* Takes in one event and decides. `effects` is filled anew. A malformed object is an RC_INVALID
 * with a sentence and changes nothing. */
NODISCARD struct rc core_step(struct core *core, const struct event *event,
                              struct effects *ret_effects, struct err *err);

/* -- questions -------------------------------------------------------------------------------- */

enum decision {
    DECISION_ADMIT = 1,
    DECISION_PREEMPT,
    DECISION_WAIT,
    DECISION_HELD,
    DECISION_INVALID,
    DECISION_KEEP,
    DECISION_EVICT,
};

const char *decision_name(enum decision decision);

struct decided_pod_set {
    struct str name;
    int64_t count;
    struct string_map flavors; /* resource -> flavor */
    struct string_map
        node_selector;        /* that the admission writes into its pods; DECISION_ADMIT only */
    struct string_map domain; /* label -> value, the widest level first; empty: none */
    struct str_list avoided;  /* hostnames that the admission keeps its pods off; DECISION_ADMIT */
};

struct decided_gang {
    struct str namespace_name;
    struct str name;
    struct str uid;
    struct str queue;
    enum decision decision;
    struct decided_pod_set *pod_sets; /* a Job has one */
    uint32_t pod_set_count;
    int64_t pods;            /* of all sets */
    struct str_list victims; /* "namespace/name"; DECISION_PREEMPT only */
    enum reason reason;
    struct str message;
    int64_t position; /* from 1; 0: none */
};

struct decided_list {
    struct decided_gang *items; /* ordered by queue, position, namespace, name */
    uint32_t count;
};

/* Where every gang stands after the last step. Borrowed from `arena`. */
struct decided_list core_decisions(const struct core *core, struct arena *arena);
/* The sentences of those that wait, with the numbers as they are now; what is decided stays. Judges
 * each kind of gang once more: for those who ask once, not for a controller. */
void core_renew_messages(struct core *core);

/* What the Admission of that gang says now; false if there is no such gang any more or nothing has
 * to be written. The core remembers it as on its way. Borrowed from `arena`. */
bool core_admission_content(struct core *core, struct str job_uid, struct arena *arena,
                            struct admission *ret_admission);

/* Whether an EFFECT_RECORD_EVENT of that Job is still to be written: not where too much is written
 * of it (core/pace.h). It counts as written then. */
bool core_event_is_told(struct core *core, struct str job_uid);

/* core_admission_content() for those who only look: asked at any time, and nothing counts as
 * written. False: there is no such gang. */
bool core_admission_now(struct core *core, struct str job_uid, struct arena *arena,
                        struct admission *ret_admission);

/* The ProvisioningRequest that is to be made, whole, and how the pod templates that it names differ
 * from the gang's own: one for each of its pod sets, in their order. */
struct request_content {
    struct provisioning_request request;
    struct template_patch *templates;
    uint32_t template_count;
};

/* For EFFECT_MAKE_REQUEST; false: nothing is to be made any more. Borrowed from `arena`. */
bool core_request_content(const struct core *core, struct str job_uid, struct arena *arena,
                          struct request_content *ret_content);

/* The object with its status as it should be now, to be written by its kind. */
struct status_content {
    enum object_kind kind;
    struct queue queue; /* the one of that kind is filled, meta.name and status only */
    struct cohort cohort;
    struct resource_flavor flavor;
};

/* The status of a Queue, Cohort or ResourceFlavor; false if it is gone or unchanged. */
bool core_status_content(struct core *core, enum object_kind kind, struct str name,
                         struct arena *arena, struct status_content *ret_content);

/* How many gangs, nodes and shapes the last step looked at: for tests of what an event costs. */
struct core_cost {
    uint32_t gangs_visited;
    uint32_t nodes_visited;
    uint32_t gangs_admitted;
    uint32_t queues_ranked; /* queues and cohorts that were compared */
    uint32_t shapes_woken;
    uint32_t waiters_visited; /* asked whether room on a node is enough for them */
    uint64_t selector_cost;   /* of trying device selectors, counted as selector_cost_per_step */
};

struct core_cost core_last_cost(const struct core *core);

/* What came of looking at a gang in a pass. */
enum look_result {
    LOOK_ADMITTED = 1,
    LOOK_PREEMPTS, /* others are stopped for it */
    LOOK_WAITS,    /* `reason` and `message` say why */
    LOOK_BLOCKED,  /* behind the head of a StrictFIFO queue */
    LOOK_SHORT,    /* what came free went to those in front of it: as it was */
};

/* One gang, standing for all of its queue that ask the same. */
struct look {
    struct str namespace_name;
    struct str name;
    struct str queue;
    enum look_result result;
    enum reason reason;
    struct str message;
};

struct look_list {
    struct look *items; /* in the order of looking; LOOKS_MAX at most */
    uint32_t count;
    uint32_t left_out; /* further ones */
};

/* Of the last step of a core that traces, else empty. Borrowed from the core until its next step.
 */
struct look_list core_last_looks(const struct core *core);

struct cell_figures {
    struct str flavor;
    struct str resource;
    int64_t used_milli; /* thousandths of the resource's whole unit, saturating */
    int64_t nominal_milli;
};

struct queue_figures {
    struct str queue;
    int64_t pending;
    int64_t admitted;
    struct cell_figures *cells;
    uint32_t cell_count;
};

struct queue_figures_list {
    struct queue_figures *items;
    uint32_t count;
};

/* For /metrics. Borrowed from `arena`. */
struct queue_figures_list core_queue_figures(const struct core *core, struct arena *arena);

/* Where the cluster's claims were found to be others than the ledger had them; see
 * controller/core/drift.c. */
struct core_drift {
    uint64_t
        uncharged;     /* times that a pod or claim was found with devices nobody was charged for */
    uint64_t vanished; /* times that a claim was gone that somebody was charged for */
    int64_t devices;   /* that are charged now beyond what gangs were admitted with */
};

struct core_drift core_drift_seen(const struct core *core);

/* Checks every invariant of the ledger (sum of reservations = usage, nothing negative) and asserts.
 * Costly; tests call it after each step. */
void core_assert_consistent(const struct core *core);
