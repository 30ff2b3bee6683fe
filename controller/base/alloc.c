#include "tallyman/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>

#include "tallyman/base/limits.h"

static NORETURN void die_out_of_memory(size_t bytes)
{
    (void)fprintf(stderr, "tallyman: out of memory: %zu bytes were asked for\n", bytes);
    abort();
}

void mem_die(const char *reason)
{
    (void)fprintf(stderr, "tallyman: %s\n", reason);
    abort();
}

void *mem_alloc(size_t bytes)
{
    /* malloc(0) may give NULL, which would look like exhaustion. */
    void *p = malloc(bytes == 0 ? 1 : bytes);

    if (p == NULL) {
        die_out_of_memory(bytes);
    }
    return p;
}

void *mem_zalloc(size_t bytes)
{
    void *p = calloc(1, bytes == 0 ? 1 : bytes);

    if (p == NULL) {
        die_out_of_memory(bytes);
    }
    return p;
}

void *mem_try_zalloc(size_t bytes)
{
    return calloc(1, bytes == 0 ? 1 : bytes);
}

void *mem_realloc(void *old, size_t bytes)
{
    void *p = realloc(old, bytes == 0 ? 1 : bytes);

    if (p == NULL) {
        die_out_of_memory(bytes);
    }
    return p;
}

void mem_free(void *p)
{
    free(p);
}

size_t mem_array_bytes(size_t count, size_t item_bytes)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, item_bytes, &bytes)) {
        die_out_of_memory(SIZE_MAX);
    }
    return bytes;
}

uint32_t mem_grown_capacity(uint32_t count, uint32_t capacity)
{
    uint32_t grown = capacity < GROW_MIN_ITEMS ? GROW_MIN_ITEMS : capacity;

    while (grown <= count) {
        if (__builtin_mul_overflow(grown, 2u, &grown)) {
            die_out_of_memory(SIZE_MAX);
        }
    }
    return grown;
}

void *mem_grow(void *items, uint32_t count, uint32_t *capacity, size_t item_bytes)
{
    if (items != NULL && count < *capacity) {
        return items;
    }
    uint32_t grown = mem_grown_capacity(count, *capacity);
    void *moved = mem_realloc(items, mem_array_bytes(grown, item_bytes));

    *capacity = grown;
    return moved;
}
