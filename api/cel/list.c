#include <math.h>

#include "eval.h"
#include "tallyman/base/limits.h"
#include "tallyman/base/alloc.h"

#define FIRST_CAPACITY 8u

struct cel_value *cel_list_items(struct cel_eval *ev, size_t count)
{
    if (count > CEL_WORK_MAX) {
        (void)cel_stop(ev, RC_LIMIT, "a list is too long");
        return NULL;
    }
    if (!cel_work(ev, count)) {
        return NULL;
    }
    return cel_alloc(ev, count, sizeof(struct cel_value));
}

struct cel_value cel_list_value(struct cel_eval *ev, const struct cel_value *items, uint32_t count)
{
    struct cel_list *list = cel_alloc(ev, 1, sizeof(*list));
    if (list == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    list->items = items;
    list->count = count;
    return (struct cel_value){.kind = CEL_LIST, .list = list};
}

static struct cel_value grow_and_append(struct cel_eval *ev, const struct cel_list *a,
                                        const struct cel_list *b)
{
    uint64_t count = (uint64_t)a->count + b->count;
    uint64_t capacity = count < FIRST_CAPACITY ? FIRST_CAPACITY : 2 * count;
    struct cel_value *items = cel_list_items(ev, capacity);
    struct cel_list_buffer *buffer = cel_alloc(ev, 1, sizeof(*buffer));
    struct cel_list *list = cel_alloc(ev, 1, sizeof(*list));
    if (items == NULL || buffer == NULL || list == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    for (uint32_t i = 0; i < a->count; i++) {
        items[i] = a->items[i];
    }
    for (uint32_t i = 0; i < b->count; i++) {
        items[a->count + i] = b->items[i];
    }
    *buffer = (struct cel_list_buffer){items, (uint32_t)count, (uint32_t)capacity};
    *list = (struct cel_list){items, (uint32_t)count, buffer};
    return (struct cel_value){.kind = CEL_LIST, .list = list};
}

struct cel_value cel_list_concat(struct cel_eval *ev, const struct cel_list *a,
                                 const struct cel_list *b)
{
    struct cel_list_buffer *buffer = a->buffer;
    if (b->count == 0) {
        return (struct cel_value){.kind = CEL_LIST, .list = a};
    }
    if (buffer == NULL || buffer->used != a->count || buffer->capacity - buffer->used < b->count) {
        return grow_and_append(ev, a, b);
    }
    struct cel_list *list = cel_alloc(ev, 1, sizeof(*list));
    if (list == NULL || !cel_work(ev, b->count)) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    for (uint32_t i = 0; i < b->count; i++) {
        buffer->items[buffer->used++] = b->items[i];
    }
    *list = (struct cel_list){buffer->items, buffer->used, buffer};
    return (struct cel_value){.kind = CEL_LIST, .list = list};
}

bool cel_list_contains(struct cel_eval *ev, const struct cel_list *list, struct cel_value item)
{
    for (uint32_t i = 0; i < list->count && ev->stop == RC_OK; i++) {
        if (cel_is_true(cel_equal(ev, item, list->items[i]))) {
            return true;
        }
    }
    return false;
}

bool cel_list_index(struct cel_eval *ev, struct cel_value index, int64_t *ret_index,
                    struct cel_value *ret_error)
{
    if (index.kind == CEL_INT) {
        *ret_index = index.integer;
        return true;
    }
    if (index.kind == CEL_UINT && index.uinteger <= INT64_MAX) {
        *ret_index = (int64_t)index.uinteger;
        return true;
    }
    if (index.kind == CEL_DOUBLE && index.real > -0x1p63 && index.real < 0x1p63 &&
        trunc(index.real) == index.real) {
        *ret_index = (int64_t)index.real;
        return true;
    }
    *ret_error =
        cel_fault(ev, "a list's index is a whole number, this is a", cel_kind_name(index.kind));
    return false;
}
