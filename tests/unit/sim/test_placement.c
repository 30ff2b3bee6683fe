/* The scheduler and the device allocator: what may go where, one pod after the other. */
#include "fixture.h"

static struct cluster *with_nodes(int count, const char *cpu)
{
    struct cluster *cluster = cluster_new((struct sim_options){.has_tallyman = false});
    given(cluster, GPU_CLASS);
    given_nodes(cluster, count, cpu);
    return cluster;
}

struct node_count {
    const char *node;
    int64_t count;
};

static void count_on_node(void *ctx, const void *value)
{
    struct node_count *count = ctx;
    const struct pod *pod = value;
    count->count += str_eq_c(pod->spec.node_name, count->node) && !pod_is_terminal(pod) ? 1 : 0;
}

static int64_t pods_on(const struct cluster *cluster, const char *node)
{
    struct node_count count = {.node = node};
    sim_each(cluster->sim, KIND_POD, count_on_node, &count);
    return count.count;
}

static void pods_are_spread_and_no_node_is_overfilled(void **state)
{
    (void)state;
    struct cluster *cluster = with_nodes(3, "2");
    given_job(cluster, (struct job_args){.name = "j", .pods = 3});
    (void)sim_run_until(cluster->sim, 5000);
    check_i64(pods_on(cluster, "n1"), 1);
    check_i64(pods_on(cluster, "n2"), 1);
    check_i64(pods_on(cluster, "n3"), 1);
    given_job(cluster, (struct job_args){.name = "more", .pods = 5});
    (void)sim_run_until(cluster->sim, 10000);
    check_i64(job_state(cluster, "more").bound, 3);
    assert_true(trace_has(cluster, "0/3 nodes are available: 3 Insufficient cpu."));
    check_holds(cluster);
    cluster_free(cluster);
}

static void a_waiting_pod_goes_when_room_appears(void **state)
{
    (void)state;
    struct cluster *cluster = with_nodes(1, "1");
    given_job(cluster, (struct job_args){
                           .name = "first", .pods = 1, .annotations = "example.com/run-for: 10m"});
    given_job(cluster, (struct job_args){.name = "second", .pods = 1});
    given_job(cluster, (struct job_args){.name = "third", .pods = 1});
    (void)sim_run_until(cluster->sim, 500000);
    check_i64(job_state(cluster, "second").bound, 0);
    (void)sim_run_until(cluster->sim, 615000);
    check_i64(job_state(cluster, "second").bound, 1);
    given_nodes(cluster, 2, "1"); /* n1 again, and n2 */
    (void)sim_run_until(cluster->sim, 630000);
    check_i64(job_state(cluster, "third").bound, 1);
    check_holds(cluster);
    cluster_free(cluster);
}

static void a_pod_that_backs_off_is_tried_when_it_may(void **state)
{
    (void)state;
    struct cluster *cluster = with_nodes(1, "1");
    given_job(cluster, (struct job_args){.name = "first", .pods = 1});
    given_job(cluster, (struct job_args){.name = "second", .pods = 1});
    (void)sim_run_until(cluster->sim, 100);
    given_nodes(cluster, 2, "1"); /* room appears while it backs off for a second */
    (void)sim_run_until(cluster->sim, 500);
    check_i64(job_state(cluster, "second").bound, 0);
    (void)sim_run_until(cluster->sim, 2000);
    check_i64(job_state(cluster, "second").bound, 1);
    cluster_free(cluster);
}

static void priority_goes_first(void **state)
{
    (void)state;
    struct cluster *cluster = with_nodes(1, "1");
    given(cluster, "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"
                   "metadata: {name: high}\nvalue: 1000\n");
    given_job(cluster, (struct job_args){.name = "low", .pods = 1});
    given_job(cluster, (struct job_args){
                           .name = "urgent", .pods = 1, .pod_spec = "priorityClassName: high,"});
    (void)sim_run_until(cluster->sim, 5000);
    check_i64(job_state(cluster, "urgent").bound, 1);
    check_i64(job_state(cluster, "low").bound, 0);
    cluster_free(cluster);
}

