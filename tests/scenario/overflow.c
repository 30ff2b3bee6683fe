/* Numbers beyond what can be counted, and below nothing: what is asked so never fits or is invalid,
 * what is offered so is the most or nothing, and neither is ever free room for others. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

static void given_gpus(struct scenario *s)
{
    given_node(s, "n1", "cpu=8 memory=64Gi");
    given_devices(s, "n1", "g0 g1");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
}

/* Whatever was asked before, a plain gang behind it starts, and is charged what it asks. */
static void expect_sane(struct scenario *s)
{
    given_job(s, "plain", "q", "pods=2 cpu=1");
    expect_state(s, "plain", "Admitted");
    expect_used(s, "q", "cpu=2");
    assert_null(strstr(trace_text(s), " -"));
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", "cpu=2");
}

static void largest_request_is_larger_than_the_queue(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=4");
    given_job(s, "huge", "q", "pods=1 cpu=9223372036854775807");
    expect_state(s, "huge", "Pending NeverFits");
    expect_message(s, "huge", "cpu, and queue q has a quota of 4 on flavor default");
    expect_sane(s);
}

static void two_sets_of_half_of_everything_do_not_wrap(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8 memory=6e18");
    given_node(s, "n2", "cpu=8 memory=6e18");
    given_queue(s, "q", "cpu=4 memory=9e18");
    given_pod_set(s, "huge", "driver", "pods=1 memory=5e18");
    given_job(s, "huge", "q", "pods=1 memory=5e18");
    expect_state(s, "huge", "Pending NeverFits");
    expect_message(s, "huge",
                   "needs 9223372036854775807 memory, and queue q has a quota of "
                   "8789062500000000Ki");
    given_job(s, "half", "q", "pods=1 memory=5e18");
    expect_state(s, "half", "Admitted");
    given_job(s, "other", "q", "pods=1 memory=5e18");
    expect_state(s, "other", "Pending QuotaExhausted");
    expect_message(s, "other", "has 3814697265625Mi of 8789062500000000Ki free");
}

static void request_times_pods_does_not_wrap(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=4");
    given_job(s, "huge", "q", "parallelism=2147483647 completions=2147483647 cpu=10000000");
    expect_state(s, "huge", "Pending NeverFits");
    expect_message(s, "huge", "queue q has a quota of 4");
    /* 2^30 pods of 2^34m: nothing at all, in 64 bits. */
    given_job(s, "round", "q", "parallelism=1073741824 completions=1073741824 cpu=17179869184m");
    expect_state(s, "round", "Pending NeverFits");
    expect_message(s, "round", "queue q has a quota of 4");
    expect_sane(s);
}

static void claim_for_more_devices_than_a_number_holds(void **state)
{
    struct scenario *s = *state;
    given_gpus(s);
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               "{\"metadata\":{\"name\":\"huge\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":["
               "{\"name\":\"a\",\"exactly\":{\"deviceClassName\":\"" CLASS
               "\",\"count\":9223372036854775807}},{\"name\":\"b\",\"exactly\":{"
               "\"deviceClassName\":\"" CLASS "\",\"count\":9223372036854775807}}]}}}}");
    given_queue(s, "q", "cpu=4 " CLASS "=2");
    given_job(s, "huge", "q", "pods=3 template=huge");
    expect_state(s, "huge", "Pending NeverFits");
    expect_message(s, "huge", CLASS ", and queue q has a quota of 2");
    given_queue(s, "rich", "cpu=4 " CLASS "=1e30");
    given_job(s, "huger", "rich", "pods=3 template=huge");
    expect_state(s, "huger", "Pending NeverFits");
    given_template(s, "one", CLASS, 1);
    given_job(s, "two", "q", "pods=2 template=one");
    expect_state(s, "two", "Admitted");
    expect_used(s, "q", CLASS "=2");
}

/* More than can be counted is the most that can be: it isn't free, and no sum of it is negative. */
static void quota_of_1e30_is_the_most_there_is(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8 memory=64Gi");
    given_queue(s, "q", "cpu=1e30 memory=1e30 cohort=c");
    given_queue(s, "other", "cpu=1e30 memory=1e30 cohort=c");
    given_job(s, "a", "q", "pods=2 cpu=1 memory=1Gi");
    expect_state(s, "a", "Admitted");
    expect_used(s, "q", "cpu=2 memory=2147483648");
    given_job(s, "huge", "q", "pods=2 cpu=1 memory=9e18");
    expect_state(s, "huge", "Pending NeverFits");
    at(s, 15000);
    const struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    const struct usage_resource_list *list = &queue->status.flavors.items[0].resources;
    for (uint32_t i = 0; i < list->count; i++) {
        assert_true(list->items[i].nominal.ptr[0] != '-');
        assert_true(list->items[i].used.ptr[0] != '-');
    }
    assert_null(strstr(trace_text(s), " -"));
}

static void negative_requests_are_invalid_and_free_nothing(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=2");
    given_job(s, "bad", "q", "pods=2 cpu=-4");
    expect_state(s, "bad", "Pending Invalid");
    expect_message(s, "bad", "cpu");
    trace_forget(s); /* which quotes what the user wrote */
    given_job(s, "three", "q", "pods=3 cpu=1");
    expect_state(s, "three", "Pending NeverFits");
    expect_sane(s);
}

/* What a driver or a node says is less than nothing is nothing. */
static void negative_counters_and_allocatable_give_no_room(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_node(s, "n2", "cpu=-8");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"n1\"},\"spec\":{\"driver\":\"gpu.example.com\","
               "\"nodeName\":\"n1\",\"pool\":{\"name\":\"n1\",\"generation\":1,"
               "\"resourceSliceCount\":1},\"sharedCounters\":[{\"name\":\"card\",\"counters\":{"
               "\"memory\":{\"value\":\"80Gi\"},\"bad\":{\"value\":\"-1\"}}}],\"devices\":["
               "{\"name\":\"g0\",\"consumesCounters\":[{\"counterSet\":\"card\",\"counters\":{"
               "\"memory\":{\"value\":\"-80Gi\"}}}]},"
               "{\"name\":\"g1\",\"consumesCounters\":[{\"counterSet\":\"card\",\"counters\":{"
               "\"memory\":{\"value\":\"80Gi\"}}}]},"
               "{\"name\":\"g2\",\"consumesCounters\":[{\"counterSet\":\"card\",\"counters\":{"
               "\"bad\":{\"value\":\"0\"}}}]}]}}");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "cpu=20 " CLASS "=9");
    given_job(s, "two", "q", "pods=2 template=one");
    expect_state(s, "two", "Pending NeverFits");
    given_job(s, "one", "q", "pods=1 template=one");
    expect_state(s, "one", "Admitted");
    given_job(s, "nine", "q", "pods=9 cpu=1");
    expect_state(s, "nine", "Pending NeverFits");
    expect_message(s, "nine", "needs 9 cpu at once, and all nodes that it may use have 8 together");
    assert_null(strstr(trace_text(s), " -"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(largest_request_is_larger_than_the_queue),
        scenario_test(two_sets_of_half_of_everything_do_not_wrap),
        scenario_test(request_times_pods_does_not_wrap),
        scenario_test(claim_for_more_devices_than_a_number_holds),
        scenario_test(quota_of_1e30_is_the_most_there_is),
        scenario_test(negative_requests_are_invalid_and_free_nothing),
        scenario_test(negative_counters_and_allocatable_give_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
