/* A gang that can save its work is asked to before it is stopped for another: it stops when it has
 * saved or is out of grace, whichever is first, and resumes later in its old place. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define GRACE "tallyman.dev/checkpoint-grace"
#define SAVED "tallyman.dev/last-checkpoint"
#define ASKED "tallyman.dev/checkpoint-request"

static const char *annotation(struct scenario *s, const char *job, const char *key)
{
    struct str value = string_map_get(&scenario_job(s, job)->meta.annotations, key);
    return str_is_set(value) ? value.ptr : "";
}

/* A queue of 4 that `low`, whole and with a grace of 60 s, fills; `high` wants it all. */
static void given_low(struct scenario *s)
{
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n", "cpu=4");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "low", "q", "pods=4 cpu=1 priority=low created=0");
    job_annotated(s, "low", GRACE, "60s");
    scenario_start(s);
    gang_starts(s, "low", "n n n n");
    expect_state(s, "low", "Running");
    at(s, 10000);
}

static void given_both(struct scenario *s)
{
    given_low(s);
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high created=10000");
}

static void it_is_asked_and_stops_when_it_has_saved(void **state)
{
    struct scenario *s = *state;
    given_both(s);
    expect_state(s, "low", "Running CheckpointRequested");
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_message(s, "high",
                   "1 gang that makes room for it is to stop; 1 runs on for a checkpoint first");
    assert_string_equal(annotation(s, "low", ASKED), "2026-11-30T12:00:10Z");
    at(s, 30000);
    expect_state(s, "low", "Running CheckpointRequested");
    job_annotated(s, "low", SAVED, "2026-11-30T12:00:09Z"); /* before it was asked */
    expect_state(s, "low", "Running CheckpointRequested");
    job_annotated(s, "low", SAVED, "2026-11-30T12:00:25Z");
    expect_state(s, "low", "Suspending WaitingForTermination");
    expect_message(s, "high", "1 gang that makes room for it is stopping");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    assert_string_equal(annotation(s, "low", ASKED), "");
}

static const char *mark(struct scenario *s, const char *pod)
{
    const struct pod *object = scenario_object(s, KIND_POD, pod);
    struct str value = string_map_get(&object->meta.annotations, ASKED);
    return str_is_set(value) ? value.ptr : "";
}

/* Through a volume they read it without any rights. */
static void its_pods_have_the_request_too(void **state)
{
    struct scenario *s = *state;
    given_both(s);
    assert_string_equal(mark(s, "low-0"), "2026-11-30T12:00:10Z");
    assert_string_equal(mark(s, "low-3"), "2026-11-30T12:00:10Z");
    job_deleted_now(s, "high");
    assert_string_equal(mark(s, "low-0"), "");
    assert_string_equal(mark(s, "low-3"), "");
}

static void it_stops_when_it_is_out_of_grace(void **state)
{
    struct scenario *s = *state;
    given_both(s);
    at(s, 69000);
    expect_state(s, "low", "Running CheckpointRequested");
    at(s, 70000);
    expect_state(s, "low", "Suspending WaitingForTermination");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
}

static void it_resumes_in_its_old_place(void **state)
{
    struct scenario *s = *state;
    given_both(s);
    given_job(s, "later", "q", "pods=4 cpu=1 priority=low created=500");
    job_annotated(s, "low", SAVED, "2026-11-30T12:00:10Z");
    gang_stops(s, "low");
    gang_starts(s, "high", "n n n n");
    job_finishes(s, "high");
    expect_state(s, "low", "Admitted");
    expect_state(s, "later", "Pending QuotaExhausted");
    gang_starts(s, "low", "n n n n");
    expect_state(s, "low", "Running");
}

/* Its grace begins when it is asked again. */
static void a_request_that_is_refused_is_made_again(void **state)
{
    struct scenario *s = *state;
    given_low(s);
    writes_are_manual(s, true);
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high created=10000");
    write_refused(s, "low", "no");
    assert_non_null(strstr(trace_text(s), "refused to ask for a checkpoint of the Job: no"));
    at(s, 15000);
    write_ok(s, "low", true);
    writes_are_manual(s, false);
    at(s, 74999);
    expect_state(s, "low", "Running CheckpointRequested");
    at(s, 75000);
    expect_state(s, "low", "Suspending WaitingForTermination");
}

