/* Admission checks: a gang that has its quota waits until an autoscaler has made room for it. */
#include <stdio.h>
#include <string.h>

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

static void quota_decides_and_not_the_nodes(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "q", "cpu=8 fit=Quota timeout=10m");
    given_job(s, "train", "q", "pods=8 cpu=1");
    given_job(s, "next", "q", "pods=1 cpu=1");
    expect_state(s, "train", "Admitted");
    expect_state(s, "next", "Pending QuotaExhausted");

    /* The cluster didn't grow in time: it stops whole and gives its quota to others. */
    at(s, 10 * MINUTE_MS);
    gang_stops(s, "train");
    expect_state(s, "train", "Pending Backoff");
    expect_state(s, "next", "Admitted");
}

static void a_gang_with_quota_asks_for_room_and_waits(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "");
    given_job(s, "train", "q", "pods=4 cpu=2");
    expect_state(s, "train", "Reserved WaitingForCheck");
    expect_message(s, "train", "its quota is held; ProvisioningRequest ");
    expect_message(s, "train", "has had no answer yet; an autoscaler that serves class " CLASS);
    expect_used(s, "q", "cpu=8");

    const struct provisioning_request *request =
        scenario_object(s, KIND_PROVISIONING_REQUEST, request_of(s, "train"));
    check_str(request->spec.provisioning_class_name, CLASS);
    assert_int_equal(request->spec.pod_sets.count, 1);
    check_i64(request->spec.pod_sets.items[0].count.value, 4);
    assert_string_equal(decisions_text(s), "ml/train: Wait WaitingForCheck #0 4\n");

    request_says_that(s, request_of(s, "train"), "!Provisioned", "3 of 4 nodes are there");
    expect_message(s, "train", "isn't provisioned yet: \"3 of 4 nodes are there\"");
}

static void provisioned_is_admitted_with_what_its_pods_need(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "detail=example.com/request:Key");
    given_job(s, "train", "q", "pods=4 cpu=2");
    const char *request = request_of(s, "train");
    request_has_detail(s, request, "Key", "r-17");
    trace_forget(s);
    at(s, 90000);
    request_says_that(s, request, "Provisioned", "");
    expect_state(s, "train", "Admitted");
    const struct job *job = scenario_job(s, "train");
    const struct string_map *annotations = &job->spec.pod_template.meta.annotations;
    check_str(string_map_get(annotations, "autoscaling.x-k8s.io/consume-provisioning-request"),
              request);
    check_str(string_map_get(annotations, "autoscaling.x-k8s.io/provisioning-class-name"), CLASS);
    check_str(string_map_get(&job->spec.pod_template.spec.node_selector, "example.com/request"),
              "r-17");
    expect_used(s, "q", "cpu=8");
    assert_int_equal(requests_of(s, "train"), 1); /* its pods use it */
}

static void a_detail_that_is_missing_is_waited_for(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "detail=example.com/request:Key");
    given_job(s, "train", "q", "pods=4 cpu=2");
    request_says_that(s, request_of(s, "train"), "Provisioned", "");
    expect_state(s, "train", "Reserved WaitingForCheck");
    expect_message(s, "train", "status.provisioningClassDetails lacks \"Key\"");
    request_has_detail(s, request_of(s, "train"), "Key", "r-17");
    expect_state(s, "train", "Admitted");
}

static void failure_gives_the_quota_back_and_is_tried_again(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "base=60s max=1h");
    given_job(s, "train", "q", "pods=8 cpu=1");
    given_job(s, "next", "q", "pods=2 cpu=1");
    expect_state(s, "next", "Pending QuotaExhausted");
    const char *first = request_of(s, "train");
    at(s, 30000);
    request_says_that(s, first, "Failed", "no such machines in zone b");
    expect_state(s, "train", "Pending Backoff");
    expect_message(s, "train", "failed: \"no such machines in zone b\"");
    expect_state(s, "next", "Reserved WaitingForCheck");
    expect_used(s, "q", "cpu=2");
    job_deleted_now(s, "next");
    expect_used(s, "q", "cpu=0");

    at(s, 89999);
    expect_state(s, "train", "Pending Backoff");
    at(s, 90000);
    expect_state(s, "train", "Reserved WaitingForCheck");
    assert_int_equal(requests_of(s, "train"), 1); /* the failed one is gone */
    assert_string_not_equal(request_of(s, "train"), first);
    /* The second failure waits twice as long. */
    request_says_that(s, request_of(s, "train"), "Failed", "still none");
    at(s, 90000 + 119999);
    expect_state(s, "train", "Pending Backoff");
    at(s, 90000 + 120000);
    expect_state(s, "train", "Reserved WaitingForCheck");
}

