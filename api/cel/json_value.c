/* json_value.c - JSON as CEL sees it. Source: apiextensions-apiserver's cel/value.go. */
#include <stdlib.h>

#include "eval.h"

#define NUMBER_MAX_BYTES 64u /* longer ones are no int, and as a double not told apart */

static struct cel_value number_value(struct cel_eval *ev, struct str digits)
{
    int64_t whole = 0;
    if (str_to_i64(digits, &whole)) {
        return cel_int(whole);
    }
    char text[NUMBER_MAX_BYTES + 1] = {0};
    for (size_t i = 0; i < digits.len && i < NUMBER_MAX_BYTES; i++) {
        text[i] = digits.ptr[i];
    }
    return digits.len > NUMBER_MAX_BYTES ? cel_fault(ev, "a number has too many digits", STR_NONE)
                                         : cel_double(strtod(text, NULL));
}

static struct cel_value list_value(struct cel_eval *ev, const struct json_tree *tree)
{
    struct cel_value *items = cel_list_items(ev, tree->count);
    uint32_t count = 0;
    if (items == NULL) {
        return cel_stop(ev, RC_LIMIT, NULL);
    }
    for (const struct json_tree *item = tree->first; item != NULL; item = item->next) {
        items[count++] = cel_json_value(ev, item);
    }
    return cel_list_value(ev, items, count);
}

static struct cel_value map_value(struct cel_eval *ev, const struct json_tree *tree)
{
    struct cel_value map = cel_map_new(ev, tree->count);
    for (const struct json_tree *item = tree->first; item != NULL && !cel_is_error(map);
         item = item->next) {
        map = cel_map_put(ev, map.map, cel_string(item->key), cel_json_value(ev, item));
    }
    return map;
}

/* The recursion is as deep as the text, which has its bound. */
struct cel_value cel_json_value(struct cel_eval *ev, const struct json_tree *tree)
{
    switch ((int)tree->kind) {
    case TOKEN_BOOL:
        return cel_bool(tree->boolean);
    case TOKEN_NUMBER:
        return number_value(ev, tree->text);
    case TOKEN_STRING:
        return cel_string(tree->text);
    case TOKEN_ARRAY_START:
        return list_value(ev, tree);
    case TOKEN_OBJECT_START:
        return map_value(ev, tree);
    default:
        return (struct cel_value){.kind = CEL_NULL};
    }
}
