/* fit.h - where could these pods go: what the files fit*.c offer each other and the evaluation.
 * Private to the core. */
#pragma once

#include "state.h"

/* -- fit.c: where could these pods go --------------------------------------------------------- */

#define FLAVORS_PER_GANG_MAX 8

/* One pod, as many times as asked. All borrowed. */
struct pod_demand {
    const struct pod_set *set;
    const struct string_map *node_selector; /* as it will stand on the pods */
    const struct topology_domain *domain;   /* topology.h; they have to be in it, NULL: anywhere */
    const struct resource_flavor *flavors[FLAVORS_PER_GANG_MAX];
    uint32_t flavor_count;
    bool is_written; /* the flavors' labels are others than those that its pods got */
};

/* One pod set that wants its places, and what it gets. */
struct fit_want {
    struct pod_demand demand;
    int64_t wanted;
    int64_t count; /* that will be made: as many as are wanted, or as placed if fewer may start */
    int64_t min_count;
    int64_t placed; /* pods that found a place, at most `count`; valid if all sets fit */
    struct str pin; /* the hostname label that all of them must go to, absent: none */
};

/* One domain of that level for all pods, topology.h. */
struct topology_ask {
    struct str_list levels; /* labels, the widest first; none: no topology is asked for */
    uint32_t level;
    bool is_required; /* else a wider domain will do, or none */
};

/* All pod sets of a gang. */
struct fit_wants {
    struct fit_want *items;
    uint32_t count;
    struct topology_ask topology;
    const struct topology_domain *domain; /* that was chosen; NULL: none */
    bool are_pinned; /* all to one node, though they name no claim that needs it */
};

/* What stands in the way of one domain for all. */
struct topology_shortage {
    bool is_short;       /* anywhere it would fit, and in no domain */
    bool is_never;       /* in no domain, were it empty */
    uint32_t total;      /* domains of the level */
    uint32_t unusable;   /* those without a node that the pods may use */
    uint32_t too_small;  /* those with too few places, were they empty */
    uint32_t full;       /* the others */
    struct str level;    /* the label; borrowed from the flavor */
    struct str emptiest; /* in the scratch arena; the name of the one with most places free */
    struct str resource; /* that runs short there, absent: places on its nodes do */
    int64_t asked;
    int64_t free;
};

/* What a gang lacks although there would be enough if all were healthy. */
struct fit_health {
    struct str resource;  /* a device class or extended resource; absent: none */
    int64_t asked;        /* of it, for all pods */
    int64_t free;         /* of it */
    int64_t capacity;     /* of it, in all */
    int64_t ailing;       /* that would be free, too, if they were healthy */
    struct str names;     /* in the scratch arena; which ones, and what is wrong with them */
    bool is_short_anyway; /* something would be short even then */
    bool is_by_search;    /* for how many pods it is enough, no count of the resource tells */
};

/* How many pods there would be room for if nothing else ran and all were healthy. */
struct fit_ever {
    bool is_too_many;  /* fewer than are asked for; the rest is valid then */
    bool is_one_node;  /* they share a claim, and so a node */
    bool has_counters; /* devices that they could have exclude each other */
    int64_t pods;
    int64_t count;       /* that are asked for */
    struct str resource; /* of which all nodes together have too little; absent: of none */
    int64_t asked;
    int64_t capacity;
};

