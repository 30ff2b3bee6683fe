/* Backfill: the head that has to wait gets a reservation, and who may overtake it. */
#include "support/check.h"
#include "support/scenario.h"

#define MINUTE 60000

/* -- the rule -----------------------------------------------------------------------------------
 */

static void a_gang_that_ends_in_time_goes_first(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=8 cpu=1 max-runtime=10m");
    given_job(s, "fits-the-hole", "q", "pods=2 cpu=1 max-runtime=59m");
    expect_state(s, "head", "Pending QuotaExhausted");
    expect_state(s, "fits-the-hole", "Admitted");
    check_i64(likely_start_minute(s, "head"), 60);
}

static void a_gang_that_would_still_run_waits(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=8 cpu=1 max-runtime=10m");
    given_job(s, "too-long", "q", "pods=2 cpu=1 max-runtime=60m");
    given_job(s, "says-nothing", "q", "pods=1 cpu=1");
    expect_state(s, "too-long", "Pending ReservedForOther");
    expect_message(s, "too-long",
                   "would take room that is kept for gang head of queue q (8 pods, 8 cpu), which "
                   "is ahead of it and starts by 2026-11-30T13:00:00Z");
    expect_state(s, "says-nothing", "Pending ReservedForOther");
    job_finishes(s, "long");
    expect_state(s, "head", "Admitted");
    expect_state(s, "too-long", "Pending QuotaExhausted");
}

/* Beside the head that is to start then, there is room for 4. */
static void what_the_reservation_doesnt_need_may_be_taken_for_ever(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=4 cpu=1");
    given_job(s, "other", "q", "pods=2 cpu=1");
    expect_state(s, "head", "Pending QuotaExhausted");
    expect_state(s, "other", "Admitted");
}

static void the_room_beside_the_reservation_is_given_once(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=7 cpu=1");
    given_job(s, "first", "q", "pods=1 cpu=1");
    given_job(s, "second", "q", "pods=1 cpu=1");
    expect_state(s, "first", "Admitted");
    expect_state(s, "second", "Pending ReservedForOther");
}

static void another_resource_is_nobodys_loss(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 nvidia.com/gpu=8");
    given_queue(s, "q", "nvidia.com/gpu=4 flavor=default strategy=Backfill");
    given_job(s, "long", "q", "pods=4 nvidia.com/gpu=1");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1 n1");
    given_job(s, "head", "q", "pods=4 nvidia.com/gpu=1");
    given_job(s, "cpu-only", "q", "pods=4 cpu=1");
    expect_state(s, "head", "Pending QuotaExhausted");
    expect_state(s, "cpu-only", "Admitted");
}

/* -- bounds -------------------------------------------------------------------------------------
 */

/* Nobody knows when the gang in the way ends: then a short one is no safer than a long one. */
static void without_a_known_end_only_what_is_harmless_goes_first(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=8 strategy=Backfill");
    given_job(s, "long", "q", "pods=6 cpu=1");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1 n1 n1 n1");
    given_job(s, "head", "q", "pods=7 cpu=1");
    given_job(s, "two", "q", "pods=2 cpu=1 max-runtime=1m");
    given_job(s, "one", "q", "pods=1 cpu=1");
    check_i64(likely_start_minute(s, "head"), LIKELY_UNKNOWN);
    expect_state(s, "two", "Pending ReservedForOther");
    expect_message(s, "two", "nobody knows when that one starts");
    expect_state(s, "one", "Admitted");
}

/* Of gangs without a known end only so many are waited for as the head needs: what the other one
 * holds isn't reckoned with, and so nothing more may be taken. */
