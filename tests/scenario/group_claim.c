/* Claims that a gang has once for all its pods, by its PodGroup (spec.scheduling.resourceClaims).
 */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

static void given_gpus(struct scenario *s, const char *node, const char *devices)
{
    given_node(s, node, "cpu=16 memory=64Gi");
    given_devices(s, node, devices);
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
}

/* Four pods take one device, not four, from when the gang is let go until its PodGroup gives the
 * claim back. */
static void gang_of_four_takes_one_device(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1");
    given_queue(s, "q", "cpu=100 gpu.example.com=2");
    given_job(s, "ja", "q", "pods=4 cpu=1 group=one");
    given_group_claim(s, "ja", "one");
    expect_state(s, "ja", "Admitted");
    expect_used(s, "q", "gpu.example.com=1");
    gang_starts(s, "ja", "n1 n1 n1 n1");
    given_job(s, "jb", "q", "pods=2 cpu=1 template=one");
    expect_state(s, "jb", "Pending QuotaExhausted");
    group_claim_allocated(s, "ja", "one", "n1/g0");
    expect_state(s, "ja", "Running");
    expect_used(s, "q", "gpu.example.com=1");
    given_job(s, "jc", "q", "pods=1 cpu=1 template=one");
    expect_state(s, "jc", "Admitted");
    expect_used(s, "q", "gpu.example.com=2");
}

/* The claim is reserved for the PodGroup, which stays until the Job is deleted: a finished gang's
 * device isn't free. */
static void device_is_in_use_until_the_claim_goes(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_queue(s, "q", "cpu=100 gpu.example.com=2");
    given_job(s, "ja", "q", "pods=4 cpu=1 group=one");
    given_group_claim(s, "ja", "one");
    expect_state(s, "ja", "Admitted");
    given_job(s, "jb", "q", "pods=4 cpu=1 group=one");
    given_group_claim(s, "jb", "one");
    expect_state(s, "jb", "Pending DevicesExhausted");
    gang_starts(s, "ja", "n1 n1 n1 n1");
    group_claim_allocated(s, "ja", "one", "n1/g0");
    for (int i = 0; i < 2; i++) {
        expect_state(s, "ja", "Running");
        expect_state(s, "jb", "Pending DevicesExhausted");
        expect_used(s, "q", "gpu.example.com=1");
        listing_order(s, (uint64_t)i);
        restart(s, i == 0 ? WITH_ADMISSIONS : WITHOUT_ADMISSIONS);
        expect_used(s, "q", "gpu.example.com=1");
    }
    job_finishes(s, "ja");
    expect_used(s, "q", "gpu.example.com=0");
    expect_state(s, "jb", "Pending DevicesExhausted");
    expect_message(s, "jb", "0 of 1");
    object_gone(s, KIND_RESOURCE_CLAIM, "ja-one");
    expect_state(s, "jb", "Admitted");
}

/* Whether there is one claim or one for each depends on gates: only the claim itself tells. */
static void gang_waits_until_its_claim_is_made(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1 g2 g3");
    given_queue(s, "q", "cpu=100 gpu.example.com=4");
    given_job(s, "ja", "q", "pods=4 cpu=1 group=one");
    expect_state(s, "ja", "Pending MissingReference");
    expect_message(s, "ja", "has no ResourceClaim for claim \"c-one\"");
    given_job(s, "jb", "q", "pods=4 cpu=1 group=one");
    given_group_claim(s, "jb", "one");
    expect_state(s, "ja", "Pending MissingReference");
    expect_state(s, "jb", "Admitted");
    gang_starts(s, "jb", "n1 n1 n1 n1");
    group_claim_allocated(s, "jb", "one", "n1/g0");
    given_group_claim(s, "ja", "one");
    expect_state(s, "ja", "Admitted");
    expect_used(s, "q", "gpu.example.com=2");
}

static void claim_that_goes_is_missed_again(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_queue(s, "q", "cpu=1 gpu.example.com=4");
    given_job(s, "first", "q", "pods=1 cpu=1");
    given_job(s, "ja", "q", "pods=1 cpu=1 group=one");
    given_group_claim(s, "ja", "one");
    expect_state(s, "ja", "Pending QuotaExhausted");
    object_gone(s, KIND_RESOURCE_CLAIM, "ja-one");
    expect_state(s, "ja", "Pending MissingReference");
    given_group_claim(s, "ja", "one");
    expect_state(s, "ja", "Pending QuotaExhausted");
}

