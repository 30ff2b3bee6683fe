#include "tallyman/base/table.h"

#include <assert.h>
#include <string.h>

#include "tallyman/base/alloc.h"

#define SLOTS_MIN 16u

static uint32_t key_hash(struct str key)
{
    uint64_t hash = key.len;
    for (size_t i = 0; i < key.len; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t left = key.len - i;
        memcpy(&word, key.ptr + i, left < sizeof(word) ? left : sizeof(word));
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash ^ (hash >> 32));
}

static struct str key_of(const struct table *table, const void *item)
{
    struct str key;
    memcpy(&key, (const char *)item + table->key_offset, sizeof(key));
    return key;
}

/* The slot of that key, or the free one where it would go. */
static uint32_t find_slot(const struct table *table, struct str key, uint32_t hash)
{
    uint32_t slot = hash & (table->slots - 1);
    while (table->items[slot] != NULL &&
           !(table->hashes[slot] == hash && str_eq(key_of(table, table->items[slot]), key))) {
        slot = (slot + 1) & (table->slots - 1);
    }
    return slot;
}

static void grow(struct table *table)
{
    struct table before = *table;
    table->slots = before.slots == 0 ? SLOTS_MIN : before.slots * 2;
    table->items = mem_zalloc(mem_array_bytes(table->slots, sizeof(void *) + sizeof(uint32_t)));
    table->hashes = (uint32_t *)(void *)(table->items + table->slots);
    for (uint32_t i = 0; i < before.slots; i++) {
        if (before.items[i] == NULL) {
            continue;
        }
        uint32_t slot = before.hashes[i] & (table->slots - 1);
        while (table->items[slot] != NULL) {
            slot = (slot + 1) & (table->slots - 1);
        }
        table->items[slot] = before.items[i];
        table->hashes[slot] = before.hashes[i];
    }
    mem_free(before.items);
}

void *table_find(const struct table *table, struct str key)
{
    return table->count == 0 ? NULL : table->items[find_slot(table, key, key_hash(key))];
}

void table_add(struct table *table, void *item)
{
    if ((uint64_t)table->count * 4 >= (uint64_t)table->slots * 3) {
        grow(table);
    }
    struct str key = key_of(table, item);
    uint32_t hash = key_hash(key);
    uint32_t slot = find_slot(table, key, hash);
    assert(table->items[slot] == NULL && "each key once");
    table->items[slot] = item;
    table->hashes[slot] = hash;
    table->count++;
}

/* Whether an object of that hash, which stands at `at`, would still be found if `gap`, before it,
 * were free: its search begins behind the gap. */
static bool is_behind(const struct table *table, uint32_t hash, uint32_t gap, uint32_t at)
{
    uint32_t mask = table->slots - 1;
    return ((at - hash) & mask) < ((at - gap) & mask);
}

void table_remove(struct table *table, const void *item)
{
    assert(table->count > 0);
    struct str key = key_of(table, item);
    uint32_t gap = find_slot(table, key, key_hash(key));
    assert(table->items[gap] == item);
    /* What comes behind moves up, so that a search may stop at the first free slot. */
    for (uint32_t at = (gap + 1) & (table->slots - 1); table->items[at] != NULL;
         at = (at + 1) & (table->slots - 1)) {
        if (!is_behind(table, table->hashes[at], gap, at)) {
            table->items[gap] = table->items[at];
            table->hashes[gap] = table->hashes[at];
            gap = at;
        }
    }
    table->items[gap] = NULL;
    table->count--;
}

void *table_next(const struct table *table, uint32_t *at)
{
    while (*at < table->slots) {
        void *item = table->items[(*at)++];
        if (item != NULL) {
            return item;
        }
    }
    return NULL;
}

void *table_drain(const struct table *table, uint32_t *at)
{
    void *item = table_next(table, at);
    *at -= item != NULL ? 1 : 0; /* another may move up into its slot */
    return item;
}

void table_deinit(struct table *table)
{
    mem_free(table->items);
    *table = (struct table){.key_offset = table->key_offset};
}
