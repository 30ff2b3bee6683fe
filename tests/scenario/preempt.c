/* Preemption as a transaction: victims are stopped whole and once, their room is the gang's that
 * they stop for, and each such change of hands ends in its start or is called off. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define TIMEOUT_MS (10 * 60 * 1000)
#define CLASS      "gpu.example.com"

/* A queue of 4 that `low` fills, two pods on each of two nodes. */
static void given_low(struct scenario *s, const char *queue_options)
{
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=2");
    given_node(s, "n2", "cpu=2");
    given_queue(s, "q", queue_options);
    given_job(s, "low", "q", "pods=4 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "low", "n1 n1 n2 n2");
    expect_state(s, "low", "Running");
    at(s, 1000);
    trace_forget(s);
}

static void given_high(struct scenario *s)
{
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high created=1000");
}

/* -- from the first stop to the start ------------------------------------------------------------
 */

static void victims_stop_and_the_beneficiary_starts_in_their_room(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority");
    given_high(s);
    expect_state(s, "low", "Suspending WaitingForTermination");
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_used(s, "q", "cpu=8"); /* the one's own, and what the other still holds */
    pod_gone(s, "low-0");
    pod_gone(s, "low-1");
    pod_gone(s, "low-2");
    expect_state(s, "high", "Reserved WaitingForVictims");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    expect_state(s, "low", "Pending QuotaExhausted");
    expect_used(s, "q", "cpu=4");
    gang_starts(s, "high", "n1 n1 n2 n2");
    expect_state(s, "high", "Running");
    job_finishes(s, "high");
    expect_state(s, "low", "Admitted");
    expect_used(s, "q", "cpu=4");
}

static void victim_is_in_its_old_place_in_the_queue(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority");
    given_job(s, "later", "q", "pods=4 cpu=1 priority=low created=500");
    given_high(s);
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    gang_starts(s, "high", "n1 n1 n2 n2");
    job_finishes(s, "high");
    expect_state(s, "low", "Admitted");
    expect_state(s, "later", "Pending QuotaExhausted");
}

static void room_that_comes_free_is_no_third_gangs(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=9 within=LowerPriority");
    given_high(s);
    expect_state(s, "high", "Reserved WaitingForVictims");
    pod_gone(s, "low-0");
    given_job(s, "third", "q", "pods=1 cpu=1 priority=high created=2000");
    assert_true(scenario_job(s, "third")->spec.suspend.value);
    at(s, 2000);
    pod_gone(s, "low-1");
    assert_true(scenario_job(s, "third")->spec.suspend.value);
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    assert_true(scenario_job(s, "third")->spec.suspend.value);
}

/* The pod is gone, its claim not yet: the device is still in use, and the room still reserved. */
static void devices_that_are_freed_late_are_waited_for(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0 g1");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one-gpu", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=2 within=LowerPriority");
    given_job(s, "train-a", "q", "pods=2 template=one-gpu priority=low created=0");
    scenario_start(s);
    gang_starts(s, "train-a", "n1 n1");
    pod_claims(s, "train-a-0", "one-gpu", "n1/g0");
    pod_claims(s, "train-a-1", "one-gpu", "n1/g1");
    expect_state(s, "train-a", "Running");
    given_job(s, "urgent", "q", "pods=2 template=one-gpu priority=high created=1000");
    expect_state(s, "urgent", "Reserved WaitingForVictims");
    gang_stops(s, "train-a");
    expect_state(s, "urgent", "Reserved WaitingForVictims");
    claim_freed(s, "train-a-0-one-gpu");
    expect_state(s, "urgent", "Reserved WaitingForVictims");
    claim_freed(s, "train-a-1-one-gpu");
    expect_state(s, "urgent", "Admitted");
    expect_used(s, "q", "gpu.example.com=2");
}

/* -- the victim's side ---------------------------------------------------------------------------
 */

static void conflict_on_a_victims_patch_stops_it_again_and_counts_once(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority");
    writes_are_manual(s, true);
    given_high(s);
    assert_true(write_is_out(s, "low"));
    write_conflict(s, "low");
    object_again(s, KIND_JOB, "low");
    job_annotated(s, "low", "example.com/note", "x");
    assert_true(write_is_out(s, "low"));
    expect_state(s, "high", "Reserved WaitingForVictims");
    write_ok(s, "low", true);
    assert_false(write_is_out(s, "low"));
    const char *event = strstr(trace_text(s), "low ! Warning PreemptedWithinQueue");
    assert_non_null(event);
    assert_null(strstr(event + 1, "low ! Warning PreemptedWithinQueue"));
    writes_are_manual(s, false);
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
}

static void victim_deleted_meanwhile_leaves_its_room(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority");
    given_high(s);
    job_deleted_now(s, "low");
    expect_state(s, "high", "Reserved WaitingForVictims");
    for (int i = 0; i < 4; i++) {
        char pod[16];
        snprintf(pod, sizeof(pod), "low-%d", i);
        pod_gone(s, pod);
    }
    expect_state(s, "high", "Admitted");
    expect_used(s, "q", "cpu=4");
}

static void victim_that_finishes_first_leaves_its_room(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority");
    given_high(s);
    job_finishes(s, "low");
    expect_state(s, "low", "Finished");
    expect_state(s, "high", "Admitted");
}

/* A gang whose own start isn't settled yet isn't stopped in that moment, and is right after. */
static void victim_with_a_write_on_its_way_is_stopped_when_that_is_settled(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    scenario_start(s);
    writes_are_manual(s, true);
    given_job(s, "low", "q", "pods=4 cpu=1 priority=low created=0");
    given_high(s);
    expect_state(s, "high", "Pending QuotaExhausted");
    writes_are_manual(s, false);
    write_ok(s, "low", true);
    expect_state(s, "high", "Admitted"); /* no pod had been made yet */
    expect_state(s, "low", "Pending QuotaExhausted");
}

static void protected_victim_is_stopped_when_its_time_is_over(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority protect=60s");
    given_high(s);
    expect_state(s, "high", "Pending QuotaExhausted");
    at(s, 59999);
    expect_state(s, "low", "Running");
    at(s, 60000);
    expect_state(s, "low", "Suspending WaitingForTermination");
    expect_state(s, "high", "Reserved WaitingForVictims");
}

/* -- the beneficiary's side -----------------------------------------------------------------------
 */

static void beneficiary_deleted_lets_the_victim_come_back(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority");
    given_high(s);
    job_deleted_now(s, "high");
    expect_used(s, "q", "cpu=4");
    expect_state(s, "low", "Suspending WaitingForTermination");
    gang_stops(s, "low");
    expect_state(s, "low", "Admitted");
}

static void beneficiary_held_gives_the_room_up(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority");
    given_high(s);
    job_annotated(s, "high", "tallyman.dev/hold", "true");
    expect_state(s, "high", "Held Held");
    expect_used(s, "q", "cpu=4");
    gang_stops(s, "low");
    expect_state(s, "low", "Admitted");
}

static void beneficiary_that_shrinks_is_judged_anew(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority");
    given_high(s);
    job_resized(s, "high", 2, 2);
    expect_state(s, "high", "Reserved WaitingForVictims"); /* what stops for it still does */
    expect_used(s, "q", "cpu=6");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    expect_used(s, "q", "cpu=2");
}

static void time_out_gives_the_room_up(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority");
    given_high(s);
    at(s, 1000 + TIMEOUT_MS - 1);
    expect_state(s, "high", "Reserved WaitingForVictims");
    at(s, 1000 + TIMEOUT_MS);
    expect_state(s, "high", "Pending QuotaExhausted");
    expect_used(s, "q", "cpu=4");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    expect_state(s, "low", "Pending QuotaExhausted");
}

static void queue_stopped_meanwhile_ends_it(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority");
    given_high(s);
    quota_becomes(s, "q", "cpu=4 within=LowerPriority stop=Hold");
    gang_stops(s, "low");
    expect_state(s, "high", "Pending QueueStopped");
    expect_state(s, "low", "Pending QueueStopped");
    expect_used(s, "q", "");
}

static void one_stop_is_enough_whatever_the_rest_does(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority");
    given_high(s);
    given_job(s, "mid", "q", "pods=4 cpu=1 priority=mid created=1500");
    expect_state(s, "mid", "Pending QuotaExhausted");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    gang_starts(s, "high", "n1 n1 n2 n2");
    expect_state(s, "mid", "Pending QuotaExhausted");
    expect_state(s, "low", "Pending QuotaExhausted");
}

/* -- a restart in the middle
 * ----------------------------------------------------------------------- */

static void restart_while_victims_stop(void **state)
{
    struct scenario *s = *state;
    static const enum restart_with kinds[] = {WITH_ADMISSIONS, WITHOUT_ADMISSIONS};
    given_low(s, "cpu=4 within=LowerPriority");
    given_high(s);
    for (size_t i = 0; i < 2; i++) {
        restart(s, kinds[i]);
        expect_state(s, "high", "Reserved WaitingForVictims");
        expect_state(s, "low", "Suspending WaitingForTermination");
        expect_used(s, "q", "cpu=8");
    }
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
}

static void restart_when_the_last_victim_has_gone(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority");
    given_high(s);
    writes_are_manual(s, true);
    gang_stops(s, "low"); /* neither the start nor the restoring have come through */
    writes_are_manual(s, false);
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "high", "Admitted");
    expect_state(s, "low", "Pending QuotaExhausted");
    expect_used(s, "q", "cpu=4");
}

