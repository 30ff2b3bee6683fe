/* Dates and durations, in the proleptic Gregorian calendar. */
#include "impl.h"

#define SECONDS_PER_DAY 86400

int64_t cel_days_from_civil(int64_t year, int month, int day)
{
    year -= month <= 2 ? 1 : 0;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

void cel_civil_from_days(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * day_of_year + 2) / 153;
    *ret_day = (int)(day_of_year - (153 * shifted + 2) / 5 + 1);
    *ret_month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
    *ret_year = year_of_era + era * 400 + (*ret_month <= 2 ? 1 : 0);
}

/* Exactly `count` digits at *at, which moves on; -1: not there. */
static int take_digits(struct str text, size_t *at, int count)
{
    int value = 0;
    for (int i = 0; i < count; i++) {
        if (*at >= text.len || text.ptr[*at] < '0' || text.ptr[*at] > '9') {
            return -1;
        }
        value = value * 10 + (text.ptr[(*at)++] - '0');
    }
    return value;
}

static bool take_char(struct str text, size_t *at, char c)
{
    if (*at >= text.len || text.ptr[*at] != c) {
        return false;
    }
    (*at)++;
    return true;
}

static int month_days(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && is_leap ? 29 : days[month - 1];
}

static bool take_date(struct str text, size_t *at, int64_t *ret_days)
{
    int year = take_digits(text, at, 4);
    bool sound = take_char(text, at, '-');
    int month = take_digits(text, at, 2);
    sound = sound && take_char(text, at, '-');
    int day = take_digits(text, at, 2);
    if (!sound || year < 0 || month < 1 || month > 12 || day < 1 || day > month_days(year, month)) {
        return false;
    }
    *ret_days = cel_days_from_civil(year, month, day);
    return true;
}

/* What stands behind a '.' or ','; digits beyond the ninth are dropped. */
static bool take_nanos(struct str text, size_t *at, int32_t *ret_nanos)
{
    int32_t unit = 100000000;
    int digit = take_digits(text, at, 1);
    if (digit < 0) {
        return false;
    }
    for (; digit >= 0; digit = take_digits(text, at, 1)) {
        *ret_nanos += digit * unit;
        unit /= 10;
    }
    return true;
}

static bool is_below(int value, int limit)
{
    return value >= 0 && value < limit;
}

/* hh:mm:ss, with a fraction; Go takes a single digit for the hour too. */
static bool take_clock(struct str text, size_t *at, int64_t *ret_seconds, int32_t *ret_nanos)
{
    size_t start = *at;
    int hour = take_digits(text, at, 2);
    if (hour < 0) {
        *at = start;
        hour = take_digits(text, at, 1);
    }
    bool sound = take_char(text, at, ':');
    int minute = take_digits(text, at, 2);
    sound = sound && take_char(text, at, ':');
    int second = take_digits(text, at, 2);
    if (!sound || !is_below(hour, 24) || !is_below(minute, 60) || !is_below(second, 60)) {
        return false;
    }
    *ret_seconds = hour * 3600 + minute * 60 + second;
    *ret_nanos = 0;
    return !(take_char(text, at, '.') || take_char(text, at, ',')) ||
           take_nanos(text, at, ret_nanos);
}

