/* watch_decoder.c - {"type":…,"object":…} after the other, as a server sends a watch.
 *
 * API servers write `type` before `object` (metav1.WatchEvent's order), and what the object is
 * depends on it, so a text that has them the other way round is refused. */
#include "codec_private.h"

#include <assert.h>

#include "object_report.h"
#include "schema.h"
#include "tallyman/api/node.h"
#include "tallyman/base/alloc.h"

enum watch_member { MEMBER_OTHER, MEMBER_TYPE, MEMBER_OBJECT };

struct watch_decoder {
    const struct kind_info *kind; /* static */
    struct watch_handler handler;
    struct json_reader *reader; /* owned */
    struct item_decoder item;
    struct schema bookmark_schema; /* the kind's struct, but only its meta is read */
    uint32_t depth;                /* brackets open, those of the object not counted */
    enum watch_member member;      /* whose value comes next */
    enum watch_event_type type;    /* 0: not seen yet */
    bool has_object;
};

static const struct {
    const char *text;
    enum watch_event_type type;
} event_types[] = {
    {"ADDED", WATCH_ADDED},       {"MODIFIED", WATCH_MODIFIED}, {"DELETED", WATCH_DELETED},
    {"BOOKMARK", WATCH_BOOKMARK}, {"ERROR", WATCH_ERROR},
};

static const struct field meta_field[] = {
    F_OBJECT(namespace_object, meta, "metadata", object_meta)};

static struct rc take_type(struct watch_decoder *decoder, const struct token *token,
                           struct err *err)
{
    if (token->kind == TOKEN_STRING) {
        for (size_t i = 0; i < ARRAY_COUNT(event_types); i++) {
            if (str_eq_c(token->text, event_types[i].text)) {
                decoder->type = event_types[i].type;
                return RC_SUCCESS;
            }
        }
    }
    return err_set(err, RC_INVALID,
                   "the watch of %s has an event of type \"" STR_FMT
                   "\"; right is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR",
                   decoder->kind->plural, STR_ARG(str_cut_utf8(token->text, 64)));
}

static struct rc begin_object(struct watch_decoder *decoder, struct err *err)
{
    if (decoder->type == 0) {
        return err_set(err, RC_INVALID, "the watch of %s has an event whose type isn't in front",
                       decoder->kind->plural);
    }
    if (decoder->has_object) {
        return err_set(err, RC_INVALID, "the watch of %s has an event with two objects",
                       decoder->kind->plural);
    }
    decoder->has_object = true;
    if (decoder->type == WATCH_ERROR) {
        item_decoder_begin(&decoder->item, NULL, &api_status_schema);
    } else if (decoder->type == WATCH_BOOKMARK) {
        item_decoder_begin(&decoder->item, decoder->kind, &decoder->bookmark_schema);
    } else {
        item_decoder_begin(&decoder->item, decoder->kind, decoder->kind->schema);
    }
    return RC_SUCCESS;
}

/* The value that belongs to the member; its first token. */
static struct rc take_value(struct watch_decoder *decoder, const struct token *token,
                            struct err *err)
{
    if (decoder->member == MEMBER_TYPE) {
        TRY(take_type(decoder, token, err));
    } else if (decoder->member == MEMBER_OBJECT) {
        TRY(begin_object(decoder, err));
        item_decoder_take(&decoder->item, token);
    }
    return RC_SUCCESS;
}

static struct rc report_error(struct watch_decoder *decoder, struct err *err)
{
    struct watch_event event = {.type = WATCH_ERROR, .status = item_decoder_value(&decoder->item)};

    return decoder->handler.on_event(decoder->handler.ctx, &event, err);
}

static struct rc end_event(struct watch_decoder *decoder, struct err *err)
{
    enum watch_event_type type = decoder->type;

    if (type == 0 || !decoder->has_object) {
        return err_set(err, RC_INVALID, "the watch of %s has an event without %s",
                       decoder->kind->plural, type == 0 ? "a type" : "an object");
    }
    /* Without these two the stream's own state isn't known. */
    if (decoder->item.is_malformed && (type == WATCH_BOOKMARK || type == WATCH_ERROR)) {
        return err_set(err, RC_INVALID, "the watch of %s has a malformed %s: " STR_FMT,
                       decoder->kind->plural, type == WATCH_ERROR ? "error" : "bookmark",
                       STR_ARG(err_text(&decoder->item.why)));
    }
    return type == WATCH_ERROR ? report_error(decoder, err)
                               : object_report(&decoder->handler, &decoder->item, type, err);
}

static void take_key(struct watch_decoder *decoder, const struct token *token)
{
    decoder->member = str_eq_c(token->text, "type")     ? MEMBER_TYPE
                      : str_eq_c(token->text, "object") ? MEMBER_OBJECT
                                                        : MEMBER_OTHER;
}

static struct rc begin_event(struct watch_decoder *decoder, const struct token *token,
                             struct err *err)
{
    if (token->kind != TOKEN_OBJECT_START) {
        return err_set(err, RC_INVALID, "the watch of %s has something that is no event",
                       decoder->kind->plural);
    }
    decoder->depth = 1;
    decoder->type = 0;
    decoder->has_object = false;
    decoder->member = MEMBER_OTHER;
    return RC_SUCCESS;
}

static struct rc watch_on_token(void *ctx, const struct token *token, struct err *err)
{
    struct watch_decoder *decoder = ctx;

    if (decoder->item.is_active) {
        item_decoder_take(&decoder->item, token);
        return RC_SUCCESS;
    }
    if (decoder->depth == 0) {
        return begin_event(decoder, token, err);
    }
    if (token->kind == TOKEN_OBJECT_END || token->kind == TOKEN_ARRAY_END) {
        decoder->depth--;
        return decoder->depth == 0 ? end_event(decoder, err) : RC_SUCCESS;
    }
    if (decoder->depth == 1 && token->kind == TOKEN_KEY) {
        take_key(decoder, token);
        return RC_SUCCESS;
    }
    if (decoder->depth == 1 && decoder->member != MEMBER_OTHER) {
        return take_value(decoder, token, err);
    }
    if (token->kind == TOKEN_OBJECT_START || token->kind == TOKEN_ARRAY_START) {
        decoder->depth++;
    }
    return RC_SUCCESS;
}

struct watch_decoder *watch_decoder_new(const struct kind_info *kind, struct watch_handler handler)
{
    struct watch_decoder *decoder = MEM_NEW(struct watch_decoder);

    assert(kind != NULL && handler.on_event != NULL);
    decoder->kind = kind;
    decoder->handler = handler;
    decoder->bookmark_schema =
        (struct schema){kind->schema->name, kind->schema->bytes, meta_field, 1};
    decoder->reader = json_reader_new((struct token_sink){watch_on_token, decoder});
    item_decoder_init(&decoder->item);
    return decoder;
}

void watch_decoder_free(struct watch_decoder *decoder)
{
    if (decoder == NULL) {
        return;
    }
    json_reader_free(decoder->reader);
    item_decoder_deinit(&decoder->item);
    mem_free(decoder);
}

struct rc watch_decoder_feed(struct watch_decoder *decoder, const char *bytes, size_t count,
                             struct err *err)
{
    return json_reader_feed(decoder->reader, bytes, count, err);
}

struct rc watch_decoder_finish(struct watch_decoder *decoder, struct err *err)
{
    struct rc rc = json_reader_finish(decoder->reader, err);

    decoder->depth = 0;
    decoder->item.is_active = false;
    return rc_failed(rc) ? err_prefix(err, rc, "the watch of %s", decoder->kind->plural) : rc;
}
