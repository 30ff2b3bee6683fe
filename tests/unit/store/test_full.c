/* Growing, pruning, and a disk or a limit that is full.
 *
 * A full disk is played by RLIMIT_FSIZE (writes beyond it fail with EFBIG, which the store treats
 * as ENOSPC), the size limit by a small map_max_bytes. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "fixture.h"

#define MIB ((size_t)1024 * 1024)

static void the_file_grows_as_it_is_filled(void **state)
{
    struct fixture *f = *state;

    f->options.map_first_bytes = MIB;
    f->options.map_max_bytes = 256 * MIB;
    f->options.journal_max_bytes = 200 * MIB;
    open_store(f);
    assert_int_equal(store_stats(f->store).map_bytes, MIB);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(commit_journal_bytes(f, i, MIB), RC_OK);
        assert_true(store_stats(f->store).used_bytes <= store_stats(f->store).map_bytes);
    }
    assert_int_equal(store_stats(f->store).map_bytes, 64 * MIB);
    assert_int_equal(journal_count(f), 40);
    reopen_store(f);
    check_str(store_open_sentence(f->store), "");
    assert_int_equal(store_stats(f->store).map_bytes, 64 * MIB);
    assert_int_equal(journal_count(f), 40);
    assert_int_equal(commit_journal_bytes(f, 41, 8 * MIB), RC_OK);
    assert_int_equal(f->health_calls, 0);
}

static void one_transaction_larger_than_the_file_fits(void **state)
{
    struct fixture *f = *state;

    f->options.map_first_bytes = 64 * 1024;
    open_store(f);
    assert_int_equal(commit_journal_bytes(f, 1, 8 * MIB), RC_OK);
    assert_int_equal(journal_count(f), 1);
    assert_int_equal(store_stats(f->store).shed_journal, 0);
}

static void the_journal_is_pruned_by_size_oldest_first(void **state)
{
    struct fixture *f = *state;
    char text[4096] = "";

    f->options.journal_max_bytes = 4 * MIB;
    open_store(f);
    for (int i = 1; i <= 100; i++) {
        assert_int_equal(commit_journal_bytes(f, i, 200 * 1024), RC_OK);
    }
    assert_in_range(journal_count(f), 18, 21);
    check_ok(f, store_read_journal(f->store, 100, append_record, text, &f->err));
    assert_string_equal(text, "100@100:jjjjjjjjjjjjjjjj");
    /* The room of the old ones was used again. */
    assert_true(store_stats(f->store).used_bytes < 8 * MIB);
    assert_int_equal(store_stats(f->store).lost_journal, 0);
}

static NORETURN bool hang(void *ctx, uint64_t seq, const struct store_record *record)
{
    (void)seq;
    (void)record;
    assert_int_equal(write(*(int *)ctx, "r", 1), 1);
    for (;;) {
        (void)pause();
    }
}

