/* A controller that starts anew at any point decides as the one that ran on, whatever the order of
 * its listings; which also means that nobody was left asleep who could have been admitted. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/world.h"

static void compare(struct scenario *s, const char *before)
{
    const char *after = decisions_without_reasons(s);
    if (strcmp(before, after) != 0) {
        print_error("before the restart\n%s", before);
        print_error("after it\n%s", after);
        fail();
    }
}

static void restart_decides_the_same(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct scenario *s = scenario_new();
    world_deletes_cleanly(true);
    world_given(s);
    for (uint32_t i = 0; i < count; i++) {
        world_do(s, &ops[i]);
    }
    at(s, scenario_now_ms(s) + 1);
    puts(trace_text(s));
    const char *before = decisions_without_reasons(s);
    listing_order(s, seed);
    restart(s, WITH_ADMISSIONS);
    compare(s, before);
    listing_order(s, seed * 31 + 7);
    restart(s, WITH_ADMISSIONS);
    compare(s, before);
    scenario_free(s);
}

int main(void)
{
    const struct property restarts = {.name = "a restart decides the same",
                                      .cases = 1500,
                                      .ops = 60,
                                      .kinds = OP_COUNT,
                                      .kind_names = world_op_names,
                                      .run = restart_decides_the_same};
    return property_check(&restarts);
}
