/* Room is kept for so many heads at once, the first in order; and what a head takes of quota is all
 * that it asks for, claims by name too. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#include "../../controller/core/booking.h"

#include "tallyman/base/limits.h"

#define CLASS "gpu.example.com"

enum { QUEUES = 70, BOOKED = 64 };

/* In each queue `long` holds three of four until an hour has passed and `head` needs them all; the
 * queue of the highest number has the oldest head. A head beyond the sixty-fourth holds nobody
 * back, and does when one before it has gone. */
static void heads_beyond_those_that_are_booked(void **state)
{
    struct scenario *s = *state;
    char name[40];
    char queue[40];
    char options[100];
    checks_are_cheap(s);
    given_flavor(s, "default", "");
    for (int i = 0; i < QUEUES; i++) {
        (void)snprintf(queue, sizeof(queue), "q%02d", i);
        given_queue(s, queue, "cpu=4 strategy=Backfill fit=Quota");
        (void)snprintf(name, sizeof(name), "long-%02d", i);
        given_job(s, name, queue, "pods=3 cpu=1 max-runtime=60m created=0");
    }
    at(s, 60000);
    for (int i = 0; i < QUEUES; i++) {
        (void)snprintf(queue, sizeof(queue), "q%02d", i);
        (void)snprintf(name, sizeof(name), "head-%02d", i);
        (void)snprintf(options, sizeof(options), "pods=4 cpu=1 created=%d",
                       60000 + 1000 * (QUEUES - i));
        given_job(s, name, queue, options);
    }
    given_job(s, "kept-from", "q69", "pods=1 cpu=1 created=200000");
    expect_state(s, "kept-from", "Pending ReservedForOther");
    given_job(s, "last-kept-from", "q06", "pods=1 cpu=1 created=200000");
    expect_state(s, "last-kept-from", "Pending ReservedForOther");
    given_job(s, "beyond", "q04", "pods=1 cpu=1 created=200000");
    expect_state(s, "beyond", "Admitted");
    job_deleted_now(s, "head-69");
    expect_state(s, "kept-from", "Admitted");
    given_job(s, "now-kept-from", "q05", "pods=1 cpu=1 created=200000");
    expect_state(s, "now-kept-from", "Pending ReservedForOther");
}

/* The head's named claim is of the quota that is kept for it. */
static void named_claim_of_the_head_is_kept(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_devices(s, "n1", "a b c");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_claim(s, "c", CLASS, 2);
    given_queue(s, "q", "cpu=8 " CLASS "=3 strategy=Backfill");
    given_job(s, "long", "q", "pods=1 cpu=1 template=one max-runtime=60m created=0");
    given_job(s, "other", "q", "pods=1 cpu=1 template=one max-runtime=90m created=1");
    scenario_start(s);
    gang_starts(s, "long", "n1");
    pod_claims(s, "long-0", "one", "n1/a");
    gang_starts(s, "other", "n1");
    pod_claims(s, "other-0", "one", "n1/b");
    at(s, 60000);
    given_job(s, "head", "q", "pods=1 cpu=1 claim=c created=60000");
    expect_state(s, "head", "Pending QuotaExhausted");
    given_job(s, "small", "q", "pods=1 cpu=1 template=one created=60001");
    expect_state(s, "small", "Pending ReservedForOther");
    given_job(s, "short", "q", "pods=1 cpu=1 template=one max-runtime=30m created=60002");
    expect_state(s, "short", "Admitted");
    given_job(s, "plain", "q", "pods=1 cpu=1 created=60003");
    expect_state(s, "plain", "Admitted");
}

/* A gang that waits for room behind so many that can't start at all is no head: those behind it
 * take what they find. */
static void head_behind_more_impossible_gangs_than_are_passed_over(void **state)
{
    struct scenario *s = *state;
    char name[40];
    checks_are_cheap(s);
    given_flavor(s, "default", "");
    given_queue(s, "q", "cpu=4 strategy=Backfill fit=Quota");
    given_job(s, "long", "q", "pods=3 cpu=1 max-runtime=60m created=0");
    at(s, 60000);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "never-%d", i);
        given_job(s, name, "q", "pods=5 cpu=1 created=61000");
    }
    given_job(s, "head", "q", "pods=4 cpu=1 created=62000");
    given_job(s, "small", "q", "pods=1 cpu=1 created=63000");
    expect_state(s, "head", "Pending QuotaExhausted");
    expect_state(s, "small", "Admitted");
    job_finishes(s, "small");
    job_deleted_now(s, "never-500");
    given_job(s, "late", "q", "pods=1 cpu=1 created=64000");
    expect_state(s, "late", "Pending ReservedForOther");
}

/* One step goes on for so many rounds and no more: who waited behind a head that has gone is looked
 * at some seconds later then, even where no head is left. */
static void who_is_woken_after_too_many_rounds_starts_soon(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=8 strategy=Backfill");
    given_queue(s, "plain", "cpu=8");
    given_job(s, "long", "q", "pods=6 cpu=1 max-runtime=60m created=0");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1 n1 n1 n1");
    at(s, 60000);
    given_job(s, "head", "q", "pods=8 cpu=1 created=1000");
    given_job(s, "behind", "plain", "pods=1 cpu=1 created=2000");
    expect_state(s, "behind", "Pending ReservedForOther");
    at(s, 90000);
    struct core *core = scenario_core(s);
    struct err err;
    struct arena arena;
    arena_init(&arena);
    struct effects effects = {.arena = &arena};
    struct event event = {.kind = EVENT_DELETED,
                          .now_ms = scenario_now_ms(s) + SCENARIO_START_MS,
                          .object = {KIND_JOB, &scenario_job(s, "head")->meta}};
    const struct gang *behind = gang_find(core, scenario_job(s, "behind")->meta.uid);
    core->bookings->rounds = BOOKING_ROUNDS_MAX;
    assert_true(!rc_failed(core_step(core, &event, &effects, &err)));
    assert_int_equal(behind->run->write_effect_id, 0);
    assert_true(effects.wake_at_ms <= event.now_ms + 10000);
    event = (struct event){.kind = EVENT_TICK, .now_ms = event.now_ms + 10000};
    assert_true(!rc_failed(core_step(core, &event, &effects, &err)));
    assert_int_not_equal(behind->run->write_effect_id, 0);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(heads_beyond_those_that_are_booked),
        scenario_test(named_claim_of_the_head_is_kept),
        scenario_test(head_behind_more_impossible_gangs_than_are_passed_over),
        scenario_test(who_is_woken_after_too_many_rounds_starts_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
