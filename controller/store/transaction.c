#include "store_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "tallyman/base/limits.h"

/* LMDB hands pages that transaction n has freed to transaction n + 2. */
#define SETTLE_COMMITS       1
#define VOLUME_RESERVE_BYTES (1024u * 1024)

static MDB_val val_of(struct str s)
{
    /* LMDB doesn't write to keys and values; its interface only lacks the const. */
    union {
        const void *constant;
        void *plain;
    } ptr = {.constant = s.ptr};

    return (MDB_val){s.len, ptr.plain};
}

void store_txn_begin(struct store_txn *txn, MDB_env *env, bool is_read_only)
{
    *txn = (struct store_txn){0};
    txn->error = mdb_txn_begin(env, NULL, is_read_only ? MDB_RDONLY : 0, &txn->txn);
    if (txn->error != 0) {
        txn->txn = NULL;
    }
}

void store_txn_put(struct store_txn *txn, const MDB_dbi *dbis, enum store_db db, struct str key,
                   const struct store_record *record)
{
    MDB_val k = val_of(key);
    MDB_val v = {STORE_HEADER_BYTES + record->bytes.len, NULL};

    if (txn->error == 0) {
        txn->error = mdb_put(txn->txn, dbis[db], &k, &v, MDB_RESERVE);
    }
    if (txn->error == 0) {
        store_record_write(db, key, record, v.mv_data);
    }
}

void store_txn_put_number(struct store_txn *txn, const MDB_dbi *dbis, const char *name,
                          uint64_t number)
{
    uint8_t bytes[8];

    store_number_write(number, bytes);
    const struct store_record record = {.bytes = {(const char *)bytes, sizeof(bytes)}};

    store_txn_put(txn, dbis, STORE_DB_META, str_from_c(name), &record);
}

void store_txn_abort(struct store_txn *txn)
{
    if (txn->txn != NULL) {
        mdb_txn_abort(txn->txn);
        txn->txn = NULL;
    }
}

int store_txn_end(struct store_txn *txn)
{
    if (txn->error == 0) {
        txn->error = mdb_txn_commit(txn->txn);
        txn->txn = NULL; /* whatever came of it */
    }
    store_txn_abort(txn);
    return txn->error;
}

static void delete_key(struct store_txn *txn, const MDB_dbi *dbis, enum store_db db, struct str key)
{
    MDB_val k = val_of(key);

    if (txn->error == 0) {
        int error = mdb_del(txn->txn, dbis[db], &k, NULL);

        txn->error = error == MDB_NOTFOUND ? 0 : error;
    }
}

/* --- Histories -----------------------------------------------------------------------------------
 */

struct history {
    enum store_db db;
    size_t max_bytes;
    int64_t keep_ms;
    int64_t newest_ms; /* of what this transaction adds */
    uint64_t added;
};

static int64_t record_time(enum store_db db, MDB_val key, MDB_val value)
{
    struct store_record record;
    struct rc rc = store_record_read(db, (struct str){key.mv_data, key.mv_size},
                                     (struct str){value.mv_data, value.mv_size}, &record, NULL);

    /* One that doesn't say is the oldest of all. */
    return rc_failed(rc) ? 0 : record.time_ms;
}

static size_t history_bytes(struct store_txn *txn, MDB_dbi dbi)
{
    MDB_stat stat = {0};

    if (txn->error == 0) {
        txn->error = mdb_stat(txn->txn, dbi, &stat);
    }
    return (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages) * stat.ms_psize;
}

/* Deletes the oldest record if it is too old or the history too large. */
static bool prune_one(struct store_txn *txn, MDB_cursor *cursor, MDB_dbi dbi,
                      const struct history *history)
{
    MDB_val key = {0};
    MDB_val value = {0};
    int error = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);

    if (error != 0) {
        txn->error = error == MDB_NOTFOUND ? 0 : error;
        return false;
    }
    if (history_bytes(txn, dbi) <= history->max_bytes &&
        record_time(history->db, key, value) >= history->newest_ms - history->keep_ms) {
        return false;
    }
    if (txn->error == 0) {
        txn->error = mdb_cursor_del(cursor, 0);
    }
    return txn->error == 0;
}

static void prune(struct store_txn *txn, const MDB_dbi *dbis, const struct history *history)
{
    MDB_cursor *cursor = NULL;
    uint64_t left = 2 * history->added + STORE_PRUNE_RECORDS_MAX;

    if (txn->error != 0 || history->added == 0) {
        return;
    }
    txn->error = mdb_cursor_open(txn->txn, dbis[history->db], &cursor);
    if (txn->error != 0) {
        return;
    }
    while (left > 0 && prune_one(txn, cursor, dbis[history->db], history)) {
        left--;
    }
    mdb_cursor_close(cursor);
}

/* Deletes the oldest quarter of the journal; how many that were. */
static uint64_t shed_quarter(struct store_txn *txn, const MDB_dbi *dbis)
{
    MDB_cursor *cursor = NULL;
    MDB_stat stat = {0};
    uint64_t shed = 0;

    if (txn->error == 0) {
        txn->error = mdb_stat(txn->txn, dbis[STORE_DB_JOURNAL], &stat);
    }
    if (txn->error == 0) {
        txn->error = mdb_cursor_open(txn->txn, dbis[STORE_DB_JOURNAL], &cursor);
    }
    while (txn->error == 0 && shed < (stat.ms_entries + 3) / 4) {
        MDB_val key = {0};
        MDB_val value = {0};

        txn->error = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
        if (txn->error == 0) {
            txn->error = mdb_cursor_del(cursor, 0);
        }
        shed += txn->error == 0;
    }
    if (cursor != NULL) {
        mdb_cursor_close(cursor);
    }
    return shed;
}

