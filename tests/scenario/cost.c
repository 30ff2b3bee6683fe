/* What a change costs is counted here: so many gangs judged, shapes woken, queues ranked, nodes
 * looked at. A broadcast or a poll that comes back fails these, on any machine. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

#include "tallyman/base/limits.h"

#define QUEUES 20
#define UNLIKE 20 /* gangs per queue, no two alike */

/* Queues of one cpu each that share what they have; a gang runs in each, the others want `milli`
 * and a little more each. */
static void given_parked(struct scenario *s, int milli)
{
    checks_are_cheap(s);
    given_node(s, "n1", "cpu=64");
    for (int q = 0; q < QUEUES; q++) {
        char queue[16];
        char name[32];
        (void)snprintf(queue, sizeof(queue), "q%02d", q);
        given_queue(s, queue, "cpu=1 cohort=lab");
        (void)snprintf(name, sizeof(name), "first%02d", q);
        given_job(s, name, queue, "pods=1 cpu=1 created=1000");
        for (int i = 0; i < UNLIKE; i++) {
            char options[64];
            (void)snprintf(name, sizeof(name), "job%02d-%02d", q, i);
            (void)snprintf(options, sizeof(options), "pods=1 cpu=%dm created=2000", milli + i);
            given_job(s, name, queue, options);
        }
    }
    scenario_start(s);
    for (int q = 0; q < QUEUES; q++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "first%02d", q);
        expect_state(s, name, "Admitted");
        gang_starts(s, name, "n1");
    }
    at(s, 60000);
    (void)counts_take(s);
}

/* One cpu comes free, and all ask for more: nobody is looked at. */
static void release_too_small_for_all_wakes_nobody(void **state)
{
    struct scenario *s = *state;
    given_parked(s, 1500);
    job_finishes(s, "first00");
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.shapes_woken, 0);
    assert_int_equal(counts.gangs_visited, 0);
    assert_int_equal(counts.queues_ranked, 0);
    job_finishes(s, "first01"); /* two are enough for one of them */
    counts = counts_take(s);
    assert_int_equal(counts.admitted, 1);
}

/* One cpu comes free and 400 gangs could have it: the first of each queue is woken, one is judged.
 */
static void release_is_judged_by_the_one_that_takes_it(void **state)
{
    struct scenario *s = *state;
    given_parked(s, 900);
    job_finishes(s, "first00");
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.admitted, 1);
    assert_int_equal(counts.gangs_visited, 1);
    assert_true(counts.shapes_woken <= QUEUES);
    /* Each queue once for the choice; those that are too late once more, to be put aside. */
    assert_true(counts.queues_ranked <= 2 * QUEUES);
}

/* Quota that comes free in one tree is nothing to another. */
static void release_in_another_tree_wakes_nobody(void **state)
{
    struct scenario *s = *state;
    checks_are_cheap(s);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "a", "cpu=1 cohort=left");
    given_queue(s, "b", "cpu=1 cohort=right");
    given_job(s, "a1", "a", "pods=1 cpu=1");
    given_job(s, "b1", "b", "pods=1 cpu=1");
    given_job(s, "b2", "b", "pods=1 cpu=1");
    scenario_start(s);
    gang_starts(s, "a1", "n1");
    gang_starts(s, "b1", "n1");
    (void)counts_take(s);
    job_finishes(s, "a1");
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.shapes_woken, 0);
    expect_state(s, "b2", "Pending CohortExhausted");
}

/* 300 full nodes and one that isn't: a gang that fits there is placed without looking at the
 * others. */
static void full_nodes_are_not_looked_at(void **state)
{
    struct scenario *s = *state;
    checks_are_cheap(s);
    given_queue(s, "q", "cpu=1000");
    for (int i = 0; i < 300; i++) {
        char name[32];
        char pod[32];
        (void)snprintf(name, sizeof(name), "n%03d", i);
        given_node(s, name, "cpu=2");
        (void)snprintf(pod, sizeof(pod), "p%03d", i);
        given_pod(s, pod, name, i == 299 ? "cpu=1" : "cpu=2");
    }
    scenario_start(s);
    (void)counts_take(s);
    given_job(s, "small", "q", "pods=1 cpu=1");
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.admitted, 1);
    assert_true(counts.nodes_visited <= 5);
    given_job(s, "large", "q", "pods=2 cpu=1");
    expect_state(s, "large", "Pending NodesFull");
    counts = counts_take(s);
    assert_true(counts.nodes_visited <= 20);
}

/* A gang that waits for quota doesn't hear of pods and nodes. */
static void waiting_for_quota_is_not_woken_by_pods(void **state)
{
    struct scenario *s = *state;
    given_parked(s, 1500);
    given_pod(s, "foreign", "n1", "cpu=1");
    object_gone(s, KIND_POD, "foreign");
    given_node(s, "n2", "cpu=4");
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.shapes_woken, 0);
    assert_int_equal(counts.gangs_visited, 0);
}

/* A pass that lets 60 gangs go: the pods of those in front stay where they were placed for the
 * judgement before, and aren't placed again for each that follows. */
static void pods_on_their_way_are_placed_once(void **state)
{
    struct scenario *s = *state;
    checks_are_cheap(s);
    given_queue(s, "q", "cpu=1");
    for (int i = 0; i < 100; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "n%03d", i);
        given_node(s, name, "cpu=4");
    }
    for (int i = 0; i < 60; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "job%02d", i);
        given_job(s, name, "q", "pods=4 cpu=1");
    }
    scenario_start(s);
    (void)counts_take(s);
    quota_becomes(s, "q", "cpu=240");
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.admitted, 60);
    assert_true(counts.nodes_visited <= 60 * 4);
}

