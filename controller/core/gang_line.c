/* gang_line.c - see gang_line.h. */
#include "state.h"

#include <assert.h>
#include <string.h>

#include "tallyman/base/alloc.h"

#define BLOCK_MAX 128u /* gangs */
/* As 49 bits all times from the year 0 to 9999 keep their order; 15 are left for the uid. */
#define UID_BITS  15
#define YEAR_0_MS INT64_C(-62167219200000)
#define TIMES     (INT64_C(1) << (64 - UID_BITS))
#define TIME_LAST (TIMES - 1 + YEAR_0_MS)

struct line_entry {
    uint64_t start; /* the first bits of time and uid, in their order */
    struct gang *gang;
};

struct line_block {
    int64_t priority;
    uint64_t start;             /* its first entry's */
    struct line_entry *entries; /* owned */
    uint32_t count, capacity;
};

static const struct {
    size_t ms; /* where it stands in a gang */
    int (*compare)(const struct gang *a, const struct gang *b);
} orders[] = {
    [LINE_BY_PLACE] = {offsetof(struct gang, order_ms), gang_compare_order},
    [LINE_BY_TIMER] = {offsetof(struct gang, timer_ms), gang_compare_timer},
    [LINE_BY_ADMISSION] = {offsetof(struct gang, admitted_ms), gang_compare_admitted},
};

static int64_t priority_in(const struct gang_line *line, const struct gang *gang)
{
    return line->order == LINE_BY_PLACE ? gang->priority : 0;
}

/* Of two that differ the lesser one goes first; of two alike gang_compare_x() knows. */
static uint64_t start_in(const struct gang_line *line, const struct gang *gang)
{
    int64_t ms;
    memcpy(&ms, (const char *)gang + orders[line->order].ms, sizeof(ms));
    if (ms < YEAR_0_MS || ms > TIME_LAST) {
        return ms < YEAR_0_MS ? 0 : UINT64_MAX;
    }
    return (uint64_t)(ms - YEAR_0_MS) << UID_BITS | gang->uid_start >> (64 - UID_BITS);
}

/* The other gang is looked at only where what stands in the line doesn't tell. */
static int compare(const struct gang_line *line, uint64_t start, const struct gang *gang,
                   uint64_t other_start, const struct line_entry *other)
{
    if (start != other_start) {
        return start < other_start ? -1 : 1;
    }
    return orders[line->order].compare(gang, other->gang);
}

/* Looks at the last first: mostly, who comes goes behind all others. */
static uint32_t middle_of(uint32_t low, uint32_t high, uint32_t count)
{
    return high == count ? high - 1 : low + (high - low) / 2;
}

/* The first block that begins behind the gang. */
static uint32_t block_behind(const struct gang_line *line, int64_t priority, uint64_t start,
                             const struct gang *gang)
{
    uint32_t low = 0;
    uint32_t high = line->count;
    while (low < high) {
        uint32_t middle = middle_of(low, high, line->count);
        const struct line_block *block = &line->blocks[middle];
        bool is_behind = block->priority != priority
                             ? block->priority < priority
                             : compare(line, start, gang, block->start, block->entries) < 0;
        low = is_behind ? low : middle + 1;
        high = is_behind ? middle : high;
    }
    return low;
}

static uint32_t place_in(const struct gang_line *line, const struct line_block *block,
                         uint64_t start, const struct gang *gang)
{
    uint32_t low = 0;
    uint32_t high = block->count;
    while (low < high) {
        uint32_t middle = middle_of(low, high, block->count);
        const struct line_entry *entry = &block->entries[middle];
        bool is_before = compare(line, start, gang, entry->start, entry) > 0;
        low = is_before ? middle + 1 : low;
        high = is_before ? high : middle;
    }
    return low;
}

/* In a block of its priority, if there is one. */
static struct gang_line_walk find_spot(const struct gang_line *line, const struct gang *gang)
{
    int64_t priority = priority_in(line, gang);
    uint64_t start = start_in(line, gang);
    struct gang_line_walk spot = {.block = block_behind(line, priority, start, gang)};
    if (spot.block > 0 && line->blocks[spot.block - 1].priority == priority) {
        spot.block--;
        spot.at = place_in(line, &line->blocks[spot.block], start, gang);
    }
    return spot;
}

static struct gang_line_walk spot_of(const struct gang_line *line, const struct gang *gang)
{
    struct gang_line_walk spot = find_spot(line, gang);
    assert(spot.block < line->count && spot.at < line->blocks[spot.block].count &&
           line->blocks[spot.block].entries[spot.at].gang == gang && "it stands in the line");
    return spot;
}

static struct line_block *add_block(struct gang_line *line, uint32_t at, int64_t priority)
{
    line->blocks = mem_grow(line->blocks, line->count, &line->capacity, sizeof(*line->blocks));
    struct line_block *block = &line->blocks[at];
    memmove(block + 1, block, (line->count - at) * sizeof(*block));
    line->count++;
    *block = (struct line_block){.priority = priority};
    return block;
}