static bool take_offset(struct str text, size_t *at, int32_t *ret_offset_s)
{
    *ret_offset_s = 0;
    if (take_char(text, at, 'Z')) {
        return true;
    }
    bool is_west = take_char(text, at, '-');
    if (!is_west && !take_char(text, at, '+')) {
        return false;
    }
    int hours = take_digits(text, at, 2);
    bool sound = take_char(text, at, ':');
    int minutes = take_digits(text, at, 2);
    if (!sound || hours < 0 || hours > 24 || minutes < 0 || minutes > 60) {
        return false;
    }
    *ret_offset_s = (is_west ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
}

bool cel_timestamp_parse(struct str text, struct cel_timestamp *ret_time)
{
    struct cel_timestamp time = {0};
    size_t at = 0;
    int64_t days = 0;
    int64_t seconds = 0;
    if (!take_date(text, &at, &days) || !take_char(text, &at, 'T') ||
        !take_clock(text, &at, &seconds, &time.nanos) || !take_offset(text, &at, &time.offset_s) ||
        at != text.len) {
        return false;
    }
    time.seconds = days * SECONDS_PER_DAY + seconds - time.offset_s;
    *ret_time = time;
    return time.seconds >= -62135596800 && time.seconds <= 253402300799;
}

/* Billionths of a second in the unit at *at, which moves past it; 0: no unit. */
static uint64_t take_unit(struct str text, size_t *at)
{
    static const struct {
        struct str name;
        uint64_t ns;
    } units[] = {
        {STR_INIT("ns"), 1},           {STR_INIT("us"), 1000},
        {STR_INIT("\xc2\xb5s"), 1000}, {STR_INIT("\xce\xbcs"), 1000},
        {STR_INIT("ms"), 1000000},     {STR_INIT("s"), 1000000000},
        {STR_INIT("m"), 60000000000},  {STR_INIT("h"), 3600000000000},
    };
    size_t start = *at;
    while (*at < text.len && text.ptr[*at] != '.' && (text.ptr[*at] < '0' || text.ptr[*at] > '9')) {
        (*at)++;
    }
    struct str name = str_take(str_skip(text, start), *at - start);
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        if (str_eq(units[i].name, name)) {
            return units[i].ns;
        }
    }
    return 0;
}

/* Digits up to 2^63; *ret_count tells how many; false: too large. */
static bool take_whole(struct str text, size_t *at, uint64_t *ret_value, size_t *ret_count)
{
    size_t start = *at;
    *ret_value = 0;
    for (int digit = take_digits(text, at, 1); digit >= 0; digit = take_digits(text, at, 1)) {
        if (*ret_value > (UINT64_C(1) << 63) / 10) {
            return false;
        }
        *ret_value = *ret_value * 10 + (uint64_t)digit;
    }
    *ret_count = *at - start;
    return *ret_value <= UINT64_C(1) << 63;
}

/* Digits behind the point; what is finer than fits is dropped. */
static size_t take_fraction(struct str text, size_t *at, double *ret_fraction)
{
    size_t start = *at;
    double scale = 1;
    uint64_t value = 0;
    bool is_full = false;
    for (int digit = take_digits(text, at, 1); digit >= 0; digit = take_digits(text, at, 1)) {
        is_full = is_full || value > ((UINT64_C(1) << 63) - 1) / 10;
        if (!is_full) {
            value = value * 10 + (uint64_t)digit;
            scale *= 10;
        }
    }
    *ret_fraction = (double)value / scale;
    return *at - start;
}

/* A number with its unit, at most 2^63 ns. */
static bool take_span(struct str text, size_t *at, uint64_t *ret_ns)
{
    uint64_t whole = 0;
    size_t digits = 0;
    double fraction = 0;
    if (!take_whole(text, at, &whole, &digits)) {
        return false;
    }
    if (take_char(text, at, '.')) {
        digits += take_fraction(text, at, &fraction);
    }
    uint64_t unit = take_unit(text, at);
    if (digits == 0 || unit == 0 || whole > (UINT64_C(1) << 63) / unit) {
        return false;
    }
    *ret_ns = whole * unit + (uint64_t)(fraction * (double)unit);
    return true;
}

