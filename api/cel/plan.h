/* plan.h - what cel-go does between checking and evaluating: literals that can't be right are
 * refused, constants are computed, fields and indexes become chains. */
#pragma once

#include "check.h"
#include "eval.h"

NODISCARD struct rc cel_plan_tree(struct cel_check *check, struct cel_node *root, struct err *err);
/* plan_verify.c: the checks on literals. `in_format`: inside the arguments of format(), where a
 * list may mix types. */
NODISCARD struct rc cel_verify_aggregate(struct cel_check *check, struct cel_node *node,
                                         bool in_format, struct err *err);
NODISCARD struct rc cel_verify_format(struct cel_check *check, struct cel_node *call,
                                      struct err *err);
