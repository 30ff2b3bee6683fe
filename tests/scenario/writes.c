/* The one write that admits: its guards, its answers, and that nothing is written for nothing. */
#include <stdio.h>

#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

static void given_small_cluster(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
}

static void quota_is_held_from_the_moment_the_write_is_sent(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=3 cpu=1");
    given_job(s, "b", "q", "pods=2 cpu=1");
    scenario_start(s);
    assert_true(write_is_out(s, "a"));
    assert_false(write_is_out(s, "b"));
    expect_used(s, "q", "cpu=3");
}

static void refused_write_backs_off_quotes_the_server_and_holds_nothing(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=3 cpu=1");
    scenario_start(s);
    write_refused(s, "a", "admission webhook \"no.example.com\" denied the request: no");
    expect_state(s, "a", "Pending Backoff");
    expect_message(s, "a", "admission webhook \"no.example.com\" denied the request: no");
    expect_used(s, "q", "cpu=0");
    given_job(s, "b", "q", "pods=4 cpu=1");
    assert_true(write_is_out(s, "b"));
    job_deleted_now(s, "b");
    at(s, 59000);
    assert_false(write_is_out(s, "a"));
    at(s, 61000);
    assert_true(write_is_out(s, "a"));
    write_refused(s, "a", "no");
    at(s, 61000 + 119000);
    assert_false(write_is_out(s, "a"));
    at(s, 61000 + 122000);
    assert_true(write_is_out(s, "a"));
    write_ok(s, "a", true);
    expect_state(s, "a", "Admitted");
}

/* Somebody else touched the Job first: read again, decide again. */
static void conflict_is_decided_anew_on_what_the_watch_shows(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=3 cpu=1");
    scenario_start(s);
    write_conflict(s, "a");
    assert_false(write_is_out(s, "a"));
    expect_used(s, "q", "cpu=3"); /* held until the watch has shown what is so */
    job_resized(s, "a", 2, 2);
    assert_true(write_is_out(s, "a"));
    expect_used(s, "q", "cpu=2");
    write_ok(s, "a", true);
    expect_state(s, "a", "Admitted");
    expect_used(s, "q", "cpu=2");
}

/* A quota or a webhook may answer 409 though nobody has touched the Job. */
static void conflict_that_nothing_explains_is_tried_again(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=3 cpu=1");
    scenario_start(s);
    write_conflict(s, "a");
    at(s, 29000);
    assert_false(write_is_out(s, "a"));
    at(s, 31000);
    assert_true(write_is_out(s, "a"));
    write_ok(s, "a", true);
    expect_state(s, "a", "Admitted");
}

/* The write may have been carried out, by a try whose answer was lost: what it holds is nobody
 * else's before the watch has had its time, and no clock that is set forwards shortens that. */
static void clock_that_jumps_frees_nothing_of_a_write_in_doubt(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=3 cpu=1");
    scenario_start(s);
    given_priority_class(s, "high", 100);
    given_job(s, "b", "q", "pods=2 cpu=1 priority=high");
    write_conflict(s, "a");
    clock_jumps(s, 3600000);
    assert_false(write_is_out(s, "b"));
    expect_used(s, "q", "cpu=3");
    at(s, 3600000 + 24000);
    assert_false(write_is_out(s, "b"));
    expect_used(s, "q", "cpu=3");
    at(s, 3600000 + 31000);
    assert_true(write_is_out(s, "b")); /* it can't have been carried out */
    expect_used(s, "q", "cpu=2");
}

static void edit_that_the_watch_shows_first_is_met_by_the_guard(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=3 cpu=1");
    scenario_start(s);
    job_resized(s, "a", 6, 6); /* comes while the PATCH is on its way */
    expect_used(s, "q", "cpu=3");
    write_ok(s, "a", true); /* the guard makes it a conflict */
    expect_state(s, "a", "Pending NeverFits");
    expect_used(s, "q", "cpu=0");
}

/* Another client bumps the Job ten times a second while it is being admitted. */
static void busy_foreign_writer_does_not_keep_a_gang_out(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=3 cpu=1");
    scenario_start(s);
    char value[16];
    for (int i = 0; i < 20; i++) {
        snprintf(value, sizeof(value), "%d", i);
        job_annotated(s, "a", "example.com/note", value);
        assert_true(write_is_out(s, "a"));
        write_ok(s, "a", true);
        expect_used(s, "q", "cpu=3");
    }
    assert_true(write_is_out(s, "a"));
    write_ok(s, "a", true);
    expect_state(s, "a", "Admitted");
    assert_true(counts_take(s).job_writes <= 21);
    const struct job *job = scenario_job(s, "a");
    check_str(string_map_get(&job->meta.annotations, "example.com/note"), "19");
}

