/* Quantities and versions. Source: k8s.io/apiserver/pkg/cel/library/quantity.go, semverlib.go;
 * k8s.io/apimachinery/pkg/api/resource/quantity.go for how a number is kept. */
#include <math.h>
#include <string.h>

#include "impl.h"
#include "semver.h"

#define NANO_SCALE       (-9)
#define INT_DIGITS       18
#define BINARY_DIGITS    14
#define NANOS_PER_UNIT   1000000000

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

/* Fills in value, scale and is_decimal from the text, which is sound. */
static void shape(struct cel_quantity *q)
{
    struct str text = q->text;
    bool is_binary = false;
    if (q->is_shaped) {
        return;
    }
    q->is_shaped = true;
    bool is_signed = text.len > 0 && (text.ptr[0] == '-' || text.ptr[0] == '+');
    size_t start = is_signed ? 1 : 0;
    while (start < text.len && text.ptr[start] == '0') {
        start++;
    }
    size_t end = skip_digits(text, start);
    int32_t digits = end == start ? 1 : (int32_t)(end - start);
    int32_t fraction = 0;
    if (end < text.len && text.ptr[end] == '.') {
        size_t point = end;
        end = skip_digits(text, end + 1);
        fraction = (int32_t)(end - point - 1);
    }
    int32_t exponent = suffix_exponent(str_skip(text, end), &is_binary);
    q->scale = is_binary ? -fraction : exponent - fraction;
    bool is_short = is_binary ? fraction == 0 && digits + exponent * 3 / 10 <= BINARY_DIGITS
                              : digits + fraction <= INT_DIGITS;
    q->is_decimal = !is_short || q->scale < NANO_SCALE;
    q->scale = q->scale < NANO_SCALE ? NANO_SCALE : q->scale;
    i128 value = q->amount.nano;
    for (int32_t i = q->scale; i > NANO_SCALE; i--) {
        value /= 10;
    }
    q->value = (int64_t)value;
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
    i128 unscaled = shaped.amount.nano;
    for (int32_t i = shaped.scale; i > NANO_SCALE; i--) {
        unscaled /= 10;
    }
    return cel_double(shaped.scale == 0 ? (double)unscaled
                                        : (double)unscaled * pow(10, shaped.scale));
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
    *ret_quantity = (struct cel_quantity){
        .amount = {(i128)value.integer * NANOS_PER_UNIT}, .value = value.integer, .is_shaped = true};
    return value.kind == CEL_INT;
}

/* The smaller scale of the two, unless the number doesn't fit then. */
static void shape_sum(struct cel_quantity *sum, const struct cel_quantity *a,
                      const struct cel_quantity *b)
{
    bool is_decimal = a->is_decimal || b->is_decimal;
    sum->is_shaped = true;
    sum->is_decimal = is_decimal;
    sum->scale = a->scale < b->scale ? a->scale : b->scale;
    if (!is_decimal && (b->value == 0 || a->value == 0)) {
        sum->scale = b->value == 0 ? a->scale : b->scale;
    }
    i128 value = sum->amount.nano;
    for (int32_t i = sum->scale; i > NANO_SCALE; i--) {
        value /= 10;
    }
    sum->value = (int64_t)value;
    sum->is_decimal = is_decimal || (i128)sum->value != value;
}

static struct cel_value add_quantities(struct cel_eval *ev, const struct cel_value *args,
                                       int sign)
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
    if (__builtin_add_overflow(a.amount.nano, sign * b.amount.nano, &sum->amount.nano)) {
        return cel_stop(ev, RC_LIMIT, "a sum of quantities is too large");
    }
    sum->is_sum = true;
    shape_sum(sum, &a, &b);
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
    return compare(args, &order) ? cel_int(order < 0 ? -1 : order > 0 ? 1 : 0)
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

/* "v1.02" -> "1.2.0": without a leading v and zeros, with what is missing. */
static bool normalize(struct cel_eval *ev, struct str text, struct str *ret_text)
{
    struct cel_text out = {.ev = ev};
    struct str rest = str_starts_with(text, STR("v")) ? str_skip(text, 1) : text;
    for (int i = 0; i < 3; i++) {
        bool is_there = str_is_set(rest);
        size_t dot = i == 2 || !is_there ? rest.len : str_find_char(rest, '.');
        struct str part = str_take(rest, dot);
        bool is_last = dot >= rest.len;
        if (is_there && is_last && i < 2 &&
            (str_find_char(part, '+') < part.len || str_find_char(part, '-') < part.len)) {
            return false;
        }
        bool is_long = part.len > 1;
        while (is_long && part.len > 0 && part.ptr[0] == '0') {
            part = str_skip(part, 1);
        }
        bool needs_zero = !is_there || (is_long && (part.len == 0 || part.ptr[0] < '0' ||
                                                    part.ptr[0] > '9'));
        cel_text_add(&out, i > 0 ? STR(".") : STR(""));
        cel_text_add(&out, needs_zero ? STR("0") : STR(""));
        cel_text_add(&out, part);
        rest = is_last ? STR_NONE : str_skip(rest, dot + 1);
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
