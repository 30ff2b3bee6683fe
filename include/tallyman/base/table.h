/* table.h - finds objects by a text that is a member of theirs: a hash table that takes thirteen
 * bytes per slot and nothing in the object, for what there is very much of (map.h's handle takes 56
 * bytes in each). A search reads one line of the processor's cache in most cases, and a table that
 * grows moves a few objects whenever one is added, never all at once.
 *
 * The objects are borrowed: they, and their keys, stay where they are while they are in the table.
 * A key is there once. Out of memory aborts. No order: see map.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tallyman/base/str.h"

struct table_line;

struct table_part {
    void *memory;             /* owned */
    struct table_line *lines; /* borrowed from memory, at the beginning of one of the cache's */
    uint32_t slots;           /* a power of two; 0: no memory is taken yet */
};

/* All zeroes: empty, and of objects whose first member is the key. */
struct table {
    struct table_part now;
    struct table_part before; /* what is left of it moves to `now` */
    uint32_t moved;           /* slots of `before` that are empty for good */
    uint32_t count;           /* of objects */
    uint32_t key_offset;      /* of the `struct str` that is the key */
};

#define TABLE_OF(type, member) ((struct table){.key_offset = offsetof(type, member)})

/* Borrowed; NULL: there is none. */
void *table_find(const struct table *table, struct str key);
/* Its key isn't there yet (asserted). */
void table_add(struct table *table, void *item);
/* It is there (asserted). */
void table_remove(struct table *table, const void *item);
/* The next object from slot *at on, which begins at 0; NULL: no more. Not while any are added or
 * removed. */
void *table_next(const struct table *table, uint32_t *at);
/* The same for a table that is to be emptied: each object is removed before the next is asked for.
 */
void *table_drain(const struct table *table, uint32_t *at);
/* The objects stay. */
void table_deinit(struct table *table);
