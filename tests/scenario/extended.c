/* Extended resources that DeviceClasses serve: by the node's plugin where it offers some, else by
 * devices, and always from one account. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"
#define NAME  "example.com/gpu"

static void given_class_for(struct scenario *s, const char *name)
{
    char json[400];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"" CLASS "\"},\"spec\":{\"selectors\":[{\"cel\":"
             "{\"expression\":\"device.driver == 'gpu.example.com'\"}}]%s%s%s}}",
             name[0] == '\0' ? "" : ",\"extendedResourceName\":\"", name,
             name[0] == '\0' ? "" : "\"");
    given_json(s, KIND_DEVICE_CLASS, json);
}

/* kube-scheduler's own claim for the pod of a container that asks for devices by that name. */
static void scheduler_claims(struct scenario *s, const char *pod, const char *node,
                             const char *device)
{
    char json[1200];
    const struct pod *object = scenario_object(s, KIND_POD, pod);
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s-extended-resources-x\",\"namespace\":\"ml\","
             "\"annotations\":{\"resource.kubernetes.io/extended-resource-claim\":\"true\"}},"
             "\"spec\":{\"devices\":{\"requests\":[{\"name\":\"container-0-request-0\",\"exactly\":"
             "{\"deviceClassName\":\"" CLASS "\",\"count\":1}}]}},"
             "\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":"
             "\"container-0-request-0\",\"driver\":\"gpu.example.com\",\"pool\":\"%s\","
             "\"device\":\"%s\"}]}},\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"%s\","
             "\"uid\":\"%.*s\"}]}}",
             pod, node, device, pod, (int)object->meta.uid.len, object->meta.uid.ptr);
    given_json(s, KIND_RESOURCE_CLAIM, json);
}

/* The claim that the scheduler makes is the pod's own charge, and the pod is settled only with it.
 */
static void schedulers_claim_is_no_second_charge(void **state)
{
    struct scenario *s = *state;
    given_class_for(s, NAME);
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0 g1 g2");
    given_queue(s, "q", CLASS "=2");
    given_job(s, "a", "q", "pods=1 " NAME "=1");
    expect_state(s, "a", "Admitted");
    expect_used(s, "q", CLASS "=1");
    gang_starts(s, "a", "n1");
    scheduler_claims(s, "a-0", "n1", "g0");
    expect_used(s, "q", CLASS "=1");
    given_job(s, "two", "q", "pods=2 " NAME "=1");
    expect_state(s, "two", "Pending QuotaExhausted");
    given_job(s, "b", "q", "pods=1 " NAME "=1");
    expect_state(s, "b", "Admitted");
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", CLASS "=2");
    job_finishes(s, "a");
    expect_used(s, "q", CLASS "=1");
}

/* A device stays used until the claim is freed, whatever became of the pod. */
static void device_of_an_extended_resource_is_free_with_its_claim(void **state)
{
    struct scenario *s = *state;
    given_class_for(s, NAME);
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0");
    given_queue(s, "q", NAME "=9");
    given_job(s, "a", "q", "pods=1 " NAME "=1");
    gang_starts(s, "a", "n1");
    scheduler_claims(s, "a-0", "n1", "g0");
    given_job(s, "b", "q", "pods=1 " NAME "=1");
    expect_state(s, "b", "Pending DevicesExhausted");
    expect_message(s, "b", "needs 1 " NAME " at once, 0 of 1 are free");
    job_finishes(s, "a");
    expect_state(s, "b", "Pending DevicesExhausted");
    claim_freed(s, "a-0-extended-resources-x");
    expect_state(s, "b", "Admitted");
}

/* What runs by a device plugin is charged to the class's account from the moment that a class
 * takes the name over, and back when the class goes; a restart in between agrees. */
