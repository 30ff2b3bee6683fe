/* scenario_gather.c - events of one moment, in each order in which watches may bring them. */
#include "support/scenario_internal.h"

#include "support/check.h"
#include "support/property.h"

struct gathered {
    struct event event;
    struct gathered *next;
};

void events_gather(struct scenario *s)
{
    s->is_gathering = true;
    s->gathered = NULL;
    s->gathered_last = &s->gathered;
}

void gather(struct scenario *s, const struct event *event)
{
    struct gathered *one = ARENA_NEW(&s->arena, struct gathered);
    one->event = *event;
    *s->gathered_last = one;
    s->gathered_last = &one->next;
}

/* Takes the first of that kind out of the list. */
static struct gathered *take_first(struct scenario *s, enum object_kind kind)
{
    struct gathered **link = &s->gathered;
    while ((*link)->event.object.kind != kind) {
        link = &(*link)->next;
    }
    struct gathered *taken = *link;
    *link = taken->next;
    return taken;
}

/* The kind whose watch is read next. */
static enum object_kind next_kind(const struct scenario *s, uint64_t *random)
{
    uint32_t count = 0;
    const struct gathered *one = s->gathered;
    for (const struct gathered *other = one; other != NULL; other = other->next) {
        count++;
    }
    for (uint32_t n = *random == 0 ? 0 : random_next(random) % count; n > 0; n--) {
        one = one->next;
    }
    return one->event.object.kind;
}

void events_arrive(struct scenario *s, uint64_t seed)
{
    s->is_gathering = false;
    uint64_t random = seed;
    while (s->gathered != NULL) {
        struct gathered *one = take_first(s, next_kind(s, &random));
        one->event.more_follow = s->gathered != NULL;
        step(s, &one->event);
    }
}

void events_arrive_at_times(struct scenario *s, uint64_t seed, uint32_t step)
{
    uint64_t random = seed + step;
    if (seed % 3 == 0 && random_next(&random) % 3 == 0) {
        events_arrive(s, 0);
        events_gather(s);
    }
}
