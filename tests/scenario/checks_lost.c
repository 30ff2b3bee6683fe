/* Admission checks when something comes in between: a restart, a refusal, a deletion, a kind that
 * isn't served. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

#define MINUTE_MS 60000
#define CLASS     "check-capacity.autoscaling.x-k8s.io"

/* Quota for 8 cpu, and not a single node. */
static void given_a_checked_queue(struct scenario *s, const char *options)
{
    char text[200];
    (void)snprintf(text, sizeof(text), "cpu=8 check=" CLASS " %s", options);
    given_queue(s, "q", text);
}

static void a_restart_takes_it_up_where_it_was(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "check-timeout=20m");
    given_job(s, "train", "q", "pods=8 cpu=1");
    at(s, 5 * MINUTE_MS);
    given_priority_class(s, "high", 100);
    given_job(s, "other", "q", "pods=8 cpu=1 priority=high");
    const char *request = request_of(s, "train");
    for (int i = 0; i < 2; i++) {
        restart(s, i == 0 ? WITH_ADMISSIONS : WITHOUT_ADMISSIONS);
        expect_state(s, "train", "Reserved WaitingForCheck");
        expect_state(s, "other", "Pending QuotaExhausted");
        assert_string_equal(request_of(s, "train"), request);
        assert_int_equal(requests_of(s, "train"), 1);
        expect_used(s, "q", "cpu=8");
    }
    at(s, 20 * MINUTE_MS - 1);
    expect_state(s, "train", "Reserved WaitingForCheck");
    at(s, 20 * MINUTE_MS); /* on the request's own clock */
    expect_state(s, "train", "Pending Backoff");
}

static void a_restart_between_provisioned_and_admitted_admits(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "");
    given_job(s, "train", "q", "pods=8 cpu=1");
    const char *request = request_of(s, "train");
    writes_are_manual(s, true);
    request_says_that(s, request, "Provisioned", "");
    assert_true(write_is_out(s, "train"));
    writes_are_manual(s, false);
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "train", "Admitted");
    assert_string_equal(request_of(s, "train"), request);
    assert_int_equal(requests_of(s, "train"), 1);
}

static void a_restart_does_not_use_a_request_twice(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n", "cpu=8");
    given_a_checked_queue(s, "timeout=1m base=60s");
    given_job(s, "train", "q", "pods=8 cpu=1");
    const char *request = request_of(s, "train");
    request_says_that(s, request, "Provisioned", "");
    request_deletions_fail(s, true); /* the process ends before they arrive */
    at(s, MINUTE_MS);
    gang_stops(s, "train");
    expect_state(s, "train", "Pending Backoff");
    request_deletions_fail(s, false);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "train", "Pending Backoff");
    at(s, 3 * MINUTE_MS);
    expect_state(s, "train", "Reserved WaitingForCheck");
    assert_string_not_equal(request_of(s, "train"), request);
    assert_int_equal(requests_of(s, "train"), 1);
}

static void failures_count_over_a_restart(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "base=60s");
    given_job(s, "train", "q", "pods=8 cpu=1");
    request_says_that(s, request_of(s, "train"), "Failed", "none");
    at(s, MINUTE_MS);
    request_says_that(s, request_of(s, "train"), "Failed", "none");
    at(s, MINUTE_MS + 1000);
    restart(s, WITHOUT_ADMISSIONS);
    expect_state(s, "train", "Pending Backoff");
    expect_message(s, "train", "failed: \"none\"");
    at(s, 3 * MINUTE_MS - 1);
    expect_state(s, "train", "Pending Backoff");
    at(s, 3 * MINUTE_MS);
    expect_state(s, "train", "Reserved WaitingForCheck");
}

/* Both are still there, and listed in whatever order: it is the later one that it waits for. */
static void of_two_attempts_the_later_counts_in_any_order(void **state)
{
    (void)state;
    for (uint64_t order = 1; order <= 6; order++) {
        struct scenario *s = scenario_new();
        given_node(s, "n", "cpu=8");
        given_a_checked_queue(s, "base=60s");
        given_job(s, "train", "q", "pods=8 cpu=1");
        request_deletions_fail(s, true);
        request_says_that(s, request_of(s, "train"), "Failed", "none");
        at(s, MINUTE_MS);
        assert_int_equal(requests_of(s, "train"), 2);
        const char *later = request_of(s, "train");
        listing_order(s, order);
        restart(s, WITH_ADMISSIONS);
        expect_state(s, "train", "Reserved WaitingForCheck");
        request_says_that(s, later, "Provisioned", "");
        expect_state(s, "train", "Admitted");
        scenario_free(s);
    }
}

