/* Equality and order across kinds. Source: cel-go common/types, each kind's Equal() and Compare().
 */
#include <string.h>

#include "eval.h"
#include "semver.h"
#include "tallyman/base/limits.h"

struct str cel_kind_name(enum cel_kind kind)
{
    static const struct str names[] = {
        [CEL_NULL] = STR_INIT("null_type"),
        [CEL_BOOL] = STR_INIT("bool"),
        [CEL_INT] = STR_INIT("int"),
        [CEL_UINT] = STR_INIT("uint"),
        [CEL_DOUBLE] = STR_INIT("double"),
        [CEL_STRING] = STR_INIT("string"),
        [CEL_BYTES] = STR_INIT("bytes"),
        [CEL_DURATION] = STR_INIT("google.protobuf.Duration"),
        [CEL_TIMESTAMP] = STR_INIT("google.protobuf.Timestamp"),
        [CEL_LIST] = STR_INIT("list"),
        [CEL_MAP] = STR_INIT("map"),
        [CEL_TYPE] = STR_INIT("type"),
        [CEL_OPTIONAL] = STR_INIT("optional_type"),
        [CEL_QUANTITY] = STR_INIT("kubernetes.Quantity"),
        [CEL_SEMVER] = STR_INIT("kubernetes.Semver"),
        [CEL_ERROR] = STR_INIT("error"),
    };
    return names[kind];
}

static bool is_number(enum cel_kind kind)
{
    return kind == CEL_INT || kind == CEL_UINT || kind == CEL_DOUBLE;
}

static int order_doubles(double a, double b)
{
    return a < b ? -1 : a > b ? 1 : 0;
}

static int order_int_double(int64_t i, double d)
{
    if (d < -0x1p63) {
        return 1;
    }
    return d > 0x1p63 ? -1 : order_doubles((double)i, d);
}

static int order_uint_double(uint64_t u, double d)
{
    if (d < 0) {
        return 1;
    }
    return d > 0x1p64 ? -1 : order_doubles((double)u, d);
}

static int order_int_uint(int64_t i, uint64_t u)
{
    if (i < 0 || u > INT64_MAX) {
        return -1;
    }
    return i < (int64_t)u ? -1 : i > (int64_t)u ? 1 : 0;
}

static int order_ints(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b ? 1 : 0;
}

/* Neither is NaN. */
static int order_numbers(struct cel_value a, struct cel_value b)
{
    if (a.kind == b.kind) {
        if (a.kind == CEL_INT) {
            return order_ints(a.integer, b.integer);
        }
        if (a.kind == CEL_DOUBLE) {
            return order_doubles(a.real, b.real);
        }
        return a.uinteger < b.uinteger ? -1 : a.uinteger > b.uinteger ? 1 : 0;
    }
    if (a.kind > b.kind) {
        return -order_numbers(b, a);
    }
    if (a.kind == CEL_INT) {
        return b.kind == CEL_UINT ? order_int_uint(a.integer, b.uinteger)
                                  : order_int_double(a.integer, b.real);
    }
    return order_uint_double(a.uinteger, b.real);
}

static bool is_nan(struct cel_value v)
{
    return v.kind == CEL_DOUBLE && __builtin_isnan(v.real);
}

bool cel_is_comparable(enum cel_kind kind)
{
    switch (kind) {
    case CEL_BOOL:
    case CEL_INT:
    case CEL_UINT:
    case CEL_DOUBLE:
    case CEL_STRING:
    case CEL_BYTES:
    case CEL_DURATION:
    case CEL_TIMESTAMP:
        return true;
    case CEL_NULL:
    case CEL_LIST:
    case CEL_MAP:
    case CEL_TYPE:
    case CEL_OPTIONAL:
    case CEL_QUANTITY:
    case CEL_SEMVER:
    case CEL_ERROR:
        break;
    }
    return false;
}

static int order_same_kind(struct cel_value a, struct cel_value b)
{
    switch ((int)a.kind) {
    case CEL_BOOL:
        return (int)a.boolean - (int)b.boolean;
    case CEL_STRING:
    case CEL_BYTES:
        return str_compare(a.text, b.text);
    case CEL_DURATION:
        return order_ints(a.duration_ns, b.duration_ns);
    default:
        if (a.time.seconds != b.time.seconds) {
            return a.time.seconds < b.time.seconds ? -1 : 1;
        }
        return order_ints(a.time.nanos, b.time.nanos);
    }
}

