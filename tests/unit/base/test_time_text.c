#include "support/check.h"
#include "tallyman/base/attr.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/time_text.h"

#define YEAR_9999_END_MS INT64_C(253402300799999)

static void times_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:00.001Z", 1},
        {"2000-02-29T00:00:00Z", INT64_C(951782400000)},
        {"2024-02-29T23:59:59Z", INT64_C(1709251199000)},
        {"2026-11-29T12:00:00Z", INT64_C(1795953600000)},
        {"2026-11-29T12:00:00.5+01:00", INT64_C(1795950000500)},
        {"2026-11-29T12:00:00-08:30", INT64_C(1795984200000)},
        {"2026-11-29T12:00:00.123456789Z", INT64_C(1795953600123)},
        {"2026-11-29T12:00:00.1239999999999999999999999Z", INT64_C(1795953600123)},
        {"2026-11-29T12:00:00-00:00", INT64_C(1795953600000)},
        {"1970-01-01T01:00:00+01:00", 0},
        {"9999-12-31T23:59:59.999Z", YEAR_9999_END_MS},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        int64_t ms = -1;

        if (!time_parse_rfc3339(str_from_c(good[i].text), &ms)) {
            fail_msg("refused: %s", good[i].text);
        }
        check_i64(ms, good[i].ms);
    }
}

static void what_is_no_time_is_refused_and_writes_nothing(void **state)
{
    static const char *const bad[] = {
        "",
        "now",
        "2026-11-29",
        "2026-11-29 12:00:00Z",
        "2026-11-29T12:00:00",
        "2026-11-29T12:00:00z",
        "2026-11-29t12:00:00Z",
        "2026-11-29T12:00Z",
        "2026-11-29T12:00:00.Z",
        "2026-11-29T12:00:00,5Z",
        "2026-11-29T12:00:00.5",
        "2026-11-29T12:00:00.5x+01:00",
        "2026-11-29T12:00:00Z ",
        " 2026-11-29T12:00:00Z",
        "2026-11-29T24:00:00Z",
        "2026-11-29T12:60:00Z",
        "2026-11-29T12:00:60Z",
        "2026-11-29T12:00:00+24:00",
        "2026-11-29T12:00:00+01:60",
        "2026-11-29T12:00:00+0100",
        "2026-11-29T12:00:00+01",
        "2026-11-31T12:00:00Z",
        "2026-02-29T12:00:00Z",
        "2100-02-29T12:00:00Z",
        "2026-00-01T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-01-00T12:00:00Z",
        "2026-1-01T12:00:00Z",
        "20260-01-01T12:00:00Z",
        "-026-01-01T12:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:30:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "0000-01-01T00:00:00Z",
        "2026-11-29T12:00:0\xd9\xa0Z",
    };
    int64_t ms = 42;

    (void)state;
    assert_false(time_parse_rfc3339(STR_NONE, &ms));
    assert_false(time_parse_rfc3339(STR("2026-11-29T12:00:00Z\0"), &ms));
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        if (time_parse_rfc3339(str_from_c(bad[i]), &ms)) {
            fail_msg("taken: \"%s\"", bad[i]);
        }
    }
    check_i64(ms, 42);
}

static void times_are_written(void **state)
{
    char buffer[TIME_TEXT_BYTES];

    (void)state;
    check_str(time_format_rfc3339(0, buffer), "1970-01-01T00:00:00Z");
    check_str(time_format_rfc3339(INT64_C(1795953600999), buffer), "2026-11-29T12:00:00Z");
    check_str(time_format_micro(INT64_C(1795953600042), buffer), "2026-11-29T12:00:00.042000Z");
    check_str(time_format_micro(0, buffer), "1970-01-01T00:00:00.000000Z");
    check_str(time_format_micro(INT64_MAX, buffer), "9999-12-31T23:59:59.999000Z");
    check_str(time_format_rfc3339(INT64_MIN, buffer), "1970-01-01T00:00:00Z");
    check_i64(buffer[20], '\0');
}

