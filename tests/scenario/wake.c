/* Each thing that a parked gang may wait for: exactly that change wakes it, and a change of the
 * same kind that is nothing to it wakes nobody. */
#include <stdio.h>

#include "support/check.h"
#include "support/parked.h"

#define CLASS "gpu.example.com"

static void quota_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_bystander(s);
    given_queue(s, "q", "cpu=2");
    given_queue(s, "r", "cpu=2");
    given_job(s, "a", "q", "pods=3 cpu=1");
    expect_state(s, "a", "Pending NeverFits");
    parked(s);
    quota_becomes(s, "r", "cpu=3");
    expect_state(s, "a", "Pending NeverFits");
    quota_becomes(s, "q", "cpu=3");
    expect_state(s, "a", "Admitted");
}

static void cohorts_own_quota_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_bystander(s);
    given_queue(s, "q", "cpu=2 cohort=lab");
    given_job(s, "a", "q", "pods=3 cpu=1");
    expect_state(s, "a", "Pending NeverFits");
    parked(s);
    given_json(s, KIND_COHORT, cohort_of_one("plant"));
    expect_state(s, "a", "Pending NeverFits");
    given_json(s, KIND_COHORT, cohort_of_one("lab"));
    expect_state(s, "a", "Admitted");
}

/* Two cohorts that share nothing become one tree, are parted and become one again. */
static void cohort_that_moves_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_bystander(s);
    given_queue(s, "q", "cpu=2 cohort=lab");
    given_queue(s, "r", "cpu=2 cohort=plant");
    given_json(s, KIND_COHORT, "{\"metadata\":{\"name\":\"lab\"},\"spec\":{}}");
    given_job(s, "a", "q", "pods=3 cpu=1 created=0");
    expect_state(s, "a", "Pending NeverFits");
    parked(s);
    given_json(s, KIND_COHORT,
               "{\"metadata\":{\"name\":\"lab\"},\"spec\":{\"parentName\":\"plant\"}}");
    expect_state(s, "a", "Admitted");
    object_gone(s, KIND_COHORT, "lab"); /* it is there by its name alone, at the top */
    expect_state(s, "a", "Admitted");
    expect_used(s, "q", "cpu=3");
    given_job(s, "b", "q", "pods=1 cpu=1 created=1000");
    expect_state(s, "b", "Pending CohortExhausted");
    given_json(s, KIND_COHORT,
               "{\"metadata\":{\"name\":\"lab\"},\"spec\":{\"parentName\":\"plant\"}}");
    expect_state(s, "b", "Admitted");
}

static void cycle_that_is_undone_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_bystander(s);
    given_json(s, KIND_COHORT,
               "{\"metadata\":{\"name\":\"lab\"},\"spec\":{\"parentName\":\"plant\"}}");
    given_json(s, KIND_COHORT,
               "{\"metadata\":{\"name\":\"plant\"},\"spec\":{\"parentName\":\"lab\"}}");
    given_queue(s, "q", "cpu=2 cohort=lab");
    given_job(s, "a", "q", "pods=2 cpu=1");
    expect_state(s, "a", "Pending Invalid");
    parked(s);
    object_gone(s, KIND_COHORT, "plant");
    expect_state(s, "a", "Admitted");
}

static void queue_that_joins_a_cohort_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_bystander(s);
    given_queue(s, "q", "cpu=2");
    given_queue(s, "r", "cpu=2 cohort=lab");
    given_job(s, "a", "q", "pods=3 cpu=1");
    expect_state(s, "a", "Pending NeverFits");
    parked(s);
    given_queue(s, "q", "cpu=2 cohort=lab");
    expect_state(s, "a", "Admitted");
}

static void a_siblings_release_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_bystander(s);
    given_queue(s, "q", "cpu=2 cohort=lab");
    given_queue(s, "r", "cpu=2 cohort=lab");
    given_queue(s, "t", "cpu=2 cohort=plant");
    given_job(s, "sibling", "r", "pods=2 cpu=1 created=0");
    given_job(s, "stranger", "t", "pods=2 cpu=1 created=0");
    given_job(s, "a", "q", "pods=4 cpu=1 created=1000");
    expect_state(s, "a", "Pending CohortExhausted");
    gang_starts(s, "sibling", "n1 n1");
    gang_starts(s, "stranger", "n1 n1");
    parked(s);
    job_finishes(s, "stranger");
    expect_nobody_woken(s);
    job_finishes(s, "sibling");
    expect_state(s, "a", "Admitted");
    expect_woken(s, 1);
}

