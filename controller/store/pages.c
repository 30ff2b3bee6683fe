#include "tallyman/store/pages.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

/* Offsets of mdb.c's MDB_page, MDB_node, MDB_meta and MDB_db, which are part of the file format. */
enum {
    PAGE_HEADER_BYTES = 16,
    PAGE_NUMBER_AT = 0,
    PAGE_FLAGS_AT = 10,
    PAGE_LOWER_AT = 12,
    PAGE_UPPER_AT = 14,
    PAGE_OVERFLOW_COUNT_AT = 12,
    NODE_HEADER_BYTES = 8,
    META_MAGIC_AT = 0,
    META_VERSION_AT = 4,
    META_FREE_DB_AT = 24,
    META_MAIN_DB_AT = 72,
    META_LAST_PAGE_AT = 120,
    META_TXN_AT = 128,
    META_BYTES = 136,
    DB_BYTES = 48,
    DB_FLAGS_AT = 4,
    DB_DEPTH_AT = 6,
    DB_BRANCH_PAGES_AT = 8,
    DB_LEAF_PAGES_AT = 16,
    DB_OVERFLOW_PAGES_AT = 24,
    DB_ENTRIES_AT = 32,
    DB_ROOT_AT = 40,
};

enum page_flag { PAGE_BRANCH = 0x01, PAGE_LEAF = 0x02, PAGE_OVERFLOW = 0x04, PAGE_META = 0x08 };
enum node_flag { NODE_PLAIN = 0x00, NODE_BIG = 0x01, NODE_DATABASE = 0x02 };
enum tree_role { ROLE_FREE_LIST = 1, ROLE_DATABASES, ROLE_RECORDS };

#define META_MAGIC       0xBEEFC0DEu
#define META_VERSION     1u
#define META_PAGES       2u
#define PAGE_BYTES_MIN   256u
#define PAGE_BYTES_MAX   32768u
#define NO_ROOT          UINT64_MAX
#define FREE_LIST_FLAGS  0x08u /* MDB_INTEGERKEY */
#define LEAKED_PAGES_MIN 1024u
/* Pages at the end that were made and freed in one transaction are never written. */
#define UNWRITTEN_PAGES_MAX (1u << 20)

struct tree {
    enum tree_role role;
    struct str name;
    uint16_t flags;
    uint16_t depth;
    uint64_t branch_pages;
    uint64_t leaf_pages;
    uint64_t overflow_pages;
    uint64_t entries;
    uint64_t root;
};

struct node {
    uint64_t page;        /* branch: the child */
    uint64_t value_bytes; /* leaf */
    uint16_t flags;
    struct str key;
    const uint8_t *value; /* leaf; NODE_BIG: 8 bytes, the number of the first overflow page */
};

struct walk {
    const uint8_t *bytes;
    uint64_t page_bytes;
    uint64_t pages_made; /* that may be free: up to the last page */
    uint64_t page_count; /* that may be used: those of them that lie within the file */
    uint64_t txn;
    uint64_t claimed; /* pages that are used or free */
    uint8_t *seen;    /* one bit per page */
    const struct pages_visitor *visitor;
    struct err *err;
};

/* Keys of a subtree are >= `low` and < `high`; an absent bound is none. */
struct bounds {
    struct str low;
    struct str high;
};

struct found {
    uint64_t branch_pages;
    uint64_t leaf_pages;
    uint64_t overflow_pages;
    uint64_t entries;
};

static uint16_t read_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t read_u32(const uint8_t *at)
{
    return (uint32_t)read_u16(at) | (uint32_t)read_u16(at + 2) << 16;
}

static uint64_t read_u64(const uint8_t *at)
{
    return (uint64_t)read_u32(at) | (uint64_t)read_u32(at + 4) << 32;
}

static struct rc page_is_wrong(struct walk *walk, uint64_t page, const char *what)
{
    return err_set(walk->err, RC_CORRUPT, "page %llu: %s", (unsigned long long)page, what);
}