/* Of two victims one PATCH came through before the restart. */
static void restart_between_two_stops(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=6");
    given_queue(s, "q", "cpu=6 within=LowerPriority");
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        given_job(s, names[i], "q", "pods=2 cpu=1 priority=low created=0");
    }
    scenario_start(s);
    for (int i = 0; i < 3; i++) {
        gang_starts(s, names[i], "n1 n1");
    }
    writes_are_manual(s, true);
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high created=1000");
    int stopped = 0;
    const char *first = NULL;
    for (int i = 0; i < 3; i++) {
        stopped += write_is_out(s, names[i]) ? 1 : 0;
        first = first == NULL && write_is_out(s, names[i]) ? names[i] : first;
    }
    assert_int_equal(stopped, 2);
    write_ok(s, first, true);
    writes_are_manual(s, false);
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "high", "Reserved WaitingForVictims");
    int running = 0;
    for (int i = 0; i < 3; i++) {
        struct job *job = scenario_job(s, names[i]);
        running += job->spec.suspend.value ? 0 : 1;
    }
    assert_int_equal(running, 1);
}

static void restart_after_the_start(void **state)
{
    struct scenario *s = *state;
    given_low(s, "cpu=4 within=LowerPriority");
    given_high(s);
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "high", "Admitted");
    expect_state(s, "low", "Pending QuotaExhausted");
    expect_used(s, "q", "cpu=4");
}

