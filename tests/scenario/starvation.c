/* starvationBound: nobody waits for ever unseen. A head that has waited so long gets a reservation,
 * whatever the strategy. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

#define MINUTE 60000

/* `long` holds 2 of 4 until an hour has passed; `head` wants 4 from minute 1 on. */
static void given_a_head(struct scenario *s, const char *options)
{
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", options);
    given_job(s, "long", "q", "pods=2 cpu=1 max-runtime=60m");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1");
    at(s, MINUTE);
    given_job(s, "head", "q", "pods=4 cpu=1");
}

static void small_gangs_overtake_until_the_bound(void **state)
{
    struct scenario *s = *state;
    given_a_head(s, "cpu=4 starvation=30m");
    given_job(s, "before", "q", "pods=1 cpu=1");
    expect_state(s, "before", "Admitted");
    check_i64(likely_start_ms(s, "head"), LIKELY_NONE);
    gang_starts(s, "before", "n1");
    at(s, 30 * MINUTE);
    job_finishes(s, "before");
    given_job(s, "just-before", "q", "pods=1 cpu=1 max-runtime=1m");
    expect_state(s, "just-before", "Admitted");
    at(s, 31 * MINUTE);
    given_job(s, "after", "q", "pods=1 cpu=1");
    expect_state(s, "after", "Pending ReservedForOther");
    given_job(s, "in-time", "q", "pods=1 cpu=1 max-runtime=29m");
    expect_state(s, "in-time", "Admitted");
}

/* Time alone tells it: nothing else happens at that moment. */
static void the_core_wakes_when_the_bound_passes(void **state)
{
    struct scenario *s = *state;
    given_a_head(s, "cpu=4 starvation=30m");
    at(s, 31 * MINUTE - 1);
    check_i64(likely_start_ms(s, "head"), LIKELY_NONE);
    at(s, 31 * MINUTE);
    check_i64(likely_start_ms(s, "head"), 60 * MINUTE);
}

static void without_a_bound_they_overtake_for_ever(void **state)
{
    struct scenario *s = *state;
    given_a_head(s, "cpu=4");
    at(s, 500 * MINUTE);
    given_job(s, "small", "q", "pods=1 cpu=1");
    expect_state(s, "small", "Admitted");
    check_i64(likely_start_ms(s, "head"), LIKELY_NONE);
}

/* A new small gang every minute, each for five: the head would never find four free at once. */
static void a_stream_of_small_gangs(struct scenario *s, int from, int to)
{
    for (int minute = from; minute < to; minute++) {
        char name[16];
        at(s, minute * MINUTE);
        (void)snprintf(name, sizeof(name), "s%d", minute - 5);
        if (minute - 5 >= 0 && scenario_job(s, name)->status.start_time.is_set) {
            job_finishes(s, name);
        }
        (void)snprintf(name, sizeof(name), "s%d", minute);
        given_job(s, name, "q", "pods=1 cpu=1 max-runtime=5m");
        if (!scenario_job(s, name)->spec.suspend.value) {
            gang_starts(s, name, "n1");
        }
        if (minute == 5) {
            given_job(s, "head", "q", "pods=5 cpu=1");
        }
    }
}

static void the_head_starts_soon_after_its_bound(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=5 starvation=20m");
    a_stream_of_small_gangs(s, 0, 25);
    expect_state(s, "head", "Pending QuotaExhausted");
    a_stream_of_small_gangs(s, 25, 31);
    expect_state(s, "head", "Admitted");
}

static void and_never_without_one(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=5");
    a_stream_of_small_gangs(s, 0, 60);
    expect_state(s, "head", "Pending QuotaExhausted");
}

