#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "tallyman/api/quantity.h"
#include "tallyman/base/limits.h"

#define NANO ((i128)1000000000)

static i128 parsed(const char *text)
{
    struct quantity value = {0};
    struct err err;
    if (rc_failed(quantity_parse(str_from_c(text), &value, &err))) {
        fail_msg("\"%s\": %s", text, err.text);
    }
    return value.nano;
}

static struct quantity quantity_of(const char *text)
{
    return (struct quantity){parsed(text)};
}

struct value_row {
    const char *text;
    int64_t units; /* the value is units + nano billionths */
    int64_t nano;
};

static void every_spelling_has_its_exact_value(void **state)
{
    static const struct value_row rows[] = {
        {"0", 0, 0},
        {"1", 1, 0},
        {"+1", 1, 0},
        {"-1", -1, 0},
        {"1.", 1, 0},
        {".5", 0, 500000000},
        {"0.5", 0, 500000000},
        {"0001.50", 1, 500000000},
        {"1e3", 1000, 0},
        {"1E3", 1000, 0},
        {"1E+3", 1000, 0},
        {"1e-3", 0, 1000000},
        {"1E", INT64_C(1000000000000000000), 0},
        {"1Ei", INT64_C(1152921504606846976), 0},
        {"1k", 1000, 0},
        {"1Ki", 1024, 0},
        {"1M", 1000000, 0},
        {"1Mi", 1048576, 0},
        {"1G", 1000000000, 0},
        {"1Gi", 1073741824, 0},
        {"1T", INT64_C(1000000000000), 0},
        {"7.5Ti", INT64_C(8246337208320), 0},
        {"3.8Ti", INT64_C(4178144185548), 800000000},
        {"1Pi", INT64_C(1125899906842624), 0},
        {"1P", INT64_C(1000000000000000), 0},
        {"1500m", 1, 500000000},
        {"100m", 0, 100000000},
        {"1u", 0, 1000},
        {"1n", 0, 1},
        {"9223372036854775807", INT64_MAX, 0},
        {"1e4294967296", 1, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (parsed(rows[i].text) != (i128)rows[i].units * NANO + rows[i].nano) {
            fail_msg("\"%s\" isn't %lld + %lldn", rows[i].text, (long long)rows[i].units,
                     (long long)rows[i].nano);
        }
    }
}

static void finer_than_a_billionth_is_rounded_away_from_zero(void **state)
{
    (void)state;
    assert_true(parsed("0.1n") == 1);
    assert_true(parsed("-0.1n") == -1);
    assert_true(parsed("1e-30") == 1);
    assert_true(parsed("-1e-30") == -1);
    assert_true(parsed("1e-999999999") == 1);
    assert_true(parsed("0e-999999999") == 0);
    assert_true(parsed("1.0000000000") == NANO);
    assert_true(parsed("1.0000000001") == NANO + 1);
    assert_true(parsed("0.0000000001Ki") == 103); /* 102.4 */
    assert_true(parsed("0.00000000000000000000000000000001Ei") == 1);
    assert_true(parsed("0.5Ei") == ((i128)1 << 59) * NANO);
}

static void nothing_is_larger_than_the_largest_int64(void **state)
{
    static const char *const texts[] = {
        "9223372036854775808",
        "1e19",
        "1e30",
        "1e999999999",
        "10E",
        "8Ei",
        "9007199254740992Ki",
        "100Ei",
        "9.3E",
        "1e2147483647",
        "0.0001e300",
        "99999999999999999999999999999999999999999999999999999999999999999999999Ki",
        "18446744073709551616Ki", /* 2^64, and 2^62: nothing would be left of them, wrapped */
        "4611686018427387904Ei",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct quantity value = quantity_of(texts[i]);
        assert_true(value.nano == (i128)INT64_MAX * NANO);
        check_i64(quantity_units_up(value), INT64_MAX);
        check_i64(quantity_units_down(value), INT64_MAX);
        check_i64(quantity_milli_up(value), INT64_MAX);
    }
    assert_true(parsed("-1e30") == (i128)-INT64_MAX * NANO);
    assert_true(parsed("-9223372036854775808") == (i128)-INT64_MAX * NANO);
    check_i64(quantity_milli_down(quantity_of("-1e30")), INT64_MIN);
    /* One below the cap is exact. */
    assert_true(parsed("9223372036854775806999999999n") == (i128)INT64_MAX * NANO - 1);
}

static void long_texts_are_read_to_the_end(void **state)
{
    enum { ZEROS = 5000 };
    char text[ZEROS + 8];
    (void)state;
    memset(text, '0', sizeof(text));
    text[1] = '.';
    memcpy(text + ZEROS, "1", sizeof("1"));
    assert_true(parsed(text) == 1);
    memcpy(text + ZEROS, "1Gi", sizeof("1Gi"));
    assert_true(parsed(text) == 1);
    memcpy(text + ZEROS, "1e5002", sizeof("1e5002"));
    assert_true(parsed(text) == 1000 * NANO);
}

/* What apimachinery takes for zero, the whole cluster takes for zero. */
static void a_missing_number_is_zero_where_it_is_for_the_api_server(void **state)
{
    static const char *const texts[] = {"+", "-", ".", "+.", "k", "Ti", ".Ki", "e3", "e-9", "-0"};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        assert_true(parsed(texts[i]) == 0);
    }
}

