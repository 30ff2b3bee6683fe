/* sim_internal.h - what the files of controller/sim offer each other, file by file.
 *
 * The objects are values that never change: whoever wants another one copies the struct, sets
 * fields and hands it to api_update(), which clones it and tells everybody. Nobody keeps a pointer
 * to a value over that call. */
#pragma once

#include <string.h>

#include "tallyman/api/cel.h"
#include "tallyman/api/codec.h"
#include "tallyman/api/pod_request.h"
#include "tallyman/base/map.h"
#include "tallyman/sim/sim.h"

#define LABEL_QUEUE          "tallyman.dev/queue"
#define LABEL_DEFAULT_QUEUE  "tallyman.dev/default-queue"
#define ANNOTATION_ADMISSION "tallyman.dev/admission"
#define ANNOTATION_SUSPENDED "tallyman.dev/suspended"
#define ANNOTATION_HOLD      "tallyman.dev/hold"
#define ANNOTATION_MIN_COUNT "tallyman.dev/min-count"
#define ANNOTATION_POD_CLAIM "resource.kubernetes.io/pod-claim-name"
#define LABEL_INDEX          "batch.kubernetes.io/job-completion-index"
#define RESOURCE_PODS        "pods"

/* -- agenda.c: what is to come --------------------------------------------------------------------
 */

struct task {
    int64_t at_ms;
    uint64_t sequence; /* tasks of one time run in the order in which they were made */
    void (*run)(struct sim *sim, struct task *task);
    struct str uid; /* owned; absent: of no object */
    uint64_t number;
    enum object_kind kind;
    void *value; /* owned clone, or NULL */
    void *ctx;
};

struct agenda {
    struct task **items; /* a heap by (at_ms, sequence) */
    uint32_t count;
    uint32_t capacity;
    uint64_t next_sequence;
};

struct task *agenda_add(struct sim *sim, int64_t at_ms,
                        void (*run)(struct sim *sim, struct task *task), struct str uid);
/* NULL when it is empty; borrowed. */
const struct task *agenda_first(const struct agenda *agenda);
struct task *agenda_take(struct agenda *agenda); /* owned; task_free() */
void task_free(struct task *task);
void agenda_deinit(struct agenda *agenda);
/* `delay_ms` stretched by the seed. */
int64_t sim_later(struct sim *sim, int64_t delay_ms);

/* -- api.c: the API server ----------------------------------------------------------------------
 */

struct sim_object;

/* A Job's pods. */
struct job_count {
    int64_t active;
    int64_t ready;
    int64_t terminating;
    int64_t succeeded;
    int64_t failed;
    int64_t bound; /* of the active ones, those that have a node */
};

/* What the simulator itself knows of a pod. */
struct pod_notes {
    struct sim_object *job; /* its controller; NULL: none, or gone */
    struct sim_object *next_in_job;
    struct job_count counted;      /* what it adds to its Job's count */
    struct amount_list amounts;    /* owned, in one piece with its texts */
    int64_t index;                 /* -1: none */
    int64_t run_for_ms;            /* -1: for ever */
    RB_ENTRY(sim_object) in_queue; /* kube-scheduler's */
    bool is_queued;
    struct node_load *load; /* the node that it takes room of: chosen, or bound; NULL: none */
    struct sim_object *next_on_node;
    int64_t retry_ms; /* not tried before */
    uint32_t tries;
    bool is_waiting;        /* found no place, nothing has changed since */
    bool is_expected_to_go; /* the Job controller deleted it: that is no failure */
    bool is_stopping;       /* the kubelet has begun to stop it */
    bool is_unscheduled;    /* a Job's that came with its node: nobody has chosen it */
    uint64_t finish_token;  /* of the task that ends it; 0: none */
};

struct job_notes {
    struct sim_object *pods; /* in order of making */
    struct sim_object **last_pod;
    struct job_count count; /* the sum of what its pods add */
    bool is_sync_due;
    int64_t sync_at_ms;
    int64_t batch;       /* pods that are made at once next; grows as they succeed */
    int64_t lost_pods;   /* deleted by others while it ran */
    int64_t next_try_ms; /* after a failure */
    bool is_whole;
    int64_t partial_since_ms; /* -1: it isn't */
    int64_t partial_max_ms;
    bool is_excused; /* a pod was lost, or it is being stopped */
    struct str told; /* owned; the sentence of SIM_JOB_WAITS */
};

