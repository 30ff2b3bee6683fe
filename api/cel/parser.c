#include "parser.h"

#include <stdio.h>

#include "tallyman/base/limits.h"

struct rc cel_parser_fail(struct cel_parser *parser, uint32_t position, struct err *err,
                          const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char text[ERR_TEXT_MAX_BYTES];
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct str at = cel_position_text(parser->arena, parser->lexer.source, position);
    return err_set(err, RC_INVALID, "%.*s: %s", STR_ARG(at), text);
}

static uint16_t fold_height(const struct cel_fold *fold)
{
    uint16_t height = fold->range->height;
    const struct cel_node *others[] = {fold->init, fold->condition, fold->step, fold->result};
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        height = others[i]->height > height ? others[i]->height : height;
    }
    return height;
}

struct rc cel_node_new(struct cel_parser *parser, struct cel_node node, struct cel_node **ret_node,
                       struct err *err)
{
    uint16_t height = node.fold != NULL ? fold_height(node.fold) : 0;
    for (uint32_t i = 0; i < node.arg_count; i++) {
        height = node.args[i]->height > height ? node.args[i]->height : height;
    }
    if (height >= CEL_HEIGHT_MAX || ++parser->node_count > CEL_NODES_MAX) {
        return err_set(err, RC_LIMIT,
                       "the expression is too deep or too large: at most %d levels "
                       "and %d nodes with its macros expanded",
                       CEL_HEIGHT_MAX, CEL_NODES_MAX);
    }
    node.height = (uint16_t)(height + 1);
    node.overload = -1;
    struct cel_node *made = ARENA_NEW(parser->arena, struct cel_node);
    *made = node;
    *ret_node = made;
    return RC_SUCCESS;
}

struct rc cel_node_make(struct cel_parser *parser, struct cel_node_request request,
                        struct cel_node **ret_node, struct err *err)
{
    struct cel_node node = {.kind = request.kind,
                            .function = request.function,
                            .name = request.name,
                            .position = request.position,
                            .is_member = request.is_member};
    while (node.arg_count < ARRAY_COUNT(request.args) && request.args[node.arg_count] != NULL) {
        node.arg_count++;
    }
    node.args = (struct cel_node **)ARENA_ARRAY(parser->arena, struct cel_node *, node.arg_count);
    for (uint32_t i = 0; i < node.arg_count; i++) {
        node.args[i] = request.args[i];
    }
    return cel_node_new(parser, node, ret_node, err);
}

struct rc cel_parser_advance(struct cel_parser *p, struct err *err)
{
    return cel_lexer_next(&p->lexer, &p->token, err);
}

struct rc cel_parser_unexpected(struct cel_parser *p, const char *wanted, struct err *err)
{
    if (p->token.kind == CEL_TOK_END) {
        return cel_parser_fail(p, p->token.position, err,
                               "the expression ends where %s was expected", wanted);
    }
    struct str text = str_cut_utf8(p->token.text, 40);
    return cel_parser_fail(p, p->token.position, err, "found '%.*s' where %s was expected",
                           STR_ARG(text), wanted);
}

struct rc cel_parser_expect(struct cel_parser *p, enum cel_token_kind kind, const char *wanted,
                            struct err *err)
{
    return p->token.kind == kind ? cel_parser_advance(p, err)
                                 : cel_parser_unexpected(p, wanted, err);
}

void cel_node_list_add(struct cel_parser *p, struct cel_node_list *list, struct cel_node *node,
                       bool is_optional)
{
    list->items = arena_grow(p->arena, (void *)list->items, list->count, &list->capacity,
                             sizeof(*list->items));
    list->optionals = arena_grow(p->arena, list->optionals, list->count, &list->optional_capacity,
                                 sizeof(*list->optionals));
    list->optionals[list->count] = is_optional;
    list->items[list->count++] = node;
    list->has_optionals = list->has_optionals || is_optional;
}

static bool is_number(enum cel_token_kind kind)
{
    return kind == CEL_TOK_INT || kind == CEL_TOK_DOUBLE;
}

