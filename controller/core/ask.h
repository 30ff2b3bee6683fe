/* ask.h - what a pod, or a named claim, asks of devices: claims, their requests, and the ways in
 * which each may be met, as kube-scheduler's allocator reads them. Private to the core. */
#pragma once

#include "fit.h"

#define ASK_OPTIONS_MAX 64 /* ways to meet all requests of one pod; one bit each */
#define ASK_CLAIMS_MAX  32 /* of one pod; one bit each */

/* One way to meet a request: its `exactly`, or one of its firstAvailable. */
struct ask_option {
    struct device_profile *profile;            /* counted in its `users` */
    const struct device_request_exact *object; /* borrowed from the claim's spec */
    uint32_t claim;                            /* index of the claim that it is of */
    int64_t count;                             /* devices; of all: at least one */
    bool is_all;                               /* every device there that matches */
    bool is_admin;        /* whether or not somebody has it, and leaving it as it is */
    uint32_t constraints; /* bit per constraint of the claim that it is under */
};

struct ask_request {
    const struct device_request *object; /* borrowed from the claim's spec */
    uint32_t first_option;               /* index in the ask's options */
    uint32_t option_count;
};

struct ask_claim {
    struct str where;          /* owned; "ResourceClaimTemplate ns/name" */
    struct device_claim *spec; /* owned clone */
    struct ask_request *requests;
    uint32_t request_count;
};

struct device_ask {
    struct ask_claim *claims; /* in the order of the pod's resourceClaims */
    uint32_t claim_count;
    struct ask_option *options;
    uint32_t option_count;
    bool is_special; /* not only `exactly` so many devices that nothing else ties together */
    bool has_all;
};

/* Adds the claim's requests to the ask, which is made where there is none, and to `demands`, which
 * the quota and the indexes look at. What is wrong breaks the shape, in a sentence. */
void ask_add_claim(struct core *core, struct shape *shape, const struct device_claim *claim,
                   struct str where, struct device_ask **ask, struct device_demand **demands,
                   uint32_t *demand_count);
void ask_free(struct core *core, struct device_ask *ask); /* NULL is fine */
bool ask_equal(const struct device_ask *a, const struct device_ask *b);
bool ask_is_special(const struct device_ask *ask); /* NULL: no */
/* Devices have come or gone: what those that ask for all of a node are charged is found anew. */
void asks_for_all_changed(struct core *core);
bool ask_uses_class(const struct device_ask *ask, struct str class_name);

/* -- fit_break.c: claims that can't be judged or allocated --------------------------------------
 */

/* Whether kube-scheduler may give up on one of so many pods when it looks at a node that they may
 * use; why, in a sentence in the scratch arena. */
bool demand_breaks(struct core *core, const struct pod_demand *demand, int64_t pods,
                   struct fit_result *result);
/* The sentence for claims of which nobody can tell for how many pods the devices are enough,
 * because the search takes too long; and where that depends on the nodes that the pods are put on.
 */
struct str ask_is_too_hard(struct core *core, const struct pod_set *set);
struct str ask_is_tied(struct core *core, const struct pod_set *set);
struct str ask_is_held_back(struct core *core, const struct pod_set *set,
                            const struct device_state *device);
/* Names its claims; in the scratch arena. */
struct str ask_names(struct core *core, const struct pod_set *set);

/* -- fit_share.c: devices that may be allocated several times --------------------------------- */

enum share_answer { SHARE_REFUSED = 0, SHARE_FITS, SHARE_BROKEN };

/* What one allocation takes of each capacity of the device, by the request and the device's request
 * policies; `ret_amounts` has room for all capacities. Billionths. SHARE_BROKEN: the scheduler
 * gives up on the pod. Source: structured/internal/incubating/consumable_capacity.go, 1.37. */
enum share_answer share_amounts(const struct device *device, const struct resource_list *requests,
                                i128 *ret_amounts);

/* -- device_use.c: who has a device ------------------------------------------------------------ */

/* One allocation of a device that may be allocated several times; amounts by capacity. */
void device_plan_share(struct core *core, struct device_state *device, const i128 *amounts);
/* What the plan leaves of the device's i-th capacity. */
i128 device_share_room(const struct core *core, const struct device_state *device, uint32_t i);
/* Whether a share of it is in use, or planned. */
bool device_has_shares(const struct core *core, const struct device_state *device);
/* Used, planned and not freed of a counter. */
i128 counter_drawn(const struct core *core, const struct counter_state *counter);
/* Nobody has all of it, in the cluster or the plan; its counters aside. */
bool device_is_unheld(const struct core *core, const struct device_state *device);

/* -- profile.c --------------------------------------------------------------------------------- */

/* Whether it fails on some device, or matches one that may be allocated several times. */
bool profile_is_failing(struct core *core, struct device_profile *profile);
bool profile_has_shareable(struct core *core, struct device_profile *profile);

bool profile_has_counters(struct core *core, struct device_profile *profile);
/* Whether there is such a device at all; one that its counters would let anybody have. */
bool profile_has_any(struct core *core, struct device_profile *profile);
bool profile_has_usable(struct core *core, struct device_profile *profile);

/* -- card.c ------------------------------------------------------------------------------------ */

void pool_find_cards(struct pool_state *pool);           /* its devices are others now */
uint32_t device_card(const struct device_state *device); /* of one that has counters */
/* The first counter on which it draws more than there is, or NULL; borrowed from the pool. */
const struct counter_state *device_scarce_counter(const struct device_state *device);
/* It draws that much, or less than nothing: nobody can have it. */
bool device_is_beyond_counters(const struct device_state *device);
/* How many of these, one or more of one card, its counters can be enough for at once, at most. */
int64_t card_most_devices(struct core *core, const struct device_state *const *devices,
                          uint32_t count);

/* -- fit_unmatched.c ----------------------------------------------------------------------------
 */

/* The first request that no device of the cluster can meet, whatever it is that keeps it; in a
 * sentence in the scratch arena, absent: there is none. */
struct str set_unmatched(struct core *core, const struct pod_set *set);
/* "selector '…'" of the request, beside its class's; in the scratch arena, absent: it has none. */
struct str profile_selector_text(struct core *core, const struct device_profile *profile);

/* What kube-scheduler gives up on, and for which claim of the ask. */
enum breach_kind { BREACH_SELECTOR = 1, BREACH_COUNT, BREACH_CONSTRAINT, BREACH_CAPACITY };
struct breach {
    enum breach_kind kind;
    uint32_t claim;
};

/* -- fit_asked.c: devices for pods, one by one ---------------------------------------------------
 */

/* For how many such pods, at most `want`, the node's devices are enough in the plan, if nobody else
 * takes any; their devices are in the plan then. core.asked_is_too_hard, asked_is_tied: it couldn't
 * be told. */
int64_t node_place_asked(struct core *core, const struct device_ask *ask, struct node_state *node,
                         int64_t want);
/* The same for a claim that is allocated once. */
bool node_place_asked_once(struct core *core, const struct device_ask *ask,
                           struct node_state *node);
/* Whether the node could serve one pod, were all its devices free. */
bool node_could_serve(struct core *core, const struct device_ask *ask, struct node_state *node);
/* Whether kube-scheduler gives up on such a pod as soon as it looks at that node, with none to all
 * but one of `pods` of them there; too hard: it couldn't be told. */
bool node_breaks_ask(struct core *core, const struct device_ask *ask, struct node_state *node,
                     int64_t pods, struct breach *ret_breach, bool *ret_is_too_hard);