#define FORM                                                                                       \
    "; write a number and at most one suffix (n u m k M G T P E, Ki Mi Gi Ti Pi Ei) or exponent, " \
    "such as 500m, 4, 1.5Gi or 1e3"
#define BAD_CHARACTER "it has a character that no quantity has (not even a space)"

struct error_row {
    const char *text;
    const char *why; /* between the quoted text and the right form */
};

static void what_is_no_quantity_is_quoted_and_explained(void **state)
{
    static const struct error_row rows[] = {
        {"", "it is empty"},
        {"1e", "\"e\" is neither a suffix nor an exponent"},
        {"1KI", BAD_CHARACTER},
        {"1K", "\"K\" is neither a suffix nor an exponent"},
        {"1ki", "\"ki\" is neither a suffix nor an exponent"},
        {"1Kim", "\"Kim\" is neither a suffix nor an exponent"},
        {"1m5", "\"m5\" is neither a suffix nor an exponent"},
        {"1e+", "\"e+\" is neither a suffix nor an exponent"},
        {"--1", "\"-1\" is neither a suffix nor an exponent"},
        {"1e99999999999999999999", "\"e99999999999999999999\" is neither a suffix nor an exponent"},
        {"0x10", BAD_CHARACTER},
        {" 1", BAD_CHARACTER},
        {"1 ", BAD_CHARACTER},
        {"1 Gi", BAD_CHARACTER},
        {"1.2.3", BAD_CHARACTER},
        {"1_000", BAD_CHARACTER},
        {"NaN", BAD_CHARACTER},
        {"e-20", "it has no number"},
        {"Pi", "it has no number"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct quantity value = {42};
        struct err err;
        char expected[ERR_TEXT_MAX_BYTES];
        struct rc rc = quantity_parse(str_from_c(rows[i].text), &value, &err);
        check_i64(rc.code, RC_INVALID);
        assert_true(value.nano == 42);
        (void)snprintf(expected, sizeof(expected), "\"%s\" is not a quantity: %s" FORM,
                       rows[i].text, rows[i].why);
        assert_string_equal(err.text, expected);
    }
    check_i64(quantity_parse(STR_NONE, &(struct quantity){0}, NULL).code, RC_INVALID);
}

static void a_quoted_text_is_bounded_and_on_one_line(void **state)
{
    char text[300];
    struct quantity value;
    struct err err;
    (void)state;
    memset(text, 'x', sizeof(text));
    text[1] = '\n';
    text[2] = '\x7f';
    check_i64(quantity_parse((struct str){text, sizeof(text)}, &value, &err).code, RC_INVALID);
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(strncmp(err.text, "\"x??xxxx", 8), 0);
    assert_ptr_equal(strstr(err.text, "…\" is not a quantity"),
                     err.text + 1 + QUANTITY_TEXT_MAX_BYTES);
    assert_true(strlen(err.text) < 350);
    check_i64(quantity_parse(STR("1\xffé\x80"), &value, &err).code, RC_INVALID);
    assert_int_equal(strncmp(err.text, "\"1?é?\" is not a quantity", 25), 0);
    /* NUL is a character like others. */
    check_i64(quantity_parse(STR("1\0"), &value, &err).code, RC_INVALID);
}

static void rounding_goes_the_asked_way(void **state)
{
    (void)state;
    check_i64(quantity_units_up(quantity_of("1n")), 1);
    check_i64(quantity_units_down(quantity_of("1n")), 0);
    check_i64(quantity_units_up(quantity_of("1.5")), 2);
    check_i64(quantity_units_down(quantity_of("1.5")), 1);
    check_i64(quantity_units_up(quantity_of("2")), 2);
    check_i64(quantity_units_up(quantity_of("-1.5")), -2);
    check_i64(quantity_units_down(quantity_of("-1.5")), -1);
    check_i64(quantity_milli_up(quantity_of("1u")), 1);
    check_i64(quantity_milli_down(quantity_of("1u")), 0);
    check_i64(quantity_milli_up(quantity_of("1.5")), 1500);
    check_i64(quantity_milli_down(quantity_of("1.9999")), 1999);
    check_i64(quantity_milli_up(quantity_of("9e15")), INT64_C(9000000000000000000));
    check_i64(quantity_milli_up(quantity_of("1e16")), INT64_MAX);
}

static void equal_values_are_equal_in_any_spelling(void **state)
{
    (void)state;
    check_i64(quantity_compare(quantity_of("1000m"), quantity_of("1")), 0);
    check_i64(quantity_compare(quantity_of("1e3"), quantity_of("1k")), 0);
    check_i64(quantity_compare(quantity_of("1.5Gi"), quantity_of("1536Mi")), 0);
    assert_true(quantity_compare(quantity_of("1G"), quantity_of("1Gi")) < 0);
    assert_true(quantity_compare(quantity_of("1u"), quantity_of("1n")) > 0);
    assert_true(quantity_compare(quantity_of("-1"), quantity_of("0")) < 0);
}

static void cpu_is_kept_in_thousandths_and_all_else_whole(void **state)
{
    (void)state;
    assert_true(resource_is_milli(STR("cpu")));
    assert_false(resource_is_milli(STR("memory")));
    assert_false(resource_is_milli(STR("example.com/cpu")));
    check_i64(resource_amount_from_quantity(STR("cpu"), quantity_of("1.0001"), true), 1001);
    check_i64(resource_amount_from_quantity(STR("cpu"), quantity_of("1.0001"), false), 1000);
    check_i64(resource_amount_from_quantity(STR("memory"), quantity_of("100m"), true), 1);
    check_i64(resource_amount_from_quantity(STR("memory"), quantity_of("100m"), false), 0);
    check_i64(resource_amount_from_quantity(STR("example.com/gpu"), quantity_of("8"), true), 8);
}

struct format_row {
    const char *resource;
    int64_t amount;
    const char *text;
};

static void amounts_are_shown_as_a_person_writes_them(void **state)
{
    static const struct format_row rows[] = {
        {"cpu", 1500, "1500m"},
        {"cpu", 2000, "2"},
        {"cpu", 0, "0"},
        {"cpu", 1, "1m"},
        {"cpu", -500, "-500m"},
        {"memory", INT64_C(1073741824), "1Gi"},
        {"memory", INT64_C(1610612736), "1536Mi"},
        {"memory", 1000000000, "1000000000"},
        {"memory", 1024, "1Ki"},
        {"memory", 0, "0"},
        {"memory", INT64_MAX, "9223372036854775807"},
        {"memory", INT64_MIN, "-8Ei"},
        {"ephemeral-storage", INT64_C(5497558138880), "5Ti"},
        {"hugepages-2Mi", 2097152, "2Mi"},
        {"example.com/gpu", 1024, "1024"},
        {"pods", 4, "4"},
    };
    struct arena arena;
    (void)state;
    arena_init(&arena);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        check_str(resource_amount_format(&arena, str_from_c(rows[i].resource), rows[i].amount),
                  rows[i].text);
    }
    arena_deinit(&arena);
}

