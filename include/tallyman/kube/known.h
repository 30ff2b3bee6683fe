/* known.h - which objects of a kind have been reported, so that what vanished is noticed.
 *
 * Per object no more than namespace, name, uid and the last resourceVersion. A sync is a round:
 * what is put gets the round's number, and what doesn't have it at the end has vanished. */
#pragma once

#include <stdbool.h>

#include "tallyman/api/meta.h"

struct known;
struct known_entry;

struct known_item {
    struct str namespace_name; /* borrowed from the entry; absent for a cluster-wide object */
    struct str name;
    struct str uid;
    struct str resource_version;
};

struct known *known_new(void);        /* owned; free with known_free() */
void known_free(struct known *known); /* NULL is fine */
uint64_t known_count(const struct known *known);
/* Begins a round: nothing has been seen in it yet. */
void known_start_round(struct known *known);

/* The entry of that namespace and name, or NULL. Borrowed until it is removed or put again. */
const struct known_entry *known_find(const struct known *known, const struct object_meta *meta);
struct known_item known_entry_item(const struct known_entry *entry);
/* Takes up or renews the entry of `meta` (copied) and counts it as seen in this round. */
void known_put(struct known *known, const struct object_meta *meta);
/* Only counts it as seen, if it is known. */
void known_touch(struct known *known, const struct object_meta *meta);
void known_remove(struct known *known, const struct object_meta *meta);
/* Takes out all that this round hasn't seen and hands it over, by namespace and name. The callback
 * must not touch the set. */
uint32_t known_take_unseen(struct known *known,
                           void (*on_item)(void *ctx, const struct known_item *item), void *ctx);
