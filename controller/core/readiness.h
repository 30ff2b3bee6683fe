/* readiness.h - an admitted gang has podsReadyTimeout to become whole, and as long to become so
 * again after it has fallen below its size. Private to the core.
 *
 * The first is on the clock of the record's `at`. Since when a gang that runs is short is told in
 * its Admission, with the number of ready pods, so that a restart doesn't begin that time anew. */
#pragma once

#include "internal.h"

#define CONDITION_PODS_READY "PodsReady"
#define REASON_SHORT         "Short" /* False since then: it ran, and lost a pod */

/* Running, or stopped whole if its time is over; sets when to look again. */
void readiness_review(struct core *core, struct gang *gang);
/* Since when it is short, as its Admission said before a restart. */
void readiness_take(const struct core *core, struct gang *gang,
                    const struct condition_list *conditions);