static void arithmetic_stops_at_the_ends(void **state)
{
    (void)state;
    check_i64(sat_add(1, 2), 3);
    check_i64(sat_add(INT64_MAX, 1), INT64_MAX);
    check_i64(sat_add(INT64_MIN, -1), INT64_MIN);
    check_i64(sat_add(INT64_MAX, INT64_MIN), -1);
    check_i64(sat_sub(5, 7), -2);
    check_i64(sat_sub(INT64_MIN, 1), INT64_MIN);
    check_i64(sat_sub(INT64_MAX, -1), INT64_MAX);
    check_i64(sat_sub(0, INT64_MIN), INT64_MAX);
    check_i64(sat_mul(6, 7), 42);
    check_i64(sat_mul(INT64_C(2147483647), INT64_C(10000000000)), INT64_MAX);
    check_i64(sat_mul(INT64_MAX, -2), INT64_MIN);
    check_i64(sat_mul(-2, INT64_MIN), INT64_MAX);
    check_i64(sat_mul(0, INT64_MIN), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_has_its_exact_value),
        cmocka_unit_test(finer_than_a_billionth_is_rounded_away_from_zero),
        cmocka_unit_test(nothing_is_larger_than_the_largest_int64),
        cmocka_unit_test(long_texts_are_read_to_the_end),
        cmocka_unit_test(a_missing_number_is_zero_where_it_is_for_the_api_server),
        cmocka_unit_test(what_is_no_quantity_is_quoted_and_explained),
        cmocka_unit_test(a_quoted_text_is_bounded_and_on_one_line),
        cmocka_unit_test(rounding_goes_the_asked_way),
        cmocka_unit_test(equal_values_are_equal_in_any_spelling),
        cmocka_unit_test(cpu_is_kept_in_thousandths_and_all_else_whole),
        cmocka_unit_test(amounts_are_shown_as_a_person_writes_them),
        cmocka_unit_test(arithmetic_stops_at_the_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
