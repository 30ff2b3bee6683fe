/* Device selectors that are costly to try: no step tries for more than its budget and one trial,
 * everybody else is judged meanwhile, and nothing is decided before all is known. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#include "tallyman/base/limits.h"

#define CLASS   "gpu.example.com"
#define BUDGET  40000
#define TRIAL   120000 /* the costliest costs less */
#define TICKS   10000  /* more than anything takes */
#define DEVICES 20

/* Says `answer` when it has cost some 90,000 units. `salt` tells them apart. */
static const char *costly(char text[2048], const char *answer, int salt)
{
    int len = 0;
    const char *names[] = {"a", "b", "c"};
    const int counts[] = {50, 50, 4};
    for (int i = 0; i < 3; i++) {
        len += snprintf(text + len, 2048 - (size_t)len, "[");
        for (int j = 0; j < counts[i]; j++) {
            len += snprintf(text + len, 2048 - (size_t)len, "%s%d", j == 0 ? "" : ",", j % 10);
        }
        len += snprintf(text + len, 2048 - (size_t)len, "].all(%s, ", names[i]);
    }
    (void)snprintf(text + len, 2048 - (size_t)len, "a+b+c >= 0))) && %d >= 0 && %s", salt, answer);
    return text;
}

static void given_costly_class(struct scenario *s, const char *name, const char *answer, int salt)
{
    char text[2048];
    given_class(s, name, costly(text, answer, salt));
    given_template(s, name, name, 1);
}

/* A claim of all such devices of the node. */
static void given_template_of_all(struct scenario *s, const char *name, const char *class_name)
{
    char json[512];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":["
                   "{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"%s\","
                   "\"allocationMode\":\"All\"}}]}}}}",
                   name, class_name);
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE, json);
}

static void given_devices_of(struct scenario *s, const char *node, int count)
{
    char words[512] = ""; /* of 100 devices */
    for (int i = 0, len = 0; i < count; i++) {
        len += snprintf(words + len, sizeof(words) - (size_t)len, "g%d ", i);
    }
    given_devices(s, node, words);
}

static void given_cluster(struct scenario *s)
{
    given_node(s, "n1", "cpu=64");
    given_devices_of(s, "n1", DEVICES);
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "plain", CLASS, 1);
    given_costly_class(s, "costly.x", "true", 0);
    given_queue(s, "q", "cpu=100 costly.x=100 gpu.example.com=100 never.x=100");
    given_queue(s, "strict", "cpu=100 costly.x=100 gpu.example.com=100 strategy=StrictFIFO");
    scenario_start(s);
    (void)wakes_at_once(s, TICKS);
    (void)counts_take(s);
}

static void expect_bounded(struct scenario *s)
{
    struct scenario_counts counts = counts_take(s);
    assert_true(counts.most_selector_cost <= BUDGET + TRIAL);
}

static void others_start_while_selectors_are_tried(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_job(s, "first", "q", "pods=1 cpu=1 template=costly.x created=1000");
    given_job(s, "second", "q", "pods=1 cpu=1 template=plain created=2000");
    given_job(s, "third", "q", "pods=1 cpu=1 created=3000");
    expect_state(s, "third", "Admitted");
    (void)wakes_at_once(s, 2);
    expect_state(s, "second", "Admitted");
    expect_state(s, "first", "Pending");
    assert_true(wakes_at_once(s, TICKS) >= DEVICES - 3);
    expect_state(s, "first", "Admitted");
    expect_bounded(s);
}

/* The devices that it is still to be tried on may be the only ones that match, or the last. */
static void nothing_is_said_before_all_is_known(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_costly_class(s, "never.x", "false", 0);
    given_job(s, "never", "q", "pods=1 cpu=1 template=never.x");
    given_job(s, "many", "q", "pods=21 cpu=1 template=costly.x");
    for (int i = 0; i < 15; i++) {
        expect_state(s, "never", "Pending");
        expect_state(s, "many", "Pending");
        assert_int_equal(wakes_at_once(s, 1), 1);
    }
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "never", "Pending NeverFits");
    expect_state(s, "many", "Pending NeverFits");
    expect_bounded(s);
}

