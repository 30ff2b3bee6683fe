#include "impl.h"

#define ARGUMENTS_MAX 4

static cel_function_impl *const implementations[CEL_FN_UNSUPPORTED] = {
    [CEL_FN_NOT] = cel_not,
    [CEL_FN_NEGATE] = cel_negate,
    [CEL_FN_IN] = cel_in,
    [CEL_FN_EQUAL] = cel_equals,
    [CEL_FN_NOT_EQUAL] = cel_not_equals,
    [CEL_FN_LESS] = cel_less,
    [CEL_FN_LESS_EQUAL] = cel_less_equal,
    [CEL_FN_GREATER] = cel_greater,
    [CEL_FN_GREATER_EQUAL] = cel_greater_equal,
    [CEL_FN_ADD] = cel_add,
    [CEL_FN_SUBTRACT] = cel_subtract,
    [CEL_FN_MULTIPLY] = cel_multiply,
    [CEL_FN_DIVIDE] = cel_divide,
    [CEL_FN_MODULO] = cel_modulo,
    [CEL_FN_SORT_BY_KEYS] = cel_sort_by_keys,
    [CEL_FN_MAP_INSERT] = cel_map_insert,
    [CEL_FN_QUANTITY_ADD] = cel_quantity_add,
    [CEL_FN_QUANTITY_SUB] = cel_quantity_sub,
    [CEL_FN_AS_FLOAT] = cel_as_float,
    [CEL_FN_AS_INTEGER] = cel_as_integer,
    [CEL_FN_BOOL] = cel_to_bool,
    [CEL_FN_BYTES] = cel_to_bytes,
    [CEL_FN_CHAR_AT] = cel_char_at,
    [CEL_FN_COMPARE_TO] = cel_compare_to,
    [CEL_FN_CONTAINS] = cel_contains,
    [CEL_FN_DISTINCT] = cel_distinct,
    [CEL_FN_DOUBLE] = cel_to_double,
    [CEL_FN_DURATION] = cel_to_duration,
    [CEL_FN_DYN] = cel_to_dyn,
    [CEL_FN_ENDS_WITH] = cel_ends_with,
    [CEL_FN_FIND] = cel_find,
    [CEL_FN_FIND_ALL] = cel_find_all,
    [CEL_FN_FIRST] = cel_first,
    [CEL_FN_FLATTEN] = cel_flatten,
    [CEL_FN_FORMAT] = cel_format,
    [CEL_FN_GET_DATE] = cel_time_part,
    [CEL_FN_GET_DAY_OF_MONTH] = cel_time_part,
    [CEL_FN_GET_DAY_OF_WEEK] = cel_time_part,
    [CEL_FN_GET_DAY_OF_YEAR] = cel_time_part,
    [CEL_FN_GET_FULL_YEAR] = cel_time_part,
    [CEL_FN_GET_HOURS] = cel_time_part,
    [CEL_FN_GET_MILLISECONDS] = cel_time_part,
    [CEL_FN_GET_MINUTES] = cel_time_part,
    [CEL_FN_GET_MONTH] = cel_time_part,
    [CEL_FN_GET_SECONDS] = cel_time_part,
    [CEL_FN_HAS_VALUE] = cel_has_value,
    [CEL_FN_INCLUDES] = cel_includes,
    [CEL_FN_INDEX_OF] = cel_index_of,
    [CEL_FN_INT] = cel_to_int,
    [CEL_FN_IS_GREATER_THAN] = cel_is_greater_than,
    [CEL_FN_IS_INTEGER] = cel_is_integer,
    [CEL_FN_IS_LESS_THAN] = cel_is_less_than,
    [CEL_FN_IS_QUANTITY] = cel_is_quantity,
    [CEL_FN_IS_SEMVER] = cel_is_semver,
    [CEL_FN_IS_SORTED] = cel_is_sorted,
    [CEL_FN_JOIN] = cel_join,
    [CEL_FN_LAST] = cel_last,
    [CEL_FN_LAST_INDEX_OF] = cel_last_index_of,
    [CEL_FN_LISTS_RANGE] = cel_lists_range,
    [CEL_FN_LOWER_ASCII] = cel_lower_ascii,
    [CEL_FN_MAJOR] = cel_version_part,
    [CEL_FN_MATCHES] = cel_matches_regex,
    [CEL_FN_MAX] = cel_max,
    [CEL_FN_MIN] = cel_min,
    [CEL_FN_MINOR] = cel_version_part,
    [CEL_FN_OPTIONAL_NONE] = cel_optional_none,
    [CEL_FN_OPTIONAL_OF] = cel_optional_of,
    [CEL_FN_OPTIONAL_OF_NON_ZERO] = cel_optional_of_non_zero,
    [CEL_FN_OPTIONAL_UNWRAP] = cel_optional_unwrap,
    [CEL_FN_PATCH] = cel_version_part,
    [CEL_FN_QUANTITY] = cel_quantity,
    [CEL_FN_QUOTE] = cel_quote,
    [CEL_FN_REPLACE] = cel_replace,
    [CEL_FN_REVERSE] = cel_reverse,
    [CEL_FN_SEMVER] = cel_semver,
    [CEL_FN_SETS_CONTAINS] = cel_sets_contains,
    [CEL_FN_SETS_EQUIVALENT] = cel_sets_equivalent,
    [CEL_FN_SETS_INTERSECTS] = cel_sets_intersects,
    [CEL_FN_SIGN] = cel_sign,
    [CEL_FN_SIZE] = cel_size,
    [CEL_FN_SLICE] = cel_slice,
    [CEL_FN_SORT] = cel_sort,
    [CEL_FN_SPLIT] = cel_split,
    [CEL_FN_STARTS_WITH] = cel_starts_with,
    [CEL_FN_STRING] = cel_to_string,
    [CEL_FN_SUBSTRING] = cel_substring,
    [CEL_FN_SUM] = cel_sum,
    [CEL_FN_TIMESTAMP] = cel_to_timestamp,
    [CEL_FN_TRIM] = cel_trim,
    [CEL_FN_TYPE] = cel_to_type,
    [CEL_FN_UINT] = cel_to_uint,
    [CEL_FN_UPPER_ASCII] = cel_upper_ascii,
    [CEL_FN_VALUE] = cel_optional_value,
};

