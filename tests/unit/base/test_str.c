#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "tallyman/base/attr.h"
#include "tallyman/base/str.h"

static void absent_is_not_empty(void **state)
{
    (void)state;
    assert_false(str_is_set(STR_NONE));
    assert_true(str_is_set(STR("")));
    assert_true(str_is_empty(STR_NONE));
    assert_true(str_is_empty(STR("")));
    assert_false(str_is_empty(STR("x")));
    check_str(str_from_c(NULL), NULL);
    check_str(str_from_c(""), "");
}

static void equality_is_bytewise(void **state)
{
    (void)state;
    assert_true(str_eq(STR("gpu"), STR("gpu")));
    assert_false(str_eq(STR("gpu"), STR("gpu0")));
    assert_false(str_eq(STR("gpu"), STR("GPU")));
    assert_true(str_eq(STR_NONE, STR("")));
    assert_true(str_eq(STR("a\0b"), STR("a\0b")));
    assert_false(str_eq(STR("a\0b"), STR("a\0c")));
    assert_true(str_eq_c(STR("gpu"), "gpu"));
    assert_true(str_eq_c(STR_NONE, NULL));
    assert_false(str_eq_c(STR("x"), NULL));
}

static void order_is_unsigned_with_prefixes_first(void **state)
{
    (void)state;
    assert_true(str_compare(STR("a"), STR("b")) < 0);
    assert_true(str_compare(STR("b"), STR("a")) > 0);
    assert_true(str_compare(STR("a"), STR("ab")) < 0);
    assert_true(str_compare(STR("ab"), STR("a")) > 0);
    assert_true(str_compare(STR("a"), STR("\xc3\xa9")) < 0);
    assert_true(str_compare(STR_NONE, STR("")) == 0);
    assert_true(str_compare(STR_NONE, STR("a")) < 0);
}

static void prefix_and_suffix(void **state)
{
    (void)state;
    assert_true(str_starts_with(STR("tallyman.dev/queue"), STR("tallyman.dev/")));
    assert_false(str_starts_with(STR("tally"), STR("tallyman")));
    assert_true(str_starts_with(STR_NONE, STR("")));
    assert_true(str_ends_with(STR("limits.cpu"), STR(".cpu")));
    assert_false(str_ends_with(STR("cpu"), STR("xcpu")));
    assert_true(str_ends_with(STR_NONE, STR_NONE));
}

static void search_gives_the_first_or_the_length(void **state)
{
    (void)state;
    check_i64(str_find_char(STR("a/b/c"), '/'), 1);
    check_i64(str_find_char(STR("abc"), '/'), 3);
    check_i64(str_find_char(STR_NONE, '/'), 0);
    check_i64(str_find(STR("aab"), STR("ab")), 1);
    check_i64(str_find(STR("aaab"), STR("aab")), 1);
    check_i64(str_find(STR("abc"), STR("")), 0);
    check_i64(str_find(STR("abc"), STR("abcd")), 3);
    check_i64(str_find(STR("abab"), STR("ba")), 1);
    check_i64(str_find(STR("abc"), STR("c")), 2);
    check_i64(str_find(STR("abc"), STR("cx")), 3);
    check_i64(str_find(STR_NONE, STR("x")), 0);
    check_i64(str_find(STR("a\0b"), STR("\0b")), 1);
}

static void parts_stay_inside(void **state)
{
    (void)state;
    check_str(str_skip(STR("abc"), 1), "bc");
    check_str(str_skip(STR("abc"), 9), "");
    check_str(str_skip(STR_NONE, 1), NULL);
    check_str(str_take(STR("abc"), 2), "ab");
    check_str(str_take(STR("abc"), 9), "abc");
    check_str(str_take(STR_NONE, 9), NULL);
}

static void cut_never_splits_a_character(void **state)
{
    struct str two = STR("a\xc3\xa9");         /* é */
    struct str three = STR("a\xe2\x82\xac");   /* € */
    struct str four = STR("\xf0\x9f\x9a\xa2"); /* a ship */

    (void)state;
    check_str(str_cut_utf8(two, 2), "a");
    check_str(str_cut_utf8(two, 3), "a\xc3\xa9");
    check_str(str_cut_utf8(three, 3), "a");
    check_str(str_cut_utf8(three, 2), "a");
    check_str(str_cut_utf8(three, 4), "a\xe2\x82\xac");
    check_str(str_cut_utf8(four, 1), "");
    check_str(str_cut_utf8(four, 2), "");
    check_str(str_cut_utf8(four, 3), "");
    check_str(str_cut_utf8(four, 4), "\xf0\x9f\x9a\xa2");
    check_str(str_cut_utf8(STR("abc"), 0), "");
    check_str(str_cut_utf8(STR_NONE, 5), NULL);
}

static void cut_takes_bad_bytes_as_they_are(void **state)
{
    (void)state;
    check_str(str_cut_utf8(STR("a\xff\xff"), 2), "a\xff");
    check_str(str_cut_utf8(STR("\x80\x80\x80\x80\x80"), 4), "\x80\x80\x80\x80");
    check_str(str_cut_utf8(STR("a\xc0\x80"), 2), "a\xc0");
    /* The text itself ends inside a character. */
    check_str(str_cut_utf8(STR("a\xe2\x82"), 9), "a");
}