static void flavor_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 label=kind:a");
    given_bystander(s);
    given_flavor(s, "a", "label=kind:b");
    given_flavor(s, "b", "label=kind:b");
    given_queue(s, "q", "flavor=a cpu=8");
    given_queue(s, "r", "flavor=b cpu=8");
    given_job(s, "a", "q", "pods=1 cpu=1");
    parked(s);
    given_flavor(s, "b", "label=kind:c");
    expect_nobody_woken(s);
    given_flavor(s, "a", "label=kind:a");
    expect_state(s, "a", "Admitted");
    expect_woken(s, 1);
}

static void taint_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 taint=broken:NoSchedule");
    given_bystander(s);
    given_queue(s, "q", "cpu=8");
    given_job(s, "a", "q", "pods=1 cpu=1");
    parked(s);
    given_node(s, "n1", "cpu=16");
    expect_state(s, "a", "Admitted");
    expect_woken(s, 1);
}

/* The flavor's taint, which the gang doesn't tolerate, is taken off. */
static void flavors_taint_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_bystander(s);
    given_flavor(s, "a", "taint=spot:NoSchedule");
    given_queue(s, "q", "flavor=a cpu=8");
    given_job(s, "a", "q", "pods=1 cpu=1");
    expect_state(s, "a", "Pending NoMatchingFlavor");
    parked(s);
    given_flavor(s, "a", "");
    expect_state(s, "a", "Admitted");
    expect_woken(s, 1);
}

static void node_label_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_bystander(s);
    given_queue(s, "q", "cpu=8");
    given_job(s, "a", "q", "pods=1 cpu=1 selector=zone:east");
    parked(s);
    given_node(s, "n1", "cpu=16 label=zone:east");
    expect_state(s, "a", "Admitted");
    expect_woken(s, 1);
}

static void limit_range_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_bystander(s);
    given_queue(s, "q", "cpu=2");
    given_json(s, KIND_LIMIT_RANGE,
               "{\"metadata\":{\"name\":\"lr\"},\"spec\":{\"limits\":[{\"type\":\"Container\","
               "\"default\":{\"cpu\":\"1\"}}]}}");
    given_job(s, "a", "q", "pods=3");
    expect_state(s, "a", "Pending NeverFits");
    parked(s);
    given_json(s, KIND_LIMIT_RANGE,
               "{\"metadata\":{\"name\":\"lr\",\"namespace\":\"other\"},\"spec\":{\"limits\":[{"
               "\"type\":\"Container\",\"default\":{\"cpu\":\"500m\"}}]}}");
    expect_nobody_woken(s);
    expect_state(s, "a", "Pending NeverFits");
    given_json(s, KIND_LIMIT_RANGE,
               "{\"metadata\":{\"name\":\"lr\"},\"spec\":{\"limits\":[{\"type\":\"Container\","
               "\"default\":{\"cpu\":\"500m\"}}]}}");
    expect_state(s, "a", "Admitted");
}

static void runtime_class_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_bystander(s);
    given_queue(s, "q", "cpu=2");
    given_job(s, "a", "q", "pods=1 cpu=1 runtime=kata");
    expect_state(s, "a", "Pending MissingReference");
    parked(s);
    given_json(s, KIND_RUNTIME_CLASS, "{\"metadata\":{\"name\":\"gvisor\"},\"handler\":\"runsc\"}");
    expect_nobody_woken(s);
    given_json(s, KIND_RUNTIME_CLASS, "{\"metadata\":{\"name\":\"kata\"},\"handler\":\"kata\"}");
    expect_state(s, "a", "Admitted");
    expect_woken(s, 1);
}

static void device_class_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0 g1");
    given_class(s, CLASS, "device.driver == 'other.example.com'");
    given_template(s, "one", CLASS, 1);
    given_bystander(s);
    given_queue(s, "q", "cpu=8 gpu.example.com=2");
    given_job(s, "a", "q", "pods=1 cpu=1 template=one");
    parked(s);
    given_class(s, "nic.example.com", "true");
    expect_nobody_woken(s);
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    expect_state(s, "a", "Admitted");
    expect_woken(s, 1);
}

static void claim_template_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0 g1");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 3);
    given_bystander(s);
    given_queue(s, "q", "cpu=8 gpu.example.com=2");
    given_job(s, "a", "q", "pods=1 cpu=1 template=one");
    expect_state(s, "a", "Pending NeverFits");
    parked(s);
    given_template(s, "two", CLASS, 2);
    expect_nobody_woken(s);
    given_template(s, "one", CLASS, 1);
    expect_state(s, "a", "Admitted");
    expect_woken(s, 1);
}