static void account_is_the_classs_as_soon_as_there_is_one(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 " NAME "=4");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "cpu=100 " NAME "=3");
    given_job(s, "a", "q", "pods=2 cpu=1 " NAME "=1");
    expect_used(s, "q", "cpu=2 " NAME "=2");
    gang_starts(s, "a", "n1 n1");
    given_class_for(s, NAME);
    expect_used(s, "q", "cpu=2 " CLASS "=2");
    given_node(s, "n2", "cpu=16");
    given_devices(s, "n2", "g0 g1 g2 g3");
    given_job(s, "b", "q", "pods=2 cpu=1 template=one");
    expect_state(s, "b", "Pending QuotaExhausted");
    given_job(s, "c", "q", "pods=1 cpu=1 template=one");
    expect_state(s, "c", "Admitted");
    expect_used(s, "q", "cpu=3 " CLASS "=3");
    restart(s, WITHOUT_ADMISSIONS);
    expect_used(s, "q", "cpu=3 " CLASS "=3");
    given_class_for(s, "example.com/other");
    expect_used(s, "q", "cpu=3 " NAME "=2 " CLASS "=1");
    expect_state(s, "b", "Pending NoMatchingFlavor");
    given_job(s, "d", "q", "pods=1 cpu=1 " NAME "=1");
    expect_state(s, "d", "Admitted");
    given_class_for(s, NAME);
    expect_used(s, "q", "cpu=4 " CLASS "=4");
    object_gone(s, KIND_DEVICE_CLASS, CLASS);
    expect_used(s, "q", "cpu=4 " NAME "=3 " CLASS "=1");
}

/* A queue that lists two names of one account says so, and admits again once it is mended. */
static void queue_that_lists_both_names_is_not_ready(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 " NAME "=4");
    given_queue(s, "q", CLASS "=2 " NAME "=3");
    given_job(s, "a", "q", "pods=1 " NAME "=1");
    expect_state(s, "a", "Admitted");
    given_class_for(s, NAME);
    given_job(s, "b", "q", "pods=1 " NAME "=1");
    expect_state(s, "a", "Admitted");
    expect_state(s, "b", "Pending Invalid");
    expect_message(s, "b", "lists both " CLASS " and " NAME);
    at(s, 15000);
    const struct queue *queue = scenario_object(s, KIND_QUEUE, "q");
    check_str(queue->status.conditions.items[0].status, "False");
    check_str(queue->status.conditions.items[0].reason, "Invalid");
    quota_becomes(s, "q", NAME "=3");
    expect_state(s, "b", "Admitted");
    at(s, 30000);
    queue = scenario_object(s, KIND_QUEUE, "q");
    check_str(queue->status.conditions.items[0].status, "True");
    check_str(queue->status.flavors.items[0].resources.items[0].name, NAME);
}

/* So does a cohort; what its queues may use is counted by the name that it lists first, until it is
 * mended. */
static void given_sea(struct scenario *s, const char *second)
{
    char json[600];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"sea\"},\"spec\":{\"resourceGroups\":[{\"flavors\":[{"
                   "\"name\":\"default\",\"resources\":[{\"name\":\"" NAME
                   "\",\"nominalQuota\":\"1\"}%s]}]}]}}",
                   second);
    given_json(s, KIND_COHORT, json);
}

static void cohort_that_lists_both_names_is_not_ready(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16 " NAME "=4");
    given_sea(s, ",{\"name\":\"" CLASS "\",\"nominalQuota\":\"2\"}");
    given_queue(s, "q", "cohort=sea " NAME "=0");
    at(s, 15000);
    const struct cohort *sea = scenario_object(s, KIND_COHORT, "sea");
    check_str(sea->status.conditions.items[0].status, "True");
    given_class_for(s, NAME);
    at(s, 30000);
    sea = scenario_object(s, KIND_COHORT, "sea");
    check_str(sea->status.conditions.items[0].status, "False");
    check_str(sea->status.conditions.items[0].reason, "Invalid");
    given_job(s, "a", "q", "pods=1 " NAME "=1");
    expect_state(s, "a", "Admitted");
    given_job(s, "b", "q", "pods=1 " NAME "=1");
    expect_state(s, "b", "Pending CohortExhausted");
    given_sea(s, "");
    at(s, 45000);
    sea = scenario_object(s, KIND_COHORT, "sea");
    check_str(sea->status.conditions.items[0].status, "True");
}

