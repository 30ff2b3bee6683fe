/* A ResourceFlavor is edited while pods that were let go on it aren't bound yet: they go where the
 * nodeSelector sends them that was written into their Job then, whatever the flavor says now. */
#include "support/check.h"
#include "support/scenario.h"

/* `promised` was let go on the two nodes of pool a, and neither of its pods is bound. */
static void given_promised_in_pool_a(struct scenario *s)
{
    given_node(s, "a1", "cpu=1 label=pool:a");
    given_node(s, "a2", "cpu=1 label=pool:a");
    given_node(s, "b1", "cpu=2 label=pool:b");
    given_flavor(s, "pool", "label=pool:a");
    given_flavor(s, "any", "");
    given_queue(s, "q", "flavor=pool cpu=64");
    given_queue(s, "free", "flavor=any cpu=64");
    scenario_start(s);
    given_job(s, "promised", "q", "pods=2 cpu=1");
    expect_state(s, "promised", "Admitted");
}

/* The places in pool a are taken, those in pool b are not. */
static void expect_pool_a_is_taken(struct scenario *s)
{
    given_job(s, "in-a", "free", "pods=1 cpu=1 selector=pool:a");
    expect_state(s, "in-a", "Pending NodesFull");
    given_job(s, "in-b", "free", "pods=2 cpu=1 selector=pool:b");
    expect_state(s, "in-b", "Admitted");
    job_finishes(s, "promised");
    expect_state(s, "in-a", "Admitted");
}

static void promised_pods_go_where_they_were_sent(void **state)
{
    struct scenario *s = *state;
    given_promised_in_pool_a(s);
    given_flavor(s, "pool", "label=pool:b");
    expect_pool_a_is_taken(s);
}

static void promised_pods_go_where_they_were_sent_after_a_restart(void **state)
{
    struct scenario *s = *state;
    given_promised_in_pool_a(s);
    given_flavor(s, "pool", "label=pool:b");
    restart(s, WITH_ADMISSIONS);
    expect_pool_a_is_taken(s);
}

/* No node has the label yet that is asked for in addition. */
static void a_label_that_is_added_moves_no_promised_pod(void **state)
{
    struct scenario *s = *state;
    given_promised_in_pool_a(s);
    given_flavor(s, "pool", "label=pool:a label=zone:z");
    expect_pool_a_is_taken(s);
}

/* The flavor had no label when they were let go, so they may go to either pool. */
static void a_first_label_confines_no_promised_pod(void **state)
{
    struct scenario *s = *state;
    given_node(s, "a1", "cpu=1 label=pool:a");
    given_node(s, "b1", "cpu=1 label=pool:b");
    given_flavor(s, "pool", "");
    given_flavor(s, "any", "");
    given_queue(s, "q", "flavor=pool cpu=64");
    given_queue(s, "free", "flavor=any cpu=64");
    scenario_start(s);
    given_job(s, "promised", "q", "pods=1 cpu=1");
    given_flavor(s, "pool", "label=pool:b");
    given_job(s, "in-a", "free", "pods=1 cpu=1 selector=pool:a");
    expect_state(s, "in-a", "Pending NodesFull");
    gang_starts(s, "promised", "b1");
    expect_state(s, "in-a", "Admitted");
}

/* What `beside` had remembered of the nodes for `promised` isn't for those whom the label confines.
 */
static void a_first_label_confines_those_let_go_later(void **state)
{
    struct scenario *s = *state;
    given_node(s, "a1", "cpu=8 label=pool:a");
    given_flavor(s, "pool", "");
    given_flavor(s, "any", "");
    given_queue(s, "q", "flavor=pool cpu=64");
    given_queue(s, "free", "flavor=any cpu=64");
    scenario_start(s);
    given_job(s, "promised", "q", "pods=2 cpu=1");
    given_flavor(s, "pool", "label=pool:b");
    given_job(s, "beside", "free", "pods=2 cpu=1 selector=pool:a");
    expect_state(s, "beside", "Admitted");
    given_job(s, "later", "q", "pods=1 cpu=1");
    expect_state(s, "later", "Pending NoMatchingFlavor");
}

/* Whoever is let go afterwards is another crowd, and goes by the new labels. */
static void those_let_go_before_and_after_the_edit_are_two_crowds(void **state)
{
    struct scenario *s = *state;
    given_promised_in_pool_a(s);
    given_flavor(s, "pool", "label=pool:b");
    given_job(s, "later", "q", "pods=2 cpu=1");
    expect_state(s, "later", "Admitted");
    given_job(s, "in-a", "free", "pods=1 cpu=1 selector=pool:a");
    given_job(s, "in-b", "free", "pods=1 cpu=1 selector=pool:b");
    expect_state(s, "in-a", "Pending NodesFull");
    expect_state(s, "in-b", "Pending NodesFull");
    job_finishes(s, "later");
    expect_state(s, "in-a", "Pending NodesFull");
    expect_state(s, "in-b", "Admitted");
}

/* `promised` may still take the only place that the flavor leaves to another of its kind. */
static void alike_gangs_of_before_and_after_the_edit_are_in_each_others_way(void **state)
{
    struct scenario *s = *state;
    given_node(s, "a1", "cpu=1 label=pool:a");
    given_node(s, "z1", "cpu=1 label=pool:a label=zone:z");
    given_flavor(s, "pool", "");
    given_queue(s, "q", "flavor=pool cpu=64");
    scenario_start(s);
    given_job(s, "promised", "q", "pods=1 cpu=1 selector=pool:a");
    expect_state(s, "promised", "Admitted");
    given_flavor(s, "pool", "label=zone:z");
    given_job(s, "alike", "q", "pods=1 cpu=1 selector=pool:a");
    expect_state(s, "alike", "Pending ReservedForOther");
    gang_starts(s, "promised", "a1");
    expect_state(s, "alike", "Admitted");
}

