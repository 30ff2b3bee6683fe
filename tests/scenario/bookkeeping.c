/* What is counted and remembered of a gang, over more than one of its lives, and how often it is
 * written. */
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define MAX_RUNTIME "tallyman.dev/max-runtime"

static const struct admission_status *status_of(struct scenario *s, const char *job)
{
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, job);
    return &admission->status;
}

static void annotation_goes(struct scenario *s, const char *job, const char *key)
{
    struct string_map *map = &scenario_job(s, job)->meta.annotations;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        if (!str_eq_c(map->items[i].key, key)) {
            map->items[kept++] = map->items[i];
        }
    }
    assert_int_equal(kept + 1, map->count);
    map->count = kept;
    object_changed(s, KIND_JOB, job);
}

static void a_bound_that_is_withdrawn_while_waiting_isnt_set(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n", "cpu=16");
    given_queue(s, "q", "cpu=4");
    given_job(s, "holder", "q", "pods=4 cpu=1 created=0");
    given_job(s, "a", "q", "pods=1 cpu=1 max-runtime=90m created=1");
    given_job(s, "b", "q", "pods=1 cpu=1 max-runtime=90m created=2");
    scenario_start(s);
    annotation_goes(s, "a", MAX_RUNTIME);
    job_finishes(s, "holder");
    assert_false(scenario_job(s, "a")->spec.active_deadline_seconds.is_set);
    check_i64(scenario_job(s, "b")->spec.active_deadline_seconds.value, 5400);
}

static void preempt_once(struct scenario *s, const char *high)
{
    given_job(s, high, "q", "pods=4 cpu=1 priority=high");
    expect_state(s, "low", "Suspending WaitingForTermination");
    gang_stops(s, "low");
    expect_state(s, high, "Admitted");
    gang_starts(s, high, "n n n n");
    at(s, scenario_now_ms(s) + 20000);
}

static void given_low_that_runs(struct scenario *s)
{
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n", "cpu=4");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "low", "q", "pods=4 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "low", "n n n n");
    at(s, 20000);
}

/* Each of its lives is counted from nothing, each of its stops once. */
static void a_gang_that_is_stopped_twice_is_counted_twice(void **state)
{
    struct scenario *s = *state;
    given_low_that_runs(s);
    check_str(status_of(s, "low")->pods, "4/4");
    preempt_once(s, "first");
    check_i64(status_of(s, "low")->evictions.value, 1);
    job_finishes(s, "first");
    expect_state(s, "low", "Admitted");
    check_str(status_of(s, "low")->pods, "0/4");
    gang_starts(s, "low", "n n n n");
    at(s, scenario_now_ms(s) + 20000);
    check_str(status_of(s, "low")->pods, "4/4");
    preempt_once(s, "second");
    check_i64(status_of(s, "low")->evictions.value, 2);
}

/* The sentence counts those that still stop. */
static void victims_that_still_stop_are_counted(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n", "cpu=4");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "one", "q", "pods=2 cpu=1 priority=low created=0");
    given_job(s, "two", "q", "pods=2 cpu=1 priority=low created=1");
    scenario_start(s);
    gang_starts(s, "one", "n n");
    gang_starts(s, "two", "n n");
    given_job(s, "urgent", "q", "pods=4 cpu=1 priority=high created=2");
    expect_state(s, "urgent", "Reserved WaitingForVictims");
    expect_message(s, "urgent", "2 gangs that make room for it are stopping");
    gang_stops(s, "one");
    gang_stops(s, "two");
    expect_state(s, "urgent", "Admitted");
    job_finishes(s, "urgent");
    gang_starts(s, "one", "n n");
    gang_starts(s, "two", "n n");
    given_job(s, "small", "q", "pods=1 cpu=1 priority=high created=3");
    expect_message(s, "small", "1 gang that makes room for it is stopping");
}

/* A queue whose Jobs come and go all the time has its status written now and then. */
static void a_busy_queues_status_is_written_now_and_then(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n", "cpu=16");
    given_queue(s, "q", "cpu=4");
    scenario_start(s);
    at(s, 60000);
    (void)counts_take(s);
    for (int i = 0; i < 100; i++) {
        given_job(s, "a", "q", "pods=1 cpu=1");
        at(s, scenario_now_ms(s) + 200);
        job_finishes(s, "a");
        object_gone(s, KIND_JOB, "a");
        at(s, scenario_now_ms(s) + 200);
    }
    assert_in_range(counts_take(s).status_writes, 2, 22); /* one in 2 s, for 40 s */
    at(s, scenario_now_ms(s) + 60000);
    const struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    check_i64(queue->status.admitted.value, 0);
}

/* It runs on in the queue that let it go, whatever its label says, and though that queue's object
 * is deleted: when there is one of that name again, what it holds is still charged there. */
static void relabelled_gang_is_charged_where_it_started(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=2");
    given_queue(s, "p", "cpu=2");
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    job_relabelled(s, "a", "p");
    object_gone(s, KIND_QUEUE, "q");
    expect_state(s, "a", "Running");
    given_queue(s, "q", "cpu=2");
    expect_used(s, "q", "cpu=2");
    expect_used(s, "p", "cpu=0");
    job_finishes(s, "a");
    expect_used(s, "q", "cpu=0");
}

/* Queues of ever new names come and go. */
static void nothing_is_left_of_a_queue_that_is_gone(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=2");
    given_queue(s, "p", "cpu=2");
    scenario_start(s);
    object_gone(s, KIND_QUEUE, "q");
    struct arena arena;
    arena_init(&arena);
    struct queue_figures_list list = core_queue_figures(scenario_core(s), &arena);
    check_i64(list.count, 1);
    check_str(list.items[0].queue, "p");
    arena_deinit(&arena);
}

/* The write that stops it comes to nothing, and is made again: one stop, which was told. */
static void a_stop_that_is_written_twice_is_counted_and_told_once(void **state)
{
    struct scenario *s = *state;
    given_low_that_runs(s);
    writes_are_manual(s, true);
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high");
    trace_forget(s);
    write_conflict(s, "low");
    at(s, 60000);
    assert_true(write_is_out(s, "low"));
    assert_null(strstr(trace_text(s), "low ! Warning"));
    write_ok(s, "low", true);
    gang_stops(s, "low");
    at(s, 120000);
    check_i64(status_of(s, "low")->evictions.value, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(a_bound_that_is_withdrawn_while_waiting_isnt_set),
        scenario_test(a_gang_that_is_stopped_twice_is_counted_twice),
        scenario_test(victims_that_still_stop_are_counted),
        scenario_test(a_busy_queues_status_is_written_now_and_then),
        scenario_test(relabelled_gang_is_charged_where_it_started),
        scenario_test(nothing_is_left_of_a_queue_that_is_gone),
        scenario_test(a_stop_that_is_written_twice_is_counted_and_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
