/* Quota, order and what a queue rations. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

/* One pod too many: the gang waits as a whole, and starts once the quota has room. */
static void gang_waits_whole_until_every_pod_fits(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "team-a", "cpu=4");
    given_job(s, "train", "team-a", "pods=5 cpu=1");
    expect_trace(s, "[   0] train > Pending #1 NeverFits: needs 5 cpu, and queue team-a has a "
                    "quota of 4 on flavor default\n"
                    "[   0] team-a: finalizer on\n");
    at(s, 2000);
    quota_becomes(s, "team-a", "cpu=5");
    expect_trace(s, "[2000] train: admit 5 pods of queue team-a, cpu 1000m/pod on default\n"
                    "[2000] train > Admitted 0/5 on default\n"
                    "[2000] train ! Admitted: admitted on queue team-a: 5 pods, cpu=5\n");
}

static void used_quota_makes_the_next_gang_wait_and_its_end_lets_it_start(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "team-a", "cpu=4");
    given_job(s, "first", "team-a", "pods=3 cpu=1");
    given_job(s, "second", "team-a", "pods=2 cpu=1");
    expect_state(s, "first", "Admitted");
    expect_state(s, "second", "Pending QuotaExhausted");
    expect_message(s, "second", "1 of 4");
    gang_starts(s, "first", "n1 n1 n1");
    expect_state(s, "first", "Running");
    expect_used(s, "team-a", "cpu=3");
    job_finishes(s, "first");
    expect_state(s, "first", "Finished");
    expect_state(s, "second", "Admitted");
    expect_used(s, "team-a", "cpu=2");
}

/* A gang that is charged pod by pod gives its quota back pod by pod. */
static void finished_pods_of_a_running_gang_free_their_quota(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "team-a", "cpu=4");
    given_job(s, "first", "team-a", "pods=4 cpu=1");
    given_job(s, "second", "team-a", "pods=1 cpu=1");
    scenario_start(s);
    gang_starts(s, "first", "n1 n1 n1 n1");
    expect_state(s, "second", "Pending QuotaExhausted");
    pod_succeeds(s, "first-2");
    expect_used(s, "team-a", "cpu=4");
    expect_state(s, "first", "Running");
    expect_state(s, "second", "Admitted");
}

static void many_pods_of_a_fraction_add_up_exactly(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "team-a", "cpu=100m");
    given_job(s, "small", "team-a", "pods=100 cpu=1m");
    expect_state(s, "small", "Admitted");
    expect_used(s, "team-a", "cpu=100m");
    given_job(s, "more", "team-a", "pods=1 cpu=1m");
    expect_state(s, "more", "Pending QuotaExhausted");
}

/* Quantities in every spelling are one and the same amount. */
static void spellings_of_a_quota_are_equal(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 memory=64Gi");
    given_queue(s, "team-a", "memory=1Gi cpu=1e1");
    given_job(s, "fits", "team-a", "pods=1 memory=1073741824 cpu=10000m");
    given_job(s, "decimal", "team-a", "pods=1 memory=1G");
    expect_state(s, "fits", "Admitted");
    expect_state(s, "decimal", "Pending QuotaExhausted");
    gang_starts(s, "fits", "n1");
    quota_becomes(s, "team-a", "memory=2073741824 cpu=1E1");
    expect_state(s, "decimal", "Admitted");
    expect_used(s, "team-a", "memory=2073741824 cpu=10");
}

/* max(sum of containers and sidecars, each init with the sidecars before it) + overhead. */
static void pod_request_counts_sidecars_and_inits_in_their_order(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "team-a", "cpu=3");
    const char *sidecar_first =
        "{\"overhead\":{\"cpu\":\"500m\"},\"containers\":[{\"name\":\"main\",\"resources\":{"
        "\"requests\":{\"cpu\":\"1\"}}}],\"initContainers\":[{\"name\":\"s\",\"restartPolicy\":"
        "\"Always\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}},{\"name\":\"i\",\"resources\":{"
        "\"requests\":{\"cpu\":\"2\"}}}]}";
    const char *init_first =
        "{\"overhead\":{\"cpu\":\"500m\"},\"containers\":[{\"name\":\"main\",\"resources\":{"
        "\"requests\":{\"cpu\":\"1\"}}}],\"initContainers\":[{\"name\":\"i\",\"resources\":{"
        "\"requests\":{\"cpu\":\"2\"}}},{\"name\":\"s\",\"restartPolicy\":\"Always\","
        "\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}";
    given_job_spec(s, "waits", "team-a", "pods=1", sidecar_first);
    given_job_spec(s, "starts", "team-a", "pods=1", init_first);
    expect_state(s, "waits", "Pending NeverFits");
    expect_message(s, "waits", "needs 3500m cpu");
    expect_state(s, "starts", "Admitted");
    expect_used(s, "team-a", "cpu=2500m");
}

