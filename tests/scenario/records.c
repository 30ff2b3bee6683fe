/* Records that Tallyman can't have written as they stand are none: the Job is suspended. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define CARD "example.com/card"
#define POD(more, container)                                                                       \
    "{" more "\"containers\":[{\"name\":\"main\",\"resources\":{" container "}}]}"
#define ONE "\"requests\":{\"cpu\":\"1\"}"

static const struct {
    const char *spec;
    const char *flavors;
    const char *requests;
    bool has_limit_range; /* in the namespace */
    bool is_believed;
} RECORDS[] = {
    /* What the template asks, it is charged. */
    {POD("", ONE), "\"cpu\":\"default\"", "\"cpu\":\"1\"", false, true},
    {POD("", ONE), "\"cpu\":\"default\"", "\"cpu\":\"999m\"", false, false},
    {POD("", ONE), "\"memory\":\"default\"", "\"cpu\":\"1\"", false, false},
    /* What can't be worked out is the Job's own fault, not the record's. */
    {POD("", "\"requests\":{\"cpu\":\"-1\"}"), "\"cpu\":\"default\"", "\"cpu\":\"1\"", false, true},
    /* More than that, only where something may have added to it. */
    {POD("", ONE), "\"cpu\":\"default\"", "\"cpu\":\"2\"", false, false},
    {POD("", ONE), "\"cpu\":\"default\"", "\"cpu\":\"2\"", true, false},
    {POD("\"runtimeClassName\":\"r\",", ONE), "\"cpu\":\"default\"", "\"cpu\":\"2\"", false, true},
    {POD("", ""), "\"cpu\":\"default\"", "\"cpu\":\"2\"", false, true},
    {POD("", "\"limits\":{\"cpu\":\"1\"}"), "\"cpu\":\"default\"", "\"cpu\":\"2\"", false, false},
    {POD("\"resources\":{\"requests\":{\"cpu\":\"1\"}},", ""), "\"cpu\":\"default\"",
     "\"cpu\":\"2\"", false, false},
    {POD("\"resources\":{\"requests\":{\"memory\":\"1\"}},", ""), "\"cpu\":\"default\"",
     "\"cpu\":\"2\"", false, true},
    {POD("\"initContainers\":[{\"name\":\"i\"}],", ONE), "\"cpu\":\"default\"", "\"cpu\":\"2\"",
     false, true},
    {POD("\"initContainers\":[{\"name\":\"i\",\"resources\":{" ONE "}}],", ONE),
     "\"cpu\":\"default\"", "\"cpu\":\"2\"", false, false},
    /* A device only by a LimitRange. */
    {POD("", ONE), "\"cpu\":\"default\",\"" CARD "\":\"default\"",
     "\"cpu\":\"1\",\"" CARD "\":\"1\"", false, false},
    {POD("", ONE), "\"cpu\":\"default\",\"" CARD "\":\"default\"",
     "\"cpu\":\"1\",\"" CARD "\":\"1\"", true, true},
    /* Each pod is one, and no more. */
    {POD("", ONE), "\"cpu\":\"default\",\"pods\":\"default\"", "\"cpu\":\"1\",\"pods\":\"1\"",
     false, true},
    /* A device that the template asks for by name is charged, where the queue rations it. */
    {POD("", "\"requests\":{\"cpu\":\"1\",\"" CARD "\":\"2\"}"), "\"cpu\":\"default\"",
     "\"cpu\":\"1\"", false, false},
    {POD("", "\"requests\":{\"cpu\":\"1\",\"" CARD "\":\"0\"}"), "\"cpu\":\"default\"",
     "\"cpu\":\"1\"", false, true},
    {POD("", "\"requests\":{\"cpu\":\"1\",\"example.com/other\":\"2\"}"), "\"cpu\":\"default\"",
     "\"cpu\":\"1\"", false, true},
    {POD("", "\"requests\":{\"cpu\":\"1\",\"" CARD "\":\"2\"}"),
     "\"cpu\":\"default\",\"" CARD "\":\"default\"", "\"cpu\":\"1\",\"" CARD "\":\"2\"", false,
     true},
    /* On a flavor that there is, or was. */
    {POD("", ONE), "\"cpu\":\"nobodys\"", "\"cpu\":\"1\"", false, false},
};

static void record_is_believed_as_far_as_it_can_be_ours(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(RECORDS) / sizeof(RECORDS[0]); i++) {
        struct scenario *s = scenario_new();
        char record[512];
        given_node(s, "n1", "cpu=16 example.com/other=8");
        given_flavor(s, "default", "");
        given_queue(s, "q", "cpu=8 " CARD "=8");
        if (RECORDS[i].has_limit_range) {
            given_json(s, KIND_LIMIT_RANGE,
                       "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"limits\":[{\"type\":"
                       "\"Container\",\"default\":{\"memory\":\"1\"}}]}}");
        }
        given_job_spec(s, "a", "q", "pods=2 running=true", RECORDS[i].spec);
        snprintf(record, sizeof(record),
                 "{\"queue\":\"q\",\"at\":\"2026-11-30T11:59:30Z\",\"podSets\":[{\"name\":\"main\","
                 "\"count\":2,\"flavors\":{%s},\"requests\":{%s}}]}",
                 RECORDS[i].flavors, RECORDS[i].requests);
        job_has_record(s, "a", record);
        writes_are_manual(s, true);
        scenario_start(s);
        bool is_believed = strstr(trace_text(s), "a: suspend") == NULL;
        if (is_believed != RECORDS[i].is_believed) {
            fail_msg("row %zu: %s\n%s", i, is_believed ? "believed" : "not believed",
                     trace_text(s));
        }
        scenario_free(s);
    }
}

