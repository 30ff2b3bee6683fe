/* While its victims stop, a Reserved gang starts as soon as it fits beside them: those that were
 * only asked to stop are let off, those that stop already go on for nobody. */
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"
#define GRACE "tallyman.dev/checkpoint-grace"
#define ASKED "tallyman.dev/checkpoint-request"

/* A queue of 4: `keeps` has 2, and `stops`, which is of a lower priority, stops for `boss`. */
static void given_boss(struct scenario *s)
{
    given_priority_class(s, "lower", 1);
    given_priority_class(s, "low", 2);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=2");
    given_node(s, "n2", "cpu=2");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=lower created=0");
    given_job(s, "keeps", "q", "pods=2 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    gang_starts(s, "keeps", "n2 n2");
    at(s, 1000);
    given_job(s, "boss", "q", "pods=2 cpu=1 priority=high created=1000");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    expect_state(s, "stops", "Suspending WaitingForTermination");
    expect_state(s, "keeps", "Running");
}

static void room_of_another_will_do(void **state)
{
    struct scenario *s = *state;
    given_boss(s);
    job_finishes(s, "keeps");
    expect_state(s, "boss", "Admitted");
    expect_state(s, "stops", "Suspending WaitingForTermination");
    expect_used(s, "q", "cpu=4");
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "boss", "Admitted");
    gang_starts(s, "boss", "n2 n2");
    gang_stops(s, "stops");
    expect_state(s, "stops", "Admitted");
    expect_used(s, "q", "cpu=4");
}

static void one_of_lower_priority_does_not_start_past_it(void **state)
{
    struct scenario *s = *state;
    given_boss(s);
    given_job(s, "later", "q", "pods=2 cpu=1 priority=low created=1500");
    job_finishes(s, "keeps");
    expect_state(s, "boss", "Admitted");
    expect_state(s, "later", "Pending QuotaExhausted");
}

static void too_little_is_waited_beside(void **state)
{
    struct scenario *s = *state;
    given_boss(s);
    pod_succeeds(s, "keeps-0");
    quota_becomes(s, "q", "cpu=5 within=LowerPriority");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    expect_state(s, "stops", "Suspending WaitingForTermination");
}

static void quota_that_is_raised_will_do(void **state)
{
    struct scenario *s = *state;
    given_boss(s);
    given_node(s, "n3", "cpu=2");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    quota_becomes(s, "q", "cpu=6 within=LowerPriority");
    expect_state(s, "boss", "Admitted");
    expect_used(s, "q", "cpu=6");
}

static void node_that_comes_will_do(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=2");
    given_queue(s, "q", "cpu=9 within=LowerPriority");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    given_job(s, "boss", "q", "pods=2 cpu=1 priority=high created=1000");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    given_node(s, "small", "cpu=1");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    given_node(s, "n2", "cpu=2");
    expect_state(s, "boss", "Admitted");
    expect_used(s, "q", "cpu=4");
}

static void pods_of_others_that_go_make_room(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=2");
    given_node(s, "n2", "cpu=2");
    given_queue(s, "q", "cpu=9 within=LowerPriority");
    given_pod(s, "foreign", "n2", "cpu=2");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    given_job(s, "boss", "q", "pods=2 cpu=1 priority=high created=1000");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    pod_gone(s, "foreign");
    expect_state(s, "boss", "Admitted");
}

static void one_that_shrinks_starts_in_what_is_free(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    given_job(s, "boss", "q", "pods=3 cpu=1 priority=high created=1000");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    job_resized(s, "boss", 2, 2);
    expect_state(s, "boss", "Admitted");
    expect_state(s, "stops", "Suspending WaitingForTermination");
    expect_used(s, "q", "cpu=4");
}

/* What came free while no controller ran. */
static void a_new_controller_sees_it_too(void **state)
{
    struct scenario *s = *state;
    static const enum restart_with kinds[] = {WITH_ADMISSIONS, WITHOUT_ADMISSIONS};
    given_boss(s);
    for (size_t i = 0; i < 2; i++) {
        restart(s, kinds[i]);
        expect_state(s, "boss", "Reserved WaitingForVictims");
    }
    job_finishes(s, "keeps");
    expect_state(s, "boss", "Admitted");
    expect_state(s, "stops", "Suspending WaitingForTermination");
}

