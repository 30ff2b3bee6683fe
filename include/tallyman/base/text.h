/* text.h - builds a text piece by piece, bounded.
 *
 * Past `max_bytes` the text is cut on a UTF-8 boundary and ends in "…"; writing goes on without
 * effect, so that callers write straight-line code. */
#pragma once

#include <stdbool.h>

#include "tallyman/base/arena.h"
#include "tallyman/base/str.h"

struct text {
    struct arena *arena; /* borrowed; where the bytes live */
    char *ptr;           /* borrowed from the arena */
    size_t len;
    size_t capacity;
    size_t max_bytes;
    bool is_cut;
};

void text_init(struct text *text, struct arena *arena, size_t max_bytes);
void text_add(struct text *text, struct str piece);
void text_addf(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);
/* The text so far, NUL-terminated behind its end. Borrowed until the arena is reset. */
struct str text_str(const struct text *text);
