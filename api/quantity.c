#include "tallyman/api/quantity.h"

#include <inttypes.h>
#include <string.h>

#include "tallyman/base/limits.h"

#define NANO_PER_UNIT  INT64_C(1000000000)
#define NANO_PER_MILLI INT64_C(1000000)
#define MILLI_PER_UNIT INT64_C(1000)
#define NANO_DIGITS    9
/* The largest amount, 2^63-1 whole units, has this many decimal digits in billionths. */
#define NANO_MAX_DIGITS 28
/* A whole part of more digits than this is above 2^63-1 whatever they are. */
#define UNIT_MAX_DIGITS 19
/* "Ti" alone is read as 0, "Pi" is refused. */
#define NUMBERLESS_BINARY_MAX 40

static const i128 nano_max = (i128)INT64_MAX * NANO_PER_UNIT;

/* The pieces of a quantity's text, as apimachinery's scanner cuts them. */
struct quantity_parts {
    bool is_negative;
    bool has_digits;
    struct str whole;    /* without leading zeros */
    struct str fraction; /* as written */
    struct str suffix;
};

enum suffix_base { SUFFIX_DECIMAL, SUFFIX_BINARY };

struct suffix_scale {
    enum suffix_base base;
    int32_t exponent; /* of 10 or of 2 */
};

struct suffix_row {
    const char *text;
    struct suffix_scale scale;
};

static const struct suffix_row suffix_rows[] = {
    {"", {SUFFIX_DECIMAL, 0}},   {"n", {SUFFIX_DECIMAL, -9}}, {"u", {SUFFIX_DECIMAL, -6}},
    {"m", {SUFFIX_DECIMAL, -3}}, {"k", {SUFFIX_DECIMAL, 3}},  {"M", {SUFFIX_DECIMAL, 6}},
    {"G", {SUFFIX_DECIMAL, 9}},  {"T", {SUFFIX_DECIMAL, 12}}, {"P", {SUFFIX_DECIMAL, 15}},
    {"E", {SUFFIX_DECIMAL, 18}}, {"Ki", {SUFFIX_BINARY, 10}}, {"Mi", {SUFFIX_BINARY, 20}},
    {"Gi", {SUFFIX_BINARY, 30}}, {"Ti", {SUFFIX_BINARY, 40}}, {"Pi", {SUFFIX_BINARY, 50}},
    {"Ei", {SUFFIX_BINARY, 60}},
};

/* -- scanning ---------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_suffix_letter(char c)
{
    return str_find_char(STR("eEinumkKMGTP"), c) < sizeof("eEinumkKMGTP") - 1;
}

static bool is_sign(char c)
{
    return c == '+' || c == '-';
}

static size_t count_digits(struct str text)
{
    size_t count = 0;
    while (count < text.len && is_digit(text.ptr[count])) {
        count++;
    }
    return count;
}

static struct str skip_zeros(struct str digits)
{
    while (digits.len > 0 && digits.ptr[0] == '0') {
        digits = str_skip(digits, 1);
    }
    return digits;
}

/* False: a character that belongs in no quantity. A missing number is 0 here ("k", "."), because
 * the API server takes it so. */
static bool split_parts(struct str text, struct quantity_parts *ret_parts)
{
    struct quantity_parts parts = {.is_negative = false};
    struct str rest = text;
    if (rest.len > 0 && is_sign(rest.ptr[0])) {
        parts.is_negative = rest.ptr[0] == '-';
        rest = str_skip(rest, 1);
    }
    size_t whole_digits = count_digits(rest);
    parts.whole = skip_zeros(str_take(rest, whole_digits));
    rest = str_skip(rest, whole_digits);
    if (rest.len > 0 && rest.ptr[0] == '.') {
        rest = str_skip(rest, 1);
        parts.fraction = str_take(rest, count_digits(rest));
        rest = str_skip(rest, parts.fraction.len);
    }
    parts.has_digits = whole_digits > 0 || parts.fraction.len > 0;
    parts.suffix = rest;

    size_t end = 0;
    while (end < rest.len && is_suffix_letter(rest.ptr[end])) {
        end++;
    }
    if (end < rest.len && is_sign(rest.ptr[end])) {
        end++;
    }
    end += count_digits(str_skip(rest, end));
    if (end != rest.len) {
        return false;
    }
    *ret_parts = parts;
    return true;
}

static bool interpret_suffix(struct str suffix, struct suffix_scale *ret_scale)
{
    for (size_t i = 0; i < ARRAY_COUNT(suffix_rows); i++) {
        if (str_eq_c(suffix, suffix_rows[i].text)) {
            *ret_scale = suffix_rows[i].scale;
            return true;
        }
    }
    int64_t exponent = 0;
    if (suffix.len < 2 || (suffix.ptr[0] != 'e' && suffix.ptr[0] != 'E') ||
        !str_to_i64(str_skip(suffix, 1), &exponent)) {
        return false;
    }
    /* apimachinery keeps the low 32 bits of an exponent, so 1e4294967296 is 1 for every component
     * of the cluster, and has to be 1 here. */
    uint32_t low_bits = (uint32_t)((uint64_t)exponent & UINT32_MAX);
    int64_t wrapped = low_bits > INT32_MAX ? (int64_t)low_bits - UINT32_MAX - 1 : low_bits;
    *ret_scale = (struct suffix_scale){SUFFIX_DECIMAL, (int32_t)wrapped};
    return true;
}