static void limits_without_requests_are_charged_and_restart_agrees(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "team-a", "cpu=2");
    given_job(s, "limited", "team-a", "pods=3 limit-cpu=1");
    given_job(s, "small", "team-a", "pods=2 limit-cpu=1");
    expect_state(s, "limited", "Pending NeverFits");
    expect_message(s, "limited", "needs 3 cpu");
    expect_state(s, "small", "Admitted");
    expect_used(s, "team-a", "cpu=2");
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "limited", "Pending NeverFits");
    expect_state(s, "small", "Admitted");
    expect_used(s, "team-a", "cpu=2");
}

static void limit_range_fills_an_empty_template_and_its_change_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "team-a", "cpu=2");
    given_json(s, KIND_LIMIT_RANGE,
               "{\"metadata\":{\"name\":\"lr\"},\"spec\":{\"limits\":[{\"type\":\"Container\","
               "\"default\":{\"cpu\":\"1\"}}]}}");
    given_job(s, "empty", "team-a", "pods=3");
    expect_state(s, "empty", "Pending NeverFits");
    expect_message(s, "empty", "needs 3 cpu");
    given_json(s, KIND_LIMIT_RANGE,
               "{\"metadata\":{\"name\":\"lr\"},\"spec\":{\"limits\":[{\"type\":\"Container\","
               "\"default\":{\"cpu\":\"500m\"}}]}}");
    expect_state(s, "empty", "Admitted");
    expect_used(s, "team-a", "cpu=1500m");
}

static void zero_of_a_resource_is_no_reason_to_wait(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 nvidia.com/gpu=0");
    given_queue(s, "team-a", "cpu=4");
    given_queue(s, "team-b", "cpu=4 nvidia.com/gpu=0");
    given_job(s, "unlisted-zero", "team-a", "pods=1 cpu=1 nvidia.com/gpu=0");
    given_job(s, "empty-quota-zero", "team-b", "pods=1 cpu=1 nvidia.com/gpu=0");
    given_job(s, "unlisted", "team-a", "pods=1 cpu=1 nvidia.com/gpu=1");
    expect_state(s, "unlisted-zero", "Admitted");
    expect_state(s, "empty-quota-zero", "Admitted");
    expect_state(s, "unlisted", "Pending NoMatchingFlavor");
    expect_message(s, "unlisted", "nvidia.com/gpu");
}

static void over_quota_device_does_not_stop_a_gang_that_asks_for_none(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 nvidia.com/gpu=4");
    given_queue(s, "team-a", "cpu=4 nvidia.com/gpu=2");
    given_job(s, "holds", "team-a", "pods=2 nvidia.com/gpu=1");
    scenario_start(s);
    gang_starts(s, "holds", "n1 n1");
    quota_becomes(s, "team-a", "cpu=4 nvidia.com/gpu=1");
    given_job(s, "cpu-only", "team-a", "pods=1 cpu=1 nvidia.com/gpu=0");
    expect_state(s, "cpu-only", "Admitted");
    expect_state(s, "holds", "Running");
}

static void basic_resources_are_free_where_no_flavor_lists_them(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4 memory=4Gi");
    given_queue(s, "team-a", "cpu=4");
    given_queue(s, "strict", "cpu=4 undeclared=Refuse");
    given_job(s, "memory", "team-a", "pods=1 cpu=1 memory=1Gi");
    given_job(s, "refused", "strict", "pods=1 cpu=1 memory=1Gi");
    given_job(s, "too-big", "team-a", "pods=1 cpu=1 memory=5Gi");
    expect_state(s, "memory", "Admitted");
    expect_state(s, "refused", "Pending NoMatchingFlavor");
    expect_state(s, "too-big", "Pending NeverFits"); /* it must still fit physically */
}

/* Running gangs stay; nothing new starts until use is within the quota again. */
static void quota_cut_below_use_stops_nobody(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "team-a", "cpu=4");
    given_job(s, "a", "team-a", "pods=2 cpu=1");
    given_job(s, "b", "team-a", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    gang_starts(s, "b", "n1 n1");
    quota_becomes(s, "team-a", "cpu=3");
    given_job(s, "c", "team-a", "pods=1 cpu=1");
    expect_state(s, "a", "Running");
    expect_state(s, "b", "Running");
    expect_state(s, "c", "Pending QuotaExhausted");
    expect_message(s, "c", "0 of 3");
    job_finishes(s, "a");
    expect_state(s, "c", "Admitted");
    expect_used(s, "team-a", "cpu=3");
}