struct sim_object {
    enum object_kind kind;
    struct str key;  /* owned; "namespace/name", or the name of a cluster-wide one */
    struct str uid;  /* owned */
    void *value;     /* owned clone; begins with its meta */
    uint64_t serial; /* order of making */
    RB_ENTRY(sim_object) by_key;
    UT_hash_handle hh; /* sim.by_uid */
    struct pod_notes pod;
    struct job_notes job;
};

RB_HEAD(sim_object_tree, sim_object);
int sim_object_compare(const struct sim_object *a, const struct sim_object *b);
RB_PROTOTYPE(sim_object_tree, sim_object, by_key, sim_object_compare)

static inline const struct object_meta *object_meta(const struct sim_object *object)
{
    return object->value;
}

static inline const struct job *object_job(const struct sim_object *object)
{
    return object->value;
}

static inline const struct pod *object_pod(const struct sim_object *object)
{
    return object->value;
}

static inline const struct resource_claim *object_claim(const struct sim_object *object)
{
    return object->value;
}

/* "namespace/name" in the scratch arena. */
struct str api_key(struct sim *sim, struct str namespace_name, struct str name);
struct sim_object *api_find(const struct sim *sim, enum object_kind kind, struct str key);
struct sim_object *api_find_uid(const struct sim *sim, struct str uid);
struct sim_object *api_first(const struct sim *sim, enum object_kind kind);
struct sim_object *api_next(struct sim_object *object);
/* Fills in uid, creationTimestamp, generation and resourceVersion where they are absent. */
struct sim_object *api_create(struct sim *sim, enum object_kind kind, const void *value);
/* Nothing happens where nothing differs. `is_spec`: its generation goes up. */
void api_update(struct sim *sim, struct sim_object *object, const void *value, bool is_spec);
/* Sets deletionTimestamp where a finalizer or a kubelet holds the object, else removes it. */
void api_delete(struct sim *sim, struct sim_object *object);
/* It is gone, whatever held it. */
void api_remove(struct sim *sim, struct sim_object *object);
void api_free(struct sim *sim);
/* The map with that key set, or without it where `value` is absent; in the scratch arena. */
struct string_map api_map_with(struct sim *sim, const struct string_map *map, struct str key,
                               struct str value);
/* The list with that condition set; in the scratch arena. */
struct condition_list api_condition_with(struct sim *sim, const struct condition_list *list,
                                         const struct condition *condition);

/* -- apply.c: what users do ----------------------------------------------------------------------
 */

/* A Job as the API server and the mutating policies leave it at its creation. */
struct job apply_admit_job(struct sim *sim, const struct job *job);
/* An annotation with a duration; -1: absent. RC_INVALID names it. */
NODISCARD struct rc apply_duration(const struct object_meta *meta, const char *kind,
                                   const char *annotation, int64_t *ret_ms, struct err *err);

/* -- changes.c: what a manifest says will happen to its object ------------------------------------
 */

NODISCARD struct rc changes_plan(struct sim *sim, const struct object *object, struct err *err);

/* -- watch.c: who is told of a change ------------------------------------------------------------
 */

void watch_changed(struct sim *sim, struct sim_object *object, const void *old); /* old NULL: new */
void watch_removed(struct sim *sim, struct sim_object *object);

/* -- job_controller.c, job_status.c ---------------------------------------------------------------
 */

struct job_count job_count_pods(const struct sim_object *job);
/* The pod has changed, or (`is_there` false) is no longer its Job's: kept up, because a walk over
 * all pods for each change of one would take for ever with gangs of ten thousand. */
void job_count_pod(struct sim_object *pod, bool is_there);
void job_sync_soon(struct sim *sim, struct sim_object *job, int64_t delay_ms);
bool job_is_suspended(const struct job *job);
bool job_is_gang(const struct job *job);
/* As job_gang_size() by the pods as they are, whatever the status says yet; one pod where the size
 * is invalid. */
struct gang_size job_live_size(struct sim *sim, const struct sim_object *job,
                               const struct job_count *count);