struct fit_result {
    bool is_fit;         /* every set has found places for at least min_count of its pods */
    uint32_t short_set;  /* the set that hasn't; what follows is of it */
    bool is_alone;       /* it hasn't without the others either */
    bool is_own_way;     /* the gang's own sets may take each other's places */
    bool is_uneven;      /* which of its pods find devices depends on the nodes of the others */
    struct str bound_to; /* the node that its pods name, and alone looked at; empty: none */
    uint32_t nodes_total;
    struct node_places *places; /* in the scratch arena; only where they are wanted */
    uint32_t place_count;
    uint32_t excluded[EXCLUDED_COUNT];
    struct str excluded_why[EXCLUDED_COUNT]; /* in the scratch arena; see evidence */
    struct node_state **sick_nodes; /* in the scratch arena; out for their health alone, by name */
    uint32_t sick_count;
    struct fit_health health;
    struct str short_of;     /* the resource or class that ran short in all, absent: none did */
    int64_t asked;           /* of it, for all pods */
    int64_t free;            /* of it, over the nodes that aren't excluded */
    int64_t capacity;        /* of it, in all, used or not */
    int64_t per_pod;         /* of it; of what a named claim asks for, the claim */
    struct str selector;     /* by which a class's devices are asked for; absent: by the class */
    int64_t largest;         /* of it, used or not, on one of these nodes */
    bool is_class;           /* short_of is a device class */
    bool is_beside_promises; /* pods on their way were reckoned with */
    struct str pool_trouble; /* in the scratch arena; devices that are there and don't count */
    bool is_too_large;       /* one pod is larger than any node that isn't excluded */
    struct str too_large_of; /* then: the key of the named claim that is; absent: the pod */
    struct fit_ever ever;
    bool is_never_together;   /* no node has all that one pod needs, were it empty and healthy */
    bool is_promised;         /* it could fit, but for pods on their way to places of their own */
    bool is_claim_ill;        /* that one has a device that would evict its pods */
    bool is_claim_in_way;     /* its pods' own claims could get the devices of that one */
    bool is_misled;           /* claim_trouble is about a node that the scheduler would fail on */
    struct str claim_trouble; /* in the scratch arena; a named claim that can't be placed */
    struct topology_shortage topology;
    struct str ask_trouble; /* in the scratch arena; why its claims can't be judged or allocated */
    enum reason ask_reason; /* of ask_trouble */
    bool is_asked_special;  /* its claims aren't just so many devices */
    int64_t asked_placed;   /* pods that are sure of devices, if so or uneven */
    struct str unmatched;   /* in the scratch arena; a request that no device at all can meet */
    struct str apart;       /* of which enough is free in all, and on no node enough for one pod;
                               absent: none. The three below are of it. */
    int64_t apart_per_pod;
    int64_t apart_free;
    int64_t apart_largest; /* free on one node, at most */
};

/* May `count` pods of each set, or at least `min_count` of them, be placed at once beside all that
 * is promised, whatever order kube-scheduler places them in? */
struct fit_result fit_gang(struct core *core, struct fit_wants *wants);
/* Whether the node could take one such pod now, promises aside. */
bool fit_node_has_room(struct core *core, const struct pod_demand *demand, struct node_state *node);

/* extended.c: some node would do, and kube-scheduler may choose another one on which it then fails
 * for ever; the result says so. */
bool fit_would_be_misled(struct core *core, const struct pod_demand *demand,
                         struct fit_result *result);
/* The sentence for a gang without room; in the scratch arena. */
struct verdict fit_verdict(struct core *core, const struct fit_wants *wants,
                           const struct fit_result *fit);

/* Gangs of one demand whose pods are on their way, or the candidate. */
struct crowd {
    struct pod_demand demand;
    int64_t pods;
    const int64_t
        *limits; /* by node, in order: at most so many go there; NULL: no limit is known */
    const uint64_t *nodes; /* bit per node that they may use, for fit_robust.c; NULL: walk them */
};

struct crowd_list {
    struct crowd *items; /* in the scratch arena */
    uint32_t count;
    uint32_t capacity;
    bool is_incomplete; /* which devices some of these pods will take can't be told now */
};

void fit_plan_new(struct core *core);                            /* nothing is planned any more */
void node_open_plan(struct core *core, struct node_state *node); /* before it is planned on */
/* The pods on their way; and all of them into the plan. */
struct crowd_list fit_promised(struct core *core);
void fit_place_promises(struct core *core, const struct crowd_list *list);
/* Fills the numbers behind a "no" for so many such pods, beside what is in the plan. */
/* How many of the pods each node has room for, beside what is in the plan. */
void fit_list_places(struct core *core, const struct pod_demand *demand, int64_t count,
                     struct fit_result *result);
