/* reason.h - why a gang waits: the stable codes, and what each asks of whom.
 *
 * One table is the source of the codes in Admissions, of the metric label and of the names of the
 * pages in docs/reasons. The spellings never change. */
#pragma once

#include <stdint.h>

#include "tallyman/base/str.h"

enum reason {
    REASON_NONE = 0,
    REASON_QUEUE_NOT_FOUND,
    REASON_NAMESPACE_NOT_ALLOWED,
    REASON_QUEUE_STOPPED,
    REASON_HELD,
    REASON_BACKOFF,
    REASON_MISSING_REFERENCE,
    REASON_NO_MATCHING_FLAVOR,
    REASON_NEVER_FITS,
    REASON_QUOTA_EXHAUSTED,
    REASON_BORROWING_LIMIT,
    REASON_COHORT_EXHAUSTED,
    REASON_BEHIND_IN_QUEUE,
    REASON_NODES_FULL,
    REASON_NODE_SHAPE,
    REASON_TOPOLOGY_UNSATISFIED,
    REASON_DEVICES_EXHAUSTED,
    REASON_DEVICES_UNHEALTHY,
    REASON_RESERVED_FOR_OTHER,
    REASON_WAITING_FOR_VICTIMS,
    REASON_WAITING_FOR_TERMINATION,
    REASON_CHECKPOINT_REQUESTED,
    REASON_WAITING_FOR_CHECK,
    REASON_INVALID,
    REASON_COUNT,
};

/* Who can end the wait. */
enum reason_action { ACTION_WAIT = 1, ACTION_CHANGE_JOB, ACTION_ASK_ADMIN, ACTION_BUG };

struct reason_info {
    const char *code; /* "DevicesExhausted" */
    enum reason_action action;
    const char *advice;  /* one sentence for the user, imperative */
    bool is_passed_over; /* StrictFIFO goes on behind a head that waits for this */
};

/* Static; REASON_NONE has an empty code. */
const struct reason_info *reason_info(enum reason reason);
/* "Wait", "ChangeJob", "AskAdmin", "Bug": the spelling in an Admission's explanation. */
const char *reason_action_name(enum reason_action action);