/* Every day of four centuries and the end of the range, there and back. */
static void every_day_survives_the_round_trip(void **state)
{
    const int64_t day_ms = INT64_C(86400000);

    (void)state;
    for (int64_t ms = 0; ms <= YEAR_9999_END_MS;
         ms += ms < 160000 * day_ms ? day_ms : 997 * day_ms) {
        char buffer[TIME_TEXT_BYTES];
        int64_t back = -1;

        if (!time_parse_rfc3339(time_format_micro(ms + 86399999, buffer), &back)) {
            fail_msg("refused: %s", buffer);
        }
        check_i64(back, ms + 86399999);
    }
}

static void durations_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"0", 0},
        {"0s", 0},
        {"90s", 90000},
        {"1h30m", 5400000},
        {"1.5h", 5400000},
        {"250ms", 250},
        {".5s", 500},
        {"1.s", 1000},
        {"1h1m1s1ms", 3661001},
        {"1500us", 1},
        {"1500\xc2\xb5s", 1},
        {"1500\xce\xbcs", 1},
        {"999999ns", 0},
        {"0.000277777777777777h", 999},
        {"1.99999999999999999999s", 1999},
        {"876600h", DURATION_MAX_MS},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        int64_t ms = -1;

        if (!duration_parse(str_from_c(good[i].text), &ms)) {
            fail_msg("refused: %s", good[i].text);
        }
        check_i64(ms, good[i].ms);
    }
}

static void what_is_no_duration_is_refused_and_writes_nothing(void **state)
{
    static const char *const bad[] = {
        "",
        "00",
        "90",
        "s",
        ".s",
        ".",
        "1x",
        "1d",
        "1h30",
        "1m1h",
        "1m1m",
        "5s1h",
        "500us500us",
        "1h 30m",
        " 1h",
        "1h ",
        "-1h",
        "+1h",
        "1h-30m",
        "1..5h",
        "1,5h",
        "1e3s",
        "1S",
        "\xc2\xb5s",
        "876600h1ms",
        "2562048h",
        "9223372036.9s",
        "9223372036854775807s",
        "9223372036854775808ns",
        "99999999999999999999999999h",
        "876599h876599h876599h876599h",
    };
    int64_t ms = 42;

    (void)state;
    assert_false(duration_parse(STR_NONE, &ms));
    assert_false(duration_parse(STR("1h\0"), &ms));
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        if (duration_parse(str_from_c(bad[i]), &ms)) {
            fail_msg("taken: \"%s\"", bad[i]);
        }
    }
    check_i64(ms, 42);
}

static void ages_are_written_as_kubernetes_does(void **state)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } ages[] = {
        {-5, "0s"},         {0, "0s"},         {93, "93s"},        {119, "119s"},
        {120, "2m"},        {320, "5m20s"},    {599, "9m59s"},     {600, "10m"},
        {660, "11m"},       {10799, "179m"},   {10800, "3h"},      {11520, "3h12m"},
        {28799, "7h59m"},   {28800, "8h"},     {172799, "47h"},    {172800, "2d"},
        {176400, "2d1h"},   {259200, "3d"},    {691199, "7d23h"},  {691200, "8d"},
        {63071999, "729d"}, {63072000, "2y"},  {63158400, "2y1d"}, {252287999, "7y364d"},
        {252288000, "8y"},  {283824000, "9y"},
    };
    char buffer[TIME_TEXT_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ages); i++) {
        check_str(duration_format_short(ages[i].seconds * 1000, buffer), ages[i].text);
    }
    check_str(duration_format_short(93999, buffer), "93s");
    check_str(duration_format_short(INT64_MIN, buffer), "0s");
    check_str(duration_format_short(INT64_MAX, buffer), "292471208y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_read),
        cmocka_unit_test(what_is_no_time_is_refused_and_writes_nothing),
        cmocka_unit_test(times_are_written),
        cmocka_unit_test(every_day_survives_the_round_trip),
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(what_is_no_duration_is_refused_and_writes_nothing),
        cmocka_unit_test(ages_are_written_as_kubernetes_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
