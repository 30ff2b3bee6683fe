/* The ledger against the cluster's claims: what pods have beyond what was charged is found, told
 * once, charged, and given back when they end; what is gone is charged to nobody. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

static void given_gpus(struct scenario *s, const char *node, const char *devices)
{
    given_node(s, node, "cpu=16");
    given_devices(s, node, devices);
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
}

/* As often as the text stands in the trace. */
static int times_told(struct scenario *s, const char *text)
{
    int count = 0;
    for (const char *at = strstr(trace_text(s), text); at != NULL; at = strstr(at + 1, text)) {
        count++;
    }
    return count;
}

static void expect_drift(struct scenario *s, int64_t uncharged, int64_t vanished, int64_t devices)
{
    struct core_drift drift = core_drift_seen(scenario_core(s));
    check_i64((int64_t)drift.uncharged, uncharged);
    check_i64((int64_t)drift.vanished, vanished);
    check_i64(drift.devices, devices);
}

/* The template asks for more by the time that the pods get their claims. */
static void template_made_anew_is_charged_as_its_pods_have_it(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1 g2 g3 g4 g5");
    given_template(s, "t", CLASS, 1);
    given_queue(s, "q", CLASS "=4");
    given_job(s, "a", "q", "pods=2 template=t");
    expect_used(s, "q", CLASS "=2");
    given_template(s, "t", CLASS, 2);
    gang_starts(s, "a", "n1 n1");
    pod_claims(s, "a-0", "t", "n1/g0 n1/g1");
    expect_used(s, "q", CLASS "=3");
    pod_claims(s, "a-1", "t", "n1/g2 n1/g3");
    expect_used(s, "q", CLASS "=4");
    expect_drift(s, 2, 0, 2);
    check_i64(times_told(s, "DeviceDrift"), 1);
    given_job(s, "b", "q", "pods=2 template=t");
    expect_state(s, "b", "Pending QuotaExhausted");
    expect_message(s, "b", "has 0 of 4 free");
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", CLASS "=4");
    expect_state(s, "b", "Pending QuotaExhausted");
    expect_drift(s, 2, 0, 2);
    pod_succeeds(s, "a-0");
    expect_drift(s, 2, 0, 1);
    expect_used(s, "q", CLASS "=2");
    job_finishes(s, "a");
    expect_used(s, "q", CLASS "=0");
    expect_drift(s, 2, 0, 0);
}

/* The same objects again, and pods that come and go, ask for no further write. */
static void drift_is_told_without_a_storm(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1 g2 g3");
    given_template(s, "t", CLASS, 1);
    given_queue(s, "q", CLASS "=9");
    given_job(s, "a", "q", "pods=2 template=t");
    scenario_start(s);
    given_template(s, "t", CLASS, 2);
    gang_starts(s, "a", "n1 n1");
    pod_claims(s, "a-0", "t", "n1/g0 n1/g1");
    pod_claims(s, "a-1", "t", "n1/g2 n1/g3");
    at(s, 60000);
    (void)counts_take(s);
    for (int i = 0; i < 10; i++) {
        object_again(s, KIND_RESOURCE_CLAIM, "a-0-t");
        object_again(s, KIND_POD, "a-0");
    }
    assert_int_equal(counts_take(s).effects, 0);
    expect_drift(s, 2, 0, 2);
}

/* Less than was charged is as it was asked: firstAvailable and All are charged at their most. */
static void less_than_was_asked_is_no_drift(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1");
    given_template(s, "t", CLASS, 2);
    given_queue(s, "q", CLASS "=4");
    given_job(s, "a", "q", "pods=1 template=t");
    scenario_start(s);
    given_template(s, "t", CLASS, 1);
    gang_starts(s, "a", "n1");
    pod_claims(s, "a-0", "t", "n1/g0");
    expect_used(s, "q", CLASS "=2");
    expect_drift(s, 0, 0, 0);
}

/* A claim that its gang waits for is deleted: nobody is charged for it until it is there again. */
static void claim_that_vanishes_is_charged_to_nobody(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q", CLASS "=1");
    given_job(s, "a", "q", "pods=1 claim=c");
    expect_used(s, "q", CLASS "=1");
    object_gone(s, KIND_RESOURCE_CLAIM, "c");
    expect_used(s, "q", CLASS "=0");
    expect_drift(s, 0, 1, 0);
    check_i64(times_told(s, "DeviceDrift"), 1);
    for (uint64_t seed = 0; seed < 8; seed++) {
        listing_order(s, seed);
        restart(s, WITH_ADMISSIONS);
        expect_used(s, "q", CLASS "=0");
    }
    given_claim(s, "c", CLASS, 1);
    expect_used(s, "q", CLASS "=1");
    gang_starts(s, "a", "n1");
    claim_allocated(s, "c", "n1/g0");
    expect_used(s, "q", CLASS "=1");
    job_finishes(s, "a");
    expect_used(s, "q", CLASS "=0");
    object_gone(s, KIND_RESOURCE_CLAIM, "c"); /* behind its gang, which is no drift */
    expect_drift(s, 0, 1, 0);
}

