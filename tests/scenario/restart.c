/* The controller starts anew: with its objects, with the record alone, listed in any order. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

/* Complete, Failed, running and pending Jobs; the running one is counted before anything is
 * decided, and the finished ones are never touched. */
static void finished_jobs_stay_finished(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=2");
    given_job(s, "ja", "q", "pods=2 cpu=1");
    expect_state(s, "ja", "Admitted");
    gang_starts(s, "ja", "n1 n1");
    job_finishes(s, "ja");
    given_job(s, "jb", "q", "pods=2 cpu=1");
    gang_starts(s, "jb", "n1 n1");
    object_gone(s, KIND_POD, "jb-0");
    object_gone(s, KIND_POD, "jb-1");
    struct condition failed = {.type = STR("Failed"), .status = STR("True")};
    scenario_job(s, "jb")->status.conditions = (struct condition_list){&failed, 1};
    object_changed(s, KIND_JOB, "jb");
    given_job(s, "jc", "q", "pods=2 cpu=1");
    gang_starts(s, "jc", "n1 n1");
    given_job(s, "jd", "q", "pods=2 cpu=1");
    for (uint64_t seed = 0; seed < 10; seed++) {
        listing_order(s, seed);
        (void)counts_take(s);
        restart(s, seed % 2 == 0 ? WITH_ADMISSIONS : WITHOUT_ADMISSIONS);
        assert_int_equal(counts_take(s).job_writes, 0);
        expect_used(s, "q", "cpu=2");
        expect_state(s, "jc", "Running");
        expect_state(s, "jd", "Pending QuotaExhausted");
        assert_true(scenario_job(s, "jd")->spec.suspend.value);
    }
    job_finishes(s, "jc");
    expect_state(s, "jd", "Admitted");
}

/* Nothing new to say: a restart writes nothing. */
static void restart_writes_nothing(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=3 timeout=1m");
    given_job(s, "runs", "q", "pods=2 cpu=1");
    given_job(s, "waits", "q", "pods=2 cpu=1");
    given_job(s, "held", "q", "pods=2 cpu=1 hold=true");
    given_job(s, "short", "q", "pods=1 cpu=1");
    scenario_start(s);
    gang_starts(s, "runs", "n1 n1");
    at(s, 61000);
    gang_stops(s, "short");
    at(s, 90000);
    expect_state(s, "short", "Pending Backoff");
    restart(s, WITH_ADMISSIONS); /* may refresh the figures of who waits */
    const char *before = decisions_text(s);
    for (uint64_t seed = 0; seed < 5; seed++) {
        listing_order(s, seed);
        (void)counts_take(s);
        restart(s, WITH_ADMISSIONS);
        at(s, scenario_now_ms(s) + 1000);
        struct scenario_counts counts = counts_take(s);
        assert_int_equal(counts.job_writes + counts.events, 0);
        assert_int_equal(counts.admission_writes, 0);
        assert_string_equal(decisions_text(s), before);
    }
}

/* The record alone carries the charge, whatever became of templates and classes since. */
static void record_alone_gives_the_same_charges(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0 g1 g2 g3");
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_template(s, "one", "gpu.example.com", 1);
    given_claim(s, "shared", "gpu.example.com", 1);
    given_queue(s, "q", "cpu=16 pods=10 gpu.example.com=4");
    given_job(s, "a", "q", "pods=2 cpu=1500m template=one");
    given_job(s, "b", "q", "pods=2 cpu=1 claim=shared");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    pod_claims(s, "a-0", "one", "n1/g0");
    pod_claims(s, "a-1", "one", "n1/g1");
    gang_starts(s, "b", "n1 n1");
    claim_allocated(s, "shared", "n1/g2");
    const char *charges = "cpu=5 pods=4 gpu.example.com=3";
    expect_used(s, "q", charges);
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", charges);
    object_gone(s, KIND_RESOURCE_CLAIM_TEMPLATE, "one");
    object_gone(s, KIND_DEVICE_CLASS, "gpu.example.com");
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", "cpu=5 pods=4");
    /* The queue is gone, too: it is kept until it ends. */
    object_gone(s, KIND_QUEUE, "q");
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", "cpu=5 pods=4");
    expect_state(s, "a", "Running");
}

static void record_made_by_hand_is_charged_what_the_template_asks(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    given_job(s, "a", "q", "pods=2 cpu=1500m running=true");
    job_has_record(
        s, "a",
        "{\"queue\":\"q\",\"at\":\"2026-11-30T11:59:30Z\",\"podSets\":[{\"name\":\"main\","
        "\"count\":2,\"flavors\":{\"cpu\":\"default\"}}]}");
    expect_used(s, "q", "cpu=3");
}

