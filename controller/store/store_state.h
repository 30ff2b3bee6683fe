/* store_state.h - the store as the loop sees it; for the files of the store alone.
 *
 *              store_commit()          pump()                  on_job_done()
 *   caller ----------------> queued ----------> job.batches ----------------> done ----> callback
 *                               |   one job in flight at a time    |            ^
 *                               |                                  | failed     |
 *                               +---- degraded and not yet time ---+------------+
 *                                                                  |
 *                                     soft state and ledger: owed <+
 *
 * A batch is in exactly one of the three lists. */
#pragma once

#include "store_internal.h"

struct store {
    uv_loop_t *loop;              /* borrowed; NULL: reads only */
    struct store_options options; /* its views point to the two copies below */
    char *dir;                    /* owned */
    char *cluster_id;             /* owned */
    int lock_fd;                  /* owned; -1: none */
    struct store_env env;
    struct err opened; /* why a file was set aside */

    struct store_batch_list queued;
    struct store_batch_list done;
    struct store_batch *owed; /* owned */
    struct store_job job;
    bool is_in_flight;
    bool has_shed; /* this job has given up journal records already */

    uint64_t retry_ms; /* how long the next failure waits; 0: healthy */
    bool is_retry_due; /* degraded, and the wait is over */
    bool must_reopen;  /* LMDB refuses to go on with this environment */
    struct err health; /* why it is degraded */

    bool is_closing;
    uint32_t open_handles;
    void (*on_closed)(void *ctx);
    void *closed_ctx;

    uv_async_t wake;
    uv_timer_t retry;
    uv_work_t work;
    struct store_stats stats;
};

/* commit.c */
NODISCARD struct rc store_loop_start(struct store *store, struct err *err);
void store_loop_stop(struct store *store);
/* store.c: frees what store_open() made. */
void store_free(struct store *store);
