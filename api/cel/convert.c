/* int(), string() and the rest. Source: cel-go common/types, each kind's ConvertToType(). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "tallyman/base/limits.h"
#include "utf8.h"

#define NUMBER_TEXT_MAX 400

static struct cel_value failed(struct cel_eval *ev, const char *wanted)
{
    return cel_fault(ev, "this can't be turned into a", str_from_c(wanted));
}

static struct cel_value overflow(struct cel_eval *ev)
{
    return cel_fault(ev, "overflow: the number doesn't fit", STR_NONE);
}

struct cel_value cel_to_dyn(UNUSED struct cel_eval *ev, UNUSED const struct cel_node *node,
                            const struct cel_value *args, UNUSED uint32_t count)
{
    return args[0];
}

struct cel_value cel_to_type(UNUSED struct cel_eval *ev, UNUSED const struct cel_node *node,
                             const struct cel_value *args, UNUSED uint32_t count)
{
    return (struct cel_value){.kind = CEL_TYPE, .text = cel_kind_name(args[0].kind)};
}

struct cel_value cel_to_bool(struct cel_eval *ev, UNUSED const struct cel_node *node,
                             const struct cel_value *args, UNUSED uint32_t count)
{
    static const char *const words[] = {"0", "f", "F", "false", "FALSE", "False",
                                        "1", "t", "T", "true",  "TRUE",  "True"};
    if (args[0].kind == CEL_BOOL) {
        return args[0];
    }
    if (args[0].kind != CEL_STRING) {
        return cel_no_overload(ev);
    }
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (str_eq_c(args[0].text, words[i])) {
            return cel_bool(i >= ARRAY_COUNT(words) / 2);
        }
    }
    return failed(ev, "bool");
}

struct cel_value cel_to_bytes(struct cel_eval *ev, UNUSED const struct cel_node *node,
                              const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_STRING && args[0].kind != CEL_BYTES) {
        return cel_no_overload(ev);
    }
    return cel_bytes(args[0].text);
}

static size_t skip_digits(struct str text, size_t at)
{
    while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9') {
        at++;
    }
    return at;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool is_word(struct str text, const char *word)
{
    for (size_t i = 0; i < text.len; i++) {
        if (lower(text.ptr[i]) != word[i]) {
            return false;
        }
    }
    return text.len == strlen(word);
}

static size_t skip_sign(struct str text, size_t at)
{
    return at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+') ? at + 1 : at;
}

/* A decimal number as strconv.ParseFloat takes it, sign included. */
static bool is_decimal(struct str text)
{
    size_t start = skip_sign(text, 0);
    size_t at = skip_digits(text, start);
    size_t digits = at - start;
    if (at < text.len && text.ptr[at] == '.') {
        start = ++at;
        at = skip_digits(text, at);
        digits += at - start;
    }
    if (digits > 0 && at < text.len && lower(text.ptr[at]) == 'e') {
        start = skip_sign(text, at + 1);
        at = skip_digits(text, start);
        digits = at - start;
    }
    return digits > 0 && at == text.len;
}

/* 0x1p-2; strtod() sees to the rest. */
static bool is_hexadecimal(struct str word)
{
    return word.len > 2 && word.ptr[0] == '0' && lower(word.ptr[1]) == 'x' &&
           (str_find_char(word, 'p') < word.len || str_find_char(word, 'P') < word.len);
}

/* Takes out underscores, each of which must stand between two digits; false: one doesn't. */
static bool drop_underscores(struct str text, char *copy, size_t copy_bytes)
{
    size_t length = 0;
    if (text.len >= copy_bytes) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        bool is_between = i > 0 && i + 1 < text.len && skip_digits(text, i - 1) >= i &&
                          skip_digits(text, i + 1) > i + 1;
        if (text.ptr[i] == '_' && !is_between) {
            return false;
        }
        if (text.ptr[i] != '_') {
            copy[length++] = text.ptr[i];
        }
    }
    copy[length] = '\0';
    return true;
}

static bool parse_double(struct str text, double *ret_value)
{
    char copy[NUMBER_TEXT_MAX];
    char *end = copy;
    if (!drop_underscores(text, copy, sizeof(copy))) {
        return false;
    }
    text = str_from_c(copy);
    struct str word = str_skip(text, skip_sign(text, 0));
    if (is_word(word, "inf") || is_word(word, "infinity")) {
        *ret_value = text.ptr[0] == '-' ? -INFINITY : INFINITY;
        return true;
    }
    if (is_word(text, "nan")) {
        *ret_value = (double)NAN;
        return true;
    }
    if (!is_decimal(text) && !is_hexadecimal(word)) {
        return false;
    }
    *ret_value = strtod(copy, &end);
    return *end == '\0' && !__builtin_isinf(*ret_value);
}