static void a_booking_that_expires_before_it_is_used_is_a_failure(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "detail=example.com/request:Key");
    given_job(s, "train", "q", "pods=4 cpu=2");
    request_says_that(s, request_of(s, "train"), "Provisioned", "");
    request_says_that(s, request_of(s, "train"), "BookingExpired", "10 minutes are over");
    expect_state(s, "train", "Pending Backoff");
    expect_message(s, "train", "expired before it was used: \"10 minutes are over\"");
    expect_used(s, "q", "cpu=0");
}

static void a_booking_that_expires_later_is_no_matter(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n", "cpu=8");
    given_a_checked_queue(s, "");
    given_job(s, "train", "q", "pods=4 cpu=2");
    request_says_that(s, request_of(s, "train"), "Provisioned", "");
    gang_starts(s, "train", "n n n n");
    request_says_that(s, request_of(s, "train"), "BookingExpired", "10 minutes are over");
    expect_state(s, "train", "Running");
    object_gone(s, KIND_PROVISIONING_REQUEST, request_of(s, "train"));
    expect_state(s, "train", "Running");
}

static void capacity_revoked_under_a_running_gang_stops_it_whole(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n", "cpu=8");
    given_a_checked_queue(s, "");
    given_job(s, "train", "q", "pods=4 cpu=2");
    const char *request = request_of(s, "train");
    request_says_that(s, request, "Provisioned", "");
    gang_starts(s, "train", "n n n n");
    at(s, 10 * MINUTE_MS);
    trace_forget(s);
    request_says_that(s, request, "CapacityRevoked", "spot nodes were taken back");
    expect_state(s, "train", "Suspending WaitingForTermination");
    expect_used(s, "q", "cpu=8");
    gang_stops(s, "train");
    expect_used(s, "q", "cpu=0");
    expect_state(s, "train", "Pending Backoff");
    assert_int_equal(requests_of(s, "train"), 0);
    const struct job *job = scenario_job(s, "train");
    assert_int_equal(job->spec.pod_template.meta.annotations.count, 0); /* what was put in is out */
    at(s, 11 * MINUTE_MS);
    expect_state(s, "train", "Reserved WaitingForCheck");
    assert_string_not_equal(request_of(s, "train"), request);
}

static void it_does_not_wait_for_ever(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "check-timeout=20m");
    given_job(s, "train", "q", "pods=8 cpu=1");
    given_job(s, "next", "q", "pods=1 cpu=1");
    at(s, 20 * MINUTE_MS - 1);
    expect_state(s, "train", "Reserved WaitingForCheck");
    at(s, 20 * MINUTE_MS);
    expect_state(s, "train", "Pending Backoff");
    expect_message(s, "train", "was not provisioned in 20m");
    assert_int_equal(requests_of(s, "train"), 0);
    expect_state(s, "next", "Reserved WaitingForCheck");
}

static void after_the_limit_it_is_held(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "limit=1 base=60s");
    given_job(s, "train", "q", "pods=8 cpu=1");
    request_says_that(s, request_of(s, "train"), "Failed", "none");
    at(s, MINUTE_MS);
    request_says_that(s, request_of(s, "train"), "Failed", "none");
    expect_state(s, "train", "Held Held");
    expect_used(s, "q", "cpu=0");
    assert_int_equal(requests_of(s, "train"), 0);
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "train", "Held Held");
    job_annotated(s, "train", "tallyman.dev/hold", NULL);
    at(s, 10 * MINUTE_MS);
    expect_state(s, "train", "Reserved WaitingForCheck");
}