/* An unreadable record admits nobody. */
static void forged_record_that_cannot_be_read_is_none(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    given_job(s, "a", "q", "pods=2 cpu=1 running=true");
    job_has_record(s, "a", "{\"queue\":\"q\",\"podSets\":[]}");
    writes_are_manual(s, true);
    scenario_start(s);
    assert_non_null(strstr(trace_text(s), "a: suspend, NotAdmitted"));
    expect_used(s, "q", "cpu=0");
}

/* kill -9 between the PATCH and its answer: the record rides on the Job. */
static void kill_between_write_and_answer_loses_no_charge(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=3 cpu=1");
    given_job(s, "b", "q", "pods=3 cpu=1");
    scenario_start(s);
    write_ok(s, "a", false);
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", "cpu=3");
    assert_false(write_is_out(s, "a"));
    assert_false(write_is_out(s, "b"));
    /* And before it: the write never happened, and is decided again. */
    gang_starts(s, "a", "n1 n1 n1");
    job_finishes(s, "a");
    assert_true(write_is_out(s, "b"));
    restart(s, WITHOUT_ADMISSIONS);
    assert_true(write_is_out(s, "b"));
    expect_used(s, "q", "cpu=3");
}

/* Each kind has a watch of its own: whoever takes over may see the pods before the start that they
 * are of. It is an admission all the same. */
static void start_that_is_seen_after_its_pods_is_taken_over(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    expect_state(s, "a", "Pending QueueNotFound");
    pods_appear(s, "a", 2);
    given_queue(s, "q", "cpu=4");
    job_has_record(
        s, "a",
        "{\"queue\":\"q\",\"at\":\"2026-11-30T11:59:30Z\",\"podSets\":[{\"name\":\"main\","
        "\"count\":2,\"flavors\":{\"cpu\":\"default\"},\"requests\":{\"cpu\":\"1\"}}]}");
    scenario_job(s, "a")->spec.suspend = (struct opt_bool){true, false};
    object_changed(s, KIND_JOB, "a");
    expect_state(s, "a", "Admitted");
    expect_used(s, "q", "cpu=2");
}

