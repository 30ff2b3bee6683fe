/* store_port.c - what the controller keeps: soft state, ledger, journal; committed a few times a
 * second, so that a burst of events is one transaction. */
#include "daemon.h"

#include "commands.h"

#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"
#include "tallyman/driver/journal.h"

#define JOURNAL_LINE_KIND      1
#define LEDGER_TRANSITION_KIND 1
#define LOST_LINE_BYTES        128

static void on_health(void *ctx, bool is_degraded, struct str sentence)
{
    struct daemon *daemon = ctx;
    metric_set(daemon->telemetry.store_degraded, NULL, is_degraded ? 1 : 0);
    struct log_field fields[] = {LOG_STR("detail", sentence), {.key = NULL}};
    log_line(&daemon->log, is_degraded ? LOG_ERROR : LOG_INFO,
             is_degraded ? "the store can't be written; decisions go on, history is lost"
                         : "the store is written again",
             fields);
}

struct rc store_port_open(struct daemon *daemon, struct err *err)
{
    if (!str_is_set(daemon->options.store_dir)) {
        return RC_SUCCESS;
    }
    struct store_options options = {.dir = daemon->options.store_dir,
                                    .cluster_id = daemon->cluster_id,
                                    .now_ms = daemon_now_ms(daemon),
                                    .on_health = on_health,
                                    .ctx = daemon};
    TRY(store_open(&daemon->loop, &options, &daemon->store, err));
    struct str sentence = store_open_sentence(daemon->store);
    if (!str_is_empty(sentence)) {
        struct log_field fields[] = {LOG_STR("detail", sentence), {.key = NULL}};
        log_line(&daemon->log, LOG_WARN, "the store was set aside and begun anew", fields);
    }
    daemon->batch = store_batch_new();
    return RC_SUCCESS;
}

void store_port_flush(struct daemon *daemon)
{
    if (daemon->store == NULL || store_batch_count(daemon->batch) == 0) {
        return;
    }
    struct err err;
    if (!rc_failed(store_commit(daemon->store, daemon->batch, NULL, NULL, &err))) {
        daemon->batch = store_batch_new();
        return;
    }
    /* The disk is behind and the queue is full: the batch stays, and goes with a later flush. */
}

enum change_kind { CHANGE_GANG, CHANGE_LEDGER, CHANGE_JOURNAL };

static struct rc batch_take(struct store_batch *batch, enum change_kind kind, struct str key,
                            const struct store_record *record, struct err *err)
{
    switch (kind) {
    case CHANGE_GANG:
        return str_is_set(record->bytes) ? store_batch_put_gang(batch, key, record->bytes, err)
                                         : store_batch_delete_gang(batch, key, err);
    case CHANGE_LEDGER:
        return store_batch_add_ledger(batch, record, err);
    case CHANGE_JOURNAL:
        return store_batch_add_journal(batch, record, err);
    }
    return RC_SUCCESS;
}

/* A full batch is committed and the change tried once more; if the disk is so far behind that this
 * fails too, this piece of history is lost. */
static bool add_change(struct daemon *daemon, enum change_kind kind, struct str key,
                       const struct store_record *record)
{
    struct err err;
    if (store_batch_count(daemon->batch) >= DAEMON_BATCH_MAX) {
        store_port_flush(daemon);
    }
    if (rc_failed(batch_take(daemon->batch, kind, key, record, &err))) {
        store_port_flush(daemon);
        if (rc_failed(batch_take(daemon->batch, kind, key, record, &err))) {
            struct log_field fields[] = {LOG_STR("error", err_text(&err)), {.key = NULL}};
            log_line(&daemon->log, LOG_DEBUG, "a record of history is lost", fields);
            return false;
        }
    }
    return true;
}

void store_port_persist(void *ctx, struct str gang_uid, const struct gang_memory *memory)
{
    struct daemon *daemon = ctx;
    if (daemon->store == NULL) {
        return;
    }
    if (memory->requeue_count == 0 && memory->requeue_at_ms == 0 && memory->evictions == 0) {
        struct store_record nothing = {.bytes = STR_NONE};
        (void)add_change(daemon, CHANGE_GANG, gang_uid, &nothing);
        return;
    }
    struct json_writer *writer = json_writer_new();
    json_object_start(writer);
    json_key(writer, "requeueCount");
    json_int(writer, memory->requeue_count);
    json_key(writer, "requeueAtMs");
    json_int(writer, memory->requeue_at_ms);
    json_key(writer, "evictions");
    json_int(writer, memory->evictions);
    json_object_end(writer);
    struct store_record record = {.bytes = json_writer_text(writer)};
    (void)add_change(daemon, CHANGE_GANG, gang_uid, &record);
    json_writer_free(writer);
}

static void put(struct json_writer *writer, const char *key, struct str value)
{
    if (str_is_set(value)) {
        json_key(writer, key);
        json_string(writer, value);
    }
}

void store_port_ledger(void *ctx, const struct effect *effect)
{
    struct daemon *daemon = ctx;
    if (daemon->store == NULL) {
        return;
    }
    const struct gang_transition *transition = &effect->transition;
    struct json_writer *writer = json_writer_new();
    json_object_start(writer);
    put(writer, "namespace", effect->namespace_name);
    put(writer, "name", effect->name);
    put(writer, "uid", effect->uid);
    put(writer, "queue", transition->queue);
    put(writer, "from", str_from_c(transition->from));
    put(writer, "to", str_from_c(transition->to));
    put(writer, "cause", transition->cause);
    json_key(writer, "pods");
    json_int(writer, transition->pods);
    put(writer, "amounts", transition->amounts);
    json_object_end(writer);
    struct store_record record = {.time_ms = transition->at_ms,
                                  .kind = LEDGER_TRANSITION_KIND,
                                  .bytes = json_writer_text(writer)};
    (void)add_change(daemon, CHANGE_LEDGER, STR_NONE, &record);
    json_writer_free(writer);
}

/* A hole in the journal is marked as soon as something can be written again, because what comes
 * behind it can't be repeated. */
static void keep_line(struct daemon *daemon, int64_t now_ms, struct str line)
{
    struct store_record record = {.time_ms = now_ms, .kind = JOURNAL_LINE_KIND, .bytes = line};
    if (daemon->journal_lost > 0) {
        struct arena arena;
        arena_init_small(&arena, LOST_LINE_BYTES);
        struct store_record hole = record;
        hole.bytes = journal_lost_line(&arena, daemon->journal_lost);
        bool is_marked = add_change(daemon, CHANGE_JOURNAL, STR_NONE, &hole);
        daemon->journal_lost = is_marked ? 0 : daemon->journal_lost;
        arena_deinit(&arena);
    }
    if (daemon->journal_lost > 0 || !add_change(daemon, CHANGE_JOURNAL, STR_NONE, &record)) {
        daemon->journal_lost++;
    }
}

void store_port_journal(struct daemon *daemon, int64_t now_ms, struct str line)
{
    if (!str_is_set(line)) {
        return;
    }
    if (daemon->journal != NULL) {
        fprintf(daemon->journal, STR_FMT "\n", STR_ARG(line));
    }
    if (daemon->store != NULL) {
        keep_line(daemon, now_ms, line);
    }
}

void store_port_journal_start(struct daemon *daemon)
{
    struct arena arena;
    arena_init(&arena);
    int64_t now_ms = daemon_now_ms(daemon);
    store_port_journal(daemon, now_ms,
                       journal_start_line(&arena, now_ms, str_from_c(tallyman_version()),
                                          str_from_c(tallyman_build())));
    arena_deinit(&arena);
}
