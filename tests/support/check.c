#include "support/check.h"

void check_i64_at(int64_t actual, int64_t expected, const char *what, const char *file, int line)
{
    if (actual != expected) {
        print_error("%s is %lld, not %lld\n", what, (long long)actual, (long long)expected);
        _fail(file, line);
    }
}

void check_str_at(struct str actual, const char *expected, const char *what, const char *file,
                  int line)
{
    if (str_is_set(actual) != (expected != NULL) || !str_eq_c(actual, expected)) {
        print_error("%s is %s\"" STR_FMT "\", not %s\"%s\"\n", what,
                    str_is_set(actual) ? "" : "absent ", STR_ARG(actual),
                    expected == NULL ? "absent " : "", expected == NULL ? "" : expected);
        _fail(file, line);
    }
}
