/* A node or device that becomes unhealthy under a running gang: the gang stops whole, once, and
 * keeps its place. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

#define TAINTED(effect) ",\"taints\":[{\"key\":\"broken\",\"effect\":\"" effect "\"}]"

/* Three nodes with two devices each; `a` holds two of n1, and another gang waits behind it. */
static void given_running(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_node(s, "n2", "cpu=16");
    given_pair(s, "n1", "");
    given_pair(s, "n2", "");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=8");
    given_job(s, "a", "q", "pods=2 template=one");
    scenario_start(s);
    at(s, 5000);
    gang_starts(s, "a", "n1 n1");
    pod_claims(s, "a-0", "one", "n1/g0");
    pod_claims(s, "a-1", "one", "n1/g1");
    expect_state(s, "a", "Running");
    at(s, 10000);
    given_job(s, "later", "q", "pods=4 template=one");
    expect_state(s, "later", "Pending DevicesExhausted");
    trace_forget(s);
}

static void gang_ends_stopping(struct scenario *s)
{
    gang_stops(s, "a");
    claim_freed(s, "a-0-one");
    claim_freed(s, "a-1-one");
}

/* NoExecute under a gang stops all of it, with the cause in annotation, Event and Admission; it
 * starts again on what is healthy, before those that came later. */
static void device_taint_noexecute_stops_the_gang_whole_and_once(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    given_pair(s, "n1", TAINTED("NoExecute"));
    expect_state(s, "a", "Suspending WaitingForTermination");
    assert_non_null(strstr(
        string_map_get(&scenario_job(s, "a")->meta.annotations, "tallyman.dev/suspended").ptr,
        "\"cause\":\"DeviceUnhealthy\""));
    assert_non_null(strstr(trace_text(s), "a ! Warning DeviceUnhealthy: device "
                                          "gpu.example.com/n1/g1 has taint broken (NoExecute), "
                                          "which the request for it doesn't tolerate; the gang "
                                          "stops whole, keeps its place"));
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
    check_str(admission->status.explanation->eviction->rule, "DeviceUnhealthy");
    check_i64(admission->status.evictions.value, 1);
    gang_ends_stopping(s);
    expect_state(s, "a", "Admitted");
    gang_starts(s, "a", "n2 n2");
    pod_claims(s, "a-0", "one", "n2/g0");
    pod_claims(s, "a-1", "one", "n2/g1");
    expect_state(s, "a", "Running");
    at(s, 3600000);
    expect_state(s, "a", "Running");
    check_i64(
        ((const struct admission *)scenario_object(s, KIND_ADMISSION, "a"))->status.evictions.value,
        1);
}

/* Told before it is written, it would be counted again after a crash in between. */
static void eviction_is_told_once_it_is_written(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    writes_are_manual(s, true);
    given_pair(s, "n1", TAINTED("NoExecute"));
    expect_state(s, "a", "Suspending WaitingForTermination");
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
    assert_false(admission->status.evictions.is_set);
    write_ok(s, "a", true);
    writes_are_manual(s, false);
    gang_ends_stopping(s);
    admission = scenario_object(s, KIND_ADMISSION, "a");
    check_i64(admission->status.evictions.value, 1);
}

/* It is as old as it was: those that came later stay behind it. */
static void stopped_gang_keeps_its_place(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    given_queue(s, "q", "gpu.example.com=2");
    given_job(s, "small", "q", "pods=2 template=one");
    expect_state(s, "small", "Pending QuotaExhausted");
    at(s, 20000);
    given_pair(s, "n1", TAINTED("NoExecute"));
    gang_ends_stopping(s);
    /* What it left was taken while its own Job was being put back. */
    expect_state(s, "small", "Admitted");
    gang_starts(s, "small", "n2 n2");
    given_job(s, "small-2", "q", "pods=2 template=one created=15000");
    job_finishes(s, "small");
    expect_state(s, "a", "Admitted");
    expect_state(s, "small-2", "Pending QuotaExhausted");
}

static void device_taint_noschedule_lets_it_run(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    given_pair(s, "n1", TAINTED("NoSchedule"));
    expect_state(s, "a", "Running");
}

static void rule_with_noexecute_stops_it(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    given_json(s, KIND_DEVICE_TAINT_RULE,
               "{\"metadata\":{\"name\":\"r\"},\"spec\":{\"deviceSelector\":{\"pool\":\"n1\"},"
               "\"taint\":{\"key\":\"service\",\"effect\":\"NoExecute\"}}}");
    expect_state(s, "a", "Suspending WaitingForTermination");
    gang_ends_stopping(s);
    expect_state(s, "a", "Admitted");
    gang_starts(s, "a", "n2 n2");
    expect_state(s, "a", "Running");
}

/* The claim's own tolerations count as they were when it was allocated; one with seconds counts
 * from when the taint came. */
static void toleration_with_seconds_ends_after_them(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    struct resource_claim *claim = scenario_object(s, KIND_RESOURCE_CLAIM, "a-1-one");
    static struct toleration tolerations[1];
    tolerations[0] = (struct toleration){.key = STR("broken"),
                                         .op = STR("Exists"),
                                         .effect = STR("NoExecute"),
                                         .toleration_seconds = {true, 60}};
    claim->status.allocation->devices.results.items[0].tolerations =
        (struct toleration_list){tolerations, 1};
    object_changed(s, KIND_RESOURCE_CLAIM, "a-1-one");
    given_pair(s, "n1",
               ",\"taints\":[{\"key\":\"broken\",\"effect\":\"NoExecute\",\"timeAdded\":"
               "\"2026-11-30T12:00:10Z\"}]");
    expect_state(s, "a", "Running");
    at(s, 69000);
    expect_state(s, "a", "Running");
    at(s, 70000);
    expect_state(s, "a", "Suspending WaitingForTermination");
}

