/* The same events, in any order in which the watches may bring them, end in the same decisions:
 * what happens within one moment is delivered as it happened to one core, kind by kind at random to
 * another (the events of a kind keep their order). Of pods that weren't seen yet when their Job
 * went or shrank, nothing was charged any more; that doesn't happen here. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/world.h"

#define MOMENT_MAX 6 /* operations in one moment */

static void expect_alike(struct scenario *const twins[2])
{
    const char *in_order = decisions_without_reasons(twins[0]);
    const char *mixed = decisions_without_reasons(twins[1]);
    if (strcmp(in_order, mixed) != 0) {
        puts(trace_text(twins[0]));
        puts("----");
        puts(trace_text(twins[1]));
        print_error("delivered as it happened\n%s", in_order);
        print_error("delivered otherwise\n%s", mixed);
        fail();
    }
}

/* Where the moment that begins at `first` ends. */
static uint32_t moment_end(const struct op *ops, uint32_t first, uint32_t count, uint64_t *random)
{
    uint32_t end = first + 1 + random_next(random) % MOMENT_MAX;
    end = end < count ? end : count;
    for (uint32_t i = first; i < end; i++) {
        if (ops[i].kind == OP_JOB_RESIZED || ops[i].kind == OP_TIME) {
            return i == first ? i + 1 : i;
        }
    }
    return end;
}

static void any_delivery_decides_the_same(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct scenario *twins[2] = {scenario_new(), scenario_new()};
    uint64_t random = seed + 1;
    world_deletes_cleanly(true);
    for (int t = 0; t < 2; t++) {
        world_given(twins[t]);
        scenario_start(twins[t]);
    }
    for (uint32_t i = 0; i < count;) {
        uint32_t end = moment_end(ops, i, count, &random);
        uint64_t mix = random_next(&random) | 1;
        for (int t = 0; t < 2; t++) {
            events_gather(twins[t]);
            for (uint32_t k = i; k < end; k++) {
                world_do(twins[t], &ops[k]);
            }
            events_arrive(twins[t], t == 0 ? 0 : mix);
        }
        expect_alike(twins);
        i = end;
    }
    scenario_free(twins[0]);
    scenario_free(twins[1]);
}

int main(void)
{
    const struct property deliveries = {.name = "any order of delivery decides the same",
                                        .cases = 1000,
                                        .ops = 60,
                                        .kinds = OP_COUNT,
                                        .kind_names = world_op_names,
                                        .run = any_delivery_decides_the_same};
    return property_check(&deliveries);
}
