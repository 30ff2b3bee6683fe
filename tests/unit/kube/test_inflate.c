#include <string.h>
#include <zlib.h>

#include "support/check.h"
#include "tallyman/base/limits.h"
#include "tallyman/kube/inflate.h"

#define BUFFER_BYTES 65536

struct buffer {
    char bytes[BUFFER_BYTES];
    size_t len;
    uint64_t total;
    size_t largest;
    size_t max_bytes; /* then no more is wanted; 0: everything is */
};

static bool buffer_take(void *ctx, const char *bytes, size_t count)
{
    struct buffer *buffer = ctx;
    size_t kept = count < BUFFER_BYTES - buffer->len ? count : BUFFER_BYTES - buffer->len;
    memcpy(buffer->bytes + buffer->len, bytes, kept);
    buffer->len += kept;
    buffer->total += count;
    buffer->largest = count > buffer->largest ? count : buffer->largest;
    return buffer->max_bytes == 0 || buffer->total < buffer->max_bytes;
}

/* Adds one gzip member to `out`. */
static void add_member(struct buffer *out, const char *text, size_t len)
{
    z_stream zlib = {0};
    assert_int_equal(deflateInit2(&zlib, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
    zlib.next_in = (z_const Bytef *)(uintptr_t)text;
    zlib.avail_in = (uInt)len;
    zlib.next_out = (Bytef *)out->bytes + out->len;
    zlib.avail_out = (uInt)(BUFFER_BYTES - out->len);
    assert_int_equal(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    out->len = BUFFER_BYTES - zlib.avail_out;
    deflateEnd(&zlib);
}

static struct rc feed(struct kube_inflate *inflate, struct buffer *out, const char *bytes,
                      size_t count, struct err *err)
{
    struct kube_inflate_sink sink = {.on_bytes = buffer_take, .ctx = out};
    return kube_inflate_feed(inflate, bytes, count, sink, err);
}

static void members_follow_each_other_cut_anywhere(void **state)
{
    struct buffer in = {0};
    struct err err;
    (void)state;
    add_member(&in, "first ", 6);
    add_member(&in, "", 0);
    add_member(&in, "second ", 7);
    add_member(&in, "third", 5);
    for (size_t cut = 0; cut <= in.len; cut++) {
        struct kube_inflate *inflate = kube_inflate_new();
        struct buffer out = {0};
        assert_false(rc_failed(feed(inflate, &out, in.bytes, cut, &err)));
        assert_false(rc_failed(feed(inflate, &out, in.bytes + cut, in.len - cut, &err)));
        check_str(((struct str){out.bytes, out.len}), "first second third");
        assert_true(kube_inflate_is_complete(inflate));
        kube_inflate_free(inflate);
    }
}

static void complete_only_between_members(void **state)
{
    struct buffer in = {0};
    struct err err;
    (void)state;
    add_member(&in, "text", 4);
    size_t first_len = in.len;
    add_member(&in, "more", 4);
    struct kube_inflate *inflate = kube_inflate_new();
    struct buffer out = {0};
    for (size_t i = 0; i < in.len; i++) {
        assert_int_equal(kube_inflate_is_complete(inflate), i == 0 || i == first_len);
        assert_false(rc_failed(feed(inflate, &out, in.bytes + i, 1, &err)));
        assert_false(rc_failed(feed(inflate, &out, in.bytes + i, 0, &err)));
    }
    assert_true(kube_inflate_is_complete(inflate));
    check_i64(out.len, 8);
    kube_inflate_free(inflate);
}

static void a_bomb_comes_in_small_pieces(void **state)
{
    static char zeros[1 << 20];
    static struct buffer in;
    struct err err;
    struct buffer out = {0};
    (void)state;
    for (int i = 0; i < 20; i++) {
        add_member(&in, zeros, sizeof(zeros));
    }
    assert_true(in.len < 40000);
    struct kube_inflate *inflate = kube_inflate_new();
    assert_false(rc_failed(feed(inflate, &out, in.bytes, in.len, &err)));
    check_i64((int64_t)out.total, 20 << 20);
    assert_true(out.largest <= KUBE_INFLATE_CHUNK_BYTES);
    kube_inflate_free(inflate);

    inflate = kube_inflate_new();
    out = (struct buffer){.max_bytes = 100000};
    check_i64(feed(inflate, &out, in.bytes, in.len, &err).code, RC_REFUSED);
    assert_true(out.total < 100000 + KUBE_INFLATE_CHUNK_BYTES);
    kube_inflate_free(inflate);
}

/* A watch may say nothing more for a minute: what can be unpacked is handed on at once. */
static void nothing_is_held_back(void **state)
{
    static char text[300000];
    struct buffer in = {0};
    struct err err;
    (void)state;
    memset(text, 'x', sizeof(text));
    add_member(&in, text, sizeof(text));
    for (size_t cut = 1; cut < in.len; cut++) {
        struct kube_inflate *inflate = kube_inflate_new();
        struct buffer out = {0};
        assert_false(rc_failed(feed(inflate, &out, in.bytes, cut, &err)));
        uint64_t given = out.total;
        assert_false(rc_failed(feed(inflate, &out, in.bytes, 0, &err)));
        check_i64((int64_t)out.total, (int64_t)given);
        kube_inflate_free(inflate);
    }
}

static void damage_is_noticed(void **state)
{
    struct buffer in = {0};
    struct err err = {0};
    (void)state;
    add_member(&in, "some text that is long enough", 29);
    for (size_t i = 0; i < in.len; i++) {
        struct kube_inflate *inflate = kube_inflate_new();
        struct buffer out = {0};
        in.bytes[i] = (char)(in.bytes[i] ^ 0x10);
        struct rc rc = feed(inflate, &out, in.bytes, in.len, &err);
        bool is_unnoticed = !rc_failed(rc) && kube_inflate_is_complete(inflate);
        struct str text = {out.bytes, out.len};
        if (is_unnoticed && !str_eq(text, STR("some text that is long enough"))) {
            fail_msg("a change of byte %zu went unnoticed", i);
        }
        in.bytes[i] = (char)(in.bytes[i] ^ 0x10);
        kube_inflate_free(inflate);
    }
    struct kube_inflate *inflate = kube_inflate_new();
    struct buffer out = {0};
    check_i64(feed(inflate, &out, "{\"type\":", 8, &err).code, RC_INVALID);
    check_str(err_text(&err), "the answer isn't sound gzip: incorrect header check");
    kube_inflate_free(inflate);
    kube_inflate_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_follow_each_other_cut_anywhere),
        cmocka_unit_test(complete_only_between_members),
        cmocka_unit_test(a_bomb_comes_in_small_pieces),
        cmocka_unit_test(nothing_is_held_back),
        cmocka_unit_test(damage_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
