/* fit_candidates.c - the devices that a node offers to an ask, in the order in which kube-scheduler
 * goes through them.
 *
 * Since 1.36 that is by driver, pool, slice and place in the slice. Before, only the order within a
 * slice is known; so where a request may be met from several slices they are tried in every order,
 * which costs nothing where no request can (the usual case). */
#include "allocate.h"

#include "internal.h"

#include <stdlib.h>
#include <string.h>

static int driver_and_pool_compare(const struct resource_slice_spec *a,
                                   const struct resource_slice_spec *b)
{
    int order = str_compare(a->driver, b->driver);
    return order != 0 ? order : str_compare(a->pool.name, b->pool.name);
}

static int candidate_compare(const void *left, const void *right)
{
    const struct candidate *a = left;
    const struct candidate *b = right;
    const struct resource_slice *slice_a = a->device->slice;
    const struct resource_slice *slice_b = b->device->slice;
    bool is_last_a = a->device->pool->has_binding_conditions;
    bool is_last_b = b->device->pool->has_binding_conditions;
    if (is_last_a != is_last_b) {
        return is_last_a ? 1 : -1;
    }
    int order = driver_and_pool_compare(&slice_a->spec, &slice_b->spec);
    order = order != 0 ? order : str_compare(slice_a->meta.name, slice_b->meta.name);
    if (order != 0) {
        return order;
    }
    return (a->device->device > b->device->device) - (a->device->device < b->device->device);
}

static bool pool_is_overdrawn(const struct core *core, const struct pool_state *pool)
{
    for (uint32_t i = 0; i < pool->counter_count; i++) {
        if (counter_drawn(core, &pool->counters[i]) > pool->counters[i].capacity) {
            return true;
        }
    }
    return false;
}

/* Whether the device could ever give what the option asks of its capacities. */
static enum share_answer could_give(const struct search *search, const struct ask_option *option,
                                    const struct device_state *device)
{
    const struct capacity_requirements *capacity = option->object->capacity;
    size_t capacities = device->device->capacity.count;
    i128 *amounts = ARENA_ARRAY(&search->core->scratch, i128, capacities + 1);
    return share_amounts(device->device, capacity == NULL ? NULL : &capacity->requests, amounts);
}

static void read_options(struct search *search, struct candidate *candidate)
{
    for (uint32_t o = 0; o < search->ask->option_count; o++) {
        const struct ask_option *option = &search->ask->options[o];
        enum match match = profile_match(search->core, option->profile, candidate->device);
        uint64_t bit = UINT64_C(1) << o;
        bool is_match = match == MATCH_YES || match == MATCH_OUT;
        bool is_failing = match == MATCH_FAILED;
        if (is_match && option->is_all) { /* of all, those that could never do aren't any */
            enum share_answer answer = could_give(search, option, candidate->device);
            is_match = answer == SHARE_FITS;
            is_failing = answer == SHARE_BROKEN;
        }
        candidate->options |= is_match ? bit : 0;
        bool is_healed = search->is_emptied || search->core->plan_is_healed;
        candidate->out |= match == MATCH_OUT && !is_healed ? bit : 0;
        candidate->failing |= is_failing ? bit : 0;
    }
}

static struct candidate candidate_read(struct search *search, struct device_state *device)
{
    struct core *core = search->core;
    struct candidate candidate = {.device = device};
    read_options(search, &candidate);
    if (device->is_shareable) {
        candidate.shares =
            ARENA_ARRAY(&core->scratch, i128, device->device->capacity.count + (size_t)1);
        candidate.has_shares = !search->is_emptied && device_has_shares(core, device);
    }
    candidate.is_open = search->is_emptied || device_is_unheld(core, device);
    candidate.is_overdrawn =
        !search->is_emptied && device->counter_count > 0 && pool_is_overdrawn(core, device->pool);
    return candidate;
}

/* The slices in the order of their candidates, at most one more than are tried; how many. */
static uint32_t list_slices(const struct search *search, const struct resource_slice **ret_slices)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < search->count && count <= LOOSE_SLICES_MAX; i++) {
        const struct resource_slice *slice = search->items[i].device->slice;
        if (count == 0 || ret_slices[count - 1] != slice) {
            ret_slices[count++] = slice;
        }
    }
    return count;
}

