/* The macros, each as the comprehension that cel-go makes of it. Source: cel-go parser/macro.go,
 * cel/library.go (optMap), ext/bindings.go, ext/comprehensions.go, ext/lists.go (sortBy). */
#include "parser.h"

#define ACCUMULATOR STR("@result")
#define UNUSED_NAME STR("#unused")

/* What a macro is made from: the receiver, its arguments, and where they stand. */
struct expansion {
    struct cel_parser *parser;
    struct cel_node *target; /* NULL: none */
    struct cel_node **args;
    uint32_t count;
    uint32_t position;
    struct str variable;
    struct str variable2; /* absent: one variable */
};

typedef struct rc macro_function(struct expansion *macro, struct cel_node **ret_node,
                                 struct err *err);

static struct rc make(struct expansion *m, struct cel_node_request request,
                      struct cel_node **ret_node, struct err *err)
{
    request.position = m->position;
    return cel_node_make(m->parser, request, ret_node, err);
}

static struct rc make_ident(struct expansion *m, struct str name, struct cel_node **ret_node,
                            struct err *err)
{
    return make(m, (struct cel_node_request){.kind = CEL_IDENT, .name = name}, ret_node, err);
}

static struct rc make_literal(struct expansion *m, struct cel_value value,
                              struct cel_node **ret_node, struct err *err)
{
    TRY(make(m, (struct cel_node_request){.kind = CEL_LITERAL}, ret_node, err));
    (*ret_node)->value = value;
    return RC_SUCCESS;
}

static struct rc make_call(struct expansion *m, struct cel_node_request request,
                           struct cel_node **ret_node, struct err *err)
{
    request.kind = request.kind == CEL_LITERAL ? CEL_CALL : request.kind;
    return make(m, request, ret_node, err);
}

static struct rc make_fold(struct expansion *m, struct cel_fold fold, struct cel_node **ret_node,
                           struct err *err)
{
    struct cel_fold *made = ARENA_NEW(m->parser->arena, struct cel_fold);
    *made = fold;
    struct cel_node node = {.kind = CEL_FOLD, .position = m->position, .fold = made};
    return cel_node_new(m->parser, node, ret_node, err);
}

static struct rc take_variable(struct expansion *m, uint32_t index, struct str *ret_name,
                               struct err *err)
{
    struct cel_node *arg = m->args[index];
    if (arg->kind != CEL_IDENT) {
        return cel_parser_fail(m->parser, arg->position, err,
                               "a variable's name was expected as argument %u of this macro",
                               index + 1);
    }
    if (str_eq(arg->name, ACCUMULATOR) || str_eq_c(arg->name, "__result__")) {
        return cel_parser_fail(m->parser, arg->position, err,
                               "a variable can't be called '%.*s' here", STR_ARG(arg->name));
    }
    *ret_name = arg->name;
    return RC_SUCCESS;
}

static struct rc take_variables(struct expansion *m, struct err *err)
{
    TRY(take_variable(m, 0, &m->variable, err));
    TRY(take_variable(m, 1, &m->variable2, err));
    if (str_eq(m->variable, m->variable2)) {
        return cel_parser_fail(m->parser, m->args[1]->position, err,
                               "both variables are called '%.*s'", STR_ARG(m->variable));
    }
    return RC_SUCCESS;
}

static struct rc expand_has(struct expansion *m, struct cel_node **ret_node, struct err *err)
{
    struct cel_node *arg = m->args[0];
    if (arg->kind != CEL_SELECT || arg->is_optional) {
        return cel_parser_fail(m->parser, arg->position, err,
                               "has() takes a field, as in has(device.attributes[\"a\"].b)");
    }
    TRY(make(
        m, (struct cel_node_request){.kind = CEL_SELECT, .name = arg->name, .args = {arg->args[0]}},
        ret_node, err));
    (*ret_node)->is_test = true;
    return RC_SUCCESS;
}