static void characters_are_taken_one_by_one(void **state)
{
    static const uint32_t expected[] = {'a', 0x7f, 0x80, 0x7ff, 0x800, 0xffff, 0x10000, 0x10ffff};
    struct str rest = STR("a\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80"
                          "\xf4\x8f\xbf\xbf");
    uint32_t c = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        assert_true(str_take_utf8(&rest, &c));
        check_i64(c, expected[i]);
    }
    check_i64(rest.len, 0);
    assert_false(str_take_utf8(&rest, &c));
}

static void bad_characters_are_not_taken(void **state)
{
    static const struct str bad[] = {
        STR_INIT("\x80"),
        STR_INIT("\xbf\xbf"),
        STR_INIT("\xc0\xaf"),         /* overlong */
        STR_INIT("\xc1\xbf"),         /* overlong */
        STR_INIT("\xe0\x9f\xbf"),     /* overlong */
        STR_INIT("\xf0\x8f\xbf\xbf"), /* overlong */
        STR_INIT("\xed\xa0\x80"),     /* surrogate */
        STR_INIT("\xed\xbf\xbf"),     /* surrogate */
        STR_INIT("\xf4\x90\x80\x80"), /* past the last character */
        STR_INIT("\xf5\x80\x80\x80"),
        STR_INIT("\xff"),
        STR_INIT("\xc3"),
        STR_INIT("\xc3("),
        STR_INIT("\xe2\x82"),
        STR_INIT("\xe2\x82("),
    };
    uint32_t c = 42;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct str rest = bad[i];

        assert_false(str_take_utf8(&rest, &c));
        check_i64(rest.len, bad[i].len);
    }
    check_i64(c, 42);
}

static void integers_are_exact(void **state)
{
    static const struct {
        struct str text;
        int64_t value;
    } good[] = {
        {STR_INIT("0"), 0},
        {STR_INIT("-0"), 0},
        {STR_INIT("+7"), 7},
        {STR_INIT("007"), 7},
        {STR_INIT("9223372036854775807"), INT64_MAX},
        {STR_INIT("-9223372036854775808"), INT64_MIN},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        int64_t value = 42;

        assert_true(str_to_i64(good[i].text, &value));
        check_i64(value, good[i].value);
    }
}

static void what_is_no_integer_is_refused_and_writes_nothing(void **state)
{
    static const struct str bad[] = {
        STR_INIT(""),
        STR_INIT("-"),
        STR_INIT("+"),
        STR_INIT("--1"),
        STR_INIT(" 1"),
        STR_INIT("1 "),
        STR_INIT("1.0"),
        STR_INIT("0x10"),
        STR_INIT("1e3"),
        STR_INIT("1\0"),
        STR_INIT("9223372036854775808"),
        STR_INIT("-9223372036854775809"),
        STR_INIT("99999999999999999999999"),
    };
    int64_t value = 42;

    (void)state;
    assert_false(str_to_i64(STR_NONE, &value));
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(str_to_i64(bad[i], &value));
    }
    check_i64(value, 42);
}

static void hash_is_fnv_1a(void **state)
{
    (void)state;
    /* The published values for an empty text and for "a". */
    assert_true(str_hash(STR(""), 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(str_hash(STR("a"), 0) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(str_hash(STR("a"), 0) != str_hash(STR("a"), 1));
    assert_true(str_hash(STR("c"), str_hash(STR("ab"), 0)) !=
                str_hash(STR("bc"), str_hash(STR("a"), 0)));
}

/* A view needs no NUL behind it: the sanitizer watches the exact end of a heap block. */
static void nothing_reads_past_the_end(void **state)
{
    char *exact = malloc(3);
    int64_t value = 0;

    (void)state;
    assert_non_null(exact);
    memcpy(exact, "12\xe2", 3);
    struct str s = {exact, 3};

    check_str(str_cut_utf8(s, 3), "12");
    assert_true(str_to_i64(str_take(s, 2), &value));
    check_i64(value, 12);
    check_i64(str_find(s, STR("2\xe2\x82")), 3);
    free(exact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_is_not_empty),
        cmocka_unit_test(equality_is_bytewise),
        cmocka_unit_test(order_is_unsigned_with_prefixes_first),
        cmocka_unit_test(prefix_and_suffix),
        cmocka_unit_test(search_gives_the_first_or_the_length),
        cmocka_unit_test(parts_stay_inside),
        cmocka_unit_test(cut_never_splits_a_character),
        cmocka_unit_test(cut_takes_bad_bytes_as_they_are),
        cmocka_unit_test(characters_are_taken_one_by_one),
        cmocka_unit_test(bad_characters_are_not_taken),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(what_is_no_integer_is_refused_and_writes_nothing),
        cmocka_unit_test(hash_is_fnv_1a),
        cmocka_unit_test(nothing_reads_past_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
