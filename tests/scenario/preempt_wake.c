/* A gang that could start only by stopping others is looked at again when something else comes
 * free: what it then lacks may be no more than what those others hold. */
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

static void given_classes(struct scenario *s)
{
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 9);
}

/* 3 of 4 for an equal, 1 for a lower one: neither alone makes room, both together do. */
static void release_of_quota_leaves_the_rest_to_be_preempted(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "equal", "q", "pods=3 cpu=1 priority=mid created=0");
    given_job(s, "lower", "q", "pods=1 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "equal", "n1 n1 n1");
    gang_starts(s, "lower", "n1");
    given_job(s, "waits", "q", "pods=2 cpu=2 priority=mid created=1000");
    expect_state(s, "waits", "Pending QuotaExhausted");
    job_finishes(s, "equal");
    expect_state(s, "waits", "Reserved WaitingForVictims");
    gang_stops(s, "lower");
    expect_state(s, "waits", "Admitted");
}

/* The lower one was let in while the gang waited already. */
static void victim_that_came_after_the_gang_was_parked(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "equal", "q", "pods=3 cpu=1 priority=mid created=0");
    scenario_start(s);
    gang_starts(s, "equal", "n1 n1 n1");
    given_job(s, "waits", "q", "pods=2 cpu=2 priority=mid created=1000");
    given_job(s, "lower", "q", "pods=1 cpu=1 priority=low created=2000");
    expect_state(s, "lower", "Admitted");
    gang_starts(s, "lower", "n1");
    job_finishes(s, "equal");
    expect_state(s, "waits", "Reserved WaitingForVictims");
}

/* The quota is short, and what a foreign pod held was room that no preemption could make. */
/* Nothing comes free, and yet there is somebody now who may be stopped. */
static void class_of_a_holder_that_is_lowered(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "holds", "q", "pods=4 cpu=1 priority=mid created=0");
    scenario_start(s);
    gang_starts(s, "holds", "n1 n1 n1 n1");
    given_job(s, "waits", "q", "pods=2 cpu=1 priority=low created=1000");
    expect_state(s, "waits", "Pending QuotaExhausted");
    given_priority_class(s, "mid", 0);
    expect_state(s, "waits", "Reserved WaitingForVictims");
    expect_state(s, "holds", "Suspending WaitingForTermination");
    gang_stops(s, "holds");
    expect_state(s, "waits", "Admitted");
}

