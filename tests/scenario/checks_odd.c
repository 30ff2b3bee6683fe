/* ProvisioningRequests that aren't, or aren't any longer, what the gang asked for. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#define MINUTE_MS 60000
#define CLASS     "check-capacity.autoscaling.x-k8s.io"

static void given_world(struct scenario *s)
{
    given_queue(s, "q", "cpu=8 base=60s check=" CLASS);
    given_job(s, "train", "q", "pods=4 cpu=1");
    expect_state(s, "train", "Reserved WaitingForCheck");
}

static struct str *record_of(struct scenario *s, const char *request)
{
    struct provisioning_request *object = scenario_object(s, KIND_PROVISIONING_REQUEST, request);
    for (uint32_t i = 0; i < object->meta.annotations.count; i++) {
        if (str_starts_with(object->meta.annotations.items[i].key, STR("tallyman.dev/"))) {
            return &object->meta.annotations.items[i].value;
        }
    }
    fail_msg("%s has no record", request);
    return NULL;
}

/* The request's record with `part` changed into `other`. */
static void record_becomes(struct scenario *s, const char *request, const char *part,
                           const char *other)
{
    struct str *record = record_of(s, request);
    char text[1024];
    snprintf(text, sizeof(text), STR_FMT, STR_ARG(*record));
    const char *place = strstr(text, part);
    if (place == NULL) {
        fail_msg("\"%s\" isn't in %s", part, text);
    }
    char changed[2048];
    snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(place - text), text, other,
             place + strlen(part));
    *record = arena_copy_str(&s->arena, str_from_c(changed));
}

static const struct {
    const char *part;
    const char *other;
} CHANGES[] = {
    {"{", "["},
    {"\"queue\":\"q\"", "\"queue\":\"p\""},
    {"\"asks\":\"", "\"asks\":\"x"},
    {"\"podSets\":[", "\"podSets\":[{\"name\":\"more\",\"count\":1},"},
    {"\"name\":\"main\"", "\"name\":\"other\""},
    {"\"count\":4", "\"count\":0"},
    {"\"count\":4", "\"count\":5"},
    {"\"count\":4,", ""},
};

/* At a restart a request is taken up only if what it says that was reserved is the gang's; else it
 * is let go, and room is asked for anew. */
static void record_that_is_not_the_gangs_is_let_go(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(CHANGES) / sizeof(CHANGES[0]); i++) {
        struct scenario *s = scenario_new();
        given_world(s);
        const char *before = request_of(s, "train");
        record_becomes(s, before, CHANGES[i].part, CHANGES[i].other);
        restart(s, WITHOUT_ADMISSIONS);
        expect_state(s, "train", "Reserved WaitingForCheck");
        assert_int_equal(requests_of(s, "train"), 1);
        if (strcmp(request_of(s, "train"), before) == 0) {
            fail_msg("taken up with %s", CHANGES[i].other);
        }
        expect_used(s, "q", "cpu=4");
        scenario_free(s);
    }
}

/* A request that its gang couldn't use, because its admission was refused, is used at the next try;
 * one whose record was changed meanwhile isn't, and room is asked for anew. */
static void changed_record_is_not_used_after_a_refused_admission(void **state)
{
    (void)state;
    for (size_t i = 0; i <= sizeof(CHANGES) / sizeof(CHANGES[0]); i++) {
        struct scenario *s = scenario_new();
        bool is_changed = i < sizeof(CHANGES) / sizeof(CHANGES[0]);
        given_world(s);
        const char *before = request_of(s, "train");
        writes_are_manual(s, true);
        request_says_that(s, before, "Provisioned", "");
        write_refused(s, "train", "denied by a policy");
        expect_state(s, "train", "Pending Backoff");
        if (is_changed) {
            record_becomes(s, before, CHANGES[i].part, CHANGES[i].other);
            object_changed(s, KIND_PROVISIONING_REQUEST, before);
        }
        at(s, MINUTE_MS);
        assert_true(write_is_out(s, "train") == !is_changed);
        assert_int_equal(requests_of(s, "train"), 1);
        assert_true((strcmp(request_of(s, "train"), before) == 0) == !is_changed);
        scenario_free(s);
    }
}

/* The name of a request is the Job's, cut where that leaves a name that Kubernetes takes. */
static void name_is_cut_to_a_name(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "q", "cpu=8 check=" CLASS);
    given_job(s, "a-job-with-a-name-of-forty-characters--.tail", "q", "pods=4 cpu=1");
    const char *name = request_of(s, "a-job-with-a-name-of-forty-characters--.tail");
    assert_non_null(strstr(name, "a-job-with-a-name-of-forty-characters-"));
    assert_null(strstr(name, "--"));
    assert_null(strstr(name, ".-"));
    restart(s, WITHOUT_ADMISSIONS);
    assert_string_equal(request_of(s, "a-job-with-a-name-of-forty-characters--.tail"), name);
    assert_int_equal(requests_of(s, "a-job-with-a-name-of-forty-characters--.tail"), 1);
}

