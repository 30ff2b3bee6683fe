/* input.h - manifests from files, for the commands that read them. */
#pragma once

#include "tallyman/api/codec.h"

struct manifest_list {
    struct manifest *items; /* borrowed from the arena */
    uint32_t count;
    uint32_t capacity;
};

/* The text of one file; "-" is standard input. Borrowed from the arena. */
NODISCARD struct rc input_read_text(struct arena *arena, const char *path, struct str *ret_text,
                                    struct err *err);
/* Reads one file, or every *.yaml, *.yml and *.json of a directory in order of name; "-" is
 * standard input. RC_INVALID names file, line, object and field. */
NODISCARD struct rc input_read(struct arena *arena, const char *path, struct manifest_list *list,
                               struct err *err);

/* -- input_check.c: what an API server would not have taken --------------------------------------
 */

/* RC_INVALID names the field and what would be right; file, line and object are the caller's. */
NODISCARD struct rc input_check(const struct manifest *manifest, struct err *err);
/* Whether a namespace may be called so. */
bool input_is_namespace(struct str name);
/* Each object once: RC_INVALID names both places of one that is given twice. */
NODISCARD struct rc input_check_once(struct arena *arena, const struct manifest_list *list,
                                     struct err *err);
