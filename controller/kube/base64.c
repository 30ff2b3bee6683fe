#include "tallyman/kube/base64.h"

#include <string.h>

#define BASE64_BAD  -1
#define BASE64_SKIP -2

static const char base64_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_value(char c)
{
    const char *digit = memchr(base64_alphabet, c, sizeof(base64_alphabet) - 1);
    if (digit != NULL) {
        return (int)(digit - base64_alphabet);
    }
    return c == '\n' || c == '\r' || c == ' ' || c == '\t' ? BASE64_SKIP : BASE64_BAD;
}

/* Four digits at a time; `missing` of them are padding. False: the padding can't be so. */
static bool base64_decode_group(uint32_t group, uint32_t missing, char *bytes, size_t *len)
{
    static const uint32_t unused_bits[] = {0, 0xff, 0xffff};
    if (missing > 2 || (group & unused_bits[missing]) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < 3 - missing; i++) {
        bytes[(*len)++] = (char)(unsigned char)(group >> (16 - 8 * i));
    }
    return true;
}

bool base64_decode(struct arena *arena, struct str text, struct str *ret_bytes)
{
    char *bytes = arena_alloc(arena, text.len / 4 * 3 + 4);
    size_t len = 0;
    uint32_t group = 0;
    uint32_t digits = 0;
    uint32_t missing = 0;
    for (size_t i = 0; i < text.len; i++) {
        int value = base64_value(text.ptr[i]);
        if (value == BASE64_SKIP) {
            continue;
        }
        if (text.ptr[i] == '=') {
            missing++;
            value = 0;
        } else if (value == BASE64_BAD || missing > 0) {
            return false;
        }
        group = group << 6 | (uint32_t)value;
        if (++digits == 4) {
            if (!base64_decode_group(group, missing, bytes, &len)) {
                return false;
            }
            digits = 0;
            group = 0;
            if (missing > 0) {
                missing = 4; /* nothing may follow: a further '=' or digit fails */
            }
        }
    }
    if (digits != 0) {
        return false;
    }
    *ret_bytes = (struct str){bytes, len};
    return true;
}

struct str base64_encode(struct arena *arena, struct str bytes)
{
    char *text = arena_alloc(arena, bytes.len / 3 * 4 + 8);
    size_t len = 0;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i < 3 ? bytes.len - i : 3;
        uint32_t group = 0;
        for (size_t k = 0; k < 3; k++) {
            group = group << 8 | (k < left ? (unsigned char)bytes.ptr[i + k] : 0u);
        }
        for (size_t k = 0; k < 4; k++) {
            text[len++] = k <= left ? base64_alphabet[group >> (18 - 6 * k) & 63] : '=';
        }
    }
    return (struct str){text, len};
}
