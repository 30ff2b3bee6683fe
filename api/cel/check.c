#include "check.h"

#include <stdio.h>

#include "tallyman/base/limits.h"

struct cel_scope {
    struct cel_scope *outer;
    struct str name;
    const struct cel_type *type;
    uint32_t slot;
};

static struct rc check_node(struct cel_check *c, struct cel_node *node, struct err *err);

struct rc cel_check_fail(const struct cel_check *check, const struct cel_node *node,
                         struct err *err, const char *format, ...)
{
    char text[ERR_TEXT_MAX_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (check->solver.steps > CEL_CHECK_STEPS_MAX) {
        return err_set(err, RC_LIMIT, "checking the expression's types takes more than %d steps",
                       CEL_CHECK_STEPS_MAX);
    }
    struct str at = cel_position_text(check->arena, check->source, node->position);
    return err_set(err, RC_INVALID, "%.*s: %s", STR_ARG(at), text);
}

static struct str type_text(struct cel_check *c, const struct cel_type *type)
{
    return cel_type_text(c->arena, cel_solver_resolve(&c->solver, type, true));
}

static const struct cel_type *literal_type(enum cel_kind kind)
{
    switch (kind) {
    case CEL_NULL:
        return &cel_type_null;
    case CEL_BOOL:
        return &cel_type_bool;
    case CEL_INT:
        return &cel_type_int;
    case CEL_UINT:
        return &cel_type_uint;
    case CEL_DOUBLE:
        return &cel_type_double;
    case CEL_STRING:
        return &cel_type_string;
    case CEL_BYTES:
        return &cel_type_bytes;
    case CEL_DURATION:
    case CEL_TIMESTAMP:
    case CEL_LIST:
    case CEL_MAP:
    case CEL_TYPE:
    case CEL_OPTIONAL:
    case CEL_QUANTITY:
    case CEL_SEMVER:
    case CEL_ERROR:
        break;
    }
    return &cel_type_error;
}

/* The names of types are values: type(x) == int. */
static const struct cel_type *named_type(struct str name)
{
#define TYPE_OF(type)                                                                              \
    {                                                                                              \
        .kind = CEL_T_TYPE, .inner = { &(type), NULL }                                             \
    }
    static const struct {
        struct str name;
        struct cel_type type;
    } types[] = {
        {STR_INIT("bool"), TYPE_OF(cel_type_bool)},
        {STR_INIT("bytes"), TYPE_OF(cel_type_bytes)},
        {STR_INIT("double"), TYPE_OF(cel_type_double)},
        {STR_INIT("int"), TYPE_OF(cel_type_int)},
        {STR_INIT("list"), TYPE_OF(cel_type_any_list)},
        {STR_INIT("map"), TYPE_OF(cel_type_any_map)},
        {STR_INIT("null_type"), TYPE_OF(cel_type_null)},
        {STR_INIT("optional_type"), TYPE_OF(cel_type_any_optional)},
        {STR_INIT("string"), TYPE_OF(cel_type_string)},
        {STR_INIT("type"), TYPE_OF(cel_type_of_dyn)},
        {STR_INIT("uint"), TYPE_OF(cel_type_uint)},
        {STR_INIT("google.protobuf.Duration"), TYPE_OF(cel_type_duration)},
        {STR_INIT("google.protobuf.Timestamp"), TYPE_OF(cel_type_timestamp)},
    };
#undef TYPE_OF
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        if (str_eq(types[i].name, name)) {
            return &types[i].type;
        }
    }
    return NULL;
}

static bool resolve_global(const struct cel_check *c, struct cel_node *node, struct str name)
{
    bool is_selector = c->purpose == CEL_DEVICE_SELECTOR;
    if (str_eq_c(name, is_selector ? "device" : "self")) {
        node->kind = CEL_IDENT;
        node->slot = is_selector ? CEL_SLOT_DEVICE : CEL_SLOT_SELF;
        node->type = is_selector ? &cel_type_device : &cel_type_dyn;
        return true;
    }
    const struct cel_type *type = named_type(name);
    if (type != NULL) {
        node->kind = CEL_LITERAL;
        node->arg_count = 0;
        node->value = (struct cel_value){.kind = CEL_TYPE, .text = name};
        node->type = type;
        return true;
    }
    return false;
}

static const struct cel_scope *find_local(const struct cel_check *c, struct str name)
{
    for (const struct cel_scope *s = c->scope; s != NULL; s = s->outer) {
        if (str_eq(s->name, name)) {
            return s;
        }
    }
    return NULL;
}