static void queue_created_after_its_jobs_admits_them(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_job(s, "early", "team-a", "pods=2 cpu=1");
    expect_state(s, "early", "Pending QueueNotFound");
    at(s, 1000);
    given_queue(s, "team-a", "cpu=4");
    expect_state(s, "early", "Admitted");
}

static void stopped_queue_admits_nothing_and_goes_on(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "team-a", "cpu=4 stop=Hold");
    given_job(s, "train", "team-a", "pods=2 cpu=1");
    expect_state(s, "train", "Pending QueueStopped");
    quota_becomes(s, "team-a", "cpu=4");
    expect_state(s, "train", "Admitted");
}

static void namespace_is_let_in_by_its_labels(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "team-a", "cpu=4 select=team:a");
    given_job(s, "train", "team-a", "pods=2 cpu=1");
    expect_state(s, "train", "Pending NamespaceNotAllowed");
    at(s, 1000);
    given_namespace(s, "ml", "team:a");
    expect_state(s, "train", "Admitted");
}

static void negative_quota_is_refused_at_the_door(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "team-a", "cpu=4");
    given_job(s, "train", "team-a", "pods=4 cpu=1");
    scenario_start(s);
    trace_forget(s);
    quota_becomes(s, "team-a", "cpu=-1");
    expect_trace(s,
                 "[   0] refused: Queue team-a: spec.resourceGroups[0].flavors[0] (default): …\n");
    expect_used(s, "team-a", "cpu=4");
}

/* The API server lets none through, but for one of an earlier schema: it is told, and admits
 * nobody.
 */
static void resource_that_a_flavor_lists_twice(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 cpu=2");
    given_job(s, "a", "q", "pods=1 cpu=1");
    expect_state(s, "a", "Pending Invalid");
    expect_message(s, "a", "lists cpu twice for one flavor");
    given_queue(s, "q", "cpu=4");
    expect_state(s, "a", "Admitted");
}

/* 32 cohorts above a queue are as many as there may be. */
static void cohorts_are_so_many_deep_and_no_deeper(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    for (int i = 0; i < 32; i++) {
        char json[200];
        (void)snprintf(json, sizeof(json),
                       "{\"metadata\":{\"name\":\"c%d\"},\"spec\":{\"parentName\":\"c%d\"}}", i,
                       i + 1);
        given_json(s, KIND_COHORT, json);
    }
    given_queue(s, "at-the-bound", "cpu=4 cohort=c1");
    given_queue(s, "beyond", "cpu=4 cohort=c0");
    given_job(s, "a", "at-the-bound", "pods=1 cpu=1");
    given_job(s, "b", "beyond", "pods=1 cpu=1");
    expect_state(s, "a", "Admitted");
    expect_state(s, "b", "Pending Invalid");
    expect_message(s, "b", "form a cycle, or are more than 32 deep");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(gang_waits_whole_until_every_pod_fits),
        scenario_test(used_quota_makes_the_next_gang_wait_and_its_end_lets_it_start),
        scenario_test(finished_pods_of_a_running_gang_free_their_quota),
        scenario_test(many_pods_of_a_fraction_add_up_exactly),
        scenario_test(spellings_of_a_quota_are_equal),
        scenario_test(pod_request_counts_sidecars_and_inits_in_their_order),
        scenario_test(limits_without_requests_are_charged_and_restart_agrees),
        scenario_test(limit_range_fills_an_empty_template_and_its_change_wakes),
        scenario_test(zero_of_a_resource_is_no_reason_to_wait),
        scenario_test(over_quota_device_does_not_stop_a_gang_that_asks_for_none),
        scenario_test(basic_resources_are_free_where_no_flavor_lists_them),
        scenario_test(quota_cut_below_use_stops_nobody),
        scenario_test(queue_created_after_its_jobs_admits_them),
        scenario_test(stopped_queue_admits_nothing_and_goes_on),
        scenario_test(namespace_is_let_in_by_its_labels),
        scenario_test(negative_quota_is_refused_at_the_door),
        scenario_test(resource_that_a_flavor_lists_twice),
        scenario_test(cohorts_are_so_many_deep_and_no_deeper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