/* all() stops at the first false, exists() at the first true. */
static struct rc expand_quantifier(struct expansion *m, bool is_all, struct cel_node *predicate,
                                   struct cel_node **ret_node, struct err *err)
{
    struct cel_fold fold = {.iter_var = m->variable,
                            .iter_var2 = m->variable2,
                            .accu_var = ACCUMULATOR,
                            .range = m->target};
    struct cel_node *accu = NULL;
    TRY(make_ident(m, ACCUMULATOR, &accu, err));
    TRY(make_literal(m, cel_bool(is_all), &fold.init, err));
    fold.condition = accu;
    if (!is_all) {
        TRY(make_call(
            m, (struct cel_node_request){.function = CEL_FN_NOT, .name = STR("!_"), .args = {accu}},
            &fold.condition, err));
    }
    TRY(make_call(m,
                  (struct cel_node_request){.function = CEL_FN_NOT_STRICTLY_FALSE,
                                            .name = STR("@not_strictly_false"),
                                            .args = {fold.condition}},
                  &fold.condition, err));
    TRY(make(
        m, (struct cel_node_request){.kind = is_all ? CEL_AND : CEL_OR, .args = {accu, predicate}},
        &fold.step, err));
    fold.result = accu;
    return make_fold(m, fold, ret_node, err);
}

static struct rc expand_all(struct expansion *m, struct cel_node **ret_node, struct err *err)
{
    TRY(take_variable(m, 0, &m->variable, err));
    return expand_quantifier(m, true, m->args[1], ret_node, err);
}

static struct rc expand_all2(struct expansion *m, struct cel_node **ret_node, struct err *err)
{
    TRY(take_variables(m, err));
    return expand_quantifier(m, true, m->args[2], ret_node, err);
}

static struct rc expand_exists(struct expansion *m, struct cel_node **ret_node, struct err *err)
{
    TRY(take_variable(m, 0, &m->variable, err));
    return expand_quantifier(m, false, m->args[1], ret_node, err);
}

static struct rc expand_exists2(struct expansion *m, struct cel_node **ret_node, struct err *err)
{
    TRY(take_variables(m, err));
    return expand_quantifier(m, false, m->args[2], ret_node, err);
}

static struct rc expand_count(struct expansion *m, struct cel_node *predicate,
                              struct cel_node **ret_node, struct err *err)
{
    struct cel_fold fold = {.iter_var = m->variable,
                            .iter_var2 = m->variable2,
                            .accu_var = ACCUMULATOR,
                            .range = m->target};
    struct cel_node *accu = NULL;
    struct cel_node *one = NULL;
    TRY(make_ident(m, ACCUMULATOR, &accu, err));
    TRY(make_literal(m, cel_int(0), &fold.init, err));
    TRY(make_literal(m, cel_bool(true), &fold.condition, err));
    TRY(make_literal(m, cel_int(1), &one, err));
    TRY(make_call(
        m,
        (struct cel_node_request){.function = CEL_FN_ADD, .name = STR("_+_"), .args = {accu, one}},
        &fold.step, err));
    TRY(make(m,
             (struct cel_node_request){.kind = CEL_TERNARY,
                                       .function = CEL_FN_TERNARY,
                                       .name = STR("_?_:_"),
                                       .args = {predicate, fold.step, accu}},
             &fold.step, err));
    TRY(make_call(m,
                  (struct cel_node_request){
                      .function = CEL_FN_EQUAL, .name = STR("_==_"), .args = {accu, one}},
                  &fold.result, err));
    return make_fold(m, fold, ret_node, err);
}

static struct rc expand_exists_one(struct expansion *m, struct cel_node **ret_node, struct err *err)
{
    TRY(take_variable(m, 0, &m->variable, err));
    return expand_count(m, m->args[1], ret_node, err);
}

static struct rc expand_exists_one2(struct expansion *m, struct cel_node **ret_node,
                                    struct err *err)
{
    TRY(take_variables(m, err));
    return expand_count(m, m->args[2], ret_node, err);
}

/* accu + [item], only where `filter` holds unless it is NULL. */
static struct rc expand_collect(struct expansion *m, struct cel_node *filter, struct cel_node *item,
                                struct cel_node **ret_node, struct err *err)
{
    struct cel_fold fold = {.iter_var = m->variable,
                            .iter_var2 = m->variable2,
                            .accu_var = ACCUMULATOR,
                            .range = m->target};
    struct cel_node *accu = NULL;
    struct cel_node *list = NULL;
    TRY(make_ident(m, ACCUMULATOR, &accu, err));
    TRY(make(m, (struct cel_node_request){.kind = CEL_LIST_OF}, &fold.init, err));
    TRY(make_literal(m, cel_bool(true), &fold.condition, err));
    TRY(make(m, (struct cel_node_request){.kind = CEL_LIST_OF, .args = {item}}, &list, err));
    TRY(make_call(
        m,
        (struct cel_node_request){.function = CEL_FN_ADD, .name = STR("_+_"), .args = {accu, list}},
        &fold.step, err));
    if (filter != NULL) {
        TRY(make(m,
                 (struct cel_node_request){.kind = CEL_TERNARY,
                                           .function = CEL_FN_TERNARY,
                                           .name = STR("_?_:_"),
                                           .args = {filter, fold.step, accu}},
                 &fold.step, err));
    }
    fold.result = accu;
    return make_fold(m, fold, ret_node, err);
}