static struct str without_dot(struct str name)
{
    return str_starts_with(name, STR(".")) ? str_skip(name, 1) : name;
}

static struct rc check_ident(struct cel_check *c, struct cel_node *node, struct err *err)
{
    const struct cel_scope *local = find_local(c, node->name);
    if (local != NULL) {
        node->slot = local->slot;
        node->type = local->type;
        return RC_SUCCESS;
    }
    if (resolve_global(c, node, without_dot(node->name))) {
        return RC_SUCCESS;
    }
    return cel_check_fail(
        c, node, err, "there is no variable called '%.*s'; a %s and what its macros declare",
        STR_ARG(node->name),
        c->purpose == CEL_DEVICE_SELECTOR ? "selector sees `device`" : "rule sees `self`");
}

struct str cel_qualified_name(struct arena *arena, const struct cel_node *node)
{
    if (node->kind == CEL_IDENT) {
        return without_dot(node->name);
    }
    if (node->kind != CEL_SELECT || node->is_test || node->is_optional) {
        return STR_NONE;
    }
    struct str outer = cel_qualified_name(arena, node->args[0]);
    return str_is_set(outer) ? arena_format(arena, "%.*s.%.*s", STR_ARG(outer), STR_ARG(node->name))
                             : STR_NONE;
}

static const struct cel_node *chain_root(const struct cel_node *node)
{
    while (node->kind == CEL_SELECT) {
        node = node->args[0];
    }
    return node;
}

static const struct cel_type *device_field(struct cel_check *c, struct str name)
{
    if (str_eq_c(name, "driver")) {
        return &cel_type_string;
    }
    if (str_eq_c(name, "allowMultipleAllocations")) {
        return &cel_type_bool;
    }
    bool is_capacity = str_eq_c(name, "capacity");
    if (!is_capacity && !str_eq_c(name, "attributes")) {
        return NULL;
    }
    const struct cel_type *value = is_capacity ? &cel_type_quantity : &cel_type_dyn;
    const struct cel_type *inner = cel_type_new(c->arena, CEL_T_MAP, &cel_type_string, value);
    return cel_type_new(c->arena, CEL_T_MAP, &cel_type_string, inner);
}

static struct rc field_type(struct cel_check *c, struct cel_node *node,
                            const struct cel_type *target, const struct cel_type **ret_type,
                            struct err *err)
{
    *ret_type = &cel_type_dyn;
    switch ((int)target->kind) {
    case CEL_T_MAP:
        *ret_type = target->inner[1];
        return RC_SUCCESS;
    case CEL_T_DEVICE:
        *ret_type = device_field(c, node->name);
        if (*ret_type == NULL) {
            return cel_check_fail(c, node, err,
                                  "a device has no field '%.*s'; it has driver, "
                                  "attributes, capacity and allowMultipleAllocations",
                                  STR_ARG(node->name));
        }
        return RC_SUCCESS;
    case CEL_T_PARAM:
        (void)cel_solver_assignable(&c->solver, &cel_type_dyn, target);
        return RC_SUCCESS;
    case CEL_T_DYN:
    case CEL_T_ERROR:
        return RC_SUCCESS;
    default:
        return cel_check_fail(c, node, err, "type %.*s has no fields, so no '%.*s'",
                              STR_ARG(type_text(c, target)), STR_ARG(node->name));
    }
}

static struct rc check_select(struct cel_check *c, struct cel_node *node, struct err *err)
{
    struct str name = cel_qualified_name(c->arena, node);
    const struct cel_node *root = chain_root(node);
    bool is_local = root->kind == CEL_IDENT && find_local(c, root->name) != NULL;
    if (str_is_set(name) && !is_local && resolve_global(c, node, name)) {
        return RC_SUCCESS;
    }
    TRY(check_node(c, node->args[0], err));
    const struct cel_type *operand = cel_solver_resolve(&c->solver, node->args[0]->type, false);
    bool is_optional = operand->kind == CEL_T_OPTIONAL;
    const struct cel_type *type = NULL;
    TRY(field_type(c, node, is_optional ? operand->inner[0] : operand, &type, err));
    if (is_optional || node->is_optional) {
        type = cel_type_new(c->arena, CEL_T_OPTIONAL, type, NULL);
    }
    node->type = node->is_test ? &cel_type_bool : cel_solver_resolve(&c->solver, type, false);
    return RC_SUCCESS;
}