/* Its min-count as it was before any pod succeeded. */
int64_t job_min_count(struct sim *sim, const struct sim_object *job);
/* Writes the status if it differs. True if the Job is finished. */
bool job_write_status(struct sim *sim, struct sim_object *job, const struct job_count *count);
/* Deletes its active pods. */
void job_stop_pods(struct sim *sim, struct sim_object *job);
/* Its pods have changed, `pod` (NULL: one that is gone): whole or broken, partial or not. */
void job_review(struct sim *sim, struct sim_object *job, struct sim_object *pod);
/* What it misses from now on isn't the scheduler's doing: a pod was lost, or it is stopped. */
void job_excuse(struct sim_object *job);

/* -- claim_controller.c
 * ---------------------------------------------------------------------------- */

/* Makes the pod's claims, or frees them, whichever its state asks for. */
void claims_sync_pod(struct sim *sim, struct sim_object *pod);
/* Its claims have their devices, so that the kubelet may start it. */
bool claims_are_allocated(struct sim *sim, struct sim_object *pod);
void claims_pod_gone(struct sim *sim, const struct sim_object *pod);
/* A template has come: the pods of its namespace may go on. */
void claims_sync_all(struct sim *sim);

/* -- podgroup.c
 * ----------------------------------------------------------------------------------- */

/* The Job lists claims for its whole gang, and Kubernetes makes a PodGroup for it. */
bool podgroup_has_claims(const struct job *job);
/* Makes those that aren't there. */
void podgroup_make_claims(struct sim *sim, const struct sim_object *job);
/* False: a pod of that Job (NULL: of none) has a claim of its own for the entry. ret_name: the
 * gang's claim, in the scratch arena; absent: it isn't made yet. */
bool podgroup_find_claim(struct sim *sim, const struct sim_object *job,
                         const struct pod_resource_claim *entry, struct str *ret_name);
/* Who is to hold the claim when that pod is placed. Texts are borrowed from claim and pod. */
struct claim_consumer podgroup_holder(const struct resource_claim *claim,
                                      const struct sim_object *pod);
/* The Job whose PodGroup holds a claim; NULL: none, or gone. */
const struct sim_object *podgroup_job(const struct sim *sim, const struct claim_consumer *holder);
/* Frees and deletes those of Jobs that are gone with their last pod. */
void podgroup_collect(struct sim *sim);

/* -- pod_defaults.c
 * -------------------------------------------------------------------------------- */

/* A new pod as the API server's defaulting and admission plugins leave it. */
void pod_set_defaults(struct sim *sim, struct pod *pod);
/* Fills the notes of a new pod: its requests, index and run time. */
void pod_read_notes(struct sim *sim, struct sim_object *pod);

/* -- scheduler.c
 * ------------------------------------------------------------------------------------- */

RB_HEAD(pod_queue_tree, sim_object);

void scheduler_pod_changed(struct sim *sim, struct sim_object *pod, const struct pod *old);
void scheduler_pod_gone(struct sim *sim, struct sim_object *pod);
/* Something has changed that could let a waiting pod through. */
void scheduler_wake(struct sim *sim);

struct pod_claim {
    struct sim_object *claim; /* NULL: of extended resources, to be made when the pod is bound */
    const struct resource_claim *object; /* what it asks; borrowed */
    bool is_allocated;
    struct allocation_result *results; /* of this try, in the scratch arena */
    uint32_t result_count;
};

struct placement {
    struct sim_object *pod;
    struct pod_claim *claims; /* in the scratch arena; room for one more */
    uint32_t claim_count;
    uint32_t own_claim_count; /* that the pod names; of the node that is looked at there may be one
                                 more, for extended resources */
};

/* -- schedule_extended.c
 * ----------------------------------------------------------------------------- */

/* The node serves that resource by devices of a class, not by a device plugin. */
bool extended_is_by_devices(struct sim *sim, const struct node *node, struct str resource);
/* The claim for what the node serves the pod so, behind the pod's own; false: there is none. */
bool extended_claim_for(struct sim *sim, const struct placement *placement, const struct node *node,
                        struct pod_claim *ret_claim);
