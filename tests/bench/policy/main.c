/* main.c - what an event costs the core, beside what it should cost.
 *
 *     bench_policy [--pending N] [--only crowd|scale|arrive|preempt|quota|topology|size|rebuild]
 *                  [--crowd quota|fair|unlike|devices|rooms] [--cycles N]
 *
 * Prints a figure and its target; a target that is missed is no failure, because the machine may be
 * slow. What must not come back (a broadcast, a poll) is asserted by counts in tests/scenario. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/cluster.h"
#include "policy/sections.h"

#include "tallyman/base/limits.h"
#include "tallyman/base/str.h"

static int64_t cycles = 400;

static const struct {
    uint32_t pods;
    uint32_t devices;
} sizes[] = {{1, 1}, {2, 4}, {4, 8}};

static void add_waiting(struct cluster *cluster, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t size = i % 20 < 14 ? 0 : i % 20 < 18 ? 1 : 2;
        cluster_add_job(cluster, sizes[size].pods, sizes[size].devices, 0);
    }
}

/* Gangs end, others start, new ones come, nodes send heartbeats. */
static void run_cycles(struct cluster *cluster)
{
    cluster_clear_series(cluster);
    for (uint32_t i = 0; i < cycles; i++) {
        cluster_advance(cluster, 100);
        cluster_end_oldest(cluster);
        add_waiting(cluster, 1);
        cluster_heartbeat(cluster, i);
    }
}

static const char *const timed_names[TIMED_COUNT] = {
    [TIMED_ARRIVAL] = "a Job comes",
    [TIMED_RELEASE] = "a gang ends, step by step",
    [TIMED_START] = "a gang starts, step by step",
    [TIMED_HEARTBEAT] = "a node's heartbeat",
    [TIMED_REST] = "the rest of the pass when one ends, by tick",
    [TIMED_RELEASE_WHOLE] = "a gang ends: until all has been decided",
    [TIMED_TICK] = "time goes on",
    [TIMED_OTHER] = "answers to writes",
    [TIMED_DECODE] = "an object is decoded",
};

static void print_series(struct cluster *cluster, const char *target)
{
    for (int i = 0; i < TIMED_COUNT; i++) {
        bool is_target = i < TIMED_OTHER && i != TIMED_RELEASE_WHOLE;
        table_series(timed_names[i], is_target ? target : "",
                     cluster_series(cluster, (enum timed)i));
    }
}

/* 1,000 queues in 10 cohorts, 5,000 nodes with 8 devices each, all taken. */
static const struct cluster_options crowd_options = {.nodes = 5000,
                                                     .devices_per_node = 8,
                                                     .cohorts = 10,
                                                     .queues = 1000,
                                                     .quota = 40,
                                                     .kinds = 1,
                                                     .admissions_per_step = ADMISSIONS_PER_STEP};

static struct cluster *crowded(uint32_t pending, const struct cluster_options *options,
                               size_t *ret_cluster_bytes, size_t *ret_gang_bytes)
{
    size_t before = heap_used_bytes();
    struct cluster *cluster = cluster_new(options);
    cluster_fill(cluster, 4, 8);
    size_t own = cluster_own_bytes(cluster);
    size_t filled = heap_used_bytes() - own;
    add_waiting(cluster, pending);
    cluster_sync(cluster);
    *ret_cluster_bytes = filled - before;
    own = cluster_own_bytes(cluster);
    *ret_gang_bytes = heap_used_bytes() - own - filled;
    return cluster;
}

static double crowd(uint32_t pending, uint32_t quota, uint32_t kinds, bool is_fair,
                    const char *target)
{
    size_t cluster_bytes;
    size_t gang_bytes;
    struct cluster_options options = crowd_options;
    options.quota = quota;
    options.kinds = kinds;
    options.is_fair = is_fair;
    struct cluster *cluster = crowded(pending, &options, &cluster_bytes, &gang_bytes);
    run_cycles(cluster);
    print_series(cluster, target);
    table_row("gangs started", "", "%u", cluster_admitted(cluster));
    table_row("memory: nodes, devices and what runs", "", "%.1f MB", (double)cluster_bytes / 1e6);
    table_row("memory: what waits", "<= 1024 B each", "%.1f MB, %.0f B each",
              (double)gang_bytes / 1e6, (double)gang_bytes / pending);
    table_row("memory: both", pending <= 50000 ? "< 100 MB" : "", "%.1f MB",
              (double)(cluster_bytes + gang_bytes) / 1e6);
    double mean = series_mean_us(cluster_series(cluster, TIMED_RELEASE));
    cluster_free(cluster);
    return mean;
}

static void run_arrivals(struct cluster *cluster)
{
    cluster_clear_series(cluster);
    for (int64_t i = 0; i < cycles; i++) {
        cluster_advance(cluster, 1);
        add_waiting(cluster, 1);
    }
}