/* Its finalizer keeps the object for a while, and kube-scheduler places nobody with it. */
static void claim_that_is_being_deleted_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0 g1");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_claim(s, "c", CLASS, 1);
    given_bystander(s);
    given_queue(s, "q", "cpu=1 gpu.example.com=2");
    given_job(s, "a", "q", "pods=2 cpu=1 claim=c");
    expect_state(s, "a", "Pending NeverFits");
    given_json(s, KIND_RESOURCE_CLAIM,
               "{\"metadata\":{\"name\":\"c\",\"deletionTimestamp\":\"2026-11-29T12:00:00Z\"},"
               "\"spec\":{\"devices\":{\"requests\":[{\"name\":\"r\",\"exactly\":"
               "{\"deviceClassName\":\"gpu.example.com\"}}]}}}");
    expect_state(s, "a", "Pending MissingReference");
    given_queue(s, "q", "cpu=2 gpu.example.com=2");
    expect_state(s, "a", "Pending MissingReference");
    object_gone(s, KIND_RESOURCE_CLAIM, "c");
    expect_state(s, "a", "Pending MissingReference");
    given_claim(s, "c", CLASS, 1);
    expect_state(s, "a", "Admitted");
}

static void namespace_label_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_namespace(s, "ml", "team:b");
    given_bystander(s);
    given_queue(s, "q", "cpu=4 select=team:a");
    given_job(s, "a", "q", "pods=2 cpu=1");
    expect_state(s, "a", "Pending NamespaceNotAllowed");
    parked(s);
    given_namespace(s, "other", "team:a");
    expect_nobody_woken(s);
    given_namespace(s, "ml", "team:a");
    expect_state(s, "a", "Admitted");
}

/* Of two that wait the one whose class is raised may preempt now. */
static void priority_class_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mine", 1);
    given_bystander(s);
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "holder", "q", "pods=4 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "holder", "n1 n1 n1 n1");
    given_job(s, "a", "q", "pods=4 cpu=1 priority=mine created=0");
    expect_state(s, "a", "Pending QuotaExhausted");
    parked(s);
    given_priority_class(s, "unused", 50);
    expect_nobody_woken(s);
    given_priority_class(s, "mine", 9);
    expect_state(s, "a", "Reserved WaitingForVictims");
    expect_woken(s, 1);
    gang_stops(s, "holder");
    expect_state(s, "a", "Admitted");
}

/* What protects the victim ends at a known time; until then nobody looks. */
static void time_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_bystander(s);
    given_queue(s, "q", "cpu=4 within=LowerPriority protect=10m");
    given_job(s, "holder", "q", "pods=4 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "holder", "n1 n1 n1 n1");
    given_job(s, "a", "q", "pods=4 cpu=1 priority=high created=0");
    expect_state(s, "a", "Pending QuotaExhausted");
    parked(s);
    at(s, 10 * MINUTE - 1);
    expect_nobody_woken(s);
    at(s, 10 * MINUTE);
    expect_state(s, "a", "Reserved WaitingForVictims");
    expect_woken(s, 1);
}

/* A hundred gangs that ask the same are judged once, when they come and when they are woken. */
static void equal_gangs_are_judged_once(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_bystander(s);
    given_queue(s, "q", "cpu=2");
    for (int i = 0; i < 100; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "job%03d", i);
        given_job(s, name, "q", "pods=3 cpu=1 created=0");
    }
    parked(s);
    quota_becomes(s, "q", "cpu=3");
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.admitted, 1);
    assert_true(counts.gangs_visited <= 4); /* the first, and the next for all the others */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(quota_wakes),
        scenario_test(cohorts_own_quota_wakes),
        scenario_test(cohort_that_moves_wakes),
        scenario_test(cycle_that_is_undone_wakes),
        scenario_test(queue_that_joins_a_cohort_wakes),
        scenario_test(a_siblings_release_wakes),
        scenario_test(flavor_wakes),
        scenario_test(taint_wakes),
        scenario_test(flavors_taint_wakes),
        scenario_test(node_label_wakes),
        scenario_test(limit_range_wakes),
        scenario_test(runtime_class_wakes),
        scenario_test(device_class_wakes),
        scenario_test(claim_template_wakes),
        scenario_test(claim_that_is_being_deleted_wakes),
        scenario_test(namespace_label_wakes),
        scenario_test(priority_class_wakes),
        scenario_test(time_wakes),
        scenario_test(equal_gangs_are_judged_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
