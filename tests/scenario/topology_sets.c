/* One domain together with what else a gang can be: several pod sets, named claims, one that stops
 * others for its room, and one that room is kept for. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#define CLASS "gpu.example.com"

static void given_host(struct scenario *s, const char *name, const char *rack, int cpu)
{
    char options[200];
    snprintf(options, sizeof(options), "cpu=%d label=rack:%s", cpu, rack);
    given_node(s, name, options);
}

static void given_racks(struct scenario *s, const char *queue)
{
    given_flavor(s, "default", "level=rack");
    given_queue(s, "q", queue);
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
}

/* -- several pod sets ---------------------------------------------------------------------------
 */

/* r1 holds either set alone, r2 both together. */
static void all_sets_share_one_domain(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    given_host(s, "n1", "r1", 3);
    given_host(s, "n2", "r2", 5);
    given_pod_set(s, "both", "workers", "pods=3 cpu=1");
    given_job(s, "both", "q", "pods=2 cpu=1 required=rack");
    expect_state(s, "both", "Admitted");
    expect_selector(s, "both", "rack", "r2");
    const struct job *workers = scenario_pod_set(s, "both", "workers");
    check_str(string_map_get(&workers->spec.pod_template.spec.node_selector, "rack"), "r2");
}

static void sets_that_no_domain_holds_together_wait(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    given_host(s, "n1", "r1", 3);
    given_host(s, "n2", "r2", 4);
    given_pod_set(s, "both", "workers", "pods=3 cpu=1");
    given_job(s, "both", "q", "pods=2 cpu=1 required=rack");
    expect_state(s, "both", "Pending TopologyUnsatisfied");
    given_host(s, "n3", "r1", 2);
    expect_state(s, "both", "Admitted");
    expect_selector(s, "both", "rack", "r1");
}

/* Two of r2's four places are promised: the next two leave none over there. */
static void promises_count_as_taken_when_domains_are_compared(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    given_host(s, "n1", "r1", 4);
    given_host(s, "n2", "r2", 4);
    given_pod(s, "foreign", "n1", "cpu=4");
    given_job(s, "first", "q", "pods=2 cpu=1 required=rack");
    expect_selector(s, "first", "rack", "r2");
    pod_gone(s, "foreign");
    given_job(s, "second", "q", "pods=2 cpu=1 required=rack");
    expect_selector(s, "second", "rack", "r2");
    given_job(s, "third", "q", "pods=1 cpu=1 required=rack");
    expect_selector(s, "third", "rack", "r1");
}

/* The set that no flavor takes is named. */
static void set_without_a_flavor_is_named(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "default", "label=kind:a");
    given_queue(s, "q", "cpu=64");
    given_node(s, "n1", "cpu=8 label=kind:a");
    given_pod_set(s, "gang", "launcher", "pods=1 cpu=1 selector=kind:b");
    given_job(s, "gang", "q", "pods=2 cpu=1");
    expect_state(s, "gang", "Pending NoMatchingFlavor");
    expect_message(s, "gang", "pod set launcher: ");
}

/* -- claims -------------------------------------------------------------------------------------
 */

/* All pods that share a new claim go to one node, and that has to be in the domain. */
static void named_claim_stays_in_the_domain(void **state)
{
    struct scenario *s = *state;
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_racks(s, "cpu=64 gpu.example.com=8");
    given_host(s, "n1", "r1", 2);
    given_host(s, "n2", "r2", 4);
    given_devices(s, "n1", "a");
    given_devices(s, "n2", "a");
    given_claim(s, "shared", CLASS, 1);
    given_job(s, "three", "q", "pods=3 cpu=1 claim=shared required=rack");
    expect_state(s, "three", "Admitted");
    expect_selector(s, "three", "rack", "r2");
    expect_selector(s, "three", "kubernetes.io/hostname", "n2");
}

/* What a class selects is counted by rack: an edit of the class has it counted anew. */
static void racks_are_counted_anew_when_a_class_is_edited(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64 " CLASS "=8");
    given_host(s, "n1", "r1", 8);
    given_host(s, "n2", "r2", 8);
    given_devices(s, "n1", "a b");
    given_devices(s, "n2", "c d");
    given_class(s, CLASS, "device.driver == 'other.example.com'");
    given_template(s, "one", CLASS, 1);
    given_job(s, "two", "q", "pods=2 cpu=1 template=one required=rack");
    expect_state(s, "two", "Pending NeverFits");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    expect_state(s, "two", "Admitted");
    given_class(s, CLASS, "device.driver == 'other.example.com'");
    given_job(s, "more", "q", "pods=2 cpu=1 template=one required=rack");
    expect_state(s, "more", "Pending NeverFits");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    expect_state(s, "more", "Admitted");
}

/* -- stopping others ----------------------------------------------------------------------------
 */

/* One low gang in each rack; r2 is free but for its own. */
static void given_low_ones(struct scenario *s)
{
    given_racks(s, "cpu=64 within=LowerPriority");
    given_host(s, "n1", "r1", 4);
    given_host(s, "n2", "r2", 4);
    given_pod(s, "foreign", "n1", "cpu=1");
    given_job(s, "a", "q", "pods=2 cpu=1 priority=low selector=rack:r1 created=0");
    given_job(s, "b", "q", "pods=2 cpu=1 priority=low selector=rack:r2 created=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1");
    gang_starts(s, "b", "n2 n2");
    at(s, 1000);
}

