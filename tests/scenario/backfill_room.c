/* Backfill: what a reservation keeps, from whom, and for how long: nodes, devices, other queues,
 * preemption, restarts. */
#include "support/check.h"
#include "support/scenario.h"

#define MINUTE 60000

/* -- nodes and devices --------------------------------------------------------------------------
 */

/* n1 will be the head's; n2 has too little for it whatever happens. */
static void a_node_that_the_head_cant_use_is_free_for_others(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=2");
    given_queue(s, "q", "cpu=100 strategy=Backfill");
    given_job(s, "long", "q", "pods=1 cpu=4 max-runtime=1h");
    scenario_start(s);
    gang_starts(s, "long", "n1");
    given_job(s, "head", "q", "pods=1 cpu=4");
    given_job(s, "small", "q", "pods=2 cpu=1");
    expect_state(s, "head", "Pending NodesFull");
    expect_state(s, "small", "Admitted");
}

/* Wherever kube-scheduler puts the small pod: it may be where the head is to start. */
static void a_node_that_the_head_may_need_is_kept(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_queue(s, "q", "cpu=100 strategy=Backfill");
    given_job(s, "long", "q", "pods=2 cpu=3 max-runtime=1h");
    scenario_start(s);
    gang_starts(s, "long", "n1 n2");
    given_job(s, "head", "q", "pods=1 cpu=4");
    given_job(s, "first", "q", "pods=1 cpu=1");
    expect_state(s, "first", "Admitted");
    gang_starts(s, "first", "n2");
    given_job(s, "second", "q", "pods=1 cpu=1");
    expect_state(s, "second", "Pending ReservedForOther");
}

/* Only n3 is free, which the head can't use; but n2 is about to be, and nobody knows which of the
 * two kube-scheduler will find first. */
static void room_that_is_about_to_come_free_may_be_taken_too(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=1 label=kind:a");
    given_node(s, "n2", "cpu=1 label=kind:a");
    given_node(s, "n3", "cpu=1");
    given_queue(s, "q", "cpu=100 strategy=Backfill");
    given_job(s, "long", "q", "pods=1 cpu=1 selector=kind:a max-runtime=1h");
    given_job(s, "ending", "q", "pods=2 cpu=1 max-runtime=1h");
    scenario_start(s);
    gang_starts(s, "long", "n1");
    gang_starts(s, "ending", "n3 n2");
    given_job(s, "head", "q", "pods=2 cpu=1 selector=kind:a");
    pod_succeeds(s, "ending-0");
    given_job(s, "small", "q", "pods=1 cpu=1");
    expect_state(s, "small", "Pending ReservedForOther");
}

static void devices_are_kept_like_any_room(void **state)
{
    struct scenario *s = *state;
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_template(s, "one", "gpu.example.com", 1);
    given_node(s, "n1", "cpu=16");
    given_node(s, "n2", "cpu=16");
    given_devices(s, "n1", "g0 g1");
    given_devices(s, "n2", "g0 g1");
    given_queue(s, "q", "gpu.example.com=100 strategy=Backfill");
    given_job(s, "long", "q", "pods=2 cpu=1 template=one max-runtime=1h");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1");
    pod_claims(s, "long-0", "one", "n1/g0");
    pod_claims(s, "long-1", "one", "n1/g1");
    given_job(s, "head", "q", "pods=4 cpu=1 template=one");
    given_job(s, "for-ever", "q", "pods=1 cpu=1 template=one");
    given_job(s, "in-time", "q", "pods=2 cpu=1 template=one max-runtime=1h");
    gang_starts(s, "in-time", "n2 n2");
    pod_claims(s, "in-time-0", "one", "n2/g0");
    pod_claims(s, "in-time-1", "one", "n2/g1");
    given_job(s, "no-device", "q", "pods=2 cpu=1");
    expect_state(s, "head", "Pending DevicesExhausted");
    expect_state(s, "for-ever", "Pending ReservedForOther");
    expect_message(s, "for-ever", "(4 pods, 4 gpu.example.com)");
    expect_state(s, "in-time", "Running");
    expect_state(s, "no-device", "Admitted");
}

/* -- several queues -----------------------------------------------------------------------------
 */

/* The head would have to borrow; who finds room within his own quota goes before that. */
static void quota_that_the_head_would_borrow_isnt_kept_from_its_owner(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=32");
    given_queue(s, "q", "cpu=4 cohort=c strategy=Backfill");
    given_queue(s, "other", "cpu=4 cohort=c");
    given_job(s, "long", "q", "pods=6 cpu=1 max-runtime=1h");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1 n1 n1 n1");
    given_job(s, "head", "q", "pods=8 cpu=1");
    given_job(s, "borrows", "other", "pods=1 cpu=1");
    expect_state(s, "head", "Pending CohortExhausted");
    expect_state(s, "borrows", "Admitted");
}

