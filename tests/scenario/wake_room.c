/* Room that comes free on a node, in cpu or in devices, is told to those alone whose pods could use
 * it: whoever waits beside them for more, or for other nodes, isn't even looked at. */
#include <stdio.h>

#include "support/check.h"
#include "support/parked.h"

#define CLASS   "gpu.example.com"
#define WAITING 40

static void expect_looked_at(struct scenario *s, uint32_t waiters, uint32_t woken)
{
    struct scenario_counts counts = counts_take(s);
    assert_int_equal(counts.waiters_visited, waiters);
    assert_int_equal(counts.shapes_woken, woken);
}

/* So many gangs, no two alike, which ask for 2 cpu and a little more each. */
static void given_unlike(struct scenario *s, const char *prefix, const char *options)
{
    for (int i = 0; i < WAITING; i++) {
        char name[32];
        char all[100];
        (void)snprintf(name, sizeof(name), "%s%02d", prefix, i);
        (void)snprintf(all, sizeof(all), "pods=1 cpu=%dm %s", 2001 + i, options);
        given_job(s, name, "q", all);
    }
}

/* Two cpu are too few for all; three on another node are nothing to those of the east; four, on
 * theirs, wake the 40 who ask for no more, and nobody else. */
static void room_is_told_to_those_whom_it_is_enough_for(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8 label=zone:east");
    given_node(s, "n2", "cpu=3 label=zone:west");
    given_pod(s, "small", "n1", "cpu=2");
    given_pod(s, "other", "n1", "cpu=2");
    given_pod(s, "large", "n1", "cpu=4");
    given_pod(s, "far", "n2", "cpu=3");
    given_bystander(s);
    given_queue(s, "q", "cpu=1000");
    given_unlike(s, "a", "selector=zone:east");
    given_job(s, "large", "q", "pods=1 cpu=5 selector=zone:east");
    expect_state(s, "a00", "Pending NodesFull");
    parked(s);
    object_gone(s, KIND_POD, "small");
    expect_looked_at(s, 0, 0);
    object_gone(s, KIND_POD, "far");
    expect_looked_at(s, 0, 0);
    object_gone(s, KIND_POD, "other");
    expect_looked_at(s, WAITING, WAITING);
    expect_state(s, "a00", "Admitted");
    expect_state(s, "a01", "Pending NodesFull");
    expect_state(s, "large", "Pending NodesFull");
}

static void given_taken(struct scenario *s, const char *claim, const char *device)
{
    given_claim(s, claim, CLASS, 1);
    claim_allocated(s, claim, device);
}

/* A claim gives its device back: who asks for two isn't woken until there are two, nor who may use
 * other nodes only. */
static void a_device_is_told_to_those_whom_it_is_enough_for(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=100 label=zone:east");
    given_node(s, "n2", "cpu=100 label=zone:west");
    given_devices(s, "n1", "g0 g1 g2");
    given_devices(s, "n2", "g0 g1");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "two", CLASS, 2);
    given_taken(s, "c0", "n1/g0");
    given_taken(s, "c1", "n1/g1");
    given_taken(s, "c2", "n1/g2");
    given_taken(s, "d0", "n2/g0");
    given_taken(s, "d1", "n2/g1");
    given_bystander(s);
    given_queue(s, "q", "cpu=1000 gpu.example.com=100");
    given_unlike(s, "a", "selector=zone:east template=two");
    expect_state(s, "a00", "Pending DevicesExhausted");
    parked(s);
    claim_freed(s, "d0");
    claim_freed(s, "d1");
    claim_freed(s, "c0");
    expect_looked_at(s, 0, 0);
    claim_freed(s, "c1");
    expect_looked_at(s, WAITING, WAITING);
    expect_state(s, "a00", "Admitted");
    expect_state(s, "a01", "Pending DevicesExhausted");
}

static void given_overhead(struct scenario *s, int cpu)
{
    char json[200];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"kata\"},\"handler\":\"kata\",\"overhead\":{"
                   "\"podFixed\":{\"cpu\":\"%d\"}}}",
                   cpu);
    given_json(s, KIND_RUNTIME_CLASS, json);
}

/* What its pods ask for has become less while it waits: so is what it is looked at for. */
static void who_asks_for_less_now_hears_of_less(void **state)
{
    struct scenario *s = *state;
    given_node(s, "n1", "cpu=8");
    given_pod(s, "small", "n1", "cpu=3");
    given_pod(s, "large", "n1", "cpu=5");
    given_bystander(s);
    given_queue(s, "q", "cpu=1000");
    given_overhead(s, 3);
    given_job(s, "a", "q", "pods=1 cpu=2 runtime=kata");
    expect_state(s, "a", "Pending NodesFull");
    given_overhead(s, 1);
    expect_state(s, "a", "Pending NodesFull");
    parked(s);
    object_gone(s, KIND_POD, "small");
    expect_looked_at(s, 1, 1);
    expect_state(s, "a", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(room_is_told_to_those_whom_it_is_enough_for),
        scenario_test(a_device_is_told_to_those_whom_it_is_enough_for),
        scenario_test(who_asks_for_less_now_hears_of_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
