/* amounts.h - resource names, amounts by resource, and texts that are owned. Private to the core.
 */
#pragma once

#include "tallyman/api/codec.h"
#include "tallyman/base/map.h"
#include "tallyman/base/text.h"
#include "tallyman/core/core.h"

/* -- amounts ---------------------------------------------------------------------------------- */

/* A resource name that a node offers or a queue rations. The table only grows, by what admins
 * write, and is bounded by RESOURCE_NAMES_MAX; names that only Jobs use never enter it. */
struct resource_name {
    struct str text; /* owned; the key */
    UT_hash_handle hh;
};

/* Amounts by resource name, sorted by name, each name once. The array is owned, the names are
 * borrowed from core.resource_names. */
struct vector_item {
    struct str resource;
    i128 value; /* wide enough that no sum of 64-bit amounts wraps or saturates, so none drifts */
};

struct vector {
    struct vector_item *items;
    uint32_t count;
    uint32_t capacity;
};

/* What an evaluation found too little quota of; texts borrowed. */
struct quota_shortage {
    struct str flavor;
    struct str resource;
    int64_t asked;
};

/* -- owned text ------------------------------------------------------------------------------- */

/* A copy with a NUL behind it; str_drop() frees it and makes it absent. */
struct str str_own(struct str s);
void str_drop(struct str *s);
void str_replace(struct str *s, struct str with); /* by a copy of its own */
struct string_map string_map_own(const struct string_map *map);
void string_map_drop(struct string_map *map);
/* "namespace/name" in the arena. */
struct str key_join(struct arena *arena, struct str namespace_name, struct str name);

/* The table's own text of that name: entered if new (absent when the table is full), or only looked
 * up (absent when it isn't there). Borrowed for the core's life. */
struct str resource_intern(struct core *core, struct str name);
struct str resource_find(const struct core *core, struct str name);
/* The same for what a bound pod uses: names that users make up leave half of the table free. */
struct str resource_intern_of_pod(struct core *core, struct str name);

/* -- vectors ---------------------------------------------------------------------------------- */

i128 vector_get(const struct vector *v, struct str resource); /* 0 if absent */
/* The result must not fall below 0 (asserted). `resource` is borrowed from the table. */
void vector_add(struct vector *v, struct str resource, i128 delta);
void vector_add_all(struct vector *v, const struct vector *other, int64_t times);
void vector_clear(struct vector *v); /* keeps the memory */
void vector_deinit(struct vector *v);
int64_t i128_clamp(i128 value); /* to an int64, for showing */
bool vector_equal(const struct vector *a, const struct vector *b);
