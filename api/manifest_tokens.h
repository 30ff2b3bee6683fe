/* manifest_tokens.h - the tokens of a document of manifests, kept until it ends. */
#pragma once

#include "codec_private.h"

struct recorded_token {
    const char *text; /* borrowed from the scratch arena */
    uint32_t len;
    uint32_t line;
    enum token_kind kind;
    bool boolean;
};

/* A key that one object gives twice, as kubectl and the API server refuse it: RC_INVALID names the
 * key and both lines, and *ret_line is the second. */
NODISCARD struct rc tokens_check_keys(struct arena *arena, const struct recorded_token *tokens,
                                      uint32_t count, uint32_t *ret_line, struct err *err);

/* -- manifest_strict.c ------------------------------------------------------------------------- */

/* A field, or a word in one, that a CRD of tallyman.dev doesn't know: RC_INVALID names it, its path
 * and what would be right, and *ret_line is where it stands. `at` is the object's first token. */
NODISCARD struct rc tokens_check_fields(struct arena *arena, const struct kind_info *kind,
                                        const struct recorded_token *tokens, uint32_t at,
                                        uint32_t *ret_line, struct err *err);
/* Whether it is of tallyman.dev. */
bool kind_is_own(const struct kind_info *kind);
/* A kind or version of tallyman.dev that isn't known. */
NODISCARD struct rc manifest_check_kind(struct arena *arena, struct str api_version,
                                        struct str name, struct err *err);
