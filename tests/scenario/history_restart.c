/* What runs through a restart has been used from its own start on, in whatever order the gangs are
 * taken up again and however old the Queue's status is. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#define HOUR INT64_C(3600000)

static void given_fair_queue(struct scenario *s, const char *resource)
{
    char json[700];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"namespaceSelector\":{},"
                   "\"fit\":\"Quota\",\"podsReadyTimeout\":\"900h\",\"fairSharing\":{"
                   "\"halfLife\":\"1h\"},\"resourceGroups\":[{\"flavors\":[{\"name\":\"default\","
                   "\"resources\":[{\"name\":\"%s\",\"nominalQuota\":\"8\"}]}]}]}}",
                   resource);
    given_json(s, KIND_QUEUE, json);
}

static int64_t used(struct scenario *s)
{
    at(s, scenario_now_ms(s) + 10000); /* a status is written when it is its turn */
    const struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    assert_non_null(queue->status.fair_sharing);
    assert_int_equal(queue->status.fair_sharing->decayed_usage.count, 1);
    int64_t value = 0;
    struct str text = queue->status.fair_sharing->decayed_usage.items[0].value;
    for (size_t i = 0; i < text.len; i++) {
        assert_true(text.ptr[i] >= '0' && text.ptr[i] <= '9');
        value = value * 10 + (text.ptr[i] - '0');
    }
    return value;
}

/* The controller dies before it has written the Queue's status: it is as it was. */
static void restart_with_status(struct scenario *s, struct fair_sharing_status *status)
{
    struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    queue->status.fair_sharing = status;
    restart(s, WITHOUT_ADMISSIONS);
}

/* `early` and `late` have run since the start; between them by uid is one that is let go after an
 * hour, a second before the restart. All end a minute later. */
static int64_t used_by_three(uint64_t order, bool is_restarted)
{
    struct scenario *s = scenario_new();
    listing_order(s, order);
    given_fair_queue(s, "cpu");
    given_job(s, "new", "q", "pods=1 cpu=1 created=0 hold=true");
    given_job(s, "early", "q", "pods=2 cpu=1 created=0");
    given_job(s, "middle", "q", "pods=1 cpu=1 created=0 hold=true");
    given_job(s, "late", "q", "pods=3 cpu=1 created=0");
    scenario_start(s);
    gang_starts(s, "early", "");
    gang_starts(s, "late", "");
    at(s, HOUR);
    struct fair_sharing_status *before =
        ((struct queue *)scenario_object(s, KIND_QUEUE, "q"))->status.fair_sharing;
    job_annotated(s, "new", "tallyman.dev/hold", NULL);
    job_annotated(s, "middle", "tallyman.dev/hold", NULL);
    expect_state(s, "new", "Admitted");
    at(s, HOUR + 1000);
    if (is_restarted) {
        restart_with_status(s, before);
    }
    at(s, HOUR + 60000);
    const char *all[] = {"new", "early", "middle", "late"};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        job_finishes(s, all[i]);
    }
    int64_t value = used(s);
    scenario_free(s);
    return value;
}

static void each_counts_from_its_own_start(void **state)
{
    (void)state;
    int64_t value = used_by_three(0, false);
    for (uint64_t order = 0; order < 6; order++) {
        int64_t after = used_by_three(order, true);
        assert_in_range(after, value - 1, value + 1); /* whole seconds, rounded down each time */
    }
}

/* Of two gangs that hold a claim the earlier pays for it; the other comes first by uid. */
static int64_t used_by_shared_claim(uint64_t order, bool is_restarted)
{
    struct scenario *s = scenario_new();
    listing_order(s, order);
    given_node(s, "n1", "cpu=8");
    given_devices(s, "n1", "g0");
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_claim(s, "c", "gpu.example.com", 1);
    given_fair_queue(s, "gpu.example.com");
    given_job(s, "second", "q", "pods=1 claim=c hold=true created=0");
    given_job(s, "first", "q", "pods=1 claim=c created=0");
    scenario_start(s);
    gang_starts(s, "first", "n1");
    claim_allocated(s, "c", "n1/g0");
    claim_reserved(s, "c", "first-0");
    at(s, HOUR);
    struct fair_sharing_status *before =
        ((struct queue *)scenario_object(s, KIND_QUEUE, "q"))->status.fair_sharing;
    job_annotated(s, "second", "tallyman.dev/hold", NULL);
    gang_starts(s, "second", "n1");
    at(s, HOUR + 2000);
    if (is_restarted) {
        restart_with_status(s, before);
    }
    at(s, HOUR + 60000);
    job_finishes(s, "second");
    job_finishes(s, "first");
    int64_t value = used(s);
    scenario_free(s);
    return value;
}

static void claim_counts_once_whoever_is_taken_up_first(void **state)
{
    (void)state;
    int64_t value = used_by_shared_claim(0, false);
    for (uint64_t order = 0; order < 4; order++) {
        int64_t after = used_by_shared_claim(order, true);
        assert_in_range(after, value - 1, value + 1);
    }
}

