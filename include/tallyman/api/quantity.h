/* quantity.h - amounts as Kubernetes writes them, exactly.
 *
 * Parsed as k8s.io/apimachinery/pkg/api/resource does (quantity.go, suffix.go): decimal and binary
 * suffixes, decimal exponents, `1E` = 10^18 but `1E3` = 1000; what is finer than 1n is rounded up,
 * away from zero. Kept as a count of billionths in 128 bits, saturating at the largest int64 of
 * whole units in either direction, never wrapping. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tallyman/base/arena.h"
#include "tallyman/base/err.h"
#include "tallyman/base/str.h"

__extension__ typedef __int128 i128; /* the one typedef: the language has no other short name */

struct quantity {
    i128 nano; /* billionths of the resource's whole unit */
};

struct opt_quantity {
    bool is_set;
    struct quantity value;
    struct str text; /* as the user wrote it; never rewritten */
};

/* One entry of a resource list such as `requests`. */
struct resource_amount {
    struct str name;
    struct quantity value;
    struct str text; /* as written */
};

struct resource_list {
    struct resource_amount *items; /* in the order of the input */
    uint32_t count;
};

/* RC_INVALID with a sentence that quotes the text (at most QUANTITY_TEXT_MAX_BYTES of it) and says
 * what would be right. A text of any length is read. */
NODISCARD struct rc quantity_parse(struct str text, struct quantity *ret_value, struct err *err);

/* Whole units, rounded up for what is asked, down for what is there; saturating. Up is away from
 * zero, as apimachinery rounds, and down is towards it. */
int64_t quantity_units_up(struct quantity q);
int64_t quantity_units_down(struct quantity q);
int64_t quantity_milli_up(struct quantity q);
int64_t quantity_milli_down(struct quantity q);

/* <0, 0, >0. */
int quantity_compare(struct quantity a, struct quantity b);

/* The unit that an amount of `resource` is kept in: cpu in thousandths, all others whole. */
bool resource_is_milli(struct str resource);
/* The amount in that unit, saturating. `up`: round up (requests), else down (limits, quotas). */
int64_t resource_amount_from_quantity(struct str resource, struct quantity q, bool up);
/* For people: cpu 1500 -> "1500m", cpu 2000 -> "2", memory 1073741824 -> "1Gi", others as they are.
 * Returns a view in the arena. */
struct str resource_amount_format(struct arena *arena, struct str resource, int64_t amount);

/* Adds and multiplies with saturation at INT64_MAX/INT64_MIN. */
int64_t sat_add(int64_t a, int64_t b);
int64_t sat_sub(int64_t a, int64_t b);
int64_t sat_mul(int64_t a, int64_t b);
