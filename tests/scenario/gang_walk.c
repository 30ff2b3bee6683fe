/* A walk through the gangs goes by their uids, and goes on if some of them are freed meanwhile. */
#include <stdio.h>

#include "support/check.h"
#include "support/scenario.h"

#include "../../controller/core/gang_walk.h"

static void given_five(struct scenario *s)
{
    given_node(s, "n1", "cpu=1");
    given_queue(s, "q", "cpu=1");
    given_job(s, "first", "q", "pods=1 cpu=1");
    given_job(s, "a", "q", "pods=1 cpu=1");
    given_job(s, "b", "q", "pods=1 cpu=1");
    given_job(s, "c", "q", "pods=1 cpu=1");
    given_job(s, "d", "q", "pods=1 cpu=1");
    scenario_start(s);
}

/* Jobs that are deleted while a walk is on, and a walk within it: neither comes to one of them,
 * whether it would have been the next or a later one; the others come, each once. */
static void gangs_that_are_freed_are_left_out_of_all_walks(void **state)
{
    struct scenario *s = *state;
    given_five(s);
    struct core *core = scenario_core(s);
    struct gang_walk order;
    char names[5][16];
    uint32_t count = 0;
    gang_walk_begin(core, &order, NULL, NULL);
    for (struct gang *gang; (gang = gang_walk_next(core, &order)) != NULL;) {
        assert_true(count < 5);
        (void)snprintf(names[count++], sizeof(names[0]), STR_FMT, STR_ARG(gang->name));
    }
    assert_int_equal(count, 5);

    struct gang_walk outer;
    struct gang_walk inner;
    gang_walk_begin(core, &outer, NULL, NULL);
    check_str(gang_walk_next(core, &outer)->name, names[0]);
    gang_walk_begin(core, &inner, NULL, NULL);
    check_str(gang_walk_next(core, &inner)->name, names[0]);
    object_gone(s, KIND_JOB, names[1]); /* the next of both */
    check_str(gang_walk_next(core, &inner)->name, names[2]);
    object_gone(s, KIND_JOB, names[3]); /* a later one */
    check_str(gang_walk_next(core, &inner)->name, names[4]);
    assert_null(gang_walk_next(core, &inner));
    check_str(gang_walk_next(core, &outer)->name, names[2]);
    object_gone(s, KIND_JOB, names[4]); /* the last */
    assert_null(gang_walk_next(core, &outer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(gangs_that_are_freed_are_left_out_of_all_walks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
