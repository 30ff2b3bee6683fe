/* Amounts by resource, in the order of their names. */
#include "support/check.h"

#include "../../../controller/core/state.h"

/* Nothing of a resource is as if it weren't named: the vector equals one without it. */
static void nothing_added_leaves_no_entry(void **state)
{
    (void)state;
    struct vector amounts = {.items = NULL};
    struct vector none = {.items = NULL};
    vector_add(&amounts, STR("cpu"), 0);
    assert_true(vector_equal(&amounts, &none));
    vector_add(&amounts, STR("memory"), 2);
    vector_add(&amounts, STR("cpu"), 3);
    vector_add(&amounts, STR("cpu"), 0);
    assert_int_equal(amounts.count, 2);
    check_str(amounts.items[0].resource, "cpu");
    assert_true(vector_get(&amounts, STR("cpu")) == 3);
    assert_true(vector_get(&amounts, STR("pods")) == 0);
    vector_deinit(&amounts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_added_leaves_no_entry)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
