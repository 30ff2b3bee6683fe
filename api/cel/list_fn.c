/* Lists and sets. Source: k8s.io/apiserver/pkg/cel/library/lists.go, cel-go ext/lists.go,
 * ext/sets.go. */
#include "impl.h"
#include "tallyman/base/limits.h"

static struct cel_value list_or_stop(struct cel_eval *ev, const struct cel_value *items,
                                     uint32_t count)
{
    return items == NULL ? cel_stop(ev, RC_LIMIT, NULL) : cel_list_value(ev, items, count);
}

static struct cel_value optional_at(struct cel_eval *ev, const struct cel_value *args, bool is_last)
{
    struct cel_value value = {.kind = CEL_OPTIONAL, .optional = NULL};
    if (args[0].kind != CEL_LIST) {
        return cel_no_overload(ev);
    }
    const struct cel_list *list = args[0].list;
    if (list->count > 0) {
        value.optional = &list->items[is_last ? list->count - 1 : 0];
    }
    return value;
}

struct cel_value cel_first(struct cel_eval *ev, UNUSED const struct cel_node *node,
                           const struct cel_value *args, UNUSED uint32_t count)
{
    return optional_at(ev, args, false);
}

struct cel_value cel_last(struct cel_eval *ev, UNUSED const struct cel_node *node,
                          const struct cel_value *args, UNUSED uint32_t count)
{
    return optional_at(ev, args, true);
}

struct cel_value cel_distinct(struct cel_eval *ev, UNUSED const struct cel_node *node,
                              const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_LIST) {
        return cel_no_overload(ev);
    }
    const struct cel_list *list = args[0].list;
    struct cel_list unique = {.items = NULL};
    struct cel_value *items = cel_list_items(ev, list->count);
    unique.items = items;
    for (uint32_t i = 0; items != NULL && i < list->count && ev->stop == RC_OK; i++) {
        if (!cel_list_contains(ev, &unique, list->items[i])) {
            items[unique.count++] = list->items[i];
        }
    }
    return list_or_stop(ev, items, unique.count);
}

struct flattening {
    struct cel_eval *ev;
    struct cel_value *items; /* NULL: only counted */
    uint64_t count;
};

static void flatten(struct flattening *f, const struct cel_list *list, int64_t levels,
                    uint32_t depth)
{
    if (depth > CEL_VALUE_DEPTH_MAX) {
        (void)cel_stop(f->ev, RC_LIMIT, "lists are nested too deep");
        return;
    }
    for (uint32_t i = 0; i < list->count && cel_work(f->ev, 1); i++) {
        if (list->items[i].kind == CEL_LIST && levels > 0) {
            flatten(f, list->items[i].list, levels - 1, depth + 1);
            continue;
        }
        if (f->items != NULL) {
            f->items[f->count] = list->items[i];
        }
        f->count++;
    }
}

struct cel_value cel_flatten(struct cel_eval *ev, UNUSED const struct cel_node *node,
                             const struct cel_value *args, uint32_t count)
{
    struct flattening f = {.ev = ev};
    int64_t levels = count == 2 ? args[1].integer : 1;
    if (args[0].kind != CEL_LIST || (count == 2 && args[1].kind != CEL_INT)) {
        return cel_no_overload(ev);
    }
    if (levels < 0) {
        return cel_fault(ev, "flatten() takes a level of 0 or more", STR_NONE);
    }
    flatten(&f, args[0].list, levels, 0);
    f.items = ev->stop == RC_OK ? cel_list_items(ev, f.count) : NULL;
    if (f.items == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    f.count = 0;
    flatten(&f, args[0].list, levels, 0);
    return list_or_stop(ev, f.items, (uint32_t)f.count);
}

struct cel_value cel_includes(struct cel_eval *ev, UNUSED const struct cel_node *node,
                              const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_LIST) {
        return cel_bool(cel_is_true(cel_equal(ev, args[0], args[1])));
    }
    const struct cel_list *list = args[0].list;
    for (uint32_t i = 0; i < list->count && ev->stop == RC_OK; i++) {
        if (cel_is_true(cel_equal(ev, list->items[i], args[1]))) {
            return cel_bool(true);
        }
    }
    return cel_bool(false);
}

/* A list whose first element, if any, can be ordered. */
static bool is_ordered_list(struct cel_value value)
{
    return value.kind == CEL_LIST &&
           (value.list->count == 0 || cel_is_comparable(value.list->items[0].kind));
}

