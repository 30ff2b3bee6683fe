/* A disk that fails: LMDB's own calls of pwrite() and fdatasync() come here first and fail on
 * demand. A failed meta page makes LMDB refuse its environment for good, so the store opens a new
 * one. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>

#include "fixture.h"

#define META_BYTES_END 8192 /* both meta pages */

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset);
int fdatasync(int fd);

static bool syncs_fail;
static bool meta_fails;

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
    if (meta_fails && offset < META_BYTES_END) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, bytes, count, offset);
}

int fdatasync(int fd)
{
    if (syncs_fail) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}

static void commit_gang(struct fixture *f, const char *value)
{
    struct store_batch *batch = store_batch_new();

    put_gang(f, batch, "a", value);
    add_ledger(f, batch, 10, str_from_c(value));
    add_journal(f, batch, 10, str_from_c(value));
    commit(f, batch);
    run_until_answered(f, f->ok + f->failed + 1);
}

static void expect_recovery(struct fixture *f)
{
    char text[4096] = "";

    while (f->is_degraded) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    commit_gang(f, "after");
    assert_int_equal(f->last_code, RC_OK);
    reopen_store(f);
    check_str(store_open_sentence(f->store), "");
    expect_gangs(f, "a=after");
    check_ok(f, store_read_ledger(f->store, 0, 99, append_record, text, &f->err));
    assert_string_equal(text, "1@10:before 2@10:during 3@10:after");
    text[0] = '\0';
    check_ok(f, store_read_journal(f->store, 0, append_record, text, &f->err));
    assert_int_equal(f->health_calls, 2);
}

static void a_failed_sync_degrades_and_recovers(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    commit_gang(f, "before");
    syncs_fail = true;
    commit_gang(f, "during");
    assert_int_equal(f->last_code, RC_IO);
    assert_non_null(strstr(f->last_sentence, "Input/output error; look after the volume"));
    assert_true(f->is_degraded);
    expect_gangs(f, "a=before");
    syncs_fail = false;
    expect_recovery(f);
}

static void a_failed_meta_page_is_survived(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    commit_gang(f, "before");
    meta_fails = true;
    commit_gang(f, "during");
    assert_int_equal(f->last_code, RC_IO);
    meta_fails = false;
    expect_recovery(f);
}

static void it_is_tried_again_less_and_less_often(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    commit_gang(f, "before");
    syncs_fail = true;
    commit_gang(f, "during");
    uint64_t started_ns = uv_hrtime();

    /* 1 s, then 2 s: well after the first try it is still degraded, and answers at once. */
    while (uv_hrtime() - started_ns < 1500000000) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        (void)usleep(1000);
    }
    assert_true(f->is_degraded);
    syncs_fail = false;
    while (uv_hrtime() - started_ns < 2500000000) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        (void)usleep(1000);
    }
    assert_true(f->is_degraded);
    assert_int_equal(f->health_calls, 1);
    expect_recovery(f);
    assert_true(uv_hrtime() - started_ns > 2900000000);
}

static void a_file_that_was_replaced_meanwhile_isnt_written(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    commit_gang(f, "before");
    syncs_fail = true;
    commit_gang(f, "during");
    syncs_fail = false;
    write_file(f, "data.mdb.new", "garbage garbage", 15);
    char from[512];
    char to[512];

    file_path(f, "data.mdb.new", from);
    file_path(f, "data.mdb", to);
    assert_int_equal(rename(from, to), 0);
    commit_gang(f, "during");
    uint64_t started_ns = uv_hrtime();

    while (uv_hrtime() - started_ns < 1500000000) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        (void)usleep(1000);
    }
    assert_true(f->is_degraded);
    assert_non_null(strstr(store_health_sentence(f->store).ptr, "data.mdb can't be opened: "));
    /* Nothing can be read either, and that is said. */
    struct rc rc = store_read_gangs(f->store, append_gang, NULL, &f->err);

    assert_int_equal(rc.code, RC_IO);
    commit_gang(f, "during");
    assert_int_equal(f->last_code, RC_IO);
}

static int setup(void **state)
{
    syncs_fail = meta_fails = false;
    return fixture_setup(state);
}

static int teardown(void **state)
{
    syncs_fail = meta_fails = false;
    return fixture_teardown(state);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_failed_sync_degrades_and_recovers),
        T(a_failed_meta_page_is_survived),
        T(it_is_tried_again_less_and_less_often),
        T(a_file_that_was_replaced_meanwhile_isnt_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
