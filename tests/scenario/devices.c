/* Devices: counted as a set of driver/pool/device, whoever and how many use them. */
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
}

/* -- the deadlock that gang admission exists for ------------------------------------------------
 */

static void second_gang_of_four_waits_whole_beside_six_devices(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1");
    given_gpus(s, "n2", "g0 g1");
    given_gpus(s, "n3", "g0 g1");
    given_template(s, "one-gpu", CLASS, 1);
    given_queue(s, "research", "gpu.example.com=6");
    given_queue(s, "other", "gpu.example.com=6");
    given_job(s, "train-a", "research", "pods=4 cpu=50m memory=32Mi template=one-gpu");
    given_job(s, "train-b", "other", "pods=4 cpu=50m memory=32Mi template=one-gpu");
    given_job(s, "third", "other", "pods=2 cpu=50m memory=32Mi template=one-gpu");
    expect_state(s, "train-a", "Admitted");
    expect_state(s, "train-b", "Pending DevicesExhausted");
    expect_message(s, "train-b", "needs 4 gpu.example.com at once, 0 of 6 are free");
    expect_state(s, "third", "Admitted");
    gang_starts(s, "train-a", "n1 n1 n2 n2");
    pod_claims(s, "train-a-0", "one-gpu", "n1/g0");
    pod_claims(s, "train-a-1", "one-gpu", "n1/g1");
    pod_claims(s, "train-a-2", "one-gpu", "n2/g0");
    pod_claims(s, "train-a-3", "one-gpu", "n2/g1");
    expect_state(s, "train-a", "Running");
    job_finishes(s, "train-a");
    for (int i = 0; i < 4; i++) {
        char claim[32];
        snprintf(claim, sizeof(claim), "train-a-%d-one-gpu", i);
        expect_state(s, "train-b", "Pending DevicesExhausted");
        claim_freed(s, claim);
    }
    expect_state(s, "train-b", "Admitted");
}

/* -- the scheduler that miscounted --------------------------------------------------------------
 */

/* One device, one claim, two pods that share it, and a gang that wants none, on that node. */
static void shared_claim_is_one_device(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q", "cpu=100 gpu.example.com=2");
    given_job(s, "j1", "q", "pods=2 cpu=1 claim=c");
    expect_state(s, "j1", "Admitted");
    expect_used(s, "q", "gpu.example.com=1");
    /* The first pod's node fixes the device, so all go to one node. */
    check_str(string_map_get(&scenario_job(s, "j1")->spec.pod_template.spec.node_selector,
                             "kubernetes.io/hostname"),
              "n1");
    gang_starts(s, "j1", "n1 n1");
    claim_allocated(s, "c", "n1/g0");
    claim_reserved(s, "c", "j1-0");
    claim_reserved(s, "c", "j1-1");
    expect_used(s, "q", "gpu.example.com=1");
    given_job(s, "j2", "q", "pods=1 cpu=1 selector=kubernetes.io/hostname:n1");
    expect_state(s, "j2", "Admitted");
    gang_starts(s, "j2", "n1");
    given_job(s, "j3", "q", "pods=1 cpu=1 template=one");
    given_template(s, "one", CLASS, 1);
    expect_state(s, "j3", "Pending DevicesExhausted");
    expect_message(s, "j3", "0 of 1");
    /* Used until the last one leaves. */
    pod_succeeds(s, "j1-0");
    expect_state(s, "j3", "Pending DevicesExhausted");
    expect_used(s, "q", "gpu.example.com=1");
    job_finishes(s, "j1");
    expect_used(s, "q", "gpu.example.com=0");
    expect_state(s, "j3", "Pending DevicesExhausted"); /* the claim is allocated still */
    claim_freed(s, "c");
    expect_state(s, "j3", "Admitted");
}

/* The node that a claim's pods must go to is promised from the moment the write is sent. */
static void pinned_gang_is_promised_its_node_at_once(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=2 label=kind:a");
    given_node(s, "n2", "cpu=2");
    given_devices(s, "n1", "g0");
    given_devices(s, "n2", "g0");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q", "cpu=100 gpu.example.com=2");
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=2 cpu=1 claim=c");
    given_job(s, "b", "q", "pods=1 cpu=2 selector=kind:a");
    scenario_start(s);
    assert_true(write_is_out(s, "a"));
    assert_false(write_is_out(s, "b"));
    write_ok(s, "a", true);
    check_str(string_map_get(&scenario_job(s, "a")->spec.pod_template.spec.node_selector,
                             "kubernetes.io/hostname"),
              "n1");
    assert_false(write_is_out(s, "b"));
}

