/* The two annotations that ride on a Job: whoever may edit it may have written anything there. */
#include <assert.h>
#include <stdint.h>

#include "tallyman/api/admission.h"
#include "tallyman/api/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_schema(const struct schema *schema, struct str text)
{
    struct json_writer *writer = json_writer_new();
    struct arena arena;
    struct err err;
    void *value = NULL;
    void *again = NULL;

    arena_init(&arena);
    if (!rc_failed(decode_json(&arena, schema, text, &value, &err))) {
        encode_object(writer, schema, value);
        struct rc rc = decode_json(&arena, schema, json_writer_text(writer), &again, &err);

        assert(!rc_failed(rc) && object_equal(schema, value, again));
    }
    arena_deinit(&arena);
    json_writer_free(writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};

    try_schema(&admission_record_schema, text);
    try_schema(&suspended_record_schema, text);
    return 0;
}
