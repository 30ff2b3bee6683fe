/* source_admitted.h - `--admitted JOB=FLAVOR`: a Job counts as running there. */
#pragma once

#include "source.h"

/* `text` is "NAME=FLAVOR" or "NAMESPACE/NAME=FLAVOR", with commas between several flavors. The Job
 * gets the record that an admission would have written. RC_INVALID says what is wrong and which
 * names there are. */
NODISCARD struct rc source_admit(struct source *source, const char *text, int64_t now_ms,
                                 struct err *err);
