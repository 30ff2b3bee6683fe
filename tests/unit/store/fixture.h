/* fixture.h - a directory of its own and a loop for each test of the store. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

#include "support/check.h"
#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/store/store.h"

#define CLUSTER "0e6c42d1-6a51-4b0c-9a51-3f1cf3a2f001"

struct fixture {
    uv_loop_t loop;
    char dir[64];
    struct store_options options;
    struct store *store;
    struct err err;
    uint32_t ok;     /* callbacks with RC_OK */
    uint32_t failed; /* callbacks with another code */
    enum rc_code last_code;
    char last_sentence[ERR_TEXT_MAX_BYTES];
    uint32_t health_calls;
    bool is_degraded;
    bool is_closed;
    bool is_mounted; /* the directory is a volume of its own */
};

static UNUSED void on_health(void *ctx, bool is_degraded, struct str sentence)
{
    struct fixture *f = ctx;

    f->health_calls++;
    f->is_degraded = is_degraded;
    assert_true(sentence.len > 0);
}

static UNUSED int fixture_setup(void **state)
{
    struct fixture *f = MEM_NEW(struct fixture);

    (void)snprintf(f->dir, sizeof(f->dir), "/tmp/tallyman-store-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(uv_loop_init(&f->loop), 0);
    f->options = (struct store_options){
        .dir = str_from_c(f->dir),
        .cluster_id = STR(CLUSTER),
        .now_ms = 1000,
        .on_health = on_health,
        .ctx = f,
    };
    *state = f;
    return 0;
}

static UNUSED void remove_dir(const char *dir)
{
    char path[512];
    DIR *list = opendir(dir);

    assert_non_null(list);
    for (struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(list);
    (void)rmdir(dir);
}

static UNUSED void on_closed(void *ctx)
{
    ((struct fixture *)ctx)->is_closed = true;
}

static UNUSED void close_store(struct fixture *f)
{
    if (f->store != NULL) {
        f->is_closed = false;
        store_close(f->store, on_closed, f);
        f->store = NULL;
        assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
        assert_true(f->is_closed);
    }
}

static UNUSED int fixture_teardown(void **state)
{
    struct fixture *f = *state;

    close_store(f);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    remove_dir(f->dir);
    mem_free(f);
    return 0;
}

static UNUSED void open_store(struct fixture *f)
{
    struct rc rc = store_open(&f->loop, &f->options, &f->store, &f->err);

    if (rc_failed(rc)) {
        fail_msg("store_open: %s: %s", rc_name(rc), f->err.text);
    }
}

static UNUSED void reopen_store(struct fixture *f)
{
    close_store(f);
    open_store(f);
}

static UNUSED void on_commit(void *ctx, struct rc rc, struct str sentence)
{
    struct fixture *f = ctx;

    f->ok += rc.code == RC_OK;
    f->failed += rc.code != RC_OK;
    f->last_code = rc.code;
    assert_true((rc.code == RC_OK) == (sentence.len == 0));
    (void)snprintf(f->last_sentence, sizeof(f->last_sentence), STR_FMT, STR_ARG(sentence));
}

/* Runs the loop until `count` commits have been answered since the fixture was made. */
static UNUSED void run_until_answered(struct fixture *f, uint32_t count)
{
    while (f->ok + f->failed < count) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
}

static UNUSED void check_ok(struct fixture *f, struct rc rc)
{
    if (rc_failed(rc)) {
        fail_msg("%s: %s", rc_name(rc), f->err.text);
    }
}

static UNUSED void put_gang(struct fixture *f, struct store_batch *batch, const char *key,
                            const char *value)
{
    check_ok(f, store_batch_put_gang(batch, str_from_c(key), str_from_c(value), &f->err));
}

static UNUSED void add_journal(struct fixture *f, struct store_batch *batch, int64_t time_ms,
                               struct str bytes)
{
    const struct store_record record = {.time_ms = time_ms, .kind = 7, .bytes = bytes};

    check_ok(f, store_batch_add_journal(batch, &record, &f->err));
}

static UNUSED void add_ledger(struct fixture *f, struct store_batch *batch, int64_t time_ms,
                              struct str bytes)
{
    const struct store_record record = {.time_ms = time_ms, .kind = 3, .bytes = bytes};

    check_ok(f, store_batch_add_ledger(batch, &record, &f->err));
}

static UNUSED void commit(struct fixture *f, struct store_batch *batch)
{
    check_ok(f, store_commit(f->store, batch, on_commit, f, &f->err));
}

/* Commits one record of `bytes` bytes to the journal and waits for the answer. */
static UNUSED enum rc_code commit_journal_bytes(struct fixture *f, int64_t time_ms, size_t bytes)
{
    struct store_batch *batch = store_batch_new();
    char *filler = mem_alloc(bytes);

    memset(filler, 'j', bytes);
    add_journal(f, batch, time_ms, (struct str){filler, bytes});
    mem_free(filler);
    commit(f, batch);
    run_until_answered(f, f->ok + f->failed + 1);
    return f->last_code;
}

/* "key=value key=value …" */
static UNUSED bool append_gang(void *ctx, struct str key, struct str value)
{
    char *text = ctx;
    size_t used = strlen(text);

    (void)snprintf(text + used, 4096 - used, "%s" STR_FMT "=" STR_FMT, used == 0 ? "" : " ",
                   STR_ARG(key), STR_ARG(value));
    return true;
}

static UNUSED void expect_gangs(struct fixture *f, const char *expected)
{
    char text[4096] = "";

    check_ok(f, store_read_gangs(f->store, append_gang, text, &f->err));
    assert_string_equal(text, expected);
}

/* "seq@time:bytes …" */
static UNUSED bool append_record(void *ctx, uint64_t seq, const struct store_record *record)
{
    char *text = ctx;
    size_t used = strlen(text);

    (void)snprintf(text + used, 4096 - used, "%s%llu@%lld:" STR_FMT, used == 0 ? "" : " ",
                   (unsigned long long)seq, (long long)record->time_ms,
                   STR_ARG(str_take(record->bytes, 16)));
    return true;
}

static UNUSED void expect_journal(struct fixture *f, uint64_t from, const char *expected)
{
    char text[4096] = "";

    check_ok(f, store_read_journal(f->store, from, append_record, text, &f->err));
    assert_string_equal(text, expected);
}

static UNUSED bool count_record(void *ctx, uint64_t seq, const struct store_record *record)
{
    (void)seq;
    (void)record;
    ++*(uint64_t *)ctx;
    return true;
}

static UNUSED uint64_t journal_count(struct fixture *f)
{
    uint64_t count = 0;

    check_ok(f, store_read_journal(f->store, 0, count_record, &count, &f->err));
    return count;
}

static UNUSED void file_path(const struct fixture *f, const char *name, char path[512])
{
    (void)snprintf(path, 512, "%s/%s", f->dir, name);
}

static UNUSED bool file_is_there(const struct fixture *f, const char *name)
{
    char path[512];

    file_path(f, name, path);
    return access(path, F_OK) == 0;
}

/* Owned by the caller. */
static UNUSED uint8_t *read_file(const struct fixture *f, const char *name, size_t *ret_bytes)
{
    char path[512];
    struct stat info;

    file_path(f, name, path);
    int fd = open(path, O_RDONLY);

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    uint8_t *bytes = mem_alloc((size_t)info.st_size);

    assert_int_equal(read(fd, bytes, (size_t)info.st_size), info.st_size);
    (void)close(fd);
    *ret_bytes = (size_t)info.st_size;
    return bytes;
}

static UNUSED void write_file(const struct fixture *f, const char *name, const void *bytes,
                              size_t count)
{
    char path[512];

    file_path(f, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), count);
    (void)close(fd);
}
