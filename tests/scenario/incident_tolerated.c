/* What a running gang tolerates for a time, what its flavor tolerates for it, and which ailing
 * devices a flavor's status lists and forgets. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS  "gpu.example.com"
#define MINUTE INT64_C(60000)
#define DAY    INT64_C(86400000)

/* The scenario begins at 2026-11-30T12:00:00Z. */
static void node_is_tainted(struct scenario *s, const char *taint)
{
    char json[600];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"n1\",\"labels\":{\"kubernetes.io/hostname\":\"n1\"}},"
                   "\"spec\":{\"taints\":[%s]},\"status\":{\"allocatable\":{\"cpu\":\"8\","
                   "\"memory\":\"8Gi\",\"pods\":\"20\"},\"conditions\":[{\"type\":\"Ready\","
                   "\"status\":\"True\"}]}}",
                   taint);
    given_json(s, KIND_NODE, json);
}

#define TAINT "{\"key\":\"repair\",\"effect\":\"NoExecute\",\"timeAdded\":\"2026-11-30T12:01:00Z\"}"
#define POD                                                                                        \
    "{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"main\",\"resources\":{\"requests\":" \
    "{\"cpu\":\"1\"}}}],\"tolerations\":[%s]}"

static void given_running_until(struct scenario *s, const char *tolerations, const char *taints)
{
    char spec[500];
    (void)snprintf(spec, sizeof(spec), POD, tolerations);
    node_is_tainted(s, "");
    given_queue(s, "q", "cpu=8");
    given_job_spec(s, "a", "q", "pods=2", spec);
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    expect_state(s, "a", "Running");
    at(s, MINUTE);
    node_is_tainted(s, taints);
}

static void given_running(struct scenario *s, const char *tolerations)
{
    given_running_until(s, tolerations, TAINT);
}

#define FIVE_MINUTES                                                                               \
    "{\"key\":\"repair\",\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":"  \
    "300}"

static void a_node_taint_tolerated_for_a_time_stops_it_then(void **state)
{
    struct scenario *s = *state;
    given_running(s, FIVE_MINUTES);
    expect_state(s, "a", "Running");
    at(s, 6 * MINUTE - 1000);
    expect_state(s, "a", "Running");
    at(s, 6 * MINUTE);
    expect_state(s, "a", "Suspending WaitingForTermination");
}

static void a_node_taint_that_goes_in_time_stops_nobody(void **state)
{
    struct scenario *s = *state;
    given_running(s, FIVE_MINUTES);
    at(s, 4 * MINUTE);
    node_is_tainted(s, "");
    at(s, 60 * MINUTE);
    expect_state(s, "a", "Running");
}

/* Of two tolerations the one without an end counts, wherever it stands. */
static void a_toleration_without_an_end_is_for_ever(void **state)
{
    struct scenario *s = *state;
    given_running(s, FIVE_MINUTES ",{\"key\":\"other\",\"operator\":\"Exists\"},"
                                  "{\"operator\":\"Exists\"}");
    at(s, 600 * MINUTE);
    expect_state(s, "a", "Running");
}

static void what_its_flavor_tolerates_is_tolerated(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "default", "toleration=repair");
    given_running(s, "");
    at(s, 600 * MINUTE);
    expect_state(s, "a", "Running");
}

static void a_taint_that_nobody_tolerates_stops_it_at_once(void **state)
{
    struct scenario *s = *state;
    given_running(s, "{\"key\":\"other\",\"operator\":\"Exists\"}");
    expect_state(s, "a", "Suspending WaitingForTermination");
}

/* Every pod tolerates these for five minutes, and whether the node comes back is kube's matter. */
static void taints_of_a_node_that_is_away_stop_nobody(void **state)
{
    (void)state;
    static const char *const keys[] = {"not-ready", "unreachable"};
    for (size_t i = 0; i < 2; i++) {
        struct scenario *s = scenario_new();
        char taint[200];
        (void)snprintf(taint, sizeof(taint),
                       "{\"key\":\"node.kubernetes.io/%s\",\"effect\":\"NoExecute\","
                       "\"timeAdded\":\"2026-11-30T12:01:00Z\"}",
                       keys[i]);
        given_running_until(s, "", taint);
        at(s, 3 * MINUTE);
        expect_state(s, "a", "Running");
        scenario_free(s);
    }
}

/* Nobody knows since when it is there, so its time is up. */
static void a_taint_without_a_time_is_tolerated_for_none(void **state)
{
    struct scenario *s = *state;
    given_running_until(s, FIVE_MINUTES, "{\"key\":\"repair\",\"effect\":\"NoExecute\"}");
    expect_state(s, "a", "Suspending WaitingForTermination");
}

/* A taint that keeps new pods off is of no matter to those that run, beside one that they tolerate.
 */
static void only_taints_that_evict_are_looked_at(void **state)
{
    struct scenario *s = *state;
    given_running_until(s, "{\"key\":\"repair\",\"operator\":\"Exists\"}",
                        "{\"key\":\"full\",\"effect\":\"NoSchedule\"}," TAINT);
    at(s, 10 * MINUTE);
    expect_state(s, "a", "Running");
}

