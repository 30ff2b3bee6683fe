/* Admissions that the API server refuses are written again, not too often, and nothing else minds.
 */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"
#include "tallyman/base/limits.h"

static int64_t writes(struct scenario *s)
{
    return (int64_t)counts_take(s).admission_writes;
}

static void given_a_waiting_gang(struct scenario *s)
{
    given_queue(s, "q", "cpu=2");
    given_node(s, "n", "cpu=8");
    given_job(s, "first", "q", "pods=2 cpu=1 created=0");
    given_job(s, "second", "q", "pods=2 cpu=1 created=1");
}

static void a_refused_admission_is_written_again_later(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    admissions_are_refused(s, true);
    scenario_start(s);
    at(s, 1000);
    (void)writes(s);
    at(s, TELL_RETRY_MS - 1000);
    check_i64(writes(s), 0);
    assert_false(scenario_has(s, KIND_ADMISSION, "second"));
    at(s, 2 * TELL_RETRY_MS);
    assert_true(writes(s) >= 2);
    admissions_are_refused(s, false);
    at(s, 4 * TELL_RETRY_MS);
    expect_state(s, "first", "Admitted");
    expect_state(s, "second", "Pending QuotaExhausted");
    (void)writes(s);
    at(s, 10 * TELL_RETRY_MS);
    check_i64(writes(s), 0);
}

/* An hour of it costs no more than one try each per quarter of a minute. */
static void tries_are_bounded(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    admissions_are_refused(s, true);
    scenario_start(s);
    (void)writes(s);
    at(s, 3600000);
    assert_in_range(writes(s), 2, 2 * 3600000 / TELL_RETRY_MS + 4);
}

/* Jobs start and give back what they had, though nobody can read of it. */
static void decisions_go_on(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    admissions_are_refused(s, true);
    scenario_start(s);
    expect_used(s, "q", "cpu=2");
    assert_false(scenario_job(s, "first")->spec.suspend.value);
    job_finishes(s, "first");
    assert_false(scenario_job(s, "second")->spec.suspend.value);
    expect_used(s, "q", "cpu=2");
}

/* What was meant is told with what the server said, for each of the Job's writes. */
static void refused_restoration_says_what_was_meant(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 label=pool:a");
    given_flavor(s, "default", "label=pool:a");
    given_queue(s, "q", "cpu=4 timeout=1m");
    given_job(s, "a", "q", "pods=3 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    writes_are_manual(s, true);
    at(s, 61000);
    write_ok(s, "a", true);
    gang_stops(s, "a");
    trace_forget(s);
    write_refused(s, "a", "denied by a webhook");
    assert_non_null(strstr(trace_text(s), "put back the template of"));
    assert_non_null(strstr(trace_text(s), "denied by a webhook"));
    at(s, 200000);
    assert_true(write_is_out(s, "a"));
}

/* A status that was to be written when the object went is not: there is nobody to say it to. */
static void nothing_is_said_of_what_is_gone(void **state)
{
    struct scenario *s = *state;
    struct core *core = scenario_core(s);
    struct status_content content;
    struct admission admission;
    struct arena *arena = &s->arena;
    given_flavor(s, "spot", "");
    given_json(s, KIND_COHORT, "{\"metadata\":{\"name\":\"lab\"},\"spec\":{}}");
    given_queue(s, "q", "flavor=spot cpu=4 cohort=lab");
    given_job(s, "a", "q", "pods=1 cpu=1");
    scenario_start(s);
    struct str uid = arena_copy_str(arena, scenario_job(s, "a")->meta.uid);
    (void)core_status_content(core, KIND_QUEUE, STR("q"), arena, &content);
    assert_true(core_admission_now(core, uid, arena, &admission));
    check_str(admission.meta.name, "a");
    check_str(admission.status.state, "Pending");
    object_gone(s, KIND_COHORT, "lab");
    assert_false(core_status_content(core, KIND_COHORT, STR("lab"), arena, &content));
    object_gone(s, KIND_RESOURCE_FLAVOR, "spot");
    assert_false(core_status_content(core, KIND_RESOURCE_FLAVOR, STR("spot"), arena, &content));
    object_gone(s, KIND_QUEUE, "q");
    assert_false(core_status_content(core, KIND_QUEUE, STR("q"), arena, &content));
    object_gone(s, KIND_JOB, "a");
    assert_false(core_status_content(core, KIND_QUEUE, STR("q"), arena, &content));
    assert_false(core_status_content(core, KIND_COHORT, STR("lab"), arena, &content));
    assert_false(core_admission_now(core, uid, arena, &admission));
}

/* While another leads its Admissions are only seen: the last of them says how often the gang was
 * put back, and that it has been whole since. */
static void what_another_replica_says_until_this_one_leads(void **state)
{
    struct scenario *s = *state;
    char json[512];
    given_node(s, "n1", "cpu=16");
    given_queue(s, "q", "cpu=4 timeout=1m base=1s limit=1");
    given_job(s, "a", "q", "pods=2 cpu=1");
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"jobUID\":\"%s\"},\"status\":{"
             "\"requeue\":{\"count\":1}}}",
             scenario_job(s, "a")->meta.uid.ptr);
    given_json(s, KIND_ADMISSION, json);
    struct event seen = {.kind = EVENT_OBJECT, .object = {KIND_JOB, &scenario_job(s, "a")->meta}};
    step(s, &seen);
    seen.object = (struct object){KIND_ADMISSION, scenario_object(s, KIND_ADMISSION, "a")};
    step(s, &seen);
    ((struct admission *)scenario_object(s, KIND_ADMISSION, "a"))->status.requeue = NULL;
    scenario_start(s);
    gang_starts(s, "a", "n1");
    at(s, 60000);
    gang_stops(s, "a");
    expect_state(s, "a", "Pending Backoff");
}

