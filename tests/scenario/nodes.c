/* Where pods can go: which nodes count, what others take of them, and what is promised. */
#include "support/check.h"
#include "support/scenario.h"

static void enough_in_total_but_not_on_one_node(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=72 nvidia.com/gpu=4");
    given_node(s, "n2", "cpu=72 nvidia.com/gpu=4");
    given_queue(s, "q", "cpu=999 nvidia.com/gpu=8");
    given_pod(s, "x1", "n1", "nvidia.com/gpu=3");
    given_pod(s, "x2", "n2", "nvidia.com/gpu=3");
    given_job(s, "two-together", "q", "pods=1 nvidia.com/gpu=2");
    given_job(s, "one-each", "q", "pods=2 nvidia.com/gpu=1");
    given_job(s, "too-large", "q", "pods=1 cpu=73");
    expect_state(s, "two-together", "Pending NodeShape");
    expect_state(s, "one-each", "Admitted");
    expect_state(s, "too-large", "Pending NeverFits");
    expect_message(s, "too-large", "73 cpu");
    object_gone(s, KIND_POD, "x1");
    gang_starts(s, "one-each", "n1 n2");
    expect_state(s, "two-together", "Admitted");
}

/* What happens to one of two nodes: out, and back. */
static void one_of_two_nodes_counts(struct scenario *s, const char *bad, const char *good)
{
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", bad);
    given_queue(s, "q", "cpu=100");
    given_job(s, "a", "q", "pods=1 cpu=3");
    given_job(s, "b", "q", "pods=1 cpu=3");
    expect_state(s, "a", "Admitted");
    gang_starts(s, "a", "n1");
    expect_state(s, "b", "Pending NodesFull");
    given_node(s, "n2", good);
    expect_state(s, "b", "Admitted");
}

static void cordoned_node_is_no_capacity(void **state)
{
    one_of_two_nodes_counts(*state, "cpu=4 cordoned=true", "cpu=4");
}

static void tainted_node_is_no_capacity(void **state)
{
    one_of_two_nodes_counts(*state, "cpu=4 taint=maintenance:NoSchedule", "cpu=4");
}

static void node_that_is_not_ready_is_no_capacity(void **state)
{
    one_of_two_nodes_counts(*state, "cpu=4 ready=False", "cpu=4");
}

static void selected_nodes_only(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4 label=pool:a");
    given_node(s, "n2", "cpu=4");
    given_queue(s, "q", "cpu=100");
    given_job(s, "a", "q", "pods=1 cpu=3 selector=pool:a");
    given_job(s, "b", "q", "pods=1 cpu=3 selector=pool:a");
    expect_state(s, "a", "Admitted");
    gang_starts(s, "a", "n1");
    expect_state(s, "b", "Pending NodesFull");
    at(s, 1000);
    given_node(s, "n2", "cpu=4 label=pool:a");
    expect_state(s, "b", "Admitted");
    gang_starts(s, "b", "n2");
    job_finishes(s, "a");
    given_node(s, "n1", "cpu=4"); /* its label is gone */
    given_job(s, "c", "q", "pods=1 cpu=3 selector=pool:a");
    expect_state(s, "c", "Pending NodesFull");
}

static void required_affinity_narrows_the_nodes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4 label=zone:x");
    given_node(s, "n2", "cpu=4 label=zone:y");
    given_queue(s, "q", "cpu=100");
    given_job_spec(
        s, "a", "q", "pods=2",
        "{\"containers\":[{\"name\":\"m\",\"resources\":{\"requests\":{\"cpu\":\"3\"}}}],"
        "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
        "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"In\","
        "\"values\":[\"y\"]}]}]}}}}");
    expect_state(s, "a", "Pending NeverFits");
    given_node(s, "n3", "cpu=4 label=zone:y");
    expect_state(s, "a", "Admitted");
}