static void nobody_is_stopped_before_all_is_known(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_costly_class(s, "never.x", "false", 0);
    given_priority_class(s, "high", 10);
    quota_becomes(s, "q",
                  "cpu=100 gpu.example.com=100 costly.x=100 never.x=100 within=LowerPriority");
    given_job(s, "low", "q", "pods=20 cpu=1 template=plain");
    (void)wakes_at_once(s, TICKS);
    gang_starts(s, "low", "n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1");
    for (int i = 0; i < DEVICES; i++) {
        char pod[32];
        char device[32];
        (void)snprintf(pod, sizeof(pod), "low-%d", i);
        (void)snprintf(device, sizeof(device), "n1/g%d", i);
        pod_claims(s, pod, "plain", device);
    }
    expect_state(s, "low", "Running");
    given_job(s, "never", "q", "pods=1 cpu=1 template=never.x priority=high");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "never", "Pending NeverFits");
    expect_state(s, "low", "Running");
    given_job(s, "high", "q", "pods=1 cpu=1 template=costly.x priority=high");
    (void)wakes_at_once(s, 3);
    expect_state(s, "low", "Running");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "low", "Suspending WaitingForTermination");
    gang_stops(s, "low");
    (void)wakes_at_once(s, TICKS);
    for (int i = 0; i < DEVICES; i++) {
        char claim[32];
        (void)snprintf(claim, sizeof(claim), "low-%d-plain", i);
        claim_freed(s, claim);
    }
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "high", "Admitted");
    expect_bounded(s);
}

/* Devices that come while victims stop: the room stays the gang's until it is known what they are,
 * and no step tries more for that than others do. */
static void room_is_kept_until_new_devices_are_known(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_priority_class(s, "high", 10);
    quota_becomes(s, "q", "cpu=20 costly.x=100 within=LowerPriority");
    given_job(s, "low", "q", "pods=20 cpu=1");
    (void)wakes_at_once(s, TICKS);
    gang_starts(s, "low", "n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1 n1");
    given_job(s, "high", "q", "pods=1 cpu=1 template=costly.x priority=high");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "low", "Suspending WaitingForTermination");
    expect_state(s, "high", "Reserved WaitingForVictims");
    (void)counts_take(s);
    given_node(s, "n2", "cpu=1");
    given_devices_of(s, "n2", DEVICES);
    gang_stops(s, "low");
    expect_state(s, "high", "Reserved WaitingForVictims");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "high", "Admitted");
    expect_bounded(s);
}

static void nobody_overtakes_in_a_strict_queue(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_job(s, "head", "strict", "pods=1 cpu=1 template=costly.x created=1000");
    given_job(s, "next", "strict", "pods=1 cpu=1 created=2000");
    given_job(s, "last", "strict", "pods=1 cpu=1 template=plain created=3000");
    (void)wakes_at_once(s, 5);
    expect_state(s, "head", "Pending");
    expect_state(s, "next", "Pending BehindInQueue");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "head", "Admitted");
    expect_state(s, "next", "Admitted");
    expect_state(s, "last", "Admitted");
    expect_bounded(s);
}

/* Nor behind one that comes in front of all, can never start, and is passed over. */
static void nobody_overtakes_whoever_is_still_tried(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_priority_class(s, "high", 10);
    given_job(s, "head", "strict", "pods=1 cpu=1 template=costly.x created=1000");
    given_job(s, "next", "strict", "pods=1 cpu=1 created=2000");
    given_job(s, "never", "strict", "pods=1 cpu=1 gone.example.com=1 priority=high");
    (void)wakes_at_once(s, 5);
    expect_state(s, "never", "Pending NoMatchingFlavor");
    expect_state(s, "head", "Pending");
    expect_state(s, "next", "Pending BehindInQueue");
    job_annotated(s, "next", "example.com/told", "again");
    expect_state(s, "next", "Pending BehindInQueue");
    given_job(s, "last", "strict", "pods=1 cpu=2 created=3000");
    expect_state(s, "last", "Pending BehindInQueue");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "head", "Admitted");
    expect_state(s, "next", "Admitted");
    expect_bounded(s);
}

