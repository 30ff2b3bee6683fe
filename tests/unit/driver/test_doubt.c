/* A Job's write that is refused after a try without an answer may have been carried out by that
 * try: the core is told to look at what the watch shows, not that nothing was done. */
#include "support/check.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/driver/driver.h"

struct world {
    struct core *core;
    struct driver *driver;
    int64_t now_ms;
    uint64_t patch; /* the Job's write that waits for its answer; 0: none */
    int patches;    /* that were sent */
    enum effect_outcome told;
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
        world->patch = write->id;
        world->patches++;
    }
}

static void port_event(void *ctx, const struct event *event)
{
    struct world *world = ctx;
    if (event->kind == EVENT_EFFECT_DONE) {
        world->told = event->done.outcome;
    }
}

static void wait_ms(struct world *world, int64_t ms)
{
    for (int64_t end = world->now_ms + ms; world->now_ms < end; world->now_ms += 100) {
        driver_tick(world->driver);
    }
}

static void answer(struct world *world, enum write_outcome outcome, bool is_overloaded)
{
    assert_int_not_equal(world->patch, 0);
    struct driver_answer result = {
        .outcome = outcome, .message = STR("no"), .is_overloaded = is_overloaded};
    uint64_t id = world->patch;
    world->patch = 0;
    driver_write_done(world->driver, id, &result);
}

/* It runs although it names a queue and nobody admitted it: it has to be suspended. */
static void tell_job(struct world *world)
{
    struct string_pair label = {STR("tallyman.dev/queue"), STR("q")};
    struct job job = {.meta = {.name = STR("j"),
                               .namespace_name = STR("default"),
                               .uid = STR("u-j"),
                               .resource_version = STR("7"),
                               .labels = {&label, 1}}};
    struct object object = {.kind = KIND_JOB, .value = &job.meta};
    driver_object(world->driver, &object);
}

static int setup(void **state)
{
    struct world *world = MEM_NEW(struct world);
    struct driver_ports ports = {.ctx = world,
                                 .now_ms = port_now,
                                 .wake_at = port_wake,
                                 .write = port_write,
                                 .on_event = port_event};
    world->now_ms = INT64_C(1796040000000);
    world->core = core_new(&(struct core_options){.stuck_node_ms = 0});
    world->driver = driver_new(world->core, &ports);
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        driver_synced(world->driver, (enum object_kind)kind, false);
    }
    tell_job(world);
    wait_ms(world, 100);
    check_i64(world->patches, 1);
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

static void refused_at_once_was_not_done(void **state)
{
    struct world *world = *state;
    answer(world, WRITE_REFUSED, false);
    check_i64(world->told, EFFECT_REFUSED);
}

static void refused_after_silence_may_have_been_done(void **state)
{
    struct world *world = *state;
    answer(world, WRITE_RETRY, false);
    wait_ms(world, 2 * WRITE_RETRY_BASE_MS);
    check_i64(world->patches, 2);
    answer(world, WRITE_REFUSED, false);
    check_i64(world->told, EFFECT_CONFLICT);
}

/* Who has too much to do says so before anything is done. */
static void refused_after_too_many_requests_was_not_done(void **state)
{
    struct world *world = *state;
    answer(world, WRITE_RETRY, true);
    wait_ms(world, 2 * WRITE_RETRY_BASE_MS);
    check_i64(world->patches, 2);
    answer(world, WRITE_REFUSED, false);
    check_i64(world->told, EFFECT_REFUSED);
}

/* The doubt is the first try's: a new write has none. */
static void doubt_ends_with_the_write(void **state)
{
    struct world *world = *state;
    answer(world, WRITE_RETRY, false);
    wait_ms(world, 2 * WRITE_RETRY_BASE_MS);
    answer(world, WRITE_REFUSED, false);
    wait_ms(world, 2 * CONFLICT_WAIT_MS);
    check_i64(world->patches, 3);
    answer(world, WRITE_REFUSED, false);
    check_i64(world->told, EFFECT_REFUSED);
}

/* A gang starts soon after a server is back, however long it was away. */
static void job_is_written_soon_after_a_long_silence(void **state)
{
    struct world *world = *state;
    for (int i = 1; i < 20; i++) {
        answer(world, WRITE_RETRY, false);
        wait_ms(world, WRITE_JOB_RETRY_MAX_MS + 200);
        check_i64(world->patches, i + 1);
    }
}

#define doubt_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        doubt_test(refused_at_once_was_not_done),
        doubt_test(refused_after_silence_may_have_been_done),
        doubt_test(refused_after_too_many_requests_was_not_done),
        doubt_test(doubt_ends_with_the_write),
        doubt_test(job_is_written_soon_after_a_long_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