/* Makes the claim that the placement found devices for, and writes it into the pod's status. */
void extended_bind(struct sim *sim, const struct placement *placement,
                   struct claim_allocation *allocation);

/* -- schedule_node.c
 * --------------------------------------------------------------------------------- */

/* The pods that take room of a node, by its name: it need not exist. */
struct node_load {
    struct str name; /* owned */
    struct sim_object *pods;
    UT_hash_handle hh;
};

void load_add(struct sim *sim, struct sim_object *pod, struct str node_name);
void load_remove(struct sim *sim, struct sim_object *pod);
void loads_free(struct sim *sim);
/* What its pods use of it. */
int64_t node_used(const struct sim *sim, const struct node *node, struct str resource);
int64_t node_allocatable(const struct node *node, struct str resource);

/* Why a node doesn't take the pod, as kube-scheduler tells them apart. */
enum rejection {
    REJECT_NONE = 0,
    REJECT_NOT_READY,
    REJECT_UNSCHEDULABLE,
    REJECT_TAINT,
    REJECT_AFFINITY,
    REJECT_RESOURCE,
    REJECT_CLAIMS,
    REJECT_COUNT,
};

/* All but the devices; ret_resource names what is short (borrowed from the pod). */
enum rejection node_filter(struct sim *sim, const struct sim_object *pod, const struct node *node,
                           struct str *ret_resource);
/* Whether the kubelet takes a pod that named its node and counts there already (in 1.37
 * pkg/kubelet/lifecycle/predicate.go). */
bool node_takes(struct sim *sim, const struct sim_object *pod, const struct node *node);
/* 0 to 100 as NodeResourcesFit's LeastAllocated, over cpu and memory. */
int64_t node_score(const struct sim *sim, const struct sim_object *pod, const struct node *node);

/* -- devices.c, schedule_device.c
 * -------------------------------------------------------------------- */

struct sim_device {
    struct str key;                     /* owned; "driver/pool/device" */
    const struct resource_slice *slice; /* borrowed from the API server's object */
    const struct device *device;
};

/* The devices of every complete pool's newest generation, by key. */
struct device_list_cache {
    struct sim_device *items;
    uint32_t count;
    uint32_t capacity;
    bool is_stale;
};

const struct device_list_cache *devices_list(struct sim *sim);
bool device_is_at_node(const struct sim_device *device, const struct node *node);
/* How many allocations name it. */
uint32_t device_use_count(const struct sim *sim, struct str key);
/* Some allocation names it and isn't a share. */
bool device_is_used_whole(const struct sim *sim, struct str key);
/* What its shares take of that capacity, in billionths. */
i128 device_capacity_used(const struct sim *sim, struct str key, struct str capacity);
/* Whether its pool's counters allow it beside what is in use and what is chosen. */
bool device_counters_allow(struct sim *sim, const struct sim_device *device,
                           const struct sim_device *const *chosen, uint32_t chosen_count);
/* A claim has changed: either may be NULL. */
void devices_claim_changed(struct sim *sim, const struct resource_claim *old,
                           const struct resource_claim *now);
void devices_slices_changed(struct sim *sim);
void devices_forget(struct sim *sim);
/* Compiled once; NULL: it can't be. Borrowed for the simulator's life. */
const struct cel_program *devices_program(struct sim *sim, struct str expression);

/* -- capacity.c
 * -------------------------------------------------------------------------------------- */

/* It may be allocated several times. */
bool device_is_shareable(const struct device *device);
/* What one allocation takes of each capacity, in the device's order and the scratch arena; `asked`
 * NULL: nothing is said. False: the device can't serve it, even if nobody else has a share. */
bool capacity_share(struct sim *sim, const struct device *device,
                    const struct capacity_requirements *asked, struct resource_list *ret_taken);

/* Picks devices at that node for every claim that has none; false: it can't be done. */
bool devices_allocate(struct sim *sim, struct placement *placement, const struct node *node);

/* -- kubelet.c
 * ------------------------------------------------------------------------------------- */

