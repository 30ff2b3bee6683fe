/* bulk_internal.h - what the files of the bulk simulator offer each other, file by file. */
#pragma once

#include "tallyman/api/admission.h"
#include "tallyman/api/job.h"
#include "tallyman/api/node.h"
#include "tallyman/base/map.h"
#include "tallyman/sim/bulk.h"

#define BULK_UID_BYTES 16
#define BULK_NO_NODE   UINT32_MAX

/* -- bulk.c: what is to come, and the whole ------------------------------------------------------
 */

enum bulk_due_kind {
    DUE_END = 1, /* of a gang's run, or its next failure */
    DUE_NODE,
};

struct bulk_due {
    int64_t at_ms;
    uint64_t sequence; /* what is due at one time happens in the order in which it was noted */
    enum bulk_due_kind kind;
    uint32_t index;   /* of the gang or the node */
    uint32_t attempt; /* DUE_END: of that attempt alone */
    enum bulk_node_change change;
    int64_t units;
};

enum bulk_state {
    BULK_FUTURE = 0,
    BULK_WAITING,
    BULK_UNPLACED, /* admitted, and some pod has no node */
    BULK_RUNNING,
    BULK_DONE,
};

/* A gang as it stands. */
struct bulk_gang_state {
    enum bulk_state state;
    uint64_t version;
    int64_t generation;
    struct str record;     /* owned; annotation tallyman.dev/admission */
    struct str suspended;  /* owned; annotation tallyman.dev/suspended */
    struct pod_spec *spec; /* owned; NULL: the plain template */
    uint32_t *nodes;       /* owned; of each pod, or BULK_NO_NODE; NULL: no pods */
    int64_t placed;        /* pods that have a node */
    int64_t left_ms;       /* of its run */
    int64_t since_ms;      /* when it last began to work */
    int64_t failures_left;
    uint32_t attempt;
    bool is_suspended;
    bool is_echo_due; /* the core hasn't been shown the last write yet */
    bool was_started; /* once at least */
    enum reason reason;
};

struct bulk_node {
    struct node *object; /* owned; the labels, taints and status as the core sees them */
    int64_t units;
    int64_t used;
    bool is_ready;
    uint32_t next; /* in the list of its free units; BULK_NO_NODE: last */
    uint32_t previous;
    uint64_t version;
};

struct bulk_write {
    uint64_t id;
    const struct effect *effect;       /* borrowed from the driver until it is answered */
    const struct admission *admission; /* the same */
};

struct bulk {
    struct bulk_options options;
    int64_t now_ms;
    int64_t wake_at_ms; /* since 1970 */
    struct core *core;
    struct driver *driver;
    struct bulk_gang_state *gangs;
    uint32_t next_gang; /* the first that hasn't been submitted */
    uint32_t unfinished;
    struct bulk_due *due; /* a heap */
    uint32_t due_count;
    uint32_t due_capacity;
    uint64_t next_sequence;
    struct bulk_node *nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    uint32_t *free_lists; /* by free units, up to the largest node's: the first such node */
    int64_t free_list_count;
    struct bulk_write *writes; /* a ring would do; they are few */
    uint32_t write_count;
    uint32_t write_next;
    uint32_t write_capacity;
    uint32_t *echoes; /* gangs whose Job the core has to be shown */
    uint32_t echo_count;
    uint32_t echo_capacity;
    uint32_t *unplaced; /* gangs in BULK_UNPLACED; some may have left that state */
    uint32_t unplaced_count;
    uint32_t unplaced_capacity;
    uint64_t version;
    bool is_started;
    bool has_room_come;    /* since the unplaced were tried last */
    uint32_t idle_moments; /* in a row, with nothing to come but the core's own clock */
};

void bulk_note_due(struct bulk *bulk, struct bulk_due due);
void bulk_tell(struct bulk *bulk, const struct bulk_note *note);
void bulk_tell_capacity(struct bulk *bulk);

/* -- bulk_nodes.c: what is free ------------------------------------------------------------------
 */

/* To be called once all nodes are there. */
void bulk_nodes_link(struct bulk *bulk);
/* The fullest node that has room for one pod more of that template; BULK_NO_NODE: none. */
uint32_t bulk_nodes_find(const struct bulk *bulk, const struct pod_spec *spec, int64_t units);
void bulk_node_use(struct bulk *bulk, uint32_t node, int64_t units); /* negative: gives back */
/* What DUE_NODE says, and what follows for the gangs there. */
void bulk_node_change(struct bulk *bulk, const struct bulk_due *due);
void bulk_node_show(struct bulk *bulk, uint32_t node);
int64_t bulk_node_units(const struct bulk *bulk, const struct node *object);

/* -- bulk_gang.c: a gang's Job and pods ----------------------------------------------------------
 */

void bulk_gang_submit(struct bulk *bulk, uint32_t index);
/* The end of its run has come, or its next failure. */
void bulk_gang_end(struct bulk *bulk, uint32_t index);
/* Carries out a PATCH of its Job. */
void bulk_gang_patch(struct bulk *bulk, uint32_t index, const struct job_patch *patch);
/* Shows the core what became of the last PATCH. */
void bulk_gang_echo(struct bulk *bulk, uint32_t index);
/* Gives nodes to pods that have none; true when all have one. */
bool bulk_gang_place(struct bulk *bulk, uint32_t index);
/* The pods on that node are lost. */
void bulk_gang_lose_node(struct bulk *bulk, uint32_t index, uint32_t node);

/* -- bulk_objects.c: what the core is shown ------------------------------------------------------
 */

void bulk_show_job(struct bulk *bulk, uint32_t index, bool is_deleted);
void bulk_show_pod(struct bulk *bulk, uint32_t index, int64_t pod, bool is_deleted);
/* The template without anything of an admission; its lists are borrowed from `buffer`. */
struct bulk_template {
    struct container container;
    struct resource_amount request;
    char text[24]; /* the amount as it is written: the core tells templates apart by it */
};
struct pod_spec bulk_template_spec(const struct bulk *bulk, uint32_t index,
                                   struct bulk_template *buffer);

/* -- bulk_writes.c: the driver's ports -----------------------------------------------------------
 */

void bulk_ports_open(struct bulk *bulk);
/* Answers what is waiting; false: nothing was. */
bool bulk_writes_answer(struct bulk *bulk);
