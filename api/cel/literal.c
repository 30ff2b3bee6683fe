/* Strings and bytes as written: quotes, triple quotes, raw ones, escapes. */
#include "lexer.h"
#include "utf8.h"

static struct rc fail(const struct cel_lexer *lexer, size_t at, struct err *err, const char *what)
{
    return err_set(err, RC_INVALID, "%.*s: %s",
                   STR_ARG(cel_position_text(lexer->arena, lexer->source, (uint32_t)at)), what);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The value of `count` digits, or -1. */
static int64_t digits_value(struct str text, size_t at, size_t count, int base)
{
    int64_t value = 0;
    if (at + count > text.len) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        int digit = hex_digit(text.ptr[at + i]);
        if (digit < 0 || digit >= base) {
            return -1;
        }
        value = value * base + digit;
    }
    return value;
}

static char simple_escape(char c)
{
    static const char pairs[] = "a\ab\bf\fn\nr\rt\tv\v\"\"''\\\\??``";
    for (size_t i = 0; pairs[i] != '\0'; i += 2) {
        if (pairs[i] == c) {
            return pairs[i + 1];
        }
    }
    return '\0';
}

/* How the digits of an escape are written; count 0: it is none. */
struct numeric_escape {
    size_t skip; /* what stands before the digits */
    size_t count;
    int base;
};

static struct numeric_escape numeric_escape(char c, bool is_bytes)
{
    struct numeric_escape escape = {.skip = 2, .base = 16};
    if (c == 'x' || c == 'X') {
        escape.count = 2;
    } else if (c == 'u' && !is_bytes) {
        escape.count = 4;
    } else if (c == 'U' && !is_bytes) {
        escape.count = 8;
    } else if (c >= '0' && c <= '3') {
        escape = (struct numeric_escape){.skip = 1, .count = 3, .base = 8};
    }
    return escape;
}

static bool is_character(int64_t value)
{
    return value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
}

/* Reads the escape whose backslash is at *at; -1: not one. *ret_is_byte: one byte, not a character.
 */
static int64_t read_escape(struct str text, size_t *at, bool is_bytes, bool *ret_is_byte)
{
    *ret_is_byte = false;
    char c = *at + 1 < text.len ? text.ptr[*at + 1] : '\0';
    char simple = c == '\0' ? '\0' : simple_escape(c);
    if (simple != '\0') {
        *at += 2;
        return (unsigned char)simple;
    }
    struct numeric_escape escape = numeric_escape(c, is_bytes);
    int64_t value = digits_value(text, *at + escape.skip, escape.count, escape.base);
    if (escape.count == 0 || value < 0 || (!is_bytes && !is_character(value))) {
        return -1;
    }
    *ret_is_byte = is_bytes;
    *at += escape.skip + escape.count;
    return value;
}

/* Where the literal's body ends; source.len if nowhere. */
static size_t find_end(struct str source, size_t at, char quote, bool is_triple, bool is_raw)
{
    while (at < source.len) {
        char c = source.ptr[at];
        if (c == '\\' && !is_raw) {
            at += 2;
            continue;
        }
        if (c == quote && (!is_triple || (at + 2 < source.len && source.ptr[at + 1] == quote &&
                                          source.ptr[at + 2] == quote))) {
            return at;
        }
        if (!is_triple && (c == '\n' || c == '\r')) {
            return source.len;
        }
        at++;
    }
    return source.len;
}

static struct rc unescape(struct cel_lexer *lexer, struct str body, bool is_bytes, bool is_raw,
                          struct str *ret_value, struct err *err)
{
    char *out = arena_alloc(lexer->arena, body.len + 1);
    size_t length = 0;
    for (size_t i = 0; i < body.len;) {
        if (body.ptr[i] == '\r') {
            i += i + 1 < body.len && body.ptr[i + 1] == '\n' ? 2 : 1;
            out[length++] = '\n';
            continue;
        }
        if (body.ptr[i] != '\\' || is_raw) {
            out[length++] = body.ptr[i++];
            continue;
        }
        size_t start = (size_t)(body.ptr - lexer->source.ptr) + i;
        bool is_byte = false;
        int64_t value = read_escape(body, &i, is_bytes, &is_byte);
        if (value < 0) {
            return fail(lexer, start, err,
                        "unknown or broken escape in a string; \\\\ stands for a backslash");
        }
        if (is_byte) {
            out[length++] = (char)value;
        } else {
            length += utf8_encode((uint32_t)value, out + length);
        }
    }
    *ret_value = (struct str){out, length};
    return RC_SUCCESS;
}

struct rc cel_literal_read(struct cel_lexer *lexer, bool is_bytes, bool is_raw,
                           struct str *ret_value, struct err *err)
{
    struct str source = lexer->source;
    size_t start = lexer->at;
    char quote = source.ptr[start];
    bool is_triple =
        start + 2 < source.len && source.ptr[start + 1] == quote && source.ptr[start + 2] == quote;
    size_t quotes = is_triple ? 3 : 1;
    size_t end = find_end(source, start + quotes, quote, is_triple, is_raw);
    if (end >= source.len && is_triple) {
        /* "" followed by a quote: an empty string, and whatever comes then. */
        is_triple = false;
        quotes = 1;
        end = start + 1;
    }
    if (end >= source.len) {
        return fail(lexer, start, err, "this string has no closing quote");
    }
    struct str body = {source.ptr + start + quotes, end - start - quotes};
    TRY(unescape(lexer, body, is_bytes, is_raw, ret_value, err));
    lexer->at = end + quotes;
    return RC_SUCCESS;
}
