/* preempt.h - who is stopped for whom, and the transaction in which that happens. */
#pragma once

#include "internal.h"

#define ANNOTATION_CHECKPOINT_GRACE   "tallyman.dev/checkpoint-grace"
#define ANNOTATION_CHECKPOINT_REQUEST "tallyman.dev/checkpoint-request"
#define ANNOTATION_CHECKPOINT_FOR     "tallyman.dev/checkpoint-for"

struct victims {
    struct gang **items; /* in the scratch arena */
    uint32_t count;
    uint32_t capacity;
};

void victims_append(struct core *core, struct victims *victims, struct gang *victim);

/* The smallest set of gangs to stop, and how the gang fits then; the set is empty if it fits as
 * soon as those are gone that stop for it already. False: there is none, or it has only to wait.
 * `seen`: how it was judged as things are; if it fits now by borrowing, stopping others may still
 * be preferred; else what is noted there of each flavor says in addition what came of it. Leaves in
 * gang->look_again_ms when a candidate's protection ends (0: none has one). */
bool victims_find(struct core *core, struct gang *gang, struct evaluation *seen,
                  struct victims *ret_victims, struct evaluation *ret_evaluation);

/* Whether a gang that doesn't fit for that reason might if others stopped. */
bool preempt_can_help(enum reason reason);
/* Whether the queue's policy lets its gangs stop anybody. */
bool preempt_is_allowed(const struct queue_state *queue);
/* Both. */
bool preempt_may(const struct queue_state *queue, enum reason reason);
/* fungible.c: whether a gang of the queue may be better off preempting though it fits. */
bool fungible_may_preempt_first(const struct queue_state *queue);
/* Finds victims for the gang, stops them and reserves their room for it; false: there are none, or
 * it had better take what fits now. `seen`: how it was judged as things are. */
bool preempt(struct core *core, struct gang *gang, struct evaluation *seen);

/* -- preempt_wake.c -- */

/* The shape is parked, and could start if others stopped; or is no longer. */
void preempt_park(struct core *core, struct shape *shape, bool is_parked);
/* Before a pass: if since the last one quota or room has come free, or a gang can be stopped that
 * couldn't be (core.has_freed), wakes those that are parked so and may find somebody to stop. */
void preempt_wake(struct core *core);

/* Some of that account of the queue has come free. */
void preempt_note_freed(struct core *core, const struct queue_state *queue, struct str flavor,
                        struct str resource);
/* The gang may be stopped now, or no longer: of each queue the one that would be stopped first, the
 * lowest and of these the newest, is its last_holder. */
void preempt_note_holder(struct core *core, struct gang *gang);
/* It is about to hold nothing any more, or to have another priority. */
void preempt_forget_holder(struct core *core, const struct gang *gang);
/* They are all known after that. */
void preempt_find_last_holders(struct core *core);
/* Without borrowing while it preempts a gang takes back no more than its queue's own quota: whether
 * that would be enough for all that it asks for, on one of its choices of flavors. */
bool preempt_is_within_own(struct core *core, struct shape *shape);
/* Whether a queue below `node`, or that is it, has a gang that this one may reclaim from. */
bool preempt_may_reclaim_below(const struct quota_node *node, const struct gang *gang);
/* By the policies: whether there could be a gang that the shape's may stop. */
bool preempt_may_stop_somebody(struct core *core, struct shape *shape);

/* -- preempt_grow.c -- */

/* The queue has been charged so much more. */
void preempt_note_growth(struct core *core, struct queue_state *queue, const struct charge *charge,
                         int64_t times);
/* After a pass: wakes those that may take from a queue that has grown in it; false: nobody. */
bool preempt_wake_for_growth(struct core *core);

/* -- preempt_relief.c -- */

/* Around the reservation of a gang for which those are to stop, who don't stop yet. */
void preempt_relief_begin(struct core *core, const struct victims *victims);
void preempt_relief_end(struct core *core, const struct victims *victims);
/* After a pass: wakes those that what has begun to stop in it may help; false: nobody. */
bool preempt_wake_for_relief(struct core *core);

