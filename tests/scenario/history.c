/* Fairness over time: queues of a cohort, and namespaces of a queue, take turns by what they have
 * used so far, the longer ago the less; a restart remembers it, and an idle cluster writes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define HOUR INT64_C(3600000)

static void given_fair_queue(struct scenario *s, const char *name, const char *weight,
                             const char *half_life)
{
    char json[900];
    char field[60] = "";
    if (half_life != NULL) {
        (void)snprintf(field, sizeof(field), ",\"halfLife\":\"%s\"", half_life);
    }
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"cohort\":\"sea\","
                   "\"namespaceSelector\":{},\"fit\":\"Quota\",\"podsReadyTimeout\":\"900h\","
                   "\"fairSharing\":{\"weight\":\"%s\"%s},\"resourceGroups\":[{\"flavors\":[{"
                   "\"name\":\"default\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":\"0\"}"
                   "]}]}]}}",
                   name, weight, field);
    given_json(s, KIND_QUEUE, json);
}

static void given_sea(struct scenario *s, const char *half_life)
{
    char json[500];
    (void)snprintf(
        json, sizeof(json),
        "{\"metadata\":{\"name\":\"sea\"},\"spec\":{\"fairSharing\":{\"halfLife\":\"%s\"}"
        ",\"resourceGroups\":[{\"flavors\":[{\"name\":\"default\",\"resources\":[{"
        "\"name\":\"cpu\",\"nominalQuota\":\"4\"}]}]}]}}",
        half_life);
    given_json(s, KIND_COHORT, json);
}

/* Crane has used all for an hour, and now dredger holds it: crane, created first, and tug wait. */
static void given_past(struct scenario *s, const char *crane_weight)
{
    given_sea(s, "1h");
    given_fair_queue(s, "crane", crane_weight, NULL);
    given_fair_queue(s, "tug", "1", NULL);
    given_fair_queue(s, "dredger", "1", NULL);
    given_job(s, "old", "crane", "pods=4 cpu=1 created=0");
    scenario_start(s);
    at(s, HOUR);
    job_finishes(s, "old");
    given_job(s, "now", "dredger", "pods=4 cpu=1 created=3600000");
    at(s, HOUR + 60000);
    given_job(s, "of-crane", "crane", "pods=4 cpu=1 created=3601000");
    given_job(s, "of-tug", "tug", "pods=4 cpu=1 created=3602000");
}

static const struct decayed_usage_list *usage_of(struct scenario *s, const char *queue)
{
    const struct queue *object = scenario_object(s, KIND_QUEUE, queue);
    assert_non_null(object->status.fair_sharing);
    return &object->status.fair_sharing->decayed_usage;
}

static void the_queue_that_has_used_less_goes_first(void **state)
{
    struct scenario *s = *state;
    given_past(s, "1");
    job_finishes(s, "now");
    expect_state(s, "of-tug", "Admitted");
    expect_state(s, "of-crane", "Pending CohortExhausted");
}

static void without_a_half_life_the_past_is_no_matter(void **state)
{
    struct scenario *s = *state;
    given_past(s, "1");
    given_json(s, KIND_COHORT,
               "{\"metadata\":{\"name\":\"sea\"},\"spec\":{\"resourceGroups\":[{\"flavors\":[{"
               "\"name\":\"default\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":\"4\"}]}]}]}"
               "}");
    job_finishes(s, "now");
    expect_state(s, "of-crane", "Admitted");
}

/* After a day of half-lives of an hour next to nothing is left of an hour's use; a minute of
 * another queue's weighs more. */
static void the_past_fades(void **state)
{
    struct scenario *s = *state;
    given_past(s, "1");
    at(s, 24 * HOUR);
    job_finishes(s, "now");
    expect_state(s, "of-tug", "Admitted");
    at(s, 24 * HOUR + 60000);
    given_job(s, "more-of-tug", "tug", "pods=4 cpu=1 created=1");
    job_finishes(s, "of-tug");
    expect_state(s, "of-crane", "Admitted");
}

static void use_counts_by_weight(void **state)
{
    struct scenario *s = *state;
    given_past(s, "1000");
    job_finishes(s, "now");
    expect_state(s, "of-tug", "Admitted");
    at(s, HOUR + 3660000); /* tug, of weight 1, has used as much as crane now */
    given_job(s, "more-of-tug", "tug", "pods=4 cpu=1 created=1");
    job_finishes(s, "of-tug");
    expect_state(s, "of-crane", "Admitted");
}

/* 4 cpu for one half-life of 3600 s: 4 * 3600 / ln 2 / 2. */
static void the_status_has_the_value(void **state)
{
    struct scenario *s = *state;
    given_past(s, "1");
    const struct decayed_usage_list *usage = usage_of(s, "crane");
    assert_int_equal(usage->count, 1);
    check_str(usage->items[0].name, "ml/cpu");
    check_str(usage->items[0].value, "10387404"); /* milli-cpu seconds */
}