/* or() and orValue() evaluate their argument only where the receiver is empty. */
static struct cel_value eval_or(struct cel_eval *ev, const struct cel_node *node)
{
    struct cel_value left = cel_eval_node(ev, node->args[0]);
    if (left.kind != CEL_OPTIONAL) {
        return cel_is_error(left) ? left : cel_no_overload(ev);
    }
    if (left.optional == NULL) {
        return cel_eval_node(ev, node->args[1]);
    }
    return node->function == CEL_FN_OR ? left : *left.optional;
}

static struct cel_value eval_not_strictly_false(struct cel_eval *ev, const struct cel_node *node)
{
    struct cel_value value = cel_eval_node(ev, node->args[0]);
    if (!cel_charge(ev, 1)) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    return value.kind == CEL_BOOL ? value : cel_bool(true);
}

struct cel_value cel_eval_call(struct cel_eval *ev, const struct cel_node *node)
{
    struct cel_value args[ARGUMENTS_MAX] = {{.kind = CEL_NULL}};
    struct cel_value error = {.kind = CEL_NULL};
    if (node->function == CEL_FN_OR || node->function == CEL_FN_OR_VALUE) {
        return eval_or(ev, node);
    }
    if (node->function == CEL_FN_NOT_STRICTLY_FALSE) {
        return eval_not_strictly_false(ev, node);
    }
    for (uint32_t i = 0; i < node->arg_count; i++) {
        args[i] = cel_eval_node(ev, node->args[i]);
        if (cel_is_error(args[i]) && error.kind != CEL_ERROR) {
            error = args[i];
        }
    }
    if (ev->stop != RC_OK || !cel_charge_call(ev, node, args, node->arg_count)) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    if (error.kind == CEL_ERROR) {
        return error;
    }
    return implementations[node->function](ev, node, args, node->arg_count);
}
