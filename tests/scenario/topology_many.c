/* More racks than are looked at one by one, and names of racks that come and go while room is kept
 * in one of them. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

#define CLASS "gpu.example.com"

enum {
    RACKS = 70, /* more than are searched for victims by themselves */
    KINDS = 12,
    VISITORS = 1100, /* more names than are kept for nobody */
};

static void given_racks(struct scenario *s, const char *queue)
{
    checks_are_cheap(s);
    given_flavor(s, "default", "level=rack");
    given_queue(s, "q", queue);
    given_priority_class(s, "low", 1);
    given_priority_class(s, "high", 9);
}

/* A node in rack rN of its own. */
static const char *given_rack(struct scenario *s, int number, int cpu)
{
    static char node[40];
    char options[80];
    (void)snprintf(node, sizeof(node), "n%d", number);
    (void)snprintf(options, sizeof(options), "cpu=%d label=rack:r%d", cpu, number);
    given_node(s, node, options);
    return node;
}

/* -- victims ----------------------------------------------------------------------------------- */

/* A pair of devices on one board is in the last two racks alone, which only placing the pod shows.
 * By what is counted all racks are alike, and those two are beyond the ones that are searched by
 * themselves: all are searched together then, and one gang of one rack is stopped. */
static void racks_beyond_those_that_are_searched_one_by_one(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=1000 gpu.example.com=100 within=LowerPriority");
    given_class(s, CLASS, "device.driver == 'gpu.example.com'");
    given_json(s, KIND_RESOURCE_CLAIM_TEMPLATE,
               "{\"metadata\":{\"name\":\"pair\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":[{"
               "\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"" CLASS "\",\"count\":2}}],"
               "\"constraints\":[{\"matchAttribute\":\"gpu.example.com/board\"}]}}}}");
    char json[700];
    char name[40];
    for (int i = 0; i < RACKS; i++) {
        const char *node = given_rack(s, 100 + i, 4);
        (void)snprintf(json, sizeof(json),
                       "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"driver\":\"" CLASS "\","
                       "\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s\",\"generation\":1,"
                       "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"a\",\"attributes\":{"
                       "\"board\":{\"string\":\"x\"}}},{\"name\":\"b\",\"attributes\":{\"board\":{"
                       "\"string\":\"%s\"}}}]}}",
                       node, node, node, i >= RACKS - 2 ? "x" : "y");
        given_json(s, KIND_RESOURCE_SLICE, json);
    }
    scenario_start(s);
    for (int i = 0; i < RACKS; i++) {
        char options[100];
        char node[40];
        (void)snprintf(name, sizeof(name), "low-%d", 100 + i);
        (void)snprintf(node, sizeof(node), "n%d", 100 + i);
        (void)snprintf(options, sizeof(options),
                       "pods=1 cpu=4 priority=low selector=rack:r%d created=0", 100 + i);
        given_job(s, name, "q", options);
        gang_starts(s, name, node);
    }
    at(s, 1000);
    given_job(s, "high", "q",
              "pods=1 cpu=4 template=pair priority=high required=rack created=1000");
    expect_state(s, "high", "Reserved WaitingForVictims");
    expect_state(s, "low-100", "Running");
    expect_state(s, "low-168", "Suspending WaitingForTermination");
    expect_state(s, "low-169", "Running");
    gang_stops(s, "low-168");
    expect_state(s, "high", "Admitted");
    expect_selector(s, "high", "rack", "r168");
}

/* -- trees ------------------------------------------------------------------------------------- */

/* Flavors with more sets of levels than trees are kept: whichever was let go is built again, and a
 * rack stays the rack that it was. */
static void more_sets_of_levels_than_are_kept(void **state)
{
    struct scenario *s = *state;
    char name[40];
    char options[200];
    checks_are_cheap(s);
    char queue[600] = "";
    size_t length = 0;
    for (int i = 0; i < KINDS; i++) {
        (void)snprintf(name, sizeof(name), "f%d", i);
        (void)snprintf(options, sizeof(options), "label=kind:%d level=site%d level=rack", i, i);
        given_flavor(s, name, options);
        length += (size_t)snprintf(queue + length, sizeof(queue) - length, "%sflavor=f%d cpu=100",
                                   i == 0 ? "" : " ", i);
        for (int rack = 0; rack < 2; rack++) {
            (void)snprintf(name, sizeof(name), "n%d-%d", i, rack);
            (void)snprintf(options, sizeof(options),
                           "cpu=4 label=kind:%d label=site%d:x label=rack:r%d", i, i, rack);
            given_node(s, name, options);
        }
    }
    given_queue(s, "q", queue);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < KINDS; i++) {
            (void)snprintf(name, sizeof(name), "j%d-%d", i, round);
            (void)snprintf(options, sizeof(options), "pods=3 cpu=1 required=rack selector=kind:%d",
                           i);
            given_job(s, name, "q", options);
            expect_state(s, name, "Admitted");
            expect_selector(s, name, "rack", round == 0 ? "r0" : "r1");
        }
    }
    for (int i = 0; i < KINDS; i++) { /* one is left in each rack: two pods find no room */
        (void)snprintf(name, sizeof(name), "late%d", i);
        (void)snprintf(options, sizeof(options), "pods=2 cpu=1 required=rack selector=kind:%d", i);
        given_job(s, name, "q", options);
        expect_state(s, name, "Pending TopologyUnsatisfied");
    }
}

