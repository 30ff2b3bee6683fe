/* list_decoder.c - {"metadata":…,"items":[…]}: each item is handed on as soon as it has been read.
 */
#include "codec_private.h"

#include <assert.h>

#include "object_report.h"
#include "schema.h"
#include "tallyman/base/alloc.h"

enum list_member { MEMBER_OTHER, MEMBER_KIND, MEMBER_META, MEMBER_ITEMS };

struct list_decoder {
    const struct kind_info *kind; /* static */
    struct watch_handler handler;
    struct json_reader *reader; /* owned */
    struct item_decoder item;
    struct item_decoder meta;
    uint32_t depth; /* brackets open, those of items and meta not counted */
    enum list_member member;
    bool is_in_items;
    bool has_items;
    bool has_meta;
    bool is_complete;
};

static void list_restart(struct list_decoder *decoder)
{
    decoder->depth = 0;
    decoder->member = MEMBER_OTHER;
    decoder->is_in_items = false;
    decoder->has_items = false;
    decoder->has_meta = false;
    decoder->is_complete = false;
    decoder->item.is_active = false;
    decoder->meta.is_active = false;
}

static struct rc end_meta(struct list_decoder *decoder, struct err *err)
{
    if (decoder->meta.is_malformed) {
        return err_set(err, RC_INVALID, "the list of %s: metadata: " STR_FMT, decoder->kind->plural,
                       STR_ARG(err_text(&decoder->meta.why)));
    }
    decoder->has_meta = true;
    return RC_SUCCESS;
}

static struct rc take_item_token(struct list_decoder *decoder, const struct token *token,
                                 struct err *err)
{
    if (!item_decoder_take(&decoder->item, token)) {
        return RC_SUCCESS;
    }
    return object_report(&decoder->handler, &decoder->item, WATCH_ADDED, err);
}

static struct rc begin_item(struct list_decoder *decoder, const struct token *token,
                            struct err *err)
{
    json_reader_start_object(decoder->reader);
    item_decoder_begin(&decoder->item, decoder->kind, decoder->kind->schema);
    return take_item_token(decoder, token, err);
}

static struct rc take_meta_token(struct list_decoder *decoder, const struct token *token,
                                 struct err *err)
{
    return item_decoder_take(&decoder->meta, token) ? end_meta(decoder, err) : RC_SUCCESS;
}

/* "JobList", or a list of metadata alone. An error's Status isn't one. */
static struct rc take_kind(struct list_decoder *decoder, const struct token *token, struct err *err)
{
    if (token->kind == TOKEN_STRING && str_ends_with(token->text, STR("List"))) {
        return RC_SUCCESS;
    }
    return err_set(err, RC_INVALID, "the list of %s: kind: \"" STR_FMT "\" is not %sList",
                   decoder->kind->plural, STR_ARG(str_cut_utf8(token->text, 64)),
                   decoder->kind->name);
}

static struct rc take_items(struct list_decoder *decoder, const struct token *token,
                            struct err *err)
{
    if (token->kind != TOKEN_NULL && token->kind != TOKEN_ARRAY_START) {
        return err_set(err, RC_INVALID, "the list of %s: items: that is not a list",
                       decoder->kind->plural);
    }
    decoder->has_items = true;
    decoder->is_in_items = token->kind == TOKEN_ARRAY_START;
    return RC_SUCCESS;
}

/* The first token of a member's value. */
static struct rc take_value(struct list_decoder *decoder, const struct token *token,
                            struct err *err)
{
    switch (decoder->member) {
    case MEMBER_KIND:
        return take_kind(decoder, token, err);
    case MEMBER_META:
        if (token->kind == TOKEN_NULL) {
            return RC_SUCCESS;
        }
        item_decoder_begin(&decoder->meta, NULL, &list_meta_schema);
        return take_meta_token(decoder, token, err);
    case MEMBER_ITEMS:
        return take_items(decoder, token, err);
    case MEMBER_OTHER:
        break;
    }
    if (token->kind == TOKEN_OBJECT_START || token->kind == TOKEN_ARRAY_START) {
        decoder->depth++;
    }
    return RC_SUCCESS;
}

