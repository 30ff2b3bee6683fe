/* What is remembered of past use is bounded, and follows an edit of the half-life. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

#define HOUR     INT64_C(3600000)
#define MINUTE   INT64_C(60000)
#define KEPT     1024 /* namespaces times resources of a queue */
#define SHOWN    64   /* of them in its status */
#define VISITORS 1030

static void given_shared_queue(struct scenario *s, const char *half_life, const char *cpu)
{
    char json[700];
    char field[80] = "";
    if (half_life != NULL) {
        (void)snprintf(field, sizeof(field), "\"fairSharing\":{\"halfLife\":\"%s\"},", half_life);
    }
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"namespaceSelector\":{},"
                   "\"fit\":\"Quota\",\"podsReadyTimeout\":\"9000h\",%s"
                   "\"resourceGroups\":[{\"flavors\":[{\"name\":\"default\",\"resources\":[{"
                   "\"name\":\"cpu\",\"nominalQuota\":\"%s\"}]}]}]}}",
                   field, cpu);
    given_json(s, KIND_QUEUE, json);
}

static uint32_t shown(struct scenario *s)
{
    at(s, scenario_now_ms(s) + MINUTE); /* a status is written when it is its turn */
    const struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    assert_non_null(queue->status.fair_sharing);
    return queue->status.fair_sharing->decayed_usage.count;
}

/* A namespace's gang runs for a while. */
static void visit(struct scenario *s, int number, int64_t for_ms)
{
    char name[24];
    char options[80];
    (void)snprintf(name, sizeof(name), "ns%04d", number);
    given_namespace(s, name, "");
    (void)snprintf(options, sizeof(options), "ns=%s pods=1 cpu=1", name);
    given_job(s, "job", "q", options);
    at(s, scenario_now_ms(s) + for_ms);
    (void)snprintf(options, sizeof(options), "%s/job", name);
    job_finishes(s, options);
    object_gone(s, KIND_JOB, options);
    trace_forget(s);
}

/* The most that a status holds is shown, and of those that have used most: ml, an hour long. */
static void status_shows_those_that_have_used_most(void **state)
{
    struct scenario *s = *state;
    given_shared_queue(s, "1000h", "4");
    for (int i = 0; i < SHOWN; i++) {
        visit(s, i, 1000);
    }
    assert_int_equal(shown(s), SHOWN);
    given_job(s, "long", "q", "pods=1 cpu=1");
    at(s, scenario_now_ms(s) + HOUR);
    job_finishes(s, "long");
    at(s, scenario_now_ms(s) + MINUTE);
    const struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    const struct decayed_usage_list *usage = &queue->status.fair_sharing->decayed_usage;
    bool has_ml = false;
    assert_int_equal(usage->count, SHOWN);
    for (uint32_t i = 0; i < usage->count; i++) {
        has_ml = has_ml || str_eq_c(usage->items[i].name, "ml/cpu");
    }
    assert_true(has_ml);
}

/* More namespaces than are remembered come and go. The least of them is forgotten, not the one that
 * has used most: it still goes last. */
static void the_least_is_forgotten_first(void **state)
{
    struct scenario *s = *state;
    given_shared_queue(s, "1000h", "4");
    given_job(s, "long", "q", "pods=4 cpu=1");
    at(s, HOUR);
    job_finishes(s, "long");
    object_gone(s, KIND_JOB, "long");
    for (int i = 0; i < VISITORS; i++) {
        visit(s, i, 1000 + i);
    }
    given_job(s, "holder", "q", "ns=ns0500 pods=4 cpu=1");
    given_job(s, "again", "q", "pods=4 cpu=1 created=1");
    given_job(s, "late", "q", "ns=ns1029 pods=4 cpu=1 created=2");
    given_job(s, "least", "q", "ns=ns0000 pods=4 cpu=1 created=3");
    job_finishes(s, "ns0500/holder");
    expect_state(s, "ns0000/least", "Admitted");
    job_finishes(s, "ns0000/least");
    expect_state(s, "ns1029/late", "Admitted");
    expect_state(s, "again", "Pending QuotaExhausted");
}

