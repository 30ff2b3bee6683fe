/* A driver that lies about its node, with more devices than a node can have: it costs that node its
 * devices, and nobody else anything. The whole lie, of a million, is told to a real controller in
 * tests/cluster/suite/attack_worlds.py. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS            "gpu.example.com"
#define SLICE_DEVICES    128 /* Kubernetes: of one ResourceSlice */
#define NODE_DEVICES_MAX 16384
#define SLICES_MAX       (NODE_DEVICES_MAX / SLICE_DEVICES)

/* One slice of `devices`, of a pool of `slices`. */
static void given_slice(struct scenario *s, const char *node, int pool, int number, int slices,
                        int devices)
{
    char *json = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&json, &size);
    fprintf(out,
            "{\"metadata\":{\"name\":\"%s-%d-%d\"},\"spec\":{\"driver\":\"" CLASS "\","
            "\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s-%d\",\"generation\":1,"
            "\"resourceSliceCount\":%d},\"devices\":[",
            node, pool, number, node, node, pool, slices);
    for (int i = 0; i < devices; i++) {
        fprintf(out, "%s{\"name\":\"g%d\"}", i == 0 ? "" : ",", number * SLICE_DEVICES + i);
    }
    fputs("]}}", out);
    fclose(out);
    given_json(s, KIND_RESOURCE_SLICE, json);
    free(json);
}

static void given_pools(struct scenario *s, const char *node, int first, int count, int slices)
{
    for (int pool = first; pool < first + count; pool++) {
        for (int i = 0; i < slices; i++) {
            given_slice(s, node, pool, i, slices, SLICE_DEVICES);
        }
    }
}

static void given_world(struct scenario *s)
{
    checks_are_cheap(s);
    given_node(s, "honest", "cpu=16");
    given_node(s, "liar", "cpu=16");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_template(s, "one", CLASS, 1);
    given_queue(s, "q", "gpu.example.com=1000");
}

/* As many as a node may list, in one pool or in many, are devices like any; one slice more and none
 * of them is, with the reason; and all are again when that slice goes. */
static void node_that_lists_too_many_gives_none(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_pools(s, "liar", 0, 4, SLICES_MAX / 4);
    given_job(s, "a", "q", "pods=2 template=one");
    scenario_start(s);
    expect_state(s, "a", "Admitted");
    given_slice(s, "liar", 9, 0, 1, 1);
    given_job(s, "b", "q", "pods=1 template=one");
    expect_state(s, "b", "Pending DevicesExhausted");
    expect_message(s, "b", "its node lists more than 16384 devices");
    object_gone(s, KIND_RESOURCE_SLICE, "liar-9-0");
    expect_state(s, "b", "Admitted");
}

/* Whichever pool was seen first: after a restart the same gangs wait, in any order of listing. */
static void which_was_listed_first_makes_no_difference(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_pools(s, "liar", 0, 3, SLICES_MAX / 2);
    given_job(s, "b", "q", "pods=1 template=one");
    scenario_start(s);
    expect_state(s, "b", "Pending DevicesExhausted");
    for (uint64_t seed = 1; seed < 5; seed++) {
        listing_order(s, seed);
        restart(s, WITH_ADMISSIONS);
        expect_state(s, "b", "Pending DevicesExhausted");
        expect_message(s, "b", "its node lists more than 16384 devices");
    }
    given_pools(s, "honest", 0, 1, 1);
    expect_state(s, "b", "Admitted");
}

/* One that is edited may bring its node over the limit, or move to another node. */
static void edited_slice_counts_as_it_is_now(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    given_pools(s, "liar", 0, 2, SLICES_MAX / 2);
    given_slice(s, "liar", 1, 0, SLICES_MAX / 2, SLICE_DEVICES - 1);
    given_slice(s, "liar", 2, 0, 1, 1);
    scenario_start(s);
    given_job(s, "a", "q", "pods=1 template=one");
    expect_state(s, "a", "Admitted");
    given_slice(s, "liar", 2, 0, 1, 2);
    given_job(s, "b", "q", "pods=1 template=one");
    expect_state(s, "b", "Pending DevicesExhausted");
    struct resource_slice *slice = scenario_object(s, KIND_RESOURCE_SLICE, "liar-2-0");
    slice->spec.node_name = STR("honest");
    object_changed(s, KIND_RESOURCE_SLICE, "liar-2-0");
    expect_state(s, "b", "Admitted");
}

/* Of no one node: a pool alone has a limit, too. */
static void pool_that_lists_too_many_gives_none(void **state)
{
    struct scenario *s = *state;
    given_world(s);
    const int slices = 65536 / SLICE_DEVICES;
    for (int i = 0; i <= slices; i++) {
        given_slice(s, "liar", 0, i, slices + 1, i < slices ? SLICE_DEVICES : 1);
        char name[32];
        snprintf(name, sizeof(name), "liar-0-%d", i);
        struct resource_slice *slice = scenario_object(s, KIND_RESOURCE_SLICE, name);
        slice->spec.node_name = STR_NONE;
        slice->spec.all_nodes = (struct opt_bool){true, true};
    }
    given_job(s, "b", "q", "pods=1 template=one");
    scenario_start(s);
    expect_state(s, "b", "Pending DevicesExhausted");
    expect_message(s, "b", "it lists more than 65536 devices");
    given_pools(s, "honest", 0, 1, 1);
    expect_state(s, "b", "Admitted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(node_that_lists_too_many_gives_none),
        scenario_test(which_was_listed_first_makes_no_difference),
        scenario_test(edited_slice_counts_as_it_is_now),
        scenario_test(pool_that_lists_too_many_gives_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
