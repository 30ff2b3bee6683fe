/* Gangs of several pod sets. Split into sets that are alike, a gang is decided as if it were one;
 * and of unlike sets all that are admitted find their places, in whatever order a scheduler takes
 * their pods and whichever node with room it gives them. */
#include <stdarg.h>
#include <stdio.h>

#include "support/check.h"
#include "support/property.h"
#include "support/scenario.h"

enum split_op { OP_NODE = 0, OP_WHOLE, OP_SPLIT, OP_FINISH, OP_QUOTA, OP_SPLIT_KINDS };

static const char *const split_names[] = {"node", "whole", "split", "finish", "quota"};

#define GANGS_MAX 12

struct twins {
    struct scenario *one; /* its gangs have one set */
    struct scenario *many;
    uint32_t gangs;
    uint32_t nodes;
};

static PRINTF_LIKE(3, 4) void text(char *to, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(to, size, format, args);
    va_end(args);
}

static void add_gang(struct twins *twins, const struct op *op, bool is_split)
{
    char name[16];
    char options[80];
    if (twins->gangs == GANGS_MAX) {
        return;
    }
    unsigned created = twins->gangs;
    text(name, sizeof(name), "j%u", twins->gangs++);
    unsigned main_pods = 1 + op->a % 4;
    unsigned more = is_split ? 1 + op->a / 4 % 3 : 0;
    unsigned last = is_split ? op->a / 12 % 3 : 0;
    unsigned cpu = 1 + op->b % 3;
    text(options, sizeof(options), "pods=%u cpu=%u created=%u", main_pods + more + last, cpu,
         created);
    given_job(twins->one, name, "q", options);
    text(options, sizeof(options), "pods=%u cpu=%u created=%u", more, cpu, created);
    if (more > 0) {
        given_pod_set(twins->many, name, "worker", options);
    }
    text(options, sizeof(options), "pods=%u cpu=%u created=%u", last, cpu, created);
    if (last > 0) {
        given_pod_set(twins->many, name, "last", options);
    }
    text(options, sizeof(options), "pods=%u cpu=%u created=%u", main_pods, cpu, created);
    given_job(twins->many, name, "q", options);
}

static bool is_admitted(struct scenario *s, const char *name)
{
    return !scenario_job(s, name)->spec.suspend.value;
}

static void finish_gang(struct twins *twins, const struct op *op)
{
    char name[16];
    if (twins->gangs == 0) {
        return;
    }
    text(name, sizeof(name), "j%u", op->a % twins->gangs);
    if (is_admitted(twins->one, name)) {
        job_finishes(twins->one, name);
        job_finishes(twins->many, name);
    }
}

static void do_both(struct twins *twins, const struct op *op)
{
    char name[16];
    char options[80];
    switch (op->kind) {
    case OP_NODE:
        text(name, sizeof(name), "n%u", twins->nodes++ % 5);
        text(options, sizeof(options), "cpu=%u", 1 + op->a % 6);
        given_node(twins->one, name, options);
        given_node(twins->many, name, options);
        break;
    case OP_WHOLE:
    case OP_SPLIT:
        add_gang(twins, op, op->kind == OP_SPLIT);
        break;
    case OP_FINISH:
        finish_gang(twins, op);
        break;
    default:
        text(options, sizeof(options), "cpu=%u", 4 + op->a % 20);
        quota_becomes(twins->one, "q", options);
        quota_becomes(twins->many, "q", options);
        break;
    }
}

static void equal_sets_are_decided_as_one(const struct op *ops, uint32_t count, uint64_t seed)
{
    (void)seed;
    struct twins twins = {.one = scenario_new(), .many = scenario_new()};
    given_queue(twins.one, "q", "cpu=12");
    given_queue(twins.many, "q", "cpu=12");
    for (uint32_t i = 0; i < count; i++) {
        do_both(&twins, &ops[i]);
        for (uint32_t g = 0; g < twins.gangs; g++) {
            char name[16];
            text(name, sizeof(name), "j%u", g);
            if (is_admitted(twins.one, name) != is_admitted(twins.many, name)) {
                fail_msg("%s:\n%s\n%s", name, trace_text(twins.one), trace_text(twins.many));
            }
        }
    }
    scenario_free(twins.one);
    scenario_free(twins.many);
}

/* -- unlike sets --------------------------------------------------------------------------------
 */

enum place_op { OP_PLACE_NODE = 0, OP_PLACE_GANG, OP_PLACE_GANG_TOO, OP_PLACE_KINDS };

static const char *const place_names[] = {"node", "gang", "gang"};

