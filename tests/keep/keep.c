/* keep.c - the real store in a run, and what becomes of its file. */
#include "keep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"
#include "support/property.h"
#include "tallyman/base/alloc.h"
#include "tallyman/store/store.h"

#define PATH_BYTES    512
#define RECORDS_MAX   20000
#define LINE_BYTES    160
#define FULL_BYTES    (64u * 1024)
#define JOURNAL_BYTES (32u * 1024)

const char *const fate_names[FATE_COUNT] = {"kept", "lost", "older", "torn", "short", "full"};

struct keep {
    enum fate fate;
    uint64_t random;
    uv_loop_t loop;
    struct store *store;       /* owned */
    struct store_batch *batch; /* owned */
    char dir[PATH_BYTES];
    char copy[PATH_BYTES + 32]; /* of the file, as it was some time ago */
    bool has_copy;
    bool is_answered;          /* the commit that was sent last */
    char (*lines)[LINE_BYTES]; /* owned; of the ledger, since the fate struck */
    uint32_t given, committed, copied;
    uint32_t deaths;
};

static void path_of(const struct keep *keep, const char *name, char path[PATH_BYTES + 32])
{
    (void)snprintf(path, PATH_BYTES + 32, "%s/%s", keep->dir, name);
}

static void open_store(struct keep *keep)
{
    struct store_options options = {.dir = str_from_c(keep->dir),
                                    .cluster_id = STR("a-cluster"),
                                    .now_ms = 1767225600000,
                                    .journal_max_bytes = JOURNAL_BYTES,
                                    .ledger_max_bytes = 4 * JOURNAL_BYTES};
    if (keep->fate == FATE_FULL && keep->deaths > 0) {
        options.map_first_bytes = options.map_max_bytes = FULL_BYTES;
    }
    struct err err;
    if (rc_failed(store_open(&keep->loop, &options, &keep->store, &err))) {
        fail_msg("the store of fate %s can't be opened: %s", fate_names[keep->fate], err.text);
    }
    keep->batch = store_batch_new();
}

struct keep *keep_new(enum fate fate, uint64_t seed)
{
    struct keep *keep = MEM_NEW(struct keep);
    const char *top = getenv("TMPDIR");
    keep->fate = fate;
    keep->random = seed * 2 + 1;
    keep->lines = mem_alloc(mem_array_bytes(RECORDS_MAX, LINE_BYTES));
    (void)snprintf(keep->dir, sizeof(keep->dir), "%s/keep-XXXXXX", top == NULL ? "/tmp" : top);
    assert_non_null(mkdtemp(keep->dir));
    assert_int_equal(uv_loop_init(&keep->loop), 0);
    path_of(keep, "older", keep->copy);
    open_store(keep);
    return keep;
}

/* -- files ----------------------------------------------------------------------------------------
 */

static void copy_file(const char *from, const char *to, bool is_half)
{
    int in = open(from, O_RDONLY);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(in >= 0 && out >= 0);
    struct stat facts;
    assert_int_equal(fstat(in, &facts), 0);
    off_t left = is_half ? facts.st_size / 2 : facts.st_size;
    char block[4096];
    while (left > 0) {
        ssize_t count = read(in, block, left < (off_t)sizeof(block) ? (size_t)left : sizeof(block));
        assert_true(count > 0 && write(out, block, (size_t)count) == count);
        left -= count;
    }
    close(in);
    close(out);
}

static void tear(struct keep *keep, const char *path)
{
    int file = open(path, O_RDWR);
    struct stat facts;
    assert_true(file >= 0 && fstat(file, &facts) == 0);
    for (int i = 0; i < 40; i++) {
        uint32_t word = random_next(&keep->random);
        off_t at = (off_t)(random_next(&keep->random) % (uint32_t)facts.st_size);
        assert_int_equal(pwrite(file, &word, sizeof(word), at), sizeof(word));
    }
    close(file);
}

static void remove_files(const struct keep *keep)
{
    DIR *dir = opendir(keep->dir);
    assert_non_null(dir);
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        char path[PATH_BYTES + 300];
        (void)snprintf(path, sizeof(path), "%s/%s", keep->dir, entry->d_name);
        if (entry->d_name[0] != '.') {
            (void)unlink(path);
        }
    }
    closedir(dir);
}

/* -- what is kept ---------------------------------------------------------------------------------
 */

void keep_persist(struct keep *keep, struct str gang_uid, struct str bytes)
{
    struct err err;
    assert_false(rc_failed(str_is_set(bytes)
                               ? store_batch_put_gang(keep->batch, gang_uid, bytes, &err)
                               : store_batch_delete_gang(keep->batch, gang_uid, &err)));
}

void keep_ledger(struct keep *keep, int64_t at_ms, struct str line)
{
    struct err err;
    struct store_record record = {.time_ms = at_ms, .kind = 1, .bytes = line};
    assert_false(rc_failed(store_batch_add_ledger(keep->batch, &record, &err)));
    assert_false(rc_failed(store_batch_add_journal(keep->batch, &record, &err)));
    assert_true(keep->given < RECORDS_MAX && line.len < LINE_BYTES);
    (void)snprintf(keep->lines[keep->given++], LINE_BYTES, STR_FMT, STR_ARG(line));
}

