/* Cost by the arguments' sizes, in tenths where text is read. Source: cel-go
 * interpreter/runtimecost.go and ext/lists.go, ext/sets.go;
 * k8s.io/apiserver/pkg/cel/library/cost.go. Lengths are counted in bytes rather than characters. */
#include "impl.h"
#include "tallyman/base/limits.h"

uint64_t cel_size_cost(struct cel_eval *ev, struct cel_value value)
{
    switch ((int)value.kind) {
    case CEL_STRING:
    case CEL_BYTES:
        return value.text.len;
    case CEL_LIST:
        return value.list->count;
    case CEL_MAP:
        if (value.map->kind == CEL_MAP_ENTRIES) {
            return value.map->count;
        }
        value.map = cel_map_entries(ev, value.map);
        return value.map == NULL ? 0 : value.map->count;
    case CEL_OPTIONAL:
        return value.optional == NULL ? 1 : cel_size_cost(ev, *value.optional);
    default:
        return 1;
    }
}

static uint64_t tenths(uint64_t size)
{
    return size / 10 + (size % 10 != 0 ? 1 : 0);
}

static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t result = 0;
    return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX / 2 : result;
}

/* Reading a list and the texts in it. */
static uint64_t traversal(struct cel_value value)
{
    if (value.kind == CEL_STRING || value.kind == CEL_BYTES) {
        return tenths(value.text.len);
    }
    if (value.kind != CEL_LIST) {
        return 1;
    }
    uint64_t cost = value.list->count;
    for (uint32_t i = 0; i < value.list->count; i++) {
        if (value.list->items[i].kind == CEL_STRING) {
            cost += tenths(value.list->items[i].text.len);
        }
    }
    return cost;
}

static uint64_t comparison(struct cel_eval *ev, const struct cel_value *args)
{
    if (args[0].kind == CEL_QUANTITY || args[0].kind == CEL_SEMVER) {
        return 1;
    }
    uint64_t a = cel_size_cost(ev, args[0]);
    uint64_t b = cel_size_cost(ev, args[1]);
    return tenths(a < b ? a : b);
}

static uint64_t search(const struct cel_value *args)
{
    uint64_t text = args[0].kind == CEL_STRING ? args[0].text.len : 0;
    uint64_t pattern = args[1].kind == CEL_STRING ? args[1].text.len : 0;
    return product(tenths(text + 1), pattern / 4 + (pattern % 4 != 0 ? 1 : 0));
}

/* What is compared with everything else in the same list. */
static uint64_t self_comparison(struct cel_value list)
{
    if (list.kind != CEL_LIST) {
        return 11;
    }
    uint64_t count = list.list->count;
    bool is_text = count > 0 && (list.list->items[0].kind == CEL_STRING ||
                                 list.list->items[0].kind == CEL_BYTES);
    return product(product(count, count), is_text ? 21 : 20) / 10 + 11;
}

static uint64_t sum_of_sizes(struct cel_eval *ev, const struct cel_value *args)
{
    bool is_text = args[0].kind == CEL_STRING || args[0].kind == CEL_BYTES;
    return is_text ? tenths(cel_size_cost(ev, args[0]) + cel_size_cost(ev, args[1])) : 1;
}

static uint64_t text_cost(struct cel_eval *ev, const struct cel_node *node,
                          const struct cel_value *args, uint32_t count)
{
    uint64_t size = count > 0 ? cel_size_cost(ev, args[0]) : 0;
    switch ((int)node->function) {
    case CEL_FN_STARTS_WITH:
    case CEL_FN_ENDS_WITH:
        return tenths(cel_size_cost(ev, args[1]));
    case CEL_FN_CONTAINS:
        return product(tenths(size), tenths(cel_size_cost(ev, args[1])));
    case CEL_FN_REPLACE:
    case CEL_FN_SPLIT:
        return tenths(2 * size);
    case CEL_FN_MATCHES:
    case CEL_FN_FIND:
    case CEL_FN_FIND_ALL:
        return search(args);
    default:
        return tenths(size);
    }
}

