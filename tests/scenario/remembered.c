/* What is remembered of the nodes, by kind of pod and resource, has bounds: beyond them the answers
 * are the same. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/scenario.h"

#include "../../controller/core/trace.h"

#include "tallyman/base/limits.h"

/* No two of these tolerate the same. */
static void given_kinds(struct scenario *s)
{
    for (int i = 0; i < 600; i++) {
        char name[32];
        char options[64];
        snprintf(name, sizeof(name), "k%03d", i);
        snprintf(options, sizeof(options), "pods=1 cpu=1 toleration=t%d", i);
        given_job(s, name, "q", options);
    }
}

/* Kinds of pods by where they may go, more than are remembered, so that who waits has been
 * forgotten when he has his turn. */
static void more_kinds_than_are_remembered_find_their_room(void **state)
{
    struct scenario *s = *state;
    checks_are_cheap(s);
    given_node(s, "n1", "cpu=1 pods=5000");
    given_pod(s, "foreign", "n1", "cpu=1");
    given_queue(s, "q", "cpu=5000");
    given_kinds(s);
    scenario_start(s);
    expect_state(s, "k000", "Pending NodesFull");
    expect_state(s, "k577", "Pending NodesFull");
    given_node(s, "n2", "cpu=1 taint=t577:NoSchedule");
    expect_used(s, "q", "cpu=1");
    expect_state(s, "k577", "Admitted"); /* the only one that tolerates n2 */
    gang_starts(s, "k577", "n2");
    pod_gone(s, "foreign");
    expect_used(s, "q", "cpu=2");
    expect_state(s, "k000", "Admitted");
    gang_starts(s, "k000", "n1");
    given_node(s, "n3", "cpu=2");
    expect_used(s, "q", "cpu=4");
    expect_state(s, "k001", "Admitted");
    expect_state(s, "k002", "Admitted");
}

/* Twelve resources are looked up by node, and no more: who asks for others alone goes where the
 * nodes have them, and not where they don't tolerate the node. */
static void resources_beyond_those_that_are_looked_up_are_found(void **state)
{
    struct scenario *s = *state;
    char all[1024] = "";
    for (int i = 0; i < 13; i++) {
        snprintf(all + strlen(all), sizeof(all) - strlen(all), " example.com/r%02d=1", i);
    }
    char text[2048];
    given_queue(s, "q", "cpu=1 undeclared=Allow");
    snprintf(text, sizeof(text), "taint=t:NoSchedule example.com/late=9%s", all);
    given_node(s, "n0", text);
    snprintf(text, sizeof(text), "example.com/late=1%s", all);
    given_node(s, "n1", text);
    snprintf(text, sizeof(text), "pods=1%s", all);
    given_job(s, "many", "q", text);
    expect_state(s, "many", "Admitted");
    given_job(s, "late", "q", "pods=1 example.com/late=1");
    expect_state(s, "late", "Admitted");
    given_job(s, "later", "q", "pods=1 example.com/late=1");
    expect_state(s, "later", "Pending DevicesExhausted");
}

/* The trace of a step tells so many gangs, and how many more there were; the next step's begins
 * anew. */
static void looks_beyond_those_that_are_told_are_counted(void **state)
{
    struct scenario *s = *state;
    given_queue(s, "q", "cpu=1");
    given_job(s, "a", "q", "pods=2 cpu=1");
    scenario_start(s);
    struct core *core = scenario_core(s);
    const struct gang *gang = gang_find(core, scenario_job(s, "a")->meta.uid);
    core->trace = trace_new();
    for (int i = 0; i < LOOKS_MAX + 2; i++) {
        trace_look(core, gang, LOOK_WAITS, NULL);
    }
    struct look_list looks = core_last_looks(core);
    assert_int_equal(looks.count, LOOKS_MAX);
    assert_int_equal(looks.left_out, 2);
    check_str(looks.items[LOOKS_MAX - 1].name, "a");
    trace_begin(core->trace);
    trace_look(core, gang, LOOK_WAITS, NULL);
    looks = core_last_looks(core);
    assert_int_equal(looks.count, 1);
    assert_int_equal(looks.left_out, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(more_kinds_than_are_remembered_find_their_room),
        scenario_test(resources_beyond_those_that_are_looked_up_are_found),
        scenario_test(looks_beyond_those_that_are_told_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