/* Dredger borrows all 4 that there are: a share of 1, in thousandths. */
static void the_status_has_the_share(void **state)
{
    struct scenario *s = *state;
    given_past(s, "1");
    const struct queue *dredger = scenario_object(s, KIND_QUEUE, "dredger");
    check_i64(dredger->status.fair_sharing->weighted_share.value, 1000);
    const struct queue *tug = scenario_object(s, KIND_QUEUE, "tug");
    assert_true(tug->status.fair_sharing->weighted_share.is_set);
    check_i64(tug->status.fair_sharing->weighted_share.value, 0);
}

static void a_restart_remembers(void **state)
{
    struct scenario *s = *state;
    given_past(s, "1");
    restart(s, WITHOUT_ADMISSIONS);
    check_str(usage_of(s, "crane")->items[0].value, "10387404");
    job_finishes(s, "now");
    expect_state(s, "of-tug", "Admitted");
    expect_state(s, "of-crane", "Pending CohortExhausted");
}

/* What runs through the restart has been used all the time. */
static void a_restart_counts_what_ran_on(void **state)
{
    struct scenario *s = *state;
    given_sea(s, "1h");
    given_fair_queue(s, "crane", "1", NULL);
    given_fair_queue(s, "tug", "1", NULL);
    given_job(s, "old", "crane", "pods=4 cpu=1 created=0");
    scenario_start(s);
    gang_starts(s, "old", "");
    at(s, HOUR);
    restart(s, WITHOUT_ADMISSIONS);
    job_finishes(s, "old");
    at(s, HOUR + 5000);
    check_str(usage_of(s, "crane")->items[0].value, "10387404");
}

/* The controller was killed before the Queue's status told of what it had let go last. In whatever
 * order the objects are listed, that is counted from its start on. */
static void a_restart_counts_from_the_start(void **state)
{
    struct scenario *s = *state;
    given_sea(s, "1h");
    given_fair_queue(s, "crane", "1", NULL);
    scenario_start(s);
    at(s, HOUR);
    given_job(s, "old", "crane", "pods=4 cpu=1 created=3600000");
    gang_starts(s, "old", "");
    at(s, 2 * HOUR);
    struct opt_time start = scenario_job(s, "old")->meta.creation_timestamp;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct queue *crane = scenario_object(s, KIND_QUEUE, "crane");
        crane->status.fair_sharing->as_of = (struct opt_time){true, start.ms - HOUR};
        crane->status.fair_sharing->decayed_usage.count = 0;
        listing_order(s, seed);
        restart(s, WITHOUT_ADMISSIONS);
        given_job(s, "little", "crane", "pods=1 cpu=1m created=3600000");
        object_gone(s, KIND_JOB, "little"); /* has the status written */
        at(s, 2 * HOUR + (int64_t)seed + 1);
        assert_int_equal(usage_of(s, "crane")->count, 1);
        int64_t used = strtoll(usage_of(s, "crane")->items[0].value.ptr, NULL, 10);
        assert_true(used >= 10387404 && used < 10387404 + 100); /* of the milliseconds since */
    }
}

static void an_idle_cluster_writes_nothing(void **state)
{
    struct scenario *s = *state;
    given_past(s, "1");
    at(s, 2 * HOUR);
    (void)counts_take(s);
    at(s, 40 * HOUR);
    assert_int_equal(counts_take(s).status_writes, 0);
}

/* -- namespaces ---------------------------------------------------------------------------------
 */

static void given_shared_queue(struct scenario *s, const char *strategy, const char *cpu)
{
    char json[700];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"queueingStrategy\":\"%s\","
                   "\"namespaceSelector\":{},\"fit\":\"Quota\",\"podsReadyTimeout\":\"900h\","
                   "\"fairSharing\":{\"halfLife\":\"1h\"},\"resourceGroups\":[{\"flavors\":[{"
                   "\"name\":\"default\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":\"%s\"}"
                   "]}]}]}}",
                   strategy, cpu);
    given_json(s, KIND_QUEUE, json);
}

/* Namespace ml has used all for an hour; its next gang is of high priority and before blue's. */
static void given_two_namespaces(struct scenario *s, const char *strategy)
{
    given_shared_queue(s, strategy, "4");
    given_namespace(s, "blue", "");
    given_priority_class(s, "high", 9);
    given_job(s, "old", "q", "pods=4 cpu=1 created=0");
    scenario_start(s);
    at(s, HOUR);
    given_job(s, "again", "q", "pods=4 cpu=1 priority=high created=3600000");
    given_job(s, "blue", "q", "ns=blue pods=4 cpu=1 created=3601000");
    job_finishes(s, "old");
}

static void the_namespace_that_has_used_less_goes_first(void **state)
{
    struct scenario *s = *state;
    given_two_namespaces(s, "BestEffortFIFO");
    expect_state(s, "blue/blue", "Admitted");
    expect_state(s, "again", "Pending QuotaExhausted");
}

static void strict_fifo_keeps_its_order(void **state)
{
    struct scenario *s = *state;
    given_two_namespaces(s, "StrictFIFO");
    expect_state(s, "again", "Admitted");
}

