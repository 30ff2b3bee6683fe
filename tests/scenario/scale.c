/* What an event costs: with thousands of parked gangs, only those are visited that it could free.
 */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

#define PARKED 10000

/* Ten sizes, two namespaces: twenty kinds of gang. */
static void given_parked_jobs(struct scenario *s)
{
    checks_are_cheap(s);
    given_namespace(s, "ml2", "");
    given_node(s, "n1", "cpu=64");
    given_queue(s, "q", "cpu=4");
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof(name), "first%d", i);
        given_job(s, name, "q", "pods=1 cpu=1");
    }
    for (int i = 0; i < PARKED; i++) {
        char name[32];
        char options[64];
        snprintf(name, sizeof(name), "job%05d", i);
        snprintf(options, sizeof(options), "pods=1 cpu=%dm ns=%s", 910 + i % 10 * 10,
                 i % 20 < 10 ? "ml" : "ml2");
        given_job(s, name, "q", options);
    }
    scenario_start(s);
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof(name), "first%d", i);
        gang_starts(s, name, "n1");
    }
    at(s, 60000);
    (void)counts_take(s);
}

static void heartbeat_with_ten_thousand_parked_visits_nothing(void **state)
{
    struct scenario *s = *state;
    given_parked_jobs(s);
    struct node *node = scenario_object(s, KIND_NODE, "n1");
    node->status.conditions.items[0].message = STR("still here");
    object_changed(s, KIND_NODE, "n1");
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.nodes_visited, 0);
    assert_int_equal(counts.gangs_visited, 0);
    assert_int_equal(counts.effects, 0);
}

static void release_with_ten_thousand_parked_visits_few(void **state)
{
    struct scenario *s = *state;
    given_parked_jobs(s);
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof(name), "first%d", i);
        job_finishes(s, name);
        struct scenario_counts counts = counts_take(s);
        assert_int_equal(counts.admitted, 1);
        assert_true(counts.gangs_visited <= 10);
        assert_int_equal(counts.job_writes, 1);
        /* The one that ended, the one that starts; and once in ten seconds the first positions. */
        assert_true(counts.admission_writes <= (i == 0 ? 102 : 2));
    }
}

/* A full queue, one gang that ends each second: the last in line has its turn, and what is written
 * stays in proportion. */
static void queue_drains_to_its_last_gang(void **state)
{
    struct scenario *s = *state;
    checks_are_cheap(s);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "q", "cpu=2");
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof(name), "j%03d", i);
        given_job(s, name, "q", "pods=2 cpu=1");
    }
    scenario_start(s);
    (void)counts_take(s);
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof(name), "j%03d", i);
        expect_state(s, name, "Admitted");
        gang_starts(s, name, "n1 n1");
        at(s, (i + 1) * 1000);
        object_again(s, KIND_NODE, "n1");
        job_finishes(s, name);
    }
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.job_writes, 299);
    assert_int_equal(counts.events, 299);
    assert_true(counts.gangs_visited <= 2 * 300);
    /* Admitted, Running, Finished of each, and positions of the first hundred every ten seconds. */
    assert_true(counts.admission_writes <= 3 * 300 + 31 * 100);
}

/* Gangs that wait for a node: one that comes wakes whom it could hold. */
static void new_node_is_used_at_once(void **state)
{
    struct scenario *s = *state;
    checks_are_cheap(s);
    given_queue(s, "q", "cpu=2000");
    for (int i = 0; i < 500; i++) {
        char name[32];
        snprintf(name, sizeof(name), "j%03d", i);
        given_job(s, name, "q", "pods=2 cpu=2");
    }
    scenario_start(s);
    (void)counts_take(s);
    given_node(s, "n1", "cpu=4");
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.admitted, 1);
    assert_true(counts.gangs_visited <= 10);
}

/* Writes wait for their time, so of the changes that follow at once some gangs are still to be told
 * when the next comes: in the end all are told how it is. */
static void reason_that_changes_while_it_is_told(void **state)
{
    (void)state;
    char name[32];
    scenarios_are_paced(5000);
    struct scenario *s = scenario_new();
    scenarios_are_paced(0);
    checks_are_cheap(s);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "q", "cpu=8");
    given_job(s, "first", "q", "pods=1 cpu=8 created=0");
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof(name), "job%03d", i);
        given_job(s, name, "q", "pods=1 cpu=8");
    }
    scenario_start(s);
    at(s, 60000);
    for (int i = 0; i < 3; i++) {
        quota_becomes(s, "q", i % 2 == 0 ? "cpu=4" : "cpu=8");
    }
    at(s, 120000);
    for (int i = 0; i < 500; i += 7) {
        snprintf(name, sizeof(name), "job%03d", i);
        expect_state(s, name, "Pending NeverFits");
    }
    scenario_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(heartbeat_with_ten_thousand_parked_visits_nothing),
        scenario_test(release_with_ten_thousand_parked_visits_few),
        scenario_test(queue_drains_to_its_last_gang),
        scenario_test(new_node_is_used_at_once),
        cmocka_unit_test(reason_that_changes_while_it_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
