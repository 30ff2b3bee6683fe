#include "store_internal.h"

#include <assert.h>
#include <string.h>

#include "tallyman/base/limits.h"

/* Keys of the meta database. */
#define KEY_MAGIC        "magic"
#define KEY_SCHEMA       "schema"
#define KEY_CREATED      "created-at"
#define KEY_CLUSTER      "cluster"
#define KEY_JOURNAL_NEXT "journal-next"
#define KEY_LEDGER_NEXT  "ledger-next"
#define MAGIC            "tallyman"

static struct rc lmdb_failed(struct err *err, int error, const char *what)
{
    enum rc_code code = RC_IO;

    if (error == MDB_INVALID || error == MDB_VERSION_MISMATCH || error == MDB_CORRUPTED ||
        error == MDB_PAGE_NOTFOUND) {
        code = RC_CORRUPT;
    }
    return err_set(err, code, "%s: %s", what, mdb_strerror(error));
}

size_t store_env_grown_bytes(size_t map_bytes, size_t used_bytes, size_t max_bytes)
{
    while (map_bytes < max_bytes && used_bytes / 7 >= map_bytes / 10) {
        map_bytes = map_bytes > max_bytes / 2 ? max_bytes : map_bytes * 2;
    }
    return map_bytes;
}

void store_env_close(struct store_env *env)
{
    if (env->env != NULL) {
        mdb_env_close(env->env);
        env->env = NULL;
    }
}

struct rc store_env_grow(struct store_env *env, size_t map_bytes, struct err *err)
{
    int error = mdb_env_set_mapsize(env->env, map_bytes);

    if (error != 0) {
        /* LMDB has given up the old map before it asked for the new one. */
        store_env_close(env);
        return lmdb_failed(err, error, "the store's map can't grow");
    }
    env->map_bytes = map_bytes;
    return RC_SUCCESS;
}

static struct rc open_lmdb(const struct store_options *options, struct store_env *env,
                           struct err *err)
{
    char dir[STORE_PATH_BYTES];
    /* NOTLS: a read transaction belongs to its call, not to the thread. */
    unsigned flags = MDB_NOTLS | (options->is_read_only ? MDB_RDONLY : 0u);

    (void)snprintf(dir, sizeof(dir), STR_FMT, STR_ARG(options->dir));
    int error = mdb_env_create(&env->env);

    if (error == 0) {
        error = mdb_env_set_maxdbs(env->env, STORE_DB_COUNT);
    }
    if (error == 0 && !options->is_read_only) {
        error = mdb_env_set_mapsize(env->env, options->map_first_bytes);
    }
    if (error == 0) {
        error = mdb_env_open(env->env, dir, flags, 0600);
    }
    return error == 0 ? RC_SUCCESS : lmdb_failed(err, error, "data.mdb can't be opened");
}

/* RC_NOT_FOUND: none of that name. */
static struct rc read_meta(struct store_txn *txn, const struct store_env *env, const char *name,
                           struct str *ret_value, struct err *err)
{
    char key_bytes[32];
    struct store_record record = {0};
    MDB_val value = {0};

    (void)snprintf(key_bytes, sizeof(key_bytes), "%s", name);
    MDB_val key = {strlen(name), key_bytes};
    int error = mdb_get(txn->txn, env->dbis[STORE_DB_META], &key, &value);

    if (error == MDB_NOTFOUND) {
        return err_set(err, RC_NOT_FOUND, "its meta data lack \"%s\"", name);
    }
    if (error != 0) {
        return lmdb_failed(err, error, "its meta data can't be read");
    }
    TRY(store_record_read(STORE_DB_META, str_from_c(name),
                          (struct str){value.mv_data, value.mv_size}, &record, err));
    *ret_value = record.bytes;
    return RC_SUCCESS;
}

/* An absent number is `fallback`. */
static struct rc read_meta_number(struct store_txn *txn, const struct store_env *env,
                                  const char *name, uint64_t fallback, uint64_t *ret_number,
                                  struct err *err)
{
    struct str value = STR_NONE;
    struct rc rc = read_meta(txn, env, name, &value, err);

    if (rc.code == RC_NOT_FOUND) {
        *ret_number = fallback;
        return RC_SUCCESS;
    }
    TRY(rc);
    if (value.len != 8) {
        return err_set(err, RC_CORRUPT, "its meta data \"%s\" isn't a number", name);
    }
    *ret_number = store_number_read(value.ptr);
    return RC_SUCCESS;
}

static struct rc check_identity(const struct store_options *options, struct store_env *env,
                                struct store_txn *txn, struct err *err)
{
    struct str magic = STR_NONE;
    struct str cluster = STR_NONE;
    uint64_t schema = 0;
    struct rc rc = read_meta(txn, env, KEY_MAGIC, &magic, err);

