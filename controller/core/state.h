/* state.h - everything the core remembers, and which table owns what.
 *
 * Private to controller/core. Objects of the cluster are kept as slim clones of their decoded
 * structs (object_clone), with what the decisions need beside them. Hash tables find; trees and
 * lists order. */
#pragma once

#include "gang_line.h"
#include "gang_parts.h"
#include "pace_state.h"
#include "keys.h"
#include "ledger.h"
#include "quota_tree.h"
#include "status_write.h"
#include "supply.h"
#include "told.h"

#include "tallyman/api/pod_request.h"
#include "tallyman/base/table.h"

#define ADMISSION_ID_BIT (1ull << 62)
#define STATUS_ID_BIT    (1ull << 61)

#define PODS_READY_TIMEOUT_DEFAULT_MS (10 * 60 * 1000)
#define REQUEUE_BASE_DEFAULT_MS       (60 * 1000)
#define REQUEUE_MAX_DEFAULT_MS        (60 * 60 * 1000)
#define STUCK_NODE_DEFAULT_MS         (5 * 60 * 1000)

struct gang;
struct shape;
struct order_node;
struct reach;
struct room_asker;
struct room_index;
struct topology_domain;
struct topology_tree;
struct topology_room;
struct bookings;
struct gang_input;
struct gang_walk;
struct kept_promises;
struct plan;
struct tellings;
struct check;
struct job_requests;
struct request_state;

RB_HEAD(shape_tree, shape); /* a queue's that are to be judged */

/* -- queues and quota ------------------------------------------------------------------------- */

struct queue_state {
    struct str name; /* owned; the key */
    UT_hash_handle hh;
    RB_ENTRY(queue_state) by_name;
    struct queue *object; /* owned clone; NULL: only Jobs or records name it */
    struct quota_node node;
    struct usage_history *history;  /* owned; NULL: no half-life */
    struct shape_tree ready;        /* shapes to be judged, by their first gang */
    RB_ENTRY(queue_state) by_ready; /* in core.ready while `ready` isn't empty */
    struct gang_line pending;       /* all that wait */
    uint32_t pending_count;
    uint32_t admitted_count;  /* gangs with a reservation here */
    struct shape *shapes;     /* list by next_in_queue */
    struct quota_line *lines; /* owned; wait.h */
    struct gang *last_holder; /* would be stopped first; see preempt_note_holder() */
    bool has_grown;           /* charged with more since the last pass; see preempt_grow.c */
    struct gang *blocker;     /* StrictFIFO: the head that blocks, while it does */
    bool is_last_holder_lost, has_bookings; /* its head may get one; see booking.c */
    bool has_finalizer;
    bool is_finalizer_pending;
    bool is_pending_dirty;   /* positions have changed since the last refresh */
    int64_t next_refresh_ms; /* positions; 0: none is due */
    struct status_write status;
    RB_ENTRY(queue_state) by_due; /* in core.due_queues while is_due_set */
    bool is_due_set;
    int64_t due_ms; /* the next refresh or status write */
};

RB_HEAD(queue_tree, queue_state);
RB_HEAD(ready_tree, queue_state);
RB_HEAD(queue_due_tree, queue_state);

struct flavor_state {
    struct str name; /* owned */
    UT_hash_handle hh;
    struct resource_flavor *object; /* owned clone; never NULL */
    struct status_write status;
};

struct cohort_state {
    struct str name; /* owned */
    UT_hash_handle hh;
    struct quota_node node;
    struct cohort *object; /* owned clone; NULL: it is there by its name alone */
    bool is_named;         /* scratch of cohorts_make_implicit() */
    struct status_write status;
};

/* -- small objects, by name ------------------------------------------------------------------- */

/* A Namespace, LimitRange, RuntimeClass, PriorityClass, DeviceClass, ResourceClaimTemplate. */
struct named_object {
    struct str key; /* owned; "name" or "namespace/name" */
    UT_hash_handle hh;
    enum object_kind kind;
    void *value; /* owned clone of the kind's struct */
};

/* -- gangs ------------------------------------------------------------------------------------ */

