#include "tallyman/base/table.h"

#include <assert.h>
#include <string.h>

#include "tallyman/base/alloc.h"

#define SLOTS_MIN      16u
#define LINE_BYTES     64u
#define SLOTS_PER_LINE 5u
/* How far the move to a larger table goes on whenever an object is added. Three would be enough for
 * it to be over before that one is full; more give the old memory back sooner, and cost little:
 * both tables are gone through from one end to the other. */
#define MOVES_PER_ADD 64u

struct table_line {
    uint32_t hashes[SLOTS_PER_LINE];
    uint32_t unused;
    void *items[SLOTS_PER_LINE]; /* NULL: the slot is free */
};

_Static_assert(sizeof(struct table_line) == LINE_BYTES, "a line of the cache");

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

static void **item_at(const struct table_part *part, uint32_t slot)
{
    return &part->lines[slot / SLOTS_PER_LINE].items[slot % SLOTS_PER_LINE];
}

static uint32_t *hash_at(const struct table_part *part, uint32_t slot)
{
    return &part->lines[slot / SLOTS_PER_LINE].hashes[slot % SLOTS_PER_LINE];
}

static struct table_part part_new(uint32_t slots)
{
    struct table_part part = {.slots = slots};
    part.memory = mem_zalloc(mem_array_bytes(slots / SLOTS_PER_LINE + 2, LINE_BYTES));
    uintptr_t first = (uintptr_t)part.memory + LINE_BYTES - 1;
    part.lines = (struct table_line *)(first & ~(uintptr_t)(LINE_BYTES - 1));
    return part;
}

static void part_free(struct table_part *part)
{
    mem_free(part->memory);
    *part = (struct table_part){.slots = 0};
}

static uint32_t free_slot(const struct table_part *part, uint32_t hash)
{
    uint32_t slot = hash & (part->slots - 1);
    while (*item_at(part, slot) != NULL) {
        slot = (slot + 1) & (part->slots - 1);
    }
    return slot;
}

static void put(const struct table_part *part, uint32_t slot, void *item, uint32_t hash)
{
    *item_at(part, slot) = item;
    *hash_at(part, slot) = hash;
}

/* The slot of that key; false: it isn't there. */
static bool find_slot(const struct table *table, const struct table_part *part, struct str key,
                      uint32_t hash, uint32_t *ret_slot)
{
    if (part->slots == 0) {
        return false;
    }
    uint32_t slot = hash & (part->slots - 1);
    for (void *item; (item = *item_at(part, slot)) != NULL; slot = (slot + 1) & (part->slots - 1)) {
        if (*hash_at(part, slot) == hash && str_eq(key_of(table, item), key)) {
            *ret_slot = slot;
            return true;
        }
    }
    return false;
}

/* Whether an object of that hash, which stands at `at`, would still be found if `gap`, before it,
 * were free: its search begins behind the gap. */
static bool is_behind(const struct table_part *part, uint32_t hash, uint32_t gap, uint32_t at)
{
    uint32_t mask = part->slots - 1;
    return ((at - hash) & mask) < ((at - gap) & mask);
}

/* What comes behind moves up, so that a search may stop at the first free slot. */
static void clear_slot(const struct table_part *part, uint32_t gap)
{
    uint32_t mask = part->slots - 1;
    void *item;
    for (uint32_t at = (gap + 1) & mask; (item = *item_at(part, at)) != NULL;
         at = (at + 1) & mask) {
        uint32_t hash = *hash_at(part, at);
        if (!is_behind(part, hash, gap, at)) {
            put(part, gap, item, hash);
            gap = at;
        }
    }
    *item_at(part, gap) = NULL;
}

/* A slot that has been emptied stays so: what moves up comes from behind it, and nothing is added
 * to what was before. */
static void move_some(struct table *table)
{
    struct table_part *before = &table->before;
    for (uint32_t i = 0; i < MOVES_PER_ADD && before->slots != 0; i++) {
        void *item = *item_at(before, table->moved);
        if (item == NULL) {
            table->moved++;
        } else {
            uint32_t hash = *hash_at(before, table->moved);
            clear_slot(before, table->moved);
            put(&table->now, free_slot(&table->now, hash), item, hash);
        }
        if (table->moved == before->slots) {
            part_free(before);
        }
    }
}

static void grow(struct table *table)
{
    assert(table->before.slots == 0 && "the last move is over");
    table->before = table->now;
    table->moved = 0;
    table->now = part_new(table->before.slots == 0 ? SLOTS_MIN : table->before.slots * 2);
}

void *table_find(const struct table *table, struct str key)
{
    if (table->count == 0) {
        return NULL;
    }
    uint32_t hash = key_hash(key);
    uint32_t slot;
    if (find_slot(table, &table->now, key, hash, &slot)) {
        return *item_at(&table->now, slot);
    }
    bool is_before = find_slot(table, &table->before, key, hash, &slot);
    return is_before ? *item_at(&table->before, slot) : NULL;
}

void table_add(struct table *table, void *item)
{
    if ((uint64_t)table->count * 4 >= (uint64_t)table->now.slots * 3) {
        grow(table);
    }
    move_some(table);
    struct str key = key_of(table, item);
    uint32_t hash = key_hash(key);
    uint32_t slot;
    bool is_there = find_slot(table, &table->now, key, hash, &slot) ||
                    find_slot(table, &table->before, key, hash, &slot);
    assert(!is_there && "each key once");
    put(&table->now, free_slot(&table->now, hash), item, hash);
    table->count++;
}

void table_remove(struct table *table, const void *item)
{
    assert(table->count > 0);
    struct str key = key_of(table, item);
    uint32_t hash = key_hash(key);
    uint32_t slot;
    const struct table_part *part = &table->now;
    if (!find_slot(table, part, key, hash, &slot)) {
        part = &table->before;
        bool is_there = find_slot(table, part, key, hash, &slot);
        assert(is_there);
    }
    assert(*item_at(part, slot) == item);
    clear_slot(part, slot);
    table->count--;
}

void *table_next(const struct table *table, uint32_t *at)
{
    while (*at < table->now.slots + table->before.slots) {
        uint32_t slot = (*at)++;
        bool is_now = slot < table->now.slots;
        void *item = is_now ? *item_at(&table->now, slot)
                            : *item_at(&table->before, slot - table->now.slots);
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
    part_free(&table->now);
    part_free(&table->before);
    *table = (struct table){.key_offset = table->key_offset};
}
