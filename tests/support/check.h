/* check.h - what cmocka lacks: signed comparison, and comparison of views, with both sides shown.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tallyman/base/str.h"

#define check_i64(actual, expected)                                                                \
    check_i64_at((int64_t)(actual), (int64_t)(expected), #actual, __FILE__, __LINE__)
#define check_str(actual, expected) check_str_at((actual), (expected), #actual, __FILE__, __LINE__)

/* Fails the test unless both are equal. */
void check_i64_at(int64_t actual, int64_t expected, const char *what, const char *file, int line);
/* Bytewise; `expected` NULL wants an absent view, where "" wants one that is present and empty. */
void check_str_at(struct str actual, const char *expected, const char *what, const char *file,
                  int line);
