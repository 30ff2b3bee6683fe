#include "store_internal.h"
#include "store_state.h"

#include <string.h>

#include "tallyman/base/limits.h"

struct range {
    enum store_db db;
    struct str from; /* the first key; empty: from the start */
    int64_t to_ms;   /* ledger: read up to here */
    store_gang_fn visit_gang;
    store_record_fn visit_record;
    void *ctx;
};

/* False: the visitor has had enough, or the range ends here. */
static bool visit(const struct range *range, struct str key, const struct store_record *record)
{
    if (range->db == STORE_DB_GANGS) {
        return range->visit_gang(range->ctx, key, record->bytes);
    }
    if (range->db == STORE_DB_LEDGER && record->time_ms >= range->to_ms) {
        return false;
    }
    /* The number is the last part of either history's key. */
    return range->visit_record(range->ctx, store_number_read(key.ptr + key.len - 8), record);
}

static struct rc walk_range(MDB_cursor *cursor, const struct range *range, struct err *err)
{
    union {
        const void *constant;
        void *plain;
    } from = {.constant = range->from.ptr};
    MDB_val key = {range->from.len, from.plain};
    MDB_val value = {0};
    bool goes_on = true;
    int error =
        mdb_cursor_get(cursor, &key, &value, range->from.len > 0 ? MDB_SET_RANGE : MDB_FIRST);

    while (error == 0 && goes_on) {
        struct str found = {key.mv_data, key.mv_size};
        struct store_record record;

        TRY(store_record_read(range->db, found, (struct str){value.mv_data, value.mv_size}, &record,
                              err));
        goes_on = visit(range, found, &record);
        if (goes_on) {
            error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
        }
    }
    if (error != 0 && error != MDB_NOTFOUND) {
        return err_set(err, RC_IO, "the store's %s can't be read: %s", store_db_name(range->db),
                       mdb_strerror(error));
    }
    return RC_SUCCESS;
}

static struct rc read_range(struct store *store, const struct range *range, struct err *err)
{
    struct store_txn txn;
    MDB_cursor *cursor = NULL;

    if (store->env.env == NULL) {
        return err_set(err, RC_IO, "the store's %s can't be read: " STR_FMT,
                       store_db_name(range->db), STR_ARG(store_health_sentence(store)));
    }
    store_txn_begin(&txn, store->env.env, true);
    if (txn.error == MDB_MAP_RESIZED && store->options.is_read_only) {
        /* The controller beside us has grown the file: take its new bound. */
        txn.error = mdb_env_set_mapsize(store->env.env, 0);
        if (txn.error == 0) {
            store_txn_begin(&txn, store->env.env, true);
        } else {
            store_env_close(&store->env); /* the old map is gone */
        }
    }
    if (txn.error == 0) {
        txn.error = mdb_cursor_open(txn.txn, store->env.dbis[range->db], &cursor);
    }
    if (txn.error != 0) {
        int error = txn.error;

        store_txn_abort(&txn);
        return err_set(err, RC_IO, "the store's %s can't be read: %s", store_db_name(range->db),
                       mdb_strerror(error));
    }
    struct rc rc = walk_range(cursor, range, err);

    mdb_cursor_close(cursor);
    store_txn_abort(&txn);
    return rc;
}

struct rc store_read_gangs(struct store *store, store_gang_fn visit_gang, void *ctx,
                           struct err *err)
{
    const struct range range = {.db = STORE_DB_GANGS, .visit_gang = visit_gang, .ctx = ctx};

    return read_range(store, &range, err);
}

struct rc store_read_ledger(struct store *store, int64_t from_ms, int64_t to_ms,
                            store_record_fn visit_record, void *ctx, struct err *err)
{
    uint8_t buffer[STORE_TIME_KEY_BYTES];
    const struct range range = {
        .db = STORE_DB_LEDGER,
        .from = store_time_key(from_ms < 0 ? 0 : from_ms, 0, buffer),
        .to_ms = to_ms,
        .visit_record = visit_record,
        .ctx = ctx,
    };

    return read_range(store, &range, err);
}

struct rc store_read_journal(struct store *store, uint64_t from_seq, store_record_fn visit_record,
                             void *ctx, struct err *err)
{
    uint8_t buffer[STORE_SEQ_KEY_BYTES];
    const struct range range = {
        .db = STORE_DB_JOURNAL,
        .from = store_seq_key(from_seq, buffer),
        .visit_record = visit_record,
        .ctx = ctx,
    };

    return read_range(store, &range, err);
}
