/* Literals, names, lists, maps, and the fields, methods and indexes behind them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "parser.h"

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
    const char *text =
        arena_format(p->arena, "%s%.*s", is_negative ? "-" : "", STR_ARG(token.text)).ptr;
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
    TRY(cel_parser_advance(p, err));
    return literal(p, token.position, value, ret_node, err);
}

static bool is_reserved(struct str name)
{
    static const struct str words[] = {
        STR_INIT("as"),    STR_INIT("break"), STR_INIT("const"),    STR_INIT("continue"),
        STR_INIT("else"),  STR_INIT("for"),   STR_INIT("function"), STR_INIT("if"),
        STR_INIT("let"),   STR_INIT("loop"),  STR_INIT("import"),   STR_INIT("package"),
        STR_INIT("var"),   STR_INIT("void"),  STR_INIT("return"),   STR_INIT("namespace"),
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
static struct rc parse_arguments(struct cel_parser *p, struct cel_node_list *list, struct err *err)
{
    while (p->token.kind != CEL_TOK_RPAREN) {
        struct cel_node *arg = NULL;
        TRY(cel_parse_expression(p, &arg, err));
        cel_node_list_add(p, list, arg, false);
        if (p->token.kind != CEL_TOK_COMMA) {
            break;
        }
        TRY(cel_parser_advance(p, err));
        if (p->token.kind == CEL_TOK_RPAREN) {
            return cel_parser_unexpected(p, "another argument", err);
        }
    }
    return cel_parser_expect(p, CEL_TOK_RPAREN, "')'", err);
}

static struct rc make_call(struct cel_parser *p, struct cel_node node, struct cel_node_list *list,
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
    TRY(cel_parser_expect(p, CEL_TOK_IDENT, "a name", err));
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
    struct cel_node_list args = {0};
    TRY(cel_parser_advance(p, err));
    TRY(parse_arguments(p, &args, err));
    return make_call(p, node, &args, ret_node, err);
}

static struct rc parse_optional_mark(struct cel_parser *p, bool *ret_optional, struct err *err)
{
    *ret_optional = p->token.kind == CEL_TOK_QUESTION;
    return *ret_optional ? cel_parser_advance(p, err) : RC_SUCCESS;
}

static struct rc parse_list(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
{
    struct cel_node node = {.kind = CEL_LIST_OF, .position = p->token.position};
    struct cel_node_list list = {0};
    TRY(cel_parser_advance(p, err));
    while (p->token.kind != CEL_TOK_RBRACKET) {
        bool is_optional = false;
        struct cel_node *item = NULL;
        if (p->token.kind == CEL_TOK_COMMA && list.count == 0) {
            TRY(cel_parser_advance(p, err));
            break;
        }
        TRY(parse_optional_mark(p, &is_optional, err));
        TRY(cel_parse_expression(p, &item, err));
        cel_node_list_add(p, &list, item, is_optional);
        if (p->token.kind != CEL_TOK_COMMA) {
            break;
        }
        TRY(cel_parser_advance(p, err));
    }
    TRY(cel_parser_expect(p, CEL_TOK_RBRACKET, "']'", err));
    node.args = list.items;
    node.arg_count = list.count;
    node.optionals = list.has_optionals ? list.optionals : NULL;
    return cel_node_new(p, node, ret_node, err);
}

static struct rc parse_map(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
{
    struct cel_node node = {.kind = CEL_MAP_OF, .position = p->token.position};
    struct cel_node_list list = {0};
    TRY(cel_parser_advance(p, err));
    while (p->token.kind != CEL_TOK_RBRACE) {
        bool is_optional = false;
        struct cel_node *key = NULL;
        struct cel_node *value = NULL;
        if (p->token.kind == CEL_TOK_COMMA && list.count == 0) {
            TRY(cel_parser_advance(p, err));
            break;
        }
        TRY(parse_optional_mark(p, &is_optional, err));
        TRY(cel_parse_expression(p, &key, err));
        TRY(cel_parser_expect(p, CEL_TOK_COLON, "':' and the value of this map entry", err));
        TRY(cel_parse_expression(p, &value, err));
        cel_node_list_add(p, &list, key, is_optional);
        cel_node_list_add(p, &list, value, is_optional);
        if (p->token.kind != CEL_TOK_COMMA) {
            break;
        }
        TRY(cel_parser_advance(p, err));
    }
    TRY(cel_parser_expect(p, CEL_TOK_RBRACE, "'}'", err));
    node.args = list.items;
    node.arg_count = list.count;
    node.optionals = list.has_optionals ? list.optionals : NULL;
    return cel_node_new(p, node, ret_node, err);
}

static struct rc parse_constant(struct cel_parser *p, struct cel_value value,
                                struct cel_node **ret_node, struct err *err)
{
    uint32_t position = p->token.position;
    TRY(cel_parser_advance(p, err));
    return literal(p, position, value, ret_node, err);
}

static struct rc parse_primary(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
{
    struct str text = p->token.text;
    switch ((int)p->token.kind) {
    case CEL_TOK_DOT:
        TRY(cel_parser_advance(p, err));
        return parse_identifier(p, true, ret_node, err);
    case CEL_TOK_IDENT:
        return parse_identifier(p, false, ret_node, err);
    case CEL_TOK_LPAREN:
        TRY(cel_parser_advance(p, err));
        TRY(cel_parse_expression(p, ret_node, err));
        return cel_parser_expect(p, CEL_TOK_RPAREN, "')'", err);
    case CEL_TOK_LBRACKET:
        return parse_list(p, ret_node, err);
    case CEL_TOK_LBRACE:
        return parse_map(p, ret_node, err);
    case CEL_TOK_MINUS:
        /* Behind '!' only: everywhere else the sign was taken before. */
        TRY(cel_parser_advance(p, err));
        if (p->token.kind != CEL_TOK_INT && p->token.kind != CEL_TOK_DOUBLE) {
            return cel_parser_unexpected(p, "a number", err);
        }
        return parse_number(p, true, ret_node, err);
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
        return cel_parser_unexpected(p, "a value", err);
    }
}