#define NODES_MAX 5
#define PODS_MAX  400

/* A cluster of cpu alone, and the pods that look for a place in it. */
struct yard {
    struct scenario *s;
    unsigned room[NODES_MAX];
    bool is_special[NODES_MAX];
    uint32_t nodes;
    uint32_t gangs;
    struct {
        unsigned cpu;
        bool wants_special;
    } pods[PODS_MAX];
    uint32_t pod_count;
    struct {
        unsigned pods[2];
        unsigned cpu[2];
        bool wants_special[2];
    } asked[GANGS_MAX];
};

static void yard_do(struct yard *yard, const struct op *op)
{
    char name[16];
    char options[100];
    if (op->kind == OP_PLACE_NODE) {
        if (yard->nodes < NODES_MAX) {
            uint32_t at = yard->nodes++;
            yard->room[at] = 1 + op->a % 8;
            yard->is_special[at] = op->b % 2 == 0;
            text(name, sizeof(name), "n%u", at);
            text(options, sizeof(options),
                 yard->is_special[at] ? "cpu=%u label=pool:special" : "cpu=%u", yard->room[at]);
            given_node(yard->s, name, options);
        }
        return;
    }
    if (yard->gangs == GANGS_MAX) {
        return;
    }
    uint32_t g = yard->gangs++;
    text(name, sizeof(name), "j%u", g);
    for (int set = 0; set < 2; set++) {
        uint8_t bits = set == 0 ? op->a : op->b;
        yard->asked[g].pods[set] = 1 + bits % 3;
        yard->asked[g].cpu[set] = 1 + bits / 3 % 4;
        yard->asked[g].wants_special[set] = bits / 12 % 2 == 0;
        text(options, sizeof(options),
             yard->asked[g].wants_special[set] ? "pods=%u cpu=%u created=%u selector=pool:special"
                                               : "pods=%u cpu=%u created=%u",
             yard->asked[g].pods[set], yard->asked[g].cpu[set], g);
        if (set == 0) {
            given_pod_set(yard->s, name, "worker", options);
        } else {
            given_job(yard->s, name, "q", options);
        }
    }
}

static void collect_pods(struct yard *yard)
{
    for (uint32_t g = 0; g < yard->gangs; g++) {
        char name[16];
        text(name, sizeof(name), "j%u", g);
        for (int set = 0; set < 2 && is_admitted(yard->s, name); set++) {
            for (unsigned i = 0; i < yard->asked[g].pods[set]; i++) {
                yard->pods[yard->pod_count].cpu = yard->asked[g].cpu[set];
                yard->pods[yard->pod_count++].wants_special = yard->asked[g].wants_special[set];
            }
        }
    }
}

static bool place_pod(struct yard *yard, uint32_t pod, uint64_t *random)
{
    uint32_t from = random_next(random) % NODES_MAX;
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        uint32_t at = (from + i) % NODES_MAX;
        bool may = at < yard->nodes && (!yard->pods[pod].wants_special || yard->is_special[at]);
        if (may && yard->room[at] >= yard->pods[pod].cpu) {
            yard->room[at] -= yard->pods[pod].cpu;
            return true;
        }
    }
    return false;
}

static void unlike_sets_find_their_places(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct yard yard = {.s = scenario_new()};
    uint64_t random = seed + 1;
    given_queue(yard.s, "q", "cpu=1000");
    for (uint32_t i = 0; i < count; i++) {
        yard_do(&yard, &ops[i]);
    }
    scenario_start(yard.s);
    collect_pods(&yard);
    for (uint32_t left = yard.pod_count; left > 0; left--) {
        uint32_t pick = random_next(&random) % left;
        if (!place_pod(&yard, pick, &random)) {
            fail_msg("a pod of an admitted gang finds no place\n%s", trace_text(yard.s));
        }
        yard.pods[pick] = yard.pods[left - 1];
    }
    scenario_free(yard.s);
}

int main(void)
{
    const struct property equal = {.name = "equal sets are decided as one",
                                   .cases = 1000,
                                   .ops = 40,
                                   .kinds = OP_SPLIT_KINDS,
                                   .kind_names = split_names,
                                   .run = equal_sets_are_decided_as_one};
    const struct property placed = {.name = "unlike sets find their places",
                                    .cases = 2000,
                                    .ops = 12,
                                    .kinds = OP_PLACE_KINDS,
                                    .kind_names = place_names,
                                    .run = unlike_sets_find_their_places};
    int status = property_check(&equal);
    return property_check(&placed) != 0 ? 1 : status;
}
