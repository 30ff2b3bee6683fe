/* A gang that is Reserved starts early only beside what others that are Reserved have yet to get,
 * and what is booked. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

#define CHECK "check-capacity.autoscaling.x-k8s.io"
#define HELD  "Reserved WaitingForVictims"

static void given_priorities(struct scenario *s)
{
    given_priority_class(s, "lower", 1);
    given_priority_class(s, "low", 2);
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 9);
}

/* -- quota ----------------------------------------------------------------------------------------
 */

/* `boss-1` waits for the 2 cpu of `stops`, `boss-2` for what `lingers` has; `keeps` has the rest.
 */
static void given_two_by_quota(struct scenario *s, const char *queue, const char *lingers,
                               const char *keeps, const char *boss)
{
    given_priorities(s);
    given_node(s, "n1", "cpu=64 memory=64Gi");
    given_queue(s, "q", queue);
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=low created=100");
    given_job(s, "lingers", "q", lingers);
    given_job(s, "keeps", "q", keeps);
    scenario_start(s);
    const char *const running[] = {"stops", "lingers", "keeps"};
    for (size_t i = 0; i < 3; i++) {
        if (request_of(s, running[i]) != NULL) {
            request_says_that(s, request_of(s, running[i]), "Provisioned", "");
        }
        gang_starts(s, running[i], i == 2 ? "n1" : "n1 n1");
    }
    at(s, 1000);
    given_job(s, "boss-2", "q", boss);
    at(s, 2000);
    given_job(s, "boss-1", "q", "pods=2 cpu=1 priority=mid created=2000");
    expect_state(s, "boss-1", HELD);
    expect_state(s, "boss-2", HELD);
    expect_state(s, "keeps", "Running");
}

/* The memory that stands in for `boss-2` is no cpu, and the other way round. */
static void what_a_victim_holds_stands_in_by_resource(void **state)
{
    struct scenario *s = *state;
    given_two_by_quota(s, "cpu=5 memory=4Gi within=LowerPriority",
                       "pods=2 cpu=1 memory=1Gi priority=lower created=0",
                       "pods=1 cpu=1 memory=1Gi priority=high created=0",
                       "pods=2 cpu=1 memory=1Gi priority=high created=1000");
    job_finishes(s, "keeps");
    expect_state(s, "boss-1", HELD);
    expect_state(s, "boss-2", HELD);
    gang_stops(s, "lingers");
    expect_state(s, "boss-2", "Admitted");
    gang_stops(s, "stops");
    expect_state(s, "boss-1", "Admitted");
    expect_used(s, "q", "cpu=4 memory=2Gi");
}

/* Those of a check: they have been given their room, whatever still stops for them. */
static void one_that_a_check_is_asked_for_counts_whole(void **state)
{
    struct scenario *s = *state;
    given_two_by_quota(
        s, "cpu=6 within=LowerPriority check=" CHECK, "pods=2 cpu=1 priority=lower created=0",
        "pods=1 cpu=2 priority=high created=0", "pods=2 cpu=1 priority=high created=1000");
    job_finishes(s, "keeps");
    expect_state(s, "boss-2", "Reserved WaitingForCheck");
    expect_state(s, "boss-1", HELD);
    given_node(s, "n2", "cpu=1");
    expect_state(s, "boss-2", "Reserved WaitingForCheck");
    check_i64(requests_of(s, "boss-2"), 1);
}

/* Before it has a place in the list: the higher priority starts first though it came later. */
static void the_highest_starts_first(void **state)
{
    struct scenario *s = *state;
    given_priorities(s);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "q", "cpu=6 within=LowerPriority");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=lower created=0");
    given_job(s, "lingers", "q", "pods=2 cpu=1 priority=lower created=0");
    given_job(s, "keeps", "q", "pods=2 cpu=1 priority=high created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    gang_starts(s, "lingers", "n1 n1");
    gang_starts(s, "keeps", "n1 n1");
    at(s, 1000);
    given_job(s, "mid", "q", "pods=2 cpu=1 priority=mid created=1000");
    at(s, 2000);
    given_job(s, "high", "q", "pods=2 cpu=1 priority=high created=2000");
    expect_state(s, "mid", HELD);
    expect_state(s, "high", HELD);
    job_finishes(s, "keeps");
    expect_state(s, "high", "Admitted");
    expect_state(s, "mid", HELD);
}