static void taints_selectors_and_silent_nodes_keep_pods_away(void **state)
{
    (void)state;
    struct cluster *cluster = with_nodes(2, "8");
    given(cluster, "apiVersion: v1\nkind: Node\nmetadata: {name: n3, labels: {gpu: 'yes'}}\n"
                   "spec: {taints: [{key: only, value: x, effect: NoSchedule}]}\n"
                   "status: {allocatable: {cpu: '8', memory: 16Gi, pods: '110'}}\n---\n"
                   "apiVersion: v1\nkind: Node\nmetadata: {name: n4, labels: {gpu: 'yes'}}\n"
                   "spec: {unschedulable: true}\n"
                   "status: {allocatable: {cpu: '8', memory: 16Gi, pods: '110'}}\n");
    assert_true(sim_node_set_ready(cluster->sim, STR("n2"), false));
    given_job(cluster, (struct job_args){.name = "any", .pods = 3});
    given_job(cluster, (struct job_args){
                           .name = "picky", .pods = 1, .pod_spec = "nodeSelector: {gpu: 'yes'},"});
    (void)sim_run_until(cluster->sim, 5000);
    check_i64(pods_on(cluster, "n1"), 3);
    assert_true(trace_has(cluster, "0/4 nodes are available: 1 node(s) were not ready, 1 node(s) "
                                   "were unschedulable, 1 node(s) had untolerated taint(s), 1 "
                                   "node(s) didn't match Pod's node affinity/selector."));
    given_job(cluster, (struct job_args){.name = "tolerant",
                                         .pods = 1,
                                         .pod_spec = "nodeSelector: {gpu: 'yes'}, tolerations: "
                                                     "[{key: only, operator: Exists}],"});
    (void)sim_run_until(cluster->sim, 15000);
    check_i64(pods_on(cluster, "n3"), 1);
    cluster_free(cluster);
}

/* S4: two pods name one claim: one device, free only when the last is gone. */
static void a_shared_claim_is_one_device(void **state)
{
    (void)state;
    struct cluster *cluster = with_nodes(2, "8");
    given_devices(cluster, 1, 1);
    given(cluster, "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
                   "metadata: {name: card, namespace: ml}\n"
                   "spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: "
                   "gpu.example.com}}]}}\n");
    const char *claim = "resourceClaims: [{name: gpu, resourceClaimName: card}],";
    given_job(cluster, (struct job_args){.name = "short",
                                         .pods = 1,
                                         .annotations = "example.com/run-for: 10s",
                                         .pod_spec = claim});
    given_job(cluster, (struct job_args){.name = "long",
                                         .pods = 1,
                                         .annotations = "example.com/run-for: 30s",
                                         .pod_spec = claim});
    (void)sim_run_until(cluster->sim, 5000);
    const struct resource_claim *card =
        sim_find(cluster->sim, KIND_RESOURCE_CLAIM, STR("ml"), STR("card"));
    check_i64(card->status.reserved_for.count, 2);
    check_i64(sim_devices(cluster->sim).held, 1);
    check_i64(pods_on(cluster, "n1"), 2); /* the device is there */
    (void)sim_run_until(cluster->sim, 20000);
    check_i64(sim_devices(cluster->sim).held, 1);
    (void)sim_run_until(cluster->sim, 40000);
    check_i64(sim_devices(cluster->sim).held, 0);
    card = sim_find(cluster->sim, KIND_RESOURCE_CLAIM, STR("ml"), STR("card"));
    assert_non_null(card); /* a claim of the user's stays */
    check_holds(cluster);
    cluster_free(cluster);
}

static void a_pool_counts_when_its_newest_generation_is_complete(void **state)
{
    (void)state;
    struct cluster *cluster = with_nodes(1, "8");
    given_devices(cluster, 1, 2);
    check_i64(sim_devices(cluster->sim).total, 2);
    given(cluster, "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: new}\n"
                   "spec: {driver: gpu.example.com, nodeName: n1, pool: {name: n1, generation: 2, "
                   "resourceSliceCount: 2}, devices: [{name: gpu-9}]}\n");
    check_i64(sim_devices(cluster->sim).total, 0);
    given(cluster, "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: new2}\n"
                   "spec: {driver: gpu.example.com, nodeName: n1, pool: {name: n1, generation: 2, "
                   "resourceSliceCount: 2}, devices: [{name: gpu-8}]}\n");
    check_i64(sim_devices(cluster->sim).total, 2);
    given_job(cluster, (struct job_args){.name = "j", .pods = 1, .has_gpu = true});
    (void)sim_run_until(cluster->sim, 5000);
    assert_true(trace_has(cluster, "bound n1 gpu-8"));
    cluster_free(cluster);
}

