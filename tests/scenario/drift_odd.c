/* The ledger against claims of every make: results of alternatives, for admin access, of classes
 * that the queue doesn't ration or rations elsewhere, of requests that the claim doesn't have, and
 * claims that are made anew as something else. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"
#define OTHER "nic.example.com"

enum { JSON_BYTES = 8192 };

/* Single quotes become double ones. */
static void given_quoted(struct scenario *s, enum object_kind kind, const char *text)
{
    char json[JSON_BYTES];
    assert_true(strlen(text) < sizeof(json));
    strcpy(json, text);
    for (char *at = json; (at = strchr(at, '\'')) != NULL;) {
        *at = '"';
    }
    given_json(s, kind, json);
}

static void given_world(struct scenario *s)
{
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0 g1 g2 g3 g4 g5");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_class(s, OTHER, "device.driver == 'nic.example.com'");
    given_template(s, "t", CLASS, 1);
}

#define REQUEST(name, class) "{'name':'" name "','exactly':{'deviceClassName':'" class "'}}"
#define RESULT(request, device)                                                                    \
    "{'request':'" request "','driver':'gpu.example.com','pool':'n1','device':'" device "'}"

/* The claim of pod `a-0`, as other hands have left it. */
#define CLAIM_OF_A(requests, results)                                                              \
    "{'metadata':{'name':'a-0-t'},'spec':{'devices':{'requests':[" requests                        \
    "]}},'status':{'allocation':{'devices':{'results':[" results "]}}}}"

/* Each result counts for the class of its own request, of an alternative for that one's; what is
 * only looked at by an administrator is nobody's, and what can't be told isn't charged. */
static void results_count_for_the_class_they_were_asked_of(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_queue(s, "q", CLASS "=6 undeclared=Allow");
    given_job(s, "a", "q", "pods=1 template=t");
    gang_starts(s, "a", "n1");
    pod_claims(s, "a-0", "t", "n1/g0");
    expect_used(s, "q", CLASS "=1");
    given_quoted(
        s, KIND_RESOURCE_CLAIM,
        CLAIM_OF_A(
            REQUEST("gpu", CLASS) ",{'name':'spare','firstAvailable':["
                                  "{'name':'x','deviceClassName':'" OTHER
                                  "'},{'name':'y','deviceClassName':'" CLASS "'}]},"
                                  "{'name':'look','exactly':{'deviceClassName':'" CLASS
                                  "','adminAccess':true}}",
            RESULT("gpu", "g0") "," RESULT("spare/y", "g1") "," RESULT("spare/x", "g2") "," RESULT(
                "spare", "g3") "," RESULT("nobody",
                                          "g4") ","
                                                "{'request':'look','driver':'gpu.example.com','"
                                                "pool':'n1','device':'g5','adminAccess':true}"));
    expect_used(s, "q", CLASS "=2");
    /* The same number, of which one is now of the other class. */
    claim_reserved(s, "a-0-t", "a-0");
    given_queue(s, "q", CLASS "=6 " OTHER "=6");
    expect_used(s, "q", CLASS "=2 " OTHER "=1");
    given_quoted(
        s, KIND_RESOURCE_CLAIM,
        CLAIM_OF_A(REQUEST("gpu", CLASS) "," REQUEST("nic", OTHER),
                   RESULT("gpu", "g0") ",{'request':'nic','driver':'nic.example.com','pool':'n1',"
                                       "'device':'e0','adminAccess':false}"));
    claim_reserved(s, "a-0-t", "a-0");
    expect_used(s, "q", CLASS "=1 " OTHER "=1");
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", CLASS "=1 " OTHER "=1");
    job_finishes(s, "a");
    expect_used(s, "q", CLASS "=0 " OTHER "=0");
}

/* However many classes one claim has devices of, the one that is rationed is charged. */
static void every_class_of_a_claim_is_counted(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_queue(s, "q", "cpu=4 " OTHER "=6 undeclared=Allow");
    given_job(s, "a", "q", "pods=1 cpu=1 template=t");
    gang_starts(s, "a", "n1");
    pod_claims(s, "a-0", "t", "n1/g0");
    char requests[JSON_BYTES / 3] = "";
    char results[JSON_BYTES / 3] = "";
    for (int i = 0; i < 20; i++) {
        size_t at = strlen(requests);
        (void)snprintf(requests + at, sizeof(requests) - at,
                       "{'name':'r%d','exactly':{'deviceClassName':'class-%d'}},", i, i);
        at = strlen(results);
        (void)snprintf(results + at, sizeof(results) - at,
                       "{'request':'r%d','driver':'any.example.com','pool':'p','device':'d%d'},", i,
                       i);
    }
    char json[JSON_BYTES];
    (void)snprintf(json, sizeof(json),
                   CLAIM_OF_A("%s" REQUEST("nic", OTHER), "%s" RESULT("nic", "e0")), requests,
                   results);
    given_quoted(s, KIND_RESOURCE_CLAIM, json);
    claim_reserved(s, "a-0-t", "a-0");
    expect_used(s, "q", "cpu=1 " OTHER "=1");
    restart(s, WITH_ADMISSIONS);
    expect_used(s, "q", "cpu=1 " OTHER "=1");
}

