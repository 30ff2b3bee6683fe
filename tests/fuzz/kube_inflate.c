/* Any bytes as a gzip stream, fed in pieces: what comes out doesn't depend on where it was cut, and
 * never in larger pieces than promised. */
#include <assert.h>
#include <stdint.h>

#include "tallyman/base/limits.h"
#include "tallyman/kube/inflate.h"

#define OUTPUT_MAX_BYTES (4u * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct tally {
    uint64_t total;
    uint64_t hash;
};

static bool take(void *ctx, const char *bytes, size_t count)
{
    struct tally *tally = ctx;
    assert(count > 0 && count <= KUBE_INFLATE_CHUNK_BYTES);
    for (size_t i = 0; i < count; i++) {
        tally->hash = tally->hash * 1099511628211u + (unsigned char)bytes[i];
    }
    tally->total += count;
    return tally->total < OUTPUT_MAX_BYTES;
}

static struct tally run(const uint8_t *bytes, size_t size, size_t step, bool *ret_is_good)
{
    struct kube_inflate *inflate = kube_inflate_new();
    struct tally tally = {0};
    struct kube_inflate_sink sink = {.on_bytes = take, .ctx = &tally};
    bool is_good = true;
    for (size_t at = 0; at < size && is_good; at += step) {
        size_t count = size - at < step ? size - at : step;
        is_good =
            !rc_failed(kube_inflate_feed(inflate, (const char *)bytes + at, count, sink, NULL));
    }
    *ret_is_good = is_good && kube_inflate_is_complete(inflate);
    kube_inflate_free(inflate);
    return tally;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 1) {
        return 0;
    }
    bool is_good_whole = false;
    bool is_good_cut = false;
    struct tally whole = run(bytes + 1, size - 1, size, &is_good_whole);
    struct tally cut = run(bytes + 1, size - 1, 1 + bytes[0] % 64u, &is_good_cut);
    assert(is_good_whole == is_good_cut);
    /* Of a damaged stream more or less may come out before the damage is noticed. */
    if (is_good_whole) {
        assert(whole.total == cut.total && whole.hash == cut.hash);
    }
    return 0;
}
