#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "tallyman/base/table.h"

#define THINGS 3000u

struct thing {
    struct str name;
    struct str key;
    char text[24];
    bool is_in;
};

static struct thing things[THINGS];

static void make_things(void)
{
    for (uint32_t i = 0; i < THINGS; i++) {
        struct thing *thing = &things[i];
        *thing = (struct thing){.is_in = false};
        int len = snprintf(thing->text, sizeof(thing->text), "thing-%u", i);
        thing->key = (struct str){thing->text, (size_t)len};
        thing->name = str_skip(thing->key, 6);
    }
}

static void an_empty_table_finds_nothing(void **state)
{
    (void)state;
    struct table table = {.count = 0};
    assert_null(table_find(&table, STR("a")));
    uint32_t at = 0;
    assert_null(table_next(&table, &at));
    table_deinit(&table);
}

static void objects_are_found_by_the_member_that_is_the_key(void **state)
{
    (void)state;
    make_things();
    struct table by_key = TABLE_OF(struct thing, key);
    struct table by_name = {.count = 0};
    for (uint32_t i = 0; i < 100; i++) {
        table_add(&by_key, &things[i]);
        table_add(&by_name, &things[i]);
    }
    assert_ptr_equal(table_find(&by_key, STR("thing-42")), &things[42]);
    assert_ptr_equal(table_find(&by_name, STR("42")), &things[42]);
    assert_null(table_find(&by_key, STR("42")));
    assert_null(table_find(&by_key, STR("thing-100")));
    table_deinit(&by_key);
    table_deinit(&by_name);
}

/* Adds and removes at random, beside a flag in each object. */
static void what_is_removed_is_gone_and_all_else_is_still_found(void **state)
{
    (void)state;
    make_things();
    struct table table = TABLE_OF(struct thing, key);
    uint32_t random = 1;
    uint32_t count = 0;
    for (uint32_t round = 0; round < 200000; round++) {
        random = random * 1664525u + 1013904223u;
        struct thing *thing = &things[(random >> 8) % THINGS];
        assert_ptr_equal(table_find(&table, thing->key), thing->is_in ? thing : NULL);
        if (thing->is_in) {
            table_remove(&table, thing);
        } else {
            table_add(&table, thing);
        }
        thing->is_in = !thing->is_in;
        count += thing->is_in ? 1 : UINT32_MAX;
        check_i64(table.count, count);
    }
    uint32_t at = 0;
    uint32_t seen = 0;
    for (const struct thing *thing; (thing = table_next(&table, &at)) != NULL; seen++) {
        assert_true(thing->is_in);
    }
    check_i64(seen, count);
    at = 0;
    for (struct thing *thing; (thing = table_drain(&table, &at)) != NULL;) {
        assert_true(thing->is_in);
        thing->is_in = false;
        table_remove(&table, thing);
    }
    check_i64(table.count, 0);
    table_deinit(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_finds_nothing),
        cmocka_unit_test(objects_are_found_by_the_member_that_is_the_key),
        cmocka_unit_test(what_is_removed_is_gone_and_all_else_is_still_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
