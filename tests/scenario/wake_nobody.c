/* A change of the very kind that a parked gang waits for, and yet nothing to it: nobody is woken.
 */
#include "support/check.h"
#include "support/parked.h"

#define CLASS "gpu.example.com"
#define NAME  "example.com/gpu"

/* An edit is nothing to those of another tree, nor to those of its own tree who are short of
 * another account, or of more than there is now. */
static void quota_of_another_tree_wakes_nobody(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 memory=64Gi");
    given_bystander(s);
    given_queue(s, "q", "cpu=2 memory=8Gi cohort=lab reclaim=Any");
    given_queue(s, "r", "cpu=2 memory=8Gi cohort=lab");
    given_queue(s, "t", "cpu=2 cohort=plant");
    given_queue(s, "lone", "cpu=2");
    given_job(s, "holder", "r", "pods=2 cpu=1 created=0");
    scenario_start(s);
    gang_starts(s, "holder", "n1 n1");
    given_job(s, "a", "q", "pods=3 cpu=1 created=1000");
    given_job(s, "b", "q", "pods=5 cpu=1 created=1000");
    expect_state(s, "a", "Pending CohortExhausted");
    expect_state(s, "b", "Pending NeverFits");
    parked(s);
    quota_becomes(s, "t", "cpu=9 cohort=plant");
    quota_becomes(s, "lone", "cpu=9");
    given_json(s, KIND_COHORT, cohort_of_one("plant"));
    given_queue(s, "new", "cpu=1 cohort=plant");
    object_gone(s, KIND_QUEUE, "new");
    expect_nobody_woken(s);
    quota_becomes(s, "r", "cpu=2 memory=9Gi cohort=lab"); /* another account of its own tree */
    expect_nobody_woken(s);
    quota_becomes(s, "r", "cpu=3 memory=9Gi cohort=lab");
    expect_state(s, "a", "Admitted");
    expect_state(s, "b", "Pending CohortExhausted");
}

/* A gang that waits for a node of its zone to have room: others' labels, taints, readiness and
 * sizes are nothing to it, nor is what it doesn't ask for on its own. */
static void other_changes_of_nodes_wake_nobody(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4 memory=8Gi label=zone:east");
    given_node(s, "n2", "cpu=4 memory=8Gi label=zone:west");
    given_pod(s, "foreign", "n1", "cpu=2");
    given_bystander(s);
    given_flavor(s, "spot", "label=kind:spot");
    given_queue(s, "q", "cpu=8");
    given_queue(s, "r", "flavor=spot cpu=8");
    given_job(s, "a", "q", "pods=1 cpu=3 selector=zone:east");
    given_job(s, "b", "r", "pods=1 cpu=3");
    expect_state(s, "a", "Pending NodesFull");
    expect_state(s, "b", "Pending NoMatchingFlavor");
    parked(s);
    given_node(s, "n2", "cpu=4 memory=8Gi label=zone:north");
    given_node(s, "n2", "cpu=64 memory=8Gi label=zone:north");
    given_node(s, "n2", "cpu=64 memory=8Gi label=zone:north taint=broken:NoSchedule");
    given_node(s, "n1", "cpu=4 memory=9Gi label=zone:east");
    given_node(s, "n3", "cpu=64 label=zone:west");
    object_gone(s, KIND_NODE, "n3");
    expect_nobody_woken(s);
    given_node(s, "n3", "cpu=64 label=zone:west label=kind:spot");
    expect_state(s, "b", "Admitted");
    expect_woken(s, 1);
    given_node(s, "n1", "cpu=8 memory=9Gi label=zone:east");
    expect_state(s, "a", "Admitted");
    expect_woken(s, 1);
}

/* What fits on no node any more is told so. */
static void a_node_that_goes_wakes_whom_it_could_have_served(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=1");
    given_pod(s, "foreign", "n1", "cpu=3");
    given_bystander(s);
    given_queue(s, "q", "cpu=8");
    given_job(s, "a", "q", "pods=1 cpu=3");
    expect_state(s, "a", "Pending NodesFull");
    parked(s);
    object_gone(s, KIND_NODE, "n1");
    expect_state(s, "a", "Pending NeverFits");
    expect_woken(s, 1);
}

