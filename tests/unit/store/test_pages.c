/* The walk over the raw pages, held against what LMDB made and against every kind of damage. */
#define _GNU_SOURCE /* memmem */
#include <lmdb.h>

#include "fixture.h"
#include "tallyman/store/pages.h"

struct contents {
    uint64_t records;
    uint64_t sum; /* of hashes, over databases, keys and values */
};

static struct rc add_record(void *ctx, struct str db, struct str key, struct str value,
                            struct err *err)
{
    struct contents *contents = ctx;

    (void)err;
    contents->records++;
    contents->sum = str_hash(value, str_hash(key, str_hash(db, contents->sum)));
    return RC_SUCCESS;
}

static struct rc walk(const uint8_t *bytes, size_t count, struct contents *ret_contents,
                      struct err *err)
{
    struct contents contents = {0};
    const struct pages_visitor visitor = {add_record, &contents};
    struct rc rc = pages_check(bytes, count, &visitor, err);

    *ret_contents = contents;
    return rc;
}

/* Some thousand changes, so that there are branch pages, overflow pages and a long free list. */
static uint8_t *make_bytes(struct fixture *f, int rounds, size_t *ret_count)
{
    static char large[9000];

    open_store(f);
    for (int round = 0; round < rounds; round++) {
        struct store_batch *batch = store_batch_new();

        for (int i = 0; i < 40; i++) {
            char key[96];

            (void)snprintf(key, sizeof(key), "uid-%d-%060d", (round * 31 + i * 7) % 300, i);
            if ((round + i) % 5 == 0) {
                check_ok(f, store_batch_delete_gang(batch, str_from_c(key), &f->err));
            } else {
                put_gang(f, batch, key, "backoff=3 evictions=1");
            }
            add_journal(f, batch, round, str_from_c(key));
        }
        add_ledger(f, batch, round, (struct str){large, (size_t)(round * 997 % 9000)});
        commit(f, batch);
        run_until_answered(f, f->ok + f->failed + 1);
    }
    close_store(f);
    return read_file(f, "data.mdb", ret_count);
}

static void what_lmdb_made_is_whole_after_every_transaction(void **state)
{
    struct fixture *f = *state;
    uint64_t expected = 6; /* the identity, in database meta */

    f->options.journal_max_bytes = 100 * 1024;
    open_store(f);
    for (int round = 0; round < 300; round++) {
        struct store_batch *batch = store_batch_new();
        struct contents contents;
        size_t count;
        char text[3000];

        memset(text, 'x', sizeof(text));
        add_journal(f, batch, round, (struct str){text, (size_t)(round * 37 % 3000)});
        add_ledger(f, batch, round * 7919 % 1000, (struct str){text, (size_t)(round * 11 % 900)});
        put_gang(f, batch, round % 2 == 0 ? "even" : "odd", "x");
        commit(f, batch);
        run_until_answered(f, f->ok + f->failed + 1);
        uint8_t *bytes = read_file(f, "data.mdb", &count);

        check_ok(f, walk(bytes, count, &contents, &f->err));
        expected = 6 + journal_count(f) + (uint64_t)round + 1 + (round == 0 ? 1 : 2);
        assert_int_equal(contents.records, expected);
        mem_free(bytes);
    }
}

/* A flip that isn't found changes nothing: the records are all there and the same, or those of the
 * transaction before. (Values carry the store's checksum on top, which this visitor doesn't look
 * at: so a flip inside a key or a value shows as another sum, and is counted.) */