static struct rc check_row(struct cel_check *c, struct cel_node *node, struct err *err)
{
    for (uint32_t i = 0; i < node->arg_count; i++) {
        TRY(check_node(c, node->args[i], err));
    }
    for (uint32_t i = 0; i < node->arg_count; i++) {
        const struct cel_type *type = node->args[i]->type;
        if (!cel_solver_assignable(&c->solver, type, &cel_type_bool)) {
            return cel_check_fail(c, node->args[i], err, "%s joins bools, this is of type %.*s",
                                  node->kind == CEL_AND ? "&&" : "||", STR_ARG(type_text(c, type)));
        }
    }
    node->type = &cel_type_bool;
    return RC_SUCCESS;
}

static struct rc check_call(struct cel_check *c, struct cel_node *node, struct err *err)
{
    uint32_t first = node->is_member ? 1 : 0;
    uint32_t count = 0;
    for (uint32_t i = first; i < node->arg_count; i++) {
        TRY(check_node(c, node->args[i], err));
    }
    if (node->is_member) {
        struct str prefix = cel_qualified_name(c->arena, node->args[0]);
        struct str name = str_is_set(prefix) ? arena_format(c->arena, "%.*s.%.*s", STR_ARG(prefix),
                                                            STR_ARG(node->name))
                                             : STR_NONE;
        if (cel_overloads_find(name, &count) != NULL) {
            node->name = name;
            node->is_member = false;
            node->args++;
            node->arg_count--;
        } else {
            TRY(check_node(c, node->args[0], err));
        }
    }
    node->name = without_dot(node->name);
    return cel_check_overloads(c, node, err);
}

/* The common type of a list's elements, or a map's keys or values. */
static struct rc join(struct cel_check *c, struct cel_node *node, bool is_optional,
                      const struct cel_type **joined, struct err *err)
{
    const struct cel_type *type = node->type;
    if (is_optional && type->kind == CEL_T_OPTIONAL) {
        type = type->inner[0];
    } else if (is_optional && type->kind != CEL_T_DYN) {
        return cel_check_fail(c, node, err,
                              "behind '?' an optional is expected, this is of type %.*s",
                              STR_ARG(type_text(c, type)));
    }
    if (*joined == NULL) {
        *joined = type;
        return RC_SUCCESS;
    }
    if (!cel_solver_assignable(&c->solver, *joined, type)) {
        *joined = &cel_type_dyn; /* the planner refuses what is mixed, outside of format() */
        return RC_SUCCESS;
    }
    *joined = cel_type_most_general(*joined, type);
    return RC_SUCCESS;
}

static struct rc check_list(struct cel_check *c, struct cel_node *node, struct err *err)
{
    const struct cel_type *element = NULL;
    for (uint32_t i = 0; i < node->arg_count; i++) {
        TRY(check_node(c, node->args[i], err));
        TRY(join(c, node->args[i], node->optionals != NULL && node->optionals[i], &element, err));
    }
    if (element == NULL) {
        element = cel_solver_fresh(&c->solver);
    }
    node->type = cel_type_new(c->arena, CEL_T_LIST, element, NULL);
    return RC_SUCCESS;
}

static struct rc check_map(struct cel_check *c, struct cel_node *node, struct err *err)
{
    const struct cel_type *types[2] = {NULL, NULL};
    for (uint32_t i = 0; i < node->arg_count; i++) {
        bool is_optional = node->optionals != NULL && node->optionals[i] && i % 2 == 1;
        TRY(check_node(c, node->args[i], err));
        TRY(join(c, node->args[i], is_optional, &types[i % 2], err));
    }
    if (types[0] == NULL) {
        types[0] = cel_solver_fresh(&c->solver);
        types[1] = cel_solver_fresh(&c->solver);
    }
    node->type = cel_type_new(c->arena, CEL_T_MAP, types[0], types[1]);
    return RC_SUCCESS;
}

