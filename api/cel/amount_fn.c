/* Quantities and versions. Source: k8s.io/apiserver/pkg/cel/library/quantity.go, semverlib.go;
 * k8s.io/apimachinery/pkg/api/resource/quantity.go for how a number is kept. */
#include <math.h>
#include <string.h>

#include "impl.h"
#include "semver.h"

#define NANO_SCALE     (-9)
#define INT_DIGITS     18
#define BINARY_DIGITS  14
#define NANOS_PER_UNIT 1000000000

struct cel_value cel_quantity(struct cel_eval *ev, UNUSED const struct cel_node *node,
                              const struct cel_value *args, UNUSED uint32_t count)
{
    struct quantity amount;
    if (args[0].kind != CEL_STRING) {
        return cel_no_overload(ev);
    }
    if (rc_failed(quantity_parse(args[0].text, &amount, NULL))) {
        return cel_fault(ev, "this is no quantity:", args[0].text);
    }
    struct cel_quantity *quantity = cel_alloc(ev, 1, sizeof(*quantity));
    if (quantity == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    quantity->amount = amount;
    quantity->text = args[0].text;
    return (struct cel_value){.kind = CEL_QUANTITY, .quantity = quantity};
}

struct cel_value cel_is_quantity(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                 const struct cel_value *args, UNUSED uint32_t count)
{
    struct quantity amount;
    if (args[0].kind != CEL_STRING) {
        return cel_no_overload(ev);
    }
    return cel_bool(!rc_failed(quantity_parse(args[0].text, &amount, NULL)));
}

static size_t skip_digits(struct str text, size_t at)
{
    while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9') {
        at++;
    }
    return at;
}

/* The power of 1000 or 1024 of a suffix, times 3 or 10; exponents as they are. */
static int32_t suffix_exponent(struct str suffix, bool *ret_is_binary)
{
    static const char letters[] = "KMGTPE";
    static const char decimals[] = "num\0kMGTPE";
    int64_t exponent = 0;
    *ret_is_binary = suffix.len == 2 && suffix.ptr[1] == 'i';
    if (suffix.len == 0) {
        return 0;
    }
    if (*ret_is_binary) {
        return (int32_t)(10 * (strchr(letters, suffix.ptr[0]) - letters + 1));
    }
    if (suffix.len == 1) {
        const char *at = memchr(decimals, suffix.ptr[0], sizeof(decimals) - 1);
        return at == NULL ? 0 : (int32_t)(3 * (at - decimals - 3));
    }
    return str_to_i64(str_skip(suffix, 1), &exponent) ? (int32_t)exponent : 0;
}

struct digits {
    int32_t whole;
    int32_t fraction;
    struct str suffix;
};

/* The parts of a sound quantity; zeros in front don't count. */
static struct digits split_digits(struct str text)
{
    struct digits digits = {.whole = 1};
    bool is_signed = text.len > 0 && (text.ptr[0] == '-' || text.ptr[0] == '+');
    size_t start = is_signed ? 1 : 0;
    while (start < text.len && text.ptr[start] == '0') {
        start++;
    }
    size_t end = skip_digits(text, start);
    digits.whole = end == start ? 1 : (int32_t)(end - start);
    if (end < text.len && text.ptr[end] == '.') {
        size_t point = end;
        end = skip_digits(text, end + 1);
        digits.fraction = (int32_t)(end - point - 1);
    }
    digits.suffix = str_skip(text, end);
    return digits;
}

/* What the amount is in units of 10^scale; a scale is -9 at least. */
static i128 unscaled(const struct cel_quantity *q)
{
    i128 value = q->amount.nano;
    for (int32_t i = q->scale; i > NANO_SCALE; i--) {
        value /= 10;
    }
    return value;
}

/* Fills in value, scale and is_decimal from the text, which is sound. */
static void shape(struct cel_quantity *q)
{
    bool is_binary = false;
    if (q->is_shaped) {
        return;
    }
    struct digits digits = split_digits(q->text);
    int32_t exponent = suffix_exponent(digits.suffix, &is_binary);
    bool is_short = digits.whole + digits.fraction <= INT_DIGITS;
    q->scale = exponent - digits.fraction;
    if (is_binary) {
        q->scale = -digits.fraction;
        is_short = digits.fraction == 0 && digits.whole + exponent * 3 / 10 <= BINARY_DIGITS;
    }
    q->is_shaped = true;
    q->is_decimal = !is_short || q->scale < NANO_SCALE;
    q->scale = q->scale < NANO_SCALE ? NANO_SCALE : q->scale;
    q->value = (int64_t)unscaled(q);
}

static bool as_whole(const struct cel_quantity *q, int64_t *ret_value)
{
    struct cel_quantity shaped = *q;
    shape(&shaped);
    *ret_value = shaped.value;
    if (shaped.is_decimal || shaped.scale < 0) {
        return false;
    }
    for (int32_t i = 0; i < shaped.scale; i++) {
        if (__builtin_mul_overflow(*ret_value, 10, ret_value)) {
            return false;
        }
    }
    return true;
}