/* -- value ------------------------------------------------------------------------------------- */

/* The digits of the whole part and the fraction in one row, without leading zeros. */
struct digit_row {
    struct str whole;
    struct str fraction;
};

static size_t digit_row_count(const struct digit_row *row)
{
    return row->whole.len + row->fraction.len;
}

static int digit_row_at(const struct digit_row *row, size_t index)
{
    if (index < row->whole.len) {
        return row->whole.ptr[index] - '0';
    }
    return row->fraction.ptr[index - row->whole.len] - '0';
}

/* The magnitude in billionths: digits * 10^exponent, what is finer rounded up. Works on the text,
 * so that neither the length nor the exponent has to be bounded. */
static i128 decimal_nano(const struct quantity_parts *parts, int32_t exponent)
{
    struct digit_row row = {parts->whole, parts->fraction};
    if (row.whole.len == 0) {
        row.fraction = skip_zeros(row.fraction);
    }
    size_t digit_count = digit_row_count(&row);
    if (digit_count == 0) {
        return 0;
    }
    /* How many digits, zeros behind the last one included, are at or above one billionth. */
    int64_t kept = (int64_t)digit_count - (int64_t)parts->fraction.len + exponent + NANO_DIGITS;
    if (kept > NANO_MAX_DIGITS) {
        return nano_max;
    }
    size_t kept_count = kept > 0 ? (size_t)kept : 0;
    i128 nano = 0;
    for (size_t i = 0; i < kept_count; i++) {
        nano = nano * 10 + (i < digit_count ? digit_row_at(&row, i) : 0);
    }
    for (size_t i = kept_count; i < digit_count; i++) {
        if (digit_row_at(&row, i) != 0) {
            nano++;
            break;
        }
    }
    return nano;
}

/* The same for digits * 2^exponent, exponent 10 to 60. */
static i128 binary_nano(const struct quantity_parts *parts, int32_t exponent)
{
    if (parts->whole.len > UNIT_MAX_DIGITS) {
        return nano_max;
    }
    uint64_t whole = 0;
    for (size_t i = 0; i < parts->whole.len; i++) {
        whole = whole * 10 + (uint64_t)(parts->whole.ptr[i] - '0');
    }
    if (whole > (uint64_t)INT64_MAX >> exponent) {
        return nano_max;
    }
    /* Long multiplication of the fraction from its last digit: what is carried over the point is
     * the whole part of fraction * factor, whatever was left behind makes it inexact. */
    i128 factor = (i128)NANO_PER_UNIT << exponent;
    i128 carry = 0;
    bool is_exact = true;
    for (size_t i = parts->fraction.len; i > 0; i--) {
        i128 product = factor * (parts->fraction.ptr[i - 1] - '0') + carry;
        is_exact = is_exact && product % 10 == 0;
        carry = product / 10;
    }
    return (i128)whole * factor + carry + (is_exact ? 0 : 1);
}

/* -- errors ------------------------------------------------------------------------------------ */

/* What of a text may be shown: bounded, UTF-8, and without what would break a line. */
struct shown_text {
    char bytes[QUANTITY_TEXT_MAX_BYTES + sizeof("…")];
};

static const char *show(struct str text, struct shown_text *buffer)
{
    struct str rest = str_cut_utf8(text, QUANTITY_TEXT_MAX_BYTES);
    bool is_cut = rest.len < text.len;
    size_t len = 0;
    while (rest.len > 0) {
        struct str from = rest;
        uint32_t c = 0;
        if (str_take_utf8(&rest, &c) && c >= ' ' && c != 0x7f) {
            memcpy(buffer->bytes + len, from.ptr, from.len - rest.len);
            len += from.len - rest.len;
            continue;
        }
        buffer->bytes[len++] = '?';
        rest = str_skip(from, 1);
    }
    memcpy(buffer->bytes + len, is_cut ? "…" : "", is_cut ? sizeof("…") : 1);
    return buffer->bytes;
}

#define RIGHT_FORM                                                                                 \
    "write a number and at most one suffix (n u m k M G T P E, Ki Mi Gi Ti Pi Ei) or exponent, "   \
    "such as 500m, 4, 1.5Gi or 1e3"

static struct rc not_a_quantity(struct str text, const char *why, struct err *err)
{
    struct shown_text shown;
    return err_set(err, RC_INVALID, "\"%s\" is not a quantity: %s; " RIGHT_FORM, show(text, &shown),
                   why);
}

static struct rc unknown_suffix(struct str text, struct str suffix, struct err *err)
{
    struct shown_text shown;
    struct shown_text shown_suffix;
    return err_set(
        err, RC_INVALID,
        "\"%s\" is not a quantity: \"%s\" is neither a suffix nor an exponent; " RIGHT_FORM,
        show(text, &shown), show(suffix, &shown_suffix));
}

