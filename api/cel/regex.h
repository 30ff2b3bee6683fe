/* regex.h - regular expressions as Go's regexp package (RE2) has them, in linear time.
 *
 * Not here: \p{…} classes, and (?i) on letters beyond ASCII; a pattern with them is refused.
 * Leftmost-first matching by a Pike machine: no backtracking, no recursion over the text. */
#pragma once

#include "tallyman/base/arena.h"
#include "tallyman/base/err.h"

enum cel_regex_op {
    CEL_RE_SET,    /* one character of `set` */
    CEL_RE_SPLIT,  /* x first, then y */
    CEL_RE_JUMP,   /* x */
    CEL_RE_ASSERT, /* x: enum cel_regex_assert */
    CEL_RE_MATCH,
};

enum cel_regex_assert {
    CEL_RE_TEXT_START,
    CEL_RE_TEXT_END,
    CEL_RE_LINE_START,
    CEL_RE_LINE_END,
    CEL_RE_WORD_EDGE,
    CEL_RE_NO_WORD_EDGE,
};

struct cel_regex_range {
    uint32_t first;
    uint32_t last;
};

struct cel_regex_set {
    struct cel_regex_range *ranges;
    uint32_t count;
    uint32_t capacity;
    bool is_negated;
};

struct cel_regex_step {
    enum cel_regex_op op;
    uint32_t x;
    uint32_t y;
    const struct cel_regex_set *set;
};

struct cel_regex {
    struct cel_regex_step *steps;
    uint32_t count;
    uint32_t capacity;
};

enum cel_regex_node_kind {
    CEL_RE_N_EMPTY,
    CEL_RE_N_SET,
    CEL_RE_N_ASSERT,
    CEL_RE_N_CAT,    /* children */
    CEL_RE_N_EITHER, /* children */
    CEL_RE_N_REPEAT, /* children[0], min, max */
};

/* The pattern as a tree, between the parser and the code generator. */
struct cel_regex_node {
    enum cel_regex_node_kind kind;
    struct cel_regex_set set;
    enum cel_regex_assert assert_kind;
    struct cel_regex_node **children;
    uint32_t count;
    uint32_t capacity;
    uint32_t min;
    uint32_t max; /* UINT32_MAX: without end */
    bool is_lazy;
    uint32_t repeats; /* the product of the counted repeats inside, at most CEL_REGEX_REPEAT_MAX */
};

/* The program lives in the arena. RC_INVALID: no such syntax; RC_LIMIT: too large. */
NODISCARD struct rc cel_regex_compile(struct arena *arena, struct str pattern,
                                      struct cel_regex **ret_regex, struct err *err);
/* regex_parse.c, for cel_regex_compile() */
NODISCARD struct rc cel_regex_parse(struct arena *arena, struct str pattern,
                                    struct cel_regex_node **ret_node, struct err *err);
void cel_regex_set_add(struct arena *arena, struct cel_regex_set *set, uint32_t first,
                       uint32_t last);
/* regex_class.c: "[…]" at *at (behind the bracket), and \d, \w, \s in either case. */
struct cel_regex_source {
    struct arena *arena;
    struct str pattern;
    size_t at;
    bool is_caseless;
};
NODISCARD struct rc cel_regex_read_class(struct cel_regex_source *source,
                                         struct cel_regex_set *ret_set, struct err *err);
bool cel_regex_add_perl_class(struct arena *arena, struct cel_regex_set *set, char letter);
/* The escaped character behind the backslash at source->at. */
NODISCARD struct rc cel_regex_read_escape(struct cel_regex_source *source, uint32_t *ret_char,
                                          struct err *err);
/* Adds the other case of each ASCII letter, and the two signs that fold to one. */
NODISCARD struct rc cel_regex_fold(struct cel_regex_source *source, struct cel_regex_set *set,
                                   struct err *err);

struct cel_regex_memory {
    uint32_t *stack;
    struct cel_regex_thread *lists[2];
    uint32_t *seen; /* by step: the round in which it was reached */
};

struct cel_regex_thread {
    uint32_t step;
    size_t start;
};

/* How many bytes cel_regex_search() needs behind `memory`. */
size_t cel_regex_memory_bytes(const struct cel_regex *regex);
/* The leftmost match at or behind `from`. `work` counts up by what was done. */
bool cel_regex_search(const struct cel_regex *regex, struct str text, size_t from, void *memory,
                      uint64_t *work, size_t *ret_start, size_t *ret_end);