/* All go to the node where the device is, so that one must have room for all. */
static void all_pods_must_reach_the_device(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_node(s, "n2", "cpu=16");
    given_queue(s, "q", "cpu=100 gpu.example.com=4");
    given_job(s, "wide", "q", "pods=20 cpu=1 group=one");
    given_group_claim(s, "wide", "one");
    expect_state(s, "wide", "Pending NeverFits");
    given_job(s, "fits", "q", "pods=16 cpu=1 group=one");
    given_group_claim(s, "fits", "one");
    expect_state(s, "fits", "Admitted");
    check_str(string_map_get(&scenario_job(s, "fits")->spec.pod_template.spec.node_selector,
                             "kubernetes.io/hostname"),
              "n1");
}

/* Its one consumer is the PodGroup; the 256 that a claim may have don't bound the gang. */
static void more_pods_than_a_claim_has_consumers(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=400 pods=400");
    given_devices(s, "n1", "g0");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "cpu=400 gpu.example.com=1");
    given_job(s, "ja", "q", "pods=300 cpu=1 group=one");
    given_group_claim(s, "ja", "one");
    expect_state(s, "ja", "Admitted");
}

/* Stopping a gang doesn't free its claim, so that nobody is stopped for that device. */
static void gang_is_not_stopped_for_a_device_that_stays(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_priority_class(s, "high", 100);
    given_queue(s, "q", "cpu=100 gpu.example.com=2 within=LowerPriority");
    given_job(s, "ja", "q", "pods=2 cpu=1 group=one");
    given_group_claim(s, "ja", "one");
    expect_state(s, "ja", "Admitted");
    gang_starts(s, "ja", "n1 n1");
    group_claim_allocated(s, "ja", "one", "n1/g0");
    given_job(s, "jb", "q", "pods=1 cpu=1 priority=high template=one");
    expect_state(s, "jb", "Pending DevicesExhausted");
    expect_state(s, "ja", "Running");
}

/* Stopped for room and let go again, it goes back to the device that its claim has still. */
static void gang_that_is_let_go_again_has_its_claim(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_gpus(s, "n2", "g0");
    given_priority_class(s, "high", 100);
    given_queue(s, "q", "cpu=2 gpu.example.com=1 within=LowerPriority");
    given_job(s, "ja", "q", "pods=2 cpu=1 group=one");
    given_group_claim(s, "ja", "one");
    expect_state(s, "ja", "Admitted");
    gang_starts(s, "ja", "n2 n2");
    group_claim_allocated(s, "ja", "one", "n2/g0");
    given_job(s, "jb", "q", "pods=2 cpu=1 priority=high");
    gang_stops(s, "ja");
    expect_state(s, "jb", "Admitted");
    gang_starts(s, "jb", "n1 n1");
    expect_used(s, "q", "gpu.example.com=0");
    job_finishes(s, "jb");
    expect_state(s, "ja", "Admitted");
    expect_used(s, "q", "gpu.example.com=1");
}

/* The allocation may be seen after the pods are bound: none of them is a consumer that it names. */
static void pods_are_settled_by_the_group_s_allocation(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=3");
    given_devices(s, "n1", "g0 g1");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "cpu=100 gpu.example.com=2");
    given_job(s, "ja", "q", "pods=2 cpu=1 group=one");
    given_group_claim(s, "ja", "one");
    expect_state(s, "ja", "Admitted");
    gang_starts(s, "ja", "n1 n1");
    group_claim_allocated(s, "ja", "one", "n1/g0");
    for (uint64_t seed = 0; seed < 10; seed++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "j%d", (int)seed);
        given_job(s, name, "q", "pods=1 cpu=1 template=one");
        expect_state(s, name, "Admitted");
        job_finishes(s, name);
        listing_order(s, seed); /* a restart may list the pods before the claim */
        restart(s, seed % 2 == 0 ? WITH_ADMISSIONS : WITHOUT_ADMISSIONS);
    }
}

