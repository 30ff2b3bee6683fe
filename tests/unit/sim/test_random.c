/* Random clusters, Jobs and accidents: what must hold does, and nobody is forgotten. */
#include "fixture.h"

#define RUNS   30
#define JOBS   12
#define END_MS (12 * 3600 * INT64_C(1000))

static uint64_t state_of_random;

/* xorshift64 (Marsaglia 2003). */
static int draw(int below)
{
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return (int)(state_of_random % (uint64_t)below);
}

static void random_job(struct cluster *cluster, int at)
{
    char name[32];
    char annotations[160];
    snprintf(name, sizeof(name), "job-%d", at);
    snprintf(annotations, sizeof(annotations),
             "example.com/submit-after: %ds, example.com/run-for: %ds%s", 1 + draw(3600),
             60 + draw(1800), draw(4) == 0 ? ", tallyman.dev/min-count: '1'" : "");
    given_job(cluster, (struct job_args){.name = name,
                                         .pods = 1 + draw(5),
                                         .labels = "tallyman.dev/queue: research",
                                         .annotations = annotations,
                                         .spec = "backoffLimit: 100,",
                                         .has_gpu = draw(3) > 0});
}

static struct cluster *random_cluster(uint64_t seed)
{
    state_of_random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    struct sim_options options = {.has_tallyman = true, .seed = seed};
    struct cluster *cluster = cluster_new(options);
    given(cluster, GPU_CLASS QUEUE_RESEARCH);
    int nodes = 2 + draw(3);
    given_nodes(cluster, nodes, "4");
    for (int node = 1; node <= nodes; node++) {
        given_devices(cluster, node, 3);
    }
    for (int i = 0; i < JOBS; i++) {
        random_job(cluster, i);
    }
    cluster->fault_count = 64;
    for (uint32_t i = 0; i < cluster->fault_count; i++) {
        cluster->faults[i] = draw(5) == 0 ? (enum sim_fault)(1 + draw(2)) : SIM_FAULT_NONE;
    }
    return cluster;
}

struct accidents {
    bool nodes_fail;
    bool controller_dies;
    int64_t partial_max_ms; /* of any gang */
};

static void accident(struct cluster *cluster, const struct accidents *accidents)
{
    char name[32];
    int what = draw(10);
    if (what == 0 && accidents->controller_dies) {
        sim_restart_controller(cluster->sim, draw(2) == 0 ? SIM_WRITES_APPLIED : SIM_WRITES_LOST);
    } else if (what == 1 && accidents->nodes_fail) {
        snprintf(name, sizeof(name), "n%d", 1 + draw(3));
        (void)sim_node_set_ready(cluster->sim, str_from_c(name), draw(3) > 0);
    } else if (what == 2) {
        snprintf(name, sizeof(name), "job-%d", draw(JOBS));
        (void)sim_job_annotate(cluster->sim, STR("ml"), str_from_c(name), STR("tallyman.dev/hold"),
                               draw(2) == 0 ? STR("true") : STR_NONE);
    }
}

static void lift(struct cluster *cluster)
{
    char name[32];
    for (int i = 0; i < JOBS; i++) {
        snprintf(name, sizeof(name), "job-%d", i);
        (void)sim_job_annotate(cluster->sim, STR("ml"), str_from_c(name), STR("tallyman.dev/hold"),
                               STR_NONE);
    }
    for (int i = 1; i <= 3; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        (void)sim_node_set_ready(cluster->sim, str_from_c(name), true);
    }
}

static void run_one(uint64_t seed, const struct accidents *accidents)
{
    struct cluster *cluster = random_cluster(seed);
    for (int64_t ms = 0; ms < 7200000; ms += 1 + draw(60000)) {
        (void)sim_run_until(cluster->sim, ms);
        check_holds(cluster);
        core_assert_consistent(sim_core(cluster->sim));
        accident(cluster, accidents);
    }
    lift(cluster);
    (void)sim_run_until(cluster->sim, END_MS);
    check_holds(cluster);
    char name[32];
    for (int i = 0; i < JOBS; i++) {
        snprintf(name, sizeof(name), "job-%d", i);
        struct sim_job_state job = job_state(cluster, name);
        if (!job.is_finished) {
            fail_msg("seed %llu: %s never ended: %s, %lld of %lld pods bound",
                     (unsigned long long)seed, name, job.is_suspended ? "suspended" : "running",
                     (long long)job.bound, (long long)job.wanted);
        }
        if (job.partial_max_ms > accidents->partial_max_ms) {
            fail_msg("seed %llu: %s was partial for %lld ms", (unsigned long long)seed, name,
                     (long long)job.partial_max_ms);
        }
    }
    check_i64(sim_devices(cluster->sim).held, 0);
    cluster_free(cluster);
}

static void whatever_happens_everybody_gets_a_turn_and_nothing_is_held_twice(void **state)
{
    (void)state;
    static const struct accidents kinds[] = {
        {.controller_dies = true, .partial_max_ms = 2000},
        /* a gang that lost a node may lack pods until podsReadyTimeout stops it whole */
        {.nodes_fail = true, .partial_max_ms = 610000},
        /* and who watches that clock dies too */
        {.nodes_fail = true, .controller_dies = true, .partial_max_ms = END_MS},
    };
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        run_one(seed, &kinds[seed % ARRAY_COUNT(kinds)]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens_everybody_gets_a_turn_and_nothing_is_held_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