/* A claim holds its gang to one node of those that the gang may use. To try the 99 others would
 * place the pods on their way once more for each. */
static void nodes_that_keep_pods_out_are_not_tried_for_their_claim(void **state)
{
    struct scenario *s = *state;
    checks_are_cheap(s);
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_queue(s, "q", "cpu=240");
    for (int i = 0; i < 99; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "n%03d", i);
        given_node(s, name, "cpu=4");
        given_devices(s, name, "g0");
    }
    given_node(s, "n099", "cpu=100 label=pool:cards");
    given_devices(s, "n099", "g0");
    given_json(
        s, KIND_RESOURCE_SLICE, /* a device of no node: what is placed isn't kept then */
        "{\"metadata\":{\"name\":\"far\"},\"spec\":{\"driver\":\"gpu.example.com\",\"pool\":{"
        "\"name\":\"far\",\"generation\":1,\"resourceSliceCount\":1},\"allNodes\":true,"
        "\"devices\":[{\"name\":\"g9\"}]}}");
    for (int i = 0; i < 20; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "job%02d", i);
        given_job(s, name, "q", "pods=4 cpu=1");
    }
    scenario_start(s);
    given_queue(s, "cards", "cpu=4 gpu.example.com=1");
    given_claim(s, "c", "gpu.example.com", 1);
    (void)counts_take(s);
    given_job(s, "holds", "cards", "pods=2 cpu=1 claim=c selector=pool:cards");
    struct scenario_counts counts = counts_take(s);
    expect_state(s, "holds", "Admitted");
    assert_true(counts.nodes_visited < 200);
}

/* Gangs of 20 queues wait beside 40 pods on their way that could take their places. A node comes
 * and all are judged: how many places there are for either kind is counted once for all of them. */
static void places_are_counted_once_for_all_who_wait(void **state)
{
    struct scenario *s = *state;
    checks_are_cheap(s);
    for (int i = 0; i < 20; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "n%03d", i);
        given_node(s, name, "cpu=4");
    }
    given_queue(s, "first", "cpu=40");
    given_job(s, "starts", "first", "pods=40 cpu=1");
    scenario_start(s);
    expect_state(s, "starts", "Admitted");
    for (int q = 0; q < QUEUES; q++) {
        char queue[16];
        char name[32];
        (void)snprintf(queue, sizeof(queue), "q%02d", q);
        given_queue(s, queue, "cpu=4");
        (void)snprintf(name, sizeof(name), "job%02d", q);
        given_job(s, name, queue, "pods=1 cpu=4");
        expect_state(s, name, "Pending ReservedForOther");
    }
    (void)counts_take(s);
    given_node(s, "n020", "cpu=4");
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.gangs_visited, QUEUES);
    assert_int_equal(counts.admitted, 0);
    /* Each looks at the 10 nodes that the 40 are put on, and no more than twice for itself. */
    assert_true(counts.nodes_visited <= QUEUES * 12 + 60);
}

/* A node that shrinks changes the reason of 300 gangs: they are told one part after the other, and
 * none of them twice. */
static void a_reason_is_told_in_parts(void **state)
{
    struct scenario *s = *state;
    checks_are_cheap(s);
    given_node(s, "n1", "cpu=4");
    given_pod(s, "foreign", "n1", "cpu=3");
    given_queue(s, "q", "cpu=100");
    for (int i = 0; i < 300; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "job%03d", i);
        given_job(s, name, "q", "pods=1 cpu=2");
    }
    scenario_start(s);
    expect_state(s, "job299", "Pending NodesFull");
    (void)counts_take(s);
    given_node(s, "n1", "cpu=1");
    struct scenario_counts counts = counts_take(s);
    expect_state(s, "job299", "Pending NeverFits");
    assert_int_equal(counts.admission_writes, 300);
    assert_true(counts.most_effects <= TELL_GANGS_PER_STEP);
}

/* Other trees and nodes are nothing to it, nor is what happens to gangs without freeing anything.
 */
static void who_waits_for_victims_is_judged_when_something_came_free(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=4 label=pool:a");
    given_node(s, "n2", "cpu=4 label=pool:b");
    given_queue(s, "q", "cpu=3 within=LowerPriority");
    given_queue(s, "other", "cpu=4");
    given_job(s, "stops", "q", "pods=3 cpu=1 priority=low selector=pool:a");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1 n1");
    given_pod(s, "foreign", "n2", "cpu=4");
    given_job(s, "boss", "q", "pods=2 cpu=1 priority=high selector=pool:a");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    (void)counts_take(s);
    job_annotated(s, "boss", "example.com/note", "x");
    pod_terminates(s, "stops-0");
    pod_gone(s, "foreign");
    quota_becomes(s, "other", "cpu=8");
    assert_int_equal(counts_take(s).gangs_visited, 0);
    quota_becomes(s, "q", "cpu=5 within=LowerPriority");
    expect_state(s, "boss", "Reserved WaitingForVictims"); /* the node has room for one */
    pod_gone(s, "stops-0");
    expect_state(s, "boss", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(release_too_small_for_all_wakes_nobody),
        scenario_test(release_is_judged_by_the_one_that_takes_it),
        scenario_test(release_in_another_tree_wakes_nobody),
        scenario_test(full_nodes_are_not_looked_at),
        scenario_test(pods_on_their_way_are_placed_once),
        scenario_test(nodes_that_keep_pods_out_are_not_tried_for_their_claim),
        scenario_test(places_are_counted_once_for_all_who_wait),
        scenario_test(a_reason_is_told_in_parts),
        scenario_test(who_waits_for_victims_is_judged_when_something_came_free),
        scenario_test(waiting_for_quota_is_not_woken_by_pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