static void whoever_is_held_or_edited_or_deleted_gives_its_quota_back(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "");
    given_job(s, "held", "q", "pods=2 cpu=1");
    given_job(s, "edited", "q", "pods=2 cpu=1");
    given_job(s, "gone", "q", "pods=2 cpu=1");
    given_job(s, "moved", "q", "pods=2 cpu=1");
    expect_used(s, "q", "cpu=8");
    job_annotated(s, "held", "tallyman.dev/hold", "true");
    expect_state(s, "held", "Held Held");
    assert_int_equal(requests_of(s, "held"), 0);
    expect_used(s, "q", "cpu=6");
    const char *before = request_of(s, "edited");
    job_resized(s, "edited", 1, 1);
    expect_state(s, "edited", "Reserved WaitingForCheck");
    assert_string_not_equal(request_of(s, "edited"), before);
    assert_int_equal(requests_of(s, "edited"), 1);
    expect_used(s, "q", "cpu=5");
    job_deleted_now(s, "gone");
    expect_used(s, "q", "cpu=3");
    job_relabelled(s, "moved", "other");
    expect_used(s, "q", "cpu=1");
    assert_int_equal(requests_of(s, "moved"), 0);
}

static void an_unknown_check_is_told(void **state)
{
    struct scenario *s = *state;
    given_json(s, KIND_QUEUE,
               "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"namespaceSelector\":{},"
               "\"admissionChecks\":[\"image\"],\"resourceGroups\":[{\"flavors\":[{\"name\":"
               "\"default\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":8}]}]}]}}");
    given_job(s, "train", "q", "pods=8 cpu=1");
    expect_state(s, "train", "Pending WaitingForCheck");
    expect_message(s, "train", "admission check \"image\"");
    const struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    at(s, 5000);
    assert_false(condition_is_true(&queue->status.conditions, "Ready"));
}

static void who_asks_for_nothing_managed_starts_without(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n", "cpu=8 example.com/accel=8");
    given_a_checked_queue(s, "example.com/accel=8 managed=example.com/accel");
    given_job(s, "small", "q", "pods=1 cpu=1");
    given_job(s, "large", "q", "pods=1 cpu=1 example.com/accel=4");
    expect_state(s, "small", "Admitted");
    expect_state(s, "large", "Reserved WaitingForCheck");
}

static void another_class_is_another_request(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "");
    given_job(s, "train", "q", "pods=8 cpu=1");
    const char *before = request_of(s, "train");
    quota_becomes(s, "q", "cpu=8 check=other.example.com");
    expect_state(s, "train", "Reserved WaitingForCheck");
    assert_string_not_equal(request_of(s, "train"), before);
    assert_int_equal(requests_of(s, "train"), 1);
    quota_becomes(s, "q", "cpu=8 fit=Quota");
    expect_state(s, "train", "Admitted");
    assert_int_equal(requests_of(s, "train"), 0);
}

static void quota_that_is_cut_meanwhile_admits_nothing(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "");
    given_job(s, "train", "q", "pods=8 cpu=1");
    quota_becomes(s, "q", "cpu=4 check=" CLASS);
    request_says_that(s, request_of(s, "train"), "Provisioned", "");
    expect_state(s, "train", "Pending NeverFits");
    expect_used(s, "q", "cpu=0");
    assert_int_equal(requests_of(s, "train"), 0);
}

static void preempting_one_that_is_checked_costs_nothing(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "high", 100);
    given_node(s, "n", "cpu=8");
    given_a_checked_queue(s, "within=LowerPriority");
    given_job(s, "works", "q", "pods=4 cpu=1");
    request_says_that(s, request_of(s, "works"), "Provisioned", "");
    gang_starts(s, "works", "n n n n");
    at(s, 1000);
    given_job(s, "waits", "q", "pods=4 cpu=1");
    expect_state(s, "waits", "Reserved WaitingForCheck");
    at(s, 2000);
    given_job(s, "urgent", "q", "pods=4 cpu=1 priority=high");
    expect_state(s, "works", "Running"); /* it has something to lose */
    expect_state(s, "waits", "Pending QuotaExhausted");
    expect_state(s, "urgent", "Reserved WaitingForCheck");
    assert_int_equal(requests_of(s, "waits"), 0);
    expect_used(s, "q", "cpu=8");
    request_says_that(s, request_of(s, "urgent"), "Provisioned", "");
    expect_state(s, "urgent", "Admitted");
}

