/* Mistakes that others have made with preemption and priority: part of a gang is stopped, a device
 * is given away while its old pod may still use it, a priority that changes is noticed too late. */
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

static void given_classes(struct scenario *s)
{
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 9);
}

/* `low` has two pods on each of two nodes; `high` needs one node. */
static void given_low_on_two_nodes(struct scenario *s)
{
    given_classes(s);
    given_node(s, "n1", "cpu=2");
    given_node(s, "n2", "cpu=2");
    given_queue(s, "q", "cpu=4 within=LowerPriority timeout=60s");
    given_job(s, "low", "q", "pods=4 completions=4 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "low", "n1 n1 n2 n2");
}

/* -- 13: only a part of a gang is stopped --------------------------------------------------------
 */

static void all_pods_of_a_victim_stop_for_the_sake_of_one_node(void **state)
{
    struct scenario *s = *state;
    given_low_on_two_nodes(s);
    given_job(s, "high", "q", "pods=2 cpu=1 priority=high created=1000");
    expect_state(s, "low", "Suspending WaitingForTermination");
    pod_gone(s, "low-0");
    pod_gone(s, "low-1");
    expect_state(s, "high", "Reserved WaitingForVictims"); /* n1 is free, the gang isn't gone */
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    expect_state(s, "low", "Pending QuotaExhausted");
    expect_used(s, "q", "cpu=2");
}

static void finished_member_of_a_victim_is_not_missing(void **state)
{
    struct scenario *s = *state;
    given_low_on_two_nodes(s);
    pod_succeeds(s, "low-0");
    expect_state(s, "low", "Running");
    given_job(s, "high", "q", "pods=2 cpu=1 priority=high created=1000");
    expect_state(s, "low", "Suspending WaitingForTermination");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    job_finishes(s, "high");
    expect_state(s, "low", "Admitted");
    expect_used(s, "q", "cpu=3"); /* three are left to run */
}

static void gang_that_lost_a_member_is_released_though_nobody_asks(void **state)
{
    struct scenario *s = *state;
    given_low_on_two_nodes(s);
    at(s, 1000);
    pod_gone(s, "low-3");
    expect_state(s, "low", "Running");
    at(s, 62000);
    expect_state(s, "low", "Suspending WaitingForTermination");
    gang_stops(s, "low");
    expect_used(s, "q", "cpu=0");
}

/* -- 14: a device is free in the books only
 * --------------------------------------------------------
 */

static void device_of_a_victim_that_never_was_ready_is_waited_for(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_node(s, "n", "cpu=8");
    given_devices(s, "n", "gpu-0");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "cpu=8 gpu.example.com=1 within=LowerPriority");
    given_job(s, "low", "q", "pods=1 cpu=1 template=one priority=low created=0");
    scenario_start(s);
    pods_appear(s, "low", 1);
    pod_claims(s, "low-0", "one", "n/gpu-0");
    pod_binds(s, "low-0", "n");
    pod_is_ready_now(s, "low-0", false);
    given_job(s, "high", "q", "pods=1 cpu=1 template=one priority=high created=1000");
    expect_state(s, "low", "Suspending WaitingForTermination");
    expect_message(s, "high", "1 gang that makes room for it is stopping");
    gang_stops(s, "low"); /* its pod is gone, the claim isn't yet */
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_message(s, "high",
                   "the gangs that made room have stopped; what they held is coming free");
}

/* -- what was reserved isn't to be had any more
 * ----------------------------------------------------
 */

/* `high` stops `low` on the queue's second flavor, which is then taken out of the queue: it starts
 * on the first, where room has come free meanwhile, or waits for room there. */
static void flavor_that_leaves_the_queue_is_not_what_it_starts_on(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct scenario *s = scenario_new();
        given_classes(s);
        given_flavor(s, "old", "label=kind:old");
        given_flavor(s, "new", "label=kind:new");
        given_node(s, "n1", "cpu=2 label=kind:old");
        given_node(s, "n2", "cpu=2 label=kind:new");
        given_queue(s, "q", "flavor=old cpu=2 flavor=new cpu=2 within=LowerPriority");
        given_job(s, "mid", "q", "pods=2 cpu=1 priority=high selector=kind:old created=0");
        given_job(s, "low", "q", "pods=2 cpu=1 priority=low selector=kind:new created=0");
        scenario_start(s);
        gang_starts(s, "mid", "n1 n1");
        gang_starts(s, "low", "n2 n2");
        given_job(s, "high", "q", "pods=2 cpu=1 priority=high created=1000");
        expect_state(s, "high", "Reserved WaitingForVictims");
        given_queue(s, "q", "flavor=old cpu=2 within=LowerPriority");
        if (i == 0) {
            job_finishes(s, "mid");
        }
        gang_stops(s, "low");
        expect_state(s, "high", i == 0 ? "Admitted" : "Pending QuotaExhausted");
        if (i == 0) {
            expect_selector(s, "high", "kind", "old");
        }
        scenario_free(s);
    }
}