/* -- sharing
 * ---------------------------------------------------------------------------------------- */

static void given_teams(struct scenario *s, const char *b_options)
{
    given_node(s, "n1", "cpu=16");
    given_queue(s, "team-a", "cpu=4 cohort=lab");
    given_queue(s, "team-b", b_options);
    static const char *const names[] = {"a1", "a2", "a3", "a4"};
    scenario_start(s);
    for (int i = 0; i < 4; i++) {
        at(s, 1000 * (i + 1));
        given_job(s, names[i], "team-a", "pods=2 cpu=1 created=0");
        expect_state(s, names[i], "Admitted");
        gang_starts(s, names[i], "n1 n1");
    }
    expect_used(s, "team-a", "cpu=8");
}

static void borrowed_gangs_are_given_back_whole_and_latest_first(void **state)
{
    struct scenario *s = *state;
    given_teams(s, "cpu=4 cohort=lab reclaim=Any");
    given_job(s, "b", "team-b", "pods=4 cpu=1 created=9000");
    expect_state(s, "a1", "Running");
    expect_state(s, "a2", "Running");
    expect_state(s, "a3", "Suspending WaitingForTermination");
    expect_state(s, "a4", "Suspending WaitingForTermination");
    expect_state(s, "b", "Reserved WaitingForVictims");
    gang_stops(s, "a4");
    expect_state(s, "a4", "Pending CohortExhausted");
    gang_stops(s, "a3");
    expect_state(s, "b", "Admitted");
    expect_used(s, "team-a", "cpu=4");
    expect_used(s, "team-b", "cpu=4");
    gang_starts(s, "b", "n1 n1 n1 n1");
    job_finishes(s, "b");
    expect_state(s, "a3", "Admitted");
    expect_state(s, "a4", "Admitted");
}

