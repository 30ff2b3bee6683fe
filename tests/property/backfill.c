/* Random loads in virtual time, on queues that keep room for their head: no head ever starts later
 * than was first said of it while the bounds hold, whoever overtook it; a starving one starts
 * within the longest bound; and nobody waits who could go without harm, by a plain EASY written for
 * this test. Restarts in between change nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/property.h"
#include "support/scenario_internal.h"

#define MINUTE        60000
#define JOBS_MAX      PROPERTY_OPS_MAX
#define NODES         3
#define CPU           8 /* of the quota, where it decides alone */
#define BOUND_MAX_MIN 30
#define STARVES_MIN   15

enum load_op { OP_ARRIVES = 0, OP_ARRIVES_TOO, OP_TIME, OP_TIME_TOO, OP_RESTARTS, OP_COUNT };

static const char *const op_names[OP_COUNT] = {[OP_ARRIVES] = "arrives",
                                               [OP_ARRIVES_TOO] = "arrives",
                                               [OP_TIME] = "time",
                                               [OP_TIME_TOO] = "time",
                                               [OP_RESTARTS] = "restarts"};

enum load_kind {
    LOAD_QUOTA,    /* the quota decides alone */
    LOAD_NODES,    /* three nodes of different sizes, pods of different sizes */
    LOAD_STARVING, /* BestEffortFIFO with a starvationBound */
    LOAD_TREES,    /* two queues that share nothing but the nodes */
};

struct load_job {
    char name[16];
    int queue;
    int pods;
    int cpu;          /* per pod */
    int64_t bound_ms; /* 0: it states none */
    int64_t run_ms;
    int64_t submitted_ms;
    int64_t started_ms; /* -1: waits */
    bool is_over;
    int64_t head_since_ms; /* -1: it never was the head */
    int64_t first_said_ms; /* -1: nothing was said since it became a head */
    int nodes[8];          /* of its pods */
};

struct load {
    struct scenario *s;
    enum load_kind kind;
    struct load_job jobs[JOBS_MAX];
    int count;
    int free[NODES];
    uint64_t random;
};

static const int node_cpu[NODES] = {6, 4, 3};

/* -- what happens -------------------------------------------------------------------------------
 */

static void given_load(struct load *load)
{
    struct scenario *s = load->s;
    bool is_quota = load->kind == LOAD_QUOTA;
    for (int n = 0; n < NODES; n++) {
        char name[16];
        char options[16];
        (void)snprintf(name, sizeof(name), "n%d", n);
        (void)snprintf(options, sizeof(options), "cpu=%d", is_quota ? 100 : node_cpu[n]);
        given_node(s, name, options);
        load->free[n] = is_quota ? 100 : node_cpu[n];
    }
    given_queue(s, "q0",
                is_quota                      ? "cpu=8 strategy=Backfill fit=Quota"
                : load->kind == LOAD_STARVING ? "cpu=100 starvation=15m"
                                              : "cpu=100 strategy=Backfill");
    if (load->kind == LOAD_TREES) {
        given_queue(s, "q1", "cpu=100 strategy=Backfill");
    }
    scenario_start(s);
}

/* As kube-scheduler may: each pod to any node that has room for it. */
static void place(struct load *load, struct load_job *job)
{
    char words[64] = "";
    for (int p = 0; p < job->pods; p++) {
        int first = (int)(random_next(&load->random) % NODES);
        int n = first;
        while (load->free[n] < job->cpu) {
            n = (n + 1) % NODES;
            if (n == first) {
                fail_msg("no node has room for pod %d of %s", p, job->name);
            }
        }
        load->free[n] -= job->cpu;
        job->nodes[p] = n;
        (void)snprintf(words + strlen(words), sizeof(words) - strlen(words), "n%d ", n);
    }
    gang_starts(load->s, job->name, words);
}

/* What is shown is a whole minute, and never before the true time. */
static void check_start(struct load *load, const struct load_job *job)
{
    int64_t now_ms = scenario_now_ms(load->s);
    if (job->first_said_ms >= 0 && now_ms > job->first_said_ms) {
        fail_msg("%s was to start by %lld and starts at %lld", job->name,
                 (long long)job->first_said_ms, (long long)now_ms);
    }
}

static void start_admitted(struct load *load)
{
    bool is_any = true;
    while (is_any) { /* a start may let others go */
        is_any = false;
        for (int j = 0; j < load->count; j++) {
            struct load_job *job = &load->jobs[j];
            if (job->started_ms < 0 && !scenario_job(load->s, job->name)->spec.suspend.value) {
                job->started_ms = scenario_now_ms(load->s);
                check_start(load, job);
                place(load, job);
                is_any = true;
            }
        }
    }
}

static void finish(struct load *load, struct load_job *job)
{
    job->is_over = true;
    for (int p = 0; p < job->pods; p++) {
        load->free[job->nodes[p]] += job->cpu;
    }
    job_finishes(load->s, job->name);
}

