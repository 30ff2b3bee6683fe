/* record_check.h - whether an admission record can be Tallyman's own. */
#pragma once

#include "gang_input.h"

struct gang;

/* False: it is of a time that hasn't come by far, or a pod is charged with less than its template
 * asks, or with more than that and what anybody else could have added. How many pods are charged is
 * bounded by the Job itself, because what isn't there is given back. */
bool record_is_believable(struct core *core, const struct admission_record *record,
                          const struct gang_input *input, struct str namespace_name);
/* Before a gang is charged by its record: none any more if it leaves out a resource that its queue
 * rations and wouldn't have let through unlisted, or names a flavor that there is none of, neither
 * in the queue nor as an object. Asked once all of the cluster is known. */
void record_refuse_if_thin(struct core *core, struct gang *gang);
/* The Job's record counts, unless Tallyman has stopped the gang since: the PATCH that admits takes
 * that mark away, and what has been released isn't taken back. A start whose pods came first is
 * none of that: each kind has a watch of its own. */
bool record_is_in_force(const struct gang *gang);
