/* + - * / %: 64-bit, and an overflow is an error. Source: cel-go common/types/overflow.go. */
#include <math.h>
#include <string.h>

#include "impl.h"

#define NANOS_PER_SECOND 1000000000
#define TIMESTAMP_MIN    (-62135596800)
#define TIMESTAMP_MAX    253402300799

static struct cel_value overflow(struct cel_eval *ev)
{
    return cel_fault(ev, "overflow: the result doesn't fit", STR_NONE);
}

/* Within the years 1 to 9999. */
static struct cel_value shift_time(struct cel_eval *ev, struct cel_timestamp time, int64_t ns)
{
    int64_t nanos = time.nanos + ns % NANOS_PER_SECOND;
    int64_t seconds = 0;
    int64_t carry = nanos < 0 ? -1 : nanos >= NANOS_PER_SECOND ? 1 : 0;
    if (__builtin_add_overflow(time.seconds, ns / NANOS_PER_SECOND + carry, &seconds) ||
        seconds < TIMESTAMP_MIN || seconds > TIMESTAMP_MAX) {
        return overflow(ev);
    }
    time.seconds = seconds;
    time.nanos = (int32_t)(nanos - carry * NANOS_PER_SECOND);
    return (struct cel_value){.kind = CEL_TIMESTAMP, .time = time};
}

static struct cel_value concat(struct cel_eval *ev, const struct cel_value *args)
{
    struct str a = args[0].text;
    struct str b = args[1].text;
    char *joined = cel_alloc(ev, a.len + b.len + 1, 1);
    if (joined == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    if (a.len > 0) {
        memcpy(joined, a.ptr, a.len);
    }
    if (b.len > 0) {
        memcpy(joined + a.len, b.ptr, b.len);
    }
    return (struct cel_value){.kind = args[0].kind, .text = {joined, a.len + b.len}};
}

static struct cel_value add_same_kind(struct cel_eval *ev, const struct cel_value *args)
{
    struct cel_value result = args[0];
    switch ((int)args[0].kind) {
    case CEL_INT:
    case CEL_DURATION:
        return __builtin_add_overflow(args[0].integer, args[1].integer, &result.integer)
                   ? overflow(ev)
                   : result;
    case CEL_UINT:
        return __builtin_add_overflow(args[0].uinteger, args[1].uinteger, &result.uinteger)
                   ? overflow(ev)
                   : result;
    case CEL_DOUBLE:
        return cel_double(args[0].real + args[1].real);
    case CEL_STRING:
    case CEL_BYTES:
        return concat(ev, args);
    case CEL_LIST:
        return cel_list_concat(ev, args[0].list, args[1].list);
    default:
        return cel_no_overload(ev);
    }
}

struct cel_value cel_add(struct cel_eval *ev, UNUSED const struct cel_node *node,
                         const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind == args[1].kind) {
        return add_same_kind(ev, args);
    }
    if (args[0].kind == CEL_TIMESTAMP && args[1].kind == CEL_DURATION) {
        return shift_time(ev, args[0].time, args[1].duration_ns);
    }
    if (args[0].kind == CEL_DURATION && args[1].kind == CEL_TIMESTAMP) {
        return shift_time(ev, args[1].time, args[0].duration_ns);
    }
    return cel_no_overload(ev);
}

static struct cel_value subtract_times(struct cel_eval *ev, struct cel_timestamp a,
                                       struct cel_timestamp b)
{
    int64_t ns = 0;
    if (__builtin_mul_overflow(a.seconds - b.seconds, (int64_t)NANOS_PER_SECOND, &ns) ||
        __builtin_add_overflow(ns, (int64_t)a.nanos - b.nanos, &ns)) {
        return overflow(ev);
    }
    return cel_duration(ns);
}

struct cel_value cel_subtract(struct cel_eval *ev, UNUSED const struct cel_node *node,
                              const struct cel_value *args, UNUSED uint32_t count)
{
    struct cel_value result = args[0];
    int64_t ns = 0;
    if (args[0].kind == CEL_TIMESTAMP && args[1].kind == CEL_DURATION) {
        bool overflows = __builtin_sub_overflow(INT64_C(0), args[1].duration_ns, &ns);
        return overflows ? overflow(ev) : shift_time(ev, args[0].time, ns);
    }
    if (args[0].kind != args[1].kind) {
        return cel_no_overload(ev);
    }
    switch ((int)args[0].kind) {
    case CEL_INT:
    case CEL_DURATION:
        return __builtin_sub_overflow(args[0].integer, args[1].integer, &result.integer)
                   ? overflow(ev)
                   : result;
    case CEL_UINT:
        return __builtin_sub_overflow(args[0].uinteger, args[1].uinteger, &result.uinteger)
                   ? overflow(ev)
                   : result;
    case CEL_DOUBLE:
        return cel_double(args[0].real - args[1].real);
    case CEL_TIMESTAMP:
        return subtract_times(ev, args[0].time, args[1].time);
    default:
        return cel_no_overload(ev);
    }
}

struct cel_value cel_multiply(struct cel_eval *ev, UNUSED const struct cel_node *node,
                              const struct cel_value *args, UNUSED uint32_t count)
{
    struct cel_value result = args[0];
    if (args[0].kind != args[1].kind) {
        return cel_no_overload(ev);
    }
    switch ((int)args[0].kind) {
    case CEL_INT:
        return __builtin_mul_overflow(args[0].integer, args[1].integer, &result.integer)
                   ? overflow(ev)
                   : result;
    case CEL_UINT:
        return __builtin_mul_overflow(args[0].uinteger, args[1].uinteger, &result.uinteger)
                   ? overflow(ev)
                   : result;
    case CEL_DOUBLE:
        return cel_double(args[0].real * args[1].real);
    default:
        return cel_no_overload(ev);
    }
}

static struct cel_value divide_whole(struct cel_eval *ev, const struct cel_value *args,
                                     bool is_modulo)
{
    if (args[1].integer == 0) {
        return cel_fault(ev, is_modulo ? "modulus by zero" : "division by zero", STR_NONE);
    }
    if (args[0].kind == CEL_UINT) {
        return cel_uint(is_modulo ? args[0].uinteger % args[1].uinteger
                                  : args[0].uinteger / args[1].uinteger);
    }
    if (args[0].integer == INT64_MIN && args[1].integer == -1) {
        return overflow(ev);
    }
    return cel_int(is_modulo ? args[0].integer % args[1].integer
                             : args[0].integer / args[1].integer);
}

static bool is_whole(const struct cel_value *args)
{
    return args[0].kind == args[1].kind && (args[0].kind == CEL_INT || args[0].kind == CEL_UINT);
}

struct cel_value cel_divide(struct cel_eval *ev, UNUSED const struct cel_node *node,
                            const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind == CEL_DOUBLE && args[1].kind == CEL_DOUBLE) {
        /* Division by zero is infinite in CEL; spelt out for the sanitizers. */
        double a = args[0].real;
        double b = args[1].real;
        if (b == 0) {
            double infinite = signbit(a) != signbit(b) ? -INFINITY : INFINITY;
            return cel_double(a == 0 || __builtin_isnan(a) ? (double)NAN : infinite);
        }
        return cel_double(a / b);
    }
    return is_whole(args) ? divide_whole(ev, args, false) : cel_no_overload(ev);
}

struct cel_value cel_modulo(struct cel_eval *ev, UNUSED const struct cel_node *node,
                            const struct cel_value *args, UNUSED uint32_t count)
{
    return is_whole(args) ? divide_whole(ev, args, true) : cel_no_overload(ev);
}