static void on_committed(void *ctx, struct rc rc, struct str sentence)
{
    struct keep *keep = ctx;
    keep->is_answered = true;
    if (rc_failed(rc) && (keep->fate != FATE_FULL || keep->deaths == 0)) {
        fail_msg("a batch wasn't committed: " STR_FMT, STR_ARG(sentence));
    }
}

void keep_flush(struct keep *keep)
{
    if (store_batch_count(keep->batch) == 0) {
        return;
    }
    struct err err;
    keep->is_answered = false;
    assert_false(rc_failed(store_commit(keep->store, keep->batch, on_committed, keep, &err)));
    keep->batch = store_batch_new();
    while (!keep->is_answered) {
        (void)uv_run(&keep->loop, UV_RUN_ONCE);
    }
    keep->committed = keep->given;
    if (keep->fate == FATE_OLDER && random_next(&keep->random) % 8 == 0) {
        char path[PATH_BYTES + 32];
        path_of(keep, "data.mdb", path);
        copy_file(path, keep->copy, false);
        keep->has_copy = true;
        keep->copied = keep->committed;
    }
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static void close_store(struct keep *keep)
{
    bool is_closed = false;
    store_batch_free(keep->batch);
    store_close(keep->store, on_closed, &is_closed);
    while (!is_closed) {
        (void)uv_run(&keep->loop, UV_RUN_ONCE);
    }
}

static void begin_anew(struct keep *keep)
{
    keep->given = keep->committed = keep->copied = 0;
    keep->has_copy = false;
}

static void meet_fate(struct keep *keep)
{
    char path[PATH_BYTES + 32];
    path_of(keep, "data.mdb", path);
    keep->given = keep->committed;
    switch (keep->fate) {
    case FATE_KEPT:
    case FATE_FULL:
    case FATE_COUNT:
        break;
    case FATE_LOST:
        remove_files(keep);
        begin_anew(keep);
        break;
    case FATE_OLDER:
        if (keep->has_copy) {
            copy_file(keep->copy, path, false);
            keep->given = keep->committed = keep->copied;
        }
        break;
    case FATE_TORN:
        tear(keep, path);
        break;
    case FATE_SHORT:
        path_of(keep, "half", keep->copy);
        copy_file(path, keep->copy, true);
        assert_int_equal(rename(keep->copy, path), 0);
        break;
    }
}

void keep_die(struct keep *keep)
{
    close_store(keep);
    meet_fate(keep);
    keep->deaths++;
    open_store(keep);
    if (store_stats(keep->store).was_set_aside || store_stats(keep->store).is_new) {
        begin_anew(keep); /* it said that it couldn't trust the file */
    }
}

/* -- what was kept --------------------------------------------------------------------------------
 */

struct reading {
    struct keep *keep;
    uint32_t seen;
    uint64_t last_seq;
};

static bool take_record(void *ctx, uint64_t seq, const struct store_record *record)
{
    struct reading *reading = ctx;
    struct keep *keep = reading->keep;
    assert_true(seq > reading->last_seq);
    reading->last_seq = seq;
    /* Where the disk was full some are missing; none comes twice, none out of order. */
    while (keep->fate == FATE_FULL && reading->seen < keep->committed &&
           !str_eq_c(record->bytes, keep->lines[reading->seen])) {
        reading->seen++;
    }
    if (reading->seen >= keep->committed || !str_eq_c(record->bytes, keep->lines[reading->seen])) {
        fail_msg("record %llu of the ledger isn't the one that was committed: " STR_FMT,
                 (unsigned long long)seq, STR_ARG(record->bytes));
    }
    reading->seen++;
    return true;
}

void keep_check(struct keep *keep)
{
    struct reading reading = {.keep = keep};
    struct err err;
    struct rc rc = store_read_ledger(keep->store, 0, INT64_MAX, take_record, &reading, &err);
    bool may_be_torn = keep->fate == FATE_TORN; /* in a page that isn't part of the tree any more */
    if (rc_failed(rc) && !may_be_torn) {
        fail_msg("the ledger can't be read: %s", err.text);
    }
    if (keep->fate != FATE_FULL && reading.seen != keep->committed) {
        fail_msg("the ledger of fate %s has %u records of %u", fate_names[keep->fate], reading.seen,
                 keep->committed);
    }
}

uint64_t keep_used_bytes(const struct keep *keep)
{
    return store_stats(keep->store).used_bytes;
}

uint64_t keep_gang_records(const struct keep *keep)
{
    return store_stats(keep->store).gang_records;
}

void keep_free(struct keep *keep)
{
    close_store(keep);
    remove_files(keep);
    assert_int_equal(rmdir(keep->dir), 0);
    assert_int_equal(uv_loop_close(&keep->loop), 0);
    mem_free(keep->lines);
    mem_free(keep);
}
