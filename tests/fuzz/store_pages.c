/* Any bytes as data.mdb: the walk neither reads outside of them nor runs for ever. What it takes is
 * then read by LMDB in store_open()'s child, so this is the part that has to stand on its own. */
#include <stddef.h>
#include <stdint.h>

#include "tallyman/store/pages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rc touch(void *ctx, struct str db, struct str key, struct str value, struct err *err)
{
    (void)err;
    *(uint64_t *)ctx ^= str_hash(db, str_hash(key, str_hash(value, 0)));
    return RC_SUCCESS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t sum = 0;
    const struct pages_visitor visitor = {touch, &sum};
    struct err err;

    (void)rc_failed(pages_check(data, size, &visitor, &err));
    return 0;
}
