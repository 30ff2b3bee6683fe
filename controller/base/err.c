#include "tallyman/base/err.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Ends the text in front of a character that vsnprintf() cut in two, and puts '?' for what a
 * terminal or a line-based reader might act on: errors quote what comes from outside. */
static void make_presentable(char *text)
{
    struct str rest = str_cut_utf8(str_from_c(text), ERR_TEXT_MAX_BYTES - 1);
    size_t len = 0;

    while (rest.len > 0) {
        struct str from = rest;
        uint32_t c;

        if (!str_take_utf8(&rest, &c)) {
            rest = str_skip(rest, 1);
            text[len++] = '?';
        } else if (str_char_is_unsafe(c)) {
            text[len++] = '?';
        } else {
            memmove(text + len, from.ptr, from.len - rest.len);
            len += from.len - rest.len;
        }
    }
    text[len] = '\0';
}

struct rc err_set(struct err *err, enum rc_code code, const char *format, ...)
{
    assert(code != RC_OK);
    if (err != NULL) {
        /* By way of a second buffer: the arguments may point into err itself. */
        char text[ERR_TEXT_MAX_BYTES];
        va_list args;

        va_start(args, format);
        int length = vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        assert(length >= 0);
        make_presentable(text);
        memcpy(err->text, text, strlen(text) + 1);
    }
    return (struct rc){code};
}

struct rc err_prefix(struct err *err, struct rc rc, const char *format, ...)
{
    if (err != NULL && rc_failed(rc)) {
        char text[ERR_TEXT_MAX_BYTES];
        va_list args;

        va_start(args, format);
        int length = vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        assert(length >= 0);

        size_t used = strlen(text);
        int more = snprintf(text + used, sizeof(text) - used, ": %s", err->text);
        assert(more >= 0);
        make_presentable(text);
        memcpy(err->text, text, strlen(text) + 1);
    }
    return rc;
}

struct str err_text(const struct err *err)
{
    return str_from_c(err->text);
}

const char *rc_name(struct rc rc)
{
    switch (rc.code) {
    case RC_OK:
        return "ok";
    case RC_INVALID:
        return "invalid";
    case RC_LIMIT:
        return "limit";
    case RC_NOT_FOUND:
        return "not found";
    case RC_CONFLICT:
        return "conflict";
    case RC_REFUSED:
        return "refused";
    case RC_RETRY:
        return "retry";
    case RC_IO:
        return "input/output";
    case RC_CORRUPT:
        return "corrupt";
    }
    return "unknown";
}
