#include "tallyman/kube/known.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tallyman/base/map.h"

/* Text: namespace, '/', name, uid, resourceVersion, in one allocation. */
struct known_entry {
    UT_hash_handle hh;
    uint32_t round;
    uint16_t namespace_bytes;
    uint16_t name_bytes;
    uint16_t uid_bytes;
    uint16_t version_bytes;
    char text[];
};

struct known {
    struct known_entry *entries;
    uint32_t round;
};

/* A namespace has at most 63 bytes and a name 253; more than this isn't an API server's. */
#define KNOWN_KEY_MAX_BYTES 1024

struct known_key {
    char bytes[KNOWN_KEY_MAX_BYTES];
    size_t len;
};

static bool known_make_key(const struct object_meta *meta, struct known_key *ret_key)
{
    size_t len = meta->namespace_name.len + 1 + meta->name.len;
    if (len > KNOWN_KEY_MAX_BYTES || str_is_empty(meta->name)) {
        return false;
    }
    if (meta->namespace_name.len > 0) {
        memcpy(ret_key->bytes, meta->namespace_name.ptr, meta->namespace_name.len);
    }
    ret_key->bytes[meta->namespace_name.len] = '/';
    memcpy(ret_key->bytes + meta->namespace_name.len + 1, meta->name.ptr, meta->name.len);
    ret_key->len = len;
    return true;
}

struct known *known_new(void)
{
    return MEM_NEW(struct known);
}

void known_free(struct known *known)
{
    if (known == NULL) {
        return;
    }
    struct known_entry *entry = NULL;
    struct known_entry *next = NULL;
    HASH_ITER (hh, known->entries, entry, next) {
        HASH_DEL(known->entries, entry);
        mem_free(entry);
    }
    mem_free(known);
}

uint64_t known_count(const struct known *known)
{
    return HASH_COUNT(known->entries);
}

void known_start_round(struct known *known)
{
    known->round++;
}

static struct known_entry *known_lookup(const struct known *known, const struct object_meta *meta)
{
    struct known_key key;
    struct known_entry *entry = NULL;
    if (known_make_key(meta, &key)) {
        HASH_FIND(hh, known->entries, key.bytes, key.len, entry);
    }
    return entry;
}

const struct known_entry *known_find(const struct known *known, const struct object_meta *meta)
{
    return known_lookup(known, meta);
}

struct known_item known_entry_item(const struct known_entry *entry)
{
    const char *name = entry->text + entry->namespace_bytes + 1;
    const char *uid = name + entry->name_bytes;
    return (struct known_item){
        .namespace_name = entry->namespace_bytes == 0
                              ? STR_NONE
                              : (struct str){entry->text, entry->namespace_bytes},
        .name = {name, entry->name_bytes},
        .uid = {uid, entry->uid_bytes},
        .resource_version = {uid + entry->uid_bytes, entry->version_bytes},
    };
}

static bool known_has_room_for(const struct known_entry *entry, const struct object_meta *meta)
{
    return entry->uid_bytes == meta->uid.len && entry->version_bytes == meta->resource_version.len;
}

static void known_copy_tail(struct known_entry *entry, const struct object_meta *meta)
{
    char *uid = entry->text + entry->namespace_bytes + 1 + entry->name_bytes;
    if (meta->uid.len > 0) {
        memcpy(uid, meta->uid.ptr, meta->uid.len);
    }
    if (meta->resource_version.len > 0) {
        memcpy(uid + meta->uid.len, meta->resource_version.ptr, meta->resource_version.len);
    }
}

void known_put(struct known *known, const struct object_meta *meta)
{
    struct known_key key;
    if (!known_make_key(meta, &key) || meta->uid.len > KNOWN_KEY_MAX_BYTES ||
        meta->resource_version.len > KNOWN_KEY_MAX_BYTES) {
        return;
    }
    struct known_entry *entry = NULL;
    HASH_FIND(hh, known->entries, key.bytes, key.len, entry);
    if (entry != NULL && !known_has_room_for(entry, meta)) {
        HASH_DEL(known->entries, entry);
        mem_free(entry);
        entry = NULL;
    }
    if (entry == NULL) {
        size_t text_bytes = key.len + meta->uid.len + meta->resource_version.len;
        entry = mem_zalloc(sizeof(*entry) + text_bytes);
        entry->namespace_bytes = (uint16_t)meta->namespace_name.len;
        entry->name_bytes = (uint16_t)meta->name.len;
        entry->uid_bytes = (uint16_t)meta->uid.len;
        entry->version_bytes = (uint16_t)meta->resource_version.len;
        memcpy(entry->text, key.bytes, key.len);
        HASH_ADD(hh, known->entries, text, key.len, entry);
    }
    known_copy_tail(entry, meta);
    entry->round = known->round;
}

void known_touch(struct known *known, const struct object_meta *meta)
{
    struct known_entry *entry = known_lookup(known, meta);
    if (entry != NULL) {
        entry->round = known->round;
    }
}

void known_remove(struct known *known, const struct object_meta *meta)
{
    struct known_entry *entry = known_lookup(known, meta);
    if (entry != NULL) {
        HASH_DEL(known->entries, entry);
        mem_free(entry);
    }
}

static int known_compare(const void *a, const void *b)
{
    struct known_item left = known_entry_item(*(struct known_entry *const *)a);
    struct known_item right = known_entry_item(*(struct known_entry *const *)b);
    int order = str_compare(left.namespace_name, right.namespace_name);
    return order != 0 ? order : str_compare(left.name, right.name);
}

uint32_t known_take_unseen(struct known *known,
                           void (*on_item)(void *ctx, const struct known_item *item), void *ctx)
{
    struct known_entry **unseen = NULL;
    uint32_t count = 0;
    uint32_t capacity = 0;
    struct known_entry *entry = NULL;
    struct known_entry *next = NULL;
    HASH_ITER (hh, known->entries, entry, next) {
        if (entry->round != known->round) {
            HASH_DEL(known->entries, entry);
            unseen = mem_grow(unseen, count, &capacity, sizeof(struct known_entry *));
            unseen[count++] = entry;
        }
    }
    if (count > 1) {
        qsort(unseen, count, sizeof(struct known_entry *), known_compare);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct known_item item = known_entry_item(unseen[i]);
        on_item(ctx, &item);
        mem_free(unseen[i]);
    }
    mem_free(unseen);
    return count;
}