/* It is its own wait that counts, not how long it has been the first. */
static void the_wait_counts_from_the_start_of_waiting(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 starvation=30m");
    given_job(s, "long", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1");
    given_job(s, "first", "q", "pods=4 cpu=1");
    given_job(s, "second", "q", "pods=3 cpu=1");
    at(s, 20 * MINUTE);
    job_deleted_now(s, "first");
    at(s, 30 * MINUTE);
    given_job(s, "small", "q", "pods=2 cpu=1");
    expect_state(s, "small", "Pending ReservedForOther");
}

/* A failed start puts a gang behind; its wait starts anew. */
static void a_failed_start_begins_a_new_wait(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 starvation=30m timeout=10m base=1m");
    given_job(s, "fails", "q", "pods=4 cpu=1");
    scenario_start(s);
    at(s, 10 * MINUTE);
    job_says_suspended(s, "fails");
    expect_state(s, "fails", "Pending Backoff");
    given_job(s, "long", "q", "pods=2 cpu=1");
    gang_starts(s, "long", "n1 n1");
    at(s, 39 * MINUTE);
    given_job(s, "before", "q", "pods=1 cpu=1");
    expect_state(s, "before", "Admitted");
    at(s, 40 * MINUTE);
    given_job(s, "after", "q", "pods=1 cpu=1");
    expect_state(s, "after", "Pending ReservedForOther");
}

static void a_bound_of_zero_is_a_reservation_at_once(void **state)
{
    struct scenario *s = *state;
    given_a_head(s, "cpu=4 starvation=0s");
    given_job(s, "small", "q", "pods=1 cpu=1");
    expect_state(s, "small", "Pending ReservedForOther");
}

static void a_bound_that_is_taken_off_lets_them_go(void **state)
{
    struct scenario *s = *state;
    given_a_head(s, "cpu=4 starvation=1m");
    at(s, 3 * MINUTE);
    given_job(s, "small", "q", "pods=1 cpu=1");
    expect_state(s, "small", "Pending ReservedForOther");
    quota_becomes(s, "q", "cpu=4 starvation=90m");
    expect_state(s, "small", "Admitted");
}

/* -- other queues -------------------------------------------------------------------------------
 */

/* The nodes are everybody's; the other queue's gangs came later. */
static void room_is_kept_from_the_queues_of_other_trees(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=4 starvation=10m");
    given_queue(s, "other", "cpu=4");
    given_job(s, "long", "other", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1");
    given_job(s, "head", "q", "pods=3 cpu=1");
    given_job(s, "before", "other", "pods=1 cpu=1");
    gang_starts(s, "before", "n1");
    at(s, 10 * MINUTE);
    job_finishes(s, "before");
    given_job(s, "one", "other", "pods=1 cpu=1");
    given_job(s, "two", "other", "pods=1 cpu=1");
    expect_state(s, "one", "Admitted");
    expect_state(s, "two", "Pending ReservedForOther");
}

/* StrictFIFO keeps its own queue behind the head; the bound keeps the others. */
static void a_strict_queue_may_have_a_bound_too(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=4 strategy=StrictFIFO starvation=10m");
    given_queue(s, "other", "cpu=4");
    given_job(s, "long", "other", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1");
    given_job(s, "head", "q", "pods=4 cpu=1");
    given_job(s, "behind", "q", "pods=1 cpu=1");
    at(s, 10 * MINUTE);
    given_job(s, "small", "other", "pods=1 cpu=1");
    expect_state(s, "behind", "Pending BehindInQueue");
    expect_state(s, "small", "Pending ReservedForOther");
    job_finishes(s, "long");
    expect_state(s, "head", "Admitted");
}

/* Lent quota: those who borrow it later wait for the head that stays within its own. */
static void borrowed_quota_comes_back_to_a_starving_head(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=32");
    given_queue(s, "q", "cpu=4 cohort=c starvation=10m");
    given_queue(s, "other", "cpu=0 cohort=c");
    given_job(s, "borrows", "other", "pods=2 cpu=1 max-runtime=1h");
    scenario_start(s);
    gang_starts(s, "borrows", "n1 n1");
    given_job(s, "head", "q", "pods=4 cpu=1");
    given_job(s, "before", "other", "pods=1 cpu=1 max-runtime=20m");
    expect_state(s, "before", "Admitted");
    at(s, 10 * MINUTE);
    given_job(s, "after", "other", "pods=1 cpu=1 max-runtime=51m");
    expect_state(s, "after", "Pending ReservedForOther");
}

/* -- restarts -----------------------------------------------------------------------------------
 */

static void the_wait_goes_on_over_a_restart(void **state)
{
    struct scenario *s = *state;
    given_a_head(s, "cpu=4 starvation=30m");
    at(s, 20 * MINUTE);
    restart(s, WITHOUT_ADMISSIONS);
    given_job(s, "before", "q", "pods=1 cpu=1");
    expect_state(s, "before", "Admitted");
    at(s, 31 * MINUTE);
    check_i64(likely_start_ms(s, "head"), LIKELY_UNKNOWN);
    restart(s, WITH_ADMISSIONS);
    given_job(s, "after", "q", "pods=1 cpu=1");
    expect_state(s, "after", "Pending ReservedForOther");
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "after", "Pending ReservedForOther");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(small_gangs_overtake_until_the_bound),
        scenario_test(the_core_wakes_when_the_bound_passes),
        scenario_test(without_a_bound_they_overtake_for_ever),
        scenario_test(the_head_starts_soon_after_its_bound),
        scenario_test(and_never_without_one),
        scenario_test(the_wait_counts_from_the_start_of_waiting),
        scenario_test(a_failed_start_begins_a_new_wait),
        scenario_test(a_bound_of_zero_is_a_reservation_at_once),
        scenario_test(a_bound_that_is_taken_off_lets_them_go),
        scenario_test(room_is_kept_from_the_queues_of_other_trees),
        scenario_test(a_strict_queue_may_have_a_bound_too),
        scenario_test(borrowed_quota_comes_back_to_a_starving_head),
        scenario_test(the_wait_goes_on_over_a_restart),
    };
    return cmocka_run_group_tests_name("scenario/starvation", tests, NULL, NULL);
}
