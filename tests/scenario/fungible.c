/* Which flavor a gang preempts for, told flavor by flavor, and kept until it starts. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

/* Oak is to be borrowed from tug, pine is crane's own and full of `low`: crane rather preempts. */
static void given_oak_and_pine(struct scenario *s, const char *fungibility)
{
    char json[900];
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_flavor(s, "oak", "");
    given_flavor(s, "pine", "");
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"crane\"},\"spec\":{\"cohort\":\"sea\",\"fit\":"
                   "\"Quota\",\"namespaceSelector\":{},\"preemption\":{\"withinQueue\":"
                   "\"LowerPriority\"},\"flavorFungibility\":%s,\"resourceGroups\":[{\"flavors\":["
                   "{\"name\":\"oak\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":\"0\"}]},"
                   "{\"name\":\"pine\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":\"2\"}]}]"
                   "}]}}",
                   fungibility);
    given_json(s, KIND_QUEUE, json);
    given_json(s, KIND_QUEUE,
               "{\"metadata\":{\"name\":\"tug\"},\"spec\":{\"cohort\":\"sea\",\"fit\":\"Quota\","
               "\"namespaceSelector\":{},\"resourceGroups\":[{\"flavors\":[{\"name\":\"oak\","
               "\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":\"4\"}]}]}]}}");
    given_job(s, "low", "crane", "pods=2 cpu=1 priority=low created=0");
    scenario_start(s);
    gang_starts(s, "low", "");
}

#define PREEMPTS_FIRST                                                                             \
    "{\"whenCanBorrow\":\"TryNextFlavor\",\"preference\":\"PreemptionOverBorrowing\"}"

static const struct explanation_flavor *explained(struct scenario *s, const char *job,
                                                  const char *flavor)
{
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, job);
    const struct explanation *explanation = admission->status.explanation;
    for (uint32_t i = 0; explanation != NULL && i < explanation->flavors.count; i++) {
        if (str_eq_c(explanation->flavors.items[i].name, flavor)) {
            return &explanation->flavors.items[i];
        }
    }
    fail_msg("flavor %s isn't explained", flavor);
    return NULL;
}

static void expect_explained(struct scenario *s, const char *job, const char *flavor,
                             const char *part)
{
    struct str message = explained(s, job, flavor)->message;
    if (strstr(message.ptr, part) == NULL) {
        fail_msg("%s of %s: \"%s\" lacks \"%s\"", flavor, job, message.ptr, part);
    }
}

static void the_flavor_that_was_preempted_for_is_kept(void **state)
{
    struct scenario *s = *state;
    given_oak_and_pine(s, PREEMPTS_FIRST);
    given_job(s, "high", "crane", "pods=2 cpu=1 priority=high created=10");
    expect_state(s, "low", "Suspending WaitingForTermination");
    expect_state(s, "high", "Reserved WaitingForVictims");
    trace_forget(s);
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    assert_non_null(
        strstr(trace_text(s), "high: admit 2 pods of queue crane, cpu 1000m/pod on pine"));
}

static void a_restart_keeps_it_too(void **state)
{
    struct scenario *s = *state;
    given_oak_and_pine(s, PREEMPTS_FIRST);
    given_job(s, "high", "crane", "pods=2 cpu=1 priority=high created=10");
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "high", "Reserved WaitingForVictims");
    trace_forget(s);
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    assert_non_null(
        strstr(trace_text(s), "high: admit 2 pods of queue crane, cpu 1000m/pod on pine"));
}

static void it_is_told_of_each_flavor_why_it_was_not_taken(void **state)
{
    struct scenario *s = *state;
    given_oak_and_pine(s, "{}");
    given_job(s, "big", "crane", "pods=5 cpu=1 priority=high created=10");
    expect_explained(s, "big", "oak", "needs 5 cpu");
    given_job(s, "same", "crane", "pods=2 cpu=1 priority=low created=11");
    given_job(s, "pine", "crane", "pods=2 cpu=1 priority=low created=11");
    expect_state(s, "pine", "Admitted");
    gang_starts(s, "pine", "");
    given_job(s, "more", "crane", "pods=2 cpu=1 priority=low created=12");
    expect_explained(s, "more", "oak", "; stopping those that may be stopped makes no room");
    expect_explained(s, "more", "pine", "; stopping those that may be stopped makes no room");
    given_job(s, "high", "crane", "pods=2 cpu=1 priority=high created=13");
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_explained(s, "high", "oak", "; others can be stopped to make room");
    expect_explained(s, "high", "pine", "; others can be stopped to make room; taken");
}

/* It had rather preempt than borrow: what comes free to be borrowed isn't what it waits for. */
static void what_it_could_borrow_does_not_turn_it(void **state)
{
    struct scenario *s = *state;
    given_oak_and_pine(s, PREEMPTS_FIRST);
    given_job(s, "tugs", "tug", "pods=1 cpu=1 created=0");
    gang_starts(s, "tugs", "");
    given_job(s, "high", "crane", "pods=2 cpu=1 priority=high created=10");
    expect_state(s, "high", "Reserved WaitingForVictims");
    job_finishes(s, "tugs");
    expect_state(s, "high", "Reserved WaitingForVictims");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
    expect_used(s, "crane", "cpu=4"); /* `low` borrows */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(the_flavor_that_was_preempted_for_is_kept),
        scenario_test(what_it_could_borrow_does_not_turn_it),
        scenario_test(a_restart_keeps_it_too),
        scenario_test(it_is_told_of_each_flavor_why_it_was_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
