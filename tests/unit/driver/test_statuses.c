/* Statuses of one object go out one after the other, whatever becomes of their answers: of two that
 * are on their way the older might arrive last, and stay. */
#include "support/check.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/driver/driver.h"

#define OUT_MAX 16

struct world {
    struct core *core;
    struct driver *driver;
    int64_t now_ms;
    uint64_t out[OUT_MAX]; /* ids of statuses of queue q, in the order of sending */
    int count;
    uint64_t others[OUT_MAX]; /* ids of all other writes */
    int other_count;
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
    if (write->effect->kind == EFFECT_WRITE_STATUS && write->effect->object_kind == KIND_QUEUE) {
        assert_true(world->count < OUT_MAX);
        world->out[world->count++] = write->id;
    } else {
        assert_true(world->other_count < OUT_MAX);
        world->others[world->other_count++] = write->id;
    }
}

static void tell_queue(struct world *world, int64_t generation)
{
    struct label_selector everybody = {.match_labels = {NULL, 0}};
    struct queue queue = {.meta = {.name = STR("q"),
                                   .uid = STR("u-q"),
                                   .resource_version = STR("1"),
                                   .generation = {true, generation}},
                          .spec = {.namespace_selector = &everybody}};
    struct object object = {.kind = KIND_QUEUE, .value = &queue.meta};
    driver_object(world->driver, &object);
}

static void tell_queue_gone(struct world *world)
{
    struct queue queue = {.meta = {.name = STR("q"), .uid = STR("u-q")}};
    struct object object = {.kind = KIND_QUEUE, .value = &queue.meta};
    driver_deleted(world->driver, &object);
}

static void wait_ms(struct world *world, int64_t ms)
{
    for (int64_t end = world->now_ms + ms; world->now_ms < end; world->now_ms += 100) {
        driver_tick(world->driver);
    }
}

static void answer(struct world *world, int which, enum write_outcome outcome)
{
    struct driver_answer result = {.outcome = outcome, .message = STR("no answer in time")};
    driver_write_done(world->driver, world->out[which], &result);
}

static void answer_other(struct world *world, int which)
{
    assert_true(which < world->other_count);
    driver_write_done(world->driver, world->others[which],
                      &(struct driver_answer){.outcome = WRITE_OK});
}

static int setup(void **state)
{
    struct world *world = MEM_NEW(struct world);
    struct driver_ports ports = {
        .ctx = world, .now_ms = port_now, .wake_at = port_wake, .write = port_write};
    world->now_ms = INT64_C(1796040000000);
    world->core = core_new(&(struct core_options){.stuck_node_ms = 0});
    world->driver = driver_new(world->core, &ports);
    tell_queue(world, 1);
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        driver_synced(world->driver, (enum object_kind)kind, false);
    }
    wait_ms(world, 2 * STATUS_INTERVAL_MS);
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

static void newer_status_waits_for_the_answer_to_the_older(void **state)
{
    struct world *world = *state;
    check_i64(world->count, 1);
    tell_queue(world, 2);
    wait_ms(world, 3 * STATUS_INTERVAL_MS);
    check_i64(world->count, 1);
    answer(world, 0, WRITE_OK);
    wait_ms(world, 200);
    check_i64(world->count, 2);
}

static void newer_status_waits_for_an_older_one_that_is_sent_again(void **state)
{
    struct world *world = *state;
    tell_queue(world, 2);
    answer(world, 0, WRITE_RETRY);
    check_i64(world->count, 1);
    wait_ms(world, WRITE_RETRY_BASE_MS + 200);
    check_i64(world->count, 2);
    assert_true(world->out[1] == world->out[0]);
    wait_ms(world, 3 * STATUS_INTERVAL_MS);
    check_i64(world->count, 2);
    answer(world, 1, WRITE_OK);
    wait_ms(world, 200);
    check_i64(world->count, 3);
}

/* Of a queue that was made anew meanwhile, the answer to its own write counts. */
static void answer_about_a_queue_that_has_gone_is_nobodys(void **state)
{
    struct world *world = *state;
    tell_queue_gone(world);
    tell_queue(world, 1);
    wait_ms(world, 2 * STATUS_INTERVAL_MS);
    check_i64(world->count, 2);
    answer(world, 0, WRITE_REFUSED);
    wait_ms(world, 2 * TELL_RETRY_MS);
    check_i64(world->count, 2);
    tell_queue_gone(world);
    answer(world, 1, WRITE_REFUSED);
    wait_ms(world, 2 * TELL_RETRY_MS);
    check_i64(world->count, 2);
}

