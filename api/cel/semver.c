#include "semver.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_char(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

static bool is_number(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!is_digit(s.ptr[i])) {
            return false;
        }
    }
    return s.len > 0;
}

static bool parse_number(struct str s, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (!is_number(s) || (s.len > 1 && s.ptr[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.ptr[i] - '0'), &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

/* Cuts the text up to the next '.' off *rest; false: nothing is left. */
static bool next_part(struct str *rest, struct str *ret_part)
{
    if (!str_is_set(*rest)) {
        return false;
    }
    size_t dot = str_find_char(*rest, '.');
    *ret_part = str_take(*rest, dot);
    *rest = dot < rest->len ? str_skip(*rest, dot + 1) : STR_NONE;
    return true;
}

static bool are_parts_sound(struct str text, bool is_pre)
{
    struct str part;
    uint64_t number = 0;
    while (next_part(&text, &part)) {
        if (part.len == 0 || (is_pre && is_number(part) && !parse_number(part, &number))) {
            return false;
        }
        for (size_t i = 0; i < part.len; i++) {
            if (!is_word_char(part.ptr[i])) {
                return false;
            }
        }
    }
    return true;
}

bool cel_semver_parse(struct str text, struct cel_semver *ret_version)
{
    struct cel_semver version = {.pre = STR_NONE};
    size_t first = str_find_char(text, '.');
    struct str rest = str_skip(text, first + 1);
    size_t second = str_find_char(rest, '.');
    if (first >= text.len || second >= rest.len) {
        return false;
    }
    struct str patch = str_skip(rest, second + 1);
    size_t plus = str_find_char(patch, '+');
    if (plus < patch.len && !are_parts_sound(str_skip(patch, plus + 1), false)) {
        return false;
    }
    patch = str_take(patch, plus);
    size_t dash = str_find_char(patch, '-');
    if (dash < patch.len) {
        version.pre = str_skip(patch, dash + 1);
        if (!are_parts_sound(version.pre, true)) {
            return false;
        }
        patch = str_take(patch, dash);
    }
    if (!parse_number(str_take(text, first), &version.major) ||
        !parse_number(str_take(rest, second), &version.minor) ||
        !parse_number(patch, &version.patch)) {
        return false;
    }
    *ret_version = version;
    return true;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b ? 1 : 0;
}

/* Numbers come before words; numbers by value, words bytewise. */
static int compare_parts(struct str a, struct str b)
{
    uint64_t na = 0;
    uint64_t nb = 0;
    bool a_is_number = parse_number(a, &na);
    bool b_is_number = parse_number(b, &nb);
    if (a_is_number && b_is_number) {
        return compare_numbers(na, nb);
    }
    if (a_is_number != b_is_number) {
        return a_is_number ? -1 : 1;
    }
    return str_compare(a, b);
}

/* A version with a pre-release part comes before the same one without. */
static int compare_pre(struct str a, struct str b)
{
    if (!str_is_set(a) || !str_is_set(b)) {
        return str_is_set(b) ? 1 : str_is_set(a) ? -1 : 0;
    }
    for (;;) {
        struct str part_a;
        struct str part_b;
        bool has_a = next_part(&a, &part_a);
        bool has_b = next_part(&b, &part_b);
        if (!has_a || !has_b) {
            return has_a ? 1 : has_b ? -1 : 0;
        }
        int order = compare_parts(part_a, part_b);
        if (order != 0) {
            return order;
        }
    }
}

int cel_semver_compare(const struct cel_semver *a, const struct cel_semver *b)
{
    int order = compare_numbers(a->major, b->major);
    order = order != 0 ? order : compare_numbers(a->minor, b->minor);
    order = order != 0 ? order : compare_numbers(a->patch, b->patch);
    return order != 0 ? order : compare_pre(a->pre, b->pre);
}