/* An autoscaler has made the room, and which devices a gang on its way may take is still tried: who
 * waited for the room starts when that is known. */
static void room_that_is_made_waits_for_what_is_tried(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_queue(s, "auto", "cpu=100 check=best.example.com");
    given_job(s, "on-its-way", "q", "pods=1 cpu=1 template=costly.x");
    (void)wakes_at_once(s, TICKS);
    given_job(s, "j", "auto", "pods=1 cpu=1");
    expect_state(s, "j", "Reserved WaitingForCheck");
    events_gather(s);
    given_devices_of(s, "n1", DEVICES + 5);
    request_says_that(s, request_of(s, "j"), "Provisioned", "done");
    events_arrive(s, 0);
    expect_state(s, "j", "Reserved WaitingForCheck");
    expect_message(s, "j", "is provisioned");
    assert_true(wakes_at_once(s, TICKS) > 1);
    expect_state(s, "j", "Admitted");
    expect_bounded(s);
}

/* When the head of a queue that keeps room starts isn't worked out before all is known. */
static void kept_room_waits_for_what_is_tried(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_queue(s, "fill", "cpu=100 costly.x=100 strategy=Backfill default-runtime=1h");
    given_job(s, "holds", "fill", "pods=15 cpu=1 template=costly.x");
    (void)wakes_at_once(s, TICKS);
    given_job(s, "short", "q", "pods=1 cpu=1");
    given_job(s, "head", "fill", "pods=18 cpu=1 template=costly.x");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "head", "Pending DevicesExhausted");
    at(s, 60000); /* so that it is worked out again after a change */
    expect_bounded(s);
    events_gather(s);
    job_finishes(s, "short");
    given_devices_of(s, "n1", DEVICES + 5);
    events_arrive(s, 0);
    expect_bounded(s);
    (void)wakes_at_once(s, 1);
    expect_state(s, "head", "Pending DevicesExhausted");
    expect_bounded(s);
    (void)wakes_at_once(s, TICKS);
    given_devices_of(s, "n1", DEVICES + 20);
    expect_bounded(s);
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "head", "Admitted");
    expect_bounded(s);
}

/* Job cN waits in queue cN for devices of class cN.x: those of which `selected` holds, too. */
static void given_costly_one(struct scenario *s, int number, const char *selected, int pods)
{
    char name[16];
    char class_name[16];
    char options[64];
    char quota[64];
    (void)snprintf(name, sizeof(name), "c%d", number);
    (void)snprintf(class_name, sizeof(class_name), "c%d.x", number);
    (void)snprintf(options, sizeof(options), "pods=%d cpu=1 template=%s", pods, class_name);
    (void)snprintf(quota, sizeof(quota), "cpu=100 %s=100", class_name);
    given_costly_class(s, class_name, selected, number);
    given_queue(s, name, quota);
    given_job(s, name, name, options);
}

/* Ten wait, each with a selector of its own: a device that comes may be for any of them. */
static void a_device_that_comes_costs_a_step_no_more(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    for (int i = 0; i < 10; i++) {
        given_costly_one(s, i, i == 9 ? "true" : "device.driver == 'other'", 21);
    }
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "c9", "Pending NeverFits");
    expect_bounded(s);
    given_devices_of(s, "n1", DEVICES + 1);
    expect_state(s, "c9", "Pending NeverFits");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "c9", "Admitted");
    expect_state(s, "c8", "Pending NeverFits");
    expect_bounded(s);
}

/* Fifteen costly ones came first. */
static void an_ordinary_selector_is_soon_done(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    for (int i = 0; i < 15; i++) {
        given_costly_one(s, i, "true", 1);
    }
    (void)wakes_at_once(s, 40); /* each has had a turn */
    given_job(s, "late", "q", "pods=1 cpu=1 template=plain");
    (void)wakes_at_once(s, 3);
    expect_state(s, "late", "Admitted");
    expect_state(s, "c1", "Pending");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "c0", "Admitted");
    expect_state(s, "c14", "Admitted");
    expect_bounded(s);
}

