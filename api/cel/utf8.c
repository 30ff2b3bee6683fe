#include "utf8.h"

bool utf8_decode_sound(struct str s, uint32_t *ret_character, size_t *ret_bytes)
{
    struct str rest = s;
    if (!str_take_utf8(&rest, ret_character)) {
        *ret_character = UTF8_ERROR_CHARACTER;
        *ret_bytes = 1;
        return false;
    }
    *ret_bytes = s.len - rest.len;
    return true;
}

uint32_t utf8_decode(struct str s, size_t *ret_bytes)
{
    uint32_t character = 0;
    if ((unsigned char)s.ptr[0] < 0x80) {
        *ret_bytes = 1;
        return (unsigned char)s.ptr[0];
    }
    (void)utf8_decode_sound(s, &character, ret_bytes);
    return character;
}

size_t utf8_length(struct str s)
{
    size_t bytes = 0;
    if (s.len > 0) {
        (void)utf8_decode(s, &bytes);
    }
    return bytes;
}

bool utf8_is_sound(struct str s)
{
    uint32_t character = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < s.len; i += bytes) {
        if (!utf8_decode_sound(str_skip(s, i), &character, &bytes)) {
            return false;
        }
    }
    return true;
}

uint32_t utf8_count(struct str s)
{
    uint32_t count = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < s.len; i += bytes) {
        (void)utf8_decode((struct str){s.ptr + i, s.len - i}, &bytes);
        count++;
    }
    return count;
}

size_t utf8_encode(uint32_t character, char buffer[UTF8_MAX_BYTES])
{
    if (character > 0x10ffff || (character >= 0xd800 && character <= 0xdfff)) {
        character = UTF8_ERROR_CHARACTER;
    }
    if (character < 0x80) {
        buffer[0] = (char)character;
        return 1;
    }
    size_t length = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--) {
        buffer[i] = (char)(0x80u | (character & 0x3fu));
        character >>= 6;
    }
    buffer[0] = (char)((0xf00u >> length & 0xffu) | character);
    return length;
}

size_t utf8_offset(struct str s, uint64_t n)
{
    size_t at = 0;
    size_t bytes = 0;
    for (; n > 0 && at < s.len; n--) {
        (void)utf8_decode((struct str){s.ptr + at, s.len - at}, &bytes);
        at += bytes;
    }
    return at;
}

bool utf8_is_space(uint32_t character)
{
    static const uint32_t ranges[][2] = {
        {'\t', '\r'},     {' ', ' '},       {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
        {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};
    for (size_t i = 0; i < ARRAY_COUNT(ranges); i++) {
        if (character >= ranges[i][0] && character <= ranges[i][1]) {
            return true;
        }
    }
    return false;
}
