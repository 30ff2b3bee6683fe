/* gate.h - who may start where: stop policies, priority classes, default queues. */
#pragma once

#include "internal.h"

/* -- stop.c: queues, and namespaces' use of them, that are stopped ----------------------------- */

enum stop { STOP_NONE = 0, STOP_HOLD, STOP_DRAIN };

struct stop_order {
    enum stop stop;
    struct str why; /* in the arena; absent with STOP_NONE */
};

/* What keeps gangs of that namespace from starting in that queue. */
struct stop_order stop_find(const struct core *core, struct arena *arena,
                            const struct queue_state *queue, struct str namespace_name);
/* Suspends the admitted gang if where it runs is being drained; false: it isn't. */
bool stop_drain(struct core *core, struct gang *gang);
/* Its running gangs are looked at: they may have to stop. */
void stop_namespace_changed(struct core *core, struct str namespace_name);

/* -- priority_gate.c: which PriorityClasses a queue takes ---------------------------------------
 */

/* Why the gang's classes aren't taken there, in the arena; absent: they are. */
struct str gate_class_refusal(struct arena *arena, const struct gang *gang);
/* Something about the Job itself has to change first, or who is let in. */
bool gate_bars(struct core *core, const struct gang *gang);
bool gate_same_classes(const struct queue *a, const struct queue *b); /* NULL: takes all */
/* The queue takes others now: all its gangs are looked at; those that run stay. */
void gate_classes_changed(struct core *core, const struct queue_state *queue);

/* -- default_queue.c: namespaces whose Jobs all go through a queue ------------------------------
 */

/* Borrowed from the namespace's object; absent: it has none. */
struct str default_queue_of(const struct core *core, struct str namespace_name);
/* Whether that Job, which names no queue, comes into its namespace's; else it is remembered. */
bool default_queue_takes(struct core *core, const struct job *job);
/* A gang's Job without a label: it is looked at again when the namespace's changes. */
void default_queue_remember(struct core *core, const struct job *job);
void default_queue_forget(struct core *core, struct str uid); /* it has a label, or is gone */
void default_queue_changed(struct core *core, struct str namespace_name);
void default_queue_start(struct core *core); /* all has been listed */
void default_queue_free(struct core *core);
