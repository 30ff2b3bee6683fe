#include "tallyman/base/log.h"

#include <stdio.h>
#include <string.h>

#include "tallyman/base/limits.h"
#include "tallyman/base/time_text.h"

#define REPLACEMENT   0xfffdu /* stands for what isn't UTF-8 */
#define LINE_END_ROOM 24      /* ,"truncated":true} */

static const struct str level_names[] = {
    [LOG_DEBUG] = STR_INIT("debug"),
    [LOG_INFO] = STR_INIT("info"),
    [LOG_WARN] = STR_INIT("warn"),
    [LOG_ERROR] = STR_INIT("error"),
};

/* A line under construction. What doesn't fit sets `is_full` and is left out. */
struct line {
    char bytes[LOG_LINE_MAX_BYTES];
    size_t len;
    bool is_full;
};

static void line_add(struct line *line, struct str piece)
{
    if (line->is_full || piece.len > sizeof(line->bytes) - LINE_END_ROOM - line->len) {
        line->is_full = true;
        return;
    }
    if (piece.len > 0) {
        memcpy(line->bytes + line->len, piece.ptr, piece.len);
        line->len += piece.len;
    }
}

static void line_add_char(struct line *line, uint32_t c, struct str as_written)
{
    char escape[8];

    if (c == '"' || c == '\\') {
        (void)snprintf(escape, sizeof(escape), "\\%c", (int)c);
        line_add(line, str_from_c(escape));
    } else if (c == '\n') {
        line_add(line, STR("\\n"));
    } else if (c == '\t') {
        line_add(line, STR("\\t"));
    } else if (str_char_is_unsafe(c) && c > 0xffff) {
        line_add(line, STR("\xef\xbf\xbd")); /* an escape would need a pair */
    } else if (str_char_is_unsafe(c)) {
        (void)snprintf(escape, sizeof(escape), "\\u%04x", c & 0xffffu);
        line_add(line, str_from_c(escape));
    } else {
        line_add(line, as_written);
    }
}

static void line_add_quoted(struct line *line, struct str text)
{
    struct str rest = str_cut_utf8(text, LOG_FIELD_MAX_BYTES);
    bool is_cut = text.len > LOG_FIELD_MAX_BYTES;

    if (!is_cut) {
        rest = text; /* an unfinished character at the very end is shown, as any other bad byte */
    }
    line_add(line, STR("\""));
    while (rest.len > 0) {
        struct str before = rest;
        uint32_t c;

        if (str_take_utf8(&rest, &c)) {
            line_add_char(line, c, str_take(before, before.len - rest.len));
        } else {
            rest = str_skip(rest, 1);
            line_add_char(line, REPLACEMENT, STR("\xef\xbf\xbd"));
        }
    }
    line_add(line, is_cut ? STR("…\"") : STR("\""));
}

static void line_add_number(struct line *line, int64_t number)
{
    char digits[24];

    (void)snprintf(digits, sizeof(digits), "%lld", (long long)number);
    line_add(line, str_from_c(digits));
}

/* Adds a member, or nothing at all if it doesn't fit whole: the line stays one JSON object. */
static void line_add_field(struct line *line, const struct log_field *field)
{
    size_t len_before = line->len;
    bool was_full = line->is_full;

    line->is_full = false;
    line_add(line, line->len == 1 ? STR("") : STR(","));
    line_add_quoted(line, str_from_c(field->key));
    line_add(line, STR(":"));
    if (field->is_number) {
        line_add_number(line, field->number);
    } else {
        line_add_quoted(line, field->text);
    }
    if (line->is_full) {
        line->len = len_before;
    }
    line->is_full = line->is_full || was_full;
}

void log_line(const struct log_sink *sink, enum log_level level, const char *message,
              const struct log_field *fields)
{
    if (level < sink->min_level) {
        return;
    }
    struct line line = {.len = 0};
    char time[TIME_TEXT_BYTES];
    struct log_field head[] = {
        LOG_STR("time", time_format_micro(sink->now_ms(sink->ctx), time)),
        LOG_STR("level", level_names[level]),
        LOG_STR("msg", str_from_c(message)),
    };

    line_add(&line, STR("{"));
    for (size_t i = 0; i < ARRAY_COUNT(head); i++) {
        line_add_field(&line, &head[i]);
    }
    for (const struct log_field *field = fields; field != NULL && field->key != NULL; field++) {
        line_add_field(&line, field);
    }
    struct str end = line.is_full ? STR(",\"truncated\":true}") : STR("}");

    memcpy(line.bytes + line.len, end.ptr, end.len);
    line.len += end.len;
    sink->write_line(sink->ctx, level, (struct str){line.bytes, line.len});
}

bool log_level_parse(struct str text, enum log_level *ret_level)
{
    for (size_t i = 0; i < ARRAY_COUNT(level_names); i++) {
        if (str_eq(text, level_names[i])) {
            *ret_level = (enum log_level)i;
            return true;
        }
    }
    return false;
}
