/* attr.h - the compiler attributes that the project uses, under readable names. */
#pragma once

#define NODISCARD         __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define NORETURN          __attribute__((noreturn))
#define RETURNS_NONNULL   __attribute__((returns_nonnull))
#define CLEANUP(fn)       __attribute__((cleanup(fn)))
#define UNUSED            __attribute__((unused))
#define NOINLINE          __attribute__((noinline))

#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))
