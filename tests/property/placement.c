/* What is admitted finds its places, however the scheduler picks among the nodes with room: no gang
 * is left partial by our doing. */
#include "support/check.h"
#include "support/world.h"

static void admitted_gangs_are_placed_whole(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct scenario *s = scenario_new();
    world_given(s);
    for (uint32_t i = 0; i < count; i++) {
        world_do(s, &ops[i]);
    }
    world_place_all(s, seed + 1);
    scenario_free(s);
}

int main(void)
{
    const struct property placement = {.name = "admitted gangs are placed whole",
                                       .cases = 1000,
                                       .ops = 60,
                                       .kinds = OP_CALM_COUNT,
                                       .kind_names = world_op_names,
                                       .run = admitted_gangs_are_placed_whole};
    return property_check(&placement);
}
