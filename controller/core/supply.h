/* supply.h - what the cluster has: nodes, the pods on them, devices and their claims. Private to
 * the core; which table owns what is said in state.h. */
#pragma once

#include "ledger.h"

#include "tallyman/api/cel.h"
#include "tallyman/api/dra.h"
#include "tallyman/api/node.h"

struct gang;
struct pod_set;
struct node_state;
struct device_state;

/* Absent is false. */
static inline bool opt_is_true(struct opt_bool flag)
{
    return flag.is_set && flag.value;
}

/* -- nodes ------------------------------------------------------------------------------------ */

/* A condition of a Node, as far as a health rule may ask for it. */
struct node_condition {
    struct str type;   /* owned */
    struct str status; /* owned */
    int64_t stated_ms; /* its lastTransitionTime; 0: it says none */
    int64_t since_ms;  /* the same, or when it was first seen if that was earlier */
};

struct node_state {
    struct str name; /* owned */
    UT_hash_handle hh;
    RB_ENTRY(node_state) by_name;
    struct node *object;               /* owned slim clone; NULL: only pods name it */
    struct vector capacity;            /* allocatable, rounded down */
    struct vector used;                /* requests of every pod there that isn't terminal */
    bool is_usable;                    /* Ready and schedulable; taints are looked at per gang */
    int64_t not_ready_since_ms;        /* 0: it is Ready */
    struct node_condition *conditions; /* owned */
    uint32_t condition_count;
    bool is_harmful;              /* gangs that run there may have to stop: see incident.c */
    bool was_ill;                 /* a flavor has called it unhealthy, since it was first seen */
    int64_t rests_until_ms;       /* the first of its quarantines that ends then; 0: none */
    struct device_state *devices; /* of this node only; list by next_on_node */
    uint32_t listed_devices;      /* by all ResourceSlices of this node */
    bool is_overfull;             /* more than NODE_DEVICES_MAX, so its pools give none */
    struct pod_state *pods;       /* list by next_on_node */
    /* what gangs that a what-if has taken out would free; valid while freed_epoch is the core's */
    struct vector freed;
    uint64_t freed_epoch;
    /* one evaluation's plan; valid while plan_epoch is the core's */
    uint64_t plan_epoch;
    struct vector planned;           /* what the plan puts here on top of `used` */
    struct node_state *next_planned; /* in core.planned_nodes */
    /* for reach.c: when it has changed last, and those that did before and after it */
    uint32_t index; /* in core.node_index, while that is there */
    uint64_t changed_at;
    uint64_t object_changed_at; /* the Node, or which devices there are */
    struct node_state *newer;
    struct node_state *older;
};

RB_HEAD(node_tree, node_state);

/* What a pod adds to the numbers of its gang, and of one of the gang's sets. */
struct pod_count {
    bool is_live;
    bool is_settled;
    bool is_ready;
    bool is_lost;
    bool has_set;
    uint8_t set; /* its index */
};

/* A device that a pod has and that is reported Unhealthy in the pod's status. */
struct ill_report {
    struct str claim;   /* owned; "namespace/name"; absent: of a device plugin */
    struct str request; /* owned; of the claim, absent: of any */
    struct str id;      /* owned; of the device, in the reporter's own words */
};

struct pod_state {
    struct str uid;          /* owned */
    struct str key;          /* owned; "namespace/name" */
    struct pod_group *group; /* of its Job; NULL: no Job controls it */
    struct str pod_set;      /* owned; absent: the first set of its gang */
    struct pod_state *next_in_group;
    struct pod_state *previous_in_group;
    struct pod_count counted; /* what its gang counts it as */
    struct node_state *node;  /* borrowed; NULL: not bound */
    struct pod_state *next_on_node;
    struct vector amounts; /* what it takes from its node, 1 pod included */
    struct str *claims;    /* owned keys; the ResourceClaims that it uses, as far as known */
    uint32_t claim_count;
    uint32_t claims_wanted; /* spec.resourceClaims[] entries */
    int64_t *host_ports;    /* owned; of its node, whatever the protocol and address */
    uint32_t host_port_count;
    struct ill_report *ill; /* owned */
    uint32_t ill_count;
    struct str *ill_devices; /* owned keys of those that are known devices */
    uint32_t ill_device_count;
    struct charge_list surplus; /* owned; devices beyond what its gang is charged for it */
    struct pod *apart;          /* owned; its required podAntiAffinity alone, NULL: it has none */
    int64_t evicted_ms;         /* when kube began to, for a taint; 0: it didn't */
    bool is_evicted_by_device;  /* the taint is a device's */
    bool is_settled;            /* bound, and all its claims are seen allocated */
    bool is_terminal;
    bool is_ready;
    bool is_succeeded;
    bool is_terminating; /* has a deletionTimestamp */
    bool is_orphan;      /* a Job has made it, and no owner is named any more */
};

