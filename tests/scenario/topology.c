/* One domain for all pods of a gang: which is chosen, how kube-scheduler is told, what is promised
 * there, and what is said where there is none. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#define CLASS "gpu.example.com"

static const struct explanation *explanation_of(struct scenario *s, const char *job)
{
    const struct admission *admission = scenario_object(s, KIND_ADMISSION, job);
    assert_non_null(admission->status.explanation);
    return admission->status.explanation;
}

static void given_racks(struct scenario *s, const char *queue)
{
    given_flavor(s, "default", "level=zone level=rack level=kubernetes.io/hostname");
    given_queue(s, "q", queue);
}

/* Racks r1 (8 cpu), r2 (4) and r3 (6) of zone a, in nodes of two. */
static void given_three_racks(struct scenario *s, const char *queue)
{
    given_racks(s, queue);
    given_node_in(s, "n1", "a", "r1", 4);
    given_node_in(s, "n2", "a", "r1", 4);
    given_node_in(s, "n3", "a", "r2", 2);
    given_node_in(s, "n4", "a", "r2", 2);
    given_node_in(s, "n5", "a", "r3", 3);
    given_node_in(s, "n6", "a", "r3", 3);
}

/* -- which domain ------------------------------------------------------------------------------
 */

static void smallest_domain_that_fits(void **state)
{
    struct scenario *s = *state;
    given_three_racks(s, "cpu=64");
    given_job(s, "four", "q", "pods=4 cpu=1 required=rack");
    expect_state(s, "four", "Admitted");
    expect_selector(s, "four", "rack", "r2");
    expect_selector(s, "four", "zone", "a"); /* a rack is known by its whole path */
    given_job(s, "five", "q", "pods=5 cpu=1 required=rack");
    expect_selector(s, "five", "rack", "r3");
    given_job(s, "eight", "q", "pods=8 cpu=1 required=rack");
    expect_selector(s, "eight", "rack", "r1");
}

/* r1 and r2 are equally large; r1 would be left with two places, r2 with none. */
static void of_equally_large_ones_the_least_waste(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    given_node_in(s, "n1", "a", "r1", 4);
    given_node_in(s, "n2", "a", "r2", 4);
    given_pod(s, "foreign", "n2", "cpu=2");
    given_job(s, "pair", "q", "pods=2 cpu=1 required=rack");
    expect_selector(s, "pair", "rack", "r2");
}

static void of_equals_the_first_by_name(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    given_node_in(s, "n1", "a", "r9", 4);
    given_node_in(s, "n2", "a", "r1", 4);
    given_node_in(s, "n3", "a", "r10", 4);
    given_job(s, "pair", "q", "pods=2 cpu=1 required=rack");
    expect_selector(s, "pair", "rack", "r1");
}

/* Two zones have a rack r1 each: together they would hold four. */
static void same_name_in_two_zones_is_two_domains(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    given_node_in(s, "n1", "a", "r1", 2);
    given_node_in(s, "n2", "b", "r1", 3);
    given_job(s, "four", "q", "pods=4 cpu=1 required=rack");
    expect_state(s, "four", "Pending NeverFits");
    expect_message(s, "four", "the largest, b/r1, has 3 even when it is empty");
    given_job(s, "three", "q", "pods=3 cpu=1 required=rack");
    expect_state(s, "three", "Admitted");
    expect_selector(s, "three", "zone", "b");
    expect_selector(s, "three", "rack", "r1");
}

static void node_without_the_labels_is_in_no_domain(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    given_node(s, "bare", "cpu=16");
    given_node(s, "half", "cpu=16 label=rack:r1"); /* it lacks the zone */
    given_node_in(s, "n1", "a", "r1", 2);
    given_job(s, "three", "q", "pods=3 cpu=1 required=rack");
    expect_state(s, "three", "Pending NeverFits");
    given_job(s, "free", "q", "pods=3 cpu=1");
    expect_state(s, "free", "Admitted");
}

static void one_node_for_all(void **state)
{
    struct scenario *s = *state;
    given_three_racks(s, "cpu=64");
    given_job(s, "three", "q", "pods=3 cpu=1 required=kubernetes.io/hostname");
    expect_state(s, "three", "Admitted");
    expect_selector(s, "three", "kubernetes.io/hostname", "n5");
    expect_selector(s, "three", "rack", "r3");
}

