/* utf8.c - is it UTF-8? Most texts are plain ASCII and are passed eight bytes at a time. */
#include "codec_private.h"

#include <string.h>

static size_t ascii_bytes(struct str s)
{
    size_t at = 0;

    while (s.len - at >= sizeof(uint64_t)) {
        uint64_t word;

        memcpy(&word, s.ptr + at, sizeof(word));
        if ((word & UINT64_C(0x8080808080808080)) != 0) {
            break;
        }
        at += sizeof(word);
    }
    while (at < s.len && (unsigned char)s.ptr[at] < 0x80) {
        at++;
    }
    return at;
}

size_t utf8_valid_bytes(struct str s)
{
    struct str left = str_skip(s, ascii_bytes(s));
    uint32_t character;

    while (str_take_utf8(&left, &character)) {
        left = str_skip(left, ascii_bytes(left));
    }
    return s.len - left.len;
}

bool utf8_is_valid(struct str s)
{
    return utf8_valid_bytes(s) == s.len;
}
