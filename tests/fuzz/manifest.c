/* Files of manifests, YAML or JSON. */
#include <assert.h>
#include <stdint.h>

#include "tallyman/api/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rc on_manifest(void *ctx, const struct manifest *manifest, struct err *err)
{
    struct json_writer *writer = ctx;

    (void)err;
    assert(manifest->line > 0 && manifest->kind.len > 0 && manifest->api_version.len > 0);
    if (manifest->object.kind != KIND_NONE) {
        const struct kind_info *kind = kind_info(manifest->object.kind);

        assert(!kind->is_namespaced || manifest->object.value->namespace_name.len > 0);
        json_writer_reset(writer);
        encode_object(writer, kind->schema, manifest->object.value);
    }
    return RC_SUCCESS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_writer *writer = json_writer_new();
    struct arena arena;
    struct err err = {{0}};

    arena_init(&arena);
    struct rc rc = manifests_read(&arena, STR("f.yaml"), (struct str){(const char *)data, size},
                                  on_manifest, writer, &err);

    /* An error has its place: file and line. */
    assert(!rc_failed(rc) || str_starts_with(err_text(&err), STR("f.yaml:")));
    arena_deinit(&arena);
    json_writer_free(writer);
    return 0;
}
