/* log.h - a log line is one JSON object; where it goes is the caller's business.
 *
 * Only the driver and the daemon's outer parts log; library code returns errors. */
#pragma once

#include <stdint.h>

#include "tallyman/base/attr.h"
#include "tallyman/base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_sink {
    /* Takes one line without its newline; the view is borrowed for the call. */
    void (*write_line)(void *ctx, enum log_level level, struct str line);
    int64_t (*now_ms)(void *ctx);
    void *ctx;                /* borrowed */
    enum log_level min_level; /* below it nothing is formatted */
};

struct log_field {
    const char *key;
    struct str text; /* used when `is_number` is false */
    int64_t number;
    bool is_number;
};

#define LOG_STR(k, v) ((struct log_field){.key = (k), .text = (v)})
#define LOG_INT(k, v) ((struct log_field){.key = (k), .number = (v), .is_number = true})

/* {"time":…,"level":…,"msg":…,fields…}; text is escaped, control characters included, and cut at
 * LOG_FIELD_MAX_BYTES. `fields` ends with a field whose key is NULL, or is NULL. */
void log_line(const struct log_sink *sink, enum log_level level, const char *message,
              const struct log_field *fields);
bool log_level_parse(struct str text, enum log_level *ret_level);
