#include "tallyman/kube/inflate.h"

#include <zlib.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

#define GZIP_WINDOW_BITS (15 + 16) /* largest window; gzip wrapper only */

struct kube_inflate {
    z_stream zlib;
    bool is_inside_member;
    char chunk[KUBE_INFLATE_CHUNK_BYTES];
};

struct kube_inflate *kube_inflate_new(void)
{
    struct kube_inflate *stream = MEM_NEW(struct kube_inflate);
    if (inflateInit2(&stream->zlib, GZIP_WINDOW_BITS) != Z_OK) {
        mem_die("zlib can't be initialised");
    }
    return stream;
}

void kube_inflate_free(struct kube_inflate *stream)
{
    if (stream != NULL) {
        inflateEnd(&stream->zlib);
        mem_free(stream);
    }
}

bool kube_inflate_is_complete(const struct kube_inflate *stream)
{
    return !stream->is_inside_member;
}

/* One step of zlib; tells how many bytes came out. Z_BUF_ERROR: it wants more input. */
static struct rc inflate_step(struct kube_inflate *stream, size_t *ret_bytes, struct err *err)
{
    z_stream *zlib = &stream->zlib;
    zlib->next_out = (Bytef *)stream->chunk;
    zlib->avail_out = sizeof(stream->chunk);
    if (zlib->avail_in > 0) {
        stream->is_inside_member = true;
    }
    int result = inflate(zlib, Z_SYNC_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        return err_set(err, RC_INVALID, "the answer isn't sound gzip: %s",
                       zlib->msg == NULL ? "unexpected data" : zlib->msg);
    }
    *ret_bytes = sizeof(stream->chunk) - zlib->avail_out;
    if (result == Z_STREAM_END) {
        stream->is_inside_member = false;
        inflateReset(zlib);
    }
    return RC_SUCCESS;
}

struct rc kube_inflate_feed(struct kube_inflate *stream, const char *bytes, size_t count,
                            struct kube_inflate_sink sink, struct err *err)
{
    z_stream *zlib = &stream->zlib;
    /* libcurl's chunks are far below 4 GiB; zlib counts in unsigned int. */
    zlib->next_in = (z_const Bytef *)(uintptr_t)bytes;
    zlib->avail_in = (uInt)count;
    size_t out_bytes = 0;
    do {
        TRY(inflate_step(stream, &out_bytes, err));
        if (out_bytes > 0 && !sink.on_bytes(sink.ctx, stream->chunk, out_bytes)) {
            return err_set(err, RC_REFUSED, "no more is wanted");
        }
        /* A full chunk may have left output inside zlib even though the input is used up. */
    } while (zlib->avail_in > 0 || out_bytes == sizeof(stream->chunk));
    return RC_SUCCESS;
}
