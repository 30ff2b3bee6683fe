/* Decisions while gangs stop are taken as if they were gone, with the devices that they leave: but
 * a device whose claim somebody else has begun to use isn't left. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

/* `first` holds g0, `second` g1, and `high` waits until both have stopped, for it needs two;
 * `other` holds g2. One that asks for more than there is has been judged meanwhile. */
static void given_two_that_stop(struct scenario *s)
{
    given_priority_class(s, "lowest", 0);
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_queue(s, "q", "cpu=64 " CLASS "=16 within=LowerPriority");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_template(s, "three", CLASS, 3);
    given_node(s, "n1", "cpu=8");
    given_devices(s, "n1", "g0 g1 g2");
    given_pod(s, "guest", "n1", "cpu=1");
    given_job(s, "first", "q", "pods=1 cpu=1 template=one priority=lowest created=0");
    given_job(s, "second", "q", "pods=1 cpu=1 template=one priority=lowest created=1");
    given_job(s, "other", "q", "pods=1 cpu=1 template=one priority=low created=2");
    scenario_start(s);
    gang_starts(s, "first", "n1");
    gang_starts(s, "second", "n1");
    gang_starts(s, "other", "n1");
    pod_claims(s, "first-0", "one", "n1/g0");
    pod_claims(s, "second-0", "one", "n1/g1");
    pod_claims(s, "other-0", "one", "n1/g2");
    at(s, 1000);
    given_job(s, "high", "q", "pods=2 cpu=1 template=one priority=high created=1000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    given_job(s, "too-much", "q", "pods=1 cpu=1 template=three priority=high created=1000");
    expect_state(s, "other", "Running");
}

static void what_both_leave_is_enough(void **state)
{
    struct scenario *s = *state;
    given_two_that_stop(s);
    given_job(s, "third", "q", "pods=1 cpu=1 template=one priority=high created=2000");
    expect_state(s, "third", "Reserved WaitingForVictims");
    expect_state(s, "other", "Suspending WaitingForTermination");
}

/* Of the two that are left `high` needs both: there is nothing to stop `other` for. */
static void expect_nobody_stopped_in_vain(struct scenario *s, const char *claim)
{
    given_two_that_stop(s);
    claim_reserved(s, claim, "guest");
    given_job(s, "third", "q", "pods=1 cpu=1 template=one priority=high created=2000");
    expect_state(s, "other", "Running");
}

static void device_of_the_first_that_another_pod_uses_too(void **state)
{
    expect_nobody_stopped_in_vain(*state, "first-0-one");
}

static void device_of_the_second_that_another_pod_uses_too(void **state)
{
    expect_nobody_stopped_in_vain(*state, "second-0-one");
}

/* Its claim has no devices yet, and is held for it with the room: it starts as soon as that is
 * there. One that shares the claim waits until its devices are known. */
static void named_claim_of_whom_room_is_made_for(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q", "cpu=4 " CLASS "=4 within=LowerPriority");
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0 g1");
    given_job(s, "low", "q", "pods=4 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "low", "n1 n1 n1 n1");
    at(s, 1000);
    given_job(s, "high", "q", "pods=1 cpu=2 claim=c priority=high created=1000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    given_job(s, "sharer", "q", "pods=1 cpu=1 claim=c priority=high created=2000");
    restart(s, WITHOUT_ADMISSIONS);
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    expect_state(s, "sharer", "Pending ReservedForOther");
    expect_message(s, "sharer", "is being allocated for another gang that shares it");
    gang_starts(s, "high", "n1");
    claim_allocated(s, "c", "n1/g0");
    expect_state(s, "sharer", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(what_both_leave_is_enough),
        scenario_test(device_of_the_first_that_another_pod_uses_too),
        scenario_test(device_of_the_second_that_another_pod_uses_too),
        scenario_test(named_claim_of_whom_room_is_made_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
