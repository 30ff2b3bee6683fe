/* main.c - a thousand hand-overs: the leader is told to stop, is killed, sleeps past its lease and
 * wakes, or can't reach the server. The lease is controller/kube/lease.c itself; core, driver and
 * cluster are the simulated cluster's, whose controller works while somebody leads.
 *
 * What has to hold: nobody writes who doesn't hold the lease; a leader that wakes finds out before
 * it writes; the next one leads within a second of a SIGTERM, and within lease and two seconds of
 * anything else; no Job is admitted twice, none is left behind. */
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/property.h"
#include "tallyman/api/codec.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/sim/sim.h"

#define HANDOVERS 1000
#define JOBS_MAX  64

enum end { END_TERM = 0, END_KILL, END_SLEEP, END_CUT_OFF, END_COUNT };

static const char *const end_names[END_COUNT] = {"SIGTERM", "kill", "SIGSTOP", "cut off"};

static struct {
    struct sim *sim;
    uint64_t random;
    int leader; /* -1: nobody */
    int64_t led_ms;
    uint32_t made, admissions, finished;
    bool is_admitted[JOBS_MAX];
    int64_t worst_ms[END_COUNT];
    uint32_t ends[END_COUNT];
    uint64_t writes;
} world = {.leader = -1};

static uint32_t draw(uint32_t below)
{
    return random_next(&world.random) % below;
}

/* -- the replicas ---------------------------------------------------------------------------------
 */

static void on_leading(void *ctx)
{
    struct replica *replica = ctx;
    assert_int_equal(world.leader, -1);
    replica->is_leading = true;
    world.leader = (int)replica->number;
    world.led_ms = server_now_ms();
    sim_start_controller(world.sim);
}

static void on_following(void *ctx, struct str holder)
{
    (void)ctx;
    (void)holder;
}

static void stop_leading(struct replica *replica)
{
    if (world.leader == (int)replica->number) {
        world.leader = -1;
        sim_stop_controller(world.sim, (enum sim_writes)draw(3));
    }
    replica->is_leading = false;
}

/* The daemon ends, and its pod begins anew a while later. */
static void on_lost(void *ctx, struct str why)
{
    (void)why;
    stop_leading(ctx);
}

static void on_trouble(void *ctx, struct str why)
{
    (void)ctx;
    (void)why;
}

static void start(struct replica *replica)
{
    static const char *const names[REPLICAS] = {"replica-0", "replica-1"};
    struct kube_lease_options options = {.loop = (uv_loop_t *)(void *)replica,
                                         .client = (struct kube_client *)(void *)replica,
                                         .namespace_name = STR("tallyman-system"),
                                         .name = STR("tallyman"),
                                         .identity = str_from_c(names[replica->number]),
                                         .seed = random_next(&world.random),
                                         .handler = {.on_leading = on_leading,
                                                     .on_following = on_following,
                                                     .on_lost = on_lost,
                                                     .on_trouble = on_trouble,
                                                     .ctx = replica}};
    replica->lease = kube_lease_open(&options);
}

/* -- the cluster ----------------------------------------------------------------------------------
 */

/* Asked for each write: as leader_may_write() does. */
static enum sim_fault on_write(void *ctx, const struct driver_write *write)
{
    (void)ctx;
    (void)write;
    world.writes++;
    assert_true(world.leader >= 0);
    struct replica *leader = &replicas[world.leader];
    assert_false(leader->is_asleep);
    if (!kube_lease_is_held(leader->lease)) {
        return SIM_FAULT_LOST; /* it doesn't write any more */
    }
    assert_int_equal(server_holder(), world.leader);
    const struct replica *other = &replicas[1 - world.leader];
    assert_true(other->lease == NULL || !kube_lease_is_held(other->lease));
    return SIM_FAULT_NONE;
}

static void on_note(void *ctx, const struct sim_note *note)
{
    (void)ctx;
    const char *at = note->job.len > 0 ? strstr(note->job.ptr, "/j") : NULL;
    uint32_t number = at == NULL ? 0 : (uint32_t)strtoul(at + 2, NULL, 10) % JOBS_MAX;
    if (note->kind == SIM_JOB_SUBMITTED) {
        world.is_admitted[number] = false;
    } else if (note->kind == SIM_JOB_ADMITTED) {
        assert_false(world.is_admitted[number]);
        world.is_admitted[number] = true;
        world.admissions++;
    } else if (note->kind == SIM_JOB_SUSPENDED) {
        fail_msg("a Job is suspended, though nobody is in anybody's way");
    } else if (note->kind == SIM_JOB_FINISHED) {
        world.finished++;
    }
}

static void load(enum object_kind kind, const char *text)
{
    struct arena arena;
    arena_init(&arena);
    void *value = NULL;
    struct err err;
    if (rc_failed(decode_json(&arena, kind_info(kind)->schema, str_from_c(text), &value, &err)) ||
        rc_failed(sim_load(world.sim, &(struct object){.kind = kind, .value = value}, &err))) {
        fail_msg("%s\n%s", err.text, text);
    }
    arena_deinit(&arena);
}

static void make_job(void)
{
    char text[768];
    (void)snprintf(
        text, sizeof(text),
        "{\"metadata\":{\"name\":\"j%u\",\"namespace\":\"default\",\"labels\":{"
        "\"tallyman.dev/queue\":\"a\"},\"annotations\":{\"example.com/run-for\":\"%us\"}},"
        "\"spec\":{\"parallelism\":2,\"completions\":2,\"template\":{\"spec\":{"
        "\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"main\",\"image\":\"x\","
        "\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}}}",
        world.made++, 5 + draw(20));
    load(KIND_JOB, text);
}

