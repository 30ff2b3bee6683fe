/* err.h - results that can't be ignored, and the sentence that goes with a failure.
 *
 * A function that can fail returns `struct rc` and takes a `struct err *` last. On failure its
 * `ret_x` outputs are untouched. The sentence names the object, the field, what is wrong and what
 * would be right; callers put their own context in front with err_prefix(). */
#pragma once

#include <stdarg.h>
#include <stdbool.h>

#include "tallyman/base/attr.h"
#include "tallyman/base/str.h"

enum rc_code {
    RC_OK = 0,
    RC_INVALID,   /* the input is wrong and stays wrong */
    RC_LIMIT,     /* a named limit of limits.h was met */
    RC_NOT_FOUND, /* what was asked for isn't there */
    RC_CONFLICT,  /* somebody else changed it first */
    RC_REFUSED,   /* the other side said no, for good */
    RC_RETRY,     /* worth another try later */
    RC_IO,        /* the operating system or a library failed */
    RC_CORRUPT,   /* stored data isn't what was written */
};

struct rc {
    enum rc_code code;
};

#define ERR_TEXT_MAX_BYTES 1024

struct err {
    char text[ERR_TEXT_MAX_BYTES]; /* NUL-terminated UTF-8, cut on a character boundary */
};

#define RC_SUCCESS ((struct rc){RC_OK})

/* Runs `expr`, which gives a struct rc, and returns it from the calling function if it failed. */
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        struct rc try_rc_ = (expr);                                                                \
        if (rc_failed(try_rc_)) {                                                                  \
            return try_rc_;                                                                        \
        }                                                                                          \
    } while (0)

static inline bool rc_failed(struct rc rc)
{
    return rc.code != RC_OK;
}

/* Writes the sentence (err may be NULL: nobody wants it) and gives the result to return. */
NODISCARD struct rc err_set(struct err *err, enum rc_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Puts "context: " in front of the sentence and gives `rc` back. */
NODISCARD struct rc err_prefix(struct err *err, struct rc rc, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* The sentence as a view. Borrowed from err. */
struct str err_text(const struct err *err);
const char *rc_name(struct rc rc);
