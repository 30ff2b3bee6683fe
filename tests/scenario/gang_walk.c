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

static void given_uid(struct scenario *s, char letter)
{
    char json[500];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"%c\",\"uid\":\"%c%c%c%c%c%c%c%c-0000-4000-8000-"
                   "000000000000\",\"labels\":{\"tallyman.dev/queue\":\"q\"}},\"spec\":{"
                   "\"suspend\":true,\"parallelism\":1,\"completions\":1,\"template\":{\"spec\":{"
                   "\"containers\":[{\"name\":\"main\"}]}}}}",
                   letter, letter, letter, letter, letter, letter, letter, letter, letter);
    given_json(s, KIND_JOB, json);
}

/* The same with uids that have nothing in common, as those of an API server: each of those that are
 * still to come is left out, whichever it is. */
static void whichever_is_freed_is_left_out(void **state)
{
    (void)state;
    for (char gone = '2'; gone <= '8'; gone++) {
        struct scenario *s = scenario_new();
        given_queue(s, "q", "cpu=1");
        for (char letter = '1'; letter <= '8'; letter++) {
            given_uid(s, letter);
        }
        scenario_start(s);
        struct core *core = scenario_core(s);
        struct gang_walk walk;
        gang_walk_begin(core, &walk, NULL, NULL);
        check_str(gang_walk_next(core, &walk)->name, "1");
        const char name[] = {gone, '\0'};
        object_gone(s, KIND_JOB, name);
        for (char letter = '2'; letter <= '8'; letter++) {
            const char next[] = {letter, '\0'};
            if (letter != gone) {
                check_str(gang_walk_next(core, &walk)->name, next);
            }
        }
        assert_null(gang_walk_next(core, &walk));
        scenario_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scenario_test(gangs_that_are_freed_are_left_out_of_all_walks),
        cmocka_unit_test(whichever_is_freed_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
