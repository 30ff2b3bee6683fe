/* What waits until a costly device selector has been tried, and what doesn't: victims, kept room,
 * those behind a head. */
#include "selector_cost.h"

static void nobody_is_stopped_before_all_is_known(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_costly_class(s, "never.x", "false", 0);
    given_priority_class(s, "high", 10);
    quota_becomes(s, "q",
                  "cpu=100 gpu.example.com=100 costly.x=100 never.x=100 within=LowerPriority");
    given_job(s, "low", "q", "pods=20 cpu=1 template=plain");
    (void)wakes_at_once(s, TICKS);
    gang_starts(s, "low", "n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1");
    for (int i = 0; i < DEVICES; i++) {
        char pod[32];
        char device[32];
        (void)snprintf(pod, sizeof(pod), "low-%d", i);
        (void)snprintf(device, sizeof(device), "n1/g%d", i);
        pod_claims(s, pod, "plain", device);
    }
    expect_state(s, "low", "Running");
    given_job(s, "never", "q", "pods=1 cpu=1 template=never.x priority=high");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "never", "Pending NeverFits");
    expect_state(s, "low", "Running");
    given_job(s, "high", "q", "pods=1 cpu=1 template=costly.x priority=high");
    (void)wakes_at_once(s, 3);
    expect_state(s, "low", "Running");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "low", "Suspending WaitingForTermination");
    gang_stops(s, "low");
    (void)wakes_at_once(s, TICKS);
    for (int i = 0; i < DEVICES; i++) {
        char claim[32];
        (void)snprintf(claim, sizeof(claim), "low-%d-plain", i);
        claim_freed(s, claim);
    }
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "high", "Admitted");
    expect_bounded(s);
}

/* Devices that come while victims stop: the room stays the gang's until it is known what they are,
 * and no step tries more for that than others do. */
static void room_is_kept_until_new_devices_are_known(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_priority_class(s, "high", 10);
    quota_becomes(s, "q", "cpu=20 costly.x=100 within=LowerPriority");
    given_job(s, "low", "q", "pods=20 cpu=1");
    (void)wakes_at_once(s, TICKS);
    gang_starts(s, "low", "n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1");
    given_job(s, "high", "q", "pods=1 cpu=1 template=costly.x priority=high");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "low", "Suspending WaitingForTermination");
    expect_state(s, "high", "Reserved WaitingForVictims");
    (void)counts_take(s);
    given_node(s, "n2", "cpu=1");
    given_devices_of(s, "n2", DEVICES);
    gang_stops(s, "low");
    expect_state(s, "high", "Reserved WaitingForVictims");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "high", "Admitted");
    expect_bounded(s);
}

static void nobody_overtakes_in_a_strict_queue(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_job(s, "head", "strict", "pods=1 cpu=1 template=costly.x created=1000");
    given_job(s, "next", "strict", "pods=1 cpu=1 created=2000");
    given_job(s, "last", "strict", "pods=1 cpu=1 template=plain created=3000");
    (void)wakes_at_once(s, 5);
    expect_state(s, "head", "Pending");
    expect_state(s, "next", "Pending BehindInQueue");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "head", "Admitted");
    expect_state(s, "next", "Admitted");
    expect_state(s, "last", "Admitted");
    expect_bounded(s);
}

/* Nor behind one that comes in front of all, can never start, and is passed over. */
static void nobody_overtakes_whoever_is_still_tried(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_priority_class(s, "high", 10);
    given_job(s, "head", "strict", "pods=1 cpu=1 template=costly.x created=1000");
    given_job(s, "next", "strict", "pods=1 cpu=1 created=2000");
    given_job(s, "never", "strict", "pods=1 cpu=1 gone.example.com=1 priority=high");
    (void)wakes_at_once(s, 5);
    expect_state(s, "never", "Pending NoMatchingFlavor");
    expect_state(s, "head", "Pending");
    expect_state(s, "next", "Pending BehindInQueue");
    job_annotated(s, "next", "example.com/told", "again");
    expect_state(s, "next", "Pending BehindInQueue");
    given_job(s, "last", "strict", "pods=1 cpu=2 created=3000");
    expect_state(s, "last", "Pending BehindInQueue");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "head", "Admitted");
    expect_state(s, "next", "Admitted");
    expect_bounded(s);
}

/* An autoscaler has made the room, and which devices a gang on its way may take is still tried: who
 * waited for the room starts when that is known. */
static void room_that_is_made_waits_for_what_is_tried(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_queue(s, "auto", "cpu=100 check=best.example.com");
    given_job(s, "on-its-way", "q", "pods=1 cpu=1 template=costly.x");
    (void)wakes_at_once(s, TICKS);
    given_job(s, "j", "auto", "pods=1 cpu=1");
    expect_state(s, "j", "Reserved WaitingForCheck");
    events_gather(s);
    given_devices_of(s, "n1", DEVICES + 5);
    request_says_that(s, request_of(s, "j"), "Provisioned", "done");
    events_arrive(s, 0);
    expect_state(s, "j", "Reserved WaitingForCheck");
    expect_message(s, "j", "is provisioned");
    assert_true(wakes_at_once(s, TICKS) > 1);
    expect_state(s, "j", "Admitted");
    expect_bounded(s);
}

/* When the head of a queue that keeps room starts isn't worked out before all is known. */
static void kept_room_waits_for_what_is_tried(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_queue(s, "fill", "cpu=100 costly.x=100 strategy=Backfill default-runtime=1h");
    given_job(s, "holds", "fill", "pods=15 cpu=1 template=costly.x");
    (void)wakes_at_once(s, TICKS);
    given_job(s, "short", "q", "pods=1 cpu=1");
    given_job(s, "head", "fill", "pods=18 cpu=1 template=costly.x");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "head", "Pending DevicesExhausted");
    at(s, 60000); /* so that it is worked out again after a change */
    expect_bounded(s);
    events_gather(s);
    job_finishes(s, "short");
    given_devices_of(s, "n1", DEVICES + 5);
    events_arrive(s, 0);
    expect_bounded(s);
    (void)wakes_at_once(s, 1);
    expect_state(s, "head", "Pending DevicesExhausted");
    expect_bounded(s);
    (void)wakes_at_once(s, TICKS);
    given_devices_of(s, "n1", DEVICES + 20);
    expect_bounded(s);
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "head", "Admitted");
    expect_bounded(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        stepwise_test(nobody_is_stopped_before_all_is_known),
        stepwise_test(room_is_kept_until_new_devices_are_known),
        stepwise_test(nobody_overtakes_in_a_strict_queue),
        stepwise_test(nobody_overtakes_whoever_is_still_tried),
        stepwise_test(room_that_is_made_waits_for_what_is_tried),
        stepwise_test(kept_room_waits_for_what_is_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
