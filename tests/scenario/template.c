/* What an admission puts into the Job's template, what is put back, and what the size is. */
#include "support/check.h"
#include "support/scenario.h"

static void flavor_steers_the_pods_and_is_taken_out_again(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 label=kind:h100 label=zone:a taint=gpu:NoSchedule");
    given_flavor(s, "h100", "label=kind:h100 toleration=gpu");
    given_queue(s, "q", "flavor=h100 cpu=8 timeout=1m");
    given_job(s, "a", "q", "pods=2 cpu=1 selector=zone:a toleration=mine");
    expect_trace(s, "[   0] a: admit 2 pods of queue q, cpu 1000m/pod on h100; selector kind=h100; "
                    "toleration mine; toleration gpu\n"
                    "[   0] a > Admitted 0/2 on h100\n"
                    "[   0] q: finalizer on\n"
                    "[   0] a ! Admitted: admitted on queue q: 2 pods, cpu=2\n");
    const struct pod_spec *spec = &scenario_job(s, "a")->spec.pod_template.spec;
    check_str(string_map_get(&spec->node_selector, "zone"), "a");
    check_str(string_map_get(&spec->node_selector, "kind"), "h100");
    assert_int_equal(spec->tolerations.count, 2);
    gang_starts(s, "a", "n1");
    at(s, 60000);
    trace_forget(s);
    gang_stops(s, "a");
    expect_trace(s, "[60000] a: restore; selector -kind; toleration mine\n"
                    "[60000] a > Pending Backoff…\n");
    check_str(string_map_get(&spec->node_selector, "zone"), "a");
    check_str(string_map_get(&spec->node_selector, "kind"), NULL);
    assert_int_equal(spec->tolerations.count, 1);
    const struct string_map *notes = &scenario_job(s, "a")->meta.annotations;
    check_str(string_map_get(notes, "tallyman.dev/admission"), NULL);
    check_str(string_map_get(notes, "tallyman.dev/suspended"), NULL);
    at(s, 125000);
    expect_state(s, "a", "Admitted"); /* and the same again */
    assert_int_equal(spec->tolerations.count, 2);
}

/* The injected selector is no demand of the user's: after a restart it is still taken out. */
static void restore_knows_the_users_template_after_a_restart(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 label=kind:h100");
    given_flavor(s, "h100", "label=kind:h100 toleration=gpu");
    given_queue(s, "q", "flavor=h100 cpu=8 timeout=1m");
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1");
    at(s, 60000);
    restart(s, WITH_ADMISSIONS);
    gang_stops(s, "a");
    const struct pod_spec *spec = &scenario_job(s, "a")->spec.pod_template.spec;
    assert_int_equal(spec->node_selector.count, 0);
    assert_int_equal(spec->tolerations.count, 0);
}

static void first_flavor_with_quota_and_room_is_taken(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=2 label=kind:a");
    given_node(s, "n2", "cpu=8 label=kind:b");
    given_flavor(s, "a", "label=kind:a");
    given_flavor(s, "b", "label=kind:b");
    given_queue(s, "q", "flavor=a cpu=8 flavor=b cpu=8");
    given_job(s, "full-nodes", "q", "pods=1 cpu=4");
    given_job(s, "chosen", "q", "pods=1 cpu=1 selector=kind:b");
    given_job(s, "neither", "q", "pods=1 cpu=1 selector=kind:c");
    expect_trace(s, "[   0] full-nodes: admit 1 pods of queue q, cpu 4000m/pod on b; selector "
                    "kind=b\n"
                    "[   0] chosen: admit 1 pods of queue q, cpu 1000m/pod on b; selector kind=b\n"
                    "[   0] full-nodes > Admitted 0/1 on b\n"
                    "[   0] chosen > Admitted 0/1 on b\n"
                    "[   0] neither > Pending #1 NoMatchingFlavor: the pods' nodeSelector…\n"
                    "[   0] q: finalizer on\n"
                    "[   0] full-nodes ! Admitted: …\n"
                    "[   0] chosen ! Admitted: …\n");
}

static void missing_flavor_is_named_and_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8 label=kind:a");
    given_queue(s, "q", "flavor=a cpu=8");
    given_job(s, "train", "q", "pods=1 cpu=1");
    expect_state(s, "train", "Pending MissingReference");
    expect_message(s, "train", "ResourceFlavor a doesn't exist");
    at(s, 1000);
    given_flavor(s, "a", "label=kind:a");
    expect_state(s, "train", "Admitted");
}

