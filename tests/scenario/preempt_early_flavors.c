/* The flavor, and how far up it borrows, of a gang that starts while its victims still stop. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define HELD "Reserved WaitingForVictims"

static void given_priorities(struct scenario *s)
{
    given_priority_class(s, "low", 1);
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 9);
}

static void expect_admitted_on(struct scenario *s, const char *flavor)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "boss > Admitted 0/2 on %s", flavor);
    expect_state(s, "boss", "Admitted");
    if (strstr(trace_text(s), text) == NULL) {
        fail_msg("no \"%s\" in:\n%s", text, trace_text(s));
    }
}

static void another_flavor_that_comes_free_will_do(void **state)
{
    struct scenario *s = *state;
    given_priorities(s);
    given_flavor(s, "oak", "");
    given_flavor(s, "pine", "");
    given_queue(s, "q", "flavor=oak cpu=2 flavor=pine cpu=2 fit=Quota within=LowerPriority");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=low created=0");
    given_job(s, "keeps", "q", "pods=2 cpu=1 priority=high created=0");
    scenario_start(s);
    gang_starts(s, "stops", "");
    gang_starts(s, "keeps", "");
    given_job(s, "boss", "q", "pods=2 cpu=1 priority=mid created=1000");
    expect_state(s, "boss", HELD);
    job_finishes(s, "keeps");
    expect_state(s, "boss", "Admitted");
    expect_state(s, "stops", "Suspending WaitingForTermination");
}

/* Oak is listed first, and comes free as well. */
static void the_flavor_that_it_is_reserved_on_goes_first(void **state)
{
    struct scenario *s = *state;
    given_priorities(s);
    given_flavor(s, "oak", "");
    given_flavor(s, "pine", "");
    given_queue(s, "q", "flavor=oak cpu=2 flavor=pine cpu=4 fit=Quota within=LowerPriority");
    given_job(s, "on-oak", "q", "pods=2 cpu=1 priority=high created=0");
    scenario_start(s);
    gang_starts(s, "on-oak", "");
    given_job(s, "on-pine", "q", "pods=2 cpu=1 priority=high created=0");
    gang_starts(s, "on-pine", "");
    given_job(s, "stops", "q", "pods=2 cpu=1 priority=low created=0");
    gang_starts(s, "stops", "");
    given_job(s, "boss", "q", "pods=2 cpu=1 priority=mid created=1000");
    expect_state(s, "boss", HELD);
    events_gather(s);
    job_finishes(s, "on-oak");
    job_finishes(s, "on-pine");
    events_arrive(s, 0);
    expect_admitted_on(s, "pine");
}

/* Crane's own are 4, of which `stops` and `keeps` have 2 each; `lends` has the 2 of tug. */
static void given_crane_and_tug(struct scenario *s, const char *fungibility)
{
    char json[700];
    given_priorities(s);
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"crane\"},\"spec\":{\"cohort\":\"sea\",\"fit\":"
                   "\"Quota\",\"namespaceSelector\":{},\"preemption\":{\"withinQueue\":"
                   "\"LowerPriority\"},\"flavorFungibility\":%s,\"resourceGroups\":[{\"flavors\":["
                   "{\"name\":\"default\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":"
                   "\"4\"}]}]}]}}",
                   fungibility);
    given_json(s, KIND_QUEUE, json);
    given_queue(s, "tug", "cpu=2 cohort=sea fit=Quota");
    given_job(s, "stops", "crane", "pods=2 cpu=1 priority=low created=0");
    given_job(s, "keeps", "crane", "pods=2 cpu=1 priority=high created=0");
    given_job(s, "lends", "tug", "pods=2 cpu=1 priority=high created=0");
    scenario_start(s);
    gang_starts(s, "stops", "");
    gang_starts(s, "keeps", "");
    gang_starts(s, "lends", "");
    given_job(s, "boss", "crane", "pods=2 cpu=1 priority=mid created=1000");
    expect_state(s, "boss", HELD);
}

static void one_that_rather_preempts_doesnt_borrow(void **state)
{
    struct scenario *s = *state;
    given_crane_and_tug(s, "{\"whenCanBorrow\":\"TryNextFlavor\",\"preference\":"
                           "\"PreemptionOverBorrowing\"}");
    job_finishes(s, "lends");
    expect_state(s, "boss", HELD);
    job_finishes(s, "keeps");
    expect_state(s, "boss", "Admitted");
    expect_state(s, "stops", "Suspending WaitingForTermination");
}

static void any_other_borrows(void **state)
{
    struct scenario *s = *state;
    given_crane_and_tug(s, "{}");
    job_finishes(s, "lends");
    expect_state(s, "boss", "Admitted");
    expect_state(s, "stops", "Suspending WaitingForTermination");
}

/* It takes back what is its queue's own, in as many pods as that holds, wherever from. */
static void no_more_pods_by_borrowing(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=64");
    given_queue(s, "mine", "cpu=2 cohort=lab reclaim=Any");
    given_queue(s, "theirs", "cpu=2 cohort=lab");
    given_queue(s, "bank", "cpu=4 cohort=lab");
    given_job(s, "large", "theirs", "pods=4 cpu=1 created=0");
    given_job(s, "keeps", "bank", "pods=4 cpu=1 created=0");
    scenario_start(s);
    gang_starts(s, "large", "n1 n1 n1 n1");
    gang_starts(s, "keeps", "n1 n1 n1 n1");
    given_job(s, "part", "mine", "pods=4 min=2 partial=true cpu=1 created=1000");
    expect_state(s, "part", HELD);
    events_gather(s);
    job_finishes(s, "keeps");
    events_arrive(s, 0);
    expect_state(s, "part", "Admitted");
    expect_used(s, "mine", "cpu=2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(another_flavor_that_comes_free_will_do),
        scenario_test(the_flavor_that_it_is_reserved_on_goes_first),
        scenario_test(one_that_rather_preempts_doesnt_borrow),
        scenario_test(any_other_borrows),
        scenario_test(no_more_pods_by_borrowing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
