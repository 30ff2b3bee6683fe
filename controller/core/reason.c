/* reason.c - the one table of reasons. docs/reasons has a page for each. */
#include "tallyman/core/reason.h"

#include <assert.h>

static const struct reason_info reasons[REASON_COUNT] = {
    [REASON_NONE] = {"", ACTION_WAIT, "", false},
    [REASON_QUEUE_NOT_FOUND] = {"QueueNotFound", ACTION_CHANGE_JOB,
                                "Set label tallyman.dev/queue to a queue that exists.", true},
    [REASON_NAMESPACE_NOT_ALLOWED] =
        {"NamespaceNotAllowed", ACTION_ASK_ADMIN,
         "Use a queue that is open to this namespace, or ask its admin to open it.", true},
    [REASON_QUEUE_STOPPED] = {"QueueStopped", ACTION_ASK_ADMIN,
                              "Ask the queue's admin when it starts again.", true},
    [REASON_HELD] = {"Held", ACTION_CHANGE_JOB,
                     "Remove annotation tallyman.dev/hold to let it start.", true},
    [REASON_BACKOFF] = {"Backoff", ACTION_WAIT, "It is tried again by itself.", true},
    [REASON_MISSING_REFERENCE] = {"MissingReference", ACTION_CHANGE_JOB,
                                  "Create the object that is named, or name another.", true},
    [REASON_NO_MATCHING_FLAVOR] =
        {"NoMatchingFlavor", ACTION_CHANGE_JOB,
         "Ask for what the queue's flavors offer, or ask its admin to add it.", true},
    [REASON_NEVER_FITS] = {"NeverFits", ACTION_CHANGE_JOB,
                           "Ask for less, or for a queue or nodes that can hold it.", true},
    [REASON_QUOTA_EXHAUSTED] = {"QuotaExhausted", ACTION_WAIT,
                                "It starts when gangs of its queue end.", false},
    [REASON_BORROWING_LIMIT] = {"BorrowingLimit", ACTION_WAIT,
                                "It starts when its queue borrows less.", false},
    [REASON_COHORT_EXHAUSTED] = {"CohortExhausted", ACTION_WAIT,
                                 "It starts when queues of its cohort use less.", false},
    [REASON_BEHIND_IN_QUEUE] = {"BehindInQueue", ACTION_WAIT,
                                "It is considered when those ahead of it have started.", false},
    [REASON_NODES_FULL] = {"NodesFull", ACTION_WAIT, "It starts when room comes free.", false},
    [REASON_NODE_SHAPE] = {"NodeShape", ACTION_WAIT,
                           "It starts when room comes free on one node; smaller pods fit sooner.",
                           false},
    [REASON_TOPOLOGY_UNSATISFIED] = {"TopologyUnsatisfied", ACTION_WAIT,
                                     "It starts when one domain has room for all its pods.", false},
    [REASON_DEVICES_EXHAUSTED] = {"DevicesExhausted", ACTION_WAIT,
                                  "It starts when devices come free.", false},
    [REASON_DEVICES_UNHEALTHY] = {"DevicesUnhealthy", ACTION_ASK_ADMIN,
                                  "Ask the cluster's admin about the devices.", false},
    [REASON_RESERVED_FOR_OTHER] =
        {"ReservedForOther", ACTION_WAIT,
         "It is looked at again when the room is no longer kept for others.", false},
    [REASON_WAITING_FOR_VICTIMS] = {"WaitingForVictims", ACTION_WAIT,
                                    "It starts when the gangs that make room have stopped.", false},
    [REASON_WAITING_FOR_TERMINATION] = {"WaitingForTermination", ACTION_WAIT,
                                        "Its own last pods have to stop first.", false},
    [REASON_CHECKPOINT_REQUESTED] = {"CheckpointRequested", ACTION_WAIT,
                                     "It writes a checkpoint, stops, and goes on by itself when "
                                     "there is room again.",
                                     false},
    [REASON_WAITING_FOR_CHECK] = {"WaitingForCheck", ACTION_WAIT,
                                  "It starts when the admission check has passed.", false},
    [REASON_INVALID] = {"Invalid", ACTION_CHANGE_JOB, "Correct what the message names.", true},
};

const struct reason_info *reason_info(enum reason reason)
{
    assert(reason >= REASON_NONE && reason < REASON_COUNT);
    return &reasons[reason];
}

const char *reason_action_name(enum reason_action action)
{
    static const char *const names[] = {[ACTION_WAIT] = "Wait",
                                        [ACTION_CHANGE_JOB] = "ChangeJob",
                                        [ACTION_ASK_ADMIN] = "AskAdmin",
                                        [ACTION_BUG] = "Bug"};
    return names[action];
}