/* Jobs come and nothing else happens: the mean cost of one. */
static double arrive(uint32_t pending, bool is_among_others, const char *target)
{
    size_t unused;
    struct cluster_options options = crowd_options;
    options.comes_among_others = is_among_others;
    struct cluster *cluster = crowded(pending, &options, &unused, &unused);
    run_arrivals(cluster);
    print_series(cluster, target);
    double mean = series_mean_us(cluster_series(cluster, TIMED_ARRIVAL));
    cluster_free(cluster);
    return mean;
}

static bool is_wanted(const char *only, const char *what)
{
    return only == NULL || strcmp(only, what) == 0;
}

static void measure_crowd(uint32_t pending, const char *only)
{
    static const struct {
        const char *name;
        const char *heading;
        uint32_t quota;
        uint32_t kinds;
        bool is_fair;
    } crowds[] = {
        {"quota", "a crowd that waits for quota", 40, 1, false},
        {"fair", "the same, fair sharing on", 40, 1, true},
        {"unlike", "the same, all gangs of a queue unlike each other", 40, 1000, false},
        {"devices", "a crowd that waits for devices", 400, 1, false},
        {"rooms", "the same, all gangs of a queue unlike each other", 400, 1000, false},
    };
    for (size_t i = 0; i < sizeof(crowds) / sizeof(crowds[0]); i++) {
        if (is_wanted(only, crowds[i].name)) {
            table_heading(crowds[i].heading);
            (void)crowd(pending, crowds[i].quota, crowds[i].kinds, crowds[i].is_fair,
                        "p99 < 1000 us");
        }
    }
}

static void measure_scale(uint32_t pending)
{
    table_heading("few wait");
    double few = crowd(pending / 100, 40, 1, false, "");
    table_heading("many wait");
    double many = crowd(pending, 40, 1, false, "p99 < 2000 us");
    table_row("cost of a release, many to few", "<= 1.3", "%.2f (%u to %u)", many / few, pending,
              pending / 100);
}

/* As a rule who comes was created last; among others goes who was listed late, or had a
 * PriorityClass of more than some. */
static void measure_arrivals_of(uint32_t pending, bool is_among_others, const char *where)
{
    char heading[100];
    (void)snprintf(heading, sizeof(heading), "Jobs come where few wait, %s", where);
    table_heading(heading);
    double few = arrive(pending / 100, is_among_others, "");
    (void)snprintf(heading, sizeof(heading), "Jobs come where many wait, %s", where);
    table_heading(heading);
    double many = arrive(pending, is_among_others, "p99 < 2000 us");
    table_row("cost of an arrival, many to few", is_among_others ? "" : "<= 1.3", "%.2f (%u to %u)",
              many / few, pending, pending / 100);
}

static void measure_arrivals(uint32_t pending)
{
    measure_arrivals_of(pending, false, "behind them");
    measure_arrivals_of(pending, true, "among them");
}

static void measure_preemption(void)
{
    table_heading("preemption: 1,000 nodes, 1,000 gangs, 10,000 pods to choose from");
    struct cluster_options options = {
        .nodes = 1250, .devices_per_node = 8, .queues = 1, .quota = 10000, .preempts = true};
    struct cluster *cluster = cluster_new(&options);
    cluster_fill(cluster, 10, 1);
    cluster_sync(cluster);
    cluster_clear_series(cluster);
    for (uint32_t i = 0; i < 50; i++) {
        cluster_advance(cluster, 1000);
        cluster_add_job(cluster, 10, 1, 100);
    }
    table_series("a gang as large as one that runs", "p99 < 5000 us",
                 cluster_series(cluster, TIMED_ARRIVAL));
    table_row("gangs stopped", "", "%u", cluster_suspended(cluster));
    cluster_clear_series(cluster);
    for (uint32_t i = 0; i < 20; i++) {
        cluster_advance(cluster, 1000);
        cluster_add_job(cluster, 80, 1, 100);
    }
    table_series("a gang as large as eight", "p99 < 5000 us",
                 cluster_series(cluster, TIMED_ARRIVAL));
    table_row("gangs stopped", "", "%u", cluster_suspended(cluster));
    cluster_free(cluster);
}

static void measure_quota(void)
{
    table_heading("decisions by quota alone (fit: Quota)");
    struct cluster_options options = {.queues = 1, .quota = 0, .is_quota_only = true};
    struct cluster *cluster = cluster_new(&options);
    const uint32_t count = 50000;
    for (uint32_t i = 0; i < count; i++) {
        cluster_add_job(cluster, 1, 0, 0);
    }
    cluster_sync(cluster);
    cluster_clear_series(cluster);
    cluster_set_quota(cluster, 0, count);
    double us = series_mean_us(cluster_series(cluster, TIMED_OTHER));
    table_row("admissions per second, one pass", ">= 100000", "%.0f (%u in %.0f ms)",
              count / us * 1e6, count, us / 1e3);
    cluster_free(cluster);
}