/* -- preempt_early.c: a gang that is Reserved, beside what its victims still hold -- */

/* Something has come free that may let those start who are Reserved: that account, by the queue
 * that held it; room on a node; what can't be told so simply; places that pods on their way or a
 * booking kept. Or they may ask for less. */
void preempt_early_note_quota(struct core *core, const struct queue_state *queue,
                              struct str resource);
void preempt_early_note_node(struct core *core, const struct node_state *node);
void preempt_early_note_all(struct core *core);
void preempt_early_note_beside(struct core *core);
void preempt_early_note_shape(struct core *core, const struct shape *shape);
/* Whether its promise is left out while another one is judged so. */
bool preempt_early_is_behind(const struct core *core, const struct gang *gang);
/* Of those that are Reserved, whose victims aren't gone: gang.has_victims. */
void preempt_mark_with_victims(struct core *core);
/* Starts those that fit although some victims, theirs or others', still hold something. */
void preempt_finish_early(struct core *core);

/* -- wake.c, wake_cluster.c -- */

/* Whether its pods could stand on that node, whatever is free there: by labels and the like. */
bool shape_may_use_node(const struct core *core, const struct shape *shape,
                        const struct node_state *node);
bool shape_wants_devices(const struct shape *shape);

/* -- checkpoint.c: before a gang is stopped for another -----------------------------------------
 */

/* The grace that the annotation gives, at most CHECKPOINT_GRACE_MAX_MS; what is wrong with it, or
 * absent, in the scratch arena. */
struct str checkpoint_read_grace(struct core *core, struct str text, int64_t *ret_grace_ms);
/* The victim, idle, is to stop for that gang: asked for a checkpoint first if it can write one. */
void checkpoint_begin(struct core *core, struct gang *victim, const struct gang *gang);
/* It still runs, and the gang still waits: stops it when it has saved or is out of grace. */
void checkpoint_go_on(struct core *core, struct gang *victim, const struct gang *gang);
/* Nobody waits for its room: takes the request back; true: a write is on its way. */
bool checkpoint_withdraw(struct core *core, struct gang *victim);
struct verdict checkpoint_verdict(const struct gang *gang, struct arena *arena);

/* -- preempt.c ------------------------------------------------------------------------------------
 */

/* Those of its victims that run on, for a checkpoint that they are asked for. */
uint32_t preempt_victims_asked(const struct core *core, const struct gang *gang);
/* Those of its victims that still hold something. */
uint32_t preempt_victims_left(const struct core *core, const struct gang *gang);
/* It isn't Reserved any more. */
void preempt_forget_why(struct gang *gang);
/* Those that are asked to stop for it needn't any more; what stops already does so for nobody, or
 * goes on to make room for it, should it want that again. */
void preempt_let_go(struct core *core, const struct gang *gang, bool keeps_stopping);
/* It no longer wants the room, or has waited too long for it. */
void preempt_abort(struct core *core, struct gang *gang);
/* It fits: what was reserved for it becomes its admission. */
void preempt_start(struct core *core, struct gang *gang, struct evaluation *evaluation);
/* Admits the gangs whose victims have all stopped, and who fit without. */
void preempt_finish_ready(struct core *core);
/* It is Reserved, and still wants to start or not; false: it isn't Reserved any more. */
bool preempt_review(struct core *core, struct gang *gang, bool wants_it);
/* What the gang wants, or the quota that it was judged by, isn't what it was. */
void preempt_unsettle(struct core *core, struct gang *gang);
/* Before a pass: judges such gangs anew, with what stops for them. */
void preempt_settle(struct core *core);
/* Takes up the transactions that a restart has interrupted. */
void preempt_restore(struct core *core);
/* After that: requests for a checkpoint that are nobody's any more are taken back. */
void preempt_withdraw_requests(struct core *core);