static uint64_t list_cost(struct cel_eval *ev, const struct cel_node *node,
                          const struct cel_value *args, uint32_t count)
{
    uint64_t size = cel_size_cost(ev, args[0]);
    switch ((int)node->function) {
    case CEL_FN_SLICE:
    case CEL_FN_REVERSE:
        return size + 11;
    case CEL_FN_FLATTEN:
        return product(size, count == 2 && args[1].kind == CEL_INT && args[1].integer > 1
                                 ? (uint64_t)args[1].integer
                                 : 1) +
               11;
    case CEL_FN_DISTINCT:
    case CEL_FN_SORT:
        return self_comparison(args[0]);
    case CEL_FN_SORT_BY_KEYS:
        return self_comparison(args[1]);
    case CEL_FN_LISTS_RANGE:
        /* Past CEL_RANGE_MAX it is an error, and that costs little. */
        return args[0].kind == CEL_INT && args[0].integer > 0 && args[0].integer <= CEL_RANGE_MAX
                   ? (uint64_t)args[0].integer + 11
                   : 12;
    case CEL_FN_SETS_EQUIVALENT:
        return product(2 * size, cel_size_cost(ev, args[1])) + 1;
    case CEL_FN_SETS_CONTAINS:
    case CEL_FN_SETS_INTERSECTS:
        return product(size, cel_size_cost(ev, args[1])) + 1;
    default:
        return traversal(args[0]);
    }
}

static bool is_list_function(enum cel_function function)
{
    switch ((int)function) {
    case CEL_FN_SLICE:
    case CEL_FN_REVERSE:
    case CEL_FN_FLATTEN:
    case CEL_FN_DISTINCT:
    case CEL_FN_SORT:
    case CEL_FN_SORT_BY_KEYS:
    case CEL_FN_LISTS_RANGE:
    case CEL_FN_SETS_EQUIVALENT:
    case CEL_FN_SETS_CONTAINS:
    case CEL_FN_SETS_INTERSECTS:
    case CEL_FN_IS_SORTED:
    case CEL_FN_SUM:
    case CEL_FN_MAX:
    case CEL_FN_MIN:
    case CEL_FN_INDEX_OF:
    case CEL_FN_LAST_INDEX_OF:
    case CEL_FN_INCLUDES:
        return true;
    default:
        return false;
    }
}

static bool is_text_function(enum cel_function function)
{
    switch ((int)function) {
    case CEL_FN_STARTS_WITH:
    case CEL_FN_ENDS_WITH:
    case CEL_FN_CONTAINS:
    case CEL_FN_REPLACE:
    case CEL_FN_SPLIT:
    case CEL_FN_MATCHES:
    case CEL_FN_FIND:
    case CEL_FN_FIND_ALL:
    case CEL_FN_LOWER_ASCII:
    case CEL_FN_UPPER_ASCII:
    case CEL_FN_SUBSTRING:
    case CEL_FN_TRIM:
    case CEL_FN_QUOTE:
    case CEL_FN_FORMAT:
    case CEL_FN_BYTES:
    case CEL_FN_QUANTITY:
    case CEL_FN_IS_QUANTITY:
    case CEL_FN_SEMVER:
    case CEL_FN_IS_SEMVER:
        return true;
    default:
        return false;
    }
}

bool cel_charge_call(struct cel_eval *ev, const struct cel_node *node, const struct cel_value *args,
                     uint32_t count)
{
    uint64_t cost = 1;
    switch ((int)node->function) {
    case CEL_FN_EQUAL:
    case CEL_FN_NOT_EQUAL:
    case CEL_FN_LESS:
    case CEL_FN_LESS_EQUAL:
    case CEL_FN_GREATER:
    case CEL_FN_GREATER_EQUAL:
        cost = comparison(ev, args);
        break;
    case CEL_FN_ADD:
        cost = sum_of_sizes(ev, args);
        break;
    case CEL_FN_IN:
        /* A constant list has become a hash set. */
        cost = args[1].kind == CEL_LIST && !node->is_const_set ? args[1].list->count : 1;
        break;
    default:
        if (is_text_function(node->function)) {
            cost = text_cost(ev, node, args, count);
        } else if (is_list_function(node->function)) {
            cost = list_cost(ev, node, args, count);
        }
        break;
    }
    return cel_charge(ev, cost);
}
