/* Files that can't be trusted: each is set aside with a sentence, and a new one works. */
#define _GNU_SOURCE /* memmem */
#include <errno.h>
#include <lmdb.h>
#include <sys/wait.h>

#include "fixture.h"

/* A file with all four databases, several levels and overflow pages; the store is closed. */
static void make_file(struct fixture *f)
{
    static char large[20000];

    memset(large, 'o', sizeof(large));
    open_store(f);
    for (int round = 0; round < 8; round++) {
        struct store_batch *batch = store_batch_new();

        for (int i = 0; i < 60; i++) {
            char key[96];

            (void)snprintf(key, sizeof(key), "uid-%d-%d-%050d", round, i, i);
            put_gang(f, batch, key, "backoff");
            add_ledger(f, batch, round * 1000 + i, STR("transition of a gang"));
            add_journal(f, batch, round * 1000 + i, str_from_c(key));
        }
        add_journal(f, batch, round * 1000 + 999, (struct str){large, sizeof(large)});
        commit(f, batch);
        run_until_answered(f, f->ok + f->failed + 1);
    }
    assert_int_equal(f->failed, 0);
    close_store(f);
}

/* The next open sets the file aside, says `why`, and the new store works. */
static void expect_set_aside(struct fixture *f, const char *why, const char *name)
{
    struct store_batch *batch = store_batch_new();
    uint32_t answered = f->ok + f->failed;

    open_store(f);
    const char *sentence = store_open_sentence(f->store).ptr;

    if (!store_stats(f->store).was_set_aside || strstr(sentence, why) == NULL ||
        strstr(sentence, name) == NULL) {
        fail_msg("wanted \"%s\" and \"%s\" in: %s", why, name, sentence);
    }
    assert_true(store_stats(f->store).is_new);
    assert_true(file_is_there(f, name));
    expect_gangs(f, "");
    put_gang(f, batch, "after", "1");
    commit(f, batch);
    run_until_answered(f, answered + 1);
    assert_int_equal(f->last_code, RC_OK);
    reopen_store(f);
    check_str(store_open_sentence(f->store), "");
    expect_gangs(f, "after=1");
    close_store(f);
}

static void garbage_is_set_aside(void **state)
{
    struct fixture *f = *state;

    write_file(f, "data.mdb", "this is no database", 19);
    expect_set_aside(f, "doesn't begin as an LMDB file does", "data.mdb.bad-1");
}

static void a_file_of_zeros_is_set_aside(void **state)
{
    struct fixture *f = *state;
    static const char zeros[64 * 1024];

    write_file(f, "data.mdb", zeros, sizeof(zeros));
    expect_set_aside(f, "doesn't begin as an LMDB file does", "data.mdb.bad-1");
}

static void a_file_without_a_byte_is_a_new_one(void **state)
{
    struct fixture *f = *state;

    write_file(f, "data.mdb", "", 0);
    open_store(f);
    assert_true(store_stats(f->store).is_new);
    assert_false(store_stats(f->store).was_set_aside);
}

static void a_cut_file_is_set_aside(void **state)
{
    struct fixture *f = *state;
    size_t count;

    make_file(f);
    uint8_t *bytes = read_file(f, "data.mdb", &count);

    write_file(f, "data.mdb", bytes, count / 2);
    expect_set_aside(f, "lies outside of the file", "data.mdb.bad-1");
    write_file(f, "data.mdb", bytes, 4096);
    expect_set_aside(f, "second meta page", "data.mdb.bad-2");
    write_file(f, "data.mdb", bytes, 100);
    expect_set_aside(f, "doesn't begin", "data.mdb.bad-3");
    mem_free(bytes);
}

static void one_flipped_bit_of_a_record_is_enough(void **state)
{
    struct fixture *f = *state;
    size_t count;

    make_file(f);
    uint8_t *bytes = read_file(f, "data.mdb", &count);
    uint8_t *value = memmem(bytes, count, "ooooooooooooooooo", 16);

    assert_non_null(value);
    value[3] ^= 1;
    write_file(f, "data.mdb", bytes, count);
    expect_set_aside(f, "a record of database \"journal\" fails its checksum", "data.mdb.bad-1");
    mem_free(bytes);
}

/* Whatever bit it is, the store opens: with all records, an earlier state, or anew; and it works.
 */
