/* arena.h - memory that is given back all at once.
 *
 * One scratch arena serves one event; it is reset after the step, so whatever was allocated in it
 * is borrowed until then. Blocks are kept over a reset, up to ARENA_KEEP_MAX_BYTES. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tallyman/base/attr.h"
#include "tallyman/base/str.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* owned; newest first */
    size_t used_bytes;          /* handed out since the last reset */
    size_t first_bytes;         /* of the first block; 0: ARENA_BLOCK_MIN_BYTES */
};

void arena_init(struct arena *arena);
/* For arenas that are kept by the thousand: the first block is only so large. */
void arena_init_small(struct arena *arena, size_t first_bytes);
void arena_deinit(struct arena *arena); /* NULL is fine */
void arena_reset(struct arena *arena);

/* Zeroed, aligned for any type. Borrowed until the arena is reset. */
NODISCARD RETURNS_NONNULL void *arena_alloc(struct arena *arena, size_t bytes);
/* As arena_alloc(); ends the program where count * item_bytes overflows. */
NODISCARD RETURNS_NONNULL void *arena_alloc_array(struct arena *arena, size_t count,
                                                  size_t item_bytes);
/* Copies; a NUL is put behind the bytes so that `.ptr` can go to a C library. An absent view stays
 * absent. Borrowed until the arena is reset. */
struct str arena_copy_str(struct arena *arena, struct str s);
struct str arena_format(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);

#define ARENA_NEW(arena, type)          ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_alloc_array((arena), (count), sizeof(type)))

/* Makes room for one more item of a growing array that lives in the arena; see mem_grow(). */
NODISCARD RETURNS_NONNULL void *arena_grow(struct arena *arena, void *items, uint32_t count,
                                           uint32_t *capacity, size_t item_bytes);