/* Which of two would be given to the pods nobody can tell. */
static void two_claims_for_the_same_are_none(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1");
    given_queue(s, "q", "cpu=1 gpu.example.com=2");
    given_job(s, "first", "q", "pods=1 cpu=1");
    given_job(s, "ja", "q", "pods=1 cpu=1 group=one");
    given_group_claim(s, "ja", "one");
    struct resource_claim twin =
        *(const struct resource_claim *)scenario_object(s, KIND_RESOURCE_CLAIM, "ja-one");
    expect_state(s, "ja", "Pending QuotaExhausted");
    given_claim(s, "twin", CLASS, 1);
    struct resource_claim *other = scenario_object(s, KIND_RESOURCE_CLAIM, "twin");
    other->meta.owner_references = twin.meta.owner_references;
    other->meta.annotations = twin.meta.annotations;
    object_changed(s, KIND_RESOURCE_CLAIM, "twin");
    expect_state(s, "ja", "Pending Invalid");
    expect_message(s, "ja", "has several ResourceClaims");
    object_gone(s, KIND_RESOURCE_CLAIM, "twin");
    expect_state(s, "ja", "Pending QuotaExhausted");
    given_claim(s, "twin", CLASS, 1);
    other = scenario_object(s, KIND_RESOURCE_CLAIM, "twin");
    other->meta.owner_references = twin.meta.owner_references;
    other->meta.annotations = twin.meta.annotations;
    object_changed(s, KIND_RESOURCE_CLAIM, "twin");
    expect_state(s, "ja", "Pending Invalid");
    object_gone(s, KIND_RESOURCE_CLAIM, "ja-one"); /* the other is as good */
    expect_state(s, "ja", "Pending QuotaExhausted");
}

/* Kubernetes makes the PodGroup's name of the Job's as far as that goes: which it is then, Tallyman
 * doesn't judge. */
static void job_whose_name_is_too_long_for_its_pod_group(void **state)
{
    struct scenario *s = *state;
    char name[65];
    (void)memset(name, 'j', sizeof(name) - 1);
    name[64] = '\0';
    given_gpus(s, "n1", "g0");
    given_queue(s, "q", "cpu=100 gpu.example.com=2");
    given_job(s, name, "q", "pods=4 cpu=1 group=one");
    expect_state(s, name, "Pending Invalid");
    expect_message(s, name, "only of Jobs whose name has at most 63 characters");
    name[63] = '\0';
    given_job(s, name, "q", "pods=4 cpu=1 group=one");
    expect_message(s, name, "has no ResourceClaim for claim");
}

/* Another API group has PodGroups, too; and a claim of ours has to say which entry it is for. */
static void claim_of_another_kind_of_pod_group(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_queue(s, "q", "cpu=1 gpu.example.com=4");
    given_job(s, "first", "q", "pods=1 cpu=1");
    given_job(s, "ja", "q", "pods=1 cpu=1 group=one");
    given_group_claim(s, "ja", "one");
    expect_state(s, "ja", "Pending QuotaExhausted");
    struct resource_claim *claim = scenario_object(s, KIND_RESOURCE_CLAIM, "ja-one");
    claim->meta.owner_references.items[0].api_version = STR("scheduling.volcano.sh/v1beta1");
    object_changed(s, KIND_RESOURCE_CLAIM, "ja-one");
    expect_state(s, "ja", "Pending MissingReference");
    claim->meta.owner_references.items[0].api_version = STR("scheduling.k8s.io/v1beta1");
    struct string_map annotations = claim->meta.annotations;
    claim->meta.annotations.count = 0;
    object_changed(s, KIND_RESOURCE_CLAIM, "ja-one");
    expect_state(s, "ja", "Pending MissingReference");
    claim->meta.annotations = annotations;
    object_changed(s, KIND_RESOURCE_CLAIM, "ja-one");
    expect_state(s, "ja", "Pending QuotaExhausted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(gang_of_four_takes_one_device),
        scenario_test(device_is_in_use_until_the_claim_goes),
        scenario_test(gang_waits_until_its_claim_is_made),
        scenario_test(claim_that_goes_is_missed_again),
        scenario_test(all_pods_must_reach_the_device),
        scenario_test(more_pods_than_a_claim_has_consumers),
        scenario_test(gang_is_not_stopped_for_a_device_that_stays),
        scenario_test(gang_that_is_let_go_again_has_its_claim),
        scenario_test(pods_are_settled_by_the_group_s_allocation),
        scenario_test(two_claims_for_the_same_are_none),
        scenario_test(job_whose_name_is_too_long_for_its_pod_group),
        scenario_test(claim_of_another_kind_of_pod_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
