/* In which rack others are stopped for a gang that needs one: the order of the prices, weightiest
 * first (docs/decisions/036). Each test has one rack that is better by that rule alone, and that is
 * later by its name. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

static void given_two_racks(struct scenario *s)
{
    given_flavor(s, "default", "level=rack");
    given_priority_class(s, "lowest", 1);
    given_priority_class(s, "low", 2);
    given_priority_class(s, "high", 9);
    given_queue(s, "q", "cpu=4 gpus.com/gpu=64 cohort=lab within=LowerPriority reclaim=Any");
    given_queue(s, "other", "cpu=4 gpus.com/gpu=64 cohort=lab");
    given_node(s, "n1", "cpu=4 gpus.com/gpu=4 label=rack:r1");
    given_node(s, "n2", "cpu=4 gpus.com/gpu=4 label=rack:r2");
}

static void given_gang(struct scenario *s, const char *name, const char *queue, const char *node,
                       const char *options)
{
    given_job(s, name, queue, options);
    char nodes[64];
    const struct job *job = scenario_job(s, name);
    int len = 0;
    for (int i = 0; i < (int)job->spec.parallelism.value; i++) {
        len += snprintf(nodes + len, sizeof(nodes) - (size_t)len, "%s ", node);
    }
    scenario_start(s);
    expect_state(s, name, "Admitted");
    gang_starts(s, name, nodes);
}

static void expect_stops_in_r2(struct scenario *s, const char *options)
{
    given_job(s, "high", "q", options);
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "r1", "Running");
    expect_state(s, "r2", "Suspending WaitingForTermination");
}

/* Whoever is of the own queue is stopped last, whatever its priority. */
static void another_queues_gang_before_one_of_the_own(void **state)
{
    struct scenario *s = *state;
    given_two_racks(s);
    quota_becomes(s, "q", "cpu=12 within=LowerPriority reclaim=Any cohort=lab");
    quota_becomes(s, "other", "cpu=0 cohort=lab");
    given_gang(s, "r1", "q", "n1", "pods=3 cpu=1 priority=lowest selector=rack:r1");
    given_gang(s, "r2", "other", "n2", "pods=4 cpu=1 priority=low selector=rack:r2");
    given_gang(s, "more", "other", "n1", "pods=1 cpu=1 priority=low selector=rack:r1");
    expect_stops_in_r2(s, "pods=4 cpu=1 priority=high required=rack");
    expect_state(s, "more", "Running");
}

static void the_lowest_priority(void **state)
{
    struct scenario *s = *state;
    given_two_racks(s);
    quota_becomes(s, "q", "cpu=8 gpus.com/gpu=64 within=LowerPriority");
    given_gang(s, "r1", "q", "n1", "pods=1 cpu=4 priority=low selector=rack:r1");
    given_gang(s, "r2", "q", "n2", "pods=2 cpu=2 priority=lowest selector=rack:r2");
    expect_stops_in_r2(s, "pods=4 cpu=1 priority=high required=rack");
}

/* Two small ones in r1, one in r2. */
static void the_fewest_gangs(void **state)
{
    struct scenario *s = *state;
    given_two_racks(s);
    quota_becomes(s, "q", "cpu=8 gpus.com/gpu=64 within=LowerPriority");
    given_gang(s, "r1", "q", "n1", "pods=2 cpu=1 priority=low selector=rack:r1");
    given_gang(s, "r1-too", "q", "n1", "pods=2 cpu=1 priority=low selector=rack:r1");
    given_gang(s, "r2", "q", "n2", "pods=4 cpu=1 priority=low selector=rack:r2");
    expect_stops_in_r2(s, "pods=4 cpu=1 priority=high required=rack");
    expect_state(s, "r1-too", "Running");
}

/* Both have run for a minute, the one in r1 with twice the devices. */
static void the_least_work_lost(void **state)
{
    struct scenario *s = *state;
    given_two_racks(s);
    quota_becomes(s, "q", "cpu=8 gpus.com/gpu=64 within=LowerPriority");
    given_gang(s, "r1", "q", "n1", "pods=2 cpu=2 gpus.com/gpu=2 priority=low selector=rack:r1");
    given_gang(s, "r2", "q", "n2", "pods=2 cpu=2 gpus.com/gpu=1 priority=low selector=rack:r2");
    at(s, 60000);
    expect_stops_in_r2(s, "pods=4 cpu=1 priority=high required=rack");
}

/* Nothing tells them apart but that r2 is less full: the first by its path. */
static void else_the_first_by_name(void **state)
{
    struct scenario *s = *state;
    given_two_racks(s);
    quota_becomes(s, "q", "cpu=8 gpus.com/gpu=64 within=LowerPriority");
    given_node(s, "n2", "cpu=5 gpus.com/gpu=4 label=rack:r2");
    given_gang(s, "r2", "q", "n2", "pods=4 cpu=1 priority=low selector=rack:r2");
    given_gang(s, "r1", "q", "n1", "pods=4 cpu=1 priority=low selector=rack:r1");
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high required=rack");
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "r2", "Running");
    expect_state(s, "r1", "Suspending WaitingForTermination");
}

/* A pod that isn't bound may land in either rack: the gang is a victim for each. */
static void pods_on_their_way_may_be_in_any_rack(void **state)
{
    struct scenario *s = *state;
    given_two_racks(s);
    quota_becomes(s, "q", "cpu=8 gpus.com/gpu=64 within=LowerPriority");
    given_pod(s, "foreign", "n1", "cpu=4");
    given_job(s, "r2", "q", "pods=2 cpu=2 priority=low");
    scenario_start(s);
    pods_appear(s, "r2", 2);
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high required=rack");
    expect_state(s, "high", "Reserved WaitingForVictims");
    gang_stops(s, "r2");
    expect_state(s, "high", "Admitted");
    expect_selector(s, "high", "rack", "r2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(another_queues_gang_before_one_of_the_own),
        scenario_test(the_lowest_priority),
        scenario_test(the_fewest_gangs),
        scenario_test(the_least_work_lost),
        scenario_test(else_the_first_by_name),
        scenario_test(pods_on_their_way_may_be_in_any_rack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
