/* main.c - whatever becomes of the store, the same gangs are admitted at the same moments; what was
 * committed is there once; and a day of churn leaves nothing behind.
 *
 *     keep [RUNS] [SEED] */
#include "keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "tallyman/base/alloc.h"

static void compare(uint64_t seed)
{
    struct run_figures without;
    char *expected = world_run(NULL, seed, &without);
    for (int fate = 0; fate < FATE_COUNT; fate++) {
        struct keep *keep = keep_new((enum fate)fate, seed);
        struct run_figures figures;
        char *trace = world_run(keep, seed, &figures);
        if (strcmp(trace, expected) != 0) {
            fail_msg("seed %llu decides otherwise with its store %s", (unsigned long long)seed,
                     fate_names[fate]);
        }
        keep_check(keep);
        keep_free(keep);
        mem_free(trace);
    }
    mem_free(expected);
}

int main(int argc, char **argv)
{
    uint64_t runs = argc > 1 ? strtoull(argv[1], NULL, 10) : 100;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + runs; seed++) {
        compare(seed);
    }
    printf("%llu runs, each with its store kept, lost, older, torn, cut short and full: alike\n",
           (unsigned long long)runs);
    struct keep *keep = keep_new(FATE_KEPT, 1);
    world_churn(keep);
    keep_free(keep);
    return 0;
}
