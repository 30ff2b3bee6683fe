/* alloc.h - memory that can't fail: out of memory ends the program with a message.
 *
 * Callers cap sizes (limits.h) before they allocate, so that hostile input becomes an error and
 * only real exhaustion ends here. Everything returned is owned by the caller and freed by
 * mem_free(). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tallyman/base/attr.h"

NODISCARD RETURNS_NONNULL void *mem_alloc(size_t bytes);  /* not zeroed */
NODISCARD RETURNS_NONNULL void *mem_zalloc(size_t bytes); /* zeroed */
NODISCARD RETURNS_NONNULL void *mem_realloc(void *old, size_t bytes);
void mem_free(void *p); /* NULL is fine */
/* Zeroed; NULL where there is none, for where doing without is an error like another. */
NODISCARD void *mem_try_zalloc(size_t bytes);

/* Says "tallyman: reason" on standard error and aborts. */
NORETURN void mem_die(const char *reason);
/* count * item_bytes; ends the program where that overflows. */
size_t mem_array_bytes(size_t count, size_t item_bytes);
/* The capacity, in items, that a growing array takes next so that one more than `count` fit. */
uint32_t mem_grown_capacity(uint32_t count, uint32_t capacity);

#define MEM_NEW(type) ((type *)mem_zalloc(sizeof(type)))

/* Makes room for one more item of `item_bytes` in a growing array: returns the array, moved or not.
 * `*capacity` is in items and is doubled as needed. Owned by the caller. */
NODISCARD RETURNS_NONNULL void *mem_grow(void *items, uint32_t count, uint32_t *capacity,
                                         size_t item_bytes);