/* Gangs come one by one and start, and the first that started ends: warm. */
static void measure_level(const char *level, uint32_t nodes, uint32_t racks)
{
    struct cluster_options options = {.nodes = nodes,
                                      .devices_per_node = 8,
                                      .queues = 1,
                                      .quota = nodes * 8,
                                      .racks = racks,
                                      .required = level};
    struct cluster *cluster = cluster_new(&options);
    cluster_fill(cluster, 4, 1);
    cluster_sync(cluster);
    for (uint32_t i = 0; i < 40; i++) {
        cluster_end_oldest(cluster);
    }
    cluster_add_job(cluster, 4, 1, 0);
    cluster_clear_series(cluster);
    for (uint32_t i = 0; i < 200; i++) {
        cluster_advance(cluster, 100);
        cluster_end_oldest(cluster);
        cluster_add_job(cluster, 4, 1, 0);
    }
    table_row("gangs started", "201", "%u", cluster_admitted(cluster));
    table_series("a gang of 4 comes and starts", "p99 < 1000 us",
                 cluster_series(cluster, TIMED_ARRIVAL));
    table_series("a gang ends, step by step", "p99 < 1000 us",
                 cluster_series(cluster, TIMED_RELEASE));
    cluster_free(cluster);
}

/* All gangs wait for quota; then there is enough, and one pass lets all go, with all their pods on
 * their way. */
static void measure_wave(const char *what, uint32_t gangs, uint32_t pods, const char *required,
                         uint32_t nodes)
{
    struct cluster_options options = {
        .nodes = nodes, .devices_per_node = 8, .queues = 1, .racks = 50, .required = required};
    struct cluster *cluster = cluster_new(&options);
    for (uint32_t i = 0; i < gangs; i++) {
        cluster_add_job(cluster, pods, 1, 0);
    }
    cluster_sync(cluster);
    cluster_clear_series(cluster);
    cluster_set_quota(cluster, 0, gangs * pods);
    struct series *series = cluster_series(cluster, TIMED_OTHER);
    double us = (double)series->max_ns / 1e3; /* the pass */
    table_row(what, pods < 100 ? ">= 5000/s" : "", "%.0f gangs/s (%u of %u in %.0f ms)",
              cluster_let_go(cluster) / us * 1e6, cluster_let_go(cluster), gangs, us / 1e3);
    cluster_free(cluster);
}

static void measure_topology(void)
{
    table_heading("topology: one rack of 100 for all pods, 10,000 nodes x 8 devices");
    measure_level("rack", 10000, 100);
    table_heading("topology: one host for all pods, 10,000 nodes x 8 devices");
    measure_level("kubernetes.io/hostname", 10000, 100);
    table_heading("waves on 5,000 nodes in 50 racks, decided with fit and topology");
    measure_wave("750 gangs of 4", 750, 4, "rack", 5000);
    measure_wave("2250 gangs of 4", 2250, 4, "rack", 5000);
    measure_wave("2250 gangs of 4, anywhere", 2250, 4, NULL, 5000);
    measure_wave("9 gangs of 1000, anywhere", 9, 1000, NULL, 5000);
    measure_wave("3 gangs of 800, one rack each", 3, 800, "rack", 5000);
    measure_wave("a gang of 1000 on 10,000 nodes", 1, 1000, NULL, 10000);
    measure_wave("a gang of 1000 in one of 50 racks", 1, 1000, "rack", 10000);
}

struct choice {
    const char *only;
    const char *only_crowd;
    int64_t pending;
    int64_t scale;
};

static struct choice read_choice(int argc, char **argv)
{
    struct choice choice = {.pending = 50000, .scale = 1000000};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--only") == 0) {
            choice.only = argv[i + 1];
        } else if (strcmp(argv[i], "--crowd") == 0) {
            choice.only_crowd = argv[i + 1];
        } else if (strcmp(argv[i], "--cycles") == 0) {
            (void)str_to_i64(str_from_c(argv[i + 1]), &cycles);
        } else if (strcmp(argv[i], "--pending") == 0) {
            (void)str_to_i64(str_from_c(argv[i + 1]), &choice.pending);
        } else if (strcmp(argv[i], "--scale") == 0) {
            (void)str_to_i64(str_from_c(argv[i + 1]), &choice.scale);
        }
    }
    return choice;
}

/* Those of one size. */
static const struct {
    const char *name;
    void (*measure)(void);
} sections[] = {{"quota", measure_quota},
                {"preempt", measure_preemption},
                {"topology", measure_topology},
                {"size", measure_size},
                {"rebuild", measure_rebuild}};

int main(int argc, char **argv)
{
    struct choice choice = read_choice(argc, argv);
    bool has_counter = meter_open();
    printf("instructions per event: %s\n",
           has_counter ? "counted, user space only" : "not counted here (perf_event_open refused)");
    if (is_wanted(choice.only, "crowd")) {
        measure_crowd((uint32_t)choice.pending, choice.only_crowd);
    }
    if (is_wanted(choice.only, "scale")) {
        measure_scale((uint32_t)choice.scale);
    }
    if (is_wanted(choice.only, "arrive")) {
        measure_arrivals((uint32_t)choice.scale);
    }
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (is_wanted(choice.only, sections[i].name)) {
            sections[i].measure();
        }
    }
    meter_close();
    return 0;
}