static void sixty_four_sharers_of_a_claim_are_charged_one(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=1");
    given_job(s, "j1", "q", "pods=64 cpu=10m claim=c");
    expect_state(s, "j1", "Admitted");
    expect_used(s, "q", "gpu.example.com=1");
    given_job(s, "many", "q", "pods=257 cpu=1m claim=c");
    expect_state(s, "many", "Pending Invalid");
}

/* Two Jobs of two queues name one claim: the earlier pays, then the later, and never both or none.
 */
static void payer_of_a_shared_claim_moves_on(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q1", "gpu.example.com=1");
    given_queue(s, "q2", "gpu.example.com=1");
    given_job(s, "j1", "q1", "pods=1 claim=c");
    given_job(s, "j2", "q2", "pods=1 claim=c");
    expect_state(s, "j1", "Admitted");
    expect_state(s, "j2", "Pending ReservedForOther"); /* j1's pod chooses the device first */
    gang_starts(s, "j1", "n1");
    claim_allocated(s, "c", "n1/g0");
    expect_state(s, "j2", "Admitted");
    gang_starts(s, "j2", "n1");
    expect_used(s, "q1", "gpu.example.com=1");
    expect_used(s, "q2", "gpu.example.com=0");
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q1", "gpu.example.com=1");
    expect_used(s, "q2", "gpu.example.com=0");
    job_finishes(s, "j1");
    expect_used(s, "q1", "gpu.example.com=0");
    expect_used(s, "q2", "gpu.example.com=1");
    job_finishes(s, "j2");
    expect_used(s, "q2", "gpu.example.com=0");
}

/* Of two that are let go in one second the first pays, whatever their uids: the other's queue may
 * not have the quota. The record says who came first, so that a restart knows. */
static void first_of_one_second_pays(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q1", "gpu.example.com=1");
    given_queue(s, "q2", "cpu=0 gpu.example.com=0");
    given_job(s, "second", "q2", "pods=1 cpu=1 claim=c"); /* the lower uid */
    given_job(s, "first", "q1", "pods=1 claim=c");
    expect_state(s, "first", "Admitted");
    gang_starts(s, "first", "n1");
    claim_allocated(s, "c", "n1/g0");
    given_queue(s, "q2", "cpu=1 gpu.example.com=0");
    expect_state(s, "second", "Admitted");
    gang_starts(s, "second", "n1");
    for (int i = 0; i < 3; i++) {
        expect_used(s, "q1", "gpu.example.com=1");
        expect_used(s, "q2", "gpu.example.com=0");
        restart(s, i == 0 ? WITH_ADMISSIONS : WITHOUT_ADMISSIONS);
    }
    job_finishes(s, "first");
    expect_used(s, "q2", "gpu.example.com=1");
}

/* Who shares a claim that another pays for asks for no device: a full quota is no reason to wait.
 */
static void sharer_of_a_paid_claim_needs_no_quota(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=1");
    given_job(s, "j1", "q", "pods=1 claim=c");
    scenario_start(s);
    gang_starts(s, "j1", "n1");
    claim_allocated(s, "c", "n1/g0");
    quota_becomes(s, "q", "gpu.example.com=0");
    checks_are_cheap(s); /* over its quota by the cut, and admitting all the same */
    given_job(s, "j2", "q", "pods=1 claim=c");
    assert_false(scenario_job(s, "j2")->spec.suspend.value);
}

static void claim_of_the_same_name_elsewhere_is_another_claim(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_namespace(s, "other", "");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=4");
    claim_allocated(s, "c", "n1/g0");
    given_job(s, "j", "q", "pods=1 claim=c ns=other");
    expect_state(s, "other/j", "Pending MissingReference");
    expect_message(s, "other/j", "ResourceClaim other/c doesn't exist");
    given_json(s, KIND_RESOURCE_CLAIM,
               "{\"metadata\":{\"name\":\"c\",\"namespace\":\"other\"},\"spec\":{\"devices\":{"
               "\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":"
               "\"gpu.example.com\"}}]}}}");
    expect_state(s, "other/j", "Pending DevicesExhausted"); /* its own device, and there is none */
    claim_freed(s, "c");
    expect_state(s, "other/j", "Admitted");
}