/* Whose victim has left the tree with its queue: what that still has is no quota of this one. */
static void a_victim_of_another_tree_stands_in_for_nothing(void **state)
{
    struct scenario *s = *state;
    given_priorities(s);
    given_node(s, "n1", "cpu=4 label=zone:east");
    given_queue(s, "mine", "cpu=4 cohort=lab within=LowerPriority reclaim=Any");
    given_queue(s, "theirs", "cpu=0 cohort=lab");
    given_job(s, "stops", "mine", "pods=1 cpu=1 priority=lower created=0");
    given_job(s, "keeps", "mine", "pods=1 cpu=1 priority=high created=0");
    given_job(s, "lent", "theirs", "pods=2 cpu=1 priority=lower created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1");
    gang_starts(s, "keeps", "n1");
    gang_starts(s, "lent", "n1 n1");
    at(s, 1000);
    given_job(s, "boss-2", "mine", "pods=2 cpu=1 selector=zone:east priority=high created=1000");
    at(s, 2000);
    given_job(s, "boss-1", "mine", "pods=1 cpu=1 priority=mid created=2000");
    expect_state(s, "lent", "Suspending WaitingForTermination");
    expect_state(s, "stops", "Suspending WaitingForTermination");
    quota_becomes(s, "theirs", "cpu=2 cohort=other");
    expect_state(s, "boss-2", HELD);
    expect_state(s, "boss-1", HELD);
    given_node(s, "n2", "cpu=1 label=zone:west");
    expect_state(s, "boss-2", HELD);
    expect_state(s, "boss-1", HELD);
}

/* What is lent to `theirs` comes back to `full`; until then `part` could have three pods, and then
 * only one beside it. */
static void no_more_pods_than_there_will_be_room_for(void **state)
{
    struct scenario *s = *state;
    given_priorities(s);
    given_node(s, "n1", "cpu=3 label=zone:east");
    given_node(s, "n2", "cpu=64 label=zone:west");
    given_json(s, KIND_QUEUE,
               "{\"metadata\":{\"name\":\"mine\"},\"spec\":{\"cohort\":\"lab\","
               "\"namespaceSelector\":{},\"preemption\":{\"withinQueue\":\"LowerPriority\","
               "\"reclaimWithinCohort\":\"Any\"},\"resourceGroups\":[{\"flavors\":[{\"name\":"
               "\"default\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":\"4\","
               "\"borrowingLimit\":\"0\"}]}]}]}}");
    given_queue(s, "theirs", "cpu=0 cohort=lab");
    given_queue(s, "bank", "cpu=3 cohort=lab");
    given_job(s, "stops", "mine", "pods=1 cpu=1 selector=zone:west priority=lower created=0");
    given_job(s, "lent", "theirs", "pods=3 cpu=1 selector=zone:east priority=lower created=0");
    given_job(s, "keeps", "bank", "pods=3 cpu=1 selector=zone:west priority=high created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n2");
    gang_starts(s, "lent", "n1 n1 n1");
    gang_starts(s, "keeps", "n2 n2 n2");
    at(s, 1000);
    given_job(s, "full", "mine", "pods=3 cpu=1 selector=zone:east priority=high created=1000");
    at(s, 2000);
    given_job(s, "part", "mine",
              "pods=4 min=1 partial=true cpu=1 selector=zone:west priority=mid created=2000");
    expect_state(s, "full", HELD);
    expect_state(s, "part", HELD);
    expect_state(s, "lent", "Suspending WaitingForTermination");
    expect_used(s, "mine", "cpu=5");
    events_gather(s);
    job_finishes(s, "keeps");
    events_arrive(s, 0);
    expect_state(s, "full", HELD);
    expect_state(s, "part", HELD);
    gang_stops(s, "stops");
    expect_state(s, "part", "Admitted");
    expect_used(s, "mine", "cpu=4");
}

/* The one cpu of `lingers` stands in for one of the two sets of `halves`, and its memory for none.
 */
