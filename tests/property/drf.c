/* What dominant resource fairness promises, held against the core on random instances: queues of
 * equal weight in one cohort, fair sharing on, each with more gangs of one kind than could ever
 * start.
 *
 *   sharing incentive   nobody has fewer gangs than its equal part of everything would hold
 *   Pareto efficiency   no gang more would fit
 *   no envy             in another's place nobody could run more than one gang more
 *   truthfulness        asking for more than is needed gains nothing but what one gang less of each
 *                       other queue leaves, and one gang
 *
 * The first two hold exactly, the last two up to one gang, because gangs are whole;
 * docs/decisions/018 has examples. DRF_INSTANCES says how many instances, DRF_SEED from which on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/property.h"
#include "tallyman/api/codec.h"
#include "tallyman/base/text.h"
#include "tallyman/core/core.h"

enum { QUEUES_MAX = 4, KINDS = 2, PART_MAX = 7, ASK_MAX = 4 };

#define NOW_MS INT64_C(1795953600000)

static const char *const kind_names[KINDS] = {"cpu", "example.com/gpu"};

struct instance {
    int queues;
    int part[KINDS]; /* a queue's equal part of everything */
    bool is_owned;   /* by the queues, each its part; else all by the cohort */
    int ask[QUEUES_MAX][KINDS];
};

struct outcome {
    int gangs[QUEUES_MAX];
};

/* -- the instance, and what becomes of it -------------------------------------------------------
 */

static struct instance instance_new(uint64_t *random)
{
    struct instance instance = {.queues = 2 + (int)(random_next(random) % (QUEUES_MAX - 1)),
                                .is_owned = random_next(random) % 2 == 0};
    for (int k = 0; k < KINDS; k++) {
        instance.part[k] = 1 + (int)(random_next(random) % PART_MAX);
    }
    for (int q = 0; q < instance.queues; q++) {
        instance.ask[q][0] = 1 + (int)(random_next(random) % ASK_MAX);
        instance.ask[q][1] = (int)(random_next(random) % (ASK_MAX + 1));
    }
    return instance;
}

static int total_of(const struct instance *instance, int kind)
{
    return instance->part[kind] * instance->queues;
}

/* How many gangs of that queue so much of everything holds. */
static int holds(const struct instance *instance, int queue, const int amounts[KINDS])
{
    int most = INT32_MAX;
    for (int k = 0; k < KINDS; k++) {
        int ask = instance->ask[queue][k];
        int here = ask == 0 ? INT32_MAX : amounts[k] / ask;
        most = here < most ? here : most;
    }
    return most;
}

static void feed(struct core *core, struct arena *arena, struct event event)
{
    struct effects effects = {.arena = arena};
    struct err err;
    event.now_ms = NOW_MS;
    assert_false(rc_failed(core_step(core, &event, &effects, &err)));
}

static void give(struct core *core, struct arena *arena, enum object_kind kind, struct str json)
{
    void *value = NULL;
    struct err err;
    if (rc_failed(decode_json(arena, kind_info(kind)->schema, json, &value, &err))) {
        fail_msg("%s\n" STR_FMT, err.text, STR_ARG(json));
    }
    feed(core, arena, (struct event){.kind = EVENT_OBJECT, .object = {kind, value}});
}

static struct str quota_text(struct arena *arena, const int amounts[KINDS])
{
    return arena_format(arena,
                        "\"resourceGroups\":[{\"flavors\":[{\"name\":\"default\",\"resources\":[{"
                        "\"name\":\"%s\",\"nominalQuota\":%d},{\"name\":\"%s\",\"nominalQuota\":%d}"
                        "]}]}]",
                        kind_names[0], amounts[0], kind_names[1], amounts[1]);
}

static void give_queues(struct core *core, struct arena *arena, const struct instance *instance)
{
    static const int nothing[KINDS] = {0, 0};
    int all[KINDS] = {total_of(instance, 0), total_of(instance, 1)};
    give(core, arena, KIND_NAMESPACE, STR("{\"metadata\":{\"name\":\"ml\",\"uid\":\"ml\"}}"));
    give(core, arena, KIND_COHORT,
         arena_format(arena,
                      "{\"metadata\":{\"name\":\"lab\",\"uid\":\"lab\"},\"spec\":{" STR_FMT "}}",
                      STR_ARG(quota_text(arena, instance->is_owned ? nothing : all))));
    for (int q = 0; q < instance->queues; q++) {
        const int *own = instance->is_owned ? instance->part : nothing;
        give(core, arena, KIND_QUEUE,
             arena_format(arena,
                          "{\"metadata\":{\"name\":\"q%d\",\"uid\":\"q%d\"},\"spec\":{\"cohort\":"
                          "\"lab\",\"namespaceSelector\":{},\"fairSharing\":{\"weight\":1},"
                          "\"fit\":\"Quota\"," STR_FMT "}}",
                          q, q, STR_ARG(quota_text(arena, own))));
    }
}

static void give_gangs(struct core *core, struct arena *arena, const struct instance *instance,
                       int queue)
{
    int all[KINDS] = {total_of(instance, 0), total_of(instance, 1)};
    int wanted = holds(instance, queue, all) + 1;
    const int *ask = instance->ask[queue];
    for (int i = 0; i < wanted; i++) {
        give(core, arena, KIND_JOB,
             arena_format(
                 arena,
                 "{\"metadata\":{\"name\":\"j%d-%d\",\"namespace\":\"ml\",\"uid\":\"%02d-%d\","
                 "\"creationTimestamp\":\"2026-11-29T11:%02d:00Z\",\"labels\":{"
                 "\"tallyman.dev/queue\":\"q%d\"}},\"spec\":{\"suspend\":true,\"parallelism\":1,"
                 "\"completions\":1,\"template\":{\"spec\":{\"containers\":[{\"name\":\"main\","
                 "\"resources\":{\"requests\":{\"cpu\":\"%d\",\"%s\":\"%d\"}}}]}}}}",
                 queue, i, i, queue, i, queue, ask[0], kind_names[1], ask[1]));
    }
}