/* Devices come and go while a selector is tried: what is known of the others is kept. */
static void devices_change_meanwhile(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_job(s, "j", "q", "pods=1 cpu=1 template=costly.x");
    (void)wakes_at_once(s, 10);
    given_node(s, "n2", "cpu=64");
    given_devices_of(s, "n2", 5);
    (void)wakes_at_once(s, 10);
    object_gone(s, KIND_RESOURCE_SLICE, "n2-slice");
    assert_true(wakes_at_once(s, TICKS) < DEVICES);
    expect_state(s, "j", "Admitted");
    job_finishes(s, "j");
    (void)wakes_at_once(s, TICKS);
    expect_bounded(s);
}

/* Behind a head that waits it is held back and let go again while what it asks for is still tried:
 * it waits on, and is told once it is known that it could never start. */
static void who_is_held_meanwhile_waits_on(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_costly_class(s, "never.x", "false", 0);
    given_queue(s, "strict", "cpu=4 never.x=100 strategy=StrictFIFO");
    given_job(s, "runs", "strict", "pods=1 cpu=3 created=1000");
    given_job(s, "head", "strict", "pods=2 cpu=1 created=2000");
    expect_state(s, "head", "Pending QuotaExhausted");
    given_job(s, "behind", "strict", "pods=1 cpu=1 template=never.x created=3000");
    (void)wakes_at_once(s, 3);
    job_annotated(s, "behind", "tallyman.dev/hold", "true");
    expect_state(s, "behind", "Held Held");
    job_annotated(s, "behind", "tallyman.dev/hold", "false");
    expect_state(s, "behind", "Pending BehindInQueue");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "behind", "Pending NeverFits");
    expect_bounded(s);
}

/* One of the classes that a gang asks for breaks while the other is tried on new devices: it is
 * told when that is done, and devices that come in between change nothing. */
static void class_that_breaks_meanwhile_is_told_in_the_end(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_claim(s, "used", CLASS, 1);
    claim_allocated(s, "used", "n1/g0");
    given_job_spec(s, "waits", "q", "pods=10",
                   "{\"resourceClaims\":[{\"name\":\"a\",\"resourceClaimTemplateName\":\"plain\"},"
                   "{\"name\":\"b\",\"resourceClaimTemplateName\":\"costly.x\"}],"
                   "\"containers\":[{\"name\":\"main\"}]}");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "waits", "Pending NodeShape");
    given_node(s, "n2", "cpu=4");
    given_devices_of(s, "n2", 5);
    given_class(s, CLASS, "device.driver ==");
    assert_int_equal(wakes_at_once(s, 1), 1);
    given_node(s, "n3", "cpu=4");
    given_devices_of(s, "n3", 5);
    expect_state(s, "waits", "Pending NodeShape");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "waits", "Pending NeverFits");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "waits", "Admitted");
    expect_bounded(s);
}

/* Whoever asks how a gang stands is told at once, also of pods on their way whose selectors haven't
 * been tried on new devices yet; nothing of that is kept, nor charged to a step. */
static void who_only_looks_is_told_at_once(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_costly_class(s, "own.x", "device.driver == 'gpu.example.com'", 0);
    given_queue(s, "q", "cpu=6 gpu.example.com=100 own.x=100");
    given_job(s, "on-its-way", "q", "pods=2 cpu=1 template=own.x");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "on-its-way", "Admitted");
    given_job(s, "waits", "q", "pods=5 cpu=1 min=5");
    expect_state(s, "waits", "Pending QuotaExhausted");
    (void)counts_take(s);
    given_node(s, "n2", "cpu=4");
    given_devices_of(s, "n2", 2);
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"other\"},\"spec\":{\"driver\":\"other.example.com\","
               "\"nodeName\":\"n2\",\"pool\":{\"name\":\"n2\",\"generation\":1,"
               "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"o0\"}]}}");
    struct admission admission;
    assert_true(core_admission_now(scenario_core(s), scenario_job(s, "waits")->meta.uid, &s->arena,
                                   &admission));
    assert_non_null(admission.status.explanation);
    assert_true(admission.status.explanation->actions.count > 0);
    given_job(s, "next", "q", "pods=1 cpu=1");
    expect_state(s, "next", "Pending");
    assert_true(wakes_at_once(s, TICKS) >= 3); /* each new device is still to be tried */
    expect_state(s, "next", "Admitted");
    expect_bounded(s);
}

