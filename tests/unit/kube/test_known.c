#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "tallyman/kube/known.h"

struct told {
    char text[4096];
    size_t len;
};

static void tell(void *ctx, const struct known_item *item)
{
    struct told *told = ctx;
    int n =
        snprintf(told->text + told->len, sizeof(told->text) - told->len,
                 STR_FMT "/" STR_FMT " " STR_FMT " " STR_FMT "\n", STR_ARG(item->namespace_name),
                 STR_ARG(item->name), STR_ARG(item->uid), STR_ARG(item->resource_version));
    told->len += (size_t)n;
}

static struct object_meta meta(const char *namespace_name, const char *name, const char *uid,
                               const char *version)
{
    return (struct object_meta){.namespace_name = str_from_c(namespace_name),
                                .name = str_from_c(name),
                                .uid = str_from_c(uid),
                                .resource_version = str_from_c(version)};
}

static void put(struct known *known, const char *namespace_name, const char *name, const char *uid,
                const char *version)
{
    struct object_meta put_meta = meta(namespace_name, name, uid, version);
    known_put(known, &put_meta);
}

static void what_a_round_has_not_seen_is_told_in_order(void **state)
{
    struct known *known = known_new();
    struct told told = {0};
    (void)state;
    known_start_round(known);
    put(known, "z", "a", "1", "11");
    put(known, "a", "z", "2", "12");
    put(known, "a", "b", "3", "13");
    put(known, NULL, "node", "4", "14");
    put(known, "k", "kept", "5", "15");
    check_i64(known_take_unseen(known, tell, &told), 0);

    known_start_round(known);
    put(known, "k", "kept", "5", "16");
    check_i64(known_take_unseen(known, tell, &told), 4);
    check_str(str_from_c(told.text), "/node 4 14\na/b 3 13\na/z 2 12\nz/a 1 11\n");
    check_i64((int64_t)known_count(known), 1);
    known_free(known);
    known_free(NULL);
}

static void the_newest_version_is_kept(void **state)
{
    struct known *known = known_new();
    struct told told = {0};
    (void)state;
    put(known, "a", "b", "uid", "9");
    put(known, "a", "b", "uid", "10"); /* longer */
    put(known, "a", "b", "another-uid", "11");
    check_i64((int64_t)known_count(known), 1);
    struct object_meta looked_up = meta("a", "b", NULL, NULL);
    const struct known_entry *entry = known_find(known, &looked_up);
    assert_non_null(entry);
    check_str(known_entry_item(entry).uid, "another-uid");
    known_start_round(known);
    check_i64(known_take_unseen(known, tell, &told), 1);
    check_str(str_from_c(told.text), "a/b another-uid 11\n");
    known_free(known);
}

static void a_namespace_is_no_part_of_a_name(void **state)
{
    struct known *known = known_new();
    (void)state;
    put(known, "a", "b", "1", "1");
    put(known, NULL, "b", "2", "2");
    put(known, "ab", "b", "3", "3");
    check_i64((int64_t)known_count(known), 3);
    struct object_meta looked_up = meta("a", "b", NULL, NULL);
    check_str(known_entry_item(known_find(known, &looked_up)).uid, "1");
    known_free(known);
}

static void touching_keeps_and_removing_forgets(void **state)
{
    struct known *known = known_new();
    struct told told = {0};
    (void)state;
    put(known, "a", "touched", "1", "1");
    put(known, "a", "removed", "2", "2");
    struct object_meta touched = meta("a", "touched", "other", "9");
    struct object_meta removed = meta("a", "removed", "2", "2");
    struct object_meta unknown = meta("a", "unknown", "3", "3");
    known_start_round(known);
    known_touch(known, &touched);
    known_touch(known, &unknown);
    known_remove(known, &removed);
    known_remove(known, &unknown);
    check_i64(known_take_unseen(known, tell, &told), 0);
    check_str(known_entry_item(known_find(known, &touched)).resource_version, "1");
    check_i64((int64_t)known_count(known), 1);
    known_free(known);
}

static void names_that_no_server_gives(void **state)
{
    static char long_name[5000];
    struct known *known = known_new();
    (void)state;
    memset(long_name, 'x', sizeof(long_name) - 1);
    put(known, "a", long_name, "1", "1");
    put(known, "a", "", "1", "1");
    put(known, "a", NULL, "1", "1");
    put(known, "a", "b", long_name, "1");
    check_i64((int64_t)known_count(known), 0);
    struct object_meta looked_up = meta("a", long_name, NULL, NULL);
    assert_null(known_find(known, &looked_up));
    known_free(known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_round_has_not_seen_is_told_in_order),
        cmocka_unit_test(the_newest_version_is_kept),
        cmocka_unit_test(a_namespace_is_no_part_of_a_name),
        cmocka_unit_test(touching_keeps_and_removing_forgets),
        cmocka_unit_test(names_that_no_server_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
