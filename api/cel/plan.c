/* Source: cel-go interpreter/planner.go and interpreter/decorators.go (OptOptimize). */
#include "plan.h"

#include "regex.h"

struct plan {
    struct cel_check *check;
    struct cel_eval ev; /* for constants; it has no device */
};

static struct rc plan_node(struct plan *p, struct cel_node *node, bool in_format, struct err *err);

static bool is_constant(const struct cel_node *node)
{
    return node->kind == CEL_LITERAL;
}

static bool are_constant(const struct cel_node *node)
{
    for (uint32_t i = 0; i < node->arg_count; i++) {
        if (!is_constant(node->args[i])) {
            return false;
        }
    }
    return true;
}

static void become(struct cel_node *node, struct cel_value value)
{
    node->kind = CEL_LITERAL;
    node->value = value;
    node->arg_count = 0;
}

static struct rc stopped(struct plan *p, const struct cel_node *node, struct err *err)
{
    return cel_check_fail(p->check, node, err, "%s",
                          p->ev.stop_text == NULL ? "a constant is too large" : p->ev.stop_text);
}

/* A list or map of constants is one. What fails is left to fail when it is evaluated. */
static struct rc plan_aggregate(struct plan *p, struct cel_node *node, bool in_format,
                                struct err *err)
{
    TRY(cel_verify_aggregate(p->check, node, in_format, err));
    if (!are_constant(node)) {
        return RC_SUCCESS;
    }
    p->ev.cost = 0;
    struct cel_value value = cel_eval_node(&p->ev, node);
    if (p->ev.stop != RC_OK) {
        return stopped(p, node, err);
    }
    if (!cel_is_error(value)) {
        become(node, value);
    }
    return RC_SUCCESS;
}

/* int("x") of a constant fails here. */
static struct rc plan_conversion(struct plan *p, struct cel_node *node, struct err *err)
{
    if (node->arg_count != 1 || !is_constant(node->args[0])) {
        return RC_SUCCESS;
    }
    p->ev.cost = 0;
    struct cel_value value = cel_eval_node(&p->ev, node);
    if (p->ev.stop != RC_OK) {
        return stopped(p, node, err);
    }
    if (cel_is_error(value)) {
        return cel_check_fail(p->check, node, err, "%s %.*s", value.fault->what,
                              STR_ARG(value.fault->detail));
    }
    become(node, value);
    return RC_SUCCESS;
}

static bool is_hashable(enum cel_kind kind)
{
    return kind == CEL_BOOL || kind == CEL_INT || kind == CEL_UINT || kind == CEL_DOUBLE ||
           kind == CEL_STRING;
}

/* x in [1, 2]: cel-go makes a hash set of the list, and of an empty one a plain false. */
static void plan_in(struct cel_node *node)
{
    const struct cel_node *list = node->args[1];
    if (!is_constant(list) || list->value.kind != CEL_LIST || node->overload != 0) {
        return;
    }
    if (list->value.list->count == 0) {
        become(node, cel_bool(false));
        return;
    }
    node->is_const_set = true;
    for (uint32_t i = 0; i < list->value.list->count; i++) {
        node->is_const_set = node->is_const_set && is_hashable(list->value.list->items[i].kind);
    }
}

static struct rc compile_pattern(struct plan *p, const struct cel_node *pattern,
                                 const struct cel_regex **ret_regex, struct err *err)
{
    struct cel_regex *regex = NULL;
    if (!is_constant(pattern) || pattern->value.kind != CEL_STRING) {
        return RC_SUCCESS;
    }
    struct rc rc = cel_regex_compile(p->check->arena, pattern->value.text, &regex, err);
    if (rc_failed(rc)) {
        struct str at = cel_position_text(p->check->arena, p->check->source, pattern->position);
        return err_prefix(err, rc, "%.*s", STR_ARG(at));
    }
    *ret_regex = regex;
    return RC_SUCCESS;
}

static struct rc plan_regex(struct plan *p, struct cel_node *node, struct err *err)
{
    const struct cel_regex *first = NULL;
    if (node->function == CEL_FN_MATCHES && !node->is_member) {
        /* cel-go validates the first argument of matches(text, pattern) as if it were one. */
        TRY(compile_pattern(p, node->args[0], &first, err));
    }
    return compile_pattern(p, node->args[1], &node->regex, err);
}