static void no_more_room_is_kept_than_the_head_waits_for(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=9 strategy=Backfill");
    given_job(s, "small", "q", "pods=2 cpu=1");
    scenario_start(s);
    at(s, 1000);
    given_job(s, "large", "q", "pods=4 cpu=1");
    given_job(s, "head", "q", "pods=6 cpu=1");
    given_job(s, "two", "q", "pods=2 cpu=1");
    given_job(s, "one", "q", "pods=1 cpu=1");
    expect_state(s, "head", "Pending QuotaExhausted");
    expect_state(s, "two", "Pending ReservedForOther");
    expect_state(s, "one", "Admitted");
}

static void default_runtime_is_an_estimate_for_both_sides(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=8 strategy=Backfill default-runtime=30m");
    given_job(s, "long", "q", "pods=6 cpu=1");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1 n1 n1 n1");
    given_job(s, "head", "q", "pods=8 cpu=1");
    given_job(s, "also-half-an-hour", "q", "pods=1 cpu=1");
    given_job(s, "says-more", "q", "pods=1 cpu=1 max-runtime=31m");
    check_i64(likely_start_minute(s, "head"), 30);
    expect_state(s, "also-half-an-hour", "Admitted");
    expect_state(s, "says-more", "Pending ReservedForOther");
}

/* A gang that outlives its estimate is one whose end nobody knows. */
static void an_estimate_that_was_wrong_is_forgotten(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=8 strategy=Backfill default-runtime=30m");
    given_job(s, "long", "q", "pods=6 cpu=1");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1 n1 n1 n1");
    at(s, 31 * MINUTE);
    given_job(s, "head", "q", "pods=8 cpu=1");
    given_job(s, "short", "q", "pods=1 cpu=1 max-runtime=1m");
    check_i64(likely_start_minute(s, "head"), LIKELY_UNKNOWN);
    expect_state(s, "short", "Pending ReservedForOther");
}

/* ... unless the queue's maxRuntime ends it later. */
static void max_runtime_is_known_where_the_estimate_was_wrong(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=8 strategy=Backfill default-runtime=30m max-runtime=50m");
    given_job(s, "long", "q", "pods=6 cpu=1");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1 n1 n1 n1 n1");
    at(s, 31 * MINUTE);
    given_job(s, "head", "q", "pods=8 cpu=1");
    given_job(s, "short", "q", "pods=1 cpu=1 max-runtime=19m");
    check_i64(likely_start_minute(s, "head"), 50);
    expect_state(s, "short", "Admitted");
}

static void a_bound_that_comes_later_lets_a_gang_go_first(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=8 cpu=1");
    given_job(s, "says-nothing", "q", "pods=1 cpu=1");
    expect_state(s, "says-nothing", "Pending ReservedForOther");
    job_annotated(s, "says-nothing", "tallyman.dev/max-runtime", "20m");
    expect_state(s, "says-nothing", "Admitted");
}

/* The same ask with another bound is another gang to judge. */
static void a_short_gang_isnt_hidden_behind_a_long_one_that_asks_the_same(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=8 cpu=1");
    given_job(s, "long-one", "q", "pods=1 cpu=1 max-runtime=5h");
    given_job(s, "short-one", "q", "pods=1 cpu=1 deadline=600");
    expect_state(s, "long-one", "Pending ReservedForOther");
    expect_state(s, "short-one", "Admitted");
}

/* -- which gang is the head ---------------------------------------------------------------------
 */

static void an_impossible_head_is_passed_over(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "impossible", "q", "pods=9 cpu=1");
    given_job(s, "head", "q", "pods=8 cpu=1");
    given_job(s, "later", "q", "pods=2 cpu=1");
    expect_state(s, "impossible", "Pending NeverFits");
    check_i64(likely_start_minute(s, "impossible"), LIKELY_NONE);
    check_i64(likely_start_minute(s, "head"), 60);
    expect_state(s, "later", "Pending ReservedForOther");
}