static bool spans_slices(const struct search *search, uint64_t option)
{
    const struct resource_slice *first = NULL;
    for (uint32_t i = 0; i < search->count; i++) {
        const struct resource_slice *slice = search->items[i].device->slice;
        if ((search->items[i].options & option) == 0) {
            continue;
        }
        if (first != NULL && slice != first) {
            return true;
        }
        first = slice;
    }
    return false;
}

/* How many slices there are, if an option may be met from several of them. */
static uint32_t count_loose(const struct search *search)
{
    const struct resource_slice *slices[LOOSE_SLICES_MAX + 1];
    for (uint32_t o = 0; o < search->ask->option_count; o++) {
        if (spans_slices(search, UINT64_C(1) << o)) {
            return list_slices(search, slices);
        }
    }
    return 0;
}

/* -- attributes -------------------------------------------------------------------------------- */

static const struct device_attribute *attribute_by_key(const struct device *device, struct str key)
{
    for (uint32_t i = 0; i < device->attributes.count; i++) {
        if (str_eq(device->attributes.items[i].key, key)) {
            return &device->attributes.items[i];
        }
    }
    return NULL;
}

const struct device_attribute *device_attribute_find(const struct device_state *device,
                                                     struct str name)
{
    const struct device_attribute *full = attribute_by_key(device->device, name);
    size_t slash = str_find_char(name, '/');
    if (full != NULL || slash == name.len ||
        !str_eq(str_take(name, slash), device->slice->spec.driver)) {
        return full;
    }
    return attribute_by_key(device->device, str_skip(name, slash + 1));
}

static int text_compare(struct str a, struct str b)
{
    bool is_set = str_is_set(a);
    return is_set != str_is_set(b) ? (is_set ? 1 : -1) : str_compare(a, b);
}

static int number_compare(bool is_set_a, int64_t a, bool is_set_b, int64_t b)
{
    return is_set_a != is_set_b ? (is_set_a ? 1 : -1) : (a > b) - (a < b);
}

/* A candidate's attribute of one name. */
struct named_value {
    const struct device_attribute *attribute;
    uint32_t candidate;
};

static int value_compare(const void *left, const void *right)
{
    const struct device_attribute *a = ((const struct named_value *)left)->attribute;
    const struct device_attribute *b = ((const struct named_value *)right)->attribute;
    int order = number_compare(a->int_value.is_set, a->int_value.value, b->int_value.is_set,
                               b->int_value.value);
    order = order != 0 ? order
                       : number_compare(a->bool_value.is_set, a->bool_value.value,
                                        b->bool_value.is_set, b->bool_value.value);
    order = order != 0 ? order : text_compare(a->string_value, b->string_value);
    return order != 0 ? order : text_compare(a->version_value, b->version_value);
}

/* Numbers the values that the candidates have of the attribute, from 1. */
static void number_values(struct search *search, struct str name, uint32_t at)
{
    struct named_value *named =
        ARENA_ARRAY(&search->core->scratch, struct named_value, search->count + (size_t)1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < search->count; i++) {
        const struct device_attribute *attribute =
            device_attribute_find(search->items[i].device, name);
        if (attribute != NULL) {
            named[count++] = (struct named_value){attribute, i};
        }
    }
    if (count > 1) {
        qsort(named, count, sizeof(struct named_value), value_compare);
    }
    uint32_t number = 0;
    for (uint32_t i = 0; i < count; i++) {
        number += i == 0 || value_compare(&named[i - 1], &named[i]) != 0 ? 1 : 0;
        search->items[named[i].candidate].values[at] = number;
    }
}

/* What the constraints compare, so that the search compares numbers. */
static void find_values(struct search *search)
{
    const struct device_ask *ask = search->ask;
    struct arena *arena = &search->core->scratch;
    uint32_t count = 0;
    search->first_values = ARENA_ARRAY(arena, uint32_t, ask->claim_count + (size_t)1);
    for (uint32_t c = 0; c < ask->claim_count; c++) {
        search->first_values[c] = count;
        count += ask->claims[c].spec->constraints.count;
    }
    search->value_count = count;
    for (uint32_t i = 0; count > 0 && i < search->count; i++) {
        search->items[i].values = ARENA_ARRAY(arena, uint32_t, count);
        memset(search->items[i].values, 0, count * sizeof(uint32_t));
    }
    for (uint32_t c = 0; c < ask->claim_count; c++) {
        const struct device_constraint_list *list = &ask->claims[c].spec->constraints;
        for (uint32_t i = 0; i < list->count; i++) {
            struct str name = str_is_set(list->items[i].match_attribute)
                                  ? list->items[i].match_attribute
                                  : list->items[i].distinct_attribute;
            number_values(search, name, search->first_values[c] + i);
        }
    }
}

