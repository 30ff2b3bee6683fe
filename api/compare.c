/* compare.c - equality of decoded structs, by their schema. */
#include "decode_map.h"

#include <string.h>

#include "tallyman/api/quantity.h"

static struct any_list list_at(const void *member)
{
    struct any_list list;
    memcpy(&list, member, sizeof(list));
    return list;
}

static bool is_str_same(struct str a, struct str b)
{
    return str_is_set(a) == str_is_set(b) && str_eq(a, b);
}

static bool is_str_at_same(const char *a, const char *b)
{
    struct str left;
    struct str right;
    memcpy(&left, a, sizeof(left));
    memcpy(&right, b, sizeof(right));
    return is_str_same(left, right);
}

/* opt_bool, opt_int, opt_time, opt_duration: padding must not count, so member by member. */
static bool is_scalar_same(enum field_kind kind, const char *a, const char *b)
{
    if (kind == FIELD_BOOL) {
        struct opt_bool left;
        struct opt_bool right;
        memcpy(&left, a, sizeof(left));
        memcpy(&right, b, sizeof(right));
        return left.is_set == right.is_set && (!left.is_set || left.value == right.value);
    }
    struct opt_int left;
    struct opt_int right;
    _Static_assert(sizeof(struct opt_int) == sizeof(struct opt_time), "one layout");
    _Static_assert(sizeof(struct opt_int) == sizeof(struct opt_duration), "one layout");
    memcpy(&left, a, sizeof(left));
    memcpy(&right, b, sizeof(right));
    return left.is_set == right.is_set && (!left.is_set || left.value == right.value);
}

static bool is_quantity_same(const char *a, const char *b)
{
    struct opt_quantity left;
    struct opt_quantity right;
    memcpy(&left, a, sizeof(left));
    memcpy(&right, b, sizeof(right));
    return left.is_set == right.is_set && (!left.is_set || left.value.nano == right.value.nano);
}

static bool is_item_same(const struct field *field, const char *a, const char *b)
{
    switch (field->kind) {
    case FIELD_STRING_LIST:
        return is_str_at_same(a, b);
    case FIELD_STRING_MAP:
        return is_str_at_same(a + offsetof(struct string_pair, key),
                              b + offsetof(struct string_pair, key)) &&
               is_str_at_same(a + offsetof(struct string_pair, value),
                              b + offsetof(struct string_pair, value));
    case FIELD_RESOURCE_LIST: {
        struct resource_amount left;
        struct resource_amount right;
        memcpy(&left, a, sizeof(left));
        memcpy(&right, b, sizeof(right));
        return is_str_same(left.name, right.name) && left.value.nano == right.value.nano;
    }
    case FIELD_OBJECT_MAP:
        return is_str_at_same(a, b) && object_equal(field->schema, a, b);
    case FIELD_OBJECT_LIST:
        return object_equal(field->schema, a, b);
    case FIELD_STRING:
    case FIELD_BOOL:
    case FIELD_INT:
    case FIELD_QUANTITY:
    case FIELD_TIME:
    case FIELD_DURATION:
    case FIELD_OBJECT:
    case FIELD_OBJECT_PTR:
        break;
    }
    return false;
}

static bool is_list_same(const struct field *field, const char *a, const char *b)
{
    struct any_list left = list_at(a);
    struct any_list right = list_at(b);
    if ((left.items == NULL) != (right.items == NULL) || left.count != right.count) {
        return false;
    }
    size_t bytes = field_item_bytes(field);
    for (uint32_t i = 0; i < left.count; i++) {
        if (!is_item_same(field, (const char *)left.items + i * bytes,
                          (const char *)right.items + i * bytes)) {
            return false;
        }
    }
    return true;
}

static bool is_pointer_same(const struct schema *schema, const char *a, const char *b)
{
    const void *left;
    const void *right;
    memcpy(&left, a, sizeof(left));
    memcpy(&right, b, sizeof(right));
    if (left == NULL || right == NULL) {
        return left == right;
    }
    return object_equal(schema, left, right);
}

static bool is_field_same(const struct field *field, const char *a, const char *b)
{
    switch (field->kind) {
    case FIELD_STRING:
        return is_str_at_same(a, b);
    case FIELD_BOOL:
    case FIELD_INT:
    case FIELD_TIME:
    case FIELD_DURATION:
        return is_scalar_same(field->kind, a, b);
    case FIELD_QUANTITY:
        return is_quantity_same(a, b);
    case FIELD_STRING_LIST:
    case FIELD_STRING_MAP:
    case FIELD_RESOURCE_LIST:
    case FIELD_OBJECT_LIST:
    case FIELD_OBJECT_MAP:
        return is_list_same(field, a, b);
    case FIELD_OBJECT:
        return object_equal(field->schema, a, b);
    case FIELD_OBJECT_PTR:
        return is_pointer_same(field->schema, a, b);
    }
    return false;
}

bool object_equal(const struct schema *schema, const void *a, const void *b)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *field = &schema->fields[i];
        if (!is_field_same(field, (const char *)a + field->offset,
                           (const char *)b + field->offset)) {
            return false;
        }
    }
    return true;
}
