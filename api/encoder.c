/* encoder.c - a struct to JSON, by its schema: what is present, in the schema's order. */
#include "codec_private.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tallyman/api/quantity.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/time_text.h"

static struct any_list list_at(const void *at)
{
    struct any_list list;

    memcpy(&list, at, sizeof(list));
    return list;
}

static const void *pointer_at(const void *at)
{
    const void *pointer;

    memcpy(&pointer, at, sizeof(pointer));
    return pointer;
}

/* -- presence ---------------------------------------------------------------------------------- */

static bool field_is_present(const struct field *field, const void *at);

/* A struct that lies inside another has no presence of its own: it is there if any member is. */
static bool object_is_present(const struct schema *schema, const char *object)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        if (field_is_present(&schema->fields[i], object + schema->fields[i].offset)) {
            return true;
        }
    }
    return false;
}

static bool field_is_present(const struct field *field, const void *at)
{
    switch (field->kind) {
    case FIELD_STRING:
        return str_is_set(*(const struct str *)at);
    case FIELD_BOOL:
        return ((const struct opt_bool *)at)->is_set;
    case FIELD_INT:
        return ((const struct opt_int *)at)->is_set;
    case FIELD_QUANTITY:
        return ((const struct opt_quantity *)at)->is_set;
    case FIELD_TIME:
        return ((const struct opt_time *)at)->is_set;
    case FIELD_DURATION:
        return ((const struct opt_duration *)at)->is_set;
    case FIELD_STRING_LIST:
    case FIELD_STRING_MAP:
    case FIELD_RESOURCE_LIST:
    case FIELD_OBJECT_LIST:
    case FIELD_OBJECT_MAP:
        return list_at(at).items != NULL;
    case FIELD_OBJECT_PTR:
        return pointer_at(at) != NULL;
    case FIELD_OBJECT:
        return object_is_present(field->schema, at);
    }
    return false;
}

/* -- values ------------------------------------------------------------------------------------ */

/* metav1.Time has whole seconds; a fraction is written only where there is one. */
static void encode_time(struct json_writer *writer, int64_t ms)
{
    char seconds[TIME_TEXT_BYTES];
    char text[TIME_TEXT_BYTES + 8];
    struct str whole = time_format_rfc3339(ms, seconds);

    if (ms % 1000 == 0) {
        json_string(writer, whole);
        return;
    }
    assert(str_ends_with(whole, STR("Z")));
    snprintf(text, sizeof(text), STR_FMT ".%03dZ", STR_ARG(str_take(whole, whole.len - 1)),
             (int)(ms % 1000));
    json_string(writer, str_from_c(text));
}

/* "1h30m", "90s" as "1m30s", "0s": hours, minutes, seconds and milliseconds that aren't 0. */
static void encode_duration(struct json_writer *writer, int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    char text[64] = "";
    size_t len = 0;
    int64_t left_ms = ms;

    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        if (left_ms / units[i].ms > 0) {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%" PRId64 "%s",
                                    left_ms / units[i].ms, units[i].unit);
        }
        left_ms %= units[i].ms;
    }
    json_string(writer, len == 0 ? STR("0s") : (struct str){text, len});
}

static void encode_strings(struct json_writer *writer, const struct any_list *list)
{
    const struct str *strings = list->items;

    json_array_start(writer);
    for (uint32_t i = 0; i < list->count; i++) {
        json_string(writer, strings[i]);
    }
    json_array_end(writer);
}

static void encode_pairs(struct json_writer *writer, const struct any_list *list)
{
    const struct string_pair *pairs = list->items;

    json_object_start(writer);
    for (uint32_t i = 0; i < list->count; i++) {
        json_key_str(writer, pairs[i].key);
        json_string(writer, pairs[i].value);
    }
    json_object_end(writer);
}

static void encode_resources(struct json_writer *writer, const struct any_list *list)
{
    const struct resource_amount *amounts = list->items;

    json_object_start(writer);
    for (uint32_t i = 0; i < list->count; i++) {
        json_key_str(writer, amounts[i].name);
        json_string(writer, amounts[i].text);
    }
    json_object_end(writer);
}

static void encode_object_list(struct json_writer *writer, const struct schema *schema,
                               const struct any_list *list)
{
    const char *objects = list->items;

    json_array_start(writer);
    for (uint32_t i = 0; i < list->count; i++) {
        encode_object(writer, schema, objects + i * schema->bytes);
    }
    json_array_end(writer);
}

static void encode_object_map(struct json_writer *writer, const struct schema *schema,
                              const struct any_list *list)
{
    const char *objects = list->items;

    json_object_start(writer);
    for (uint32_t i = 0; i < list->count; i++) {
        struct str key;

        memcpy(&key, objects + i * schema->bytes, sizeof(key));
        json_key_str(writer, key);
        encode_object(writer, schema, objects + i * schema->bytes);
    }
    json_object_end(writer);
}

static void encode_list(struct json_writer *writer, const struct field *field,
                        const struct any_list *list)
{
    switch (field->kind) {
    case FIELD_STRING_LIST:
        encode_strings(writer, list);
        return;
    case FIELD_STRING_MAP:
        encode_pairs(writer, list);
        return;
    case FIELD_RESOURCE_LIST:
        encode_resources(writer, list);
        return;
    case FIELD_OBJECT_LIST:
        encode_object_list(writer, field->schema, list);
        return;
    case FIELD_OBJECT_MAP:
        encode_object_map(writer, field->schema, list);
        return;
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
    mem_die("a field without items has been encoded as a list");
}

static void encode_value(struct json_writer *writer, const struct field *field, const void *at)
{
    struct any_list list;

    switch (field->kind) {
    case FIELD_STRING:
        json_string(writer, *(const struct str *)at);
        return;
    case FIELD_BOOL:
        json_bool(writer, ((const struct opt_bool *)at)->value);
        return;
    case FIELD_INT:
        json_int(writer, ((const struct opt_int *)at)->value);
        return;
    case FIELD_QUANTITY:
        json_string(writer, ((const struct opt_quantity *)at)->text);
        return;
    case FIELD_TIME:
        encode_time(writer, ((const struct opt_time *)at)->ms);
        return;
    case FIELD_DURATION:
        encode_duration(writer, ((const struct opt_duration *)at)->ms);
        return;
    case FIELD_OBJECT:
        encode_object(writer, field->schema, at);
        return;
    case FIELD_OBJECT_PTR:
        encode_object(writer, field->schema, pointer_at(at));
        return;
    case FIELD_STRING_LIST:
    case FIELD_STRING_MAP:
    case FIELD_RESOURCE_LIST:
    case FIELD_OBJECT_LIST:
    case FIELD_OBJECT_MAP:
        list = list_at(at);
        encode_list(writer, field, &list);
        return;
    }
}

void encode_fields(struct json_writer *writer, const struct schema *schema, const void *value)
{
    const char *object = value;

    assert(value != NULL);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *field = &schema->fields[i];

        if (field_is_present(field, object + field->offset)) {
            json_key(writer, field->name);
            encode_value(writer, field, object + field->offset);
        }
    }
}

void encode_object(struct json_writer *writer, const struct schema *schema, const void *value)
{
    if (schema->field_count == 1 && schema->fields[0].name[0] == '\0') {
        encode_value(writer, &schema->fields[0], (const char *)value + schema->fields[0].offset);
        return;
    }
    json_object_start(writer);
    encode_fields(writer, schema, value);
    json_object_end(writer);
}