/* A second gang of the owner arrives while room is already on its way to the first. */
static void what_stops_already_is_not_stopped_for_a_second(void **state)
{
    struct scenario *s = *state;
    given_teams(s, "cpu=4 cohort=lab reclaim=Any");
    given_job(s, "b1", "team-b", "pods=2 cpu=1 created=9000");
    expect_state(s, "b1", "Reserved WaitingForVictims");
    given_job(s, "b2", "team-b", "pods=2 cpu=1 created=9500");
    expect_state(s, "b2", "Reserved WaitingForVictims");
    expect_state(s, "a2", "Running");
    expect_state(s, "a3", "Suspending WaitingForTermination");
    gang_stops(s, "a3");
    gang_stops(s, "a4");
    expect_state(s, "b1", "Admitted");
    expect_state(s, "b2", "Admitted");
    expect_used(s, "team-a", "cpu=4");
}

static void fair_shares_take_turns_as_room_comes_free(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_queue(s, "east", "cpu=0 cohort=lab weight=1");
    given_queue(s, "west", "cpu=0 cohort=lab weight=1");
    given_queue(s, "bank", "cpu=4 cohort=lab");
    given_job(s, "big", "bank", "pods=4 cpu=1 created=0");
    scenario_start(s);
    gang_starts(s, "big", "n1 n1 n1 n1");
    static const char *const east[] = {"e1", "e2", "e3"};
    static const char *const west[] = {"w1", "w2", "w3"};
    for (int i = 0; i < 3; i++) {
        given_job(s, east[i], "east", "pods=1 cpu=1 created=100");
        given_job(s, west[i], "west", "pods=1 cpu=1 created=200");
    }
    expect_state(s, "e1", "Pending CohortExhausted");
    job_finishes(s, "big");
    expect_used(s, "east", "cpu=2");
    expect_used(s, "west", "cpu=2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(victims_stop_and_the_beneficiary_starts_in_their_room),
        scenario_test(victim_is_in_its_old_place_in_the_queue),
        scenario_test(room_that_comes_free_is_no_third_gangs),
        scenario_test(devices_that_are_freed_late_are_waited_for),
        scenario_test(conflict_on_a_victims_patch_stops_it_again_and_counts_once),
        scenario_test(victim_deleted_meanwhile_leaves_its_room),
        scenario_test(victim_that_finishes_first_leaves_its_room),
        scenario_test(victim_with_a_write_on_its_way_is_stopped_when_that_is_settled),
        scenario_test(protected_victim_is_stopped_when_its_time_is_over),
        scenario_test(beneficiary_deleted_lets_the_victim_come_back),
        scenario_test(beneficiary_held_gives_the_room_up),
        scenario_test(beneficiary_that_shrinks_is_judged_anew),
        scenario_test(time_out_gives_the_room_up),
        scenario_test(queue_stopped_meanwhile_ends_it),
        scenario_test(one_stop_is_enough_whatever_the_rest_does),
        scenario_test(restart_while_victims_stop),
        scenario_test(restart_when_the_last_victim_has_gone),
        scenario_test(restart_between_two_stops),
        scenario_test(restart_after_the_start),
        scenario_test(borrowed_gangs_are_given_back_whole_and_latest_first),
        scenario_test(what_stops_already_is_not_stopped_for_a_second),
        scenario_test(fair_shares_take_turns_as_room_comes_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
