/* manifest_strict.c - what an API server refuses in objects of tallyman.dev's kinds, and a decoder
 * passes over: fields and words that their CRDs don't know. Other kinds are others' to judge, and a
 * newer server may know more of them. */
#include "manifest_tokens.h"

#include <string.h>

#include "schema.h"
#include "tallyman/api/schema_words.h"
#include "tallyman/base/text.h"

#define OWN_GROUP       "tallyman.dev"
#define PATH_MAX_BYTES  400
#define WORD_MAX_BYTES  48 /* longer ones are like none that is known */
#define NAMES_SHOWN_MAX 12
#define UNLIKE_DISTANCE 1000

struct strict {
    struct arena *arena; /* borrowed; for the texts */
    const struct recorded_token *tokens;
    uint32_t at;
    struct err *err;
};

/* -- what was meant ---------------------------------------------------------------------------- */

static uint32_t min3(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t least = a < b ? a : b;
    return least < c ? least : c;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Letters to be put in, left out or changed, whatever their case (Levenshtein, 1965). */
uint32_t word_distance(struct str a, struct str b)
{
    uint32_t row[WORD_MAX_BYTES + 1];
    if (a.len > WORD_MAX_BYTES || b.len > WORD_MAX_BYTES) {
        return UNLIKE_DISTANCE;
    }
    for (uint32_t j = 0; j <= b.len; j++) {
        row[j] = j;
    }
    for (uint32_t i = 1; i <= a.len; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (uint32_t j = 1; j <= b.len; j++) {
            uint32_t change = diagonal + (lower(a.ptr[i - 1]) != lower(b.ptr[j - 1]));
            diagonal = row[j];
            row[j] = min3(row[j] + 1, row[j - 1] + 1, change);
        }
    }
    return row[b.len];
}

struct guess {
    struct str written;
    struct str nearest;
    uint32_t distance;
    struct text all;
    uint32_t count;
};

static struct guess guess_of(struct arena *arena, struct str written)
{
    struct guess guess = {.written = written, .distance = UNLIKE_DISTANCE};
    text_init(&guess.all, arena, 600);
    return guess;
}

static void guess_add(struct guess *guess, const char *name)
{
    uint32_t distance = word_distance(guess->written, str_from_c(name));
    if (distance < guess->distance) {
        guess->distance = distance;
        guess->nearest = str_from_c(name);
    }
    if (guess->count++ < NAMES_SHOWN_MAX) {
        text_addf(&guess->all, "%s%s", guess->count == 1 ? "" : ", ", name);
    } else if (guess->count == NAMES_SHOWN_MAX + 1) {
        text_addf(&guess->all, " and others");
    }
}

/* "did you mean resourceGroups?", else all that would be right. */
static struct str guess_text(struct arena *arena, const struct guess *guess)
{
    bool is_like = guess->distance <= 2 || guess->distance * 3 <= guess->written.len;
    return is_like ? arena_format(arena, "did you mean " STR_FMT "?", STR_ARG(guess->nearest))
                   : arena_format(arena, "known are " STR_FMT, STR_ARG(text_str(&guess->all)));
}

/* -- walking through the tokens ---------------------------------------------------------------- */

static void pass_over(struct strict *strict)
{
    uint32_t depth = 0;
    do {
        enum token_kind kind = strict->tokens[strict->at++].kind;
        depth += kind == TOKEN_OBJECT_START || kind == TOKEN_ARRAY_START;
        depth -= kind == TOKEN_OBJECT_END || kind == TOKEN_ARRAY_END;
    } while (depth > 0);
}

static struct str text_at(const struct strict *strict)
{
    const struct recorded_token *token = &strict->tokens[strict->at];
    return (struct str){token->text, token->len};
}

static struct rc refuse_field(const struct strict *strict, const struct schema *schema,
                              struct str path, struct str name)
{
    struct guess guess = guess_of(strict->arena, name);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        guess_add(&guess, schema->fields[i].name);
    }
    return err_set(strict->err, RC_INVALID,
                   STR_FMT "%s" STR_FMT ": there is no such field; " STR_FMT, STR_ARG(path),
                   str_is_empty(path) ? "" : ".", STR_ARG(text_quote(strict->arena, name, 60)),
                   STR_ARG(guess_text(strict->arena, &guess)));
}

static struct rc check_word(struct strict *strict, const char *const *words, struct str path)
{
    struct str word = text_at(strict);
    struct guess guess = guess_of(strict->arena, word);
    for (int i = 0; i < FIELD_WORDS_MAX && words[i] != NULL; i++) {
        guess_add(&guess, words[i]);
        if (str_eq_c(word, words[i])) {
            strict->at++;
            return RC_SUCCESS;
        }
    }
    return err_set(strict->err, RC_INVALID, STR_FMT ": \"" STR_FMT "\" is not one of " STR_FMT,
                   STR_ARG(path), STR_ARG(text_quote(strict->arena, word, 60)),
                   STR_ARG(text_str(&guess.all)));
}

