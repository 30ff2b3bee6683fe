/* What is looked up in an index (nodes by what is free on them, the ranking of the queues, who
 * waits for what) is what looking at everything finds: the same events lead to the same trace. So
 * do passes that are cut after each admission. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/property.h"
#include "support/scenario.h"
#include "support/world.h"

#define QUEUES 8
#define JOBS   24

enum tree_op {
    TREE_JOB_NEW,
    TREE_JOB_NEW_TOO,
    TREE_JOB_NEW_MORE,
    TREE_JOB_FINISHES,
    TREE_JOB_FINISHES_TOO,
    TREE_JOB_DELETED,
    TREE_QUOTA,
    TREE_COHORT,
    TREE_TIME,
    TREE_COUNT,
};

static const char *const tree_op_names[TREE_COUNT] = {"job-new",      "job-new",      "job-new",
                                                      "job-finishes", "job-finishes", "job-deleted",
                                                      "quota",        "cohort",       "time"};

static const char *const preemptions[] = {"", " within=LowerPriority", " reclaim=Any",
                                          " within=LowerOrNewerEqualPriority reclaim=Any",
                                          " reclaim=LowerPriority"};

static void add_queue(struct scenario *s, int index, uint64_t *random, bool is_fair)
{
    char name[16];
    char options[300];
    (void)snprintf(name, sizeof(name), "q%d", index);
    uint32_t second = random_next(random) % 6;
    int at = snprintf(options, sizeof(options), "fit=Quota cpu=%u flavor=b cpu=%u",
                      random_next(random) % 5, second);
    if (random_next(random) % 4 != 0) {
        at += snprintf(options + at, sizeof(options) - (size_t)at, " cohort=c%u",
                       random_next(random) % 4);
    }
    if (random_next(random) % 4 == 0) {
        at += snprintf(options + at, sizeof(options) - (size_t)at, " strategy=StrictFIFO");
    }
    if (is_fair && random_next(random) % 2 == 0) {
        at += snprintf(options + at, sizeof(options) - (size_t)at, " weight=%u",
                       random_next(random) % 3);
    }
    (void)snprintf(options + at, sizeof(options) - (size_t)at, "%s",
                   preemptions[random_next(random) % ARRAY_COUNT(preemptions)]);
    given_queue(s, name, options);
}

static void add_cohort(struct scenario *s, int index, uint64_t *random)
{
    char json[400];
    uint32_t parent = random_next(random) % 4;
    char up[32] = "";
    char own[200] = "";
    if (parent < (uint32_t)index) { /* so no cycle comes about */
        (void)snprintf(up, sizeof(up), "\"parentName\":\"c%u\",", parent);
    }
    if (random_next(random) % 3 == 0) {
        (void)snprintf(own, sizeof(own),
                       "{\"flavors\":[{\"name\":\"default\",\"resources\":[{\"name\":\"cpu\","
                       "\"nominalQuota\":\"%u\"}]}]}",
                       random_next(random) % 4);
    }
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"c%d\"},\"spec\":{%s\"resourceGroups\":[%s]}}", index,
                   up, own);
    given_json(s, KIND_COHORT, json);
}

static void given_tree(struct scenario *s, uint64_t *random, bool is_fair)
{
    given_flavor(s, "default", "");
    given_flavor(s, "b", "");
    given_priority_class(s, "high", 10);
    for (int i = 0; i < 4; i++) {
        add_cohort(s, i, random);
    }
    for (int i = 0; i < QUEUES; i++) {
        add_queue(s, i, random, is_fair);
    }
}

static void do_tree_op(struct scenario *s, const struct op *op, uint64_t *random, bool is_fair)
{
    char name[16];
    char queue[16];
    char options[100];
    (void)snprintf(name, sizeof(name), "j%d", op->a % JOBS);
    (void)snprintf(queue, sizeof(queue), "q%d", op->b % QUEUES);
    bool exists = scenario_has(s, KIND_JOB, name);
    switch ((int)op->kind) {
    case TREE_JOB_NEW:
    case TREE_JOB_NEW_TOO:
    case TREE_JOB_NEW_MORE:
        (void)snprintf(options, sizeof(options), "pods=%d cpu=%d%s", 1 + op->b % 3, 1 + op->a % 2,
                       op->b % 7 == 0 ? " priority=high" : "");
        if (!exists) {
            given_job(s, name, queue, options);
        }
        break;
    case TREE_JOB_FINISHES:
    case TREE_JOB_FINISHES_TOO:
        if (exists && !scenario_job(s, name)->spec.suspend.value) {
            job_finishes(s, name);
            object_gone(s, KIND_JOB, name);
        }
        break;
    case TREE_JOB_DELETED:
        if (exists) {
            object_gone(s, KIND_JOB, name);
        }
        break;
    case TREE_QUOTA:
        add_queue(s, op->b % QUEUES, random, is_fair);
        break;
    case TREE_COHORT:
        add_cohort(s, op->b % 4, random);
        break;
    default:
        at(s, scenario_now_ms(s) + 500 * (1 + op->a % 20));
        break;
    }
}