bool cel_duration_parse(struct str text, int64_t *ret_ns)
{
    size_t at = 0;
    uint64_t total = 0;
    bool is_negative = take_char(text, &at, '-');
    if (!is_negative) {
        (void)take_char(text, &at, '+');
    }
    if (str_eq_c(str_skip(text, at), "0")) {
        *ret_ns = 0;
        return true;
    }
    if (at >= text.len) {
        return false;
    }
    while (at < text.len) {
        uint64_t span = 0;
        if (!take_span(text, &at, &span) || __builtin_add_overflow(total, span, &total) ||
            total > UINT64_C(1) << 63) {
            return false;
        }
    }
    if (!is_negative && total > INT64_MAX) {
        return false;
    }
    *ret_ns = is_negative ? (int64_t)(0 - total) : (int64_t)total;
    return true;
}

/* "UTC", "" or an offset such as "+01:00". Names of places aren't known here. */
static bool parse_zone(struct str zone, int64_t *ret_offset_s)
{
    *ret_offset_s = 0;
    size_t colon = str_find_char(zone, ':');
    if (colon == zone.len) {
        return zone.len == 0 || str_eq_c(zone, "UTC");
    }
    int64_t hours = 0;
    int64_t minutes = 0;
    if (!str_to_i64(str_take(zone, colon), &hours) ||
        !str_to_i64(str_skip(zone, colon + 1), &minutes) || minutes < -10000 || minutes > 10000 ||
        hours < -10000 || hours > 10000) {
        return false;
    }
    *ret_offset_s = (hours * 60 + (zone.ptr[0] == '-' ? -minutes : minutes)) * 60;
    return true;
}

static int64_t date_part(enum cel_function function, int64_t days)
{
    int64_t year = 0;
    int month = 0;
    int day = 0;
    cel_civil_from_days(days, &year, &month, &day);
    switch ((int)function) {
    case CEL_FN_GET_FULL_YEAR:
        return year;
    case CEL_FN_GET_MONTH:
        return month - 1;
    case CEL_FN_GET_DATE:
        return day;
    case CEL_FN_GET_DAY_OF_MONTH:
        return day - 1;
    case CEL_FN_GET_DAY_OF_YEAR:
        return days - cel_days_from_civil(year, 1, 1);
    default:
        return ((days + 4) % 7 + 7) % 7;
    }
}

static int64_t timestamp_part(enum cel_function function, struct cel_timestamp time,
                              int64_t offset_s)
{
    int64_t local = time.seconds + offset_s;
    int64_t days = local / SECONDS_PER_DAY - (local % SECONDS_PER_DAY < 0 ? 1 : 0);
    int64_t second = local - days * SECONDS_PER_DAY;
    switch ((int)function) {
    case CEL_FN_GET_HOURS:
        return second / 3600;
    case CEL_FN_GET_MINUTES:
        return second / 60 % 60;
    case CEL_FN_GET_SECONDS:
        return second % 60;
    case CEL_FN_GET_MILLISECONDS:
        return time.nanos / 1000000;
    default:
        return date_part(function, days);
    }
}

static int64_t duration_unit(enum cel_function function)
{
    switch ((int)function) {
    case CEL_FN_GET_HOURS:
        return 3600000000000;
    case CEL_FN_GET_MINUTES:
        return 60000000000;
    case CEL_FN_GET_SECONDS:
        return 1000000000;
    case CEL_FN_GET_MILLISECONDS:
        return 1000000;
    default:
        return 0;
    }
}

struct cel_value cel_time_part(struct cel_eval *ev, const struct cel_node *node,
                               const struct cel_value *args, uint32_t count)
{
    int64_t offset_s = 0;
    int64_t unit = duration_unit(node->function);
    if (args[0].kind == CEL_DURATION && unit != 0 && count == 1) {
        return cel_int(args[0].duration_ns / unit);
    }
    if (args[0].kind != CEL_TIMESTAMP || (count == 2 && args[1].kind != CEL_STRING)) {
        return cel_no_overload(ev);
    }
    if (count == 2 && !parse_zone(args[1].text, &offset_s)) {
        return cel_fault(ev, "a time zone is UTC or an offset such as +01:00, not", args[1].text);
    }
    return cel_int(timestamp_part(node->function, args[0].time, offset_s));
}
