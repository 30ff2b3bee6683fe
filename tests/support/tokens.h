/* tokens.h - a token sink that writes down what it gets, so that a test can compare texts. */
#pragma once

#include "tallyman/api/codec.h"

#define TOKENS_TEXT_MAX_BYTES 8192

/* {"a":[1,true,"x"]} is `{ a: [ 1 true "x" ] } `; cut at the bound. */
struct tokens {
    char text[TOKENS_TEXT_MAX_BYTES]; /* NUL-terminated */
    size_t len;
    uint32_t count;
};

/* Borrowed: `tokens` until the sink is dropped. */
struct token_sink tokens_sink(struct tokens *tokens);