static const uint8_t *page_at(const struct walk *walk, uint64_t page)
{
    return walk->bytes + page * walk->page_bytes;
}

/* Marks pages, all below `limit`, as spoken for. */
static struct rc claim_pages(struct walk *walk, uint64_t first, uint64_t count, uint64_t limit)
{
    if (first < META_PAGES || first >= limit || count > limit - first) {
        return page_is_wrong(walk, first, "it lies outside of the file");
    }
    for (uint64_t page = first; page < first + count; page++) {
        uint8_t bit = (uint8_t)(1u << (page % 8));

        if ((walk->seen[page / 8] & bit) != 0) {
            return page_is_wrong(walk, page, "it is used twice, or used and free");
        }
        walk->seen[page / 8] |= bit;
    }
    walk->claimed += count;
    return RC_SUCCESS;
}

static int key_compare(const struct tree *tree, struct str a, struct str b)
{
    if (tree->role != ROLE_FREE_LIST) {
        return str_compare(a, b);
    }
    uint64_t x = read_u64((const uint8_t *)a.ptr);
    uint64_t y = read_u64((const uint8_t *)b.ptr);

    return (x > y) - (x < y);
}

/* The free list is keyed by transaction. */
static bool key_has_right_size(const struct tree *tree, struct str key)
{
    return tree->role == ROLE_FREE_LIST ? key.len == 8 : key.len > 0;
}

static struct rc node_read(struct walk *walk, uint64_t page, bool is_leaf, uint32_t index,
                           struct node *ret_node)
{
    const uint8_t *start = page_at(walk, page);
    uint64_t at = read_u16(start + PAGE_HEADER_BYTES + 2 * (size_t)index);
    struct node node = {0};

    if (at < read_u16(start + PAGE_UPPER_AT) || at + NODE_HEADER_BYTES > walk->page_bytes) {
        return page_is_wrong(walk, page, "an entry lies outside of it");
    }
    const uint8_t *header = start + at;
    uint64_t size = read_u32(header);
    uint16_t key_bytes = read_u16(header + 6);

    node.flags = read_u16(header + 4);
    node.key = (struct str){(const char *)header + NODE_HEADER_BYTES, key_bytes};
    if (!is_leaf) {
        node.page = size | (uint64_t)node.flags << 32;
        size = 0;
    }
    uint64_t inline_bytes = is_leaf && (node.flags & NODE_BIG) != 0 ? 8 : size;

    if (at + NODE_HEADER_BYTES + key_bytes + inline_bytes > walk->page_bytes) {
        return page_is_wrong(walk, page, "an entry is longer than the page");
    }
    node.value = header + NODE_HEADER_BYTES + key_bytes;
    node.value_bytes = size;
    *ret_node = node;
    return RC_SUCCESS;
}

/* The value's bytes, inline or on overflow pages of its own. */
static struct rc node_value(struct walk *walk, const struct node *node, struct found *found,
                            struct str *ret_value)
{
    if ((node->flags & NODE_BIG) == 0) {
        *ret_value = (struct str){(const char *)node->value, node->value_bytes};
        return RC_SUCCESS;
    }
    uint64_t page = read_u64(node->value);
    uint64_t count = (PAGE_HEADER_BYTES - 1 + node->value_bytes) / walk->page_bytes + 1;

    TRY(claim_pages(walk, page, count, walk->page_count));
    const uint8_t *start = page_at(walk, page);

    if (read_u16(start + PAGE_FLAGS_AT) != PAGE_OVERFLOW ||
        read_u64(start + PAGE_NUMBER_AT) != page ||
        read_u32(start + PAGE_OVERFLOW_COUNT_AT) != count) {
        return page_is_wrong(walk, page, "it isn't the overflow page that an entry says it is");
    }
    found->overflow_pages += count;
    *ret_value = (struct str){(const char *)start + PAGE_HEADER_BYTES, node->value_bytes};
    return RC_SUCCESS;
}

