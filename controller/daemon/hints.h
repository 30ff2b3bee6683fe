/* hints.h - what in manifests is without effect and hardly meant so: mistyped keys of ours, and
 * Jobs that are passed over. */
#pragma once

#include "input.h"
#include "tallyman/core/core.h"

/* A line each on standard error, of the first HINTS_MAX. `decided`: the Jobs that aren't passed
 * over; NULL: that isn't known. `is_all`: of every Job that isn't among them it is told why. */
#define HINTS_MAX 20
void hints_print(const char *command, const struct manifest_list *list,
                 const struct decided_list *decided, bool is_all);