/* What a pod tolerates its own set says. */
static void each_set_tolerates_for_itself(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct scenario *s = scenario_new();
        node_is_tainted(s, "");
        given_node(s, "n2", "cpu=8");
        given_queue(s, "q", "cpu=8");
        given_pod_set(s, "a", "workers", "pods=1 cpu=1 toleration=repair");
        given_job(s, "a", "q", "pods=1 cpu=1");
        scenario_start(s);
        gang_starts(s, "a", i == 0 ? "n2" : "n1");
        pod_set_starts(s, "a", "workers", i == 0 ? "n1" : "n2");
        at(s, MINUTE);
        node_is_tainted(s, TAINT);
        expect_state(s, "a", i == 0 ? "Running" : "Suspending WaitingForTermination");
        scenario_free(s);
    }
}

/* Two gangs on one node, each for its own time, whichever comes first. */
static void each_gang_tolerates_for_its_own_time(void **state)
{
    (void)state;
    static const char *const seconds[] = {"600", "300", "900"};
    struct scenario *s = scenario_new();
    node_is_tainted(s, "");
    given_queue(s, "q", "cpu=8");
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        char spec[500];
        char toleration[200];
        (void)snprintf(toleration, sizeof(toleration),
                       "{\"key\":\"repair\",\"operator\":\"Exists\",\"tolerationSeconds\":%s}",
                       seconds[i]);
        (void)snprintf(spec, sizeof(spec), POD, toleration);
        given_job_spec(s, names[i], "q", "pods=1", spec);
    }
    scenario_start(s);
    for (int i = 0; i < 3; i++) {
        gang_starts(s, names[i], "n1");
    }
    at(s, MINUTE);
    node_is_tainted(s, TAINT);
    static const int order[] = {1, 0, 2};
    for (int i = 0; i < 3; i++) {
        const char *name = names[order[i]];
        at(s, (6 + 5 * i) * MINUTE - 1000);
        expect_state(s, name, "Running");
        at(s, (6 + 5 * i) * MINUTE);
        expect_state(s, name, "Suspending WaitingForTermination");
    }
    scenario_free(s);
}

/* The API server refuses to suspend it: that it is tried again counts no second time. */
static void a_stop_that_is_refused_is_counted_once(void **state)
{
    struct scenario *s = *state;
    writes_are_manual(s, false);
    given_running_until(s, "", "");
    writes_are_manual(s, true);
    node_is_tainted(s, TAINT);
    for (int i = 0; i < 3; i++) {
        write_refused(s, "a", "denied by a policy");
        at(s, scenario_now_ms(s) + 2 * MINUTE);
    }
    write_ok(s, "a", true);
    writes_are_manual(s, false);
    gang_stops(s, "a");
    node_is_tainted(s, "");
    expect_state(s, "a", "Admitted"); /* it isn't put off, either */
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
    check_i64(admission->status.evictions.value, 1);
}

/* What a flavor tolerated for its gangs it doesn't any more once it is deleted. */
static void a_flavor_that_is_gone_tolerates_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct scenario *s = scenario_new();
        node_is_tainted(s, "");
        given_flavor(s, "fast", "toleration=repair");
        given_queue(s, "q", "flavor=fast cpu=8");
        given_job(s, "a", "q", "pods=2 cpu=1");
        scenario_start(s);
        gang_starts(s, "a", "n1 n1");
        at(s, MINUTE);
        if (i == 1) {
            scenario_job(s, "a")->spec.pod_template.spec.tolerations.count = 0;
            object_gone(s, KIND_RESOURCE_FLAVOR, "fast");
        }
        node_is_tainted(s, TAINT);
        expect_state(s, "a", i == 0 ? "Running" : "Suspending WaitingForTermination");
        scenario_free(s);
    }
}

/* Stopped for its node a second time, a good while after the first, it isn't put off. */
static void the_second_time_much_later_is_like_the_first(void **state)
{
    struct scenario *s = *state;
    given_running(s, "");
    for (int i = 0; i < 2; i++) {
        expect_state(s, "a", "Suspending WaitingForTermination");
        gang_stops(s, "a");
        expect_state(s, "a", "Pending NoMatchingFlavor");
        node_is_tainted(s, "");
        expect_state(s, "a", "Admitted");
        gang_starts(s, "a", "n1 n1");
        at(s, scenario_now_ms(s) + 20 * MINUTE);
        expect_state(s, "a", "Running");
        node_is_tainted(s, "{\"key\":\"repair\",\"effect\":\"NoExecute\"}");
    }
}

/* -- devices ------------------------------------------------------------------------------------
 */

#define BROKEN ",\"taints\":[{\"key\":\"broken\",\"effect\":\"NoSchedule\"}]"

static void given_slice(struct scenario *s, const char *devices)
{
    char json[700];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"n1-slice\"},\"spec\":{\"driver\":\"gpu.example.com\","
                   "\"nodeName\":\"n1\",\"pool\":{\"name\":\"n1\",\"generation\":1,"
                   "\"resourceSliceCount\":1},\"devices\":[%s]}}",
                   devices);
    given_json(s, KIND_RESOURCE_SLICE, json);
}