/* A LimitRange that changes no request, a label that no queue selects by. */
static void what_a_namespace_gets_in_vain_wakes_nobody(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_pod(s, "foreign", "n1", "cpu=2");
    given_namespace(s, "ml", "team:a");
    given_bystander(s);
    given_queue(s, "q", "cpu=8 select=team:a");
    given_queue(s, "r", "cpu=8 select=team:b");
    given_job(s, "a", "q", "pods=1 cpu=3");
    given_job(s, "b", "r", "pods=1 cpu=3");
    expect_state(s, "a", "Pending NodesFull");
    expect_state(s, "b", "Pending NamespaceNotAllowed");
    parked(s);
    given_namespace(s, "ml", "team:a stage:late");
    given_json(s, KIND_LIMIT_RANGE,
               "{\"metadata\":{\"name\":\"lr\",\"namespace\":\"ml\"},\"spec\":{\"limits\":[{"
               "\"type\":\"Container\",\"default\":{\"cpu\":\"4\"}}]}}");
    expect_nobody_woken(s);
    given_namespace(s, "ml", "team:b");
    expect_state(s, "a", "Pending NamespaceNotAllowed");
    expect_state(s, "b", "Pending NodesFull");
}

/* Devices come and go: only those hear of it who want some. */
static void devices_wake_nobody_who_wants_none(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_pod(s, "foreign", "n1", "cpu=3");
    given_pod(s, "another", "n2", "cpu=3");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_bystander(s);
    given_queue(s, "q", "cpu=8 gpu.example.com=2");
    given_job(s, "a", "q", "pods=1 cpu=3");
    expect_state(s, "a", "Pending NodesFull");
    parked(s);
    given_devices(s, "n1", "g0 g1");
    given_devices(s, "n2", "g0");
    expect_nobody_woken(s);
    given_job(s, "b", "q", "pods=1 cpu=1 template=one");
    expect_state(s, "b", "Admitted");
}

/* A plugin's devices, asked for by the name that a class serves: more of them is news, more memory
 * beside them isn't. */
static void plugin_offers_what_a_class_serves(void **state)
{
    struct scenario *s = *state;
    given_json(s, KIND_DEVICE_CLASS,
               "{\"metadata\":{\"name\":\"" CLASS "\"},\"spec\":{\"extendedResourceName\":\"" NAME
               "\",\"selectors\":[{\"cel\":{\"expression\":\"device.driver == "
               "'gpu.example.com'\"}}]}}");
    given_node(s, "n1", "cpu=8 memory=8Gi " NAME "=2");
    given_pod(s, "foreign", "n1", NAME "=1");
    given_bystander(s);
    given_queue(s, "q", "cpu=8 " CLASS "=4");
    given_job(s, "a", "q", "pods=1 cpu=1 " NAME "=2");
    expect_state(s, "a", "Pending DevicesExhausted");
    parked(s);
    given_node(s, "n1", "cpu=8 memory=9Gi " NAME "=2");
    expect_nobody_woken(s);
    given_node(s, "n1", "cpu=8 memory=9Gi " NAME "=3");
    expect_state(s, "a", "Admitted");
    expect_woken(s, 1);
}

/* A pool's devices are nothing to who asks for another driver's, nor to who may not use the node
 * that they are on, whether they come, change or go. */