static struct rc plan_call(struct plan *p, struct cel_node *node, struct err *err)
{
    if (cel_function_is_conversion(node->function)) {
        return plan_conversion(p, node, err);
    }
    switch ((int)node->function) {
    case CEL_FN_IN:
        plan_in(node);
        return RC_SUCCESS;
    case CEL_FN_MATCHES:
    case CEL_FN_FIND:
    case CEL_FN_FIND_ALL:
        return plan_regex(p, node, err);
    default:
        return RC_SUCCESS;
    }
}

/* Appends the step to the chain of what it is applied to, in a node of its own. */
static struct rc plan_chain(struct plan *p, struct cel_node *node, struct err *err)
{
    struct cel_node *inner = node->args[0];
    bool extends = inner->kind == CEL_CHAIN && !inner->is_test;
    uint32_t count = extends ? inner->qualifier_count : 0;
    struct cel_qualifier qualifier = {.is_optional = node->is_optional};
    if (node->kind == CEL_SELECT) {
        qualifier.key = cel_string(node->name);
    } else if (is_constant(node->args[1])) {
        qualifier.key = node->args[1]->value;
        if (!is_hashable(qualifier.key.kind)) {
            return cel_check_fail(p->check, node, err, "no index can be of type %.*s",
                                  STR_ARG(cel_kind_name(qualifier.key.kind)));
        }
    } else {
        qualifier.index = node->args[1];
    }
    struct cel_qualifier *qualifiers =
        ARENA_ARRAY(p->check->arena, struct cel_qualifier, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        qualifiers[i] = inner->qualifiers[i];
    }
    qualifiers[count] = qualifier;
    node->kind = CEL_CHAIN;
    node->qualifiers = qualifiers;
    node->qualifier_count = count + 1;
    node->args[0] = extends ? inner->args[0] : inner;
    node->arg_count = 1;
    return RC_SUCCESS;
}

static struct rc plan_fold(struct plan *p, struct cel_fold *fold, bool in_format, struct err *err)
{
    struct cel_node *parts[] = {fold->range, fold->init, fold->condition, fold->step, fold->result};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        TRY(plan_node(p, parts[i], in_format, err));
    }
    return RC_SUCCESS;
}

static struct rc plan_kind(struct plan *p, struct cel_node *node, bool in_format, struct err *err)
{
    switch (node->kind) {
    case CEL_LIST_OF:
    case CEL_MAP_OF:
        return plan_aggregate(p, node, in_format, err);
    case CEL_SELECT:
    case CEL_INDEX:
        return plan_chain(p, node, err);
    case CEL_CALL:
        return plan_call(p, node, err);
    case CEL_FOLD:
        return plan_fold(p, node->fold, in_format, err);
    case CEL_TERNARY:
        node->args[1]->is_branch = true;
        node->args[2]->is_branch = true;
        return RC_SUCCESS;
    case CEL_LITERAL:
    case CEL_IDENT:
    case CEL_AND:
    case CEL_OR:
    case CEL_CHAIN:
        break;
    }
    return RC_SUCCESS;
}

static struct rc plan_node(struct plan *p, struct cel_node *node, bool in_format, struct err *err)
{
    if (node->is_planned) {
        return RC_SUCCESS;
    }
    node->is_planned = true;
    node->type = cel_solver_resolve(&p->check->solver, node->type, true);
    bool is_format = node->kind == CEL_CALL && node->function == CEL_FN_FORMAT;
    for (uint32_t i = 0; i < node->arg_count; i++) {
        if (is_format) {
            /* The list must still be one when it is verified, so its elements go first. */
            break;
        }
        TRY(plan_node(p, node->args[i], in_format, err));
    }
    if (is_format) {
        for (uint32_t i = 0; i < node->arg_count; i++) {
            struct cel_node *arg = node->args[i];
            for (uint32_t k = 0; arg->kind == CEL_LIST_OF && k < arg->arg_count; k++) {
                arg->args[k]->type =
                    cel_solver_resolve(&p->check->solver, arg->args[k]->type, true);
            }
        }
        TRY(cel_verify_format(p->check, node, err));
        for (uint32_t i = 0; i < node->arg_count; i++) {
            TRY(plan_node(p, node->args[i], true, err));
        }
    }
    return plan_kind(p, node, in_format, err);
}

struct rc cel_plan_tree(struct cel_check *check, struct cel_node *root, struct err *err)
{
    struct plan plan = {.check = check, .ev = {.scratch = check->arena}};
    return plan_node(&plan, root, false, err);
}
