/* JSON of any kind: decoding never breaks, and what was decoded is encoded to the same again. The
 * first byte chooses the schema. */
#include <assert.h>
#include <stdint.h>

#include "tallyman/api/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct schema *choose_schema(uint8_t byte)
{
    int choice = byte % KIND_COUNT;

    return choice == KIND_NONE ? &api_status_schema : kind_info((enum object_kind)choice)->schema;
}

static void check_round_trip(struct arena *arena, const struct schema *schema, const void *value)
{
    struct json_writer *writer = json_writer_new();
    struct err err;
    void *again = NULL;

    encode_object(writer, schema, value);
    struct rc rc = decode_json(arena, schema, json_writer_text(writer), &again, &err);

    assert(!rc_failed(rc) && again != NULL);
    assert(object_equal(schema, value, again));
    json_writer_free(writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct err err;
    void *value = NULL;

    if (size == 0) {
        return 0;
    }
    const struct schema *schema = choose_schema(data[0]);
    struct str text = {(const char *)data + 1, size - 1};

    arena_init(&arena);
    if (!rc_failed(decode_json(&arena, schema, text, &value, &err))) {
        check_round_trip(&arena, schema, value);
    }
    arena_deinit(&arena);
    return 0;
}
