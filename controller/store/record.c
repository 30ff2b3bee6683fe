#include "store_internal.h"

#include <string.h>

#include <zlib.h>

/* A record's value: checksum u32, kind u32, time i64, all little endian, then the caller's bytes.
 * The checksum covers the database, the key and everything behind itself, so that a record that
 * turns up in a wrong place is wrong. */
enum { CHECKSUM_AT = 0, KIND_AT = 4, TIME_AT = 8 };

static const char *const DB_NAMES[STORE_DB_COUNT] = {
    [STORE_DB_META] = "meta",
    [STORE_DB_GANGS] = "gangs",
    [STORE_DB_LEDGER] = "ledger",
    [STORE_DB_JOURNAL] = "journal",
};

const char *store_db_name(enum store_db db)
{
    return DB_NAMES[db];
}

enum store_db store_db_find(struct str name)
{
    for (int db = 0; db < STORE_DB_COUNT; db++) {
        if (str_eq_c(name, DB_NAMES[db])) {
            return (enum store_db)db;
        }
    }
    return STORE_DB_COUNT;
}

static void write_le(uint64_t number, uint8_t *ret_bytes, int count)
{
    for (int i = 0; i < count; i++) {
        ret_bytes[i] = (uint8_t)(number >> (8 * i));
    }
}

static uint64_t read_le(const char *bytes, int count)
{
    uint64_t number = 0;

    for (int i = 0; i < count; i++) {
        number |= (uint64_t)(uint8_t)bytes[i] << (8 * i);
    }
    return number;
}

void store_number_write(uint64_t number, uint8_t ret_bytes[8])
{
    for (int i = 0; i < 8; i++) {
        ret_bytes[i] = (uint8_t)(number >> (56 - 8 * i));
    }
}

uint64_t store_number_read(const char *bytes)
{
    uint64_t number = 0;

    for (int i = 0; i < 8; i++) {
        number = number << 8 | (uint8_t)bytes[i];
    }
    return number;
}

struct str store_seq_key(uint64_t seq, uint8_t buffer[STORE_SEQ_KEY_BYTES])
{
    store_number_write(seq, buffer);
    return (struct str){(const char *)buffer, STORE_SEQ_KEY_BYTES};
}

struct str store_time_key(int64_t time_ms, uint64_t seq, uint8_t buffer[STORE_TIME_KEY_BYTES])
{
    store_number_write((uint64_t)time_ms, buffer);
    store_number_write(seq, buffer + 8);
    return (struct str){(const char *)buffer, STORE_TIME_KEY_BYTES};
}

static uint32_t checksum(enum store_db db, struct str key, const void *rest, size_t rest_bytes)
{
    const char *name = DB_NAMES[db];
    uint32_t key_bytes = (uint32_t)key.len;
    uLong sum = crc32_z(0, (const Bytef *)name, strlen(name) + 1);

    sum = crc32_z(sum, (const Bytef *)&key_bytes, sizeof(key_bytes));
    sum = crc32_z(sum, (const Bytef *)key.ptr, key.len);
    return (uint32_t)crc32_z(sum, rest, rest_bytes);
}

void store_record_write(enum store_db db, struct str key, const struct store_record *record,
                        uint8_t *ret_value)
{
    write_le(record->kind, ret_value + KIND_AT, 4);
    write_le((uint64_t)record->time_ms, ret_value + TIME_AT, 8);
    if (record->bytes.len > 0) {
        memcpy(ret_value + STORE_HEADER_BYTES, record->bytes.ptr, record->bytes.len);
    }
    size_t rest_bytes = STORE_HEADER_BYTES - KIND_AT + record->bytes.len;

    write_le(checksum(db, key, ret_value + KIND_AT, rest_bytes), ret_value + CHECKSUM_AT, 4);
}

static bool key_has_shape(enum store_db db, struct str key)
{
    if (db == STORE_DB_JOURNAL) {
        return key.len == STORE_SEQ_KEY_BYTES;
    }
    return db != STORE_DB_LEDGER || key.len == STORE_TIME_KEY_BYTES;
}

struct rc store_record_read(enum store_db db, struct str key, struct str value,
                            struct store_record *ret_record, struct err *err)
{
    if (value.len < STORE_HEADER_BYTES || !key_has_shape(db, key)) {
        return err_set(err, RC_CORRUPT, "a record of database \"%s\" has a wrong length",
                       DB_NAMES[db]);
    }
    uint32_t wanted = (uint32_t)read_le(value.ptr + CHECKSUM_AT, 4);

    if (checksum(db, key, value.ptr + KIND_AT, value.len - KIND_AT) != wanted) {
        return err_set(err, RC_CORRUPT, "a record of database \"%s\" fails its checksum",
                       DB_NAMES[db]);
    }
    *ret_record = (struct store_record){
        .time_ms = (int64_t)read_le(value.ptr + TIME_AT, 8),
        .kind = (uint32_t)read_le(value.ptr + KIND_AT, 4),
        .bytes = str_skip(value, STORE_HEADER_BYTES),
    };
    return RC_SUCCESS;
}