/* Whether a suffix without a number is refused. That it isn't always is an accident of
 * apimachinery's fast path, but one that every other component of a cluster shares. */
static bool needs_number(struct suffix_scale scale)
{
    return scale.base == SUFFIX_BINARY ? scale.exponent > NUMBERLESS_BINARY_MAX
                                       : scale.exponent < -NANO_DIGITS;
}

struct rc quantity_parse(struct str text, struct quantity *ret_value, struct err *err)
{
    struct quantity_parts parts;
    struct suffix_scale scale;
    if (str_is_empty(text)) {
        return not_a_quantity(text, "it is empty", err);
    }
    if (!split_parts(text, &parts)) {
        return not_a_quantity(text, "it has a character that no quantity has (not even a space)",
                              err);
    }
    if (!interpret_suffix(parts.suffix, &scale)) {
        return unknown_suffix(text, parts.suffix, err);
    }
    bool is_binary = scale.base == SUFFIX_BINARY;
    if (!parts.has_digits && needs_number(scale)) {
        return not_a_quantity(text, "it has no number", err);
    }
    i128 nano =
        is_binary ? binary_nano(&parts, scale.exponent) : decimal_nano(&parts, scale.exponent);
    nano = nano > nano_max ? nano_max : nano;
    ret_value->nano = parts.is_negative ? -nano : nano;
    return RC_SUCCESS;
}

/* -- rounding and comparing -------------------------------------------------------------------- */

static int64_t clamp_i64(i128 value)
{
    if (value > INT64_MAX) {
        return INT64_MAX;
    }
    return value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

/* Away from zero, as apimachinery rounds up. */
static i128 divide_up(i128 value, int64_t divisor)
{
    i128 result = value / divisor;
    if (value % divisor == 0) {
        return result;
    }
    return value > 0 ? result + 1 : result - 1;
}

int64_t quantity_units_up(struct quantity q)
{
    return clamp_i64(divide_up(q.nano, NANO_PER_UNIT));
}

int64_t quantity_units_down(struct quantity q)
{
    return clamp_i64(q.nano / NANO_PER_UNIT);
}

int64_t quantity_milli_up(struct quantity q)
{
    return clamp_i64(divide_up(q.nano, NANO_PER_MILLI));
}

int64_t quantity_milli_down(struct quantity q)
{
    return clamp_i64(q.nano / NANO_PER_MILLI);
}

int quantity_compare(struct quantity a, struct quantity b)
{
    return (a.nano > b.nano) - (a.nano < b.nano);
}

/* -- amounts ----------------------------------------------------------------------------------- */

bool resource_is_milli(struct str resource)
{
    return str_eq_c(resource, "cpu");
}

int64_t resource_amount_from_quantity(struct str resource, struct quantity q, bool up)
{
    if (resource_is_milli(resource)) {
        return up ? quantity_milli_up(q) : quantity_milli_down(q);
    }
    return up ? quantity_units_up(q) : quantity_units_down(q);
}

static bool resource_is_bytes(struct str resource)
{
    return str_eq_c(resource, "memory") || str_eq_c(resource, "storage") ||
           str_eq_c(resource, "ephemeral-storage") || str_starts_with(resource, STR("hugepages-"));
}

static struct str format_bytes(struct arena *arena, int64_t amount)
{
    static const char *const suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    size_t step = 0;
    while (amount != 0 && amount % 1024 == 0 && step + 1 < ARRAY_COUNT(suffixes)) {
        amount /= 1024;
        step++;
    }
    return arena_format(arena, "%" PRId64 "%s", amount, suffixes[step]);
}

struct str resource_amount_format(struct arena *arena, struct str resource, int64_t amount)
{
    if (resource_is_bytes(resource)) {
        return format_bytes(arena, amount);
    }
    if (!resource_is_milli(resource)) {
        return arena_format(arena, "%" PRId64, amount);
    }
    if (amount % MILLI_PER_UNIT == 0) {
        return arena_format(arena, "%" PRId64, amount / MILLI_PER_UNIT);
    }
    return arena_format(arena, "%" PRId64 "m", amount);
}

int64_t sat_add(int64_t a, int64_t b)
{
    int64_t sum = 0;
    if (!__builtin_add_overflow(a, b, &sum)) {
        return sum;
    }
    return b > 0 ? INT64_MAX : INT64_MIN;
}

int64_t sat_sub(int64_t a, int64_t b)
{
    int64_t difference = 0;
    if (!__builtin_sub_overflow(a, b, &difference)) {
        return difference;
    }
    return b < 0 ? INT64_MAX : INT64_MIN;
}

int64_t sat_mul(int64_t a, int64_t b)
{
    int64_t product = 0;
    if (!__builtin_mul_overflow(a, b, &product)) {
        return product;
    }
    return (a > 0) == (b > 0) ? INT64_MAX : INT64_MIN;
}