/* One of `shrunk` has succeeded after half an hour. */
static int64_t used_by_shrunk(uint64_t order, bool is_restarted)
{
    struct scenario *s = scenario_new();
    listing_order(s, order);
    given_node(s, "n1", "cpu=8");
    given_fair_queue(s, "cpu");
    given_job(s, "shrunk", "q", "pods=3 cpu=1 created=0");
    given_job(s, "whole", "q", "pods=2 cpu=1 created=0");
    scenario_start(s);
    gang_starts(s, "shrunk", "n1 n1 n1");
    gang_starts(s, "whole", "n1 n1");
    at(s, HOUR / 2);
    pod_succeeds(s, "shrunk-0");
    at(s, 2 * HOUR);
    if (is_restarted) {
        restart(s, WITHOUT_ADMISSIONS);
    }
    expect_used(s, "q", "cpu=4");
    job_finishes(s, "shrunk");
    job_finishes(s, "whole");
    int64_t value = used(s);
    scenario_free(s);
    return value;
}

static void pods_that_have_succeeded_count_no_longer(void **state)
{
    (void)state;
    int64_t value = used_by_shrunk(0, false);
    for (uint64_t order = 0; order < 4; order++) {
        int64_t after = used_by_shrunk(order, true);
        assert_in_range(after, value - 1, value + 1);
    }
}

/* A device by a named claim; the half-life comes while the gang runs. */
static int64_t used_by_claim(bool is_late)
{
    struct scenario *s = scenario_new();
    given_node(s, "n1", "cpu=8");
    given_devices(s, "n1", "g0");
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_claim(s, "c", "gpu.example.com", 1);
    given_queue(s, "q", "gpu.example.com=8");
    if (!is_late) {
        given_fair_queue(s, "gpu.example.com");
    }
    scenario_start(s);
    at(s, HOUR);
    given_job(s, "a", "q", "pods=1 claim=c");
    gang_starts(s, "a", "n1");
    claim_allocated(s, "c", "n1/g0");
    claim_reserved(s, "c", "a-0");
    given_fair_queue(s, "gpu.example.com");
    at(s, 2 * HOUR);
    job_finishes(s, "a");
    int64_t value = used(s);
    scenario_free(s);
    return value;
}

static void claim_that_is_held_when_the_half_life_comes_counts(void **state)
{
    (void)state;
    check_i64(used_by_claim(true), used_by_claim(false));
}

/* What a pod of `a` has beyond the one that it asked for, from when the queue has a past. */
static int64_t used_from_now_on(bool has_surplus)
{
    struct scenario *s = scenario_new();
    given_node(s, "n1", "cpu=8");
    given_devices(s, "n1", "g0 g1");
    given_class(s, "gpu.example.com", "device.driver == 'gpu.example.com'");
    given_template(s, "t", "gpu.example.com", 1);
    given_queue(s, "q", "gpu.example.com=8");
    given_job(s, "a", "q", "pods=1 template=t");
    scenario_start(s);
    given_template(s, "t", "gpu.example.com", has_surplus ? 2 : 1);
    gang_starts(s, "a", "n1");
    pod_claims(s, "a-0", "t", has_surplus ? "n1/g0 n1/g1" : "n1/g0");
    expect_used(s, "q", has_surplus ? "gpu.example.com=2" : "gpu.example.com=1");
    given_fair_queue(s, "gpu.example.com");
    at(s, HOUR);
    job_finishes(s, "a");
    int64_t value = used(s);
    scenario_free(s);
    return value;
}

static void surplus_is_used_like_all_that_is_charged(void **state)
{
    (void)state;
    int64_t one = used_from_now_on(false);
    assert_true(one > 0);
    assert_in_range(used_from_now_on(true), 2 * one - 2, 2 * one + 2);
}

/* The status that a restart finds: `text` of that time, for an hour of 2 cpu. */
static int64_t used_by_status(const char *text, int64_t as_of_ms, bool has_time)
{
    struct scenario *s = scenario_new();
    given_fair_queue(s, "cpu");
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    at(s, HOUR);
    job_finishes(s, "a");
    (void)used(s);
    struct decayed_usage shown = {.name = STR("ml/cpu"), .value = str_from_c(text)};
    struct fair_sharing_status status = {.as_of = {has_time, SCENARIO_START_MS + as_of_ms},
                                         .decayed_usage = {&shown, 1}};
    restart_with_status(s, &status);
    at(s, HOUR + 20000);
    const struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    const struct fair_sharing_status *told = queue->status.fair_sharing;
    int64_t value = 0;
    if (told->decayed_usage.count > 0) {
        assert_true(str_to_i64(told->decayed_usage.items[0].value, &value));
    }
    scenario_free(s);
    return value;
}

/* It counts as far as it is a number, and from its own time on; one without a time, or of a time
 * that is still to come, says nothing. */
static void a_status_counts_as_far_as_it_can_be_read(void **state)
{
    (void)state;
    int64_t value = used_by_status("7000000", HOUR, true);
    assert_in_range(value, 6900000, 7000000);
    check_i64(used_by_status("7000000 and more", HOUR, true), value);
    check_i64(used_by_status("7000000e3", HOUR, true), value);
    check_i64(used_by_status("none", HOUR, true), 0);
    check_i64(used_by_status("-5", HOUR, true), 0);
    check_i64(used_by_status("7000000", HOUR, false), 0);
    check_i64(used_by_status("7000000", 3 * HOUR, true), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_counts_from_its_own_start),
        cmocka_unit_test(claim_counts_once_whoever_is_taken_up_first),
        cmocka_unit_test(pods_that_have_succeeded_count_no_longer),
        cmocka_unit_test(claim_that_is_held_when_the_half_life_comes_counts),
        cmocka_unit_test(surplus_is_used_like_all_that_is_charged),
        cmocka_unit_test(a_status_counts_as_far_as_it_can_be_read),
    };
    return cmocka_run_group_tests_name("history_restart", tests, NULL, NULL);
}