static void any_flipped_bit_leaves_a_store_that_works(void **state)
{
    struct fixture *f = *state;
    size_t count;
    uint32_t set_aside = 0;
    uint64_t random = 88172645463325252u;

    make_file(f);
    uint8_t *bytes = read_file(f, "data.mdb", &count);

    for (int round = 0; round < 150; round++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        /* Half of them in the meta pages and the first few, where it hurts most. */
        size_t at = (random >> 8) % (round % 2 == 0 ? 4096 * 2 : count);
        struct store_batch *batch = store_batch_new();

        if (round % 4 == 0) {
            at = at % 4096 < 160 ? at : at / 4096 * 4096 + at % 160;
        }
        bytes[at] ^= (uint8_t)(1u << (random & 7));
        write_file(f, "data.mdb", bytes, count);
        bytes[at] ^= (uint8_t)(1u << (random & 7));
        open_store(f);
        set_aside += store_stats(f->store).was_set_aside;
        add_journal(f, batch, 1, STR("x"));
        put_gang(f, batch, "uid", "x");
        commit(f, batch);
        run_until_answered(f, f->ok + f->failed + 1);
        assert_int_equal(f->last_code, RC_OK);
        (void)journal_count(f);
        reopen_store(f);
        assert_false(store_stats(f->store).was_set_aside);
        close_store(f);
    }
    assert_in_range(set_aside, 20, 149);
    mem_free(bytes);
}

static void only_the_newest_bad_files_are_kept(void **state)
{
    struct fixture *f = *state;

    for (int i = 1; i <= 6; i++) {
        char name[32];

        write_file(f, "data.mdb", "garbage", 7);
        (void)snprintf(name, sizeof(name), "data.mdb.bad-%d", i);
        expect_set_aside(f, "renamed", name);
    }
    assert_false(file_is_there(f, "data.mdb.bad-3"));
    assert_true(file_is_there(f, "data.mdb.bad-4"));
    assert_true(file_is_there(f, "data.mdb.bad-6"));
}

static void a_file_of_another_cluster_is_foreign(void **state)
{
    struct fixture *f = *state;

    make_file(f);
    f->options.cluster_id = STR("another-uid");
    expect_set_aside(f,
                     "it belongs to another cluster (namespace kube-system has uid another-uid, "
                     "the file says " CLUSTER ")",
                     "data.mdb.bad-1");
}

/* Opens the file with LMDB alone and runs one change in it. */
static void change_file(struct fixture *f, void (*change)(MDB_txn *txn))
{
    MDB_env *env;
    MDB_txn *txn;

    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_set_maxdbs(env, 8), 0);
    assert_int_equal(mdb_env_open(env, f->dir, 0, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    change(txn);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static void put_raw(MDB_txn *txn, const char *db, const char *key_text, const void *bytes,
                    size_t count)
{
    char key_copy[64];
    char value_copy[64];
    MDB_dbi dbi;
    MDB_val key = {strlen(key_text), key_copy};
    MDB_val value = {count, value_copy};

    memcpy(key_copy, key_text, strlen(key_text));
    memcpy(value_copy, bytes, count);
    assert_int_equal(mdb_dbi_open(txn, db, MDB_CREATE, &dbi), 0);
    assert_int_equal(mdb_put(txn, dbi, &key, &value, 0), 0);
}

/* crc32 of "meta\0", the key's length, the key and what follows the checksum, as record.c makes it.
 */
static const unsigned char NEWER_SCHEMA[] = {
    0xdf, 0x89, 0x88, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
};

static void make_newer(MDB_txn *txn)
{
    put_raw(txn, "meta", "schema", NEWER_SCHEMA, sizeof(NEWER_SCHEMA));
    put_raw(txn, "a database of the future", "k", "v", 1);
}

static void make_another_programs(MDB_txn *txn)
{
    put_raw(txn, "their own", "k", "v", 1);
}

static void make_plain(MDB_txn *txn)
{
    put_raw(txn, NULL, "k", "v", 1);
}

static void a_newer_schema_is_foreign(void **state)
{
    struct fixture *f = *state;

    make_file(f);
    change_file(f, make_newer);
    expect_set_aside(f, "its schema is version 2, this Tallyman knows 1", "data.mdb.bad-1");
}

static void another_programs_file_is_foreign(void **state)
{
    struct fixture *f = *state;

    change_file(f, make_another_programs);
    expect_set_aside(f, "it isn't a store of Tallyman", "data.mdb.bad-1");
    change_file(f, make_plain);
    expect_set_aside(f, "isn't a named database", "data.mdb.bad-2");
}

static void a_store_whose_first_transaction_never_happened_is_new(void **state)
{
    struct fixture *f = *state;
    MDB_env *env;

    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_open(env, f->dir, 0, 0600), 0);
    mdb_env_close(env);
    open_store(f);
    assert_true(store_stats(f->store).is_new);
    assert_false(store_stats(f->store).was_set_aside);
}

/* --- Directories ---------------------------------------------------------------------------------
 */

static void expect_refused(struct fixture *f, enum rc_code code, const char *sentence)
{
    struct rc rc = store_open(&f->loop, &f->options, &f->store, &f->err);

    if (rc.code != code || strstr(f->err.text, sentence) == NULL) {
        fail_msg("%s: %s", rc_name(rc), f->err.text);
    }
    assert_null(f->store);
}

static void a_second_process_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store *second = NULL;
    struct err err;
    char sentence[256];

    open_store(f);
    struct rc rc = store_open(&f->loop, &f->options, &second, &err);

    assert_int_equal(rc.code, RC_CONFLICT);
    (void)snprintf(
        sentence, sizeof(sentence),
        "the store's directory %s is in use by another Tallyman (process %d): stop it, or "
        "use another directory",
        f->dir, (int)getpid());
    assert_string_equal(err.text, sentence);
    reopen_store(f);
}