/* A foreign pod of a device that no gang asked for, other drivers, and plugin resources. */
static void other_drivers_and_plugins_count_as_ever(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1");
    given_node(s, "n1", "cpu=16 nvidia.com/gpu=2");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"nic\"},\"spec\":{\"driver\":\"nic.example.com\","
               "\"nodeName\":\"n1\",\"pool\":{\"name\":\"n1\",\"generation\":1,"
               "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"g0\"}]}}");
    given_claim(s, "foreign", CLASS, 1);
    claim_allocated(s, "foreign", "n1/g0");
    given_template(s, "two", CLASS, 2);
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=4 nvidia.com/gpu=4");
    given_job(s, "plugin", "q", "pods=2 nvidia.com/gpu=1");
    expect_state(s, "plugin", "Admitted");
    gang_starts(s, "plugin", "n1 n1");
    given_job(s, "two", "q", "pods=1 template=two");
    given_job(s, "one", "q", "pods=1 template=one");
    expect_state(s, "two", "Pending DevicesExhausted"); /* the nic of that name isn't a gpu */
    expect_message(s, "two", "1 of 2");
    expect_state(s, "one", "Admitted");
}

/* Its pod is bound, and the allocation isn't seen yet: the device is still promised to it. */
static void bound_pod_keeps_its_device_until_the_claim_is_seen(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=4");
    given_queue(s, "r", "gpu.example.com=4");
    given_job(s, "a", "q", "pods=2 template=one");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    given_job(s, "b", "r", "pods=1 template=one");
    expect_state(s, "b", "Pending DevicesExhausted");
    pod_claims(s, "a-0", "one", "n1/g0");
    expect_state(s, "b", "Pending DevicesExhausted");
    pod_claims(s, "a-1", "one", "n1/g1");
    expect_state(s, "b", "Pending DevicesExhausted");
}

/* The template goes while pods that were made from it look for their devices: nobody can tell what
 * they take, so nobody else is given any. */
static void promise_outlives_its_claim_template(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0 g1");
    given_template(s, "one", CLASS, 1);
    given_template(s, "other", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=4 cpu=16");
    given_job(s, "a", "q", "pods=2 template=one");
    scenario_start(s);
    pods_appear(s, "a", 2);
    object_gone(s, KIND_RESOURCE_CLAIM_TEMPLATE, "one");
    given_job(s, "b", "q", "pods=1 template=other");
    given_job(s, "c", "q", "pods=1 cpu=1");
    expect_state(s, "b", "Pending ReservedForOther");
    expect_state(s, "c", "Admitted");
    given_template(s, "one", CLASS, 1);
    expect_state(s, "b", "Pending DevicesExhausted");
    job_deleted_now(s, "a");
    object_gone(s, KIND_POD, "a-0");
    object_gone(s, KIND_POD, "a-1");
    expect_state(s, "b", "Admitted");
}

/* -- which devices exist ------------------------------------------------------------------------
 */

static void given_slice(struct scenario *s, const char *name, int generation, int count,
                        const char *devices)
{
    char json[1024];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"driver\":\"gpu.example.com\","
             "\"nodeName\":\"n1\",\"pool\":{\"name\":\"n1\",\"generation\":%d,"
             "\"resourceSliceCount\":%d},%s}}",
             name, generation, count, devices);
    given_json(s, KIND_RESOURCE_SLICE, json);
}

static void given_waiting_for_two(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=9");
    given_job(s, "a", "q", "pods=2 template=one");
}

static void only_the_newest_generation_of_a_pool_counts(void **state)
{
    struct scenario *s = *state;
    given_slice(s, "s1", 1, 1, "\"devices\":[{\"name\":\"g0\"},{\"name\":\"g1\"}]");
    given_slice(s, "s2", 2, 1, "\"devices\":[{\"name\":\"g0\"}]");
    given_waiting_for_two(s);
    expect_state(s, "a", "Pending NeverFits");
    expect_message(s, "a", "have 1 together");
    given_slice(s, "s2", 3, 1, "\"devices\":[{\"name\":\"g0\"},{\"name\":\"g2\"}]");
    expect_state(s, "a", "Admitted");
}