static void set_capacity(struct line_block *block, uint32_t capacity)
{
    block->capacity = capacity < BLOCK_MAX ? capacity : BLOCK_MAX;
    block->entries = mem_realloc(block->entries, block->capacity * sizeof(*block->entries));
}

/* Half of a full block moves to a new one; or none, where all come in order and go behind the last.
 */
static struct gang_line_walk split(struct gang_line *line, struct gang_line_walk spot)
{
    struct line_block *after = add_block(line, spot.block + 1, line->blocks[spot.block].priority);
    struct line_block *block = after - 1;
    bool is_end = spot.block + 2 == line->count || after[1].priority != block->priority;
    uint32_t kept = is_end && spot.at == block->count ? block->count : block->count / 2;
    after->count = block->count - kept;
    if (after->count > 0) {
        set_capacity(after, after->count + after->count / 2);
        memcpy(after->entries, block->entries + kept, after->count * sizeof(*block->entries));
        after->start = after->entries->start;
        block->count = kept;
    }
    return spot.at < kept ? spot : (struct gang_line_walk){spot.block + 1, spot.at - kept};
}

bool gang_line_put(struct gang_line *line, struct gang *gang)
{
    struct gang_line_walk spot = find_spot(line, gang);
    int64_t priority = priority_in(line, gang);
    if (spot.block == line->count || line->blocks[spot.block].priority != priority) {
        add_block(line, spot.block, priority);
    } else if (line->blocks[spot.block].count == BLOCK_MAX) {
        spot = split(line, spot);
    }
    struct line_block *block = &line->blocks[spot.block];
    if (block->count == block->capacity) {
        set_capacity(block, block->count + block->count / 2 + 2);
    }
    struct line_entry *entry = &block->entries[spot.at];
    assert((spot.at == block->count || entry->gang != gang) && "it doesn't stand in the line yet");
    memmove(entry + 1, entry, (block->count - spot.at) * sizeof(*entry));
    *entry = (struct line_entry){start_in(line, gang), gang};
    block->count++;
    block->start = block->entries->start;
    return spot.block == 0 && spot.at == 0;
}

static void remove_block(struct gang_line *line, uint32_t at)
{
    struct line_block *block = &line->blocks[at];
    mem_free(block->entries);
    line->count--;
    memmove(block, block + 1, (line->count - at) * sizeof(*block));
    if (line->count == 0) {
        mem_free(line->blocks);
        *line = (struct gang_line){.order = line->order};
    }
}

void gang_line_take(struct gang_line *line, const struct gang *gang)
{
    struct gang_line_walk spot = spot_of(line, gang);
    struct line_block *block = &line->blocks[spot.block];
    block->count--;
    if (block->count == 0) {
        remove_block(line, spot.block);
        return;
    }
    struct line_entry *entry = &block->entries[spot.at];
    memmove(entry, entry + 1, (block->count - spot.at) * sizeof(*entry));
    block->start = block->entries->start;
    if (block->count < block->capacity / 4) {
        set_capacity(block, block->capacity / 2);
    }
}

struct gang *gang_line_first(const struct gang_line *line)
{
    return line->count == 0 ? NULL : line->blocks->entries->gang;
}

struct gang *gang_line_step(const struct gang_line *line, struct gang_line_walk *walk)
{
    if (walk->block == line->count) {
        return NULL;
    }
    const struct line_block *block = &line->blocks[walk->block];
    struct gang *gang = block->entries[walk->at++].gang;
    if (walk->at == block->count) {
        *walk = (struct gang_line_walk){.block = walk->block + 1};
    }
    return gang;
}

struct gang *gang_line_next(const struct gang_line *line, const struct gang *gang)
{
    struct gang_line_walk spot = find_spot(line, gang);
    struct gang_line_walk walk = {spot.block, spot.at};
    if (spot.block < line->count && spot.at == line->blocks[spot.block].count) {
        walk = (struct gang_line_walk){.block = spot.block + 1};
    }
    struct gang *next = gang_line_step(line, &walk);
    return next == gang ? gang_line_step(line, &walk) : next;
}

uint32_t gang_line_ahead(const struct gang_line *line, const struct gang *gang, uint32_t limit)
{
    struct gang_line_walk spot = spot_of(line, gang);
    uint32_t ahead = spot.at;
    for (uint32_t b = 0; b < spot.block && ahead < limit; b++) {
        ahead += line->blocks[b].count;
    }
    return ahead < limit ? ahead : limit;
}

/* -- a queue's, and a shape's ------------------------------------------------------------------ */

void queue_put_gang(struct queue_state *queue, struct gang *gang)
{
    (void)gang_line_put(&queue->pending, gang);
    queue->pending_count++;
}

void queue_take_gang(struct queue_state *queue, const struct gang *gang)
{
    gang_line_take(&queue->pending, gang);
    queue->pending_count--;
}

void shape_put_gang(struct shape *shape, struct gang *gang)
{
    if (gang_line_put(&shape->gangs, gang)) {
        shape->first = gang;
    }
}

void shape_take_gang(struct shape *shape, const struct gang *gang)
{
    gang_line_take(&shape->gangs, gang);
    shape->first = gang_line_first(&shape->gangs);
}