struct cel_value cel_is_integer(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                const struct cel_value *args, UNUSED uint32_t count)
{
    int64_t value = 0;
    return args[0].kind == CEL_QUANTITY ? cel_bool(as_whole(args[0].quantity, &value))
                                        : cel_no_overload(ev);
}

struct cel_value cel_as_integer(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                const struct cel_value *args, UNUSED uint32_t count)
{
    int64_t value = 0;
    if (args[0].kind != CEL_QUANTITY) {
        return cel_no_overload(ev);
    }
    return as_whole(args[0].quantity, &value)
               ? cel_int(value)
               : cel_fault(ev, "this quantity isn't kept as an integer:", args[0].quantity->text);
}

struct cel_value cel_as_float(struct cel_eval *ev, UNUSED const struct cel_node *node,
                              const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_QUANTITY) {
        return cel_no_overload(ev);
    }
    struct cel_quantity shaped = *args[0].quantity;
    shape(&shaped);
    double base = (double)unscaled(&shaped);
    return cel_double(shaped.scale == 0 ? base : base * pow(10, shaped.scale));
}

struct cel_value cel_sign(struct cel_eval *ev, UNUSED const struct cel_node *node,
                          const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_QUANTITY) {
        return cel_no_overload(ev);
    }
    i128 nano = args[0].quantity->amount.nano;
    return cel_int(nano > 0 ? 1 : nano < 0 ? -1 : 0);
}

/* The second operand of add() and sub(): a quantity, or an int. */
static bool operand(struct cel_value value, struct cel_quantity *ret_quantity)
{
    if (value.kind == CEL_QUANTITY) {
        *ret_quantity = *value.quantity;
        shape(ret_quantity);
        return true;
    }
    *ret_quantity = (struct cel_quantity){.amount = {(i128)value.integer * NANOS_PER_UNIT},
                                          .value = value.integer,
                                          .is_shaped = true};
    return value.kind == CEL_INT;
}

