/* file.h - reads a small file whole; private to the layer. */
#pragma once

#include "tallyman/base/arena.h"
#include "tallyman/base/err.h"

/* The bytes, with a NUL behind them, are borrowed from the arena. RC_NOT_FOUND: there is no such
 * file; RC_LIMIT: it has more than `max_bytes`. */
NODISCARD struct rc kube_file_read(struct arena *arena, struct str path, size_t max_bytes,
                                   struct str *ret_bytes, struct err *err);
