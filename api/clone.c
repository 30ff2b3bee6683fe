/* clone.c - deep copies and comparisons of decoded structs, by their schema. */
#include "codec_private.h"

#include <string.h>

#include "tallyman/api/quantity.h"
#include "tallyman/base/alloc.h"

#define RECENT_TEXTS 8

struct recent_text {
    struct str source;
    char *copy;
};

/* Bytes handed out of one allocation, the structs before the texts, which need no alignment; with
 * base == NULL they are only counted. Lists say the same again and again (a claim its driver for
 * each device): a text that was among the last few different ones isn't copied twice. */
struct bump {
    char *base;
    size_t used_bytes;
    size_t struct_bytes; /* where the texts begin */
    size_t text_bytes;
    struct recent_text recent[RECENT_TEXTS]; /* the last first */
    uint32_t recent_count;
};

static void *bump_take(struct bump *bump, size_t bytes)
{
    size_t align = _Alignof(max_align_t);
    bump->used_bytes = (bump->used_bytes + align - 1) / align * align;
    char *p = bump->base == NULL ? NULL : bump->base + bump->used_bytes;
    bump->used_bytes += bytes;
    return p;
}

/* The first `count` make room in front for another. */
static void recent_shift(struct bump *bump, uint32_t count, struct recent_text first)
{
    memmove(&bump->recent[1], bump->recent, count * sizeof(bump->recent[0]));
    bump->recent[0] = first;
}

/* The text's copy; NULL while only counting. */
static char *bump_text(struct bump *bump, struct str s)
{
    for (uint32_t i = 0; i < bump->recent_count; i++) {
        if (str_eq(bump->recent[i].source, s)) {
            recent_shift(bump, i, bump->recent[i]);
            return bump->recent[0].copy;
        }
    }
    char *copy = bump->base == NULL ? NULL : bump->base + bump->struct_bytes + bump->text_bytes;
    bump->text_bytes += s.len + 1;
    if (copy != NULL) {
        memcpy(copy, s.ptr, s.len);
        copy[s.len] = '\0';
    }
    bump->recent_count += bump->recent_count < RECENT_TEXTS ? 1 : 0;
    recent_shift(bump, bump->recent_count - 1, (struct recent_text){s, copy});
    return copy;
}

/* A member's place in a copy; NULL while only counting. */
static char *place(char *copy, size_t offset)
{
    return copy == NULL ? NULL : copy + offset;
}

static struct any_list list_at(const void *member)
{
    struct any_list list;
    memcpy(&list, member, sizeof(list));
    return list;
}

static void clone_members(struct bump *bump, const struct schema *schema, const char *from,
                          char *to);

static void clone_str(struct bump *bump, const void *from, void *to)
{
    struct str s;
    memcpy(&s, from, sizeof(s));
    if (s.ptr == NULL) {
        return;
    }
    char *copy = bump_text(bump, s);
    if (copy != NULL) {
        s.ptr = copy;
        memcpy(to, &s, sizeof(s));
    }
}

/* Copies the items; gives the copies, NULL while only counting or when there is no list. */
static char *clone_items(struct bump *bump, const void *from, void *to, size_t item_bytes)
{
    struct any_list list = list_at(from);
    if (list.items == NULL) {
        return NULL;
    }
    /* An empty list that is present keeps a non-NULL pointer. */
    char *items = bump_take(bump, list.count == 0 ? 1 : list.count * item_bytes);
    if (items != NULL) {
        memcpy(items, list.items, list.count * item_bytes);
        list.items = items;
        memcpy(to, &list, sizeof(list));
    }
    return items;
}

static void clone_pairs(struct bump *bump, const void *from, void *to)
{
    struct any_list list = list_at(from);
    const struct string_pair *pairs = list.items;
    char *copies = clone_items(bump, from, to, sizeof(struct string_pair));
    for (uint32_t i = 0; i < list.count; i++) {
        char *copy = place(copies, i * sizeof(struct string_pair));
        clone_str(bump, &pairs[i].key, place(copy, offsetof(struct string_pair, key)));
        clone_str(bump, &pairs[i].value, place(copy, offsetof(struct string_pair, value)));
    }
}

