/* crd.c - see the header: reads the CRDs, and walks through object and schema side by side. */
#include "crd.h"

#include <stdio.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/text.h"
#include "text.h"

#define QUOTED_MAX_BYTES 60

struct crd_set {
    struct arena arena; /* the CRDs */
    struct arena scratch;
    struct json_tree **crds; /* in the arena, as crd_texts; NULL: not read yet */
    struct crd_rules rules;
};

struct crd_set *crd_set_new(void)
{
    struct crd_set *set = MEM_NEW(struct crd_set);
    arena_init(&set->arena);
    arena_init(&set->scratch);
    set->crds = ARENA_ARRAY(&set->arena, struct json_tree *, crd_text_count);
    return set;
}

void crd_set_free(struct crd_set *set)
{
    if (set != NULL) {
        crd_rules_deinit(&set->rules);
        arena_deinit(&set->scratch);
        arena_deinit(&set->arena);
        mem_free(set);
    }
}

struct arena *crd_scratch(struct crd_set *set)
{
    return &set->scratch;
}

struct crd_rules *crd_rules_of(struct crd_set *set)
{
    return &set->rules;
}

/* -- reading ----------------------------------------------------------------------------------- */

struct crd_reader {
    struct json_tree_builder builder;
    struct arena *arena;
};

static struct rc take_token(void *ctx, const struct token *token, struct err *err)
{
    (void)err;
    struct crd_reader *reader = ctx;
    struct token kept = *token;
    kept.text = arena_copy_str(reader->arena, token->text);
    json_tree_take(&reader->builder, &kept, 0);
    return RC_SUCCESS;
}

static struct rc read_crd(struct crd_set *set, uint32_t index, struct err *err)
{
    struct crd_reader reader = {.builder = {.arena = &set->arena}, .arena = &set->arena};
    if (set->crds[index] == NULL) {
        TRY(yaml_read(crd_texts[index], (struct token_sink){take_token, &reader}, NULL, err));
        set->crds[index] = reader.builder.root;
    }
    return RC_SUCCESS;
}

static const struct json_tree *find_path(const struct json_tree *tree, const char *const *path)
{
    for (; *path != NULL; path++) {
        tree = json_tree_find(tree, str_from_c(*path));
    }
    return tree;
}

struct str crd_text(const struct json_tree *schema, const char *keyword)
{
    const struct json_tree *found = json_tree_find(schema, str_from_c(keyword));
    return found == NULL ? STR_NONE : found->text;
}

/* -- refusing ---------------------------------------------------------------------------------- */

struct rc crd_refuse(struct crd_check *check, const struct json_tree *value, const char *format,
                     ...)
{
    char bytes[ERR_TEXT_MAX_BYTES];
    va_list args;
    check->line = value->line;
    va_start(args, format);
    (void)vsnprintf(bytes, sizeof(bytes), format, args);
    va_end(args);
    return err_set(check->err, RC_INVALID, "%s", bytes);
}

struct str crd_join(struct crd_check *check, struct str path, struct str name)
{
    return arena_format(check->scratch, STR_FMT "%s" STR_FMT, STR_ARG(path),
                        str_is_empty(path) ? "" : ".", STR_ARG(name));
}

struct str crd_quote(struct crd_check *check, const struct json_tree *value)
{
    struct str text = text_quote(check->scratch, value->text, QUOTED_MAX_BYTES);
    return arena_format(check->scratch, value->kind == TOKEN_STRING ? "\"%.*s\"" : "%.*s",
                        STR_ARG(text));
}

/* -- walking ----------------------------------------------------------------------------------- */

static struct rc check_value(struct crd_check *check, const struct json_tree *schema,
                             struct json_tree *value, struct str path);

/* "How much of the resource the queue owns": of a description, its first sentence. */
static struct str first_sentence(const struct json_tree *schema)
{
    struct str text = crd_text(schema, "description");
    if (str_starts_with(text, STR("Required. "))) {
        text = str_skip(text, STR("Required. ").len);
    }
    return str_take(text, str_find(text, STR(". ")) < text.len ? str_find(text, STR(". "))
                                                               : text.len - (text.len > 0));
}

static struct rc check_required(struct crd_check *check, const struct json_tree *schema,
                                const struct json_tree *value, struct str path)
{
    const struct json_tree *required = json_tree_find(schema, STR("required"));
    for (const struct json_tree *name = required == NULL ? NULL : required->first; name != NULL;
         name = name->next) {
        if (json_tree_find(value, name->text) == NULL) {
            struct str what = first_sentence(
                json_tree_find(json_tree_find(schema, STR("properties")), name->text));
            return crd_refuse(check, value, STR_FMT " is missing (" STR_FMT ")",
                              STR_ARG(crd_join(check, path, name->text)), STR_ARG(what));
        }
    }
    return RC_SUCCESS;
}

