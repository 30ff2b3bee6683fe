/* shadow.h - the state as it will be when some gangs have ended and others have come. Between
 * shadow.c, booking.c and fit*.c.
 *
 * A shadow is a what-if in which gangs end one by one, in the order of their known ends, and those
 * without one last, the oldest first. Guests are gangs that aren't there yet. Whoever is on his way
 * to a node now will be bound by then: where, nobody knows, but only where there is room now. */
#pragma once

#include "internal.h"

struct shadow_guest {
    struct gang *head;    /* borrowed; whose booking it is, NULL: of a gang that would go first */
    struct crowd *crowds; /* borrowed; its pod sets, none where room doesn't matter */
    uint32_t crowd_count;
    struct quota_node *node;    /* its queue's */
    struct charge_list charges; /* borrowed; all that it takes */
    int64_t until_ms;           /* INT64_MAX: nobody says */
    bool starts_now; /* in the room that is there now; else wherever there will be some */
};

struct shadow_entry {
    int64_t end_ms;    /* INT64_MAX: nobody says */
    struct gang *gang; /* NULL: it is the guest */
    struct shadow_guest *guest;
    bool is_out;
};

struct shadow {
    bool owns_what_if;
    struct shadow_entry *entries; /* by their end */
    uint32_t count;
    uint32_t known;            /* those that come first, with a known end */
    uint32_t out;              /* see shadow_go_to() */
    struct crowd_list present; /* those on their way now, with their limits */
};

/* The guests are borrowed until it is closed; everything lives in the scratch arena. May be opened
 * within a what-if: gangs that are out stay out. Shadows don't nest. */
void shadow_open(struct core *core, struct shadow *shadow, struct shadow_guest *guests,
                 uint32_t guest_count);
void shadow_close(struct core *core, struct shadow *shadow);
void shadow_set_out(struct core *core, struct shadow_entry *entry, bool is_out);
/* The first `out` entries have ended and no other. */
void shadow_go_to(struct core *core, struct shadow *shadow, uint32_t out);
/* Whether the gang could start there. */
bool shadow_fits(struct core *core, struct shadow *shadow, struct gang *gang,
                 struct evaluation *ret_evaluation);

/* booking_heads.c: the one that is being evaluated, NULL: none; and that it is. */
const struct shadow *shadow_now(const struct core *core);
void shadow_enter(struct core *core, const struct shadow *shadow);

/* For the fit: the promises as they are in the shadow that is open. */
struct crowd_list shadow_crowds(struct core *core, const struct crowd_list *promises);
/* How many places the pods of `other` can cost `mine` at most: at `loss` each, and on a node no
 * more than those that there was room for cost it. */
int64_t shadow_worst_cost(struct core *core, const struct crowd *mine, const struct crowd *other,
                          int64_t loss, int64_t device_loss);

/* fit_promises.c: */
/* Those that are on their way now, whatever shadow is open. */
struct crowd_list fit_promises(struct core *core);
/* The same, borrowed until the next change of any promise; not to be written to. */
struct crowd_list fit_promises_kept(struct core *core);
/* The crowd of such pods, or NULL. */
struct crowd *fit_crowd_find(const struct core *core, const struct crowd_list *list,
                             const struct pod_demand *demand);
/* fit_node.c: */
/* Such pods are there in the plan, whether there is room or not; their devices aren't. */
void node_plan_pods(struct core *core, struct node_state *node, const struct pod_set *set,
                    int64_t count);
