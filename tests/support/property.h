/* property.h - random lists of operations, run in child processes, shrunk where one fails.
 *
 * PROPERTY_CASES and PROPERTY_SEED in the environment say how many cases and from which seed on. A
 * failure prints the seed and the shortest list of operations found that fails, too. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PROPERTY_OPS_MAX 120

struct op {
    uint8_t kind;
    uint8_t a;
    uint8_t b;
};

struct property {
    const char *name;
    uint32_t cases; /* unless the environment says otherwise */
    uint64_t first; /* the first one's seed, unless the environment says otherwise; 0: 1 */
    uint32_t ops;   /* at most; the shortest lists have a quarter */
    uint8_t kinds;  /* kinds of operation: 0 to kinds - 1 */
    const char *const *kind_names;
    /* Fails by a failed assertion or a crash. */
    void (*run)(const struct op *ops, uint32_t count, uint64_t seed);
};

/* The exit status: 0 if all held. */
int property_check(const struct property *property);
uint32_t random_next(uint64_t *state);