/* One transaction's freed pages: their number, then the numbers of the pages, descending. */
static struct rc check_free_pages(struct walk *walk, uint64_t page, struct str key,
                                  struct str value)
{
    const uint8_t *list = (const uint8_t *)value.ptr;
    uint64_t room = value.len / 8;
    uint64_t txn = read_u64((const uint8_t *)key.ptr);

    if (txn == 0 || txn > walk->txn) {
        return page_is_wrong(walk, page, "it frees pages for a transaction that never was");
    }
    if (room == 0 || value.len % 8 != 0 || read_u64(list) > room - 1) {
        return page_is_wrong(walk, page, "its list of free pages is longer than its entry");
    }
    uint64_t count = read_u64(list);

    for (uint64_t i = 1; i <= count; i++) {
        uint64_t freed = read_u64(list + i * 8);

        if (i > 1 && freed >= read_u64(list + (i - 1) * 8)) {
            return page_is_wrong(walk, page, "its list of free pages is out of order");
        }
        TRY(claim_pages(walk, freed, 1, walk->pages_made));
    }
    return RC_SUCCESS;
}

static struct tree tree_read(const uint8_t *at, enum tree_role role, struct str name)
{
    return (struct tree){
        .role = role,
        .name = name,
        .flags = read_u16(at + DB_FLAGS_AT),
        .depth = read_u16(at + DB_DEPTH_AT),
        .branch_pages = read_u64(at + DB_BRANCH_PAGES_AT),
        .leaf_pages = read_u64(at + DB_LEAF_PAGES_AT),
        .overflow_pages = read_u64(at + DB_OVERFLOW_PAGES_AT),
        .entries = read_u64(at + DB_ENTRIES_AT),
        .root = read_u64(at + DB_ROOT_AT),
    };
}

static struct rc walk_tree(struct walk *walk, const struct tree *tree);

static struct rc walk_entry(struct walk *walk, const struct tree *tree, uint64_t page,
                            const struct node *node, struct found *found)
{
    bool is_database = tree->role == ROLE_DATABASES;
    struct str value = STR_NONE;

    if (is_database ? node->flags != NODE_DATABASE : (node->flags & ~NODE_BIG) != 0) {
        return page_is_wrong(walk, page,
                             is_database ? "an entry isn't a named database, as all of a store are"
                                         : "an entry has flags that a store never sets");
    }
    TRY(node_value(walk, node, found, &value));
    found->entries++;
    if (tree->role == ROLE_FREE_LIST) {
        return check_free_pages(walk, page, node->key, value);
    }
    if (tree->role == ROLE_RECORDS) {
        return walk->visitor->record(walk->visitor->ctx, tree->name, node->key, value, walk->err);
    }
    if (value.len != DB_BYTES) {
        return page_is_wrong(walk, page, "the entry of a database has the wrong length");
    }
    struct tree named = tree_read((const uint8_t *)value.ptr, ROLE_RECORDS, node->key);

    return walk_tree(walk, &named);
}

static struct rc page_open(struct walk *walk, uint64_t page, bool is_leaf, uint32_t *ret_count)
{
    TRY(claim_pages(walk, page, 1, walk->page_count));
    const uint8_t *start = page_at(walk, page);
    uint64_t lower = read_u16(start + PAGE_LOWER_AT);
    uint64_t upper = read_u16(start + PAGE_UPPER_AT);

    if (read_u64(start + PAGE_NUMBER_AT) != page) {
        return page_is_wrong(walk, page, "it says that it is another one");
    }
    if (read_u16(start + PAGE_FLAGS_AT) != (is_leaf ? PAGE_LEAF : PAGE_BRANCH)) {
        return page_is_wrong(walk, page, "it isn't of the kind that its level wants");
    }
    if (lower < PAGE_HEADER_BYTES || lower % 2 != 0 || lower > upper || upper > walk->page_bytes) {
        return page_is_wrong(walk, page, "its bounds are wrong");
    }
    *ret_count = (uint32_t)((lower - PAGE_HEADER_BYTES) / 2);
    if (*ret_count == 0) {
        return page_is_wrong(walk, page, "it is empty");
    }
    return RC_SUCCESS;
}

