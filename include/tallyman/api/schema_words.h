/* schema_words.h - the words that a text field of tallyman.dev's kinds may hold, as their CRDs list
 * them (tests/unit/api/test_codec_crds.c compares the two). */
#pragma once

#include "tallyman/api/codec.h"

#define FIELD_WORDS_MAX 4

/* Static; unused ones are NULL. NULL: any text will do. */
const char *const *schema_words(const struct schema *schema, const struct field *field);
/* Letters to be put in, left out or changed to make one word of the other, whatever their case;
 * UINT32_MAX or so: one is too long to be told (manifest_strict.c). */
uint32_t word_distance(struct str a, struct str b);