/* '!'+ member, '-'+ member: an even number of them cancels out. */
static struct rc parse_unary(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
{
    enum cel_token_kind sign = p->token.kind;
    uint32_t position = p->token.position;
    uint32_t count = 0;
    if (sign != CEL_TOK_NOT && sign != CEL_TOK_MINUS) {
        return cel_parse_member(p, ret_node, err);
    }
    while (p->token.kind == sign) {
        count++;
        TRY(cel_parser_advance(p, err));
    }
    if (sign == CEL_TOK_MINUS && count == 1 && is_number(p->token.kind)) {
        return cel_parse_signed(p, ret_node, err);
    }
    TRY(cel_parse_member(p, ret_node, err));
    if (count % 2 == 0) {
        return RC_SUCCESS;
    }
    bool is_not = sign == CEL_TOK_NOT;
    struct cel_node_request request = {.kind = CEL_CALL,
                                       .function = is_not ? CEL_FN_NOT : CEL_FN_NEGATE,
                                       .name = is_not ? STR("!_") : STR("-_"),
                                       .position = position,
                                       .args = {*ret_node}};
    return cel_node_make(p, request, ret_node, err);
}

struct binary_operator {
    enum cel_token_kind token;
    enum cel_function function;
    int strength;
    struct str name;
};

static const struct binary_operator *find_operator(enum cel_token_kind token)
{
    static const struct binary_operator operators[] = {
        {CEL_TOK_LESS, CEL_FN_LESS, 1, STR_INIT("_<_")},
        {CEL_TOK_LESS_EQUAL, CEL_FN_LESS_EQUAL, 1, STR_INIT("_<=_")},
        {CEL_TOK_GREATER, CEL_FN_GREATER, 1, STR_INIT("_>_")},
        {CEL_TOK_GREATER_EQUAL, CEL_FN_GREATER_EQUAL, 1, STR_INIT("_>=_")},
        {CEL_TOK_EQUAL, CEL_FN_EQUAL, 1, STR_INIT("_==_")},
        {CEL_TOK_NOT_EQUAL, CEL_FN_NOT_EQUAL, 1, STR_INIT("_!=_")},
        {CEL_TOK_IN, CEL_FN_IN, 1, STR_INIT("@in")},
        {CEL_TOK_PLUS, CEL_FN_ADD, 2, STR_INIT("_+_")},
        {CEL_TOK_MINUS, CEL_FN_SUBTRACT, 2, STR_INIT("_-_")},
        {CEL_TOK_STAR, CEL_FN_MULTIPLY, 3, STR_INIT("_*_")},
        {CEL_TOK_SLASH, CEL_FN_DIVIDE, 3, STR_INIT("_/_")},
        {CEL_TOK_PERCENT, CEL_FN_MODULO, 3, STR_INIT("_%_")},
    };
    for (size_t i = 0; i < ARRAY_COUNT(operators); i++) {
        if (operators[i].token == token) {
            return &operators[i];
        }
    }
    return NULL;
}

/* Operators of at least this strength, left to right. */
static struct rc parse_binary(struct cel_parser *p, int strength, struct cel_node **ret_node,
                              struct err *err)
{
    TRY(parse_unary(p, ret_node, err));
    for (;;) {
        const struct binary_operator *op = find_operator(p->token.kind);
        if (op == NULL || op->strength < strength) {
            return RC_SUCCESS;
        }
        uint32_t position = p->token.position;
        struct cel_node *right = NULL;
        TRY(cel_parser_advance(p, err));
        TRY(parse_binary(p, op->strength + 1, &right, err));
        struct cel_node_request request = {.kind = CEL_CALL,
                                           .function = op->function,
                                           .name = op->name,
                                           .position = position,
                                           .args = {*ret_node, right}};
        TRY(cel_node_make(p, request, ret_node, err));
    }
}

/* a && b && c, or with ||: one node for the whole row, so that a long row isn't deep. */
static struct rc parse_row(struct cel_parser *p, enum cel_token_kind op, struct cel_node **ret_node,
                           struct err *err)
{
    struct cel_node_list list = {0};
    uint32_t position = p->token.position;
    for (;;) {
        struct cel_node *term = NULL;
        if (op == CEL_TOK_OR) {
            TRY(parse_row(p, CEL_TOK_AND, &term, err));
        } else {
            TRY(parse_binary(p, 1, &term, err));
        }
        cel_node_list_add(p, &list, term, false);
        if (p->token.kind != op) {
            break;
        }
        TRY(cel_parser_advance(p, err));
    }
    if (list.count == 1) {
        *ret_node = list.items[0];
        return RC_SUCCESS;
    }
    struct cel_node node = {.kind = op == CEL_TOK_OR ? CEL_OR : CEL_AND,
                            .position = position,
                            .args = list.items,
                            .arg_count = list.count};
    return cel_node_new(p, node, ret_node, err);
}

static struct rc parse_ternary(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
{
    TRY(parse_row(p, CEL_TOK_OR, ret_node, err));
    if (p->token.kind != CEL_TOK_QUESTION) {
        return RC_SUCCESS;
    }
    struct cel_node_request request = {.kind = CEL_TERNARY,
                                       .function = CEL_FN_TERNARY,
                                       .name = STR("_?_:_"),
                                       .position = p->token.position,
                                       .args = {*ret_node}};
    TRY(cel_parser_advance(p, err));
    TRY(parse_row(p, CEL_TOK_OR, &request.args[1], err));
    TRY(cel_parser_expect(p, CEL_TOK_COLON, "':'", err));
    TRY(cel_parse_expression(p, &request.args[2], err));
    return cel_node_make(p, request, ret_node, err);
}

struct rc cel_parse_expression(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
{
    if (p->depth >= CEL_DEPTH_MAX) {
        return err_set(err, RC_LIMIT, "the expression is nested more than %d levels deep",
                       CEL_DEPTH_MAX);
    }
    p->depth++;
    struct rc rc = parse_ternary(p, ret_node, err);
    p->depth--;
    return rc;
}

struct rc cel_parse(struct arena *arena, struct str source, struct cel_node **ret_root,
                    struct err *err)
{
    struct cel_parser parser = {.arena = arena, .lexer = {.arena = arena, .source = source}};
    TRY(cel_parser_advance(&parser, err));
    TRY(cel_parse_expression(&parser, ret_root, err));
    return parser.token.kind == CEL_TOK_END
               ? RC_SUCCESS
               : cel_parser_unexpected(&parser, "an operator or the end", err);
}