static void one_that_was_asked_to_save_is_let_off(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "lower", 1);
    given_priority_class(s, "low", 2);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=6");
    given_queue(s, "q", "cpu=6 within=LowerPriority");
    given_job(s, "saves", "q", "pods=2 cpu=1 priority=lower created=0");
    job_annotated(s, "saves", GRACE, "60s");
    given_job(s, "stops", "q", "pods=1 cpu=1 priority=lower created=0");
    given_job(s, "keeps", "q", "pods=3 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "saves", "n1 n1");
    gang_starts(s, "stops", "n1");
    gang_starts(s, "keeps", "n1 n1 n1");
    at(s, 10000);
    given_job(s, "boss", "q", "pods=3 cpu=1 priority=high created=10000");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    expect_state(s, "saves", "Running CheckpointRequested");
    expect_state(s, "stops", "Suspending WaitingForTermination");
    job_finishes(s, "keeps");
    expect_state(s, "boss", "Admitted");
    expect_state(s, "saves", "Running");
    expect_state(s, "stops", "Suspending WaitingForTermination");
    assert_false(str_is_set(string_map_get(&scenario_job(s, "saves")->meta.annotations, ASKED)));
    at(s, 100000);
    expect_state(s, "saves", "Running");
    expect_used(s, "q", "cpu=6");
}

/* Quota would do for both: the room on nodes is the one's that was Reserved first. */
static void places_are_not_given_past_it(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=2");
    given_node(s, "n2", "cpu=2");
    given_queue(s, "q", "cpu=20 within=LowerPriority");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    given_pod(s, "foreign", "n2", "cpu=2");
    given_job(s, "boss", "q", "pods=2 cpu=1 priority=high created=1000");
    given_job(s, "later", "q", "pods=2 cpu=1 priority=low created=1000");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    pod_gone(s, "foreign");
    expect_state(s, "boss", "Admitted");
    expect_state(s, "later", "Pending NodesFull");
}

/* There is a device for it, but no quota. */
static void claim_that_it_holds_is_charged_too(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one-gpu", CLASS, 1);
    given_claim(s, "c", CLASS, 1);
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0 g1 g2");
    given_queue(s, "q", CLASS "=2 within=LowerPriority");
    given_job(s, "stops", "q", "pods=2 template=one-gpu priority=low created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    pod_claims(s, "stops-0", "one-gpu", "n1/g0");
    pod_claims(s, "stops-1", "one-gpu", "n1/g1");
    given_job(s, "boss", "q", "pods=1 claim=c priority=high created=1000");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    pod_gone(s, "stops-0");
    claim_freed(s, "stops-0-one-gpu");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    gang_stops(s, "stops");
    expect_state(s, "boss", "Admitted");
}

/* `stops` and `lingers` make room for one of them each. */
static void given_two(struct scenario *s)
{
    given_priority_class(s, "lower", 1);
    given_priority_class(s, "low", 2);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=2");
    given_node(s, "n2", "cpu=2");
    given_node(s, "n3", "cpu=2");
    given_queue(s, "q", "cpu=6 within=LowerPriority");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=lower created=0");
    given_job(s, "lingers", "q", "pods=2 cpu=1 priority=lower created=0");
    given_job(s, "keeps", "q", "pods=2 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    gang_starts(s, "lingers", "n2 n2");
    gang_starts(s, "keeps", "n3 n3");
    at(s, 1000);
    given_job(s, "boss-1", "q", "pods=2 cpu=1 priority=high created=1000");
    at(s, 2000);
    given_job(s, "boss-2", "q", "pods=2 cpu=1 priority=high created=2000");
    expect_state(s, "boss-1", "Reserved WaitingForVictims");
    expect_state(s, "boss-2", "Reserved WaitingForVictims");
    expect_state(s, "keeps", "Running");
    expect_used(s, "q", "cpu=10");
}

static void two_start_in_their_order(void **state)
{
    struct scenario *s = *state;
    given_two(s);
    job_finishes(s, "keeps");
    expect_state(s, "boss-1", "Admitted");
    expect_state(s, "boss-2", "Reserved WaitingForVictims");
    gang_starts(s, "boss-1", "n3 n3");
    gang_stops(s, "stops");
    expect_state(s, "boss-2", "Admitted");
    expect_used(s, "q", "cpu=6");
}

/* The one's victim doesn't stop: that is nothing to the other, whose own has. */
static void each_starts_when_its_own_victims_are_gone(void **state)
{
    struct scenario *s = *state;
    given_two(s);
    gang_stops(s, "lingers");
    expect_state(s, "boss-1", "Reserved WaitingForVictims");
    expect_state(s, "boss-2", "Admitted");
    expect_used(s, "q", "cpu=8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(room_of_another_will_do),
        scenario_test(one_of_lower_priority_does_not_start_past_it),
        scenario_test(too_little_is_waited_beside),
        scenario_test(quota_that_is_raised_will_do),
        scenario_test(node_that_comes_will_do),
        scenario_test(pods_of_others_that_go_make_room),
        scenario_test(one_that_shrinks_starts_in_what_is_free),
        scenario_test(a_new_controller_sees_it_too),
        scenario_test(one_that_was_asked_to_save_is_let_off),
        scenario_test(places_are_not_given_past_it),
        scenario_test(claim_that_it_holds_is_charged_too),
        scenario_test(two_start_in_their_order),
        scenario_test(each_starts_when_its_own_victims_are_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
