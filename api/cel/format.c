/* string.format(). Source: cel-go ext/formatting.go, locale en_US. */
#include "format.h"

#include <stdio.h>
#include <string.h>

#include "tallyman/base/limits.h"
#include "utf8.h"

#define DEFAULT_PRECISION 6
#define DIGITS_MAX        80

enum cel_clause_state cel_clause_next(struct str *rest, struct cel_clause *ret_clause)
{
    size_t at = str_find_char(*rest, '%');
    struct cel_clause clause = {.precision = -1, .text = str_take(*rest, at)};
    struct str tail = str_skip(*rest, at + 1);
    if (at >= rest->len) {
        *ret_clause = clause;
        *rest = str_skip(*rest, rest->len);
        return CEL_CLAUSE_END;
    }
    if (str_starts_with(tail, STR("."))) {
        size_t digits = 1;
        int precision = 0;
        while (digits < tail.len && tail.ptr[digits] >= '0' && tail.ptr[digits] <= '9') {
            precision = precision > CEL_FORMAT_PRECISION_MAX
                            ? precision
                            : precision * 10 + (tail.ptr[digits] - '0');
            digits++;
        }
        if (digits == 1) {
            return CEL_CLAUSE_BAD;
        }
        clause.precision = precision;
        tail = str_skip(tail, digits);
    }
    if (tail.len == 0 || strchr("sdfebxXo%", tail.ptr[0]) == NULL ||
        (tail.ptr[0] == '%' && clause.precision >= 0)) {
        return CEL_CLAUSE_BAD;
    }
    clause.verb = tail.ptr[0];
    *ret_clause = clause;
    *rest = str_skip(tail, 1);
    return CEL_CLAUSE_FOUND;
}

bool cel_clause_takes(char verb, enum cel_type_kind kind)
{
    bool is_whole = kind == CEL_T_INT || kind == CEL_T_UINT;
    if (kind == CEL_T_DYN) {
        return true;
    }
    switch (verb) {
    case 'd':
    case 'o':
        return is_whole;
    case 'b':
        return is_whole || kind == CEL_T_BOOL;
    case 'x':
    case 'X':
        return is_whole || kind == CEL_T_STRING || kind == CEL_T_BYTES;
    case 'f':
    case 'e':
        return kind == CEL_T_DOUBLE || kind == CEL_T_STRING;
    default:
        return kind != CEL_T_OPTIONAL && kind != CEL_T_QUANTITY && kind != CEL_T_SEMVER &&
               kind != CEL_T_DEVICE;
    }
}

static bool add_value(struct cel_text *text, struct cel_value value, bool is_inside,
                      uint32_t depth);

static bool add_list(struct cel_text *text, const struct cel_list *list, uint32_t depth)
{
    cel_text_add(text, STR("["));
    for (uint32_t i = 0; i < list->count; i++) {
        cel_text_add(text, i > 0 ? STR(", ") : STR(""));
        if (!add_value(text, list->items[i], true, depth)) {
            return false;
        }
    }
    cel_text_add(text, STR("]"));
    return true;
}

struct pair {
    struct str key;
    struct str value;
};

static bool is_key(enum cel_kind kind)
{
    return kind == CEL_STRING || kind == CEL_BOOL || kind == CEL_INT || kind == CEL_UINT;
}

/* The entry as text, put where its key's text belongs among the `count` before it. */
static bool place_pair(struct cel_eval *ev, struct pair *pairs, uint32_t count,
                       struct cel_entry entry, uint32_t depth)
{
    struct cel_text key = {.ev = ev};
    struct cel_text value = {.ev = ev};
    if (!is_key(entry.key.kind) || !add_value(&key, entry.key, true, depth) ||
        !add_value(&value, entry.value, true, depth)) {
        return false;
    }
    struct pair pair = {cel_text_str(&key), cel_text_str(&value)};
    uint32_t place = count;
    for (; place > 0 && str_compare(pairs[place - 1].key, pair.key) > 0; place--) {
        pairs[place] = pairs[place - 1];
    }
    pairs[place] = pair;
    return true;
}

static bool add_map(struct cel_text *text, const struct cel_map *map, uint32_t depth)
{
    struct cel_eval *ev = text->ev;
    const struct cel_map *entries = cel_map_entries(ev, map);
    struct pair *pairs = entries == NULL ? NULL : cel_alloc(ev, entries->count, sizeof(*pairs));
    if (pairs == NULL || !cel_work(ev, (uint64_t)entries->count * entries->count / 4)) {
        return false;
    }
    for (uint32_t i = 0; i < entries->count; i++) {
        if (!place_pair(ev, pairs, i, entries->buffer->entries[i], depth)) {
            return false;
        }
    }
    cel_text_add(text, STR("{"));
    for (uint32_t i = 0; i < entries->count; i++) {
        cel_text_add(text, i > 0 ? STR(", ") : STR(""));
        cel_text_add(text, pairs[i].key);
        cel_text_add(text, STR(":"));
        cel_text_add(text, pairs[i].value);
    }
    cel_text_add(text, STR("}"));
    return true;
}