static void running_pods_on_a_cordoned_node_stay_counted(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=100");
    given_job(s, "a", "q", "pods=1 cpu=3");
    scenario_start(s);
    gang_starts(s, "a", "n1");
    given_node(s, "n1", "cpu=4 cordoned=true");
    given_job(s, "b", "q", "pods=1 cpu=3");
    expect_state(s, "b", "Pending NodesFull");
    given_node(s, "n1", "cpu=4");
    expect_state(s, "b", "Pending NodesFull");
    at(s, 20000);
    expect_message(s, "b", "1 of 4");
}

static void node_added_later_frees_a_waiting_gang(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "q", "cpu=100");
    given_job(s, "a", "q", "pods=2 cpu=3");
    expect_state(s, "a", "Pending NodesFull");
    given_node(s, "n1", "cpu=4");
    expect_state(s, "a", "Pending NeverFits");
    given_node(s, "n2", "cpu=4");
    expect_state(s, "a", "Admitted");
}

static void other_peoples_pods_are_subtracted(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=100");
    given_pod(s, "daemon", "n1", "ns=kube-system cpu=1");
    given_pod(s, "static", "n1", "ns=kube-system cpu=500m");
    given_job(s, "a", "q", "pods=1 cpu=3");
    expect_state(s, "a", "Pending NodesFull");
    expect_message(s, "a", "2500m of 4");
    object_gone(s, KIND_POD, "kube-system/daemon");
    expect_state(s, "a", "Admitted");
}

static void finished_foreign_pod_frees_its_room(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=100");
    given_pod(s, "x", "n1", "cpu=2");
    given_job(s, "a", "q", "pods=1 cpu=3");
    expect_state(s, "a", "Pending NodesFull");
    pod_succeeds(s, "x");
    expect_state(s, "a", "Admitted");
}

/* A pod resized in place takes more, or less, at once. */
static void resized_foreign_pod_is_counted_anew(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=100");
    given_pod(s, "x", "n1", "cpu=2");
    given_job(s, "a", "q", "pods=1 cpu=3");
    expect_state(s, "a", "Pending NodesFull");
    given_pod(s, "x", "n1", "cpu=1");
    expect_state(s, "a", "Admitted");
    gang_starts(s, "a", "n1");
    job_finishes(s, "a");
    given_pod(s, "x", "n1", "cpu=3");
    given_job(s, "b", "q", "pods=1 cpu=3");
    expect_state(s, "b", "Pending NodesFull");
}

/* Foreign pods use a resource that the node's object names only later: counted all the same. */
static void pods_seen_before_their_node_count(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "q", "example.com/accel=8");
    given_pod(s, "x", "n1", "example.com/rare=2");
    given_pod(s, "y", "n1", "example.com/accel=2");
    given_node(s, "n1", "cpu=4 example.com/accel=3 example.com/rare=2");
    given_queue(s, "r", "example.com/rare=8");
    given_job(s, "a", "q", "pods=1 example.com/accel=2");
    given_job(s, "b", "r", "pods=1 example.com/rare=1");
    for (uint64_t seed = 0; seed < 8; seed++) {
        listing_order(s, seed);
        restart(s, WITH_ADMISSIONS);
        expect_state(s, "a", "Pending DevicesExhausted");
        expect_state(s, "b", "Pending DevicesExhausted");
    }
}

static void pods_of_a_node_are_counted(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=64 pods=3");
    given_queue(s, "q", "cpu=100");
    given_pod(s, "x", "n1", "cpu=1");
    given_pod(s, "y", "n1", "cpu=1");
    given_job(s, "a", "q", "pods=2 cpu=1");
    expect_state(s, "a", "Pending NodesFull");
    expect_message(s, "a", "needs 2 pods at once, 1 of 3");
    object_gone(s, KIND_POD, "x");
    expect_state(s, "a", "Admitted");
}

/* Room on a tainted node that only the flavor's tolerations open. */
static void room_on_a_node_that_the_flavor_tolerates_wakes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4 label=kind:gpu taint=gpu:NoSchedule");
    given_flavor(s, "gpu", "label=kind:gpu toleration=gpu");
    given_queue(s, "q", "flavor=gpu cpu=100");
    given_pod(s, "x", "n1", "cpu=2");
    given_job(s, "a", "q", "pods=1 cpu=3");
    expect_state(s, "a", "Pending NodesFull");
    object_gone(s, KIND_POD, "x");
    expect_state(s, "a", "Admitted");
}