static void preferred_goes_up_level_by_level(void **state)
{
    struct scenario *s = *state;
    given_three_racks(s, "cpu=64");
    given_node_in(s, "n7", "b", "r1", 2);
    given_job(s, "ten", "q", "pods=10 cpu=1 preferred=rack");
    expect_state(s, "ten", "Admitted");
    expect_selector(s, "ten", "zone", "a"); /* no rack has ten */
    expect_selector(s, "ten", "rack", NULL);
    job_deleted_now(s, "ten");
    given_job(s, "all", "q", "pods=20 cpu=1 preferred=rack");
    expect_state(s, "all", "Admitted");
    expect_selector(s, "all", "zone", NULL);
    job_deleted_now(s, "all");
    given_job(s, "two", "q", "pods=2 cpu=1 preferred=rack");
    expect_selector(s, "two", "zone", "b");
    expect_selector(s, "two", "rack", "r1");
}

static void partial_goes_where_most_fit(void **state)
{
    struct scenario *s = *state;
    given_three_racks(s, "cpu=64");
    given_job(s, "part", "q", "pods=12 min=3 partial=true cpu=1 required=rack");
    expect_state(s, "part", "Admitted");
    expect_selector(s, "part", "rack", "r1");
    expect_used(s, "q", "cpu=8");
}

/* All that are asked for before the smallest: nothing is given up for a tight fit. */
static void partial_is_whole_where_it_can_be(void **state)
{
    struct scenario *s = *state;
    given_three_racks(s, "cpu=64");
    given_job(s, "part", "q", "pods=6 min=2 partial=true cpu=1 required=rack");
    expect_selector(s, "part", "rack", "r3");
    expect_used(s, "q", "cpu=6");
}

static void preference_costs_no_pod(void **state)
{
    struct scenario *s = *state;
    given_three_racks(s, "cpu=64");
    given_job(s, "part", "q", "pods=18 min=4 partial=true cpu=1 preferred=rack");
    expect_state(s, "part", "Admitted");
    expect_used(s, "q", "cpu=18");
    expect_selector(s, "part", "rack", NULL);
    expect_selector(s, "part", "zone", "a");
}

/* Each flavor has its own levels: the first has the label, and no room in one of its racks. */
static void next_flavor_may_have_the_domain(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "old", "label=kind:old level=rack");
    given_flavor(s, "new", "label=kind:new level=row level=rack");
    given_queue(s, "q", "flavor=old cpu=64 flavor=new cpu=64");
    given_node(s, "n1", "cpu=2 label=kind:old label=rack:r1");
    given_node(s, "n2", "cpu=2 label=kind:old label=rack:r2");
    given_node(s, "n3", "cpu=4 label=kind:new label=row:w1 label=rack:r1");
    given_job(s, "three", "q", "pods=3 cpu=1 required=rack");
    expect_state(s, "three", "Admitted");
    expect_selector(s, "three", "kind", "new");
    expect_selector(s, "three", "row", "w1");
}

static void key_that_is_no_level(void **state)
{
    struct scenario *s = *state;
    given_three_racks(s, "cpu=64");
    given_job(s, "typo", "q", "pods=3 cpu=1 required=rak");
    expect_state(s, "typo", "Pending NoMatchingFlavor");
    expect_message(s, "typo",
                   "annotation tallyman.dev/required-topology asks for rak, which is no topology "
                   "level of flavor default (its levels are zone, rack, kubernetes.io/hostname)");
    given_flavor(s, "default", "level=zone level=rak");
    expect_state(s, "typo", "Pending NeverFits"); /* there is the level now, and no such label */
    given_node_in(s, "n9", "a", "r1", 4);
    given_node(s, "n10", "cpu=4 label=zone:b label=rak:k");
    expect_state(s, "typo", "Admitted");
}