/* The next line of what was done; what an Admission says of a gang that isn't judged again may be
 * of its last judgement. */
static struct str next_deed(const char **text)
{
    while (**text != '\0') {
        size_t len = strcspn(*text, "\n");
        struct str line = {*text, len};
        *text += len + ((*text)[len] == '\n' ? 1 : 0);
        if (memmem(line.ptr, line.len, " > ", 3) == NULL) {
            return line;
        }
    }
    return STR("");
}

static void same_deeds(const char *indexed, const char *plain)
{
    const char *a = indexed;
    const char *b = plain;
    while (*a != '\0' || *b != '\0') {
        struct str line_a = next_deed(&a);
        struct str line_b = next_deed(&b);
        if (!str_eq(line_a, line_b)) {
            (void)fprintf(stderr, "indexed: " STR_FMT "\nother:   " STR_FMT "\n", STR_ARG(line_a),
                          STR_ARG(line_b));
            fail();
        }
    }
}

/* How the core goes about it. */
struct manner {
    bool is_plain;
    uint32_t admissions_per_step;
};

static const struct manner indexed_at_once = {.is_plain = false};
static const struct manner plainly = {.is_plain = true};
static const struct manner one_by_one = {.admissions_per_step = 1};

static void behave(const struct manner *manner)
{
    scenarios_are_plain(manner->is_plain);
    scenarios_are_cut(manner->admissions_per_step);
}

static struct scenario *run_tree(const struct op *ops, uint32_t count, uint64_t seed,
                                 const struct manner *manner)
{
    behave(manner);
    struct scenario *s = scenario_new();
    uint64_t random = seed;
    given_tree(s, &random, seed % 2 == 0);
    for (uint32_t i = 0; i < count; i++) {
        if (i == count / 2) {
            scenario_start(s); /* whatever came before is judged in one pass */
        }
        events_arrive_at_times(s, seed, i);
        do_tree_op(s, &ops[i], &random, seed % 2 == 0);
    }
    events_arrive(s, 0);
    return s;
}

static void ranks_as_plainly(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct scenario *indexed = run_tree(ops, count, seed, &indexed_at_once);
    struct scenario *plain = run_tree(ops, count, seed, &plainly);
    struct scenario *cut = run_tree(ops, count, seed, &one_by_one);
    same_deeds(trace_text(indexed), trace_text(plain));
    same_deeds(trace_text(indexed), trace_text(cut));
    scenario_free(indexed);
    scenario_free(plain);
    scenario_free(cut);
}

static struct scenario *run_world(const struct op *ops, uint32_t count, uint64_t seed,
                                  const struct manner *manner)
{
    behave(manner);
    struct scenario *s = scenario_new();
    world_given(s);
    for (uint32_t i = 0; i < count; i++) {
        events_arrive_at_times(s, seed, i);
        world_do(s, &ops[i]);
    }
    events_arrive(s, 0);
    return s;
}

static void fits_as_plainly(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct scenario *indexed = run_world(ops, count, seed, &indexed_at_once);
    struct scenario *plain = run_world(ops, count, seed, &plainly);
    struct scenario *cut = run_world(ops, count, seed, &one_by_one);
    same_deeds(trace_text(indexed), trace_text(plain));
    same_deeds(trace_text(indexed), trace_text(cut));
    scenario_free(indexed);
    scenario_free(plain);
    scenario_free(cut);
}

/* Beyond those of the world: a node's devices are others. */
enum { OP_DEVICES = OP_COUNT, OP_DEVICES_TOO, OP_DEVICES_COUNT };

