/* How many writes are out at once: fewer while the server is slow, and more again when it isn't. */
#include <stdio.h>

#include "support/check.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/driver/driver.h"

#define JOBS 2000

struct world {
    struct core *core;
    struct driver *driver;
    int64_t now_ms;
    uint64_t out[JOBS]; /* ids of the Jobs' writes that wait for their answers, as they were sent */
    int count;
};

static int64_t port_now(void *ctx)
{
    return ((struct world *)ctx)->now_ms;
}

static void port_wake(void *ctx, int64_t at_ms)
{
    (void)ctx;
    (void)at_ms;
}

static void port_write(void *ctx, const struct driver_write *write)
{
    struct world *world = ctx;
    if (write->effect->kind == EFFECT_PATCH_JOB) {
        assert_true(world->count < JOBS);
        world->out[world->count++] = write->id;
    }
}

/* It runs, and nobody has admitted it. */
static void tell_job(struct world *world, int number)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "job-%d", number);
    struct string_pair label = {STR("tallyman.dev/queue"), STR("q")};
    struct job job = {
        .meta = {.name = str_from_c(name),
                 .namespace_name = STR("ml"),
                 .uid = str_from_c(name),
                 .resource_version = STR("7"),
                 .labels = {&label, 1}},
        .spec = {.suspend = {true, false}, .parallelism = {true, 1}, .completions = {true, 1}},
        .status = {.start_time = {true, world->now_ms}, .active = {true, 1}}};
    struct object object = {.kind = KIND_JOB, .value = &job.meta};
    driver_object(world->driver, &object);
}

static int setup(void **state)
{
    struct world *world = MEM_NEW(struct world);
    struct driver_ports ports = {
        .ctx = world, .now_ms = port_now, .wake_at = port_wake, .write = port_write};
    world->now_ms = INT64_C(1796040000000);
    world->core = core_new(&(struct core_options){.stuck_node_ms = 0});
    world->driver = driver_new(world->core, &ports);
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        driver_synced(world->driver, (enum object_kind)kind, false);
    }
    for (int i = 0; i < JOBS; i++) {
        tell_job(world, i);
    }
    check_i64(world->count, JOB_WRITES_IN_FLIGHT_MAX);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    driver_free(world->driver);
    core_free(world->core);
    mem_free(world);
    return 0;
}

/* All that are out are answered so much later; returns how many are out then. */
static int answer_all(struct world *world, int64_t after_ms, const struct driver_answer *answer)
{
    uint64_t out[JOBS];
    int count = world->count;
    for (int i = 0; i < count; i++) {
        out[i] = world->out[i];
    }
    world->count = 0;
    world->now_ms += after_ms;
    for (int i = 0; i < count; i++) {
        driver_write_done(world->driver, out[i], answer);
    }
    return world->count;
}

static int all_are_done(struct world *world, int64_t after_ms)
{
    const struct driver_answer done = {.outcome = WRITE_OK, .resource_version = STR("8")};
    return answer_all(world, after_ms, &done);
}

static void slow_answers_halve_what_is_out(void **state)
{
    struct world *world = *state;
    check_i64(all_are_done(world, 5000), 32);
    check_i64(all_are_done(world, 3000), 16);
    check_i64(all_are_done(world, 8000), 8);
    check_i64(all_are_done(world, 8000), JOB_WRITES_IN_FLIGHT_MIN);
    check_i64(all_are_done(world, 8000), JOB_WRITES_IN_FLIGHT_MIN);
}

static void prompt_answers_widen_it_by_one_a_round(void **state)
{
    struct world *world = *state;
    (void)all_are_done(world, 5000);
    (void)all_are_done(world, 5000);
    check_i64(all_are_done(world, 20), 17);
    check_i64(all_are_done(world, 20), 18);
    for (int round = 0; round < 60; round++) {
        (void)all_are_done(world, 20);
    }
    check_i64(all_are_done(world, 20), 0); /* all are through, in as many rounds */
}

static void prompt_answers_leave_it_as_it_is(void **state)
{
    struct world *world = *state;
    check_i64(all_are_done(world, 900), JOB_WRITES_IN_FLIGHT_MAX);
    check_i64(all_are_done(world, 900), JOB_WRITES_IN_FLIGHT_MAX);
}

/* Nor a server that says no, or a conflict: it has had the time. */
static void definite_answers_leave_it_as_it_is(void **state)
{
    struct world *world = *state;
    const struct driver_answer no = {.outcome = WRITE_REFUSED, .message = STR("no")};
    check_i64(answer_all(world, 20, &no), JOB_WRITES_IN_FLIGHT_MAX);
}

static void no_answer_or_too_much_to_do_halves_it_once_for_all(void **state)
{
    struct world *world = *state;
    const struct driver_answer busy = {
        .outcome = WRITE_RETRY, .message = STR("too many requests"), .is_overloaded = true};
    check_i64(answer_all(world, 20, &busy), 32);
    const struct driver_answer none = {.outcome = WRITE_RETRY, .message = STR("no answer")};
    world->now_ms += 10;
    check_i64(answer_all(world, 20, &none), 16);
}

#define world_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(slow_answers_halve_what_is_out),
        world_test(prompt_answers_widen_it_by_one_a_round),
        world_test(prompt_answers_leave_it_as_it_is),
        world_test(definite_answers_leave_it_as_it_is),
        world_test(no_answer_or_too_much_to_do_halves_it_once_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
