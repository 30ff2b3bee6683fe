/* The schemas of tallyman.dev's kinds and their CRDs name the same fields, and in a spec the same
 * words: what a schema lacks would be ignored in silence, what a CRD lacks would be pruned. */
#include "support/check.h"
#include "support/file.h"

#include <stdio.h>
#include <string.h>

#include "tallyman/api/schema_words.h"
#include "tallyman/api/codec.h"
#include "tallyman/base/limits.h"

#define PATHS_MAX 512

/* "spec.resourceGroups.flavors.name": fields alone, lists and maps leave no mark. */
struct path_list {
    struct str items[PATHS_MAX];
    uint32_t count;
};

static struct arena arena;

static void add_path(struct path_list *paths, struct str path)
{
    assert_true(paths->count < PATHS_MAX);
    paths->items[paths->count++] = arena_copy_str(&arena, path);
}

static bool has_path(const struct path_list *paths, struct str path)
{
    for (uint32_t i = 0; i < paths->count; i++) {
        if (str_eq(paths->items[i], path)) {
            return true;
        }
    }
    return false;
}

/* -- of a CRD: every key of an object that stands under `properties` -----------------------------
 */

struct crd_walk {
    struct path_list *paths;
    struct str keys[DECODE_DEPTH_MAX + 1]; /* of the open brackets; borrowed from the arena */
    uint32_t depth;
};

static void add_property(const struct crd_walk *walk, const char *before, struct str word)
{
    char path[512];
    size_t len = 0;

    for (uint32_t i = 1; i <= walk->depth; i++) {
        if (str_eq_c(walk->keys[i - 1], "properties")) {
            len += (size_t)snprintf(path + len, sizeof(path) - len, "%s" STR_FMT,
                                    len == 0 ? "" : ".", STR_ARG(walk->keys[i]));
        }
    }
    if (str_is_empty(word) || strncmp(path, "spec.", 5) == 0) {
        snprintf(path + len, sizeof(path) - len, "%s" STR_FMT, before, STR_ARG(word));
        add_path(walk->paths, str_from_c(path));
    }
}

static struct rc on_crd_token(void *ctx, const struct token *token, struct err *err)
{
    struct crd_walk *walk = ctx;

    (void)err;
    if (token->kind == TOKEN_KEY) {
        walk->keys[walk->depth] = arena_copy_str(&arena, token->text);
        if (walk->depth > 0 && str_eq_c(walk->keys[walk->depth - 1], "properties")) {
            add_property(walk, "", STR(""));
        }
    } else if (token->kind == TOKEN_STRING && walk->depth > 0 &&
               str_eq_c(walk->keys[walk->depth - 1], "enum")) {
        add_property(walk, "=", token->text);
    } else if (token->kind == TOKEN_OBJECT_START || token->kind == TOKEN_ARRAY_START) {
        walk->depth++;
        walk->keys[walk->depth] = STR_NONE;
    } else if (token->kind == TOKEN_OBJECT_END || token->kind == TOKEN_ARRAY_END) {
        walk->depth--;
    }
    return RC_SUCCESS;
}

static void read_crd(const char *plural, struct path_list *paths)
{
    struct crd_walk walk = {.paths = paths};
    char path[128];
    struct err err;

    snprintf(path, sizeof(path), "crds/%s.tallyman.dev.yaml", plural);
    struct rc rc =
        yaml_read(file_read(&arena, path), (struct token_sink){on_crd_token, &walk}, NULL, &err);

    if (rc_failed(rc)) {
        fail_msg("%s: %s", path, err.text);
    }
}

/* -- of a schema --------------------------------------------------------------------------------
 */

static void add_words(const char *const *words, const char *path, struct path_list *paths)
{
    for (int i = 0; words != NULL && i < FIELD_WORDS_MAX && words[i] != NULL; i++) {
        char word[600];

        snprintf(word, sizeof(word), "%s=%s", path, words[i]);
        if (strncmp(word, "spec.", 5) == 0) {
            add_path(paths, str_from_c(word));
        }
    }
}

static void read_schema(const struct schema *schema, const char *head, struct path_list *paths)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *field = &schema->fields[i];
        char path[512];

        snprintf(path, sizeof(path), "%s%s%s", head, head[0] == '\0' ? "" : ".", field->name);
        add_path(paths, str_from_c(path));
        add_words(schema_words(schema, field), path, paths);
        if (field->schema != NULL && strcmp(path, "metadata") != 0) {
            read_schema(field->schema, path, paths);
        }
    }
}

/* -- compared -----------------------------------------------------------------------------------
 */

/* Every object has these without a schema's saying so. */
static bool is_general(struct str path)
{
    return str_eq_c(path, "apiVersion") || str_eq_c(path, "kind") || str_eq_c(path, "metadata");
}

static void check_kind(enum object_kind kind)
{
    static struct path_list in_crd;
    static struct path_list in_schema;
    const struct kind_info *info = kind_info(kind);

    in_crd.count = 0;
    in_schema.count = 0;
    read_crd(info->plural, &in_crd);
    read_schema(info->schema, "", &in_schema);
    assert_true(in_crd.count > 10);
    for (uint32_t i = 0; i < in_crd.count; i++) {
        if (!is_general(in_crd.items[i]) && !has_path(&in_schema, in_crd.items[i])) {
            fail_msg("the CRD of %s has " STR_FMT ", its schema hasn't", info->plural,
                     STR_ARG(in_crd.items[i]));
        }
    }
    for (uint32_t i = 0; i < in_schema.count; i++) {
        /* A flavor's taints are described, not put on: they have no time. */
        bool is_known = is_general(in_schema.items[i]) ||
                        str_eq_c(in_schema.items[i], "spec.nodeTaints.timeAdded");

        if (!is_known && !has_path(&in_crd, in_schema.items[i])) {
            fail_msg("the schema of %s has " STR_FMT ", its CRD hasn't", info->plural,
                     STR_ARG(in_schema.items[i]));
        }
    }
}

static void schemas_and_crds_name_the_same_fields(void **state)
{
    (void)state;
    arena_init(&arena);
    check_kind(KIND_QUEUE);
    check_kind(KIND_COHORT);
    check_kind(KIND_RESOURCE_FLAVOR);
    check_kind(KIND_ADMISSION);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemas_and_crds_name_the_same_fields),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
