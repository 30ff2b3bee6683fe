/* fit_share.c - how much of a device's capacities one allocation takes. */
#include "ask.h"

#define NANO  ((i128)1000000000)
#define MILLI ((i128)1000000)

static i128 round_up_to(i128 value, i128 unit)
{
    return value >= 0 ? (value + unit - 1) / unit * unit : value / unit * unit;
}

static bool is_milli(i128 nano)
{
    return nano % MILLI == 0 && nano / MILLI <= INT64_MAX;
}

/* The unit that kube-scheduler calculates the range in: thousandths where all of it can be told in
 * them, else whole ones, rounded up. */
static i128 range_unit(const struct capacity_range *range)
{
    bool is_fine = !range->min.is_set || is_milli(range->min.value.nano);
    is_fine = is_fine && (!range->max.is_set || is_milli(range->max.value.nano));
    is_fine = is_fine && (!range->step.is_set || is_milli(range->step.value.nano));
    return is_fine ? MILLI : NANO;
}

static enum share_answer round_in_range(const struct capacity_range *range, i128 asked,
                                        i128 *ret_amount)
{
    i128 unit = range_unit(range);
    i128 min = round_up_to(range->min.value.nano, unit);
    *ret_amount = asked;
    if (asked < range->min.value.nano) {
        *ret_amount = range->min.value.nano;
        return SHARE_FITS;
    }
    if (!range->step.is_set) {
        return SHARE_FITS;
    }
    i128 step = round_up_to(range->step.value.nano, unit);
    bool is_told = unit == NANO || asked % MILLI == 0;
    if (step <= 0 || !is_told || asked / unit > INT64_MAX) {
        return SHARE_BROKEN;
    }
    i128 steps = (round_up_to(asked, unit) - min + step - 1) / step;
    *ret_amount = min + steps * step;
    return *ret_amount / unit > INT64_MAX ? SHARE_BROKEN : SHARE_FITS;
}

static bool read_value(struct str text, i128 *ret_nano)
{
    struct quantity value;
    struct err err;
    bool is_read = !rc_failed(quantity_parse(text, &value, &err));
    *ret_nano = is_read ? value.nano : 0;
    return is_read;
}

/* The first valid value that is enough; the asked one if none is. */
static i128 round_to_values(const struct str_list *values, i128 asked)
{
    for (uint32_t i = 0; i < values->count; i++) {
        i128 value;
        if (read_value(values->items[i], &value) && asked <= value) {
            return value;
        }
    }
    return asked;
}

static bool is_valid_value(const struct str_list *values, i128 amount)
{
    for (uint32_t i = 0; i < values->count; i++) {
        i128 value;
        if (read_value(values->items[i], &value) && amount == value) {
            return true;
        }
    }
    return false;
}

static bool is_in_range(const struct capacity_range *range, i128 amount)
{
    i128 unit = range_unit(range);
    i128 step = round_up_to(range->step.value.nano, unit);
    if (range->max.is_set && amount > range->max.value.nano) {
        return false;
    }
    if (range->step.is_set && step <= 0) {
        return false;
    }
    return !range->step.is_set ||
           (round_up_to(amount, unit) - round_up_to(range->min.value.nano, unit)) % step == 0;
}

static bool is_allowed(const struct capacity_request_policy *policy, i128 amount)
{
    if (policy == NULL ||
        (policy->default_value.is_set && policy->default_value.value.nano == amount)) {
        return true;
    }
    if (policy->valid_range != NULL) {
        return is_in_range(policy->valid_range, amount);
    }
    return policy->valid_values.count == 0 || is_valid_value(&policy->valid_values, amount);
}

static enum share_answer share_amount(const struct device_capacity *capacity,
                                      const struct quantity *asked, i128 *ret_amount)
{
    const struct capacity_request_policy *policy = capacity->request_policy;
    enum share_answer answer = SHARE_FITS;
    if (asked == NULL) {
        bool has_default = policy != NULL && policy->default_value.is_set;
        *ret_amount = has_default ? policy->default_value.value.nano : capacity->value.value.nano;
    } else if (policy != NULL && policy->valid_range != NULL && policy->valid_range->min.is_set) {
        answer = round_in_range(policy->valid_range, asked->nano, ret_amount);
    } else if (policy != NULL && policy->valid_values.count > 0) {
        *ret_amount = round_to_values(&policy->valid_values, asked->nano);
    } else {
        *ret_amount = asked->nano;
    }
    return *ret_amount < 0 ? SHARE_BROKEN : answer;
}

static const struct quantity *find_amount(const struct resource_list *list, struct str name)
{
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        if (str_eq(list->items[i].name, name)) {
            return &list->items[i].value;
        }
    }
    return NULL;
}

static bool has_capacity(const struct device *device, struct str name)
{
    for (uint32_t i = 0; i < device->capacity.count; i++) {
        if (str_eq(device->capacity.items[i].key, name)) {
            return true;
        }
    }
    return false;
}

enum share_answer share_amounts(const struct device *device, const struct resource_list *requests,
                                i128 *ret_amounts)
{
    for (uint32_t i = 0; requests != NULL && i < requests->count; i++) {
        if (!has_capacity(device, requests->items[i].name)) {
            return SHARE_REFUSED;
        }
    }
    enum share_answer answer = SHARE_FITS;
    for (uint32_t i = 0; i < device->capacity.count; i++) {
        const struct device_capacity *capacity = &device->capacity.items[i];
        const struct quantity *asked = find_amount(requests, capacity->key);
        if (share_amount(capacity, asked, &ret_amounts[i]) == SHARE_BROKEN) {
            return SHARE_BROKEN;
        }
        if (!is_allowed(capacity->request_policy, ret_amounts[i]) ||
            ret_amounts[i] > capacity->value.value.nano) {
            answer = SHARE_REFUSED;
        }
    }
    return answer;
}
