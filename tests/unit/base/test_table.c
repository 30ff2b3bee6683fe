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

static uint32_t count_of(const struct table *table)
{
    uint32_t at = 0;
    uint32_t count = 0;
    while (table_next(table, &at) != NULL) {
        count++;
    }
    return count;
}

/* A table that grows stands in two places for a while. All objects are there all the time, those
 * that are removed meanwhile are gone, and the memory of before is given back. */
static void a_table_that_grows_keeps_all_and_moves_little_by_little(void **state)
{
    (void)state;
    make_things();
    struct table table = TABLE_OF(struct thing, key);
    uint32_t most_moved = 0;
    bool has_stood_in_two = false;
    for (uint32_t i = 0; i < THINGS; i++) {
        uint32_t before = table.now.slots;
        uint32_t moved_before = table.before.slots == 0 ? 0 : table.moved;
        table_add(&table, &things[i]);
        bool is_new = table.now.slots != before;
        if (table.before.slots != 0) {
            uint32_t moved = table.moved - (is_new ? 0 : moved_before);
            most_moved = moved > most_moved ? moved : most_moved;
            has_stood_in_two = true;
        }
        if (i % 3 == 0) {
            table_remove(&table, &things[i / 2]);
            table_add(&table, &things[i / 2]);
        }
        check_i64(count_of(&table), i + 1);
        for (uint32_t other = i % 7; other <= i; other += 97) {
            assert_ptr_equal(table_find(&table, things[other].key), &things[other]);
        }
    }
    assert_true(has_stood_in_two);
    assert_true(most_moved <= 128);
    for (uint32_t i = 0; i < 200; i++) {
        table_remove(&table, &things[i]);
        table_add(&table, &things[i]);
    }
    check_i64(table.before.slots, 0);
    table_deinit(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_finds_nothing),
        cmocka_unit_test(objects_are_found_by_the_member_that_is_the_key),
        cmocka_unit_test(what_is_removed_is_gone_and_all_else_is_still_found),
        cmocka_unit_test(a_table_that_grows_keeps_all_and_moves_little_by_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