/* A device that is asked for by the name that a class serves is charged to the class: a record that
 * leaves it out is no record, unless the queue doesn't ration it. */
static void record_without_the_device_of_a_class(void **state)
{
    (void)state;
    for (int is_listed = 0; is_listed <= 1; is_listed++) {
        struct scenario *s = scenario_new();
        given_node(s, "n1", "cpu=16 " CARD "=8");
        given_flavor(s, "default", "");
        given_json(s, KIND_DEVICE_CLASS,
                   "{\"metadata\":{\"name\":\"cards.example.com\"},\"spec\":{"
                   "\"extendedResourceName\":\"" CARD
                   "\",\"selectors\":[{\"cel\":{\"expression\":\"device.driver == 'd'\"}}]}}");
        given_queue(s, "q", is_listed ? "cpu=8 cards.example.com=8" : "cpu=8 undeclared=Allow");
        given_job(s, "a", "q", "pods=2 cpu=1 " CARD "=1 running=true");
        job_has_record(
            s, "a",
            "{\"queue\":\"q\",\"at\":\"2026-11-30T11:59:30Z\",\"podSets\":[{\"name\":\"main\","
            "\"count\":2,\"flavors\":{\"cpu\":\"default\"},\"requests\":{\"cpu\":\"1\"}}]}");
        writes_are_manual(s, true);
        scenario_start(s);
        bool is_suspended = strstr(trace_text(s), "a: suspend") != NULL;
        assert_int_equal(is_suspended, is_listed);
        scenario_free(s);
    }
}

/* A record of other sets of pods than the Job has, and one of none: nothing of what runs was
 * admitted, so it is stopped, and starts in its turn. */
static void record_of_sets_that_the_job_has_not(void **state)
{
    (void)state;
    const char *sets[] = {
        "{\"name\":\"other\",\"count\":1,\"flavors\":{\"cpu\":\"default\"},\"requests\":{\"cpu\":"
        "\"1m\"}},{\"name\":\"more\",\"count\":1,\"flavors\":{\"cpu\":\"default\"},\"requests\":{"
        "\"cpu\":\"1m\"}}",
        ""};
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        struct scenario *s = scenario_new();
        char record[512];
        given_node(s, "n1", "cpu=16");
        given_queue(s, "q", "cpu=2");
        given_job(s, "a", "q", "pods=2 cpu=1 running=true");
        snprintf(record, sizeof(record),
                 "{\"queue\":\"q\",\"at\":\"2026-11-30T11:59:30Z\",\"podSets\":[%s]}", sets[i]);
        job_has_record(s, "a", record);
        scenario_start(s);
        assert_non_null(strstr(trace_text(s), "a: suspend"));
        expect_state(s, "a", "Admitted");
        expect_used(s, "q", "cpu=2");
        scenario_free(s);
    }
}

/* Which of those that share a claim pays for it is by their turns: one that can't be ours is as
 * near as there is, and nothing is charged twice. */
static void turn_that_is_no_turn(void **state)
{
    (void)state;
    const char *turns[] = {"-1", "99999999999"};
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        struct scenario *s = scenario_new();
        char record[512];
        given_node(s, "n1", "cpu=16");
        given_devices(s, "n1", "g0 g1");
        given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
        given_claim(s, "c", "gpu.example.com", 1);
        given_queue(s, "q", "cpu=8 gpu.example.com=1");
        given_job(s, "a", "q", "pods=1 cpu=1 claim=c running=true");
        snprintf(record, sizeof(record),
                 "{\"queue\":\"q\",\"at\":\"2026-11-30T11:59:30Z\",\"podSets\":[{\"name\":\"main\","
                 "\"count\":1,\"flavors\":{\"cpu\":\"default\",\"gpu.example.com\":\"default\"},"
                 "\"requests\":{\"cpu\":\"1\"}}],\"turn\":%s}",
                 turns[i]);
        job_has_record(s, "a", record);
        scenario_start(s);
        expect_state(s, "a", "Admitted");
        gang_starts(s, "a", "n1");
        claim_allocated(s, "c", "n1/g0");
        claim_reserved(s, "c", "a-0");
        given_job(s, "b", "q", "pods=1 cpu=1 claim=c");
        expect_state(s, "b", "Admitted");
        expect_used(s, "q", "cpu=2 gpu.example.com=1");
        job_finishes(s, "a");
        expect_used(s, "q", "cpu=1 gpu.example.com=1");
        scenario_free(s);
    }
}

/* A queue outgrows flavor default, of which there is no object: what runs on it isn't stopped when
 * the controller starts anew. */
static void flavor_default_is_never_gone(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 label=pool:one");
    given_queue(s, "q", "cpu=8");
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    given_flavor(s, "one", "label=pool:one");
    quota_becomes(s, "q", "flavor=one cpu=8");
    expect_state(s, "a", "Running");
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "a", "Running");
    given_job(s, "b", "q", "pods=8 cpu=1");
    expect_state(s, "b", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(record_is_believed_as_far_as_it_can_be_ours),
        cmocka_unit_test(record_without_the_device_of_a_class),
        cmocka_unit_test(record_of_sets_that_the_job_has_not),
        cmocka_unit_test(turn_that_is_no_turn),
        scenario_test(flavor_default_is_never_gone),
    };
    return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
