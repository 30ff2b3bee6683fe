/* Device selectors that are costly to try: no step tries for more than its budget and one trial,
 * everybody else is judged meanwhile, and nothing is decided before all is known. */
#include "selector_cost.h"

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