static struct rc check_object(struct strict *strict, const struct schema *schema, struct str path);

/* The recursion is as deep as the schema. */
static struct rc check_value(struct strict *strict, const struct schema *schema,
                             const struct field *field, struct str path)
{
    const char *const *words = schema_words(schema, field);
    enum token_kind kind = strict->tokens[strict->at].kind;
    if (words != NULL && kind == TOKEN_STRING) {
        return check_word(strict, words, path);
    }
    if (field->schema != NULL && kind == TOKEN_OBJECT_START && field->kind != FIELD_OBJECT_MAP) {
        return check_object(strict, field->schema, path);
    }
    if (field->kind != FIELD_OBJECT_LIST || kind != TOKEN_ARRAY_START) {
        pass_over(strict);
        return RC_SUCCESS;
    }
    strict->at++;
    for (uint32_t i = 0; strict->tokens[strict->at].kind != TOKEN_ARRAY_END; i++) {
        struct str item = arena_format(strict->arena, STR_FMT "[%u]", STR_ARG(path), i);
        if (strict->tokens[strict->at].kind == TOKEN_OBJECT_START) {
            TRY(check_object(strict, field->schema, item));
        } else {
            pass_over(strict);
        }
    }
    strict->at++;
    return RC_SUCCESS;
}

/* Written by the server, the controller or the tools, or read before. */
static bool is_others(struct str name)
{
    return str_eq_c(name, "apiVersion") || str_eq_c(name, "kind") || str_eq_c(name, "metadata") ||
           str_eq_c(name, "status");
}

static struct rc check_object(struct strict *strict, const struct schema *schema, struct str path)
{
    strict->at++;
    while (strict->tokens[strict->at].kind == TOKEN_KEY) {
        struct str name = text_at(strict);
        const struct field *field = NULL;
        for (uint32_t i = 0; i < schema->field_count && field == NULL; i++) {
            field = str_eq_c(name, schema->fields[i].name) ? &schema->fields[i] : NULL;
        }
        bool is_passed_over = str_is_empty(path) && is_others(name);
        if (field == NULL && !is_passed_over) {
            return refuse_field(strict, schema, path, name);
        }
        strict->at++;
        if (is_passed_over) {
            pass_over(strict);
            continue;
        }
        struct str inner = arena_format(strict->arena, STR_FMT "%s" STR_FMT, STR_ARG(path),
                                        str_is_empty(path) ? "" : ".", STR_ARG(name));
        TRY(check_value(strict, schema, field, inner));
    }
    strict->at++;
    return RC_SUCCESS;
}

bool kind_is_own(const struct kind_info *kind)
{
    return strcmp(kind->group, OWN_GROUP) == 0;
}

struct rc tokens_check_fields(struct arena *arena, const struct kind_info *kind,
                              const struct recorded_token *tokens, uint32_t at, uint32_t *ret_line,
                              struct err *err)
{
    if (!kind_is_own(kind)) {
        return RC_SUCCESS;
    }
    struct strict strict = {.arena = arena, .tokens = tokens, .at = at, .err = err};
    struct rc rc = check_object(&strict, kind->schema, STR(""));
    *ret_line = rc_failed(rc) ? tokens[strict.at].line : *ret_line;
    return rc;
}

struct rc manifest_check_kind(struct arena *arena, struct str api_version, struct str name,
                              struct err *err)
{
    struct str group = str_take(api_version, str_find_char(api_version, '/'));
    if (!str_eq_c(group, OWN_GROUP) || kind_find(api_version, name) != NULL) {
        return RC_SUCCESS;
    }
    struct guess guess = guess_of(arena, name);
    for (int kind = KIND_NONE + 1; kind < KIND_COUNT; kind++) {
        const struct kind_info *info = kind_info((enum object_kind)kind);
        if (!kind_is_own(info)) {
            continue;
        }
        guess_add(&guess, info->name);
        if (str_eq_c(name, info->name)) {
            return err_set(err, RC_INVALID,
                           "apiVersion " STR_FMT " isn't known; write apiVersion: " OWN_GROUP "/%s",
                           STR_ARG(text_quote(arena, api_version, 60)), info->version);
        }
    }
    return err_set(err, RC_INVALID, OWN_GROUP " has no kind " STR_FMT "; " STR_FMT,
                   STR_ARG(text_quote(arena, name, 60)), STR_ARG(guess_text(arena, &guess)));
}