/* What another made, or what isn't named as Tallyman names its own, is left as it is. */
static void requests_that_are_not_named_like_ours_are_left_alone(void **state)
{
    static const struct {
        const char *name; /* behind the gang's own request's name without its number */
        const char *kind; /* of its controller */
    } rows[] = {{"x", "Job"},  {"0", "Job"},        {"-1", "Job"}, {"99999999999", "Job"},
                {"02", "Job"}, {"9", "Deployment"}, {"", "Job"}};
    struct scenario *s = *state;
    given_world(s);
    const char *own = request_of(s, "train");
    const struct str uid = scenario_job(s, "train")->meta.uid;
    size_t stem = (size_t)(strrchr(own, '-') - own) + 1;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char json[700];
        snprintf(
            json, sizeof(json),
            "{\"metadata\":{\"name\":\"%.*s%s\",\"ownerReferences\":[{\"apiVersion\":"
            "\"batch/v1\",\"kind\":\"%s\",\"name\":\"train\",\"controller\":true,\"uid\":\"" STR_FMT
            "\"}]},\"spec\":{\"provisioningClassName\":\"x\"},\"status\":{"
            "\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\"}]}}",
            (int)stem, own, rows[i].name, rows[i].kind, STR_ARG(uid));
        given_json(s, KIND_PROVISIONING_REQUEST, json);
        expect_state(s, "train", "Reserved WaitingForCheck");
    }
    given_json(s, KIND_PROVISIONING_REQUEST,
               "{\"metadata\":{\"name\":\"free\"},\"spec\":{},\"status\":{\"conditions\":[{"
               "\"type\":\"Failed\",\"status\":\"True\"}]}}");
    expect_state(s, "train", "Reserved WaitingForCheck");
    request_says_that(s, own, "Provisioned", "");
    expect_state(s, "train", "Admitted"); /* its own was heard */
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[100];
        snprintf(name, sizeof(name), "%.*s%s", (int)stem, own, rows[i].name);
        assert_true(scenario_has(s, KIND_PROVISIONING_REQUEST, name));
    }
}

/* A request of the same name that somebody made anew is another one: its own is gone. */
static void request_made_anew_is_another_one(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    const char *own = request_of(s, "train");
    struct provisioning_request *request = scenario_object(s, KIND_PROVISIONING_REQUEST, own);
    request->meta.uid = STR("0e0e0e0e-0000-4000-8000-00000000abcd");
    object_changed(s, KIND_PROVISIONING_REQUEST, own);
    expect_state(s, "train", "Pending Backoff");
    expect_message(s, "train", "was deleted before it was provisioned");
    expect_used(s, "q", "cpu=0");
}

/* Room is asked for only by those that ask for some of what the check is for. */
static void only_who_asks_for_what_is_managed_asks_for_room(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "cpus", "label=kind:a");
    given_flavor(s, "cards", "label=card:b");
    given_queue(s, "q",
                "flavor=cpus cpu=8 memory=8 group=new flavor=cards example.com/card=4 "
                "check=" CLASS " managed=example.com/card");
    given_job(s, "train", "q", "pods=2 cpu=1 memory=1 example.com/card=1");
    given_job(s, "plain", "q", "pods=2 cpu=1");
    given_job(s, "zero", "q", "pods=2 cpu=1 example.com/card=0");
    expect_state(s, "train", "Reserved WaitingForCheck");
    assert_int_equal(requests_of(s, "plain"), 0);
    assert_int_equal(requests_of(s, "zero"), 0);
}

/* Room was made on one flavor: with quota on another only, it isn't admitted there. */
static void room_on_one_flavor_is_not_used_on_another(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "a", "label=kind:a");
    given_flavor(s, "b", "label=kind:b");
    given_queue(s, "q", "flavor=a cpu=4 flavor=b cpu=4 check=" CLASS);
    given_job(s, "train", "q", "pods=4 cpu=1");
    const char *request = request_of(s, "train");
    expect_state(s, "train", "Reserved WaitingForCheck");
    quota_becomes(s, "q", "flavor=a cpu=0 flavor=b cpu=4 check=" CLASS);
    request_says_that(s, request, "Provisioned", "");
    assert_null(strstr(trace_text(s), "train: admit"));
}