static void a_refused_admission_asks_nobody_again(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "base=60s");
    given_job(s, "train", "q", "pods=8 cpu=1");
    const char *request = request_of(s, "train");
    writes_are_manual(s, true);
    request_says_that(s, request, "Provisioned", "");
    write_refused(s, "train", "denied by a policy");
    expect_state(s, "train", "Pending Backoff");
    at(s, MINUTE_MS);
    write_ok(s, "train", true);
    expect_state(s, "train", "Admitted");
    assert_string_equal(request_of(s, "train"), request);
}

static void one_that_cannot_be_made_is_tried_again(void **state)
{
    struct scenario *s = *state;
    requests_are_manual(s, true);
    given_a_checked_queue(s, "base=60s");
    given_job(s, "train", "q", "pods=8 cpu=1");
    expect_state(s, "train", "Reserved WaitingForCheck");
    expect_message(s, "train", "is being made");
    request_is_refused(s, "podtemplates is forbidden");
    expect_state(s, "train", "Pending Backoff");
    expect_message(s, "train", "could not be made: podtemplates is forbidden");
    at(s, MINUTE_MS);
    request_is_made(s);
    expect_message(s, "train", "has had no answer yet");
}

static void whoever_withdraws_while_it_is_made_leaves_none(void **state)
{
    struct scenario *s = *state;
    requests_are_manual(s, true);
    given_a_checked_queue(s, "");
    given_job(s, "train", "q", "pods=8 cpu=1");
    job_annotated(s, "train", "tallyman.dev/hold", "true");
    expect_used(s, "q", "cpu=0");
    request_is_made(s); /* nothing is wanted any more, so nothing is made */
    assert_int_equal(requests_of(s, "train"), 0);
}

static void a_deleted_request_is_a_failure(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "");
    given_job(s, "train", "q", "pods=8 cpu=1");
    object_gone(s, KIND_PROVISIONING_REQUEST, request_of(s, "train"));
    expect_state(s, "train", "Pending Backoff");
    expect_message(s, "train", "was deleted before it was provisioned");
    expect_used(s, "q", "cpu=0");
    at(s, MINUTE_MS);
    expect_state(s, "train", "Reserved WaitingForCheck");
}

static void without_the_kind_nobody_holds_quota(void **state)
{
    struct scenario *s = *state;
    requests_are_served(s, false);
    given_a_checked_queue(s, "");
    given_queue(s, "unchecked", "cpu=8");
    given_job(s, "short", "unchecked", "pods=9 cpu=1");
    given_job(s, "lost", "nowhere", "pods=1 cpu=1");
    given_job(s, "train", "q", "pods=8 cpu=1");
    expect_state(s, "train", "Pending WaitingForCheck");
    expect_message(s, "train", "doesn't serve provisioningrequests.autoscaling.x-k8s.io/v1");
    expect_used(s, "q", "cpu=0");
    requests_are_served(s, true);
    expect_state(s, "train", "Reserved WaitingForCheck");
    expect_state(s, "short", "Pending NeverFits"); /* it is no matter to others */
    expect_state(s, "lost", "Pending QueueNotFound");
    object_gone(s, KIND_PROVISIONING_REQUEST, request_of(s, "train"));
    requests_are_served(s, false);
    at(s, 2 * MINUTE_MS);
    expect_state(s, "train", "Pending WaitingForCheck");
    expect_used(s, "q", "cpu=0");
}

/* 404: whatever it asks for isn't there. */
static void one_that_nobody_knows_how_to_make_is_tried_again(void **state)
{
    struct scenario *s = *state;
    requests_are_manual(s, true);
    given_a_checked_queue(s, "base=60s");
    given_job(s, "train", "q", "pods=8 cpu=1");
    expect_state(s, "train", "Reserved WaitingForCheck");
    request_is_unknown(s);
    expect_state(s, "train", "Pending Backoff");
    expect_message(s, "train",
                   "could not be made: the API server doesn't know the Job, or the "
                   "kind, any more");
    at(s, MINUTE_MS);
    request_is_made(s);
    expect_message(s, "train", "has had no answer yet");
}