enum wait_bits {
    WAIT_QUOTA = 1 << 0,   /* for a release in the queue's cells, or an edit of the Queue */
    WAIT_CLUSTER = 1 << 1, /* for room on nodes, devices or claims */
    WAIT_CONFIG = 1 << 2, /* for an object that is named: flavor, class, template, namespace, … */
    WAIT_PROMISES = 1 << 4, /* judged beside pods on their way, which may land elsewhere */
    WAIT_ORDER = 1 << 3,    /* StrictFIFO: for the gang in front */
    WAIT_BOOKING = 1 << 5,  /* for room that is kept for the head of a queue */
};

/* What an evaluation found. Numbers are in the resource's own unit. */
struct verdict {
    enum reason reason;  /* REASON_NONE: it may start */
    uint32_t waits_for;  /* enum wait_bits */
    bool is_never;       /* whatever ends, it can't start: as if its reason were passed over */
    struct str message;  /* owned by whoever keeps the verdict; absent when it may start */
    struct str flavor;   /* owned; the flavor that ran short, absent: none in particular */
    struct str resource; /* owned; the resource that ran short */
    int64_t asked;
    int64_t free;
};

/* Pods of one template. A gang has one such set or several, which start together. */
struct pod_set {
    struct shape *shape;   /* that it belongs to */
    struct str name;       /* owned; "main" of a Job's only set */
    struct str place_key;  /* owned; which nodes its pods may use, as text; absent: unresolved */
    struct pod_spec *spec; /* owned clone, without what the admission injects */
    struct pod *labels;    /* owned; the first gang's template labels alone */
    bool labels_vary;      /* not all gangs have the same */
    struct gang_size size;
    struct vector per_pod;              /* cpu, memory, …, without pods; plain requests only */
    uint64_t requests_hash;             /* of all that a pod asks for in plain requests */
    struct string_map node_selector;    /* borrowed from spec or the runtime class */
    struct toleration_list tolerations; /* owned array; the spec's and the runtime class's */
    struct device_demand *devices;      /* per pod, by claim template or extended resource */
    uint32_t device_count;
    bool has_extended;        /* some of the devices are extended resources */
    struct pod_set *variants; /* owned; see pod_set_on(); NULL: the same on all nodes */
    struct device_ask *ask;   /* owned; the same as the allocator sees it, NULL: no devices */
    uint64_t group_claims;    /* bit i: the spec's claim i is one for the whole gang */
    struct shared_claim_demand *claims; /* named claims, and those of the PodGroup */
    uint32_t claim_count;
    struct ever_count *ever; /* owned; fit.h; NULL: none */
};

/* All gangs of a queue that ask the same, so that they are judged once. */
struct shape {
    struct str key; /* owned; queue, namespace, sizes and template as text */
    UT_hash_handle hh;
    RB_ENTRY(shape) by_head; /* in its queue's `ready` */
    struct shape *next_in_queue;
    struct queue_state *queue;
    struct str namespace_name; /* owned */
    struct str pod_group; /* owned; "namespace/name" of whose claims the gang uses, or absent */
    struct pod_set *sets; /* owned; 1 to POD_SETS_MAX, in the order of the gang's object */
    uint32_t set_count;
    int64_t stated_runtime_ms; /* of each of its gangs; see runtime_stated_ms() */
    struct str topology_key;   /* owned; the label of the level that is asked for, absent: none */
    bool is_topology_required; /* else it is preferred */
    struct gang_size size;     /* of all sets together */
    struct gang_line gangs;    /* that wait */
    struct gang *first;        /* of these */
    uint32_t users;            /* gangs of any state */
    uint64_t judged_in;        /* the pass of its last evaluation */
    enum reason told_reason;   /* what its gangs' Admissions say */
    bool is_resolved;          /* what follows is up to date */
    struct verdict broken; /* reason != NONE: the template can't be judged (missing class, …) */
    bool is_ready;         /* in core.ready */
    bool is_in_line;       /* its waits stand in their lines */
    struct quota_wait *waits; /* owned; wait.h */
    uint32_t wait_count;
    bool is_room_waiter;
    bool is_untold; /* some of its gangs are still to be told its reason; tell.c */
    struct shape *next_room_waiter, *previous_room_waiter;
    bool is_beside_waiter, is_sorted; /* wake.c; stands in room_index.h by what it asks for */
    struct shape *next_beside, *previous_beside;
    struct room_asker *askers; /* owned; of each set; NULL: it doesn't wait for room */
    bool is_preemptor;         /* parked, and stopping others might help */
    bool is_room_changed; /* since it was judged, on nodes or devices that it could use, or by pods
                           * that have found their places */
    /* Stopping others didn't do, beside pods on their way: these may land elsewhere. */
    bool is_preempting_beside_promises;
    bool is_preempting_short_of_room; /* nor did it, for room on nodes */
    bool is_room_relieved;            /* of which some begins to come free; preempt_relief.c */
    struct shape *next_preemptor, *previous_preemptor;
    bool is_unasked, is_aside, is_provisional; /* behind.h; these two: selectors.h */
    struct shape *next_unasked, *next_aside;
    bool is_beyond_help;      /* it wouldn't fit even if every gang had ended; see booking.h */
    bool is_help_unsure;      /* it has been judged since: that may have changed */
    bool is_help_asked;       /* since it was judged last */
    uint64_t could_start_on;  /* choices of flavors on which it isn't too large for all nodes */
    uint64_t could_start_at;  /* the state of supply that this is of */
    bool is_woken_by_cell;    /* only because quota came free: others may have it by now */
    struct verdict verdict;   /* of the last evaluation; waits_for tells what wakes it */
    struct evidence evidence; /* of the last evaluation */
    struct advice *advice;    /* owned; NULL: nothing was tried */
    uint64_t advised_in;      /* the pass that it is of */
};

