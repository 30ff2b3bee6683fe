/* A watch and a list, cut at random: the events are the same as of the text in one piece. The first
 * two bytes choose the kind and the cuts. */
#include <assert.h>
#include <stdint.h>

#include "tallyman/api/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    uint64_t hash; /* of all that the handler was told, in its order */
    enum rc_code code;
};

static void add(struct outcome *outcome, const char *what, struct str text)
{
    outcome->hash = str_hash(str_from_c(what), outcome->hash);
    outcome->hash = str_hash(text, outcome->hash);
}

static struct rc on_event(void *ctx, const struct watch_event *event, struct err *err)
{
    struct outcome *outcome = ctx;

    (void)err;
    if (event->type == WATCH_ERROR) {
        assert(event->status != NULL);
        add(outcome, "error", event->status->message);
        return RC_SUCCESS;
    }
    const struct schema *schema = kind_info(event->object.kind)->schema;
    struct json_writer *writer = json_writer_new();

    encode_object(writer, schema, event->object.value);
    add(outcome, "event", json_writer_text(writer));
    json_writer_free(writer);
    return RC_SUCCESS;
}

static void on_malformed(void *ctx, const struct object_meta *meta, const struct err *why)
{
    add(ctx, "malformed", meta->name);
    add(ctx, "why", err_text(why));
}

/* 1 to 8 bytes, or all. */
static size_t next_chunk_bytes(uint32_t *seed, size_t left_bytes)
{
    size_t chunk_bytes = *seed == 0 ? left_bytes : *seed % 8 + 1;

    *seed = *seed == 0 ? 0 : *seed * 1103515245u + 12345u;
    *seed += *seed == 0 ? 0 : (*seed % 2 == 0); /* never becomes 0 by itself */
    return chunk_bytes < left_bytes ? chunk_bytes : left_bytes;
}

static struct outcome read_watch(const struct kind_info *kind, struct str text, uint32_t seed)
{
    struct outcome outcome = {0};
    struct watch_decoder *decoder =
        watch_decoder_new(kind, (struct watch_handler){on_event, on_malformed, &outcome});
    struct rc rc = RC_SUCCESS;
    struct err err;

    while (text.len > 0 && !rc_failed(rc)) {
        size_t chunk_bytes = next_chunk_bytes(&seed, text.len);

        rc = watch_decoder_feed(decoder, text.ptr, chunk_bytes, &err);
        text = str_skip(text, chunk_bytes);
    }
    outcome.code = rc_failed(rc) ? rc.code : watch_decoder_finish(decoder, &err).code;
    watch_decoder_free(decoder);
    return outcome;
}

static struct outcome read_list(const struct kind_info *kind, struct str text, uint32_t seed)
{
    struct outcome outcome = {0};
    struct list_decoder *decoder =
        list_decoder_new(kind, (struct watch_handler){on_event, on_malformed, &outcome});
    struct list_meta meta = {0};
    struct rc rc = RC_SUCCESS;
    struct err err;

    while (text.len > 0 && !rc_failed(rc)) {
        size_t chunk_bytes = next_chunk_bytes(&seed, text.len);

        rc = list_decoder_feed(decoder, text.ptr, chunk_bytes, &err);
        text = str_skip(text, chunk_bytes);
    }
    outcome.code = rc_failed(rc) ? rc.code : list_decoder_finish(decoder, &meta, &err).code;
    add(&outcome, "meta", meta.resource_version);
    list_decoder_free(decoder);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    const struct kind_info *kind =
        kind_info((enum object_kind)(data[0] % (KIND_COUNT - 1) + KIND_NONE + 1));
    struct str text = {(const char *)data + 2, size - 2};
    uint32_t seed = data[1] * 2u + 1;
    struct outcome whole = read_watch(kind, text, 0);
    struct outcome cut = read_watch(kind, text, seed);

    assert(whole.hash == cut.hash && whole.code == cut.code);
    whole = read_list(kind, text, 0);
    cut = read_list(kind, text, seed);
    assert(whole.hash == cut.hash && whole.code == cut.code);
    return 0;
}
