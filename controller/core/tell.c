/* tell.c - the gangs of a shape are told their new reason: so many of them at each step.
 *
 * A pass may change the reason of thousands of gangs, and each that is told is one write. Their
 * place is decided already, so telling them needn't hold up the next event: what is over goes on a
 * millisecond later. A gang that is told is asked what it says when the write is sent, so whoever
 * waits for his turn is never told what is no longer true; and a reason that has gone back to what
 * it was until then costs no write. */
#include "internal.h"

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* A shape some of whose gangs are still to be told. */
struct telling {
    struct shape *shape; /* NULL: it is gone */
    struct gang *next;   /* the first that hasn't been told; NULL: all have */
    bool again;          /* the reason has changed since the first was */
};

struct tellings {
    struct telling *items; /* owned; those before `first` are done with */
    uint32_t first;
    uint32_t count;
    uint32_t capacity;
    uint32_t budget; /* gangs that this step may still tell */
};

void tell_init(struct core *core)
{
    core->tellings = MEM_NEW(struct tellings);
}

void tell_free(struct core *core)
{
    mem_free(core->tellings->items);
    mem_free(core->tellings);
}

static struct telling *telling_of(struct core *core, const struct shape *shape)
{
    struct tellings *all = core->tellings;
    uint32_t i = all->first;
    while (all->items[i].shape != shape) {
        i++; /* it is there: is_untold says so */
    }
    return &all->items[i];
}

static void go_on(struct core *core, struct telling *telling)
{
    struct tellings *all = core->tellings;
    while (all->budget > 0 && telling->next != NULL) {
        struct gang *gang = telling->next;
        all->budget--;
        telling->next = gang_line_next(&telling->shape->gangs, gang);
        gang_show(core, gang);
        if (telling->next == NULL && telling->again) {
            telling->next = telling->shape->first;
            telling->again = false;
        }
    }
}

void tell_reason(struct core *core, struct shape *shape)
{
    struct tellings *all = core->tellings;
    if (shape->is_untold) {
        telling_of(core, shape)->again = true;
        return;
    }
    struct telling telling = {.shape = shape, .next = shape->first};
    if (all->first == all->count) {
        go_on(core, &telling);
    }
    if (telling.next != NULL) {
        shape->is_untold = true;
        all->items = mem_grow(all->items, all->count, &all->capacity, sizeof(struct telling));
        all->items[all->count++] = telling;
    }
}

void tell_gang_leaves(struct core *core, struct shape *shape, const struct gang *gang)
{
    struct telling *telling = shape->is_untold ? telling_of(core, shape) : NULL;
    if (telling != NULL && telling->next == gang) {
        telling->next = gang_line_next(&shape->gangs, gang);
    }
}

void tell_shape_gone(struct core *core, struct shape *shape)
{
    if (shape->is_untold) {
        *telling_of(core, shape) = (struct telling){.shape = NULL};
    }
}

void tell_step(struct core *core)
{
    core->tellings->budget = TELL_GANGS_PER_STEP;
}

void tell_go_on(struct core *core)
{
    struct tellings *all = core->tellings;
    while (all->first < all->count) {
        struct telling *telling = &all->items[all->first];
        if (telling->shape != NULL) {
            go_on(core, telling);
            if (telling->next != NULL) {
                return;
            }
            telling->shape->is_untold = false;
        }
        all->first++;
    }
    all->first = all->count = 0;
}

int64_t tell_due_ms(const struct core *core)
{
    return core->tellings->count > 0 ? core->now_ms + 1 : 0;
}