static void clone_resources(struct bump *bump, const void *from, void *to)
{
    struct any_list list = list_at(from);
    const struct resource_amount *amounts = list.items;
    char *copies = clone_items(bump, from, to, sizeof(struct resource_amount));
    for (uint32_t i = 0; i < list.count; i++) {
        char *copy = place(copies, i * sizeof(struct resource_amount));
        clone_str(bump, &amounts[i].name, place(copy, offsetof(struct resource_amount, name)));
        clone_str(bump, &amounts[i].text, place(copy, offsetof(struct resource_amount, text)));
    }
}

static void clone_strings(struct bump *bump, const void *from, void *to)
{
    struct any_list list = list_at(from);
    const struct str *strings = list.items;
    char *copies = clone_items(bump, from, to, sizeof(struct str));
    for (uint32_t i = 0; i < list.count; i++) {
        clone_str(bump, &strings[i], place(copies, i * sizeof(struct str)));
    }
}

/* Map entries begin with their key, which no schema lists. */
static void clone_objects(struct bump *bump, const struct schema *schema, bool is_map,
                          const void *from, void *to)
{
    struct any_list list = list_at(from);
    const char *objects = list.items;
    char *copies = clone_items(bump, from, to, schema->bytes);
    for (uint32_t i = 0; i < list.count; i++) {
        char *copy = place(copies, i * schema->bytes);
        if (is_map) {
            clone_str(bump, objects + i * schema->bytes, copy);
        }
        clone_members(bump, schema, objects + i * schema->bytes, copy);
    }
}

static void clone_pointer(struct bump *bump, const struct schema *schema, const void *from,
                          void *to)
{
    const void *object;
    memcpy(&object, from, sizeof(object));
    if (object == NULL) {
        return;
    }
    char *copy = bump_take(bump, schema->bytes);
    if (copy != NULL) {
        memcpy(copy, object, schema->bytes);
        memcpy(to, &copy, sizeof(copy));
    }
    clone_members(bump, schema, object, copy);
}

/* The struct's own bytes are copied already; what its members point to is not. */
static void clone_members(struct bump *bump, const struct schema *schema, const char *from,
                          char *to)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *field = &schema->fields[i];
        const char *source = from + field->offset;
        char *target = place(to, field->offset);
        switch (field->kind) {
        case FIELD_BOOL:
        case FIELD_INT:
        case FIELD_TIME:
        case FIELD_DURATION:
            break;
        case FIELD_STRING:
            clone_str(bump, source, target);
            break;
        case FIELD_QUANTITY:
            clone_str(bump, source + offsetof(struct opt_quantity, text),
                      place(target, offsetof(struct opt_quantity, text)));
            break;
        case FIELD_STRING_LIST:
            clone_strings(bump, source, target);
            break;
        case FIELD_STRING_MAP:
            clone_pairs(bump, source, target);
            break;
        case FIELD_RESOURCE_LIST:
            clone_resources(bump, source, target);
            break;
        case FIELD_OBJECT:
            clone_members(bump, field->schema, source, target);
            break;
        case FIELD_OBJECT_PTR:
            clone_pointer(bump, field->schema, source, target);
            break;
        case FIELD_OBJECT_LIST:
        case FIELD_OBJECT_MAP:
            clone_objects(bump, field->schema, field->kind == FIELD_OBJECT_MAP, source, target);
            break;
        }
    }
}

void *object_clone(const struct schema *schema, const void *value)
{
    struct bump count = {.base = NULL};
    (void)bump_take(&count, schema->bytes);
    clone_members(&count, schema, value, NULL);

    struct bump bump = {.base = mem_zalloc(count.used_bytes + count.text_bytes),
                        .struct_bytes = count.used_bytes};
    char *copy = bump_take(&bump, schema->bytes);
    memcpy(copy, value, schema->bytes);
    clone_members(&bump, schema, value, copy);
    return copy;
}
