/* record_check.h - whether an admission record can be Tallyman's own. */
#pragma once

#include "gang_input.h"

/* False: it is of a time that hasn't come by far, or a pod is charged with more than its template
 * asks and anybody else could have added. How many pods are charged is bounded by the Job itself,
 * because what isn't there is given back. */
bool record_is_believable(struct core *core, const struct admission_record *record,
                          const struct gang_input *input, struct str namespace_name);