/* Nothing is decided about a Job before the watch has shown our own write to it. */
static void own_write_not_yet_seen_is_waited_for(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=3 cpu=1");
    scenario_start(s);
    write_ok(s, "a", false);
    trace_forget(s);
    at(s, 30000);
    assert_false(write_is_out(s, "a"));
    expect_used(s, "q", "cpu=3");
    job_shown(s, "a");
    assert_false(write_is_out(s, "a"));
    expect_state(s, "a", "Admitted");
}

static void job_deleted_while_the_write_is_in_flight_holds_nothing(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=3 cpu=1");
    given_job(s, "b", "q", "pods=4 cpu=1");
    scenario_start(s);
    job_deleted_now(s, "a");
    expect_used(s, "q", "cpu=4");
    assert_true(write_is_out(s, "b"));
    write_ok(s, "b", true);
    expect_state(s, "b", "Admitted");
}

static void gone_answer_releases_what_was_held(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=3 cpu=1");
    scenario_start(s);
    write_gone(s, "a");
    expect_used(s, "q", "cpu=0");
}

static void refused_suspension_is_tried_again_and_counted_once(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 timeout=1m");
    given_job(s, "a", "q", "pods=3 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    writes_are_manual(s, true);
    at(s, 61000);
    assert_true(write_is_out(s, "a"));
    for (int i = 1; i <= 3; i++) {
        write_refused(s, "a", "no");
        assert_false(write_is_out(s, "a"));
        expect_used(s, "q", "cpu=3");
        at(s, 61000 + i * 6000);
        assert_true(write_is_out(s, "a"));
    }
    write_ok(s, "a", true);
    gang_stops(s, "a");
    write_ok(s, "a", true);
    expect_state(s, "a", "Pending Backoff");
    expect_message(s, "a", "1 failed so far");
}

/* A Job that its user has started is suspended again. What the server refuses is tried again in its
 * time, whatever happens to the Job meanwhile. */
static void refused_suspension_of_a_started_job_waits_its_time(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    writes_are_manual(s, true);
    given_job(s, "a", "q", "pods=1 cpu=1 running=true");
    scenario_start(s);
    assert_true(write_is_out(s, "a"));
    write_refused(s, "a", "no");
    at(s, 1000);
    job_annotated(s, "a", "example.com/note", "x");
    assert_false(write_is_out(s, "a"));
    at(s, 4999);
    assert_false(write_is_out(s, "a"));
    at(s, 6000);
    assert_true(write_is_out(s, "a"));
    write_ok(s, "a", true);
    assert_true(scenario_job(s, "a")->spec.suspend.value);
}

/* Who stops is told so once, however often somebody touches the Job before the write comes about.
 */
static void suspension_that_meets_conflicts_is_told_once(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=1 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1");
    writes_are_manual(s, true);
    (void)counts_take(s);
    job_resized(s, "a", 2, 2);
    for (int i = 0; i < 3; i++) {
        write_conflict(s, "a");
        job_annotated(s, "a", "example.com/note", i % 2 == 0 ? "x" : "y");
    }
    assert_int_equal(counts_take(s).events, 1);
    write_conflict(s, "a");
    job_resized(s, "a", 3, 3); /* which is other news */
    assert_int_equal(counts_take(s).events, 1);
    write_ok(s, "a", true);
    gang_stops(s, "a");
    write_ok(s, "a", true); /* its template is put back */
    write_ok(s, "a", true); /* and it starts again */
    gang_starts(s, "a", "n1 n1 n1");
    (void)counts_take(s);
    job_resized(s, "a", 4, 4);
    assert_int_equal(counts_take(s).events, 1);
}

/* A version that isn't a plain number is nobody's to read: the guard names it as it stands. */
static void version_that_is_no_number_guards_the_write(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_queue(s, "q", "cpu=0");
    given_job(s, "a", "q", "pods=1 cpu=1");
    expect_state(s, "a", "Pending NeverFits");
    scenario_job(s, "a")->meta.resource_version = STR("007");
    object_again(s, KIND_JOB, "a");
    trace_forget(s);
    given_queue(s, "q", "cpu=4");
    expect_state(s, "a", "Admitted");
    assert_null(strstr(trace_text(s), "conflict"));
    assert_false(scenario_job(s, "a")->spec.suspend.value);
}

/* The same objects again and again, and time that passes: not one effect. */
static void nothing_changed_nothing_asked(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_devices(s, "n1", "gpu-0");
    given_job(s, "runs", "q", "pods=2 cpu=1");
    given_job(s, "waits", "q", "pods=3 cpu=1");
    given_job(s, "invalid", "q", "pods=3 cpu=1 min=4");
    scenario_start(s);
    gang_starts(s, "runs", "n1 n1");
    at(s, 60000);
    (void)counts_take(s);
    object_again(s, KIND_JOB, "runs");
    object_again(s, KIND_JOB, "waits");
    object_again(s, KIND_JOB, "invalid");
    object_again(s, KIND_POD, "runs-0");
    object_again(s, KIND_NODE, "n1");
    object_again(s, KIND_QUEUE, "q");
    object_again(s, KIND_RESOURCE_SLICE, "n1-slice");
    object_again(s, KIND_NAMESPACE, "ml");
    object_again(s, KIND_ADMISSION, "runs");
    at(s, 120000);
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.job_writes + counts.admission_writes + counts.status_writes, 0);
    assert_int_equal(counts.events, 0);
    assert_int_equal(counts.gangs_visited, 0);
}