/* Two requests of one claim: the first must leave the only device that suits the second. */
static void the_allocator_goes_back_where_it_must(void **state)
{
    (void)state;
    struct cluster *cluster = with_nodes(1, "8");
    given(cluster,
          "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\n"
          "spec: {driver: gpu.example.com, nodeName: n1, pool: {name: n1, generation: 1, "
          "resourceSliceCount: 1}, devices: [{name: a, attributes: {big: {bool: true}}}, "
          "{name: b, attributes: {big: {bool: false}}}, "
          "{name: c, attributes: {big: {bool: false}}, taints: [{key: bad, effect: "
          "NoSchedule}]}]}\n---\n"
          "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\n"
          "metadata: {name: pair, namespace: ml}\n"
          "spec: {spec: {devices: {requests: [{name: any, exactly: {deviceClassName: "
          "gpu.example.com}}, {name: large, exactly: {deviceClassName: gpu.example.com, "
          "selectors: [{cel: {expression: 'device.attributes[\"gpu.example.com\"].big'}}]}}]}}}\n");
    const char *claims = "resourceClaims: [{name: gpu, resourceClaimTemplateName: pair}],";
    given_job(cluster, (struct job_args){.name = "j", .pods = 1, .pod_spec = claims});
    (void)sim_run_until(cluster->sim, 5000);
    assert_true(trace_has(cluster, "bound n1 b a"));
    given_job(cluster, (struct job_args){.name = "k", .pods = 1, .has_gpu = true});
    (void)sim_run_until(cluster->sim, 10000);
    check_i64(job_state(cluster, "k").bound, 0); /* c is tainted */
    cluster_free(cluster);
}

static void partitions_share_their_cards_counters(void **state)
{
    (void)state;
    struct cluster *cluster = with_nodes(1, "8");
    given(cluster,
          "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: counters}\n"
          "spec: {driver: gpu.example.com, nodeName: n1, pool: {name: n1, generation: 1, "
          "resourceSliceCount: 2}, sharedCounters: [{name: card, counters: {memory: {value: "
          "40Gi}}}]}\n---\n"
          "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: parts}\n"
          "spec: {driver: gpu.example.com, nodeName: n1, pool: {name: n1, generation: 1, "
          "resourceSliceCount: 2}, devices: [\n"
          "{name: p0, consumesCounters: [{counterSet: card, counters: {memory: {value: 20Gi}}}]},\n"
          "{name: p1, consumesCounters: [{counterSet: card, counters: {memory: {value: 20Gi}}}]},\n"
          "{name: p2, consumesCounters: [{counterSet: card, counters: {memory: {value: 20Gi}}}]}"
          "]}\n");
    given_job(cluster, (struct job_args){.name = "j", .pods = 3, .has_gpu = true});
    (void)sim_run_until(cluster->sim, 5000);
    check_i64(job_state(cluster, "j").bound, 2);
    cluster_free(cluster);
}

static void a_dead_node_keeps_its_pods_until_it_is_back_or_gone(void **state)
{
    (void)state;
    struct cluster *cluster = with_nodes(1, "8");
    given_devices(cluster, 1, 2);
    given_job(cluster, (struct job_args){.name = "j", .pods = 2, .has_gpu = true});
    (void)sim_run_until(cluster->sim, 5000);
    assert_true(sim_node_set_ready(cluster->sim, STR("n1"), false));
    (void)sim_run_until(cluster->sim, 6000);
    check_i64(job_state(cluster, "j").ready, 0);
    (void)sim_run_until(cluster->sim, 400000); /* evicted, but nobody confirms it */
    check_i64(sim_devices(cluster->sim).held, 2);
    check_i64(job_state(cluster, "j").bound, 2);
    assert_true(sim_delete(cluster->sim, KIND_NODE, STR_NONE, STR("n1")));
    (void)sim_run_until(cluster->sim, 500000);
    check_i64(sim_devices(cluster->sim).held, 0);
    check_i64(job_state(cluster, "j").bound, 0);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_spread_and_no_node_is_overfilled),
        cmocka_unit_test(a_waiting_pod_goes_when_room_appears),
        cmocka_unit_test(a_pod_that_backs_off_is_tried_when_it_may),
        cmocka_unit_test(priority_goes_first),
        cmocka_unit_test(taints_selectors_and_silent_nodes_keep_pods_away),
        cmocka_unit_test(a_shared_claim_is_one_device),
        cmocka_unit_test(a_pool_counts_when_its_newest_generation_is_complete),
        cmocka_unit_test(the_allocator_goes_back_where_it_must),
        cmocka_unit_test(partitions_share_their_cards_counters),
        cmocka_unit_test(a_dead_node_keeps_its_pods_until_it_is_back_or_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