static struct load_job *next_to_end(struct load *load, int64_t until_ms)
{
    struct load_job *first = NULL;
    for (int j = 0; j < load->count; j++) {
        struct load_job *job = &load->jobs[j];
        bool is_due =
            job->started_ms >= 0 && !job->is_over && job->started_ms + job->run_ms <= until_ms;
        if (is_due &&
            (first == NULL || job->started_ms + job->run_ms < first->started_ms + first->run_ms)) {
            first = job;
        }
    }
    return first;
}

static void arrive(struct load *load, const struct op *op)
{
    struct load_job *job = &load->jobs[load->count++];
    bool is_quota = load->kind == LOAD_QUOTA;
    *job = (struct load_job){.queue = load->kind == LOAD_TREES ? op->b % 2 : 0,
                             .pods = 1 + op->a % (is_quota ? CPU : 5),
                             .cpu = is_quota ? 1 : 1 + op->a / 5 % 3,
                             .submitted_ms = scenario_now_ms(load->s),
                             .started_ms = -1,
                             .head_since_ms = -1,
                             .first_said_ms = -1};
    (void)snprintf(job->name, sizeof(job->name), "j%d", load->count);
    int bound = 1 + op->b % BOUND_MAX_MIN;
    bool states_none = load->kind != LOAD_STARVING && op->b % 9 == 0;
    job->bound_ms = states_none ? 0 : (int64_t)bound * MINUTE;
    int64_t share = op->a % 3 == 0 ? 8 : 1 + op->a % 8; /* many end early */
    job->run_ms = bound * 60 * share / 8 * 1000;
    char options[96];
    char queue[16];
    int length = snprintf(options, sizeof(options), "pods=%d cpu=%d", job->pods, job->cpu);
    if (job->bound_ms > 0) {
        (void)snprintf(options + length, sizeof(options) - (size_t)length, " max-runtime=%dm",
                       bound);
    }
    (void)snprintf(queue, sizeof(queue), "q%d", job->queue);
    given_job(load->s, job->name, queue, options);
}

/* -- what must hold -----------------------------------------------------------------------------
 */

static bool never_fits(const struct load *load, const struct load_job *job)
{
    int places = 0;
    for (int n = 0; n < NODES; n++) {
        places += node_cpu[n] / job->cpu;
    }
    return load->kind != LOAD_QUOTA && places < job->pods;
}

/* The oldest that waits for room: whatever is said of it is a promise. */
static struct load_job *head_of(struct load *load)
{
    for (int j = 0; j < load->count; j++) {
        struct load_job *job = &load->jobs[j];
        if (job->started_ms < 0 && !never_fits(load, job)) {
            return job;
        }
    }
    return NULL;
}

static void check_starving(const struct load *load, const struct load_job *head, int64_t said_ms)
{
    int64_t now_ms = scenario_now_ms(load->s);
    int64_t starving_ms = head->submitted_ms + STARVES_MIN * MINUTE;
    bool is_starving = load->kind == LOAD_STARVING && now_ms >= starving_ms;
    if (is_starving && (said_ms < 0 || said_ms > now_ms + (BOUND_MAX_MIN + 1) * MINUTE)) {
        fail_msg("%s starves, and is to start by %lld", head->name, (long long)said_ms);
    }
}

static void check_head(struct load *load)
{
    struct load_job *head = head_of(load);
    if (head == NULL) {
        return;
    }
    int64_t now_ms = scenario_now_ms(load->s);
    int64_t said_ms = likely_start_ms(load->s, head->name);
    head->head_since_ms = head->head_since_ms < 0 ? now_ms : head->head_since_ms;
    /* It may have been booked behind one of the other tree that goes before it: what was said of it
     * then is still told for a while. */
    int64_t settled_ms = load->kind == LOAD_TREES ? head->head_since_ms + MINUTE : 0;
    if (head->first_said_ms < 0 && now_ms >= settled_ms) {
        head->first_said_ms = said_ms >= 0 ? said_ms : -1;
    }
    if (head->first_said_ms >= 0 && (said_ms < 0 || said_ms > head->first_said_ms)) {
        fail_msg("%s was to start by %lld, and now by %lld", head->name,
                 (long long)head->first_said_ms, (long long)said_ms);
    }
    if (head->first_said_ms >= 0 && now_ms > head->first_said_ms) {
        fail_msg("%s was to start by %lld and still waits", head->name,
                 (long long)head->first_said_ms);
    }
    check_starving(load, head, said_ms);
}

/* Of the quota alone: the time from which the head has room, and what it leaves over then. */
static int64_t easy_start(const struct load *load, const struct load_job *head, int *ret_over)
{
    int64_t start_ms = scenario_now_ms(load->s);
    for (;;) {
        int used = 0;
        int64_t next_ms = INT64_MAX;
        for (int j = 0; j < load->count; j++) {
            const struct load_job *job = &load->jobs[j];
            int64_t end_ms = job->bound_ms == 0 ? INT64_MAX : job->started_ms + job->bound_ms;
            bool is_there = job->started_ms >= 0 && !job->is_over && end_ms > start_ms;
            used += is_there ? job->pods : 0;
            next_ms = is_there && end_ms < next_ms ? end_ms : next_ms;
        }
        if (used + head->pods <= CPU || next_ms == INT64_MAX) {
            *ret_over = CPU - used - head->pods;
            return used + head->pods <= CPU ? start_ms : INT64_MAX;
        }
        start_ms = next_ms;
    }
}