/* The Job goes before its selectors have been tried. */
static void who_leaves_is_forgotten(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_job(s, "j", "q", "pods=1 cpu=1 template=costly.x");
    (void)wakes_at_once(s, 3);
    object_gone(s, KIND_JOB, "j");
    assert_true(wakes_at_once(s, TICKS) < 3);
    expect_bounded(s);
}

/* How many devices `All` are is charged: it is counted when it is known. */
static void all_devices_are_counted_in_steps(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_template_of_all(s, "all", "costly.x");
    given_job(s, "j", "q", "pods=1 cpu=1 template=all");
    (void)wakes_at_once(s, 5);
    expect_state(s, "j", "Pending");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "j", "Admitted");
    expect_used(s, "q", "costly.x=20");
    expect_bounded(s);
}

/* After a restart nothing is known of those that are there: a gang beside pods that are on their
 * way waits until it is. */
static void a_restart_tries_in_steps(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    given_job(s, "on-its-way", "q", "pods=18 cpu=1 template=costly.x");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "on-its-way", "Admitted");
    given_job(s, "many", "q", "pods=3 cpu=1 template=plain");
    expect_state(s, "many", "Pending DevicesExhausted");
    restart(s, WITH_ADMISSIONS);
    given_job(s, "few", "q", "pods=2 cpu=1 template=plain");
    (void)wakes_at_once(s, 5);
    expect_state(s, "few", "Pending");
    (void)wakes_at_once(s, TICKS);
    expect_state(s, "few", "Admitted");
    expect_state(s, "many", "Pending DevicesExhausted");
    expect_bounded(s);
}

static int try_in_steps(void **state)
{
    scenarios_try_selectors(BUDGET);
    return scenario_setup(state);
}

#define stepwise_test(fn) cmocka_unit_test_setup_teardown(fn, try_in_steps, scenario_teardown)

/* Every other turn is of whoever has waited longest: those that come later don't put it off. */
static void who_came_first_is_done_first(void **state)
{
    struct scenario *s = *state;
    given_cluster(s);
    for (int i = 0; i < 10; i++) {
        given_costly_one(s, i, "true", 1);
    }
    (void)wakes_at_once(s, 3 * DEVICES);
    expect_state(s, "c0", "Admitted");
    expect_state(s, "c9", "Pending");
    expect_bounded(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        stepwise_test(others_start_while_selectors_are_tried),
        stepwise_test(nothing_is_said_before_all_is_known),
        stepwise_test(nobody_is_stopped_before_all_is_known),
        stepwise_test(room_is_kept_until_new_devices_are_known),
        stepwise_test(nobody_overtakes_in_a_strict_queue),
        stepwise_test(nobody_overtakes_whoever_is_still_tried),
        stepwise_test(room_that_is_made_waits_for_what_is_tried),
        stepwise_test(kept_room_waits_for_what_is_tried),
        stepwise_test(a_device_that_comes_costs_a_step_no_more),
        stepwise_test(an_ordinary_selector_is_soon_done),
        stepwise_test(devices_change_meanwhile),
        stepwise_test(who_is_held_meanwhile_waits_on),
        stepwise_test(class_that_breaks_meanwhile_is_told_in_the_end),
        stepwise_test(who_only_looks_is_told_at_once),
        stepwise_test(who_leaves_is_forgotten),
        stepwise_test(all_devices_are_counted_in_steps),
        stepwise_test(a_restart_tries_in_steps),
        stepwise_test(who_came_first_is_done_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