static void take_key(struct list_decoder *decoder, struct str key)
{
    decoder->member = str_eq_c(key, "kind")       ? MEMBER_KIND
                      : str_eq_c(key, "metadata") ? MEMBER_META
                      : str_eq_c(key, "items")    ? MEMBER_ITEMS
                                                  : MEMBER_OTHER;
}

/* A token of the list itself or of a member that is passed over. */
static struct rc take_envelope_token(struct list_decoder *decoder, const struct token *token,
                                     struct err *err)
{
    if (decoder->is_complete || (decoder->depth == 0 && token->kind != TOKEN_OBJECT_START)) {
        return err_set(err, RC_INVALID, "the list of %s: that is not one object",
                       decoder->kind->plural);
    }
    if (token->kind == TOKEN_OBJECT_END || token->kind == TOKEN_ARRAY_END) {
        decoder->depth--;
        decoder->is_complete = decoder->depth == 0;
        return RC_SUCCESS;
    }
    if (decoder->depth == 1 && token->kind == TOKEN_KEY) {
        take_key(decoder, token->text);
        return RC_SUCCESS;
    }
    if (decoder->depth == 1) {
        return take_value(decoder, token, err);
    }
    if (token->kind == TOKEN_OBJECT_START || token->kind == TOKEN_ARRAY_START) {
        decoder->depth++;
    }
    return RC_SUCCESS;
}

static struct rc list_on_token(void *ctx, const struct token *token, struct err *err)
{
    struct list_decoder *decoder = ctx;

    if (decoder->item.is_active) {
        return take_item_token(decoder, token, err);
    }
    if (decoder->meta.is_active) {
        return take_meta_token(decoder, token, err);
    }
    if (!decoder->is_in_items) {
        return take_envelope_token(decoder, token, err);
    }
    if (token->kind == TOKEN_ARRAY_END) {
        decoder->is_in_items = false;
        return RC_SUCCESS;
    }
    return begin_item(decoder, token, err);
}

struct list_decoder *list_decoder_new(const struct kind_info *kind, struct watch_handler handler)
{
    struct list_decoder *decoder = MEM_NEW(struct list_decoder);

    assert(kind != NULL && handler.on_event != NULL);
    decoder->kind = kind;
    decoder->handler = handler;
    decoder->reader = json_reader_new((struct token_sink){list_on_token, decoder});
    item_decoder_init(&decoder->item);
    item_decoder_init(&decoder->meta);
    return decoder;
}

void list_decoder_free(struct list_decoder *decoder)
{
    if (decoder == NULL) {
        return;
    }
    json_reader_free(decoder->reader);
    item_decoder_deinit(&decoder->item);
    item_decoder_deinit(&decoder->meta);
    mem_free(decoder);
}

struct rc list_decoder_feed(struct list_decoder *decoder, const char *bytes, size_t count,
                            struct err *err)
{
    return json_reader_feed(decoder->reader, bytes, count, err);
}

struct rc list_decoder_finish(struct list_decoder *decoder, struct list_meta *ret_meta,
                              struct err *err)
{
    struct rc rc = json_reader_finish(decoder->reader, err);

    if (rc_failed(rc)) {
        rc = err_prefix(err, rc, "the list of %s", decoder->kind->plural);
    } else if (!decoder->is_complete || !decoder->has_items) {
        rc = err_set(err, RC_INVALID, "the list of %s has no items: that is no list",
                     decoder->kind->plural);
    } else {
        *ret_meta = (struct list_meta){0};
        if (decoder->has_meta) {
            *ret_meta = *(const struct list_meta *)item_decoder_value(&decoder->meta);
        }
    }
    list_restart(decoder);
    return rc;
}