static struct scenario *run_supply(const struct op *ops, uint32_t count, uint64_t seed,
                                   const struct manner *manner)
{
    static const char *const devices[] = {"", "g0", "g1", "g0 g1", "g0 g1 g2"};
    behave(manner);
    struct scenario *s = scenario_new();
    world_given(s);
    for (uint32_t i = 0; i < count; i++) {
        events_arrive_at_times(s, seed, i);
        if (ops[i].kind < OP_DEVICES) {
            world_do(s, &ops[i]);
        } else {
            char node[16];
            (void)snprintf(node, sizeof(node), "n%d", ops[i].a % 3);
            given_devices(s, node, devices[ops[i].b % ARRAY_COUNT(devices)]);
        }
    }
    events_arrive(s, 0);
    return s;
}

static void wakes_as_plainly(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct scenario *indexed = run_supply(ops, count, seed, &indexed_at_once);
    struct scenario *plain = run_supply(ops, count, seed, &plainly);
    same_deeds(trace_text(indexed), trace_text(plain));
    scenario_free(indexed);
    scenario_free(plain);
}

static bool check_supply(void)
{
    static const char *names[OP_DEVICES_COUNT];
    for (int i = 0; i < OP_DEVICES_COUNT; i++) {
        names[i] = i < OP_DEVICES ? world_op_names[i] : "devices";
    }
    const struct property supply = {.name = "devices wake as plainly",
                                    .cases = 400,
                                    .ops = 60,
                                    .kinds = OP_DEVICES_COUNT,
                                    .kind_names = names,
                                    .run = wakes_as_plainly};
    return property_check(&supply) != 0;
}

/* Beyond those of the world: labels, taints, devices, and what flavors and queues make of them. */
enum {
    OP_EDIT_NODE = OP_COUNT,
    OP_EDIT_NODE_TOO,
    OP_EDIT_FLAVOR,
    OP_EDIT_QUEUE,
    OP_EDIT_DEVICES,
    OP_EDIT_JOB,
    OP_EDIT_JOB_TOO,
    OP_EDITS_COUNT
};

static void edit(struct scenario *s, const struct op *op)
{
    static const char *const nodes[] = {"cpu=4 label=kind:a",
                                        "cpu=4 label=kind:b",
                                        "cpu=4 label=kind:a taint=t:NoSchedule",
                                        "cpu=4",
                                        "cpu=6 label=kind:b taint=t:NoSchedule",
                                        "cpu=4 label=kind:a cordoned=true"};
    static const char *const flavors[][3] = {
        {"level=kind", "level=kind toleration=t", "level=kind label=kind:b"},
        {"label=kind:a", "label=kind:a toleration=t", "label=kind:b"}};
    static const char *const specs[] = {
        "flavor=f cpu=7 gpu.example.com=3 within=LowerPriority cohort=lab",
        "flavor=f cpu=4 gpu.example.com=2 flavor=g cpu=4 gpu.example.com=2 cohort=lab reclaim=Any",
        "flavor=f cpu=7 group=new flavor=g gpu.example.com=3 within=LowerPriority",
        "flavor=g cpu=7 group=new flavor=f gpu.example.com=3",
        "flavor=g cpu=6 gpu.example.com=3 strategy=StrictFIFO"};
    static const char *const devices[] = {"", "g0", "g0 g1", "g0 g1 g2"};
    static const char *const jobs[] = {"pods=3 cpu=1 required=kind",
                                       "pods=2 cpu=1 required=kind priority=high",
                                       "pods=4 cpu=1 preferred=kind partial=true min=2",
                                       "pods=2 cpu=2 toleration=t priority=high",
                                       "pods=2 cpu=1 template=one required=kind priority=high",
                                       "pods=1 cpu=2 claim=shared priority=high"};
    char job[16];
    char node[16];
    (void)snprintf(job, sizeof(job), "j%d", op->a % WORLD_JOBS);
    (void)snprintf(node, sizeof(node), "n%d", op->a % 4);
    switch ((int)op->kind) {
    case OP_EDIT_FLAVOR:
        given_flavor(s, op->a % 2 == 0 ? "f" : "g", flavors[op->a % 2][op->b % 3]);
        break;
    case OP_EDIT_QUEUE:
        given_queue(s, op->a % 2 == 0 ? "q" : "strict", specs[op->b % ARRAY_COUNT(specs)]);
        break;
    case OP_EDIT_DEVICES:
        given_devices(s, node, devices[op->b % ARRAY_COUNT(devices)]);
        break;
    case OP_EDIT_JOB:
    case OP_EDIT_JOB_TOO:
        if (!scenario_has(s, KIND_JOB, job)) {
            given_job(s, job, op->b % 2 == 0 ? "q" : "strict", jobs[op->b / 2 % ARRAY_COUNT(jobs)]);
        }
        break;
    default:
        given_node(s, node, nodes[op->b % ARRAY_COUNT(nodes)]);
        break;
    }
}