static struct rc expand_map(struct expansion *m, struct cel_node **ret_node, struct err *err)
{
    TRY(take_variable(m, 0, &m->variable, err));
    return expand_collect(m, m->count == 3 ? m->args[1] : NULL, m->args[m->count - 1], ret_node,
                          err);
}

static struct rc expand_filter(struct expansion *m, struct cel_node **ret_node, struct err *err)
{
    TRY(take_variable(m, 0, &m->variable, err));
    return expand_collect(m, m->args[1], m->args[0], ret_node, err);
}

static struct rc expand_transform_list(struct expansion *m, struct cel_node **ret_node,
                                       struct err *err)
{
    TRY(take_variables(m, err));
    return expand_collect(m, m->count == 4 ? m->args[2] : NULL, m->args[m->count - 1], ret_node,
                          err);
}

static struct rc expand_insert(struct expansion *m, bool is_entry, struct cel_node **ret_node,
                               struct err *err)
{
    struct cel_fold fold = {.accu_var = ACCUMULATOR, .range = m->target};
    struct cel_node *accu = NULL;
    TRY(take_variables(m, err));
    fold.iter_var = m->variable;
    fold.iter_var2 = m->variable2;
    TRY(make_ident(m, ACCUMULATOR, &accu, err));
    TRY(make(m, (struct cel_node_request){.kind = CEL_MAP_OF}, &fold.init, err));
    TRY(make_literal(m, cel_bool(true), &fold.condition, err));
    struct cel_node_request insert = {.function = CEL_FN_MAP_INSERT,
                                      .name = STR("cel.@mapInsert"),
                                      .args = {accu, m->args[m->count - 1]}};
    if (!is_entry) {
        TRY(make_ident(m, m->variable, &insert.args[1], err));
        insert.args[2] = m->args[m->count - 1];
    }
    TRY(make_call(m, insert, &fold.step, err));
    if (m->count == 4) {
        TRY(make(m,
                 (struct cel_node_request){.kind = CEL_TERNARY,
                                           .function = CEL_FN_TERNARY,
                                           .name = STR("_?_:_"),
                                           .args = {m->args[2], fold.step, accu}},
                 &fold.step, err));
    }
    fold.result = accu;
    return make_fold(m, fold, ret_node, err);
}

static struct rc expand_transform_map(struct expansion *m, struct cel_node **ret_node,
                                      struct err *err)
{
    return expand_insert(m, false, ret_node, err);
}

static struct rc expand_transform_entry(struct expansion *m, struct cel_node **ret_node,
                                        struct err *err)
{
    return expand_insert(m, true, ret_node, err);
}

/* `variable` stands for `value` in `body`: a comprehension over nothing. */
static struct rc make_binding(struct expansion *m, struct str variable, struct cel_node *value,
                              struct cel_node *body, struct cel_node **ret_node, struct err *err)
{
    struct cel_fold fold = {.iter_var = UNUSED_NAME, .accu_var = variable, .init = value};
    TRY(make(m, (struct cel_node_request){.kind = CEL_LIST_OF}, &fold.range, err));
    TRY(make_literal(m, cel_bool(false), &fold.condition, err));
    TRY(make_ident(m, variable, &fold.step, err));
    fold.result = body;
    return make_fold(m, fold, ret_node, err);
}

static struct rc expand_bind(struct expansion *m, struct cel_node **ret_node, struct err *err)
{
    if (m->target->kind != CEL_IDENT || !str_eq_c(m->target->name, "cel")) {
        return RC_SUCCESS;
    }
    if (m->args[0]->kind != CEL_IDENT) {
        return cel_parser_fail(m->parser, m->args[0]->position, err,
                               "cel.bind() takes a variable's name first");
    }
    return make_binding(m, m->args[0]->name, m->args[1], m->args[2], ret_node, err);
}

/* target.hasValue() ? body with the value, in an optional again unless `is_flat` : optional.none()
 */
