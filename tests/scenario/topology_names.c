/* Racks come and go for years: their names are let go, those in use aren't. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"
#include "support/scenario_internal.h"

#define RACKS 1100 /* more than the names that are kept for nobody */

static void given_rack(struct scenario *s, int number)
{
    char node[20];
    char options[60];
    (void)snprintf(node, sizeof(node), "n%d", number);
    (void)snprintf(options, sizeof(options), "cpu=4 label=zone:z label=rack:r%d", number);
    given_node(s, node, options);
}

static void names_of_racks_that_are_gone_are_let_go(void **state)
{
    struct scenario *s = *state;
    char name[20];
    given_flavor(s, "default", "level=zone level=rack level=kubernetes.io/hostname");
    given_queue(s, "q", "cpu=100000");
    given_rack(s, 0);
    given_job(s, "stays", "q", "pods=2 cpu=1 required=rack");
    scenario_start(s);
    gang_starts(s, "stays", "n0 n0");
    expect_selector(s, "stays", "rack", "r0");
    for (int i = 1; i <= RACKS; i++) {
        given_rack(s, i);
        given_job(s, "visitor", "q", "pods=4 cpu=1 required=rack");
        (void)snprintf(name, sizeof(name), "r%d", i);
        expect_selector(s, "visitor", "rack", name);
        job_finishes(s, "visitor");
        object_gone(s, KIND_JOB, "visitor");
        (void)snprintf(name, sizeof(name), "n%d", i);
        object_gone(s, KIND_NODE, name);
        trace_forget(s);
    }
    /* The rack that is in use all the time is known as ever: there is room for two more in it. */
    given_job(s, "three", "q", "pods=3 cpu=1 required=rack");
    given_job(s, "two", "q", "pods=2 cpu=1 required=rack");
    expect_selector(s, "two", "rack", "r0");
    expect_state(s, "three", "Pending NodesFull");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(names_of_racks_that_are_gone_are_let_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
