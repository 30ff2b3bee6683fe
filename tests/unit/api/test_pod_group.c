/* Names of PodGroups, held against what the Job controller's own functions gave for them. */
#include "tallyman/api/pod_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/check.h"

static struct str name_of(struct arena *arena, const char *name, const char *uid)
{
    struct job job = {.meta = {.name = str_from_c(name), .uid = str_from_c(uid)}};
    return pod_group_name_of_job(arena, &job);
}

static void name_follows_from_name_and_uid(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    check_str(name_of(&arena, "train", "7a115c11-0000-4000-8000-000000000001"),
              "train-7dd76f9b9b-train-pgt-0-6c84c7c6d7");
    check_str(name_of(&arena, "grouped", "7a115c11-0000-4000-8000-000000000001"),
              "grouped-7dd76f9b9b-grouped-pgt-0-858b6bbbc9");
    arena_deinit(&arena);
}

/* No pods could be made of such a Job. */
static void long_name_has_none(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    const char *longest = "a123456789b123456789c123456789d123456789e123456789f123456789xyz";
    assert_true(str_is_set(name_of(&arena, longest, "u")));
    assert_false(str_is_set(
        name_of(&arena, "a123456789b123456789c123456789d123456789e123456789f123456789xyz0", "u")));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_follows_from_name_and_uid),
        cmocka_unit_test(long_name_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