/* From parked to admitted: one write to the Job, one to the Admission, one Event. */
static void admission_takes_two_writes(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "holds", "q", "pods=4 cpu=1");
    given_job(s, "parked", "q", "pods=3 cpu=1");
    scenario_start(s);
    gang_starts(s, "holds", "n1 n1 n1 n1");
    at(s, 60000);
    object_gone(s, KIND_POD, "holds-0");
    trace_forget(s);
    job_finishes(s, "holds");
    expect_trace(s, "[60000] parked: admit 3 pods of queue q, cpu 1000m/pod on default\n"
                    "[60000] parked > Admitted 0/3 on default\n"
                    "[60000] holds > Finished\n"
                    "[60000] parked ! Admitted: admitted on queue q: 3 pods, cpu=3\n");
}

static void content_is_told_once(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=5 cpu=1");
    scenario_start(s);
    struct arena arena;
    arena_init(&arena);
    struct admission admission;
    struct str uid = scenario_job(s, "a")->meta.uid;
    assert_false(core_admission_content(scenario_core(s), uid, &arena, &admission));
    at(s, 5000);
    assert_false(core_admission_content(scenario_core(s), uid, &arena, &admission));
    arena_deinit(&arena);
}

/* An Admission that somebody deletes is written again. */
static void deleted_admission_comes_back(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=5 cpu=1");
    expect_state(s, "a", "Pending NeverFits");
    object_gone(s, KIND_ADMISSION, "a");
    expect_state(s, "a", "Pending NeverFits");
}

/* LeakSanitizer tells whether it does. */
static void version_that_is_no_number_goes_with_its_job(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_queue(s, "q", "cpu=0");
    given_job(s, "a", "q", "pods=1 cpu=1");
    scenario_start(s);
    scenario_job(s, "a")->meta.resource_version = STR("007");
    object_again(s, KIND_JOB, "a");
    object_gone(s, KIND_JOB, "a");
    at(s, 61000);
    expect_state(s, "a", "no Admission");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(quota_is_held_from_the_moment_the_write_is_sent),
        scenario_test(refused_write_backs_off_quotes_the_server_and_holds_nothing),
        scenario_test(conflict_is_decided_anew_on_what_the_watch_shows),
        scenario_test(conflict_that_nothing_explains_is_tried_again),
        scenario_test(clock_that_jumps_frees_nothing_of_a_write_in_doubt),
        scenario_test(edit_that_the_watch_shows_first_is_met_by_the_guard),
        scenario_test(busy_foreign_writer_does_not_keep_a_gang_out),
        scenario_test(own_write_not_yet_seen_is_waited_for),
        scenario_test(job_deleted_while_the_write_is_in_flight_holds_nothing),
        scenario_test(gone_answer_releases_what_was_held),
        scenario_test(refused_suspension_is_tried_again_and_counted_once),
        scenario_test(refused_suspension_of_a_started_job_waits_its_time),
        scenario_test(suspension_that_meets_conflicts_is_told_once),
        scenario_test(version_that_is_no_number_guards_the_write),
        scenario_test(nothing_changed_nothing_asked),
        scenario_test(admission_takes_two_writes),
        scenario_test(content_is_told_once),
        scenario_test(deleted_admission_comes_back),
        scenario_test(version_that_is_no_number_goes_with_its_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
