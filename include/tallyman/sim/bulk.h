/* bulk.h - a virtual cluster for many gangs, in virtual time.
 *
 * The same core and driver as in sim.h, on a coarser cluster: Nodes, Queues and all other objects
 * are what is loaded, but a gang's Job and pods are made when the core is to see them, a write is
 * answered at once, and pods are bound, ready and gone without delay, to the fullest node that has
 * room. All that happens at one moment is taken in together and decided once. It plays months of
 * tens of thousands of gangs in seconds. Nothing is random: the same input gives the same run.
 *
 * A pod asks for one resource (`resource`), and nothing else. A gang whose pods can't all be placed
 * at once waits, admitted, for room. A pod that is lost with its node is made again where there is
 * room; the gang's work begins anew then, at its last checkpoint. */
#pragma once

#include "tallyman/api/kinds.h"
#include "tallyman/core/reason.h"
#include "tallyman/driver/driver.h"

struct bulk;

/* One gang of the input. Texts are borrowed until bulk_free(). */
struct bulk_gang {
    struct str name; /* unique in its namespace */
    struct str namespace_name;
    struct str queue;
    struct str priority_class; /* absent: none */
    int64_t submit_ms;         /* since the start */
    int64_t run_ms;
    int64_t bound_ms; /* the run-time bound that its Job states; 0: none */
    int64_t pods;
    int64_t units_per_pod;  /* whole units of the resource */
    int64_t units;          /* of all pods, where they share some; 0: pods * units_per_pod */
    int64_t checkpoint_ms;  /* work is kept at multiples of that; 0: never */
    int64_t fails_after_ms; /* into its run, and so often: */
    int64_t failures;       /* its work is lost, and its pods begin anew where they are */
};

static inline int64_t bulk_gang_units(const struct bulk_gang *gang)
{
    return gang->units > 0 ? gang->units : gang->pods * gang->units_per_pod;
}

enum bulk_change {
    BULK_SUBMITTED = 1,
    BULK_WAITS,   /* `reason`, from now on */
    BULK_STARTED, /* all its pods are ready */
    BULK_BROKEN,  /* a pod was lost with its node: it stands still, and holds what it has */
    BULK_FAILED,  /* it begins anew at once */
    BULK_STOPPED, /* suspended as a whole: preempted, or not whole in time */
    BULK_FINISHED,
};

struct bulk_note {
    int64_t at_ms;
    enum bulk_change change;
    uint32_t gang;      /* index into the input */
    enum reason reason; /* BULK_WAITS */
    int64_t lost_ms;    /* BULK_BROKEN, _FAILED, _STOPPED: run time that has to be done again */
    struct str cause;   /* BULK_STOPPED: as in annotation tallyman.dev/suspended; borrowed */
};

struct bulk_options {
    const struct bulk_gang *gangs; /* in order of submit_ms; borrowed until bulk_free() */
    uint32_t gang_count;
    struct str resource; /* borrowed until bulk_free() */
    int64_t start_ms;    /* what the clock says at the start, since 1970 */
    void *ctx;           /* borrowed; for the calls below */
    void (*on_note)(void *ctx, const struct bulk_note *note);
    /* The units that the ready nodes have together: at the start, and whenever it changes. */
    void (*on_capacity)(void *ctx, int64_t at_ms, int64_t units);
    /* May be NULL; as the driver's ports. */
    void (*on_event)(void *ctx, const struct event *event);
    void (*on_effects)(void *ctx, const struct event *event, const struct effects *effects);
    void (*on_refused)(void *ctx, const struct event *event, const struct err *err);
};

/* `options` is copied. Owned; bulk_free(). */
struct bulk *bulk_new(const struct bulk_options *options);
void bulk_free(struct bulk *bulk); /* NULL is fine */

/* An object of the cluster, before time passes; a Job or Pod is none. RC_INVALID: what the core
 * says to it. Copied. */
NODISCARD struct rc bulk_load(struct bulk *bulk, const struct object *object, struct err *err);

enum bulk_node_change { BULK_NODE_DOWN = 1, BULK_NODE_UP, BULK_NODE_UNITS };

/* At that time the node stops being ready, is ready again, or has `units` of the resource. False:
 * there is no such node. */
bool bulk_node_at(struct bulk *bulk, int64_t at_ms, struct str node, enum bulk_node_change change,
                  int64_t units);

/* Lets at most `moments` moments of time pass, none behind `until_ms`. False: nothing is due before
 * that any more. */
bool bulk_run(struct bulk *bulk, int64_t until_ms, uint32_t moments);
int64_t bulk_now_ms(const struct bulk *bulk); /* since the start */
/* Gangs are unfinished, none of them works, and nothing is to come that could change that. */
bool bulk_is_stuck(const struct bulk *bulk);
/* How many gangs haven't finished, those to come included. */
uint32_t bulk_unfinished(const struct bulk *bulk);
/* Borrowed. */
struct core *bulk_core(const struct bulk *bulk);