static void what_a_victim_holds_stands_in_once(void **state)
{
    struct scenario *s = *state;
    given_priorities(s);
    given_node(s, "n1", "cpu=64 memory=8Gi label=zone:west");
    given_node(s, "n2", "cpu=2 memory=8Gi label=zone:east");
    given_queue(s, "q", "cpu=5 memory=8Gi within=LowerPriority");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=low selector=zone:west created=100");
    given_job(s, "lingers", "q",
              "pods=1 cpu=1 memory=1Gi priority=lower selector=zone:east created=0");
    given_job(s, "keeps", "q", "pods=1 cpu=1 priority=high selector=zone:west created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    gang_starts(s, "lingers", "n2");
    gang_starts(s, "keeps", "n1");
    at(s, 1000);
    given_pod_set(s, "halves", "workers", "pods=1 cpu=1 selector=zone:east");
    given_job(s, "halves", "q", "pods=1 cpu=1 selector=zone:east priority=high created=1000");
    at(s, 2000);
    given_job(s, "boss", "q", "pods=2 cpu=1 selector=zone:west priority=mid created=2000");
    expect_state(s, "halves", HELD);
    expect_state(s, "boss", HELD);
    job_finishes(s, "keeps");
    expect_state(s, "halves", HELD);
    expect_state(s, "boss", HELD);
    gang_stops(s, "stops");
    expect_state(s, "boss", "Admitted");
}

/* -- nodes ----------------------------------------------------------------------------------------
 */

/* `stops-1` fills n1 and `stops-2` n2; somebody else's pod is on that node. */
static void given_two_that_may_stop(struct scenario *s, const char *node, const char *foreign)
{
    given_priorities(s);
    given_node(s, "n1", "cpu=2");
    given_node(s, "n2", "cpu=2");
    given_node(s, "n3", "cpu=2");
    given_pod(s, "foreign", node, foreign);
    given_queue(s, "q", "cpu=99 within=LowerPriority");
    given_job(s, "stops-1", "q", "pods=2 cpu=1 priority=lower created=0");
    given_job(s, "stops-2", "q", "pods=2 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "stops-1", "n1 n1");
    gang_starts(s, "stops-2", "n2 n2");
    at(s, 1000);
}

/* `ahead` needs n3 beside n1, which its victim has: that n3 is free is nothing to `behind`, whose
 * own victim stops on n2. */
static void given_ahead_and_behind(struct scenario *s)
{
    given_node(s, "n4", "cpu=1");
    given_two_that_may_stop(s, "n4", "cpu=1");
    given_job(s, "ahead", "q", "pods=2 cpu=2 priority=high created=1000");
    at(s, 2000);
    given_job(s, "behind", "q", "pods=1 cpu=2 priority=mid created=2000");
    expect_state(s, "ahead", HELD);
    expect_state(s, "behind", HELD);
    pod_gone(s, "foreign");
    expect_state(s, "behind", HELD);
}

static void what_one_ahead_needs_as_well_is_not_taken(void **state)
{
    struct scenario *s = *state;
    given_ahead_and_behind(s);
    gang_stops(s, "stops-1");
    expect_state(s, "ahead", "Admitted");
    expect_state(s, "behind", HELD);
}

static void one_that_comes_to_be_behind_leaves_it(void **state)
{
    struct scenario *s = *state;
    given_ahead_and_behind(s);
    given_priority_class(s, "high", 3);
    expect_state(s, "behind", "Admitted");
    expect_state(s, "ahead", HELD);
}

/* Both have lost the nodes of their victims: the first gets what comes free, whether the other has
 * a place then or not. */
static void the_first_gets_what_is_free_when_nodes_have_gone(void **state)
{
    struct scenario *s = *state;
    given_two_that_may_stop(s, "n3", "cpu=2");
    given_job(s, "behind", "q", "pods=2 cpu=1 priority=mid created=1000");
    at(s, 2000);
    given_job(s, "ahead", "q", "pods=2 cpu=1 priority=high created=2000");
    expect_state(s, "ahead", HELD);
    expect_state(s, "behind", HELD);
    given_node(s, "n1", "cpu=2 cordoned=true");
    given_node(s, "n2", "cpu=2 cordoned=true");
    pod_gone(s, "foreign");
    expect_state(s, "ahead", "Admitted");
    expect_state(s, "behind", HELD);
}

/* -- bookings -------------------------------------------------------------------------------------
 */

/* Of 8, `stops` has 2, and `long` 4 and `keeps` 2 for an hour. */
static void given_hour(struct scenario *s)
{
    given_priorities(s);
    given_priority_class(s, "top", 20);
    given_node(s, "n1", "cpu=64");
    given_queue(s, "q", "cpu=8 strategy=Backfill within=LowerPriority");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=lower created=0");
    given_job(s, "long", "q", "pods=4 cpu=1 priority=top max-runtime=60m created=0");
    given_job(s, "keeps", "q", "pods=2 cpu=1 priority=top max-runtime=60m created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1");
    gang_starts(s, "long", "n1 n1 n1 n1");
    gang_starts(s, "keeps", "n1 n1");
    at(s, 60000);
}

/* In an hour the head will have its 6 beside it, if not beside its victim as well. */
static void a_victim_is_not_in_the_way_of_a_head(void **state)
{
    struct scenario *s = *state;
    given_hour(s);
    given_job(s, "head", "q", "pods=6 cpu=1 priority=high max-runtime=60m created=60000");
    given_job(s, "boss", "q", "pods=2 cpu=1 priority=mid created=61000");
    expect_state(s, "boss", HELD);
    job_finishes(s, "keeps");
    expect_state(s, "boss", "Admitted");
}

/* A head that has come since is booked all of it: only the room of its victims is the boss's own,
 * until the head goes. */
static void a_head_that_has_come_since_is_ahead(void **state)
{
    struct scenario *s = *state;
    given_hour(s);
    given_job(s, "boss", "q", "pods=2 cpu=1 priority=mid created=60000");
    expect_state(s, "boss", HELD);
    given_job(s, "head", "q", "pods=8 cpu=1 priority=high max-runtime=60m created=61000");
    job_finishes(s, "keeps");
    expect_state(s, "boss", HELD);
    job_deleted_now(s, "head");
    expect_state(s, "boss", "Admitted");
}

/* On oak it would be in the way of the head: on pine, which comes free later, it isn't. */
static void another_flavor_than_the_heads_will_do(void **state)
{
    struct scenario *s = *state;
    given_priorities(s);
    given_priority_class(s, "top", 20);
    given_node(s, "n1", "cpu=64");
    given_flavor(s, "oak", "");
    given_flavor(s, "pine", "");
    given_queue(s, "q",
                "flavor=oak cpu=8 flavor=pine cpu=2 strategy=Backfill within=LowerPriority");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=lower created=0");
    given_job(s, "long", "q", "pods=4 cpu=1 priority=top max-runtime=60m created=0");
    given_job(s, "keeps", "q", "pods=2 cpu=1 priority=top max-runtime=60m created=0");
    scenario_start(s);
    given_job(s, "on-pine", "q", "pods=2 cpu=1 priority=top max-runtime=60m created=0");
    gang_starts(s, "stops", "n1 n1");
    gang_starts(s, "long", "n1 n1 n1 n1");
    gang_starts(s, "keeps", "n1 n1");
    gang_starts(s, "on-pine", "n1 n1");
    at(s, 60000);
    given_job(s, "boss", "q", "pods=2 cpu=1 priority=mid created=60000");
    expect_state(s, "boss", HELD);
    given_job(s, "head", "q", "pods=8 cpu=1 priority=high max-runtime=60m created=61000");
    job_finishes(s, "keeps");
    expect_state(s, "boss", HELD);
    job_finishes(s, "on-pine");
    expect_state(s, "boss", "Admitted");
}

/* -- no more than so many ------------------------------------------------------------------------
 */

/* 64 that don't fit go before `last`, which would. */
static void one_behind_64_others_waits_for_them(void **state)
{
    struct scenario *s = *state;
    char name[24];
    given_priorities(s);
    given_node(s, "n1", "cpu=200 pods=200");
    given_queue(s, "q", "cpu=64 within=LowerPriority");
    given_queue(s, "r", "cpu=2 within=LowerPriority");
    for (int i = 0; i < 64; i++) {
        (void)snprintf(name, sizeof(name), "stops-%02d", i);
        given_job(s, name, "q", "pods=1 cpu=1 priority=lower created=0");
    }
    given_job(s, "stops", "r", "pods=1 cpu=1 priority=lower created=0");
    given_job(s, "keeps", "r", "pods=1 cpu=1 priority=high created=0");
    scenario_start(s);
    for (int i = 0; i < 64; i++) {
        (void)snprintf(name, sizeof(name), "stops-%02d", i);
        gang_starts(s, name, "n1");
    }
    gang_starts(s, "stops", "n1");
    gang_starts(s, "keeps", "n1");
    for (int i = 0; i < 64; i++) {
        (void)snprintf(name, sizeof(name), "boss-%02d", i);
        given_job(s, name, "q", "pods=1 cpu=1 priority=high created=1000");
        expect_state(s, name, HELD);
    }
    given_job(s, "last", "r", "pods=1 cpu=1 priority=mid created=1000");
    expect_state(s, "last", HELD);
    job_finishes(s, "keeps");
    expect_state(s, "last", HELD);
    job_deleted_now(s, "boss-00");
    expect_state(s, "last", "Admitted");
    expect_state(s, "stops", "Suspending WaitingForTermination");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(what_a_victim_holds_stands_in_by_resource),
        scenario_test(one_that_a_check_is_asked_for_counts_whole),
        scenario_test(the_highest_starts_first),
        scenario_test(a_victim_of_another_tree_stands_in_for_nothing),
        scenario_test(no_more_pods_than_there_will_be_room_for),
        scenario_test(what_a_victim_holds_stands_in_once),
        scenario_test(what_one_ahead_needs_as_well_is_not_taken),
        scenario_test(one_that_comes_to_be_behind_leaves_it),
        scenario_test(the_first_gets_what_is_free_when_nodes_have_gone),
        scenario_test(a_victim_is_not_in_the_way_of_a_head),
        scenario_test(a_head_that_has_come_since_is_ahead),
        scenario_test(another_flavor_than_the_heads_will_do),
        scenario_test(one_behind_64_others_waits_for_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
