/* json_tree.h - a whole JSON or YAML document as a tree.
 *
 * For what has to be looked at from several sides: a manifest beside its CRD. Objects of a cluster
 * are decoded into structs (codec.h) and never take this form. The bounds are the reader's. */
#pragma once

#include "tallyman/api/codec.h"

struct json_tree {
    enum token_kind kind; /* of a container, its start */
    bool boolean;         /* TOKEN_BOOL */
    uint32_t line;        /* where it begins */
    uint32_t count;       /* of a container: how many are in it */
    struct str key;       /* in an object; borrowed as `text` */
    struct str text;      /* TOKEN_STRING, TOKEN_NUMBER; borrowed from whom the tokens came from */
    struct json_tree *parent;
    struct json_tree *first; /* of a container, in the text's order */
    struct json_tree *last;
    struct json_tree *next; /* within the parent */
};

/* Takes the tokens of one document. Zero it but for `arena`. */
struct json_tree_builder {
    struct arena *arena;    /* borrowed; for the nodes, not for texts */
    struct json_tree *root; /* borrowed from the arena; NULL before the first token */
    struct json_tree *open; /* the container that is being filled */
    struct str key;
};

void json_tree_take(struct json_tree_builder *builder, const struct token *token, uint32_t line);
/* The value of the key, NULL where it isn't there; `tree` may be NULL, or no object. */
struct json_tree *json_tree_find(const struct json_tree *tree, struct str key);
/* Puts a deep copy of `value` into the object as its last key; texts are shared. */
void json_tree_put(struct arena *arena, struct json_tree *object, struct str key,
                   const struct json_tree *value);
/* Takes the key out of the object. */
void json_tree_drop(struct json_tree *object, struct str key);
void json_tree_drop_nulls(struct json_tree *object);
