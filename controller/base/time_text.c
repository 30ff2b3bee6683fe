#include "tallyman/base/time_text.h"

#include <assert.h>
#include <stdio.h>

#include "tallyman/base/attr.h"
#include "tallyman/base/limits.h"

#define MS_PER_SECOND  INT64_C(1000)
#define MS_PER_MINUTE  (60 * MS_PER_SECOND)
#define MS_PER_HOUR    (60 * MS_PER_MINUTE)
#define MS_PER_DAY     (24 * MS_PER_HOUR)
#define TIME_MAX_MS    INT64_C(253402300799999) /* the last millisecond of the year 9999 */
#define DAYS_TO_1970   719468                   /* from 0000-03-01 */
#define DAYS_PER_ERA   146097                   /* 400 years */
#define YEAR_FIRST     1970
#define HOURS_PER_YEAR INT64_C(8760) /* as Kubernetes counts them: 365 days */
#define NS_PER_MS      INT64_C(1000000)

struct civil {
    int64_t year;
    int64_t month; /* 1 to 12 */
    int64_t day;   /* 1 to 31 */
};

/* Years counted from March have the leap day at their end, which makes both directions a matter of
 * divisions; 153 days are the five months from March to July, and the pattern repeats. */
static int64_t days_from_civil(struct civil date)
{
    int64_t year = date.month <= 2 ? date.year - 1 : date.year;
    int64_t month = (date.month + 9) % 12;
    int64_t era = year / 400;
    int64_t year_of_era = year % 400;
    int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
}

static struct civil civil_from_days(int64_t days)
{
    int64_t shifted = days + DAYS_TO_1970;
    int64_t era = shifted / DAYS_PER_ERA;
    int64_t day_of_era = shifted % DAYS_PER_ERA;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    int64_t year = era * 400 + year_of_era + (month >= 10 ? 1 : 0);

    return (struct civil){
        .year = year,
        .month = month >= 10 ? month - 9 : month + 3,
        .day = day_of_year - (153 * month + 2) / 5 + 1,
    };
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const int64_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

/* Takes exactly `count` digits off the front; false if they aren't there or are out of range. */
static bool take_number(struct str *rest, size_t count, int64_t max, int64_t *ret_value)
{
    int64_t value = 0;

    if (rest->len < count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        char c = rest->ptr[i];

        if (c < '0' || c > '9') {
            return false;
        }
        value = value * 10 + (c - '0');
    }
    if (value > max) {
        return false;
    }
    *rest = str_skip(*rest, count);
    *ret_value = value;
    return true;
}

static bool take_char(struct str *rest, char c)
{
    if (rest->len == 0 || rest->ptr[0] != c) {
        return false;
    }
    *rest = str_skip(*rest, 1);
    return true;
}

static bool take_date(struct str *rest, int64_t *ret_ms)
{
    struct civil date;

    if (!take_number(rest, 4, 9999, &date.year) || !take_char(rest, '-') ||
        !take_number(rest, 2, 12, &date.month) || !take_char(rest, '-') ||
        !take_number(rest, 2, 31, &date.day)) {
        return false;
    }
    if (date.year < YEAR_FIRST || date.month < 1 || date.day < 1 ||
        date.day > days_in_month(date.year, date.month)) {
        return false;
    }
    *ret_ms = days_from_civil(date) * MS_PER_DAY;
    return true;
}

/* ".5" and the like; nothing is fine too. Digits past the third only have to be digits. */
static bool take_fraction(struct str *rest, int64_t *ret_ms)
{
    int64_t digit;
    int64_t weight = 100;
    int64_t ms = 0;

    if (!take_char(rest, '.')) {
        *ret_ms = 0;
        return true;
    }
    if (!take_number(rest, 1, 9, &digit)) {
        return false;
    }
    do {
        ms += digit * weight;
        weight /= 10;
    } while (take_number(rest, 1, 9, &digit));
    *ret_ms = ms;
    return true;
}

static bool take_clock(struct str *rest, int64_t *ret_ms)
{
    int64_t hour;
    int64_t minute;
    int64_t second;
    int64_t fraction_ms;

    if (!take_number(rest, 2, 23, &hour) || !take_char(rest, ':') ||
        !take_number(rest, 2, 59, &minute) || !take_char(rest, ':') ||
        !take_number(rest, 2, 59, &second) || !take_fraction(rest, &fraction_ms)) {
        return false;
    }
    *ret_ms = hour * MS_PER_HOUR + minute * MS_PER_MINUTE + second * MS_PER_SECOND + fraction_ms;
    return true;
}

static bool take_offset(struct str *rest, int64_t *ret_ms)
{
    int64_t hour;
    int64_t minute;

    if (take_char(rest, 'Z')) {
        *ret_ms = 0;
        return true;
    }
    bool is_west = take_char(rest, '-');

    if ((!is_west && !take_char(rest, '+')) || !take_number(rest, 2, 23, &hour) ||
        !take_char(rest, ':') || !take_number(rest, 2, 59, &minute)) {
        return false;
    }
    int64_t ms = hour * MS_PER_HOUR + minute * MS_PER_MINUTE;

    *ret_ms = is_west ? -ms : ms;
    return true;
}

bool time_parse_rfc3339(struct str text, int64_t *ret_ms)
{
    struct str rest = text;
    int64_t date_ms;
    int64_t clock_ms;
    int64_t offset_ms;

    if (!take_date(&rest, &date_ms) || !take_char(&rest, 'T') || !take_clock(&rest, &clock_ms) ||
        !take_offset(&rest, &offset_ms) || rest.len != 0) {
        return false;
    }
    int64_t ms = date_ms + clock_ms - offset_ms;

    if (ms < 0 || ms > TIME_MAX_MS) {
        return false;
    }
    *ret_ms = ms;
    return true;
}

static struct str time_format(int64_t ms, bool with_micros, char buffer[TIME_TEXT_BYTES])
{
    int64_t clamped = ms < 0 ? 0 : ms > TIME_MAX_MS ? TIME_MAX_MS : ms;
    struct civil date = civil_from_days(clamped / MS_PER_DAY);
    int64_t clock_ms = clamped % MS_PER_DAY;
    char fraction[12] = "";