/* The class of its devices is deleted while its victim stops. */
static void class_that_is_gone_ends_the_reservation(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_node(s, "n", "cpu=8");
    given_devices(s, "n", "gpu-0");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "cpu=8 gpu.example.com=1 within=LowerPriority");
    given_job(s, "low", "q", "pods=1 cpu=1 template=one priority=low created=0");
    scenario_start(s);
    gang_starts(s, "low", "n");
    pod_claims(s, "low-0", "one", "n/gpu-0");
    given_job(s, "high", "q", "pods=1 cpu=1 template=one priority=high created=1000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    object_gone(s, KIND_DEVICE_CLASS, CLASS);
    gang_stops(s, "low");
    claim_freed(s, "low-0-one");
    expect_state(s, "high", "Pending MissingReference");
    expect_used(s, "q", "cpu=0 gpu.example.com=0");
}

/* -- nobody is there to stop for any more
 * ---------------------------------------------------------- */

/* The one that it would stop for has been held meanwhile, or is no longer there, or isn't ours any
 * more, and the API server refuses to suspend its Job: it isn't tried again. */
static void victim_that_could_not_be_stopped_runs_on_when_it_need_not(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct scenario *s = scenario_new();
        given_low_on_two_nodes(s);
        writes_are_manual(s, true);
        given_job(s, "high", "q", "pods=2 cpu=1 priority=high created=1000");
        expect_state(s, "low", "Suspending WaitingForTermination");
        job_annotated(s, "high", "tallyman.dev/hold", "true");
        expect_state(s, "high", "Held Held");
        if (i == 1) {
            object_gone(s, KIND_JOB, "high");
        } else if (i == 2) {
            job_relabelled(s, "high", "");
        }
        write_refused(s, "low", "denied by a policy");
        at(s, 600000);
        assert_false(write_is_out(s, "low"));
        expect_state(s, "low", "Running");
        expect_used(s, "q", "cpu=4");
        scenario_free(s);
    }
}

/* A victim that ends while it is to stop is no longer waited for, nor told of. */
static void victim_that_ends_makes_room_as_well(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n1", "cpu=2");
    given_queue(s, "q", "cpu=2 within=LowerPriority");
    given_job(s, "ends", "q", "pods=1 cpu=1 priority=low created=0");
    given_job(s, "stops", "q", "pods=1 cpu=1 priority=low created=1");
    scenario_start(s);
    gang_starts(s, "ends", "n1");
    gang_starts(s, "stops", "n1");
    given_job(s, "high", "q", "pods=2 cpu=1 priority=high created=1000");
    expect_message(s, "high", "2 gangs that make room for it are stopping");
    job_finishes(s, "ends");
    expect_message(s, "high", "1 gang that makes room for it is stopping");
    expect_state(s, "high", "Reserved WaitingForVictims");
    assert_null(strstr(decisions_text(s), "ends"));
    gang_stops(s, "stops");
    expect_state(s, "high", "Admitted");
}

/* Its user takes it out of the queue while its victim stops: that one stops, and starts again. */
static void beneficiary_without_a_queue_has_no_room_reserved(void **state)
{
    struct scenario *s = *state;
    given_low_on_two_nodes(s);
    given_job(s, "high", "q", "pods=2 cpu=1 priority=high created=1000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    job_relabelled(s, "high", "");
    expect_used(s, "q", "cpu=4"); /* what still stops holds it */
    gang_stops(s, "low");
    expect_state(s, "low", "Admitted");
    expect_used(s, "q", "cpu=4");
}

/* -- 25: priorities that change -------------------------------------------------------------------
 */

static void given_two_that_wait(struct scenario *s)
{
    given_classes(s);
    given_priority_class(s, "none", 0);
    given_node(s, "n", "cpu=4");
    given_queue(s, "q", "cpu=4");
    given_job(s, "holder", "q", "pods=4 cpu=1 created=0");
    scenario_start(s);
    given_job(s, "a", "q", "pods=4 cpu=1 priority=mid created=1000");
    given_job(s, "b", "q", "pods=4 cpu=1 priority=none created=2000");
    at(s, 3000);
    expect_state(s, "a", "Pending QuotaExhausted");
}

static void waiting_gang_whose_class_is_raised_goes_first(void **state)
{
    struct scenario *s = *state;
    given_two_that_wait(s);
    given_priority_class(s, "none", 100);
    job_finishes(s, "holder");
    expect_state(s, "b", "Admitted");
    expect_state(s, "a", "Pending QuotaExhausted");
}

static void evicted_gang_of_high_priority_is_before_lower_ones(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_priority_class(s, "top", 99);
    given_node(s, "n", "cpu=4");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "evicted", "q", "pods=4 cpu=1 priority=high created=5000");
    scenario_start(s);
    given_job(s, "older", "q", "pods=4 cpu=1 priority=mid created=0");
    at(s, 6000);
    given_job(s, "top", "q", "pods=4 cpu=1 priority=top created=6000");
    gang_stops(s, "evicted");
    expect_state(s, "top", "Admitted");
    job_finishes(s, "top");
    expect_state(s, "evicted", "Admitted");
    expect_state(s, "older", "Pending QuotaExhausted");
}

