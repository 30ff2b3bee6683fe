/* parser.h - from text to tree. Macros are expanded here, as in cel-go. */
#pragma once

#include "lexer.h"
#include "node.h"

struct cel_parser {
    struct arena *arena; /* borrowed; the program's */
    struct cel_lexer lexer;
    struct cel_token token; /* the next one */
    uint32_t depth;
    uint32_t node_count;
};

/* The arena keeps the tree and a copy of nothing: `source` must live as long as it. */
NODISCARD struct rc cel_parse(struct arena *arena, struct str source, struct cel_node **ret_root,
                              struct err *err);

/* For the macros. A node's height and the number of nodes are bounded by limits.h. */
NODISCARD struct rc cel_node_new(struct cel_parser *parser, struct cel_node node,
                                 struct cel_node **ret_node, struct err *err);
/* A node with these children; *ret_node is the node. */
struct cel_node_request {
    enum cel_node_kind kind;
    enum cel_function function; /* CEL_CALL */
    struct str name;
    uint32_t position;
    struct cel_node *args[4]; /* up to the first NULL */
    bool is_member;
};
NODISCARD struct rc cel_node_make(struct cel_parser *parser, struct cel_node_request request,
                                  struct cel_node **ret_node, struct err *err);
NODISCARD struct rc cel_parser_fail(struct cel_parser *parser, uint32_t position, struct err *err,
                                    const char *format, ...) PRINTF_LIKE(4, 5);

/* Expands the call if it is a macro; else leaves *node as it is. */
NODISCARD struct rc cel_macro_expand(struct cel_parser *parser, struct cel_node **node,
                                     struct err *err);

/* parser.c, for parser_primary.c */
struct cel_node_list {
    struct cel_node **items;
    bool *optionals;
    uint32_t count;
    uint32_t capacity;
    uint32_t optional_capacity;
    bool has_optionals;
};
void cel_node_list_add(struct cel_parser *parser, struct cel_node_list *list, struct cel_node *node,
                       bool is_optional);
NODISCARD struct rc cel_parser_advance(struct cel_parser *parser, struct err *err);
NODISCARD struct rc cel_parser_expect(struct cel_parser *parser, enum cel_token_kind kind,
                                      const char *wanted, struct err *err);
NODISCARD struct rc cel_parser_unexpected(struct cel_parser *parser, const char *wanted,
                                          struct err *err);
NODISCARD struct rc cel_parse_expression(struct cel_parser *parser, struct cel_node **ret_node,
                                         struct err *err);
/* parser_primary.c: a primary with all that follows it, and a number with its sign. */
NODISCARD struct rc cel_parse_member(struct cel_parser *parser, struct cel_node **ret_node,
                                     struct err *err);
NODISCARD struct rc cel_parse_signed(struct cel_parser *parser, struct cel_node **ret_node,
                                     struct err *err);
