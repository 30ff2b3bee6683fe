#include "store_state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

static char *copy_text(struct str s)
{
    char *copy = mem_alloc(s.len + 1);

    if (s.len > 0) {
        memcpy(copy, s.ptr, s.len);
    }
    copy[s.len] = '\0';
    return copy;
}

static size_t size_or(size_t value, size_t fallback)
{
    return value == 0 ? fallback : value;
}

/* LMDB wants a multiple of the system's page size. */
static size_t whole_pages(size_t bytes)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

static void fill_defaults(struct store_options *options)
{
    options->map_max_bytes = whole_pages(size_or(options->map_max_bytes, STORE_MAP_MAX_BYTES));
    options->map_first_bytes =
        whole_pages(size_or(options->map_first_bytes, STORE_MAP_FIRST_BYTES));
    if (options->map_first_bytes > options->map_max_bytes) {
        options->map_first_bytes = options->map_max_bytes;
    }
    options->journal_max_bytes = size_or(options->journal_max_bytes, STORE_JOURNAL_MAX_BYTES);
    options->ledger_max_bytes = size_or(options->ledger_max_bytes, STORE_LEDGER_MAX_BYTES);
    if (options->journal_keep_ms == 0) {
        options->journal_keep_ms = STORE_JOURNAL_KEEP_MS;
    }
    if (options->ledger_keep_ms == 0) {
        options->ledger_keep_ms = STORE_LEDGER_KEEP_MS;
    }
}

static struct rc set_aside(struct store *store, const struct err *why, struct err *err)
{
    char name[STORE_NAME_BYTES];

    TRY(store_file_set_aside(store->dir, name, err));
    store->stats.was_set_aside = true;
    (void)snprintf(store->opened.text, sizeof(store->opened.text),
                   "the store's file %s/data.mdb can't be used: %.600s. It was renamed to %s and a "
                   "new one was made; admissions are rebuilt from the cluster, the metering ledger "
                   "and the decision journal begin anew",
                   store->dir, why->text, name);
    return RC_SUCCESS;
}

/* RC_CORRUPT or RC_INVALID: the file is there and can't be used. */
static struct rc check_and_open(struct store *store, struct err *err)
{
    bool exists = false;

    TRY(store_file_exists(store->dir, &exists, err));
    if (!exists && store->options.is_read_only) {
        return err_set(err, RC_NOT_FOUND, "there is no store in directory %s", store->dir);
    }
    if (exists) {
        TRY(store_check_file(store->dir, store->options.is_read_only, err));
    }
    return store_env_open(&store->options, &store->env, err);
}

static struct rc open_file(struct store *store, struct err *err)
{
    struct err why = {{0}};
    struct rc rc = check_and_open(store, &why);

    if ((rc.code == RC_CORRUPT || rc.code == RC_INVALID) && !store->options.is_read_only) {
        TRY(set_aside(store, &why, err));
        rc = check_and_open(store, &why);
    }
    if (rc.code == RC_NOT_FOUND) {
        return err_set(err, rc.code, "%s", why.text);
    }
    if (rc_failed(rc)) {
        return err_set(err, rc.code, "the store's file %s/data.mdb can't be used: %s", store->dir,
                       why.text);
    }
    return store->env.is_new ? store_dir_sync(store->dir, err) : RC_SUCCESS;
}

static struct rc open_all(struct store *store, struct err *err)
{
    if (!store->options.is_read_only) {
        TRY(store_dir_take(store->dir, &store->lock_fd, err));
    }
    TRY(open_file(store, err));
    store->stats.is_new = store->env.is_new;
    store->stats.gang_records = store->env.gang_records;
    store->stats.journal_next_seq = store->env.journal_next_seq;
    store->stats.ledger_next_seq = store->env.ledger_next_seq;
    return store->loop == NULL ? RC_SUCCESS : store_loop_start(store, err);
}

struct rc store_open(uv_loop_t *loop, const struct store_options *options, struct store **ret_store,
                     struct err *err)
{
    assert(loop != NULL || options->is_read_only);
    assert(!str_is_empty(options->cluster_id) || options->is_read_only);
    struct store *store = MEM_NEW(struct store);

    store->loop = options->is_read_only ? NULL : loop;
    store->options = *options;
    store->dir = copy_text(options->dir);
    store->cluster_id = copy_text(options->cluster_id);
    store->options.dir = str_from_c(store->dir);
    store->options.cluster_id = str_from_c(store->cluster_id);
    store->lock_fd = -1;
    store->owed = store_batch_new();
    store->owed->limit_bytes = STORE_OWED_MAX_BYTES;
    fill_defaults(&store->options);
    struct rc rc = open_all(store, err);

    if (rc_failed(rc)) {
        store_free(store);
        return rc;
    }
    *ret_store = store;
    return RC_SUCCESS;
}

struct str store_open_sentence(const struct store *store)
{
    return err_text(&store->opened);
}

struct str store_health_sentence(const struct store *store)
{
    return err_text(&store->health);
}

struct store_stats store_stats(const struct store *store)
{
    struct store_stats stats = store->stats;

    stats.is_degraded = store->retry_ms > 0;
    stats.map_bytes = store->env.map_bytes;
    stats.used_bytes = store->env.used_bytes;
    stats.queued_batches = store->queued.count;
    return stats;
}

void store_free(struct store *store)
{
    store_env_close(&store->env);
    store_batch_free(store->owed);
    /* Last of all: from here on the directory may be somebody else's. */
    if (store->lock_fd >= 0) {
        (void)close(store->lock_fd);
    }
    mem_free(store->dir);
    mem_free(store->cluster_id);
    mem_free(store);
}

void store_close(struct store *store, void (*on_closed)(void *ctx), void *ctx)
{
    if (store == NULL) {
        return;
    }
    if (store->loop == NULL) {
        assert(on_closed == NULL);
        store_free(store);
        return;
    }
    store->on_closed = on_closed;
    store->closed_ctx = ctx;
    store_loop_stop(store);
}