static void incomplete_generation_is_no_capacity(void **state)
{
    struct scenario *s = *state;
    given_slice(s, "s1", 1, 2, "\"devices\":[{\"name\":\"g0\"},{\"name\":\"g1\"}]");
    given_waiting_for_two(s);
    expect_state(s, "a", "Pending DevicesExhausted");
    expect_message(s, "a", "pool gpu.example.com/n1 gives none: its newest generation isn't");
    given_slice(s, "s2", 1, 2, "\"devices\":[{\"name\":\"g2\"}]");
    expect_state(s, "a", "Admitted");
}

static void slices_that_disagree_on_their_count_are_no_capacity(void **state)
{
    struct scenario *s = *state;
    given_slice(s, "s1", 1, 2, "\"devices\":[{\"name\":\"g0\"},{\"name\":\"g1\"}]");
    given_slice(s, "s2", 1, 3, "\"devices\":[{\"name\":\"g2\"},{\"name\":\"g3\"}]");
    given_waiting_for_two(s);
    expect_state(s, "a", "Pending DevicesExhausted");
    expect_message(s, "a", "slices of one generation disagree on resourceSliceCount");
    given_slice(s, "s2", 1, 2, "\"devices\":[{\"name\":\"g2\"},{\"name\":\"g3\"}]");
    expect_state(s, "a", "Admitted");
}

static void tainted_device_is_no_capacity(void **state)
{
    struct scenario *s = *state;
    given_slice(s, "s1", 1, 1,
                "\"devices\":[{\"name\":\"g0\"},{\"name\":\"g1\",\"taints\":[{\"key\":\"bad\","
                "\"effect\":\"NoSchedule\"}]}]");
    given_waiting_for_two(s);
    expect_state(s, "a", "Pending DevicesUnhealthy");
    expect_message(s, "a", "1 of 2");
    given_slice(s, "s1", 2, 1, "\"devices\":[{\"name\":\"g0\"},{\"name\":\"g1\"}]");
    expect_state(s, "a", "Admitted");
}

#define COUNTERS                                                                                   \
    "\"sharedCounters\":[{\"name\":\"card\",\"counters\":{\"memory\":{\"value\":\"40Gi\"}}}]"
#define PART(name, size)                                                                           \
    "{\"name\":\"" name "\",\"consumesCounters\":[{\"counterSet\":\"card\",\"counters\":{"         \
    "\"memory\":{\"value\":\"" size "\"}}}]}"

/* A whole card and its partitions draw on one counter. */
static void full_card_and_its_partitions_exclude_each_other(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_slice(s, "counters", 1, 2, COUNTERS);
    given_slice(s, "devices", 1, 2,
                "\"devices\":[" PART("full", "40Gi") "," PART("p0", "10Gi") "," PART(
                    "p1", "10Gi") "," PART("p2", "10Gi") "," PART("p3", "10Gi") "]");
    given_class(s, "full.example.com", "device.driver == 'gpu.example.com' && true");
    given_template(s, "one", "full.example.com", 1);
    given_queue(s, "q", "full.example.com=9");
    given_claim(s, "parts", "full.example.com", 3);
    claim_allocated(s, "parts", "n1/p0 n1/p1 n1/p2");
    given_job(s, "two", "q", "pods=2 template=one");
    given_job(s, "one", "q", "pods=1 template=one");
    expect_state(s, "two", "Pending DevicesExhausted"); /* p3 is free, the card isn't */
    expect_message(s, "two", "1 of 5");
    expect_state(s, "one", "Admitted");
    gang_starts(s, "one", "n1");
    pod_claims(s, "one-0", "one", "n1/p3");
    claim_freed(s, "parts");
    expect_state(s, "two", "Admitted");
    job_deleted_now(s, "two");
    /* The whole card in use: no partition is left. */
    object_gone(s, KIND_POD, "one-0");
    job_deleted_now(s, "one");
    claim_freed(s, "one-0-one");
    claim_allocated(s, "parts", "n1/full");
    given_job(s, "late", "q", "pods=1 template=one");
    expect_state(s, "late", "Pending DevicesExhausted");
    expect_message(s, "late", "0 of 5");
}