/* As Go's %q. What is printable is decided by a short rule, not by Unicode's tables. */
static void add_quoted(struct cel_text *text, struct str s)
{
    static const char escapes[] = "\aa\bb\ff\nn\rr\tt\vv\\\\\"\"";
    char code[DIGITS_MAX];
    uint32_t c = 0;
    size_t bytes = 0;
    cel_text_add(text, STR("\""));
    for (size_t i = 0; i < s.len; i += bytes) {
        bool is_sound = utf8_decode_sound(str_skip(s, i), &c, &bytes);
        const char *escape = c < 0x80 && c != 0 ? strchr(escapes, (int)c) : NULL;
        bool is_escape = escape != NULL && (escape - escapes) % 2 == 0;
        if (!is_sound) {
            (void)snprintf(code, sizeof(code), "\\x%02x", (unsigned char)s.ptr[i]);
            cel_text_add(text, str_from_c(code));
        } else if (is_escape) {
            cel_text_add_char(text, '\\');
            cel_text_add_char(text, (uint32_t)escape[1]);
        } else if (c < 0x20 || c == 0x7f) {
            (void)snprintf(code, sizeof(code), "\\x%02x", c);
            cel_text_add(text, str_from_c(code));
        } else if ((c >= 0x80 && c < 0xa1) || c == 0xad) {
            (void)snprintf(code, sizeof(code), "\\u%04x", c);
            cel_text_add(text, str_from_c(code));
        } else {
            cel_text_add_char(text, c);
        }
    }
    cel_text_add(text, STR("\""));
}

/* In a list or map, text is quoted and times are written as calls. */
static bool add_inside(struct cel_text *text, struct cel_value value, struct str plain)
{
    switch ((int)value.kind) {
    case CEL_STRING:
        add_quoted(text, plain);
        return true;
    case CEL_BYTES:
        cel_text_add(text, STR("b"));
        add_quoted(text, plain);
        return true;
    case CEL_DURATION:
    case CEL_TIMESTAMP:
        cel_text_add(text, value.kind == CEL_DURATION ? STR("duration(") : STR("timestamp("));
        add_quoted(text, plain);
        cel_text_add(text, STR(")"));
        return true;
    case CEL_DOUBLE:
        if (__builtin_isinf(value.real) || __builtin_isnan(value.real)) {
            add_quoted(text, plain);
        } else {
            cel_text_add(text, cel_double_text(text->ev, value.real, 'f', DEFAULT_PRECISION));
        }
        return true;
    default:
        cel_text_add(text, plain);
        return true;
    }
}

static bool add_value(struct cel_text *text, struct cel_value value, bool is_inside, uint32_t depth)
{
    struct str plain;
    if (depth > CEL_VALUE_DEPTH_MAX || !cel_work(text->ev, 1)) {
        (void)cel_stop(text->ev, RC_LIMIT, "formatting takes too long");
        return false;
    }
    switch ((int)value.kind) {
    case CEL_LIST:
        return add_list(text, value.list, depth + 1);
    case CEL_MAP:
        return add_map(text, value.map, depth + 1);
    case CEL_NULL:
        cel_text_add(text, STR("null"));
        return true;
    case CEL_TYPE:
        cel_text_add(text, value.text);
        return true;
    default:
        if (!cel_text_of(text->ev, value, &plain)) {
            return false;
        }
        if (is_inside) {
            return add_inside(text, value, plain);
        }
        cel_text_add(text, plain);
        return true;
    }
}

static void add_digits(struct cel_text *text, uint64_t value, uint32_t base, bool is_upper)
{
    char digits[DIGITS_MAX];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (is_upper ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
        value /= base;
    } while (value > 0);
    cel_text_add(text, (struct str){digits + at, sizeof(digits) - at});
}

static bool add_whole(struct cel_text *text, struct cel_value value, uint32_t base, bool is_upper)
{
    if (value.kind == CEL_UINT) {
        add_digits(text, value.uinteger, base, is_upper);
        return true;
    }
    if (value.kind != CEL_INT) {
        return false;
    }
    if (value.integer < 0) {
        cel_text_add(text, STR("-"));
    }
    add_digits(text, value.integer < 0 ? 0 - (uint64_t)value.integer : value.uinteger, base,
               is_upper);
    return true;
}

static bool add_hex(struct cel_text *text, struct cel_value value, bool is_upper)
{
    if (value.kind != CEL_STRING && value.kind != CEL_BYTES) {
        return add_whole(text, value, 16, is_upper);
    }
    for (size_t i = 0; i < value.text.len; i++) {
        unsigned char c = (unsigned char)value.text.ptr[i];
        add_digits(text, c >> 4, 16, is_upper);
        add_digits(text, c & 0xfu, 16, is_upper);
    }
    return true;
}

/* "1,234.500000": a comma before every third digit from the point. */
static void add_grouped(struct cel_text *text, struct str digits)
{
    size_t start = str_starts_with(digits, STR("-")) ? 1 : 0;
    size_t point = str_find_char(digits, '.');
    cel_text_add(text, str_take(digits, start));
    for (size_t i = start; i < point; i++) {
        if (i > start && (point - i) % 3 == 0) {
            cel_text_add(text, STR(","));
        }
        cel_text_add(text, str_take(str_skip(digits, i), 1));
    }
    cel_text_add(text, str_skip(digits, point));
}

