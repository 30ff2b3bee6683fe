/* cel.h - the Common Expression Language, as Kubernetes offers it to device selectors.
 *
 * Environment: `device.driver`, `device.attributes[domain].name`, `device.capacity[domain].name`,
 * `device.allowMultipleAllocations`; CEL's standard library, string and list extensions, sets,
 * regular expressions, quantities and semantic versions, optional types, `cel.bind`, macros with
 * one and two variables. Source: k8s.io/dynamic-resource-allocation/cel/compile.go and cel-spec.
 *
 * Compiling checks types as cel-go's checker does and fails where it fails. Evaluation is bounded
 * by CEL_COST_MAX; passing it is an evaluation error, as in the scheduler. Not here, and refused
 * when compiling: the IP, CIDR, URL, format and authorization libraries, messages, \p{…} and (?i)
 * beyond ASCII in patterns. tests/compare-cel asks the scheduler's own CEL the same questions. */
#pragma once

#include "tallyman/api/dra.h"
#include "tallyman/api/json_tree.h"
#include "tallyman/base/arena.h"
#include "tallyman/base/err.h"

struct cel_program;

/* Owned; cel_program_free(). RC_INVALID: the sentence has the position (line:column) and what is
 * wrong. RC_LIMIT: longer or deeper than limits.h allows. Keeps no reference to `expression`. */
NODISCARD struct rc cel_compile(struct str expression, struct cel_program **ret_program,
                                struct err *err);
void cel_program_free(struct cel_program *program); /* NULL is fine */

struct cel_device {
    struct str driver;           /* borrowed; also the domain of unqualified names */
    const struct device *device; /* borrowed */
};

/* Whether the device matches. RC_INVALID: the expression failed at run time (missing key, type,
 * overflow), which for the scheduler makes the whole allocation fail. RC_LIMIT: too costly.
 * `scratch` holds what is made on the way; the caller resets it. */
NODISCARD struct rc cel_matches(const struct cel_program *program, const struct cel_device *device,
                                struct arena *scratch, bool *ret_matches, struct err *err);
/* What the evaluation cost is added to `*cost`, whatever came of it: units of CEL_COST_MAX, or a
 * tenth of the elements that were compared or copied where that is more. The same everywhere. */
NODISCARD struct rc cel_matches_at_cost(const struct cel_program *program,
                                        const struct cel_device *device, struct arena *scratch,
                                        uint64_t *cost, bool *ret_matches, struct err *err);

/* -- rules of a CRD (x-kubernetes-validations) --------------------------------------------------
 *
 * The same language, with `self` in place of `device`: what the rule stands on, as JSON. A server
 * knows its types when it compiles the rule; here they are seen when it runs. Not here:
 * `oldSelf`. Source: k8s.io/apiextensions-apiserver pkg/apiserver/schema/cel. */

enum cel_purpose {
    CEL_DEVICE_SELECTOR,
    CEL_RULE,    /* gives true or false */
    CEL_MESSAGE, /* messageExpression: gives a text */
};

/* As cel_compile(). */
NODISCARD struct rc cel_compile_rule(struct str expression, enum cel_purpose purpose,
                                     struct cel_program **ret_program, struct err *err);
/* Whether the rule holds of `self`. Fails as cel_matches() does. */
NODISCARD struct rc cel_rule_holds(const struct cel_program *program, const struct json_tree *self,
                                   struct arena *scratch, bool *ret_holds, struct err *err);
/* The text that a CEL_MESSAGE gives; borrowed from `scratch`. */
NODISCARD struct rc cel_rule_message(const struct cel_program *program,
                                     const struct json_tree *self, struct arena *scratch,
                                     struct str *ret_text, struct err *err);