/* -- dead nodes ---------------------------------------------------------------------------------
 */

static void pods_stuck_on_a_dead_node_hold_quota_for_five_minutes(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_queue(s, "q", "cpu=4");
    given_job(s, "a", "q", "pods=4 cpu=1");
    scenario_start(s);
    gang_starts(s, "a", "n1 n1 n1 n1");
    given_job(s, "b", "q", "pods=4 cpu=1");
    at(s, 10000);
    given_node(s, "n1", "cpu=4 ready=Unknown");
    job_suspended_by_user(s, "a", true);
    for (int i = 0; i < 4; i++) {
        const char *const pods[] = {"a-0", "a-1", "a-2", "a-3"};
        pod_terminates(s, pods[i]);
    }
    job_says_suspended(s, "a"); /* and status.terminating stays at 4 */
    at(s, 309000);
    expect_state(s, "b", "Pending QuotaExhausted");
    expect_used(s, "q", "cpu=4");
    restart(s, WITH_ADMISSIONS); /* neither re-queued nor counted twice */
    expect_used(s, "q", "cpu=4");
    expect_state(s, "b", "Pending QuotaExhausted");
    at(s, 311000);
    expect_state(s, "b", "Admitted");
    expect_used(s, "q", "cpu=4");
}

static void node_object_deleted_releases_what_died_there(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_queue(s, "q", "cpu=4");
    given_job(s, "a", "q", "pods=1 cpu=4");
    scenario_start(s);
    gang_starts(s, "a", "n1");
    given_job(s, "b", "q", "pods=1 cpu=4");
    job_suspended_by_user(s, "a", true);
    pod_terminates(s, "a-0");
    job_says_suspended(s, "a");
    expect_state(s, "b", "Pending QuotaExhausted");
    object_gone(s, KIND_NODE, "n1");
    expect_state(s, "b", "Admitted");
}

/* -- promises -----------------------------------------------------------------------------------
 */

/* Room of a gang that is admitted and whose pods aren't bound yet is given to nobody else. */
static void unbound_gang_keeps_its_room(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=100");
    given_job(s, "a", "q", "pods=3 cpu=1");
    given_job(s, "b", "q", "pods=2 cpu=1");
    expect_state(s, "a", "Admitted");
    expect_state(s, "b", "Pending NodesFull");
    pods_appear(s, "a", 3);
    expect_state(s, "b", "Pending NodesFull");
    job_deleted_now(s, "a"); /* the promise goes with it */
    object_gone(s, KIND_POD, "a-0");
    object_gone(s, KIND_POD, "a-1");
    object_gone(s, KIND_POD, "a-2");
    expect_state(s, "b", "Admitted");
}

/* The promise ends with a deleted Job that never had a pod. */
static void promise_of_a_deleted_job_is_given_on(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_queue(s, "q", "cpu=100");
    given_queue(s, "r", "cpu=100");
    given_job(s, "a", "q", "pods=3 cpu=1");
    given_job(s, "b", "r", "pods=2 cpu=1");
    expect_state(s, "b", "Pending NodesFull");
    job_deleted_now(s, "a");
    expect_state(s, "b", "Admitted");
}

/* The scheduler may place the small pods first and split the room that the large ones need. */
static void worst_placement_of_promised_pods_is_reckoned_with(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_queue(s, "q", "cpu=100");
    given_job(s, "small", "q", "pods=2 cpu=1");
    given_job(s, "large", "q", "pods=1 cpu=4");
    expect_state(s, "small", "Admitted");
    /* It fits if both small pods go to one node, and not if they don't. */
    expect_state(s, "large", "Pending ReservedForOther");
    gang_starts(s, "small", "n1 n1");
    expect_state(s, "large", "Admitted");
}

