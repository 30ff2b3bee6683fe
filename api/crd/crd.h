/* crd.h - Tallyman's own kinds, held against their CRDs as an API server does it.
 *
 * The CRDs are those of crds/, so what a server refuses is refused here, and no rule can be
 * forgotten: defaults are filled in, then types, limits, required fields, list keys and CEL rules
 * are checked. Fields that no schema knows are the decoder's affair, and `status` is where the
 * server takes none. Source: k8s.io/apiextensions-apiserver, pkg/apiserver/{schema,validation}. */
#pragma once

#include "tallyman/api/json_tree.h"

struct crd_set; /* reads each CRD when its kind comes, and compiles a rule when it is first asked */

struct crd_set *crd_set_new(void);           /* owned; crd_set_free() */
void crd_set_free(struct crd_set *set);      /* NULL is fine */
struct arena *crd_scratch(struct crd_set *); /* for the object; reset by crd_check_object() */

/* Fills the defaults into the object (it lives in the scratch arena, which is reset). RC_INVALID:
 * the sentence has the field's path, what is wrong and what would be right, and *ret_line is where
 * it stands. A kind that has no CRD here is right as it is. */
NODISCARD struct rc crd_check_object(struct crd_set *set, struct str kind, struct json_tree *object,
                                     uint32_t *ret_line, struct err *err);

/* -- between the files of this directory ------------------------------------------------------- */

struct crd_check {
    struct crd_set *set;
    struct arena *scratch; /* borrowed */
    uint32_t line;         /* of what is refused */
    struct err *err;
};

/* crd.c: the value of a schema's keyword; absent if it isn't there. */
struct str crd_text(const struct json_tree *schema, const char *keyword);
/* Refuses what stands at `value`. */
NODISCARD struct rc crd_refuse(struct crd_check *check, const struct json_tree *value,
                               const char *format, ...) PRINTF_LIKE(3, 4);
/* "path.name"; in the scratch arena. */
struct str crd_join(struct crd_check *check, struct str path, struct str name);
/* What may be quoted of a single value. */
struct str crd_quote(struct crd_check *check, const struct json_tree *value);

/* limits.c: type, enum, length, number, count. */
NODISCARD struct rc crd_check_limits(struct crd_check *check, const struct json_tree *schema,
                                     const struct json_tree *value, struct str path);

/* rules.c: x-kubernetes-validations of one schema; its programs are kept in the set. */
struct crd_rule {
    const struct json_tree *text; /* the rule, or the messageExpression */
    struct cel_program *program;  /* owned */
};

struct crd_rules {
    struct crd_rule *items; /* owned */
    uint32_t count;
    uint32_t capacity;
};

struct crd_rules *crd_rules_of(struct crd_set *set);
void crd_rules_deinit(struct crd_rules *rules);
NODISCARD struct rc crd_check_rules(struct crd_check *check, const struct json_tree *schema,
                                    const struct json_tree *value, struct str path);