static void devices_of_another_kind_or_node_wake_nobody(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4 label=zone:east");
    given_node(s, "n2", "cpu=4 label=zone:west");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_class(s, "fpga.example.com", "device.driver == 'fpga.example.com'");
    given_template(s, "one", CLASS, 1);
    given_template(s, "other", "fpga.example.com", 1);
    given_bystander(s);
    given_queue(s, "q", "cpu=8 gpu.example.com=2 fpga.example.com=2");
    given_job(s, "a", "q", "pods=1 cpu=1 template=other");
    given_job(s, "b", "q", "pods=1 cpu=1 template=one selector=zone:east");
    parked(s);
    given_devices(s, "n2", "g0");
    given_devices(s, "n2", "g0 g1");
    given_devices(s, "n2", "");
    expect_nobody_woken(s);
    given_devices(s, "n1", "g0");
    expect_woken(s, 1);
    expect_state(s, "b", "Admitted");
    given_job(s, "c", "q", "pods=1 cpu=1 template=one selector=zone:east");
    expect_state(s, "c", "Pending DevicesExhausted");
    (void)counts_take(s);
    given_devices(s, "n2", "g1");
    expect_woken(s, 1); /* the pods of b are on their way: it matters what they may take instead */
    given_devices(s, "n1", "g0 g1");
    expect_state(s, "c", "Admitted");
}

/* Who asks for no devices may still wait for pods that do: when these find none any more, it can
 * take no place of theirs. */
static void devices_that_others_were_to_get_wake_who_waits_for_them(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_devices(s, "n1", "g0");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "cpu=8 gpu.example.com=2");
    scenario_start(s);
    given_job(s, "a", "q", "pods=1 cpu=1 template=one");
    expect_state(s, "a", "Admitted");
    given_job(s, "b", "q", "pods=4 cpu=1");
    expect_state(s, "b", "Pending ReservedForOther");
    given_devices(s, "n1", "");
    expect_state(s, "b", "Admitted");
}

/* Who may not go where somebody stops isn't looked at. */
static void room_that_is_left_elsewhere_wakes_nobody(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "mid", 5);
    given_priority_class(s, "high", 9);
    given_queue(s, "a", "cpu=100 within=LowerPriority");
    given_queue(s, "b", "cpu=100 within=LowerPriority");
    given_node(s, "n1", "cpu=4 label=disk:ssd");
    given_node(s, "n2", "cpu=2 label=disk:hdd");
    given_node(s, "n3", "cpu=2 label=disk:hdd");
    given_job(s, "four", "a", "pods=4 cpu=1 selector=disk:ssd created=0");
    given_job(s, "two", "b", "pods=2 cpu=1 selector=disk:hdd created=0");
    given_job(s, "equal", "b", "pods=2 cpu=1 selector=disk:hdd priority=mid created=0");
    scenario_start(s);
    gang_starts(s, "four", "n1 n1 n1 n1");
    gang_starts(s, "two", "n2 n2");
    gang_starts(s, "equal", "n3 n3");
    at(s, 1000);
    given_job(s, "wide", "b", "pods=3 cpu=1 selector=disk:hdd priority=mid created=1000");
    expect_state(s, "wide", "Pending NodesFull");
    (void)counts_take(s);
    at(s, 2000);
    given_job(s, "high", "a", "pods=2 cpu=1 selector=disk:ssd priority=high created=2000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    check_i64(counts_take(s).gangs_visited, 1);
}

/* Pods that name their node (spec.nodeName) could use no other. */
static void only_the_node_that_it_names_wakes_a_gang(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_node(s, "n2", "cpu=2");
    given_pod(s, "here", "n1", "cpu=3");
    given_pod(s, "there", "n2", "cpu=2");
    given_bystander(s);
    given_queue(s, "q", "cpu=99");
    given_job_spec(s, "a", "q", "pods=2",
                   "{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"main\",\"resources\":{"
                   "\"requests\":{\"cpu\":\"3\"}}}]}");
    expect_state(s, "a", "Pending NodesFull");
    expect_message(s, "a", "needs 6 cpu at once, 5 of 8 are free (node n1 by spec.nodeName)");
    parked(s);
    given_node(s, "n2", "cpu=64");
    given_node(s, "n3", "cpu=64");
    pod_gone(s, "there");
    object_gone(s, KIND_NODE, "n2");
    expect_nobody_woken(s);
    pod_gone(s, "here");
    expect_state(s, "a", "Admitted");
    expect_woken(s, 1);
}

