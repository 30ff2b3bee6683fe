/* value.h - what a CEL expression computes with.
 *
 * A value is 24 bytes, passed by copy; what it points to is borrowed from the program's arena
 * (constants), from the device, or from the evaluation's scratch arena. An error is a value too,
 * since
 * && and || may absorb it. Source: cel-spec langdef.md; cel-go common/types. */
#pragma once

#include "tallyman/api/dra.h"
#include "tallyman/base/str.h"

enum cel_kind {
    CEL_NULL,
    CEL_BOOL,
    CEL_INT,
    CEL_UINT,
    CEL_DOUBLE,
    CEL_STRING,
    CEL_BYTES,
    CEL_DURATION,
    CEL_TIMESTAMP,
    CEL_LIST,
    CEL_MAP,
    CEL_TYPE,
    CEL_OPTIONAL,
    CEL_QUANTITY,
    CEL_SEMVER,
    CEL_ERROR,
};

struct cel_timestamp {
    int64_t seconds;  /* since 1970 */
    int32_t nanos;    /* 0 to 999,999,999 */
    int32_t offset_s; /* the zone that it was written in; shown by string() only */
};

struct cel_value {
    enum cel_kind kind;
    union {
        bool boolean;
        int64_t integer;
        uint64_t uinteger;
        double real;
        struct str text; /* CEL_STRING, CEL_BYTES; CEL_TYPE: its name */
        int64_t duration_ns;
        struct cel_timestamp time;
        const struct cel_list *list;
        const struct cel_map *map;
        const struct cel_value *optional; /* NULL: optional.none() */
        const struct cel_quantity *quantity;
        const struct cel_semver *semver;
        struct cel_fault *fault;
    };
};

/* Lists share buffers: appending to the newest view of a buffer writes behind it, so that a
 * comprehension builds its list in linear time and older views stay as they were. */
struct cel_list_buffer {
    struct cel_value *items;
    uint32_t used;
    uint32_t capacity;
};

struct cel_list {
    const struct cel_value *items;
    uint32_t count;
    struct cel_list_buffer *buffer; /* NULL: not appendable */
};

enum cel_map_kind {
    CEL_MAP_ENTRIES, /* entries, with an index where there are many */
    CEL_MAP_DEVICE,  /* `device` */
    CEL_MAP_DOMAINS, /* device.attributes, device.capacity: any unknown key finds an empty map */
    CEL_MAP_DOMAIN,  /* device.attributes["dom"], device.capacity["dom"] */
};

struct cel_entry {
    struct cel_value key;
    struct cel_value value;
};

struct cel_map_buffer {
    struct cel_entry *entries;
    uint32_t used;
    uint32_t capacity;
    uint32_t *index; /* open addressing, entry number + 1; NULL while there are few */
    uint32_t index_size;
};

struct cel_map {
    enum cel_map_kind kind;
    bool is_capacity;  /* CEL_MAP_DOMAINS and CEL_MAP_DOMAIN: capacity, else attributes */
    uint32_t count;    /* CEL_MAP_ENTRIES */
    struct str domain; /* CEL_MAP_DOMAIN */
    struct cel_map_buffer *buffer;
};

/* `value` and `scale` say how Kubernetes keeps the number, which decides what isInteger() answers:
 * "1000m" is no integer there though it equals 1. */
struct cel_quantity {
    struct quantity amount;
    struct str text; /* as written; absent for a sum */
    int64_t value;
    int32_t scale;
    bool is_decimal; /* kept as a big decimal: never an integer */
    bool is_sum;     /* made by add() or sub(): equal to nothing from the right, as in Kubernetes */
    bool is_shaped;  /* value, scale and is_decimal are known */
};

struct cel_semver {
    uint64_t major;
    uint64_t minor;
    uint64_t patch;
    struct str pre; /* what stands between '-' and '+'; absent if nothing */
};

#define CEL_NO_POSITION UINT32_MAX

struct cel_fault {
    const char *what;  /* static */
    struct str detail; /* may be absent */
    uint32_t position; /* byte offset in the expression */
};

static inline struct cel_value cel_bool(bool b)
{
    return (struct cel_value){.kind = CEL_BOOL, .boolean = b};
}

static inline struct cel_value cel_int(int64_t i)
{
    return (struct cel_value){.kind = CEL_INT, .integer = i};
}

static inline struct cel_value cel_uint(uint64_t u)
{
    return (struct cel_value){.kind = CEL_UINT, .uinteger = u};
}

static inline struct cel_value cel_double(double d)
{
    return (struct cel_value){.kind = CEL_DOUBLE, .real = d};
}

static inline struct cel_value cel_string(struct str s)
{
    return (struct cel_value){.kind = CEL_STRING, .text = s};
}

static inline struct cel_value cel_bytes(struct str s)
{
    return (struct cel_value){.kind = CEL_BYTES, .text = s};
}

static inline struct cel_value cel_duration(int64_t ns)
{
    return (struct cel_value){.kind = CEL_DURATION, .duration_ns = ns};
}

static inline bool cel_is_true(struct cel_value v)
{
    return v.kind == CEL_BOOL && v.boolean;
}

static inline bool cel_is_error(struct cel_value v)
{
    return v.kind == CEL_ERROR;
}

/* The name that type() gives, e.g. "int", "google.protobuf.Duration". Static. */
struct str cel_kind_name(enum cel_kind kind);
