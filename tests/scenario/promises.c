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

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(alike_pods_of_two_queues_are_counted_together),
        scenario_test(pods_for_other_nodes_are_another_crowd),
        scenario_test(pods_that_tolerate_more_are_another_crowd),
        scenario_test(pods_that_ask_for_more_are_another_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
