/* What an Admission has as data beside its sentence: what is short and by how much, who is ahead,
 * which nodes are out and why, what the gang asks and holds. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

static const struct admission *admission_of(struct scenario *s, const char *job)
{
    return scenario_object(s, KIND_ADMISSION, job);
}

static const struct explanation *explanation_of(struct scenario *s, const char *job)
{
    const struct explanation *explanation = admission_of(s, job)->status.explanation;
    assert_non_null(explanation);
    return explanation;
}

static void expect_short(struct scenario *s, const char *job, const char *name, const char *asked,
                         const char *free)
{
    const struct explanation_resource_list *list = &explanation_of(s, job)->resources;
    assert_int_equal(list->count, 1);
    check_str(list->items[0].name, name);
    check_str(list->items[0].asked, asked);
    check_str(list->items[0].free, free);
}

/* "reason=count …", in their order. */
static void expect_excluded(struct scenario *s, const char *job, int64_t total,
                            const char *expected)
{
    const struct explanation_nodes *nodes = explanation_of(s, job)->nodes;
    char text[300] = "";
    assert_non_null(nodes);
    check_i64(nodes->total.value, total);
    for (uint32_t i = 0; i < nodes->excluded.count; i++) {
        const struct explanation_exclusion *exclusion = &nodes->excluded.items[i];
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof(text) - used, "%s" STR_FMT "=%lld", i == 0 ? "" : " ",
                       STR_ARG(exclusion->reason), (long long)exclusion->count.value);
    }
    assert_string_equal(text, expected);
}

static void quota_that_is_short_is_told_in_numbers(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "q", "cpu=5");
    given_node(s, "n", "cpu=32");
    given_job(s, "first", "q", "pods=3 cpu=1");
    given_job(s, "second", "q", "pods=4 cpu=1");
    scenario_start(s);
    expect_state(s, "second", "Pending QuotaExhausted");
    expect_short(s, "second", "cpu", "4", "2");
}

static void room_that_is_short_is_told_in_numbers(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "q", "cpu=50");
    given_node(s, "n", "cpu=5");
    given_job(s, "first", "q", "pods=3 cpu=1");
    given_job(s, "second", "q", "pods=4 cpu=1");
    scenario_start(s);
    expect_state(s, "second", "Pending NodesFull");
    expect_short(s, "second", "cpu", "4", "2");
}

static void who_is_ahead_is_counted(void **state)
{
    struct scenario *s = *state;
    given_class(s, "gpu.example.com", "true");
    given_template(s, "two", "gpu.example.com", 2);
    given_queue(s, "q", "cpu=9 gpu.example.com=2 strategy=StrictFIFO");
    given_node(s, "n", "cpu=32");
    given_devices(s, "n", "a b c d");
    given_job(s, "runs", "q", "pods=1 cpu=1 template=two created=0");
    given_job(s, "one", "q", "pods=3 cpu=1 created=1");
    given_job(s, "two", "q", "pods=1 cpu=1 template=two created=2");
    given_job(s, "three", "q", "pods=7 cpu=1 created=3");
    scenario_start(s);
    gang_starts(s, "runs", "n");
    job_resized(s, "one", 3, 3);
    at(s, 20000);
    const struct explanation_ahead *ahead = explanation_of(s, "three")->ahead;
    assert_non_null(ahead);
    check_i64(ahead->gangs.value, 1);
    check_i64(ahead->devices.value, 2);
    check_i64(ahead->pods.value, 1);
}

/* The numbers are of the last look, though reason and sentence are the same. */
static void nodes_that_are_out_are_counted_by_reason(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "q", "cpu=50");
    given_node(s, "n1", "cpu=2");
    given_node(s, "n2", "cpu=8 cordoned=true");
    given_node(s, "n3", "cpu=8 taint=gone:NoSchedule");
    given_node(s, "n4", "cpu=8 ready=False");
    given_job(s, "a", "q", "pods=4 cpu=1");
    scenario_start(s);
    expect_excluded(s, "a", 4, "NotReady=1 Cordoned=1 Tainted=1 Full=1");
    given_node(s, "n5", "cpu=8 cordoned=true");
    at(s, 60000);
    given_node(s, "n1", "cpu=3");
    at(s, 120000);
    expect_excluded(s, "a", 5, "NotReady=1 Cordoned=2 Tainted=1 Full=1");
    expect_short(s, "a", "cpu", "4", "3");
}

static void columns_name_every_device_and_every_flavor(void **state)
{
    struct scenario *s = *state;
    given_class(s, "gpu.example.com", "true");
    given_template(s, "pair", "gpu.example.com", 2);
    given_flavor(s, "fast", "");
    given_queue(s, "q", "cpu=9 example.com/disk=9 group=new flavor=fast gpu.example.com=9");
    given_node(s, "n", "cpu=32 example.com/disk=9");
    given_devices(s, "n", "a b c d");
    given_job(s, "a", "q", "pods=2 cpu=1 template=pair example.com/disk=3");
    scenario_start(s);
    expect_state(s, "a", "Admitted");
    check_str(admission_of(s, "a")->status.devices, "example.com/disk=6 gpu.example.com=4");
}

/* "kind name flavor …", in their order. */
static void expect_quota_rows(struct scenario *s, const char *job, const char *expected)
{
    struct admission now;
    struct text text = list_text(s);
    assert_true(
        core_admission_now(scenario_core(s), scenario_job(s, job)->meta.uid, &s->arena, &now));
    const struct explanation_quota_list *rows = &now.status.explanation->quota;
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct explanation_quota *row = &rows->items[i];
        text_addf(&text, "%s" STR_FMT " " STR_FMT " " STR_FMT, i == 0 ? "" : ", ",
                  STR_ARG(row->kind), STR_ARG(row->name), STR_ARG(row->flavor));
    }
    check_str(text_str(&text), expected);
}

/* Asked between the events of one moment: the queue has a flavor that its cohort hasn't summed up
 * yet. */
static void flavor_that_the_cohort_does_not_know_yet_is_told_of_the_queue_alone(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "spot", "");
    given_node(s, "n", "cpu=32");
    given_queue(s, "q", "cpu=2 cohort=lab");
    given_job(s, "a", "q", "pods=4 cpu=1");
    expect_state(s, "a", "Pending NeverFits");
    expect_quota_rows(s, "a", "Queue q default, Cohort lab default");
    events_gather(s);
    quota_becomes(s, "q", "cpu=2 flavor=spot cpu=1 cohort=lab");
    struct event event = {.kind = EVENT_OBJECT,
                          .object = {KIND_QUEUE, scenario_object(s, KIND_QUEUE, "q")},
                          .more_follow = true};
    step(s, &event);
    expect_quota_rows(s, "a", "Queue q default, Cohort lab default, Queue q spot");
    events_arrive(s, 0);
    expect_quota_rows(s, "a", "Queue q default, Cohort lab default, Queue q spot, Cohort lab spot");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(quota_that_is_short_is_told_in_numbers),
        scenario_test(room_that_is_short_is_told_in_numbers),
        scenario_test(who_is_ahead_is_counted),
        scenario_test(nodes_that_are_out_are_counted_by_reason),
        scenario_test(columns_name_every_device_and_every_flavor),
        scenario_test(flavor_that_the_cohort_does_not_know_yet_is_told_of_the_queue_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