/* What the leader before wrote last, seen while our own write is refused: the gang stands where it
 * says, behind the one that came in between. */
static void a_place_that_comes_late_is_taken(void **state)
{
    struct scenario *s = *state;
    char json[512];
    given_a_waiting_gang(s);
    given_job(s, "third", "q", "pods=2 cpu=1 created=1000");
    admissions_are_refused(s, true);
    scenario_start(s);
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"second\"},\"spec\":{\"jobUID\":\"%s\"},\"status\":{"
             "\"queuedAt\":\"2026-11-30T12:00:02Z\"}}",
             scenario_job(s, "second")->meta.uid.ptr);
    given_json(s, KIND_ADMISSION, json);
    admissions_are_refused(s, false);
    at(s, 2 * TELL_RETRY_MS);
    expect_state(s, "second", "Pending QuotaExhausted");
    job_finishes(s, "first");
    expect_state(s, "third", "Admitted");
    expect_state(s, "second", "Pending QuotaExhausted");
    job_finishes(s, "third");
    expect_state(s, "second", "Admitted");
}

/* etcd was put back to what it had before, or another leader's last write arrived late. */
static void what_was_forgotten_is_written_again(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    scenario_start(s);
    at(s, 60000);
    expect_state(s, "second", "Pending QuotaExhausted");
    struct admission *told = scenario_object(s, KIND_ADMISSION, "second");
    told->status.reason = STR("DevicesUnavailable");
    (void)writes(s);
    tell(s, entry_need(s, KIND_ADMISSION, "second"));
    at(s, 60000 + 2 * TELL_RETRY_MS);
    expect_state(s, "second", "Pending QuotaExhausted");
    check_i64(writes(s), 1);
    at(s, 300000);
    check_i64(writes(s), 0);
}

/* An older write of ours that is seen after the newer was answered is no reason to write. */
static void own_writes_that_are_seen_late_cost_nothing(void **state)
{
    struct scenario *s = *state;
    given_a_waiting_gang(s);
    scenario_start(s);
    at(s, 60000);
    struct entry *entry = entry_need(s, KIND_ADMISSION, "second");
    struct admission *told = (struct admission *)entry->value;
    struct str newer = told->status.reason;
    (void)writes(s);
    told->status.reason = STR("DevicesUnavailable");
    tell(s, entry);
    told->status.reason = newer;
    tell(s, entry);
    at(s, 300000);
    check_i64(writes(s), 0);
    expect_state(s, "second", "Pending QuotaExhausted");
}

/* What is read of a flavor and not acted on is named, and nothing else. */
static void flavor_says_what_is_not_acted_on(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "plain", "");
    given_json(s, KIND_RESOURCE_FLAVOR,
               "{\"metadata\":{\"name\":\"dear\"},\"spec\":{\"costRates\":[{\"name\":\"cpu\","
               "\"perHour\":\"2.40\"}]}}");
    scenario_start(s);
    at(s, 60000);
    const struct resource_flavor *plain = scenario_object(s, KIND_RESOURCE_FLAVOR, "plain");
    const struct resource_flavor *dear = scenario_object(s, KIND_RESOURCE_FLAVOR, "dear");
    check_str(plain->status.conditions.items[0].reason, "Ready");
    check_str(dear->status.conditions.items[0].reason, "PartlySupported");
    check_str(dear->status.conditions.items[0].message, "this version doesn't act on: costRates");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(a_refused_admission_is_written_again_later),
        scenario_test(tries_are_bounded),
        scenario_test(decisions_go_on),
        scenario_test(refused_restoration_says_what_was_meant),
        scenario_test(nothing_is_said_of_what_is_gone),
        scenario_test(what_was_forgotten_is_written_again),
        scenario_test(own_writes_that_are_seen_late_cost_nothing),
        scenario_test(what_another_replica_says_until_this_one_leads),
        scenario_test(a_place_that_comes_late_is_taken),
        scenario_test(flavor_says_what_is_not_acted_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
