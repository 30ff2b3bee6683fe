/* history.h - what the namespaces that use a queue have used, the longer ago the less.
 *
 * Kept for queues with a half-life: their own spec.fairSharing.halfLife, else that of the nearest
 * cohort above. Of each namespace and resource there is one number,
 *
 *     value(t) = the sum over the past of use * 2^-((t - then) / half-life)
 *
 * in units times milliseconds. It is brought up to date only when the use changes, and stands in
 * the Queue's status as of that moment, so that a restart goes on from there to the digit (in whole
 * seconds). Integers throughout: the same events give the same order everywhere. */
#pragma once

#include "share.h"

#define HISTORY_HALF_LIFE_MAX_MS INT64_C(315360000000) /* ten years */
#define HISTORY_ENTRIES_MAX      1024                  /* namespaces times resources of a queue */
#define HISTORY_SHOWN_MAX        64                    /* of them in its status */

/* The trees are linked anew: takes up, drops or changes the half-lives. */
void history_relink(struct core *core);
void history_free(struct queue_state *queue);
/* The gang's queue is charged `times` that for it. */
void history_use(struct core *core, const struct gang *gang, struct queue_state *queue,
                 const struct charge_list *charges, int64_t times);
/* Whether queues below the branch are compared by what they have used. */
bool history_is_kept(const struct quota_node *branch);
/* What the branch (not a root) has used, as share_of() weighs it: the dominant resource's part of
 * what its parent has to lend, in seconds times SHARE_SCALE, by weight. Present use counts as if it
 * had gone on for ever. */
int64_t history_of_branch(const struct core *core, const struct quota_node *branch);
/* The same of one namespace in its queue, beside what the queue can have. */
int64_t history_of_namespace(const struct core *core, const struct queue_state *queue,
                             struct str namespace_name);
/* For the Queue's status; borrowed from the arena. */
struct fair_sharing_status *history_status(const struct queue_state *queue, struct arena *arena);
