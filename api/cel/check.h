/* check.h - static types, as cel-go's checker finds them in the environment of device selectors.
 *
 * Gives every node its type, resolves names (variables to slots) and overloads. What cel-go refuses
 * is refused here. */
#pragma once

#include "lexer.h"
#include "node.h"
#include "tallyman/api/cel.h"
#include "tallyman/base/err.h"

struct cel_check {
    struct arena *arena; /* borrowed; the program's */
    struct str source;   /* for positions */
    enum cel_purpose purpose;
    uint32_t slot_count; /* result: how many slots an evaluation needs */
    struct cel_solver solver;
    struct cel_scope *scope;
};

NODISCARD struct rc cel_check_tree(struct cel_check *check, struct cel_node *root, struct err *err);
NODISCARD struct rc cel_check_fail(const struct cel_check *check, const struct cel_node *node,
                                   struct err *err, const char *format, ...) PRINTF_LIKE(4, 5);
/* A name written as a.b.c, in the arena, without a leading dot; absent if it isn't one. */
struct str cel_qualified_name(struct arena *arena, const struct cel_node *node);

/* check_call.c: chooses the overloads of node->name for node->args, and so node->type. */
NODISCARD struct rc cel_check_overloads(struct cel_check *check, struct cel_node *node,
                                        struct err *err);
