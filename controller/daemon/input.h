/* input.h - manifests from files, for the commands that read them. */
#pragma once

#include "tallyman/api/codec.h"

struct manifest_list {
    struct manifest *items; /* borrowed from the arena */
    uint32_t count;
    uint32_t capacity;
};

/* Reads one file, or every *.yaml, *.yml and *.json of a directory in order of name; "-" is
 * standard input. RC_INVALID names file, line, object and field. */
NODISCARD struct rc input_read(struct arena *arena, const char *path, struct manifest_list *list,
                               struct err *err);