static void annotations_that_are_wrong(void **state)
{
    struct scenario *s = *state;
    given_three_racks(s, "cpu=64");
    given_job(s, "both", "q", "pods=2 cpu=1 required=rack preferred=zone");
    expect_state(s, "both", "Pending Invalid");
    expect_message(s, "both", "only one of them can be");
    given_job(s, "bad", "q", "pods=2 cpu=1 required=rack/of/it");
    expect_state(s, "bad", "Pending Invalid");
    expect_message(s, "bad", "it has to be the key of a node label");
    job_annotated(s, "bad", "tallyman.dev/required-topology", "rack");
    expect_state(s, "bad", "Admitted");
}

static void quota_alone_promises_no_domain(void **state)
{
    struct scenario *s = *state;
    given_three_racks(s, "cpu=64 fit=Quota");
    given_job(s, "hard", "q", "pods=2 cpu=1 required=rack");
    expect_state(s, "hard", "Pending TopologyUnsatisfied");
    expect_message(s, "hard", "fit: Quota");
    given_job(s, "soft", "q", "pods=2 cpu=1 preferred=rack");
    expect_state(s, "soft", "Admitted");
    expect_selector(s, "soft", "rack", NULL);
}

/* -- what is written, and put back --------------------------------------------------------------
 */

static void record_names_the_domain_and_suspension_takes_it_out(void **state)
{
    struct scenario *s = *state;
    given_three_racks(s, "cpu=64");
    given_job(s, "four", "q", "pods=4 cpu=1 required=rack selector=zone:a");
    expect_state(s, "four", "Admitted");
    struct str record =
        string_map_get(&scenario_job(s, "four")->meta.annotations, "tallyman.dev/admission");
    assert_non_null(
        strstr(arena_copy_str(&s->arena, record).ptr,
               "\"topology\":{\"main\":{\"zone\":[\"a\"],\"rack\":[\"r2\"]}},\"restore\":{"
               "\"nodeSelector\":{\"zone\":\"a\"}"));
    gang_starts(s, "four", "n3 n3 n4 n4");
    expect_state(s, "four", "Running");
    job_suspended_by_user(s, "four", true);
    gang_stops(s, "four");
    expect_state(s, "four", "Held Held");
    expect_selector(s, "four", "rack", NULL);
    expect_selector(s, "four", "zone", "a"); /* the user's own stays */
    assert_false(str_is_set(
        string_map_get(&scenario_job(s, "four")->meta.annotations, "tallyman.dev/admission")));
}

/* Its nodes get other labels while it runs: it goes on. */
static void running_gang_is_left_where_it_is(void **state)
{
    struct scenario *s = *state;
    given_three_racks(s, "cpu=64");
    given_job(s, "four", "q", "pods=4 cpu=1 required=rack");
    gang_starts(s, "four", "n3 n3 n4 n4");
    expect_state(s, "four", "Running");
    given_node_in(s, "n3", "a", "r7", 2);
    given_node_in(s, "n4", "b", "r8", 2);
    expect_state(s, "four", "Running");
    expect_used(s, "q", "cpu=4");
}

static void label_that_makes_a_domain_wakes_who_waits_for_it(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    given_node_in(s, "n1", "a", "r1", 2);
    given_node_in(s, "n2", "a", "r2", 2);
    given_job(s, "four", "q", "pods=4 cpu=1 required=rack");
    expect_state(s, "four", "Pending NeverFits");
    given_node_in(s, "n2", "a", "r1", 2);
    expect_state(s, "four", "Admitted");
    expect_selector(s, "four", "rack", "r1");
}

/* A label that makes no level wakes nobody; one that does wakes whom it concerns alone. */
static void only_labels_of_levels_wake(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    given_node_in(s, "n1", "a", "r1", 2);
    given_node_in(s, "n2", "a", "r2", 2);
    given_pod(s, "foreign", "n1", "cpu=1");
    given_job(s, "four", "q", "pods=4 cpu=1");
    given_job(s, "three", "q", "pods=3 cpu=1 required=rack");
    expect_state(s, "three", "Pending NeverFits");
    expect_state(s, "four", "Pending NodesFull");
    (void)counts_take(s);
    given_node(s, "n2", "cpu=2 label=zone:a label=rack:r2 label=colour:red");
    check_i64(counts_take(s).shapes_woken, 0);
    given_node(s, "n2", "cpu=2 label=zone:a label=rack:r1 label=colour:red");
    check_i64(counts_take(s).shapes_woken, 1);
    expect_state(s, "three", "Admitted");
}

