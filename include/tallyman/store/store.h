/* store.h - what is remembered across restarts: soft state, the metering ledger, the decision
 * journal. LMDB on the libuv loop.
 *
 * The API server is the truth and this is memory: whatever a decision needs is carried by some API
 * object too, so that a store that is lost or too old costs history and never correctness. That is
 * why a file that can't be trusted is set aside with a sentence, and why a full disk doesn't stop
 * the controller.
 *
 * Changes are collected in a batch and committed. A batch is written whole or not at all; batches
 * are written in the order of store_commit(), one transaction in flight at a time, on a worker of
 * libuv's pool. What queued up behind a transaction shares the next one. The commit's callback runs
 * on the loop, never inside store_commit(), exactly once, in the order of the commits, and with
 * RC_OK only after fsync.
 *
 * After a kill at any moment the file holds the first n committed batches for some n that covers
 * every batch whose callback said RC_OK.
 *
 * Where writing fails (full disk, size limit, I/O error) the oldest quarter of the journal is given
 * up and the transaction tried once more. If that fails too, the callbacks get RC_IO and the store
 * is degraded: until it has tried again (STORE_RETRY_BASE_MS, doubled up to STORE_RETRY_MAX_MS),
 * commits fail fast; their soft state and ledger records are kept in memory, up to
 * STORE_OWED_MAX_BYTES, and written by the first transaction that succeeds. Journal records of that
 * time are lost; their numbers stay unused, so that a reader sees the gap.
 *
 * Reads are synchronous and see what is on disk, never what is queued. Every record carries a
 * checksum; one that fails it is RC_CORRUPT. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "tallyman/base/err.h"
#include "tallyman/base/str.h"

struct store;
struct store_batch;

/* The version that this code writes. A file of a newer one is foreign. */
#define STORE_SCHEMA_VERSION 1

struct store_options {
    struct str dir;        /* copied; made with mode 0700 if it is absent (its parent must exist) */
    struct str cluster_id; /* copied; uid of namespace kube-system. A file of another cluster is
                            * foreign. Empty: not compared, for a read-only store only */
    int64_t now_ms;        /* written as the time at which a new file was made */
    bool is_read_only;     /* for `report` and `replay`: nothing is made, set aside or locked, a
                            * running controller may go on beside; the loop may be NULL */

    /* 0 gives the default of limits.h. */
    size_t map_first_bytes;   /* the file's first bound; doubled when 70 % are used */
    size_t map_max_bytes;     /* and never beyond this */
    size_t journal_max_bytes; /* the oldest records go first */
    int64_t journal_keep_ms;  /* by the time of the newest record */
    size_t ledger_max_bytes;
    int64_t ledger_keep_ms;

    /* Called on the loop when the store becomes degraded and when it has recovered; the sentence is
     * borrowed for the call. May be NULL. */
    void (*on_health)(void *ctx, bool is_degraded, struct str sentence);
    void *ctx; /* borrowed until the store is closed */
};

struct store_stats {
    bool is_degraded;
    bool was_set_aside;        /* by this store_open() */
    bool is_new;               /* this store_open() made the file */
    uint64_t commits;          /* transactions that are on disk */
    uint64_t batches;          /* batches that are on disk */
    uint64_t failed_batches;   /* callbacks with RC_IO */
    uint64_t lost_journal;     /* journal records that will never be on disk */
    uint64_t lost_other;       /* soft state and ledger records beyond STORE_OWED_MAX_BYTES */
    uint64_t shed_journal;     /* journal records given up for room */
    uint64_t last_commit_us;   /* wall time of the last transaction, fsync included */
    uint64_t journal_next_seq; /* the next journal record gets this number; the first is 1 */
    uint64_t ledger_next_seq;
    uint64_t gang_records;
    size_t map_bytes;        /* the current bound of the file */
    size_t used_bytes;       /* of it */
    uint32_t queued_batches; /* those in flight not counted */
};

/* Opens or makes the store in `options->dir`; blocks (used once, before the loop runs).
 *
 * A forked child first walks the whole file, so that a bad page kills the child and not us. A file
 * that is damaged, not a store's, of another cluster or of a newer schema is renamed to
 * data.mdb.bad-<n> (the newest STORE_BAD_FILES_MAX are kept) and a new one is made: see
 * store_open_sentence(). A read-only store gives RC_CORRUPT or RC_INVALID instead.
 *
 * RC_CONFLICT: another process has the directory. RC_IO: the directory can't be used.
 * RC_NOT_FOUND: read-only, and there is no store. `loop` is borrowed until the store is closed.
 * `*ret_store` is owned by the caller, who ends it with store_close(). */
