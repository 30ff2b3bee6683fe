/* The ledger under any order of events: after every step the sum of the reservations is what is
 * used, nothing is negative, no queue grows over its quota; and at the end devices are promised
 * once. The same events give the same trace byte for byte. */
#include <string.h>

#include "support/check.h"
#include "support/world.h"

static void ledger_holds(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct scenario *s = scenario_new();
    (void)seed;
    world_given(s);
    for (uint32_t i = 0; i < count; i++) {
        world_do(s, &ops[i]);
    }
    scenario_free(s);
}

static void same_events_same_trace(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct scenario *twins[2] = {scenario_new(), scenario_new()};
    (void)seed;
    for (int t = 0; t < 2; t++) {
        world_given(twins[t]);
        for (uint32_t i = 0; i < count; i++) {
            world_do(twins[t], &ops[i]);
        }
    }
    assert_string_equal(trace_text(twins[0]), trace_text(twins[1]));
    scenario_free(twins[0]);
    scenario_free(twins[1]);
}

/* Without users and admins who take devices away, none is promised twice. */
static void devices_are_promised_once(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct scenario *s = scenario_new();
    (void)seed;
    world_given(s);
    for (uint32_t i = 0; i < count; i++) {
        world_do(s, &ops[i]);
        world_check_devices(s);
    }
    scenario_free(s);
}

int main(void)
{
    const struct property ledger = {.name = "the ledger holds",
                                    .cases = 1500,
                                    .ops = 100,
                                    .kinds = OP_COUNT,
                                    .kind_names = world_op_names,
                                    .run = ledger_holds};
    const struct property trace = {.name = "the same events give the same trace",
                                   .cases = 200,
                                   .ops = 80,
                                   .kinds = OP_COUNT,
                                   .kind_names = world_op_names,
                                   .run = same_events_same_trace};
    const struct property devices = {.name = "devices are promised once",
                                     .cases = 1000,
                                     .ops = 60,
                                     .kinds = OP_CALM_COUNT,
                                     .kind_names = world_op_names,
                                     .run = devices_are_promised_once};
    int failed = property_check(&ledger);
    failed |= property_check(&trace);
    return failed | property_check(&devices);
}