static struct scenario *run_edits(const struct op *ops, uint32_t count, uint64_t seed,
                                  const struct manner *manner)
{
    behave(manner);
    struct scenario *s = scenario_new();
    world_given(s);
    const struct op first = {.kind = OP_EDIT_QUEUE, .a = 0, .b = (uint8_t)(seed % 5)};
    const struct op second = {.kind = OP_EDIT_QUEUE, .a = 1, .b = (uint8_t)(seed / 5 % 5)};
    given_flavor(s, "f", "level=kind");
    given_flavor(s, "g", "label=kind:a");
    edit(s, &first);
    edit(s, &second);
    for (uint32_t i = 0; i < count; i++) {
        events_arrive_at_times(s, seed, i);
        if (ops[i].kind >= OP_COUNT) {
            edit(s, &ops[i]);
        } else if (ops[i].kind != OP_QUOTA) {
            world_do(s, &ops[i]);
        }
    }
    events_arrive(s, 0);
    return s;
}

static void edits_wake_as_plainly(const struct op *ops, uint32_t count, uint64_t seed)
{
    struct scenario *indexed = run_edits(ops, count, seed, &indexed_at_once);
    struct scenario *plain = run_edits(ops, count, seed, &plainly);
    same_deeds(trace_text(indexed), trace_text(plain));
    scenario_free(indexed);
    scenario_free(plain);
}

/* Whoever could start, or be stopped for another, has been told so when it came about: a controller
 * that starts anew and looks at everything finds nothing of that kind to do. */
static void restart_finds_nothing_to_do(const struct op *ops, uint32_t count, uint64_t seed)
{
    world_deletes_cleanly(true);
    struct scenario *s = run_edits(ops, count, seed, &indexed_at_once);
    scenario_start(s);
    at(s, scenario_now_ms(s) + 1);
    size_t before = strlen(trace_text(s));
    restart(s, WITH_ADMISSIONS);
    const char *after = trace_text(s) + before;
    if (strstr(after, ": admit ") != NULL || strstr(after, ": suspend, P") != NULL ||
        strstr(after, ": suspend, R") != NULL) {
        (void)fprintf(stderr, "after a restart:\n%s", after);
        fail();
    }
    scenario_free(s);
    world_deletes_cleanly(false);
}

static bool check_edits(void)
{
    static const char *names[OP_EDITS_COUNT] = {
        [OP_EDIT_NODE] = "edit-node",       [OP_EDIT_NODE_TOO] = "edit-node",
        [OP_EDIT_FLAVOR] = "edit-flavor",   [OP_EDIT_QUEUE] = "edit-queue",
        [OP_EDIT_DEVICES] = "edit-devices", [OP_EDIT_JOB] = "edit-job",
        [OP_EDIT_JOB_TOO] = "edit-job"};
    for (int i = 0; i < OP_COUNT; i++) {
        names[i] = world_op_names[i];
    }
    const struct property edits = {.name = "edits wake as plainly",
                                   .cases = 400,
                                   .ops = 60,
                                   .kinds = OP_EDITS_COUNT,
                                   .kind_names = names,
                                   .run = edits_wake_as_plainly};
    struct property restarts = edits;
    restarts.name = "nothing is left for a restart to find";
    restarts.run = restart_finds_nothing_to_do;
    return property_check(&edits) + property_check(&restarts) != 0;
}

int main(void)
{
    const struct property trees = {.name = "queues are ranked as plainly",
                                   .cases = 600,
                                   .ops = 60,
                                   .kinds = TREE_COUNT,
                                   .kind_names = tree_op_names,
                                   .run = ranks_as_plainly};
    const struct property worlds = {.name = "gangs fit as plainly",
                                    .cases = 400,
                                    .ops = 60,
                                    .kinds = OP_COUNT,
                                    .kind_names = world_op_names,
                                    .run = fits_as_plainly};
    int failed = property_check(&trees);
    failed += property_check(&worlds);
    return failed + check_supply() + check_edits();
}