void search_open(struct search *search, struct core *core, const struct device_ask *ask,
                 const struct node_state *node, bool is_emptied)
{
    *search = (struct search){.core = core, .ask = ask, .is_emptied = is_emptied};
    uint32_t capacity = 0;
    struct device_walk walk = device_walk_start(core, node);
    struct device_state *device;
    while ((device = device_walk_next(&walk)) != NULL) {
        struct candidate candidate = candidate_read(search, device);
        if ((candidate.options | candidate.failing) == 0) {
            continue;
        }
        search->has_roaming = search->has_roaming || device->node == NULL;
        search->items = arena_grow(&core->scratch, search->items, search->count, &capacity,
                                   sizeof(struct candidate));
        search->items[search->count++] = candidate;
    }
    if (search->count > 1) {
        qsort(search->items, search->count, sizeof(struct candidate), candidate_compare);
    }
    search->order = ARENA_ARRAY(&core->scratch, uint32_t, search->count + (size_t)1);
    for (uint32_t i = 0; i < search->count; i++) {
        search->order[i] = i;
    }
    search->loose = count_loose(search);
    search->steps_allowed = searches_allowed(core);
    find_values(search);
}

/* -- candidates that can't be told apart ------------------------------------------------------- */

static bool are_counters_equal(const struct device_state *a, const struct device_state *b)
{
    bool is_equal =
        a->counter_count == b->counter_count && (a->counter_count == 0 || a->pool == b->pool);
    for (uint32_t i = 0; i < a->counter_count && is_equal; i++) {
        is_equal = a->counters[i].counter == b->counters[i].counter &&
                   a->counters[i].amount == b->counters[i].amount;
    }
    return is_equal;
}

static bool are_values_equal(const struct search *search, const struct candidate *a,
                             const struct candidate *b)
{
    for (uint32_t i = 0; i < search->value_count; i++) {
        if (a->values[i] != b->values[i]) {
            return false;
        }
    }
    return true;
}

static bool are_alike(const struct search *search, const struct candidate *a,
                      const struct candidate *b)
{
    bool is_plain = a->shares == NULL && b->shares == NULL &&
                    a->device->device->capacity.count == 0 &&
                    b->device->device->capacity.count == 0;
    return is_plain && a->options == b->options && a->out == b->out &&
           (a->failing | b->failing) == 0 && a->is_open == b->is_open &&
           a->is_taken == b->is_taken && a->device->is_uncountable == b->device->is_uncountable &&
           are_counters_equal(a->device, b->device) && are_values_equal(search, a, b);
}

void search_find_alike(struct search *search)
{
    search->knows_alike = true;
    for (uint32_t i = 0; i < search->count; i++) {
        struct candidate *candidate = &search->items[i];
        candidate->alike = i;
        uint32_t j = 0;
        for (; j < i && candidate->alike == i; j++) {
            bool is_first = search->items[j].alike == j;
            if (is_first && are_alike(search, &search->items[j], candidate)) {
                candidate->alike = j;
            }
        }
        search_count(search, j / 16);
        if (search->steps > search->steps_allowed) {
            search->knows_alike = false; /* the search ends at its next step */
            return;
        }
    }
}

/* -- orders ------------------------------------------------------------------------------------ */

bool search_set_order(struct search *search, uint32_t turn)
{
    const struct resource_slice *slices[LOOSE_SLICES_MAX + 1];
    if (search->loose <= 1) {
        return turn == 0;
    }
    uint32_t count = list_slices(search, slices);
    uint32_t orders = 1;
    for (uint32_t i = 2; i <= count; i++) {
        orders *= i;
    }
    if (turn >= orders) {
        return false;
    }
    uint32_t filled = 0;
    for (uint32_t left = count; left > 0; left--) {
        uint32_t at = turn % left;
        turn /= left;
        for (uint32_t i = 0; i < search->count; i++) {
            if (search->items[i].device->slice == slices[at]) {
                search->order[filled++] = i;
            }
        }
        for (uint32_t i = at; i + 1 < left; i++) {
            slices[i] = slices[i + 1];
        }
    }
    return true;
}
