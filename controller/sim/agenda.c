/* agenda.c - a heap of tasks by time and order of making. */
#include "sim_internal.h"

#include "tallyman/base/alloc.h"

static bool task_is_before(const struct task *a, const struct task *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->sequence < b->sequence;
}

static void heap_up(struct agenda *agenda, uint32_t at)
{
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;
        if (!task_is_before(agenda->items[at], agenda->items[parent])) {
            return;
        }
        struct task *task = agenda->items[at];
        agenda->items[at] = agenda->items[parent];
        agenda->items[parent] = task;
        at = parent;
    }
}

static void heap_down(struct agenda *agenda, uint32_t at)
{
    for (;;) {
        uint32_t first = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < agenda->count; child++) {
            if (task_is_before(agenda->items[child], agenda->items[first])) {
                first = child;
            }
        }
        if (first == at) {
            return;
        }
        struct task *task = agenda->items[at];
        agenda->items[at] = agenda->items[first];
        agenda->items[first] = task;
        at = first;
    }
}

struct task *agenda_add(struct sim *sim, int64_t at_ms,
                        void (*run)(struct sim *sim, struct task *task), struct str uid)
{
    struct agenda *agenda = &sim->agenda;
    struct task *task = MEM_NEW(struct task);
    task->at_ms = at_ms > sim->now_ms ? at_ms : sim->now_ms;
    task->sequence = agenda->next_sequence++;
    task->run = run;
    if (str_is_set(uid)) {
        char *copy = mem_alloc(uid.len + 1);
        memcpy(copy, uid.ptr, uid.len);
        copy[uid.len] = '\0';
        task->uid = (struct str){copy, uid.len};
    }
    agenda->items =
        mem_grow(agenda->items, agenda->count, &agenda->capacity, sizeof(struct task *));
    agenda->items[agenda->count++] = task;
    heap_up(agenda, agenda->count - 1);
    return task;
}

const struct task *agenda_first(const struct agenda *agenda)
{
    return agenda->count == 0 ? NULL : agenda->items[0];
}

struct task *agenda_take(struct agenda *agenda)
{
    struct task *task = agenda->items[0];
    agenda->items[0] = agenda->items[--agenda->count];
    heap_down(agenda, 0);
    return task;
}

void task_free(struct task *task)
{
    mem_free((void *)(uintptr_t)task->uid.ptr);
    mem_free(task->value);
    mem_free(task);
}

void agenda_deinit(struct agenda *agenda)
{
    for (uint32_t i = 0; i < agenda->count; i++) {
        task_free(agenda->items[i]);
    }
    mem_free(agenda->items);
}

/* SplitMix64 (Steele, Lea, Flood 2014): enough to shake up an order. */
static uint64_t next_random(struct sim *sim)
{
    uint64_t z = sim->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t sim_later(struct sim *sim, int64_t delay_ms)
{
    if (sim->options.seed != 0 && delay_ms > 0) {
        delay_ms += (int64_t)(next_random(sim) % ((uint64_t)delay_ms + 1));
    }
    return sim->now_ms + delay_ms;
}