enum gang_state {
    GANG_PENDING = 1,
    GANG_HELD,
    GANG_ADMITTED,
    GANG_RUNNING,
    GANG_SUSPENDING,
    GANG_FINISHED,
    GANG_RESERVED, /* its victims are stopping, or it is checked; what it holds is its own */
};

/* One pod set of a gang, as its object was last seen, and its pods. */
struct gang_set {
    struct str name; /* owned */
    struct gang_size size;
    bool is_elastic_index; /* Indexed, and completions equals parallelism: both change together */
    struct string_map admit_selector; /* owned; what our PATCH adds, until the watch has shown it */
    struct string_map template_selector; /* owned; nodeSelector as it stands on the object */
    uint32_t template_tolerations;       /* how many stand on the object */
    uint32_t live_pods;                  /* not terminal */
    uint32_t settled_pods;               /* live, and nothing of them is promised any more */
    uint32_t ready_pods;
};

struct gang {
    int64_t priority;
    int64_t order_ms;          /* place in the queue: creation, or the last failed start */
    uint64_t uid_start;        /* the first bytes of uid, in its order */
    struct str uid;            /* owned, with the key behind it; in core.gangs */
    struct str key;            /* borrowed from uid; "namespace/name", in core.gangs_by_key */
    struct str namespace_name; /* borrowed from key */
    struct str name;           /* borrowed from key */
    struct queue_state *queue; /* the label's; NULL: it has none (any more) */
    struct shape *shape;       /* NULL while invalid */
    struct str priority_class; /* owned; what its priority comes from */
    struct str template_class; /* owned; its pods' */
    int64_t created_ms;
    struct gang_set *sets;  /* owned; in the object's order, named as the shape's */
    struct gang_size size;  /* of all sets together */
    int64_t max_runtime_ms; /* annotation max-runtime; 0: none */
    int64_t deadline_ms;    /* activeDeadlineSeconds, as its user set it; 0: none */

    const struct gang_run *run; /* these three: see gang_parts.h; never NULL */
    const struct gang_room *room;
    const struct gang_trouble *trouble;

    /* the Job as last seen */
    int64_t generation;
    uint64_t version;                   /* resourceVersion, comparable */
    struct admission_record *record;    /* owned clone; NULL: none */
    struct suspended_record *suspended; /* owned clone; NULL: none */

    struct pod_group *pods; /* NULL: none has been seen */
    uint32_t live_pods;     /* of all sets, as the next two */
    uint32_t settled_pods;
    uint32_t ready_pods;
    struct reservation *reservation; /* owned; NULL: holds nothing */
    struct topology_domain *domain;  /* that its pods are confined to, a use of it; NULL: none */
    int64_t admitted_ms;             /* the record's `at` */
    struct str stops_for;            /* owned; uid of the gang that it makes room for */
    int64_t look_again_ms;   /* a gang that it could stop is protected until then; 0: none is */
    int64_t grace_ms;        /* annotation checkpoint-grace; 0: it stops at once */
    int64_t likely_start_ms; /* 0: not worked out; INT64_MAX: nobody can know */