/* By what objects are kept that name a Job as their owner: in its own namespace, for anybody may
 * write an ownerReference. In the scratch arena. */
struct str owner_key(struct core *core, struct str namespace_name, struct str job_uid);
struct gang *gang_of_owner(const struct core *core, struct str owner); /* or NULL */

/* The pods of one Job, which may be seen before the Job is, and after it has gone. */
struct pod_group {
    struct str owner;       /* owned; see owner_key() */
    struct gang *gang;      /* borrowed; NULL: not one of ours */
    struct pod_state *pods; /* list by next_in_group */
};

/* -- devices ---------------------------------------------------------------------------------- */

struct slice_state {
    struct str name; /* owned */
    UT_hash_handle hh;
    struct resource_slice *object; /* owned clone */
    struct pool_state *pool;
    struct slice_state *next_in_pool;
};

/* One counter of a pool's shared counter set (partitionable devices: a card and its parts draw on
 * the same set). */
struct counter_state {
    struct str set;  /* borrowed from the pool's slices */
    struct str name; /* borrowed from the pool's slices */
    i128 capacity;   /* billionths, as quantities are */
    i128 used;       /* by the pool's devices in use */
    i128 planned;    /* by the plan of plan_epoch */
    uint64_t plan_epoch;
    i128 freed; /* by the what-if of freed_epoch */
    uint64_t freed_epoch;
    const struct node_state *node; /* of the devices that draw on it; NULL: of no one node */
    bool has_node;                 /* node is valid */
    bool is_spread;                /* these are of several nodes */
    uint32_t card;                 /* of card.c; one for all that a device ties together */
    i128 pending; /* by the search of fit_allocate.c that is going on; 0 outside of it */
};

struct counter_use {
    uint32_t counter; /* index in the pool's counters */
    i128 amount;
};

struct pool_state {
    struct str key;                 /* owned; "driver/pool" */
    struct counter_state *counters; /* owned */
    uint32_t counter_count;
    uint32_t counter_capacity;
    UT_hash_handle hh;
    struct slice_state *slices;
    struct device_state *devices; /* of the newest complete generation; list by next_in_pool */
    const char *problem;          /* static; why it gives no devices, NULL: it does */
    bool has_binding_conditions;  /* some of its devices have */
    /* A part of a card that no counter ties to it, though it says that it is of it; NULL: none. */
    const struct device_state *loose_part;
    const struct device_state *loose_card;
};

/* wake_cluster.c: the pool has, or is about to lose, the devices that it has now. */
void wake_for_pool(struct core *core, const struct pool_state *pool);

/* Of one capacity of a device that may be allocated several times, beyond what is in use; valid
 * while the device's epochs are the core's. */
struct share_state {
    i128 planned;
    i128 freed;
};

/* One device that may be allocated. */
struct device_state {
    struct str key; /* owned; "driver/pool/device" */
    RB_ENTRY(device_state) by_key;
    RB_ENTRY(device_state) among_ailing; /* in core.ailing_devices while is_ailing */
    const struct resource_slice *slice;  /* borrowed from its slice_state */
    const struct device *device;         /* borrowed from its slice_state */
    struct node_state *node;             /* NULL: not bound to one node */
    struct device_state *next_on_node;
    struct device_state *previous_on_node;
    struct device_state *next_in_pool;
    struct pool_state *pool;
    struct counter_use *counters; /* owned */
    uint32_t counter_count;
    uint32_t slot;              /* index in core.devices; stable while it exists */
    bool is_used;               /* some claim's allocation names it */
    bool is_shareable;          /* it may be allocated several times, as its capacities allow */
    struct used_device *used;   /* borrowed; NULL: nobody has it */
    struct share_state *shares; /* owned; by capacity; NULL: it isn't shareable */
    uint32_t planned_shares;    /* valid while shares_epoch is the core's plan_epoch */
    uint64_t shares_epoch;
    uint32_t freed_shares; /* valid while freed_epoch is the core's */
    bool is_tainted;       /* NoSchedule or NoExecute, by its slice or by a rule */
    bool is_evicting;      /* NoExecute */
    bool is_resting;       /* in quarantine, or reported Unhealthy: see ailment.c */
    bool is_ailing;        /* some or all requests can't have it */
    bool is_uncountable;   /* draws less than nothing on a counter */
    uint64_t plan_epoch;   /* taken by the plan of that epoch */
    uint64_t freed_epoch;  /* freed by the what-if of that epoch, wholly or shares of it */
};