/* Best effort: what follows fails for its own reason where this didn't help. */
static void shed_journal(struct store_job *job)
{
    struct store_txn txn;

    store_txn_begin(&txn, job->env, false);
    uint64_t shed = shed_quarter(&txn, job->dbis);

    if (store_txn_end(&txn) != 0) {
        return;
    }
    job->shed_records += shed;
    for (int i = 0; i < SETTLE_COMMITS; i++) {
        store_txn_begin(&txn, job->env, false);
        store_txn_put_number(&txn, job->dbis, "sheds", job->shed_records);
        (void)store_txn_end(&txn);
    }
}

/* --- One job -------------------------------------------------------------------------------------
 */

static void note_added(struct history *history, const struct store_op *op)
{
    history->added++;
    if (op->time_ms > history->newest_ms) {
        history->newest_ms = op->time_ms;
    }
}

static void write_op(struct store_txn *txn, const struct store_job *job,
                     const struct store_batch *batch, const struct store_op *op)
{
    uint8_t buffer[STORE_TIME_KEY_BYTES];
    const struct store_record record = {
        .time_ms = op->time_ms, .kind = op->kind, .bytes = store_op_value(batch, op)};
    struct str key = store_op_key(batch, op);

    if (op->db == STORE_DB_LEDGER) {
        key = store_time_key(op->time_ms, op->seq, buffer);
    } else if (op->db == STORE_DB_JOURNAL) {
        key = store_seq_key(op->seq, buffer);
    }
    if (op->is_delete) {
        delete_key(txn, job->dbis, op->db, key);
    } else {
        store_txn_put(txn, job->dbis, op->db, key, &record);
    }
}

static void write_batch(struct store_txn *txn, const struct store_job *job,
                        const struct store_batch *batch, struct history *ledger,
                        struct history *journal)
{
    for (uint32_t i = 0; i < batch->op_count && txn->error == 0; i++) {
        const struct store_op *op = &batch->ops[i];

        write_op(txn, job, batch, op);
        if (op->db == STORE_DB_LEDGER) {
            note_added(ledger, op);
        } else if (op->db == STORE_DB_JOURNAL) {
            note_added(journal, op);
        }
    }
}

static void write_job(struct store_txn *txn, struct store_job *job)
{
    struct history ledger = {STORE_DB_LEDGER, job->ledger_max_bytes, job->ledger_keep_ms, 0, 0};
    struct history journal = {STORE_DB_JOURNAL, job->journal_max_bytes, job->journal_keep_ms, 0, 0};
    MDB_stat stat = {0};

    if (job->owed != NULL) {
        write_batch(txn, job, job->owed, &ledger, &journal);
    }
    for (const struct store_batch *batch = job->batches.first; batch != NULL; batch = batch->next) {
        write_batch(txn, job, batch, &ledger, &journal);
    }
    if (ledger.added > 0) {
        store_txn_put_number(txn, job->dbis, "ledger-next", job->ledger_next_seq);
    }
    /* Without any batch this is the probe of a degraded store, which has to write something. */
    if (journal.added > 0 || job->batches.first == NULL) {
        store_txn_put_number(txn, job->dbis, "journal-next", job->journal_next_seq);
    }
    prune(txn, job->dbis, &ledger);
    prune(txn, job->dbis, &journal);
    if (txn->error == 0) {
        txn->error = mdb_stat(txn->txn, job->dbis[STORE_DB_GANGS], &stat);
    }
    job->gang_records = stat.ms_entries;
}

/* A volume that becomes full in the middle of a write gives a short write, which LMDB reports as
 * EIO. */
static bool is_volume_full(const struct store_job *job)
{
    const char *path = NULL;
    struct statvfs info;
    uint64_t wanted = job->batches.weight + VOLUME_RESERVE_BYTES;

    return mdb_env_get_path(job->env, &path) == 0 && statvfs(path, &info) == 0 &&
           (uint64_t)info.f_bavail * info.f_frsize < wanted;
}

void store_job_run(struct store_job *job)
{
    uint64_t started_ns = uv_hrtime();
    struct store_txn txn;
    MDB_envinfo info = {0};
    MDB_stat stat = {0};

    /* A reader that was killed would keep pages from being used again for ever. */
    (void)mdb_reader_check(job->env, NULL);
    if (job->sheds) {
        shed_journal(job);
    }
    store_txn_begin(&txn, job->env, false);
    if (txn.error == 0) {
        write_job(&txn, job);
    }
    job->error = store_txn_end(&txn);
    if (job->error == EIO && is_volume_full(job)) {
        job->error = ENOSPC;
    }
    (void)mdb_env_info(job->env, &info);
    (void)mdb_env_stat(job->env, &stat);
    job->used_bytes = (info.me_last_pgno + 1) * stat.ms_psize;
    job->wall_us = (uv_hrtime() - started_ns) / 1000;
}
