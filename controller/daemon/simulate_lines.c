/* simulate_lines.c - a text file line by line, unpacked where it is gzipped. */
#include "simulate_workload.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "tallyman/base/alloc.h"
#include "tallyman/base/limits.h"

struct lines {
    gzFile file;
    const char *path; /* borrowed */
    uint32_t number;
    size_t at; /* of what hasn't been given out */
    size_t length;
    bool is_end;
    char buffer[SIMULATE_LINE_MAX_BYTES];
};

struct rc lines_open(const char *path, struct lines **ret_lines, struct err *err)
{
    gzFile file = gzopen(path, "rb");
    if (file == NULL) {
        return err_set(err, RC_INVALID, "%s: can't be opened: %s", path, strerror(errno));
    }
    (void)gzbuffer(file, 128 * 1024);
    struct lines *lines = MEM_NEW(struct lines);
    lines->file = file;
    lines->path = path;
    *ret_lines = lines;
    return RC_SUCCESS;
}

void lines_close(struct lines *lines)
{
    if (lines != NULL) {
        (void)gzclose(lines->file);
        mem_free(lines);
    }
}

static struct rc fill(struct lines *lines, struct err *err)
{
    memmove(lines->buffer, lines->buffer + lines->at, lines->length - lines->at);
    lines->length -= lines->at;
    lines->at = 0;
    size_t room = sizeof(lines->buffer) - lines->length;
    if (room == 0) {
        return err_set(err, RC_LIMIT, "%s:%u: the line is longer than %d bytes", lines->path,
                       lines->number + 1, SIMULATE_LINE_MAX_BYTES);
    }
    int got = gzread(lines->file, lines->buffer + lines->length, (unsigned)room);
    int code = Z_OK;
    const char *why = gzerror(lines->file, &code);
    if (got < 0 || (got == 0 && code == Z_BUF_ERROR)) {
        bool is_cut = code == Z_BUF_ERROR;
        return err_set(err, RC_INVALID, "%s:%u: %s", lines->path, lines->number + 1,
                       is_cut            ? "the compressed file ends in the middle; get it anew"
                       : code == Z_ERRNO ? strerror(errno)
                                         : why);
    }
    lines->length += (size_t)got;
    lines->is_end = got == 0;
    return RC_SUCCESS;
}

struct rc lines_next(struct lines *lines, struct str *ret_line, struct err *err)
{
    const char *end = NULL;
    while ((end = memchr(lines->buffer + lines->at, '\n', lines->length - lines->at)) == NULL &&
           !lines->is_end) {
        TRY(fill(lines, err));
    }
    const char *start = lines->buffer + lines->at;
    size_t length = end == NULL ? lines->length - lines->at : (size_t)(end - start);
    if (end == NULL && length == 0) {
        *ret_line = STR_NONE;
        return RC_SUCCESS;
    }
    lines->at += length + (end == NULL ? 0 : 1);
    if (lines->number == 0 && length >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0) {
        start += 3; /* a byte order mark, as spreadsheets write it */
        length -= 3;
    }
    lines->number++;
    length -= length > 0 && start[length - 1] == '\r' ? 1 : 0;
    *ret_line = (struct str){start, length};
    return RC_SUCCESS;
}

struct rc lines_error(const struct lines *lines, uint32_t column, struct err *err,
                      const char *format, ...)
{
    char text[ERR_TEXT_MAX_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (column == 0) {
        return err_set(err, RC_INVALID, "%s:%u: %s", lines->path, lines->number, text);
    }
    return err_set(err, RC_INVALID, "%s:%u: column %u: %s", lines->path, lines->number, column,
                   text);
}
