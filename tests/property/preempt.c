/* Preemption comes to rest. Random trees of shared quota (flat and deep, with weights, limits and
 * two flavors) and random gangs; then everybody who is asked to stop stops, in a random order,
 * until nobody is asked any more. It has to end; each change of hands leads to a start or is called
 * off; a gang is stopped once at most for one and the same; two gangs never stop each other with
 * nothing else changed in between; at rest nothing is over quota anywhere, and no gang waits that
 * would be within its queue's own quota where the queue may take everything back. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "support/check.h"
#include "support/property.h"
#include "support/trees.h"

#define GANGS 20

enum op_kind {
    OP_COHORT = 0,
    OP_QUEUE,
    OP_QUEUE_TOO,
    OP_GANG,
    OP_GANG_TOO,
    OP_START,
    OP_STOP,
    OP_END,
    OP_COUNT,
};

static const char *const op_names[OP_COUNT] = {
    "cohort", "queue", "queue", "gang", "gang", "gang starts", "gang stopped", "gang ends"};

struct waiting {
    int queue;
    int64_t asked[RESOURCES];
    enum decision decision;
    bool was_seen;
    bool stops_for[GANGS]; /* of its present change of hands: who has been asked to stop */
    bool is_stopping_for[GANGS];
    uint64_t started_at; /* the count of changes with its last start */
    uint32_t room_of;    /* bit per gang that stopped for that */
};

struct run {
    struct scenario *s;
    struct trees trees;
    struct waiting gangs[GANGS];
    int gang_count;
    uint64_t changes; /* starts and stops */
    uint32_t stops;
};

static void expect(const struct run *run, bool holds, const char *rule)
{
    if (!holds) {
        printf("%s\nbroken: %s\n", trace_text(run->s), rule);
        fflush(stdout);
        fail();
    }
}

static void make_trees(struct run *run, const struct op *ops, uint32_t count, bool is_fair)
{
    for (int i = 0; i < 3; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "p%d", i);
        given_priority_class(run->s, name, i);
    }
    given_node(run->s, "n", "cpu=1000 memory=1000");
    trees_init(&run->trees, run->s, is_fair);
    for (uint32_t i = 0; i < count; i++) {
        if (ops[i].kind == OP_COHORT) {
            trees_add_cohort(&run->trees, run->s, &ops[i]);
        } else if (ops[i].kind == OP_QUEUE || ops[i].kind == OP_QUEUE_TOO) {
            trees_add_queue(&run->trees, run->s, &ops[i]);
        }
    }
    scenario_start(run->s);
}

/* -- what the core decides, step by step ---------------------------------------------------------
 */

/* g is asked to make room for `by`. */
static void note_victim(struct run *run, int by, int g)
{
    struct waiting *gang = &run->gangs[by];
    struct waiting *victim = &run->gangs[g];
    bool is_news = !gang->is_stopping_for[g];
    gang->is_stopping_for[g] = true;
    if (!is_news) {
        return;
    }
    expect(run, !gang->stops_for[g], "a gang is stopped once at most for one and the same");
    gang->stops_for[g] = true;
    bool is_turned_back = (victim->room_of & (1u << by)) != 0 && victim->started_at == run->changes;
    expect(run, !is_turned_back, "who has just taken a gang's room isn't stopped for it");
}

static bool is_up(enum decision decision)
{
    return decision == DECISION_KEEP || decision == DECISION_ADMIT;
}

static void look_at(struct run *run, const struct decided_gang *entry)
{
    int g = trees_number(entry->name);
    struct waiting *gang = &run->gangs[g];
    bool was_up = is_up(gang->decision);
    bool is_up_now = is_up(entry->decision);
    if (entry->decision == DECISION_PREEMPT) {
        bool is_left[GANGS] = {false};
        for (uint32_t i = 0; i < entry->victims.count; i++) {
            int victim = trees_number(entry->victims.items[i]);
            is_left[victim] = true;
            note_victim(run, g, victim);
        }
        for (int i = 0; i < GANGS; i++) {
            gang->is_stopping_for[i] = gang->is_stopping_for[i] && is_left[i];
        }
    } else {
        gang->room_of = 0;
        for (int i = 0; i < GANGS && is_up_now && !was_up; i++) {
            gang->room_of |= gang->stops_for[i] ? 1u << i : 0;
        }
        memset(gang->stops_for, 0, sizeof(gang->stops_for));
        memset(gang->is_stopping_for, 0, sizeof(gang->is_stopping_for));
    }
    if (is_up_now != was_up) {
        run->changes++;
        gang->started_at = run->changes;
    }
    gang->decision = entry->decision;
}

/* How many are asked to stop, and the number of the nth of them. */
static uint32_t look(struct run *run, uint32_t nth, int *ret_gang)
{
    struct arena arena;
    arena_init(&arena);
    struct decided_list list = core_decisions(scenario_core(run->s), &arena);
    uint32_t stopping = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.items[i].decision != DECISION_PREEMPT) {
            look_at(run, &list.items[i]);
        }
    }
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.items[i].decision == DECISION_PREEMPT) {
            look_at(run, &list.items[i]);
        }
        stopping += list.items[i].decision == DECISION_EVICT ? 1 : 0;
    }
    uint32_t seen = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.items[i].decision == DECISION_EVICT && seen++ == nth % stopping) {
            *ret_gang = trees_number(list.items[i].name);
        }
    }
    arena_deinit(&arena);
    return stopping;
}