void fit_explain(struct core *core, const struct pod_demand *demand, int64_t count,
                 struct fit_result *result);
/* Fills node after node with such pods, in the plan; how many found a place, at most `want`. */
int64_t fit_place(struct core *core, const struct pod_demand *demand, int64_t want);

/* -- fit_ever.c: could they run at once if nothing else did ------------------------------------ */

#define EVER_COUNTS  2
#define EVER_FLAVORS 2

/* What a set's `ever` is an array of, EVER_COUNTS items, the last counted first: how many of its
 * pods all nodes could hold, were they empty. */
struct ever_count {
    uint64_t supply; /* core.supply_changes, and one; 0: nothing was counted */
    const struct resource_flavor *flavors[EVER_FLAVORS];
    uint32_t flavor_count;
    int64_t wanted;
    int64_t pods; /* fewer than were wanted: all that there are */
};

/* How many such pods, at most `want`; on one node alone. Upper bounds. */
int64_t fit_most_ever(struct core *core, const struct pod_demand *demand, int64_t want);
int64_t node_places_ever(struct core *core, const struct pod_demand *demand,
                         struct node_state *node);
/* By its devices alone, fit_most.c; `set` as the pods are anywhere. */
int64_t node_device_places_ever(struct core *core, const struct pod_set *set,
                                struct node_state *node);
/* Of these requests, all that can be met only by devices which `of` could have, too: so many are
 * needed of those. */
int64_t devices_asked(const struct device_demand *items, uint32_t count,
                      const struct device_demand *of);
/* The same with the numbers behind a "no". */
void fit_find_ever(struct core *core, const struct pod_demand *demand, int64_t count,
                   struct fit_ever *ret_ever);
/* In some one domain of the level that is asked for. */
bool fit_domain_is_ever_enough(struct core *core, const struct topology_ask *topology,
                               const struct pod_demand *demand, int64_t count);
/* min_count of each set by itself, in one domain where that is required. */
bool fit_could_ever(struct core *core, const struct fit_wants *wants);

/* Whether some node has all that one pod needs, were it empty. One that isn't ready, is cordoned or
 * out for its health counts: it comes back as it was. */
bool fit_could_hold_one(struct core *core, const struct pod_demand *demand);

/* One plan for all sets, on any nodes of their domain: whether all find their places and keep them
 * whatever kube-scheduler does. */
bool fit_anywhere(struct core *core, const struct crowd_list *promised, struct fit_wants *wants,
                  struct fit_result *result);

/* -- fit_claims.c: named claims ---------------------------------------------------------------- */

/* A claim that is on its way to devices that another gang's pods will choose, that has as many
 * users as it may have, or an unhealthy device. `w`: the set that names it. */
bool fit_waits_for_claim(struct core *core, const struct fit_wants *wants, uint32_t w,
                         struct fit_result *result);
/* The first pod may give the named claim the devices that only the pods' own claims can use. */
bool fit_claims_are_in_own_way(struct core *core, const struct fit_want *want,
                               struct fit_result *result);

/* -- fit_topology.c: in one domain --------------------------------------------------------------
 */

/* Tries the domains of the level that is asked for, then (preferred) of the levels above. `all`:
 * what is promised anywhere; `promised`: what of it could meet the gang's pods. */
bool fit_in_a_domain(struct core *core, const struct crowd_list *all,
                     const struct crowd_list *promised, struct fit_wants *wants,
                     struct fit_result *result);
/* The numbers behind it, beside what is in the plan. */
void fit_explain_topology(struct core *core, const struct fit_wants *wants,
                          struct fit_result *result);
