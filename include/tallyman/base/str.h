/* str.h - text as a view: pointer and length, no terminating NUL promised.
 *
 * A view with a NULL pointer is "absent"; one of length 0 with a pointer is "empty". Decoders keep
 * that difference, because a Kubernetes field that is absent isn't one that is empty. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tallyman/base/attr.h"

struct str {
    const char *ptr; /* borrowed from whoever made the view; NULL: absent */
    size_t len;      /* bytes */
};

struct str_list {
    struct str *items;
    uint32_t count;
};

#define STR_NONE     ((struct str){NULL, 0})
#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
/* The same for a static table, where C17 wants a constant. */
#define STR_INIT(literal)                                                                          \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
#define STR_FMT    "%.*s"
#define STR_ARG(s) ((int)(s).len), ((s).ptr == NULL ? "" : (s).ptr)

/* A view of a NUL-terminated text; NULL gives an absent view. Borrowed from `text`. */
struct str str_from_c(const char *text);

bool str_is_set(struct str s);   /* present, maybe empty */
bool str_is_empty(struct str s); /* absent or of length 0 */

/* Bytewise; absent and empty are equal. */
bool str_eq(struct str a, struct str b);
bool str_eq_c(struct str a, const char *b);
/* Bytewise order as memcmp gives it, a prefix first; <0, 0, >0. */
int str_compare(struct str a, struct str b);
bool str_starts_with(struct str s, struct str prefix);
bool str_ends_with(struct str s, struct str suffix);
/* Offset of the first `c`, or s.len. */
size_t str_find_char(struct str s, char c);
/* Offset of the first occurrence of `part`, or s.len. */
size_t str_find(struct str s, struct str part);
/* The view without its first `n` bytes (n is cut to the length). */
struct str str_skip(struct str s, size_t n);
/* The first `n` bytes (n is cut to the length). */
struct str str_take(struct str s, size_t n);
/* The longest prefix of at most `max_bytes` that doesn't end inside a UTF-8 character. */
struct str str_cut_utf8(struct str s, size_t max_bytes);

/* Takes the UTF-8 character off the front. False, and nothing changes, where none is: at the end,
 * and at an overlong form, a surrogate or any other byte that isn't UTF-8. */
bool str_take_utf8(struct str *s, uint32_t *ret_char);

/* Whether a terminal, a page or a line-based reader might act on the character and not show it: C0,
 * DEL and C1 controls, line and paragraph separators, what is invisible, and what turns the
 * direction of the text around. */
bool str_char_is_unsafe(uint32_t c);

/* A whole decimal integer, an optional sign, no spaces. False if it isn't one or doesn't fit. */
bool str_to_i64(struct str s, int64_t *ret_value);

/* FNV-1a, for change detection and tables, never for an order. */
uint64_t str_hash(struct str s, uint64_t seed);