/* The types of a comprehension's variables; of one variable over a list: its elements. */
static struct rc range_types(struct cel_check *c, struct cel_node *node,
                             const struct cel_type *ret_types[2], struct err *err)
{
    const struct cel_fold *fold = node->fold;
    const struct cel_type *range = cel_solver_resolve(&c->solver, fold->range->type, false);
    bool is_pair = str_is_set(fold->iter_var2);
    ret_types[0] = &cel_type_dyn;
    ret_types[1] = &cel_type_dyn;
    switch ((int)range->kind) {
    case CEL_T_LIST:
        ret_types[0] = is_pair ? &cel_type_int : range->inner[0];
        ret_types[1] = range->inner[0];
        return RC_SUCCESS;
    case CEL_T_MAP:
        ret_types[0] = range->inner[0];
        ret_types[1] = range->inner[1];
        return RC_SUCCESS;
    case CEL_T_DYN:
    case CEL_T_ERROR:
    case CEL_T_PARAM:
        (void)cel_solver_assignable(&c->solver, &cel_type_dyn, range);
        return RC_SUCCESS;
    default:
        return cel_check_fail(c, fold->range, err,
                              "macros work on lists and maps, this is of type %.*s",
                              STR_ARG(type_text(c, range)));
    }
}

static struct cel_scope *enter(struct cel_check *c, struct str name, const struct cel_type *type,
                               uint32_t slot)
{
    struct cel_scope *scope = ARENA_NEW(c->arena, struct cel_scope);
    *scope = (struct cel_scope){.outer = c->scope, .name = name, .type = type, .slot = slot};
    c->scope = scope;
    return scope;
}

static struct rc check_fold(struct cel_check *c, struct cel_node *node, struct err *err)
{
    struct cel_fold *fold = node->fold;
    const struct cel_type *types[2];
    struct cel_scope *outer = c->scope;
    TRY(check_node(c, fold->range, err));
    TRY(check_node(c, fold->init, err));
    TRY(range_types(c, node, types, err));
    fold->slot = c->slot_count;
    c->slot_count += 3;
    struct cel_scope *inner = enter(c, fold->accu_var, fold->init->type, fold->slot);
    enter(c, fold->iter_var, types[0], fold->slot + 1);
    if (str_is_set(fold->iter_var2)) {
        enter(c, fold->iter_var2, types[1], fold->slot + 2);
    }
    TRY(check_node(c, fold->condition, err));
    TRY(check_node(c, fold->step, err));
    if (!cel_solver_assignable(&c->solver, &cel_type_bool, fold->condition->type) ||
        !cel_solver_assignable(&c->solver, fold->init->type, fold->step->type)) {
        return cel_check_fail(c, fold->step, err, "a macro's step gives type %.*s instead of %.*s",
                              STR_ARG(type_text(c, fold->step->type)),
                              STR_ARG(type_text(c, fold->init->type)));
    }
    c->scope = inner;
    TRY(check_node(c, fold->result, err));
    c->scope = outer;
    node->type = cel_solver_resolve(&c->solver, fold->result->type, false);
    return RC_SUCCESS;
}

/* Macros share nodes (optMap() reads its receiver twice), always within one scope. */
static struct rc check_node(struct cel_check *c, struct cel_node *node, struct err *err)
{
    if (node->is_checked) {
        return RC_SUCCESS;
    }
    node->is_checked = true;
    switch (node->kind) {
    case CEL_LITERAL:
        node->type = literal_type(node->value.kind);
        return RC_SUCCESS;
    case CEL_IDENT:
        return check_ident(c, node, err);
    case CEL_SELECT:
        return check_select(c, node, err);
    case CEL_AND:
    case CEL_OR:
        return check_row(c, node, err);
    case CEL_INDEX:
    case CEL_CALL:
    case CEL_TERNARY:
        return check_call(c, node, err);
    case CEL_LIST_OF:
        return check_list(c, node, err);
    case CEL_MAP_OF:
        return check_map(c, node, err);
    case CEL_FOLD:
        return check_fold(c, node, err);
    case CEL_CHAIN:
        break;
    }
    return cel_check_fail(c, node, err, "this can't stand here");
}

struct rc cel_check_tree(struct cel_check *check, struct cel_node *root, struct err *err)
{
    TRY(check_node(check, root, err));
    const struct cel_type *type = cel_solver_resolve(&check->solver, root->type, true);
    if (check->solver.steps > CEL_CHECK_STEPS_MAX) {
        return cel_check_fail(check, root, err, "too many steps");
    }
    bool is_text = check->purpose == CEL_MESSAGE;
    if (type->kind != (is_text ? CEL_T_STRING : CEL_T_BOOL) && type->kind != CEL_T_DYN) {
        return cel_check_fail(check, root, err, "a %s; the type of this one is %.*s",
                              is_text ? "message must give a text"
                                      : "selector must give true or false",
                              STR_ARG(cel_type_text(check->arena, type)));
    }
    return RC_SUCCESS;
}