/* Nor does a rule that taints them, or is taken away. */
static void rule_about_devices_wakes_nobody_who_wants_none(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_devices(s, "n1", "g0 g1");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_pod(s, "foreign", "n1", "cpu=2");
    given_bystander(s);
    given_queue(s, "q", "cpu=8 gpu.example.com=2");
    given_job(s, "a", "q", "pods=1 cpu=3");
    expect_state(s, "a", "Pending NodesFull");
    parked(s);
    given_json(s, KIND_DEVICE_TAINT_RULE,
               "{\"metadata\":{\"name\":\"r\"},\"spec\":{\"deviceSelector\":{\"driver\":"
               "\"gpu.example.com\"},\"taint\":{\"key\":\"service\",\"effect\":\"NoSchedule\"}}}");
    object_gone(s, KIND_DEVICE_TAINT_RULE, "r");
    expect_nobody_woken(s);
}

/* It is Reserved in the east: what comes free of another tree, of another account or in the west is
 * nothing to it; something that is, it is tried for once. */
static void who_is_reserved_is_not_tried_for_what_is_nothing_to_it(void **state)
{
    struct scenario *s = *state;
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
    given_node(s, "n1", "cpu=4 label=zone:east");
    given_node(s, "n2", "cpu=8 memory=64Gi label=zone:west");
    given_pod(s, "foreign-east", "n1", "cpu=1");
    given_pod(s, "foreign-west", "n2", "cpu=1");
    given_queue(s, "q", "cpu=9 memory=64Gi within=LowerPriority");
    given_queue(s, "r", "cpu=9");
    given_job(s, "stops", "q", "pods=3 cpu=1 selector=zone:east priority=low created=0");
    given_job(s, "of-another-account", "q", "pods=1 memory=1Gi selector=zone:west created=0");
    given_job(s, "of-another-tree", "r", "pods=1 cpu=1 selector=zone:west created=0");
    scenario_start(s);
    gang_starts(s, "stops", "n1 n1 n1");
    gang_starts(s, "of-another-account", "n2");
    gang_starts(s, "of-another-tree", "n2");
    given_job(s, "boss", "q", "pods=2 cpu=1 selector=zone:east priority=high created=1000");
    expect_state(s, "boss", "Reserved WaitingForVictims");
    (void)counts_take(s);
    pod_gone(s, "foreign-west");
    check_i64(counts_take(s).gangs_visited, 0);
    job_suspended_by_user(s, "of-another-tree", true);
    gang_stops(s, "of-another-tree");
    check_i64(counts_take(s).gangs_visited, 0);
    job_suspended_by_user(s, "of-another-account", true);
    gang_stops(s, "of-another-account");
    check_i64(counts_take(s).gangs_visited, 0);
    pod_gone(s, "foreign-east");
    check_i64(counts_take(s).gangs_visited, 1);
    expect_state(s, "boss", "Reserved WaitingForVictims");
    given_priority_class(s, "another", 5);
    check_i64(counts_take(s).gangs_visited, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(quota_of_another_tree_wakes_nobody),
        scenario_test(other_changes_of_nodes_wake_nobody),
        scenario_test(a_node_that_goes_wakes_whom_it_could_have_served),
        scenario_test(what_a_namespace_gets_in_vain_wakes_nobody),
        scenario_test(devices_wake_nobody_who_wants_none),
        scenario_test(plugin_offers_what_a_class_serves),
        scenario_test(devices_of_another_kind_or_node_wake_nobody),
        scenario_test(devices_that_others_were_to_get_wake_who_waits_for_them),
        scenario_test(room_that_is_left_elsewhere_wakes_nobody),
        scenario_test(only_the_node_that_it_names_wakes_a_gang),
        scenario_test(rule_about_devices_wakes_nobody_who_wants_none),
        scenario_test(who_is_reserved_is_not_tried_for_what_is_nothing_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
