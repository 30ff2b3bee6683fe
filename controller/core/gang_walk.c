/* gang_walk.c - see gang_walk.h. */
#include "gang_walk.h"

#include <assert.h>
#include <stdlib.h>

#include "tallyman/base/alloc.h"

static int compare_items(const void *a, const void *b)
{
    const struct gang_walk_item *left = a;
    const struct gang_walk_item *right = b;
    if (left->uid_start != right->uid_start) {
        return left->uid_start < right->uid_start ? -1 : 1;
    }
    return str_compare(left->gang->uid, right->gang->uid);
}

void gang_walk_begin(struct core *core, struct gang_walk *walk,
                     bool (*picks)(const struct gang *gang, const void *with), const void *with)
{
    *walk = (struct gang_walk){.outer = core->gang_walks};
    core->gang_walks = walk;
    uint32_t capacity = 0;
    uint32_t at = 0;
    for (struct gang *gang; (gang = table_next(&core->gangs, &at)) != NULL;) {
        if (picks != NULL && !picks(gang, with)) {
            continue;
        }
        walk->items = mem_grow(walk->items, walk->count, &capacity, sizeof(*walk->items));
        walk->items[walk->count++] =
            (struct gang_walk_item){.uid_start = gang->uid_start, .gang = gang};
    }
    if (walk->count > 1) {
        qsort(walk->items, walk->count, sizeof(*walk->items), compare_items);
    }
}

struct gang *gang_walk_next(struct core *core, struct gang_walk *walk)
{
    while (walk->next < walk->count) {
        struct gang *gang = walk->items[walk->next++].gang;
        if (gang != NULL) {
            return gang;
        }
    }
    assert(core->gang_walks == walk && "one within the other");
    core->gang_walks = walk->outer;
    mem_free(walk->items);
    *walk = (struct gang_walk){.items = NULL};
    return NULL;
}

/* The first item of that beginning, or of a greater one, that is still to come. */
static uint32_t find_start(const struct gang_walk *walk, uint64_t uid_start)
{
    uint32_t low = walk->next;
    uint32_t high = walk->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (walk->items[middle].uid_start < uid_start) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void gang_walks_forget(struct core *core, const struct gang *gang)
{
    for (struct gang_walk *walk = core->gang_walks; walk != NULL; walk = walk->outer) {
        uint32_t i = find_start(walk, gang->uid_start);
        for (; i < walk->count && walk->items[i].uid_start == gang->uid_start; i++) {
            if (walk->items[i].gang == gang) {
                walk->items[i].gang = NULL;
            }
        }
    }
}
