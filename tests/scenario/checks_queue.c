/* Admission checks while the queue that asks for them is edited or goes, parameters that the
 * request carries on, and conditions that say nothing. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

#define MINUTE_MS 60000
#define CLASS     "check-capacity.autoscaling.x-k8s.io"

/* Its gangs hold nothing any more, and the request is let go; with the queue back they ask anew. */
static void a_queue_that_goes_takes_its_checks_along(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "q", "cpu=8 check=" CLASS);
    given_queue(s, "other", "cpu=8");
    given_job(s, "train", "q", "pods=4 cpu=2");
    expect_state(s, "train", "Reserved WaitingForCheck");
    assert_non_null(request_of(s, "train"));
    object_gone(s, KIND_QUEUE, "q");
    expect_state(s, "train", "Pending QueueNotFound");
    expect_used(s, "q", "cpu=0");
    assert_null(request_of(s, "train"));
    given_queue(s, "q", "cpu=8 check=" CLASS);
    expect_state(s, "train", "Reserved WaitingForCheck");
    request_says_that(s, request_of(s, "train"), "Provisioned", "");
    expect_state(s, "train", "Admitted");
}

/* Without a timeout nothing is promised about an end; a condition without a word is told as such,
 * and a reason is told where there is no message. */
static void conditions_without_a_word_are_told_plainly(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "q", "cpu=8 check=" CLASS " check-timeout=0s");
    given_job(s, "train", "q", "pods=4 cpu=2");
    const char *request = request_of(s, "train");
    request_says_that(s, request, "!Provisioned", "");
    expect_message(s, "train", "isn't provisioned yet");
    expect_message(s, "train", "isn't provisioned yet: \"Provisioned\"");
    struct provisioning_request *object = scenario_object(s, KIND_PROVISIONING_REQUEST, request);
    object->status.conditions.items[0].reason = STR("");
    object_changed(s, KIND_PROVISIONING_REQUEST, request);
    const struct admission *told = scenario_object(s, KIND_ADMISSION, "train");
    assert_true(str_ends_with(told->status.message, STR("isn't provisioned yet")));
    at(s, 600 * MINUTE_MS);
    expect_state(s, "train", "Reserved WaitingForCheck");
    request_says_that(s, request, "Failed", "");
    expect_message(s, "train", "failed");
}

/* What the queue's administrator wants the autoscaler to know, and the queue's class becoming
 * another, or none, while a gang waits for it. */
static void parameters_go_along_and_an_edit_of_the_class_asks_anew(void **state)
{
    struct scenario *s = *state;
    struct string_pair pair = {STR("ValidUntilSeconds"), STR("600")};
    given_queue(s, "q", "cpu=8 check=" CLASS);
    struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    queue->spec.provisioning->parameters = (struct string_map){&pair, 1};
    object_changed(s, KIND_QUEUE, "q");
    given_job(s, "train", "q", "pods=4 cpu=2");
    const struct provisioning_request *request =
        scenario_object(s, KIND_PROVISIONING_REQUEST, request_of(s, "train"));
    assert_int_equal(request->spec.parameters.count, 1);
    check_str(request->spec.parameters.items[0].key, "ValidUntilSeconds");
    check_str(request->spec.parameters.items[0].value, "600");

    queue = scenario_object(s, KIND_QUEUE, "q");
    queue->spec.provisioning = NULL;
    object_changed(s, KIND_QUEUE, "q");
    expect_state(s, "train", "Pending WaitingForCheck");
    expect_message(s, "train", "no spec.provisioning.className to ask for");
    expect_used(s, "q", "cpu=0");
    given_queue(s, "q", "cpu=8");
    expect_state(s, "train", "Pending NodesFull");
    given_node(s, "n1", "cpu=8");
    expect_state(s, "train", "Admitted");
}

/* The queue loses its check between the room's being there and the gang's being let go. */
static void a_request_that_is_being_made_for_a_queue_without_check_is_not_made(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "q", "cpu=8 check=" CLASS);
    scenario_start(s);
    requests_are_manual(s, true);
    given_job(s, "train", "q", "pods=4 cpu=2");
    struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    queue->spec.provisioning = NULL;
    object_changed(s, KIND_QUEUE, "q");
    request_is_made(s);
    requests_are_manual(s, false);
    assert_null(request_of(s, "train"));
    expect_state(s, "train", "Pending WaitingForCheck");
    expect_used(s, "q", "cpu=0");
}

/* A queue that asks for the check and says nothing of how waits with a sentence, and starts when it
 * does. */
static void a_check_without_its_class_is_told(void **state)
{
    (void)state;
    static const char *const specs[] = {"", ",\"provisioning\":{}"};
    for (size_t i = 0; i < 2; i++) {
        struct scenario *s = scenario_new();
        char json[500];
        (void)snprintf(json, sizeof(json),
                       "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"namespaceSelector\":{},"
                       "\"admissionChecks\":[\"provisioning\"]%s,\"resourceGroups\":[{\"flavors\":["
                       "{\"name\":\"default\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":"
                       "\"8\"}]}]}]}}",
                       specs[i]);
        given_json(s, KIND_QUEUE, json);
        given_job(s, "train", "q", "pods=8 cpu=1");
        expect_state(s, "train", "Pending WaitingForCheck");
        expect_message(s, "train", "spec.provisioning");
        expect_used(s, "q", "cpu=0");
        given_queue(s, "q", "cpu=8 check=" CLASS);
        expect_state(s, "train", "Reserved WaitingForCheck");
        scenario_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(a_queue_that_goes_takes_its_checks_along),
        scenario_test(conditions_without_a_word_are_told_plainly),
        scenario_test(parameters_go_along_and_an_edit_of_the_class_asks_anew),
        scenario_test(a_request_that_is_being_made_for_a_queue_without_check_is_not_made),
        cmocka_unit_test(a_check_without_its_class_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