static int used_now(const struct load *load)
{
    int used = 0;
    for (int j = 0; j < load->count; j++) {
        const struct load_job *job = &load->jobs[j];
        used += job->started_ms >= 0 && !job->is_over ? job->pods : 0;
    }
    return used;
}

/* Whoever waits though it fits now would run into the head's time and take what it needs. */
static void check_work_conserving(struct load *load)
{
    const struct load_job *head = head_of(load);
    int over = 0;
    int64_t start_ms = head == NULL ? INT64_MAX : easy_start(load, head, &over);
    int64_t now_ms = scenario_now_ms(load->s);
    int used = used_now(load);
    for (int j = 0; j < load->count && start_ms != INT64_MAX; j++) {
        const struct load_job *job = &load->jobs[j];
        if (job->started_ms >= 0 || used + job->pods > CPU) {
            continue;
        }
        bool ends_in_time = job->bound_ms > 0 && now_ms + job->bound_ms <= start_ms;
        if (job == head || ends_in_time || job->pods <= over) {
            fail_msg("%s waits, and could go: the head %s starts at %lld", job->name, head->name,
                     (long long)start_ms);
        }
    }
}

static void check_all(struct load *load)
{
    start_admitted(load);
    check_head(load);
    if (load->kind == LOAD_QUOTA) {
        check_work_conserving(load);
    }
}

/* Stops wherever the core wakes: who is admitted then starts then. */
static void pass_time(struct load *load, int64_t until_ms)
{
    while (scenario_now_ms(load->s) < until_ms || next_to_end(load, until_ms) != NULL) {
        int64_t wake_ms = load->s->wake_ms - SCENARIO_START_MS;
        bool wakes = wake_ms > scenario_now_ms(load->s) && wake_ms < until_ms;
        int64_t next_ms = wakes ? wake_ms : until_ms;
        struct load_job *job = next_to_end(load, next_ms);
        at(load->s, job == NULL ? next_ms : job->started_ms + job->run_ms);
        check_all(load);
        if (job != NULL) {
            finish(load, job);
            check_all(load);
        }
    }
}

static void run_load(enum load_kind kind, const struct op *ops, uint32_t count, uint64_t seed)
{
    struct load *load = calloc(1, sizeof(*load));
    load->s = scenario_new();
    load->kind = kind;
    load->random = seed;
    checks_are_cheap(load->s);
    given_load(load);
    for (uint32_t i = 0; i < count; i++) {
        const struct op *op = &ops[i];
        if (op->kind == OP_ARRIVES || op->kind == OP_ARRIVES_TOO) {
            arrive(load, op);
        } else if (op->kind == OP_RESTARTS) {
            restart(load->s, op->a % 2 == 0 ? WITH_ADMISSIONS : WITHOUT_ADMISSIONS);
        } else {
            pass_time(load,
                      scenario_now_ms(load->s) + (1 + op->a % 10) * MINUTE + op->b % 60 * 1000);
        }
        check_all(load);
    }
    /* Everybody who can start at all does. */
    for (int round = 0; round < 300 && head_of(load) != NULL; round++) {
        pass_time(load, scenario_now_ms(load->s) + 10 * MINUTE);
    }
    if (head_of(load) != NULL) {
        fail_msg("%s never starts", head_of(load)->name);
    }
    scenario_free(load->s);
    free(load);
}

static void by_quota(const struct op *ops, uint32_t count, uint64_t seed)
{
    run_load(LOAD_QUOTA, ops, count, seed);
}

static void on_nodes(const struct op *ops, uint32_t count, uint64_t seed)
{
    run_load(LOAD_NODES, ops, count, seed);
}

static void starving(const struct op *ops, uint32_t count, uint64_t seed)
{
    run_load(LOAD_STARVING, ops, count, seed);
}

static void in_two_trees(const struct op *ops, uint32_t count, uint64_t seed)
{
    run_load(LOAD_TREES, ops, count, seed);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(const struct op *ops, uint32_t count, uint64_t seed);
        uint32_t cases;
    } loads[] = {
        {"a reservation holds, and nobody waits without need", by_quota, 300},
        {"a reservation holds on nodes, wherever pods are put", on_nodes, 150},
        {"a starving head starts within the longest bound", starving, 150},
        {"a reservation holds against queues of other trees", in_two_trees, 150},
    };
    int failed = 0;
    for (size_t i = 0; i < ARRAY_COUNT(loads); i++) {
        struct property property = {.name = loads[i].name,
                                    .cases = loads[i].cases,
                                    .ops = 80,
                                    .kinds = OP_COUNT,
                                    .kind_names = op_names,
                                    .run = loads[i].run};
        failed |= property_check(&property);
    }
    return failed;
}