    /* the Admission */
    struct str admission_uid; /* owned */
    uint64_t admission_hash;  /* of what was last written or seen; 0: none */
    uint64_t admission_effect_id;
    int64_t admission_next_ms; /* what is no news isn't told earlier; see pace.h */
    int64_t pace_ms;           /* what was written of it is paid for by then */
    struct gang *next_late, *previous_late;
    int64_t reason_since_ms;
    int64_t reason_began_ms;  /* the same, whatever states it has gone through since */
    struct past_reason *past; /* owned; what it waited for before, the latest last */
    int64_t timer_ms;

    /* what is small, side by side: there are many gangs */
    enum gang_state state : 8;
    enum gang_state shown_state : 8;
    enum reason shown_reason : 8;
    enum job_patch_purpose write_purpose : 8;
    bool is_in_keys : 1; /* in core.gangs_by_key */
    bool is_in_queue : 1;
    bool is_timer_set : 1;
    bool is_in_unbound : 1;
    bool is_class_missing : 1; /* the API server would refuse its pods */
    bool is_job_gone : 1;
    bool is_job_deleting : 1; /* has a deletionTimestamp */
    bool is_suspended : 1;
    bool is_job_finished : 1;
    bool has_label : 1;    /* names a queue; without, it is only here because it holds something */
    bool is_label_due : 1; /* it has none: the namespace's default queue, to be written by PATCH */
    bool is_hold_wanted : 1;
    bool is_paused : 1; /* spec.parallelism is 0 */
    bool has_suspended_condition : 1;
    bool has_started : 1;       /* status.startTime is set */
    bool is_ending : 1;         /* it has failed, or has all it needs: it makes no pods any more */
    bool is_out : 1;            /* a what-if has taken it out */
    bool is_kept_out : 1;       /* what it would free is noted; see whatif_kept.c */
    bool is_unsettled : 1;      /* Reserved for what it wanted before; see preempt_settle() */
    bool has_victims : 1;       /* of those Reserved: preempt_finish_ready() */
    bool may_start_early : 1;   /* something has come free since; see preempt_early.c */
    bool is_beside_others : 1;  /* what is kept for others was in its way then */
    bool has_failed_check : 1;  /* since it was reviewed last */
    bool wakes_preemptors : 1;  /* one would have stopped it, but it can't be just yet */
    bool wakes_promised : 1;    /* let go, and not reviewed since; see preempt_wake() */
    bool is_record_refused : 1; /* there is one that Tallyman can't have written */
    bool is_start_unseen : 1;   /* it has pods, and nothing that was seen of its Job started them */
    bool is_stop_counted : 1;   /* since it has had stops_for */
    bool is_eviction_unwritten : 1; /* counted, and its suspension not yet on the Job */
    bool is_stop_unwritten : 1;     /* told, and its suspension not yet on the Job */
    bool is_admission_seen : 1;
    bool is_admission_ownerless : 1; /* nobody else will collect it */
    bool is_admission_dirty : 1;
    enum pace_wait admission_wait : 2; /* in which line of core.late it stands */
    enum pace_urgency untold : 2;      /* of what has changed since it was written */
    bool was_running : 1;              /* its Admission said so at the start */
    bool was_on_default : 1;           /* the same, of the flavor that needs no object */
    bool is_size_pruned : 1;           /* the size is of a field that the API server dropped */
    bool has_told_pruned : 1;          /* the Event about the missing gate */
    bool has_told_drift : 1;           /* see drift.c */
    uint32_t set_count;
    uint32_t past_count;
    uint32_t scratch_index; /* of core_decisions(), and of preempt_early.c */
};

/* An effect on its way, and who waits for its answer. */
struct pending_effect {
    uint64_t id; /* the key */
    UT_hash_handle hh;
    struct str gang_uid; /* owned; absent: an object's */
    enum object_kind object_kind;
    struct str name; /* owned; the object's */
};