/* A node's NoExecute taint; what its pods tolerate, and Kubernetes' own taints of a node that isn't
 * ready, leave it alone. */
static void node_taint_noexecute_stops_it(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    given_node(s, "n1", "cpu=16 taint=node.kubernetes.io/not-ready:NoExecute");
    expect_state(s, "a", "Running");
    given_node(s, "n1", "cpu=16 taint=maintenance:NoSchedule");
    expect_state(s, "a", "Running");
    given_node(s, "n2", "cpu=16 taint=maintenance:NoExecute");
    expect_state(s, "a", "Running");
    given_node(s, "n2", "cpu=16");
    given_node(s, "n1", "cpu=16 taint=maintenance:NoExecute");
    expect_state(s, "a", "Suspending WaitingForTermination");
    assert_non_null(strstr(trace_text(s), "a ! Warning NodeUnhealthy: node n1 has taint "
                                          "maintenance (NoExecute)"));
    gang_ends_stopping(s);
    expect_state(s, "a", "Admitted");
}

static void tolerated_node_taint_leaves_it_alone(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=8");
    given_job(s, "a", "q", "pods=2 cpu=1 toleration=maintenance");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    given_node(s, "n1", "cpu=16 taint=maintenance:NoExecute");
    expect_state(s, "a", "Running");
}

static void pod_reports(struct scenario *s, const char *name, const char *resource, const char *id,
                        const char *health)
{
    static struct resource_health device[4];
    static struct resource_status resources[4];
    static struct container_status containers[4];
    static int used;
    int i = used++ % 4;
    device[i] =
        (struct resource_health){.resource_id = str_from_c(id), .health = str_from_c(health)};
    resources[i] =
        (struct resource_status){.name = str_from_c(resource), .resources = {&device[i], 1}};
    containers[i] = (struct container_status){.name = STR("main"),
                                              .allocated_resources_status = {&resources[i], 1}};
    struct pod *pod = scenario_object(s, KIND_POD, name);
    pod->status.container_statuses = (struct container_status_list){&containers[i], 1};
    object_changed(s, KIND_POD, name);
}

/* The kubelet says so in the pod's status (allocatedResourcesStatus), be it a claim's device or a
 * device plugin's. */
static void device_that_is_reported_unhealthy_stops_it(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_reports(s, "a-1", "claim:c-one/gpu", "gpu.example.com/n1/g1", "Unknown");
    expect_state(s, "a", "Running");
    pod_reports(s, "a-1", "claim:c-one/gpu", "gpu.example.com/n1/g1", "Unhealthy");
    expect_state(s, "a", "Suspending WaitingForTermination");
    assert_non_null(strstr(trace_text(s), "a ! Warning DeviceUnhealthy: device "
                                          "gpu.example.com/n1/g1 is reported Unhealthy on node "
                                          "n1"));
}

/* A named claim that has such a device already keeps it: a gang that names it would be stopped
 * again. */
static void claim_with_an_ill_device_is_waited_for(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_pair(s, "n1", TAINTED("NoExecute"));
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_claim(s, "c", CLASS, 1);
    claim_allocated(s, "c", "n1/g1");
    given_queue(s, "q", "gpu.example.com=8 cpu=8");
    given_job(s, "a", "q", "pods=1 cpu=1 claim=c");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    expect_message(s, "a",
                   "ResourceClaim ml/c is allocated: device gpu.example.com/n1/g1 has taint "
                   "broken (NoExecute)");
    given_pair(s, "n1", "");
    expect_state(s, "a", "Admitted");
}

/* A second incident of the same kind soon after the first: its next start is put off. */
static void gang_that_stops_again_and_again_backs_off(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    job_deleted_now(s, "later");
    given_node(s, "n3", "cpu=16");
    given_pair(s, "n3", "");
    given_pair(s, "n1", TAINTED("NoExecute"));
    gang_ends_stopping(s);
    gang_starts(s, "a", "n2 n2");
    pod_claims(s, "a-0", "one", "n2/g0");
    pod_claims(s, "a-1", "one", "n2/g1");
    expect_state(s, "a", "Running");
    given_pair(s, "n2", TAINTED("NoExecute"));
    gang_ends_stopping(s);
    expect_state(s, "a", "Pending Backoff");
    expect_message(s, "a", "became unhealthy, twice within ten minutes");
    at(s, 80000);
    expect_state(s, "a", "Admitted");
}

/* After a restart the incident is still there, and the gang is stopped once. */
static void incident_is_seen_after_a_restart(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    writes_are_manual(s, true);
    given_pair(s, "n1", TAINTED("NoExecute"));
    writes_are_manual(s, false);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Suspending WaitingForTermination");
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Suspending WaitingForTermination");
    gang_ends_stopping(s);
    expect_state(s, "a", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(device_taint_noexecute_stops_the_gang_whole_and_once),
        scenario_test(eviction_is_told_once_it_is_written),
        scenario_test(stopped_gang_keeps_its_place),
        scenario_test(device_taint_noschedule_lets_it_run),
        scenario_test(rule_with_noexecute_stops_it),
        scenario_test(toleration_with_seconds_ends_after_them),
        scenario_test(node_taint_noexecute_stops_it),
        scenario_test(tolerated_node_taint_leaves_it_alone),
        scenario_test(device_that_is_reported_unhealthy_stops_it),
        scenario_test(claim_with_an_ill_device_is_waited_for),
        scenario_test(gang_that_stops_again_and_again_backs_off),
        scenario_test(incident_is_seen_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