static const struct flavor_device_list *ailing(struct scenario *s)
{
    const struct resource_flavor *flavor = scenario_object(s, KIND_RESOURCE_FLAVOR, "default");
    return &flavor->status.devices;
}

static void given_devices_in_repair(struct scenario *s)
{
    given_json(s, KIND_RESOURCE_FLAVOR,
               "{\"metadata\":{\"name\":\"default\"},\"spec\":{\"health\":{\"quarantine\":\"10m\"}}"
               "}");
    given_node(s, "n1", "cpu=16");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_queue(s, "q", "gpu.example.com=8");
    scenario_start(s);
    given_slice(s, "{\"name\":\"g2\"" BROKEN "},{\"name\":\"g0\"},{\"name\":\"g1\"" BROKEN "}");
    at(s, MINUTE);
}

static void ailing_devices_are_listed_by_name(void **state)
{
    struct scenario *s = *state;
    given_devices_in_repair(s);
    assert_int_equal(ailing(s)->count, 2);
    check_str(ailing(s)->items[0].name, "gpu.example.com/n1/g1");
    check_str(ailing(s)->items[1].name, "gpu.example.com/n1/g2");
}

/* A driver that restarts lists nothing for a while: what was broken is still known as broken. One
 * that is away for good is forgotten. */
static void a_device_that_is_gone_is_remembered_for_a_while(void **state)
{
    struct scenario *s = *state;
    given_devices_in_repair(s);
    object_gone(s, KIND_RESOURCE_SLICE, "n1-slice");
    at(s, 2 * MINUTE);
    assert_int_equal(ailing(s)->count, 2);
    at(s, 30 * DAY);
    assert_int_equal(ailing(s)->count, 0);
}

/* While some device evicts: a claim that is gone has none, and one of a device that isn't listed
 * nobody can judge. */
static void claims_that_cannot_be_looked_up_stop_nobody(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_node(s, "n2", "cpu=16");
    given_pair(s, "n1", "");
    given_pair(s, "n2", "");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=8");
    given_job(s, "a", "q", "pods=2 template=one");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    pod_claims(s, "a-0", "one", "n1/g0");
    pod_claims(s, "a-1", "one", "n1/g9");
    object_gone(s, KIND_RESOURCE_CLAIM, "a-0-one");
    given_pair(s, "n2", ",\"taints\":[{\"key\":\"broken\",\"effect\":\"NoExecute\"}]");
    given_pair(s, "n1", ",\"taints\":[{\"key\":\"broken\",\"effect\":\"NoExecute\"}]");
    at(s, MINUTE);
    expect_state(s, "a", "Running");
    pod_claims(s, "a-0", "one", "n1/g1");
    expect_state(s, "a", "Suspending WaitingForTermination");
}

/* -- flavors ------------------------------------------------------------------------------------
 */

static void a_flavor_that_is_deleted_is_missed_until_it_is_back(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 label=pool:a");
    given_flavor(s, "fast", "label=pool:a");
    given_queue(s, "q", "flavor=fast cpu=4");
    given_job(s, "runs", "q", "pods=2 cpu=1 created=0");
    scenario_start(s);
    expect_state(s, "runs", "Admitted");
    object_gone(s, KIND_RESOURCE_FLAVOR, "fast");
    given_job(s, "waits", "q", "pods=2 cpu=1 created=1");
    expect_state(s, "waits", "Pending MissingReference");
    expect_state(s, "runs", "Admitted"); /* what holds it goes on holding it */
    expect_used(s, "q", "cpu=2");
    given_flavor(s, "fast", "label=pool:a");
    expect_state(s, "waits", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(a_node_taint_tolerated_for_a_time_stops_it_then),
        scenario_test(a_node_taint_that_goes_in_time_stops_nobody),
        scenario_test(a_toleration_without_an_end_is_for_ever),
        scenario_test(what_its_flavor_tolerates_is_tolerated),
        scenario_test(a_taint_that_nobody_tolerates_stops_it_at_once),
        cmocka_unit_test(taints_of_a_node_that_is_away_stop_nobody),
        scenario_test(a_taint_without_a_time_is_tolerated_for_none),
        scenario_test(only_taints_that_evict_are_looked_at),
        cmocka_unit_test(each_set_tolerates_for_itself),
        cmocka_unit_test(each_gang_tolerates_for_its_own_time),
        scenario_test(a_stop_that_is_refused_is_counted_once),
        cmocka_unit_test(a_flavor_that_is_gone_tolerates_nothing),
        scenario_test(the_second_time_much_later_is_like_the_first),
        scenario_test(claims_that_cannot_be_looked_up_stop_nobody),
        scenario_test(ailing_devices_are_listed_by_name),
        scenario_test(a_device_that_is_gone_is_remembered_for_a_while),
        scenario_test(a_flavor_that_is_deleted_is_missed_until_it_is_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
