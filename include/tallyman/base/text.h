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

/* What of a text that comes from outside may be quoted in a sentence for people: at most
 * `max_bytes` of it, UTF-8, each character that a terminal might act on and each foreign byte as
 * '?'. The text itself where nothing of that is needed, else a copy in the arena. */
struct str text_quote(struct arena *arena, struct str text, size_t max_bytes);
