/* Gangs that could start only by stopping others of another branch of their tree, and when that
 * changes: use of the branch counts, not of the queue alone. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

static void given_branch(struct scenario *s, const char *name)
{
    char json[120];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"parentName\":\"lab\"}}", name);
    given_json(s, KIND_COHORT, json);
}

/* `mine` is of the branch east, `theirs` and `its-sibling` of west; what all borrow is the bank's.
 */
static void given_branches(struct scenario *s, const char *bank)
{
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_node(s, "n1", "cpu=64");
    given_branch(s, "east");
    given_branch(s, "west");
    given_queue(s, "mine", "cpu=0 cohort=east weight=1 reclaim=LowerPriority");
    given_queue(s, "theirs", "cpu=0 cohort=west weight=1");
    given_queue(s, "its-sibling", "cpu=0 cohort=west weight=1");
    given_queue(s, "bank", bank);
}

/* 3 against 3 is no lower share. That the sibling takes one more makes it 3 against 4, and one of
 * another queue than that may be stopped. */
static void siblings_count_with_whom_they_are_taken_from(void **state)
{
    struct scenario *s = *state;
    given_branches(s, "cpu=5 cohort=lab");
    given_job(s, "goes", "theirs", "pods=3 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "goes", "n1 n1 n1");
    given_job(s, "waits", "mine", "pods=3 cpu=1 priority=mid created=1000");
    expect_state(s, "waits", "Pending CohortExhausted");
    given_job(s, "more", "its-sibling", "pods=1 cpu=1 priority=mid created=2000");
    expect_state(s, "waits", "Reserved WaitingForVictims");
    expect_state(s, "goes", "Suspending WaitingForTermination");
    gang_stops(s, "goes");
    expect_state(s, "waits", "Admitted");
}

/* The own branch would have 4 with its sibling's one: 3 against 4 it is not. */
static void siblings_count_with_who_asks(void **state)
{
    struct scenario *s = *state;
    given_branches(s, "cpu=6 cohort=lab");
    given_queue(s, "my-sibling", "cpu=0 cohort=east weight=1");
    given_job(s, "goes", "theirs", "pods=3 cpu=1 priority=low created=0");
    given_job(s, "one", "my-sibling", "pods=1 cpu=1 priority=mid created=0");
    scenario_start(s);
    gang_starts(s, "goes", "n1 n1 n1");
    gang_starts(s, "one", "n1");
    given_job(s, "waits", "mine", "pods=3 cpu=1 priority=mid created=1000");
    expect_state(s, "waits", "Pending CohortExhausted");
    (void)counts_take(s);
    given_job(s, "more", "its-sibling", "pods=1 cpu=1 priority=mid created=2000");
    expect_state(s, "more", "Admitted");
    expect_state(s, "waits", "Pending CohortExhausted");
    given_job(s, "most", "its-sibling", "pods=1 cpu=1 priority=mid created=3000");
    expect_state(s, "waits", "Reserved WaitingForVictims");
}

/* `theirs` has borrowed from its sibling all along; that is its own branch's matter until the
 * sibling takes more and the branch begins to borrow. */
static void a_branch_begins_to_borrow(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_node(s, "wide", "cpu=2");
    given_node(s, "narrow", "cpu=1");
    given_branch(s, "west");
    given_queue(s, "mine", "cpu=4 cohort=lab reclaim=LowerPriority");
    given_queue(s, "theirs", "cpu=1 cohort=west");
    given_queue(s, "its-sibling", "cpu=1 cohort=west");
    given_job(s, "goes", "theirs", "pods=1 cpu=2 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "goes", "wide");
    given_job(s, "waits", "mine", "pods=1 cpu=2 priority=mid created=1000");
    expect_state(s, "waits", "Pending NodesFull");
    given_job(s, "more", "its-sibling", "pods=1 cpu=1 priority=mid created=2000");
    expect_state(s, "more", "Admitted");
    gang_starts(s, "more", "narrow");
    expect_state(s, "waits", "Reserved WaitingForVictims");
    gang_stops(s, "goes");
    expect_state(s, "waits", "Admitted");
}

/* It may borrow at the cost of lower priorities: so there is somebody to stop for it though it asks
 * for more than its queue's own, and room that comes free is told to it. */
static void one_that_may_borrow_while_it_stops_others(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_node(s, "n1", "cpu=5");
    given_pod(s, "foreign", "n1", "cpu=2");
    given_json(
        s, KIND_QUEUE,
        "{\"metadata\":{\"name\":\"mine\"},\"spec\":{\"cohort\":\"lab\","
        "\"namespaceSelector\":{},\"preemption\":{\"reclaimWithinCohort\":\"LowerPriority\","
        "\"borrowWithinCohort\":{\"policy\":\"LowerPriority\"}},\"resourceGroups\":[{\"flavors\":"
        "[{\"name\":\"default\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":\"2\"}]}]}]}}");
    given_queue(s, "theirs", "cpu=2 cohort=lab");
    given_queue(s, "bank", "cpu=2 cohort=lab");
    given_job(s, "goes", "theirs", "pods=3 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "goes", "n1 n1 n1");
    given_job(s, "waits", "mine", "pods=4 cpu=1 priority=mid created=1000");
    expect_state(s, "waits", "Pending CohortExhausted");
    expect_state(s, "goes", "Running");
    pod_gone(s, "foreign");
    expect_state(s, "waits", "Reserved WaitingForVictims");
    expect_state(s, "goes", "Suspending WaitingForTermination");
    gang_stops(s, "goes");
    expect_state(s, "waits", "Admitted");
    expect_used(s, "mine", "cpu=4");
}

/* `owned` is within what its queue owns: it would take that back from the one that borrows, the
 * other would start beside it, and so on in a circle. */
static void one_that_borrows_stops_nobody_who_could_stop_it(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=9");
    given_json(s, KIND_QUEUE,
               "{\"metadata\":{\"name\":\"mine\"},\"spec\":{\"cohort\":\"lab\","
               "\"namespaceSelector\":{},\"preemption\":{\"reclaimWithinCohort\":\"Any\","
               "\"borrowWithinCohort\":{\"policy\":\"LowerPriority\"}},\"resourceGroups\":[{"
               "\"flavors\":[{\"name\":\"default\",\"resources\":[{\"name\":\"cpu\","
               "\"nominalQuota\":\"0\"}]}]}]}}");
    given_queue(s, "theirs", "cpu=1 cohort=lab reclaim=Any");
    given_queue(s, "bank", "cpu=3 cohort=lab");
    given_job(s, "owned", "theirs", "pods=1 cpu=1 priority=low created=0");
    given_job(s, "lent", "theirs", "pods=2 cpu=1 priority=mid created=0");
    scenario_start(s);
    gang_starts(s, "owned", "n1");
    gang_starts(s, "lent", "n1 n1");
    at(s, 1000);
    given_job(s, "four", "mine", "pods=4 cpu=1 priority=high created=1000");
    expect_state(s, "four", "Pending CohortExhausted");
    expect_state(s, "owned", "Running");
    expect_state(s, "lent", "Running");
    given_job(s, "three", "mine", "pods=3 cpu=1 priority=high created=1001");
    expect_state(s, "three", "Reserved WaitingForVictims");
    expect_state(s, "owned", "Running");
    expect_state(s, "lent", "Suspending WaitingForTermination");
}

/* Each of two may be stopped when its minute is over: the gang looks again when the first of them
 * ends, whichever is listed first. */
static void the_first_of_two_protections_that_ends(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "lowest", 0);
    given_priority_class(s, "mid", 5);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "q", "cpu=4 within=LowerPriority protect=60s");
    given_job(s, "early", "q", "pods=2 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "early", "n1 n1");
    at(s, 10000);
    given_job(s, "late", "q", "pods=2 cpu=1 priority=lowest created=10000");
    gang_starts(s, "late", "n1 n1");
    at(s, 20000);
    given_job(s, "waits", "q", "pods=2 cpu=1 priority=mid created=20000");
    expect_state(s, "waits", "Pending QuotaExhausted");
    at(s, 59999);
    expect_state(s, "early", "Running");
    at(s, 60000);
    expect_state(s, "early", "Suspending WaitingForTermination");
    expect_state(s, "late", "Running");
}

/* The account of what was held is in no queue's spec any more when it comes free: everybody who
 * may stop somebody looks, since the room counts as well. */
static void account_that_was_struck_out_comes_free(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_node(s, "n1", "cpu=6 memory=8Gi");
    given_queue(s, "q", "cpu=4 within=LowerPriority");
    given_queue(s, "other", "cpu=4 memory=8Gi");
    given_job(s, "low", "q", "pods=2 cpu=1 priority=low created=0");
    given_job(s, "ends", "other", "pods=1 cpu=4 memory=1Gi created=0");
    scenario_start(s);
    gang_starts(s, "low", "n1 n1");
    gang_starts(s, "ends", "n1");
    given_job(s, "waits", "q", "pods=1 cpu=4 priority=mid created=1000");
    expect_state(s, "waits", "Pending QuotaExhausted");
    quota_becomes(s, "other", "memory=8Gi");
    expect_state(s, "waits", "Pending QuotaExhausted");
    job_finishes(s, "ends");
    expect_state(s, "waits", "Reserved WaitingForVictims");
    expect_state(s, "low", "Suspending WaitingForTermination");
}

/* Of `b` what is short is lent no more when the first of its gangs is out, though it still borrows
 * something else: the next to go is of `c`, and then nobody of `b` has to. */
static void only_what_is_lent_of_what_is_short(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=64 memory=64Gi");
    given_queue(s, "a", "cpu=8 memory=8Gi cohort=lab weight=1 reclaim=Any");
    given_queue(s, "b", "cpu=1 memory=6Gi cohort=lab weight=1");
    given_queue(s, "c", "cpu=2 memory=2Gi cohort=lab weight=4");
    given_job(s, "b-first", "b", "pods=1 cpu=2 memory=3Gi created=0");
    given_job(s, "b-second", "b", "pods=1 cpu=2 memory=4Gi created=1");
    given_job(s, "c-only", "c", "pods=1 cpu=1 memory=5Gi created=2");
    scenario_start(s);
    gang_starts(s, "b-first", "n1");
    gang_starts(s, "b-second", "n1");
    gang_starts(s, "c-only", "n1");
    at(s, 1000);
    given_job(s, "owner", "a", "pods=1 cpu=1 memory=8Gi created=1000");
    expect_state(s, "owner", "Reserved WaitingForVictims");
    expect_state(s, "c-only", "Suspending WaitingForTermination");
    expect_state(s, "b-first", "Running");
    expect_state(s, "b-second", "Running");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(siblings_count_with_whom_they_are_taken_from),
        scenario_test(siblings_count_with_who_asks),
        scenario_test(a_branch_begins_to_borrow),
        scenario_test(one_that_may_borrow_while_it_stops_others),
        scenario_test(one_that_borrows_stops_nobody_who_could_stop_it),
        scenario_test(the_first_of_two_protections_that_ends),
        scenario_test(account_that_was_struck_out_comes_free),
        scenario_test(only_what_is_lent_of_what_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