/* Gangs that start at one moment take turns, too: what has just started counts. */
static void namespaces_take_turns_at_once(void **state)
{
    struct scenario *s = *state;
    given_shared_queue(s, "BestEffortFIFO", "0");
    given_namespace(s, "blue", "");
    scenario_start(s);
    char name[20];
    for (int i = 0; i < 4; i++) {
        (void)snprintf(name, sizeof(name), "m%d", i);
        given_job(s, name, "q", "pods=1 cpu=1 created=1000");
        (void)snprintf(name, sizeof(name), "b%d", i);
        given_job(s, name, "q", "ns=blue pods=1 cpu=1 created=1001");
    }
    given_shared_queue(s, "BestEffortFIFO", "4");
    expect_state(s, "m0", "Admitted");
    expect_state(s, "blue/b0", "Admitted");
    expect_state(s, "m1", "Admitted");
    expect_state(s, "blue/b1", "Admitted");
    expect_state(s, "m2", "Pending QuotaExhausted");
}

/* The head of a Backfill queue has room kept from those behind it: not from another namespace's
 * gang that is before it by what was used, from its own namespace's later one. */
static void room_is_kept_from_those_behind_by_use(void **state)
{
    struct scenario *s = *state;
    given_shared_queue(s, "Backfill", "4");
    given_namespace(s, "blue", "");
    given_job(s, "old", "q", "pods=4 cpu=1 created=0");
    scenario_start(s);
    at(s, HOUR);
    given_job(s, "long", "q", "pods=2 cpu=1 max-runtime=60m created=3600000");
    job_finishes(s, "old");
    expect_state(s, "long", "Admitted");
    gang_starts(s, "long", "");
    at(s, HOUR + 60000);
    given_job(s, "head", "q", "pods=4 cpu=1 created=3600001");
    given_job(s, "behind", "q", "pods=1 cpu=1 created=3600002");
    expect_state(s, "behind", "Pending ReservedForOther");
    given_job(s, "blue", "q", "ns=blue pods=2 cpu=1 created=3600003");
    expect_state(s, "blue/blue", "Admitted");
    expect_state(s, "head", "Pending QuotaExhausted");
}

/* A number that nobody has written is taken for a very large one. */
static void use_beyond_all_bounds_is_much(void **state)
{
    struct scenario *s = *state;
    given_past(s, "1");
    struct queue *tug = scenario_object(s, KIND_QUEUE, "tug");
    static struct decayed_usage much[] = {
        {.name = STR_INIT("ml/cpu"), .value = STR_INIT("99999999999999999999999999999999999999")},
        {.name = STR_INIT("cpu"), .value = STR_INIT("5")},
        {.name = STR_INIT("blue/cpu"), .value = STR_INIT("x")}};
    assert_non_null(tug->status.fair_sharing);
    tug->status.fair_sharing->decayed_usage = (struct decayed_usage_list){much, 3};
    restart(s, WITHOUT_ADMISSIONS);
    job_finishes(s, "now");
    expect_state(s, "of-crane", "Admitted");
    expect_state(s, "of-tug", "Pending CohortExhausted");
}

/* A queue whose use is kept and that has used nothing is no better off than one that has none kept:
 * who came first goes first. */
static void nothing_used_is_as_nothing_kept(void **state)
{
    struct scenario *s = *state;
    given_json(s, KIND_COHORT,
               "{\"metadata\":{\"name\":\"sea\"},\"spec\":{\"fairSharing\":{},\"resourceGroups\":[{"
               "\"flavors\":[{\"name\":\"default\",\"resources\":[{\"name\":\"cpu\","
               "\"nominalQuota\":\"4\"}]}]}]}}");
    given_fair_queue(s, "kept", "1", "1h");
    given_fair_queue(s, "plain", "1", NULL);
    given_fair_queue(s, "dredger", "1", NULL);
    given_job(s, "now", "dredger", "pods=4 cpu=1 created=0");
    given_job(s, "of-plain", "plain", "pods=4 cpu=1 created=1000");
    given_job(s, "of-kept", "kept", "pods=4 cpu=1 created=2000");
    scenario_start(s);
    at(s, 60000);
    job_finishes(s, "now");
    expect_state(s, "of-plain", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(the_queue_that_has_used_less_goes_first),
        scenario_test(without_a_half_life_the_past_is_no_matter),
        scenario_test(the_past_fades),
        scenario_test(use_counts_by_weight),
        scenario_test(the_status_has_the_value),
        scenario_test(the_status_has_the_share),
        scenario_test(a_restart_remembers),
        scenario_test(a_restart_counts_what_ran_on),
        scenario_test(a_restart_counts_from_the_start),
        scenario_test(an_idle_cluster_writes_nothing),
        scenario_test(the_namespace_that_has_used_less_goes_first),
        scenario_test(strict_fifo_keeps_its_order),
        scenario_test(namespaces_take_turns_at_once),
        scenario_test(room_is_kept_from_those_behind_by_use),
        scenario_test(use_beyond_all_bounds_is_much),
        scenario_test(nothing_used_is_as_nothing_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
