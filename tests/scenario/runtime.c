/* How long a gang may run: who says it, what the admission writes, and what a suspension puts back.
 */
#include "support/check.h"
#include "support/scenario.h"

static void expect_deadline(struct scenario *s, const char *job, int64_t seconds)
{
    struct opt_int deadline = scenario_job(s, job)->spec.active_deadline_seconds;
    check_i64(deadline.is_set ? deadline.value : -1, seconds);
}

static void max_runtime_becomes_the_jobs_deadline(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    given_job(s, "bound", "q", "pods=1 cpu=1 max-runtime=90m");
    given_job(s, "free", "q", "pods=1 cpu=1");
    scenario_start(s);
    expect_deadline(s, "bound", 5400);
    expect_deadline(s, "free", -1);
}

static void the_jobs_own_deadline_stays_where_it_is_lower(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 max-runtime=2h");
    given_job(s, "lower", "q", "pods=1 cpu=1 max-runtime=90m deadline=60");
    given_job(s, "higher", "q", "pods=1 cpu=1 max-runtime=90m deadline=6000");
    scenario_start(s);
    expect_deadline(s, "lower", 60);
    expect_deadline(s, "higher", 5400);
}

static void the_queues_bound_holds_for_every_job_of_it(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 max-runtime=1h default-runtime=30m");
    given_job(s, "says-nothing", "q", "pods=1 cpu=1");
    given_job(s, "wants-more", "q", "pods=1 cpu=1 max-runtime=3h");
    given_job(s, "wants-less", "q", "pods=1 cpu=1 max-runtime=20s");
    scenario_start(s);
    expect_deadline(s, "says-nothing", 3600);
    expect_deadline(s, "wants-more", 3600);
    expect_deadline(s, "wants-less", 20);
}

/* An estimate stops nobody. */
static void default_runtime_sets_no_deadline(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 default-runtime=30m");
    given_job(s, "a", "q", "pods=1 cpu=1");
    scenario_start(s);
    expect_deadline(s, "a", -1);
}

static void stop_for_another(struct scenario *s)
{
    gang_starts(s, "low", "n1");
    given_job(s, "high", "q", "pods=1 cpu=1 priority=high");
    gang_stops(s, "low");
}

static void a_suspension_puts_the_deadline_back(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_priority_class(s, "high", 10);
    given_queue(s, "q", "cpu=1 max-runtime=1h within=LowerPriority");
    given_job(s, "low", "q", "pods=1 cpu=1 deadline=7200");
    scenario_start(s);
    expect_deadline(s, "low", 3600);
    stop_for_another(s);
    expect_deadline(s, "low", 7200);
    gang_starts(s, "high", "n1");
    quota_becomes(s, "q", "cpu=1 max-runtime=30m within=LowerPriority");
    job_finishes(s, "high");
    expect_state(s, "low", "Admitted");
    expect_deadline(s, "low", 1800);
}

static void a_deadline_that_the_job_never_had_is_taken_off(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_priority_class(s, "high", 10);
    given_queue(s, "q", "cpu=1 within=LowerPriority");
    given_job(s, "low", "q", "pods=1 cpu=1 max-runtime=1h");
    scenario_start(s);
    restart(s, WITH_ADMISSIONS);
    expect_deadline(s, "low", 3600);
    stop_for_another(s);
    expect_deadline(s, "low", -1);
}

static void a_bad_duration_is_invalid_and_says_what_would_be_right(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
    given_job(s, "word", "q", "pods=1 cpu=1 max-runtime=tomorrow");
    given_job(s, "zero", "q", "pods=1 cpu=1 max-runtime=0s");
    given_job(s, "negative", "q", "pods=1 cpu=1 max-runtime=-1h");
    given_job(s, "empty", "q", "pods=1 cpu=1 max-runtime=");
    scenario_start(s);
    expect_state(s, "word", "Pending Invalid");
    expect_message(s, "word",
                   "annotation tallyman.dev/max-runtime is \"tomorrow\"; it must be a duration of "
                   "more than zero, such as 90m or 8h");
    expect_state(s, "zero", "Pending Invalid");
    expect_state(s, "negative", "Pending Invalid");
    expect_state(s, "empty", "Pending Invalid");
    job_annotated(s, "word", "tallyman.dev/max-runtime", "24h");
    expect_state(s, "word", "Admitted");
    expect_deadline(s, "word", 86400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(max_runtime_becomes_the_jobs_deadline),
        scenario_test(the_jobs_own_deadline_stays_where_it_is_lower),
        scenario_test(the_queues_bound_holds_for_every_job_of_it),
        scenario_test(default_runtime_sets_no_deadline),
        scenario_test(a_suspension_puts_the_deadline_back),
        scenario_test(a_deadline_that_the_job_never_had_is_taken_off),
        scenario_test(a_bad_duration_is_invalid_and_says_what_would_be_right),
    };
    return cmocka_run_group_tests_name("scenario/runtime", tests, NULL, NULL);
}