/* Two elements that can't be compared count as in order. */
struct cel_value cel_is_sorted(struct cel_eval *ev, UNUSED const struct cel_node *node,
                               const struct cel_value *args, UNUSED uint32_t count)
{
    if (!is_ordered_list(args[0])) {
        return cel_no_overload(ev);
    }
    const struct cel_list *list = args[0].list;
    for (uint32_t i = 1; i < list->count; i++) {
        struct cel_value error;
        int order = 0;
        if (!cel_is_comparable(list->items[i].kind)) {
            return cel_no_overload(ev);
        }
        if (cel_order(ev, list->items[i - 1], list->items[i], &order, &error) && order > 0) {
            return cel_bool(false);
        }
    }
    return cel_bool(true);
}

static struct cel_value extreme(struct cel_eval *ev, const struct cel_value *args, int wanted)
{
    if (!is_ordered_list(args[0])) {
        return cel_no_overload(ev);
    }
    const struct cel_list *list = args[0].list;
    if (list->count == 0) {
        return cel_fault(ev, "min() and max() need at least one element", STR_NONE);
    }
    struct cel_value best = list->items[0];
    for (uint32_t i = 1; i < list->count; i++) {
        struct cel_value error;
        int order = 0;
        if (!cel_is_comparable(list->items[i].kind)) {
            return cel_no_overload(ev);
        }
        if (cel_order(ev, list->items[i], best, &order, &error) && order * wanted > 0) {
            best = list->items[i];
        }
    }
    return best;
}

struct cel_value cel_max(struct cel_eval *ev, UNUSED const struct cel_node *node,
                         const struct cel_value *args, UNUSED uint32_t count)
{
    return extreme(ev, args, 1);
}

struct cel_value cel_min(struct cel_eval *ev, UNUSED const struct cel_node *node,
                         const struct cel_value *args, UNUSED uint32_t count)
{
    return extreme(ev, args, -1);
}

/* What an empty list sums up to, by the overload that the checker chose. */
static struct cel_value zero_sum(const struct cel_node *node)
{
    static const struct cel_value zeros[] = {
        {.kind = CEL_INT}, {.kind = CEL_UINT}, {.kind = CEL_DOUBLE}, {.kind = CEL_DURATION}};
    return zeros[node->overload < 0 ? 0 : node->overload];
}

struct cel_value cel_sum(struct cel_eval *ev, const struct cel_node *node,
                         const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_LIST) {
        return cel_no_overload(ev);
    }
    const struct cel_list *list = args[0].list;
    struct cel_value pair[2] = {zero_sum(node)};
    if (list->count > 0) {
        enum cel_kind kind = list->items[0].kind;
        if (kind != CEL_INT && kind != CEL_UINT && kind != CEL_DOUBLE && kind != CEL_DURATION) {
            return cel_no_overload(ev);
        }
        pair[0] = (struct cel_value){.kind = kind};
    }
    for (uint32_t i = 0; i < list->count && !cel_is_error(pair[0]); i++) {
        pair[1] = list->items[i];
        pair[0] = cel_add(ev, node, pair, 2);
    }
    return pair[0];
}

struct cel_value cel_lists_range(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                 const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_INT) {
        return cel_no_overload(ev);
    }
    if (args[0].integer < 0) {
        return cel_fault(ev, "lists.range() takes a size of 0 or more", STR_NONE);
    }
    if (args[0].integer > CEL_RANGE_MAX) {
        return cel_fault(ev, "lists.range() gives at most 1000000 numbers", STR_NONE);
    }
    uint64_t size = (uint64_t)args[0].integer;
    struct cel_value *items = cel_list_items(ev, size);
    for (uint64_t i = 0; items != NULL && i < size; i++) {
        items[i] = cel_int((int64_t)i);
    }
    return list_or_stop(ev, items, (uint32_t)size);
}

struct cel_value cel_reverse(struct cel_eval *ev, UNUSED const struct cel_node *node,
                             const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_LIST) {
        return cel_no_overload(ev);
    }
    const struct cel_list *list = args[0].list;
    struct cel_value *items = cel_list_items(ev, list->count);
    for (uint32_t i = 0; items != NULL && i < list->count; i++) {
        items[i] = list->items[list->count - 1 - i];
    }
    return list_or_stop(ev, items, list->count);
}

struct cel_value cel_slice(struct cel_eval *ev, UNUSED const struct cel_node *node,
                           const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_LIST || args[1].kind != CEL_INT || args[2].kind != CEL_INT) {
        return cel_no_overload(ev);
    }
    const struct cel_list *list = args[0].list;
    int64_t start = args[1].integer;
    int64_t end = args[2].integer;
    if (start < 0 || start > end || end > list->count) {
        return cel_fault(ev, "slice() takes 0 <= start <= end <= the list's length", STR_NONE);
    }
    return cel_list_value(ev, list->items + start, (uint32_t)(end - start));
}