static void only_those_in_one_domain_are_stopped(void **state)
{
    struct scenario *s = *state;
    given_low_ones(s);
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high required=rack created=1000");
    expect_state(s, "a", "Running");
    expect_state(s, "b", "Suspending WaitingForTermination");
    expect_state(s, "high", "Reserved WaitingForVictims");
    gang_stops(s, "b");
    expect_state(s, "high", "Admitted");
    expect_selector(s, "high", "rack", "r2");
}

/* What its victims leave is in r2, and nobody else gets it; what is free elsewhere is free. */
static void room_of_victims_is_kept_in_the_domain(void **state)
{
    struct scenario *s = *state;
    given_low_ones(s);
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high required=rack created=1000");
    given_job(s, "thief", "q", "pods=2 cpu=1 priority=high selector=rack:r2 created=1000");
    expect_state(s, "thief", "Pending NodesFull");
    given_job(s, "other", "q", "pods=1 cpu=1 selector=rack:r1 created=1000");
    expect_state(s, "other", "Admitted");
    gang_starts(s, "other", "n1");
    gang_stops(s, "b");
    expect_state(s, "high", "Admitted");
    expect_selector(s, "high", "rack", "r2");
}

/* The same after a restart while its victims stop. */
static void room_of_victims_is_kept_over_a_restart(void **state)
{
    struct scenario *s = *state;
    given_low_ones(s);
    given_job(s, "high", "q", "pods=4 cpu=1 priority=high required=rack created=1000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    restart(s, WITHOUT_ADMISSIONS);
    given_job(s, "other", "q", "pods=1 cpu=1 selector=rack:r1 created=1000");
    expect_state(s, "other", "Admitted");
    gang_stops(s, "b");
    expect_state(s, "high", "Admitted");
    expect_selector(s, "high", "rack", "r2");
    expect_state(s, "a", "Running");
}

/* -- room that is kept ---------------------------------------------------------------------------
 */

/* The head needs all of a rack. r1 is free in an hour; a gang that goes to r2 is in nobody's way,
 * one that could keep r1 from it is. */
static void room_for_the_head_is_kept_in_its_domain(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64 strategy=Backfill");
    given_host(s, "n1", "r1", 4);
    given_host(s, "n2", "r2", 3);
    given_job(s, "long", "q", "pods=2 cpu=1 max-runtime=60m selector=rack:r1 created=0");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1");
    at(s, 60000);
    given_job(s, "head", "q", "pods=4 cpu=1 required=rack created=60000");
    expect_state(s, "head", "Pending TopologyUnsatisfied");
    given_job(s, "aside", "q", "pods=2 cpu=1 required=rack created=60001");
    expect_state(s, "aside", "Admitted");
    expect_selector(s, "aside", "rack", "r2");
    given_job(s, "in-the-way", "q", "pods=2 cpu=1 selector=rack:r1 created=60002");
    expect_state(s, "in-the-way", "Pending ReservedForOther");
    given_job(s, "short", "q", "pods=2 cpu=1 selector=rack:r1 max-runtime=30m created=60003");
    expect_state(s, "short", "Admitted");
}

/* Two sets on flavors of their own: where these agree on the levels down to the one that is asked
 * for, one domain holds both, whatever is below it; a rack of a room is no rack of a zone. */
static void sets_of_flavors_with_other_levels_share_no_domain(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "fast", "label=kind:fast level=zone level=rack");
    given_flavor(s, "slow", "label=kind:slow level=zone level=shelf level=rack");
    given_queue(s, "q", "flavor=fast cpu=64 group=new flavor=slow memory=64");
    given_node(s, "n1", "cpu=8 label=kind:fast label=zone:z1 label=rack:r1");
    given_node(s, "n2", "memory=8 label=kind:slow label=zone:z1 label=shelf:s1 label=rack:r1");
    given_pod_set(s, "zoned", "workers", "pods=1 memory=1");
    given_job(s, "zoned", "q", "pods=1 cpu=1 required=zone");
    expect_state(s, "zoned", "Admitted");
    expect_selector(s, "zoned", "zone", "z1");
    given_pod_set(s, "racked", "workers", "pods=1 memory=1");
    given_job(s, "racked", "q", "pods=1 cpu=1 required=rack");
    expect_state(s, "racked", "Pending NoMatchingFlavor");
    expect_message(s, "racked",
                   "its pod sets' flavors have different topology levels above rack, "
                   "so no domain can hold all pods");
    given_flavor(s, "slow", "label=kind:slow level=zone level=rack");
    expect_state(s, "racked", "Admitted");
    expect_selector(s, "racked", "rack", "r1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(all_sets_share_one_domain),
        scenario_test(sets_that_no_domain_holds_together_wait),
        scenario_test(promises_count_as_taken_when_domains_are_compared),
        scenario_test(named_claim_stays_in_the_domain),
        scenario_test(racks_are_counted_anew_when_a_class_is_edited),
        scenario_test(set_without_a_flavor_is_named),
        scenario_test(only_those_in_one_domain_are_stopped),
        scenario_test(room_of_victims_is_kept_in_the_domain),
        scenario_test(room_of_victims_is_kept_over_a_restart),
        scenario_test(room_for_the_head_is_kept_in_its_domain),
        scenario_test(sets_of_flavors_with_other_levels_share_no_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