/* Before the watch has shown the Job as it was written, the same. */
static void a_write_that_is_not_shown_yet_says_where_its_pods_go(void **state)
{
    struct scenario *s = *state;
    given_node(s, "a1", "cpu=1 label=pool:a");
    given_flavor(s, "pool", "label=pool:a");
    given_flavor(s, "any", "");
    given_queue(s, "q", "flavor=pool cpu=64");
    given_queue(s, "free", "flavor=any cpu=64");
    scenario_start(s);
    writes_are_manual(s, true);
    given_job(s, "promised", "q", "pods=1 cpu=1");
    given_flavor(s, "pool", "label=pool:b");
    given_job(s, "in-a", "free", "pods=1 cpu=1 selector=pool:a");
    expect_state(s, "in-a", "Pending NodesFull");
    write_ok(s, "promised", false);
    expect_state(s, "in-a", "Pending NodesFull");
}

/* On a1; `high` of the same queue may stop it. */
static void given_low_runs_in_pool_a(struct scenario *s)
{
    given_priority_class(s, "high", 9);
    given_node(s, "b1", "cpu=2 label=pool:b");
    given_flavor(s, "pool", "label=pool:a");
    given_flavor(s, "any", "");
    given_queue(s, "q", "flavor=pool cpu=2 within=LowerPriority");
    given_queue(s, "free", "flavor=any cpu=64");
    given_job(s, "low", "q", "pods=1 cpu=1");
    scenario_start(s);
    gang_starts(s, "low", "a1");
}

/* Its victims still stop, so it will be written with the labels as they are by then. */
static void a_reserved_gang_goes_by_the_labels_of_now(void **state)
{
    struct scenario *s = *state;
    given_node(s, "a1", "cpu=2 label=pool:a");
    given_low_runs_in_pool_a(s);
    given_job(s, "high", "q", "pods=1 cpu=2 priority=high");
    expect_state(s, "high", "Reserved WaitingForVictims");
    given_job(s, "in-a", "free", "pods=1 cpu=1 selector=pool:a");
    expect_state(s, "in-a", "Pending ReservedForOther");
    given_flavor(s, "pool", "label=pool:b");
    expect_state(s, "in-a", "Admitted");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
}

/* The same where its victims keep `in-a` off by what is free there now. */
static void room_that_no_reserved_gang_wants_any_more_wakes_whom_it_was_missing(void **state)
{
    struct scenario *s = *state;
    given_node(s, "a1", "cpu=1 label=pool:a");
    given_node(s, "a2", "cpu=1 label=pool:a");
    given_low_runs_in_pool_a(s);
    given_job(s, "high", "q", "pods=2 cpu=1 priority=high");
    expect_state(s, "high", "Reserved WaitingForVictims");
    given_job(s, "in-a", "free", "pods=1 cpu=1 selector=pool:a");
    expect_state(s, "in-a", "Pending NodesFull");
    given_flavor(s, "pool", "label=pool:b");
    expect_state(s, "in-a", "Admitted");
    gang_stops(s, "low");
    expect_state(s, "high", "Admitted");
}

/* Nor does it matter that the flavor is deleted. */
static void promised_pods_go_where_they_were_sent_without_the_flavor(void **state)
{
    struct scenario *s = *state;
    given_promised_in_pool_a(s);
    object_gone(s, KIND_RESOURCE_FLAVOR, "pool");
    expect_pool_a_is_taken(s);
}

/* The record says in which rack it starts, and its pods' nodeSelector is what holds them there:
 * without that they may go to the other one. */
static void a_domain_holds_as_far_as_the_selector_does(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct scenario *s = scenario_new();
        given_flavor(s, "default", "level=rack");
        given_node(s, "a1", "cpu=2 label=rack:ra");
        given_queue(s, "q", "cpu=64");
        given_job(s, "racked", "q", "pods=2 cpu=1 required=rack");
        expect_selector(s, "racked", "rack", "ra");
        given_node(s, "b1", "cpu=2 label=rack:rb");
        if (i == 1) {
            scenario_job(s, "racked")->spec.pod_template.spec.node_selector.count = 0;
            object_changed(s, KIND_JOB, "racked");
        }
        given_job(s, "other", "q", "pods=2 cpu=1 selector=rack:rb");
        expect_state(s, "other", i == 0 ? "Admitted" : "Pending ReservedForOther");
        gang_starts(s, "racked", "a1 a1");
        expect_state(s, "other", "Admitted");
        scenario_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(promised_pods_go_where_they_were_sent),
        scenario_test(promised_pods_go_where_they_were_sent_after_a_restart),
        scenario_test(a_label_that_is_added_moves_no_promised_pod),
        scenario_test(a_first_label_confines_no_promised_pod),
        scenario_test(a_first_label_confines_those_let_go_later),
        scenario_test(those_let_go_before_and_after_the_edit_are_two_crowds),
        scenario_test(alike_gangs_of_before_and_after_the_edit_are_in_each_others_way),
        scenario_test(a_write_that_is_not_shown_yet_says_where_its_pods_go),
        scenario_test(a_reserved_gang_goes_by_the_labels_of_now),
        scenario_test(room_that_no_reserved_gang_wants_any_more_wakes_whom_it_was_missing),
        scenario_test(promised_pods_go_where_they_were_sent_without_the_flavor),
        cmocka_unit_test(a_domain_holds_as_far_as_the_selector_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
