/* victims_sort.c - the order in which gangs would be stopped. Thousands may be to choose from, and
 * they are found in just the opposite order: the earliest admitted first. */
#include "victims.h"

struct candidate {
    struct gang *gang;
    i128 lost; /* worked out once */
};

/* Other queues first, lower priority, least lost work, latest admitted, uid. */
static int compare_candidates(const struct gang *preemptor, const struct candidate *a,
                              const struct candidate *b)
{
    bool a_own = a->gang->reservation->queue == preemptor->queue;
    bool b_own = b->gang->reservation->queue == preemptor->queue;
    if (a_own != b_own) {
        return a_own ? 1 : -1;
    }
    if (a->gang->priority != b->gang->priority) {
        return a->gang->priority < b->gang->priority ? -1 : 1;
    }
    if (a->lost != b->lost) {
        return a->lost < b->lost ? -1 : 1;
    }
    if (a->gang->admitted_ms != b->gang->admitted_ms) {
        return a->gang->admitted_ms > b->gang->admitted_ms ? -1 : 1;
    }
    return str_compare(a->gang->uid, b->gang->uid);
}

int victims_compare(const struct core *core, const struct gang *preemptor, struct gang *a,
                    struct gang *b)
{
    struct candidate one = {a, victims_lost_work(core, a)};
    struct candidate other = {b, victims_lost_work(core, b)};
    return compare_candidates(preemptor, &one, &other);
}

/* Two sorted runs, side by side in `from`, into `to`. */
static void merge(const struct gang *preemptor, const struct candidate *from, uint32_t middle,
                  uint32_t end, struct candidate *to)
{
    uint32_t left = 0;
    uint32_t right = middle;
    for (uint32_t i = 0; i < end; i++) {
        bool is_left = right == end || (left < middle && compare_candidates(preemptor, &from[left],
                                                                            &from[right]) <= 0);
        to[i] = is_left ? from[left++] : from[right++];
    }
}

void victims_sort(struct core *core, const struct gang *preemptor, struct victims *list)
{
    struct candidate *from = ARENA_ARRAY(&core->scratch, struct candidate, list->count + 1);
    struct candidate *to = ARENA_ARRAY(&core->scratch, struct candidate, list->count + 1);
    for (uint32_t i = 0; i < list->count; i++) {
        from[i] = (struct candidate){list->items[i], victims_lost_work(core, list->items[i])};
    }
    for (uint32_t width = 1; width < list->count; width *= 2) {
        for (uint32_t at = 0; at < list->count; at += 2 * width) {
            uint32_t left = list->count - at;
            uint32_t end = left < 2 * width ? left : 2 * width;
            merge(preemptor, &from[at], width < end ? width : end, end, &to[at]);
        }
        struct candidate *sorted = to;
        to = from;
        from = sorted;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        list->items[i] = from[i].gang;
    }
}