/* A server that has just been started answers so, and a moment later it takes the write. */
static void write_without_rights_is_tried_again_some_times(void **state)
{
    struct world *world = *state;
    for (int i = 1; i < WRITE_DENIED_TRIES_MAX; i++) {
        answer(world, i - 1, WRITE_DENIED);
        wait_ms(world, WRITE_RETRY_BASE_MS << i);
        check_i64(world->count, i + 1);
        assert_true(world->out[i] == world->out[0]);
    }
    answer(world, WRITE_DENIED_TRIES_MAX - 1, WRITE_DENIED);
    wait_ms(world, 2 * WRITE_RETRY_MAX_MS);
    check_i64(world->count, WRITE_DENIED_TRIES_MAX + 1); /* another write, of then */
    assert_true(world->out[WRITE_DENIED_TRIES_MAX] != world->out[0]);
}

/* The tries before it was up don't count. */
static void server_that_was_away_has_all_its_tries_when_it_is_back(void **state)
{
    struct world *world = *state;
    answer_other(world, 0); /* else it fills the window, which narrows with each */
    for (int i = 1; i <= WRITE_DENIED_TRIES_MAX; i++) {
        answer(world, i - 1, WRITE_RETRY);
        wait_ms(world, WRITE_RETRY_MAX_MS + 200);
        check_i64(world->count, i + 1);
    }
    answer(world, WRITE_DENIED_TRIES_MAX, WRITE_DENIED);
    wait_ms(world, WRITE_RETRY_MAX_MS + 200);
    check_i64(world->count, WRITE_DENIED_TRIES_MAX + 2);
    assert_true(world->out[WRITE_DENIED_TRIES_MAX + 1] == world->out[0]);
}

/* Not for ever: it is written anew, as things are then. */
static void write_without_an_answer_is_given_up_after_a_while(void **state)
{
    struct world *world = *state;
    answer_other(world, 0); /* else it fills the window, which narrows with each */
    for (int i = 1; i < WRITE_RETRIES_MAX; i++) {
        answer(world, i - 1, WRITE_RETRY);
        wait_ms(world, WRITE_RETRY_MAX_MS + 200);
        check_i64(world->count, i + 1);
        assert_true(world->out[i] == world->out[0]);
    }
    answer(world, WRITE_RETRIES_MAX - 1, WRITE_RETRY);
    wait_ms(world, 2 * WRITE_RETRY_MAX_MS);
    check_i64(world->count, WRITE_RETRIES_MAX + 1);
    assert_true(world->out[WRITE_RETRIES_MAX] != world->out[0]);
    check_i64((int64_t)driver_stats(world->driver)->retries, WRITE_RETRIES_MAX - 1);
}

/* Idle is whoever waits for nothing: no answer, no time at which something is sent again. */
static void driver_is_idle_once_all_is_answered(void **state)
{
    struct world *world = *state;
    check_i64(world->other_count, 1); /* the queue's finalizer */
    assert_false(driver_is_idle(world->driver));
    answer_other(world, 0);
    assert_false(driver_is_idle(world->driver));
    answer(world, 0, WRITE_RETRY); /* on no way now, but it waits */
    assert_false(driver_is_idle(world->driver));
    wait_ms(world, WRITE_RETRY_BASE_MS + 200);
    check_i64(world->count, 2);
    assert_false(driver_is_idle(world->driver));
    answer(world, 1, WRITE_OK);
    assert_true(driver_is_idle(world->driver));
    const struct driver_stats *stats = driver_stats(world->driver);
    check_i64((int64_t)stats->status_writes, 3); /* its finalizer too, and one twice */
    check_i64((int64_t)stats->retries, 1);
    check_i64((int64_t)stats->job_writes, 0);
    check_i64(stats->other_writes_waiting, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(newer_status_waits_for_the_answer_to_the_older, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(newer_status_waits_for_an_older_one_that_is_sent_again,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(answer_about_a_queue_that_has_gone_is_nobodys, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(write_without_rights_is_tried_again_some_times, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(server_that_was_away_has_all_its_tries_when_it_is_back,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(write_without_an_answer_is_given_up_after_a_while, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(driver_is_idle_once_all_is_answered, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