RB_HEAD(device_tree, device_state);
RB_HEAD(ailing_tree, device_state);

/* A key that some claim's allocation names: "in use" is the set of these. */
struct used_device {
    struct str key;              /* owned */
    uint32_t claims;             /* allocations that name it; > 0 */
    uint32_t shares;             /* of these, with a share of their own */
    struct used_capacity *items; /* owned; what the shares take */
    uint32_t count;
};

struct used_capacity {
    struct str name; /* owned */
    i128 amount;     /* billionths */
};

struct taint_rule {
    struct str name; /* owned */
    UT_hash_handle hh;
    struct device_taint_rule *object; /* owned clone */
};

struct claim_state {
    struct str key;                    /* owned; "namespace/name" */
    struct resource_claim *object;     /* owned clone; NULL: only Jobs name it */
    uint32_t users;                    /* shapes that name it; kept while there are any */
    uint64_t freed_epoch;              /* the what-if of that epoch has freed its devices */
    struct claim_state *next_of_group; /* group_claim.c: made for the same */
};

/* What one request of a claim asks: a class, its own selectors and its tolerations, shared by all
 * that ask the same. */
struct device_profile {
    struct str key; /* owned; class, selectors and tolerations as text */
    UT_hash_handle hh;
    struct str class_name;              /* owned */
    struct device_selector_list own;    /* owned; the request's selectors */
    struct toleration_list tolerations; /* owned; the request's, of device taints */
    uint32_t users;                     /* shapes; freed at 0, or by the next step: selectors.c */
    struct str problem;                 /* owned; why it can't be evaluated, absent: it can */
    enum reason problem_reason;
    struct cel_program **programs; /* the class's, then the request's; owned */
    uint32_t program_count;
    uint8_t *matches;     /* by slot; enum match */
    bool has_failed;      /* on some device, which may be gone by now */
    struct str failure;   /* owned; why on the first such device, absent: not known any more */
    uint32_t failed_slot; /* of that device */
    uint64_t tried_at;    /* the changes of matches at which it had been tried on all devices */
    uint64_t walked_at;   /* those that the walk is of; selectors.c, as all up to next_wanted */
    uint32_t walk;        /* the slot that is tried next */
    uint32_t begun_slot;  /* on whose device `begun_count` programs have said yes so far */
    uint32_t begun_count;
    uint64_t spent; /* on it in steps */
    bool is_wanted; /* somebody can't be judged before it has been tried everywhere */
    struct device_profile *next_wanted;
    /* the next six are valid while looked_at is core.device_changes */
    bool is_failing;
    bool has_shareable; /* a device that matches may be allocated several times */
    bool has_counters;  /* one that matches draws on counters */
    bool has_any;       /* some device matches, be it out or not */
    bool has_usable;    /* and draws no more on any counter than there is */
    uint64_t looked_at;
    uint32_t match_capacity;
};

/* -- what gangs ask for of devices ------------------------------------------------------------- */

struct device_ask;

/* Devices of one request, or of one of its alternatives. */
struct device_demand {
    struct device_profile *profile; /* counted in its `users` */
    int64_t count;                  /* devices per pod, or per claim; of all: at least one */
    int64_t charged; /* to the quota; of alternatives only the most per class is more than 0 */
    bool is_alternative;
    bool is_special; /* not just so many devices: all, a part of each, or tied by a constraint */
    bool is_all;     /* as many as the node has */
    struct str resource; /* borrowed from core.resource_names; the extended resource by which it is
                            asked for, see extended.h; absent: by a claim */
};

struct shared_claim_demand {
    struct claim_state *claim; /* borrowed from core.claims */
    struct device_demand *requests;
    uint32_t request_count;
    struct device_ask *ask; /* owned; its one claim, NULL: the shape is broken */
    bool is_of_group;       /* its consumer is the PodGroup, not each pod */
};

/* -- reach.c: what has changed on nodes ---------------------------------------------------------
 */

/* What is free there is another amount now. */
void node_touch(struct core *core, struct node_state *node);
/* The Node has changed, or which devices are there. */
void node_touch_object(struct core *core, struct node_state *node);
void node_touch_drop(struct core *core, struct node_state *node); /* before it is freed */
void reaches_forget(struct core *core); /* other nodes, or another flavor */
void nodes_index(struct core *core);    /* fills core.node_index, if it isn't */
/* A node's labels are others now: topology.h. */
void topology_labels_changed(struct core *core, const struct string_map *before,
                             const struct string_map *now);
void reaches_forget_profile(struct core *core, const struct device_profile *profile);
/* Which nodes the set's pods may use by their own template, as text; in the scratch arena. */
struct str pod_set_place_key(struct core *core, const struct pod_set *set);
