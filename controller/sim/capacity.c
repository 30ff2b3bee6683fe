/* capacity.c - devices that are allocated several times (allowMultipleAllocations): what one share
 * takes of their capacities. Source of the rules:
 * k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go. */
#include "sim_internal.h"

#define NANO  ((i128)1000000000)
#define MILLI ((i128)1000000)

bool device_is_shareable(const struct device *device)
{
    return device->allow_multiple_allocations.is_set && device->allow_multiple_allocations.value;
}

static const struct resource_amount *request_for(const struct capacity_requirements *asked,
                                                 struct str name)
{
    for (uint32_t i = 0; asked != NULL && i < asked->requests.count; i++) {
        if (str_eq(asked->requests.items[i].name, name)) {
            return &asked->requests.items[i];
        }
    }
    return NULL;
}

static bool has_all_that_is_asked(const struct device *device,
                                  const struct capacity_requirements *asked)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < device->capacity.count; i++) {
        found += request_for(asked, device->capacity.items[i].key) != NULL ? 1 : 0;
    }
    return asked == NULL || found == asked->requests.count;
}

/* Quantities are reckoned in thousandths, in whole ones where a bound isn't told in thousandths. */
static i128 unit_of(const struct capacity_range *range)
{
    const struct opt_quantity *bounds[] = {&range->min, &range->max, &range->step};
    for (size_t i = 0; i < ARRAY_COUNT(bounds); i++) {
        if (bounds[i]->is_set && bounds[i]->value.nano % MILLI != 0) {
            return NANO;
        }
    }
    return MILLI;
}

static i128 in_units(i128 nano, i128 unit)
{
    return nano / unit + (nano % unit > 0 ? 1 : 0);
}

/* Up to the next step from the minimum. */
static i128 step_up(const struct capacity_range *range, i128 nano)
{
    i128 unit = unit_of(range);
    i128 step = range->step.is_set ? in_units(range->step.value.nano, unit) : 0;
    if (nano <= range->min.value.nano || step <= 0) {
        return nano > range->min.value.nano ? nano : range->min.value.nano;
    }
    i128 min = in_units(range->min.value.nano, unit);
    i128 steps = in_units(in_units(nano, unit) - min, step);
    return (min + steps * step) * unit;
}

static i128 valid_value(const struct str_list *values, uint32_t i)
{
    struct quantity value = {.nano = 0};
    struct err err;
    return rc_failed(quantity_parse(values->items[i], &value, &err)) ? -1 : value.nano;
}

/* `asked` NULL: nothing is said of this capacity. */
static i128 taken_of(const struct device_capacity *capacity, const struct resource_amount *asked)
{
    const struct capacity_request_policy *policy = capacity->request_policy;
    if (asked == NULL) {
        bool has_default = policy != NULL && policy->default_value.is_set;
        return has_default ? policy->default_value.value.nano : capacity->value.value.nano;
    }
    if (policy != NULL && policy->valid_range != NULL && policy->valid_range->min.is_set) {
        return step_up(policy->valid_range, asked->value.nano);
    }
    for (uint32_t i = 0; policy != NULL && i < policy->valid_values.count; i++) {
        if (asked->value.nano <= valid_value(&policy->valid_values, i)) {
            return valid_value(&policy->valid_values, i);
        }
    }
    return asked->value.nano;
}

static bool range_allows(const struct capacity_range *range, i128 taken)
{
    i128 unit = unit_of(range);
    i128 step = range->step.is_set ? in_units(range->step.value.nano, unit) : 1;
    bool is_too_much = range->max.is_set && taken > range->max.value.nano;
    i128 above = in_units(taken, unit) - in_units(range->min.value.nano, unit);
    return !is_too_much && step > 0 && (!range->step.is_set || above % step == 0);
}

static bool policy_allows(const struct capacity_request_policy *policy, i128 taken)
{
    if (policy == NULL ||
        (policy->default_value.is_set && taken == policy->default_value.value.nano)) {
        return true;
    }
    if (policy->valid_range != NULL) {
        return range_allows(policy->valid_range, taken);
    }
    bool is_valid = policy->valid_values.count == 0;
    for (uint32_t i = 0; i < policy->valid_values.count; i++) {
        is_valid = is_valid || taken == valid_value(&policy->valid_values, i);
    }
    return is_valid;
}

static struct str amount_text(struct sim *sim, i128 nano)
{
    return nano % NANO == 0
               ? arena_format(&sim->scratch, "%lld", (long long)(nano / NANO))
               : arena_format(&sim->scratch, "%lldm", (long long)in_units(nano, MILLI));
}

bool capacity_share(struct sim *sim, const struct device *device,
                    const struct capacity_requirements *asked, struct resource_list *ret_taken)
{
    uint32_t count = device->capacity.count;
    if (!has_all_that_is_asked(device, asked)) {
        return false;
    }
    ret_taken->items = ARENA_ARRAY(&sim->scratch, struct resource_amount, count + 1);
    ret_taken->count = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct device_capacity *capacity = &device->capacity.items[i];
        i128 taken = taken_of(capacity, request_for(asked, capacity->key));
        ret_taken->items[i] =
            (struct resource_amount){capacity->key, {.nano = taken}, amount_text(sim, taken)};
        if (taken < 0 || taken > capacity->value.value.nano ||
            !policy_allows(capacity->request_policy, taken)) {
            return false;
        }
    }
    return true;
}