/* A null is as good as nothing, and what isn't there has its default. */
static void fill_defaults(struct crd_check *check, const struct json_tree *schema,
                          struct json_tree *value)
{
    const struct json_tree *properties = json_tree_find(schema, STR("properties"));
    json_tree_drop_nulls(value);
    for (const struct json_tree *field = properties == NULL ? NULL : properties->first;
         field != NULL; field = field->next) {
        const struct json_tree *preset = json_tree_find(field, STR("default"));
        if (preset != NULL && json_tree_find(value, field->key) == NULL) {
            json_tree_put(check->scratch, value, field->key, preset);
        }
    }
}

static struct rc check_members(struct crd_check *check, const struct json_tree *schema,
                               struct json_tree *value, struct str path)
{
    const struct json_tree *properties = json_tree_find(schema, STR("properties"));
    const struct json_tree *others = json_tree_find(schema, STR("additionalProperties"));
    for (struct json_tree *member = value->first; member != NULL; member = member->next) {
        const struct json_tree *inner = json_tree_find(properties, member->key);
        if (inner != NULL) {
            TRY(check_value(check, inner, member, crd_join(check, path, member->key)));
        } else if (others != NULL) {
            struct str key = text_quote(check->scratch, member->key, QUOTED_MAX_BYTES);
            TRY(check_value(check, others, member,
                            arena_format(check->scratch, STR_FMT "[\"" STR_FMT "\"]", STR_ARG(path),
                                         STR_ARG(key))));
        }
    }
    return RC_SUCCESS;
}

/* Whether two items have the same keys: those of a map list, or all of a set's item. */
static bool items_are_one(const struct json_tree *keys, const struct json_tree *a,
                          const struct json_tree *b)
{
    if (keys == NULL) {
        return a->kind == b->kind && str_eq(a->text, b->text);
    }
    for (const struct json_tree *key = keys->first; key != NULL; key = key->next) {
        if (!str_eq(crd_text(a, key->text.ptr), crd_text(b, key->text.ptr))) {
            return false;
        }
    }
    return true;
}

/* The count has been checked before. */
static struct rc check_list_keys(struct crd_check *check, const struct json_tree *schema,
                                 const struct json_tree *value, struct str path)
{
    const struct json_tree *keys = json_tree_find(schema, STR("x-kubernetes-list-map-keys"));
    if (keys == NULL && !str_eq_c(crd_text(schema, "x-kubernetes-list-type"), "set")) {
        return RC_SUCCESS;
    }
    for (const struct json_tree *item = value->first; item != NULL; item = item->next) {
        for (const struct json_tree *other = value->first; other != item; other = other->next) {
            const struct json_tree *named =
                keys == NULL ? item : json_tree_find(item, keys->first->text);
            if (items_are_one(keys, item, other)) {
                return crd_refuse(
                    check, item,
                    STR_FMT ": " STR_FMT " is given twice; leave one out, or make them one",
                    STR_ARG(path), STR_ARG(crd_quote(check, named == NULL ? item : named)));
            }
        }
    }
    return RC_SUCCESS;
}

static struct rc check_items(struct crd_check *check, const struct json_tree *schema,
                             struct json_tree *value, struct str path)
{
    const struct json_tree *inner = json_tree_find(schema, STR("items"));
    uint32_t index = 0;
    for (struct json_tree *item = value->first; item != NULL; item = item->next) {
        TRY(check_value(check, inner, item,
                        arena_format(check->scratch, STR_FMT "[%u]", STR_ARG(path), index++)));
    }
    return check_list_keys(check, schema, value, path);
}

/* The recursion is as deep as the schema. */
static struct rc check_value(struct crd_check *check, const struct json_tree *schema,
                             struct json_tree *value, struct str path)
{
    TRY(crd_check_limits(check, schema, value, path));
    if (value->kind == TOKEN_OBJECT_START) {
        fill_defaults(check, schema, value);
        TRY(check_required(check, schema, value, path));
        TRY(check_members(check, schema, value, path));
    } else if (value->kind == TOKEN_ARRAY_START) {
        TRY(check_items(check, schema, value, path));
    }
    return crd_check_rules(check, schema, value, path);
}

struct rc crd_check_object(struct crd_set *set, struct str kind, struct json_tree *object,
                           uint32_t *ret_line, struct err *err)
{
    static const char *const kind_path[] = {"spec", "names", "kind", NULL};
    static const char *const versions_path[] = {"spec", "versions", NULL};
    static const char *const schema_path[] = {"schema", "openAPIV3Schema", NULL};
    struct crd_check check = {.set = set, .scratch = &set->scratch, .err = err};
    struct rc rc = RC_SUCCESS;
    for (uint32_t i = 0; i < crd_text_count && !rc_failed(rc); i++) {
        TRY(read_crd(set, i, err));
        if (!str_eq(find_path(set->crds[i], kind_path)->text, kind)) {
            continue;
        }
        const struct json_tree *version = find_path(set->crds[i], versions_path)->first;
        if (json_tree_find(version, STR("subresources")) != NULL) {
            json_tree_drop(object, STR("status"));
        }
        rc = check_value(&check, find_path(version, schema_path), object, STR(""));
    }
    *ret_line = rc_failed(rc) ? check.line : *ret_line;
    arena_reset(&set->scratch);
    return rc;
}