/* The key has its right size, comes after `previous` and lies within the bounds. */
static struct rc check_key(struct walk *walk, const struct tree *tree, uint64_t page,
                           struct str key, struct str previous, const struct bounds *bounds)
{
    if (!key_has_right_size(tree, key)) {
        return page_is_wrong(walk, page, "a key has a wrong length");
    }
    if ((previous.ptr != NULL && key_compare(tree, previous, key) >= 0) ||
        (bounds->low.ptr != NULL && key_compare(tree, bounds->low, key) > 0) ||
        (bounds->high.ptr != NULL && key_compare(tree, key, bounds->high) >= 0)) {
        return page_is_wrong(walk, page, "its keys are out of order");
    }
    return RC_SUCCESS;
}

static struct rc walk_leaf(struct walk *walk, const struct tree *tree, uint64_t page,
                           const struct bounds *bounds, struct found *found)
{
    struct str previous = STR_NONE;
    uint32_t count = 0;

    TRY(page_open(walk, page, true, &count));
    found->leaf_pages++;
    for (uint32_t i = 0; i < count; i++) {
        struct node node = {0};

        TRY(node_read(walk, page, true, i, &node));
        TRY(check_key(walk, tree, page, node.key, previous, bounds));
        TRY(walk_entry(walk, tree, page, &node, found));
        previous = node.key;
    }
    return RC_SUCCESS;
}

/* Recursion is bounded by the tree's depth, which walk_tree() has bounded. */
static struct rc walk_page(struct walk *walk, const struct tree *tree, uint32_t level,
                           uint64_t page, const struct bounds *bounds, struct found *found)
{
    struct node node = {0};
    uint32_t count = 0;

    if (level == 1) {
        return walk_leaf(walk, tree, page, bounds, found);
    }
    TRY(page_open(walk, page, false, &count));
    found->branch_pages++;
    TRY(node_read(walk, page, false, 0, &node));
    struct str low = bounds->low;

    for (uint32_t i = 0; i < count; i++) {
        struct node next = {0};
        bool has_next = i + 1 < count;

        if (has_next) {
            TRY(node_read(walk, page, false, i + 1, &next));
            TRY(check_key(walk, tree, page, next.key, i == 0 ? STR_NONE : low, bounds));
        }
        struct bounds inner = {low, has_next ? next.key : bounds->high};

        TRY(walk_page(walk, tree, level - 1, node.page, &inner, found));
        node = next;
        low = next.key;
    }
    return RC_SUCCESS;
}

static struct rc walk_tree(struct walk *walk, const struct tree *tree)
{
    const struct bounds all = {STR_NONE, STR_NONE};
    struct found found = {0};

    if (tree->flags != (tree->role == ROLE_FREE_LIST ? FREE_LIST_FLAGS : 0)) {
        return err_set(walk->err, RC_CORRUPT, "database \"" STR_FMT "\" has flags 0x%x",
                       STR_ARG(tree->name), tree->flags);
    }
    if (tree->depth > STORE_TREE_DEPTH_MAX || (tree->depth == 0) != (tree->root == NO_ROOT)) {
        return err_set(walk->err, RC_CORRUPT, "database \"" STR_FMT "\" has depth %u",
                       STR_ARG(tree->name), tree->depth);
    }
    if (tree->depth > 0) {
        TRY(walk_page(walk, tree, tree->depth, tree->root, &all, &found));
    }
    if (found.entries != tree->entries || found.branch_pages != tree->branch_pages ||
        found.leaf_pages != tree->leaf_pages || found.overflow_pages != tree->overflow_pages) {
        return err_set(walk->err, RC_CORRUPT,
                       "database \"" STR_FMT "\" counts %llu entries, %llu were found",
                       STR_ARG(tree->name), (unsigned long long)tree->entries,
                       (unsigned long long)found.entries);
    }
    return RC_SUCCESS;
}