/* "1.500000x10^03" in the signs that Go's x/text writes. */
static void add_scientific(struct cel_text *text, struct str digits)
{
    static const char *const raised[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                         "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
    size_t exponent = str_find_char(digits, 'e');
    cel_text_add(text, str_take(digits, exponent));
    cel_text_add(text, STR("\u00d7"
                           "10"));
    for (size_t i = exponent + 1; i < digits.len; i++) {
        char c = digits.ptr[i];
        if (c == '-') {
            cel_text_add(text, STR("\u207b"));
        } else if (c != '+') {
            cel_text_add(text, str_from_c(raised[c - '0']));
        }
    }
}

static void add_number(struct cel_text *text, double value, const struct cel_clause *clause)
{
    bool is_scientific = clause->verb == 'e';
    int precision = clause->precision < 0 || is_scientific ? DEFAULT_PRECISION : clause->precision;
    if (__builtin_isinf(value)) {
        cel_text_add(text, value < 0 ? STR("-\u221e") : STR("\u221e"));
        return;
    }
    /* A zero has no sign here. */
    struct str digits = cel_double_text(text->ev, value == 0 ? 0 : value, clause->verb, precision);
    if (__builtin_isnan(value)) {
        cel_text_add(text, digits);
    } else if (is_scientific) {
        add_scientific(text, digits);
    } else {
        add_grouped(text, digits);
    }
}

/* In cel-go, the precision of %e is in truth its width. */
static void add_padded(struct cel_text *text, double value, const struct cel_clause *clause)
{
    struct cel_text number = {.ev = text->ev};
    add_number(&number, value, clause);
    struct str digits = cel_text_str(&number);
    int width = clause->precision < 0 ? DEFAULT_PRECISION : clause->precision;
    for (int length = (int)utf8_count(digits); clause->verb == 'e' && length < width; length++) {
        cel_text_add(text, STR(" "));
    }
    cel_text_add(text, digits);
}

static bool add_real(struct cel_text *text, struct cel_value value, const struct cel_clause *clause)
{
    static const struct {
        struct str word;
        double value;
    } words[] = {{STR_INIT("NaN"), __builtin_nan("")},
                 {STR_INIT("Infinity"), __builtin_inf()},
                 {STR_INIT("-Infinity"), -__builtin_inf()}};
    for (size_t i = 0; value.kind == CEL_STRING && i < ARRAY_COUNT(words); i++) {
        if (str_eq(words[i].word, value.text)) {
            value = cel_double(words[i].value);
        }
    }
    if (value.kind != CEL_DOUBLE) {
        return false;
    }
    add_padded(text, value.real, clause);
    return true;
}

static bool add_clause(struct cel_text *text, struct cel_value value,
                       const struct cel_clause *clause)
{
    switch (clause->verb) {
    case 'd':
        return add_whole(text, value, 10, false);
    case 'o':
        return add_whole(text, value, 8, false);
    case 'b':
        value = value.kind == CEL_BOOL ? cel_int(value.boolean ? 1 : 0) : value;
        return add_whole(text, value, 2, false);
    case 'x':
    case 'X':
        return add_hex(text, value, clause->verb == 'X');
    case 'f':
    case 'e':
        return add_real(text, value, clause);
    default:
        return add_value(text, value, false, 0);
    }
}

struct cel_value cel_format(struct cel_eval *ev, UNUSED const struct cel_node *node,
                            const struct cel_value *args, UNUSED uint32_t count)
{
    struct cel_text text = {.ev = ev};
    if (args[0].kind != CEL_STRING || args[1].kind != CEL_LIST) {
        return cel_no_overload(ev);
    }
    struct str rest = args[0].text;
    const struct cel_list *list = args[1].list;
    uint32_t next = 0;
    struct cel_clause clause;
    enum cel_clause_state state = cel_clause_next(&rest, &clause);
    for (; state == CEL_CLAUSE_FOUND; state = cel_clause_next(&rest, &clause)) {
        cel_text_add(&text, clause.text);
        if (clause.verb == '%') {
            cel_text_add(&text, STR("%"));
            continue;
        }
        if (clause.precision > CEL_FORMAT_PRECISION_MAX) {
            return cel_stop(ev, RC_LIMIT, "a format's precision is too large");
        }
        if (next >= list->count || !add_clause(&text, list->items[next++], &clause)) {
            return ev->stop == RC_OK
                       ? cel_fault(ev, "format() has too few arguments or one of a wrong type",
                                   STR_NONE)
                       : cel_stop(ev, RC_LIMIT, NULL);
        }
    }
    if (state == CEL_CLAUSE_BAD) {
        return cel_fault(ev, "format() can't read its format", STR_NONE);
    }
    cel_text_add(&text, clause.text);
    return ev->stop == RC_OK ? cel_string(cel_text_str(&text)) : cel_stop(ev, RC_LIMIT, NULL);
}