    if (with_micros) {
        (void)snprintf(fraction, sizeof(fraction), ".%03d000", (int)(clock_ms % MS_PER_SECOND));
    }
    int length = snprintf(buffer, TIME_TEXT_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d%sZ",
                          (int)date.year, (int)date.month, (int)date.day,
                          (int)(clock_ms / MS_PER_HOUR), (int)(clock_ms / MS_PER_MINUTE % 60),
                          (int)(clock_ms / MS_PER_SECOND % 60), fraction);

    assert(length > 0 && length < TIME_TEXT_BYTES);
    return (struct str){buffer, (size_t)length};
}

struct str time_format_rfc3339(int64_t ms, char buffer[TIME_TEXT_BYTES])
{
    return time_format(ms, false, buffer);
}

struct str time_format_micro(int64_t ms, char buffer[TIME_TEXT_BYTES])
{
    return time_format(ms, true, buffer);
}

struct duration_unit {
    struct str name;
    int64_t ns;
};

/* "ms" before "m". The two micro signs are U+00B5 and U+03BC: Go takes either. */
static const struct duration_unit duration_units[] = {
    {STR_INIT("ns"), 1},
    {STR_INIT("us"), 1000},
    {STR_INIT("\xc2\xb5s"), 1000},
    {STR_INIT("\xce\xbcs"), 1000},
    {STR_INIT("ms"), NS_PER_MS},
    {STR_INIT("s"), MS_PER_SECOND *NS_PER_MS},
    {STR_INIT("m"), MS_PER_MINUTE *NS_PER_MS},
    {STR_INIT("h"), MS_PER_HOUR *NS_PER_MS},
};

static bool take_unit(struct str *rest, int64_t *ret_ns)
{
    for (size_t i = 0; i < ARRAY_COUNT(duration_units); i++) {
        if (str_starts_with(*rest, duration_units[i].name)) {
            *rest = str_skip(*rest, duration_units[i].name.len);
            *ret_ns = duration_units[i].ns;
            return true;
        }
    }
    return false;
}

static struct str take_digits(struct str *rest)
{
    size_t count = 0;

    while (count < rest->len && rest->ptr[count] >= '0' && rest->ptr[count] <= '9') {
        count++;
    }
    struct str digits = str_take(*rest, count);