static void the_request_goes_when_nobody_waits_for_it(void **state)
{
    struct scenario *s = *state;
    given_both(s);
    job_deleted_now(s, "high");
    expect_state(s, "low", "Running");
    assert_string_equal(annotation(s, "low", ASKED), "");
    at(s, 200000);
    expect_state(s, "low", "Running");
}

static void the_reserved_gang_waits_for_the_grace_and_then_some(void **state)
{
    struct scenario *s = *state;
    given_both(s);
    job_annotated(s, "low", GRACE, "59m");
    at(s, 58 * 60 * 1000);
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "low", "Running CheckpointRequested");
}

static void a_restart_takes_it_up(void **state)
{
    struct scenario *s = *state;
    given_both(s);
    at(s, 20000);
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "low", "Running CheckpointRequested");
    assert_string_equal(annotation(s, "low", ASKED), "2026-11-30T12:00:10Z");
    at(s, 69000);
    expect_state(s, "low", "Running CheckpointRequested");
    at(s, 70000);
    expect_state(s, "low", "Suspending WaitingForTermination");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
}

static void a_restart_takes_back_what_nobody_waits_for(void **state)
{
    struct scenario *s = *state;
    given_both(s);
    writes_are_manual(s, true);
    job_deleted_now(s, "high");
    writes_are_manual(s, false);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "low", "Running");
    assert_string_equal(annotation(s, "low", ASKED), "");
}

/* The request names its gang's Job by uid: another one of that name is another gang. */
static void a_request_is_no_other_gangs_of_that_name(void **state)
{
    struct scenario *s = *state;
    char expected[64];
    given_both(s);
    (void)snprintf(expected, sizeof(expected), "ml/high/" STR_FMT,
                   STR_ARG(scenario_job(s, "high")->meta.uid));
    assert_string_equal(annotation(s, "low", "tallyman.dev/checkpoint-for"), expected);
    writes_are_manual(s, true);
    job_recreated(s, "high", "q", "pods=4 cpu=1 priority=low created=11000");
    writes_are_manual(s, false);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "high", "Pending QuotaExhausted");
    expect_state(s, "low", "Running");
    assert_string_equal(annotation(s, "low", ASKED), "");
}

/* As an older version has written it. */
static void a_request_without_a_uid_is_whose_name_it_has(void **state)
{
    struct scenario *s = *state;
    given_both(s);
    job_annotated(s, "low", "tallyman.dev/checkpoint-for", "ml/high");
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "low", "Running CheckpointRequested");
}

static void a_request_that_conflicts_is_made_again(void **state)
{
    struct scenario *s = *state;
    given_both(s);
    job_deleted_now(s, "high");
    writes_are_manual(s, true);
    given_job(s, "high2", "q", "pods=4 cpu=1 priority=high created=11000");
    job_annotated(s, "low", "example.com/x", "y");
    write_conflict(s, "low");
    assert_true(write_is_out(s, "low"));
    write_ok(s, "low", true);
    writes_are_manual(s, false);
    expect_state(s, "low", "Running CheckpointRequested");
    assert_string_equal(annotation(s, "low", ASKED), "2026-11-30T12:00:10Z");
}

static void no_grace_no_request(void **state)
{
    struct scenario *s = *state;
    given_both(s);
    job_deleted_now(s, "high");
    job_annotated(s, "low", GRACE, "0s");
    given_job(s, "high2", "q", "pods=4 cpu=1 priority=high created=11000");
    expect_state(s, "low", "Suspending WaitingForTermination");
}

/* What isn't whole has nothing to save. */
static void a_gang_that_is_not_whole_is_not_asked(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n", "cpu=4");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "low", "q", "pods=4 cpu=1 priority=low created=0");
    job_annotated(s, "low", GRACE, "60s");
    scenario_start(s);
    pods_appear(s, "low", 4);
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high created=10");
    expect_state(s, "low", "Suspending WaitingForTermination");
}

