/* table.h - finds objects by a text that is a member of theirs: a hash table that takes twelve
 * bytes per slot and nothing in the object, for what there is very much of (map.h's handle takes 56
 * bytes in each).
 *
 * The objects are borrowed: they, and their keys, stay where they are while they are in the table.
 * A key is there once. Out of memory aborts. No order: see map.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tallyman/base/str.h"

/* All zeroes: empty, and of objects whose first member is the key. */
struct table {
    void **items;        /* owned; by slot, NULL: it is free; the hashes stand behind them */
    uint32_t *hashes;    /* of the keys; borrowed from items */
    uint32_t count;      /* of objects */
    uint32_t slots;      /* a power of two; 0: no memory is taken yet */
    uint32_t key_offset; /* of the `struct str` that is the key */
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