/* What of it goes into the explanation; texts borrowed. */
struct topology_note fit_topology_note(const struct fit_result *fit);
void demand_set_domain(struct fit_wants *wants, const struct topology_domain *domain);

/* -- fit_near.c, fit_robust.c: whatever order pods are placed in --------------------------------
 */

/* Of the crowds those that could meet the gang's pods, directly or through each other. */
struct crowd_list fit_near(struct core *core, const struct crowd_list *list,
                           const struct fit_wants *wants);
/* Whether these crowds and `placed` pods of each set find the places that were found for them,
 * wherever kube-scheduler puts the others. All `count` pods of a set will be made and look for a
 * place, so those above `placed` are in the others' way too. */
/* `ret_unsafe` is the first set that doesn't, where it is one of the gang's own. */
bool fit_is_robust(struct core *core, const struct crowd_list *promised,
                   const struct fit_wants *wants, uint32_t *ret_unsafe);
/* Whether such pods of two gangs can't be told apart by where they may go; their nodeSelectors
 * aside. */
bool fit_is_one_crowd(const struct core *core, const struct pod_demand *a,
                      const struct pod_demand *b);
bool fit_is_same_selector(const struct string_map *a, const struct string_map *b);
/* Equal pods, of equal shapes and on equal flavors, confined alike; their nodeSelectors aside. */
bool fit_is_alike(const struct pod_demand *a, const struct pod_demand *b);
/* Whether pods or named claims of `other` may be after the devices that a named claim of `mine` is
 * still to get. Of one and the same demand: its pods' own devices. */
bool fit_claims_collide(struct core *core, const struct pod_demand *mine,
                        const struct pod_demand *other);

/* -- fit_node.c: one node's part in it -------------------------------------------------------- */

/* Why the node is out for such pods whatever is free on it; EXCLUDED_COUNT: it isn't. A node that
 * only pods or slices name, and that isn't there, is always out. */
enum exclusion node_exclusion(const struct core *core, const struct pod_demand *demand,
                              const struct node_state *node);
/* The taint of the node that such pods don't tolerate, or NULL; borrowed. */
const struct taint *node_untolerated(const struct pod_demand *demand,
                                     const struct node_state *node);
/* Of one that is out for its health: nothing else keeps such pods off it. */
bool node_is_only_sick(const struct pod_demand *demand, const struct node_state *node);
/* Claims that have their devices already say which nodes can reach them. */
bool node_reaches_claims(const struct pod_demand *demand, const struct node_state *node);
/* By its labels and the taints that don't come and go. */
bool node_is_eligible(const struct pod_demand *demand, const struct node_state *node);
/* Nothing but its health or a cordon keeps such pods off it. */
bool node_is_only_away(const struct pod_demand *demand, const struct node_state *node);
/* health.c: EXCLUDED_UNHEALTHY or EXCLUDED_QUARANTINE by the demand's flavors, or EXCLUDED_COUNT.
 */
enum exclusion node_health_exclusion(const struct core *core, const struct pod_demand *demand,
                                     const struct node_state *node);
/* What is wrong with it; in the scratch arena. */
struct str node_health_text(struct core *core, const struct pod_demand *demand,
                            const struct node_state *node);
/* What the plan leaves of a resource there. */
i128 node_room(const struct core *core, const struct node_state *node, struct str resource);
/* Pods that could go there by cpu, memory, pods and the like, at most `want`. */
int64_t node_plain_slots(const struct core *core, const struct pod_demand *demand,
                         const struct node_state *node, int64_t want);
/* Puts as many pods there as there is room for, at most `want`: they are in the plan then. */
int64_t node_place(struct core *core, const struct pod_demand *demand, struct node_state *node,
                   int64_t want);
/* Takes the devices of the demand's unallocated named claims there; false: not all are free. */
bool node_place_claims(struct core *core, const struct pod_demand *demand, struct node_state *node);
/* The same for one of them. */
bool node_place_claim(struct core *core, const struct shared_claim_demand *claim,
                      struct node_state *node);