/* Whoever shares it, the one that pays pays for what is there. */
static void claim_made_anew_and_larger_is_charged_in_full(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q1", CLASS "=2");
    given_queue(s, "q2", CLASS "=2");
    given_job(s, "a", "q1", "pods=1 claim=c");
    scenario_start(s);
    object_gone(s, KIND_RESOURCE_CLAIM, "c");
    given_claim(s, "c", CLASS, 2);
    gang_starts(s, "a", "n1");
    claim_allocated(s, "c", "n1/g0 n1/g1");
    claim_reserved(s, "c", "a-0");
    expect_used(s, "q1", CLASS "=2");
    expect_drift(s, 0, 1, 0);
    given_job(s, "b", "q2", "pods=1 claim=c");
    expect_state(s, "b", "Admitted");
    expect_used(s, "q2", CLASS "=0");
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q1", CLASS "=2");
    gang_starts(s, "b", "n1");
    job_finishes(s, "a");
    expect_used(s, "q1", CLASS "=0");
    expect_used(s, "q2", CLASS "=2");
}

/* What the queue doesn't ration is no drift; once it lists the class, what is in use is. */
static void devices_count_from_when_the_queue_lists_them(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1");
    given_template(s, "t", CLASS, 2);
    given_queue(s, "q", "cpu=8 undeclared=Allow");
    given_job(s, "a", "q", "pods=1 cpu=1 template=t");
    gang_starts(s, "a", "n1");
    pod_claims(s, "a-0", "t", "n1/g0 n1/g1");
    expect_drift(s, 0, 0, 0);
    given_queue(s, "q", "cpu=8 " CLASS "=2");
    expect_used(s, "q", "cpu=1 " CLASS "=2");
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", "cpu=1 " CLASS "=2");
}

/* A gang that is stopped for another frees what its pods have beyond their share, too. */
static void victim_frees_its_surplus(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1");
    given_template(s, "t", CLASS, 1);
    given_queue(s, "q", CLASS "=2 within=LowerPriority");
    given_priority_class(s, "high", 10);
    given_job(s, "a", "q", "pods=1 template=t");
    scenario_start(s);
    given_template(s, "t", CLASS, 2);
    gang_starts(s, "a", "n1");
    pod_claims(s, "a-0", "t", "n1/g0 n1/g1");
    expect_used(s, "q", CLASS "=2");
    given_job(s, "b", "q", "pods=1 template=t priority=high");
    expect_state(s, "a", "Suspending WaitingForTermination");
    gang_stops(s, "a");
    claim_freed(s, "a-0-t");
    expect_state(s, "b", "Admitted");
    expect_used(s, "q", CLASS "=2");
    expect_drift(s, 1, 0, 0);
}

/* A named claim that was given more than it asked for is charged all of it, once; the gang that
 * pays is told, and may run on. */
static void claim_that_has_more_than_it_asked_for_is_charged_all(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1 g2");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q", CLASS "=4");
    given_job(s, "a", "q", "pods=1 claim=c");
    expect_used(s, "q", CLASS "=1");
    gang_starts(s, "a", "n1");
    claim_allocated(s, "c", "n1/g0 n1/g1");
    expect_used(s, "q", CLASS "=2");
    check_i64(times_told(s, "ResourceClaim ml/c has 2 " CLASS
                            ", more than the gang was admitted with; all are charged now"),
              1);
    object_again(s, KIND_RESOURCE_CLAIM, "c");
    check_i64(times_told(s, "more than the gang was admitted with"), 1);
    job_finishes(s, "a");
    expect_used(s, "q", CLASS "=0");
}

/* Each of a pod's claims has one more than was charged. */
static void both_claims_of_a_pod_are_counted(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1 g2 g3");
    given_template(s, "t", CLASS, 1);
    given_template(s, "u", CLASS, 1);
    given_queue(s, "q", CLASS "=8");
    given_job(s, "a", "q", "pods=1 template=t template=u");
    expect_used(s, "q", CLASS "=2");
    given_template(s, "t", CLASS, 2);
    given_template(s, "u", CLASS, 2);
    gang_starts(s, "a", "n1");
    pod_claims(s, "a-0", "t", "n1/g0 n1/g1");
    pod_claims(s, "a-0", "u", "n1/g2 n1/g3");
    expect_used(s, "q", CLASS "=4");
    expect_drift(s, 1, 0, 2);
    job_finishes(s, "a");
    expect_used(s, "q", CLASS "=0");
}

/* The claim of a gang that runs is gone when the controller starts anew: nobody pays for it. */
static void claim_that_vanished_while_the_gang_ran(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q", "cpu=4 " CLASS "=1");
    given_job(s, "a", "q", "pods=1 cpu=1 claim=c");
    scenario_start(s);
    gang_starts(s, "a", "n1");
    claim_allocated(s, "c", "n1/g0");
    claim_reserved(s, "c", "a-0");
    object_gone(s, KIND_RESOURCE_CLAIM, "c");
    for (uint64_t seed = 0; seed < 8; seed++) {
        expect_used(s, "q", "cpu=1 " CLASS "=0");
        listing_order(s, seed);
        restart(s, seed % 2 == 0 ? WITH_ADMISSIONS : WITHOUT_ADMISSIONS);
    }
    given_job(s, "b", "q", "pods=1 cpu=1");
    expect_state(s, "b", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(template_made_anew_is_charged_as_its_pods_have_it),
        scenario_test(drift_is_told_without_a_storm),
        scenario_test(less_than_was_asked_is_no_drift),
        scenario_test(claim_that_vanishes_is_charged_to_nobody),
        scenario_test(claim_made_anew_and_larger_is_charged_in_full),
        scenario_test(devices_count_from_when_the_queue_lists_them),
        scenario_test(victim_frees_its_surplus),
        scenario_test(claim_that_has_more_than_it_asked_for_is_charged_all),
        scenario_test(both_claims_of_a_pod_are_counted),
        scenario_test(claim_that_vanished_while_the_gang_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
