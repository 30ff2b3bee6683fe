/* uses.c - see uses.h. */
#include "support/uses.h"

#include "support/check.h"
#include "tallyman/core/core.h"

struct uses uses_read(const struct core *core, const char *class_name)
{
    struct uses uses = {{0}};
    struct arena arena;
    arena_init(&arena);
    struct queue_figures_list list = core_queue_figures(core, &arena);
    for (uint32_t q = 0; q < list.count && q < USES_QUEUES_MAX; q++) {
        for (uint32_t c = 0; c < list.items[q].cell_count; c++) {
            const struct cell_figures *cell = &list.items[q].cells[c];
            bool is_it = str_eq_c(cell->resource, class_name);
            uses.devices[q] += is_it ? cell->used_milli / 1000 : 0;
        }
    }
    arena_deinit(&arena);
    return uses;
}

void check_same_payers(struct uses before, struct uses after)
{
    for (int q = 0; q < USES_QUEUES_MAX; q++) {
        check_i64(after.devices[q], before.devices[q]);
    }
}
