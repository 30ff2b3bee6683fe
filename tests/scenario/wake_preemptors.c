/* Gangs that are short of quota which others would have to give back, and for whom there wasn't
 * room even so: a node, its devices or a plugin that brings what was lacking has them looked at
 * again. So does a queue that leaves the cohort with what it borrowed. */
#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"
#define NAME  "example.com/gpu"

static void given_world(struct scenario *s, const char *queue)
{
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_queue(s, "q", queue);
}

/* `low` holds 2 cpu of n1, somebody else's pod the rest. */
static void given_low_beside_another(struct scenario *s)
{
    given_world(s, "cpu=4 within=LowerPriority");
    given_node(s, "n1", "cpu=4");
    given_pod(s, "foreign", "n1", "cpu=2");
    given_job(s, "low", "q", "pods=1 cpu=2 priority=low");
    scenario_start(s);
    gang_starts(s, "low", "n1");
    at(s, 1000);
    given_job(s, "high", "q", "pods=1 cpu=4 priority=high created=1000");
    expect_state(s, "high", "Pending QuotaExhausted");
    expect_state(s, "low", "Running");
}

static void node_that_grows(void **state)
{
    struct scenario *s = *state;
    given_low_beside_another(s);
    given_node(s, "n1", "cpu=5");
    expect_state(s, "high", "Pending QuotaExhausted");
    expect_state(s, "low", "Running");
    given_node(s, "n1", "cpu=6");
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "low", "Suspending WaitingForTermination");
}

static void node_that_comes_in_from_the_cold(void **state)
{
    struct scenario *s = *state;
    given_low_beside_another(s);
    given_node(s, "n2", "cpu=4 cordoned=true");
    expect_state(s, "high", "Pending QuotaExhausted");
    given_node(s, "n2", "cpu=4");
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "low", "Suspending WaitingForTermination");
}

/* The gang needs all devices of the node, of which one more is told of only now. */
static void slice_that_lists_one_more(void **state)
{
    struct scenario *s = *state;
    given_world(s, "cpu=64 " CLASS "=3 within=LowerPriority");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_template(s, "three", CLASS, 3);
    given_node(s, "n1", "cpu=8");
    given_node(s, "n2", "cpu=8");
    given_devices(s, "n1", "a b e");
    given_devices(s, "n2", "c");
    given_claim(s, "foreign", CLASS, 1);
    claim_allocated(s, "foreign", "n1/e");
    given_job(s, "low", "q", "pods=1 cpu=1 template=one priority=low");
    scenario_start(s);
    gang_starts(s, "low", "n1");
    pod_claims(s, "low-0", "one", "n1/a");
    at(s, 1000);
    given_job(s, "high", "q", "pods=1 cpu=1 template=three priority=high created=1000");
    expect_state(s, "high", "Pending QuotaExhausted");
    given_devices(s, "n2", "c d");
    expect_state(s, "low", "Running");
    given_devices(s, "n1", "a b e f");
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "low", "Suspending WaitingForTermination");
}

/* A name that a class serves, where a plugin offers it: what the plugin adds is seen. */
static void plugin_that_offers_more(void **state)
{
    struct scenario *s = *state;
    given_world(s, "cpu=64 " CLASS "=3 within=LowerPriority");
    given_json(s, KIND_DEVICE_CLASS,
               "{\"metadata\":{\"name\":\"" CLASS "\"},\"spec\":{\"extendedResourceName\":\"" NAME
               "\",\"selectors\":[{\"cel\":{\"expression\":\"device.driver == "
               "'gpu.example.com'\"}}]}}");
    given_node(s, "n1", "cpu=8 " NAME "=3");
    given_pod(s, "foreign", "n1", NAME "=1");
    given_job(s, "low", "q", "pods=1 cpu=1 " NAME "=1 priority=low");
    scenario_start(s);
    gang_starts(s, "low", "n1");
    at(s, 1000);
    given_job(s, "high", "q", "pods=1 cpu=1 " NAME "=3 priority=high created=1000");
    expect_state(s, "high", "Pending QuotaExhausted");
    expect_state(s, "low", "Running");
    given_node(s, "n1", "cpu=8 " NAME "=4");
    expect_state(s, "high", "Reserved WaitingForVictims");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
}

/* What it borrowed is used in the cohort no more, though the cohort has as much quota as before. */
static void queue_that_leaves_with_what_it_borrowed(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_queue(s, "q", "fit=Quota cpu=4 cohort=c within=LowerPriority");
    given_queue(s, "borrower", "fit=Quota cpu=0 cohort=c");
    given_job(s, "low", "q", "pods=3 cpu=1 priority=low");
    given_job(s, "borrowed", "borrower", "pods=1 cpu=1");
    scenario_start(s);
    expect_state(s, "borrowed", "Admitted");
    at(s, 1000);
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high created=1000");
    expect_state(s, "high", "Pending CohortExhausted");
    expect_state(s, "low", "Admitted");
    given_queue(s, "borrower", "fit=Quota cpu=0");
    expect_state(s, "high", "Admitted");
    expect_state(s, "low", "Pending CohortExhausted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(node_that_grows),
        scenario_test(node_that_comes_in_from_the_cold),
        scenario_test(slice_that_lists_one_more),
        scenario_test(plugin_that_offers_more),
        scenario_test(queue_that_leaves_with_what_it_borrowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
