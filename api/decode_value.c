/* decode_value.c - one JSON value to one member. */
#include "decode_value.h"

#include <stdio.h>
#include <string.h>

#include "tallyman/api/quantity.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/time_text.h"

/* -- paths ------------------------------------------------------------------------------------- */

static void path_add(struct decode_path *path, struct str piece)
{
    struct str fitting = str_cut_utf8(piece, sizeof(path->text) - 1 - path->len);

    if (fitting.len > 0) {
        memcpy(path->text + path->len, fitting.ptr, fitting.len);
        path->len += fitting.len;
    }
    path->text[path->len] = '\0';
}

void decode_path_add_name(struct decode_path *path, struct str name)
{
    if (path->len > 0) {
        path_add(path, STR("."));
    }
    path_add(path, name);
}

void decode_path_add_index(struct decode_path *path, uint32_t index)
{
    char text[16];

    snprintf(text, sizeof(text), "[%u]", index);
    path_add(path, str_from_c(text));
}

void decode_path_add_key(struct decode_path *path, struct str key)
{
    bool is_name = key.len > 0;

    for (size_t i = 0; i < key.len; i++) {
        is_name = is_name && strchr("./[] ", key.ptr[i]) == NULL && key.ptr[i] != '\0';
    }
    if (is_name) {
        decode_path_add_name(path, key);
        return;
    }
    path_add(path, STR("["));
    path_add(path, key);
    path_add(path, STR("]"));
}

/* -- sentences --------------------------------------------------------------------------------- */

/* The value as an error shows it: cut, and without what would break a line. */
static void quote_token(const struct token *token, char quote[DECODE_QUOTE_MAX_BYTES + 8])
{
    struct str cut = str_cut_utf8(token->text, DECODE_QUOTE_MAX_BYTES);
    const char *mark = token->kind == TOKEN_STRING ? "\"" : "";
    const char *more = cut.len < token->text.len ? "…" : "";

    switch (token->kind) {
    case TOKEN_NULL:
        cut = STR("null");
        break;
    case TOKEN_BOOL:
        cut = token->boolean ? STR("true") : STR("false");
        break;
    case TOKEN_OBJECT_START:
        cut = STR("an object");
        break;
    case TOKEN_ARRAY_START:
        cut = STR("a list");
        break;
    case TOKEN_NUMBER:
    case TOKEN_STRING:
    case TOKEN_KEY:
    case TOKEN_OBJECT_END:
    case TOKEN_ARRAY_END:
        break;
    }
    snprintf(quote, DECODE_QUOTE_MAX_BYTES + 8, "%s" STR_FMT "%s%s", mark, STR_ARG(cut), more,
             mark);
    for (char *p = quote; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7F) {
            *p = '?';
        }
    }
}

struct rc decode_wrong(const struct token *token, const char *right, struct err *err)
{
    char quote[DECODE_QUOTE_MAX_BYTES + 8];

    quote_token(token, quote);
    /* "n" for a name comes as false: show what stands in the file. */
    if (token->kind == TOKEN_BOOL && token->text.len > 0 && !str_eq_c(token->text, quote)) {
        return err_set(err, RC_INVALID, STR_FMT ", which YAML reads as %s, is not %s",
                       STR_ARG(token->text), quote, right);
    }
    return err_set(err, RC_INVALID, "%s is not %s", quote, right);
}

/* -- values ------------------------------------------------------------------------------------ */

static struct rc decode_string(struct arena *arena, struct str *at, const struct token *token,
                               struct err *err)
{
    if (token->kind == TOKEN_NUMBER || token->kind == TOKEN_BOOL) {
        return decode_wrong(token, "a text; put it in quotes", err);
    }
    if (token->kind != TOKEN_STRING) {
        return decode_wrong(token, "a text", err);
    }
    *at = arena_copy_str(arena, token->text);
    return RC_SUCCESS;
}

static struct rc decode_bool(struct opt_bool *at, const struct token *token, struct err *err)
{
    if (token->kind != TOKEN_BOOL) {
        return decode_wrong(token, "true or false", err);
    }
    *at = (struct opt_bool){true, token->boolean};
    return RC_SUCCESS;
}

static struct rc decode_int(struct opt_int *at, const struct token *token, struct err *err)
{
    int64_t value;