/* Pods on their way keep both what the plugins and what the devices may have to serve them. */
static void promises_hold_whichever_way_a_node_serves(void **state)
{
    struct scenario *s = *state;
    given_class_for(s, NAME);
    given_node(s, "n1", "cpu=16 " NAME "=2");
    given_node(s, "n2", "cpu=16");
    given_devices(s, "n2", "g0 g1");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", CLASS "=99");
    given_job(s, "a", "q", "pods=2 " NAME "=1");
    expect_state(s, "a", "Admitted");
    given_job(s, "b", "q", "pods=1 template=one");
    expect_state(s, "b", "Pending ReservedForOther");
    gang_starts(s, "a", "n1 n1");
    expect_state(s, "b", "Admitted");
}

/* A class that comes later is what its implicit name waited for. */
static void implicit_name_wakes_with_its_class(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0");
    given_queue(s, "q", CLASS "=2");
    given_job(s, "a", "q", "pods=1 deviceclass.resource.kubernetes.io/" CLASS "=1");
    expect_state(s, "a", "Pending MissingReference");
    given_class_for(s, "");
    expect_state(s, "a", "Admitted");
    expect_used(s, "q", CLASS "=1");
}

/* On a node whose plugin serves the resource kube-scheduler can't bind a pod that has a claim
 * besides, and chooses it all the same; so the pods are kept off it. */
static void pods_are_kept_off_a_node_that_misleads(void **state)
{
    struct scenario *s = *state;
    given_class_for(s, NAME);
    given_node(s, "n1", "cpu=16 " NAME "=4");
    given_node(s, "n2", "cpu=16");
    given_devices(s, "n1", "g0 g1");
    given_devices(s, "n2", "g0 g1");
    given_queue(s, "q", CLASS "=9");
    given_template(s, "one", CLASS, 1);
    given_job(s, "a", "q", "pods=1 template=one " NAME "=1");
    expect_state(s, "a", "Admitted");
    const struct affinity *affinity = scenario_job(s, "a")->spec.pod_template.spec.affinity;
    assert_non_null(affinity);
    const struct match_expression *expression =
        &affinity->node_affinity->required->node_selector_terms.items[0].match_expressions.items[0];
    check_str(expression->key, "kubernetes.io/hostname");
    check_str(expression->op, "NotIn");
    check_i64(expression->values.count, 1);
    check_str(expression->values.items[0], "n1");
}

/* What is offered where its pods may not go is no part of what there is. */
static void nodes_that_its_pods_may_not_use_do_not_count(void **state)
{
    struct scenario *s = *state;
    given_class_for(s, NAME);
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0 g1");
    given_node(s, "n2", "cpu=16 " NAME "=4 taint=t:NoSchedule");
    given_queue(s, "q", CLASS "=9");
    given_claim(s, "held", CLASS, 1);
    claim_allocated(s, "held", "n1/g0");
    given_job(s, "a", "q", "pods=2 " NAME "=1");
    expect_message(s, "a", "1 of 2 are free");
}

/* With what the plugin of a node that isn't ready offers it could start. */
static void plugin_of_a_node_that_is_not_ready_is_out_for_health(void **state)
{
    struct scenario *s = *state;
    given_class_for(s, NAME);
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0");
    given_node(s, "n2", "cpu=16 " NAME "=4 ready=False");
    given_queue(s, "q", CLASS "=9");
    given_job(s, "a", "q", "pods=3 " NAME "=1");
    expect_state(s, "a", "Pending DevicesUnhealthy");
    expect_message(s, "a", "node n2 (not ready)");
    given_node(s, "n2", "cpu=16 " NAME "=4");
    expect_state(s, "a", "Admitted");
}

