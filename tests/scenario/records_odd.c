/* Records and notes of a suspension that can't be read, or say what can't be: nothing of them
 * counts, and what can be read counts as it stands. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define SET(name, more) "{\"name\":\"" name "\"," more "\"flavors\":{\"cpu\":\"default\"}}"
#define HEAD            "\"queue\":\"q\",\"at\":\"2026-11-30T11:59:30Z\","

static const struct {
    const char *record;
    bool is_believed;
} RECORDS[] = {
    {"{" HEAD "\"podSets\":[" SET("main", "\"count\":2,") "]}", true},
    {"{" HEAD "\"podSets\":[" SET("other", "\"count\":2,") "]}", true}, /* there is only one */
    {"{" HEAD "\"podSets\":[]}", false},
    {"{" HEAD "\"podSets\":[" SET("main", "") "]}", false},
    {"{" HEAD "\"podSets\":[" SET("main", "\"count\":-2,") "]}", false},
    {"{" HEAD "\"podSets\":[" SET("main", "\"count\":\"two\",") "]}", false},
    {"{" HEAD "\"podSets\":[" SET("main", "\"count\":2,\"requests\":{\"cpu\":\"-1\"},") "]}",
     false},
    {"{\"at\":\"2026-11-30T11:59:30Z\",\"podSets\":[" SET("main", "\"count\":2,") "]}", false},
    {"{\"queue\":\"q\",\"podSets\":[" SET("main", "\"count\":2,") "]}", false},
};

static bool runs_with(const char *record)
{
    struct scenario *s = scenario_new();
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=8");
    given_job(s, "a", "q", "pods=2 cpu=1 running=true");
    job_has_record(s, "a", record);
    writes_are_manual(s, true);
    scenario_start(s);
    bool is_believed = strstr(trace_text(s), "a: suspend") == NULL;
    expect_used(s, "q", is_believed ? "cpu=2" : "cpu=0");
    scenario_free(s);
    return is_believed;
}

static void record_that_is_not_whole_is_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(RECORDS) / sizeof(RECORDS[0]); i++) {
        if (runs_with(RECORDS[i].record) != RECORDS[i].is_believed) {
            fail_msg("row %zu: %s", i, RECORDS[i].record);
        }
    }
}

static void record_of_more_sets_than_a_gang_can_have_is_none(void **state)
{
    (void)state;
    char record[4096] = "{" HEAD "\"podSets\":[" SET("main", "\"count\":2,");
    for (int i = 0; i < 16; i++) {
        snprintf(record + strlen(record), sizeof(record) - strlen(record),
                 "," SET("s%d", "\"count\":0,"), i);
    }
    strncat(record, "]}", sizeof(record) - strlen(record) - 1);
    assert_false(runs_with(record));
}

static const struct {
    const char *note;
    int64_t evictions; /* 0: none is told */
    const char *state;
} NOTES[] = {
    {"{\"cause\":\"NodeUnhealthy\",\"evictions\":3}", 3, "Admitted"},
    {"{\"cause\":\"NodeUnhealthy\",\"evictions\":0}", 0, "Admitted"},
    {"{\"cause\":\"NodeUnhealthy\",\"evictions\":-3}", 0, "Admitted"},
    {"{\"cause\":\"NodeUnhealthy\",\"evictions\":9000000000000000000}", 0, "Admitted"},
    {"{\"cause\":\"PodsReadyTimeout\",\"requeue\":{\"count\":2,\"at\":\"2026-11-30T12:10:00Z\"}}",
     0, "Pending Backoff"},
    {"{\"cause\":\"PodsReadyTimeout\",\"requeue\":{\"count\":2}}", 0, "Admitted"},
    {"{\"cause\":\"PodsReadyTimeout\",\"requeue\":{\"count\":-2,\"at\":\"2026-11-30T12:10:00Z\"}}",
     0, "Admitted"},
    {"{\"cause\":\"PodsReadyTimeout\",\"requeue\":{\"count\":9000000000000000000,"
     "\"at\":\"2026-11-30T12:10:00Z\"}}",
     0, "Admitted"},
    {"{\"cause\":", 0, "Admitted"},
};

static void counts_of_a_suspension_are_believed_within_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(NOTES) / sizeof(NOTES[0]); i++) {
        struct scenario *s = scenario_new();
        given_node(s, "n1", "cpu=16");
        given_queue(s, "q", "cpu=8");
        given_job(s, "a", "q", "pods=2 cpu=1");
        job_annotated(s, "a", "tallyman.dev/suspended", NOTES[i].note);
        scenario_start(s);
        expect_state(s, "a", NOTES[i].state);
        const struct admission *admission = scenario_object(s, KIND_ADMISSION, "a");
        check_i64(admission->status.evictions.is_set ? admission->status.evictions.value : 0,
                  NOTES[i].evictions);
        scenario_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(record_that_is_not_whole_is_none),
        cmocka_unit_test(record_of_more_sets_than_a_gang_can_have_is_none),
        cmocka_unit_test(counts_of_a_suspension_are_believed_within_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
