#include "parser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tallyman/base/limits.h"

static struct rc parse_expression(struct cel_parser *p, struct cel_node **ret_node,
                                  struct err *err);

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
        return err_set(err, RC_LIMIT, "the expression is too deep or too large: at most %d levels "
                       "and %d nodes with its macros expanded", CEL_HEIGHT_MAX, CEL_NODES_MAX);
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

static struct rc advance(struct cel_parser *p, struct err *err)
{
    return cel_lexer_next(&p->lexer, &p->token, err);
}

static struct rc unexpected(struct cel_parser *p, const char *wanted, struct err *err)
{
    struct str text = str_cut_utf8(p->token.text, 40);
    return cel_parser_fail(p, p->token.position, err, "found '%.*s' where %s was expected",
                           STR_ARG(text), wanted);
}

static struct rc expect(struct cel_parser *p, enum cel_token_kind kind, const char *wanted,
                        struct err *err)
{
    return p->token.kind == kind ? advance(p, err) : unexpected(p, wanted, err);
}

struct node_list {
    struct cel_node **items;
    bool *optionals;
    uint32_t count;
    uint32_t capacity;
    uint32_t optional_capacity;
    bool has_optionals;
};

static void list_add(struct cel_parser *p, struct node_list *list, struct cel_node *node,
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

static struct rc literal(struct cel_parser *p, uint32_t position, struct cel_value value,
                         struct cel_node **ret_node, struct err *err)
{
    struct cel_node node = {.kind = CEL_LITERAL, .position = position, .value = value};
    return cel_node_new(p, node, ret_node, err);
}

/* The digits with a NUL behind them, for strtoull() and strtod(). */
static struct rc parse_number(struct cel_parser *p, bool is_negative, struct cel_node **ret_node,
                              struct err *err)
{
    struct cel_token token = p->token;
    const char *text = arena_format(p->arena, "%s%.*s", is_negative ? "-" : "",
                                    STR_ARG(token.text)).ptr;
    const char *digits = text + (is_negative ? 1 : 0);
    int base = strncmp(digits, "0x", 2) == 0 ? 16 : 10;
    struct cel_value value;
    errno = 0;
    if (token.kind == CEL_TOK_DOUBLE) {
        value = cel_double(strtod(text, NULL));
        errno = __builtin_isinf(value.real) ? ERANGE : 0;
    } else if (token.kind == CEL_TOK_UINT) {
        value = cel_uint(strtoull(text, NULL, base));
    } else {
        value = cel_int(strtoll(text, NULL, base));
    }
    if (errno != 0) {
        return cel_parser_fail(p, token.position, err, "the number %.*s doesn't fit in 64 bits",
                               STR_ARG(str_cut_utf8(token.text, 40)));
    }
    TRY(advance(p, err));
    return literal(p, token.position, value, ret_node, err);
}

static bool is_reserved(struct str name)
{
    static const struct str words[] = {
        STR_INIT("as"),   STR_INIT("break"),  STR_INIT("const"),    STR_INIT("continue"),
        STR_INIT("else"), STR_INIT("for"),    STR_INIT("function"), STR_INIT("if"),
        STR_INIT("let"),  STR_INIT("loop"),   STR_INIT("import"),   STR_INIT("package"),
        STR_INIT("var"),  STR_INIT("void"),   STR_INIT("return"),   STR_INIT("namespace"),
        STR_INIT("while"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (str_eq(words[i], name)) {
            return true;
        }
    }
    return false;
}

/* expr (',' expr)*, up to the closing parenthesis, which is consumed. */
static struct rc parse_arguments(struct cel_parser *p, struct node_list *list, struct err *err)
{
    while (p->token.kind != CEL_TOK_RPAREN) {
        struct cel_node *arg = NULL;
        TRY(parse_expression(p, &arg, err));
        list_add(p, list, arg, false);
        if (p->token.kind != CEL_TOK_COMMA) {
            break;
        }
        TRY(advance(p, err));
        if (p->token.kind == CEL_TOK_RPAREN) {
            return unexpected(p, "another argument", err);
        }
    }
    return expect(p, CEL_TOK_RPAREN, "')'", err);
}

static struct rc make_call(struct cel_parser *p, struct cel_node node, struct node_list *list,
                           struct cel_node **ret_node, struct err *err)
{
    node.kind = CEL_CALL;
    node.args = list->items;
    node.arg_count = list->count;
    TRY(cel_node_new(p, node, ret_node, err));
    return cel_macro_expand(p, ret_node, err);
}

static struct rc parse_identifier(struct cel_parser *p, bool has_dot, struct cel_node **ret_node,
                                  struct err *err)
{
    struct cel_token token = p->token;
    struct cel_node node = {.kind = CEL_IDENT, .position = token.position, .name = token.text};
    TRY(expect(p, CEL_TOK_IDENT, "a name", err));
    if (has_dot) {
        node.name = arena_format(p->arena, ".%.*s", STR_ARG(token.text));
    }
    if (p->token.kind == CEL_TOK_LBRACE) {
        return cel_parser_fail(p, token.position, err,
                               "messages can't be built here: %.*s{…} is not supported",
                               STR_ARG(str_cut_utf8(token.text, 40)));
    }
    if (is_reserved(token.text)) {
        return cel_parser_fail(p, token.position, err, "the word '%.*s' is reserved in CEL",
                               STR_ARG(token.text));
    }
    if (p->token.kind != CEL_TOK_LPAREN) {
        return cel_node_new(p, node, ret_node, err);
    }
    struct node_list args = {0};
    TRY(advance(p, err));
    TRY(parse_arguments(p, &args, err));
    return make_call(p, node, &args, ret_node, err);
}

static struct rc parse_optional_mark(struct cel_parser *p, bool *ret_optional, struct err *err)
{
    *ret_optional = p->token.kind == CEL_TOK_QUESTION;
    return *ret_optional ? advance(p, err) : RC_SUCCESS;
}

static struct rc parse_list(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
{
    struct cel_node node = {.kind = CEL_LIST_OF, .position = p->token.position};
    struct node_list list = {0};
    TRY(advance(p, err));
    while (p->token.kind != CEL_TOK_RBRACKET) {
        bool is_optional = false;
        struct cel_node *item = NULL;
        if (p->token.kind == CEL_TOK_COMMA && list.count == 0) {
            TRY(advance(p, err));
            break;
        }
        TRY(parse_optional_mark(p, &is_optional, err));
        TRY(parse_expression(p, &item, err));
        list_add(p, &list, item, is_optional);
        if (p->token.kind != CEL_TOK_COMMA) {
            break;
        }
        TRY(advance(p, err));
    }
    TRY(expect(p, CEL_TOK_RBRACKET, "']'", err));
    node.args = list.items;
    node.arg_count = list.count;
    node.optionals = list.has_optionals ? list.optionals : NULL;
    return cel_node_new(p, node, ret_node, err);
}

static struct rc parse_map(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
{
    struct cel_node node = {.kind = CEL_MAP_OF, .position = p->token.position};
    struct node_list list = {0};
    TRY(advance(p, err));
    while (p->token.kind != CEL_TOK_RBRACE) {
        bool is_optional = false;
        struct cel_node *key = NULL;
        struct cel_node *value = NULL;
        if (p->token.kind == CEL_TOK_COMMA && list.count == 0) {
            TRY(advance(p, err));
            break;
        }
        TRY(parse_optional_mark(p, &is_optional, err));
        TRY(parse_expression(p, &key, err));
        TRY(expect(p, CEL_TOK_COLON, "':' and the value of this map entry", err));
        TRY(parse_expression(p, &value, err));
        list_add(p, &list, key, is_optional);
        list_add(p, &list, value, is_optional);
        if (p->token.kind != CEL_TOK_COMMA) {
            break;
        }
        TRY(advance(p, err));
    }
    TRY(expect(p, CEL_TOK_RBRACE, "'}'", err));
    node.args = list.items;
    node.arg_count = list.count;
    node.optionals = list.has_optionals ? list.optionals : NULL;
    return cel_node_new(p, node, ret_node, err);
}

static struct rc parse_constant(struct cel_parser *p, struct cel_value value,
                                struct cel_node **ret_node, struct err *err)
{
    uint32_t position = p->token.position;
    TRY(advance(p, err));
    return literal(p, position, value, ret_node, err);
}

static struct rc parse_primary(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
{
    struct str text = p->token.text;
    switch ((int)p->token.kind) {
    case CEL_TOK_DOT:
        TRY(advance(p, err));
        return parse_identifier(p, true, ret_node, err);
    case CEL_TOK_IDENT:
        return parse_identifier(p, false, ret_node, err);
    case CEL_TOK_LPAREN:
        TRY(advance(p, err));
        TRY(parse_expression(p, ret_node, err));
        return expect(p, CEL_TOK_RPAREN, "')'", err);
    case CEL_TOK_LBRACKET:
        return parse_list(p, ret_node, err);
    case CEL_TOK_LBRACE:
        return parse_map(p, ret_node, err);
    case CEL_TOK_INT:
    case CEL_TOK_UINT:
    case CEL_TOK_DOUBLE:
        return parse_number(p, false, ret_node, err);
    case CEL_TOK_STRING:
        return parse_constant(p, cel_string(text), ret_node, err);
    case CEL_TOK_BYTES:
        return parse_constant(p, cel_bytes(text), ret_node, err);
    case CEL_TOK_TRUE:
        return parse_constant(p, cel_bool(true), ret_node, err);
    case CEL_TOK_FALSE:
        return parse_constant(p, cel_bool(false), ret_node, err);
    case CEL_TOK_NULL:
        return parse_constant(p, (struct cel_value){.kind = CEL_NULL}, ret_node, err);
    default:
        return unexpected(p, "a value", err);
    }
}

/* What follows a '.': a field, or a method and its arguments. */
static struct rc parse_selection(struct cel_parser *p, struct cel_node **node, struct err *err)
{
    struct cel_node_request request = {.kind = CEL_SELECT, .args = {*node}};
    bool is_optional = false;
    TRY(advance(p, err));
    TRY(parse_optional_mark(p, &is_optional, err));
    request.name = p->token.text;
    request.position = p->token.position;
    bool is_quoted = p->token.kind == CEL_TOK_QUOTED_IDENT;
    TRY(expect(p, is_quoted ? CEL_TOK_QUOTED_IDENT : CEL_TOK_IDENT,
               "the name of a field or method", err));
    if (p->token.kind != CEL_TOK_LPAREN || is_optional || is_quoted) {
        TRY(cel_node_make(p, request, node, err));
        (*node)->is_optional = is_optional;
        return RC_SUCCESS;
    }
    struct node_list args = {0};
    struct cel_node call = {.position = request.position, .name = request.name, .is_member = true};
    list_add(p, &args, *node, false);
    TRY(advance(p, err));
    TRY(parse_arguments(p, &args, err));
    return make_call(p, call, &args, node, err);
}

static struct rc parse_index(struct cel_parser *p, struct cel_node **node, struct err *err)
{
    uint32_t position = p->token.position;
    bool is_optional = false;
    struct cel_node *index = NULL;
    TRY(advance(p, err));
    TRY(parse_optional_mark(p, &is_optional, err));
    TRY(parse_expression(p, &index, err));
    TRY(expect(p, CEL_TOK_RBRACKET, "']'", err));
    struct cel_node_request request = {.kind = CEL_INDEX,
                                       .position = position,
                                       .function = is_optional ? CEL_FN_OPT_INDEX : CEL_FN_INDEX,
                                       .name = is_optional ? STR("_[?_]") : STR("_[_]"),
                                       .args = {*node, index}};
    TRY(cel_node_make(p, request, node, err));
    (*node)->is_optional = is_optional;
    return RC_SUCCESS;
}

static struct rc parse_member(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
{
    TRY(parse_primary(p, ret_node, err));
    for (;;) {
        if (p->token.kind == CEL_TOK_DOT) {
            TRY(parse_selection(p, ret_node, err));
        } else if (p->token.kind == CEL_TOK_LBRACKET) {
            TRY(parse_index(p, ret_node, err));
        } else {
            return RC_SUCCESS;
        }
    }
}

static bool is_number(enum cel_token_kind kind)
{
    return kind == CEL_TOK_INT || kind == CEL_TOK_DOUBLE;
}

/* The postfix operators after a literal with its sign, such as -1. */
static struct rc parse_signed(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
{
    TRY(parse_number(p, true, ret_node, err));
    while (p->token.kind == CEL_TOK_DOT || p->token.kind == CEL_TOK_LBRACKET) {
        if (p->token.kind == CEL_TOK_DOT) {
            TRY(parse_selection(p, ret_node, err));
        } else {
            TRY(parse_index(p, ret_node, err));
        }
    }
    return RC_SUCCESS;
}

/* '!'+ member, '-'+ member: an even number of them cancels out. */
static struct rc parse_unary(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
{
    enum cel_token_kind sign = p->token.kind;
    uint32_t position = p->token.position;
    uint32_t count = 0;
    if (sign != CEL_TOK_NOT && sign != CEL_TOK_MINUS) {
        return parse_member(p, ret_node, err);
    }
    while (p->token.kind == sign) {
        count++;
        TRY(advance(p, err));
    }
    if (sign == CEL_TOK_MINUS && count == 1 && is_number(p->token.kind)) {
        return parse_signed(p, ret_node, err);
    }
    if (sign == CEL_TOK_NOT && p->token.kind == CEL_TOK_MINUS) {
        TRY(advance(p, err));
        if (!is_number(p->token.kind)) {
            return unexpected(p, "a number", err);
        }
        TRY(parse_signed(p, ret_node, err));
    } else {
        TRY(parse_member(p, ret_node, err));
    }
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
        TRY(advance(p, err));
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
    struct node_list list = {0};
    uint32_t position = p->token.position;
    for (;;) {
        struct cel_node *term = NULL;
        if (op == CEL_TOK_OR) {
            TRY(parse_row(p, CEL_TOK_AND, &term, err));
        } else {
            TRY(parse_binary(p, 1, &term, err));
        }
        list_add(p, &list, term, false);
        if (p->token.kind != op) {
            break;
        }
        TRY(advance(p, err));
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
    TRY(advance(p, err));
    TRY(parse_row(p, CEL_TOK_OR, &request.args[1], err));
    TRY(expect(p, CEL_TOK_COLON, "':'", err));
    TRY(parse_expression(p, &request.args[2], err));
    return cel_node_make(p, request, ret_node, err);
}

static struct rc parse_expression(struct cel_parser *p, struct cel_node **ret_node,
                                  struct err *err)
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
    TRY(advance(&parser, err));
    TRY(parse_expression(&parser, ret_root, err));
    return parser.token.kind == CEL_TOK_END ? RC_SUCCESS
                                            : unexpected(&parser, "an operator or the end", err);
}
