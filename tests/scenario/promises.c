/* Pods that were let go and aren't bound yet: alike ones are one crowd, whatever gang and queue
 * they are of, and others never are, because then one kind's room would be counted for the other.
 */
#include "support/check.h"
#include "support/scenario.h"

/* Each of its pods asks one cpu. */
static void given_unbound(struct scenario *s, const char *name, const char *queue,
                          const char *options)
{
    given_job(s, name, queue, options);
    expect_state(s, name, "Admitted");
}

static void given_queues(struct scenario *s)
{
    given_queue(s, "qa", "cpu=64");
    given_queue(s, "qb", "cpu=64");
    scenario_start(s);
}

/* Wherever three of them go, one place is left; of different ones it couldn't be told. */
static void alike_pods_of_two_queues_are_counted_together(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=2");
    given_node(s, "n2", "cpu=2");
    given_queues(s);
    given_unbound(s, "a", "qa", "pods=2 cpu=1");
    given_unbound(s, "b", "qb", "pods=1 cpu=1");
    given_job(s, "two", "qb", "pods=2 cpu=1");
    expect_state(s, "two", "Pending NodesFull");
    given_job(s, "one", "qa", "pods=1 cpu=1");
    expect_state(s, "one", "Admitted");
}

static void pods_for_other_nodes_are_another_crowd(void **state)
{
    struct scenario *s = *state;
    given_node(s, "x1", "cpu=2 label=pool:x");
    given_node(s, "y1", "cpu=2 label=pool:y");
    given_queues(s);
    given_unbound(s, "a", "qa", "pods=2 cpu=1 selector=pool:x");
    given_unbound(s, "b", "qb", "pods=2 cpu=1 selector=pool:y");
    given_job(s, "c", "qa", "pods=1 cpu=1 selector=pool:y");
    expect_state(s, "c", "Pending NodesFull");
    given_job(s, "d", "qa", "pods=1 cpu=1 selector=pool:x");
    expect_state(s, "d", "Pending NodesFull");
}

/* One of those that tolerate it may stand on the tainted node, whoever came first. */
static void pods_that_tolerate_more_are_another_crowd(void **state)
{
    struct scenario *s = *state;
    given_node(s, "plain", "cpu=2");
    given_node(s, "kept", "cpu=2 label=pool:kept taint=kept:NoSchedule");
    given_queues(s);
    given_unbound(s, "a", "qa", "pods=1 cpu=1");
    given_unbound(s, "b", "qb", "pods=1 cpu=1 toleration=kept");
    given_job(s, "c", "qa", "pods=2 cpu=1 toleration=kept selector=pool:kept");
    expect_state(s, "c", "Pending NodesFull");
}

static void pods_that_ask_for_more_are_another_crowd(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queues(s);
    given_unbound(s, "a", "qa", "pods=1 cpu=1");
    given_unbound(s, "b", "qb", "pods=1 cpu=2");
    given_job(s, "two", "qa", "pods=2 cpu=1");
    expect_state(s, "two", "Pending NodesFull");
    given_job(s, "one", "qa", "pods=1 cpu=1");
    expect_state(s, "one", "Admitted");
}

/* `loose` may go anywhere, also where `promised` has its only places, of which somebody else's pod
 * takes the one too many: until that is settled nothing starts where `loose` may go. */
static void given_a_promise_short_of_a_place(struct scenario *s)
{
    given_node(s, "east", "cpu=3 label=zone:east");
    given_node(s, "west", "cpu=2 label=zone:west");
    given_queues(s);
    given_unbound(s, "promised", "qa", "pods=2 cpu=1 selector=zone:east");
    given_unbound(s, "loose", "qa", "pods=1 cpu=1");
    given_pod(s, "foreign", "east", "cpu=1");
    given_job(s, "beside", "qb", "pods=1 cpu=1 selector=zone:west");
    expect_state(s, "beside", "Pending ReservedForOther");
}

/* Room on a node that isn't for `beside` is what it waits for all the same. */
static void a_pod_that_ends_beside_promised_places_wakes(void **state)
{
    struct scenario *s = *state;
    given_a_promise_short_of_a_place(s);
    pod_succeeds(s, "foreign");
    expect_state(s, "beside", "Admitted");
}

/* It goes without having ended first, as by a forced deletion. */
static void a_pod_that_vanishes_beside_promised_places_wakes(void **state)
{
    struct scenario *s = *state;
    given_a_promise_short_of_a_place(s);
    object_gone(s, KIND_POD, "foreign");
    expect_state(s, "beside", "Admitted");
}

/* The same by the nodes: `promised` has its places on two, and `small` is cordoned or shrinks. */
static void given_a_promise_that_needs(struct scenario *s, const char *small, const char *becomes)
{
    given_node(s, "east", "cpu=2 label=zone:east");
    given_node(s, "small", small);
    given_node(s, "west", "cpu=2 label=zone:west");
    given_queues(s);
    given_unbound(s, "promised", "qa", "pods=2 cpu=1 selector=zone:east");
    given_unbound(s, "loose", "qa", "pods=1 cpu=1");
    given_node(s, "small", becomes);
    given_job(s, "beside", "qb", "pods=1 cpu=1 selector=zone:west");
    expect_state(s, "beside", "Pending ReservedForOther");
}

/* `beside` may not use that node, but others that are on their way may. */
static void a_promised_node_that_is_uncordoned_wakes(void **state)
{
    struct scenario *s = *state;
    given_a_promise_that_needs(s, "cpu=1 label=zone:east", "cpu=1 label=zone:east cordoned=true");
    given_node(s, "small", "cpu=1 label=zone:east");
    expect_state(s, "beside", "Admitted");
}

static void a_promised_node_that_grows_wakes(void **state)
{
    struct scenario *s = *state;
    given_a_promise_that_needs(s, "cpu=1 label=zone:east", "cpu=500m label=zone:east");
    given_node(s, "small", "cpu=1 label=zone:east");
    expect_state(s, "beside", "Admitted");
}

static void a_node_that_comes_for_promised_pods_wakes(void **state)
{
    struct scenario *s = *state;
    given_a_promise_that_needs(s, "cpu=1 label=zone:east", "cpu=1 label=zone:south cordoned=true");
    given_node(s, "new", "cpu=1 label=zone:east");
    expect_state(s, "beside", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(alike_pods_of_two_queues_are_counted_together),
        scenario_test(pods_for_other_nodes_are_another_crowd),
        scenario_test(pods_that_tolerate_more_are_another_crowd),
        scenario_test(pods_that_ask_for_more_are_another_crowd),
        scenario_test(a_pod_that_ends_beside_promised_places_wakes),
        scenario_test(a_pod_that_vanishes_beside_promised_places_wakes),
        scenario_test(a_promised_node_that_is_uncordoned_wakes),
        scenario_test(a_promised_node_that_grows_wakes),
        scenario_test(a_node_that_comes_for_promised_pods_wakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
