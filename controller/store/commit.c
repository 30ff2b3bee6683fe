#include "store_state.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "tallyman/base/limits.h"

/* Why a transaction failed, as far as that decides what to do. */
enum failure { FAILURE_NONE, FAILURE_MAP, FAILURE_ROOM, FAILURE_OTHER };

static void pump(struct store *store);
static void on_retry(uv_timer_t *timer);

static enum failure failure_of(int error)
{
    switch (error) {
    case 0:
        return FAILURE_NONE;
    case MDB_MAP_FULL:
        return FAILURE_MAP;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return FAILURE_ROOM;
    default:
        return FAILURE_OTHER;
    }
}

/* --- Commit --------------------------------------------------------------------------------------
 */

static void number_ops(struct store *store, struct store_batch *batch)
{
    for (uint32_t i = 0; i < batch->op_count; i++) {
        struct store_op *op = &batch->ops[i];

        if (op->db == STORE_DB_JOURNAL) {
            op->seq = store->stats.journal_next_seq++;
        } else if (op->db == STORE_DB_LEDGER) {
            op->seq = store->stats.ledger_next_seq++;
        }
    }
}

struct rc store_commit(struct store *store, struct store_batch *batch, store_commit_fn callback,
                       void *ctx, struct err *err)
{
    assert(store->loop != NULL && !store->is_closing);
    if (store->queued.count >= STORE_QUEUE_MAX_BATCHES ||
        store->queued.weight + store_batch_weight(batch) > STORE_QUEUE_MAX_BYTES) {
        return err_set(err, RC_LIMIT,
                       "the store in %s can't keep up: %u batches of %zu bytes wait for its disk",
                       store->dir, store->queued.count, store->queued.weight);
    }
    number_ops(store, batch);
    batch->callback = callback;
    batch->ctx = ctx;
    store_batch_list_add(&store->queued, batch);
    /* Started by the next turn of the loop, so that the commits of one turn share a transaction. */
    (void)uv_async_send(&store->wake);
    return RC_SUCCESS;
}

/* --- Outcomes ------------------------------------------------------------------------------------
 */

static void finish_batch(struct store *store, struct store_batch *batch, struct rc rc)
{
    batch->rc = rc;
    if (rc_failed(rc)) {
        store->stats.failed_batches++;
    } else {
        store->stats.batches++;
    }
    store_batch_list_add(&store->done, batch);
}

/* What no API object holds exactly is written later; the journal of the time is lost. */
static void keep_owed(struct store *store, const struct store_batch *batch)
{
    for (uint32_t i = 0; i < batch->op_count; i++) {
        const struct store_op *op = &batch->ops[i];

        if (op->db == STORE_DB_JOURNAL) {
            store->stats.lost_journal++;
        } else if (!store_batch_copy_op(store->owed, batch, op)) {
            store->stats.lost_other++;
        }
    }
}

static void fail_list(struct store *store, struct store_batch_list *list)
{
    for (struct store_batch *batch = store_batch_list_take(list); batch != NULL;
         batch = store_batch_list_take(list)) {
        keep_owed(store, batch);
        finish_batch(store, batch, (struct rc){RC_IO});
    }
}

static void tell_health(struct store *store, struct str sentence)
{
    if (store->options.on_health != NULL) {
        store->options.on_health(store->options.ctx, store->retry_ms > 0, sentence);
    }
}

static const char *advice_for(int error)
{
    return failure_of(error) == FAILURE_MAP
               ? "it has reached its size limit (map_max_bytes) and nothing is left to give up"
               : "look after the volume that holds it";
}

static void become_degraded(struct store *store, const char *why, int error)
{
    bool was_healthy = store->retry_ms == 0;

    (void)snprintf(
        store->health.text, sizeof(store->health.text),
        "the store in %.400s can't be written: %.300s; %s. Admission goes on; soft state "
        "and metering are kept in memory meanwhile, the decision journal isn't",
        store->dir, why, advice_for(error));
    store->retry_ms = was_healthy ? STORE_RETRY_BASE_MS : store->retry_ms * 2;
    if (store->retry_ms > STORE_RETRY_MAX_MS) {
        store->retry_ms = STORE_RETRY_MAX_MS;
    }
    store->must_reopen |= error == MDB_PANIC || failure_of(error) == FAILURE_OTHER;
    fail_list(store, &store->job.batches);
    if (!store->is_closing) {
        (void)uv_timer_start(&store->retry, on_retry, store->retry_ms, 0);
    }
    if (was_healthy) {
        tell_health(store, err_text(&store->health));
    }
}

static void take_success(struct store *store)
{
    bool was_degraded = store->retry_ms > 0;

    store_batch_clear(store->owed);
    for (struct store_batch *batch = store_batch_list_take(&store->job.batches); batch != NULL;
         batch = store_batch_list_take(&store->job.batches)) {
        finish_batch(store, batch, RC_SUCCESS);
    }
    store->stats.commits++;
    store->stats.last_commit_us = store->job.wall_us;
    store->stats.gang_records = store->job.gang_records;
    store->retry_ms = 0;
    store->health = (struct err){{0}};
    if (was_degraded) {
        tell_health(store, STR("the store can be written again"));
    }
}

/* --- One job at a time ---------------------------------------------------------------------------
 */

static void on_job(uv_work_t *work)
{
    struct store *store = work->data;

    store_job_run(&store->job);
}

static bool grow_to(struct store *store, size_t map_bytes)
{
    struct err ignored;

    if (map_bytes <= store->env.map_bytes) {
        return false;
    }
    /* Without a map there is nothing to write to; the next job opens the file anew. */
    store->must_reopen = rc_failed(store_env_grow(&store->env, map_bytes, &ignored));
    return !store->must_reopen;
}

