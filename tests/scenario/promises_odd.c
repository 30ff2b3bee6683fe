/* Who waits beside pods that are on their way, and who need not: pods that keep others off their
 * node, requests that may be after one device, claims that get theirs once, domains. Whoever waits
 * only for that starts when those pods are bound. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"
#define CARD  "card.example.com"

#define WAITS "Pending ReservedForOther"

static void given_queues(struct scenario *s)
{
    given_queue(s, "q", "cpu=640 " CLASS "=64 " CARD "=64 undeclared=Allow");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_class(s, CARD,
                "device.driver == 'gpu.example.com' && device.attributes["
                "'gpu.example.com'].kind == 'card'");
}

#define APART                                                                                      \
    "{\"containers\":[{\"name\":\"main\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}],"          \
    "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{"     \
    "\"labelSelector\":{\"matchLabels\":{\"app\":\"x\"}},"                                         \
    "\"topologyKey\":\"kubernetes.io/hostname\"}]}}}"

/* One pod that keeps its node for itself costs those of its namespace a whole node, wherever it
 * goes; those of another one only what it asks. */
static void pods_that_keep_apart_cost_their_own_namespace_a_node(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_node(s, "n2", "cpu=8");
    given_namespace(s, "other", "");
    given_queues(s);
    given_job_spec(s, "apart", "q", "pods=1", APART);
    expect_state(s, "apart", "Admitted");
    given_job(s, "near", "q", "pods=1 cpu=1");
    expect_state(s, "near", WAITS);
    given_job(s, "far", "q", "pods=1 cpu=1 ns=other");
    expect_state(s, "other/far", "Admitted");
    gang_starts(s, "other/far", "n1");
    gang_starts(s, "apart", "n2");
    expect_state(s, "near", "Admitted");
}

#define DEVICE(name, kind)                                                                         \
    "{\"name\":\"" name "\",\"attributes\":{\"kind\":{\"string\":\"" kind "\"}}}"
#define SLICE(name, node, devices)                                                                 \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"driver\":\"gpu.example.com\","              \
    "\"nodeName\":\"" node "\",\"pool\":{\"name\":\"" node "\",\"generation\":1,"                  \
    "\"resourceSliceCount\":1},\"devices\":[" devices "]}}"

/* Pods that may have any device could take the only card; of plain ones there are enough. A pod
 * that asks for two of them, or for either of two kinds, is reckoned with at its worst. */
static void requests_that_meet_in_a_device_wait_for_each_other(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=64");
    given_json(
        s, KIND_RESOURCE_SLICE,
        SLICE("s1", "n1",
              DEVICE("c0", "card") "," DEVICE("p0", "plain") "," DEVICE("p1", "plain") "," DEVICE(
                  "p2", "plain") "," DEVICE("p3", "plain") "," DEVICE("p4", "plain")));
    given_queues(s);
    given_template(s, "any", CLASS, 1);
    given_template(s, "pair", CLASS, 2);
    given_template(s, "card", CARD, 1);
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               "{\"metadata\":{\"name\":\"either\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":"
               "[{\"name\":\"r\",\"firstAvailable\":[{\"name\":\"a\",\"deviceClassName\":\"" CARD
               "\"},{\"name\":\"b\",\"deviceClassName\":\"" CLASS "\"}]}]}}}}");
    given_job(s, "a", "q", "pods=1 cpu=1 template=any");
    expect_state(s, "a", "Admitted");
    given_job(s, "card", "q", "pods=1 cpu=1 template=card");
    expect_state(s, "card", WAITS);
    given_job(s, "pair", "q", "pods=1 cpu=1 template=pair");
    expect_state(s, "pair", "Admitted");
    given_job(s, "either", "q", "pods=1 cpu=1 template=either");
    expect_state(s, "either", WAITS);
    gang_starts(s, "a", "n1");
    pod_claims(s, "a-0", "any", "n1/p0");
    expect_state(s, "card", WAITS);
    gang_starts(s, "pair", "n1");
    pod_claims(s, "pair-0", "pair", "n1/p1 n1/p2");
    expect_state(s, "card", "Admitted");
    expect_state(s, "either", WAITS); /* beside the card's gang now */
    gang_starts(s, "card", "n1");
    pod_claims(s, "card-0", "card", "n1/c0");
    expect_state(s, "either", "Admitted");
}

#define PART(name, kind, size)                                                                     \
    "{\"name\":\"" name "\",\"attributes\":{\"kind\":{\"string\":\"" kind                          \
    "\"}},\"consumesCounters\":[{\"counterSet\":\"chip\",\"counters\":{\"memory\":{"               \
    "\"value\":\"" size "\"}}}]}"