static void runtime_class_adds_overhead_and_its_change_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=2");
    given_job(s, "train", "q", "pods=1 cpu=1 runtime=kata");
    expect_state(s, "train", "Pending MissingReference");
    expect_message(s, "train", "RuntimeClass kata doesn't exist");
    given_json(s, KIND_RUNTIME_CLASS,
               "{\"metadata\":{\"name\":\"kata\"},\"handler\":\"kata\",\"overhead\":{\"podFixed\":{"
               "\"cpu\":\"1500m\"}}}");
    expect_state(s, "train", "Pending NeverFits");
    at(s, 20000);
    expect_message(s, "train", "needs 2500m cpu");
    given_json(s, KIND_RUNTIME_CLASS,
               "{\"metadata\":{\"name\":\"kata\"},\"handler\":\"kata\",\"overhead\":{\"podFixed\":{"
               "\"cpu\":\"500m\"}}}");
    expect_state(s, "train", "Admitted");
    expect_used(s, "q", "cpu=1500m");
}

/* -- the field that disappears ------------------------------------------------------------------
 */

static void dropped_field_is_read_from_last_applied_and_told_once(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=3");
    given_queue(s, "q", "cpu=8");
    given_job(s, "a", "q", "pods=6 cpu=1");
    job_annotated(s, "a", "kubectl.kubernetes.io/last-applied-configuration",
                  "{\"spec\":{\"scheduling\":{\"schedulingPolicy\":{\"gang\":{\"minCount\":4}}}}}");
    expect_state(s, "a", "Pending NeverFits");
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
    check_i64(admission->spec.pod_sets.items[0].min_count.value, 4);
    assert_int_equal(counts_take(s).events, 1);
    object_changed(s, KIND_JOB, "a");
    restart(s, WITH_ADMISSIONS);
    assert_int_equal(counts_take(s).events, 0);
    given_node(s, "n1", "cpu=4");
    expect_state(s, "a", "Admitted");
}

static void live_field_goes_before_the_annotation(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=3");
    given_queue(s, "q", "cpu=8");
    given_job(s, "a", "q", "pods=6 cpu=1 min=3");
    expect_state(s, "a", "Admitted");
    given_job(s, "b", "q", "pods=2 cpu=1 min=1");
    struct job *b = scenario_job(s, "b");
    struct gang_policy gang = {.min_count = {true, 2}};
    struct scheduling_policy policy = {.gang = &gang};
    struct job_scheduling scheduling = {.scheduling_policy = &policy};
    b->spec.scheduling = &scheduling;
    object_changed(s, KIND_JOB, "b");
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "b");
    check_i64(admission->spec.pod_sets.items[0].min_count.value, 2);
    gang.min_count.value = 1; /* the one mutable part, changed while it waits */
    object_changed(s, KIND_JOB, "b");
    admission = scenario_object(s, KIND_ADMISSION, "b");
    check_i64(admission->spec.pod_sets.items[0].min_count.value, 1);
    b->spec.scheduling = NULL;
    object_changed(s, KIND_JOB, "b");
}

static void impossible_min_count_is_invalid_and_corrected(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=8");
    given_job(s, "a", "q", "pods=2 cpu=1 min=3");
    expect_state(s, "a", "Pending Invalid");
    expect_message(s, "a", "tallyman.dev/min-count is 3, but spec.parallelism is 2");
    job_annotated(s, "a", "tallyman.dev/min-count", "zero");
    expect_state(s, "a", "Pending Invalid");
    job_annotated(s, "a", "tallyman.dev/min-count", "2");
    expect_state(s, "a", "Admitted");
}

/* While it is being written, the flavor becomes another: what is written is what was decided. */
static void write_that_is_out_is_of_the_flavor_as_it_was(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_json(s, KIND_RESOURCE_FLAVOR,
               "{\"metadata\":{\"name\":\"cards\"},\"spec\":{\"tolerations\":[{\"key\":\"k\","
               "\"operator\":\"Exists\",\"effect\":\"PreferNoSchedule\"}]}}");
    given_queue(s, "q", "flavor=cards cpu=8");
    scenario_start(s);
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=2 cpu=1");
    given_flavor(s, "cards", "toleration=other");
    write_ok(s, "a", true);
    const struct pod_spec *spec = &scenario_job(s, "a")->spec.pod_template.spec;
    assert_int_equal(spec->tolerations.count, 1);
    check_str(spec->tolerations.items[0].effect, "PreferNoSchedule");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(flavor_steers_the_pods_and_is_taken_out_again),
        scenario_test(restore_knows_the_users_template_after_a_restart),
        scenario_test(first_flavor_with_quota_and_room_is_taken),
        scenario_test(missing_flavor_is_named_and_wakes),
        scenario_test(runtime_class_adds_overhead_and_its_change_wakes),
        scenario_test(dropped_field_is_read_from_last_applied_and_told_once),
        scenario_test(live_field_goes_before_the_annotation),
        scenario_test(impossible_min_count_is_invalid_and_corrected),
        scenario_test(write_that_is_out_is_of_the_flavor_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