/* A `report` that was killed in the middle of a read doesn't hold old pages for ever. */
static void a_killed_reader_costs_no_room(void **state)
{
    struct fixture *f = *state;
    struct store_options options = {.dir = f->options.dir, .is_read_only = true};
    int fds[2];
    char byte;

    f->options.journal_max_bytes = 4 * MIB;
    open_store(f);
    assert_int_equal(commit_journal_bytes(f, 1, 1000), RC_OK);
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();

    if (child == 0) {
        struct store *reader = NULL;
        struct err err;

        if (rc_failed(store_open(NULL, &options, &reader, &err)) ||
            rc_failed(store_read_journal(reader, 0, hang, &fds[1], &err))) {
            _exit(1);
        }
    }
    assert_int_equal(read(fds[0], &byte, 1), 1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    (void)close(fds[0]);
    (void)close(fds[1]);
    for (int i = 2; i <= 100; i++) {
        assert_int_equal(commit_journal_bytes(f, i, 200 * 1024), RC_OK);
    }
    assert_true(store_stats(f->store).used_bytes < 8 * MIB);
}

static void histories_are_pruned_by_age(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = store_batch_new();
    char text[4096] = "";

    f->options.journal_keep_ms = 100;
    f->options.ledger_keep_ms = 1000;
    open_store(f);
    add_journal(f, batch, 1000, STR("old"));
    add_journal(f, batch, 1900, STR("just"));
    add_ledger(f, batch, 1000, STR("kept"));
    commit(f, batch);
    batch = store_batch_new();
    add_journal(f, batch, 2000, STR("new"));
    add_ledger(f, batch, 2000, STR("new"));
    commit(f, batch);
    run_until_answered(f, 2);
    expect_journal(f, 0, "2@1900:just 3@2000:new");
    check_ok(f, store_read_ledger(f->store, 0, 9999, append_record, text, &f->err));
    assert_string_equal(text, "1@1000:kept 2@2000:new");
    batch = store_batch_new();
    add_ledger(f, batch, 2001, STR("newer"));
    commit(f, batch);
    run_until_answered(f, 3);
    text[0] = '\0';
    check_ok(f, store_read_ledger(f->store, 0, 9999, append_record, text, &f->err));
    assert_string_equal(text, "2@2000:new 3@2001:newer");
}

static void a_pruned_journal_goes_on_counting(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = store_batch_new();

    f->options.journal_max_bytes = 1;
    open_store(f);
    add_journal(f, batch, 1, STR("gone at once"));
    commit(f, batch);
    run_until_answered(f, 1);
    expect_journal(f, 0, "");
    reopen_store(f);
    assert_int_equal(store_stats(f->store).journal_next_seq, 2);
}

static void at_the_size_limit_the_oldest_quarter_of_the_journal_goes(void **state)
{
    struct fixture *f = *state;

    f->options.map_first_bytes = MIB;
    f->options.map_max_bytes = 4 * MIB;
    f->options.journal_max_bytes = 100 * MIB;
    open_store(f);
    for (int i = 1; i <= 200; i++) {
        assert_int_equal(commit_journal_bytes(f, i, 100 * 1024), RC_OK);
    }
    assert_int_equal(store_stats(f->store).map_bytes, 4 * MIB);
    assert_in_range(journal_count(f), 20, 40);
    assert_int_equal(store_stats(f->store).shed_journal + journal_count(f), 200);
    assert_int_equal(f->health_calls, 0);
    reopen_store(f);
    check_str(store_open_sentence(f->store), "");
}

/* Fills the map with soft state, which nothing may give up. */
static void fill_with_gangs(struct fixture *f)
{
    static char value[50000];

    memset(value, 'g', sizeof(value));
    for (int i = 0; i < 100 && f->failed == 0; i++) {
        struct store_batch *batch = store_batch_new();
        char key[32];

        (void)snprintf(key, sizeof(key), "gang-%03d", i);
        check_ok(f, store_batch_put_gang(batch, str_from_c(key), (struct str){value, sizeof(value)},
                                         &f->err));
        commit(f, batch);
        run_until_answered(f, f->ok + f->failed + 1);
    }
}

static void nothing_left_to_give_up_is_said(void **state)
{
    struct fixture *f = *state;
    char sentence[512];

    f->options.map_first_bytes = MIB;
    f->options.map_max_bytes = MIB;
    open_store(f);
    fill_with_gangs(f);
    assert_int_equal(f->failed, 1);
    assert_int_equal(f->last_code, RC_IO);
    (void)snprintf(
        sentence, sizeof(sentence),
        "the store in %s can't be written: MDB_MAP_FULL: Environment mapsize limit reached; it has "
        "reached its size limit (map_max_bytes) and nothing is left to give up. Admission goes on; "
        "soft state and metering are kept in memory meanwhile, the decision journal isn't",
        f->dir);
    assert_string_equal(f->last_sentence, sentence);
    assert_int_equal(f->health_calls, 1);
    assert_true(f->is_degraded);
    assert_true(store_stats(f->store).is_degraded);
    check_str(store_health_sentence(f->store), sentence);
}

static rlim_t file_limit(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    rlim_t before = limit.rlim_cur;

    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    return before;
}

static void a_full_disk_degrades_and_recovers(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = store_batch_new();
    char text[4096] = "";
    size_t count;

    (void)signal(SIGXFSZ, SIG_IGN);
    open_store(f);
    add_journal(f, batch, 1, STR("before"));
    put_gang(f, batch, "a", "old");
    commit(f, batch);
    run_until_answered(f, 1);
    mem_free(read_file(f, "data.mdb", &count));
    rlim_t before = file_limit(count);

    assert_int_equal(commit_journal_bytes(f, 2, 4 * MIB), RC_IO);
    assert_true(f->is_degraded);
    assert_non_null(strstr(f->last_sentence, "File too large; look after the volume"));

    /* Meanwhile everything is answered at once and in order; soft state and ledger are kept. */
    batch = store_batch_new();
    put_gang(f, batch, "a", "new");
    put_gang(f, batch, "b", "new");
    add_ledger(f, batch, 3, STR("metered"));
    add_journal(f, batch, 3, STR("lost"));
    commit(f, batch);
    assert_int_equal(f->failed, 1); /* never inside of the commit */
    run_until_answered(f, 3);
    assert_int_equal(f->last_code, RC_IO);
    assert_int_equal(f->health_calls, 1);
    assert_int_equal(store_stats(f->store).failed_batches, 2);
    assert_int_equal(store_stats(f->store).lost_journal, 2);
    expect_gangs(f, "a=old");

    (void)file_limit(before);
    while (f->health_calls < 2) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_false(f->is_degraded);
    assert_false(store_stats(f->store).is_degraded);
    check_str(store_health_sentence(f->store), "");
    expect_gangs(f, "a=new b=new");
    check_ok(f, store_read_ledger(f->store, 0, 99, append_record, text, &f->err));
    assert_string_equal(text, "1@3:metered");
    /* 2 and 3 are the gap that a reader sees. */
    batch = store_batch_new();
    add_journal(f, batch, 4, STR("after"));
    put_gang(f, batch, "a", "newest");
    commit(f, batch);
    run_until_answered(f, 4);
    assert_int_equal(f->last_code, RC_OK);
    /* What was owed is written once: a later value stays. */
    commit(f, store_batch_new());
    run_until_answered(f, 5);
    expect_gangs(f, "a=newest b=new");
    reopen_store(f);
    check_str(store_open_sentence(f->store), "");
    assert_int_equal(store_stats(f->store).journal_next_seq, 5);
    text[0] = '\0';
    check_ok(f, store_read_journal(f->store, 2, append_record, text, &f->err));
    assert_string_equal(text, "4@4:after");
}

static void a_full_disk_costs_old_journal_before_it_costs_anything_else(void **state)
{
    struct fixture *f = *state;
    size_t count;

    (void)signal(SIGXFSZ, SIG_IGN);
    open_store(f);
    for (int i = 1; i <= 40; i++) {
        assert_int_equal(commit_journal_bytes(f, i, 100 * 1024), RC_OK);
    }
    mem_free(read_file(f, "data.mdb", &count));
    rlim_t before = file_limit(count);

    for (int i = 41; i <= 80; i++) {
        assert_int_equal(commit_journal_bytes(f, i, 100 * 1024), RC_OK);
    }
    (void)file_limit(before);
    assert_int_equal(f->health_calls, 0);
    assert_true(store_stats(f->store).shed_journal >= 10);
    assert_in_range(journal_count(f), 20, 40);
}

static void what_is_owed_is_written_by_closing(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = store_batch_new();
    size_t count;

    (void)signal(SIGXFSZ, SIG_IGN);
    open_store(f);
    mem_free(read_file(f, "data.mdb", &count));
    rlim_t before = file_limit(count);

    assert_int_equal(commit_journal_bytes(f, 2, 4 * MIB), RC_IO);
    put_gang(f, batch, "owed", "1");
    commit(f, batch);
    run_until_answered(f, 2);
    (void)file_limit(before);
    reopen_store(f);
    expect_gangs(f, "owed=1");
}

static void closing_a_store_that_cant_be_written_ends(void **state)
{
    struct fixture *f = *state;
    size_t count;
    struct store_batch *batch = store_batch_new();

    (void)signal(SIGXFSZ, SIG_IGN);
    open_store(f);
    mem_free(read_file(f, "data.mdb", &count));
    rlim_t before = file_limit(count);

    assert_int_equal(commit_journal_bytes(f, 2, 4 * MIB), RC_IO);
    for (int i = 0; i < 100; i++) {
        char key[16];
        static char value[50000];

        memset(value, 'v', sizeof(value));
        (void)snprintf(key, sizeof(key), "%d", i);
        check_ok(f, store_batch_put_gang(batch, str_from_c(key), (struct str){value, sizeof(value)},
                                         &f->err));
    }
    commit(f, batch);
    close_store(f);
    (void)file_limit(before);
    assert_int_equal(f->failed, 2);
}

static void what_is_owed_is_bounded(void **state)
{
    struct fixture *f = *state;
    static char value[1024 * 1024];
    size_t count;

    (void)signal(SIGXFSZ, SIG_IGN);
    open_store(f);
    mem_free(read_file(f, "data.mdb", &count));
    rlim_t before = file_limit(count);

    assert_int_equal(commit_journal_bytes(f, 2, 4 * MIB), RC_IO);
    for (int i = 0; i < 20; i++) {
        struct store_batch *batch = store_batch_new();

        add_ledger(f, batch, i, (struct str){value, sizeof(value)});
        commit(f, batch);
    }
    run_until_answered(f, 21);
    assert_int_equal(f->failed, 21);
    assert_int_equal(store_stats(f->store).lost_other, 5);
    close_store(f);
    (void)file_limit(before);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_file_grows_as_it_is_filled),
        T(one_transaction_larger_than_the_file_fits),
        T(the_journal_is_pruned_by_size_oldest_first),
        T(a_killed_reader_costs_no_room),
        T(histories_are_pruned_by_age),
        T(a_pruned_journal_goes_on_counting),
        T(at_the_size_limit_the_oldest_quarter_of_the_journal_goes),
        T(nothing_left_to_give_up_is_said),
        T(a_full_disk_degrades_and_recovers),
        T(a_full_disk_costs_old_journal_before_it_costs_anything_else),
        T(what_is_owed_is_written_by_closing),
        T(closing_a_store_that_cant_be_written_ends),
        T(what_is_owed_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