static void an_absent_directory_is_made_for_us_alone(void **state)
{
    struct fixture *f = *state;
    char path[512];
    struct stat info;

    file_path(f, "state", path);
    f->options.dir = str_from_c(path);
    open_store(f);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    file_path(f, "state/data.mdb", path);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    close_store(f);
    file_path(f, "state", path);
    remove_dir(path);
}

static void a_directory_that_cant_be_used_is_said(void **state)
{
    struct fixture *f = *state;
    char path[512];
    static char endless[5000];

    file_path(f, "no/such/parent", path);
    f->options.dir = str_from_c(path);
    expect_refused(f, RC_IO, "can't be made: its parent directory doesn't exist");
    write_file(f, "file", "x", 1);
    file_path(f, "file", path);
    f->options.dir = str_from_c(path);
    expect_refused(f, RC_IO, "is not a directory");
    f->options.dir = STR("/proc/self");
    expect_refused(f, RC_IO, "the store's directory /proc/self can't be written: lock: ");
    f->options.dir = STR("");
    expect_refused(f, RC_IO, "has no name");
    memset(endless, 'a', sizeof(endless) - 1);
    f->options.dir = str_from_c(endless);
    expect_refused(f, RC_IO, "too long");
    f->options.dir = str_from_c(f->dir);
    file_path(f, "data.mdb", path);
    assert_int_equal(mkdir(path, 0700), 0);
    expect_refused(f, RC_IO, "isn't a regular file");
    assert_int_equal(rmdir(path), 0);
}

/* --- Read only -----------------------------------------------------------------------------------
 */

static void a_reader_beside_a_writer_sees_what_is_on_disk(void **state)
{
    struct fixture *f = *state;
    struct store_options options = {.dir = f->options.dir, .is_read_only = true};
    struct store_batch *batch = store_batch_new();
    int status = 0;

    open_store(f);
    add_journal(f, batch, 5, STR("seen"));
    commit(f, batch);
    run_until_answered(f, 1);
    /* In a process of its own: LMDB takes a file once per process. */
    pid_t child = fork();

    if (child == 0) {
        struct store *reader = NULL;
        char text[4096] = "";
        struct err err;
        bool is_right = !rc_failed(store_open(NULL, &options, &reader, &err)) &&
                        !rc_failed(store_read_journal(reader, 0, append_record, text, &err)) &&
                        strcmp(text, "1@5:seen") == 0;

        _exit(is_right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    batch = store_batch_new();
    add_journal(f, batch, 6, STR("goes on"));
    commit(f, batch);
    run_until_answered(f, 2);
    assert_int_equal(f->ok, 2);
}

static void a_reader_changes_nothing(void **state)
{
    struct fixture *f = *state;

    f->options.is_read_only = true;
    expect_refused(f, RC_NOT_FOUND, "there is no store in directory");
    assert_false(file_is_there(f, "data.mdb"));
    assert_false(file_is_there(f, "lock"));
    write_file(f, "data.mdb", "garbage", 7);
    expect_refused(f, RC_CORRUPT, "data.mdb can't be used: LMDB can't open it");
    assert_false(file_is_there(f, "data.mdb.bad-1"));
}

static void a_reader_has_no_loop(void **state)
{
    struct fixture *f = *state;

    make_file(f);
    f->options.is_read_only = true;
    f->options.cluster_id = STR_NONE;
    check_ok(f, store_open(NULL, &f->options, &f->store, &f->err));
    assert_int_equal(journal_count(f), 8 * 61);
    store_close(f->store, NULL, NULL);
    f->store = NULL;
    f->options.cluster_id = STR("other");
    expect_refused(f, RC_INVALID, "another cluster");
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(garbage_is_set_aside),
        T(a_file_of_zeros_is_set_aside),
        T(a_file_without_a_byte_is_a_new_one),
        T(a_cut_file_is_set_aside),
        T(one_flipped_bit_of_a_record_is_enough),
        T(any_flipped_bit_leaves_a_store_that_works),
        T(only_the_newest_bad_files_are_kept),
        T(a_file_of_another_cluster_is_foreign),
        T(a_newer_schema_is_foreign),
        T(another_programs_file_is_foreign),
        T(a_store_whose_first_transaction_never_happened_is_new),
        T(a_second_process_is_refused),
        T(an_absent_directory_is_made_for_us_alone),
        T(a_directory_that_cant_be_used_is_said),
        T(a_reader_beside_a_writer_sees_what_is_on_disk),
        T(a_reader_changes_nothing),
        T(a_reader_has_no_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