    if (rc.code == RC_NOT_FOUND || (!rc_failed(rc) && !str_eq_c(magic, MAGIC))) {
        return err_set(err, RC_INVALID, "it isn't a store of Tallyman");
    }
    TRY(rc);
    TRY(read_meta_number(txn, env, KEY_SCHEMA, 0, &schema, err));
    if (schema != STORE_SCHEMA_VERSION) {
        return err_set(err, RC_INVALID, "its schema is version %llu, this Tallyman knows %d",
                       (unsigned long long)schema, STORE_SCHEMA_VERSION);
    }
    TRY(read_meta(txn, env, KEY_CLUSTER, &cluster, err));
    if (!str_is_empty(options->cluster_id) && !str_eq(cluster, options->cluster_id)) {
        return err_set(err, RC_INVALID,
                       "it belongs to another cluster (namespace kube-system has uid " STR_FMT
                       ", the file says " STR_FMT ")",
                       STR_ARG(options->cluster_id), STR_ARG(str_take(cluster, 64)));
    }
    TRY(read_meta_number(txn, env, KEY_JOURNAL_NEXT, 1, &env->journal_next_seq, err));
    return read_meta_number(txn, env, KEY_LEDGER_NEXT, 1, &env->ledger_next_seq, err);
}

static void write_identity(const struct store_options *options, struct store_env *env,
                           struct store_txn *txn)
{
    const struct store_record magic = {.bytes = STR_INIT(MAGIC)};
    const struct store_record cluster = {.bytes = options->cluster_id};

    store_txn_put(txn, env->dbis, STORE_DB_META, STR(KEY_MAGIC), &magic);
    store_txn_put(txn, env->dbis, STORE_DB_META, STR(KEY_CLUSTER), &cluster);
    store_txn_put_number(txn, env->dbis, KEY_SCHEMA, STORE_SCHEMA_VERSION);
    store_txn_put_number(txn, env->dbis, KEY_CREATED, (uint64_t)options->now_ms);
    store_txn_put_number(txn, env->dbis, KEY_JOURNAL_NEXT, 1);
    store_txn_put_number(txn, env->dbis, KEY_LEDGER_NEXT, 1);
    env->journal_next_seq = env->ledger_next_seq = 1;
    env->is_new = true;
}

static bool is_empty(struct store_txn *txn, MDB_dbi dbi)
{
    MDB_stat stat = {0};

    if (txn->error == 0) {
        txn->error = mdb_stat(txn->txn, dbi, &stat);
    }
    return txn->error == 0 && stat.ms_entries == 0;
}

/* Opens the named databases; a handle lives on once the transaction that opened it has committed.
 */
static void open_dbis(struct store_txn *txn, struct store_env *env, bool may_create)
{
    for (int db = 0; db < STORE_DB_COUNT && txn->error == 0; db++) {
        txn->error = mdb_dbi_open(txn->txn, store_db_name((enum store_db)db),
                                  may_create ? MDB_CREATE : 0, &env->dbis[db]);
    }
}

/* A fresh file, or one whose first transaction never happened, gets its identity; any other must
 * show it. */
static struct rc open_contents(const struct store_options *options, struct store_env *env,
                               struct err *err)
{
    struct rc rc = RC_SUCCESS;
    struct store_txn txn;
    MDB_dbi main_dbi = 0;

    store_txn_begin(&txn, env->env, options->is_read_only);
    if (txn.error == 0) {
        txn.error = mdb_dbi_open(txn.txn, NULL, 0, &main_dbi);
    }
    bool is_fresh = is_empty(&txn, main_dbi);

    open_dbis(&txn, env, is_fresh && !options->is_read_only);
    if (txn.error == 0 && is_fresh) {
        write_identity(options, env, &txn);
    } else if (txn.error == 0) {
        rc = check_identity(options, env, &txn, err);
    }
    if (txn.error == 0) {
        MDB_stat stat = {0};

        txn.error = mdb_stat(txn.txn, env->dbis[STORE_DB_GANGS], &stat);
        env->gang_records = stat.ms_entries;
    }
    if (rc_failed(rc)) {
        store_txn_abort(&txn);
        return rc;
    }
    int error = store_txn_end(&txn);

    if (error == MDB_NOTFOUND || error == MDB_INCOMPATIBLE) {
        return err_set(err, RC_INVALID, "it isn't a store of Tallyman");
    }
    return error == 0 ? RC_SUCCESS : lmdb_failed(err, error, "data.mdb can't be prepared");
}

/* What the file already holds may call for more room than the first bound. */
static struct rc measure(const struct store_options *options, struct store_env *env,
                         struct err *err)
{
    MDB_envinfo info = {0};
    MDB_stat stat = {0};
    int error = mdb_env_info(env->env, &info);

    if (error == 0) {
        error = mdb_env_stat(env->env, &stat);
    }
    if (error != 0) {
        return lmdb_failed(err, error, "data.mdb can't be measured");
    }
    env->map_bytes = info.me_mapsize;
    env->used_bytes = (info.me_last_pgno + 1) * stat.ms_psize;
    if (options->is_read_only) {
        return RC_SUCCESS;
    }
    size_t grown =
        store_env_grown_bytes(options->map_first_bytes, env->used_bytes, options->map_max_bytes);

    return grown > env->map_bytes ? store_env_grow(env, grown, err) : RC_SUCCESS;
}

struct rc store_env_open(const struct store_options *options, struct store_env *ret_env,
                         struct err *err)
{
    struct store_env env = {0};
    struct rc rc = open_lmdb(options, &env, err);

    if (!rc_failed(rc)) {
        rc = open_contents(options, &env, err);
    }
    if (!rc_failed(rc)) {
        rc = measure(options, &env, err);
    }
    if (rc_failed(rc)) {
        store_env_close(&env);
        return rc;
    }
    *ret_env = env;
    return RC_SUCCESS;
}