static void worst_placement_that_leaves_no_room_keeps_it_waiting(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_queue(s, "q", "cpu=100");
    given_job(s, "small", "q", "pods=2 cpu=1");
    given_job(s, "large", "q", "pods=1 cpu=4");
    expect_state(s, "large", "Pending ReservedForOther");
    gang_starts(s, "small", "n1 n2");
    expect_state(s, "large", "Pending NodeShape");
}

static void equal_gangs_do_not_wait_for_each_other(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=4");
    given_node(s, "n2", "cpu=4");
    given_queue(s, "q", "cpu=100");
    given_queue(s, "r", "cpu=100");
    given_job(s, "a", "q", "pods=4 cpu=1");
    given_job(s, "b", "r", "pods=4 cpu=1");
    expect_state(s, "a", "Admitted");
    expect_state(s, "b", "Admitted");
}

/* With min-count below the size, quota is taken for all and places for what there is room for. */
static void min_count_needs_room_for_that_many(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=3");
    given_queue(s, "q", "cpu=100");
    given_job(s, "a", "q", "pods=5 cpu=1 min=4");
    given_job(s, "b", "q", "pods=5 cpu=1 min=3");
    expect_state(s, "a", "Pending NeverFits");
    expect_state(s, "b", "Admitted");
    expect_used(s, "q", "cpu=5");
}

static void node_heartbeat_changes_nothing(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=3");
    given_queue(s, "q", "cpu=100");
    given_job(s, "a", "q", "pods=5 cpu=1");
    expect_state(s, "a", "Pending NeverFits");
    at(s, 20000);
    (void)counts_take(s);
    struct node *node = scenario_object(s, KIND_NODE, "n1");
    node->status.conditions.items[0].message = STR("kubelet is posting ready status");
    object_changed(s, KIND_NODE, "n1");
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.effects + counts.gangs_visited + counts.nodes_visited, 0);
}

/* A node whose kubelet hasn't spoken yet is none to go to. */
static void node_that_says_nothing_of_itself(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "q", "cpu=8");
    given_json(s, KIND_NODE,
               "{\"metadata\":{\"name\":\"n1\",\"labels\":{\"kubernetes.io/hostname\":\"n1\"}},"
               "\"status\":{\"allocatable\":{\"cpu\":\"8\",\"memory\":\"8Gi\",\"pods\":\"10\"}}}");
    given_job(s, "a", "q", "pods=1 cpu=1");
    scenario_start(s);
    expect_state(s, "a", "Pending NodesFull");
    expect_message(s, "a", "not ready");
    given_node(s, "n1", "cpu=8");
    expect_state(s, "a", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(enough_in_total_but_not_on_one_node),
        scenario_test(cordoned_node_is_no_capacity),
        scenario_test(tainted_node_is_no_capacity),
        scenario_test(node_that_is_not_ready_is_no_capacity),
        scenario_test(selected_nodes_only),
        scenario_test(required_affinity_narrows_the_nodes),
        scenario_test(running_pods_on_a_cordoned_node_stay_counted),
        scenario_test(node_added_later_frees_a_waiting_gang),
        scenario_test(other_peoples_pods_are_subtracted),
        scenario_test(finished_foreign_pod_frees_its_room),
        scenario_test(resized_foreign_pod_is_counted_anew),
        scenario_test(pods_seen_before_their_node_count),
        scenario_test(pods_of_a_node_are_counted),
        scenario_test(room_on_a_node_that_the_flavor_tolerates_wakes),
        scenario_test(pods_stuck_on_a_dead_node_hold_quota_for_five_minutes),
        scenario_test(node_object_deleted_releases_what_died_there),
        scenario_test(unbound_gang_keeps_its_room),
        scenario_test(promise_of_a_deleted_job_is_given_on),
        scenario_test(worst_placement_of_promised_pods_is_reckoned_with),
        scenario_test(worst_placement_that_leaves_no_room_keeps_it_waiting),
        scenario_test(equal_gangs_do_not_wait_for_each_other),
        scenario_test(min_count_needs_room_for_that_many),
        scenario_test(node_heartbeat_changes_nothing),
        scenario_test(node_that_says_nothing_of_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