static void given(void)
{
    struct sim_options options = {
        .has_tallyman = true, .seed = 7, .fault = on_write, .on_note = on_note};
    world.sim = sim_new(&options);
    sim_stop_controller(world.sim, SIM_WRITES_LOST); /* nobody leads yet */
    load(KIND_NAMESPACE, "{\"metadata\":{\"name\":\"default\"}}");
    load(KIND_NODE, "{\"metadata\":{\"name\":\"n1\"},\"status\":{\"allocatable\":{\"cpu\":\"8\","
                    "\"pods\":\"40\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
    load(KIND_QUEUE,
         "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"namespaceSelector\":{},\"resourceGroups\":[{"
         "\"flavors\":[{\"name\":\"default\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":"
         "\"6\"}]}]}]}}");
}

/* -- time -----------------------------------------------------------------------------------------
 */

static void pass_until(int64_t until_ms)
{
    while (server_now_ms() < until_ms) {
        int64_t next_ms =
            server_next_ms() < sim_next_ms(world.sim) ? server_next_ms() : sim_next_ms(world.sim);
        next_ms = next_ms < until_ms ? next_ms : until_ms;
        next_ms = next_ms > server_now_ms() ? next_ms : server_now_ms();
        (void)sim_run_until(world.sim, next_ms);
        server_run_until(next_ms);
    }
}

static void wait_for_leader(int64_t most_ms)
{
    int64_t until_ms = server_now_ms() + most_ms;
    while (world.leader < 0 && server_now_ms() < until_ms) {
        pass_until(server_now_ms() + 10);
    }
    if (world.leader < 0) {
        fail_msg("nobody leads after %lld ms", (long long)most_ms);
    }
}

/* -- hand-overs -----------------------------------------------------------------------------------
 */

static void on_closed(void *ctx)
{
    struct replica *replica = ctx;
    replica->lease = NULL; /* it has freed itself */
    replica->is_closing = false;
}

static void begin_end(struct replica *leader, enum end end)
{
    switch (end) {
    case END_TERM:
        stop_leading(leader);
        leader->is_closing = true;
        kube_lease_close(leader->lease, on_closed, leader);
        break;
    case END_KILL:
        stop_leading(leader);
        server_kill(leader);
        break;
    case END_SLEEP: /* what it had sent is still under way */
        stop_leading(leader);
        leader->is_asleep = true;
        break;
    case END_CUT_OFF:
    case END_COUNT:
        leader->is_cut_off = true;
        break;
    }
}

/* The one that was: it wakes, and the first thing it does is ask whether it may write. */
static void end_end(struct replica *before, enum end end)
{
    if (end == END_SLEEP) {
        assert_false(kube_lease_is_held(before->lease));
        before->is_asleep = false;
        pass_until(server_now_ms() + 1000);
        assert_false(kube_lease_is_held(before->lease));
    }
    pass_until(server_now_ms() + 5000); /* a lease that is given back is given back by then */
    server_kill(before);
    start(before);
}

static void hand_over(uint32_t number)
{
    enum end end = (enum end)(number % END_COUNT);
    struct replica *before = &replicas[world.leader];
    begin_end(before, end);
    int64_t began_ms = server_now_ms();
    bool is_cut_off = end == END_CUT_OFF;
    if (is_cut_off) { /* it leads until it gives up by itself */
        while (world.leader == (int)before->number) {
            pass_until(server_now_ms() + 10);
        }
        assert_true(server_now_ms() - began_ms <= KUBE_LEASE_MS * 10 / 15 + 10);
    }
    wait_for_leader(KUBE_LEASE_MS + 2000);
    assert_int_not_equal(world.leader, before->number);
    int64_t took_ms = world.led_ms - began_ms;
    int64_t most_ms = end == END_TERM ? 1000 : KUBE_LEASE_MS + 2000;
    if (took_ms > most_ms) {
        fail_msg("hand-over %u (%s) took %lld ms", number, end_names[end], (long long)took_ms);
    }
    world.worst_ms[end] = took_ms > world.worst_ms[end] ? took_ms : world.worst_ms[end];
    world.ends[end]++;
    end_end(before, end);
}

int main(int argc, char **argv)
{
    uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : HANDOVERS;
    world.random = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    given();
    server_set_seed(world.random);
    start(&replicas[0]);
    start(&replicas[1]);
    wait_for_leader(1000);
    for (uint32_t i = 0; i < count; i++) {
        make_job();
        pass_until(server_now_ms() + 3000 + draw(5000));
        hand_over(i);
    }
    pass_until(server_now_ms() + 600000);
    struct err err;
    assert_false(rc_failed(sim_check(world.sim, &err)));
    assert_int_equal(world.finished, world.made);
    assert_int_equal(world.admissions, world.made);
    for (int end = 0; end < END_COUNT; end++) {
        printf("%-8s %4u hand-overs, the longest %lld ms\n", end_names[end], world.ends[end],
               (long long)world.worst_ms[end]);
    }
    printf("%u Jobs, each admitted once; %llu writes, all by whoever held the lease\n", world.made,
           (unsigned long long)world.writes);
    server_kill(&replicas[0]);
    server_kill(&replicas[1]);
    sim_free(world.sim);
    return 0;
}