static void the_device_of_one_that_was_asked_goes_to_the_other(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_node(s, "n", "cpu=8");
    given_devices(s, "n", "gpu-0");
    given_template(s, "one", "gpu.example.com", 1);
    given_queue(s, "q", "cpu=8 gpu.example.com=1 within=LowerPriority");
    given_job(s, "low", "q", "pods=1 cpu=1 template=one priority=low created=0");
    job_annotated(s, "low", GRACE, "60s");
    scenario_start(s);
    gang_starts(s, "low", "n");
    pod_claims(s, "low-0", "one", "n/gpu-0");
    at(s, 10000);
    given_job(s, "high", "q", "pods=1 cpu=1 template=one priority=high created=10000");
    expect_state(s, "low", "Running CheckpointRequested");
    job_annotated(s, "low", SAVED, "2026-11-30T12:00:10Z");
    expect_state(s, "low", "Suspending WaitingForTermination");
    gang_stops(s, "low");
    expect_state(s, "low", "Pending QuotaExhausted");
}

static void one_that_was_asked_and_ends_by_itself_makes_room(void **state)
{
    struct scenario *s = *state;
    given_both(s);
    job_finishes(s, "low");
    expect_state(s, "high", "Admitted");
}

static void of_two_only_the_one_with_grace_is_asked(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n", "cpu=4");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "a", "q", "pods=2 cpu=1 priority=low created=0");
    given_job(s, "b", "q", "pods=2 cpu=1 priority=low created=1");
    job_annotated(s, "a", GRACE, "60s");
    scenario_start(s);
    gang_starts(s, "a", "n n");
    gang_starts(s, "b", "n n");
    at(s, 10000);
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high created=10000");
    expect_state(s, "a", "Running CheckpointRequested");
    expect_state(s, "b", "Suspending WaitingForTermination");
    gang_stops(s, "b");
    expect_state(s, "high", "Reserved WaitingForVictims");
    at(s, 70000);
    gang_stops(s, "a");
    expect_state(s, "high", "Admitted");
}

/* So long and no longer others wait for it. */
static void a_grace_beyond_an_hour_is_an_hour(void **state)
{
    struct scenario *s = *state;
    given_low(s);
    job_annotated(s, "low", GRACE, "2h");
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high created=10000");
    at(s, 10000 + 3599000);
    expect_state(s, "low", "Running CheckpointRequested");
    at(s, 10000 + 3600000);
    expect_state(s, "low", "Suspending WaitingForTermination");
}

/* Nothing can be saved any more by a pod that has ended, nor by one that is about to. */
static void pods_that_end_are_not_asked(void **state)
{
    struct scenario *s = *state;
    given_low(s);
    given_queue(s, "q", "cpu=2 within=LowerPriority");
    pod_succeeds(s, "low-0");
    pod_terminates(s, "low-1");
    given_job(s, "high", "q", "pods=2 cpu=1 priority=high created=10000");
    expect_state(s, "low", "Running CheckpointRequested");
    assert_string_equal(mark(s, "low-0"), "");
    assert_string_equal(mark(s, "low-1"), "");
    assert_string_equal(mark(s, "low-2"), "2026-11-30T12:00:10Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(it_is_asked_and_stops_when_it_has_saved),
        scenario_test(its_pods_have_the_request_too),
        scenario_test(it_stops_when_it_is_out_of_grace),
        scenario_test(it_resumes_in_its_old_place),
        scenario_test(a_request_that_is_refused_is_made_again),
        scenario_test(the_request_goes_when_nobody_waits_for_it),
        scenario_test(the_reserved_gang_waits_for_the_grace_and_then_some),
        scenario_test(a_restart_takes_it_up),
        scenario_test(a_restart_takes_back_what_nobody_waits_for),
        scenario_test(a_request_is_no_other_gangs_of_that_name),
        scenario_test(a_request_without_a_uid_is_whose_name_it_has),
        scenario_test(a_request_that_conflicts_is_made_again),
        scenario_test(no_grace_no_request),
        scenario_test(a_gang_that_is_not_whole_is_not_asked),
        scenario_test(the_device_of_one_that_was_asked_goes_to_the_other),
        scenario_test(one_that_was_asked_and_ends_by_itself_makes_room),
        scenario_test(of_two_only_the_one_with_grace_is_asked),
        scenario_test(a_grace_beyond_an_hour_is_an_hour),
        scenario_test(pods_that_end_are_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