static void stopping_gang_is_still_charged_after_a_restart(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 timeout=1m");
    given_job(s, "a", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    at(s, 61000);
    expect_state(s, "a", "Suspending WaitingForTermination");
    given_job(s, "b", "q", "pods=1 cpu=1");
    for (int i = 0; i < 4; i++) {
        restart(s, i % 2 == 0 ? WITHOUT_ADMISSIONS : WITH_ADMISSIONS);
        expect_used(s, "q", "cpu=4");
        expect_state(s, "a", "Suspending WaitingForTermination");
        expect_state(s, "b", "Pending QuotaExhausted");
    }
    gang_stops(s, "a");
    expect_state(s, "b", "Admitted");
}

/* A Job that is found finished with pods that still run is charged for them until they are gone. */
static void finished_job_is_charged_for_pods_that_are_left(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    given_job(s, "a", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1 n1 n1");
    static struct condition failed = {.type = STR_INIT("Failed"), .status = STR_INIT("True")};
    scenario_job(s, "a")->status.conditions = (struct condition_list){&failed, 1};
    for (uint64_t seed = 0; seed < 8; seed++) {
        listing_order(s, seed);
        restart(s, seed % 2 == 0 ? WITHOUT_ADMISSIONS : WITH_ADMISSIONS);
        expect_used(s, "q", "cpu=4");
    }
    given_job(s, "b", "q", "pods=1 cpu=1");
    expect_state(s, "b", "Pending QuotaExhausted");
    for (int i = 0; i < 4; i++) {
        char pod[16];
        (void)snprintf(pod, sizeof(pod), "a-%d", i);
        pod_gone(s, pod);
    }
    expect_state(s, "b", "Admitted");
    expect_used(s, "q", "cpu=1");
}

/* Backoff and place ride on the Admission. */
static void backoff_outlives_a_restart(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 timeout=1m");
    given_job(s, "a", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1");
    at(s, 60000);
    gang_stops(s, "a");
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Pending Backoff");
    at(s, 119000);
    expect_state(s, "a", "Pending Backoff");
    at(s, 121000);
    expect_state(s, "a", "Admitted");
}

/* And on the PATCH that suspends, for the Admission comes a moment later. */
static void backoff_of_a_suspension_outlives_a_crash_before_its_admission(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 timeout=1m");
    given_job(s, "a", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1");
    at(s, 60000);
    restart(s, WITHOUT_ADMISSIONS);
    gang_stops(s, "a");
    expect_state(s, "a", "Pending Backoff");
    at(s, 119000);
    expect_state(s, "a", "Pending Backoff");
    at(s, 121000);
    expect_state(s, "a", "Admitted");
}

/* A gang that runs for hours isn't stopped at once because a pod is down while we start. */
static void running_gang_that_is_short_at_the_start_gets_its_time(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 timeout=1m");
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    at(s, 3600000);
    pod_is_ready_now(s, "a-1", false);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Running");
    at(s, 3659000);
    expect_state(s, "a", "Running");
    at(s, 3661000);
    expect_state(s, "a", "Suspending WaitingForTermination");
}

/* The order of the listing decides nothing. */
static void listing_order_decides_nothing(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4 nvidia.com/gpu=2");
    given_node(s, "n2", "cpu=4");
    given_queue(s, "q", "cpu=8 nvidia.com/gpu=2");
    given_queue(s, "strict", "cpu=3 strategy=StrictFIFO");
    given_priority_class(s, "high", 7);
    given_job(s, "a", "q", "pods=2 cpu=2");
    given_job(s, "b", "q", "pods=2 cpu=1 nvidia.com/gpu=1");
    given_job(s, "c", "strict", "pods=4 cpu=1");
    given_job(s, "d", "strict", "pods=3 cpu=1 priority=high");
    given_job(s, "e", "strict", "pods=1 cpu=1");
    writes_are_manual(s, true); /* so that each start decides afresh */
    scenario_start(s);
    const char *first = decisions_text(s);
    for (uint64_t seed = 1; seed < 40; seed++) {
        listing_order(s, seed);
        restart(s, WITHOUT_ADMISSIONS);
        assert_string_equal(decisions_text(s), first);
    }
}

/* etcd was restored to an earlier day, in which the same Job still waits, or runs. */
static void finished_job_that_is_unfinished_again(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=2");
    given_job(s, "ja", "q", "pods=2 cpu=1");
    struct job waits = *scenario_job(s, "ja");
    expect_state(s, "ja", "Admitted");
    gang_starts(s, "ja", "n1 n1");
    struct job runs = *scenario_job(s, "ja");
    job_finishes(s, "ja");
    expect_used(s, "q", "cpu=0");

    struct str version = scenario_job(s, "ja")->meta.resource_version;
    *scenario_job(s, "ja") = runs;
    scenario_job(s, "ja")->meta.resource_version = version;
    object_changed(s, KIND_JOB, "ja");
    expect_used(s, "q", "cpu=2");
    job_finishes(s, "ja");

    version = scenario_job(s, "ja")->meta.resource_version;
    *scenario_job(s, "ja") = waits;
    scenario_job(s, "ja")->meta.resource_version = version;
    scenario_job(s, "ja")->spec.suspend = (struct opt_bool){true, true};
    scenario_job(s, "ja")->meta.annotations = (struct string_map){0};
    object_changed(s, KIND_JOB, "ja");
    expect_state(s, "ja", "Admitted");
    expect_used(s, "q", "cpu=2");
}

/* Who was put behind the others because its pods weren't ready in time stays there. */
static void place_at_the_end_is_kept(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=1 timeout=1m");
    given_job(s, "late", "q", "pods=1 cpu=1 created=0");
    given_job(s, "second", "q", "pods=1 cpu=1 created=1000");
    given_job(s, "third", "q", "pods=1 cpu=1 created=2000");
    scenario_start(s);
    at(s, 61000);
    gang_stops(s, "late");
    expect_state(s, "second", "Admitted");
    gang_starts(s, "second", "n1");
    at(s, 600000);
    expect_state(s, "late", "Pending QuotaExhausted");
    restart(s, WITH_ADMISSIONS);
    job_finishes(s, "second");
    expect_state(s, "third", "Admitted");
    expect_state(s, "late", "Pending QuotaExhausted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(finished_jobs_stay_finished),
        scenario_test(restart_writes_nothing),
        scenario_test(record_alone_gives_the_same_charges),
        scenario_test(record_made_by_hand_is_charged_what_the_template_asks),
        scenario_test(forged_record_that_cannot_be_read_is_none),
        scenario_test(kill_between_write_and_answer_loses_no_charge),
        scenario_test(start_that_is_seen_after_its_pods_is_taken_over),
        scenario_test(stopping_gang_is_still_charged_after_a_restart),
        scenario_test(finished_job_is_charged_for_pods_that_are_left),
        scenario_test(backoff_outlives_a_restart),
        scenario_test(backoff_of_a_suspension_outlives_a_crash_before_its_admission),
        scenario_test(running_gang_that_is_short_at_the_start_gets_its_time),
        scenario_test(listing_order_decides_nothing),
        scenario_test(finished_job_that_is_unfinished_again),
        scenario_test(place_at_the_end_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