/* -- promises ----------------------------------------------------------------------------------
 */

/* Gangs on their way to another rack don't stand in each other's way. */
static void promises_hold_within_their_domain(void **state)
{
    struct scenario *s = *state;
    given_three_racks(s, "cpu=64");
    given_job(s, "first", "q", "pods=4 cpu=1 required=rack");
    given_job(s, "second", "q", "pods=2 cpu=2 required=rack");
    given_job(s, "third", "q", "pods=8 cpu=1 required=rack");
    expect_selector(s, "first", "rack", "r2");
    expect_selector(s, "second", "rack", "r3"); /* with pods of another size */
    expect_selector(s, "third", "rack", "r1");
    given_job(s, "fourth", "q", "pods=2 cpu=1 required=rack");
    expect_state(s, "fourth", "Pending ReservedForOther"); /* it could cost second a place */
}

/* `anywhere` may take the places that `four` would need in any rack. */
static void pods_that_may_go_anywhere_come_first(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    given_node_in(s, "n1", "a", "r1", 4);
    given_node_in(s, "n2", "a", "r2", 4);
    given_job(s, "anywhere", "q", "pods=3 cpu=1");
    expect_state(s, "anywhere", "Admitted");
    given_job(s, "four", "q", "pods=4 cpu=1 required=rack");
    expect_state(s, "four", "Pending ReservedForOther");
    gang_starts(s, "anywhere", "n1 n1 n1");
    expect_state(s, "four", "Admitted");
    expect_selector(s, "four", "rack", "r2");
}

/* A gang that is confined to r2 needs all of it: pods that may go anywhere wait for them. */
static void confined_pods_keep_their_places(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    given_node_in(s, "n1", "a", "r1", 4);
    given_node_in(s, "n2", "a", "r2", 3);
    given_job(s, "three", "q", "pods=3 cpu=1 required=rack");
    expect_selector(s, "three", "rack", "r2");
    given_job(s, "two", "q", "pods=2 cpu=1");
    expect_state(s, "two", "Pending ReservedForOther");
    gang_starts(s, "three", "n2 n2 n2");
    expect_state(s, "two", "Admitted");
}

static void promises_are_as_confined_after_a_restart(void **state)
{
    struct scenario *s = *state;
    given_three_racks(s, "cpu=64");
    given_job(s, "first", "q", "pods=4 cpu=1 required=rack");
    given_job(s, "second", "q", "pods=5 cpu=1 required=rack");
    expect_selector(s, "first", "rack", "r2");
    restart(s, WITHOUT_ADMISSIONS);
    given_job(s, "third", "q", "pods=8 cpu=1 required=rack");
    expect_state(s, "third", "Admitted");
    expect_selector(s, "third", "rack", "r1");
    given_job(s, "fourth", "q", "pods=1 cpu=1 required=rack");
    expect_state(s, "fourth", "Admitted"); /* r3 has one place left, whoever binds first */
    expect_selector(s, "fourth", "rack", "r3");
}

/* -- what is said ------------------------------------------------------------------------------
 */

static void given_devices_in_racks(struct scenario *s)
{
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_racks(s, "gpu.example.com=64");
    given_node_in(s, "n1", "a", "r1", 16);
    given_node_in(s, "n2", "a", "r7", 16);
    given_devices(s, "n1", "a b c d e f g h");
    given_devices(s, "n2", "a b c d e f g h");
}

