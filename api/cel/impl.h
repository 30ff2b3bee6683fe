/* impl.h - the functions behind the names of function.h. Each gets its arguments without errors in
 * them, and answers "no such overload" to kinds that it doesn't take. */
#pragma once

#include "eval.h"

/* operators.c */
cel_function_impl cel_not, cel_negate, cel_in, cel_equals, cel_not_equals, cel_less, cel_less_equal,
    cel_greater, cel_greater_equal;
/* arithmetic.c */
cel_function_impl cel_add, cel_subtract, cel_multiply, cel_divide, cel_modulo;
/* convert.c */
cel_function_impl cel_to_bool, cel_to_bytes, cel_to_double, cel_to_duration, cel_to_dyn, cel_to_int,
    cel_to_string, cel_to_timestamp, cel_to_type, cel_to_uint;
/* string_fn.c */
cel_function_impl cel_char_at, cel_contains, cel_ends_with, cel_starts_with, cel_join,
    cel_lower_ascii, cel_upper_ascii, cel_replace, cel_split, cel_substring, cel_trim, cel_quote,
    cel_size, cel_index_of, cel_last_index_of;
/* list_fn.c */
cel_function_impl cel_distinct, cel_first, cel_last, cel_flatten, cel_includes, cel_is_sorted,
    cel_max, cel_min, cel_sum, cel_lists_range, cel_reverse, cel_slice, cel_sort, cel_sort_by_keys,
    cel_sets_contains, cel_sets_equivalent, cel_sets_intersects;
/* time_fn.c */
cel_function_impl cel_time_part;
/* amount_fn.c */
cel_function_impl cel_quantity_add, cel_quantity_sub, cel_as_float, cel_as_integer, cel_is_integer,
    cel_compare_to, cel_is_greater_than, cel_is_less_than, cel_sign, cel_quantity, cel_is_quantity,
    cel_semver, cel_is_semver, cel_version_part;
/* optional_fn.c */
cel_function_impl cel_has_value, cel_optional_none, cel_optional_of, cel_optional_of_non_zero,
    cel_optional_unwrap, cel_optional_value, cel_map_insert;
/* regex_fn.c */
cel_function_impl cel_matches_regex, cel_find, cel_find_all;
/* format.c */
cel_function_impl cel_format;

/* As string() shows it; false: there is no such form. */
bool cel_text_of(struct cel_eval *ev, struct cel_value value, struct str *ret_text);
/* A text under construction in the evaluation's memory. */
struct cel_text {
    struct cel_eval *ev;
    char *ptr;
    size_t len;
    size_t capacity;
};
void cel_text_add(struct cel_text *text, struct str piece);
void cel_text_add_char(struct cel_text *text, uint32_t character);
struct str cel_text_str(const struct cel_text *text);
/* Go's time.ParseDuration(): false: not one. */
bool cel_duration_parse(struct str text, int64_t *ret_ns);
/* RFC 3339 within the years 1 to 9999; false: not one. */
bool cel_timestamp_parse(struct str text, struct cel_timestamp *ret_time);
/* The civil date of a day counted from 1970-01-01. */
void cel_civil_from_days(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day);
int64_t cel_days_from_civil(int64_t year, int month, int day);
/* %.*f, %.*e and %g as Go prints them; a view in the evaluation's memory. */
struct str cel_double_text(struct cel_eval *ev, double value, char verb, int precision);