struct cel_value cel_to_double(struct cel_eval *ev, UNUSED const struct cel_node *node,
                               const struct cel_value *args, UNUSED uint32_t count)
{
    double value = 0;
    switch ((int)args[0].kind) {
    case CEL_DOUBLE:
        return args[0];
    case CEL_INT:
        return cel_double((double)args[0].integer);
    case CEL_UINT:
        return cel_double((double)args[0].uinteger);
    case CEL_STRING:
        return parse_double(args[0].text, &value) ? cel_double(value) : failed(ev, "double");
    default:
        return cel_no_overload(ev);
    }
}

struct cel_value cel_to_int(struct cel_eval *ev, UNUSED const struct cel_node *node,
                            const struct cel_value *args, UNUSED uint32_t count)
{
    int64_t value = 0;
    switch ((int)args[0].kind) {
    case CEL_INT:
        return args[0];
    case CEL_UINT:
        return args[0].uinteger > INT64_MAX ? overflow(ev) : cel_int((int64_t)args[0].uinteger);
    case CEL_DOUBLE:
        return args[0].real > -0x1p63 && args[0].real < 0x1p63 ? cel_int((int64_t)args[0].real)
                                                               : overflow(ev);
    case CEL_DURATION:
        return cel_int(args[0].duration_ns);
    case CEL_TIMESTAMP:
        return cel_int(args[0].time.seconds);
    case CEL_STRING:
        return str_to_i64(args[0].text, &value) ? cel_int(value) : failed(ev, "int");
    default:
        return cel_no_overload(ev);
    }
}

static bool parse_uint(struct str text, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.ptr[i] - '0'), &value)) {
            return false;
        }
    }
    *ret_value = value;
    return text.len > 0;
}

struct cel_value cel_to_uint(struct cel_eval *ev, UNUSED const struct cel_node *node,
                             const struct cel_value *args, UNUSED uint32_t count)
{
    uint64_t value = 0;
    switch ((int)args[0].kind) {
    case CEL_UINT:
        return args[0];
    case CEL_INT:
        return args[0].integer < 0 ? overflow(ev) : cel_uint((uint64_t)args[0].integer);
    case CEL_DOUBLE:
        return args[0].real >= 0 && args[0].real < 0x1p64 ? cel_uint((uint64_t)args[0].real)
                                                          : overflow(ev);
    case CEL_STRING:
        return parse_uint(args[0].text, &value) ? cel_uint(value) : failed(ev, "uint");
    default:
        return cel_no_overload(ev);
    }
}

/* The fewest significant digits that read back as the same number. */
static int shortest_digits(double value)
{
    char text[NUMBER_TEXT_MAX];
    for (int digits = 1; digits < 17; digits++) {
        (void)snprintf(text, sizeof(text), "%.*e", digits - 1, value);
        if (strtod(text, NULL) == value) {
            return digits;
        }
    }
    return 17;
}

static int decimal_exponent(double value, int digits)
{
    char text[NUMBER_TEXT_MAX];
    (void)snprintf(text, sizeof(text), "%.*e", digits - 1, value);
    return atoi(strchr(text, 'e') + 1);
}

/* The shortest form: *verb becomes 'e' or 'f'; gives the precision. */
static int shortest_precision(double value, char *verb)
{
    int digits = shortest_digits(value);
    int exponent = decimal_exponent(value, digits);
    bool is_scientific = *verb == 'e' || (*verb == 'g' && (exponent < -4 || exponent >= 6));
    int precision = is_scientific ? digits - 1 : digits - 1 - exponent;
    *verb = is_scientific ? 'e' : 'f';
    return precision < 0 ? 0 : precision;
}

struct str cel_double_text(struct cel_eval *ev, double value, char verb, int precision)
{
    char text[NUMBER_TEXT_MAX + CEL_FORMAT_PRECISION_MAX];
    if (__builtin_isnan(value)) {
        return STR("NaN");
    }
    if (__builtin_isinf(value)) {
        return value > 0 ? STR("+Inf") : STR("-Inf");
    }
    precision = precision < 0 ? shortest_precision(value, &verb) : precision;
    (void)snprintf(text, sizeof(text), verb == 'e' ? "%.*e" : "%.*f", precision, value);
    struct cel_text copy = {.ev = ev};
    cel_text_add(&copy, str_from_c(text));
    return cel_text_str(&copy);
}

