/* node.h - the expression as a tree: what the parser makes, the checker annotates and the planner
 * turns into what is evaluated. Everything lives in the program's arena. */
#pragma once

#include "function.h"
#include "type.h"
#include "value.h"

enum cel_node_kind {
    CEL_LITERAL, /* value */
    CEL_IDENT,   /* name; planned: slot; CEL_SLOT_DEVICE: the device, CEL_SLOT_SELF: self */
    CEL_SELECT,  /* args[0].name; is_test: has(args[0].name); is_optional: args[0].?name */
    CEL_INDEX,   /* args[0][args[1]]; is_optional: args[0][?args[1]] */
    CEL_CALL,    /* name, args; is_member: args[0] is the receiver */
    CEL_AND,     /* args */
    CEL_OR,      /* args */
    CEL_TERNARY, /* args[0] ? args[1] : args[2] */
    CEL_LIST_OF, /* args; optionals[i]: a leading '?' */
    CEL_MAP_OF,  /* args: key, value, key, value, …; optionals per entry */
    CEL_FOLD,    /* a comprehension; see struct cel_fold */
    CEL_CHAIN,   /* planned only: a root and the fields and indexes applied to it */
};

#define CEL_SLOT_DEVICE UINT32_MAX
#define CEL_SLOT_SELF   (UINT32_MAX - 1)

/* cel-go's comprehension: every macro but has() becomes one. The accumulator's initial value is
 * evaluated when it is first read, as there. */
struct cel_fold {
    struct str iter_var;
    struct str iter_var2; /* absent: one variable */
    struct str accu_var;
    struct cel_node *range;
    struct cel_node *init;
    struct cel_node *condition;
    struct cel_node *step;
    struct cel_node *result;
    uint32_t slot; /* accumulator; slot + 1, slot + 2: the iteration variables */
};

struct cel_qualifier {
    struct cel_value key;   /* when `index` is NULL */
    struct cel_node *index; /* evaluated each time */
    bool is_optional;
};

struct cel_node {
    enum cel_node_kind kind;
    uint32_t position; /* byte offset in the expression */
    uint16_t height;
    bool is_member;
    bool is_test;
    bool is_optional;
    bool is_branch; /* of a ternary: an optional has() isn't made a bool there, as in cel-go */
    bool is_checked;
    bool is_planned;
    bool is_constant;
    bool is_const_set; /* `in` with a constant list that cel-go turns into a hash set */
    enum cel_function function;
    int32_t overload; /* the one that the checker chose, or -1: decided by what arrives */
    uint32_t slot;
    uint32_t arg_count;
    struct str name;
    struct cel_node **args;
    bool *optionals;                  /* CEL_LIST_OF, CEL_MAP_OF; NULL: none */
    struct cel_fold *fold;            /* CEL_FOLD */
    struct cel_qualifier *qualifiers; /* CEL_CHAIN; args[0] is the root */
    uint32_t qualifier_count;
    const struct cel_regex *regex; /* a constant pattern, compiled */
    const struct cel_type *type;
    struct cel_value value;
};
