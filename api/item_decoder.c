/* item_decoder.c - one object after the other out of a stream of tokens. */
#include "item_decoder.h"

#include <assert.h>

#include "codec_private.h"
#include "schema.h"

void item_decoder_init(struct item_decoder *item)
{
    *item = (struct item_decoder){0};
    arena_init(&item->arena);
    item->decoder = decoder_new(&item->arena, &namespace_object_schema);
}

void item_decoder_deinit(struct item_decoder *item)
{
    decoder_free(item->decoder);
    arena_deinit(&item->arena);
}

void item_decoder_begin(struct item_decoder *item, const struct kind_info *kind,
                        const struct schema *schema)
{
    arena_reset(&item->arena);
    decoder_restart(item->decoder, &item->arena, schema);
    item->kind = kind;
    item->schema = schema;
    item->depth = 0;
    item->is_active = true;
    item->is_malformed = false;
    item->is_kind_next = false;
}

/* A server asked for metadata alone answers with kind PartialObjectMetadata. */
static void check_kind(struct item_decoder *item, const struct token *token)
{
    bool is_right = token->kind == TOKEN_STRING && (str_eq_c(token->text, item->kind->name) ||
                                                    str_eq_c(token->text, "PartialObjectMetadata"));

    if (!is_right && token->kind != TOKEN_NULL && !item->is_malformed) {
        struct rc rc = err_set(&item->why, RC_INVALID, "kind: \"" STR_FMT "\" is not %s",
                               STR_ARG(str_cut_utf8(token->text, 64)), item->kind->name);

        item->is_malformed = rc_failed(rc);
    }
}

static void look_for_kind(struct item_decoder *item, const struct token *token)
{
    if (item->is_kind_next) {
        item->is_kind_next = false;
        check_kind(item, token);
    } else if (token->kind == TOKEN_KEY && item->depth == 1 && item->kind != NULL) {
        item->is_kind_next = str_eq_c(token->text, "kind");
    }
}

bool item_decoder_take(struct item_decoder *item, const struct token *token)
{
    assert(item->is_active);
    look_for_kind(item, token);
    if (!item->is_malformed) {
        struct token_sink sink = decoder_sink(item->decoder);

        item->is_malformed = rc_failed(sink.on_token(sink.ctx, token, &item->why));
    }
    if (token->kind == TOKEN_OBJECT_START || token->kind == TOKEN_ARRAY_START) {
        item->depth++;
    } else if (token->kind == TOKEN_OBJECT_END || token->kind == TOKEN_ARRAY_END) {
        item->depth--;
    }
    item->is_active = item->depth > 0;
    return !item->is_active;
}

const void *item_decoder_value(struct item_decoder *item)
{
    const void *value = decoder_partial(item->decoder);

    return value != NULL ? value : arena_alloc(&item->arena, item->schema->bytes);
}