bool cel_order(struct cel_eval *ev, struct cel_value a, struct cel_value b, int *ret_order,
               struct cel_value *ret_error)
{
    if (is_number(a.kind) && is_number(b.kind)) {
        if (is_nan(a) || is_nan(b)) {
            *ret_error = cel_fault(ev, "NaN can't be ordered", STR_NONE);
            return false;
        }
        *ret_order = order_numbers(a, b);
        return true;
    }
    if (a.kind != b.kind || !cel_is_comparable(a.kind)) {
        *ret_error = cel_no_overload(ev);
        return false;
    }
    *ret_order = order_same_kind(a, b);
    return true;
}

static struct cel_value equal(struct cel_eval *ev, struct cel_value a, struct cel_value b,
                              uint32_t depth);

/* What can't be compared counts as equal here: only a plain `false` makes two lists differ. */
static bool differ(struct cel_eval *ev, struct cel_value a, struct cel_value b, uint32_t depth)
{
    struct cel_value result = equal(ev, a, b, depth + 1);
    return result.kind == CEL_BOOL && !result.boolean;
}

static struct cel_value equal_lists(struct cel_eval *ev, const struct cel_list *a,
                                    const struct cel_list *b, uint32_t depth)
{
    if (a->count != b->count) {
        return cel_bool(false);
    }
    for (uint32_t i = 0; i < a->count && ev->stop == RC_OK; i++) {
        if (differ(ev, a->items[i], b->items[i], depth)) {
            return cel_bool(false);
        }
    }
    return cel_bool(true);
}

static struct cel_value equal_maps(struct cel_eval *ev, const struct cel_map *a,
                                   const struct cel_map *b, uint32_t depth)
{
    const struct cel_map *left = cel_map_entries(ev, a);
    const struct cel_map *right = cel_map_entries(ev, b);
    if (left == NULL || right == NULL || left->count != right->count) {
        return cel_bool(false);
    }
    for (uint32_t i = 0; i < left->count && ev->stop == RC_OK; i++) {
        struct cel_value other;
        if (!cel_map_find(ev, b, left->buffer->entries[i].key, &other) ||
            differ(ev, left->buffer->entries[i].value, other, depth)) {
            return cel_bool(false);
        }
    }
    return cel_bool(true);
}

static struct cel_value equal_optionals(struct cel_eval *ev, const struct cel_value *a,
                                        const struct cel_value *b, uint32_t depth)
{
    if (a == NULL || b == NULL) {
        return cel_bool(a == b);
    }
    return equal(ev, *a, *b, depth + 1);
}

static struct cel_value equal_same_kind(struct cel_eval *ev, struct cel_value a, struct cel_value b,
                                        uint32_t depth)
{
    switch ((int)a.kind) {
    case CEL_LIST:
        return equal_lists(ev, a.list, b.list, depth);
    case CEL_MAP:
        return equal_maps(ev, a.map, b.map, depth);
    case CEL_TYPE:
        return cel_bool(str_eq(a.text, b.text));
    case CEL_OPTIONAL:
        return equal_optionals(ev, a.optional, b.optional, depth);
    case CEL_QUANTITY:
        return b.quantity->is_sum
                   ? cel_no_overload(ev)
                   : cel_bool(quantity_compare(a.quantity->amount, b.quantity->amount) == 0);
    case CEL_SEMVER:
        return cel_bool(cel_semver_compare(a.semver, b.semver) == 0);
    case CEL_ERROR:
        return a;
    default:
        return cel_bool(order_same_kind(a, b) == 0);
    }
}

static struct cel_value equal(struct cel_eval *ev, struct cel_value a, struct cel_value b,
                              uint32_t depth)
{
    if (depth > CEL_VALUE_DEPTH_MAX || !cel_work(ev, 1)) {
        return cel_stop(ev, RC_LIMIT, "comparing two values takes too long");
    }
    if (a.kind == CEL_NULL || b.kind == CEL_NULL) {
        return cel_bool(a.kind == b.kind);
    }
    if (is_number(a.kind) && is_number(b.kind)) {
        return cel_bool(!is_nan(a) && !is_nan(b) && order_numbers(a, b) == 0);
    }
    if (a.kind != b.kind) {
        bool is_strict = a.kind == CEL_QUANTITY || a.kind == CEL_SEMVER;
        return is_strict ? cel_no_overload(ev) : cel_bool(false);
    }
    return equal_same_kind(ev, a, b, depth);
}

struct cel_value cel_equal(struct cel_eval *ev, struct cel_value a, struct cel_value b)
{
    return equal(ev, a, b, 0);
}
