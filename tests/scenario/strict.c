/* StrictFIFO: who blocks, while others in front are passed over, are still being tried, or come and
 * go in the middle of a pass. */
#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#include "../../controller/core/trace.h"

/* In a cohort whose 8 cpu are taken: `asks`, which only waits for its autoscaler, has 2 of them.
 * `urgent` may have it give them back, in the middle of the pass that judges it. */
static void given_quota_that_comes_free_in_a_pass(struct scenario *s, const char *strategy)
{
    given_node(s, "n1", "cpu=64");
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 10);
    given_queue(s, "q", strategy);
    given_queue(s, "own", "cpu=2 cohort=lab reclaim=LowerPriority");
    given_queue(s, "other", "cpu=2 cohort=lab");
    given_queue(s, "auto", "cpu=0 cohort=lab check=best.example.com");
    given_job(s, "long", "other", "pods=6 cpu=1 priority=high");
    gang_starts(s, "long", "n1 n1 n1 n1 n1 n1");
    given_job(s, "asks", "auto", "pods=2 cpu=1");
    expect_state(s, "asks", "Reserved WaitingForCheck");
}

/* `head` can never start and is passed over, `big` behind it blocks, and `small`, which waited
 * before they came, is behind that one. */
static void quota_that_comes_free_in_a_pass_lets_nobody_overtake(void **state)
{
    struct scenario *s = *state;
    given_quota_that_comes_free_in_a_pass(s, "cpu=4 cohort=lab strategy=StrictFIFO");
    given_job(s, "small", "q", "pods=1 cpu=1");
    expect_state(s, "small", "Pending CohortExhausted");
    events_gather(s);
    given_job(s, "head", "q", "pods=1 gone.example.com=1 priority=high created=1000");
    given_job(s, "big", "q", "pods=4 cpu=1 priority=high created=2000");
    given_job(s, "urgent", "own", "pods=1 cpu=1 priority=mid");
    events_arrive(s, 0);
    expect_state(s, "urgent", "Admitted");
    expect_state(s, "big", "Pending CohortExhausted");
    expect_used(s, "q", "cpu=0");
}

/* Who has been judged by then finds what is left. */
static void expect_rest_is_had(struct scenario *s, const char *strategy)
{
    given_quota_that_comes_free_in_a_pass(s, strategy);
    events_gather(s);
    given_job(s, "first", "q", "pods=1 cpu=1 priority=high created=1000");
    given_job(s, "urgent", "own", "pods=1 cpu=1 priority=mid");
    events_arrive(s, 0);
    expect_state(s, "urgent", "Admitted");
    expect_state(s, "first", "Admitted");
}

static void quota_that_comes_free_in_a_pass_is_had_in_order(void **state)
{
    expect_rest_is_had(*state, "cpu=4 cohort=lab strategy=StrictFIFO");
}

static void quota_that_comes_free_in_a_pass_is_had_by_anybody(void **state)
{
    expect_rest_is_had(*state, "cpu=4 cohort=lab");
}

/* Whoever woke it: behind the head nobody is judged. */
static void who_is_woken_behind_the_head_is_not_judged(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=4 strategy=StrictFIFO");
    given_job(s, "holds", "q", "pods=3 cpu=1 created=0");
    given_job(s, "head", "q", "pods=2 cpu=1 created=1000");
    given_job(s, "next", "q", "pods=1 cpu=1 created=2000");
    expect_state(s, "head", "Pending QuotaExhausted");
    expect_state(s, "next", "Pending BehindInQueue");
    struct core *core = scenario_core(s);
    core->trace = trace_new();
    ready_add(core, gang_find(core, scenario_job(s, "next")->meta.uid)->shape);
    struct event tick = {.kind = EVENT_TICK};
    step(s, &tick);
    struct look_list looks = core_last_looks(core);
    assert_int_equal(looks.count, 1);
    check_str(looks.items[0].name, "next");
    assert_int_equal(looks.items[0].result, LOOK_BLOCKED);
    expect_state(s, "next", "Pending BehindInQueue");
    job_finishes(s, "holds");
    expect_state(s, "head", "Admitted");
    expect_state(s, "next", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(quota_that_comes_free_in_a_pass_lets_nobody_overtake),
        scenario_test(quota_that_comes_free_in_a_pass_is_had_in_order),
        scenario_test(quota_that_comes_free_in_a_pass_is_had_by_anybody),
        scenario_test(who_is_woken_behind_the_head_is_not_judged),
    };
    return cmocka_run_group_tests_name("strict", tests, NULL, NULL);
}
