#include "impl.h"

struct cel_value cel_not(struct cel_eval *ev, UNUSED const struct cel_node *node,
                         const struct cel_value *args, UNUSED uint32_t count)
{
    return args[0].kind == CEL_BOOL ? cel_bool(!args[0].boolean) : cel_no_overload(ev);
}

struct cel_value cel_equals(struct cel_eval *ev, UNUSED const struct cel_node *node,
                            const struct cel_value *args, UNUSED uint32_t count)
{
    return cel_equal(ev, args[0], args[1]);
}

/* What can't be compared is unequal here, though == makes an error of it. */
struct cel_value cel_not_equals(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                const struct cel_value *args, UNUSED uint32_t count)
{
    return cel_bool(!cel_is_true(cel_equal(ev, args[0], args[1])));
}

struct cel_value cel_in(struct cel_eval *ev, const struct cel_node *node,
                        const struct cel_value *args, UNUSED uint32_t count)
{
    bool is_unhashable = args[0].kind == CEL_BYTES || args[0].kind == CEL_SEMVER;
    if (node->is_const_set && is_unhashable) {
        return cel_stop(ev, RC_INVALID, "bytes and versions can't be looked up in a constant list");
    }
    if (args[1].kind == CEL_LIST) {
        return cel_bool(cel_list_contains(ev, args[1].list, args[0]));
    }
    if (args[1].kind == CEL_MAP) {
        return cel_bool(cel_map_contains(ev, args[1].map, args[0]));
    }
    return cel_no_overload(ev);
}

/* Orders the two; *ret_error is set where they have no order. */
static bool order(struct cel_eval *ev, const struct cel_value *args, int *ret_order,
                  struct cel_value *ret_error)
{
    return cel_order(ev, args[0], args[1], ret_order, ret_error);
}

struct cel_value cel_less(struct cel_eval *ev, UNUSED const struct cel_node *node,
                          const struct cel_value *args, UNUSED uint32_t count)
{
    int sign = 0;
    struct cel_value error;
    return order(ev, args, &sign, &error) ? cel_bool(sign < 0) : error;
}

struct cel_value cel_less_equal(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                const struct cel_value *args, UNUSED uint32_t count)
{
    int sign = 0;
    struct cel_value error;
    return order(ev, args, &sign, &error) ? cel_bool(sign <= 0) : error;
}

struct cel_value cel_greater(struct cel_eval *ev, UNUSED const struct cel_node *node,
                             const struct cel_value *args, UNUSED uint32_t count)
{
    int sign = 0;
    struct cel_value error;
    return order(ev, args, &sign, &error) ? cel_bool(sign > 0) : error;
}

struct cel_value cel_greater_equal(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                   const struct cel_value *args, UNUSED uint32_t count)
{
    int sign = 0;
    struct cel_value error;
    return order(ev, args, &sign, &error) ? cel_bool(sign >= 0) : error;
}

struct cel_value cel_negate(struct cel_eval *ev, UNUSED const struct cel_node *node,
                            const struct cel_value *args, UNUSED uint32_t count)
{
    int64_t negated = 0;
    switch ((int)args[0].kind) {
    case CEL_DOUBLE:
        return cel_double(-args[0].real);
    case CEL_INT:
    case CEL_DURATION:
        if (__builtin_sub_overflow(INT64_C(0), args[0].integer, &negated)) {
            return cel_fault(ev, "integer overflow", STR_NONE);
        }
        return args[0].kind == CEL_INT ? cel_int(negated) : cel_duration(negated);
    default:
        return cel_no_overload(ev);
    }
}