static void room_comes_free_that_preemption_lacked(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_pod(s, "other", "n1", "cpu=2");
    given_job(s, "lower", "q", "pods=1 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "lower", "n1");
    given_job(s, "waits", "q", "pods=2 cpu=2 priority=mid created=1000");
    expect_state(s, "waits", "Pending QuotaExhausted");
    pod_gone(s, "other");
    expect_state(s, "waits", "Reserved WaitingForVictims");
}

/* While the one that preempts passes from Reserved to Admitted its quota is free for a moment: the
 * gang that this wakes is judged all the same, because there is somebody to stop now. */
static void quota_that_others_take_at_once_hides_nobody_to_preempt(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "mine", "cpu=4 cohort=lab within=LowerPriority reclaim=Any");
    given_queue(s, "theirs", "cpu=4 cohort=lab");
    given_job(s, "borrows", "theirs", "pods=6 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "borrows", "n1 n1 n1 n1 n1 n1");
    given_job(s, "waits", "mine", "pods=8 cpu=1 priority=mid created=1000");
    expect_state(s, "waits", "Pending CohortExhausted"); /* it would borrow */
    given_job(s, "lower", "mine", "pods=4 cpu=1 priority=low created=2000");
    expect_state(s, "lower", "Reserved WaitingForVictims");
    gang_stops(s, "borrows");
    expect_state(s, "lower", "Pending CohortExhausted"); /* it had no pods yet */
    expect_state(s, "waits", "Admitted");
}

/* While pods are on their way it counts with the worst: that they take the place that it needs. */
static void pods_that_land_elsewhere_leave_room_that_preemption_lacked(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=4 example.com/gpu=2");
    given_node(s, "n2", "cpu=4");
    given_queue(s, "q", "cpu=4 example.com/gpu=2 within=LowerPriority");
    given_queue(s, "other", "cpu=4");
    given_job(s, "lower", "q", "pods=1 cpu=3 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "lower", "n2");
    given_job(s, "on-its-way", "other", "pods=1 cpu=1 priority=high created=1000");
    expect_state(s, "on-its-way", "Admitted");
    given_job(s, "waits", "q", "pods=1 cpu=4 example.com/gpu=2 priority=mid created=2000");
    expect_state(s, "waits", "Pending QuotaExhausted");
    gang_starts(s, "on-its-way", "n2");
    expect_state(s, "waits", "Reserved WaitingForVictims");
    gang_stops(s, "lower");
    expect_state(s, "waits", "Admitted");
}

/* Who is newer is told by creation, as where victims are sought: a gang that went to the back of
 * its queue for not starting in time hides none that was created later. */
static void newest_is_who_was_created_last(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=64");
    given_queue(s, "q", "cpu=4 within=LowerOrNewerEqualPriority timeout=60s base=1s");
    given_job(s, "late", "q", "pods=1 cpu=1 created=0");
    given_job(s, "ends", "q", "pods=2 cpu=1 created=0");
    scenario_start(s);
    gang_starts(s, "ends", "n1 n1");
    at(s, 60000);
    gang_stops(s, "late");
    at(s, 70000);
    expect_state(s, "late", "Admitted");
    gang_starts(s, "late", "n1");
    given_job(s, "newer", "q", "pods=1 cpu=1 created=50000");
    gang_starts(s, "newer", "n1");
    given_job(s, "waits", "q", "pods=1 cpu=3 created=40000");
    expect_state(s, "waits", "Pending QuotaExhausted");
    job_finishes(s, "ends");
    expect_state(s, "waits", "Reserved WaitingForVictims");
    gang_stops(s, "newer");
    expect_state(s, "waits", "Admitted");
}

/* Another queue's release in the cohort: the rest is taken back from the one that borrows. */
static void release_elsewhere_leaves_the_rest_to_be_reclaimed(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "mine", "cpu=4 cohort=lab reclaim=LowerPriority");
    given_queue(s, "theirs", "cpu=0 cohort=lab");
    given_job(s, "stays", "theirs", "pods=3 cpu=1 priority=high created=0");
    given_job(s, "goes", "theirs", "pods=1 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "stays", "n1 n1 n1");
    gang_starts(s, "goes", "n1");
    given_job(s, "waits", "mine", "pods=2 cpu=2 priority=mid created=1000");
    expect_state(s, "waits", "Pending CohortExhausted");
    job_finishes(s, "stays");
    expect_state(s, "waits", "Reserved WaitingForVictims");
}

/* The borrower's claims have devices, and as long as nobody knows whose these are, stopping it
 * seems to make no room. */
static void given_an_owner_beside_unknown_claims(struct scenario *s)
{
    given_node(s, "n1", "cpu=64");
    given_devices(s, "n1", "g0 g1 g2");
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_template(s, "one", "gpu.example.com", 1);
    given_claim(s, "borrows-0-one", "gpu.example.com", 1);
    given_claim(s, "borrows-1-one", "gpu.example.com", 1);
    given_queue(s, "mine", "gpu.example.com=3 cohort=lab reclaim=Any");
    given_queue(s, "theirs", "gpu.example.com=0 cohort=lab");
    given_job(s, "borrows", "theirs", "pods=2 template=one created=0");
    scenario_start(s);
    expect_state(s, "borrows", "Admitted");
    claim_allocated(s, "borrows-0-one", "n1/g0");
    claim_allocated(s, "borrows-1-one", "n1/g1");
    given_job(s, "owner", "mine", "pods=3 template=one created=1000");
    gang_starts(s, "borrows", "n1 n1");
    expect_state(s, "owner", "Pending CohortExhausted");
}

static void pods_that_are_seen_after_their_claims_may_be_stopped(void **state)
{
    struct scenario *s = *state;
    given_an_owner_beside_unknown_claims(s);
    claim_reserved(s, "borrows-0-one", "borrows-0");
    claim_reserved(s, "borrows-1-one", "borrows-1");
    expect_state(s, "owner", "Pending CohortExhausted");
    pod_claims(s, "borrows-0", "one", "n1/g0");
    pod_claims(s, "borrows-1", "one", "n1/g1");
    expect_state(s, "owner", "Reserved WaitingForVictims");
}

static void claims_whose_users_are_told_last_may_be_set_free(void **state)
{
    struct scenario *s = *state;
    given_an_owner_beside_unknown_claims(s);
    pod_claims(s, "borrows-0", "one", "n1/g0"); /* the pod first, then who uses the claim */
    pod_claims(s, "borrows-1", "one", "n1/g1");
    expect_state(s, "owner", "Reserved WaitingForVictims");
}

/* 3 against 3 is no lower share; once the other queue has 4, it is. */
static void another_queues_share_grows_beyond_what_the_gang_would_have(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "mine", "cpu=0 cohort=lab weight=1 reclaim=Any");
    given_queue(s, "theirs", "cpu=0 cohort=lab weight=1");
    given_queue(s, "bank", "cpu=5 cohort=lab");
    given_job(s, "goes", "theirs", "pods=3 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "goes", "n1 n1 n1");
    given_job(s, "waits", "mine", "pods=3 cpu=1 priority=mid created=1000");
    expect_state(s, "waits", "Pending CohortExhausted");
    given_job(s, "more", "theirs", "pods=1 cpu=1 priority=mid created=2000");
    expect_state(s, "waits", "Reserved WaitingForVictims");
    expect_state(s, "goes", "Suspending WaitingForTermination");
    gang_stops(s, "goes");
    expect_state(s, "waits", "Admitted");
    expect_state(s, "goes", "Pending CohortExhausted");
}

/* What it holds is its own until it borrows; then what it borrowed is taken back. */
static void another_queue_begins_to_borrow(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "wide", "cpu=2");
    given_node(s, "narrow", "cpu=1");
    given_queue(s, "mine", "cpu=4 cohort=lab reclaim=Any");
    given_queue(s, "theirs", "cpu=2 cohort=lab");
    given_job(s, "goes", "theirs", "pods=1 cpu=2 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "goes", "wide");
    given_job(s, "waits", "mine", "pods=1 cpu=2 priority=mid created=1000");
    expect_state(s, "waits", "Pending NodesFull");
    given_job(s, "more", "theirs", "pods=1 cpu=1 priority=mid created=2000");
    expect_state(s, "more", "Admitted");
    gang_starts(s, "more", "narrow");
    expect_state(s, "waits", "Reserved WaitingForVictims");
    gang_stops(s, "goes");
    expect_state(s, "waits", "Admitted");
}

/* It stays within its own quota: nothing has changed for those that wait. */
static void another_queue_that_uses_its_own_wakes_nobody(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "mine", "cpu=1 cohort=lab reclaim=Any");
    given_queue(s, "theirs", "cpu=4 cohort=lab");
    scenario_start(s);
    given_job(s, "runs", "mine", "pods=1 cpu=1 priority=high created=0");
    gang_starts(s, "runs", "n1");
    given_job(s, "waits", "mine", "pods=5 cpu=1 priority=mid created=1000");
    expect_state(s, "waits", "Pending CohortExhausted");
    (void)counts_take(s);
    given_job(s, "more", "theirs", "pods=1 cpu=1 priority=mid created=2000");
    expect_state(s, "more", "Admitted");
    check_i64(counts_take(s).gangs_visited, 1);
}

/* Room on a node that it can't use is nothing to it; room on one that it could is. */
static void room_that_cannot_help_wakes_nobody(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=64");
    given_node(s, "n2", "cpu=64 cordoned=true");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "equal", "q", "pods=3 cpu=1 priority=mid created=0");
    given_job(s, "lower", "q", "pods=1 cpu=1 priority=low created=0");
    given_pod(s, "here", "n1", "cpu=1");
    given_pod(s, "there", "n2", "cpu=1");
    scenario_start(s);
    gang_starts(s, "equal", "n1 n1 n1");
    gang_starts(s, "lower", "n1");
    given_job(s, "waits", "q", "pods=2 cpu=2 priority=mid created=1000");
    expect_state(s, "waits", "Pending QuotaExhausted");
    (void)counts_take(s);
    object_gone(s, KIND_POD, "there");
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.shapes_woken, 0);
    assert_int_equal(counts.gangs_visited, 0);
    object_gone(s, KIND_POD, "here");
    assert_int_equal(counts_take(s).gangs_visited, 1);
    job_finishes(s, "equal");
    expect_state(s, "waits", "Reserved WaitingForVictims");
}