static struct str format_time(struct cel_eval *ev, struct cel_timestamp time)
{
    char text[NUMBER_TEXT_MAX];
    int64_t local = time.seconds + time.offset_s;
    int64_t days = local / 86400 - (local % 86400 < 0 ? 1 : 0);
    int second = (int)(local - days * 86400);
    int64_t year = 0;
    int month = 0;
    int day = 0;
    cel_civil_from_days(days, &year, &month, &day);
    int n = snprintf(text, sizeof(text), "%04lld-%02d-%02dT%02d:%02d:%02d", (long long)year, month,
                     day, second / 3600, second / 60 % 60, second % 60);
    if (time.nanos != 0) {
        n += snprintf(text + n, sizeof(text) - (size_t)n, ".%09d", time.nanos);
        while (text[n - 1] == '0') {
            n--;
        }
    }
    int minutes = abs(time.offset_s) / 60;
    if (time.offset_s == 0) {
        n += snprintf(text + n, sizeof(text) - (size_t)n, "Z");
    } else {
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%c%02d:%02d",
                      time.offset_s < 0 ? '-' : '+', minutes / 60, minutes % 60);
    }
    struct cel_text copy = {.ev = ev};
    cel_text_add(&copy, (struct str){text, (size_t)n});
    return cel_text_str(&copy);
}

static struct str format_number(struct cel_eval *ev, struct cel_value value)
{
    char text[NUMBER_TEXT_MAX];
    if (value.kind == CEL_INT) {
        (void)snprintf(text, sizeof(text), "%lld", (long long)value.integer);
    } else {
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value.uinteger);
    }
    struct cel_text copy = {.ev = ev};
    cel_text_add(&copy, str_from_c(text));
    return cel_text_str(&copy);
}

static struct str format_duration(struct cel_eval *ev, int64_t ns)
{
    double seconds = (double)(ns / 1000000000) + (double)(ns % 1000000000) / 1e9;
    struct cel_text text = {.ev = ev};
    cel_text_add(&text, cel_double_text(ev, seconds, 'f', -1));
    cel_text_add(&text, STR("s"));
    return cel_text_str(&text);
}

bool cel_text_of(struct cel_eval *ev, struct cel_value value, struct str *ret_text)
{
    switch ((int)value.kind) {
    case CEL_BOOL:
        *ret_text = value.boolean ? STR("true") : STR("false");
        return true;
    case CEL_INT:
    case CEL_UINT:
        *ret_text = format_number(ev, value);
        return true;
    case CEL_DOUBLE:
        *ret_text = cel_double_text(ev, value.real, 'g', -1);
        return true;
    case CEL_STRING:
        *ret_text = value.text;
        return true;
    case CEL_BYTES:
        *ret_text = value.text;
        return utf8_is_sound(value.text);
    case CEL_DURATION:
        *ret_text = format_duration(ev, value.duration_ns);
        return true;
    case CEL_TIMESTAMP:
        *ret_text = format_time(ev, value.time);
        return true;
    default:
        return false;
    }
}

struct cel_value cel_to_string(struct cel_eval *ev, UNUSED const struct cel_node *node,
                               const struct cel_value *args, UNUSED uint32_t count)
{
    struct str text;
    if (args[0].kind == CEL_BYTES && !utf8_is_sound(args[0].text)) {
        return cel_fault(ev, "these bytes are no UTF-8", STR_NONE);
    }
    return cel_text_of(ev, args[0], &text) ? cel_string(text) : cel_no_overload(ev);
}

struct cel_value cel_to_duration(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                 const struct cel_value *args, UNUSED uint32_t count)
{
    int64_t ns = 0;
    if (args[0].kind == CEL_DURATION) {
        return args[0];
    }
    if (args[0].kind != CEL_STRING) {
        return cel_no_overload(ev);
    }
    return cel_duration_parse(args[0].text, &ns) ? cel_duration(ns) : failed(ev, "duration");
}

struct cel_value cel_to_timestamp(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                  const struct cel_value *args, UNUSED uint32_t count)
{
    struct cel_value value = {.kind = CEL_TIMESTAMP};
    if (args[0].kind == CEL_TIMESTAMP) {
        return args[0];
    }
    if (args[0].kind == CEL_INT) {
        value.time = (struct cel_timestamp){.seconds = args[0].integer};
        bool fits = args[0].integer >= -62135596800 && args[0].integer <= 253402300799;
        return fits ? value : overflow(ev);
    }
    if (args[0].kind != CEL_STRING) {
        return cel_no_overload(ev);
    }
    return cel_timestamp_parse(args[0].text, &value.time) ? value : failed(ev, "timestamp");
}