static struct outcome outcome_of(const struct instance *instance)
{
    struct arena arena;
    arena_init(&arena);
    const struct core_options options = {.stuck_node_ms = 0};
    struct core *core = core_new(&options);
    give_queues(core, &arena, instance);
    for (int q = 0; q < instance->queues; q++) {
        give_gangs(core, &arena, instance, q);
    }
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        feed(core, &arena,
             (struct event){.kind = EVENT_SYNCED, .synced_kind = (enum object_kind)kind});
    }
    struct outcome outcome = {.gangs = {0}};
    struct decided_list list = core_decisions(core, &arena);
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.items[i].decision == DECISION_ADMIT) {
            outcome.gangs[list.items[i].queue.ptr[1] - '0']++;
        }
    }
    core_free(core);
    arena_deinit(&arena);
    return outcome;
}

/* -- the promises -------------------------------------------------------------------------------
 */

struct finding {
    const char *name;
    int bound;          /* in gangs; what is measured is never above it */
    uint64_t counts[8]; /* how often it was 0, 1, … gangs */
    uint64_t worst_seed;
    int worst;
};

static void note(struct finding *finding, int gangs, uint64_t seed)
{
    int size = gangs < 0 ? 0 : gangs > 7 ? 7 : gangs;
    finding->counts[size]++;
    if (size > finding->worst) {
        finding->worst = size;
        finding->worst_seed = seed;
    }
}

enum { INCENTIVE, PARETO, ENVY, TRUTH, GAIN, FINDINGS };

static void measure_queue(struct finding *findings, const struct instance *instance,
                          const struct outcome *outcome, int q, uint64_t seed)
{
    int left[KINDS] = {total_of(instance, 0), total_of(instance, 1)};
    int envied = 0;
    for (int other = 0; other < instance->queues; other++) {
        int bundle[KINDS];
        for (int k = 0; k < KINDS; k++) {
            bundle[k] = outcome->gangs[other] * instance->ask[other][k];
            left[k] -= bundle[k];
        }
        int there = holds(instance, q, bundle);
        envied = there > envied ? there : envied;
    }
    note(&findings[INCENTIVE], holds(instance, q, instance->part) - outcome->gangs[q], seed);
    note(&findings[PARETO], holds(instance, q, left), seed);
    note(&findings[ENVY], envied - outcome->gangs[q], seed);
}

/* One queue asks for more than its gangs need. */
static void measure_lie(struct finding *findings, const struct instance *instance,
                        const struct outcome *outcome, uint64_t *random, uint64_t seed)
{
    struct instance told = *instance;
    int liar = (int)(random_next(random) % (uint32_t)instance->queues);
    int kind = (int)(random_next(random) % KINDS);
    told.ask[liar][kind] += 1 + (int)(random_next(random) % 2);
    struct outcome lied = outcome_of(&told);
    int gained = lied.gangs[liar] - outcome->gangs[liar];
    int one_of_each[KINDS] = {0, 0};
    for (int q = 0; q < instance->queues; q++) {
        for (int k = 0; k < KINDS; k++) {
            one_of_each[k] += instance->ask[q][k];
        }
    }
    note(&findings[GAIN], gained, seed);
    note(&findings[TRUTH], gained - holds(instance, liar, one_of_each), seed);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL || *text == '\0' ? otherwise : strtoull(text, NULL, 10);
}

static int report(const struct finding *finding)
{
    printf("%-18s", finding->name);
    for (int i = 0; i <= finding->worst; i++) {
        printf(" %d: %llu", i, (unsigned long long)finding->counts[i]);
    }
    printf(" (worst in instance %llu)\n", (unsigned long long)finding->worst_seed);
    return finding->worst > finding->bound ? 1 : 0;
}

int main(void)
{
    struct finding findings[FINDINGS] = {[INCENTIVE] = {.name = "sharing incentive", .bound = 0},
                                         [PARETO] = {.name = "Pareto efficiency", .bound = 0},
                                         [ENVY] = {.name = "no envy", .bound = 1},
                                         [TRUTH] = {.name = "truthfulness", .bound = 0},
                                         [GAIN] = {.name = "  gained by lying", .bound = 7}};
    uint64_t first = from_environment("DRF_SEED", 1);
    uint64_t instances = from_environment("DRF_INSTANCES", 2000);
    for (uint64_t seed = first; seed < first + instances; seed++) {
        uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + 5;
        (void)random_next(&random);
        struct instance instance = instance_new(&random);
        struct outcome outcome = outcome_of(&instance);
        for (int q = 0; q < instance.queues; q++) {
            measure_queue(findings, &instance, &outcome, q, seed);
        }
        measure_lie(findings, &instance, &outcome, &random, seed);
    }
    int failed = 0;
    printf("%llu instances, in gangs that are missing or gained:\n", (unsigned long long)instances);
    for (int f = 0; f < FINDINGS; f++) {
        failed |= report(&findings[f]);
    }
    return failed;
}
