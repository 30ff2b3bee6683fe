#include "lexer.h"

#include "utf8.h"

struct str cel_position_text(struct arena *arena, struct str source, uint32_t position)
{
    uint32_t line = 1;
    uint32_t column = 1;
    for (size_t i = 0; i < position && i < source.len; i++) {
        unsigned char c = (unsigned char)source.ptr[i];
        if (c == '\n') {
            line++;
            column = 1;
        } else if ((c & 0xc0u) != 0x80u) {
            column++;
        }
    }
    return arena_format(arena, "%u:%u", line, column);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static char peek(const struct cel_lexer *lexer, size_t ahead)
{
    size_t at = lexer->at + ahead;
    return at < lexer->source.len ? lexer->source.ptr[at] : '\0';
}

static void skip_blanks(struct cel_lexer *lexer)
{
    while (lexer->at < lexer->source.len) {
        char c = peek(lexer, 0);
        if (c == '/' && peek(lexer, 1) == '/') {
            while (lexer->at < lexer->source.len && peek(lexer, 0) != '\n') {
                lexer->at++;
            }
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
            lexer->at++;
        } else {
            return;
        }
    }
}

static void skip_digits(struct cel_lexer *lexer)
{
    while (is_digit(peek(lexer, 0))) {
        lexer->at++;
    }
}

static bool skip_exponent(struct cel_lexer *lexer)
{
    size_t ahead = 1;
    if (peek(lexer, 0) != 'e' && peek(lexer, 0) != 'E') {
        return false;
    }
    if (peek(lexer, 1) == '+' || peek(lexer, 1) == '-') {
        ahead = 2;
    }
    if (!is_digit(peek(lexer, ahead))) {
        return false;
    }
    lexer->at += ahead;
    skip_digits(lexer);
    return true;
}

static enum cel_token_kind read_number(struct cel_lexer *lexer)
{
    enum cel_token_kind kind = CEL_TOK_INT;
    if (peek(lexer, 0) == '0' && peek(lexer, 1) == 'x' && is_hex(peek(lexer, 2))) {
        lexer->at += 2;
        while (is_hex(peek(lexer, 0))) {
            lexer->at++;
        }
    } else {
        skip_digits(lexer);
        if (peek(lexer, 0) == '.' && is_digit(peek(lexer, 1))) {
            lexer->at++;
            skip_digits(lexer);
            kind = CEL_TOK_DOUBLE;
        }
        if (skip_exponent(lexer)) {
            kind = CEL_TOK_DOUBLE;
        }
    }
    if (kind == CEL_TOK_INT && (peek(lexer, 0) == 'u' || peek(lexer, 0) == 'U')) {
        lexer->at++;
        kind = CEL_TOK_UINT;
    }
    return kind;
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'';
}

/* How many of the letters before a quote belong to the literal: b, r or br. */
static size_t literal_prefix(const struct cel_lexer *lexer, bool *ret_bytes, bool *ret_raw)
{
    size_t n = 0;
    *ret_bytes = false;
    *ret_raw = false;
    if (peek(lexer, n) == 'b' || peek(lexer, n) == 'B') {
        *ret_bytes = true;
        n++;
    }
    if (peek(lexer, n) == 'r' || peek(lexer, n) == 'R') {
        *ret_raw = true;
        n++;
    }
    return n;
}

static enum cel_token_kind word_kind(struct str text)
{
    static const struct {
        struct str word;
        enum cel_token_kind kind;
    } words[] = {
        {STR_INIT("true"), CEL_TOK_TRUE},
        {STR_INIT("false"), CEL_TOK_FALSE},
        {STR_INIT("null"), CEL_TOK_NULL},
        {STR_INIT("in"), CEL_TOK_IN},
    };
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (str_eq(words[i].word, text)) {
            return words[i].kind;
        }
    }
    return CEL_TOK_IDENT;
}