/* -- the whole -------------------------------------------------------------------------------- */

struct core {
    int64_t now_ms;
    struct core_options options;
    uint64_t next_effect_id;
    /* Of their own, because how many Admissions are written depends on when the driver sends them,
     * and a replay must give the Jobs' writes the same numbers all the same. */
    uint64_t next_admission_id;
    uint64_t next_status_id;
    uint32_t synced_kinds; /* bit per object_kind */
    bool is_ready;         /* all kinds have been listed */
    bool has_restored;     /* and what a restart interrupted is taken up */
    struct arena scratch;  /* reset before each step */
    struct effects *out;   /* of the step that runs; NULL between steps */
    struct trace *trace;   /* owned; NULL: nobody asks */

    struct resource_name *resource_names;
    struct queue_state *queues;
    struct queue_tree queue_order;
    struct queue_due_tree due_queues;
    struct flavor_state *flavors;
    struct cohort_state *cohorts;
    struct named_object *named[KIND_COUNT];
    struct node_state *nodes;
    struct node_tree node_order;
    struct table pods;       /* of pod_state */
    struct table pod_groups; /* of pod_group */
    struct slice_state *slices;
    struct pool_state *pools;
    struct table devices_by_key; /* of device_state */
    struct device_tree device_order;
    struct ailing_tree ailing_devices;
    int64_t next_admission_retry_ms;   /* Admissions that were refused; 0: none */
    struct pace_line late[PACE_LINES]; /* Admissions that wait for their time: pace.h */
    int64_t next_ghost_check_ms;       /* Admissions of Jobs that are no more; 0: there are none */
    int64_t next_node_check_ms;        /* a NotReady node reaches its limit; 0: none */
    int64_t next_rest_end_ms;          /* a quarantine ends; 0: there is none */
    struct device_state **devices;     /* by slot; NULL: free slot */
    uint32_t device_slots;
    uint32_t device_capacity;
    uint32_t device_slot_hint;     /* no free slot below it */
    uint32_t doubtful_pools;       /* that list a card and its parts without counters */
    struct device_state **roaming; /* owned; those, by key; valid unless is_roaming_stale */
    uint32_t roaming_count, roaming_capacity;
    bool is_roaming_stale;
    uint32_t roaming_devices;  /* devices that aren't bound to one node */
    struct table used_devices; /* of used_device */
    struct table claims;       /* of claim_state */
    struct table group_claims; /* group_claim.c: those of PodGroups */
    struct held_claim *held_claims;
    struct device_profile *profiles;
    struct extended_name *extended; /* extended.h */
    struct taint_rule *taint_rules;
    /* incident.c: nodes, devices and pods for which a gang may have to stop */
    int64_t next_status_ms; /* of a flavor or cohort that is due then; INT64_MAX: of none */
    struct device_ailment *ailments; /* ailment.h */
    int64_t next_ailment_ms;         /* one of them is to be looked at; 0: none */
    uint32_t harmful_nodes, evicting_devices, ill_pods, evicted_pods;
    bool has_new_harm;
    int64_t next_harm_ms; /* a toleration ends; 0: none does */
    /* How the sets of a gang are read from its object; see gang_input.h. */
    struct rc (*read_gang)(struct arena *arena, const struct job *job, struct gang_input *ret_input,
                           struct err *err);
    struct table gangs;                  /* of gang, by uid */
    struct table gangs_by_key;           /* of gang, by key */
    struct gang_walk *gang_walks;        /* those that are on, the last begun first; gang_walk.h */
    struct gang_line timers;             /* those with one, the earliest first */
    struct gang_line holders;            /* with a reservation, the earliest admitted first */
    struct gang_list reserved, stopping; /* of that state; with stops_for: stopping.h */
    struct kept_promises *kept_promises; /* owned; fit_promises.c; NULL: nothing yet */
    uint64_t promise_changes;            /* counts what may change them */
    struct gang_line unbound;            /* admitted, with pods that no node has yet */
    struct shape *shapes;
    struct ready_tree ready;  /* queues with shapes to be judged, by name */
    struct shape *preemptors; /* list by next_preemptor */
    struct shape *unasked;    /* list by next_unasked; behind.h */
    /* For all of them, for those of accounts, for those of nodes; preempt_wake.c, preempt_grow.c */
    bool has_freed, has_freed_quota, has_room_changed, has_lost_last_holder, has_grown;
    bool has_relief;               /* preempt_relief.c */
    bool has_let_go;               /* a gang whose write has been answered since the last pass */
    bool has_unsettled;            /* some gang is_unsettled */
    struct shape *room_waiters;    /* parked for room or for an object; list by next_room_waiter */
    struct shape *beside_waiters;  /* of these, beside others' room; list by next_beside */
    struct room_index *room_index; /* owned; room_index.h; NULL: nobody ever waited */
    struct quota_node *active_roots; /* of trees with such queues; list by next_active */
    bool is_tree_stale;              /* the trees of quota have to be linked anew */
    struct tellings *tellings;       /* owned; tell.c */
    struct plan *plan;               /* owned; fit_plan.h */
    uint64_t plan_epoch;
    uint64_t device_plan_epoch;               /* the last in which a device was planned */
    struct node_state *planned_nodes;         /* that the plan has opened; list by next_planned */
    struct reach *reaches;                    /* reach.h */
    uint32_t reach_columns;                   /* of all of them */
    struct node_state **node_index;           /* owned; by name; NULL: to be made anew */
    struct node_state *newest_node;           /* the last that changed; list by older */
    struct topology_domain *topology_domains; /* topology.h */
    uint32_t topology_domains_limit;
    struct topology_tree *topology_trees;
    struct topology_room *topology_rooms;
    uint64_t topology_serial;
    uint64_t object_changed_at;           /* the last change of a Node or of its list of devices */
    uint32_t apart_pods;                  /* pods with a required podAntiAffinity */
    bool plan_is_one_node, plan_may_roam; /* only one node; all nodes see the same devices */
    bool asked_is_too_hard;               /* a search for devices had to be given up */
    const struct device_state *asked_held_back; /* in quarantine, and could be given to its pods */
    bool asked_is_tied;      /* or not begun: it depends on where the other pods are put */
    uint32_t search_steps;   /* of this judgement's searches for devices */
    bool plan_is_contested;  /* devices are counted as others could take them, too */
    uint64_t device_changes; /* counts devices that come and go */
    uint64_t supply_changes; /* of Nodes, of which devices there are, and of flavors */
    bool plan_stays_local, plan_is_healed; /* without devices of no node; as if none were out */
    bool is_what_if;
    uint32_t level_cap; /* fewer pods of a partial gang before borrowing from further up */
    const struct topology_domain *only_domain; /* pods are placed there; NULL: wherever they may */
    bool is_brief;          /* an evaluation only says whether: no sentence, no figures */
    uint64_t what_if_epoch; /* of the one that is on while is_what_if, or was last */
    uint64_t what_if_count, freed_round, relief_round, order_round, reach_uses, node_changes;
    struct kept_what_if *kept_what_if;   /* owned; whatif.h; NULL: nothing was ever kept */
    uint64_t pass;                       /* counts the decision passes */
    struct bookings *bookings;           /* owned; never NULL */
    struct gang *judged;                 /* Reserved, judged anew; NULL: a shape's first */
    bool is_passing, is_cut;             /* one is on; the last isn't at its end: core_options */
    struct selector_work *selector_work; /* owned; selectors.h */
    struct core_cost cost;
    struct core_drift drift;
    bool ignores_quota, wants_places; /* only to tell what else is in the way; how much room is */
    bool ignores_room;     /* only what would be reserved, whether there is room or not */
    int64_t advice_credit; /* what trials for advice may still cost; see advise.c */
    int64_t advice_credit_ms;
    struct request_state *requests;       /* by "namespace/name" */
    struct job_requests *requests_by_job; /* by owner_key() */
    bool has_passed_check;                /* one waits for its admission */
    bool may_finish_reserved;             /* quota has been given back at once, or a booking */
    bool lacks_requests;                  /* the server doesn't serve ProvisioningRequests */
    struct pending_effect *pending_effects;
    struct bystander *bystanders; /* Jobs without a queue; see default_queue.c */
    struct hash_orphan *orphans;  /* Admissions without a Job of ours */
};

#include "orders.h"
