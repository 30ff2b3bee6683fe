/* inflate.h - decompresses a gzip stream of any number of members, as its bytes arrive.
 *
 * kube-apiserver compresses a WatchList as one gzip member per flush, which libcurl 7.88 doesn't
 * decode: it stops after the first. Output is handed on in pieces of at most
 * KUBE_INFLATE_CHUNK_BYTES, so that a bomb costs time in proportion to its size but no memory.
 * Source: kubernetes/staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters. */
#pragma once

#include <stdbool.h>

#include "tallyman/base/err.h"

struct kube_inflate;

struct kube_inflate_sink {
    /* False: enough, stop here. The bytes are borrowed for the call. */
    bool (*on_bytes)(void *ctx, const char *bytes, size_t count);
    void *ctx;
};

struct kube_inflate *kube_inflate_new(void);          /* owned; free with kube_inflate_free() */
void kube_inflate_free(struct kube_inflate *inflate); /* NULL is fine */
/* RC_INVALID: not gzip, or damaged. RC_REFUSED: the sink has had enough. */
NODISCARD struct rc kube_inflate_feed(struct kube_inflate *inflate, const char *bytes, size_t count,
                                      struct kube_inflate_sink sink, struct err *err);
/* True between two members: the stream may end here. */
bool kube_inflate_is_complete(const struct kube_inflate *inflate);
