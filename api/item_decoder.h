/* item_decoder.h - one object after the other out of a stream of tokens, where an object that
 * doesn't decode must not end the stream. Watches and lists are built on it. */
#pragma once

#include "tallyman/api/codec.h"

struct item_decoder {
    const struct kind_info *kind; /* static; NULL: any */
    const struct schema *schema;  /* static; of the current object */
    struct arena arena;           /* owned; holds the current object */
    struct decoder *decoder;      /* owned */
    uint32_t depth;               /* brackets of the object that are open */
    bool is_active;
    bool is_malformed;
    bool is_kind_next; /* the next token is the value of the object's own `kind` */
    struct err why;    /* when malformed */
};

void item_decoder_init(struct item_decoder *item);
void item_decoder_deinit(struct item_decoder *item);
/* The next token is the first of an object. A `kind` inside it that isn't that of `kind` makes it
 * malformed. What the object before held is gone. */
void item_decoder_begin(struct item_decoder *item, const struct kind_info *kind,
                        const struct schema *schema);
/* Takes a token; true: it was the object's last. */
bool item_decoder_take(struct item_decoder *item, const struct token *token);
/* The object as far as it was read, zeroed where it wasn't. Borrowed until the next begin. */
const void *item_decoder_value(struct item_decoder *item);