/* The head stays within its quota; the others would borrow it. No other namespace's object is
 * named.
 */
static void quota_is_kept_from_other_queues_that_would_borrow_it(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=32");
    given_queue(s, "q", "cpu=8 cohort=c strategy=Backfill");
    given_queue(s, "other", "cpu=0 cohort=c");
    given_job(s, "long", "q", "pods=6 cpu=1 max-runtime=1h");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1 n1 n1 n1");
    given_job(s, "head", "q", "pods=8 cpu=1 ns=elsewhere");
    given_job(s, "borrows", "other", "pods=1 cpu=1");
    given_job(s, "borrows-for-a-while", "other", "pods=1 cpu=1 max-runtime=1h");
    expect_state(s, "borrows", "Pending ReservedForOther");
    expect_message(s, "borrows", "kept for a gang of queue q (8 pods, 8 cpu)");
    expect_state(s, "borrows-for-a-while", "Admitted");
}

/* 4 and 4 of 10 run, and the head's 6 are what there is when the first has ended: nothing is over.
 * Once the owner of the free 2 has taken 1, both have to end, and then there is more than the
 * head takes. */
static void more_that_has_to_end_leaves_room_beside_the_head(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=32");
    given_queue(s, "q", "cpu=8 cohort=c strategy=Backfill");
    given_queue(s, "other", "cpu=2 cohort=c");
    given_job(s, "first", "q", "pods=4 cpu=1");
    given_job(s, "second", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "first", "n1 n1 n1 n1");
    gang_starts(s, "second", "n1 n1 n1 n1");
    given_job(s, "head", "q", "pods=6 cpu=1");
    given_job(s, "small", "q", "pods=1 cpu=1");
    expect_state(s, "head", "Pending CohortExhausted");
    expect_state(s, "small", "Pending ReservedForOther");
    given_job(s, "owner", "other", "pods=1 cpu=1");
    expect_state(s, "owner", "Admitted");
    at(s, 20000); /* starts are worked out anew every ten seconds, unless somebody asks */
    expect_state(s, "small", "Admitted");
}

static void nodes_are_kept_from_other_trees(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=8 strategy=Backfill");
    given_queue(s, "other", "cpu=8");
    given_job(s, "long", "q", "pods=6 cpu=1 max-runtime=1h");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1 n1 n1 n1");
    given_job(s, "head", "q", "pods=7 cpu=1");
    given_job(s, "one", "other", "pods=1 cpu=1");
    given_job(s, "two", "other", "pods=1 cpu=1");
    given_job(s, "three", "other", "pods=1 cpu=1 max-runtime=1h");
    expect_state(s, "one", "Admitted");
    expect_state(s, "two", "Pending ReservedForOther");
    expect_state(s, "three", "Admitted");
}

static void two_heads_are_kept_apart(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "a", "cpu=8 strategy=Backfill");
    given_queue(s, "b", "cpu=8 strategy=Backfill");
    given_job(s, "long", "a", "pods=6 cpu=1 max-runtime=1h");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1 n1 n1 n1");
    given_job(s, "head-a", "a", "pods=8 cpu=1 max-runtime=30m");
    given_job(s, "head-b", "b", "pods=8 cpu=1");
    check_i64(likely_start_minute(s, "head-a"), 60);
    check_i64(likely_start_minute(s, "head-b"), 90);
    given_job(s, "between", "b", "pods=1 cpu=1 max-runtime=80m");
    expect_state(s, "between", "Pending ReservedForOther");
    given_job(s, "before-both", "b", "pods=1 cpu=1 max-runtime=50m");
    expect_state(s, "before-both", "Admitted");
}

/* -- with preemption ----------------------------------------------------------------------------
 */

/* The one behind may stop `low`, but takes its room for longer than the head can wait. */
static void a_preemption_doesnt_take_what_the_head_waits_for(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_queue(s, "q", "cpu=8 strategy=Backfill within=LowerPriority");
    given_job(s, "low", "q", "pods=2 cpu=1 priority=low max-runtime=1h");
    given_job(s, "long", "q", "pods=6 cpu=1 priority=mid max-runtime=30m");
    scenario_start(s);
    gang_starts(s, "low", "n1 n1");
    gang_starts(s, "long", "n1 n1 n1 n1 n1 n1");
    given_job(s, "head", "q", "pods=8 cpu=1 priority=mid");
    at(s, 1000);
    given_job(s, "behind", "q", "pods=1 cpu=1 priority=mid max-runtime=2h");
    expect_state(s, "low", "Running");
    expect_state(s, "behind", "Pending QuotaExhausted");
}