/* What has faded to nothing is forgotten as soon as room is needed. */
static void what_has_faded_makes_room(void **state)
{
    struct scenario *s = *state;
    given_shared_queue(s, "1m", "4");
    for (int i = 0; i < KEPT - 1; i++) {
        visit(s, i, 1000);
    }
    at(s, scenario_now_ms(s) + 200 * MINUTE);
    visit(s, KEPT, 1000);
    visit(s, KEPT + 1, 1000);
    assert_int_equal(shown(s), 2);
}

/* An hour's use of ml and a minute's of blue, an hour ago. Ml goes last; after a day at a half-life
 * of a minute neither is remembered, and the older Job goes first. */
static void an_edited_half_life_holds_from_now_on(void **state)
{
    struct scenario *s = *state;
    given_shared_queue(s, "1000h", "4");
    given_namespace(s, "blue", "");
    given_job(s, "of-ml", "q", "pods=4 cpu=1");
    at(s, HOUR);
    job_finishes(s, "of-ml");
    given_job(s, "of-blue", "q", "ns=blue pods=4 cpu=1");
    given_job(s, "ml-waits", "q", "pods=4 cpu=1 created=1");
    given_job(s, "blue-waits", "q", "ns=blue pods=4 cpu=1 created=2");
    at(s, HOUR + MINUTE);
    job_finishes(s, "blue/of-blue");
    expect_state(s, "blue/blue-waits", "Admitted");
    given_shared_queue(s, "1m", "4");
    given_job(s, "more-of-blue", "q", "ns=blue pods=4 cpu=1 created=3");
    at(s, 48 * HOUR);
    given_shared_queue(s, "1000h", "4");
    job_finishes(s, "blue/blue-waits");
    expect_state(s, "ml-waits", "Admitted");
}

/* A gang that runs when the half-life is set counts from then on. */
static void what_runs_already_counts_from_now_on(void **state)
{
    struct scenario *s = *state;
    given_shared_queue(s, NULL, "4");
    given_namespace(s, "blue", "");
    given_job(s, "of-ml", "q", "pods=4 cpu=1");
    at(s, HOUR);
    given_shared_queue(s, "1000h", "4");
    at(s, 2 * HOUR);
    given_job(s, "ml-waits", "q", "pods=4 cpu=1 created=1");
    given_job(s, "blue-waits", "q", "ns=blue pods=4 cpu=1 created=2");
    job_finishes(s, "of-ml");
    expect_state(s, "blue/blue-waits", "Admitted");
    at(s, scenario_now_ms(s) + MINUTE);
    const struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    const struct decayed_usage_list *usage = &queue->status.fair_sharing->decayed_usage;
    assert_true(usage->count >= 1);
    /* 4 cpu for one hour of the two, in milli-cpu seconds. */
    for (uint32_t i = 0; i < usage->count; i++) {
        int64_t value = 0;
        if (str_eq_c(usage->items[i].name, "ml/cpu")) {
            assert_true(str_to_i64(usage->items[i].value, &value));
            assert_in_range(value, 14380000, 14400000);
        }
    }
}

/* Within a half-life it fades by the curve: 4 cpu for half of it are 4 * 7200 s / ln 2 * (1 -
 * 2^-1/2), and as much again later, after another half, the same less by 2^-1/2. */
static void it_fades_by_the_curve(void **state)
{
    struct scenario *s = *state;
    int64_t value = 0;
    given_shared_queue(s, "2h", "4");
    given_job(s, "a", "q", "pods=4 cpu=1");
    at(s, HOUR);
    job_finishes(s, "a");
    given_namespace(s, "blue", "");
    at(s, 2 * HOUR);
    given_job(s, "b", "q", "ns=blue pods=1 cpu=1"); /* so that it is worked out anew */
    at(s, 2 * HOUR + MINUTE);
    const struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    const struct decayed_usage_list *usage = &queue->status.fair_sharing->decayed_usage;
    assert_true(usage->count >= 1);
    for (uint32_t i = 0; i < usage->count; i++) {
        if (str_eq_c(usage->items[i].name, "ml/cpu")) {
            assert_true(str_to_i64(usage->items[i].value, &value));
        }
    }
    assert_in_range(value, 8605200 * 99 / 100, 8605200 * 101 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(status_shows_those_that_have_used_most),
        scenario_test(the_least_is_forgotten_first),
        scenario_test(what_has_faded_makes_room),
        scenario_test(an_edited_half_life_holds_from_now_on),
        scenario_test(what_runs_already_counts_from_now_on),
        scenario_test(it_fades_by_the_curve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
