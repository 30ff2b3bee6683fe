/* kube evicts one pod of a gang for a taint while no controller runs: when it comes back the gang
 * stops whole, with that cause, as long as the pod says so itself. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#include "../../controller/core/internal.h"

static void given_running(struct scenario *s)
{
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_queue(s, "q", "cpu=8");
    given_job(s, "a", "q", "pods=2 cpu=2");
    scenario_start(s);
    at(s, 5000);
    gang_starts(s, "a", "n1 n2");
    expect_state(s, "a", "Running");
    at(s, 60000);
    trace_forget(s);
}

/* As taint-eviction does it in front of its DELETE; nobody tells the core. */
static void pod_evicted(struct scenario *s, const char *name, const char *reason)
{
    struct pod *pod = scenario_object(s, KIND_POD, name);
    static struct condition told[2];
    told[0] = (struct condition){.type = STR("Ready"), .status = STR("True")};
    told[1] =
        (struct condition){.type = STR("DisruptionTarget"),
                           .status = STR("True"),
                           .reason = str_from_c(reason),
                           .last_transition_time = {true, SCENARIO_START_MS + scenario_now_ms(s)}};
    pod->status.conditions = (struct condition_list){told, 2};
    pod->meta.deletion_timestamp =
        (struct opt_time){true, SCENARIO_START_MS + scenario_now_ms(s) + 30000};
}

static void pod_ended(struct scenario *s, const char *name)
{
    struct pod *pod = scenario_object(s, KIND_POD, name);
    pod->status.phase = STR("Failed");
}

static void expect_stopped_for(struct scenario *s, const char *cause, const char *why)
{
    expect_state(s, "a", "Suspending WaitingForTermination");
    struct str kept =
        string_map_get(&scenario_job(s, "a")->meta.annotations, "tallyman.dev/suspended");
    assert_non_null(strstr(kept.ptr, cause));
    assert_non_null(strstr(trace_text(s), why));
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
    check_str(admission->status.explanation->eviction->rule, cause);
    check_i64(admission->status.evictions.value, 1);
}

/* The taint is gone again, and the pod still terminates: it says itself why. */
static void pod_that_was_evicted_meanwhile_stops_its_gang(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_evicted(s, "a-1", "DeletionByTaintManager");
    at(s, 70000);
    restart(s, WITH_ADMISSIONS);
    expect_stopped_for(s, "NodeUnhealthy",
                       "a ! Warning NodeUnhealthy: kube has evicted pod ml/a-1 for a taint "
                       "(NoExecute) of its node; the gang stops whole, keeps its place");
    /* And once: the next start is another. */
    gang_stops(s, "a");
    expect_state(s, "a", "Admitted");
    gang_starts(s, "a", "n1 n2");
    at(s, 3600000);
    expect_state(s, "a", "Running");
}

/* It has ended, and what replaces it isn't ready: without the gang's Admission just as well. */
static void pod_that_has_ended_by_it_stops_its_gang(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_evicted(s, "a-1", "DeletionByDeviceTaintManager");
    pod_ended(s, "a-1");
    at(s, 70000);
    restart(s, WITHOUT_ADMISSIONS);
    expect_stopped_for(s, "DeviceUnhealthy", "for a taint (NoExecute) of its device");
}

/* The same as it happens, though the taint itself was never seen: it came and went. */
static void taint_that_nobody_saw_is_known_by_the_pod(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_evicted(s, "a-1", "DeletionByTaintManager");
    object_changed(s, KIND_POD, "a-1");
    expect_stopped_for(s, "NodeUnhealthy", "kube has evicted pod ml/a-1");
}

/* Its Job has made another pod for it, and the gang is whole: there is nothing left to stop. */
static void gang_that_is_whole_again_runs_on(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_evicted(s, "a-1", "DeletionByTaintManager");
    pod_ended(s, "a-1");
    char json[512];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"a-2\",\"ownerReferences\":[{\"apiVersion\":\"batch/v1\","
             "\"kind\":\"Job\",\"name\":\"a\",\"uid\":\"" STR_FMT "\",\"controller\":true}]},"
             "\"spec\":{\"nodeName\":\"n2\",\"containers\":[{\"name\":\"main\",\"resources\":"
             "{\"requests\":{\"cpu\":\"2\"}}}]},\"status\":{\"phase\":\"Running\","
             "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
             STR_ARG(scenario_job(s, "a")->meta.uid));
    given_json(s, KIND_POD, json);
    at(s, 70000);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Running");
}

/* What was evicted before this start says nothing about it. */
static void pod_of_an_earlier_start_is_no_matter(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_evicted(s, "a-1", "DeletionByTaintManager");
    struct pod *pod = scenario_object(s, KIND_POD, "a-1");
    pod->status.conditions.items[1].last_transition_time.ms = SCENARIO_START_MS - 5000;
    at(s, 70000);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Running");
}

/* Preemption by kube-scheduler, an eviction by the API: podsReadyTimeout sees to it. */
static void other_disruptions_are_waited_out(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_evicted(s, "a-1", "EvictionByEvictionAPI");
    at(s, 70000);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Running");
}

/* A node that is away often comes back: no incident, and its pods' eviction is none either. */
static void eviction_from_a_node_that_is_away_is_waited_out(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    given_node(s, "n2", "cpu=4 ready=False");
    pod_evicted(s, "a-1", "DeletionByTaintManager");
    at(s, 70000);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Running");
}

/* What the pod was to be evicted for has been called off before it came about. */
static void eviction_that_was_called_off_stops_nobody(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_evicted(s, "a-1", "DeletionByTaintManager");
    struct pod *pod = scenario_object(s, KIND_POD, "a-1");
    pod->status.conditions.items[1].status = STR("False");
    pod->meta.deletion_timestamp.is_set = false;
    object_changed(s, KIND_POD, "a-1");
    expect_state(s, "a", "Running");
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "a", "Running");
}

/* However often the pod comes while it terminates, it is one. */
static void evicted_pod_that_comes_again_is_the_same(void **state)
{
    struct scenario *s = *state;
    given_running(s);
    pod_evicted(s, "a-1", "DeletionByTaintManager");
    object_changed(s, KIND_POD, "a-1");
    object_again(s, KIND_POD, "a-1");
    expect_stopped_for(s, "NodeUnhealthy", "kube has evicted pod ml/a-1");
    gang_stops(s, "a");
    assert_int_equal(scenario_core(s)->evicted_pods, 0);
    expect_state(s, "a", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(pod_that_was_evicted_meanwhile_stops_its_gang),
        scenario_test(pod_that_has_ended_by_it_stops_its_gang),
        scenario_test(taint_that_nobody_saw_is_known_by_the_pod),
        scenario_test(gang_that_is_whole_again_runs_on),
        scenario_test(pod_of_an_earlier_start_is_no_matter),
        scenario_test(other_disruptions_are_waited_out),
        scenario_test(eviction_from_a_node_that_is_away_is_waited_out),
        scenario_test(eviction_that_was_called_off_stops_nobody),
        scenario_test(evicted_pod_that_comes_again_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