/* Two flavors that list one account by each of its names: nobody knows which numbers hold. */
static void both_names_of_an_account_in_two_flavors(void **state)
{
    struct scenario *s = *state;
    given_class_for(s, NAME);
    given_flavor(s, "f", "");
    given_flavor(s, "g", "");
    given_node(s, "n1", "cpu=16 " NAME "=4");
    given_queue(s, "q", "flavor=f " CLASS "=2 flavor=g " NAME "=2");
    given_job(s, "a", "q", "pods=1 " NAME "=1");
    expect_state(s, "a", "Pending Invalid");
    expect_message(s, "a", "lists both " CLASS " and " NAME);
    given_queue(s, "q", "flavor=f " NAME "=2 flavor=g " NAME "=2");
    expect_state(s, "a", "Admitted");
}

/* Pods on their way that want a device by that name, and pods that want none, are no crowd of one
 * kind: each takes what it asks for. */
static void promised_pods_with_and_without_are_told_apart(void **state)
{
    struct scenario *s = *state;
    given_class_for(s, NAME);
    given_node(s, "n1", "cpu=3");
    given_devices(s, "n1", "g0 g1");
    given_queue(s, "q", "cpu=9 " NAME "=9");
    given_job(s, "with", "q", "pods=1 cpu=1 " NAME "=1");
    given_job(s, "without", "q", "pods=1 cpu=1");
    expect_state(s, "with", "Admitted");
    expect_state(s, "without", "Admitted");
    given_job(s, "two", "q", "pods=1 cpu=1 " NAME "=2");
    expect_state(s, "two", "Pending DevicesExhausted");
    given_job(s, "second", "q", "pods=1 cpu=1");
    expect_state(s, "second", "Admitted");
    given_job(s, "last", "q", "pods=1 cpu=1");
    expect_state(s, "last", "Pending NodesFull");
}

/* Two names of one class: each is charged by its own name, together what the account knows. */
static void each_name_of_a_class_is_charged_its_part(void **state)
{
    struct scenario *s = *state;
    given_class_for(s, NAME);
    given_node(s, "n1", "cpu=16");
    given_devices(s, "n1", "g0 g1 g2");
    given_queue(s, "q", CLASS "=9");
    given_job(s, "a", "q", "pods=1 " NAME "=1 deviceclass.resource.kubernetes.io/" CLASS "=2");
    expect_used(s, "q", CLASS "=3");
    expect_trace(s, "[   0] a: admit 1 pods of queue q, deviceclass.resource.kubernetes.io/" CLASS
                    " 2/pod on default, " NAME " 1/pod on default\n"
                    "[   0] a > Admitted 0/1 on default\n"
                    "[   0] q: finalizer on\n"
                    "[   0] a ! Admitted: …\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(schedulers_claim_is_no_second_charge),
        scenario_test(device_of_an_extended_resource_is_free_with_its_claim),
        scenario_test(account_is_the_classs_as_soon_as_there_is_one),
        scenario_test(queue_that_lists_both_names_is_not_ready),
        scenario_test(cohort_that_lists_both_names_is_not_ready),
        scenario_test(promises_hold_whichever_way_a_node_serves),
        scenario_test(implicit_name_wakes_with_its_class),
        scenario_test(pods_are_kept_off_a_node_that_misleads),
        scenario_test(nodes_that_its_pods_may_not_use_do_not_count),
        scenario_test(plugin_of_a_node_that_is_not_ready_is_out_for_health),
        scenario_test(both_names_of_an_account_in_two_flavors),
        scenario_test(promised_pods_with_and_without_are_told_apart),
        scenario_test(each_name_of_a_class_is_charged_its_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