static struct rc expand_optional(struct expansion *m, bool is_flat, struct cel_node **ret_node,
                                 struct err *err)
{
    struct cel_node *parts[4] = {NULL};
    if (m->args[0]->kind != CEL_IDENT) {
        return cel_parser_fail(m->parser, m->args[0]->position, err,
                               "optMap() and optFlatMap() take a variable's name first");
    }
    struct cel_node_request request = {
        .name = STR("hasValue"), .is_member = true, .args = {m->target}};
    TRY(make_call(m, request, &parts[0], err));
    request.name = STR("value");
    TRY(make_call(m, request, &parts[3], err));
    TRY(make_binding(m, m->args[0]->name, parts[3], m->args[1], &parts[1], err));
    if (!is_flat) {
        request = (struct cel_node_request){.name = STR("optional.of"), .args = {parts[1]}};
        TRY(make_call(m, request, &parts[1], err));
    }
    request = (struct cel_node_request){.name = STR("optional.none")};
    TRY(make_call(m, request, &parts[2], err));
    return make(m,
                (struct cel_node_request){.kind = CEL_TERNARY,
                                          .function = CEL_FN_TERNARY,
                                          .name = STR("_?_:_"),
                                          .args = {parts[0], parts[1], parts[2]}},
                ret_node, err);
}

static struct rc expand_opt_map(struct expansion *m, struct cel_node **ret_node, struct err *err)
{
    return expand_optional(m, false, ret_node, err);
}

static struct rc expand_opt_flat_map(struct expansion *m, struct cel_node **ret_node,
                                     struct err *err)
{
    return expand_optional(m, true, ret_node, err);
}

static struct rc expand_sort_by(struct expansion *m, struct cel_node **ret_node, struct err *err)
{
    struct str input = STR("@__sortBy_input__");
    struct cel_node *target = m->target;
    struct cel_node *ident = NULL;
    struct cel_node *keys = NULL;
    struct cel_node *call = NULL;
    if (target->kind == CEL_LITERAL || target->kind == CEL_MAP_OF) {
        return cel_parser_fail(m->parser, target->position, err, "sortBy() needs a list");
    }
    TRY(make_ident(m, input, &ident, err));
    m->target = ident;
    TRY(expand_map(m, &keys, err));
    TRY(make_call(m,
                  (struct cel_node_request){.name = STR("@sortByAssociatedKeys"),
                                            .is_member = true,
                                            .args = {ident, keys}},
                  &call, err));
    return make_binding(m, input, target, call, ret_node, err);
}

struct rc cel_macro_expand(struct cel_parser *parser, struct cel_node **node, struct err *err)
{
    static const struct {
        struct str name;
        uint32_t count;
        bool is_member;
        macro_function *expand;
    } macros[] = {
        {STR_INIT("has"), 1, false, expand_has},
        {STR_INIT("all"), 2, true, expand_all},
        {STR_INIT("all"), 3, true, expand_all2},
        {STR_INIT("exists"), 2, true, expand_exists},
        {STR_INIT("exists"), 3, true, expand_exists2},
        {STR_INIT("exists_one"), 2, true, expand_exists_one},
        {STR_INIT("exists_one"), 3, true, expand_exists_one2},
        {STR_INIT("existsOne"), 3, true, expand_exists_one2},
        {STR_INIT("map"), 2, true, expand_map},
        {STR_INIT("map"), 3, true, expand_map},
        {STR_INIT("filter"), 2, true, expand_filter},
        {STR_INIT("transformList"), 3, true, expand_transform_list},
        {STR_INIT("transformList"), 4, true, expand_transform_list},
        {STR_INIT("transformMap"), 3, true, expand_transform_map},
        {STR_INIT("transformMap"), 4, true, expand_transform_map},
        {STR_INIT("transformMapEntry"), 3, true, expand_transform_entry},
        {STR_INIT("transformMapEntry"), 4, true, expand_transform_entry},
        {STR_INIT("optMap"), 2, true, expand_opt_map},
        {STR_INIT("optFlatMap"), 2, true, expand_opt_flat_map},
        {STR_INIT("sortBy"), 2, true, expand_sort_by},
        {STR_INIT("bind"), 3, true, expand_bind},
    };
    struct cel_node *call = *node;
    uint32_t receiver = call->is_member ? 1 : 0;
    struct expansion m = {.parser = parser,
                          .target = call->is_member ? call->args[0] : NULL,
                          .args = call->is_member ? call->args + 1 : call->args,
                          .count = call->arg_count - receiver,
                          .position = call->position};
    for (size_t i = 0; i < ARRAY_COUNT(macros); i++) {
        if (macros[i].count == m.count && macros[i].is_member == call->is_member &&
            str_eq(macros[i].name, call->name)) {
            return macros[i].expand(&m, node, err);
        }
    }
    return RC_SUCCESS;
}
