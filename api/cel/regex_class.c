/* Character classes and escapes. Source: Go's regexp/syntax/parse.go. */
#include "regex.h"
#include "utf8.h"

#include "tallyman/base/limits.h"

#define CHARACTER_MAX 0x10ffffu

static struct rc fail(struct err *err, const char *what)
{
    return err_set(err, RC_INVALID, "the pattern isn't one: %s", what);
}

void cel_regex_set_add(struct arena *arena, struct cel_regex_set *set, uint32_t first,
                       uint32_t last)
{
    set->ranges = arena_grow(arena, set->ranges, set->count, &set->capacity, sizeof(*set->ranges));
    set->ranges[set->count++] = (struct cel_regex_range){first, last};
}

/* Adds everything but the ranges, which are in order. */
static void add_complement(struct arena *arena, struct cel_regex_set *set,
                           const struct cel_regex_range *ranges, uint32_t count)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (ranges[i].first > next) {
            cel_regex_set_add(arena, set, next, ranges[i].first - 1);
        }
        next = ranges[i].last + 1;
    }
    cel_regex_set_add(arena, set, next, CHARACTER_MAX);
}

static void add_ranges(struct arena *arena, struct cel_regex_set *set,
                       const struct cel_regex_range *ranges, uint32_t count, bool is_negated)
{
    if (is_negated) {
        add_complement(arena, set, ranges, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        cel_regex_set_add(arena, set, ranges[i].first, ranges[i].last);
    }
}

bool cel_regex_add_perl_class(struct arena *arena, struct cel_regex_set *set, char letter)
{
    static const struct cel_regex_range digits[] = {{'0', '9'}};
    static const struct cel_regex_range spaces[] = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
    static const struct cel_regex_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    bool is_negated = letter >= 'A' && letter <= 'Z';
    switch (letter | 0x20) {
    case 'd':
        add_ranges(arena, set, digits, ARRAY_COUNT(digits), is_negated);
        return true;
    case 's':
        add_ranges(arena, set, spaces, ARRAY_COUNT(spaces), is_negated);
        return true;
    case 'w':
        add_ranges(arena, set, words, ARRAY_COUNT(words), is_negated);
        return true;
    default:
        return false;
    }
}

struct named_class {
    struct str name;
    struct cel_regex_range ranges[4];
    uint32_t count;
};

static const struct named_class *find_class(struct str name)
{
    static const struct named_class classes[] = {
        {STR_INIT("alnum"), {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
        {STR_INIT("alpha"), {{'A', 'Z'}, {'a', 'z'}}, 2},
        {STR_INIT("ascii"), {{0, 0x7f}}, 1},
        {STR_INIT("blank"), {{'\t', '\t'}, {' ', ' '}}, 2},
        {STR_INIT("cntrl"), {{0, 0x1f}, {0x7f, 0x7f}}, 2},
        {STR_INIT("digit"), {{'0', '9'}}, 1},
        {STR_INIT("graph"), {{'!', '~'}}, 1},
        {STR_INIT("lower"), {{'a', 'z'}}, 1},
        {STR_INIT("print"), {{' ', '~'}}, 1},
        {STR_INIT("punct"), {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, 4},
        {STR_INIT("space"), {{'\t', '\r'}, {' ', ' '}}, 2},
        {STR_INIT("upper"), {{'A', 'Z'}}, 1},
        {STR_INIT("word"), {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
        {STR_INIT("xdigit"), {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
    };
    for (size_t i = 0; i < ARRAY_COUNT(classes); i++) {
        if (str_eq(classes[i].name, name)) {
            return &classes[i];
        }
    }
    return NULL;
}

static char byte_at(const struct cel_regex_source *s, size_t ahead)
{
    size_t at = s->at + ahead;
    return at < s->pattern.len ? s->pattern.ptr[at] : '\0';
}

/* "[:alpha:]" at source->at; *ret_taken is false if it isn't one. */
static struct rc read_named(struct cel_regex_source *s, struct cel_regex_set *set, bool *ret_taken,
                            struct err *err)
{
    struct str rest = str_skip(s->pattern, s->at + 2);
    size_t end = str_find(rest, STR(":]"));
    *ret_taken = false;
    if (byte_at(s, 0) != '[' || byte_at(s, 1) != ':' || end >= rest.len) {
        return RC_SUCCESS;
    }
    struct str name = str_take(rest, end);
    bool is_negated = str_starts_with(name, STR("^"));
    const struct named_class *class = find_class(str_skip(name, is_negated ? 1 : 0));
    if (class == NULL) {
        return fail(err, "an unknown class in [: and :]");
    }
    add_ranges(s->arena, set, class->ranges, class->count, is_negated);
    s->at += end + 4;
    *ret_taken = true;
    return RC_SUCCESS;
}

static int digit_value(char c, int base)
{
    int value = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 99;
    return value < base ? value : -1;
}

static struct rc read_hex(struct cel_regex_source *s, uint32_t *ret_char, struct err *err)
{
    bool is_braced = byte_at(s, 0) == '{';
    uint32_t value = 0;
    uint32_t count = 0;
    s->at += is_braced ? 1 : 0;
    while (digit_value(byte_at(s, 0), 16) >= 0 && (is_braced || count < 2)) {
        value = value * 16 + (uint32_t)digit_value(byte_at(s, 0), 16);
        count++;
        s->at++;
        if (value > CHARACTER_MAX) {
            return fail(err, "a character beyond U+10FFFF");
        }
    }
    if (count == 0 || (!is_braced && count != 2) || (is_braced && byte_at(s, 0) != '}')) {
        return fail(err, "\\x takes two digits, or any number in braces");
    }
    s->at += is_braced ? 1 : 0;
    *ret_char = value;
    return RC_SUCCESS;
}

static bool read_octal(struct cel_regex_source *s, uint32_t *ret_char)
{
    char first = byte_at(s, 0);
    if (first < '0' || first > '7' || (first != '0' && digit_value(byte_at(s, 1), 8) < 0)) {
        return false;
    }
    *ret_char = 0;
    for (int i = 0; i < 3 && digit_value(byte_at(s, 0), 8) >= 0; i++) {
        *ret_char = *ret_char * 8 + (uint32_t)digit_value(byte_at(s, 0), 8);
        s->at++;
    }
    return true;
}

static bool is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

struct rc cel_regex_read_escape(struct cel_regex_source *s, uint32_t *ret_char, struct err *err)
{
    static const char pairs[] = "a\af\fn\nr\rt\tv\v";
    s->at++;
    char c = byte_at(s, 0);
    if (s->at >= s->pattern.len) {
        return fail(err, "it ends in a backslash");
    }
    if (read_octal(s, ret_char)) {
        return RC_SUCCESS;
    }
    if ((unsigned char)c < 0x80 && !is_alphanumeric(c)) {
        *ret_char = (unsigned char)c;
        s->at++;
        return RC_SUCCESS;
    }
    s->at++;
    if (c == 'x') {
        return read_hex(s, ret_char, err);
    }
    for (size_t i = 0; pairs[i] != '\0'; i += 2) {
        if (pairs[i] == c) {
            *ret_char = (unsigned char)pairs[i + 1];
            return RC_SUCCESS;
        }
    }
    return fail(err, c == 'p' || c == 'P' ? "\\p{…} is not supported" : "an unknown escape");
}

static struct rc read_class_char(struct cel_regex_source *s, uint32_t *ret_char, struct err *err)
{
    size_t bytes = 0;
    if (s->at >= s->pattern.len) {
        return fail(err, "'[' has no ']'");
    }
    if (byte_at(s, 0) == '\\') {
        return cel_regex_read_escape(s, ret_char, err);
    }
    *ret_char = utf8_decode(str_skip(s->pattern, s->at), &bytes);
    s->at += bytes;
    return RC_SUCCESS;
}

static struct rc read_range(struct cel_regex_source *s, struct cel_regex_set *set, struct err *err)
{
    uint32_t first = 0;
    TRY(read_class_char(s, &first, err));
    uint32_t last = first;
    if (byte_at(s, 0) == '-' && s->at + 1 < s->pattern.len && byte_at(s, 1) != ']') {
        s->at++;
        TRY(read_class_char(s, &last, err));
    }
    if (last < first) {
        return fail(err, "a range whose end comes before its start");
    }
    cel_regex_set_add(s->arena, set, first, last);
    return RC_SUCCESS;
}

struct rc cel_regex_read_class(struct cel_regex_source *s, struct cel_regex_set *ret_set,
                               struct err *err)
{
    struct cel_regex_set set = {.is_negated = byte_at(s, 0) == '^'};
    s->at += set.is_negated ? 1 : 0;
    for (bool is_first = true; is_first || byte_at(s, 0) != ']'; is_first = false) {
        bool is_named = false;
        if (s->at >= s->pattern.len) {
            return fail(err, "'[' has no ']'");
        }
        TRY(read_named(s, &set, &is_named, err));
        if (is_named) {
            continue;
        }
        if (byte_at(s, 0) == '\\' && s->at + 1 < s->pattern.len &&
            cel_regex_add_perl_class(s->arena, &set, byte_at(s, 1))) {
            s->at += 2;
            continue;
        }
        TRY(read_range(s, &set, err));
    }
    s->at++;
    TRY(cel_regex_fold(s, &set, err));
    *ret_set = set;
    return RC_SUCCESS;
}

/* The part of the range that lies in [low, high], shifted. */
static void fold_part(struct arena *arena, struct cel_regex_set *set, struct cel_regex_range range,
                      uint32_t low, uint32_t high, int32_t shift)
{
    uint32_t first = range.first > low ? range.first : low;
    uint32_t last = range.last < high ? range.last : high;
    if (first <= last) {
        cel_regex_set_add(arena, set, (uint32_t)((int32_t)first + shift),
                          (uint32_t)((int32_t)last + shift));
    }
}

static bool has(struct cel_regex_range range, uint32_t character)
{
    return range.first <= character && character <= range.last;
}

struct rc cel_regex_fold(struct cel_regex_source *s, struct cel_regex_set *set, struct err *err)
{
    /* The Kelvin sign and the long s. */
    static const uint32_t signs[][2] = {{0x212a, 'k'}, {0x17f, 's'}};
    uint32_t count = set->count;
    if (!s->is_caseless) {
        return RC_SUCCESS;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct cel_regex_range range = set->ranges[i];
        bool is_sign =
            range.first == range.last && (range.first == signs[0][0] || range.first == signs[1][0]);
        if (range.last >= 0x80 && range.last < CHARACTER_MAX && !is_sign) {
            return fail(err, "(?i) is not supported beyond ASCII");
        }
        fold_part(s->arena, set, range, 'a', 'z', 'A' - 'a');
        fold_part(s->arena, set, range, 'A', 'Z', 'a' - 'A');
        for (size_t k = 0; k < ARRAY_COUNT(signs); k++) {
            uint32_t small = signs[k][1];
            uint32_t capital = small - ('a' - 'A');
            if (has(range, small) || has(range, capital) || has(range, signs[k][0])) {
                cel_regex_set_add(s->arena, set, signs[k][0], signs[k][0]);
                cel_regex_set_add(s->arena, set, small, small);
                cel_regex_set_add(s->arena, set, capital, capital);
            }
        }
    }
    return RC_SUCCESS;
}