static void room_that_is_not_there_yet_is_not_promised(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n", "cpu=8");
    given_queue(s, "physical", "cpu=8");
    given_a_checked_queue(s, "");
    given_job(s, "grows", "q", "pods=8 cpu=1");
    expect_state(s, "grows", "Reserved WaitingForCheck");
    given_job(s, "now", "physical", "pods=8 cpu=1");
    expect_state(s, "now", "Admitted");
}

static void a_long_message_is_cut(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "");
    given_job(s, "train", "q", "pods=8 cpu=1");
    char message[1001];
    memset(message, 'x', 1000);
    message[1000] = '\0';
    request_says_that(s, request_of(s, "train"), "!Provisioned", message);
    expect_message(s, "train", "xxx…\"");
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, "train");
    assert_true(admission->status.message.len < 700);
}

static void requests_of_others_are_none_of_our_business(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "");
    given_json(s, KIND_PROVISIONING_REQUEST,
               "{\"metadata\":{\"name\":\"theirs\"},\"spec\":{\"provisioningClassName\":\"x\"},"
               "\"status\":{\"conditions\":[{\"type\":\"Provisioned\",\"status\":\"True\"}]}}");
    given_job(s, "train", "q", "pods=8 cpu=1");
    expect_state(s, "train", "Reserved WaitingForCheck");
    object_gone(s, KIND_PROVISIONING_REQUEST, "theirs");
    expect_state(s, "train", "Reserved WaitingForCheck");
}

/* A tenant may name any owner in its own namespace, and the uid of a Job is no secret. */
static void request_of_another_namespace_provisions_nothing(void **state)
{
    struct scenario *s = *state;
    given_a_checked_queue(s, "");
    given_job(s, "train", "q", "pods=8 cpu=1");
    char json[512];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"other\",\"ownerReferences\":[{"
                   "\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"train\",\"uid\":"
                   "\"" STR_FMT "\",\"controller\":true}]},"
                   "\"spec\":{\"provisioningClassName\":\"" CLASS "\"},"
                   "\"status\":{\"conditions\":[{\"type\":\"Provisioned\",\"status\":\"True\"}]}}",
                   request_of(s, "train"), STR_ARG(scenario_job(s, "train")->meta.uid));
    given_json(s, KIND_PROVISIONING_REQUEST, json);
    expect_state(s, "train", "Reserved WaitingForCheck");
    restart(s, WITH_ADMISSIONS);
    expect_state(s, "train", "Reserved WaitingForCheck");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(quota_decides_and_not_the_nodes),
        scenario_test(a_gang_with_quota_asks_for_room_and_waits),
        scenario_test(provisioned_is_admitted_with_what_its_pods_need),
        scenario_test(a_detail_that_is_missing_is_waited_for),
        scenario_test(failure_gives_the_quota_back_and_is_tried_again),
        scenario_test(a_booking_that_expires_before_it_is_used_is_a_failure),
        scenario_test(a_booking_that_expires_later_is_no_matter),
        scenario_test(capacity_revoked_under_a_running_gang_stops_it_whole),
        scenario_test(it_does_not_wait_for_ever),
        scenario_test(after_the_limit_it_is_held),
        scenario_test(whoever_is_held_or_edited_or_deleted_gives_its_quota_back),
        scenario_test(an_unknown_check_is_told),
        scenario_test(who_asks_for_nothing_managed_starts_without),
        scenario_test(another_class_is_another_request),
        scenario_test(quota_that_is_cut_meanwhile_admits_nothing),
        scenario_test(preempting_one_that_is_checked_costs_nothing),
        scenario_test(room_that_is_not_there_yet_is_not_promised),
        scenario_test(a_long_message_is_cut),
        scenario_test(requests_of_others_are_none_of_our_business),
        scenario_test(request_of_another_namespace_provisions_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