static void selector_that_cannot_be_evaluated_is_an_explained_wait(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_class(s, "broken.example.com", "device.nonsense(");
    given_template(s, "one", "broken.example.com", 1);
    given_queue(s, "q", "broken.example.com=9 undeclared=Allow cpu=1");
    given_job(s, "a", "q", "pods=1 template=one");
    expect_state(s, "a", "Pending NeverFits");
    expect_message(s, "a", "DeviceClass broken.example.com has a CEL selector that can't be used");
    given_class(s, "broken.example.com", "device.driver == 'gpu.example.com'");
    expect_state(s, "a", "Admitted");
}

static void what_nobody_could_allocate_is_an_explained_wait(void **state)
{
    struct scenario *s = *state;
    given_gpus(s, "n1", "g0");
    given_queue(s, "q", "gpu.example.com=9");
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               "{\"metadata\":{\"name\":\"odd\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":[{"
               "\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"gpu.example.com\"}}],"
               "\"constraints\":[{\"requests\":[\"r\"]}]}}}}");
    given_job(s, "a", "q", "pods=1 template=odd");
    expect_state(s, "a", "Pending NeverFits");
    expect_message(s, "a", "constraints[0] has neither matchAttribute nor distinctAttribute");
}

/* -- what is named and isn't there --------------------------------------------------------------
 */

static void missing_objects_are_named_and_their_creation_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0 g1");
    given_queue(s, "q", "gpu.example.com=9");
    given_job(s, "a", "q", "pods=1 template=one");
    given_job(s, "b", "q", "pods=1 claim=c");
    expect_state(s, "a", "Pending MissingReference");
    expect_message(s, "a", "ResourceClaimTemplate ml/one doesn't exist");
    expect_message(s, "b", "ResourceClaim ml/c doesn't exist");
    at(s, 20000);
    (void)counts_take(s);
    at(s, 140000); /* two minutes: not one write */
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.admission_writes + counts.job_writes + counts.events, 0);
    given_template(s, "one", CLASS, 1);
    expect_state(s, "a", "Pending MissingReference");
    at(s, 160000);
    expect_message(s, "a", "DeviceClass gpu.example.com doesn't exist");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    expect_state(s, "a", "Admitted");
    gang_starts(s, "a", "n1");
    pod_claims(s, "a-0", "one", "n1/g0");
    given_claim(s, "c", CLASS, 1);
    expect_state(s, "b", "Admitted");
    /* Deleted and made again. */
    object_gone(s, KIND_RESOURCE_CLAIM_TEMPLATE, "one");
    given_job(s, "c", "q", "pods=1 template=one");
    expect_state(s, "c", "Pending MissingReference");
    job_deleted_now(s, "b");
    given_template(s, "one", CLASS, 1);
    expect_state(s, "c", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(second_gang_of_four_waits_whole_beside_six_devices),
        scenario_test(shared_claim_is_one_device),
        scenario_test(pinned_gang_is_promised_its_node_at_once),
        scenario_test(sixty_four_sharers_of_a_claim_are_charged_one),
        scenario_test(payer_of_a_shared_claim_moves_on),
        scenario_test(first_of_one_second_pays),
        scenario_test(sharer_of_a_paid_claim_needs_no_quota),
        scenario_test(claim_of_the_same_name_elsewhere_is_another_claim),
        scenario_test(other_drivers_and_plugins_count_as_ever),
        scenario_test(bound_pod_keeps_its_device_until_the_claim_is_seen),
        scenario_test(promise_outlives_its_claim_template),
        scenario_test(only_the_newest_generation_of_a_pool_counts),
        scenario_test(incomplete_generation_is_no_capacity),
        scenario_test(slices_that_disagree_on_their_count_are_no_capacity),
        scenario_test(tainted_device_is_no_capacity),
        scenario_test(full_card_and_its_partitions_exclude_each_other),
        scenario_test(selector_that_cannot_be_evaluated_is_an_explained_wait),
        scenario_test(what_nobody_could_allocate_is_an_explained_wait),
        scenario_test(missing_objects_are_named_and_their_creation_wakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