    if (token->kind != TOKEN_NUMBER) {
        return decode_wrong(token, "a whole number", err);
    }
    if (!str_to_i64(token->text, &value)) {
        return decode_wrong(token, "a whole number of at most 64 bits", err);
    }
    *at = (struct opt_int){true, value};
    return RC_SUCCESS;
}

static struct rc decode_quantity(struct arena *arena, struct opt_quantity *at,
                                 const struct token *token, struct err *err)
{
    struct quantity value;

    if (token->kind != TOKEN_STRING && token->kind != TOKEN_NUMBER) {
        return decode_wrong(token, "a quantity, such as 4, \"500m\" or \"2Gi\"", err);
    }
    TRY(quantity_parse(token->text, &value, err));
    *at = (struct opt_quantity){true, value, arena_copy_str(arena, token->text)};
    return RC_SUCCESS;
}

static struct rc decode_time(struct opt_time *at, const struct token *token, struct err *err)
{
    int64_t ms;

    if (token->kind != TOKEN_STRING || !time_parse_rfc3339(token->text, &ms)) {
        return decode_wrong(token, "a time; right is \"2026-11-29T12:00:00Z\"", err);
    }
    *at = (struct opt_time){true, ms};
    return RC_SUCCESS;
}

static struct rc decode_duration(struct opt_duration *at, const struct token *token,
                                 struct err *err)
{
    int64_t ms;

    if (token->kind != TOKEN_STRING || !duration_parse(token->text, &ms)) {
        return decode_wrong(token, "a duration; right is \"90s\" or \"1h30m\"", err);
    }
    *at = (struct opt_duration){true, ms};
    return RC_SUCCESS;
}

static void set_absent(enum field_kind kind, void *at)
{
    switch (kind) {
    case FIELD_STRING:
        *(struct str *)at = STR_NONE;
        return;
    case FIELD_BOOL:
        *(struct opt_bool *)at = (struct opt_bool){0};
        return;
    case FIELD_INT:
        *(struct opt_int *)at = (struct opt_int){0};
        return;
    case FIELD_QUANTITY:
        *(struct opt_quantity *)at = (struct opt_quantity){0};
        return;
    case FIELD_TIME:
        *(struct opt_time *)at = (struct opt_time){0};
        return;
    case FIELD_DURATION:
        *(struct opt_duration *)at = (struct opt_duration){0};
        return;
    case FIELD_STRING_LIST:
    case FIELD_STRING_MAP:
    case FIELD_RESOURCE_LIST:
    case FIELD_OBJECT:
    case FIELD_OBJECT_PTR:
    case FIELD_OBJECT_LIST:
    case FIELD_OBJECT_MAP:
        break;
    }
    mem_die("a field that isn't a scalar has been cleared as one");
}

struct rc decode_scalar(struct arena *arena, enum field_kind kind, void *at,
                        const struct token *token, struct err *err)
{
    if (token->kind == TOKEN_NULL) {
        set_absent(kind, at);
        return RC_SUCCESS;
    }
    switch (kind) {
    case FIELD_STRING:
        return decode_string(arena, at, token, err);
    case FIELD_BOOL:
        return decode_bool(at, token, err);
    case FIELD_INT:
        return decode_int(at, token, err);
    case FIELD_QUANTITY:
        return decode_quantity(arena, at, token, err);
    case FIELD_TIME:
        return decode_time(at, token, err);
    case FIELD_DURATION:
        return decode_duration(at, token, err);
    case FIELD_STRING_LIST:
    case FIELD_STRING_MAP:
    case FIELD_RESOURCE_LIST:
    case FIELD_OBJECT:
    case FIELD_OBJECT_PTR:
    case FIELD_OBJECT_LIST:
    case FIELD_OBJECT_MAP:
        break;
    }
    mem_die("a field that isn't a scalar has been decoded as one");
}

struct rc decode_amount(struct arena *arena, void *at, const struct token *token, struct err *err)
{
    struct resource_amount *amount = at;
    struct token zero = {.kind = TOKEN_NUMBER, .text = STR("0")};
    struct opt_quantity quantity = {0};

    TRY(decode_quantity(arena, &quantity, token->kind == TOKEN_NULL ? &zero : token, err));
    amount->value = quantity.value;
    amount->text = quantity.text;
    return RC_SUCCESS;
}
