/* yaml_scalar.h - what an unquoted word of YAML is to kubectl. */
#pragma once

#include "tallyman/api/codec.h"

#define YAML_NUMBER_BYTES 64 /* the longest number as JSON writes it, with its NUL */

struct yaml_scalar {
    struct str text; /* borrowed */
    struct str tag;  /* full form, "tag:yaml.org,2002:int"; empty: none */
    bool is_plain;   /* not quoted, not a block */
};

/* The JSON value that sigs.k8s.io/yaml makes of it (go.yaml.in/yaml/v2's resolve.go, then
 * encoding/json): yes, on and y are true, 0x1f is 31, 010 is 8, 1.0 is 1, a date is a text.
 * RC_INVALID: a tag that isn't known or doesn't fit, or a number that JSON lacks (.inf, .nan).
 * The token's text is the scalar's own or lies in `number`. */
NODISCARD struct rc yaml_scalar_resolve(const struct yaml_scalar *scalar,
                                        char number[YAML_NUMBER_BYTES], struct token *ret_token,
                                        struct err *err);
