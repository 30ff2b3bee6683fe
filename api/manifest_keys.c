/* manifest_keys.c - finds a key that an object of a document gives twice. */
#include "manifest_tokens.h"

#include <stdlib.h>

#include "tallyman/base/limits.h"

struct placed_key {
    uint32_t object; /* counts the document's objects */
    uint32_t index;  /* of the token */
    struct str text;
};

static int compare_keys(const void *a, const void *b)
{
    const struct placed_key *left = a;
    const struct placed_key *right = b;
    if (left->object != right->object) {
        return left->object < right->object ? -1 : 1;
    }
    int by_text = str_compare(left->text, right->text);
    return by_text != 0 ? by_text : (left->index > right->index) - (left->index < right->index);
}

/* Every key with the object that it stands in. */
static uint32_t place_keys(const struct recorded_token *tokens, uint32_t count,
                           struct placed_key *keys)
{
    uint32_t open[DECODE_DEPTH_MAX + 1] = {0};
    uint32_t depth = 0;
    uint32_t objects = 0;
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        enum token_kind kind = tokens[i].kind;
        if (kind == TOKEN_OBJECT_START || kind == TOKEN_ARRAY_START) {
            depth += depth < DECODE_DEPTH_MAX ? 1 : 0;
            open[depth] = ++objects;
        } else if (kind == TOKEN_OBJECT_END || kind == TOKEN_ARRAY_END) {
            depth -= depth > 0 ? 1 : 0;
        } else if (kind == TOKEN_KEY) {
            keys[found++] = (struct placed_key){open[depth], i, {tokens[i].text, tokens[i].len}};
        }
    }
    return found;
}

struct rc tokens_check_keys(struct arena *arena, const struct recorded_token *tokens,
                            uint32_t count, uint32_t *ret_line, struct err *err)
{
    struct placed_key *keys = ARENA_ARRAY(arena, struct placed_key, count + 1);
    uint32_t found = place_keys(tokens, count, keys);
    if (found > 1) {
        qsort(keys, found, sizeof(keys[0]), compare_keys);
    }
    const struct placed_key *twice = NULL; /* the earliest in the text */
    for (uint32_t i = 1; i < found; i++) {
        bool is_same =
            keys[i].object == keys[i - 1].object && str_eq(keys[i].text, keys[i - 1].text);
        if (is_same && (twice == NULL || keys[i].index < twice->index)) {
            twice = &keys[i];
        }
    }
    if (twice == NULL) {
        return RC_SUCCESS;
    }
    *ret_line = tokens[twice->index].line;
    return err_set(err, RC_INVALID,
                   "key \"" STR_FMT "\" is given twice in one object, in line %u and here; the API "
                   "server takes it once",
                   STR_ARG(str_cut_utf8(twice->text, 100)), tokens[twice[-1].index].line);
}
