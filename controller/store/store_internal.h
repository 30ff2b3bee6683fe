/* store_internal.h - what the files of the store share; nobody else includes it.
 *
 * The loop's side (store.c, commit.c) owns queues, health and callbacks. The worker's side
 * (transaction.c) sees one `struct store_job` at a time and nothing else of the store. */
#pragma once

#include <lmdb.h>

#include "tallyman/store/store.h"

enum store_db { STORE_DB_META, STORE_DB_GANGS, STORE_DB_LEDGER, STORE_DB_JOURNAL, STORE_DB_COUNT };

/* --- record.c: a record is a checksum, a kind, a time and the caller's bytes -------------------
 */

#define STORE_HEADER_BYTES   16
#define STORE_SEQ_KEY_BYTES  8
#define STORE_TIME_KEY_BYTES 16

const char *store_db_name(enum store_db db); /* static */
/* STORE_DB_COUNT: none of ours. */
enum store_db store_db_find(struct str name);

/* `ret_value` has room for STORE_HEADER_BYTES + record->bytes.len. */
void store_record_write(enum store_db db, struct str key, const struct store_record *record,
                        uint8_t *ret_value);
/* RC_CORRUPT where the checksum or the shape of the key is wrong. The bytes are borrowed from
 * `value`. */
NODISCARD struct rc store_record_read(enum store_db db, struct str key, struct str value,
                                      struct store_record *ret_record, struct err *err);

void store_number_write(uint64_t number, uint8_t ret_bytes[8]); /* big endian: sorts as it counts */
uint64_t store_number_read(const char *bytes);
struct str store_seq_key(uint64_t seq, uint8_t buffer[STORE_SEQ_KEY_BYTES]);
struct str store_time_key(int64_t time_ms, uint64_t seq, uint8_t buffer[STORE_TIME_KEY_BYTES]);

/* --- batch.c -----------------------------------------------------------------------------------
 */

struct store_op {
    enum store_db db;
    bool is_delete;
    uint32_t kind;
    uint32_t key_bytes;
    uint32_t value_bytes;
    size_t offset; /* of the key in the batch's bytes, the value behind it */
    int64_t time_ms;
    uint64_t seq; /* ledger and journal: given by store_commit() */
};

struct store_batch {
    struct store_op *ops; /* owned */
    uint32_t op_count;
    uint32_t op_capacity;
    char *bytes; /* owned */
    size_t byte_count;
    size_t byte_capacity;
    size_t limit_bytes;

    struct store_batch *next; /* of the list that holds it */
    store_commit_fn callback;
    void *ctx; /* borrowed */
    struct rc rc;
};

struct str store_op_key(const struct store_batch *batch, const struct store_op *op);
struct str store_op_value(const struct store_batch *batch, const struct store_op *op);
/* What a batch weighs in the bounds on queues. */
size_t store_batch_weight(const struct store_batch *batch);
/* Copies a change of another batch. False: it would pass the batch's limit. */
bool store_batch_copy_op(struct store_batch *batch, const struct store_batch *from,
                         const struct store_op *op);
void store_batch_clear(struct store_batch *batch);

struct store_batch_list {
    struct store_batch *first; /* owned */
    struct store_batch *last;
    uint32_t count;
    size_t weight;
};

void store_batch_list_add(struct store_batch_list *list, struct store_batch *batch);
/* NULL when empty. Owned by the caller. */
struct store_batch *store_batch_list_take(struct store_batch_list *list);

/* --- transaction.c: one LMDB transaction, straight through ---------------------------------------
 */

/* The first error sticks and makes what follows do nothing, so that callers write straight on and
 * look once, at the end. */
struct store_txn {
    MDB_txn *txn; /* owned; NULL after its end */
    int error;    /* of LMDB or errno; 0: none */
};

void store_txn_begin(struct store_txn *txn, MDB_env *env, bool is_read_only);
void store_txn_put(struct store_txn *txn, const MDB_dbi *dbis, enum store_db db, struct str key,
                   const struct store_record *record);
void store_txn_put_number(struct store_txn *txn, const MDB_dbi *dbis, const char *name,
                          uint64_t number);
/* Commits, or gives up where there was an error; returns the error. */
int store_txn_end(struct store_txn *txn);
void store_txn_abort(struct store_txn *txn);

struct store_job {
    /* Given by the loop before the work is queued, untouched by it until the work is done. */
    MDB_env *env;                    /* borrowed */
    const MDB_dbi *dbis;             /* borrowed */
    const struct store_batch *owed;  /* borrowed; written first */
    struct store_batch_list batches; /* written in order */
    uint64_t journal_next_seq;
    uint64_t ledger_next_seq;
    size_t journal_max_bytes;
    int64_t journal_keep_ms;
    size_t ledger_max_bytes;
    int64_t ledger_keep_ms;
    bool sheds; /* give up the oldest quarter of the journal first */

    /* Given by the worker. */
    int error;
    uint64_t shed_records;
    uint64_t gang_records;
    size_t used_bytes;
    uint64_t wall_us;
};

/* Runs on the worker. */
void store_job_run(struct store_job *job);

/* --- env.c: the environment and what its meta database says -------------------------------------
 */

struct store_env {
    MDB_env *env; /* owned */
    MDB_dbi dbis[STORE_DB_COUNT];
    uint64_t journal_next_seq;
    uint64_t ledger_next_seq;
    uint64_t gang_records;
    size_t map_bytes;
    size_t used_bytes;
    bool is_new;
};

/* RC_CORRUPT: LMDB doesn't take it. RC_INVALID: it is foreign, the sentence says how. */
NODISCARD struct rc store_env_open(const struct store_options *options, struct store_env *ret_env,
                                   struct err *err);
void store_env_close(struct store_env *env);
/* The bound that `used_bytes` call for: doubled at 70 %, never beyond `max_bytes`. */
size_t store_env_grown_bytes(size_t map_bytes, size_t used_bytes, size_t max_bytes);
/* Between transactions only. Where it fails the environment is closed. */
NODISCARD struct rc store_env_grow(struct store_env *env, size_t map_bytes, struct err *err);

/* --- files.c and check.c: the directory ----------------------------------------------------------
 */

#define STORE_PATH_BYTES 4096
#define STORE_NAME_BYTES 64

/* As strerror(), whatever thread asks. Static. */
const char *store_errno_text(int error);
/* False: the path is too long. */
bool store_path(char buffer[STORE_PATH_BYTES], const char *dir, const char *name);
/* Makes the directory if need be, takes its lock; `*ret_fd` is owned by the caller. */
NODISCARD struct rc store_dir_take(const char *dir, int *ret_fd, struct err *err);
/* Whether data.mdb is there and holds a byte; it must be a regular file that can be read. */
NODISCARD struct rc store_file_exists(const char *dir, bool *ret_exists, struct err *err);
/* Renames data.mdb; `ret_name` is its new name in the directory. */
NODISCARD struct rc store_file_set_aside(const char *dir, char ret_name[STORE_NAME_BYTES],
                                         struct err *err);
/* Makes a new file's name durable. */
NODISCARD struct rc store_dir_sync(const char *dir, struct err *err);

/* Walks data.mdb in a forked child. RC_CORRUPT: it is damaged, or the child died of it. */
NODISCARD struct rc store_check_file(const char *dir, bool is_read_only, struct err *err);