void kubelet_pod_changed(struct sim *sim, struct sim_object *pod, const struct pod *old);
void kubelet_node_changed(struct sim *sim, struct sim_object *node, const struct node *old);
void kubelet_node_gone(struct sim *sim, struct str node_name);
/* Starts or stops the clocks of the Job's ready pods. */
void kubelet_gang_changed(struct sim *sim, struct sim_object *job);
/* The same for one pod. */
void kubelet_set_clock(struct sim *sim, struct sim_object *pod);
void kubelet_end_pod(struct sim *sim, struct sim_object *pod, const char *phase);
bool node_object_is_ready(const struct node *node);

/* -- controller.c, writes.c: Tallyman in the cluster
 * ------------------------------------------------- */

void controller_start(struct sim *sim);
void controller_stop(struct sim *sim);
void controller_free_ghosts(struct sim *sim);
/* Tells the driver a while later. `is_deleted`: it is gone. */
void controller_deliver(struct sim *sim, const struct sim_object *object, bool is_deleted);
/* stream.c: the kind's objects as they stand, told as a list is. */
void stream_list(struct sim *sim, enum object_kind kind);
void stream_forget(struct sim *sim); /* what was told, to a controller that is gone */
/* Carries out one write on the objects. Texts of the answer are in the scratch arena. */
struct driver_answer write_carry_out(struct sim *sim, const struct driver_write *write);

/* -- notes
 * ------------------------------------------------------------------------------------------- */

/* `job` and `pod` may be NULL. */
void sim_tell(struct sim *sim, enum sim_note_kind kind, const struct sim_object *job,
              const struct sim_object *pod, struct str node, struct str text);

/* -- the whole
 * ------------------------------------------------------------------------------------------ */

/* A write of the driver's on its way. */
struct pending_write {
    struct driver_write write; /* borrowed from the driver */
    struct pending_write *next;
    bool is_carried_out;
    enum sim_fault fault;
    struct driver_answer answer; /* its texts live in `arena` */
    struct arena arena;
};

/* One kind's watch, which keeps its order. */
struct sim_stream {
    uint64_t number; /* deliveries of another one are void */
    int64_t delivered_ms;
    bool is_broken; /* a list will follow */
};

struct sim {
    struct sim_options options;
    int64_t now_ms;  /* since the start */
    uint64_t random; /* state of the seeded stretching */
    struct agenda agenda;
    struct arena scratch; /* reset before each task */
    struct sim_object_tree objects[KIND_COUNT];
    struct sim_object *by_uid;
    uint64_t next_serial;
    uint64_t version;        /* resourceVersion */
    uint64_t supply_version; /* of all Nodes and ResourceSlices */
    uint64_t next_token;
    int64_t wasted_device_ms;
    int64_t wasted_until_ms;

    struct pod_queue_tree pod_queue;
    bool is_scheduler_busy;
    int64_t scheduler_retry_ms;  /* when pods that back off are looked at again; INT64_MAX: never */
    uint32_t scheduler_rotation; /* the node that is looked at first */
    struct sim_object **nodes;   /* owned; in order of name, for walks that begin anywhere */
    uint32_t node_count;
    uint32_t node_capacity;
    bool is_node_list_stale;
    struct node_load *loads;
    struct device_list_cache devices;
    struct used_key *used_keys;
    uint64_t next_share; /* for the ids of shares */
    uint32_t used_key_count;

    struct core *core;
    bool is_stopped; /* by sim_stop_controller() */
    struct driver *driver;
    uint64_t incarnation; /* of the controller; tasks of an older one are void */
    int64_t wake_at_ms;   /* the driver's wish */
    struct sim_stream stream[KIND_COUNT];
    uint64_t last_stream;
    struct told_object *told; /* for sim_relist() */
    struct ghost *ghosts;
    bool is_ghost_writing;
    struct pending_write *in_flight; /* in the order of sending */
    struct cached_program *programs;
};

/* -- autoscaler.c -- */
void autoscaler_request_made(struct sim *sim, const struct sim_object *object);
struct driver_answer autoscaler_make_request(struct sim *sim,
                                             const struct provisioning_request *request);
struct driver_answer autoscaler_delete_request(struct sim *sim, const struct effect *effect);
void autoscaler_job_gone(struct sim *sim, const struct sim_object *job);

static inline int64_t sim_clock_ms(const struct sim *sim)
{
    return sim->options.start_ms + sim->now_ms;
}
