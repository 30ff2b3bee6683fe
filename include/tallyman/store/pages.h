/* pages.h - is this LMDB file whole? Reads its bytes alone, never through LMDB.
 *
 * LMDB trusts its file: it has no page checksums, and a wrong page number ends in an assertion, a
 * SIGBUS or a write over live data. This walks everything that the newest meta page reaches - the
 * free list, the list of databases and each of them - and holds every page number, bound, count,
 * level and order of keys against the rest: no page is used twice, none that is used is free. What
 * a record's bytes mean is the visitor's business (the store compares a checksum). Never reads out
 * of `bytes` and always ends, whatever the bytes are.
 *
 * The format is that of LMDB 0.9 (MDB_DATA_VERSION 1) on a 64-bit little-endian machine, without
 * duplicate keys. Bytes that nothing reaches may be anything. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tallyman/base/err.h"
#include "tallyman/base/str.h"

struct pages_visitor {
    /* One record of the database `db`. The views are borrowed for the call. */
    struct rc (*record)(void *ctx, struct str db, struct str key, struct str value,
                        struct err *err);
    void *ctx; /* borrowed for the walk */
};

/* RC_CORRUPT with a sentence that names the page; whatever else the visitor gives. */
NODISCARD struct rc pages_check(const uint8_t *bytes, size_t count,
                                const struct pages_visitor *visitor, struct err *err);