/* A card and its partitions have no device in common, and draw on one counter. */
static void what_draws_on_one_counter_waits_for_each_other(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=64");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"s0\"},\"spec\":{\"driver\":\"gpu.example.com\","
               "\"nodeName\":\"n1\",\"pool\":{\"name\":\"n1\",\"generation\":1,"
               "\"resourceSliceCount\":2},\"sharedCounters\":[{\"name\":\"chip\",\"counters\":{"
               "\"memory\":{\"value\":\"40Gi\"}}}]}}");
    given_json(s, KIND_RESOURCE_SLICE,
               "{\"metadata\":{\"name\":\"s1\"},\"spec\":{\"driver\":\"gpu.example.com\","
               "\"nodeName\":\"n1\",\"pool\":{\"name\":\"n1\",\"generation\":1,"
               "\"resourceSliceCount\":2},\"devices\":[" PART("full", "card", "40Gi") "," PART(
                   "p0", "part", "20Gi") "," PART("p1", "part", "20Gi") "]}}");
    given_queues(s);
    given_class(s, "part.example.com",
                "device.driver == 'gpu.example.com' && device.attributes["
                "'gpu.example.com'].kind == 'part'");
    given_template(s, "card", CARD, 1);
    given_template(s, "part", "part.example.com", 1);
    given_queue(s, "p", "part.example.com=8");
    given_job(s, "one", "p", "pods=1 template=part");
    expect_state(s, "one", "Admitted");
    given_job(s, "whole", "q", "pods=1 cpu=1 template=card");
    given_job(s, "two", "p", "pods=1 template=part");
    expect_state(s, "whole", "Pending DevicesExhausted");
    expect_state(s, "two", "Admitted");
    job_deleted_now(s, "one");
    job_deleted_now(s, "two");
    expect_state(s, "whole", "Admitted");
    given_job(s, "three", "p", "pods=1 template=part");
    expect_state(s, "three", "Pending DevicesExhausted");
}

/* Each of two claims gets its device where its gang's pod is bound, and may be after the other's.
 */
static void claims_that_have_no_device_yet_wait_for_each_other(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=64");
    given_devices(s, "n1", "g0 g1 g2 g3");
    given_queues(s);
    given_claim(s, "first", CLASS, 1);
    given_claim(s, "second", CLASS, 1);
    given_template(s, "own", CLASS, 1);
    given_job(s, "a", "q", "pods=1 cpu=1 claim=first");
    expect_state(s, "a", "Admitted");
    given_job(s, "b", "q", "pods=1 cpu=1 claim=second");
    expect_state(s, "b", WAITS);
    given_job(s, "c", "q", "pods=1 cpu=1 template=own");
    expect_state(s, "c", WAITS);
    given_job(s, "d", "q", "pods=1 cpu=1 claim=first");
    expect_state(s, "d", WAITS);
    gang_starts(s, "a", "n1");
    claim_allocated(s, "first", "n1/g0");
    expect_state(s, "d", "Admitted");
    gang_starts(s, "d", "n1");
    expect_state(s, "b", "Admitted");
    expect_state(s, "c", WAITS);
    gang_starts(s, "b", "n1");
    claim_allocated(s, "second", "n1/g1");
    expect_state(s, "c", "Admitted");
}

/* Who is held to a domain has nothing to do with pods that can't go to any node of it. */
static void a_domain_where_the_others_cannot_go_is_not_in_their_way(void **state)
{
    struct scenario *s = *state;
    given_flavor(s, "default", "level=rack");
    given_node(s, "a1", "cpu=4 label=rack:ra label=kind:x");
    given_node(s, "a2", "cpu=4 label=rack:ra label=kind:x");
    given_node(s, "b1", "cpu=8 label=rack:rb label=kind:y");
    given_queue(s, "q", "cpu=64");
    given_job(s, "racked", "q", "pods=8 cpu=1 required=rack selector=kind:x");
    expect_state(s, "racked", "Admitted");
    given_job(s, "free", "q", "pods=4 cpu=2 selector=kind:y");
    expect_state(s, "free", "Admitted");
    given_job(s, "again", "q", "pods=1 cpu=1 required=rack");
    expect_state(s, "again", "Pending NodesFull");
    gang_starts(s, "free", "b1 b1 b1 b1");
    job_finishes(s, "free");
    expect_state(s, "again", "Admitted");
    expect_selector(s, "again", "rack", "rb");
}

/* The only device that either may have is deleted: what is left they don't fight for. */
static void a_device_that_is_gone_is_between_nobody(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n0", "cpu=64");
    given_node(s, "n1", "cpu=64");
    given_json(s, KIND_RESOURCE_SLICE, SLICE("s0", "n0", DEVICE("b0", "both")));
    given_json(s, KIND_RESOURCE_SLICE, SLICE("s1", "n1", DEVICE("x0", "x") "," DEVICE("y0", "y")));
    given_class(s, CLASS, "device.attributes['gpu.example.com'].kind in ['x', 'both']");
    given_class(s, CARD, "device.attributes['gpu.example.com'].kind in ['y', 'both']");
    given_queue(s, "q", "cpu=64 " CLASS "=8 " CARD "=8");
    given_template(s, "x", CLASS, 1);
    given_template(s, "y", CARD, 1);
    given_job(s, "a", "q", "pods=1 template=x");
    given_job(s, "two", "q", "pods=2 template=y");
    expect_state(s, "two", "Pending DevicesExhausted"); /* `a` may take what both could have */
    object_gone(s, KIND_RESOURCE_SLICE, "s0");
    expect_state(s, "two", "Pending NeverFits");
    given_job(s, "one", "q", "pods=1 template=y");
    expect_state(s, "one", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(pods_that_keep_apart_cost_their_own_namespace_a_node),
        scenario_test(requests_that_meet_in_a_device_wait_for_each_other),
        scenario_test(what_draws_on_one_counter_waits_for_each_other),
        scenario_test(claims_that_have_no_device_yet_wait_for_each_other),
        scenario_test(a_domain_where_the_others_cannot_go_is_not_in_their_way),
        scenario_test(a_device_that_is_gone_is_between_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