/* A check without a class to ask for is told, and asks for nothing. */
static void check_without_a_class_is_told(void **state)
{
    struct scenario *s = *state;
    given_json(s, KIND_QUEUE,
               "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"namespaceSelector\":{},"
               "\"admissionChecks\":[\"provisioning\"],\"resourceGroups\":[{\"flavors\":[{\"name\":"
               "\"default\",\"resources\":[{\"name\":\"cpu\",\"nominalQuota\":8}]}]}]}}");
    given_job(s, "train", "q", "pods=8 cpu=1");
    expect_state(s, "train", "Pending WaitingForCheck");
    expect_message(s, "train", "no spec.provisioning.className to ask for");
    assert_int_equal(requests_of(s, "train"), 0);
    expect_used(s, "q", "cpu=0");
}

/* An autoscaler that gives no message is quoted by its reason, or not at all. */
static void failure_without_a_message(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_job(s, "train", "q", "pods=2 cpu=1");
    request_says_that(s, request_of(s, "train"), "Failed", "");
    expect_state(s, "train", "Pending Backoff");
    expect_message(s, "train", "failed");
}

/* What another has made beside, without being a Job's or without an attempt in its name, is no
 * request of the gang's; and a request that comes again as it was changes nothing. */
static void requests_that_are_nobodys(void **state)
{
    struct scenario *s = *state;
    char json[512];
    given_world(s);
    const char *own = request_of(s, "train");
    const char *names[] = {"nodash", "train-x", "train-0", "train-1"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(
            json, sizeof(json),
            "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"ownerReferences\":[{"
            "\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"train\",\"uid\":\"%s\","
            "\"controller\":true}]},\"spec\":{\"provisioningClassName\":\"" CLASS
            "\"},\"status\":{\"conditions\":[{\"type\":\"Provisioned\",\"status\":\"True\"}]}}",
            names[i], i < 3 ? scenario_job(s, "train")->meta.uid.ptr : "");
        given_json(s, KIND_PROVISIONING_REQUEST, json);
        expect_state(s, "train", "Reserved WaitingForCheck");
    }
    (void)counts_take(s);
    object_again(s, KIND_PROVISIONING_REQUEST, own);
    assert_int_equal(counts_take(s).effects, 0);
    request_says_that(s, own, "Provisioned", "");
    expect_state(s, "train", "Admitted");
}

/* It says that there is room, and is being deleted: the room goes with it, so nobody starts there.
 */
static void room_of_a_request_that_is_going(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    const char *own = request_of(s, "train");
    struct provisioning_request *request = scenario_object(s, KIND_PROVISIONING_REQUEST, own);
    request->meta.deletion_timestamp = (struct opt_time){true, SCENARIO_START_MS};
    request_says_that(s, own, "Provisioned", "");
    expect_state(s, "train", "Pending Backoff");
    expect_message(s, "train", "is being deleted");
    expect_used(s, "q", "");
}

/* By the time that there is room for four the quota is for two: it isn't started with as many as it
 * finds now, but asks anew for these. */
static void fewer_pods_than_room_was_asked_for(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "q", "cpu=8 base=60s check=" CLASS);
    given_job(s, "train", "q", "pods=4 cpu=1 min=2 partial=true");
    given_job(s, "other", "q", "pods=1 cpu=1");
    expect_state(s, "train", "Reserved WaitingForCheck");
    const char *first = request_of(s, "train");
    quota_becomes(s, "q", "cpu=3 base=60s check=" CLASS);
    expect_used(s, "q", "cpu=5");
    request_says_that(s, first, "Provisioned", "");
    expect_state(s, "train", "Reserved WaitingForCheck");
    expect_used(s, "q", "cpu=3");
    assert_string_not_equal(request_of(s, "train"), first);
    request_says_that(s, request_of(s, "train"), "Provisioned", "");
    expect_state(s, "train", "Admitted");
    expect_state(s, "other", "Reserved WaitingForCheck");
    expect_used(s, "q", "cpu=3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(record_that_is_not_the_gangs_is_let_go),
        cmocka_unit_test(changed_record_is_not_used_after_a_refused_admission),
        scenario_test(name_is_cut_to_a_name),
        scenario_test(requests_that_are_not_named_like_ours_are_left_alone),
        scenario_test(request_made_anew_is_another_one),
        scenario_test(only_who_asks_for_what_is_managed_asks_for_room),
        scenario_test(check_without_a_class_is_told),
        scenario_test(failure_without_a_message),
        scenario_test(room_on_one_flavor_is_not_used_on_another),
        scenario_test(requests_that_are_nobodys),
        scenario_test(room_of_a_request_that_is_going),
        scenario_test(fewer_pods_than_room_was_asked_for),
    };
    return cmocka_run_group_tests_name("checks_odd", tests, NULL, NULL);
}