NODISCARD struct rc store_open(uv_loop_t *loop, const struct store_options *options,
                               struct store **ret_store, struct err *err);
/* For the log: why a file was set aside and where it is now, else empty. Borrowed from the store.
 */
struct str store_open_sentence(const struct store *store);
/* Writes what is queued, runs the commits' callbacks, then gives everything back and calls
 * `on_closed` on the loop; no commit may follow. NULL is fine for both. A store without a loop is
 * closed at once, and `on_closed` must be NULL. */
void store_close(struct store *store, void (*on_closed)(void *ctx), void *ctx);

/* The totals so far. */
struct store_stats store_stats(const struct store *store);
/* Why the store is degraded, else empty. Borrowed from the store until the next callback. */
struct str store_health_sentence(const struct store *store);

/* --- Changes --------------------------------------------------------------------------------- */

/* Owned by the caller until store_commit() has taken it. */
NODISCARD RETURNS_NONNULL struct store_batch *store_batch_new(void);
void store_batch_free(struct store_batch *batch); /* NULL is fine */
/* Changes so far. */
uint32_t store_batch_count(const struct store_batch *batch);

/* Keys (1 to STORE_KEY_MAX_BYTES) and values (up to STORE_RECORD_MAX_BYTES) are opaque bytes and
 * copied. RC_LIMIT: too long, or the batch would pass STORE_BATCH_MAX_BYTES; the batch is
 * unchanged. */

/* Soft state: the last put wins. The key is the gang's uid. */
NODISCARD struct rc store_batch_put_gang(struct store_batch *batch, struct str key,
                                         struct str value, struct err *err);
/* Deleting what isn't there is fine. */
NODISCARD struct rc store_batch_delete_gang(struct store_batch *batch, struct str key,
                                            struct err *err);

struct store_record {
    int64_t time_ms; /* 0 or later */
    uint32_t kind;   /* the caller's own number: which event, which effect, which transition */
    struct str bytes;
};

/* One per transition of a gang; kept ordered by time, then by number. */
NODISCARD struct rc store_batch_add_ledger(struct store_batch *batch,
                                           const struct store_record *record, struct err *err);
/* Events and effects; kept ordered by number, which is the order of adding. */
NODISCARD struct rc store_batch_add_journal(struct store_batch *batch,
                                            const struct store_record *record, struct err *err);

/* The sentence is borrowed for the call and empty with RC_OK. */
typedef void (*store_commit_fn)(void *ctx, struct rc rc, struct str sentence);

/* Queues the batch; see the head of this file for what follows. RC_LIMIT: STORE_QUEUE_MAX_BATCHES
 * or STORE_QUEUE_MAX_BYTES are waiting; nothing was queued, nothing will be called and the batch
 * stays the caller's. Otherwise the store owns it. `callback` may be NULL; `ctx` is borrowed until
 * it ran. */
NODISCARD struct rc store_commit(struct store *store, struct store_batch *batch,
                                 store_commit_fn callback, void *ctx, struct err *err);

/* --- Reads ----------------------------------------------------------------------------------- */

/* Views are borrowed for the call. Return false to stop. A visitor mustn't call the store. */
typedef bool (*store_gang_fn)(void *ctx, struct str key, struct str value);
typedef bool (*store_record_fn)(void *ctx, uint64_t seq, const struct store_record *record);

/* By key, bytewise. */
NODISCARD struct rc store_read_gangs(struct store *store, store_gang_fn visit, void *ctx,
                                     struct err *err);
/* Records with from_ms <= time < to_ms, by time and number. */
NODISCARD struct rc store_read_ledger(struct store *store, int64_t from_ms, int64_t to_ms,
                                      store_record_fn visit, void *ctx, struct err *err);
/* Records numbered `from_seq` and later, in order. A number that is missing was lost. To read in
 * portions, stop and go on from the last number + 1. */
NODISCARD struct rc store_read_journal(struct store *store, uint64_t from_seq,
                                       store_record_fn visit, void *ctx, struct err *err);
