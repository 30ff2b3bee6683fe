/* json_writer.c - compact JSON text, over yajl's generator. */
#include "codec_private.h"

#include <assert.h>
#include <string.h>

#include <yajl/yajl_gen.h>

#include "tallyman/base/alloc.h"

struct json_writer {
    yajl_gen gen;         /* owned */
    struct arena scratch; /* for a text that has to be mended */
};

static void *gen_mem_alloc(void *ctx, size_t bytes)
{
    (void)ctx;
    return mem_alloc(bytes);
}

static void *gen_mem_realloc(void *ctx, void *old, size_t bytes)
{
    (void)ctx;
    return mem_realloc(old, bytes);
}

static void gen_mem_free(void *ctx, void *p)
{
    (void)ctx;
    mem_free(p);
}

/* Whatever yajl refuses here is the caller's mistake in nesting. */
static void gen_check(yajl_gen_status status)
{
    if (status != yajl_gen_status_ok) {
        mem_die("JSON is being written in a wrong order");
    }
}

struct json_writer *json_writer_new(void)
{
    struct json_writer *writer = MEM_NEW(struct json_writer);
    yajl_alloc_funcs memory = {gen_mem_alloc, gen_mem_realloc, gen_mem_free, NULL};

    writer->gen = yajl_gen_alloc(&memory);
    assert(writer->gen != NULL);
    arena_init(&writer->scratch);
    return writer;
}

void json_writer_free(struct json_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    yajl_gen_free(writer->gen);
    arena_deinit(&writer->scratch);
    mem_free(writer);
}

void json_writer_reset(struct json_writer *writer)
{
    yajl_gen_reset(writer->gen, NULL);
    yajl_gen_clear(writer->gen);
    arena_reset(&writer->scratch);
}

void json_object_start(struct json_writer *writer)
{
    gen_check(yajl_gen_map_open(writer->gen));
}

void json_object_end(struct json_writer *writer)
{
    gen_check(yajl_gen_map_close(writer->gen));
}

void json_array_start(struct json_writer *writer)
{
    gen_check(yajl_gen_array_open(writer->gen));
}

void json_array_end(struct json_writer *writer)
{
    gen_check(yajl_gen_array_close(writer->gen));
}

/* One U+FFFD for each byte that isn't part of a well-formed character. */
static struct str mend_utf8(struct arena *arena, struct str s)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    size_t mark_bytes = sizeof(replacement) - 1;
    char *mended = arena_alloc_array(arena, s.len, mark_bytes);
    size_t len = 0;

    for (struct str left = s; left.len > 0;) {
        size_t good_bytes = utf8_valid_bytes(left);

        memcpy(mended + len, left.ptr, good_bytes);
        len += good_bytes;
        left = str_skip(left, good_bytes);
        if (left.len > 0) {
            memcpy(mended + len, replacement, mark_bytes);
            len += mark_bytes;
            left = str_skip(left, 1);
        }
    }
    return (struct str){mended, len};
}

void json_string(struct json_writer *writer, struct str value)
{
    struct str s = utf8_is_valid(value) ? value : mend_utf8(&writer->scratch, value);

    gen_check(
        yajl_gen_string(writer->gen, (const unsigned char *)(s.ptr == NULL ? "" : s.ptr), s.len));
}

void json_key_str(struct json_writer *writer, struct str key)
{
    /* In yajl's view a key is a string where a key belongs. */
    json_string(writer, key);
}

void json_key(struct json_writer *writer, const char *key)
{
    json_string(writer, str_from_c(key));
}

void json_int(struct json_writer *writer, int64_t value)
{
    gen_check(yajl_gen_integer(writer->gen, value));
}

void json_number(struct json_writer *writer, struct str digits)
{
    gen_check(yajl_gen_number(writer->gen, digits.ptr, digits.len));
}

void json_bool(struct json_writer *writer, bool value)
{
    gen_check(yajl_gen_bool(writer->gen, value ? 1 : 0));
}

void json_null(struct json_writer *writer)
{
    gen_check(yajl_gen_null(writer->gen));
}

struct str json_writer_text(const struct json_writer *writer)
{
    const unsigned char *text;
    size_t len;

    gen_check(yajl_gen_get_buf(writer->gen, &text, &len));
    return (struct str){(const char *)text, len};
}