/* Puts there what such pods could take of cpu, memory and the like, at most `pods` of them and as
 * many as could be there alone, on top of the plan and whether there is room for it or not. */
void node_crowd(struct core *core, const struct pod_demand *demand, struct node_state *node,
                int64_t pods);
/* Of a device that no one node has: whether the node sees it. */
bool device_is_visible(const struct device_state *device, const struct node_state *node);
/* Free devices that match, seen from that node; INT64_MIN if a selector failed on one. */
int64_t node_free_devices(struct core *core, struct device_profile *profile,
                          struct node_state *node);
/* Devices that match, free or not. */
int64_t node_count_devices(struct core *core, struct device_profile *profile,
                           struct node_state *node);
bool demand_has_new_claims(const struct pod_demand *demand);

/* Walks the devices that the node sees: its own, then (unless the plan stays local) those bound to
 * no node. */
struct device_walk {
    const struct core *core;
    const struct node_state *node;
    struct device_state *own;
    uint32_t roaming; /* index of the next in core.roaming */
    uint32_t roaming_end;
    const struct resource_slice *slice; /* the last one asked about, and whether it is seen */
    bool is_slice_seen;
};

struct device_walk device_walk_start(struct core *core, const struct node_state *node);
struct device_state *device_walk_next(struct device_walk *walk); /* NULL: there are no more */

/* -- fit_apart.c: pods that can't be on one node -------------------------------------------------
 */

/* Another gang of the shape has these labels on the template of that set. */
void pod_set_meet_labels(struct pod_set *set, const struct string_map *labels);
bool pod_set_keeps_apart(const struct pod_set *set);
/* By its host ports or that: no two of its pods are put on one node. */
bool pod_set_is_one_a_node(const struct pod_set *set);
void pod_read_apart(struct core *core, struct pod_state *pod, const struct pod *object);
void pod_drop_apart(struct core *core, struct pod_state *pod);
/* Whether a pod somewhere keeps such pods off that node. */
bool node_is_kept_off(const struct core *core, const struct pod_set *set,
                      const struct node_state *node);
/* How many such pods can be there by their host ports and anti-affinities: all, one or none. Which
 * pods an anti-affinity of their own is about isn't looked at: any of the namespace's may be. */
int64_t node_slots_beside_others(const struct core *core, const struct pod_set *set,
                                 const struct node_state *node);

/* -- fit_device.c: devices for pods, whichever kube-scheduler picks -----------------------------
 */

/* For how many pods the node's free devices are enough whichever of them each is given, though
 * others take some, too. `ret_is_exact`: it is never enough for more. */
int64_t node_safe_device_slots(struct core *core, const struct pod_set *set,
                               const struct node_state *node, bool *ret_is_exact);
/* At most one node isn't excluded. */
bool demand_sees_one_node(struct core *core, const struct pod_demand *demand);

/* -- fit_health.c: what is only out because it isn't healthy ------------------------------------
 */

/* Which nodes are out for their health, and more about those that are out at all. */
void fit_list_sick(struct core *core, const struct pod_demand *demand, struct fit_result *result);

/* What was measured of a resource, or of a profile's devices (else NULL). */
struct fit_shortage {
    struct str resource; /* or the device class */
    struct str extended; /* the devices are asked for by it, see extended.h; absent: by a claim */
    struct device_profile *profile;
    int64_t per_pod;
    int64_t asked;
    int64_t free;
    int64_t largest_free; /* on one node */
    int64_t capacity;
};

/* Whether there would be enough if everything were healthy. Devices are told so then. */
bool fit_note_health(struct core *core, const struct pod_demand *demand,
                     const struct fit_shortage *shortage, struct fit_result *result);
/* The same where no count tells, with result.asked_placed of `count` pods in the plan. Others are
 * in it then, too. */
void fit_search_healthy(struct core *core, const struct pod_demand *demand, int64_t count,
                        struct fit_result *result);
