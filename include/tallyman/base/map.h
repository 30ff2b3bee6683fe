/* map.h - the one place that brings in uthash (hash tables) and the BSD red-black tree (ordered
 * sets). Out of memory aborts, as everywhere. A hash table is for looking up, never for an order:
 * whatever is decided or shown is walked in a tree or a sorted array. */
#pragma once

#include "tallyman/base/alloc.h"

#define uthash_malloc(bytes)    mem_alloc(bytes)
#define uthash_free(ptr, bytes) mem_free(ptr)
#define uthash_fatal(message)   mem_die(message)
#include <uthash.h>

#include <bsd/sys/tree.h>

/* tree.h's own forms say __unused, which libbsd doesn't define on Linux. */
#undef RB_PROTOTYPE_STATIC
#define RB_PROTOTYPE_STATIC(name, type, field, cmp)                                                \
    RB_PROTOTYPE_INTERNAL(name, type, field, cmp, UNUSED static)
#undef RB_GENERATE_STATIC
#define RB_GENERATE_STATIC(name, type, field, cmp)                                                 \
    RB_GENERATE_INTERNAL(name, type, field, cmp, UNUSED static)
