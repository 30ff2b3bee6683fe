#include "store_internal.h"

#include <assert.h>
#include <string.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

struct store_batch *store_batch_new(void)
{
    struct store_batch *batch = MEM_NEW(struct store_batch);

    batch->limit_bytes = STORE_BATCH_MAX_BYTES;
    return batch;
}

void store_batch_free(struct store_batch *batch)
{
    if (batch != NULL) {
        mem_free(batch->ops);
        mem_free(batch->bytes);
        mem_free(batch);
    }
}

void store_batch_clear(struct store_batch *batch)
{
    /* The memory goes too: what was owed during a long outage needn't be kept for ever. */
    mem_free(batch->ops);
    mem_free(batch->bytes);
    batch->ops = NULL;
    batch->bytes = NULL;
    batch->op_count = batch->op_capacity = 0;
    batch->byte_count = batch->byte_capacity = 0;
}

uint32_t store_batch_count(const struct store_batch *batch)
{
    return batch->op_count;
}

struct str store_op_key(const struct store_batch *batch, const struct store_op *op)
{
    return (struct str){batch->bytes + op->offset, op->key_bytes};
}

struct str store_op_value(const struct store_batch *batch, const struct store_op *op)
{
    return (struct str){batch->bytes + op->offset + op->key_bytes, op->value_bytes};
}

size_t store_batch_weight(const struct store_batch *batch)
{
    return sizeof(*batch) + batch->byte_count + batch->op_count * sizeof(struct store_op);
}

static void add_bytes(struct store_batch *batch, struct str piece)
{
    size_t needed = batch->byte_count + piece.len;

    if (needed > batch->byte_capacity) {
        size_t capacity = batch->byte_capacity == 0 ? 256 : batch->byte_capacity * 2;

        batch->byte_capacity = capacity < needed ? needed : capacity;
        batch->bytes = mem_realloc(batch->bytes, batch->byte_capacity);
    }
    if (piece.len > 0) {
        memcpy(batch->bytes + batch->byte_count, piece.ptr, piece.len);
    }
    batch->byte_count = needed;
}

static bool has_room(const struct store_batch *batch, size_t bytes)
{
    return store_batch_weight(batch) + sizeof(struct store_op) + bytes <= batch->limit_bytes;
}

static void add_op(struct store_batch *batch, struct store_op op, struct str key, struct str value)
{
    op.key_bytes = (uint32_t)key.len;
    op.value_bytes = (uint32_t)value.len;
    op.offset = batch->byte_count;
    add_bytes(batch, key);
    add_bytes(batch, value);
    batch->ops = mem_grow(batch->ops, batch->op_count, &batch->op_capacity, sizeof(op));
    batch->ops[batch->op_count++] = op;
}

static struct rc add_checked(struct store_batch *batch, struct store_op op, struct str key,
                             struct str value, struct err *err)
{
    if (value.len > STORE_RECORD_MAX_BYTES) {
        return err_set(err, RC_LIMIT,
                       "a record for the store's %s has %zu bytes, at most %u are taken",
                       store_db_name(op.db), value.len, STORE_RECORD_MAX_BYTES);
    }
    if (!has_room(batch, key.len + value.len)) {
        return err_set(err, RC_LIMIT, "a batch for the store is full: at most %zu bytes are taken",
                       batch->limit_bytes);
    }
    add_op(batch, op, key, value);
    return RC_SUCCESS;
}

static struct rc check_key(struct str key, struct err *err)
{
    if (key.len == 0 || key.len > STORE_KEY_MAX_BYTES) {
        return err_set(err, RC_LIMIT,
                       "a key for the store's gangs has %zu bytes, 1 to %u are taken", key.len,
                       STORE_KEY_MAX_BYTES);
    }
    return RC_SUCCESS;
}

struct rc store_batch_put_gang(struct store_batch *batch, struct str key, struct str value,
                               struct err *err)
{
    TRY(check_key(key, err));
    return add_checked(batch, (struct store_op){.db = STORE_DB_GANGS}, key, value, err);
}

struct rc store_batch_delete_gang(struct store_batch *batch, struct str key, struct err *err)
{
    const struct store_op op = {.db = STORE_DB_GANGS, .is_delete = true};

    TRY(check_key(key, err));
    return add_checked(batch, op, key, STR_NONE, err);
}

static struct rc add_record(struct store_batch *batch, enum store_db db,
                            const struct store_record *record, struct err *err)
{
    const struct store_op op = {.db = db, .kind = record->kind, .time_ms = record->time_ms};

    assert(record->time_ms >= 0);
    return add_checked(batch, op, STR_NONE, record->bytes, err);
}

struct rc store_batch_add_ledger(struct store_batch *batch, const struct store_record *record,
                                 struct err *err)
{
    return add_record(batch, STORE_DB_LEDGER, record, err);
}

struct rc store_batch_add_journal(struct store_batch *batch, const struct store_record *record,
                                  struct err *err)
{
    return add_record(batch, STORE_DB_JOURNAL, record, err);
}

bool store_batch_copy_op(struct store_batch *batch, const struct store_batch *from,
                         const struct store_op *op)
{
    if (!has_room(batch, (size_t)op->key_bytes + op->value_bytes)) {
        return false;
    }
    add_op(batch, *op, store_op_key(from, op), store_op_value(from, op));
    return true;
}

void store_batch_list_add(struct store_batch_list *list, struct store_batch *batch)
{
    batch->next = NULL;
    if (list->last == NULL) {
        list->first = batch;
    } else {
        list->last->next = batch;
    }
    list->last = batch;
    list->count++;
    list->weight += store_batch_weight(batch);
}

struct store_batch *store_batch_list_take(struct store_batch_list *list)
{
    struct store_batch *batch = list->first;

    if (batch == NULL) {
        return NULL;
    }
    list->first = batch->next;
    if (list->first == NULL) {
        list->last = NULL;
    }
    list->count--;
    list->weight -= store_batch_weight(batch);
    batch->next = NULL;
    return batch;
}
