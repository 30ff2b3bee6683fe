/* Kubelets' reports of unhealthy devices: which device one means, by its id, by the claim and the
 * request that it names, or by the claim that the scheduler made for extended resources. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#include "../../controller/core/internal.h"

#define CLASS "gpu.example.com"

/* Gang `a` of one pod on n1 has claim `c`: request r0 has g0, r1 has g1; g2 is free. */
static void given_running(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0 g1 g2");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_claim(s, "c", CLASS, 2);
    given_queue(s, "q", "gpu.example.com=8");
    given_job(s, "a", "q", "pods=1 claim=c");
    scenario_start(s);
    gang_starts(s, "a", "n1");
    claim_allocated(s, "c", "n1/g0 n1/g1");
    claim_reserved(s, "c", "a-0");
    expect_state(s, "a", "Running");
    struct resource_claim *claim = scenario_object(s, KIND_RESOURCE_CLAIM, "c");
    for (uint32_t i = 0; i < claim->status.allocation->devices.results.count; i++) {
        claim->status.allocation->devices.results.items[i].request = i == 0 ? STR("r0") : STR("r1");
    }
    object_changed(s, KIND_RESOURCE_CLAIM, "c");
    struct pod *pod = scenario_object(s, KIND_POD, "a-0");
    struct pod_resource_claim *named = ARENA_NEW(&s->arena, struct pod_resource_claim);
    *named = (struct pod_resource_claim){.name = STR("mine"), .resource_claim_name = STR("c")};
    pod->spec.resource_claims = (struct pod_resource_claim_list){named, 1};
}

static void pod_reports(struct scenario *s, const char *resource, const char *id)
{
    struct resource_health *device = ARENA_NEW(&s->arena, struct resource_health);
    struct resource_status *status = ARENA_NEW(&s->arena, struct resource_status);
    struct container_status *container = ARENA_NEW(&s->arena, struct container_status);
    *device = (struct resource_health){.resource_id = str_from_c(id), .health = STR("Unhealthy")};
    *status = (struct resource_status){.name = str_from_c(resource), .resources = {device, 1}};
    *container =
        (struct container_status){.name = STR("main"), .allocated_resources_status = {status, 1}};
    struct pod *pod = scenario_object(s, KIND_POD, "a-0");
    pod->status.container_statuses = (struct container_status_list){container, 1};
    object_changed(s, KIND_POD, "a-0");
}

/* Which devices rest once the gang has stopped; as many as `free` are left of three. */
static void expect_left(struct scenario *s, int free)
{
    char options[64];
    expect_state(s, "a", "Suspending WaitingForTermination");
    gang_stops(s, "a");
    object_gone(s, KIND_JOB, "a");
    claim_freed(s, "c");
    given_template(s, "one", CLASS, 1);
    snprintf(options, sizeof(options), "pods=%d template=one", free + 1);
    given_job(s, "more", "q", options);
    expect_state(s, "more", "Pending DevicesUnhealthy");
    snprintf(options, sizeof(options), "pods=%d template=one", free);
    given_job(s, "fit", "q", options);
    expect_state(s, "fit", "Admitted");
}

static void claim_without_a_request_means_all_its_devices(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_reports(s, "claim:mine", "vendor.example.com/x");
    expect_left(s, 1);
}

static void claim_and_request_mean_the_requests_devices(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_reports(s, "claim:mine/r1", "vendor.example.com/x");
    expect_left(s, 2);
}

static void id_of_a_device_means_that_one(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_reports(s, "claim:mine/r1", "gpu.example.com/n1/g0");
    expect_left(s, 2);
}

/* A claim that the pod's status names was made for it; where it names none, the scheduler's own for
 * extended resources is meant. */
static void claim_is_found_by_the_pods_status(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    struct pod *pod = scenario_object(s, KIND_POD, "a-0");
    struct pod_claim_status *made = ARENA_NEW(&s->arena, struct pod_claim_status);
    *made = (struct pod_claim_status){.name = STR("made"), .resource_claim_name = STR("c")};
    pod->status.resource_claim_statuses = (struct pod_claim_status_list){made, 1};
    pod_reports(s, "claim:made/r0", "vendor.example.com/x");
    expect_left(s, 2);
}

static void claim_of_the_scheduler_is_meant_where_none_is_named(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    struct pod *pod = scenario_object(s, KIND_POD, "a-0");
    pod->status.extended_resource_claim_status = ARENA_NEW(&s->arena, struct extended_claim_status);
    pod->status.extended_resource_claim_status->resource_claim_name = STR("c");
    pod_reports(s, "claim:other/r0", "vendor.example.com/x");
    expect_left(s, 2);
}

/* A report that says nothing about a device that is known stops the gang, whose pod is ill
 * whatever it was, and no device rests for it. */
static void report_about_nothing_known_rests_no_device(void **state)
{
    (void)state;
    const char *names[] = {"claim:nobodys/r0", "claim:", "vendor.example.com/card", "claim:gone"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct scenario *s = scenario_new();
        given_running(s);
        struct pod *pod = scenario_object(s, KIND_POD, "a-0");
        struct pod_claim_status *made = ARENA_NEW(&s->arena, struct pod_claim_status);
        *made = (struct pod_claim_status){.name = STR("gone"), .resource_claim_name = STR("gone")};
        pod->status.resource_claim_statuses = (struct pod_claim_status_list){made, 1};
        pod_reports(s, names[i], "vendor.example.com/x");
        expect_state(s, "a", "Suspending WaitingForTermination");
        gang_stops(s, "a");
        object_gone(s, KIND_JOB, "a");
        claim_freed(s, "c");
        given_template(s, "one", CLASS, 1);
        given_job(s, "all", "q", "pods=3 template=one");
        expect_state(s, "all", "Admitted");
        scenario_free(s);
    }
}

/* What a pod says when the controller starts counts as if it had just said it. */
static void report_of_before_a_restart_still_counts(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_reports(s, "claim:mine/r1", "vendor.example.com/x");
    restart(s, WITHOUT_ADMISSIONS);
    expect_left(s, 2);
}

/* The claim was allocated a device that its driver doesn't list any more, beside one that it does.
 */
static void device_that_is_not_listed_is_left_out_of_a_report(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    claim_allocated(s, "c", "n1/g0 n1/g9");
    claim_reserved(s, "c", "a-0");
    pod_reports(s, "claim:mine", "vendor.example.com/x");
    expect_left(s, 2);
}

/* One report is one, however often the pod's status comes, and over when its pod says so. */
static void report_that_comes_again_is_the_same(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_reports(s, "claim:mine/r1", "vendor.example.com/x");
    object_again(s, KIND_POD, "a-0");
    object_again(s, KIND_POD, "a-0");
    expect_left(s, 2);
    assert_int_equal(scenario_core(s)->ill_pods, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(claim_without_a_request_means_all_its_devices),
        scenario_test(claim_and_request_mean_the_requests_devices),
        scenario_test(id_of_a_device_means_that_one),
        scenario_test(claim_is_found_by_the_pods_status),
        scenario_test(claim_of_the_scheduler_is_meant_where_none_is_named),
        cmocka_unit_test(report_about_nothing_known_rests_no_device),
        scenario_test(report_of_before_a_restart_still_counts),
        scenario_test(device_that_is_not_listed_is_left_out_of_a_report),
        scenario_test(report_that_comes_again_is_the_same),
    };
    return cmocka_run_group_tests_name("reports", tests, NULL, NULL);
}
