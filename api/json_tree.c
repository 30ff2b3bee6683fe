/* json_tree.c - see the header. */
#include "tallyman/api/json_tree.h"

static bool is_container(enum token_kind kind)
{
    return kind == TOKEN_OBJECT_START || kind == TOKEN_ARRAY_START;
}

static void append(struct json_tree *parent, struct json_tree *child)
{
    child->parent = parent;
    if (parent->last == NULL) {
        parent->first = child;
    } else {
        parent->last->next = child;
    }
    parent->last = child;
    parent->count++;
}

void json_tree_take(struct json_tree_builder *builder, const struct token *token, uint32_t line)
{
    if (token->kind == TOKEN_KEY) {
        builder->key = token->text;
        return;
    }
    if (token->kind == TOKEN_OBJECT_END || token->kind == TOKEN_ARRAY_END) {
        builder->open = builder->open->parent;
        return;
    }
    struct json_tree *node = ARENA_NEW(builder->arena, struct json_tree);
    *node = (struct json_tree){
        .kind = token->kind, .boolean = token->boolean, .line = line, .text = token->text};
    if (builder->open == NULL) {
        builder->root = node;
    } else {
        node->key = builder->open->kind == TOKEN_OBJECT_START ? builder->key : STR_NONE;
        append(builder->open, node);
    }
    builder->open = is_container(token->kind) ? node : builder->open;
}

struct json_tree *json_tree_find(const struct json_tree *tree, struct str key)
{
    if (tree == NULL || tree->kind != TOKEN_OBJECT_START) {
        return NULL;
    }
    for (struct json_tree *child = tree->first; child != NULL; child = child->next) {
        if (str_eq(child->key, key)) {
            return child;
        }
    }
    return NULL;
}

/* The recursion is as deep as the text that `value` came from. */
static struct json_tree *copy(struct arena *arena, const struct json_tree *value, uint32_t line)
{
    struct json_tree *node = ARENA_NEW(arena, struct json_tree);
    *node = (struct json_tree){.kind = value->kind,
                               .boolean = value->boolean,
                               .line = line,
                               .key = value->key,
                               .text = value->text};
    for (const struct json_tree *child = value->first; child != NULL; child = child->next) {
        append(node, copy(arena, child, line));
    }
    return node;
}

void json_tree_put(struct arena *arena, struct json_tree *object, struct str key,
                   const struct json_tree *value)
{
    struct json_tree *node = copy(arena, value, object->line);
    node->key = key;
    append(object, node);
}

static void drop_where(struct json_tree *object,
                       bool (*is_dropped)(const struct json_tree *child, struct str key),
                       struct str key)
{
    struct json_tree *child = object->first;
    object->first = NULL;
    object->last = NULL;
    object->count = 0;
    while (child != NULL) {
        struct json_tree *next = child->next;
        child->next = NULL;
        if (!is_dropped(child, key)) {
            append(object, child);
        }
        child = next;
    }
}

static bool has_key(const struct json_tree *child, struct str key)
{
    return str_eq(child->key, key);
}

static bool is_null(const struct json_tree *child, struct str key)
{
    (void)key;
    return child->kind == TOKEN_NULL;
}

void json_tree_drop(struct json_tree *object, struct str key)
{
    drop_where(object, has_key, key);
}

void json_tree_drop_nulls(struct json_tree *object)
{
    drop_where(object, is_null, STR_NONE);
}