/* Whatever flavor it chose, it would have to borrow all: nothing is lent that is its own. */
static void gang_with_nothing_of_its_own_isnt_woken_to_reclaim(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=64");
    given_flavor(s, "oak", "");
    given_flavor(s, "pine", "");
    given_queue(s, "theirs", "flavor=oak cpu=3 flavor=pine cpu=1 cohort=lab");
    given_queue(s, "mine", "flavor=oak cpu=0 flavor=pine cpu=0 cohort=lab reclaim=Any");
    given_job(s, "a", "theirs", "pods=2 cpu=1 priority=low created=0");
    given_job(s, "b", "theirs", "pods=1 cpu=1 priority=low created=0");
    scenario_start(s);
    given_job(s, "waits", "mine", "pods=2 cpu=1 priority=high created=1000");
    expect_state(s, "waits", "Pending CohortExhausted");
    (void)counts_take(s);
    job_finishes(s, "b");
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.gangs_visited, 0);
}

/* Room that is only promised is worth waiting for, until somebody else is let into what there is
 * beside it: then others have to stop, though nothing has come free. */
static void room_promised_to_others_is_waited_for_until_it_is_too_little(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_queue(s, "q", "cpu=64 within=LowerPriority");
    given_job(s, "first", "q", "pods=2 cpu=1 priority=low created=0");
    scenario_start(s);
    given_job(s, "waits", "q", "pods=1 cpu=4 priority=high created=1000");
    expect_state(s, "waits", "Pending ReservedForOther");
    given_job(s, "late", "q", "pods=2 cpu=2 priority=low created=2000");
    expect_state(s, "late", "Pending ReservedForOther"); /* it had no pods yet */
    expect_state(s, "waits", "Admitted");
}

