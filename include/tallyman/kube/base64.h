/* base64.h - RFC 4648 base64 with padding, as kubeconfig files hold certificates. */
#pragma once

#include <stdbool.h>

#include "tallyman/base/arena.h"

/* Line breaks and blanks between the characters are passed over, as Go's decoder does for line
 * breaks. False: not base64. The bytes are borrowed from the arena and have a NUL behind them. */
bool base64_decode(struct arena *arena, struct str text, struct str *ret_bytes);
/* Borrowed from the arena. */
struct str base64_encode(struct arena *arena, struct str bytes);