/* Two flavors with both classes; `a` can only run on the second. */
static void given_two_flavors(struct scenario *s)
{
    given_node(s, "n1", "cpu=16 label=kind:one");
    given_node(s, "n2", "cpu=16 label=kind:two");
    given_devices(s, "n2", "g0 g1 g2 g3");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_class(s, OTHER, "device.driver == 'gpu.example.com'");
    given_flavor(s, "one", "label=kind:one");
    given_flavor(s, "two", "label=kind:two");
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q",
                "flavor=one cpu=4 " CLASS "=1 " OTHER "=1 flavor=two cpu=4 " CLASS "=1 " OTHER
                "=2");
}

#define CLAIM_MADE_ANEW                                                                            \
    "{'metadata':{'name':'c'},'spec':{'devices':{'requests':[" REQUEST(                            \
        "gpu", OTHER) ",{'name':'either','firstAvailable':[{'name':'x','deviceClassName':'" CLASS  \
                      "'}]}," REQUEST("more", CLASS) "]}}}"

/* Made anew as something else, it is charged where its gang's pods run, whether the answer to the
 * write that let the gang go has come or not. */
static void a_claim_made_anew_of_another_class_is_charged_where_its_gang_runs(void **state)
{
    struct scenario *s = *state;
    for (int is_early = 0; is_early < 2; is_early++) {
        given_two_flavors(s);
        writes_are_manual(s, is_early);
        given_job(s, "a", "q", "pods=1 cpu=1 claim=c selector=kind:two");
        expect_used(s, "q", "cpu=1 " CLASS "=1 " OTHER "=0");
        object_gone(s, KIND_RESOURCE_CLAIM, "c");
        expect_used(s, "q", "cpu=1 " CLASS "=0 " OTHER "=0");
        given_quoted(s, KIND_RESOURCE_CLAIM, CLAIM_MADE_ANEW);
        expect_used(s, "q", "cpu=1 " CLASS "=1 " OTHER "=1");
        if (is_early) {
            write_ok(s, "a", true);
            writes_are_manual(s, false);
        }
        given_template(s, "nics", OTHER, 2);
        given_job(s, "late", "q", "pods=1 cpu=1 template=nics selector=kind:two");
        expect_state(s, "late", "Pending QuotaExhausted");
        expect_message(s, "late", "1 of 2");
        job_finishes(s, "a");
        object_gone(s, KIND_RESOURCE_CLAIM, "c");
        object_gone(s, KIND_JOB, "late");
        object_gone(s, KIND_JOB, "a");
    }
}

/* A Job that is being deleted lets go of its claims before its last pod is gone: that is no drift.
 * One that is gone already has nobody to be told, and is charged what its pods hold. */
static void a_job_that_ends_is_not_told(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_claim(s, "c", CLASS, 1);
    given_queue(s, "q", CLASS "=6");
    given_job(s, "b", "q", "pods=2 claim=c");
    gang_starts(s, "b", "n1");
    scenario_job(s, "b")->meta.deletion_timestamp =
        (struct opt_time){true, scenario_job(s, "b")->meta.creation_timestamp.ms};
    object_changed(s, KIND_JOB, "b");
    object_gone(s, KIND_RESOURCE_CLAIM, "c");
    check_i64((int64_t)core_drift_seen(scenario_core(s)).vanished, 0);
    gang_stops(s, "b");
    object_gone(s, KIND_JOB, "b");
    given_job(s, "a", "q", "pods=1 template=t");
    gang_starts(s, "a", "n1");
    object_gone(s, KIND_JOB, "a");
    trace_forget(s);
    pod_claims(s, "a-0", "t", "n1/g0 n1/g1 n1/g2");
    expect_used(s, "q", CLASS "=3");
    assert_null(strstr(trace_text(s), "DeviceDrift"));
    pod_gone(s, "a-0");
    expect_used(s, "q", CLASS "=0");
}

/* What its gang's own claims have is the gang's; only what a pod has besides is the pod's. */
static void the_gangs_own_claim_beside_a_pods_own_is_charged_once(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_claim(s, "c", CLASS, 2);
    given_queue(s, "q", CLASS "=6");
    given_job(s, "a", "q", "pods=1 claim=c template=t");
    gang_starts(s, "a", "n1");
    expect_used(s, "q", CLASS "=3");
    claim_allocated(s, "c", "n1/g0 n1/g1");
    pod_claims(s, "a-0", "t", "n1/g2 n1/g3");
    expect_used(s, "q", CLASS "=4");
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", CLASS "=4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(results_count_for_the_class_they_were_asked_of),
        scenario_test(every_class_of_a_claim_is_counted),
        scenario_test(a_claim_made_anew_of_another_class_is_charged_where_its_gang_runs),
        scenario_test(a_job_that_ends_is_not_told),
        scenario_test(the_gangs_own_claim_beside_a_pods_own_is_charged_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
