/* Source: cel-go cel/validator.go and ext/formatting.go's validator. */
#include "format.h"
#include "plan.h"
#include "tallyman/base/limits.h"

static const struct cel_type *element_type(const struct cel_node *node, uint32_t index)
{
    const struct cel_type *type = node->args[index]->type;
    bool is_value = node->kind == CEL_LIST_OF || index % 2 == 1;
    if (is_value && node->optionals != NULL && node->optionals[index] && type->inner[0] != NULL) {
        return type->inner[0];
    }
    return type;
}

/* Behind '?' cel-go's own check of a list needs to see the optional's type. */
static bool is_blind_optional(const struct cel_node *node, uint32_t index)
{
    bool is_value = node->kind == CEL_LIST_OF || index % 2 == 1;
    return is_value && node->optionals != NULL && node->optionals[index] &&
           node->args[index]->type->kind == CEL_T_DYN;
}

struct rc cel_verify_aggregate(struct cel_check *check, struct cel_node *node, bool in_format,
                               struct err *err)
{
    uint32_t stride = node->kind == CEL_MAP_OF ? 2 : 1;
    if (in_format) {
        return RC_SUCCESS;
    }
    for (uint32_t i = 0; i < node->arg_count; i++) {
        if (is_blind_optional(node, i)) {
            return cel_check_fail(check, node->args[i], err,
                                  "behind '?' an optional is expected, this is a dyn");
        }
        const struct cel_type *first = element_type(node, i % stride);
        const struct cel_type *type = element_type(node, i);
        if (!cel_type_equal(first, type, false)) {
            return cel_check_fail(check, node->args[i], err,
                                  "this is of type %.*s among %.*s: all must be of one type",
                                  STR_ARG(cel_type_text(check->arena, type)),
                                  STR_ARG(cel_type_text(check->arena, first)));
        }
    }
    return RC_SUCCESS;
}

/* What %s takes, with a look into lists and maps that are written out. */
static bool fits_text(const struct cel_node *node)
{
    if (!cel_clause_takes('s', node->type->kind)) {
        return false;
    }
    for (uint32_t i = 0;
         (node->kind == CEL_LIST_OF || node->kind == CEL_MAP_OF) && i < node->arg_count; i++) {
        if (!fits_text(node->args[i])) {
            return false;
        }
    }
    return true;
}

struct rc cel_verify_format(struct cel_check *check, struct cel_node *call, struct err *err)
{
    struct cel_node *list = call->args[1];
    if (call->args[0]->kind != CEL_LITERAL || call->args[0]->value.kind != CEL_STRING ||
        list->kind != CEL_LIST_OF) {
        return RC_SUCCESS;
    }
    struct str rest = call->args[0]->value.text;
    uint32_t next = 0;
    struct cel_clause clause;
    enum cel_clause_state state = cel_clause_next(&rest, &clause);
    for (; state == CEL_CLAUSE_FOUND; state = cel_clause_next(&rest, &clause)) {
        if (clause.verb == '%') {
            continue;
        }
        if (next >= list->arg_count) {
            return cel_check_fail(check, call, err, "format() has %u arguments, too few",
                                  list->arg_count);
        }
        struct cel_node *arg = list->args[next++];
        bool fits =
            clause.verb == 's' ? fits_text(arg) : cel_clause_takes(clause.verb, arg->type->kind);
        if (!fits) {
            return cel_check_fail(check, arg, err, "format() can't write type %.*s as %%%c",
                                  STR_ARG(cel_type_text(check->arena, arg->type)), clause.verb);
        }
    }
    if (state == CEL_CLAUSE_BAD) {
        return cel_check_fail(check, call, err,
                              "format() knows %%s %%d %%f %%e %%b %%x %%X %%o "
                              "and %%%%");
    }
    return next == list->arg_count
               ? RC_SUCCESS
               : cel_check_fail(check, call, err, "format() has %u arguments and takes %u",
                                list->arg_count, next);
}