static void a_flip_is_found_or_harmless_or_inside_a_record(void **state)
{
    struct fixture *f = *state;
    struct contents original;
    struct contents contents;
    struct contents older = {0};
    struct err err;
    size_t count;
    uint32_t found = 0;
    uint32_t harmless = 0;
    uint32_t inside = 0;
    uint8_t *bytes = make_bytes(f, 12, &count);

    check_ok(f, walk(bytes, count, &original, &f->err));
    /* The older meta page, made the newest. */
    for (int meta = 0; meta < 2; meta++) {
        bytes[meta * 4096 + 16 + 128 + 7] ^= 0x40;
        check_ok(f, walk(bytes, count, &contents, &f->err));
        bytes[meta * 4096 + 16 + 128 + 7] ^= 0x40;
        if (contents.sum != original.sum) {
            older = contents;
        }
    }
    /* Every byte of each page's head, every 246th of the rest (16 steps to the next page). */
    for (size_t at = 0; at < count; at += at % 4096 < 160 ? 1 : 246) {
        uint8_t bit = (uint8_t)(1u << (at % 8));

        bytes[at] ^= bit;
        if (rc_failed(walk(bytes, count, &contents, &err))) {
            assert_true(err.text[0] != '\0');
            found++;
        } else if (contents.sum == original.sum || contents.sum == older.sum) {
            harmless++;
        } else {
            assert_int_equal(contents.records, original.records);
            inside++;
        }
        bytes[at] ^= bit;
    }
    assert_true(found > 500);
    assert_true(inside > 50);
    print_message("%u found, %u harmless, %u inside a record\n", found, harmless, inside);
    mem_free(bytes);
}

static void no_bytes_make_it_read_outside_or_run_for_ever(void **state)
{
    struct fixture *f = *state;
    struct contents contents;
    struct err err;
    size_t count;
    uint64_t random = 88172645463325252u;
    uint8_t *bytes = make_bytes(f, 12, &count);

    for (int round = 0; round < 400; round++) {
        /* A copy of exactly the size, so that a sanitizer sees one byte too far. */
        size_t length = round % 3 == 0 ? count : (size_t)round * 7919 % (count + 1);
        uint8_t *copy = mem_alloc(length);

        memcpy(copy, bytes, length);
        for (int i = 0; i < 1 + round % 40 && length > 0; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            copy[(random >> 16) % length] = (uint8_t)random;
        }
        (void)rc_failed(walk(copy, length, &contents, &err));
        mem_free(copy);
    }
    mem_free(bytes);
}

/* --- Single faults, each with its sentence
 * --------------------------------------------------------- */

static void put_u16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static uint64_t get_u64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

/* The newest meta page's own bytes. */
static uint8_t *newest_meta(uint8_t *bytes)
{
    uint8_t *first = bytes + 16;
    uint8_t *second = bytes + 4096 + 16;

    return get_u64(first + 128) < get_u64(second + 128) ? second : first;
}

static void expect_fault(struct fixture *f, const uint8_t *bytes, size_t count,
                         const char *sentence)
{
    struct contents contents;
    struct rc rc = walk(bytes, count, &contents, &f->err);

    if (rc.code != RC_CORRUPT || strstr(f->err.text, sentence) == NULL) {
        fail_msg("wanted \"%s\", got %s: %s", sentence, rc_name(rc), f->err.text);
    }
}

static void each_fault_has_its_sentence(void **state)
{
    struct fixture *f = *state;
    size_t count;
    uint8_t *good = make_bytes(f, 40, &count);
    uint8_t *bytes = mem_alloc(count);
    uint8_t *meta;
    uint64_t free_root;
    uint64_t main_root;

#define FAULT(change, sentence)                                                                    \
    do {                                                                                           \
        memcpy(bytes, good, count);                                                                \
        meta = newest_meta(bytes);                                                                 \
        free_root = get_u64(meta + 24 + 40);                                                       \
        main_root = get_u64(meta + 72 + 40);                                                       \
        change;                                                                                    \
        expect_fault(f, bytes, count, sentence);                                                   \
        (void)free_root;                                                                           \
        (void)main_root;                                                                           \
    } while (0)

    FAULT(bytes[16] ^= 1, "doesn't begin as an LMDB file does");
    FAULT(bytes[4096 + 20] = 2, "second meta page isn't one");
    FAULT(put_u16(bytes + 16 + 24, 4097), "its page size is 4097 bytes");
    FAULT(meta[124] = 1, "its last page is");
    FAULT(put_u16(meta + 122, 8), "pages were made");
    FAULT(put_u16(meta + 24 + 4, 0), "has flags 0x0");
    FAULT(put_u16(meta + 72 + 4, 4), "has flags 0x4");
    FAULT(put_u16(meta + 72 + 6, 33), "has depth 33");
    FAULT(put_u16(meta + 72 + 6, 0), "has depth 0");
    FAULT(put_u16(meta + 72 + 6, 2), "isn't of the kind that its level wants");
    FAULT(meta[72 + 32]++, "counts 5 entries, 4 were found");
    FAULT(memcpy(meta + 72 + 40, meta + 24 + 40, 8), "used twice, or used and free");
    FAULT(bytes[main_root * 4096]++, "says that it is another one");
    FAULT(put_u16(bytes + main_root * 4096 + 12, 17), "its bounds are wrong");
    FAULT(put_u16(bytes + main_root * 4096 + 12, 16), "it is empty");
    FAULT(put_u16(bytes + main_root * 4096 + 16, 4090), "an entry lies outside of it");
    FAULT(memcpy(bytes + main_root * 4096 + 18, bytes + main_root * 4096 + 16, 2),
          "its keys are out of order");
#undef FAULT
    mem_free(bytes);
    mem_free(good);
}