static bool read_operator(struct cel_lexer *lexer, enum cel_token_kind *ret_kind)
{
    static const struct {
        char text[3];
        enum cel_token_kind kind;
    } operators[] = {
        {"==", CEL_TOK_EQUAL},         {"!=", CEL_TOK_NOT_EQUAL}, {"<=", CEL_TOK_LESS_EQUAL},
        {">=", CEL_TOK_GREATER_EQUAL}, {"&&", CEL_TOK_AND},       {"||", CEL_TOK_OR},
        {"<", CEL_TOK_LESS},           {">", CEL_TOK_GREATER},    {"[", CEL_TOK_LBRACKET},
        {"]", CEL_TOK_RBRACKET},       {"{", CEL_TOK_LBRACE},     {"}", CEL_TOK_RBRACE},
        {"(", CEL_TOK_LPAREN},         {")", CEL_TOK_RPAREN},     {".", CEL_TOK_DOT},
        {",", CEL_TOK_COMMA},          {"-", CEL_TOK_MINUS},      {"!", CEL_TOK_NOT},
        {"?", CEL_TOK_QUESTION},       {":", CEL_TOK_COLON},      {"+", CEL_TOK_PLUS},
        {"*", CEL_TOK_STAR},           {"/", CEL_TOK_SLASH},      {"%", CEL_TOK_PERCENT},
    };
    for (size_t i = 0; i < ARRAY_COUNT(operators); i++) {
        const char *text = operators[i].text;
        if (peek(lexer, 0) == text[0] && (text[1] == '\0' || peek(lexer, 1) == text[1])) {
            lexer->at += text[1] == '\0' ? 1 : 2;
            *ret_kind = operators[i].kind;
            return true;
        }
    }
    return false;
}

/* `a-b`: *ret_text is what stands between the quotes; false: not one. */
static bool read_quoted_ident(struct cel_lexer *lexer, struct str *ret_text)
{
    size_t ahead = 1;
    char c = peek(lexer, ahead);
    while (is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '/' || c == ' ') {
        c = peek(lexer, ++ahead);
    }
    if (c != '`' || ahead == 1) {
        return false;
    }
    *ret_text = (struct str){lexer->source.ptr + lexer->at + 1, ahead - 1};
    lexer->at += ahead + 1;
    return true;
}

/* Strings, bytes and quoted names; *ret_kind is CEL_TOK_END if none of them is here. */
static struct rc read_quoted(struct cel_lexer *lexer, enum cel_token_kind *ret_kind,
                             struct str *ret_text, struct err *err)
{
    bool is_bytes = false;
    bool is_raw = false;
    size_t prefix = literal_prefix(lexer, &is_bytes, &is_raw);
    *ret_kind = CEL_TOK_END;
    if (is_quote(peek(lexer, prefix))) {
        lexer->at += prefix;
        TRY(cel_literal_read(lexer, is_bytes, is_raw, ret_text, err));
        *ret_kind = is_bytes ? CEL_TOK_BYTES : CEL_TOK_STRING;
    } else if (peek(lexer, 0) == '`' && read_quoted_ident(lexer, ret_text)) {
        *ret_kind = CEL_TOK_QUOTED_IDENT;
    }
    return RC_SUCCESS;
}

static enum cel_token_kind read_word(struct cel_lexer *lexer)
{
    size_t start = lexer->at;
    while (is_letter(peek(lexer, 0)) || is_digit(peek(lexer, 0))) {
        lexer->at++;
    }
    return word_kind((struct str){lexer->source.ptr + start, lexer->at - start});
}

struct rc cel_lexer_next(struct cel_lexer *lexer, struct cel_token *ret_token, struct err *err)
{
    skip_blanks(lexer);
    size_t start = lexer->at;
    struct cel_token token = {.kind = CEL_TOK_END, .position = (uint32_t)start};
    char c = peek(lexer, 0);
    if (start >= lexer->source.len) {
        token.text = STR("the end");
        *ret_token = token;
        return RC_SUCCESS;
    }
    TRY(read_quoted(lexer, &token.kind, &token.text, err));
    if (token.kind != CEL_TOK_END) {
        *ret_token = token;
        return RC_SUCCESS;
    }
    if (is_letter(c)) {
        token.kind = read_word(lexer);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(lexer, 1)))) {
        token.kind = read_number(lexer);
    } else if (!read_operator(lexer, &token.kind)) {
        struct str rest = str_skip(lexer->source, start);
        return err_set(err, RC_INVALID, "%.*s: unexpected character '%.*s'",
                       STR_ARG(cel_position_text(lexer->arena, lexer->source, (uint32_t)start)),
                       (int)utf8_length(rest), rest.ptr);
    }
    token.text = (struct str){lexer->source.ptr + start, lexer->at - start};
    *ret_token = token;
    return RC_SUCCESS;
}