static bool grow_when_full(struct store *store)
{
    size_t max_bytes = store->options.map_max_bytes;
    size_t map_bytes = store->env.map_bytes;

    if (map_bytes >= max_bytes) {
        return false;
    }
    return grow_to(store, map_bytes > max_bytes / 2 ? max_bytes : map_bytes * 2);
}

static void on_job_done(uv_work_t *work, int status);

static void queue_job(struct store *store)
{
    store->is_in_flight = true;
    int error = uv_queue_work(store->loop, &store->work, on_job, on_job_done);

    assert(error == 0);
    (void)error;
}

static void on_job_done(uv_work_t *work, int status)
{
    struct store *store = work->data;
    enum failure failure = failure_of(store->job.error);

    assert(status == 0);
    (void)status;
    store->is_in_flight = false;
    store->stats.shed_journal += store->job.shed_records;
    store->env.used_bytes = store->job.used_bytes;
    store->job.shed_records = 0;
    store->job.sheds = false;
    if (failure == FAILURE_NONE) {
        take_success(store);
        (void)grow_to(store, store_env_grown_bytes(store->env.map_bytes, store->env.used_bytes,
                                                   store->options.map_max_bytes));
    } else if (failure == FAILURE_MAP && grow_when_full(store)) {
        queue_job(store);
        return;
    } else if (failure != FAILURE_OTHER && !store->has_shed && !store->must_reopen) {
        store->has_shed = store->job.sheds = true;
        queue_job(store);
        return;
    } else {
        become_degraded(store, mdb_strerror(store->job.error), store->job.error);
    }
    pump(store);
}

/* LMDB gives up on an environment whose meta page couldn't be written. */
static bool reopen(struct store *store)
{
    struct store_options options = store->options;
    struct store_env env;
    struct err err;

    store_env_close(&store->env);
    options.map_first_bytes = store->env.map_bytes;
    if (rc_failed(store_env_open(&options, &env, &err))) {
        become_degraded(store, err.text, EIO);
        return false;
    }
    store->env = env;
    store->must_reopen = false;
    return true;
}

static void start_job(struct store *store)
{
    size_t weight = 0;

    store->is_retry_due = false;
    store->has_shed = false;
    if (store->must_reopen && !reopen(store)) {
        fail_list(store, &store->queued);
        return;
    }
    store->job = (struct store_job){
        .env = store->env.env,
        .dbis = store->env.dbis,
        .owed = store->owed,
        .journal_next_seq = store->stats.journal_next_seq,
        .ledger_next_seq = store->stats.ledger_next_seq,
        .journal_max_bytes = store->options.journal_max_bytes,
        .journal_keep_ms = store->options.journal_keep_ms,
        .ledger_max_bytes = store->options.ledger_max_bytes,
        .ledger_keep_ms = store->options.ledger_keep_ms,
    };
    while (store->queued.first != NULL && weight < STORE_TXN_MAX_BYTES) {
        weight += store_batch_weight(store->queued.first);
        store_batch_list_add(&store->job.batches, store_batch_list_take(&store->queued));
    }
    queue_job(store);
}

static void deliver(struct store *store)
{
    for (struct store_batch *batch = store_batch_list_take(&store->done); batch != NULL;
         batch = store_batch_list_take(&store->done)) {
        if (batch->callback != NULL) {
            batch->callback(batch->ctx, batch->rc,
                            rc_failed(batch->rc) ? err_text(&store->health) : STR(""));
        }
        store_batch_free(batch);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct store *store = handle->data;

    store->open_handles--;
    if (store->open_handles == 0) {
        void (*on_closed)(void *) = store->on_closed;
        void *ctx = store->closed_ctx;

        store_free(store);
        if (on_closed != NULL) {
            on_closed(ctx);
        }
    }
}

static void close_when_drained(struct store *store)
{
    if (store->is_in_flight || store->queued.first != NULL || store->done.first != NULL ||
        uv_is_closing((uv_handle_t *)&store->wake)) {
        return;
    }
    uv_close((uv_handle_t *)&store->wake, on_handle_closed);
    uv_close((uv_handle_t *)&store->retry, on_handle_closed);
}

/* Does what there is to do now: start the next job, run callbacks, close. */
static void pump(struct store *store)
{
    bool must_wait = store->retry_ms > 0 && !store->is_retry_due && !store->is_closing;

    if (!store->is_in_flight && must_wait) {
        fail_list(store, &store->queued);
    } else if (!store->is_in_flight && (store->queued.first != NULL || store->is_retry_due)) {
        start_job(store);
    }
    deliver(store);
    if (store->is_closing) {
        close_when_drained(store);
    }
}

static void on_wake(uv_async_t *wake)
{
    pump(wake->data);
}

static void on_retry(uv_timer_t *timer)
{
    struct store *store = timer->data;

    (void)uv_timer_stop(timer);
    store->is_retry_due = true;
    pump(store);
}

struct rc store_loop_start(struct store *store, struct err *err)
{
    int error = uv_async_init(store->loop, &store->wake, on_wake);

    if (error != 0) {
        return err_set(err, RC_IO, "the store in %s can't use the event loop: %s", store->dir,
                       uv_strerror(error));
    }
    (void)uv_timer_init(store->loop, &store->retry);
    store->wake.data = store->retry.data = store->work.data = store;
    store->open_handles = 2;
    return RC_SUCCESS;
}

void store_loop_stop(struct store *store)
{
    assert(!store->is_closing);
    store->is_closing = true;
    (void)uv_timer_stop(&store->retry);
    /* What is owed gets one last try. */
    store->is_retry_due = store->retry_ms > 0;
    (void)uv_async_send(&store->wake);
}
