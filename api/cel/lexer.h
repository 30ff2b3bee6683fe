/* lexer.h - the expression as tokens, one at a time. Source: cel-go parser/gen/CEL.g4. */
#pragma once

#include "tallyman/base/arena.h"
#include "tallyman/base/err.h"

enum cel_token_kind {
    CEL_TOK_END,
    CEL_TOK_IDENT,
    CEL_TOK_QUOTED_IDENT, /* `a-b`, for a field only; text is without the quotes */
    CEL_TOK_INT,
    CEL_TOK_UINT,
    CEL_TOK_DOUBLE,
    CEL_TOK_STRING,
    CEL_TOK_BYTES,
    CEL_TOK_TRUE,
    CEL_TOK_FALSE,
    CEL_TOK_NULL,
    CEL_TOK_IN,
    CEL_TOK_EQUAL,
    CEL_TOK_NOT_EQUAL,
    CEL_TOK_LESS,
    CEL_TOK_LESS_EQUAL,
    CEL_TOK_GREATER,
    CEL_TOK_GREATER_EQUAL,
    CEL_TOK_AND,
    CEL_TOK_OR,
    CEL_TOK_LBRACKET,
    CEL_TOK_RBRACKET,
    CEL_TOK_LBRACE,
    CEL_TOK_RBRACE,
    CEL_TOK_LPAREN,
    CEL_TOK_RPAREN,
    CEL_TOK_DOT,
    CEL_TOK_COMMA,
    CEL_TOK_MINUS,
    CEL_TOK_NOT,
    CEL_TOK_QUESTION,
    CEL_TOK_COLON,
    CEL_TOK_PLUS,
    CEL_TOK_STAR,
    CEL_TOK_SLASH,
    CEL_TOK_PERCENT,
};

struct cel_token {
    enum cel_token_kind kind;
    uint32_t position; /* byte offset */
    struct str text;   /* as written; a string's or bytes' value, unescaped */
};

struct cel_lexer {
    struct arena *arena; /* borrowed; holds unescaped strings */
    struct str source;   /* borrowed */
    size_t at;
};

NODISCARD struct rc cel_lexer_next(struct cel_lexer *lexer, struct cel_token *ret_token,
                                   struct err *err);
/* "line:column" of a byte offset, both from 1, columns in characters; in the arena. */
struct str cel_position_text(struct arena *arena, struct str source, uint32_t position);
/* Reads the literal at `at` (a quote, or r, b and a quote), puts its value, unescaped, into the
 * arena. */
NODISCARD struct rc cel_literal_read(struct cel_lexer *lexer, bool is_bytes, bool is_raw,
                                     struct str *ret_value, struct err *err);