static void low_gang_of_one_queue_is_no_matter_to_another_queues_high_one(void **state)
{
    struct scenario *s = *state;
    given_classes(s);
    given_node(s, "n", "cpu=8");
    given_queue(s, "a", "cpu=4 cohort=all");
    given_queue(s, "b", "cpu=4 cohort=all");
    given_job(s, "holder", "a", "pods=8 cpu=1 created=0");
    given_job(s, "low", "a", "pods=8 cpu=1 priority=low created=1000"); /* waits for all of it */
    given_job(s, "high", "b", "pods=4 cpu=1 priority=high created=2000");
    scenario_start(s);
    expect_state(s, "low", "Pending CohortExhausted");
    job_finishes(s, "holder");
    expect_state(s, "high", "Admitted");
}

/* The room was made for a Job that is gone: another of its name has no claim to it, and waits its
 * turn, after a restart as before. */
static void job_made_again_inherits_no_victims_over_a_restart(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_job(s, "victim", "q", "pods=4 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "victim", "n1 n1 n1 n1");
    given_job(s, "again", "q", "pods=4 cpu=1 priority=high created=1000");
    expect_state(s, "again", "Reserved WaitingForVictims");
    given_job(s, "mid", "q", "pods=4 cpu=1 priority=mid created=2000");
    job_recreated(s, "again", "q", "pods=4 cpu=1 priority=low created=3000");
    expect_state(s, "again", "Pending QuotaExhausted");
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "again", "Pending QuotaExhausted");
    gang_stops(s, "victim");
    expect_state(s, "mid", "Admitted");
}

/* The first of the victim's pods is gone, and its node with it, while the other still stops. */
static void node_goes_with_the_pods_of_a_victim(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=2");
    given_node(s, "n2", "cpu=2");
    given_queue(s, "q", "cpu=8 within=LowerPriority");
    given_job(s, "low", "q", "pods=2 cpu=2 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "low", "n1 n2");
    given_job(s, "high", "q", "pods=1 cpu=2 priority=high created=1000");
    expect_state(s, "low", "Suspending WaitingForTermination");
    given_job(s, "third", "q", "pods=1 cpu=2 priority=low created=2000");
    pod_gone(s, "low-0");
    object_gone(s, KIND_NODE, "n1");
    given_job(s, "fourth", "q", "pods=1 cpu=1 priority=low created=3000");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    expect_state(s, "third", "Pending NodesFull");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(all_pods_of_a_victim_stop_for_the_sake_of_one_node),
        scenario_test(finished_member_of_a_victim_is_not_missing),
        scenario_test(gang_that_lost_a_member_is_released_though_nobody_asks),
        scenario_test(device_of_a_victim_that_never_was_ready_is_waited_for),
        cmocka_unit_test(victim_that_could_not_be_stopped_runs_on_when_it_need_not),
        scenario_test(victim_that_ends_makes_room_as_well),
        scenario_test(beneficiary_without_a_queue_has_no_room_reserved),
        scenario_test(class_that_is_gone_ends_the_reservation),
        cmocka_unit_test(flavor_that_leaves_the_queue_is_not_what_it_starts_on),
        scenario_test(waiting_gang_whose_class_is_raised_goes_first),
        scenario_test(evicted_gang_of_high_priority_is_before_lower_ones),
        scenario_test(low_gang_of_one_queue_is_no_matter_to_another_queues_high_one),
        scenario_test(job_made_again_inherits_no_victims_over_a_restart),
        scenario_test(node_goes_with_the_pods_of_a_victim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
