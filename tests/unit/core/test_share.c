/* test_share.c - how much of a device's capacity one allocation takes: the device's request policy
 * against what is asked. Source: structured/internal/incubating/consumable_capacity.go, 1.37. */
#include "support/check.h"

#include "../../../controller/core/ask.h"

/* Quantities as text; NULL: not set. */
struct row {
    const char *value; /* the device has */
    const char *asked;
    const char *standard; /* the policy's default */
    const char *min;      /* its validRange, if any of these is set */
    const char *max;
    const char *step;
    const char *values[3]; /* its validValues */
    enum share_answer answer;
    const char *amount; /* NULL: no matter */
};

static const struct row ROWS[] = {
    /* Without a policy: what is asked, or all. */
    {"10", NULL, NULL, NULL, NULL, NULL, {NULL}, SHARE_FITS, "10"},
    {"10", "3", NULL, NULL, NULL, NULL, {NULL}, SHARE_FITS, "3"},
    {"10", "0", NULL, NULL, NULL, NULL, {NULL}, SHARE_FITS, "0"},
    {"10", "10", NULL, NULL, NULL, NULL, {NULL}, SHARE_FITS, "10"},
    {"10", "11", NULL, NULL, NULL, NULL, {NULL}, SHARE_REFUSED, "11"},
    {"10", "-1", NULL, NULL, NULL, NULL, {NULL}, SHARE_BROKEN, NULL},
    /* The default stands for what isn't asked, and is right whatever else the policy says. */
    {"10", NULL, "4", NULL, NULL, NULL, {NULL}, SHARE_FITS, "4"},
    {"10", "3", "4", NULL, NULL, NULL, {NULL}, SHARE_FITS, "3"},
    {"10", NULL, "9", "1", "8", NULL, {NULL}, SHARE_FITS, "9"},
    {"10", NULL, "3", NULL, NULL, NULL, {"4", "8"}, SHARE_FITS, "3"},
    {"10", NULL, "-1", NULL, NULL, NULL, {NULL}, SHARE_BROKEN, NULL},
    /* A range: at least its least, at most its most, in steps from the least. */
    {"10", "1", NULL, "4", NULL, NULL, {NULL}, SHARE_FITS, "4"},
    {"10", "5", NULL, "4", NULL, NULL, {NULL}, SHARE_FITS, "5"},
    {"10", "8", NULL, "4", "8", NULL, {NULL}, SHARE_FITS, "8"},
    {"10", "9", NULL, "4", "8", NULL, {NULL}, SHARE_REFUSED, "9"},
    {"10", NULL, NULL, "4", "8", NULL, {NULL}, SHARE_REFUSED, "10"},
    {"10", "4", NULL, "4", NULL, "3", {NULL}, SHARE_FITS, "4"},
    {"10", "5", NULL, "4", NULL, "3", {NULL}, SHARE_FITS, "7"},
    {"10", "7", NULL, "4", NULL, "3", {NULL}, SHARE_FITS, "7"},
    {"10", "8", NULL, "4", "9", "3", {NULL}, SHARE_REFUSED, "10"},
    {"10", "8", NULL, "4", "10", "3", {NULL}, SHARE_FITS, "10"},
    {"9", NULL, NULL, "4", NULL, "3", {NULL}, SHARE_REFUSED, "9"},
    /* Without a least nothing is rounded, and steps are counted from nothing. */
    {"10", "3", NULL, NULL, "8", NULL, {NULL}, SHARE_FITS, "3"},
    {"10", "9", NULL, NULL, "8", NULL, {NULL}, SHARE_REFUSED, "9"},
    {"10", "3", NULL, NULL, "8", "2", {NULL}, SHARE_REFUSED, "3"},
    {"10", "4", NULL, NULL, "8", "2", {NULL}, SHARE_FITS, "4"},
    /* In thousandths where the range can be told in them, else in whole ones, rounded up. */
    {"1", "600m", NULL, "500m", NULL, "250m", {NULL}, SHARE_FITS, "750m"},
    {"10", "2", NULL, "1500u", NULL, "1500m", {NULL}, SHARE_FITS, "3"},
    {"10", "2", NULL, "1", "4000001u", "2", {NULL}, SHARE_FITS, "3"},
    {"10", "2500m", NULL, "1", NULL, "1000001u", {NULL}, SHARE_FITS, "3"},
    {"10", "1000500u", NULL, "1", NULL, "1", {NULL}, SHARE_BROKEN, NULL},
    /* What can't be calculated with. */
    {"10", "5", NULL, "4", NULL, "0", {NULL}, SHARE_BROKEN, NULL},
    {"10", "5", NULL, "4", NULL, "-1", {NULL}, SHARE_BROKEN, NULL},
    {"10", "3", NULL, "4", NULL, "0", {NULL}, SHARE_REFUSED, "4"},
    {"9E", "9E", NULL, "1", NULL, "1", {NULL}, SHARE_BROKEN, NULL},
    /* Values: the first that is enough; what is beyond them all is refused. */
    {"10", "3", NULL, NULL, NULL, NULL, {"4", "8"}, SHARE_FITS, "4"},
    {"10", "4", NULL, NULL, NULL, NULL, {"4", "8"}, SHARE_FITS, "4"},
    {"10", "5", NULL, NULL, NULL, NULL, {"4", "8"}, SHARE_FITS, "8"},
    {"10", "9", NULL, NULL, NULL, NULL, {"4", "8"}, SHARE_REFUSED, "9"},
    {"10", NULL, NULL, NULL, NULL, NULL, {"4", "8"}, SHARE_REFUSED, "10"},
    {"10", "3", NULL, NULL, NULL, NULL, {"many", "8"}, SHARE_FITS, "8"},
    {"10", "9", NULL, NULL, NULL, NULL, {"many", "8"}, SHARE_REFUSED, "9"},
    {"10", "5", NULL, NULL, NULL, NULL, {"4", "16"}, SHARE_REFUSED, "16"},
};