static void a_more_urgent_gang_becomes_the_head(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "high", 10);
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=8 cpu=1");
    given_job(s, "later", "q", "pods=2 cpu=1");
    expect_state(s, "later", "Pending ReservedForOther");
    given_job(s, "urgent", "q", "pods=3 cpu=1 priority=high");
    check_i64(likely_start_minute(s, "urgent"), 60);
    check_i64(likely_start_minute(s, "head"), LIKELY_NONE);
    /* Beside the urgent one there is room for it: EASY keeps room for the first alone. */
    expect_state(s, "later", "Admitted");
}

static void a_more_urgent_gang_isnt_held_back(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "high", 10);
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=8 cpu=1");
    given_job(s, "urgent", "q", "pods=2 cpu=1 priority=high");
    expect_state(s, "urgent", "Admitted");
    at(s, 2 * MINUTE);
    check_i64(likely_start_minute(s, "head"), LIKELY_UNKNOWN);
}

static void a_head_that_goes_lets_the_others_go(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=8 cpu=1");
    given_job(s, "later", "q", "pods=2 cpu=1");
    expect_state(s, "later", "Pending ReservedForOther");
    job_deleted_now(s, "head");
    expect_state(s, "later", "Admitted");
}

static void a_head_that_is_held_lets_the_others_go(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=8 cpu=1");
    given_job(s, "later", "q", "pods=2 cpu=1");
    job_annotated(s, "head", "tallyman.dev/hold", "true");
    expect_state(s, "head", "Held Held");
    expect_state(s, "later", "Admitted");
}

static void another_strategy_ends_the_reservation(void **state)
{
    struct scenario *s = *state;
    given_a_long_one(s, "cpu=8 strategy=Backfill");
    given_job(s, "head", "q", "pods=8 cpu=1");
    given_job(s, "later", "q", "pods=2 cpu=1");
    expect_state(s, "later", "Pending ReservedForOther");
    quota_becomes(s, "q", "cpu=8");
    expect_state(s, "later", "Admitted");
    check_i64(likely_start_minute(s, "head"), LIKELY_NONE);
}

/* Foreign pods hold the room: no end of a gang would help, so overtaking does no harm. */
static void a_head_that_no_end_would_help_holds_nobody_back(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_queue(s, "q", "cpu=8 strategy=Backfill");
    given_pod(s, "foreign", "n1", "cpu=4");
    given_job(s, "head", "q", "pods=8 cpu=1");
    given_job(s, "later", "q", "pods=2 cpu=1");
    expect_state(s, "head", "Pending NodesFull");
    check_i64(likely_start_minute(s, "head"), LIKELY_UNKNOWN);
    expect_state(s, "later", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(a_gang_that_ends_in_time_goes_first),
        scenario_test(a_gang_that_would_still_run_waits),
        scenario_test(what_the_reservation_doesnt_need_may_be_taken_for_ever),
        scenario_test(the_room_beside_the_reservation_is_given_once),
        scenario_test(another_resource_is_nobodys_loss),
        scenario_test(without_a_known_end_only_what_is_harmless_goes_first),
        scenario_test(no_more_room_is_kept_than_the_head_waits_for),
        scenario_test(default_runtime_is_an_estimate_for_both_sides),
        scenario_test(an_estimate_that_was_wrong_is_forgotten),
        scenario_test(max_runtime_is_known_where_the_estimate_was_wrong),
        scenario_test(a_bound_that_comes_later_lets_a_gang_go_first),
        scenario_test(a_short_gang_isnt_hidden_behind_a_long_one_that_asks_the_same),
        scenario_test(an_impossible_head_is_passed_over),
        scenario_test(a_more_urgent_gang_becomes_the_head),
        scenario_test(a_more_urgent_gang_isnt_held_back),
        scenario_test(a_head_that_goes_lets_the_others_go),
        scenario_test(a_head_that_is_held_lets_the_others_go),
        scenario_test(another_strategy_ends_the_reservation),
        scenario_test(a_head_that_no_end_would_help_holds_nobody_back),
    };
    return cmocka_run_group_tests_name("scenario/backfill", tests, NULL, NULL);
}
