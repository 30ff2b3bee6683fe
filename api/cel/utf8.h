/* utf8.h - characters of a text, as Go's unicode/utf8 sees them. */
#pragma once

#include "tallyman/base/arena.h"
#include "tallyman/base/str.h"

#define UTF8_ERROR_CHARACTER 0xfffdu
#define UTF8_MAX_BYTES       4

/* The character at the start of `s` and its length in bytes; a broken byte is U+FFFD of length 1.
 * `s` isn't empty. */
uint32_t utf8_decode(struct str s, size_t *ret_bytes);
/* As utf8_decode(), and whether the bytes are sound. */
bool utf8_decode_sound(struct str s, uint32_t *ret_character, size_t *ret_bytes);
/* Bytes of the first character; 0 for an empty text. */
size_t utf8_length(struct str s);
bool utf8_is_sound(struct str s);
uint32_t utf8_count(struct str s);
/* Writes the character (a bad one as U+FFFD) and gives the number of bytes. */
size_t utf8_encode(uint32_t character, char buffer[UTF8_MAX_BYTES]);
/* Byte offset of character number `n`, or s.len if there are fewer. */
size_t utf8_offset(struct str s, uint64_t n);
/* Go's unicode.IsSpace. */
bool utf8_is_space(uint32_t character);
