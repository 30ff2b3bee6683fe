#define _GNU_SOURCE
#include "support/property.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tallyman/base/attr.h"

#define BATCH 50

#ifdef TALLYMAN_COVERAGE
void __gcov_dump(void);
#else
static void __gcov_dump(void)
{
}
#endif

/* _exit() doesn't write down what was run through. */
static NORETURN void leave(void)
{
    __gcov_dump();
    _exit(0);
}

uint32_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL || *text == '\0' ? otherwise : strtoull(text, NULL, 10);
}

static uint32_t make_ops(const struct property *property, uint64_t seed, struct op *ops)
{
    uint64_t random = seed * 2654435761u + 17;
    (void)random_next(&random);
    uint32_t least = property->ops / 4;
    uint32_t count = least + random_next(&random) % (property->ops - least);
    for (uint32_t i = 0; i < count; i++) {
        ops[i].kind = (uint8_t)(random_next(&random) % property->kinds);
        ops[i].a = (uint8_t)random_next(&random);
        ops[i].b = (uint8_t)random_next(&random);
    }
    return count;
}

/* Whether these operations fail, tried in a child. */
static bool fails(const struct property *property, const struct op *ops, uint32_t count,
                  uint64_t seed, bool is_quiet)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (is_quiet) {
            (void)!freopen("/dev/null", "w", stdout);
            (void)!freopen("/dev/null", "w", stderr);
        }
        property->run(ops, count, seed);
        fflush(NULL);
        leave();
    }
    int status = 0;
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

static uint32_t shrink(const struct property *property, struct op *ops, uint32_t count,
                       uint64_t seed)
{
    for (uint32_t chunk = count / 2; chunk > 0; chunk /= 2) {
        for (uint32_t start = 0; start + chunk <= count;) {
            struct op shorter[PROPERTY_OPS_MAX];
            memcpy(shorter, ops, start * sizeof(struct op));
            memcpy(shorter + start, ops + start + chunk,
                   (count - start - chunk) * sizeof(struct op));
            if (fails(property, shorter, count - chunk, seed, true)) {
                count -= chunk;
                memcpy(ops, shorter, count * sizeof(struct op));
            } else {
                start += chunk;
            }
        }
    }
    return count;
}

static void report(const struct property *property, uint64_t seed)
{
    struct op ops[PROPERTY_OPS_MAX];
    uint32_t count = shrink(property, ops, make_ops(property, seed, ops), seed);
    printf("%s fails with seed %llu (PROPERTY_SEED=%llu PROPERTY_CASES=1), shrunk to:\n",
           property->name, (unsigned long long)seed, (unsigned long long)seed);
    for (uint32_t i = 0; i < count; i++) {
        printf("  %s %u %u\n", property->kind_names[ops[i].kind], ops[i].a, ops[i].b);
    }
    (void)fails(property, ops, count, seed, false);
}

static void run_batch(const struct property *property, uint64_t first, uint64_t count,
                      uint64_t *current)
{
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct op ops[PROPERTY_OPS_MAX];
        *current = seed;
        property->run(ops, make_ops(property, seed, ops), seed);
    }
}

int property_check(const struct property *property)
{
    uint64_t first = from_environment("PROPERTY_SEED", property->first == 0 ? 1 : property->first);
    uint64_t cases = from_environment("PROPERTY_CASES", property->cases);
    uint64_t *current =
        mmap(NULL, sizeof(*current), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (uint64_t done = 0; done < cases; done += BATCH) {
        uint64_t count = cases - done < BATCH ? cases - done : BATCH;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            (void)!freopen("/dev/null", "w", stdout); /* shown again once it is shrunk */
            (void)!freopen("/dev/null", "w", stderr);
            run_batch(property, first + done, count, current);
            leave();
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            report(property, *current);
            return 1;
        }
    }
    printf("%s: %llu cases held\n", property->name, (unsigned long long)cases);
    return 0;
}
