/* Which Job is which: made again under its name, orphaned, deleted; and a Queue that is deleted. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

static void given_small_cluster(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4");
}

static void job_made_again_under_its_name_is_another_job(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=3 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1 n1");
    job_recreated(s, "a", "q", "pods=2 cpu=1"); /* one watch burst, no DELETED seen */
    expect_used(s, "q", "cpu=3");               /* the old one's pods still run */
    object_gone(s, KIND_POD, "a-0");
    object_gone(s, KIND_POD, "a-1");
    object_gone(s, KIND_POD, "a-2");
    expect_state(s, "a", "Admitted");
    expect_used(s, "q", "cpu=2");
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
    assert_true(str_eq(admission->spec.job_uid, scenario_job(s, "a")->meta.uid));
}

static void job_made_again_while_the_controller_was_away(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=3 cpu=1");
    expect_state(s, "a", "Admitted");
    listing_order(s, 7);
    job_recreated(s, "a", "q", "pods=2 cpu=1");
    for (uint64_t seed = 0; seed < 6; seed++) {
        listing_order(s, seed);
        restart(s, WITH_ADMISSIONS);
        expect_used(s, "q", "cpu=2");
        expect_state(s, "a", "Admitted");
    }
}

static void orphaned_pods_hold_nodes_but_no_quota(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=4");
    given_job(s, "a", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1 n1 n1");
    /* --cascade=orphan: owner references are taken off, then the Job goes. */
    for (int i = 0; i < 4; i++) {
        char pod[16];
        snprintf(pod, sizeof(pod), "a-%d", i);
        ((struct pod *)scenario_object(s, KIND_POD, pod))->meta.owner_references.count = 0;
        object_changed(s, KIND_POD, pod);
    }
    job_deleted_now(s, "a");
    expect_used(s, "q", "cpu=0");
    given_job(s, "b", "q", "pods=1 cpu=1");
    expect_state(s, "b", "Pending NodesFull");
    object_gone(s, KIND_POD, "a-0");
    expect_state(s, "b", "Admitted");
}

/* The Admission of an orphaned Job belongs to nobody: it is deleted. */
static void admission_without_an_owner_is_deleted(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=5 cpu=1");
    expect_state(s, "a", "Pending NeverFits");
    job_deleted_now(s, "a");
    ((struct admission *)scenario_object(s, KIND_ADMISSION, "a"))->meta.owner_references.count = 0;
    object_changed(s, KIND_ADMISSION, "a");
    expect_state(s, "a", "no Admission");
}

static void job_that_is_being_deleted_is_not_started(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "holds", "q", "pods=4 cpu=1");
    given_job(s, "a", "q", "pods=2 cpu=1");
    given_job(s, "b", "q", "pods=3 cpu=1");
    scenario_start(s);
    gang_starts(s, "holds", "n1 n1 n1 n1");
    scenario_job(s, "a")->meta.deletion_timestamp = (struct opt_time){true, 1};
    object_changed(s, KIND_JOB, "a");
    job_finishes(s, "holds");
    assert_true(scenario_job(s, "a")->spec.suspend.value);
    expect_state(s, "b", "Admitted");
}

static void queue_that_is_deleted_stays_until_its_last_gang_ends(void **state)
{
    struct scenario *s = *state;
    given_small_cluster(s);
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    assert_int_equal(queue->meta.finalizers.count, 1);
    queue->meta.deletion_timestamp = (struct opt_time){true, 1};
    object_changed(s, KIND_QUEUE, "q");
    given_job(s, "b", "q", "pods=1 cpu=1");
    expect_state(s, "a", "Running");
    expect_state(s, "b", "Pending QueueStopped");
    trace_forget(s);
    job_finishes(s, "a");
    expect_state(s, "b", "Pending QueueNotFound");
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "b", "Pending QueueNotFound");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(job_made_again_under_its_name_is_another_job),
        scenario_test(job_made_again_while_the_controller_was_away),
        scenario_test(orphaned_pods_hold_nodes_but_no_quota),
        scenario_test(admission_without_an_owner_is_deleted),
        scenario_test(job_that_is_being_deleted_is_not_started),
        scenario_test(queue_that_is_deleted_stays_until_its_last_gang_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
