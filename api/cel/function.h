/* function.h - every function of the environment with its overloads.
 *
 * A signature is written in letters, arguments first, then '>' and the result:
 *   b bool  i int  u uint  d double  s string  y bytes  n null  * dyn  T timestamp  R duration
 *   Q quantity  V semver  A, B: any type, the same one wherever the letter stands
 *   Lx list(x)  Mxy map(x, y)  Ox optional(x)  Yx type(x)
 * A leading '.' marks a method, whose first argument is the receiver; '!' a function that
 * Kubernetes has and this program hasn't. Source: the declarations of cel-go's stdlib and ext
 * packages and of k8s.io/apiserver/pkg/cel/library at the version in tests/compare-cel/go.mod. */
#pragma once

#include "tallyman/base/str.h"

enum cel_function {
    CEL_FN_NONE,
    CEL_FN_NOT,
    CEL_FN_NEGATE,
    CEL_FN_NOT_STRICTLY_FALSE,
    CEL_FN_IN,
    CEL_FN_EQUAL,
    CEL_FN_NOT_EQUAL,
    CEL_FN_LESS,
    CEL_FN_LESS_EQUAL,
    CEL_FN_GREATER,
    CEL_FN_GREATER_EQUAL,
    CEL_FN_ADD,
    CEL_FN_SUBTRACT,
    CEL_FN_MULTIPLY,
    CEL_FN_DIVIDE,
    CEL_FN_MODULO,
    CEL_FN_TERNARY,
    CEL_FN_INDEX,
    CEL_FN_OPT_INDEX,
    CEL_FN_SORT_BY_KEYS,
    CEL_FN_MAP_INSERT,
    CEL_FN_QUANTITY_ADD,
    CEL_FN_QUANTITY_SUB,
    CEL_FN_AS_FLOAT,
    CEL_FN_AS_INTEGER,
    CEL_FN_BOOL,
    CEL_FN_BYTES,
    CEL_FN_CHAR_AT,
    CEL_FN_COMPARE_TO,
    CEL_FN_CONTAINS,
    CEL_FN_DISTINCT,
    CEL_FN_DOUBLE,
    CEL_FN_DURATION,
    CEL_FN_DYN,
    CEL_FN_ENDS_WITH,
    CEL_FN_FIND,
    CEL_FN_FIND_ALL,
    CEL_FN_FIRST,
    CEL_FN_FLATTEN,
    CEL_FN_FORMAT,
    CEL_FN_GET_DATE,
    CEL_FN_GET_DAY_OF_MONTH,
    CEL_FN_GET_DAY_OF_WEEK,
    CEL_FN_GET_DAY_OF_YEAR,
    CEL_FN_GET_FULL_YEAR,
    CEL_FN_GET_HOURS,
    CEL_FN_GET_MILLISECONDS,
    CEL_FN_GET_MINUTES,
    CEL_FN_GET_MONTH,
    CEL_FN_GET_SECONDS,
    CEL_FN_HAS_VALUE,
    CEL_FN_INCLUDES,
    CEL_FN_INDEX_OF,
    CEL_FN_INT,
    CEL_FN_IS_GREATER_THAN,
    CEL_FN_IS_INTEGER,
    CEL_FN_IS_LESS_THAN,
    CEL_FN_IS_QUANTITY,
    CEL_FN_IS_SEMVER,
    CEL_FN_IS_SORTED,
    CEL_FN_JOIN,
    CEL_FN_LAST,
    CEL_FN_LAST_INDEX_OF,
    CEL_FN_LISTS_RANGE,
    CEL_FN_LOWER_ASCII,
    CEL_FN_MAJOR,
    CEL_FN_MATCHES,
    CEL_FN_MAX,
    CEL_FN_MIN,
    CEL_FN_MINOR,
    CEL_FN_OPTIONAL_NONE,
    CEL_FN_OPTIONAL_OF,
    CEL_FN_OPTIONAL_OF_NON_ZERO,
    CEL_FN_OPTIONAL_UNWRAP,
    CEL_FN_OR,
    CEL_FN_OR_VALUE,
    CEL_FN_PATCH,
    CEL_FN_QUANTITY,
    CEL_FN_QUOTE,
    CEL_FN_REPLACE,
    CEL_FN_REVERSE,
    CEL_FN_SEMVER,
    CEL_FN_SETS_CONTAINS,
    CEL_FN_SETS_EQUIVALENT,
    CEL_FN_SETS_INTERSECTS,
    CEL_FN_SIGN,
    CEL_FN_SIZE,
    CEL_FN_SLICE,
    CEL_FN_SORT,
    CEL_FN_SPLIT,
    CEL_FN_STARTS_WITH,
    CEL_FN_STRING,
    CEL_FN_SUBSTRING,
    CEL_FN_SUM,
    CEL_FN_TIMESTAMP,
    CEL_FN_TRIM,
    CEL_FN_TYPE,
    CEL_FN_UINT,
    CEL_FN_UPPER_ASCII,
    CEL_FN_VALUE,
    CEL_FN_UNSUPPORTED,
};

struct cel_overload {
    struct str name;
    enum cel_function function;
    const char *signature; /* static */
};

/* The overloads of `name`, which stand together in the table; NULL and 0 if there are none. Static.
 */
const struct cel_overload *cel_overloads_find(struct str name, uint32_t *ret_count);
/* int(), string() and the like: on a constant they are computed when compiling, as cel-go does. */
bool cel_function_is_conversion(enum cel_function function);
