/* Whoever names a Job's uid from another namespace: anybody may write an ownerReference. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

/* A pod in namespace `other` that says it is of the Job, and that stays for as long as its maker
 * likes. */
static void given_a_stranger(struct scenario *s, const char *job)
{
    char json[512];
    snprintf(
        json, sizeof(json),
        "{\"metadata\":{\"name\":\"stranger\",\"namespace\":\"other\","
        "\"finalizers\":[\"example.com/mine\"],\"ownerReferences\":[{\"apiVersion\":\"batch/v1\","
        "\"kind\":\"Job\",\"name\":\"%s\",\"uid\":\"" STR_FMT "\",\"controller\":true}]},"
        "\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"main\"}]},"
        "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
        "\"status\":\"True\"}]}}",
        job, STR_ARG(scenario_job(s, job)->meta.uid));
    given_json(s, KIND_POD, json);
}

static void given_a_running_gang(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=2");
    given_job(s, "victim", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "victim", "n1 n1");
    given_job(s, "next", "q", "pods=2 cpu=1");
    expect_state(s, "next", "Pending QuotaExhausted");
}

static void pod_of_another_namespace_is_none_of_the_gang(void **state)
{
    struct scenario *s = *state;
    given_a_running_gang(s);
    given_a_stranger(s, "victim");
    object_gone(s, KIND_POD, "victim-0");
    at(s, 60000);
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "victim");
    check_str(admission->status.pods, "1/2");
}

static void pod_of_another_namespace_holds_no_quota(void **state)
{
    struct scenario *s = *state;
    given_a_running_gang(s);
    given_a_stranger(s, "victim");
    for (uint64_t seed = 0; seed < 6; seed++) {
        listing_order(s, seed);
        restart(s, WITH_ADMISSIONS);
        expect_used(s, "q", "cpu=2");
    }
    job_deleted_now(s, "victim");
    object_gone(s, KIND_POD, "victim-0");
    object_gone(s, KIND_POD, "victim-1");
    expect_state(s, "next", "Admitted");
    expect_used(s, "q", "cpu=2");
}

/* What it takes of its node is taken all the same. */
static void pod_of_another_namespace_is_on_its_node(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 pods=3");
    given_queue(s, "q", "cpu=16");
    given_job(s, "victim", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "victim", "n1 n1");
    given_a_stranger(s, "victim");
    given_job(s, "next", "q", "pods=1 cpu=1");
    expect_state(s, "next", "Pending NodesFull");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(pod_of_another_namespace_is_none_of_the_gang),
        scenario_test(pod_of_another_namespace_holds_no_quota),
        scenario_test(pod_of_another_namespace_is_on_its_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