/* Merge sort of the numbers `order` by keys[number]; equal keys keep their order. */
struct sorting {
    struct cel_eval *ev;
    const struct cel_value *keys;
    uint32_t *order;
    uint32_t *spare;
    bool is_mixed;
};

static bool comes_before(struct sorting *s, uint32_t a, uint32_t b)
{
    struct cel_value error;
    int order = 0;
    if (s->keys[a].kind != s->keys[0].kind || s->keys[b].kind != s->keys[0].kind) {
        s->is_mixed = true;
        return false;
    }
    return cel_order(s->ev, s->keys[a], s->keys[b], &order, &error) && order < 0;
}

static void merge(struct sorting *s, uint32_t start, uint32_t middle, uint32_t end)
{
    uint32_t a = start;
    uint32_t b = middle;
    for (uint32_t i = start; i < end; i++) {
        bool take_b = a >= middle || (b < end && comes_before(s, s->order[b], s->order[a]));
        s->spare[i] = take_b ? s->order[b++] : s->order[a++];
    }
    for (uint32_t i = start; i < end; i++) {
        s->order[i] = s->spare[i];
    }
}

static void sort_order(struct sorting *s, uint32_t count)
{
    for (uint64_t width = 1; width < count && cel_work(s->ev, count); width *= 2) {
        for (uint64_t start = 0; start + width < count; start += 2 * width) {
            uint64_t end = start + 2 * width < count ? start + 2 * width : count;
            merge(s, (uint32_t)start, (uint32_t)(start + width), (uint32_t)end);
        }
    }
}

static struct cel_value sort_by(struct cel_eval *ev, struct cel_value list, struct cel_value keys)
{
    if (list.kind != CEL_LIST || keys.kind != CEL_LIST) {
        return cel_no_overload(ev);
    }
    uint32_t count = list.list->count;
    if (count != keys.list->count) {
        return cel_fault(ev, "sortBy() needs one key per element", STR_NONE);
    }
    if (count == 0) {
        return list;
    }
    if (!cel_is_comparable(keys.list->items[0].kind)) {
        return cel_fault(ev, "these elements can't be ordered", STR_NONE);
    }
    struct sorting s = {.ev = ev, .keys = keys.list->items};
    struct cel_value *items = cel_list_items(ev, count);
    s.order = cel_alloc(ev, count, sizeof(*s.order));
    s.spare = cel_alloc(ev, count, sizeof(*s.spare));
    if (items == NULL || s.order == NULL || s.spare == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    for (uint32_t i = 0; i < count; i++) {
        s.order[i] = i;
    }
    sort_order(&s, count);
    if (s.is_mixed) {
        return cel_fault(ev, "elements of different types can't be ordered", STR_NONE);
    }
    for (uint32_t i = 0; i < count; i++) {
        items[i] = list.list->items[s.order[i]];
    }
    return list_or_stop(ev, items, count);
}

struct cel_value cel_sort(struct cel_eval *ev, UNUSED const struct cel_node *node,
                          const struct cel_value *args, UNUSED uint32_t count)
{
    return sort_by(ev, args[0], args[0]);
}

struct cel_value cel_sort_by_keys(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                  const struct cel_value *args, UNUSED uint32_t count)
{
    return sort_by(ev, args[0], args[1]);
}

static bool contains_all(struct cel_eval *ev, const struct cel_list *list,
                         const struct cel_list *part)
{
    for (uint32_t i = 0; i < part->count && ev->stop == RC_OK; i++) {
        if (!cel_list_contains(ev, list, part->items[i])) {
            return false;
        }
    }
    return true;
}

struct cel_value cel_sets_contains(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                   const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_LIST || args[1].kind != CEL_LIST) {
        return cel_no_overload(ev);
    }
    return cel_bool(contains_all(ev, args[0].list, args[1].list));
}

struct cel_value cel_sets_equivalent(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                     const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_LIST || args[1].kind != CEL_LIST) {
        return cel_no_overload(ev);
    }
    return cel_bool(contains_all(ev, args[0].list, args[1].list) &&
                    contains_all(ev, args[1].list, args[0].list));
}

struct cel_value cel_sets_intersects(struct cel_eval *ev, UNUSED const struct cel_node *node,
                                     const struct cel_value *args, UNUSED uint32_t count)
{
    if (args[0].kind != CEL_LIST || args[1].kind != CEL_LIST) {
        return cel_no_overload(ev);
    }
    const struct cel_list *list = args[0].list;
    for (uint32_t i = 0; i < list->count && ev->stop == RC_OK; i++) {
        if (cel_list_contains(ev, args[1].list, list->items[i])) {
            return cel_bool(true);
        }
    }
    return cel_bool(false);
}