static void name_of(int gang, char *text, size_t bytes)
{
    (void)snprintf(text, bytes, "g%d", gang);
}

static bool stop_one(struct run *run, uint32_t nth)
{
    int gang = 0;
    char name[16];
    if (look(run, nth, &gang) == 0) {
        return false;
    }
    name_of(gang, name, sizeof(name));
    gang_stops(run->s, name);
    run->stops++;
    (void)look(run, 0, &gang);
    return true;
}

static void make_gang(struct run *run, const struct op *op)
{
    uint64_t random = trees_random(op);
    int queue = (int)(random_next(&random) % QUEUES);
    if (run->gang_count == GANGS || !run->trees.queues[queue].is_there) {
        return;
    }
    uint32_t pods = 1 + random_next(&random) % 3;
    uint32_t cpu = random_next(&random) % 3;
    uint32_t memory = random_next(&random) % 3;
    char name[16];
    char queue_name[16];
    char options[100];
    name_of(run->gang_count, name, sizeof(name));
    (void)snprintf(queue_name, sizeof(queue_name), "q%d", queue);
    (void)snprintf(options, sizeof(options), "pods=%u cpu=%u memory=%u priority=p%u created=%lld",
                   pods, cpu, memory, random_next(&random) % 3, (long long)scenario_now_ms(run->s));
    run->gangs[run->gang_count] =
        (struct waiting){.queue = queue, .asked = {pods * cpu, pods * memory}};
    run->gang_count++;
    given_job(run->s, name, queue_name, options);
}

static void start_one(struct run *run, const struct op *op)
{
    int gang = run->gang_count == 0 ? -1 : op->a % run->gang_count;
    char name[16];
    if (gang >= 0 && run->gangs[gang].decision == DECISION_ADMIT) {
        name_of(gang, name, sizeof(name));
        gang_starts(run->s, name, "n n n");
    }
}

static void end_one(struct run *run, const struct op *op)
{
    int gang = run->gang_count == 0 ? -1 : op->a % run->gang_count;
    char name[16];
    if (gang < 0 || !is_up(run->gangs[gang].decision)) {
        return;
    }
    name_of(gang, name, sizeof(name));
    job_finishes(run->s, name);
    run->gangs[gang].decision = 0;
}

static void run_ops(struct run *run, const struct op *ops, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int gang = 0;
        at(run->s, scenario_now_ms(run->s) + 1000);
        if (ops[i].kind == OP_GANG || ops[i].kind == OP_GANG_TOO) {
            make_gang(run, &ops[i]);
        } else if (ops[i].kind == OP_START) {
            start_one(run, &ops[i]);
        } else if (ops[i].kind == OP_STOP) {
            (void)stop_one(run, ops[i].a);
        } else if (ops[i].kind == OP_END) {
            end_one(run, &ops[i]);
        }
        (void)look(run, 0, &gang);
    }
}

/* Of a queue that may take back from anybody, whatever is within its own quota runs. */
static void own_quota_is_had(const struct run *run)
{
    for (int g = 0; g < run->gang_count; g++) {
        const struct waiting *gang = &run->gangs[g];
        const struct place *queue = &run->trees.queues[gang->queue];
        if (gang->decision != DECISION_WAIT || !queue->reclaims_any) {
            continue;
        }
        for (int f = 0; f < FLAVORS; f++) {
            bool is_within = true;
            for (int r = 0; r < RESOURCES; r++) {
                int cell = f * RESOURCES + r;
                is_within =
                    is_within && (gang->asked[r] == 0 ||
                                  queue->used[cell] + gang->asked[r] <= queue->nominal[cell]);
            }
            expect(run, !is_within, "a gang within its queue's own quota runs");
        }
    }
}

static void preemption_comes_to_rest(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct run run = {.s = scenario_new()};
    uint64_t random = seed + 5;
    /* A cycle within one step doesn't end by itself: two seconds of this process's own time. */
    const struct itimerval limit = {.it_value = {.tv_sec = 2}};
    (void)setitimer(ITIMER_PROF, &limit, NULL);
    make_trees(&run, ops, count, seed % 3 != 0);
    run_ops(&run, ops, count);
    run.stops = 0;
    while (stop_one(&run, random_next(&random))) {
        expect(&run, run.stops <= (uint32_t)(run.gang_count * run.gang_count), "it comes to rest");
    }
    for (int g = 0; g < run.gang_count; g++) {
        expect(&run, run.gangs[g].decision != DECISION_PREEMPT, "at rest nobody waits for victims");
    }
    trees_read_usage(&run.trees, run.s);
    expect(&run, trees_are_within_quota(&run.trees), "nothing is over quota anywhere");
    own_quota_is_had(&run);
    scenario_free(run.s);
}

int main(void)
{
    const struct property rest = {.name = "preemption comes to rest",
                                  .cases = 400,
                                  .first = 4001, /* 4333 needs rule 5 of decision 013 */
                                  .ops = 60,
                                  .kinds = OP_COUNT,
                                  .kind_names = op_names,
                                  .run = preemption_comes_to_rest};
    return property_check(&rest);
}
