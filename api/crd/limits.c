/* limits.c - what one value may be by its schema's keywords. */
#include "../cel/utf8.h"
#include "crd.h"
#include "tallyman/base/text.h"

/* The keyword's number; false: it isn't there. */
static bool read_limit(const struct json_tree *schema, const char *keyword, int64_t *ret_limit)
{
    return str_to_i64(crd_text(schema, keyword), ret_limit);
}

static struct rc check_type(struct crd_check *check, const struct json_tree *schema,
                            const struct json_tree *value, struct str path)
{
    static const struct {
        struct str type;
        enum token_kind kind;
        const char *text;
    } types[] = {
        {STR_INIT("object"), TOKEN_OBJECT_START, "an object, lines of \"field: value\" below it"},
        {STR_INIT("array"), TOKEN_ARRAY_START, "a list, lines that begin with \"-\" below it"},
        {STR_INIT("string"), TOKEN_STRING, "a text; put it into quotes if it looks like a number"},
        {STR_INIT("boolean"), TOKEN_BOOL, "true or false"},
        {STR_INIT("integer"), TOKEN_NUMBER, "a whole number"},
    };
    struct str type = crd_text(schema, "type");
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        int64_t number = 0;
        bool is_whole = value->kind != TOKEN_NUMBER || str_to_i64(value->text, &number);
        if (str_eq(type, types[i].type) && (value->kind != types[i].kind || !is_whole)) {
            return crd_refuse(check, value, STR_FMT ": write %s", STR_ARG(path), types[i].text);
        }
    }
    bool is_single = value->kind == TOKEN_STRING || value->kind == TOKEN_NUMBER;
    if (json_tree_find(schema, STR("x-kubernetes-int-or-string")) != NULL && !is_single) {
        return crd_refuse(check, value, STR_FMT ": write a number, or a text such as \"4\"",
                          STR_ARG(path));
    }
    return RC_SUCCESS;
}

static struct rc check_words(struct crd_check *check, const struct json_tree *schema,
                             const struct json_tree *value, struct str path)
{
    const struct json_tree *words = json_tree_find(schema, STR("enum"));
    struct text known;
    if (words == NULL) {
        return RC_SUCCESS;
    }
    text_init(&known, check->scratch, 400);
    for (const struct json_tree *word = words->first; word != NULL; word = word->next) {
        if (str_eq(word->text, value->text)) {
            return RC_SUCCESS;
        }
        text_addf(&known, "%s" STR_FMT, word == words->first ? "" : ", ", STR_ARG(word->text));
    }
    return crd_refuse(check, value, STR_FMT ": " STR_FMT " is not one of " STR_FMT, STR_ARG(path),
                      STR_ARG(crd_quote(check, value)), STR_ARG(text_str(&known)));
}

static struct rc check_length(struct crd_check *check, const struct json_tree *schema,
                              const struct json_tree *value, struct str path)
{
    int64_t limit = 0;
    int64_t length = utf8_count(value->text);
    if (read_limit(schema, "minLength", &limit) && length < limit) {
        return crd_refuse(check, value,
                          STR_FMT " has %lld characters; write at least %lld, or remove it",
                          STR_ARG(path), (long long)length, (long long)limit);
    }
    if (read_limit(schema, "maxLength", &limit) && length > limit) {
        return crd_refuse(
            check, value, STR_FMT ": " STR_FMT " has %lld characters; there can be at most %lld",
            STR_ARG(path), STR_ARG(crd_quote(check, value)), (long long)length, (long long)limit);
    }
    return RC_SUCCESS;
}

static struct rc check_number(struct crd_check *check, const struct json_tree *schema,
                              const struct json_tree *value, struct str path)
{
    int64_t limit = 0;
    int64_t number = 0;
    if (!str_to_i64(value->text, &number)) {
        return RC_SUCCESS;
    }
    if (read_limit(schema, "minimum", &limit) && number < limit) {
        return crd_refuse(check, value, STR_FMT ": %lld is too small; write %lld or more",
                          STR_ARG(path), (long long)number, (long long)limit);
    }
    if (read_limit(schema, "maximum", &limit) && number > limit) {
        return crd_refuse(check, value, STR_FMT ": %lld is too large; write %lld or less",
                          STR_ARG(path), (long long)number, (long long)limit);
    }
    return RC_SUCCESS;
}

static struct rc check_count(struct crd_check *check, const struct json_tree *schema,
                             const struct json_tree *value, struct str path)
{
    bool is_list = value->kind == TOKEN_ARRAY_START;
    int64_t limit = 0;
    if (read_limit(schema, is_list ? "minItems" : "minProperties", &limit) &&
        value->count < limit) {
        return crd_refuse(check, value, STR_FMT " is empty; it needs at least %lld entr%s",
                          STR_ARG(path), (long long)limit, limit == 1 ? "y" : "ies");
    }
    if (read_limit(schema, is_list ? "maxItems" : "maxProperties", &limit) &&
        value->count > limit) {
        return crd_refuse(check, value, STR_FMT " has %u entries; there can be at most %lld",
                          STR_ARG(path), value->count, (long long)limit);
    }
    return RC_SUCCESS;
}

struct rc crd_check_limits(struct crd_check *check, const struct json_tree *schema,
                           const struct json_tree *value, struct str path)
{
    TRY(check_type(check, schema, value, path));
    TRY(check_words(check, schema, value, path));
    switch ((int)value->kind) {
    case TOKEN_STRING:
        return check_length(check, schema, value, path);
    case TOKEN_NUMBER:
        return check_number(check, schema, value, path);
    case TOKEN_OBJECT_START:
    case TOKEN_ARRAY_START:
        return check_count(check, schema, value, path);
    default:
        return RC_SUCCESS;
    }
}
