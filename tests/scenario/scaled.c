/* A running gang that is edited to what couldn't start: it runs on with what it has, and its
 * Admission says that it couldn't start again. It gives back and takes nothing more than others,
 * and isn't left broken. */
#include "support/check.h"
#include "support/scenario.h"

static void given_running_gang(struct scenario *s)
{
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=8 timeout=2m");
    given_job(s, "a", "q", "pods=4 cpu=1 min=3");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1 n1 n1");
    expect_state(s, "a", "Running");
}

static void scaled_below_its_min_count_it_runs_on_and_is_told(void **state)
{
    struct scenario *s = *state;
    given_running_gang(s);
    job_resized(s, "a", 2, 4);
    pod_gone(s, "a-2");
    pod_gone(s, "a-3");
    expect_used(s, "q", "cpu=2");
    at(s, 3600000);
    expect_state(s, "a", "Running Invalid");
    expect_message(s, "a",
                   "it runs on, but couldn't start again: annotation tallyman.dev/min-count");
    job_annotated(s, "a", "tallyman.dev/min-count", "2");
    expect_state(s, "a", "Running");
}

/* With the pods that are left to it as its min-count. */
static void scaled_below_its_min_count_it_is_not_left_broken(void **state)
{
    struct scenario *s = *state;
    given_running_gang(s);
    job_resized(s, "a", 2, 4);
    pod_gone(s, "a-2");
    pod_gone(s, "a-3");
    pod_is_ready_now(s, "a-1", false);
    at(s, 60000);
    expect_state(s, "a", "Running Invalid");
    at(s, 3600000);
    assert_true(scenario_job(s, "a")->spec.suspend.value);
    gang_stops(s, "a");
    expect_state(s, "a", "Pending Invalid");
    expect_used(s, "q", "cpu=0");
}

/* Else an annotation that can't be read would let a gang have as many pods as its user likes. */
static void an_invalid_gang_that_grows_is_stopped(void **state)
{
    struct scenario *s = *state;
    given_running_gang(s);
    job_annotated(s, "a", "tallyman.dev/checkpoint-grace", "soon");
    expect_state(s, "a", "Running Invalid");
    job_resized(s, "a", 6, 6);
    assert_true(scenario_job(s, "a")->spec.suspend.value);
    gang_stops(s, "a");
    expect_state(s, "a", "Pending Invalid");
    job_annotated(s, "a", "tallyman.dev/checkpoint-grace", "30s");
    expect_state(s, "a", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(scaled_below_its_min_count_it_runs_on_and_is_told),
        scenario_test(scaled_below_its_min_count_it_is_not_left_broken),
        scenario_test(an_invalid_gang_that_grows_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