/* What follows a '.': a field, or a method and its arguments. */
static struct rc parse_selection(struct cel_parser *p, struct cel_node **node, struct err *err)
{
    struct cel_node_request request = {.kind = CEL_SELECT, .args = {*node}};
    bool is_optional = false;
    TRY(cel_parser_advance(p, err));
    TRY(parse_optional_mark(p, &is_optional, err));
    request.name = p->token.text;
    request.position = p->token.position;
    bool is_quoted = p->token.kind == CEL_TOK_QUOTED_IDENT;
    TRY(cel_parser_expect(p, is_quoted ? CEL_TOK_QUOTED_IDENT : CEL_TOK_IDENT,
                          "the name of a field or method", err));
    if (p->token.kind != CEL_TOK_LPAREN || is_optional || is_quoted) {
        TRY(cel_node_make(p, request, node, err));
        (*node)->is_optional = is_optional;
        return RC_SUCCESS;
    }
    struct cel_node_list args = {0};
    struct cel_node call = {.position = request.position, .name = request.name, .is_member = true};
    cel_node_list_add(p, &args, *node, false);
    TRY(cel_parser_advance(p, err));
    TRY(parse_arguments(p, &args, err));
    return make_call(p, call, &args, node, err);
}

static struct rc parse_index(struct cel_parser *p, struct cel_node **node, struct err *err)
{
    uint32_t position = p->token.position;
    bool is_optional = false;
    struct cel_node *index = NULL;
    TRY(cel_parser_advance(p, err));
    TRY(parse_optional_mark(p, &is_optional, err));
    TRY(cel_parse_expression(p, &index, err));
    TRY(cel_parser_expect(p, CEL_TOK_RBRACKET, "']'", err));
    struct cel_node_request request = {.kind = CEL_INDEX,
                                       .position = position,
                                       .function = is_optional ? CEL_FN_OPT_INDEX : CEL_FN_INDEX,
                                       .name = is_optional ? STR("_[?_]") : STR("_[_]"),
                                       .args = {*node, index}};
    TRY(cel_node_make(p, request, node, err));
    (*node)->is_optional = is_optional;
    return RC_SUCCESS;
}

struct rc cel_parse_member(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
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

/* The postfix operators after a literal with its sign, such as -1. */
struct rc cel_parse_signed(struct cel_parser *p, struct cel_node **ret_node, struct err *err)
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