/* `lender` is stopped for `small`, which leaves 2 of its 3: with the one of `own` they are enough.
 */
static void what_begins_to_stop_leaves_enough_beside_another(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "a", "cpu=2 cohort=lab within=LowerPriority reclaim=Any");
    given_queue(s, "b", "cpu=2 cohort=lab");
    given_job(s, "lender", "b", "pods=3 cpu=1 priority=low created=0");
    given_job(s, "own", "a", "pods=1 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "lender", "n1 n1 n1");
    gang_starts(s, "own", "n1");
    given_job(s, "waits", "a", "pods=3 cpu=1 priority=high created=1000");
    expect_state(s, "waits", "Pending CohortExhausted");
    given_job(s, "small", "a", "pods=1 cpu=1 priority=mid created=2000");
    expect_state(s, "small", "Reserved WaitingForVictims");
    expect_state(s, "lender", "Suspending WaitingForTermination");
    expect_state(s, "waits", "Reserved WaitingForVictims");
    expect_state(s, "own", "Suspending WaitingForTermination");
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "waits", "Reserved WaitingForVictims");
    gang_stops(s, "lender");
    gang_stops(s, "own");
    expect_state(s, "small", "Admitted");
    expect_state(s, "waits", "Admitted");
}

/* Who takes all that is to stop for him leaves nothing: nobody looks again. */
static void what_begins_to_stop_and_is_all_taken_wakes_nobody(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "equal", "q", "pods=2 cpu=1 priority=mid created=0");
    given_job(s, "lower", "q", "pods=1 cpu=1 priority=low created=0");
    given_job(s, "lower-too", "q", "pods=1 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "equal", "n1 n1");
    gang_starts(s, "lower", "n1");
    gang_starts(s, "lower-too", "n1");
    given_job(s, "waits", "q", "pods=3 cpu=1 priority=mid created=1000");
    expect_state(s, "waits", "Pending QuotaExhausted");
    (void)counts_take(s);
    given_job(s, "takes", "q", "pods=1 cpu=1 priority=high created=2000");
    expect_state(s, "takes", "Reserved WaitingForVictims");
    check_i64(counts_take(s).gangs_visited, 1);
}

/* All that is free is promised to `borrows`, which is no reason to stop anybody; that it borrows
 * it, since its queue's quota was cut, is. */
static void room_promised_to_whom_has_begun_to_borrow(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_node(s, "n3", "cpu=3");
    given_queue(s, "mine", "cpu=8 cohort=lab reclaim=Any");
    given_queue(s, "theirs", "cpu=6 cohort=lab");
    given_job(s, "borrows", "theirs", "pods=4 cpu=1 priority=mid created=0");
    given_job(s, "other", "theirs", "pods=2 cpu=1 priority=mid created=1");
    scenario_start(s);
    given_job(s, "waits", "mine", "pods=2 cpu=2 priority=mid created=1000");
    expect_state(s, "waits", "Pending ReservedForOther");
    quota_becomes(s, "theirs", "cpu=1 cohort=lab");
    expect_state(s, "waits", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(release_of_quota_leaves_the_rest_to_be_preempted),
        scenario_test(victim_that_came_after_the_gang_was_parked),
        scenario_test(class_of_a_holder_that_is_lowered),
        scenario_test(room_comes_free_that_preemption_lacked),
        scenario_test(quota_that_others_take_at_once_hides_nobody_to_preempt),
        scenario_test(pods_that_land_elsewhere_leave_room_that_preemption_lacked),
        scenario_test(newest_is_who_was_created_last),
        scenario_test(release_elsewhere_leaves_the_rest_to_be_reclaimed),
        scenario_test(pods_that_are_seen_after_their_claims_may_be_stopped),
        scenario_test(claims_whose_users_are_told_last_may_be_set_free),
        scenario_test(another_queues_share_grows_beyond_what_the_gang_would_have),
        scenario_test(another_queue_begins_to_borrow),
        scenario_test(another_queue_that_uses_its_own_wakes_nobody),
        scenario_test(room_that_cannot_help_wakes_nobody),
        scenario_test(gang_with_nothing_of_its_own_isnt_woken_to_reclaim),
        scenario_test(what_begins_to_stop_leaves_enough_beside_another),
        scenario_test(what_begins_to_stop_and_is_all_taken_wakes_nobody),
        scenario_test(room_promised_to_others_is_waited_for_until_it_is_too_little),
        scenario_test(room_promised_to_whom_has_begun_to_borrow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
