/* decode_value.h - one JSON value to one member, and the sentences about those that don't fit. */
#pragma once

#include "tallyman/api/codec.h"
#include "tallyman/base/limits.h"

/* "spec.containers[0].resources.requests.cpu", cut at its bound. */
struct decode_path {
    char text[DECODE_PATH_MAX_BYTES]; /* NUL-terminated */
    size_t len;
};

void decode_path_add_name(struct decode_path *path, struct str name);
void decode_path_add_index(struct decode_path *path, uint32_t index);
/* A map's key: as a name where it looks like one, else in brackets. */
void decode_path_add_key(struct decode_path *path, struct str key);

/* RC_INVALID: `"four" is not a whole number`. */
NODISCARD struct rc decode_wrong(const struct token *token, const char *right, struct err *err);
/* Decodes a text, flag, number, quantity, time or duration; null is absent. Texts are copied. */
NODISCARD struct rc decode_scalar(struct arena *arena, enum field_kind kind, void *at,
                                  const struct token *token, struct err *err);
/* The value of a struct resource_amount whose name is set; null is 0, as in Go. */
NODISCARD struct rc decode_amount(struct arena *arena, void *at, const struct token *token,
                                  struct err *err);