static struct opt_quantity quantity_of(const char *text)
{
    struct opt_quantity quantity = {.is_set = false};
    struct err err;
    if (text != NULL) {
        quantity.is_set = true;
        assert_int_equal(quantity_parse(str_from_c(text), &quantity.value, &err).code, RC_OK);
    }
    return quantity;
}

static enum share_answer ask_row(const struct row *row, i128 *ret_amount)
{
    struct str values[3];
    struct capacity_range range = {quantity_of(row->min), quantity_of(row->max),
                                   quantity_of(row->step)};
    struct capacity_request_policy policy = {.default_value = quantity_of(row->standard)};
    while (row->values[policy.valid_values.count] != NULL) {
        values[policy.valid_values.count] = str_from_c(row->values[policy.valid_values.count]);
        policy.valid_values.count++;
    }
    policy.valid_values.items = values;
    policy.valid_range = range.min.is_set || range.max.is_set || range.step.is_set ? &range : NULL;
    bool has_policy =
        policy.valid_range != NULL || policy.default_value.is_set || policy.valid_values.count > 0;
    struct device_capacity capacity = {STR("memory"), quantity_of(row->value),
                                       has_policy ? &policy : NULL};
    struct device device = {.capacity = {&capacity, 1}};
    struct resource_amount wanted = {.name = STR("memory"), .value = quantity_of(row->asked).value};
    struct resource_list asked = {&wanted, row->asked == NULL ? 0 : 1};
    return share_amounts(&device, &asked, ret_amount);
}

static void amount_follows_the_policy(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        const struct row *row = &ROWS[i];
        i128 amount = 0;
        enum share_answer answer = ask_row(row, &amount);
        if (answer != row->answer ||
            (row->amount != NULL && amount != quantity_of(row->amount).value.nano)) {
            fail_msg("row %zu: answer %d, %lld thousandths", i, (int)answer,
                     (long long)(amount / 1000000));
        }
    }
}

/* Of several capacities each has to do; one that the device hasn't is refused, one that can't be
 * calculated with ends it. */
static void each_capacity_has_to_do(void **state)
{
    (void)state;
    struct capacity_range range = {quantity_of("1"), quantity_of(NULL), quantity_of("0")};
    struct capacity_request_policy policy = {.valid_range = &range};
    struct device_capacity capacities[] = {{STR("memory"), quantity_of("10"), NULL},
                                           {STR("cores"), quantity_of("4"), NULL}};
    struct device device = {.capacity = {capacities, 2}};
    struct resource_amount wanted[] = {{.name = STR("memory"), .value = quantity_of("11").value},
                                       {.name = STR("cores"), .value = quantity_of("2").value}};
    struct resource_list asked = {wanted, 2};
    i128 amounts[2];
    assert_int_equal(share_amounts(&device, &asked, amounts), SHARE_REFUSED);
    wanted[0].value = quantity_of("1").value;
    assert_int_equal(share_amounts(&device, &asked, amounts), SHARE_FITS);
    check_i64((int64_t)(amounts[1] / 1000000000), 2);
    assert_int_equal(share_amounts(&device, NULL, amounts), SHARE_FITS);
    check_i64((int64_t)(amounts[1] / 1000000000), 4);
    capacities[1].request_policy = &policy;
    assert_int_equal(share_amounts(&device, &asked, amounts), SHARE_BROKEN);
    wanted[1].name = STR("lanes");
    assert_int_equal(share_amounts(&device, &asked, amounts), SHARE_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amount_follows_the_policy),
        cmocka_unit_test(each_capacity_has_to_do),
    };
    return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