static bool scale_up(int64_t value, int32_t places, int64_t *ret_value)
{
    for (int32_t i = 0; i < places; i++) {
        if (__builtin_mul_overflow(value, 10, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

/* The sum as int64Amount.Add() makes it, at the smaller scale; false: it doesn't fit, and
 * Kubernetes goes on with a big decimal. */
static bool add_integers(const struct cel_quantity *a, const struct cel_quantity *b,
                         struct cel_quantity *sum)
{
    int64_t left = a->value;
    int64_t right = b->value;
    if (a->is_decimal || b->is_decimal) {
        return false;
    }
    if (a->value == 0 || b->value == 0) {
        sum->value = b->value == 0 ? a->value : b->value;
        sum->scale = b->value == 0 ? a->scale : b->scale;
        return true;
    }
    sum->scale = a->scale < b->scale ? a->scale : b->scale;
    return scale_up(a->value, a->scale - sum->scale, &left) &&
           scale_up(b->value, b->scale - sum->scale, &right) &&
           !__builtin_add_overflow(left, right, &sum->value);
}

/* Gives the sign with which b goes into the sum. Kubernetes subtracts by adding the negated number;
 * the smallest has no counterpart and stays as it is. */
static int shape_sum(const struct cel_quantity *a, struct cel_quantity b, int sign,
                     struct cel_quantity *sum)
{
    bool is_stuck = sign < 0 && b.value == INT64_MIN;
    b.value = sign > 0 || is_stuck ? b.value : -b.value;
    sum->is_sum = true;
    sum->is_shaped = true;
    sum->is_decimal = !add_integers(a, &b, sum);
    if (sum->is_decimal) {
        sum->scale = a->scale < b.scale ? a->scale : b.scale;
    }
    return is_stuck && !sum->is_decimal ? 1 : sign;
}

static struct cel_value add_quantities(struct cel_eval *ev, const struct cel_value *args, int sign)
{
    struct cel_quantity a;
    struct cel_quantity b;
    if (args[0].kind != CEL_QUANTITY || !operand(args[0], &a) || !operand(args[1], &b)) {
        return cel_no_overload(ev);
    }
    struct cel_quantity *sum = cel_alloc(ev, 1, sizeof(*sum));
    if (sum == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    sign = shape_sum(&a, b, sign, sum);
    if (__builtin_add_overflow(a.amount.nano, sign * b.amount.nano, &sum->amount.nano)) {
        return cel_stop(ev, RC_LIMIT, "a sum of quantities is too large");
    }
    return (struct cel_value){.kind = CEL_QUANTITY, .quantity = sum};
}

struct cel_value cel_quantity_add(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                  const struct cel_value *args, UNUSED uint32_t count)
{
    return add_quantities(ev, args, 1);
}

struct cel_value cel_quantity_sub(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                  const struct cel_value *args, UNUSED uint32_t count)
{
    return add_quantities(ev, args, -1);
}

static bool compare(const struct cel_value *args, int *ret_order)
{
    if (args[0].kind == CEL_QUANTITY && args[1].kind == CEL_QUANTITY) {
        *ret_order = quantity_compare(args[0].quantity->amount, args[1].quantity->amount);
        return true;
    }
    if (args[0].kind == CEL_SEMVER && args[1].kind == CEL_SEMVER) {
        *ret_order = cel_semver_compare(args[0].semver, args[1].semver);
        return true;
    }
    return false;
}

struct cel_value cel_compare_to(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                const struct cel_value *args, UNUSED uint32_t count)
{
    int order = 0;
    return compare(args, &order) ? cel_int(order < 0   ? -1
                                           : order > 0 ? 1
                                                       : 0)
                                 : cel_no_overload(ev);
}

struct cel_value cel_is_greater_than(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                     const struct cel_value *args, UNUSED uint32_t count)
{
    int order = 0;
    return compare(args, &order) ? cel_bool(order > 0) : cel_no_overload(ev);
}

struct cel_value cel_is_less_than(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                  const struct cel_value *args, UNUSED uint32_t count)
{
    int order = 0;
    return compare(args, &order) ? cel_bool(order < 0) : cel_no_overload(ev);
}

static bool starts_with_digit(struct str part)
{
    return part.len > 0 && part.ptr[0] >= '0' && part.ptr[0] <= '9';
}

/* The part without zeros in front, but with one where nothing else or no digit would stand. */
static void add_part(struct cel_text *out, struct str part)
{
    bool is_long = part.len > 1;
    while (is_long && part.len > 0 && part.ptr[0] == '0') {
        part = str_skip(part, 1);
    }
    if (is_long && !starts_with_digit(part)) {
        cel_text_add(out, STR("0"));
    }
    cel_text_add(out, part);
}

/* "v1.02" -> "1.2.0": without a leading v and zeros, with what is missing. */
static bool normalize(struct cel_eval *ev, struct str text, struct str *ret_text)
{
    struct cel_text out = {.ev = ev};
    struct str rest = str_starts_with(text, STR("v")) ? str_skip(text, 1) : text;
    for (int i = 0; i < 3; i++) {
        size_t dot = i == 2 ? rest.len : str_find_char(rest, '.');
        struct str part = str_is_set(rest) ? str_take(rest, dot) : STR("0");
        bool is_short = i < 2 && dot >= rest.len;
        if (is_short &&
            (str_find_char(part, '+') < part.len || str_find_char(part, '-') < part.len)) {
            return false;
        }
        cel_text_add(&out, i > 0 ? STR(".") : STR(""));
        add_part(&out, part);
        rest = dot >= rest.len ? STR_NONE : str_skip(rest, dot + 1);
    }
    *ret_text = cel_text_str(&out);
    return true;
}

static bool parse_version(struct cel_eval *ev, const struct cel_value *args, uint32_t count,
                          struct cel_semver *ret_version)
{
    struct str text = args[0].text;
    if (count == 2 && args[1].boolean && !normalize(ev, text, &text)) {
        return false;
    }
    return cel_semver_parse(text, ret_version);
}

static bool is_version_call(const struct cel_value *args, uint32_t count)
{
    return args[0].kind == CEL_STRING && (count == 1 || args[1].kind == CEL_BOOL);
}

struct cel_value cel_semver(struct cel_eval *ev, UNUSED const struct cel_node *node,
                            const struct cel_value *args, uint32_t count)
{
    if (!is_version_call(args, count)) {
        return cel_no_overload(ev);
    }
    struct cel_semver *version = cel_alloc(ev, 1, sizeof(*version));
    if (version == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    if (!parse_version(ev, args, count, version)) {
        return cel_fault(ev, "this is no semantic version:", args[0].text);
    }
    return (struct cel_value){.kind = CEL_SEMVER, .semver = version};
}

struct cel_value cel_is_semver(struct cel_eval *ev, UNUSED const struct cel_node *node,
                               const struct cel_value *args, uint32_t count)
{
    struct cel_semver version;
    return is_version_call(args, count) ? cel_bool(parse_version(ev, args, count, &version))
                                        : cel_no_overload(ev);
}

struct cel_value cel_version_part(struct cel_eval *ev, const struct cel_node *node,
                                  const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_SEMVER) {
        return cel_no_overload(ev);
    }
    const struct cel_semver *version = args[0].semver;
    uint64_t part = node->function == CEL_FN_MAJOR   ? version->major
                    : node->function == CEL_FN_MINOR ? version->minor
                                                     : version->patch;
    return cel_int((int64_t)part);
}
