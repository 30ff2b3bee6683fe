/* time_text.h - points in time and durations as Kubernetes writes them.
 *
 * A point in time is int64 milliseconds since 1970-01-01T00:00:00Z; a duration is int64
 * milliseconds. Nothing here reads a clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tallyman/base/str.h"

#define TIME_TEXT_BYTES 32 /* room for either form, with its NUL */

/* RFC 3339 with any fraction and offset ("2026-11-29T12:00:00.5+01:00"); a fraction finer than a
 * millisecond is cut. False: not a time. Years 1970 to 9999; as in Go, "T" and "Z" are capital and
 * a leap second isn't taken. */
bool time_parse_rfc3339(struct str text, int64_t *ret_ms);
/* Before 1970 is shown as 1970, after 9999 as its last second.
 * "2026-11-29T12:00:00Z", seconds cut as metav1.Time does. Returns a view of `buffer`. */
struct str time_format_rfc3339(int64_t ms, char buffer[TIME_TEXT_BYTES]);
/* "2026-11-29T12:00:00.000000Z": metav1.MicroTime takes exactly six decimals. */
struct str time_format_micro(int64_t ms, char buffer[TIME_TEXT_BYTES]);

/* A Go duration without sign, its units in falling order: "90s", "1h30m", "1.5h", "250ms"; "0" too.
 * False: not one, or more than 100 years. What is finer than a millisecond is cut. */
bool duration_parse(struct str text, int64_t *ret_ms);
/* As Kubernetes prints an age: "93s", "11m", "8h", "3d", "5m20s"; negative is "0s". Returns a view
 * of `buffer`. */
struct str duration_format_short(int64_t ms, char buffer[TIME_TEXT_BYTES]);