/* The request says since when it has failed no more than when it was made: that it is found once
 * more doesn't put the next attempt off. */
static void a_failure_is_counted_once_over_restarts(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "base=60s");
    given_job(s, "train", "q", "pods=8 cpu=1");
    const char *request = request_of(s, "train");
    request_says_that(s, request, "Failed", "none");
    struct provisioning_request *object = scenario_object(s, KIND_PROVISIONING_REQUEST, request);
    object->status.conditions.items[0].last_transition_time.is_set = false;
    for (int i = 1; i <= 3; i++) {
        at(s, i * MINUTE_MS / 4);
        restart(s, WITH_ADMISSIONS);
        expect_state(s, "train", "Pending Backoff");
        expect_message(s, "train", "(1 failed so far)");
    }
    at(s, MINUTE_MS);
    expect_state(s, "train", "Reserved WaitingForCheck");
}

/* One of an earlier attempt is deleted late, and the one that was used once it isn't needed. */
static void deleting_another_request_is_no_matter(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n", "cpu=8");
    given_a_checked_queue(s, "base=60s");
    given_job(s, "train", "q", "pods=8 cpu=1");
    request_deletions_fail(s, true);
    char first[300];
    (void)snprintf(first, sizeof(first), "%s", request_of(s, "train"));
    request_says_that(s, first, "Failed", "none");
    at(s, MINUTE_MS);
    expect_state(s, "train", "Reserved WaitingForCheck");
    object_gone(s, KIND_PROVISIONING_REQUEST, first);
    expect_state(s, "train", "Reserved WaitingForCheck");
    assert_int_equal(requests_of(s, "train"), 1);
    request_says_that(s, request_of(s, "train"), "Provisioned", "");
    expect_state(s, "train", "Admitted");
    gang_starts(s, "train", "n n n n n n n n");
    object_gone(s, KIND_PROVISIONING_REQUEST, request_of(s, "train"));
    expect_state(s, "train", "Running");
}

/* It is revoked under a gang whose Job can't be suspended: it is counted once, and tried again. */
static void a_revoked_request_is_counted_once(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n", "cpu=8");
    given_a_checked_queue(s, "base=600s");
    given_job(s, "train", "q", "pods=8 cpu=1");
    request_says_that(s, request_of(s, "train"), "Provisioned", "");
    gang_starts(s, "train", "n n n n n n n n");
    writes_are_manual(s, true);
    request_says_that(s, request_of(s, "train"), "CapacityRevoked", "sold");
    write_refused(s, "train", "denied by a policy");
    at(s, 2 * MINUTE_MS);
    write_refused(s, "train", "denied by a policy");
    at(s, 4 * MINUTE_MS);
    write_ok(s, "train", true);
    writes_are_manual(s, false);
    gang_stops(s, "train");
    expect_state(s, "train", "Pending Backoff");
    expect_message(s, "train", "(1 failed so far)");
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "train");
    check_i64(admission->status.evictions.value, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(a_restart_takes_it_up_where_it_was),
        scenario_test(a_restart_between_provisioned_and_admitted_admits),
        scenario_test(a_restart_does_not_use_a_request_twice),
        scenario_test(failures_count_over_a_restart),
        cmocka_unit_test(of_two_attempts_the_later_counts_in_any_order),
        scenario_test(a_refused_admission_asks_nobody_again),
        scenario_test(one_that_cannot_be_made_is_tried_again),
        scenario_test(whoever_withdraws_while_it_is_made_leaves_none),
        scenario_test(a_deleted_request_is_a_failure),
        scenario_test(without_the_kind_nobody_holds_quota),
        scenario_test(one_that_nobody_knows_how_to_make_is_tried_again),
        scenario_test(a_failure_is_counted_once_over_restarts),
        scenario_test(deleting_another_request_is_no_matter),
        scenario_test(a_revoked_request_is_counted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
