#include "tallyman/base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* Under AddressSanitizer whatever isn't handed out is poisoned, so that a view kept over a reset,
 * or a write past the end, is caught as surely as with malloc(). */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_HAS_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ARENA_HAS_ASAN 1
#endif

#if defined(ARENA_HAS_ASAN)
#include <sanitizer/asan_interface.h>
#define POISON(p, bytes)   ASAN_POISON_MEMORY_REGION((p), (bytes))
#define UNPOISON(p, bytes) ASAN_UNPOISON_MEMORY_REGION((p), (bytes))
#define RED_ZONE_BYTES     ARENA_ALIGN_BYTES
#else
#define POISON(p, bytes)   ((void)(p), (void)(bytes))
#define UNPOISON(p, bytes) ((void)(p), (void)(bytes))
#define RED_ZONE_BYTES     ((size_t)0)
#endif

#define ARENA_ALIGN_BYTES (_Alignof(max_align_t))

struct arena_block {
    struct arena_block *next; /* owned; the one before */
    size_t capacity_bytes;
    size_t used_bytes;
    _Alignas(max_align_t) unsigned char bytes[];
};

static struct arena_block *block_new(size_t capacity_bytes, struct arena_block *next)
{
    struct arena_block *block = mem_alloc(sizeof(*block) + capacity_bytes);

    block->next = next;
    block->capacity_bytes = capacity_bytes;
    block->used_bytes = 0;
    POISON(block->bytes, capacity_bytes);
    return block;
}

static void block_free(struct arena_block *block)
{
    UNPOISON(block->bytes, block->capacity_bytes);
    mem_free(block);
}

void arena_init(struct arena *arena)
{
    *arena = (struct arena){0};
}

void arena_init_small(struct arena *arena, size_t first_bytes)
{
    *arena = (struct arena){.first_bytes = first_bytes};
}

void arena_deinit(struct arena *arena)
{
    if (arena == NULL) {
        return;
    }
    for (struct arena_block *block = arena->blocks, *next; block != NULL; block = next) {
        next = block->next;
        block_free(block);
    }
    arena_init(arena);
}

void arena_reset(struct arena *arena)
{
    struct arena_block *kept = NULL;

    /* Blocks double in size, so the largest that may be kept soon serves a whole event alone. */
    for (struct arena_block *block = arena->blocks; block != NULL; block = block->next) {
        if (block->capacity_bytes <= ARENA_KEEP_MAX_BYTES &&
            (kept == NULL || block->capacity_bytes > kept->capacity_bytes)) {
            kept = block;
        }
    }
    for (struct arena_block *block = arena->blocks, *next; block != NULL; block = next) {
        next = block->next;
        if (block != kept) {
            block_free(block);
        }
    }
    if (kept != NULL) {
        POISON(kept->bytes, kept->capacity_bytes);
        kept->next = NULL;
        kept->used_bytes = 0;
    }
    arena->blocks = kept;
    arena->used_bytes = 0;
}

/* A block with room for `bytes` at the head of the list. */
static struct arena_block *arena_block_for(struct arena *arena, size_t bytes)
{
    struct arena_block *newest = arena->blocks;

    if (newest != NULL && bytes <= newest->capacity_bytes - newest->used_bytes) {
        return newest;
    }
    size_t first_bytes = arena->first_bytes != 0 ? arena->first_bytes : ARENA_BLOCK_MIN_BYTES;
    size_t capacity_bytes = newest == NULL ? first_bytes : newest->capacity_bytes * 2;

    if (capacity_bytes > ARENA_KEEP_MAX_BYTES) {
        capacity_bytes = ARENA_KEEP_MAX_BYTES;
    }
    if (capacity_bytes < bytes) {
        capacity_bytes = bytes;
    }
    arena->blocks = block_new(capacity_bytes, newest);
    return arena->blocks;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    /* At least one byte, so that two allocations never have one address. */
    size_t asked = bytes == 0 ? 1 : bytes;

    assert(asked <= SIZE_MAX / 2);
    size_t padded = (asked + ARENA_ALIGN_BYTES - 1) / ARENA_ALIGN_BYTES * ARENA_ALIGN_BYTES;
    struct arena_block *block = arena_block_for(arena, padded + RED_ZONE_BYTES);
    unsigned char *p = block->bytes + block->used_bytes;

    block->used_bytes += padded + RED_ZONE_BYTES;
    arena->used_bytes += padded;
    UNPOISON(p, bytes);
    return memset(p, 0, bytes);
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t item_bytes)
{
    return arena_alloc(arena, mem_array_bytes(count, item_bytes));
}

struct str arena_copy_str(struct arena *arena, struct str s)
{
    if (s.ptr == NULL) {
        return STR_NONE;
    }
    char *copy = arena_alloc(arena, s.len + 1);

    memcpy(copy, s.ptr, s.len);
    return (struct str){copy, s.len};
}

struct str arena_format(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_list again;

    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(length >= 0);

    size_t len = (size_t)length;
    char *copy = arena_alloc(arena, len + 1);
    int written = vsnprintf(copy, len + 1, format, again);

    va_end(again);
    assert(written == length);
    return (struct str){copy, len};
}

void *arena_grow(struct arena *arena, void *items, uint32_t count, uint32_t *capacity,
                 size_t item_bytes)
{
    if (items != NULL && count < *capacity) {
        return items;
    }
    uint32_t grown = mem_grown_capacity(count, *capacity);
    void *moved = arena_alloc_array(arena, grown, item_bytes);

    if (items != NULL) {
        memcpy(moved, items, mem_array_bytes(count, item_bytes));
    }
    *capacity = grown;
    return moved;
}
