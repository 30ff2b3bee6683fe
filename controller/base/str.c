#include "tallyman/base/str.h"

#include <string.h>

struct str str_from_c(const char *text)
{
    return text == NULL ? STR_NONE : (struct str){text, strlen(text)};
}

bool str_is_set(struct str s)
{
    return s.ptr != NULL;
}

bool str_is_empty(struct str s)
{
    return s.len == 0;
}

bool str_eq(struct str a, struct str b)
{
    /* memcmp() may not be given NULL, not even for no bytes at all. */
    return a.len == b.len && (a.len == 0 || a.ptr == b.ptr || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool str_eq_c(struct str a, const char *b)
{
    return str_eq(a, str_from_c(b));
}

int str_compare(struct str a, struct str b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common == 0 ? 0 : memcmp(a.ptr, b.ptr, common);

    if (order != 0) {
        return order;
    }
    return (a.len > b.len) - (a.len < b.len);
}

bool str_starts_with(struct str s, struct str prefix)
{
    return str_eq(str_take(s, prefix.len), prefix);
}

bool str_ends_with(struct str s, struct str suffix)
{
    return s.len >= suffix.len && str_eq(str_skip(s, s.len - suffix.len), suffix);
}

size_t str_find_char(struct str s, char c)
{
    const char *found = s.len == 0 ? NULL : memchr(s.ptr, c, s.len);

    return found == NULL ? s.len : (size_t)(found - s.ptr);
}

size_t str_find(struct str s, struct str part)
{
    size_t at = 0;

    if (part.len == 0) {
        return 0;
    }
    while (part.len <= s.len - at) {
        at += str_find_char(str_skip(s, at), part.ptr[0]);
        if (str_starts_with(str_skip(s, at), part)) {
            return at;
        }
        at += at < s.len;
    }
    return s.len;
}

struct str str_skip(struct str s, size_t n)
{
    size_t cut = n < s.len ? n : s.len;

    /* NULL + 0 is undefined in C. */
    return s.ptr == NULL ? STR_NONE : (struct str){s.ptr + cut, s.len - cut};
}

struct str str_take(struct str s, size_t n)
{
    return (struct str){s.ptr, n < s.len ? n : s.len};
}

/* Bytes that a UTF-8 character has by its first byte; 1 for what can't be a first byte. */
static size_t utf8_char_bytes(unsigned char first)
{
    if (first >= 0xc2 && first <= 0xdf) {
        return 2;
    }
    if (first >= 0xe0 && first <= 0xef) {
        return 3;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        return 4;
    }
    return 1;
}

struct str str_cut_utf8(struct str s, size_t max_bytes)
{
    struct str cut = str_take(s, max_bytes);

    /* A first byte stands at most three bytes before the end of an unfinished character. */
    for (size_t back = 1; back <= 3 && back <= cut.len; back++) {
        unsigned char c = (unsigned char)cut.ptr[cut.len - back];

        if ((c & 0xc0) != 0x80) {
            return utf8_char_bytes(c) > back ? str_take(cut, cut.len - back) : cut;
        }
    }
    return cut;
}

/* Appends the bits of `count` continuation bytes to `*c`; false if they aren't there. */
static bool add_continuation(struct str bytes, size_t count, uint32_t *c)
{
    if (bytes.len < count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned char next = (unsigned char)bytes.ptr[i];

        if ((next & 0xc0) != 0x80) {
            return false;
        }
        *c = (*c << 6) | (next & 0x3fu);
    }
    return true;
}

bool str_take_utf8(struct str *s, uint32_t *ret_char)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};

    if (s->len == 0) {
        return false;
    }
    unsigned char first = (unsigned char)s->ptr[0];
    size_t bytes = utf8_char_bytes(first);
    uint32_t c = first & first_bits[bytes];

    if ((bytes == 1 && first >= 0x80) || !add_continuation(str_skip(*s, 1), bytes - 1, &c)) {
        return false;
    }
    if (c < smallest[bytes] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
        return false;
    }
    *s = str_skip(*s, bytes);
    *ret_char = c;
    return true;
}

bool str_char_is_unsafe(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0x00, 0x1f},      {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
                  {0x180e, 0x180e},  {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                  {0xfeff, 0xfeff},  {0xfff9, 0xfffb}, {0xfffe, 0xffff}, {0x1d173, 0x1d17a},
                  {0xe0000, 0xe007f}};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (c >= ranges[i].first && c <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

/* Counted downwards from zero, because INT64_MIN has no positive counterpart. */
static bool digits_to_negative(struct str digits, int64_t *ret_value)
{
    int64_t value = 0;

    for (size_t i = 0; i < digits.len; i++) {
        int64_t digit = digits.ptr[i] - '0';

        if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, digit, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return digits.len > 0;
}

bool str_to_i64(struct str s, int64_t *ret_value)
{
    bool is_negative = s.len > 0 && s.ptr[0] == '-';
    bool has_sign = is_negative || (s.len > 0 && s.ptr[0] == '+');
    int64_t value;

    if (!digits_to_negative(str_skip(s, has_sign ? 1 : 0), &value)) {
        return false;
    }
    if (!is_negative && __builtin_sub_overflow((int64_t)0, value, &value)) {
        return false;
    }
    *ret_value = value;
    return true;
}

uint64_t str_hash(struct str s, uint64_t seed)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed;

    for (size_t i = 0; i < s.len; i++) {
        hash ^= (unsigned char)s.ptr[i];
        hash *= UINT64_C(0x100000001b3);
    }
    return hash;
}