/* Where no policy guards the records, users may write domains of any labels into theirs, and ask
 * for such nodes: each is one more set of levels, and nobody else has less for it. */
static void records_with_levels_of_their_own(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=100");
    (void)given_rack(s, 1, 16);
    (void)given_rack(s, 2, 8);
    for (int i = 0; i < KINDS; i++) {
        char name[40];
        char options[100];
        char record[300];
        (void)snprintf(name, sizeof(name), "forger-%d", i);
        (void)snprintf(options, sizeof(options), "pods=1 cpu=1 running=true selector=key-%d:v", i);
        (void)snprintf(record, sizeof(record),
                       "{\"queue\":\"q\",\"at\":\"2026-11-30T11:59:30Z\",\"podSets\":[{\"name\":"
                       "\"main\",\"count\":1,\"flavors\":{\"cpu\":\"default\"}}],\"topology\":{"
                       "\"main\":{\"key-%d\":[\"v\"]}}}",
                       i);
        given_job(s, name, "q", options);
        job_has_record(s, name, record);
    }
    scenario_start(s);
    given_job(s, "eight", "q", "pods=8 cpu=1 required=rack");
    expect_selector(s, "eight", "rack", "r2");
    given_job(s, "sixteen", "q", "pods=16 cpu=1 required=rack");
    expect_selector(s, "sixteen", "rack", "r1");
}

/* The nodes of a rack go while pods are on their way to it: they take nothing of other racks, and
 * have their places again when a node of that rack comes back. */
static void rack_that_is_gone_while_pods_are_on_their_way(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64");
    (void)given_rack(s, 1, 4);
    given_job(s, "first", "q", "pods=3 cpu=1 required=rack");
    expect_selector(s, "first", "rack", "r1");
    object_gone(s, KIND_NODE, "n1");
    (void)given_rack(s, 2, 4);
    given_job(s, "second", "q", "pods=4 cpu=1 required=rack");
    expect_state(s, "second", "Admitted");
    expect_selector(s, "second", "rack", "r2");
    (void)given_rack(s, 1, 4);
    given_job(s, "third", "q", "pods=2 cpu=1 required=rack");
    expect_state(s, "third", "Pending NodesFull");
    given_job(s, "fourth", "q", "pods=1 cpu=1 required=rack");
    expect_selector(s, "fourth", "rack", "r1");
}

/* -- names ------------------------------------------------------------------------------------- */

/* Room in r1 is kept for the head while more racks than are remembered come and go: it stays kept
 * in r1, and nowhere else. */
static void names_of_racks_in_which_room_is_kept_stay(void **state)
{
    struct scenario *s = *state;
    given_racks(s, "cpu=64 strategy=Backfill");
    (void)given_rack(s, 1, 4);
    given_job(s, "long", "q", "pods=2 cpu=1 max-runtime=60m selector=rack:r1 created=0");
    scenario_start(s);
    gang_starts(s, "long", "n1 n1");
    at(s, 60000);
    given_job(s, "head", "q", "pods=4 cpu=1 required=rack created=60000");
    given_job(s, "in-the-way", "q", "pods=2 cpu=1 selector=rack:r1 required=rack created=60001");
    expect_state(s, "in-the-way", "Pending ReservedForOther");
    for (int i = 2; i < VISITORS; i++) {
        char rack[40];
        const char *node = given_rack(s, i, 3);
        (void)snprintf(rack, sizeof(rack), "r%d", i);
        given_job(s, "visitor", "q", "pods=3 cpu=1 required=rack created=60002");
        expect_selector(s, "visitor", "rack", rack);
        object_gone(s, KIND_JOB, "visitor");
        object_gone(s, KIND_NODE, node);
        trace_forget(s);
    }
    given_job(s, "as-well", "q", "pods=1 cpu=1 selector=rack:r1 required=rack created=60003");
    expect_state(s, "as-well", "Pending ReservedForOther");
    expect_state(s, "in-the-way", "Pending ReservedForOther");
    job_finishes(s, "long");
    expect_state(s, "head", "Admitted");
    expect_selector(s, "head", "rack", "r1");
    expect_state(s, "in-the-way", "Pending NodesFull");
}

/* More kinds of pods than the room in the racks is remembered for: each finds what is there. */
static void racks_are_counted_for_more_kinds_of_pods_than_are_kept(void **state)
{
    struct scenario *s = *state;
    char name[40];
    char options[100];
    checks_are_cheap(s);
    given_racks(s, "cpu=1000");
    given_node(s, "n1", "cpu=8 label=rack:1");
    given_node(s, "n2", "cpu=9 label=rack:2");
    for (int i = 1; i <= 40; i++) {
        (void)snprintf(name, sizeof(name), "k%d", i);
        (void)snprintf(options, sizeof(options), "pods=2 cpu=%dm required=rack", 4000 + i);
        given_job(s, name, "q", options);
        expect_state(s, name, "Admitted");
        expect_selector(s, name, "rack", "2");
        job_deleted_now(s, name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(racks_beyond_those_that_are_searched_one_by_one),
        scenario_test(more_sets_of_levels_than_are_kept),
        scenario_test(records_with_levels_of_their_own),
        scenario_test(rack_that_is_gone_while_pods_are_on_their_way),
        scenario_test(names_of_racks_in_which_room_is_kept_stay),
        scenario_test(racks_are_counted_for_more_kinds_of_pods_than_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