/* -- over time ----------------------------------------------------------------------------------
 */

static void it_is_the_same_after_a_restart(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=8 cpu=1 max-runtime=10m");
    given_job(s, "too-long", "q", "pods=2 cpu=1 max-runtime=60m");
    at(s, 20 * MINUTE);
    for (int i = 0; i < 2; i++) {
        restart(s, i == 0 ? WITH_ADMISSIONS : WITHOUT_ADMISSIONS);
        expect_state(s, "head", "Pending QuotaExhausted");
        expect_state(s, "too-long", "Pending ReservedForOther");
        check_i64(likely_start_minute(s, "head"), 60);
    }
    given_job(s, "in-time", "q", "pods=2 cpu=1 max-runtime=40m");
    expect_state(s, "in-time", "Admitted");
}

static void the_head_starts_when_the_others_end_early(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=8 cpu=1 max-runtime=10m");
    given_job(s, "hole", "q", "pods=2 cpu=1 max-runtime=5m");
    gang_starts(s, "hole", "n1 n1");
    at(s, 2 * MINUTE);
    job_finishes(s, "long");
    expect_state(s, "head", "Pending QuotaExhausted");
    at(s, 3 * MINUTE);
    job_finishes(s, "hole");
    expect_state(s, "head", "Admitted");
}

/* An end that comes sooner is told, and the hole is shorter from then on. */
static void the_time_is_worked_out_anew(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=8 cpu=1");
    check_i64(likely_start_minute(s, "head"), 60);
    given_job(s, "hole", "q", "pods=2 cpu=1 max-runtime=10m");
    gang_starts(s, "hole", "n1 n1");
    at(s, 2 * MINUTE);
    job_finishes(s, "long");
    at(s, 3 * MINUTE);
    check_i64(likely_start_minute(s, "head"), 11);
    given_job(s, "nine", "q", "pods=2 cpu=1 max-runtime=9m");
    given_job(s, "eight", "q", "pods=2 cpu=1 max-runtime=8m");
    expect_state(s, "nine", "Pending ReservedForOther");
    expect_state(s, "eight", "Admitted");
}

/* Time alone changes nothing that is told, and costs no write. */
static void waiting_costs_no_writes(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=8 cpu=1 max-runtime=10m");
    given_job(s, "too-long", "q", "pods=2 cpu=1 max-runtime=60m");
    at(s, 2 * MINUTE);
    (void)counts_take(s);
    at(s, 50 * MINUTE);
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.admission_writes, 0);
    assert_int_equal(counts.status_writes, 0);
}

/* -- several pod sets ---------------------------------------------------------------------------
 */

/* Beside the head there is room for one more: for either set, and not for both. */
static void all_sets_count_beside_the_reservation(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=7 cpu=1");
    given_pod_set(s, "both", "workers", "pods=1 cpu=1");
    given_job(s, "both", "q", "pods=1 cpu=1");
    expect_state(s, "both", "Pending ReservedForOther");
    given_pod_set(s, "in-time", "workers", "pods=1 cpu=1");
    given_job(s, "in-time", "q", "pods=1 cpu=500m max-runtime=30m");
    expect_state(s, "in-time", "Admitted");
    job_finishes(s, "in-time");
    given_pod_set(s, "halves", "workers", "pods=1 cpu=500m");
    given_job(s, "halves", "q", "pods=1 cpu=500m");
    expect_state(s, "halves", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(a_node_that_the_head_cant_use_is_free_for_others),
        scenario_test(a_node_that_the_head_may_need_is_kept),
        scenario_test(room_that_is_about_to_come_free_may_be_taken_too),
        scenario_test(devices_are_kept_like_any_room),
        scenario_test(quota_is_kept_from_other_queues_that_would_borrow_it),
        scenario_test(quota_that_the_head_would_borrow_isnt_kept_from_its_owner),
        scenario_test(more_that_has_to_end_leaves_room_beside_the_head),
        scenario_test(nodes_are_kept_from_other_trees),
        scenario_test(two_heads_are_kept_apart),
        scenario_test(a_preemption_doesnt_take_what_the_head_waits_for),
        scenario_test(it_is_the_same_after_a_restart),
        scenario_test(the_head_starts_when_the_others_end_early),
        scenario_test(the_time_is_worked_out_anew),
        scenario_test(waiting_costs_no_writes),
        scenario_test(all_sets_count_beside_the_reservation),
    };
    return cmocka_run_group_tests_name("scenario/backfill_room", tests, NULL, NULL);
}