static bool meta_is_sound(const uint8_t *page)
{
    const uint8_t *meta = page + PAGE_HEADER_BYTES;

    return (read_u16(page + PAGE_FLAGS_AT) & PAGE_META) != 0 &&
           read_u32(meta + META_MAGIC_AT) == META_MAGIC &&
           read_u32(meta + META_VERSION_AT) == META_VERSION;
}

/* The meta page of the last transaction, as LMDB chooses it. */
static struct rc meta_find(const uint8_t *bytes, size_t count, struct err *err,
                           const uint8_t **ret_meta, uint32_t *ret_page_bytes)
{
    if (count < PAGE_HEADER_BYTES + META_BYTES || !meta_is_sound(bytes)) {
        return err_set(err, RC_CORRUPT, "it doesn't begin as an LMDB file does");
    }
    /* The page size stands in the free list's spare field. */
    uint32_t page_bytes = read_u32(bytes + PAGE_HEADER_BYTES + META_FREE_DB_AT);

    if (page_bytes < PAGE_BYTES_MIN || page_bytes > PAGE_BYTES_MAX ||
        (page_bytes & (page_bytes - 1)) != 0) {
        return err_set(err, RC_CORRUPT, "its page size is %u bytes", page_bytes);
    }
    if (count < (size_t)page_bytes * META_PAGES || !meta_is_sound(bytes + page_bytes) ||
        read_u32(bytes + page_bytes + PAGE_HEADER_BYTES + META_FREE_DB_AT) != page_bytes) {
        return err_set(err, RC_CORRUPT, "its second meta page isn't one");
    }
    const uint8_t *first = bytes + PAGE_HEADER_BYTES;
    const uint8_t *second = first + page_bytes;

    *ret_meta = read_u64(first + META_TXN_AT) < read_u64(second + META_TXN_AT) ? second : first;
    *ret_page_bytes = page_bytes;
    return RC_SUCCESS;
}

static struct rc walk_file(struct walk *walk, const uint8_t *meta)
{
    struct tree free_list = tree_read(meta + META_FREE_DB_AT, ROLE_FREE_LIST, STR("free list"));
    struct tree databases = tree_read(meta + META_MAIN_DB_AT, ROLE_DATABASES, STR("databases"));

    TRY(walk_tree(walk, &free_list));
    TRY(walk_tree(walk, &databases));
    /* A wrong last page shows as a great many pages that are neither used nor free. */
    if (walk->pages_made - META_PAGES - walk->claimed > walk->claimed + LEAKED_PAGES_MIN) {
        return err_set(walk->err, RC_CORRUPT, "%llu pages were made, %llu are used or free",
                       (unsigned long long)walk->pages_made, (unsigned long long)walk->claimed);
    }
    return RC_SUCCESS;
}

struct rc pages_check(const uint8_t *bytes, size_t count, const struct pages_visitor *visitor,
                      struct err *err)
{
    const uint8_t *meta = NULL;
    uint32_t page_bytes = 0;

    TRY(meta_find(bytes, count, err, &meta, &page_bytes));
    assert(meta != NULL && page_bytes > 0);
    uint64_t last_page = read_u64(meta + META_LAST_PAGE_AT);
    uint64_t file_pages = count / page_bytes;

    if (last_page < META_PAGES - 1 || last_page >= file_pages + UNWRITTEN_PAGES_MAX) {
        return err_set(err, RC_CORRUPT, "its last page is %llu", (unsigned long long)last_page);
    }
    /* Nothing is wrong with a file because memory is short. */
    uint8_t *seen = mem_try_zalloc(last_page / 8 + 1);

    if (seen == NULL) {
        return err_set(err, RC_IO, "there isn't enough memory to check it");
    }
    uint64_t page_count = last_page + 1 < file_pages ? last_page + 1 : file_pages;
    struct walk walk = {
        .bytes = bytes,
        .page_bytes = page_bytes,
        .pages_made = last_page + 1,
        .page_count = page_count,
        .txn = read_u64(meta + META_TXN_AT),
        .seen = seen,
        .visitor = visitor,
        .err = err,
    };
    struct rc rc = walk_file(&walk, meta);

    mem_free(seen);
    return rc;
}