    *rest = str_skip(*rest, count);
    return digits;
}

/* One part, "1.5h", of a unit smaller than that. In nanoseconds, where 100 years still fit into an
 * int64_t. */
static bool take_duration_part(struct str *rest, int64_t *above_ns, int64_t *ret_ns)
{
    struct str whole = take_digits(rest);
    struct str fraction = take_char(rest, '.') ? take_digits(rest) : STR_NONE;
    int64_t unit_ns;
    int64_t count = 0;
    int64_t ns;

    if ((whole.len == 0 && fraction.len == 0) || !take_unit(rest, &unit_ns) ||
        unit_ns >= *above_ns) {
        return false;
    }
    *above_ns = unit_ns;
    if ((whole.len > 0 && !str_to_i64(whole, &count)) ||
        __builtin_mul_overflow(count, unit_ns, &ns)) {
        return false;
    }
    int64_t weight_ns = unit_ns;

    for (size_t i = 0; i < fraction.len && weight_ns > 0; i++) {
        weight_ns /= 10;
        if (__builtin_add_overflow(ns, (fraction.ptr[i] - '0') * weight_ns, &ns)) {
            return false;
        }
    }
    *ret_ns = ns;
    return true;
}

bool duration_parse(struct str text, int64_t *ret_ms)
{
    struct str rest = text;
    int64_t total_ns = 0;
    int64_t above_ns = INT64_MAX;

    if (str_eq(text, STR("0"))) {
        *ret_ms = 0;
        return true;
    }
    if (text.len == 0) {
        return false;
    }
    while (rest.len > 0) {
        int64_t part_ns;

        if (!take_duration_part(&rest, &above_ns, &part_ns) ||
            __builtin_add_overflow(total_ns, part_ns, &total_ns)) {
            return false;
        }
    }
    if (total_ns / NS_PER_MS > DURATION_MAX_MS) {
        return false;
    }
    *ret_ms = total_ns / NS_PER_MS;
    return true;
}

/* One row of the scale on which Kubernetes prints ages (k8s.io/apimachinery, HumanDuration): below
 * the bound, so many of the large unit, and the rest in the small one if there is one. */
struct age_step {
    int64_t below_ms;
    int64_t unit_ms;
    int64_t rest_ms; /* 0: the rest isn't shown */
    char unit;
    char rest_unit;
};

#define MS_PER_YEAR (HOURS_PER_YEAR * MS_PER_HOUR)

static const struct age_step age_steps[] = {
    {2 * MS_PER_MINUTE, MS_PER_SECOND, 0, 's', 0},
    {10 * MS_PER_MINUTE, MS_PER_MINUTE, MS_PER_SECOND, 'm', 's'},
    {3 * MS_PER_HOUR, MS_PER_MINUTE, 0, 'm', 0},
    {8 * MS_PER_HOUR, MS_PER_HOUR, MS_PER_MINUTE, 'h', 'm'},
    {48 * MS_PER_HOUR, MS_PER_HOUR, 0, 'h', 0},
    {8 * MS_PER_DAY, MS_PER_DAY, MS_PER_HOUR, 'd', 'h'},
    {2 * MS_PER_YEAR, MS_PER_DAY, 0, 'd', 0},
    {8 * MS_PER_YEAR, MS_PER_YEAR, MS_PER_DAY, 'y', 'd'},
    {INT64_MAX, MS_PER_YEAR, 0, 'y', 0},
};

struct str duration_format_short(int64_t ms, char buffer[TIME_TEXT_BYTES])
{
    const struct age_step *step = age_steps;
    int64_t age_ms = ms < 0 ? 0 : ms;

    while (age_ms >= step->below_ms && step->below_ms != INT64_MAX) {
        step++;
    }
    long long count = age_ms / step->unit_ms;
    long long rest = step->rest_ms == 0 ? 0 : age_ms % step->unit_ms / step->rest_ms;
    int length;

    if (rest == 0) {
        length = snprintf(buffer, TIME_TEXT_BYTES, "%lld%c", count, step->unit);
    } else {
        length = snprintf(buffer, TIME_TEXT_BYTES, "%lld%c%lld%c", count, step->unit, rest,
                          step->rest_unit);
    }
    assert(length > 0 && length < TIME_TEXT_BYTES);
    return (struct str){buffer, (size_t)length};
}