/* The first entry of the free list's first leaf page. */
static uint8_t *first_freed(uint8_t *bytes)
{
    uint8_t *meta = newest_meta(bytes);
    uint8_t *page = bytes + get_u64(meta + 24 + 40) * 4096;

    while ((page[10] & 1) != 0) { /* a branch page: its first child */
        const uint8_t *node = page + (page[16] | page[17] << 8);
        uint64_t child = (uint64_t)node[0] | (uint64_t)node[1] << 8 | (uint64_t)node[2] << 16;

        page = bytes + child * 4096;
    }
    return page + (page[16] | page[17] << 8) + 8;
}

static void a_free_page_that_is_used_is_found(void **state)
{
    struct fixture *f = *state;
    size_t count;
    uint8_t *bytes = make_bytes(f, 40, &count);
    uint8_t *freed = first_freed(bytes); /* transaction, count, pages */
    uint64_t main_root = get_u64(newest_meta(bytes) + 72 + 40);
    uint64_t pages = get_u64(freed + 8);

    assert_true(pages > 1);
    /* Twice the same, or in a wrong order. */
    uint8_t first[8];

    memcpy(first, freed + 16, 8);
    memcpy(freed + 16, freed + 24, 8);
    expect_fault(f, bytes, count, "its list of free pages is out of order");
    memcpy(freed + 16, first, 8);
    memcpy(freed + 8 + 8 * pages, &main_root, 8);
    expect_fault(f, bytes, count, "used and free");
    memset(freed + 8 + 4, 1, 1);
    expect_fault(f, bytes, count, "its list of free pages is longer than its entry");
    memset(freed + 4, 1, 1);
    expect_fault(f, bytes, count, "it frees pages for a transaction that never was");
    mem_free(bytes);
}

/* The second key of the journal's root, which is a branch page: the first key of its second child.
 */
static uint8_t *second_key_of_journal(uint8_t *bytes)
{
    uint8_t *main_leaf = bytes + get_u64(newest_meta(bytes) + 72 + 40) * 4096;
    uint8_t *name = memmem(main_leaf, 4096, "journal", 7);

    assert_non_null(name);
    uint8_t *root = bytes + get_u64(name + 7 + 40) * 4096;

    assert_int_equal(root[10], 1);
    return root + (root[18] | root[19] << 8) + 8;
}

static void a_key_on_the_wrong_side_of_a_branch_is_found(void **state)
{
    struct fixture *f = *state;
    size_t count;
    uint8_t *bytes = make_bytes(f, 40, &count);
    uint8_t *key = second_key_of_journal(bytes);

    key[7]++;
    expect_fault(f, bytes, count, "its keys are out of order");
    key[7] = (uint8_t)(key[7] - 2);
    expect_fault(f, bytes, count, "its keys are out of order");
    key[7]++;
    check_ok(f, walk(bytes, count, &(struct contents){0}, &f->err));
    mem_free(bytes);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_lmdb_made_is_whole_after_every_transaction),
        T(a_flip_is_found_or_harmless_or_inside_a_record),
        T(no_bytes_make_it_read_outside_or_run_for_ever),
        T(each_fault_has_its_sentence),
        T(a_free_page_that_is_used_is_found),
        T(a_key_on_the_wrong_side_of_a_branch_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
