/* What Queues, Cohorts and ResourceFlavors say of themselves is said again where it was refused,
 * and where the API server has forgotten it. */
#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"
#include "tallyman/base/limits.h"

static void given_all_kinds(struct scenario *s)
{
    given_json(s, KIND_COHORT, "{\"metadata\":{\"name\":\"lab\"}}");
    given_flavor(s, "spot", "");
    given_queue(s, "q", "flavor=spot cpu=4 cohort=lab");
    given_node(s, "n", "cpu=8");
    given_job(s, "first", "q", "pods=2 cpu=1 created=0");
}

static int64_t writes(struct scenario *s)
{
    return (int64_t)counts_take(s).status_writes;
}

static const struct queue_status *queue_status(struct scenario *s)
{
    return &((const struct queue *)scenario_object(s, KIND_QUEUE, "q"))->status;
}

static void expect_all_told(struct scenario *s, const char *usage)
{
    check_str(queue_status(s)->usage, usage);
    const struct cohort *cohort = scenario_object(s, KIND_COHORT, "lab");
    assert_true(condition_is_true(&cohort->status.conditions, "Ready"));
    const struct resource_flavor *flavor = scenario_object(s, KIND_RESOURCE_FLAVOR, "spot");
    check_i64(flavor->status.queues.value, 1);
}

static void what_was_refused_is_written_again(void **state)
{
    struct scenario *s = *state;
    given_all_kinds(s);
    statuses_are_refused(s, true);
    scenario_start(s);
    at(s, 2 * TELL_RETRY_MS);
    assert_true(str_is_empty(queue_status(s)->usage));
    statuses_are_refused(s, false);
    at(s, 4 * TELL_RETRY_MS);
    expect_all_told(s, "cpu 2/4");
    (void)writes(s);
    at(s, 20 * TELL_RETRY_MS);
    check_i64(writes(s), 0);
}

static void tries_are_bounded(void **state)
{
    struct scenario *s = *state;
    given_all_kinds(s);
    statuses_are_refused(s, true);
    scenario_start(s);
    (void)writes(s);
    at(s, 3600000);
    assert_in_range(writes(s), 3, 3 * (3600000 / TELL_RETRY_MS + 2));
}

/* etcd was put back to what it had before. */
static void forget_statuses(struct scenario *s)
{
    struct entry *queue = entry_find_key(s, KIND_QUEUE, STR("q"));
    struct entry *cohort = entry_find_key(s, KIND_COHORT, STR("lab"));
    struct entry *flavor = entry_find_key(s, KIND_RESOURCE_FLAVOR, STR("spot"));
    ((struct queue *)queue->value)->status = (struct queue_status){.usage = STR("cpu 1/4")};
    ((struct cohort *)cohort->value)->status = (struct cohort_status){.usage = STR_NONE};
    ((struct resource_flavor *)flavor->value)->status =
        (struct resource_flavor_status){.queues = {true, 7}};
    tell(s, queue);
    tell(s, cohort);
    tell(s, flavor);
}

static void what_was_forgotten_is_written_again(void **state)
{
    struct scenario *s = *state;
    given_all_kinds(s);
    scenario_start(s);
    at(s, 60000);
    expect_all_told(s, "cpu 2/4");
    (void)writes(s);
    forget_statuses(s);
    at(s, 70000);
    expect_all_told(s, "cpu 2/4");
    check_i64(writes(s), 3);
    at(s, 300000);
    check_i64(writes(s), 0);
}

static void a_restart_says_nothing_twice(void **state)
{
    struct scenario *s = *state;
    given_all_kinds(s);
    scenario_start(s);
    at(s, 60000);
    (void)writes(s);
    restart(s, WITH_ADMISSIONS);
    at(s, 120000);
    expect_all_told(s, "cpu 2/4");
    check_i64(writes(s), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(what_was_refused_is_written_again),
        scenario_test(tries_are_bounded),
        scenario_test(what_was_forgotten_is_written_again),
        scenario_test(a_restart_says_nothing_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
