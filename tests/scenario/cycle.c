/* Cohorts whose parents go round: each of the circle, and the queues below it, say so. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

static void given_cohort(struct scenario *s, const char *name, const char *parent)
{
    char json[256];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"parentName\":\"%s\"}}", name, parent);
    given_json(s, KIND_COHORT, json);
}

static void expect_ready(struct scenario *s, const char *name, bool is_ready)
{
    const struct cohort *cohort = scenario_object(s, KIND_COHORT, name);
    if (condition_is_true(&cohort->status.conditions, "Ready") != is_ready) {
        fail_msg("Cohort %s is %sReady", name, is_ready ? "not " : "");
    }
}

static void expect_queue_ready(struct scenario *s, const char *name, bool is_ready)
{
    const struct queue *queue = scenario_object(s, KIND_QUEUE, name);
    if (condition_is_true(&queue->status.conditions, "Ready") != is_ready) {
        fail_msg("Queue %s is %sReady", name, is_ready ? "not " : "");
    }
}

static void expect_all_ready(struct scenario *s, bool are_ready)
{
    at(s, scenario_now_ms(s) + 5000);
    expect_ready(s, "c1", are_ready);
    expect_ready(s, "c2", are_ready);
    expect_ready(s, "c3", are_ready);
    expect_queue_ready(s, "low", are_ready);
    expect_queue_ready(s, "top", are_ready);
}

static void circle_is_told_by_all_that_are_in_it(void **state)
{
    struct scenario *s = *state;
    given_cohort(s, "c1", "");
    given_cohort(s, "c2", "c1");
    given_cohort(s, "c3", "c2");
    given_queue(s, "low", "cpu=2 cohort=c3");
    given_queue(s, "top", "cpu=6 cohort=c1");
    scenario_start(s);
    expect_all_ready(s, true);
    given_cohort(s, "c1", "c3");
    expect_all_ready(s, false);
    given_cohort(s, "c1", "");
    expect_all_ready(s, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(circle_is_told_by_all_that_are_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