static void enough_in_all_and_not_in_one_rack(void **state)
{
    struct scenario *s = *state;
    given_devices_in_racks(s);
    given_job(s, "first", "q", "pods=4 template=one selector=rack:r1");
    gang_starts(s, "first", "n1 n1 n1 n1");
    for (int i = 0; i < 4; i++) {
        char pod[20];
        char device[20];
        snprintf(pod, sizeof(pod), "first-%d", i);
        snprintf(device, sizeof(device), "n1/%c", "abcd"[i]);
        pod_claims(s, pod, "one", device);
    }
    given_job(s, "second", "q", "pods=2 template=one selector=rack:r7");
    gang_starts(s, "second", "n2 n2");
    pod_claims(s, "second-0", "one", "n2/a");
    pod_claims(s, "second-1", "one", "n2/b");
    given_job(s, "eight", "q", "pods=8 template=one required=rack");
    expect_state(s, "eight", "Pending TopologyUnsatisfied");
    expect_message(s, "eight", "needs 8 gpu.example.com in one rack; the emptiest, r7, has 6 free");
    const struct explanation_topology *topology = explanation_of(s, "eight")->topology;
    assert_non_null(topology);
    check_str(topology->level, "rack");
    check_i64(topology->total.value, 2);
    check_i64(topology->excluded.count, 1);
    check_str(topology->excluded.items[0].reason, "Full");
    check_i64(topology->excluded.items[0].count.value, 2);
    given_job(s, "twelve", "q", "pods=12 template=one required=zone");
    expect_state(s, "twelve", "Pending DevicesExhausted"); /* not enough anywhere */
    assert_null(explanation_of(s, "twelve")->topology);
    gang_stops(s, "second");
    job_finishes(s, "second");
    claim_freed(s, "second-0-one");
    claim_freed(s, "second-1-one");
    expect_state(s, "eight", "Admitted");
    expect_selector(s, "eight", "rack", "r7");
}

static void larger_than_any_domain(void **state)
{
    struct scenario *s = *state;
    given_devices_in_racks(s);
    given_job(s, "nine", "q", "pods=9 template=one required=rack");
    expect_state(s, "nine", "Pending NeverFits");
    expect_message(s, "nine",
                   "needs 9 gpu.example.com in one rack; the largest, r1, has 8 even when it is "
                   "empty");
    check_str(explanation_of(s, "nine")->topology->excluded.items[0].reason, "TooSmall");
    given_job(s, "after", "q", "pods=8 template=one required=rack");
    expect_state(s, "after", "Admitted");
    given_devices(s, "n2", "a b c d e f g h i");
    expect_state(s, "nine", "Admitted");
}

/* Enough cpu in the rack, and no two pods' worth of it on its nodes. */
static void enough_in_the_rack_and_not_on_its_nodes(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "m%d", i);
        given_node_in(s, name, "a", "r1", 4);
    }
    given_pod(s, "f0", "m0", "cpu=2");
    given_pod(s, "f1", "m1", "cpu=2");
    given_node_in(s, "m3", "a", "r2", 4);
    given_job(s, "pair", "q", "pods=2 cpu=3 required=rack");
    expect_state(s, "pair", "Pending TopologyUnsatisfied");
    expect_message(s, "pair",
                   "needs places for 2 pods in one rack; the emptiest, r1, has places for 1 free");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(smallest_domain_that_fits),
        scenario_test(of_equally_large_ones_the_least_waste),
        scenario_test(of_equals_the_first_by_name),
        scenario_test(same_name_in_two_zones_is_two_domains),
        scenario_test(node_without_the_labels_is_in_no_domain),
        scenario_test(one_node_for_all),
        scenario_test(preferred_goes_up_level_by_level),
        scenario_test(partial_goes_where_most_fit),
        scenario_test(partial_is_whole_where_it_can_be),
        scenario_test(preference_costs_no_pod),
        scenario_test(next_flavor_may_have_the_domain),
        scenario_test(key_that_is_no_level),
        scenario_test(annotations_that_are_wrong),
        scenario_test(quota_alone_promises_no_domain),
        scenario_test(record_names_the_domain_and_suspension_takes_it_out),
        scenario_test(running_gang_is_left_where_it_is),
        scenario_test(label_that_makes_a_domain_wakes_who_waits_for_it),
        scenario_test(only_labels_of_levels_wake),
        scenario_test(promises_hold_within_their_domain),
        scenario_test(pods_that_may_go_anywhere_come_first),
        scenario_test(confined_pods_keep_their_places),
        scenario_test(promises_are_as_confined_after_a_restart),
        scenario_test(enough_in_all_and_not_in_one_rack),
        scenario_test(larger_than_any_domain),
        scenario_test(enough_in_the_rack_and_not_on_its_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
